"""The two kinds of work of a comparison, each a pure function from an instance to a JSON record.

A task is an offline solve of an instance or one run of an algorithm with one seed. `run_task` needs
nothing but its arguments, so that any process on any machine can run it, any number of times.
"""

from __future__ import annotations

import copy
import re
import traceback
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, Self, TypeAlias

from hindsched.analysis.tables import jsonable, slot_rows
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject, Keywords
from hindsched.limits import time_limit
from hindsched.online.base import family_online
from hindsched.online.external import External
from hindsched.online.protocol import OnlineAlgorithm, Theorem
from hindsched.online.registry import algorithms, build_from, find_algorithm, name_of, settings_of
from hindsched.printable import error_words, printable

Record: TypeAlias = dict[str, Any]
"""What a finished task leaves behind, as its JSON file has it: the task (``task, kind, instance,
algorithm, seed, settings``), ``status, error``, and what `run_task` found."""
OFFLINE, ONLINE = "offline", "online"
TASK_KEYS = ("kind", "instance", "algorithm", "seed", "settings")
SECONDS_OF_PROOF = 20.0  # for the kernel to read a certificate: the table says who vouches
LONGEST_NAME, LONGEST_INSTANCE_NAME = 60, 120  # characters of algorithms', instances' file names
NOT_ISOLATED = " (not isolated)"
"""Mark of code of one's own that ran in our process, where it could change what we compute."""
Contender = str | type[OnlineAlgorithm] | OnlineAlgorithm
"""An algorithm to compare: a name (see `find_algorithm`), a class or an object of one's own."""


class Entry(NamedTuple):
    """An algorithm as it runs."""

    label: str
    settings: JsonObject  # those of the given ones that it has
    algorithm: OnlineAlgorithm  # built with them
    has: tuple[str, ...] = ()  # names of all its settings

    @classmethod
    def of(cls, family: str, contender: Contender, settings: Keywords) -> Self:
        """Build an algorithm; `InputError` for what is none."""
        if isinstance(contender, OnlineAlgorithm):
            return cls(name_of(contender), {}, copy.deepcopy(contender))
        if isinstance(contender, str):
            factory, label = find_algorithm(family, contender), contender
        elif isinstance(contender, type) and issubclass(contender, OnlineAlgorithm):
            factory, label = contender, contender.__name__
        else:
            rule = "must be a name, or a class or object of an OnlineAlgorithm"
            raise InputError("algorithm", type(contender).__name__, rule)
        has = tuple(settings_of(factory))
        used = {name: value for name, value in settings.items() if name in has}
        return cls(label, used, build_from(factory, label, used), has)


@dataclass(frozen=True)
class Task:
    """One unit of work."""

    kind: str  # OFFLINE or ONLINE
    instance: str
    algorithm: str | None = None
    seed: int = 0
    settings: Keywords = field(default_factory=dict)  # the algorithm's, or the solve's with method
    # An algorithm that no name leads to: it travels to other processes with the task but is in no
    # file, so that a comparison with one cannot be resumed.
    custom: Contender | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """Name of the task, fit for a file name and unique within a comparison."""
        if self.kind == OFFLINE:
            return f"{file_name(self.instance)}--offline"
        algorithm = self.algorithm or ""
        short = file_name(algorithm)
        if short != algorithm or len(short) > LONGEST_NAME:  # a path or a command
            short = f"{short[-LONGEST_NAME:]}-{_digest(algorithm)}"
        return f"{file_name(self.instance)}--{short}--s{self.seed}"

    def to_dict(self) -> Record:
        """JSON data."""
        return {name: jsonable(getattr(self, name)) for name in TASK_KEYS}

    @classmethod
    def of(cls, data: object) -> Self:
        """Build from JSON data; `InputError` if it is no task."""
        if not isinstance(data, dict) or {*data} != {*TASK_KEYS}:
            raise InputError("tasks", data, f"must have the keys {', '.join(TASK_KEYS)}")
        return cls(**data)


