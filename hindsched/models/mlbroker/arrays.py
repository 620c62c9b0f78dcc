"""The slot's convex set as sparse arrays, for direct calls to a solver.

The same set as ``models/mlbroker/convex.py: SlotBlock`` in a smaller form, assembled in
milliseconds; tests hold the two against each other. What is smaller:

- the relaxed (8c)-(8e) are replaced by their projection on the bill, which is what
  u1 + u2 = 1, u >= 0 leaves of them:
  ``x >= 0,  x >= ((a + b) h + e - M) / 2,  x >= a h - M,  x >= b h + e - M``;
- data that stays and workers that talk to a PS beside them are what (8b) and (8i) leave over, so
  both equations are gone: ``q^{rr} = D^r - sum q^{rr'} >= 0``, ``g^{rr} = y^r - sum g^{rr'} >= 0``;
- a connection r -> r' is left out if no optimum needs it. Moving a share of the PS from r' to r
  saves ``d^{rr'} B N`` of talk and adds at most ``sum_k a_k^r m_k`` of rent (the bill's slope is
  at most a) and ``c / U`` of switching (the slope of the regulariser and of (8h) is at most c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hindsched.instances.mlbroker.slot import Floats, SlotData


@dataclass(frozen=True)
class SlotArrays:
    """``min cost.x`` over ``eq x = eq_rhs``, ``le x <= le_rhs``, ``x >= 0``.

    Parameters
    ----------
    cost : ndarray, shape (n,)
        C1 + C2 + C4, weighted USD; the switching cost is not in it.
    eq, le : csc_array
        Rows (8f) and the units rented; (8a), (8b), (8g), (8i), (8j) and the bill's rows.
    eq_rhs, le_rhs : ndarray
        Right sides.
    parts : dict
        Slice of each variable by name: workers, server, present (each J R), flow (arcs that data
        may take away from its centre), link (connections that may pay), and in the paper's form
        bill and used (R K). Scaled as in `SlotBlock`.
    """

    cost: Floats
    eq: sp.csc_array
    eq_rhs: Floats
    le: sp.csc_array
    le_rhs: Floats
    parts: dict[str, slice]

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.cost.size)


class _Rows:
    """Rows of a sparse matrix, added set by set."""

    def __init__(self) -> None:
        self.height = 0
        self._entries: list[tuple[Any, Any, Any]] = []
        self._sides: list[Floats] = []

    def add(self, side: Floats, *entries: tuple[Any, Any, Any]) -> None:
        """Add ``side.size`` rows with entries (row within the set, column, value)."""
        for row, column, value in entries:
            row, column, value = np.broadcast_arrays(row, column, value)
            self._entries.append((self.height + row, column, value))
        self._sides.append(side)
        self.height += side.size

    def matrix(self, width: int) -> tuple[sp.csc_array, Floats]:
        """The matrix and its right side."""
        row, column, value = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        shape = (self.height, width)
        matrix = sp.csc_array((value.astype(float), (row, column)), shape=shape)
        return matrix, np.concatenate(self._sides)


def slot_arrays(
    slot: SlotData, *, big: Floats | None = None, unit_price: Floats | None = None
) -> SlotArrays:
    """Assemble a slot: the paper's form with M = `big`, or the chord form with `unit_price`.

    Parameters
    ----------
    slot : SlotData
        The slot, with at least one job.
    big : ndarray, shape (R, K), optional
        M of the paper's form.
    unit_price : ndarray, shape (R, K), optional
        Weighted unit price of the chord form; the slot's own chord if both are None.
    """
    jobs, centers = slot.data.shape
    pairs = jobs * centers
    pair = np.arange(pairs)
    price = slot.unit
    if big is None:
        price = slot.chord if unit_price is None else unit_price
    needed = np.maximum(slot.needed, 1).astype(float)
    limit = (slot.needed + 1).astype(float)  # U
    room = slot.capacity * needed
    apart = ~np.eye(centers, dtype=bool)
    moves = np.isfinite(slot.arc) & apart & (slot.data > 0)[:, :, None]
    talk = (slot.exchange * needed)[:, None, None] * slot.distance
    dearest = slot.server @ price.T + (slot.deployment / limit)[:, None]  # (J, R): moving the PS
    links = (talk < dearest[:, :, None]) & apart & (slot.needed > 0)[:, None, None]
    flow_job, flow_from, flow_to = np.nonzero(moves)
    link_job, link_from, link_to = np.nonzero(links)

    tiers = 0 if big is None else big.size
    counts = {"workers": pairs, "server": pairs, "present": pairs, "flow": flow_job.size,
              "link": link_job.size, "bill": tiers, "used": tiers}  # fmt: skip
    ends = np.cumsum(list(counts.values()))
    parts = {
        name: slice(int(end) - count, int(end))
        for (name, count), end in zip(counts.items(), ends, strict=True)
    }
    column = {name: np.arange(part.start, part.stop) for name, part in parts.items()}
    workers, server, flow, link = (column[n] for n in ("workers", "server", "flow", "link"))

    cost = np.zeros(int(ends[-1]))
    cost[flow] = slot.arc[moves] * room[flow_job]
    cost[link] = talk[links]
    eq, le = _Rows(), _Rows()
    eq.add(np.ones(jobs), (pair // centers, server, 1.0))  # (8f)
    share = (slot.data / room[:, None]).ravel()
    leaves, comes = flow_job * centers + flow_from, flow_job * centers + flow_to
    le.add(-share, (pair, workers, -1.0), (leaves, flow, -1.0), (comes, flow, 1.0))  # (8a)
    at, row = np.unique(leaves, return_inverse=True)
    le.add(share[at], (row, flow, 1.0))  # (8b)
    le.add(
        np.zeros(pairs),
        (pair, workers, np.repeat(needed / limit, centers)),
        (pair, server, np.repeat(1.0 / limit, centers)),
        (pair, column["present"], -1.0),
    )  # (8g)
    busy = np.repeat(slot.needed > 0, centers)
    place = np.cumsum(busy) - 1  # row of a pair among the busy ones
    starts, ends_at = link_job * centers + link_from, link_job * centers + link_to
    le.add(
        np.zeros(int(busy.sum())),
        (place[busy], server[busy], 1.0),
        (place[busy], workers[busy], -1.0),
        (place[starts], link, 1.0),
        (place[ends_at], link, -1.0),
    )  # (8j)
    at, row = np.unique(starts, return_inverse=True)
    le.add(np.zeros(at.size), (row, link, 1.0), (np.arange(at.size), workers[at], -1.0))  # (8i)
    per_worker = slot.worker * needed[:, None]
    if big is None:
        cost[workers] = (per_worker @ price.T).ravel()
        cost[server] = (slot.server @ price.T).ravel()
    else:
        _tiered_rows(slot, big, per_worker, column, cost, eq, le)
    eq_matrix, eq_rhs = eq.matrix(cost.size)
    le_matrix, le_rhs = le.matrix(cost.size)
    return SlotArrays(cost, eq_matrix, eq_rhs, le_matrix, le_rhs, parts)


def _tiered_rows(
    slot: SlotData,
    big: Floats,
    per_worker: Floats,
    column: dict[str, Any],
    cost: Floats,
    eq: _Rows,
    le: _Rows,
) -> None:
    """Units rented, scaled by hmax, and the bill, scaled by a hmax, with its projected rows."""
    jobs, centers = slot.data.shape
    kinds = slot.unit.shape[1]
    used, bill = column["used"], column["bill"]
    tier = np.arange(centers * kinds)
    most = np.repeat(slot.largest_use.sum(axis=0)[None], centers, axis=0).ravel()
    most = np.where(most > 0, most, 1.0)
    full = np.where(slot.unit.ravel() > 0, slot.unit.ravel() * most, 1.0)
    cost[bill] = full
    j, r, k = (
        axis.ravel()
        for axis in np.meshgrid(
            np.arange(jobs), np.arange(centers), np.arange(kinds), indexing="ij"
        )
    )
    row, pair = r * kinds + k, j * centers + r
    eq.add(
        np.zeros(tier.size),
        (row, column["workers"][pair], per_worker[j, k] / most[row]),
        (row, column["server"][pair], slot.server[j, k] / most[row]),
        (tier, used, -1.0),
    )
    a, b, e, m = (array.ravel() for array in (slot.unit, slot.discounted, slot.fee, big))
    for slope, shift in (((a + b) / 2, (e - m) / 2), (a, -m), (b, e - m)):
        le.add(-shift / full, (tier, used, slope * most / full), (tier, bill, -1.0))
