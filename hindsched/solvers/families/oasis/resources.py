"""Pricing oracle of oasis: best responses by the worker-slot program, on rows of resources.

Linking rows are (4) and (5): ``worker_capacity`` over (server, resource, slot) and ``ps_capacity``
over the PS servers. Layout ``"servers"`` has one row a server; layout ``"groups"`` adds up the rows
of identical servers and lets a job take ``n_g floor(c_g / w)`` workers of a group, which costs
nothing in a Lagrangian bound (a group schedule spreads over the servers, averaged over rotations).

The paper's subproblem (27) is solved exactly over worker-slots; its Algorithm 2, which counts whole
data chunks a slot, is `OasisOracle.chunk_best_response`: a restriction, so it never certifies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import FLOAT_ERROR, how_many_fit
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.memory import check_memory
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis.solution import OasisSolution, run_length
from hindsched.solvers.families.oasis.schedules import (
    OasisPlan,
    Placements,
    best_within,
    features_of_rows,
    group_servers,
    place_on_servers,
    plan_features,
)
from hindsched.solvers.kernels.oasis.worker_slot import (
    Jobs,
    Scratch,
    Side,
    Task,
    best_schedule,
    best_schedules,
    place_schedule,
)
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels


@dataclass(frozen=True)
class _Block:
    """A job as the kernels read it; arrays as in `worker_slot`."""

    worker_room: Ints
    ps_room: Ints
    worker_demand: Floats
    ps_demand: Floats
    task: Task
    chunk_time: Fraction
    chunk_total: int

    @cached_property
    def chunk_task(self) -> Task:
        """The same by Algorithm 2: whole chunks that 0..N workers train in a slot."""
        slots, per = self.chunk_time.as_integer_ratio()
        steps = np.array([n * per // slots for n in range(self.task.needed.size)], dtype=np.int64)
        return self.task._replace(steps=steps, total=self.chunk_total)

    def sides(
        self,
        prices: tuple[Floats, Floats],
        residual: tuple[Floats, Floats] | None = None,
        slack: tuple[Floats, Floats] | None = None,
    ) -> tuple[Side, Side]:
        """The servers of workers and of PSs at these prices, full or with what is left."""
        left = prices if residual is None else residual
        lost = prices if slack is None else slack
        limited = residual is not None
        return (
            Side(prices[0], left[0], lost[0], limited, self.worker_room, self.worker_demand),
            Side(prices[1], left[1], lost[1], limited, self.ps_room, self.ps_demand),
        )


class OasisOracle(BlockOracle):
    """Best responses of the oasis family's jobs.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.
    layout : {"groups", "servers"}
        Rows of groups of identical servers, for bounds, or of each server, where schedules are
        placed. In the layout ``"groups"`` a residual limits a group as a whole.

    Notes
    -----
    Ties: cheaper servers first, equal prices in the instance's order; the earliest of equally good
    ends; then from the last slot back the fewest workers among equal costs. An oracle serves one
    thread at a time.
    """

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: OasisInstance

    def __init__(
        self,
        instance: OasisInstance,
        formulation: str | None = None,
        layout: Literal["groups", "servers"] = "groups",
    ) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.layout = layout
        self.optional = True
        self.exact = True
        horizon = instance.horizon
        self.worker_groups = group_servers(instance.worker_capacity, layout)
        self.ps_groups = group_servers(instance.ps_capacity, layout)
        axis = "server" if layout == "servers" else "group"
        places = len(self.worker_groups.first) + len(self.ps_groups.first)
        slots = slot_labels(horizon, places * len(instance.resources))
        sets = []
        for name, capacity, servers, groups in (
            (
                "worker_capacity",
                instance.worker_capacity,
                instance.worker_servers,
                self.worker_groups,
            ),
            ("ps_capacity", instance.ps_capacity, instance.ps_servers, self.ps_groups),
        ):
            labels = tuple(servers[first].name for first in groups.first)
            total = capacity[groups.first] * groups.size[:, None]
            shape = (len(labels), len(instance.resources), horizon)
            sets.append(
                RowSet(
                    name,
                    ((axis, labels), ("resource", instance.resources), ("slot", slots)),
                    np.broadcast_to(total[:, :, None], shape),
                )
            )
        self.rows = Rows(sets)
        self.features = features_of_rows(self.rows)
        self._shapes = tuple(row_set.shape for row_set in sets)
        self._split = sets[0].capacity.size
        self._slack = self._views(FLOAT_ERROR * self.rows.capacity)
        self._blocks: dict[int, _Block] = {}
        self._scratch = self._scratch_for(0, 0)
        places = self._shapes[0][0] + self._shapes[1][0]
        self._entries = np.empty((3, horizon * places), dtype=np.int64)

    def of_blocks(self, blocks: slice) -> OasisOracle:
        """The same rows, which no job changes, with some of the jobs."""
        part = self.instance.with_jobs(self.instance.jobs[blocks])
        return OasisOracle(part, self.formulation, self.layout)  # type: ignore[arg-type]

    def block(self, index: int) -> _Block:
        """The job as the kernels read it."""
        if index not in self._blocks:
            self._blocks[index] = self._read_job(self.instance.jobs[index])
        return self._blocks[index]

    def _read_job(self, job: OasisJob) -> _Block:
        instance = self.instance
        worker, ps = instance.demand_of(job)
        needed = instance.ps_needed_up_to(job, job.chunks)
        worker_fit = how_many_fit(
            instance.worker_capacity[self.worker_groups.first], worker, job.chunks
        )
        ps_fit = how_many_fit(instance.ps_capacity[self.ps_groups.first], ps, int(needed[-1]))
        worker_room = worker_fit * self.worker_groups.size
        ps_room = ps_fit * self.ps_groups.size
        most = min(job.chunks, int(worker_room.sum()))
        allowed = (needed <= int(ps_room.sum())) & (needed <= np.arange(needed.size))
        most = min(most, int(np.flatnonzero(allowed)[-1]))
        return _Block(
            worker_room=worker_room,
            ps_room=ps_room,
            worker_demand=worker.copy(),  # read-only arrays would be a second type of each kernel
            ps_demand=ps.copy(),
            task=Task(
                needed[: most + 1],
                np.arange(most + 1),
                instance.work_of(job),
                instance.utilities(job),
                job.arrival,
            ),
            chunk_time=instance.exact_chunk_time(job),
            chunk_total=job.epochs * job.chunks,
        )

    def best_response(
        self,
        block: int,
        prices: Floats,
        residual: Floats | None = None,
        *,
        above: float = -math.inf,
    ) -> Response | None:
        """Exact best schedule of a job: the subproblem (27).

        Parameters
        ----------
        block, prices, residual
            As in `BlockOracle.best_response`.
        above : float
            Only a schedule of a value above it is wanted, which saves time; None is returned if
            there is none.
        """
        job = self.block(block)
        return self._solve(job, job.task, prices, residual, above)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Exact best schedule of a job within limits, at full capacity."""
        _check_prices(prices)
        job = self.block(block)
        found = best_within(*job.sides(self._views(prices)), job.task, limits)
        if found is None:
            return None
        value, end, workers, ps = found
        return self._response(job, value, OasisPlan(end, Placements.of(workers), Placements.of(ps)))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, workers by slot, workers and PSs by server and slot."""
        return plan_features(response.plan)

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        return place_on_servers(self.instance, self.worker_groups, self.ps_groups, responses)

    def best_insertion(self, block: int, prices: Floats, residual: Floats) -> Response | None:
        """`best_response` on what is left if it is worth more than 0, which prunes the program."""
        return self.best_response(block, prices, residual, above=0.0)

    def chunk_best_response(
        self,
        block: int,
        prices: Floats,
        residual: Floats | None = None,
        *,
        above: float = -math.inf,
    ) -> Response | None:
        """Best schedule by Algorithm 2 as printed: whole data chunks in every slot.

        A worker trains ``floor(1 / (M (tau + 2 e / b)))`` chunks a slot, n workers
        ``floor(n / (M (tau + 2 e / b)))``: what is left of a slot is lost, so the payoff is at most
        that of `best_response`.
        """
        job = self.block(block)
        return self._solve(job, job.chunk_task, prices, residual, above)

    def _views(self, flat: Floats) -> tuple[Floats, Floats]:
        if not flat.flags.writeable:  # kernels are compiled once, for arrays that can be written
            flat = flat.copy()
        return (
            flat[: self._split].reshape(self._shapes[0]),
            flat[self._split :].reshape(self._shapes[1]),
        )

    def _solve(
        self, job: _Block, task: Task, prices: Floats, residual: Floats | None, above: float
    ) -> Response | None:
        _check_prices(prices)
        left = None if residual is None else self._views(residual)
        workers, ps = job.sides(self._views(prices), left, self._slack)
        scratch = self._scratch_for(task.total, task.needed.size)
        value, end = best_schedule(workers, ps, task, above, scratch)
        if end == 0:
            return None
        split, stop = place_schedule(
            workers, ps, task.needed, scratch.workers, task.arrival, end, self._entries
        )
        entries = self._entries[:, :stop].copy()
        plan = OasisPlan(end, Placements(*entries[:, :split]), Placements(*entries[:, split:]))
        return self._response(job, float(value), plan)

    def _scratch_for(self, total: int, workers: int) -> Scratch:
        """Work arrays of the kernel, grown as needed and used by one call at a time."""
        known = getattr(self, "_scratch", None)
        if known is None or known.table.shape[1] <= total or known.costs.shape[1] < workers:
            slots = self.instance.horizon + 1
            if known is not None:
                total = max(total, known.table.shape[1] - 1)
                workers = max(workers, known.costs.shape[1])
            check_memory(
                f"a table of {total} chunks over {slots} slots", 8.0 * slots * (total + workers)
            )
            self._scratch = Scratch(
                np.empty((slots, total + 1)),
                np.empty((slots, workers)),
                np.empty((slots, 2), dtype=np.int64),
                np.zeros(slots, dtype=np.int64),
            )
        return self._scratch

    def _response(self, job: _Block, value: float, plan: OasisPlan) -> Response:
        return Response(value, float(job.task.utilities[plan.end]), *self._use_of(job, plan), plan)

    def use_of_plan(self, block: int, plan: OasisPlan) -> tuple[Ints, Floats]:
        """Flat rows that a job's schedule uses, and how much of each."""
        return self._use_of(self.block(block), plan)

    def _use_of(self, job: _Block, plan: OasisPlan) -> tuple[Ints, Floats]:
        worker_rows, worker_amounts = self._use(plan.workers, job.worker_demand, 0)
        ps_rows, ps_amounts = self._use(plan.ps, job.ps_demand, self._split)
        return (
            np.concatenate([worker_rows, ps_rows]),
            np.concatenate([worker_amounts, ps_amounts]),
        )

    def _use(self, placed: Placements, demand: Floats, offset: int) -> tuple[Ints, Floats]:
        """Flat rows that placements use, and how much."""
        used = np.flatnonzero(demand)
        _, num_resources, horizon = self._shapes[0]
        base = placed.servers * (num_resources * horizon) + placed.slots + (offset - 1)
        rows = base[:, None] + used * horizon
        return rows.ravel(), (placed.counts[:, None] * demand[used]).ravel()

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file; only the layout ``"servers"`` places schedules on servers."""
        if self.layout != "servers":
            raise TypeError('only rows="servers" places schedules on servers')
        plan: OasisPlan = response.plan
        instance = self.instance
        return run_length(
            plan.workers.matrix(instance.horizon, len(instance.worker_servers)),
            plan.ps.matrix(instance.horizon, len(instance.ps_servers)),
            [server.name for server in instance.worker_servers],
            [server.name for server in instance.ps_servers],
        )

    def responses(self, prices: Floats) -> Sequence[Response | None]:
        """Best responses of all jobs at full capacity; None where a job stays out at 0."""
        return [self.best_response(block, prices, above=0.0) for block in range(self.num_blocks)]

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        _check_prices(prices)
        values = np.zeros(self.num_blocks)
        use = np.zeros(self.rows.size)
        views = self._views(np.ascontiguousarray(prices))
        best_schedules(*views, self._packed, values, *self._views(use))
        return values, use

    @cached_property
    def _packed(self) -> Jobs:
        """All jobs, padded."""
        blocks = [self.block(index) for index in range(self.num_blocks)]
        tasks = [block.task for block in blocks]
        widest = max((task.needed.size for task in tasks), default=1)
        num_resources, horizon = self._shapes[0][1:]
        needed = np.zeros((len(blocks), widest), dtype=np.int64)
        for index, task in enumerate(tasks):
            needed[index, : task.needed.size] = task.needed

        def stacked(arrays: list[Any], width: int, kind: type = float) -> Any:
            return np.array(arrays, dtype=kind).reshape(len(blocks), width)

        return Jobs(
            worker_room=stacked([b.worker_room for b in blocks], self._shapes[0][0], np.int64),
            ps_room=stacked([b.ps_room for b in blocks], self._shapes[1][0], np.int64),
            worker_demand=stacked([b.worker_demand for b in blocks], num_resources),
            ps_demand=stacked([b.ps_demand for b in blocks], num_resources),
            needed=needed,
            most=np.array([task.needed.size - 1 for task in tasks], dtype=np.int64),
            total=np.array([task.total for task in tasks], dtype=np.int64),
            utilities=stacked([task.utilities for task in tasks], horizon + 1),
            arrival=np.array([task.arrival for task in tasks], dtype=np.int64),
        )

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
            plan = OasisPlan(
                end,
                self.worker_groups.placements(solution.workers[record.name]),
                self.ps_groups.placements(solution.ps[record.name]),
            )
            value = solution.value(record.name)
            found.append(self._response(self.block(index), value, plan))
        return found

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of a group, repeated on each of its servers."""
        if self.layout == "servers":
            return prices
        worker_prices, ps_prices = self._views(prices)
        return np.concatenate(
            [
                worker_prices[self.worker_groups.member].ravel(),
                ps_prices[self.ps_groups.member].ravel(),
            ]
        )

    def prices_of_servers(self, prices: Floats) -> Floats:
        """Prices of each group, those of its first server."""
        horizon, number = self.instance.horizon, len(self.instance.resources)
        by_server = prices.reshape(-1, number, horizon)
        workers = len(self.instance.worker_servers)
        parts = by_server[:workers][self.worker_groups.first], by_server[workers:]
        return np.concatenate([parts[0].ravel(), parts[1][self.ps_groups.first].ravel()])


def _check_prices(prices: Floats) -> None:
    if prices.size and not prices.min() >= 0:
        raise ValueError("prices of capacities must not be negative")
