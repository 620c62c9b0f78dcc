"""When each car drives up."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hindsched.solutions.base import Assignment, Assignments, Solution, usage_table
from hindsched.solutions.rows import check_row_keys, read_span

from .instance import TollboothInstance

ROW_KEYS = {"from", "to", "workers"}


class TollboothSolution(Solution):
    """Rows in the file's form of every car that passes; what they break, the kernel says."""

    family = "tollbooth"
    instance: TollboothInstance

    def __init__(
        self, instance: Any, rows: dict[str, list[Assignment]], formulation: str | None = None
    ) -> None:
        self.instance, self.rows = instance, rows
        self.formulation = instance.check_formulation(formulation)

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form."""
        for name, rows in assignments.items():
            instance.job_index(name)
            for row in rows:
                check_row_keys(f"{name}.assignments", row, ROW_KEYS, ROW_KEYS)
                read_span(f"{name}.assignments", row)
        kept = {name: list(rows) for name, rows in assignments.items() if rows}
        return cls(instance, kept, formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form for every car that passes."""
        return self.rows

    def start(self, job: str) -> int | None:
        """First slot at the booth, None for a car that stays out."""
        return self.rows[job][0]["from"] if job in self.rows else None

    def completion(self, job: str) -> int | None:
        """Last slot at the booth, None for a car that stays out."""
        return self.rows[job][-1]["to"] if job in self.rows else None

    def job_facts(self, job: Any) -> dict[str, Any]:
        """When a car drives up, and what it brings."""
        return {"start": self.start(job.name), "value": job.toll * (job.name in self.rows)}

    def places(self) -> list[tuple[str, str]]:
        """All booths are one place."""
        return [("booth", "lane")]

    def usage_rows(self) -> list[dict[str, Any]]:
        """Booths in use by slot."""
        used = np.zeros((self.instance.horizon, 1, 1))
        for row in (row for rows in self.rows.values() for row in rows):
            used[row["from"] - 1 : row["to"]] += 1
        return usage_table(used, np.array([[self.instance.booths]]), ["booth"], ["lane"])


SOLUTION = TollboothSolution
