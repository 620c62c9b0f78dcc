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
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_fit, loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.limits import check_memory
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis.solution import OasisSolution, run_length
from hindsched.solvers.families.oasis.plans import OasisPlan, Placements
from hindsched.solvers.kernels.oasis.worker_slot_program import (
    ServerPool,
    Workload,
    best_limited_schedule,
    best_schedule,
)
from hindsched.solvers.kernels.placement import Range, no_limits
from hindsched.solvers.oracles.base import BranchingOracle, PlacingOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits, window_of
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

IN_SLOT, WORKERS, PS = "slot_workers", "workers", "ps"


class Pool(NamedTuple):
    """Worker servers or PS servers, in groups of equal capacity."""

    name: str  # of its rows
    labels: tuple[str, ...]  # name of each group's first server
    capacity: Floats  # of one server, (groups, R)
    size: Ints  # servers of each group
    member: Ints  # each server's group
    demand: Floats  # of one worker or PS, (I, R)

    @classmethod
    def both(cls, instance: OasisInstance, layout: str) -> list[Pool]:
        """The pools of workers and of PSs; in the layout ``"servers"`` each server is a group."""
        pools = []
        for name, servers, capacity, demand in (
            ("worker_capacity", instance.worker_servers, instance.worker_capacity,
             instance.worker_demand),
            ("ps_capacity", instance.ps_servers, instance.ps_capacity, instance.ps_demand),
        ):  # fmt: skip
            index: dict[object, int] = {}
            member = np.array([
                index.setdefault(number if layout == "servers" else row.tobytes(), len(index))
                for number, row in enumerate(capacity)
            ])  # fmt: skip
            _, first, size = np.unique(member, return_index=True, return_counts=True)
            labels = tuple(servers[k].name for k in first)
            pools.append(cls(name, labels, capacity[first], size, member, demand))
        return pools


@dataclass(frozen=True)
class OasisBlock:
    """A job as `worker_slot_program` reads it: of workers and of PSs the room and the demand."""

    rooms: list[Ints]
    demands: list[Floats]
    task: Workload

    def pools_at(
        self, prices: Sequence[Floats], left: Sequence[Floats] | None = None
    ) -> tuple[ServerPool, ServerPool]:
        """The servers of workers and of PSs at these prices, full or with what is left."""
        parts = zip(prices, left or prices, self.rooms, self.demands, strict=True)
        limited = left is not None
        workers, ps = (
            ServerPool(price, free, limited, room, demand) for price, free, room, demand in parts
        )
        return workers, ps


