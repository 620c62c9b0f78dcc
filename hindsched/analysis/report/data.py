"""What the report's page shows, as plain data made from a result store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from hindsched.analysis.algorithm_ratio import AlgorithmRatio, RunFact
from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.records import Record
from hindsched.analysis.report.commands import check_command, command_of, instance_file
from hindsched.analysis.report.schedules import schedule_data, short, worth_strips
from hindsched.analysis.statistics import profile_rows
from hindsched.analysis.store import ResultStore
from hindsched.analysis.tasks import file_name
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.library import shown_name
from hindsched.json_types import JsonObject
from hindsched.solutions.base import read_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.certificates.explain import Explainer
from hindsched.solvers.certificates.file import read_as_prices

JOBS_DRAWN = 200
"""Schedules of instances with more jobs are not drawn."""
MOST_SCHEDULE_BYTES = 2_500_000
"""Once the schedules of a page weigh so much, the others are left in their files."""
MOST_SCHEDULES = 300
"""No page draws more: explaining each against its bound takes about 30 ms."""
PROFILE_POINTS = 61
WEIGHT_OF_SCHEDULE = 50_000
"""Bytes of a certificate that take as long as a schedule."""
STEPS = 10
"""Subgradient steps that make the prices of a tree's leaf good for a whole instance."""


Each = Callable[[Callable[[Any], Any], Sequence[Any], Sequence[float]], Iterator[Any]]
"""Calls a function on items of these weights: `one_by_one`, or `LocalPool.spread`."""


class InstanceWork(NamedTuple):
    """What of an instance is recomputed for the page.

    Parameters
    ----------
    instance : Instance
        The instance.
    certificate : Path or None
        Its certificate.
    drawn : list of (Record, Path)
        Tasks whose schedules are drawn, and the files of these.
    """

    instance: Instance
    certificate: Path | None
    drawn: list[tuple[Record, Path]]


class InstancePart(NamedTuple):
    """What `compute_part` found for an instance.

    Parameters
    ----------
    worth : list of dict
        What capacity is worth by its certificate.
    schedules : dict
        Schedules and their sizes as text, by task.
    """

    worth: list[JsonObject]
    schedules: dict[str, tuple[JsonObject, int]]


class PageParts:
    """The slow parts of a page, on their way from when this is made: instance by instance.

    Parameters
    ----------
    store : ResultStore
        The results.
    comparison : Comparison
        Of the store's records.
    each : callable
        Does the work.
    """

    def __init__(self, store: ResultStore, comparison: Comparison, each: Each) -> None:
        self.instances = {instance.name: instance for instance in store.instances()}
        self.order: list[Record] = []
        self.undrawn = 0
        drawn: dict[str, list[tuple[Record, Path]]] = {name: [] for name in self.instances}
        for record in _offline_first(comparison.instances):
            path = store.solution_file(record)
            if path is None:
                continue
            is_large = len(self.instances[record["instance"]].jobs) > JOBS_DRAWN
            if is_large or len(self.order) >= MOST_SCHEDULES:
                self.undrawn += 1
                continue
            self.order.append(record)
            drawn[record["instance"]].append((record, path))
        work: list[InstanceWork] = []
        for item in comparison.instances:
            name = _files(store, item.offline)[1]
            certificate = None if name is None else store.folder / name
            work.append(
                InstanceWork(self.instances[item.instance], certificate, drawn[item.instance])
            )
        names = [item.instance for item in comparison.instances]
        self._found = zip(
            names, each(compute_part, work, [_weight(of) for of in work]), strict=True
        )

    @cached_property
    def parts(self) -> dict[str, InstancePart]:
        """By instance."""
        return dict(self._found)

    def schedules(self) -> tuple[JsonObject, int]:
        """Schedules by task, as many as the page may carry, and the number of the others."""
        found: JsonObject = {}
        size, undrawn = 0, self.undrawn
        for record in self.order:
            if size > MOST_SCHEDULE_BYTES:
                undrawn += 1
                continue
            data, weight = self.parts[record["instance"]].schedules[record["task"]]
            found[record["task"]] = data
            size += weight
        return found, undrawn


def one_by_one(
    function: Callable[[Any], Any], items: Sequence[Any], weights: Sequence[float]
) -> Iterator[Any]:
    """Call a function on items when their results are asked for."""
    return map(function, items)


def compute_part(work: InstanceWork) -> InstancePart:
    """Read an instance's certificate and schedules, and what the page shows of them."""
    certificate = _certificate(work)
    explainer = None if certificate is None else Explainer(work.instance, certificate)
    schedules: dict[str, tuple[JsonObject, int]] = {}
    size = 0
    for record, path in work.drawn:
        if size > MOST_SCHEDULE_BYTES:
            break
        solution = read_solution(path, work.instance)
        data = jsonable(schedule_data(solution, record, explainer))
        weight = len(json.dumps(data, separators=(",", ":")))
        schedules[record["task"]] = data, weight
        size += weight
    return InstancePart([] if certificate is None else worth_strips(certificate), schedules)


