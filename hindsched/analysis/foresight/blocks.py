"""A scenario's own linear program, as certificates of kind ``nonanticipative`` need it.

Where jobs hold one window there is a column for every job, window and mode on the merged servers,
as the kernel's own block lists them, and one for staying out where a job may. A job of oasis has
what it completes in, split over that its workers by slot, and units by group of servers and slot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject
from hindsched.kernel import oasis
from hindsched.kernel.trees import NEVER
from hindsched.kernel.windows import Cluster, Rows
from hindsched.kernel.windows import Problem as WindowProblem
from hindsched.models.base import RUN
from hindsched.models.oasis.ends import lines_below
from hindsched.solvers.families.oasis.promises import find_patterns

STEPS_A_WINDOW = 30
"""Of the kernel's search, which are as long as its look at one window."""
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


class _Columns:
    """Columns of jobs one by one, and rows of three kinds."""

    def __init__(self) -> None:
        self.listed = list[tuple[Window, float, int, int, float]]()
        self.cells = {kind: list[tuple[int, int, float]]() for kind in ("used", "equal", "inner")}
        self.rows = {kind: dict[Any, float]() for kind in self.cells}  # right sides
        self.places = {kind: dict[Any, int]() for kind in self.cells}

    def add(
        self, window: Window, most: float, cost: float = 0.0, at: int = -1, end: int = NEVER
    ) -> int:
        """A column."""
        self.listed.append((window, cost, at, end, most))
        return len(self.listed) - 1

    def row(self, kind: str, key: Any, right: float, parts: Iterable[tuple[int, float]]) -> None:
        """More of a row."""
        place = self.places[kind].setdefault(key, len(self.places[kind]))
        self.rows[kind][key] = right
        self.cells[kind] += [(place, column, amount) for column, amount in parts if amount]

    def matrix(self, kind: str) -> Any:
        """The rows of a kind."""
        shape, cells = (len(self.rows[kind]), len(self.listed)), self.cells[kind]
        rows, columns, amounts = zip(*cells, strict=True) if cells else ((), (), ())
        return sp.csr_array((amounts, (rows, columns)), shape)


def elastic_block(problem: oasis.Problem, policies: str, weight: float) -> Block:
    """Jobs of oasis as its kernel has them online, on groups of servers, relaxed."""
    rows, made, steps = oasis.Rows(problem.instance, False), _Columns(), 0
    for at, job in enumerate(rows.jobs.values()):
        _add_job(made, rows, at, job, policies == RUN, weight)
        steps += (rows.horizon + 1 - job.arrival) * job.work * job.most
    _add_patterns(made, rows)
    windows, cost, jobs, ends, most = map(list, zip(*made.listed, strict=True))
    used, equal, inner = (np.array(list(sides.values())) for sides in made.rows.values())
    return Block(
        windows, np.array(cost), np.array(jobs), np.array(ends), np.array(most),
        list(made.rows["used"]), used, made.matrix("used"), made.matrix("equal"), equal,
        made.matrix("inner"), inner, steps // STEPS_A_WINDOW + 1,
    )  # fmt: skip


def _add_job(
    made: _Columns, rows: oasis.Rows, at: int, job: Any, may_give_up: bool, weight: float
) -> None:
    """A job's completions, workers split over these, units by group."""
    alone, horizon = (at, NEVER, NEVER), rows.horizon
    soonest = job.arrival - 1 - (-job.work // job.most) if job.most else NEVER
    u = {e: made.add((at, e, e, "completion"), 1, -weight * float(job.value(e).low), at, e)
         for e in range(soonest, horizon + 1)}  # fmt: skip
    u[NEVER] = made.add(alone, 1, 0.0, at)
    made.row("equal", at, 1.0, [(column, 1.0) for column in u.values()])
    if len(u) == 1 and not (may_give_up and job.most):
        return
    some = min(job.most, job.work)
    n = {(e, t): made.add(alone, some) for e in u if e < NEVER or may_give_up
         for t in range(job.arrival, min(e, horizon) + 1)}  # fmt: skip
    for e, column in u.items():
        parts = [(n[e, t], 1.0) for t in range(job.arrival, horizon + 1) if (e, t) in n]
        if e < NEVER:
            made.row("equal", (at, e), 0.0, [*parts, (column, -job.work)])
            made.row("inner", (at, e), 0.0, [(column, 1.0), (n[e, e], -1.0)])
        else:
            made.row("inner", (at, e), 0.0, [*parts, (column, 1.0 - job.work)])
    for (e, t), column in n.items():
        made.row("inner", (at, e, t), 0.0, [(column, 1.0), (u[e], -some)])
    lines = lines_below(np.array([job.needed(k) for k in range(job.most + 1)]))
    for t in range(job.arrival, horizon + 1):
        running = [e for e in u if (e, t) in n]
        units = dict[str, list[int]]()
        for side in oasis.SIDES:
            units[side] = []
            for group, (number, capacity) in rows.groups[side].items():
                room = number * job.fit(side, capacity)
                own = (at, t, t, "workers") if side == "worker" else alone
                column = made.add(own, room)
                units[side].append(column)
                places = f"{side}_units", ("group", group), ("job", job.name)
                made.row("used", (places, t), 0.0, [(column, 1.0)])
                for resource, amount in job.demand[side].items():
                    key = (f"{side}_capacity", ("group", group), ("resource", resource)), t
                    have = float(number * capacity.get(resource, 0))
                    made.row("used", key, have, [(column, float(amount))])
        workers = [(n[e, t], -1.0) for e in running]
        made.row("equal", (at, "workers", t), 0.0, [*((y, 1.0) for y in units["worker"]), *workers])
        for slope, none in lines:
            parts = [*((n[e, t], slope) for e in running), *((u[e], none) for e in running)]
            parts += [(z, -1.0) for z in units["ps"]]
            made.row("inner", (at, "ps", t, slope), 0.0, parts)


def _add_patterns(made: _Columns, rows: oasis.Rows) -> None:
    """Units of jobs within the integer packings of servers, where these are few."""
    resources = rows.instance["resources"]
    groups = [(side, *item) for side in oasis.SIDES for item in rows.groups[side].items()]
    for side, group, (number, capacity) in groups:
        for t in range(1, rows.horizon + 1):
            here = f"{side}_units", ("group", group)
            keys = {(*here, ("job", name)): job for name, job in rows.jobs.items()}
            told = {key: job for key, job in keys.items() if (key, t) in made.rows["used"]}
            demand = np.array([[float(job.demand[side].get(r, 0)) for r in resources]
                               for job in told.values()])  # fmt: skip
            size = np.array([float(capacity.get(r, 0)) for r in resources])
            found = find_patterns(size, demand, [job.most for job in told.values()]) if told else ()
            if found is None:  # no bound on units
                for key in told:
                    made.row("used", (key, t), 1e6, [])
            for pattern in found or ():
                column = made.add((0, NEVER, NEVER), number)
                made.row("inner", (side, group, t), number, [(column, 1.0)])
                for key, units in zip(told, pattern, strict=True):
                    made.row("used", (key, t), 0.0, [(column, -float(units))])
