"""Pricing oracle of oasis: best responses by the worker-slot program, on rows of resources.

Linking rows are (4) and (5): ``worker_capacity`` over (server, resource, slot) and ``ps_capacity``
over the PS servers. Layout ``"servers"`` has one row a server; layout ``"groups"`` adds up the rows
of identical servers and lets a job take ``n_g floor(c_g / w)`` workers of a group, which costs
nothing in a Lagrangian bound (a group schedule spreads over the servers, averaged over rotations).

Features of a schedule: its ``completion``, the ``slot_workers`` it runs in a slot, the ``workers``
and ``ps`` on a server (or a group of identical servers) in a slot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import FLOAT_ERROR, how_many_fit
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.limits import check_memory
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis.solution import OasisSolution, run_length
from hindsched.solvers.kernels.oasis.worker_slot import (
    Jobs,
    Scratch,
    Side,
    Task,
    best_limited_schedule,
    best_schedule,
    best_schedules,
    place_schedule,
)
from hindsched.solvers.kernels.placement import Range, no_limits
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits, window_of
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

IN_SLOT, WORKERS, PS = "slot_workers", "workers", "ps"


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
    def of(cls, counts: Ints) -> Placements:
        """Non-zero counts, shape (horizon, servers)."""
        slots, servers = np.nonzero(counts)
        return cls(slots + 1, servers, counts[slots, servers].astype(np.int64))


class OasisPlan(NamedTuple):
    """A job's schedule: its completion slot, and where its workers and PSs run."""

    end: int
    workers: Placements
    ps: Placements


class Groups(NamedTuple):
    """Servers of equal capacity: each group's first one and size, and each server's group."""

    first: Ints
    size: Ints
    member: Ints

    @classmethod
    def of(cls, capacity: Floats, layout: str) -> Groups:
        """Groups of identical servers; in the layout ``"servers"`` each server is one."""
        index: dict[object, int] = {}
        member = np.array([
            index.setdefault(number if layout == "servers" else row.tobytes(), len(index))
            for number, row in enumerate(capacity)
        ])  # fmt: skip
        _, first, size = np.unique(member, return_index=True, return_counts=True)
        return cls(first, size, member)

    def placements(self, counts: Ints) -> Placements:
        """Add up counts by slot and server over the groups."""
        found = Placements.of(counts)
        return found._replace(servers=self.member[found.servers])


@dataclass(frozen=True)
class Block:
    """A job as the kernels read it; arrays as in `worker_slot`."""

    worker_room: Ints
    ps_room: Ints
    worker_demand: Floats
    ps_demand: Floats
    task: Task

    def sides(
        self, prices: Sequence[Floats], residual: Sequence[Floats] | None = None,
        slack: Sequence[Floats] | None = None,
    ) -> tuple[Side, Side]:  # fmt: skip
        """The servers of workers and of PSs at these prices, full or with what is left."""
        left, lost, limited = residual or prices, slack or prices, residual is not None
        return (
            Side(prices[0], left[0], lost[0], limited, self.worker_room, self.worker_demand),
            Side(prices[1], left[1], lost[1], limited, self.ps_room, self.ps_demand),
        )


