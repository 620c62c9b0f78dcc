"""``--method search``: schedules of the edgecloud family by annealing over orders of the jobs.

What couples jobs is the workers of a type, so every type is a pool with an order of its own
(`kernels.edgecloud.priority_search`); the workers of a limited cloud are workers of the pool that
need a longer upload, an unlimited cloud takes whole jobs. Neither storage nor PSs are known to the
search: where they refuse what it ends with, the list schedule stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule, read_past
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, Result, StoppedBy
from hindsched.solvers.door.work import catch_interrupt, spend
from hindsched.solvers.kernels.edgecloud.priority_search import (
    MIXED,
    NEVER,
    UNLIMITED_CLOUD,
    Order,
    PoolJobs,
    anneal,
    place_in_order,
    place_job,
)
from hindsched.solvers.methods.base import Run, better

MOST_CELLS = 100_000_000
"""Slots x workers of a pool up to which it is searched."""
FIRST_ROUND, GROWTH, LONGEST_ROUND = 500, 2, 64_000
"""Moves of the first cooling of a pool, how they grow from one to the next, and the most."""
BATCH_JOBS = 20_000
"""Jobs placed, about, between two looks at the clock: a unit of work."""
SETTLED_MOVES, SETTLED = 4000, 2e-4
"""Moves of a cooling after which a relative gain of at most this ends the search."""
HOT, COLD = 0.15, 0.002
"""Temperatures as shares of the mean time that a job of the pool takes."""


@dataclass(eq=False)
class Pool:
    """Workers of one type, the jobs that need them, and the order that was found best."""

    jobs: Ints  # positions, (J,)
    places: Ints  # worker of each column, (W,); their number means one of the cloud's
    given: PoolJobs
    slots: int  # after which every order is done

    def __post_init__(self) -> None:
        self.busy = np.zeros((self.slots, self.places.size), dtype=np.bool_)
        given, in_cloud = self.given, np.zeros(self.jobs.size, dtype=np.bool_)
        load = given.work * given.chunks / max(1, self.places.size)
        self._ready = given.ready.min(axis=1, initial=NEVER)
        first = np.minimum(self._ready, given.cloud_end)
        starts = [np.argsort(first + factor * load, kind="stable") for factor in (0.0, 1.5, 6.0)]
        orders = [Order(start, in_cloud) for start in starts]
        self.order = min(orders, key=lambda order: self.place(order)[0])
        self.total, self.ends = self.place(self.order)
        self.moves = FIRST_ROUND

    def place(self, order: Order) -> tuple[int, Ints]:
        """Sum of the ends, and each job's end, if jobs are placed in an order; fills ``busy``."""
        ends, counts = np.zeros(self.jobs.size, np.int64), np.zeros(self.places.size, np.int64)
        total = place_in_order(self.given, order, self.busy, counts, ends)
        return total, ends

    def cool(self, draws: np.random.Generator, stop: Callable[[], bool]) -> None:
        """One cooling from the best order; the next one is longer."""
        present = Order(self.order.jobs.copy(), self.order.in_cloud.copy())
        current = self.total
        mean = max(float(np.mean(self.ends - self._ready.clip(max=self.ends))), 1.0)
        batch = max(1, BATCH_JOBS // self.jobs.size)
        for begin in range(0, self.moves, batch):
            if stop():
                break
            spend()
            hot, cold = (
                mean * HOT * (COLD / HOT) ** (moves / self.moves)
                for moves in (begin, begin + batch)
            )
            current, self.total = anneal(
                self.given, self.busy, present, current, self.order, self.total,
                draws, min(batch, self.moves - begin), hot, cold,
            )  # fmt: skip
        self.total, self.ends = self.place(self.order)
        self.moves = min(GROWTH * self.moves, LONGEST_ROUND)

    def runs(self, instance: EdgecloudInstance) -> list[ChunkRun]:
        """Runs of all chunks under the best order."""
        self.busy[:] = False
        given, counts = self.given, np.zeros(self.places.size, np.int64)
        found: list[ChunkRun] = []
        for j in self.order.jobs:
            job, before = int(self.jobs[j]), self.busy.copy()
            end, place = place_job(given, j, self.order.in_cloud[j], self.busy, counts)
            if place == UNLIMITED_CLOUD:
                first, cloud = end - int(instance.cloud_slots[job]), len(instance.worker_list)
                numbers = range(1, int(given.chunks[j]) + 1)
                found += [ChunkRun(job, number, cloud, first, end - 1) for number in numbers]
                continue
            work = int((given.work if place == MIXED else given.cloud_work)[j])
            chunk = 0
            for w in np.flatnonzero(counts):
                taken = np.flatnonzero(self.busy[:, w] & ~before[:, w]).reshape(-1, work)
                worker = int(self.places[w])
                for slots in taken:
                    chunk += 1
                    for run in np.split(slots, np.flatnonzero(np.diff(slots) > 1) + 1):
                        found.append(ChunkRun(job, chunk, worker, int(run[0]), int(run[-1])))
        return found


class PrioritySearch:
    """The search over all pools, resumable.

    It `is_possible` where every job has a place and no pool is too large.
    """

    def __init__(self, instance: EdgecloudInstance, formulation: str, seed: int = 0) -> None:
        self.instance, self.formulation = instance, formulation
        self.draws = np.random.Generator(np.random.PCG64([seed, len(instance.jobs)]))
        kinds = sorted({job.worker_type for job in instance.jobs})
        pools = [_pool(instance, kind) for kind in kinds]
        self.pools = [pool for pool in pools if pool is not None]
        self.is_possible = len(self.pools) == len(kinds)

    @property
    def objective(self) -> float:
        """Total completion time of the best schedule, whatever storage and PSs say."""
        ends = sum(pool.total for pool in self.pools)
        return float(ends - self.instance.arrivals.sum())

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Cool the pools in turn until `stop` says so, or by itself: a whole turn hardly gains."""
        while self.is_possible and not stop():
            before, moves = self.objective, max(pool.moves for pool in self.pools)
            for pool in self.pools:
                pool.cool(self.draws, stop)
            if moves >= SETTLED_MOVES and before - self.objective <= SETTLED * before:
                return True
        return not self.is_possible

    def solution(self) -> Solution | None:
        """The best schedule, or None if storage or PSs do not allow it."""
        if not self.is_possible:
            return None
        rows = [row for pool in self.pools for row in pool.runs(self.instance)]
        return checked(self.instance, Runs.of(rows), self.formulation)


def best_incumbent(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """The better of two schedules without a search: never preemptive, and shortest jobs first."""
    by_order = PrioritySearch(instance, formulation).solution()
    return better(list_schedule(instance, formulation), by_order)


def list_schedule(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """Jobs in order of arrival, each chunk where it ends first, never preempted; or None."""
    schedule = GreedySchedule(instance, read_past(instance, None))
    if schedule.completion is None:
        return None
    return checked(instance, Runs.of(schedule.rows), formulation)


def checked(instance: EdgecloudInstance, runs: Runs, formulation: str) -> Solution | None:
    """A solution of these runs with PSs found for them; None if there are none or storage lacks."""
    holds = place_parameter_servers(instance, runs)
    solution = EdgecloudSolution(instance, runs, holds, formulation)
    return solution if solution.is_feasible() else None


def search(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """Annealing over orders of the jobs; no bound."""
    assert isinstance(instance, EdgecloudInstance)
    with catch_interrupt() as interrupted:
        run = Run(instance, formulation, options, on_progress, interrupted, "search")
        run.offer(list_schedule(instance, formulation))
        found = PrioritySearch(instance, formulation, options.seed)

        def stop() -> bool:
            if on_progress is not None:
                on_progress(None, found.objective, run.clock.gone, "annealing over orders")
            return run.clock.is_over

        settled = found.improve(stop)
        run.offer(found.solution())
        result = run.result("annealing over orders")
    return replace(result, stopped_by=StoppedBy.CONVERGED) if settled else result


def _pool(instance: EdgecloudInstance, kind: str) -> Pool | None:
    """The pool of a worker type, or None if a job has no place in it or it is too large."""
    jobs = np.array([j for j, job in enumerate(instance.jobs) if job.worker_type == kind])
    arrivals, work = instance.arrivals[jobs], instance.edge_slots[jobs]
    workers = list(instance.workers_by_type.get(kind, ()))
    homes = np.array([instance.worker_list[w][0] for w in workers], dtype=np.int64)
    upload = instance.upload[np.ix_(jobs, homes)]
    in_cloud = instance.cloud_upload[jobs]
    limited = instance.cloud_workers(kind)
    limited_ps = any(instance.cloud_ps(instance.jobs[j].ps_type) is not None for j in jobs)
    cloud_end = arrivals + in_cloud + instance.cloud_slots[jobs]
    if limited is not None or limited_ps:
        cloud_end = np.full(jobs.size, NEVER)
    cloud_end = np.where(in_cloud < 0, NEVER, cloud_end)
    most = int((instance.chunks[jobs]).max()) if limited is None else limited
    columns = most if cloud_end.max() == NEVER and instance.cloud_workers(kind) != 0 else 0
    upload = np.hstack((upload, np.repeat(in_cloud[:, None], columns, axis=1)))
    ready = np.where(upload < 0, NEVER, arrivals[:, None] + upload)
    places = np.array(workers + [len(instance.worker_list)] * columns, dtype=np.int64)
    usable = (ready < NEVER).sum(axis=1)
    if np.any((usable == 0) & (cloud_end == NEVER)):
        return None
    cloud_work = work if limited_ps else instance.cloud_slots[jobs]
    chunks = instance.chunks[jobs]
    longest = np.maximum(
        work * -(-chunks // np.maximum(usable, 1)), cloud_work * -(-chunks // max(columns, 1))
    )  # after all others, on all columns or on the cloud's
    latest = int(ready[ready < NEVER].max(initial=0))
    slots = latest + int(longest[usable > 0].sum()) + 1
    if slots * max(1, places.size) > MOST_CELLS:
        return None
    given = PoolJobs(len(workers), ready, work, chunks, cloud_work, cloud_end)
    return Pool(jobs, places, given, slots)
