"""What a run has decided so far, in order of time: the simulator's side of every family.

A family's ``online/<family>/dynamics.py`` derives its state from `ClusterState`: which jobs may be
decided about, what rows were given and when a run is over. Whether the rows are a feasible schedule
the exact kernel says at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from hindsched.errors import InputError, Refused
from hindsched.instances.base import Record
from hindsched.online.protocol import Capabilities, Decision, Environment, JobUpdates, Report
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solutions.rows import read_span

Job = TypeVar("Job", bound=Record)
CommittedRows = Callable[[Sequence[Assignment], int], tuple[list[Assignment], bool]]
"""See ``committed_rows`` of `FamilyOnline`."""


class ClusterState(Generic[Job]):
    """Takes decisions over, keeps their rows in order of time and builds the solution."""

    def __init__(self, instance: Any, environment: Environment) -> None:
        self.instance = instance  # the whole one, which the algorithm does not see
        self.environment = environment
        self.jobs = {job.name: job for job in instance.jobs}
        self.rows: dict[str, list[Assignment]] = {}
        self.rejected: list[str] = []
        self._accepted: set[str] = set()
        self.revealed = {job.name: self.reveal_slot(job) for job in instance.jobs}
        self._booked = 0  # last slot of any row

    @property
    def formulation(self) -> str:
        """The problem that the run obeys: a relaxed one if the algorithm relaxes constraints."""
        formulation = self.environment.formulation
        return formulation if self.environment.in_feasible_set else self.relaxed(formulation)

    def relaxed(self, formulation: str) -> str:
        """The problem that an algorithm obeys which relaxes a formulation's constraints."""
        return formulation

    # Time

    def reveal_slot(self, job: Job) -> int:
        """Slot in whose step the job is told to the algorithm: its arrival."""
        return int(self.instance.arrival_of(job))

    def shown(self, job: Job, card: Capabilities) -> Any:
        """What an algorithm with this card is told of a job that arrives: a copy."""
        return job.model_copy(deep=True)

    def news(self, slot: int) -> JobUpdates:
        """What `slot` brings of jobs that are known, by name: what their records may not hold."""
        return {}

    @property
    def last_slot(self) -> int:
        """Slot up to which the run goes even if nothing is left to do."""
        return max(int(self.instance.horizon), *self.revealed.values(), 0)

    def advance(self, slot: int) -> tuple[str, ...]:
        """Move on to the beginning of `slot`; jobs whose end the algorithm then hears of."""
        return ()

    def next_slot(self, slot: int) -> int | None:
        """Next slot to step if no job arrives before: every one, or that of the next event."""
        return slot + 1

    @property
    def slots_to_play(self) -> int:
        """Slots that a run steps at least, whether anything happens in them or not."""
        return self.last_slot

    def is_idle(self, slot: int) -> bool:
        """Whether nothing decided goes on in `slot` or later; a run that stays so is stuck."""
        return self._booked < slot

    def is_over(self, slot: int) -> bool:
        """Whether nothing is left to do after `slot` (families with a hard horizon: always)."""
        return True

    # Decisions

    def take_over(self, slot: int, decision: object) -> Decision:
        """Check a decision and return a copy of it that only the simulator holds.

        Refused are by ``decision`` or ``row`` what has not their form, by ``no peeking`` jobs that
        have not arrived, by ``irrevocable`` rows in the past and promises that are taken back.
        """
        here = f"slot {slot}"
        copy = _copied(decision, here)
        for job in (*copy.rejected, *copy.admitted, *copy.assignments):
            if self.revealed.get(job, slot + 1) > slot:
                raise Refused("no peeking", f"job {job}, {here}", "the job has not arrived")
        for job in copy.rejected:
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected before")
            if job in self._accepted or job in copy.admitted or copy.assignments.get(job):
                raise Refused("irrevocable", f"job {job}, {here}", "the job was accepted")
            self.rejected.append(job)
        for job in (*copy.admitted, *(job for job, rows in copy.assignments.items() if rows)):
            if job in self.rejected:
                raise Refused("irrevocable", f"job {job}, {here}", "the job was rejected")
            self._accepted.add(job)
        for job, rows in copy.assignments.items():
            for row in rows:
                first = row.get("from", slot)
                if type(first) is int and first < slot:
                    detail = f"row begins in the past, at {first}"
                    raise Refused("irrevocable", f"job {job}, {here}", detail)
        return copy

    def apply(self, slot: int, decision: Decision) -> None:
        """Add the decision's rows; `InputError` or `Refused` for one that cannot be followed."""
        for name, rows in decision.assignments.items():
            for row in rows:
                self._booked = max(self._booked, read_span(f"job {name}, slot {slot}", row)[1])
                self.add_row(name, row)

    def add_row(self, name: str, row: Assignment) -> None:
        """Add a row; one that continues the job's last one is joined to it."""
        rows = self.rows.setdefault(name, [])
        if rows and row["from"] == rows[-1]["to"] + 1:
            longer = {**rows[-1], "to": row["to"]}
            if {**row, "from": longer["from"]} == longer:
                rows[-1] = longer
                return
        rows.append(dict(row))

    # The end

    def solution(self) -> Solution:
        """The solution of all rows."""
        return build_solution(self.instance, self.rows, self.formulation)

    def judged_solution(self) -> Solution:
        """The solution; `Refused` by the first rule that it breaks where none may be broken."""
        try:
            solution = self.solution()
            broken = solution.violations()
        except InputError as error:
            if error.where == "family":  # its part of the kernel is missing
                raise
            raise Refused("row", self.instance.name, str(error)) from None
        violations = [
            violation for violation in broken if not self.is_left_out(violation, solution)
        ]
        if violations and self.environment.in_feasible_set:
            raise Refused(violations[0].rule, violations[0].where, violations[0].detail)
        return solution

    def is_left_out(self, broken: Any, solution: Solution) -> bool:
        """Whether a rule is broken only by a job that the run may leave out."""
        return False

    def report(self) -> Report:
        """Further facts of the run that the algorithm does not know."""
        return {}