def page_data(
    store: ResultStore, comparison: Comparison, parts: PageParts | None = None
) -> JsonObject:
    """Rows of the page's tables, its profiles and the schedules that it draws.

    Parameters
    ----------
    store : ResultStore
        The results.
    comparison : Comparison
        Of the store's records.
    parts : PageParts, optional
        Where they were begun before.

    Returns
    -------
    dict
        ``instances``, ``runs`` (an algorithm on an instance), ``profiles`` by family,
        ``schedules`` by task, ``undrawn``: how many schedules only stand in their files.
    """
    parts = parts or PageParts(store, comparison, one_by_one)
    items = comparison.instances
    runs = [
        _run(store, place, item, row) for place, item in enumerate(items) for row in item.algorithms
    ]
    schedules, undrawn = parts.schedules()
    return {
        "instances": [
            _instance(store, item, parts.instances[item.instance], parts.parts[item.instance].worth)
            for item in items
        ],
        "runs": runs,
        "profiles": _profiles(comparison),
        "schedules": schedules,
        "undrawn": undrawn,
    }


def _instance(
    store: ResultStore,
    item: InstanceComparison,
    instance: Instance,
    worth: list[JsonObject],
) -> JsonObject:
    record = item.offline
    solution, certificate = _files(store, record)
    return {
        "name": shown_name(instance),
        "family": item.family,
        "sense": instance.sense,
        "jobs": len(instance.jobs),
        "horizon": instance.horizon,
        **item.optimum.to_dict(),
        "gap": item.optimum.gap,
        "method": record.get("method"),
        "backend": record.get("backend"),
        "seconds": record.get("seconds"),
        "stopped_by": record.get("stopped_by"),
        "task": record["task"],
        "file": instance_file(item.instance),
        "sha256": store.manifest["instances"][item.instance],
        "solution": solution,
        "certificate": certificate,
        "command": command_of(record),
        "check": check_command(item.instance, solution, certificate),
        "worth": worth,
    }


def _run(
    store: ResultStore, place: int, item: InstanceComparison, row: AlgorithmRatio
) -> JsonObject:
    record = row.runs[0][0]
    solution, _ = _files(store, record)
    certificate = _files(store, item.offline)[1]
    seeds = [
        [one["seed"], one.get("objective"), *ratio.interval.to_dict().values()]
        for one, ratio in row.runs
    ]
    return {
        "instance": place,
        "algorithm": row.algorithm,
        "label": row.label,
        "objective": row.objective,
        **row.ratio.interval.to_dict(),
        "less": row.ratio.difference.to_dict(),
        "seeds": seeds,
        "completed": _mean(row, "jobs_completed"),
        "decision_ms": _mean(row, "decision_ms_median"),
        "starred": row.ratio.starred,
        "note": "; ".join([*filter(None, [row.ratio.reason]), *row.errors]),
        "theorem": row.theorem,
        "task": record["task"],
        "solution": solution,
        "command": command_of(record),
        "check": check_command(item.instance, solution, certificate),
    }


def _files(store: ResultStore, record: Record) -> tuple[str | None, str | None]:
    """Paths of a task's schedule and of its instance's certificate, within the folder."""
    solution = store.solution_file(record)
    certificate = store.folder / "certificates" / f"{file_name(record['instance'])}.json"
    return (
        None if solution is None else str(solution.relative_to(store.folder)),
        str(certificate.relative_to(store.folder)) if certificate.is_file() else None,
    )


def _mean(row: AlgorithmRatio, name: RunFact) -> float | None:
    found = [record.get(name) for record, _ in row.runs]
    values = [value for value in found if value is not None]
    return sum(values) / len(values) if values else None


def _profiles(comparison: Comparison) -> JsonObject:
    """Performance profiles by family: the factors, and each algorithm's shares."""
    found: JsonObject = {}
    for family, rows in comparison.by_family().items():
        lines: dict[str, list[float]] = {}
        factors: list[float] = []
        for row in profile_rows(rows, PROFILE_POINTS):
            line = lines.setdefault(row["algorithm"], [])
            line.append(short(row["share"]))
            if len(lines) == 1:
                factors.append(short(row["factor"]))
        found[family] = {"factors": factors, "shares": lines}
    return found


def _offline_first(items: Sequence[InstanceComparison]) -> Iterator[Record]:
    """Records whose schedules may be drawn: of the solves, then of algorithm after algorithm."""
    yield from (item.offline for item in items)
    for place in range(max((len(item.algorithms) for item in items), default=0)):
        for item in items:
            if place < len(item.algorithms):
                yield item.algorithms[place].runs[0][0]


def _weight(work: InstanceWork) -> float:
    """How long a part takes, roughly: by the size of its certificate and its schedules."""
    size = 0 if work.certificate is None else work.certificate.stat().st_size
    return size + WEIGHT_OF_SCHEDULE * len(work.drawn) + 1


def _certificate(work: InstanceWork) -> Certificate | None:
    """An instance's certificate as one price vector, if there is one that holds."""
    if work.certificate is None:
        return None
    try:
        return read_as_prices(work.certificate, work.instance, STEPS)
    except InputError:
        return None
