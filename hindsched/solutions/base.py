"""What every family's solution shares: assignments, violations and solution files.

A solution keeps what was decided, as rows, arrays, tables and frames. Whether it is feasible and
what it is worth is asked of the exact kernel, which reads its rows as it reads a file's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from hindsched import kernel
from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord, family_module
from hindsched.instances.io import read_json, write_json
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

SOLUTION_FORMAT = "hindsched-solution/1"
FEASIBILITY_TOLERANCE = 1e-6
"""Slack, in units of the constraint scaled by its right side, below which nothing is violated."""

Assignment = dict[str, Any]
"""One run-length row of a job's decisions, with the keys of the family's solution file: which those
are, only the family's modules know, which read and write them."""
TableRow = dict[str, Any]  # a row of a table of jobs or of use, for frames and plots
Assignments = Mapping[str, Sequence[Assignment]]
"""Rows by job name; a job without rows is not served."""


@dataclass(frozen=True)
class Commitments:
    """What an online scheduler can no longer change when it plans again."""

    now: int = 1  # first slot still open
    # Rows by job in the solution file's form: history before `now` and, for locked jobs, the
    # promise from `now` on. A job that is not locked is open from `now` on.
    assignments: Assignments = field(default_factory=dict[str, list[dict[str, object]]])
    locked: frozenset[str] = frozenset()  # jobs whose later rows must stay
    rejected: frozenset[str] = frozenset()  # jobs refused for good

    def history(self, job: str) -> list[dict[str, object]]:
        """Rows of `job` cut to the slots before `now`."""
        rows: list[dict[str, object]] = []
        for row in self.assignments.get(job, ()):
            if row["from"] < self.now:
                rows.append({**row, "to": min(row["to"], self.now - 1)})
        return rows


