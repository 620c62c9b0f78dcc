"""The two kinds of work of a comparison, each a pure function from an instance to a JSON record.

A task is an offline solve of an instance or one run of an algorithm with one seed. `run_task` needs
nothing but its arguments, so that any process on any machine can run it, any number of times.
"""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.spans import job_spans
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance, family_module
from hindsched.online.registry import algorithms, build_algorithm, settings_of
from hindsched.solutions.base import Solution
from hindsched.solvers.options import SolveOptions

Record = dict[str, Any]
"""What a finished task leaves behind: JSON data with at least ``task, kind, instance, status``."""

OFFLINE, ONLINE = "offline", "online"
DEFAULT_SEEDS = 5


@dataclass(frozen=True)
class Task:
    """One unit of work.

    Parameters
    ----------
    kind : str
        ``offline`` or ``online``.
    instance : str
        Name of the instance.
    algorithm : str, optional
        Name of the online algorithm.
    seed : int
        Its seed.
    settings : dict
        Settings of the algorithm, or method and options of the offline solve.
    """

    kind: str
    instance: str
    algorithm: str | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name of the task, fit for a file name and unique within a comparison."""
        if self.kind == OFFLINE:
            return f"{file_name(self.instance)}--offline"
        return f"{file_name(self.instance)}--{self.algorithm}--s{self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "kind": self.kind,
            "instance": self.instance,
            "algorithm": self.algorithm,
            "seed": self.seed,
            "settings": dict(self.settings),
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Build from JSON data; `InputError` if it is no task."""
        names = {item.name for item in fields(cls)}
        if not isinstance(data, Mapping) or set(data) != names:
            raise InputError("tasks", data, f"must have the keys {', '.join(sorted(names))}")
        return cls(**data)


def plan_tasks(
    instances: Sequence[Instance],
    names: Sequence[str] | None = None,
    *,
    seeds: int = DEFAULT_SEEDS,
    first_seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    offline: Mapping[str, Any] | None = None,
) -> list[Task]:
    """List the tasks of a comparison: offline solves first, because they take longest.

    Parameters
    ----------
    instances : sequence of Instance
        What to compare on; names must be unique.
    names : sequence of str, optional
        Algorithms; None for all of each instance's family. With several families an algorithm is
        run where its family has it.
    seeds : int
        Number of seeds of each randomised algorithm; the others run once.
    first_seed : int
        The first seed.
    settings : mapping, optional
        Settings, each handed to every algorithm that has it.
    offline : mapping, optional
        Method and options of the offline solves.

    Raises
    ------
    InputError
        For an unknown algorithm, setting, method or option, or an instance name that stands
        twice.
    """
    if seeds < 1:
        raise InputError("seeds", seeds, "must be at least 1")
    if first_seed < 0:
        raise InputError("seed", first_seed, "must be at least 0")
    if not instances:
        raise InputError("instances", "(none)", "at least one instance is needed")
    seen: set[str] = set()
    for instance in instances:
        name = file_name(instance.name)
        if name in seen:
            raise InputError("instances", instance.name, "names must be unique as file names")
        seen.add(name)
    names = None if names is None else list(dict.fromkeys(names))
    families = list(dict.fromkeys(instance.family for instance in instances))
    chosen = {family: _chosen(family, names) for family in families}
    _check_offline(families, offline or {})
    _check_names(names, chosen)
    _check_settings(settings or {}, chosen)
    tasks = [Task(OFFLINE, item.name, settings=dict(offline or {})) for item in instances]
    for instance in instances:
        for name in chosen[instance.family]:
            own = own_settings(instance.family, name, settings or {})
            algorithm = build_algorithm(instance.family, name, own)
            count = seeds if algorithm.randomised else 1
            for seed in range(first_seed, first_seed + count):
                tasks.append(Task(ONLINE, instance.name, name, seed, own))
    return tasks


