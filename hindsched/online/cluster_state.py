"""The part of the simulator's truth that every family shares.

A family's ``online/<family>/dynamics.py`` derives its ``Truth`` from `RowTruth` and says what one
more row does to the cluster and when a job has finished. It also offers
``promised_rows(rows, slot) -> (rows, whole_job)`` for rolling-horizon algorithms: of a job's
planned rows, those that following the plan makes irrevocable in `slot`, and whether the whole job
is then settled (non-preemptive families) or only this slot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from hindsched.errors import InputError, Refused
from hindsched.instances.base import Instance, JobRecord, Record
from hindsched.online.protocol import Capabilities, Decision, Environment, JobUpdates, Report
from hindsched.solutions.base import Assignment, Solution, build_solution

Job = TypeVar("Job", bound=Record)
Row = TypeVar("Row")


class RowTruth(ABC, Generic[Job]):
    """Accepts rows one by one, refuses what breaks a constraint, and builds the solution.

    Parameters
    ----------
    instance : Instance
        The whole instance; only the truth sees it.
    environment : Environment
        What the algorithm was told.
    """

    def __init__(self, instance: Instance, environment: Environment) -> None:
        self.instance = instance
        self.environment = environment
        self.jobs = {job.name: job for job in instance.jobs}
        self.rows: dict[str, list[Assignment]] = {}
        self._alone: dict[str, Instance] = {}
        self._by_reveal = sorted(instance.jobs, key=self.reveal_slot)
        self._known: dict[str, JobRecord] = {}
        self._booked = 0

    def reveal_slot(self, job: Job) -> int:
        """Slot in whose step the job is told to the algorithm: its arrival."""
        return self.instance.arrival_of(job)

    def known_jobs(self, slot: int) -> JobUpdates:
        """Jobs revealed up to and in `slot`, by name; one mapping that grows."""
        while len(self._known) < len(self._by_reveal):
            job = self._by_reveal[len(self._known)]
            if self.reveal_slot(job) > slot:
                break
            self._known[job.name] = job
        return self._known

    def shown(self, job: Job, card: Capabilities) -> Any:
        """What an algorithm with this card is told of a job that arrives: a copy."""
        return job.model_copy(deep=True)

    def news(self, slot: int) -> JobUpdates:
        """What `slot` brings of jobs that are known, by name: what their records may not hold."""
        return {}

    @property
    def last_slot(self) -> int:
        """Slot up to which the run goes even if nothing is left to do."""
        last = self.reveal_slot(self._by_reveal[-1]) if self._by_reveal else 0
        return max(self.instance.horizon, last)

    def advance(self, slot: int) -> tuple[str, ...]:
        """Move on to the beginning of `slot`; jobs whose end the algorithm then hears of."""
        return ()

    def next_slot(self, slot: int) -> int | None:
        """Next slot to step if no job arrives before: every one, or that of the next event."""
        return slot + 1

    @staticmethod
    def slots_to_play(instance: Any) -> int:
        """Slots that a run steps at least, whether anything happens in them or not."""
        return max([instance.horizon, *map(instance.arrival_of, instance.jobs)])

    def is_idle(self, slot: int) -> bool:
        """Whether nothing decided goes on in `slot` or later; a run that stays so is stuck."""
        return self._booked < slot

    def check_form(self, name: str, rows: Sequence[Assignment]) -> None:
        """Raise `InputError` for rows that no solution file of the family could hold.

        A family whose algorithms may decide less at once than such a row says (that a run begins,
        say, and later that it ends) checks the form of its own rows in `check_row`.
        """
        if name not in self._alone:  # a job alone: its rows are read many times
            self._alone[name] = self.instance.with_jobs((self.jobs[name],))
        build_solution(self._alone[name], {name: rows}, self.environment.formulation)

    def apply(self, slot: int, decision: Decision) -> None:
        """Add the decision's rows.

        Raises
        ------
        Refused
            Naming the constraint that a row breaks.
        """
        for name, rows in decision.assignments.items():
            for row in rows:
                self.check_row(slot, self.jobs[name], row)
                self.rows.setdefault(name, []).append(row)
                self._booked = max(self._booked, row["to"])

    @abstractmethod
    def check_row(self, slot: int, job: Job, row: Assignment) -> None:
        """Check one more row against all rows so far and book its use; raise `Refused`."""

    def is_over(self, slot: int) -> bool:
        """Whether nothing is left to do after `slot` (families with a hard horizon: always)."""
        return True

    def solution(self) -> Solution:
        """The solution of all rows."""
        return build_solution(self.instance, self.rows, self.environment.formulation)

    def report(self) -> Report:
        """Further facts of the run that only the truth knows."""
        return {}


class TruthOfWhole(RowTruth[Job]):
    """Of a family whose jobs earn nothing unless they finish: the others are left out."""

    @abstractmethod
    def is_finished(self, job: Job) -> bool:
        """Whether the rows of a job that ran do all its work."""

    def unfinished(self) -> list[str]:
        """Jobs that ran without finishing."""
        ran = (job for job in self.instance.jobs if job.name in self.rows)
        return [job.name for job in ran if not self.is_finished(job)]

    def solution(self) -> Solution:
        """The solution of the rows of all jobs that finished."""
        left_out = set(self.unfinished())
        rows = {name: rows for name, rows in self.rows.items() if name not in left_out}
        return build_solution(self.instance, rows, self.environment.formulation)

    def report(self) -> Report:
        """Name the jobs that ran in vain."""
        return {"unfinished": self.unfinished()}


def read_or_refuse(
    read_row: Callable[[Any, str, Assignment], Row], instance: Instance, job: str, row: Assignment
) -> tuple[Row, str]:
    """Read a decided row by the family's `read_row`, and name its job and slots.

    Raises
    ------
    Refused
        For a malformed row.
    """
    where = f"job {job}, slots {row.get('from')}-{row.get('to')}"
    try:
        return read_row(instance, job, row), where
    except InputError as error:
        raise Refused("the row's form", where, str(error)) from None


def whole_window(rows: list[Assignment], slot: int) -> tuple[list[Assignment], bool]:
    """``promised_rows`` where a job that starts keeps its window: nothing is paused or resized."""
    starts = bool(rows) and rows[0]["from"] == slot
    return (list(rows), True) if starts else ([], False)


def this_slot(rows: Sequence[Assignment], slot: int) -> tuple[list[Assignment], bool]:
    """``promised_rows`` where only what runs in this slot is irrevocable: the rest stays open."""
    now = [{**row, "from": slot, "to": slot} for row in rows if row["from"] <= slot <= row["to"]]
    return now, False
