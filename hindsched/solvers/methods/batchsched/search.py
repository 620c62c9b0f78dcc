"""The neighbourhood search of batchsched: whole neighbourhoods in one compiled kernel.

Like `NeighbourhoodSearch` it takes a few jobs out and puts them back at a multiple of the bound's
prices, but at one price a slot for all servers, and with another rule for the servers: those on
which a job wastes least, in its window, before it and after it. Only modes that are nearly the
cheapest at the prices are tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import fewest_ps, modes
from hindsched.instances.modes import in_pieces
from hindsched.solutions.base import Solution
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution
from hindsched.solvers.kernels.batchsched.window_moves import improve, insert_all
from hindsched.solvers.kernels.batchsched.window_plan import (
    Cluster,
    Jobs,
    Plan,
    Prices,
    book,
    excess_costs,
    renew_room,
)
from hindsched.solvers.pricing.base import BlockOracle
from hindsched.solvers.work import spend

NEARLY = 8.0
"""Slots of delay above a job's cheapest mode at the prices up to which others are tried."""
MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""
STEP = 0.2
"""Slots of delay below which a schedule is no better than an earlier one."""
UNPRICED = 0.05
"""Worth of all of a resource beside the share of the prices that is paid for it."""
HOT, COLD = 8e-3, 8e-5
"""Mean worsening that is accepted at a cycle's begin and end, relative to what the objective is
above that of all jobs alone on the cluster."""
FIRST_CYCLE, LONGEST_CYCLE = 1000, 16_000
"""Moves in the first cycle; each further one is twice as long. At its end the best returns."""
CYCLES_LEFT = 6.0
"""A cycle takes all the time that is left where that is less than so many times the last one's."""
MOVES = 10
"""Moves of one call."""


