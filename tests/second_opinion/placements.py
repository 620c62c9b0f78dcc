"""What batchsched and astraea share: jobs choose a placement and a first slot, servers hold them.

A *placement* of a job is a worker type, a PS type, and the workers and parameter servers on every
server. One that takes as long as another and uses no less of anything is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .milp import Milp, Number


@dataclass(frozen=True)
class Placement:
    """A way to run a job; `use` has what it takes of each kind of thing of each server."""

    worker_type: str
    ps_type: str
    workers: tuple[int, ...]
    ps: tuple[int, ...]
    slots: Fraction
    use: tuple[Number, ...]

    @property
    def duration(self) -> int:
        """The least whole number of slots."""
        return math.ceil(self.slots)


class Placed:
    """The program of all jobs; `ways` has each job's placements that are worth a look."""

    def __init__(self, sense: str, instance: dict[str, Any], ways: list[list[Placement]]) -> None:
        self.program = Milp(sense)
        self.instance = instance
        self.ways = [undominated(own) for own in ways]
        self.x: dict[tuple[int, int, int], int] = {}
        self.rows: dict[tuple[int, int], list[tuple[int, Number]]] = {}
        """Columns and amounts by slot and kind of thing."""

    def choose(self, j: int, first: int, end: int, worth: Callable[[int], Number]) -> list[Any]:
        """Add a job's columns, of all last slots up to `end`; returns them as terms."""
        own = []
        for way, placement in enumerate(self.ways[j]):
            for start in range(first, end - placement.duration + 2):
                last = start + placement.duration - 1
                column = self.program.variable(1, worth(last))
                self.x[j, way, start] = column
                own.append((column, 1))
                for t in range(start, last + 1):
                    for k, amount in enumerate(placement.use):
                        if amount:
                            self.rows.setdefault((t, k), []).append((column, amount))
        return own

    def fit(self, have: list[Any]) -> None:
        """Let no slot take more of anything than there is."""
        for (_, k), terms in self.rows.items():
            self.program.row(terms, at_most=have[k])

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        names = [server["name"] for server in self.instance["servers"]]
        listed: list[dict[str, Any]] = [
            {"name": job["name"], "completion": None, "assignments": []}
            for job in self.instance["jobs"]
        ]
        for (j, way, start), column in self.x.items():
            if not point[column]:
                continue
            placement = self.ways[j][way]
            row: dict[str, Any] = {"from": start, "to": start + placement.duration - 1}
            for key, kind, counts in (
                ("workers", "worker_type", placement.workers), ("ps", "ps_type", placement.ps)
            ):  # fmt: skip
                if getattr(placement, kind):
                    row[kind] = getattr(placement, kind)
                if any(counts):
                    row[key] = {name: n for name, n in zip(names, counts, strict=True) if n}
            listed[j] |= {"completion": row["to"], "assignments": [row]}
        return listed


def undominated(placements: Iterable[Placement]) -> list[Placement]:
    """Leave out what takes as long as another placement, or longer, and uses no less."""
    kept: list[Placement] = []
    for one in sorted(placements, key=lambda p: (p.duration, sum(p.use))):
        if not any(all(a <= b for a, b in zip(other.use, one.use, strict=True)) for other in kept):
            kept.append(one)
    return kept
