"""What is decided for good in the middle of a run, in the solution file's form."""

from __future__ import annotations

from dataclasses import dataclass, field

from hindsched.solutions.base import Assignments


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