class OasisOracle(BranchingOracle):
    """Best responses of the oasis family's jobs on rows of groups (for bounds) or of each server.

    A residual limits a group as a whole. Ties: cheaper servers first, equal prices in the
    instance's order; the earliest of equally good ends; then from the last slot back the fewest
    workers among equal costs.
    """

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: OasisInstance

    def __init__(
        self, instance: OasisInstance, formulation: str | None = None, layout: str = "groups"
    ) -> None:
        self.instance, self.layout = instance, layout
        self.formulation = instance.check_formulation(formulation)
        self.optional = self.exact = True
        self.pools = Pool.both(instance, layout)
        axis = "server" if layout == "servers" else "group"
        places = sum(len(pool.labels) for pool in self.pools)
        slots = slot_labels(instance.horizon, places * len(instance.resources))
        sets = []
        for pool in self.pools:
            axes = (axis, pool.labels), ("resource", instance.resources), ("slot", slots)
            total = (pool.capacity * pool.size[:, None])[:, :, None]
            shape = tuple(len(values) for _, values in axes)
            sets.append(RowSet(pool.name, axes, np.broadcast_to(total, shape)))
        self.rows = Rows(sets)
        in_time = sets[0].axes[-1]
        self.features = {
            COMPLETION: (),
            IN_SLOT: (in_time,),
            WORKERS: (sets[0].axes[0], in_time),
            PS: (sets[1].axes[0], in_time),
        }
        self._blocks: dict[int, OasisBlock] = {}

    def block(self, index: int) -> OasisBlock:
        """The job as the kernels read it."""
        if index not in self._blocks:
            instance, job = self.instance, self.instance.jobs[index]
            most = instance.most_workers(job)
            needed = instance.ps_needed_up_to(job, most)
            # copies: read-only arrays would be a second type of each kernel
            demands = [pool.demand[index].copy() for pool in self.pools]
            limits = most, int(needed[-1])
            rooms = [
                pool.size * how_many_fit(pool.capacity, demand, limit)
                for pool, demand, limit in zip(self.pools, demands, limits, strict=True)
            ]
            work, utilities = instance.work_of(job), instance.utilities(job)
            task = Workload(needed, np.arange(most + 1), work, utilities, job.arrival)
            self._blocks[index] = OasisBlock(rooms, demands, task)
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
        job = self.block(block)
        best = best_within(*job.pools_at(self._views(prices)), job.task, limits)
        return None if best is None else self._response(block, *best)

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, workers by slot, workers and PSs by server and slot."""
        return plan_features(response.plan)

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        plans = {
            block: response.plan for block, response in enumerate(responses) if response is not None
        }
        from hindsched.solvers.families.oasis.packing import place_together  # loads Pyomo

        return place_together(self.instance, plans)

    def responses(self, prices: Floats) -> Sequence[Response | None]:
        """Best responses of all jobs at full capacity; None where a job stays out at 0."""
        return [self.best_response(block, prices, above=0.0) for block in range(self.num_blocks)]

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules that a feasible solution gives the jobs, as use of this layout's rows."""
        assert isinstance(solution, OasisSolution)
        responses: list[Response | None] = [None] * self.num_blocks
        for index, record in enumerate(self.instance.jobs):
            end = solution.completion(record.name)
            if end is not None:
                deployed = solution.workers[record.name], solution.ps[record.name]
                both = zip(deployed, self.pools, strict=True)
                plan = OasisPlan(
                    end,
                    *(
                        Placements.of(deployed_counts, pool.member)
                        for deployed_counts, pool in both
                    ),
                )
                responses[index] = self._response(index, solution.value(record.name), plan)
        return responses

    def use_of_plan(self, block: int, plan: OasisPlan) -> tuple[Ints, Floats]:
        """Flat rows that a job's schedule uses, and how much of each."""
        rows, amounts = [], []
        for placed, demand, row_set in zip(
            plan[1:], self.block(block).demands, self.rows.sets, strict=True
        ):
            used, (_, resources, horizon) = np.flatnonzero(demand), row_set.shape
            first = self.rows.slices[row_set.name].start - 1
            base = first + placed.servers * (resources * horizon) + placed.slots
            rows.append((base[:, None] + used * horizon).ravel())
            amounts.append((placed.counts[:, None] * demand[used]).ravel())
        return np.concatenate(rows), np.concatenate(amounts)

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of a group, repeated on each of its servers."""
        parts = zip(self._views(prices), self.pools, strict=True)
        return np.concatenate([part[pool.member].ravel() for part, pool in parts])

    def _views(self, flat: Floats) -> list[Floats]:
        """By pool; kernels are compiled once, for arrays that can be written."""
        return list(self.rows.unpack(flat if flat.flags.writeable else flat.copy()).values())

    def _solve(
        self, block: int, task: Workload, prices: Floats, residual: Floats | None, above: float
    ) -> Response | None:
        left = None
        if residual is not None:
            left = self._views(loosened(residual, self.rows.capacity))
        workers, ps = self.block(block).pools_at(self._views(prices), left)
        slots = self.instance.horizon + 1
        what = f"a table of {task.total} chunks over {slots} slots"
        check_memory(what, 8.0 * slots * (task.total + 1 + task.needed.size))
        value, end, *entries = best_schedule(workers, ps, task, above)
        if end == 0:
            return None
        plan = OasisPlan(end, *(Placements(*placed) for placed in entries))
        return self._response(block, float(value), plan)

    def _response(self, block: int, value: float, plan: OasisPlan) -> Response:
        utility = float(self.block(block).task.utilities[plan.end])
        return Response(value, utility, *self.use_of_plan(block, plan), plan)


class OasisServers(OasisOracle, PlacingOracle):
    """Best responses on rows of each server, as which they stand in a solution."""

    def __init__(self, instance: OasisInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation, "servers")

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a response."""
        workers, ps = (
            placed.matrix(self.instance.horizon, len(pool.labels))
            for placed, pool in zip(response.plan[1:], self.pools, strict=True)
        )
        return run_length(workers, ps, *(list(pool.labels) for pool in self.pools))

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, where they stand."""
        return PlacingOracle.place(self, responses)


def best_within(
    workers: ServerPool, ps: ServerPool, task: Workload, limits: Limits
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
    values = {COMPLETES: plan.end}
    for name, placed in ((WORKERS, plan.workers), (PS, plan.ps)):
        for slot, server, count in np.transpose(placed).tolist():
            here = [Feature(name, (server, slot - 1))]
            if name == WORKERS:
                here.append(Feature(IN_SLOT, (slot - 1,)))
            for feature in here:
                values[feature] = values.get(feature, 0) + count
    return values
