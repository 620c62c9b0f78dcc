"""The neighbourhood search of batchsched: whole neighbourhoods in one compiled kernel.

Like `NeighbourhoodSearch` it takes a few jobs out and puts them back at a multiple of the bound's
prices, but at one price a slot for all servers, and with another rule for the servers: those on
which a job wastes least, in its window, before it and after it. Only modes that are nearly the
cheapest at the prices are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import fewest_ps, in_pieces, modes
from hindsched.solutions.base import Solution
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.door.work import count_work
from hindsched.solvers.families.batchsched.list_schedule import as_solution, smith_schedule
from hindsched.solvers.kernels.batchsched import neighbourhoods
from hindsched.solvers.kernels.batchsched.neighbourhoods import DURATION, WORKER_TYPE, WORKERS
from hindsched.solvers.oracles.base import PricingOracle

NEARLY = 8.0
"""Slots of delay above a job's cheapest mode at the prices up to which others are tried."""
UNPRICED = 0.05
"""Worth of all of a resource beside the share of the prices that is paid for it."""
HOT, COLD = 8e-3, 8e-5
"""Mean worsening that is accepted at a cycle's begin and end, relative to what the objective is
above that of all jobs alone on the cluster."""
FIRST_CYCLE = 1000
"""Moves in the first cycle; each further one is twice as long. At its end the best returns."""
MOVES = 10
"""Moves of one call."""
MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""