def own_settings(family: str, algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that this algorithm has."""
    known = settings_of(algorithms(family)[algorithm])
    return {key: value for key, value in settings.items() if key in known}


def run_task(instance: Instance, task: Task) -> Record:
    """Run a task and return its record; an error of the run is part of the record."""
    record: Record = {"task": task.key, **task.to_dict(), "status": "failed", "error": None}
    try:
        record |= {"family": instance.family, "sha256": instance.sha256()}
        work = _offline if task.kind == OFFLINE else _online
        record |= {**work(instance, task), "status": "ok"}
    except HindschedError as error:
        record |= {"error": f"{type(error).__name__}: {error}", "exit_code": error.exit_code}
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {error}"
        record["traceback"] = traceback.format_exc()
    return record if record["error"] is None else jsonable(record)


def check_record(record: Any, task: Task, where: str) -> Record:
    """Return the record of a task that was read from a file; `InputError` if it is damaged."""
    rule = "is damaged; `hindsched bench --resume` makes it again"
    if not isinstance(record, dict):
        raise InputError(where, record, rule)
    expected = {"task": task.key, **task.to_dict()}
    for name, value in expected.items():
        if record.get(name) != jsonable(value):
            raise InputError(where, f"{name}: {record.get(name, '(absent)')!r}", rule)
    if record.get("status") not in ("ok", "failed") or "error" not in record:
        raise InputError(where, f"status: {record.get('status', '(absent)')!r}", rule)
    if record["status"] == "failed":
        return record
    numbers = ["objective"] if task.kind == ONLINE else ["objective", "bound", "gap"]
    for name in numbers:
        value = record.get(name, "(absent)")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(where, f"{name}: {value!r}", rule)
    lists = ["jobs", "slots", *(["violations"] if task.kind == ONLINE else [])]
    for name in lists:
        if not isinstance(record.get(name), list):
            raise InputError(where, f"{name}: {record.get(name, '(absent)')!r}", rule)
    if record.get("sense") not in ("max", "min") or not isinstance(record.get("family"), str):
        raise InputError(where, f"sense: {record.get('sense', '(absent)')!r}", rule)
    return record


def failed_record(task: Task, reason: str) -> Record:
    """Record of a task whose process died."""
    return {"task": task.key, **task.to_dict(), "status": "failed", "error": reason}


def file_name(name: str) -> str:
    """Write a name with characters that are safe in file names everywhere."""
    return re.sub(r"[^A-Za-z0-9._+=@-]+", "_", name)


def theorem_of(instance: Instance, algorithm: str) -> dict[str, Any] | None:
    """What the paper's theorem promises of this algorithm on this instance, if it is its own.

    A family's ``online/algorithms`` module may name the variants that its theorem covers in
    ``THEOREM_ALGORITHMS``; otherwise it is the algorithm that carries the family's word.
    """
    module = family_module("online", instance.family, "algorithms")
    covered = getattr(module, "THEOREM_ALGORITHMS", (instance.family,))
    if algorithm not in covered:
        return None
    promised: dict[str, Any] = module.theorem(instance)
    return promised


def _offline(instance: Instance, task: Task) -> Record:
    from hindsched.solvers.api import solve

    options = dict(task.settings)
    method = options.pop("method", "auto")
    options.setdefault("threads", 1)
    result = solve(instance, method, options=options)
    produced_by = {"method": result.method, "options": dict(result.options)}
    solution, certificate = result.solution, result.certificate
    summary = result.to_dict()
    return {
        "sense": instance.sense,
        "solve_status": summary.pop("status"),
        **summary,
        "solution": None if solution is None else solution.to_dict(produced_by),
        "certificate": None if certificate is None else certificate.to_dict(),
        "jobs": [] if solution is None else solution.job_rows(),
        "slots": [] if solution is None else slot_rows(solution),
    }


def _online(instance: Instance, task: Task) -> Record:
    from hindsched.online.simulator import simulate

    assert task.algorithm is not None
    run = simulate(instance, task.algorithm, seed=task.seed, settings=task.settings)
    produced_by = {"algorithm": task.algorithm, "options": dict(task.settings), "seed": task.seed}
    return {
        "sense": instance.sense,
        **run.to_dict(),
        "solution": run.solution.to_dict(produced_by),
        "jobs": run.solution.job_rows(),
        "slots": slot_rows(run.solution, run.price_path),
        "theorem": theorem_of(instance, task.algorithm),
    }


def slot_rows(
    solution: Solution, price_path: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Use and price per slot and resource.

    Parameters
    ----------
    solution : Solution
        The schedule.
    price_path : sequence of dict
        ``slot, resource, price`` rows of an algorithm that posts prices.

    Returns
    -------
    list of dict
        ``slot, resource, used`` (summed over servers), ``price`` (None where none is posted) and
        ``active_jobs`` (that run in the slot); slots and resources with neither use nor price are
        left out.
    """
    used: dict[tuple[int, str], float] = {}
    for row in solution.usage_rows():
        key = (int(row["slot"]), str(row["resource"]))
        used[key] = used.get(key, 0.0) + float(row["used"])
    prices = {(row["slot"], row["resource"]): float(row["price"]) for row in price_path}
    active: Counter[int] = Counter()
    for rows in solution.assignments().values():
        for span in job_spans(rows):
            active.update(range(span.first, span.last + 1))
    keys = sorted({*used, *(key for key, price in prices.items() if price)})
    return [
        {
            "slot": slot,
            "resource": resource,
            "used": used.get((slot, resource), 0.0),
            "price": prices.get((slot, resource)),
            "active_jobs": active[slot],
        }
        for slot, resource in keys
    ]


def _chosen(family: str, names: Sequence[str] | None) -> list[str]:
    known = algorithms(family)
    return list(known) if names is None else [name for name in names if name in known]


def _check_offline(families: Sequence[str], offline: Mapping[str, Any]) -> None:
    from hindsched.solvers.api import methods

    options = dict(offline)
    method = options.pop("method", "auto")
    SolveOptions.of(**options)
    for family in families:
        known = methods(family)
        if method not in known:
            raise InputError("method", method, f"must be one of {', '.join(known)}")


def _check_names(names: Sequence[str] | None, chosen: Mapping[str, Sequence[str]]) -> None:
    for name in names or ():
        if not any(name in found for found in chosen.values()):
            known = dict.fromkeys(word for family in chosen for word in algorithms(family))
            raise InputError("algorithm", name, f"must be one of {', '.join(known)}")


def _check_settings(settings: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]) -> None:
    known = dict.fromkeys(
        name
        for family, names in chosen.items()
        for algorithm in names
        for name in settings_of(algorithms(family)[algorithm])
    )
    for key, value in settings.items():
        if key not in known:
            allowed = ", ".join(known) or "none"
            raise InputError(f"set.{key}", value, f"the algorithms have the settings: {allowed}")
