"""A linear program of ends and counts whose duals are prices: what bounds most nodes of a tree.

Its variables are the shares of every job that end in a slot, the workers that run in a slot for an
end, the counts on groups of servers, and the patterns that groups run (added as they are priced):

    max sum f_ie u_ie,  sum_e u_ie + stay_i = 1,  sum_t n_iet = W_i u_ie,  n_iet <= N_i u_ie,
    sum_g y_igt = sum_e n_iet,  sum_k z_ikt >= PSs of sum_e n_iet,

with y and z on the oracle's rows. A decision of a branching is a bound on one variable, so that a
node goes on from its parent's basis and takes milliseconds where column generation over schedules
takes a hundred. The prices are as good as those of the schedules' master but for what whole numbers
of workers and PSs in a slot are worth; the bound that counts is the oracle's at these prices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import highspy
import numpy as np

from hindsched.arrays import Floats
from hindsched.models.oasis.rounding import lines_below
from hindsched.solvers.bounds.column_generation import DUAL_SIMPLEX, PRIMAL_SIMPLEX
from hindsched.solvers.bounds.lagrangian import row_scale
from hindsched.solvers.door.scaling import objective_factor
from hindsched.solvers.door.stop import Stop
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.oasis.patterns import PatternOracle
from hindsched.solvers.families.oasis.restricted import IN_SLOT, PS, WORKERS
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, Feature, Limits, window_of
from hindsched.solvers.tree.branching import Split

INFINITE = highspy.kHighsInf
ROUNDING = 1e-6
"""How far from whole a count counts as whole."""
DEAREST = 1e6
"""What staying out costs at most, times the best that a job earns."""
Entries = list[tuple[int, float]]
"""Rows and coefficients of a column."""


@dataclass
class _Columns:
    """Columns to add to a program."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    entries: list[Entries] = field(default_factory=list)

    def add(self, cost: float, upper: float, entries: Entries) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        self.entries.append(entries)
        return len(self.cost) - 1

    def give(self, highs: highspy.Highs, factor: float) -> None:
        """Add them to HiGHS, costs times a factor."""
        lengths = [len(entries) for entries in self.entries]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
        index = np.array([row for entries in self.entries for row, _ in entries], dtype=np.int32)
        value = np.array([value for entries in self.entries for _, value in entries])
        cost, upper = factor * np.array(self.cost), np.array(self.upper)
        highs.addCols(cost.size, cost, np.zeros(cost.size), upper, index.size, starts, index, value)