class WindowSearch:
    """The search, resumable; `objective` is that of the best schedules found so far.

    `prices` are on the rows of the layout ``servers``.
    """

    def __init__(
        self, oracle: PricingOracle, prices: Floats, *, seed: int = 0, start: Solution | None = None
    ) -> None:
        self.oracle, self.instance = oracle, cast(BatchschedInstance, oracle.instance)
        self.slots = oracle.rows.sets[0].shape[-1]
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.iterations = 0
        self.objective: float | None = None
        self._best: dict[str, WindowRow] = {}
        self._cycle, self._cycle_begin = FIRST_CYCLE, 0
        self._every = window_jobs(self.instance)
        alone = self._every.weight * (self._every.arrival + self._every.shortest + 1)
        self._least_possible = float(alone.sum())
        capacity = self.instance.whole_units[0].astype(float)
        servers, types = len(capacity), len(self._every.worker)
        self._empty = neighbourhoods.FreeCapacity(
            np.repeat(capacity[:, :, None], self.slots, axis=2),
            np.zeros((types, self.slots, servers), dtype=np.int16),
            np.zeros((types, self.slots), dtype=np.int32),
        )
        for h in range(servers):
            neighbourhoods.renew_room(h, 0, self.slots, self._empty, self._every.share)
        self._plan = self._no_plan()
        self._cluster = self._nothing_taken()
        self._cost = np.full(2, np.inf)  # of the plan and of the best since the last return
        self._has_plan = False
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
        units = instance.whole_units[0].sum(axis=0).astype(float)
        worth = np.divide(share, units, out=np.zeros(len(units)), where=units > 0)
        before = np.zeros((self.slots + 1, len(by_slot)))
        np.cumsum(by_slot.T, axis=0, out=before[1:])
        first, use = every.first, instance.whole_units[1] @ worth
        volume = every.modes[:, WORKERS] * every.modes[:, DURATION]
        volume = volume * use[every.modes[:, WORKER_TYPE]]
        least = np.minimum.reduceat(volume, first[:, 0]) if len(first) else np.zeros(0)
        self._prices = neighbourhoods.SearchPrices(
            np.ascontiguousarray((before @ instance.worker_demand.T).T),
            np.ascontiguousarray((before @ instance.ps_demand.T).T),
            worth, every.weight / np.maximum(least, 1e-12),
        )  # fmt: skip
        chosen = neighbourhoods.excess_costs(every, self._prices, self.slots) <= NEARLY
        skip = np.concatenate([[0], np.cumsum(chosen)])
        self._jobs = every._replace(first=skip[every.first], modes=every.modes[chosen])

    def construct(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Insert all jobs by density, at a few multiples of the prices; `stop` is asked in between.

        Where none of that ends within the priced slots, the list that they are made for is taken.
        """
        order = np.argsort(-self._prices.density, kind="stable")
        for multiple in MULTIPLES:
            count_work()
            for jobs in (self._jobs, self._every):
                plan = self._no_plan()
                done, cost = neighbourhoods.insert_all(
                    order, multiple, np.inf, self._prices, plan, self._nothing_taken(), jobs,
                    self._word(),
                )  # fmt: skip
                if done == len(order):
                    self._keep(plan, cost)
                    break
            if self.is_complete and stop():
                break
        if not self.is_complete:  # the priced slots end where a list of all jobs has room
            listed = smith_schedule(self.instance)
            self.adopt(as_solution(self.instance, listed, self.oracle.formulation))
        self._return_to_best()

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Try neighbourhoods until `stop` says so; return whether the best became better."""
        if self.objective is None or not self.instance.jobs:
            return False
        before = self.objective
        while not stop():
            count_work(MOVES)
            if not self._has_plan:  # the best is of a form that the kernel does not know
                self.construct()
                if not self._has_plan:
                    break
            left, least = MOVES, self._cost[1]
            above = max(0.0, float(least) - self._least_possible)
            done = (self.iterations - self._cycle_begin) / self._cycle
            heat = HOT * (COLD / HOT) ** min(1.0, done) * above
            while left:
                tried = neighbourhoods.improve_plan(
                    left, heat, self._cost, self._plan, self._cluster, self._prices, self._jobs,
                    self._word(),
                )  # fmt: skip
                left -= tried
                self.iterations += tried
                if self._cost[1] < least:
                    least = self._cost[1]
                    self._keep(self._plan, float(least))
            if self.iterations - self._cycle_begin >= self._cycle:
                self._cycle, self._cycle_begin = 2 * self._cycle, self.iterations
                self._return_to_best()
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
        """The best schedules as a checked solution."""
        if self.objective is None:
            return None
        solution = as_solution(self.instance, self._best, self.oracle.formulation)
        if broken := solution.violations():
            raise SolveFailed(f"the search broke {broken[0]}")
        return solution

    def _word(self) -> np.ndarray:
        """State of the kernel's own draws."""
        return self.random.integers(1, 2**63, 1, dtype=np.uint64)

    def _no_plan(self) -> neighbourhoods.WindowPlan:
        """A plan of no jobs."""
        number, servers = len(self._every.weight), len(self.instance.server_capacity)
        rows = np.tile(np.array([0, 0, 0, -1, 0, 0]), (number, 1))  # on no host
        return neighbourhoods.WindowPlan(rows, np.zeros((number, servers), dtype=np.int32))

    def _nothing_taken(self) -> neighbourhoods.FreeCapacity:
        free, room, total = self._empty
        return neighbourhoods.FreeCapacity(free.copy(), room.copy(), total.copy())

    def _keep(self, plan: neighbourhoods.WindowPlan, cost: float) -> None:
        """Take a plan as the best if it is."""
        if self.objective is not None and cost >= self.objective:
            return
        self.objective, has_ps = cost, self.instance.has_ps
        for job, (m, start, stop, host, p, units), workers in zip(
            self.instance.jobs, plan.rows.tolist(), plan.workers, strict=True
        ):
            ps = np.zeros(len(workers), dtype=np.int64)
            if has_ps:
                ps[host] = units
            self._best[job.name] = WindowRow(
                start + 1, stop, m, p if has_ps else -1, workers.astype(np.int64), ps
            )

    def _return_to_best(self) -> None:
        """Go on from the best schedules, where the kernel knows their form."""
        self._has_plan = False
        if self.objective is None:
            return
        plan = self._no_plan()
        for j, job in enumerate(self.instance.jobs):
            row = self._best[job.name]
            hosts = np.flatnonzero(row.ps)
            if row.last > self.slots or len(hosts) != int(self.instance.has_ps):
                return
            host, units = (int(hosts[0]), int(row.ps[hosts[0]])) if len(hosts) else (-1, 0)
            plan.rows[j] = row.worker_type, row.first - 1, row.last, host, row.ps_type, units
            plan.workers[j] = row.workers
        self._plan, self._cluster, self._has_plan = plan, self._nothing_taken(), True
        self._cost[:] = self.objective
        for j in range(len(plan.rows)):
            neighbourhoods.book_job(neighbourhoods.TAKE, j, plan, self._cluster, self._every)


def search_of(oracle: PricingOracle, prices: Floats, **more: Any) -> WindowSearch | None:
    """The search, if jobs run in one window and amounts are whole numbers of 64 bits."""
    tables = cast(BatchschedInstance, oracle.instance).whole_units
    if in_pieces(oracle.formulation) or any(table.dtype != np.int64 for table in tables):
        return None
    return WindowSearch(oracle, prices, **more)


def window_jobs(instance: BatchschedInstance) -> neighbourhoods.WindowJobs:
    """All jobs and modes as the kernel takes them."""
    _, worker, ps = instance.whole_units
    size = instance.ps_demand @ (1.0 / np.maximum(instance.server_capacity.sum(axis=0), 1e-300))
    types, has_ps = np.arange(len(worker) + 1), instance.has_ps
    first, tables, number = list[Ints](), list[Ints](), 0
    for job in instance.jobs:
        table = modes(instance, job)
        fewest = fewest_ps(instance, table)
        taken = fewest * size[table.ps_type] if has_ps else fewest
        m, q, count, length = table.worker_type, table.one_server, table.workers, table.duration
        order = np.lexsort((taken, q, count, length, m))
        key = np.stack([m, count, length, q], axis=1)[order]
        # of the PS types the one that takes least
        chosen = np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)])
        servers = np.stack([table.ps_type, fewest], axis=1)[order]
        first.append(number + np.searchsorted(key[chosen, 0], types))
        tables.append(np.concatenate([key, servers], axis=1)[chosen])
        number += len(tables[-1])
    none = np.zeros((0, 6), dtype=np.int64)
    modes_of_all = np.ascontiguousarray(np.concatenate([*tables, none]))
    starts = np.array(first, dtype=np.int64).reshape(-1, len(types))
    shortest = [int(modes_of_all[row[0] : row[-1], DURATION].min()) for row in starts]
    share = np.divide(1.0, worker, out=np.full(worker.shape, np.inf), where=worker > 0)
    return neighbourhoods.WindowJobs(
        np.array([job.arrival - 1 for job in instance.jobs], dtype=np.int64),
        np.array([job.weight for job in instance.jobs], dtype=float),
        starts, modes_of_all,
        np.array(shortest, dtype=np.int64), worker.astype(float), ps.astype(float), share,
        instance.ps_ratio, has_ps,
    )  # fmt: skip