def run_task(instance: Instance, task: Task, run_limit: float | None = None) -> Record:
    """Run a task and return its record; an error of the run is part of the record.

    A run of an algorithm that overruns `run_limit` seconds is stopped, and its record says so.
    """
    record = failed_record(task, instance, "")
    try:
        record |= {"sha256": instance.sha256()}
        is_solve = task.kind == OFFLINE
        result = _offline(instance, task) if is_solve else _online(instance, task, run_limit)
        return record | {"status": "ok", "error": None, **result}
    except MemoryError as error:
        message = f"not enough memory ({error or 'no more is left'})"
    except HindschedError as error:
        message = f"{type(error).__name__}: {error}"
        record["exit_code"] = error.exit_code
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also an algorithm's own sys.exit(): the other tasks go on
        frame = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{error_words(error)} ({frame.filename}, line {frame.lineno})"
        record["traceback"] = printable(traceback.format_exc())
    return jsonable(record | {"error": " ".join(printable(message).split())})  # type: ignore[no-any-return]


def failed_record(task: Task, instance: Instance, reason: str) -> Record:
    """Record of a task that failed, or whose process died."""
    facts = {"family": instance.family, "sense": instance.sense, "error": reason}
    return {"task": task.key, **task.to_dict(), "status": "failed", **facts}


def check_record(record: object, task: Task, where: str) -> Record:
    """Return the record of a task that was read from a file; `InputError` if it is another's."""
    expected = {"task": task.key, **task.to_dict()}
    if (
        not isinstance(record, dict)
        or any(record.get(name) != value for name, value in expected.items())
        or record.get("status") not in ("ok", "failed")
        or "error" not in record
    ):
        rule = "is damaged; `hindsched bench --resume` makes it again"
        raise InputError(where, f"not the record of {task.key}", rule)
    return record


def file_name(name: str) -> str:
    """Write a name with characters that are safe in file names everywhere; a long one is cut."""
    safe = re.sub(r"[^A-Za-z0-9._+=@-]+", "_", name)
    if len(safe) <= LONGEST_INSTANCE_NAME:
        return safe
    return f"{safe[:LONGEST_INSTANCE_NAME]}-{_digest(name)}"


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:8]


def theorem_of(instance: Instance, algorithm: str) -> Theorem | None:
    """What the paper's theorem promises of this algorithm on this instance, if it has one."""
    theorem = family_online(instance.family).theorems.get(algorithm)
    return None if theorem is None else theorem(instance)


def _offline(instance: Instance, task: Task) -> Record:
    from hindsched.analysis.verify import proof_of
    from hindsched.solvers.door.api import solve

    options: dict[str, Any] = dict(task.settings)
    method = options.pop("method", "auto")
    options.setdefault("threads", 1)
    result = solve(instance, method, options=options)
    produced_by = {"method": result.method, "options": dict(result.options)}
    solution, certificate = result.solution, result.certificate
    proof, summary = proof_of(result, SECONDS_OF_PROOF), result.to_dict()
    return {
        "solve_status": summary.pop("status"),
        **summary,
        "proof": proof,
        "certified": proof == "certificate",
        "solution": None if solution is None else solution.to_dict(produced_by),
        "certificate": None if certificate is None else certificate.to_dict(),
        "jobs": [] if solution is None else solution.job_rows(),
        "slots": [] if solution is None else slot_rows(solution),
    }


def _online(instance: Instance, task: Task, run_limit: float | None) -> Record:
    from hindsched.online.simulator import simulate

    name = str(task.algorithm)
    algorithm = Entry.of(instance.family, task.custom or name, task.settings).algorithm
    contender = name if task.custom is None else algorithm
    with time_limit(run_limit):
        run = simulate(instance, contender, seed=task.seed, settings=task.settings)
    produced_by = {"algorithm": name, "options": dict(task.settings), "seed": task.seed}
    is_isolated = isinstance(algorithm, External) or name in algorithms(instance.family)
    return {
        **run.to_dict(),
        "algorithm": name,
        "mark": run.mark + ("" if is_isolated else NOT_ISOLATED),
        "solution": run.solution.to_dict(produced_by),
        "jobs": run.solution.job_rows(),
        "slots": slot_rows(run.solution, run.price_path),
        "theorem": theorem_of(instance, name),
        "commitment": algorithm.card.commitment,
    }