class OptionalJobsState(ClusterState[Job]):
    """Of a family whose jobs earn nothing unless they finish: the others were given up."""

    unfinished: Sequence[str] = ()  # jobs that ran without finishing, once the solution is built

    def solution(self) -> Solution:
        """The solution of the jobs that finished, and what the others used."""
        solution = super().solution()
        ran = [job.name for job in self.instance.jobs if job.name in self.rows]
        self.unfinished = [name for name in ran if solution.completion(name) is None]
        if self.unfinished:
            given_up = {name: self.rows[name] for name in self.unfinished}
            rows = {name: rows for name, rows in self.rows.items() if name not in given_up}
            solution = build_solution(self.instance, rows, self.formulation)
            solution.given_up = given_up
        return solution

    def is_left_out(self, broken: Any, solution: Solution) -> bool:
        """Whether it is that of a job without rows, where all jobs must complete."""
        return not broken.first and broken.job not in solution.assignments()

    def report(self) -> Report:
        """Name the jobs that ran in vain."""
        return {"unfinished": list(self.unfinished)}


def whole_window(rows: Sequence[Assignment], slot: int) -> tuple[list[Assignment], bool]:
    """``committed_rows`` where a job that starts keeps its window: nothing pauses or resizes."""
    starts = bool(rows) and rows[0]["from"] == slot
    return (list(rows), True) if starts else ([], False)


def this_slot(rows: Sequence[Assignment], slot: int) -> tuple[list[Assignment], bool]:
    """``committed_rows`` where only what runs in this slot is irrevocable: the rest stays open."""
    now = [{**row, "from": slot, "to": slot} for row in rows if row["from"] <= slot <= row["to"]]
    return now, False


def _copied(decision: object, here: str) -> Decision:
    """A copy of plain data, read once: what an algorithm's own classes could hide is gone."""
    if not isinstance(decision, Decision):
        raise Refused("decision", here, f"{type(decision).__name__} is no Decision")
    if not isinstance(decision.assignments, Mapping):
        raise Refused("decision", here, "assignments must map job names to rows")
    fields = {kind: getattr(decision, kind) for kind in ("assignments", "admitted", "rejected")}
    try:
        copy = json.loads(json.dumps(fields, default=_json_value))
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused("row", here, f"nothing that a row could hold: {error}") from None
    for kind in ("admitted", "rejected"):
        if not _is_list_of(str, copy[kind]):
            raise Refused("decision", here, f"{kind} must be a list of job names")
    for job, rows in copy["assignments"].items():
        if not _is_list_of(dict, rows):
            raise Refused("row", f"job {job}, {here}", "rows must be a list of objects")
    return Decision(**copy)


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _json_value(value: object) -> Any:
    """Numpy's numbers, and mappings and sequences of other classes, as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
