"""The oasis family's pricing oracle: a job's best response by the worker-slot program.

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
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hindsched.errors import InputError
from hindsched.instances.oasis.instance import (
    FLOOR_TOLERANCE,
    OasisInstance,
    OasisJob,
    how_many_fit,
)
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis.solution import OasisSolution, run_length
from hindsched.solvers.kernels.oasis.worker_slot import (
    best_schedule,
    best_schedules,
    place_schedule,
)
from hindsched.solvers.pricing.base import BlockOracle, Response
from hindsched.solvers.pricing.decisions import Feature, Limits
from hindsched.solvers.pricing.oasis.groups import Placements, group_servers
from hindsched.solvers.pricing.oasis.restricted import (
    best_within,
    features_of_rows,
    place_on_servers,
    plan_features,
)
from hindsched.solvers.pricing.rows import Rows, RowSet, Vector

ORACLE_ROWS = ("groups", "servers", "patterns")
TREE_ROWS = ("patterns", "servers")
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class OasisPlan:
    """A job's schedule.

    Parameters
    ----------
    end : int
        Completion slot.
    workers, ps : Placements
        Where its workers and PSs run.
    """

    end: int
    workers: Placements
    ps: Placements


@dataclass(frozen=True)
class _Block:
    """A job as the kernels read it; arrays as in `worker_slot.best_schedule`."""

    worker_room: IntArray
    ps_room: IntArray
    worker_demand: Vector
    ps_demand: Vector
    needed: IntArray
    total: int
    utilities: Vector
    arrival: int
    chunk_slots: float
    chunk_total: int

    @cached_property
    def steps(self) -> IntArray:
        """Worker-slots of 0..N workers."""
        return np.arange(self.needed.size)

    @cached_property
    def chunk_steps(self) -> IntArray:
        """Whole chunks that 0..N workers train in a slot."""
        chunks = np.arange(self.needed.size) / self.chunk_slots
        return np.floor(chunks + FLOOR_TOLERANCE).astype(np.int64)


@dataclass
class _Workspace:
    """Work arrays of the kernel, grown as needed and used by one call at a time."""

    table: Vector
    costs: Vector
    windows: IntArray
    workers: IntArray
    entries: IntArray

    @classmethod
    def of(cls, horizon: int, total: int, workers: int, servers: int) -> _Workspace:
        return cls(
            np.empty((horizon + 1, total + 1)),
            np.empty((horizon + 1, workers + 1)),
            np.empty((horizon + 1, 2), dtype=np.int64),
            np.zeros(horizon + 1, dtype=np.int64),
            np.empty((3, horizon * servers), dtype=np.int64),
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
        slots = tuple(range(1, horizon + 1))
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
        self._split = self._shapes[0][0] * self._shapes[0][1] * self._shapes[0][2]
        self._blocks: dict[int, _Block] = {}
        self._workspace = _Workspace.of(horizon, 0, 0, 0)

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
            worker_demand=worker,
            ps_demand=ps,
            needed=needed[: most + 1],
            total=instance.work_of(job),
            utilities=instance.utilities(job),
            arrival=job.arrival,
            chunk_slots=job.minibatches * instance.minibatch_time(job),
            chunk_total=job.epochs * job.chunks,
        )

    def best_response(
        self,
        block: int,
        prices: Vector,
        residual: Vector | None = None,
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
        return self._solve(job, job.steps, job.total, prices, residual, above)

    def restricted_response(self, block: int, prices: Vector, limits: Limits) -> Response | None:
        """Exact best schedule of a job within limits, at full capacity."""
        _check_prices(prices)
        job = self.block(block)
        found = best_within(job, *self._views(prices), limits)
        if found is None:
            return None
        value, end, workers, ps = found
        return self._response(job, value, OasisPlan(end, Placements.of(workers), Placements.of(ps)))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, workers by slot, workers and PSs by server and slot."""
        return plan_features(response.plan)

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution in which all jobs run the given schedules, packed on real servers."""
        return place_on_servers(self, responses)

    def best_insertion(self, block: int, prices: Vector, residual: Vector) -> Response | None:
        """`best_response` on what is left if it is worth more than 0, which prunes the program."""
        return self.best_response(block, prices, residual, above=0.0)

    def chunk_best_response(
        self,
        block: int,
        prices: Vector,
        residual: Vector | None = None,
        *,
        above: float = -math.inf,
    ) -> Response | None:
        """Best schedule by Algorithm 2 as printed: whole data chunks in every slot.

        A worker trains ``floor(1 / (M (tau + 2 e / b)))`` chunks a slot, n workers
        ``floor(n / (M (tau + 2 e / b)))``: what is left of a slot is lost, so the payoff is at most
        that of `best_response`.
        """
        job = self.block(block)
        return self._solve(job, job.chunk_steps, job.chunk_total, prices, residual, above)

    def _views(self, flat: Vector) -> tuple[Vector, Vector]:
        return (
            flat[: self._split].reshape(self._shapes[0]),
            flat[self._split :].reshape(self._shapes[1]),
        )

    def _solve(
        self,
        job: _Block,
        steps: IntArray,
        total: int,
        prices: Vector,
        residual: Vector | None,
        above: float,
    ) -> Response | None:
        _check_prices(prices)
        work = self._room_for(total, job.needed.size)
        worker_prices, ps_prices = self._views(prices)
        left = prices if residual is None else residual
        worker_residual, ps_residual = self._views(left)
        limited = residual is not None
        shared = (
            worker_prices,
            ps_prices,
            worker_residual,
            ps_residual,
            limited,
            job.worker_room,
            job.ps_room,
            job.worker_demand,
            job.ps_demand,
            job.needed,
        )
        value, end = best_schedule(
            *shared,
            steps,
            total,
            job.utilities,
            job.arrival,
            above,
            work.table,
            work.costs,
            work.windows,
            work.workers,
        )
        if end == 0:
            return None
        split, stop = place_schedule(
            *shared,
            work.workers,
            job.arrival,
            end,
            work.entries[0],
            work.entries[1],
            work.entries[2],
        )
        entries = work.entries[:, :stop].copy()
        plan = OasisPlan(end, Placements(*entries[:, :split]), Placements(*entries[:, split:]))
        return self._response(job, float(value), plan)

    def _room_for(self, total: int, workers: int) -> _Workspace:
        work = self._workspace
        if work.table.shape[1] <= total or work.costs.shape[1] < workers or not work.entries.size:
            self._workspace = _Workspace.of(
                self.instance.horizon,
                max(total, work.table.shape[1] - 1),
                max(workers, work.costs.shape[1]),
                self._shapes[0][0] + self._shapes[1][0],
            )
        return self._workspace

    def _response(self, job: _Block, value: float, plan: OasisPlan) -> Response:
        return Response(value, float(job.utilities[plan.end]), *self._use_of(job, plan), plan)

    def use_of_plan(self, block: int, plan: OasisPlan) -> tuple[IntArray, Vector]:
        """Flat rows that a job's schedule uses, and how much of each."""
        return self._use_of(self.block(block), plan)

    def _use_of(self, job: _Block, plan: OasisPlan) -> tuple[IntArray, Vector]:
        worker_rows, worker_amounts = self._use(plan.workers, job.worker_demand, 0)
        ps_rows, ps_amounts = self._use(plan.ps, job.ps_demand, self._split)
        return (
            np.concatenate([worker_rows, ps_rows]),
            np.concatenate([worker_amounts, ps_amounts]),
        )

    def _use(self, placed: Placements, demand: Vector, offset: int) -> tuple[IntArray, Vector]:
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

    def responses(self, prices: Vector) -> Sequence[Response | None]:
        """Best responses of all jobs at full capacity; None where a job stays out at 0."""
        return [self.best_response(block, prices, above=0.0) for block in range(self.num_blocks)]

    def block_values(self, prices: Vector) -> tuple[Vector, Vector]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        _check_prices(prices)
        packed = self._packed
        values = np.zeros(self.num_blocks)
        use = np.zeros(self.rows.size)
        worker_prices, ps_prices = self._views(np.ascontiguousarray(prices))
        worker_use, ps_use = self._views(use)
        jobs = np.arange(self.num_blocks)
        nothing = np.zeros((0, 0), dtype=np.int64)
        best_schedules(worker_prices, ps_prices, *packed, jobs, values, worker_use, ps_use, nothing)
        return values, use

    @cached_property
    def _packed(self) -> tuple[Any, ...]:
        """All jobs, padded, in the order that `best_schedules` takes them."""
        blocks = [self.block(index) for index in range(self.num_blocks)]
        widest = max((block.needed.size for block in blocks), default=1)
        num_resources, horizon = self._shapes[0][1:]
        needed = np.zeros((len(blocks), widest), dtype=np.int64)
        for index, block in enumerate(blocks):
            needed[index, : block.needed.size] = block.needed
        count = len(blocks)
        return (
            _stack([block.worker_room for block in blocks], (count, self._shapes[0][0])),
            _stack([block.ps_room for block in blocks], (count, self._shapes[1][0])),
            _stack([block.worker_demand for block in blocks], (count, num_resources)),
            _stack([block.ps_demand for block in blocks], (count, num_resources)),
            needed,
            np.array([block.needed.size - 1 for block in blocks], dtype=np.int64),
            np.array([block.total for block in blocks], dtype=np.int64),
            _stack([block.utilities for block in blocks], (count, horizon + 1)),
            np.array([block.arrival for block in blocks], dtype=np.int64),
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

    def prices_on_servers(self, prices: Vector) -> Vector:
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


def _stack(arrays: list[Any], shape: tuple[int, int]) -> Any:
    return np.array(arrays).reshape(shape) if arrays else np.zeros(shape)


def _check_prices(prices: Vector) -> None:
    if prices.size and not prices.min() >= 0:
        raise ValueError("prices of capacities must not be negative")


def build(instance: OasisInstance, formulation: str, rows: str) -> BlockOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    if rows == "patterns":
        from hindsched.solvers.pricing.oasis.patterns import PatternOracle

        return PatternOracle(instance, formulation)
    return OasisOracle(instance, formulation, "servers" if rows == "servers" else "groups")