class WindowSearch:
    """The search, resumable; `objective` is that of the best schedules found so far.

    Parameters
    ----------
    oracle : BlockOracle
        The oracle in the layout ``servers``.
    prices : ndarray
        Prices on its rows.
    seed : int
        Seed of all draws.
    start : Solution, optional
        A feasible solution to begin from.
    seconds_left : callable
        What is left of the time for everything: the last cycle ends with it.
    """

    def __init__(
        self,
        oracle: BlockOracle,
        prices: Floats,
        *,
        seed: int = 0,
        start: Solution | None = None,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.oracle, self.instance = oracle, cast(BatchschedInstance, oracle.instance)
        self.slots = oracle.rows.sets[0].shape[-1]
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.iterations = 0
        self.objective: float | None = None
        self._best: dict[str, BatchschedRow] = {}
        self._seconds_left = seconds_left
        self._cycle, self._cycle_begin = FIRST_CYCLE, 0
        self._cycle_seconds, self._is_last = seconds_left(), False
        self._every = every = jobs_of(self.instance)
        alone = every.weight * (every.arrival + every.shortest + 1)
        self._least_possible = float(alone.sum())
        self._plan: Plan | None = None
        self._kept: Plan | None = None
        self._value = self._least = 0.0
        self.set_prices(prices)
        if start is not None:
            self.adopt(start)
            self._return_to_best()

    @property
    def is_complete(self) -> bool:
        """Whether the search has schedules for all jobs."""
        return self.objective is not None

    def set_prices(self, prices: Floats) -> None:
        """Follow other prices from now on: their means over the servers."""
        instance, every = self.instance, self._every
        by_slot = prices.reshape(*instance.server_capacity.shape, -1).mean(axis=0)
        total = instance.server_capacity.sum(axis=0)
        paid = by_slot.sum(axis=1) * total
        share = paid / max(float(paid.sum()), 1e-300) + UNPRICED
        units = instance.whole_units.tables[0].sum(axis=0).astype(float)
        worth = np.divide(share, units, out=np.zeros(len(units)), where=units > 0)
        before = np.zeros((self.slots + 1, len(by_slot)))
        np.cumsum(by_slot.T, axis=0, out=before[1:])
        first, use = every.first, every.worker @ worth
        volume = every.modes[:, 1] * every.modes[:, 2] * use[_types_of_modes(every)]
        least = np.minimum.reduceat(volume, first[:, 0]) if len(first) else np.zeros(0)
        self._prices = Prices(
            np.ascontiguousarray((before @ instance.worker_demand.T).T),
            np.ascontiguousarray((before @ instance.ps_demand.T).T),
            worth, every.weight / np.maximum(least, 1e-12), np.ones(1), np.full(1, STEP),
        )  # fmt: skip
        self._jobs = only(every, excess_costs(every, self._prices, self.slots) <= NEARLY)

    def construct(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Insert all jobs in the order of their density, at a few multiples of the prices.

        Parameters
        ----------
        stop : callable
            Asked after every insertion of all jobs once there are schedules to keep.
        """
        order = np.argsort(-self._prices.density, kind="stable")
        for multiple in MULTIPLES:
            spend()
            for jobs in (self._jobs, self._every):
                plan, cluster = self._nothing()
                self._prices.multiple[0] = multiple
                word = self._word()
                done, cost = insert_all(order, np.inf, self._prices, plan, cluster, jobs, word)
                if done == len(order):
                    self._keep(plan, cost)
                    break
            if self.is_complete and stop():
                break
        self._return_to_best()

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Try neighbourhoods until `stop` says so; return whether the best became better.

        Parameters
        ----------
        stop : callable
            Asked before every few neighbourhoods.
        """
        if self.objective is None or not self.instance.jobs:
            return False
        before = self.objective
        while not stop():
            spend(MOVES)
            self.iterations += MOVES
            if self._plan is None or self._kept is None:  # of a form that the kernel does not know
                self.construct()
                if self._plan is None or self._kept is None:
                    continue
            done = self._share_of_cycle()
            heat = HOT * (COLD / HOT) ** done * max(0.0, self.objective - self._least_possible)
            least = min(self._value, self._least)
            self._value, best = improve(
                MOVES, heat, self._value, least, self._prices, self._plan, self._kept,
                self._cluster, self._jobs, self._word(),
            )  # fmt: skip
            if best < least:
                self._least = best
                self._keep(self._kept, best)
            if done >= 1:
                self._next_cycle()
        return self.objective != before

    def adopt(self, solution: Solution) -> bool:
        """Take a feasible solution as the best if it is; the search returns to it in its time."""
        assert isinstance(solution, BatchschedSolution)
        objective = solution.objective()
        if self.objective is not None and objective >= self.objective:
            return False
        self.objective = objective
        self._best = {name: rows[0] for name, rows in solution.rows.items()}
        return True

    def solution(self) -> Solution | None:
        """The best schedules as a checked solution.

        Raises
        ------
        SolveFailed
            If the checker finds a constraint broken: an error in the search.
        """
        if self.objective is None:
            return None
        rows: dict[str, Sequence[BatchschedRow]] = {
            name: (row,) for name, row in self._best.items()
        }
        found = BatchschedSolution(self.instance, rows, self.oracle.formulation)
        if broken := found.violations():
            raise SolveFailed(f"the search broke {broken[0]}")
        return found

    def _share_of_cycle(self) -> float:
        """How much of the cycle is over: by its moves, in the last one by the time."""
        if self._is_last:
            return 1.0 - self._seconds_left() / self._cycle_seconds
        return (self.iterations - self._cycle_begin) / self._cycle

    def _next_cycle(self) -> None:
        """Return to the best; the next cycle is twice as long, or takes all the time left."""
        left = self._seconds_left()
        last = self._cycle_seconds - left
        self._is_last = 0.0 < left < CYCLES_LEFT * last
        self._cycle_begin, self._cycle_seconds = self.iterations, left
        self._cycle = min(2 * self._cycle, LONGEST_CYCLE)
        self._return_to_best()

    def _word(self) -> np.ndarray:
        """State of the kernel's own draws."""
        return self.random.integers(1, 2**63, 1, dtype=np.uint64)

    def _nothing(self) -> tuple[Plan, Cluster]:
        """A plan of no jobs and the empty cluster."""
        capacity = self.instance.whole_units.tables[0].astype(float)
        servers, types, number = len(capacity), len(self._every.worker), len(self._every.weight)
        free = np.repeat(capacity[:, :, None], self.slots, axis=2)
        room = np.zeros((types, self.slots, servers), dtype=np.int16)
        on = np.zeros((servers, types, self.slots), dtype=np.int16)
        cluster = Cluster(free, room, on, np.zeros((types, self.slots), dtype=np.int32))
        for h in range(servers):
            renew_room(cluster, self._every, h, 0, self.slots)
        what = np.zeros((number, 6), dtype=np.int64)
        return Plan(what, np.zeros((number, servers), dtype=np.int32)), cluster

    def _keep(self, plan: Plan, cost: float) -> None:
        """Take a plan as the best if it is."""
        if self.objective is not None and cost >= self.objective:
            return
        self.objective, has_ps = cost, self.instance.has_ps
        for job, (m, start, stop, host, p, units), workers in zip(
            self.instance.jobs, plan.what.tolist(), plan.workers, strict=True
        ):
            ps = np.zeros(len(workers), dtype=np.int64)
            if has_ps:
                ps[host] = units
            self._best[job.name] = BatchschedRow(
                start + 1, stop, m, p if has_ps else -1, workers.astype(np.int64), ps
            )

    def _return_to_best(self) -> None:
        """Go on from the best schedules, where the kernel knows their form."""
        self._plan = self._kept = None
        if self.objective is None:
            return
        plan, cluster = self._nothing()
        for j, job in enumerate(self.instance.jobs):
            row = self._best[job.name]
            hosts = np.flatnonzero(row.ps)
            if row.last > self.slots or len(hosts) != int(self.instance.has_ps):
                return
            host, units = (int(hosts[0]), int(row.ps[hosts[0]])) if len(hosts) else (-1, 0)
            plan.what[j] = row.worker_type, row.first - 1, row.last, host, row.ps_type, units
            plan.workers[j] = row.workers
            book(1, j, plan, cluster, self._every)
        self._plan, self._cluster = plan, cluster
        self._kept = Plan(plan.what.copy(), plan.workers.copy())
        self._value = self._least = self.objective


def search_of(
    oracle: BlockOracle,
    prices: Floats,
    *,
    seed: int = 0,
    start: Solution | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> WindowSearch | None:
    """The search, if jobs run in one window and amounts are whole numbers of 64 bits."""
    instance = cast(BatchschedInstance, oracle.instance)
    tables = instance.whole_units.tables
    if in_pieces(oracle.formulation) or any(table.dtype != np.int64 for table in tables):
        return None
    return WindowSearch(oracle, prices, seed=seed, start=start, seconds_left=seconds_left)


def jobs_of(instance: BatchschedInstance) -> Jobs:
    """All jobs and modes as the kernel takes them."""
    _, worker, ps = instance.whole_units.tables
    size = instance.ps_demand @ (1.0 / np.maximum(instance.server_capacity.sum(axis=0), 1e-300))
    types, has_ps = np.arange(len(worker) + 1), instance.has_ps
    first, groups, hosted = list[Ints](), list[Ints](), list[Ints]()
    num_groups = num_hosted = 0
    for job in instance.jobs:
        table = modes(instance, job)
        fewest = fewest_ps(instance, table) if has_ps else np.zeros(len(table), dtype=np.int64)
        taken = fewest * size[table.ps_type] if has_ps else fewest
        m, q, count, length = table.worker_type, table.one_server, table.workers, table.duration
        order = np.lexsort((taken, q, count, length, m))
        key = np.stack([m, q, count, length], axis=1)[order]
        begin = np.flatnonzero(np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)]))
        ends = np.append(begin[1:], len(key)) if has_ps else begin
        pairs = np.stack([begin, ends], axis=1) + num_hosted
        first.append(num_groups + np.searchsorted(key[begin, 0], types))
        groups.append(np.concatenate([key[begin, 1:], pairs], axis=1))
        hosted.append(np.stack([table.ps_type, fewest], axis=1)[order])
        num_groups, num_hosted = num_groups + len(begin), num_hosted + len(key)
    none = np.zeros((0, 5), dtype=np.int64)
    modes_of_all = np.ascontiguousarray(np.concatenate([*groups, none]))
    starts = np.array(first, dtype=np.int64).reshape(-1, len(types))
    shortest = [int(modes_of_all[row[0] : row[-1], 2].min()) for row in starts]
    share = np.divide(1.0, worker, out=np.zeros(worker.shape), where=worker > 0)
    ratio = instance.ps_ratio if has_ps else np.zeros((len(worker), 1))
    return Jobs(
        np.array([job.arrival - 1 for job in instance.jobs], dtype=np.int64),
        np.array([job.weight for job in instance.jobs], dtype=float),
        starts, modes_of_all, np.concatenate([*hosted, none[:, :2]]),
        np.array(shortest, dtype=np.int64), worker.astype(float), ps.astype(float),
        share, np.ascontiguousarray(ratio), has_ps,
    )  # fmt: skip


def only(jobs: Jobs, chosen: np.ndarray) -> Jobs:
    """The jobs with some of their modes."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    return jobs._replace(first=before[jobs.first], modes=jobs.modes[chosen])


def _types_of_modes(jobs: Jobs) -> Ints:
    """Worker type of every mode."""
    lengths = np.diff(jobs.first, axis=1).ravel()
    return np.repeat(np.tile(np.arange(len(jobs.worker)), len(jobs.first)), lengths)


__all__ = ["WindowSearch", "search_of"]
