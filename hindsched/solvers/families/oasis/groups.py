"""Where oasis jobs run: counts by slot and server, and servers that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints


@dataclass(frozen=True)
class Placements:
    """Counts of workers or PSs at (slot, server), one entry each.

    Parameters
    ----------
    slots, servers, counts : ndarray of int
        Slot (1-based), index of the server or group, and how many.
    """

    slots: Ints
    servers: Ints
    counts: Ints

    def matrix(self, horizon: int, servers: int) -> Ints:
        """Counts by slot and server, shape (horizon, servers)."""
        counts = np.zeros((horizon, servers), dtype=np.int64)
        np.add.at(counts, (self.slots - 1, self.servers), self.counts)
        return counts

    @classmethod
    def of(cls, counts: NDArray[Any]) -> Placements:
        """Non-zero counts, shape (horizon, servers)."""
        slots, servers = np.nonzero(counts)
        return cls(slots + 1, servers, counts[slots, servers].astype(np.int64))


@dataclass(frozen=True)
class Groups:
    """Servers of equal capacity.

    Parameters
    ----------
    first, size : ndarray of int, shape (G,)
        First server of each group and the number of its servers.
    member : ndarray of int, shape (servers,)
        Group of each server.
    """

    first: Ints
    size: Ints
    member: Ints

    def placements(self, counts: NDArray[Any]) -> Placements:
        """Add up counts by slot and server over the groups."""
        found = Placements.of(counts)
        return Placements(found.slots, self.member[found.servers], found.counts)


def group_servers(capacity: Floats, layout: str) -> Groups:
    """Groups of identical servers; in the layout ``"servers"`` each server is one."""
    if layout == "servers":
        every = np.arange(capacity.shape[0])
        return Groups(every, np.ones_like(every), every)
    index: dict[bytes, int] = {}
    member = np.array([index.setdefault(row.tobytes(), len(index)) for row in capacity])
    _, first, size = np.unique(member, return_index=True, return_counts=True)
    return Groups(first, size, member)
