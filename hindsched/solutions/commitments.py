"""What is decided for good in the middle of a run, in the solution file's form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hindsched.solutions.base import Assignments


@dataclass(frozen=True)
class Commitments:
    """What an online scheduler can no longer change when it plans again.

    Parameters
    ----------
    now : int
        First slot still open. What ran before it is history, also for a job that had none.
    assignments : mapping
        Rows by job in the solution file's form: history before `now` and, for locked jobs, the
        promise from `now` on. A job that is not locked is open from `now` on.
    locked : frozenset of str
        Jobs whose later rows must stay.
    rejected : frozenset of str
        Jobs refused for good.
    known : dict
        What was read of locked jobs, by job, and of what: theirs rarely change, so that whoever
        asks again and again at later slots hands the same mapping on.
    """

    now: int = 1
    assignments: Assignments = field(default_factory=lambda: dict[str, list[dict[str, object]]]())
    locked: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    known: dict[str, tuple[tuple[object, ...], Any]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def read_once(self, job: str, of: Sequence[object], read: Callable[[], Any]) -> Any:
        """What `read` makes of a locked job's rows, now or earlier, of the very same things."""
        given = (self.assignments.get(job), *of)
        before, found = self.known.get(job, ((), None))
        same = len(before) == len(given) and all(map(operator.is_, before, given))
        if not same:
            found = read()
            self.known[job] = given, found
        return found

    def history(self, job: str) -> list[dict[str, object]]:
        """Rows of `job` cut to the slots before `now`."""
        rows: list[dict[str, object]] = []
        for row in self.assignments.get(job, ()):
            if row["from"] < self.now:
                rows.append({**row, "to": min(row["to"], self.now - 1)})
        return rows
