"""The oasis oracle with packing: a group's servers sell patterns, not only resources.

The rows of the layout ``groups`` let 3-GPU and 2-GPU workers share a 4-GPU server by fractions. In
the layout ``patterns`` every group of servers and slot has a block of its own besides: it runs
n_g maximal patterns of one server, and linking rows say that the jobs run no more units there than
the patterns hold,

    y_igt <= sum over patterns l of l_i r_gtl,    sum_l r_gtl <= n_g.

Both kinds of rows are priced together. The bound at any prices is that of blocks and linking rows
as everywhere; the best response of a group and slot is n_g times its dearest pattern. The rows
``worker_units`` and ``ps_units`` thus know the convex hull of the integer packings of one server.

A server that is large beside the workers has too many patterns, and there the resources' rows are
nearly as tight: only the largest workers (and PSs) of a server take part, so many that it has at
most `MOST_PATTERNS`. The number belongs to the file format: with another one a unit of a job might
have no row, or a row without patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import WholeUnits, loosened, times
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.schedules import (
    Groups,
    OasisPlan,
    Placements,
    best_within,
    plan_features,
)
from hindsched.solvers.kernels.oasis.maximal_patterns import maximal_patterns
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.rows import AxisLabel, Rows, RowSet

MOST_PATTERNS = 2000
"""Patterns of one server, at most."""


@dataclass(frozen=True)
class _Side:
    """Worker servers or PS servers.

    Parameters
    ----------
    units : RowSet
        Rows (group, job, slot) of the units that patterns hold.
    groups : Groups
        The groups.
    demand : ndarray, shape (jobs, resources)
        Demand of one unit.
    packed, able : ndarray of bool, shape (groups, jobs)
        Whose units are packed in patterns, and whose units a server holds.
    patterns : list of ndarray of int, shape (patterns, jobs)
        Maximal patterns of one server, by group; 0 for jobs that are not packed.
    """

    units: RowSet
    groups: Groups
    demand: Floats
    packed: Bools
    able: Bools
    patterns: list[Ints]

    @classmethod
    def of(
        cls,
        name: str,
        instance: OasisInstance,
        capacity: Floats,
        demand: Floats,
        groups: Groups,
        labels: tuple[AxisLabel, ...],
        most: Ints,
    ) -> _Side:
        """Choose the jobs and enumerate the patterns; `most`: units by group and job."""
        jobs = len(instance.jobs)
        packed = np.zeros((len(labels), jobs), dtype=bool)
        patterns = []
        for group, first in enumerate(groups.first):
            chosen, found = _pack(capacity[first], demand, most[group])
            packed[group, chosen] = True
            whole = np.zeros((len(found), jobs), dtype=np.int64)
            whole[:, chosen] = found
            patterns.append(whole)
        axes = (
            ("group", labels),
            ("job", tuple(job.name for job in instance.jobs)),
            ("slot", tuple(range(1, instance.horizon + 1))),
        )
        units = RowSet(name, axes, np.zeros((len(labels), jobs, instance.horizon)))
        return cls(units, groups, demand, packed, most > 0, patterns)


def server_patterns(capacity: Floats, demand: Floats, most: Ints, limit: int) -> Ints | None:
    """Maximal patterns of one `loosened` server; None if more than a limit or hard to find."""
    found = np.empty((limit, len(demand)), dtype=np.int64)
    own = demand.copy()  # kernels are compiled for arrays that can be written
    number = maximal_patterns(loosened(capacity, capacity), own, most, found)
    return None if number > limit else found[:number].copy()


def _pack(capacity: Floats, demand: Floats, most: Ints) -> tuple[list[int], Ints]:
    """Jobs of one server that are packed, the largest, and their maximal patterns."""
    able = [int(job) for job in np.argsort(most, kind="stable") if most[job] > 0]
    chosen: list[int] = []
    best = np.zeros((0, 0), dtype=np.int64)
    for job in able:
        tried = [*chosen, job]
        found = server_patterns(capacity, demand[tried], most[tried], MOST_PATTERNS)
        if found is None:
            break
        chosen, best = tried, found
    return chosen, _without_overfull(best, capacity, demand[chosen])


def _without_overfull(patterns: Ints, capacity: Floats, demand: Floats) -> Ints:
    """Maximal patterns, exactly, of those that a `loosened` server holds.

    One that only rounding lets in is replaced by the patterns below it.
    """
    amounts, whole = WholeUnits.of(demand, capacity[None]).tables
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
    return known[[np.count_nonzero((known >= one).all(axis=1)) == 1 for one in known]]


@dataclass(frozen=True)
class _Prices:
    """What the blocks read at some prices.

    Parameters
    ----------
    flat : bytes
        The prices: two blocks in a row mostly ask at the same ones, so they are compared quickly.
    paid : tuple of ndarray, shape (jobs, groups, 1, slots)
        Price of one unit of a job on either side: its resources and its place.
    dearest : dict
        The dearest pattern of each slot and its worth, by side and group.
    """

    flat: bytes
    paid: tuple[Floats, ...]
    dearest: dict[tuple[int, int], tuple[Ints, Floats]]


def _unit_prices(side: _Side, arrays: dict[str, Floats]) -> Floats:
    """Price of one unit of every job by group and slot, shape (jobs, groups, 1, slots)."""
    name = side.units.name.replace("units", "capacity")
    resources = np.einsum("grt,jr->jgt", arrays[name], side.demand)
    places = (arrays[side.units.name] * side.packed[:, :, None]).transpose(1, 0, 2)
    total: Floats = np.ascontiguousarray(resources + places)[:, :, None]
    return total


class PatternOracle(BlockOracle):
    """Best responses of jobs, and of the servers' groups slot by slot.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.
    """

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: OasisInstance
    implied: Bools
    layout = "patterns"

    def __init__(self, instance: OasisInstance, formulation: str | None = None) -> None:
        self.instance = instance
        self.groups = OasisOracle(instance, formulation, "groups")
        self.formulation = self.groups.formulation
        self.optional = True
        self.exact = True
        self.features = self.groups.features
        blocks = [self.groups.block(job) for job in range(len(instance.jobs))]
        one = np.ones(1)
        self._single = [replace(job, worker_demand=one, ps_demand=one) for job in blocks]
        self._known: _Prices | None = None
        sides = []
        for name, capacity, demand, groups, row_set, rooms, uses in (
            ("worker_units", instance.worker_capacity, instance.worker_demand,
             self.groups.worker_groups, self.groups.rows.sets[0],
             [block.worker_room for block in blocks],
             [block.task.needed.size - 1 for block in blocks]),
            ("ps_units", instance.ps_capacity, instance.ps_demand,
             self.groups.ps_groups, self.groups.rows.sets[1],
             [block.ps_room for block in blocks],
             [int(block.task.needed[-1]) for block in blocks]),
        ):  # fmt: skip
            each = np.array(rooms).reshape(len(blocks), groups.size.size).T // groups.size[:, None]
            most = np.minimum(each, np.array(uses, dtype=np.int64))
            labels = row_set.axes[0][1]
            sides.append(_Side.of(name, instance, capacity, demand, groups, labels, most))
        self._sides = tuple(sides)
        self.rows = Rows([*self.groups.rows.sets, *(side.units for side in self._sides)])
        self.implied = np.zeros(self.rows.size, dtype=bool)
        for side, row_set in zip(self._sides, self.groups.rows.sets, strict=True):
            # A group that packs every job that it can hold keeps its resources by its patterns.
            whole = np.array([bool((packed | ~able).all()) for packed, able in
                              zip(side.packed, side.able, strict=True)])  # fmt: skip
            wide = np.broadcast_to(whole[:, None, None], row_set.shape)
            self.implied[self.rows.slices[row_set.name]] = wide.ravel()
        self.unit_blocks = [
            (side, group, slot)
            for side in range(2)
            for group in range(len(self._sides[side].patterns))
            if len(self._sides[side].patterns[group])
            for slot in range(instance.horizon)
        ]

    @property
    def num_blocks(self) -> int:
        """Jobs, then groups and slots."""
        return len(self.instance.jobs) + len(self.unit_blocks)

    def block_name(self, block: int) -> str:
        """Name of a job, or of a group and slot."""
        jobs = len(self.instance.jobs)
        if block < jobs:
            return str(self.instance.jobs[block].name)
        side, group, slot = self.unit_blocks[block - jobs]
        units = self._sides[side].units
        return f"{units.name} {units.axes[0][1][group]} in slot {slot + 1}"

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job, or dearest patterns of a group in a slot; full capacity only."""
        if residual is not None:
            raise InputError("rows", "patterns", "schedules that fit need the layout servers")
        return self.restricted_response(block, prices, {})

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Exact best response within limits; patterns have no features but 0."""
        at = self._at(prices)
        found = self._best(block, at, limits)
        if found is None:
            return None
        value, schedule = found
        if schedule is None:
            return self._dearest(block - len(self.instance.jobs), at)
        end, workers, ps = schedule
        plan = OasisPlan(end, Placements.of(workers), Placements.of(ps))
        return self._response(block, value, plan)

    def _best(
        self, block: int, at: _Prices, limits: Limits
    ) -> tuple[float, tuple[int, Ints, Ints] | None] | None:
        """What a block is worth within limits, with a job's end and counts; None if it has none."""
        jobs = len(self.instance.jobs)
        if block >= jobs:
            barred = any(low > 0 for low, _ in limits.values())
            return None if barred else (self._worth(block - jobs, at), None)
        job = self._single[block]
        sides = job.sides((at.paid[0][block], at.paid[1][block]))
        found = best_within(*sides, job.task, limits)
        return None if found is None else (found[0], found[1:])

    def _at(self, prices: Floats) -> _Prices:
        """What all blocks read at these prices, worked out once for all of them."""
        known = self._known
        flat = prices.tobytes()
        if known is None or known.flat != flat:
            arrays = self.rows.unpack(prices)
            paid = tuple(_unit_prices(side, arrays) for side in self._sides)
            dearest = {}
            for number, side in enumerate(self._sides):
                for group, patterns in enumerate(side.patterns):
                    if len(patterns):
                        worth = patterns @ arrays[side.units.name][group]  # (patterns, slots)
                        dearest[number, group] = worth.argmax(axis=0), worth.max(axis=0)
            known = self._known = _Prices(flat, paid, dearest)
        return known

    def _response(self, job: int, value: float, plan: OasisPlan) -> Response:
        utility = float(self.groups.block(job).task.utilities[plan.end])
        rows, amounts = self.groups.use_of_plan(job, plan)
        parts, counts = [rows], [amounts]
        for side, placed in zip(self._sides, (plan.workers, plan.ps), strict=True):
            kept = side.packed[placed.servers, job]
            parts.append(self._unit_rows(side, placed.servers[kept], job, placed.slots[kept] - 1))
            counts.append(placed.counts[kept].astype(float))
        return Response(value, utility, np.concatenate(parts), np.concatenate(counts), plan)

    def _unit_rows(self, side: _Side, group: Ints | int, job: Ints | int, slot: Ints | int) -> Ints:
        first = self.rows.slices[side.units.name].start
        _, jobs, horizon = side.units.shape
        rows: Ints = first + (np.asarray(group) * jobs + job) * horizon + slot
        return rows

    def _which(self, place: int, at: _Prices) -> int:
        number, group, slot = self.unit_blocks[place]
        return int(at.dearest[number, group][0][slot])

    def _worth(self, place: int, at: _Prices) -> float:
        number, group, slot = self.unit_blocks[place]
        worth = at.dearest[number, group][1]
        return float(self._sides[number].groups.size[group]) * float(worth[slot])

    def _dearest(self, place: int, at: _Prices) -> Response:
        """The dearest pattern of a group and slot, on all its servers."""
        number, group, slot = self.unit_blocks[place]
        side = self._sides[number]
        pattern = side.patterns[group][self._which(place, at)]
        jobs = np.flatnonzero(pattern)
        amounts = -float(side.groups.size[group]) * pattern[jobs]
        return Response(
            self._worth(place, at), 0.0, self._unit_rows(side, group, jobs, slot), amounts
        )

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Features of a job's schedule; patterns have none."""
        return plan_features(response.plan) if block < len(self.instance.jobs) else {}

    def outside(self, block: int) -> Response | None:
        """Jobs may stay out; a group runs some pattern in every slot."""
        return super().outside(block) if block < len(self.instance.jobs) else None

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        return self.groups.place(responses[: len(self.instance.jobs)])

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution; a group holds in a slot what runs there."""
        found: list[Response | None] = []
        total = np.zeros(self.rows.size)
        for job, response in enumerate(self.groups.use_of(solution)):
            if response is None:
                found.append(None)
                continue
            whole = replace(
                self._response(job, response.value, response.plan), objective=response.objective
            )
            np.add.at(total, whole.rows, whole.amounts)
            found.append(whole)
        jobs = np.arange(len(self.instance.jobs))
        for side, group, slot in self.unit_blocks:
            rows = self._unit_rows(self._sides[side], group, jobs, slot)
            kept = rows[total[rows] > 0]
            found.append(Response(0.0, 0.0, kept, -total[kept], ()))
        return found

    def coarser(self) -> BlockOracle:
        """Return the layout ``groups``, without patterns."""
        return self.groups

    def prices_of(self, other: BlockOracle, prices: Floats) -> Floats:
        """Prices of the layout ``groups`` in this one: places cost nothing."""
        return np.concatenate([prices, np.zeros(self.rows.size - prices.size)])

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of resources on servers; a place's price is shared among what its unit needs."""
        arrays = self.rows.unpack(prices)
        parts = []
        for side, row_set in zip(self._sides, self.groups.rows.sets, strict=True):
            size = row_set.capacity[:, :, 0] / side.groups.size[:, None]
            portion = side.demand[None] / np.maximum(size, 1e-300)[:, None]  # (G, J, R)
            portion = portion / np.maximum(portion.sum(axis=2, keepdims=True), 1e-300)
            rate = np.divide(
                portion, side.demand[None], out=np.zeros_like(portion), where=side.demand[None] > 0
            )
            shared = np.einsum("gjt,gjr->grjt", arrays[side.units.name], rate).max(
                axis=2, initial=0.0
            )
            parts.append((arrays[row_set.name] + shared).ravel())
        return self.groups.prices_on_servers(np.concatenate(parts))
