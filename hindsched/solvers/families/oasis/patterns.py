"""The oasis oracle with packing: a group's servers sell patterns, not only resources.

The rows of the layout ``groups`` let 3-GPU and 2-GPU workers share a 4-GPU server by fractions. In
the layout ``patterns`` every group of servers and slot is a block of its own besides: it runs
n_g maximal patterns of one server, and linking rows say that the jobs run no more units there than
the patterns hold,

    y_igt <= sum over patterns l of l_i r_gtl,    sum_l r_gtl <= n_g.

So the rows ``worker_units`` and ``ps_units`` know the convex hull of the integer packings of one
server. Where patterns are too many, the resources' rows are nearly as tight: only the largest
workers (and PSs) of a server take part, so many that it has at most `MOST_PATTERNS`. That number
belongs to the file format: with another one a unit of a job might have no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.decimals import times, whole_units
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.families.oasis.oracle import OasisOracle, Pool, best_within, plan_features
from hindsched.solvers.families.oasis.plans import OasisPlan
from hindsched.solvers.kernels.oasis.maximal_patterns import server_patterns
from hindsched.solvers.oracles.base import BranchingOracle, PricingOracle, Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.rows import Rows, RowSet

MOST_PATTERNS = 2000
"""Patterns of one server, at most."""


@dataclass(frozen=True)
class PatternPool:
    """Worker servers or PS servers."""

    # rows (group, resource, slot), and (group, job, slot) of the units that patterns hold
    resources: RowSet
    units: RowSet
    pool: Pool
    packed: Bools  # whose units are packed in patterns, (groups, jobs)
    # where that is everybody whom a server holds: the patterns imply the resources' rows, (groups,)
    whole: Bools
    # maximal patterns of one server, by group; 0 for jobs that are not packed, (patterns, jobs)
    patterns: list[Ints]

    @classmethod
    def of(cls, jobs: tuple[str, ...], resources: RowSet, pool: Pool, most: Ints) -> PatternPool:
        """Choose the jobs and enumerate the patterns; `most`: units by group and job."""
        packed, patterns = np.zeros(most.shape, dtype=bool), []
        for group, capacity in enumerate(pool.capacity):
            chosen, maximal = _pack(capacity, pool.demand, most[group])
            packed[group, chosen] = True
            wide = np.zeros((len(maximal), most.shape[1]), dtype=np.int64)
            wide[:, chosen] = maximal
            patterns.append(wide)
        axes = resources.axes[0], ("job", jobs), resources.axes[-1]
        shape = (*most.shape, resources.shape[-1])
        units = RowSet(resources.name.replace("capacity", "units"), axes, np.zeros(shape))
        whole = (packed | (most == 0)).all(axis=1)
        return cls(resources, units, pool, packed, whole, patterns)

    def unit_prices(self, arrays: dict[str, Floats]) -> Floats:
        """Price of one unit of every job by group and slot, shape (jobs, groups, 1, slots)."""
        resources = np.einsum("grt,jr->jgt", arrays[self.resources.name], self.pool.demand)
        places = (arrays[self.units.name] * self.packed[:, :, None]).transpose(1, 0, 2)
        total: Floats = np.ascontiguousarray(resources + places)[:, :, None]
        return total


def _pack(capacity: Floats, demand: Floats, most: Ints) -> tuple[list[int], Ints]:
    """Jobs of one server that are packed, the largest, and their maximal patterns."""
    able = [int(job) for job in np.argsort(most, kind="stable") if most[job] > 0]
    chosen: list[int] = []
    best = np.zeros((0, 0), dtype=np.int64)
    for job in able:
        tried = [*chosen, job]
        patterns = server_patterns(capacity, demand[tried], most[tried], MOST_PATTERNS)
        if patterns is None:
            break
        chosen, best = tried, patterns
    return chosen, _without_overfull(best, capacity, demand[chosen])


def _without_overfull(patterns: Ints, capacity: Floats, demand: Floats) -> Ints:
    """Maximal patterns, exactly: one that only rounding lets in gives way to those below it."""
    amounts, whole = whole_units(demand, capacity[None])
    waiting, held = patterns, [patterns[:0]]
    while len(waiting):
        used = times(waiting[:, :, None], amounts[None]).sum(axis=1)
        over = np.asarray(used > whole, dtype=bool)
        if not over.any() and len(held) == 1:
            return patterns
        held.append(waiting[~over.any(axis=1)])
        # Whatever fits has a unit less of a job that needs what is overfull.
        which, job = np.nonzero((waiting > 0) & (over @ (demand > 0).T))
        smaller = waiting[which]
        smaller[np.arange(which.size), job] -= 1
        waiting = np.unique(smaller, axis=0)
    known = np.unique(np.concatenate(held), axis=0)
    return known[[np.count_nonzero((known >= pattern).all(axis=1)) == 1 for pattern in known]]


@dataclass(frozen=True)
class _PatternPrices:
    """What the blocks read at some prices, kept as blocks in a row mostly ask at the same ones."""

    flat: bytes
    paid: tuple[Floats, ...]
    dearest: dict[tuple[int, int], tuple[Ints, Floats]]


class PatternOracle(BranchingOracle):
    """Best responses of jobs, and of the servers' groups slot by slot."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: OasisInstance
    implied: Bools
    layout = "patterns"

    def __init__(self, instance: OasisInstance, formulation: str | None = None) -> None:
        self.instance = instance
        self.groups = groups = OasisOracle(instance, formulation, "groups")
        self.formulation, self.features = groups.formulation, groups.features
        self.optional = self.exact = True
        self._jobs = len(instance.jobs)
        blocks = [groups.block(job) for job in range(self._jobs)]
        unit_demands = [np.ones(1)] * 2
        self._single = [replace(job, demands=unit_demands) for job in blocks]
        self._known: _PatternPrices | None = None
        names = tuple(job.name for job in instance.jobs)
        uses = [(job.task.needed.size - 1, int(job.task.needed[-1])) for job in blocks]
        sides = []
        for k, (pool, rows) in enumerate(zip(groups.pools, groups.rows.sets, strict=True)):
            rooms = np.array([job.rooms[k] for job in blocks]).reshape(-1, pool.size.size)
            most = np.minimum(rooms.T // pool.size[:, None], [use[k] for use in uses])
            sides.append(PatternPool.of(names, rows, pool, most.astype(np.int64)))
        self._sides = tuple(sides)
        self.rows = Rows([*groups.rows.sets, *(side.units for side in sides)])
        implied = {
            side.resources.name: np.broadcast_to(
                1.0 * side.whole[:, None, None], side.resources.shape
            )
            for side in sides
        }
        self.implied = self.rows.pack(implied).astype(bool)
        self.unit_blocks = [
            (number, group, slot)
            for number, side in enumerate(sides)
            for group, patterns in enumerate(side.patterns) if len(patterns)
            for slot in range(instance.horizon)
        ]  # fmt: skip

    @property
    def num_blocks(self) -> int:
        """Jobs, then groups and slots."""
        return self._jobs + len(self.unit_blocks)

    def block_name(self, block: int) -> str:
        """Name of a job, or of a group and slot."""
        if block < self._jobs:
            return str(self.instance.jobs[block].name)
        side, group, slot = self.unit_blocks[block - self._jobs]
        units = self._sides[side].units
        return f"{units.name} {units.axes[0][1][group]} in slot {slot + 1}"

    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of a job, or dearest patterns of a group in a slot."""
        return self.restricted_response(block, prices, {})

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Exact best response within limits; patterns have no features but 0."""
        at = self._at(prices)
        if block >= self._jobs:
            barred = any(low > 0 for low, _ in limits.values())
            return None if barred else self._dearest(*self.unit_blocks[block - self._jobs], at)
        job = self._single[block]
        best = best_within(*job.pools_at([paid[block] for paid in at.paid]), job.task, limits)
        return None if best is None else self._response(block, *best)

    def _at(self, prices: Floats) -> _PatternPrices:
        """What all blocks read at these prices, worked out once for all of them."""
        known, flat = self._known, prices.tobytes()
        if known is None or known.flat != flat:
            arrays = self.rows.unpack(prices)
            dearest = {}
            for number, side in enumerate(self._sides):
                for group, patterns in enumerate(side.patterns):
                    if len(patterns):
                        worth = patterns @ arrays[side.units.name][group]  # (patterns, slots)
                        dearest[number, group] = worth.argmax(axis=0), worth.max(axis=0)
            paid = tuple(side.unit_prices(arrays) for side in self._sides)
            known = self._known = _PatternPrices(flat, paid, dearest)
        return known

    def _response(self, job: int, value: float, plan: OasisPlan) -> Response:
        utility = float(self._single[job].task.utilities[plan.end])
        rows, amounts = self.groups.use_of_plan(job, plan)
        parts, counts = [rows], [amounts]
        for side, placed in zip(self._sides, (plan.workers, plan.ps), strict=True):
            kept = side.packed[placed.servers, job]
            parts.append(self._unit_rows(side, placed.servers[kept], job, placed.slots[kept] - 1))
            counts.append(placed.counts[kept].astype(float))
        return Response(value, utility, np.concatenate(parts), np.concatenate(counts), plan)

    def _dearest(self, number: int, group: int, slot: int, at: _PatternPrices) -> Response:
        """The dearest pattern of a group and slot, on all its servers."""
        side, (which, worth) = self._sides[number], at.dearest[number, group]
        size = float(side.pool.size[group])
        pattern = side.patterns[group][which[slot]]
        jobs = np.flatnonzero(pattern)
        rows = self._unit_rows(side, group, jobs, slot)
        return Response(size * float(worth[slot]), 0.0, rows, -size * pattern[jobs])

    def _unit_rows(
        self, side: PatternPool, group: Ints | int, job: Ints | int, slot: Ints | int
    ) -> Ints:
        first = self.rows.slices[side.units.name].start
        _, jobs, horizon = side.units.shape
        rows: Ints = first + (np.asarray(group) * jobs + job) * horizon + slot
        return rows

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Features of a job's schedule; patterns have none."""
        return plan_features(response.plan) if block < self._jobs else {}

    def outside(self, block: int) -> Response | None:
        """Jobs may stay out; a group runs some pattern in every slot."""
        return super().outside(block) if block < self._jobs else None

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        return self.groups.place(responses[: self._jobs])

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution; a group holds in a slot what runs there."""
        responses: list[Response | None] = []
        total = np.zeros(self.rows.size)
        for job, response in enumerate(self.groups.use_of(solution)):
            if response is not None:
                utility = response.objective
                response = self._response(job, response.value, response.plan)
                response = replace(response, objective=utility)
                np.add.at(total, response.rows, response.amounts)
            responses.append(response)
        jobs = np.arange(self._jobs)
        for side, group, slot in self.unit_blocks:
            rows = self._unit_rows(self._sides[side], group, jobs, slot)
            kept = rows[total[rows] > 0]
            responses.append(Response(0.0, 0.0, kept, -total[kept], ()))
        return responses

    def prices_of(self, other: PricingOracle, prices: Floats) -> Floats:
        """Prices of the layout ``groups`` in this one: places cost nothing."""
        return np.concatenate([prices, np.zeros(self.rows.size - prices.size)])

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of resources on servers; a place's price is shared among what its unit needs."""
        arrays, parts = self.rows.unpack(prices), []
        for side in self._sides:
            capacity = side.resources.capacity[:, None, :, 0] / side.pool.size[:, None, None]
            portion = side.pool.demand / np.maximum(capacity, 1e-300)  # (groups, jobs, resources)
            portion = portion / np.maximum(portion.sum(axis=2, keepdims=True), 1e-300)
            needed = np.broadcast_to(side.pool.demand, portion.shape)
            rate = np.divide(portion, needed, out=np.zeros_like(portion), where=needed > 0)
            shared = np.einsum("gjt,gjr->grjt", arrays[side.units.name], rate)
            parts.append((arrays[side.resources.name] + shared.max(axis=2, initial=0.0)).ravel())
        return self.groups.prices_on_servers(np.concatenate(parts))
