"""A job's schedule in oasis as its oracle describes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hindsched.arrays import Ints


class Placements(NamedTuple):
    """Workers or PSs that run: slots (1-based), servers or groups, and how many; entry by entry."""

    slots: Ints
    servers: Ints
    counts: Ints

    def matrix(self, horizon: int, servers: int) -> Ints:
        """Counts by slot and server, shape (horizon, servers)."""
        counts = np.zeros((horizon, servers), dtype=np.int64)
        np.add.at(counts, (self.slots - 1, self.servers), self.counts)
        return counts

    @classmethod
    def of(cls, counts: Ints, member: Ints | None = None) -> Placements:
        """Non-zero counts, shape (horizon, servers), and in which group each server is."""
        slots, servers = np.nonzero(counts)
        places = servers if member is None else member[servers]
        return cls(slots + 1, places, counts[slots, servers].astype(np.int64))


class OasisPlan(NamedTuple):
    """A job's schedule: its completion slot, and where its workers and PSs run."""

    end: int
    workers: Placements
    ps: Placements