class CompactProgram:
    """The program of one tree, in HiGHS.

    Parameters
    ----------
    oracle : PatternOracle
        Oracle of the whole problem.
    penalty : float
        Price at which a job that must run may stay out all the same.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: PatternOracle, penalty: float, interrupted: Event) -> None:
        self.oracle = oracle
        self._stop = Stop(interrupted)
        self._scale = row_scale(oracle)
        self._lower: list[float] = []
        self._upper: list[float] = []
        right = oracle.rows.capacity / self._scale
        for row, spare in enumerate(oracle.implied.tolist()):
            self._row(-INFINITE, INFINITE if spare else float(right[row]))
        self._columns = _Columns()
        self._stay: list[int] = []
        self._end: list[dict[int, int]] = []
        self._count: dict[tuple[Any, ...], int] = {}
        self._ps: dict[tuple[int, int], int] = {}
        for job in range(len(oracle.instance.jobs)):
            self._add_job(job)
        self._kept = [
            self._row(-INFINITE, float(oracle.group_size(*block))) for block in oracle.unit_blocks
        ]
        self._known: set[tuple[int, int]] = set()
        earned = np.abs(self._columns.cost)
        self._factor = objective_factor(earned)
        self.penalty = min(penalty, DEAREST * float(earned.max(initial=0.0)))
        self._highs = self._build()
        size = len(self._columns.cost)
        self._size = size
        self._index = np.arange(size, dtype=np.int32)
        self._zeros = np.zeros(size)
        self._room = np.array(self._columns.upper)
        self._values = np.zeros(size)
        self._stay_cost = np.zeros(len(self._stay))

    def _row(self, lower: float, upper: float) -> int:
        self._lower.append(lower)
        self._upper.append(upper)
        return len(self._lower) - 1

    def _add_job(self, job: int) -> None:
        oracle, columns = self.oracle, self._columns
        block = oracle.groups.block(job)
        task = block.task
        first, horizon, most = task.arrival, task.utilities.size - 1, task.needed.size - 1
        ends = [end for end in range(first, horizon + 1) if most * (end - first + 1) >= task.total]
        slots = range(first, horizon + 1) if ends else range(0)
        one = self._row(1.0, 1.0)
        self._stay.append(columns.add(0.0, 1.0, [(one, 1.0)]))
        split = {slot: self._row(0.0, 0.0) for slot in slots}
        spread = {slot: self._row(0.0, 0.0) for slot in slots}
        for slot in slots:
            at = columns.add(0.0, float(most), [(split[slot], 1.0), (spread[slot], -1.0)])
            self._count[IN_SLOT, job, slot - 1] = at
        pieces = lines_below(task.needed)
        served = {slot: [self._row(-INFINITE, 0.0) for _ in pieces] for slot in slots}
        hosted = {slot: self._row(0.0, 0.0) for slot in slots}
        for slot in slots:
            ps: Entries = [*((row, -1.0) for row in served[slot]), (hosted[slot], -1.0)]
            at = columns.add(0.0, float(task.needed[-1]), ps)
            self._ps[job, slot - 1] = at
        found: dict[int, int] = {}
        for end in ends:
            work, runs = self._row(0.0, 0.0), self._row(-INFINITE, 0.0)
            own: Entries = [(one, 1.0), (work, -float(task.total)), (runs, 1.0)]
            for slot in range(first, end + 1):
                at_most = self._row(-INFINITE, 0.0)
                own.append((at_most, -float(most)))
                entries: Entries = [(work, 1.0), (at_most, 1.0), (split[slot], -1.0)]
                for (slope, at_none), row in zip(pieces, served[slot], strict=True):
                    if at_none:
                        own.append((row, at_none))
                    if slope:
                        entries.append((row, slope))
                if slot == end:
                    entries.append((runs, -1.0))
                columns.add(0.0, INFINITE, entries)
            found[end] = columns.add(-float(task.utilities[end]), 1.0, own)
        self._end.append(found)
        for side, (name, room) in enumerate(((WORKERS, block.worker_room), (PS, block.ps_room))):
            for group in np.flatnonzero(room).tolist():
                for slot in slots:
                    rows, amounts = oracle.unit_use(side, group, job, slot - 1)
                    amounts = amounts / self._scale[rows]
                    entries = [
                        (row, amount)
                        for row, amount in zip(rows.tolist(), amounts.tolist(), strict=True)
                        if self._upper[row] < INFINITE
                    ]
                    entries.append(((spread if side == 0 else hosted)[slot], 1.0))
                    at = columns.add(0.0, float(room[group]), entries)
                    self._count[name, job, group, slot - 1] = at

    def _build(self) -> highspy.Highs:
        highs = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}
        for name, value in options.items():
            highs.setOptionValue(name, value)
        size = len(self._lower)
        nothing = np.zeros(0, dtype=np.int32)
        starts = np.zeros(size, dtype=np.int32)
        lower, upper = np.array(self._lower), np.array(self._upper)
        highs.addRows(size, lower, upper, 0, starts, nothing, np.zeros(0))
        self._columns.give(highs, self._factor)
        self._stop.listen(highs)
        return highs

    def restrict(self, limits: Mapping[int, Limits]) -> None:
        """Keep what obeys limits by job, and nothing else."""
        lower, upper = self._zeros.copy(), self._room.copy()
        cost = np.zeros(len(self._stay))
        for job, own in limits.items():
            if job >= len(self._stay):
                continue
            low, high = window_of(own, COMPLETES)
            must_run = high < NEVER
            for feature, (least, most) in own.items():
                if feature == COMPLETES:
                    continue
                if least > 0:
                    must_run = True
                    low = max(low, feature.index[-1] + 1)
                at = self._count.get((feature.name, job, *feature.index))
                if at is not None:
                    lower[at], upper[at] = least, min(upper[at], most)
                if feature.name == IN_SLOT:
                    needed = self.oracle.groups.block(job).task.needed
                    at = self._ps[job, feature.index[0]]
                    lower[at] = needed[min(least, needed.size - 1)]
                    upper[at] = needed[min(most, needed.size - 1)]
            if must_run:
                cost[job] = self.penalty
            for end, at in self._end[job].items():
                if not low <= end <= high:
                    upper[at] = 0.0
        self._highs.changeColsBounds(self._size, self._index, lower, upper)
        self._highs.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        self._stay_cost = cost
        stay = np.array(self._stay, dtype=np.int32)
        self._highs.changeColsCost(stay.size, stay, self._factor * cost)

    def solve(self, seconds: float | None) -> tuple[float, Floats, bool] | None:
        """Solve; return value, prices and whether all that must run do; None if out of time.

        Also None where the limits contradict each other.
        """
        spend()
        self._stop.after(seconds)
        highs = self._highs
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = highs.getSolution()
        self._values = np.array(solution.col_value)
        duals = -np.array(solution.row_dual[: self.oracle.rows.size]) / (self._factor * self._scale)
        whole = not np.any((self._values[self._stay] > 1e-7) & (self._stay_cost != 0.0))
        value = -float(highs.getInfo().objective_function_value) / self._factor
        return value, np.maximum(duals, 0.0), whole

    def add_patterns(self, prices: Floats) -> int:
        """Add the dearest pattern of every group and slot, where it is new; return how many are."""
        fresh = _Columns()
        numbers, values = self.oracle.dearest(prices), self.oracle.unit_values(prices)
        for place, (kept, number, value) in enumerate(
            zip(self._kept, numbers, values, strict=True)
        ):
            if value * self._factor > 1e-9 and (place, number) not in self._known:
                self._known.add((place, number))
                rows, amounts, _ = self.oracle.pattern(place, number)
                amounts = amounts / (self._upper[kept] * self._scale[rows])
                entries = list(zip(rows.tolist(), amounts.tolist(), strict=True))
                fresh.add(0.0, INFINITE, [*entries, (kept, 1.0)])
        if fresh.cost:
            fresh.give(self._highs, self._factor)
            self._highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)  # a point stays one
        return len(fresh.cost)

    def shares(self, job: int) -> dict[int, float]:
        """How much of a job ends in each slot, or stays out (`NEVER`), at the last optimum."""
        columns = {**self._end[job], NEVER: self._stay[job]}
        found = {end: float(self._values[at]) for end, at in columns.items()}
        return {end: share for end, share in found.items() if share > 1e-7}

    def splits(self) -> list[Split]:
        """Where counts are fractional though all ends are decided, the best split first.

        First workers in a slot with fewer PSs than whole ones would be: the split is where one more
        PS is needed. Then any fractional count.
        """
        found: list[Split] = []
        for (job, slot), at in self._ps.items():
            ps = float(self._values[at])
            workers = math.ceil(self._values[self._count[IN_SLOT, job, slot]] - ROUNDING)
            needed = self.oracle.groups.block(job).task.needed
            if workers <= 0 or ps > needed[workers] - ROUNDING:
                continue
            served = max(0, math.ceil(ps - ROUNDING))  # PSs, rounded up: split at what they serve
            level = min(served, int(needed[workers]) - 1)
            least = int(np.searchsorted(needed[: workers + 1], level, side="right")) - 1
            side = min(float(needed[workers]) - ps, ps % 1 or 1.0)
            found.append(Split(job, Feature(IN_SLOT, (slot,)), least, 0, side, 0.0))
        if not found:
            for (name, job, *index), at in self._count.items():
                value = float(self._values[at])
                part = value % 1
                if ROUNDING < part < 1 - ROUNDING:
                    feature = Feature(name, tuple(index))
                    rank = 1 if name == IN_SLOT else 2
                    side = min(part, 1 - part)
                    found.append(Split(job, feature, math.floor(value), rank, side, 1 - part))
        return sorted(found, key=lambda split: (split.rank, -split.balance))

    def ends(self, job: int) -> list[int]:
        """Slots in which a job may end, and `NEVER`."""
        return [*self._end[job], NEVER]

    def basis(self) -> Any:
        """Where the last solve ended."""
        return self._highs.getBasis()

    def begin_at(self, basis: Any) -> None:
        """Begin the next solve at a basis of this program, of fewer patterns perhaps."""
        missing = self._highs.getNumCol() - len(basis.col_status)
        if missing:
            start = highspy.HighsBasis()
            lower = highspy.HighsBasisStatus.kLower
            start.col_status = list(basis.col_status) + [lower] * missing
            start.row_status = basis.row_status
            start.valid = True
            basis = start
        self._highs.setBasis(basis)
