"""When each car drives up."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hindsched.errors import InputError
from hindsched.solutions.base import Assignment, Assignments, Solution, usage_table
from hindsched.solutions.rows import check_row_keys, read_span

from .instance import TollboothInstance

ROW_KEYS = {"from", "to", "workers"}


class TollboothSolution(Solution):
    """First slot by car."""

    family = "tollbooth"
    instance: TollboothInstance

    def __init__(self, instance: Any, start: dict[str, int], formulation: str | None = None):
        self.instance, self.start = instance, start
        self.formulation = instance.check_formulation(formulation)

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form."""
        start = {}
        for name, rows in assignments.items():
            job = instance.jobs[instance.job_index(name)]
            if not rows:
                continue
            where = f"{name}.assignments"
            check_row_keys(f"{where}[0]", rows[0], ROW_KEYS, ROW_KEYS)
            first, last = read_span(f"{where}[0]", rows[0])
            one = len(rows) == 1 and rows[0]["workers"] == {"booth": 1}
            if not one or last + 1 - first != job.length:
                raise InputError(where, rows, f"must be one run of {job.length} slots at one booth")
            start[name] = first
        return cls(instance, start, formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form for every car that passes."""
        return {
            job.name: [{"from": first, "to": first + job.length - 1, "workers": {"booth": 1}}]
            for job in self.instance.jobs
            if (first := self.start.get(job.name))
        }

    def used(self) -> Any:
        """Booths in use by slot, shape (slots,)."""
        used = np.zeros(self.instance.horizon)
        for name, start in self.start.items():
            used[start - 1 : self.completion(name)] += 1
        return used

    def completion(self, job: str) -> int | None:
        """Last slot at the booth, None for a car that stays out."""
        if job not in self.start:
            return None
        return self.start[job] + self.instance.jobs[self.instance.job_index(job)].length - 1

    def job_facts(self, job: Any) -> dict[str, Any]:
        """When a car drives up, and what it brings."""
        start = self.start.get(job.name)
        return {"start": start, "value": 0.0 if start is None else job.toll}

    def places(self) -> list[tuple[str, str]]:
        """All booths are one place."""
        return [("booth", "lane")]

    def usage_rows(self) -> list[dict[str, Any]]:
        """Booths in use by slot."""
        booths = np.array([[self.instance.booths]])
        return usage_table(self.used()[:, None, None], booths, ["booth"], ["lane"])


SOLUTION = TollboothSolution