class OasisOracle(BlockOracle):
    """Best responses of the oasis family's jobs on rows of groups (for bounds) or of each server.

    Schedules are placed on servers in the layout ``"servers"`` only; a residual limits a group as a
    whole. Ties: cheaper servers first, equal prices in the instance's order; the earliest of
    equally good ends; then from the last slot back the fewest workers among equal costs. An oracle
    serves one thread at a time.
    """

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: OasisInstance

    def __init__(
        self, instance: OasisInstance, formulation: str | None = None, layout: str = "groups"
    ) -> None:
        self.instance, self.layout = instance, layout
        self.formulation = instance.check_formulation(formulation)
        self.optional = self.exact = True
        self.worker_groups = Groups.of(instance.worker_capacity, layout)
        self.ps_groups = Groups.of(instance.ps_capacity, layout)
        axis = "server" if layout == "servers" else "group"
        places = len(self.worker_groups.first) + len(self.ps_groups.first)
        slots = slot_labels(instance.horizon, places * len(instance.resources))
        sets = []
        for name, capacity, servers, groups in (
            ("worker_capacity", instance.worker_capacity, instance.worker_servers,
             self.worker_groups),
            ("ps_capacity", instance.ps_capacity, instance.ps_servers, self.ps_groups),
        ):  # fmt: skip
            labels = tuple(servers[first].name for first in groups.first)
            axes = (axis, labels), ("resource", instance.resources), ("slot", slots)
            total = capacity[groups.first] * groups.size[:, None]
            shape = tuple(len(values) for _, values in axes)
            sets.append(RowSet(name, axes, np.broadcast_to(total[:, :, None], shape)))
        self.rows = Rows(sets)
        in_time = sets[0].axes[-1]
        self.features = {
            COMPLETION: (),
            IN_SLOT: (in_time,),
            WORKERS: (sets[0].axes[0], in_time),
            PS: (sets[1].axes[0], in_time),
        }
        self._shapes = tuple(row_set.shape for row_set in sets)
        self._split = sets[0].capacity.size
        self._slack = self._views(FLOAT_ERROR * self.rows.capacity)
        self._blocks: dict[int, Block] = {}
        self._scratch = Scratch(*np.empty((2, 0, 0)), *np.empty((2, 0), dtype=np.int64))
        self._entries = np.empty((3, instance.horizon * places), dtype=np.int64)

    def block(self, index: int) -> Block:
        """The job as the kernels read it."""
        if index not in self._blocks:
            instance, job = self.instance, self.instance.jobs[index]
            worker, ps = instance.demand_of(job)
            needed = instance.ps_needed_up_to(job, job.chunks)
            workers, servers = self.worker_groups, self.ps_groups
            worker_room = workers.size * how_many_fit(
                instance.worker_capacity[workers.first], worker, job.chunks
            )
            ps_room = servers.size * how_many_fit(
                instance.ps_capacity[servers.first], ps, int(needed[-1])
            )
            served = (needed <= int(ps_room.sum())) & (needed <= np.arange(needed.size))
            most = min(job.chunks, int(worker_room.sum()), int(np.flatnonzero(served)[-1]))
            work, utilities = instance.work_of(job), instance.utilities(job)
            task = Task(needed[: most + 1], np.arange(most + 1), work, utilities, job.arrival)
            # read-only arrays would be a second type of each kernel
            self._blocks[index] = Block(worker_room, ps_room, worker.copy(), ps.copy(), task)
        return self._blocks[index]

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None, *,
        above: float = -math.inf,
    ) -> Response | None:  # fmt: skip
        """Exact best schedule of a job, the subproblem (27); None if none is above `above`."""
        return self._solve(block, self.block(block).task, prices, residual, above)

    def chunk_best_response(
        self, block: int, prices: Floats, residual: Floats | None = None, *,
        above: float = -math.inf,
    ) -> Response | None:  # fmt: skip
        """Best schedule by Algorithm 2 as printed: whole data chunks in every slot.

        n workers train ``floor(n / (M (tau + 2 e / b)))`` chunks a slot: what is left of it is
        lost, so that the payoff is at most that of `best_response` and certifies nothing.
        """
        job, task = self.instance.jobs[block], self.block(block).task
        slots, per = self.instance.exact_chunk_time(job).as_integer_ratio()
        steps = np.array([n * per // slots for n in range(task.needed.size)], dtype=np.int64)
        chunks = task._replace(steps=steps, total=job.epochs * job.chunks)
        return self._solve(block, chunks, prices, residual, above)

    def best_insertion(self, block: int, prices: Floats, residual: Floats) -> Response | None:
        """`best_response` on what is left if it is worth more than 0, which prunes the program."""
        return self.best_response(block, prices, residual, above=0.0)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Exact best schedule of a job within limits, at full capacity."""
        _check_prices(prices)
        job = self.block(block)
        found = best_within(*job.sides(self._views(prices)), job.task, limits)
        return None if found is None else self._response(block, *found)

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, workers by slot, workers and PSs by server and slot."""
        return plan_features(response.plan)

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        if self.layout == "servers":
            return super().place(responses)
        plans = {block: found.plan for block, found in enumerate(responses) if found is not None}
        from hindsched.solvers.families.oasis.promises import place_together  # loads Pyomo

        return place_together(self.instance, plans)

    def responses(self, prices: Floats) -> Sequence[Response | None]:
        """Best responses of all jobs at full capacity; None where a job stays out at 0."""
        return [self.best_response(block, prices, above=0.0) for block in range(self.num_blocks)]

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        _check_prices(prices)
        values, use = np.zeros(self.num_blocks), np.zeros(self.rows.size)
        views = self._views(np.ascontiguousarray(prices))
        best_schedules(*views, self._packed, values, *self._views(use))
        return values, use

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file; only the layout ``"servers"`` places schedules on servers."""
        if self.layout != "servers":
            raise TypeError('only rows="servers" places schedules on servers')
        sides = self.instance.worker_servers, self.instance.ps_servers
        names = [[server.name for server in servers] for servers in sides]
        workers, ps = (
            placed.matrix(self.instance.horizon, len(servers))
            for placed, servers in zip(response.plan[1:], sides, strict=True)
        )
        return run_length(workers, ps, *names)

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules that a feasible solution gives the jobs, as use of this layout's rows."""
        if not isinstance(solution, OasisSolution):
            raise InputError("solution", type(solution).__name__, "must be of the family oasis")
        found: list[Response | None] = []
        for index, record in enumerate(self.instance.jobs):
            end = solution.completion(record.name)
            if end is None:
                found.append(None)
                continue
            workers = self.worker_groups.placements(solution.workers[record.name])
            ps = self.ps_groups.placements(solution.ps[record.name])
            value = solution.value(record.name)
            found.append(self._response(index, value, OasisPlan(end, workers, ps)))
        return found

    def use_of_plan(self, block: int, plan: OasisPlan) -> tuple[Ints, Floats]:
        """Flat rows that a job's schedule uses, and how much of each."""
        job, (_, resources, horizon) = self.block(block), self._shapes[0]
        rows, amounts = [], []
        for placed, demand, first in (
            (plan.workers, job.worker_demand, 0), (plan.ps, job.ps_demand, self._split),
        ):  # fmt: skip
            used = np.flatnonzero(demand)
            base = placed.servers * (resources * horizon) + placed.slots + (first - 1)
            rows.append((base[:, None] + used * horizon).ravel())
            amounts.append((placed.counts[:, None] * demand[used]).ravel())
        return np.concatenate(rows), np.concatenate(amounts)

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of a group, repeated on each of its servers."""
        workers, ps = self._views(prices)
        parts = workers[self.worker_groups.member], ps[self.ps_groups.member]
        return np.concatenate([part.ravel() for part in parts])

    def _views(self, flat: Floats) -> tuple[Floats, Floats]:
        if not flat.flags.writeable:  # kernels are compiled once, for arrays that can be written
            flat = flat.copy()
        workers, ps = flat[: self._split], flat[self._split :]
        return workers.reshape(self._shapes[0]), ps.reshape(self._shapes[1])

    def _solve(
        self, block: int, task: Task, prices: Floats, residual: Floats | None, above: float
    ) -> Response | None:
        _check_prices(prices)
        left = None if residual is None else self._views(residual)
        workers, ps = self.block(block).sides(self._views(prices), left, self._slack)
        scratch = self._scratch_for(task.total, task.needed.size)
        value, end = best_schedule(workers, ps, task, above, scratch)
        if end == 0:
            return None
        split, stop = place_schedule(
            workers, ps, task.needed, scratch.workers, task.arrival, end, self._entries
        )
        entries = self._entries[:, :stop].copy()
        plan = OasisPlan(end, Placements(*entries[:, :split]), Placements(*entries[:, split:]))
        return self._response(block, float(value), plan)

    def _scratch_for(self, total: int, workers: int) -> Scratch:
        """Work arrays of the kernel, grown as needed and used by one call at a time."""
        known, slots = self._scratch, self.instance.horizon + 1
        if known.table.shape[1] <= total or known.costs.shape[1] < workers:
            width = max(total + 1, known.table.shape[1])
            workers = max(workers, known.costs.shape[1])
            what = f"a table of {width - 1} chunks over {slots} slots"
            check_memory(what, 8.0 * slots * (width + workers))
            self._scratch = Scratch(
                np.empty((slots, width)), np.empty((slots, workers)),
                np.empty((slots, 2), dtype=np.int64), np.zeros(slots, dtype=np.int64),
            )  # fmt: skip
        return self._scratch

    def _response(self, block: int, value: float, plan: OasisPlan) -> Response:
        utility = float(self.block(block).task.utilities[plan.end])
        return Response(value, utility, *self.use_of_plan(block, plan), plan)

    @cached_property
    def _packed(self) -> Jobs:
        """All jobs, padded."""
        blocks = [self.block(index) for index in range(self.num_blocks)]
        tasks = [block.task for block in blocks]
        widest = max((task.needed.size for task in tasks), default=1)
        (workers, resources, horizon), (ps, _, _) = self._shapes

        def stacked(arrays: list[Any], width: int, kind: type = float) -> Any:
            return np.array(arrays, dtype=kind).reshape(len(blocks), width)

        padded = [np.pad(task.needed, (0, widest - task.needed.size)) for task in tasks]
        return Jobs(
            worker_room=stacked([block.worker_room for block in blocks], workers, np.int64),
            ps_room=stacked([block.ps_room for block in blocks], ps, np.int64),
            worker_demand=stacked([block.worker_demand for block in blocks], resources),
            ps_demand=stacked([block.ps_demand for block in blocks], resources),
            needed=stacked(padded, widest, np.int64),
            most=np.array([task.needed.size - 1 for task in tasks], dtype=np.int64),
            total=np.array([task.total for task in tasks], dtype=np.int64),
            utilities=stacked([task.utilities for task in tasks], horizon + 1),
            arrival=np.array([task.arrival for task in tasks], dtype=np.int64),
        )


def best_within(
    workers: Side, ps: Side, task: Task, limits: Limits
) -> tuple[float, OasisPlan] | None:
    """Value and schedule of a job at its best within limits, at full capacity; None if none is."""
    horizon = task.utilities.size - 1
    first_end, last_end = window_of(limits, COMPLETES)
    first_end, last_end = max(first_end, task.arrival), min(last_end, horizon)
    if task.total > (task.needed.size - 1) * last_end:  # not in all slots from the first on
        return None
    check_memory("the schedules of a job", 8.0 * (last_end + 1) * (task.total + 1))
    ranges: dict[str, Range] = {
        IN_SLOT: no_limits(horizon),
        WORKERS: no_limits(horizon, workers.room.size),
        PS: no_limits(horizon, ps.room.size),
    }
    for feature, (low, high) in limits.items():
        if low > high:
            return None
        if feature.name == COMPLETION:
            continue
        ranges[feature.name].low[feature.index[::-1]] = low
        ranges[feature.name].high[feature.index[::-1]] = high
        if low:  # something must run in this slot
            slot = feature.index[-1] + 1
            first_end = max(first_end, slot)
            if slot < task.arrival:
                return None
    if first_end > last_end:
        return None
    placed = [np.zeros_like(ranges[name].low) for name in (WORKERS, PS)]
    value, end = best_limited_schedule(
        workers, ps, task, first_end, last_end, *ranges.values(), *placed
    )
    if not end:
        return None
    return float(value), OasisPlan(int(end), Placements.of(placed[0]), Placements.of(placed[1]))


def plan_features(plan: OasisPlan) -> dict[Feature, int]:
    """Value of every feature of a schedule that is not 0."""
    found = {COMPLETES: plan.end}
    for name, placed in ((WORKERS, plan.workers), (PS, plan.ps)):
        for slot, server, count in np.transpose(placed).tolist():
            here = [Feature(name, (server, slot - 1))]
            if name == WORKERS:
                here.append(Feature(IN_SLOT, (slot - 1,)))
            for feature in here:
                found[feature] = found.get(feature, 0) + count
    return found


def _check_prices(prices: Floats) -> None:
    if prices.size and not prices.min() >= 0:
        raise ValueError("prices of capacities must not be negative")
