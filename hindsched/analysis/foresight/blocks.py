"""A scenario's own linear program, as certificates of kind ``nonanticipative`` need it.

Where jobs hold one window there is a column for every job, window and mode on the merged servers,
as the kernel's own block lists them, and one for staying out where a job may. Another family's is
in its own module here (`oasis`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject
from hindsched.kernel.trees import NEVER
from hindsched.kernel.windows import Cluster, Rows
from hindsched.kernel.windows import Problem as WindowProblem

Window = tuple[Any, ...]
"""A job's position, its first and last slot, and for oasis what of it."""
Row = tuple[Any, ...]
"""Name of a row set, then axes with their labels."""
Column = tuple[int, int, int, float, Mapping[Any, float]]
"""Job, first and last slot, cost, and what is used of each row in each of them."""
Decided = tuple[tuple[int, int, bool], ...]
"""Job, its latest completion or the slot before its earliest one, whether it is the latest."""


@dataclass(frozen=True)
class Leaf:
    """Decisions with prices by row, and the least cost that they prove."""

    decisions: Decided
    prices: Any
    bound: float
    split: tuple[int, int] | None  # None where the program is undecided about no completion


def _columns(problem: Any, last: int) -> Iterator[Column]:
    """Every job's windows that begin up to one slot after `last`, as the kernel's block has them.

    Behind `last` slots are free and multipliers are 0, so that no later begin is better.
    """
    if not isinstance(problem, WindowProblem):  # jobs that hold GPUs
        for at, job in enumerate(problem.jobs.values()):
            for begin in range(job.s, max(job.s, last) + 1):
                cost = job.w * problem.seconds * (begin + job.p - job.s)
                use = {("gpus",): float(job.g * problem.seconds)}
                yield at, begin + 1, begin + job.p, float(cost), use
        return
    cluster = problem.cluster
    labels = _labels(cluster)
    for at, job in enumerate(problem.jobs):
        costs: dict[int, float] = {}
        for length, w, p, _, n, units in cluster.modes(job):
            amounts = zip(labels, cluster.workers[w][0], cluster.ps[p][0], strict=True)
            use = {label: float(n * d + units * s) for label, d, s in amounts if n * d + units * s}
            stop = max(job.first, last + 1)
            if cluster.last is not None:
                stop = min(stop, cluster.last - length + 1)
            for start in range(job.first, stop + 1):
                end = start + length - 1
                if end not in costs:
                    costs[end] = float(job.cost(end).low)
                yield at, start, end, costs[end], use


def _room(problem: Any) -> dict[Any, float]:
    """What the merged servers have, by row."""
    if not isinstance(problem, WindowProblem):
        return {("gpus",): float(problem.room * problem.seconds)}
    sums = map(float, Rows(problem.cluster, [], "cluster").places[""])
    return dict(zip(_labels(problem.cluster), sums, strict=True))