class Solution(ABC):
    """Decisions for an instance.

    Subclasses keep the decisions as arrays and are built by `from_assignments` (file form) or by a
    constructor of their own. Decisions do not change after construction: tables, verdict and
    objective are worked out once. Only `given_up` is set afterwards, before any of these is read.
    """

    instance: Instance
    formulation: str
    family: ClassVar[str]
    given_up: Mapping[str, Sequence[Assignment]] = MappingProxyType({})
    """Rows of jobs that a run began and dropped: they count as use, and as nothing else."""
    capacity_name: ClassVar[str] = "capacity"
    """What the ``capacity`` of `usage_rows` is, for people."""

    def __repr__(self) -> str:
        jobs = self.instance.jobs
        completed = sum(self.completion(job.name) is not None for job in jobs)
        return (
            f"<{self.instance.family} solution of {self.instance.name!r}: objective "
            f"{self.objective():.6g}, {completed} of {len(jobs)} jobs completed>"
        )

    @classmethod
    @abstractmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form.

        Raises
        ------
        InputError
            If a row is malformed: an unknown job, server, key, or a non-integer amount. A row
            that is well-formed but breaks a constraint is a violation, not an error.
        """

    @abstractmethod
    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form for every job that is served, run-length over slots."""

    @cached_property
    def verdict(self) -> kernel.Verdict:
        """What the exact kernel says; `InputError` if the decisions are no schedule at all."""
        data = {"formulation": self.formulation, "jobs": self._job_data()}
        try:
            return kernel.check(self.instance.exact, data | self._dropped())
        except kernel.RefusedFile as refused:
            raise InputError("solution", self.instance.name, str(refused)) from None

    def objective(self) -> float:
        """Objective of the solution's formulation, that of the completed jobs; inf without one."""
        return self._objective

    @cached_property
    def _objective(self) -> float:
        ends = {job.name: self.completion(job.name) for job in self.instance.jobs}
        worth = self.instance.exact.problem(self.formulation).worth(ends)
        return math.inf if worth is None else float(worth.low)

    def violations(self) -> list[kernel.Violation]:
        """Every constraint of the formulation that is broken, by first slot; empty if feasible."""
        return list(self.verdict.violations)

    @abstractmethod
    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None if it does not complete."""

    def job_rows(self) -> list[TableRow]:
        """One row a job, in the instance's order; absent numbers are None.

        Every family's have ``job, arrival, start, completion, value`` (utility earned or cost
        incurred); a family adds its own (target, weight, preemptions).
        """
        return [
            {
                "job": job.name,
                "arrival": self.instance.arrival_of(job),
                "start": None,
                "completion": self.completion(job.name),
                "value": None,
                **self.job_facts(job),
            }
            for job in self.instance.jobs
        ]

    @abstractmethod
    def job_facts(self, job: JobRecord) -> JsonObject:
        """What a job's row says beside ``job, arrival, completion``."""

    @abstractmethod
    def usage_rows(self) -> Sequence[TableRow]:
        """Use and capacity per slot and resource, where something is used; see `usage_table`.

        Keys: ``slot, server, resource, used, capacity``, the last None where it is not bounded.
        Plots and utilisation come from these.
        """

    @abstractmethod
    def places(self) -> list[tuple[str, str]]:
        """Server and resource of every capacity that jobs may use, in the instance's order."""

    def run_of(self, row: Assignment) -> tuple[int, int, float]:
        """First slot, last slot and workers of a row in the file's form; 0 where it has none.

        Here that of rows with ``from``, ``to`` and ``workers`` by server; a family whose rows are
        others says so itself.
        """
        return row["from"], row["to"], float(sum(row["workers"].values()))

    def is_feasible(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations()

    def to_frame(self) -> pd.DataFrame:
        """`job_rows` as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.job_rows())

    def to_dict(self, produced_by: Mapping[str, object] | None = None) -> JsonObject:
        """JSON data of the solution file."""
        data: JsonObject = {
            "format": SOLUTION_FORMAT,
            "family": self.instance.family,
            "instance": self.instance.name,
            "instance_sha256": self.instance.sha256(),
            "formulation": self.formulation,
            "objective": self.objective(),
            "produced_by": dict(produced_by or {}),
            "jobs": self._job_data(),
        }
        return data | self._dropped()

    def _dropped(self) -> JsonObject:
        """Jobs begun and dropped, where there are any."""
        listed = [{"name": name, "assignments": rows} for name, rows in self.given_up.items()]
        return {"given_up": listed} if listed else {}

    def _job_data(self) -> list[JsonObject]:
        """Jobs as the solution file has them."""
        rows = self.assignments()
        return [
            {
                "name": job.name,
                "completion": self.completion(job.name),
                "assignments": rows.get(job.name, []),
            }
            for job in self.instance.jobs
        ]


def usage_table(
    used: Any, capacity: Any, servers: Sequence[str], resources: Sequence[str], **more: str
) -> list[TableRow]:
    """Rows of use (slots, servers, resources) and capacity (servers, resources) where there is use.

    `more` are further keys of every row.
    """
    return [
        {
            "slot": int(t) + 1, **more, "server": servers[s], "resource": resources[r],
            "used": float(used[t, s, r]), "capacity": float(capacity[s, r]),
        }
        for t, s, r in np.argwhere(used > 0)
    ]  # fmt: skip


def solution_class(family: str) -> type[Solution]:
    """A family's class of solutions, found by its word: ``SOLUTION`` of its ``solution.py``."""
    cls: type[Solution] = family_module("solutions", family, "solution").SOLUTION
    return cls


def build_solution(
    instance: Instance, assignments: Assignments, formulation: str | None = None
) -> Solution:
    """Build the solution of `instance`'s family from rows in the file's form.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> run = hs.simulate(instance, "oasis")
    >>> hs.build_solution(instance, run.solution.assignments()).objective() == run.objective
    True
    """
    return solution_class(instance.family).from_assignments(instance, assignments, formulation)


def write_solution(
    solution: Solution, path: str | Path, produced_by: Mapping[str, object] | None = None
) -> None:
    """Write a solution file.

    Examples
    --------
    >>> import hindsched as hs
    >>> run = hs.simulate(hs.generate("oasis", seed=2), "oasis")
    >>> hs.write_solution(run.solution, "run.json", produced_by={"algorithm": "oasis"})
    """
    write_json(solution.to_dict(produced_by), path)


def read_solution(path: str | Path, instance: Instance) -> Solution:
    """Read a solution file of `instance`.

    Raises
    ------
    InputError
        If it is no solution file, belongs to another instance, or states an objective or a
        completion that its own decisions do not have.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> hs.write_solution(hs.simulate(instance, "oasis").solution, "run.json")
    >>> hs.read_solution("run.json", instance).is_feasible()
    True
    """
    solution = parse_solution(read_json(path), instance, str(path))
    if solution.given_up:
        solution.violations()
    return solution


def parse_solution(data: Any, instance: Instance, where: str) -> Solution:
    """The solution that a file's JSON data describe; `where` names the file in errors."""
    check_belongs(data, SOLUTION_FORMAT, instance, where)
    jobs = _objects("jobs", data.get("jobs"))
    known = {job.name for job in instance.jobs}
    assignments: dict[str, list[Assignment]] = {}
    for index, job in enumerate(jobs):
        name = job.get("name", "(absent)")
        if not isinstance(name, str) or name not in known or name in assignments:
            raise InputError(f"jobs[{index}].name", name, "must name each job of the instance once")
        rows = _objects(f"jobs[{index}].assignments", job.get("assignments", []))
        assignments[name] = rows
    formulation = data.get("formulation")
    if not isinstance(formulation, str | None):
        raise InputError("formulation", formulation, "must be a word")
    solution = build_solution(instance, assignments, formulation)
    if given_up := _objects("given_up", data.get("given_up", [])):
        solution.given_up = {str(job.get("name")): job.get("assignments", []) for job in given_up}
    _check_claims(data, jobs, solution)
    return solution


def _objects(where: str, value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InputError(where, value, "must be a list of objects")
    return value


def check_belongs(data: object, expected_format: str, instance: Instance, where: str) -> None:
    """Refuse a solution or certificate file that is not one of `instance`."""
    if not isinstance(data, dict):
        raise InputError(where, data, "must be a JSON object")
    expected = {
        "format": expected_format,
        "family": instance.family,
        "instance_sha256": instance.sha256(),
    }
    for key, value in expected.items():
        if data.get(key) != value:
            raise InputError(key, data.get(key, "(absent)"), f"must be {value}")


def _check_claims(data: JsonObject, jobs: list[JsonObject], solution: Solution) -> None:
    claimed = data.get("objective")
    objective = solution.objective()
    if not isinstance(claimed, int | float) or isinstance(claimed, bool):
        raise InputError("objective", claimed, "must be a number")
    if abs(claimed - objective) > 1e-6 * max(1.0, abs(objective)):
        raise InputError("objective", claimed, f"the decisions have objective {objective!r}")
    for index, job in enumerate(jobs):
        completion = solution.completion(str(job["name"]))
        if job.get("completion") != completion:
            where, rule = f"jobs[{index}].completion", f"the decisions complete at {completion}"
            raise InputError(where, job.get("completion"), rule)
