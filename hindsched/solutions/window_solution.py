"""Solutions of the families whose jobs run in one window: what their rows have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, Self

from hindsched.instances.base import Instance, JobRecord
from hindsched.solutions.base import (
    Assignment,
    Assignments,
    Solution,
)
from hindsched.solutions.rows import read_rows
from hindsched.solutions.window_row import Row, merge_rows


class WindowSolution(Solution, Generic[Row]):
    """Rows by job; rows that continue each other are one.

    Parameters
    ----------
    instance : Instance
        The instance.
    rows : mapping
        Rows by job name; a job without rows is not scheduled.
    formulation : str, optional
        One of the instance's formulations.
    """

    def __init__(
        self, instance: Any, rows: dict[str, Sequence[Row]], formulation: str | None = None
    ) -> None:
        known: Instance = instance
        self.instance = known
        self.formulation = known.check_formulation(formulation)
        self.rows: dict[str, tuple[Row, ...]] = {
            name: merge_rows(found) for name, found in rows.items() if found
        }

    @staticmethod
    @abstractmethod
    def read_row(instance: Any, where: str, row: Assignment) -> Row:
        """Read one row of the solution file; `InputError` for a malformed one."""

    @staticmethod
    @abstractmethod
    def write_row(instance: Any, row: Row) -> Assignment:
        """Write a row in the file's form."""

    @staticmethod
    def row_progress(instance: Any, job: JobRecord, row: Row) -> Fraction:
        """Mini-batches that a row's workers train in one slot, exactly."""
        count = row.num_workers
        if not count:
            return Fraction()
        time = instance.exact_time(job, row.worker_type, row.ps_type, row.one_server)
        done: Fraction = count / time.of(count)
        return done

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form; see `Solution.from_assignments`."""
        return cls(instance, read_rows(instance, assignments, cls.read_row), formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form, in the instance's order of jobs."""
        return {
            job.name: [self.write_row(self.instance, row) for row in self.rows[job.name]]
            for job in self.instance.jobs
            if job.name in self.rows
        }

    def work_missing(self, job: JobRecord) -> Fraction:
        """Mini-batches left undone, exactly; not above 0 if the work is done."""
        rows = self.rows.get(job.name, ())
        done = (row.slots * self.row_progress(self.instance, job, row) for row in rows)
        return job.total_minibatches - sum(done, Fraction())

    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None if its work is not done by then."""
        rows = self.rows.get(job, ())
        if not rows or self.work_missing(self._jobs[job]) > 0:
            return None
        return max(row.last for row in rows)

    @cached_property
    def last_slot(self) -> int:
        """Last slot that any row uses; 0 without rows."""
        return max((row.last for rows in self.rows.values() for row in rows), default=0)

    @cached_property
    def _jobs(self) -> dict[str, JobRecord]:
        return {job.name: job for job in self.instance.jobs}