def _labels(cluster: Cluster) -> list[Row]:
    return [(name, (axis, label)) for name, (axis, every) in cluster.rows.items()
            for label in every]  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A program in columns from 0 to `most`, of which rows of capacity have prices."""

    windows: list[Window]
    cost: Floats  # weighted
    at: Any  # the job whose completion the column decides, or -1
    ends: Any  # the slot of that
    most: Floats
    rows: list[tuple[Row, int]]  # of capacity, by slot; what they have, and columns use
    room: Floats
    used: Any
    equal: Any  # rows without prices, and their right sides
    right: Floats
    inner: Any  # the same, of which these are upper ends
    limit: Floats
    checked: int  # how many windows the kernel looks at for a leaf

    def leaf(self, cost: Floats, decisions: Decided) -> Leaf:
        """Prices under decisions, which may leave too little room, and what all duals prove."""
        kept, size = np.ones(len(cost), dtype=bool), len(self.rows)
        for job, slot, is_latest in decisions:
            kept &= (self.at != job) | ((self.ends <= slot) == is_latest)
        most, rows = np.where(kept, self.most, 0.0), sp.vstack([self.used, self.inner])
        sides = np.concatenate([self.room, self.limit])
        penalty, solve = 10 * (1 + np.abs(cost[kept]).max()), cast("Any", linprog)
        found = solve(
            np.concatenate([cost, np.full(size, penalty)]),
            sp.hstack([rows, -sp.eye_array(len(sides), size)]), sides,
            sp.hstack([self.equal, sp.csr_array((len(self.right), size))]), self.right,
            np.column_stack([np.zeros(len(cost) + size), [*most, *[np.inf] * size]]),
            method="highs",
        )  # fmt: skip
        if found.status:
            raise SolveFailed(f"linear program of a scenario: {found.message}")
        duals: Any = np.maximum(0.0, -found.ineqlin.marginals)
        others = found.eqlin.marginals
        duals[:size] = [float(f"{dual:.9g}") for dual in duals[:size]]
        paid = np.minimum(0.0, cost + rows.T @ duals - self.equal.T @ others) * most
        off = 1e-9 * (sides @ duals + np.abs(self.right * others).sum() - paid.sum() + 1)
        bound = float(self.right @ others - sides @ duals + paid.sum() - off)
        share = found.x[: len(cost)]
        return Leaf(decisions, duals[:size], bound, _split(self.at, self.ends, share, cost))

    def price_rows(self, prices: Floats) -> JsonObject:
        """Prices as a certificate's file has them."""
        found = defaultdict[str, Any](list)
        priced = zip(self.rows, prices.tolist(), strict=True)
        for ((name, *labels), t), price in sorted(priced, key=lambda row: row[0][1]):
            if price:
                found[name].append({**dict(labels), "from": t, "to": t, "price": price})
        return dict(found)


def _split(at: Any, ends: Any, share: Floats, cost: Floats) -> tuple[int, int] | None:
    """The job whose completion is least decided, and the slot in the middle of it."""
    split, spread = None, 1e-6
    for job in np.unique(at[(at >= 0) & (share > 1e-6) & (share < 1 - 1e-6)]):
        mine = np.flatnonzero((at == job) & (share > 1e-6))
        mine = mine[np.argsort(ends[mine], kind="stable")]
        if ends[mine[0]] == ends[mine[-1]]:
            continue
        mean = share[mine] @ cost[mine]
        wide = float(share[mine] @ np.abs(cost[mine] - mean)) + 1e-5
        if wide > spread:
            below = np.cumsum(share[mine])[ends[mine] < ends[mine[-1]]]
            middle = mine[min(int(np.searchsorted(below, 0.5)), len(below) - 1)]
            split, spread = (int(job), int(ends[middle])), wide
    return split


def window_block(problem: Any, last: int, weight: float) -> Block:
    """Windows that begin up to one slot after `last`."""
    listed, side, rooms = list(_columns(problem, last)), dict[Any, int](), _room(problem)
    if isinstance(problem, WindowProblem) and not problem.cluster.must_complete:
        listed += [(at, NEVER, NEVER, 0.0, {}) for at in range(len(problem.jobs))]
    cells = [
        (side.setdefault((row, t), len(side)), column, amount)
        for column, (_, first, end, _, use) in enumerate(listed)
        for row, amount in use.items() for t in range(first, min(end, last) + 1)
    ]  # fmt: skip
    rows, columns, amounts = zip(*cells, strict=True) if cells else ((), (), ())
    at, size = np.array([column[0] for column in listed]), len(listed)
    once = sp.csr_array((np.ones(size), (at, np.arange(size))), (at.max() + 1, size))
    return Block(
        [column[:3] for column in listed], weight * np.array([column[3] for column in listed]), at,
        np.array([column[2] for column in listed]), np.ones(size), list(side),
        np.array([rooms[row] for row, _ in side]),
        sp.csr_array((amounts, (rows, columns)), (len(side), size)), once,
        np.ones(once.shape[0]), sp.csr_array((0, size)), np.zeros(0), size,
    )  # fmt: skip
