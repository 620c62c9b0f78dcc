"""What the report's page shows, as plain data made from a result store."""

from __future__ import annotations

import json
from collections.abc import Mapping

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
from hindsched.solvers.certificate import Certificate
from hindsched.solvers.certificate_file import read_as_prices
from hindsched.solvers.explain import Explainer

JOBS_DRAWN = 200
"""Schedules of instances with more jobs are not drawn."""
MOST_SCHEDULE_BYTES = 2_500_000
"""Once the schedules of a page weigh so much, the others are left in their files."""
MOST_SCHEDULES = 300
"""No page draws more: explaining each against its bound takes about 30 ms."""
PROFILE_POINTS = 61
STEPS = 20
"""Subgradient steps that make the prices of a tree's leaf good for a whole instance."""


def page_data(store: ResultStore, comparison: Comparison) -> JsonObject:
    """Rows of the page's tables, its profiles and the schedules that it draws.

    Parameters
    ----------
    store : ResultStore
        The results.
    comparison : Comparison
        Of the store's records.

    Returns
    -------
    dict
        ``instances``, ``runs`` (an algorithm on an instance), ``profiles`` by family,
        ``schedules`` by task, ``undrawn``: how many schedules only stand in their files.
    """
    sizes = {instance.name: instance for instance in store.instances()}
    items = comparison.instances
    runs = [
        _run(store, place, item, row) for place, item in enumerate(items) for row in item.algorithms
    ]
    certificates = {item.instance: _certificate(store, item, sizes) for item in items}
    schedules, undrawn = _schedules(store, items, sizes, certificates)
    return {
        "instances": [
            _instance(store, item, sizes[item.instance], certificates[item.instance])
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
    prices: Certificate | None,
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
        "worth": [] if prices is None else worth_strips(prices),
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


def _schedules(
    store: ResultStore,
    items: list[InstanceComparison],
    instances: Mapping[str, Instance],
    certificates: Mapping[str, Certificate | None],
) -> tuple[JsonObject, int]:
    """Schedules by task, as many as the page may carry: the offline ones first."""
    records = [item.offline for item in items]
    for place in range(max((len(item.algorithms) for item in items), default=0)):
        records += [
            item.algorithms[place].runs[0][0] for item in items if place < len(item.algorithms)
        ]
    explainers = {
        name: Explainer(instances[name], certificate)
        for name, certificate in certificates.items()
        if certificate is not None
    }
    found: JsonObject = {}
    size, undrawn = 0, 0
    for record in records:
        instance = instances[record["instance"]]
        path = store.solution_file(record)
        if path is None:
            continue
        is_full = size > MOST_SCHEDULE_BYTES or len(found) >= MOST_SCHEDULES
        if is_full or len(instance.jobs) > JOBS_DRAWN:
            undrawn += 1
            continue
        solution = read_solution(path, instance)
        data = jsonable(schedule_data(solution, record, explainers.get(instance.name)))
        found[record["task"]] = data
        size += len(json.dumps(data, separators=(",", ":")))
    return found, undrawn


def _certificate(
    store: ResultStore, item: InstanceComparison, instances: Mapping[str, Instance]
) -> Certificate | None:
    """An instance's certificate as one price vector, if there is one that holds."""
    _, name = _files(store, item.offline)
    if name is None:
        return None
    instance = instances[item.instance]
    try:
        return read_as_prices(store.folder / name, instance, STEPS)
    except InputError:
        return None
