"""How a batch is planned: at posted prices, by GreedyRTL, and moved to the left afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.modes import Modes
from hindsched.models.base import Subproblem, subproblem
from hindsched.models.batchsched.offline import MOST_IN_SUBPROBLEM
from hindsched.models.windows.sets import JobSets, priced_sets
from hindsched.online.batchsched.theorem import resource_units
from hindsched.online.engines.batching import BatchRound, ExponentialLedger, Offer
from hindsched.online.engines.primal_dual import Engine
from hindsched.solvers.door.subproblem import UNTOLD, pays_more, solve_subproblem
from hindsched.solvers.families.batchsched.schedules import Schedule, ScheduleSearch

TIE_WEIGHT = 1e-6  # share of a job's value that the model engine sets on completing earlier


class ServerRound(BatchRound):
    """A sub-round on an empty cluster with one price a server, resource and slot.

    Of tau slots, `horizon`, schedules may use those up to `last`; `base` is lambda. Algorithm 4
    places if `greedy`; the model's programs are `kept` by job until it is placed.
    """

    def __init__(
        self, instance: BatchschedInstance, horizon: int, last: int, base: float,
        modes_of: Callable[[BatchschedJob], Modes], greedy: bool, engine: Engine,
        kept: dict[str, tuple[int, Subproblem]],
    ) -> None:  # fmt: skip
        self._kept = kept
        self.instance, self.last = instance, last
        self.greedy, self.engine, self._modes_of = greedy, engine, modes_of
        self._unit = resource_units(instance)
        capacity = (instance.server_capacity / self._unit).ravel()
        self.ledger = ExponentialLedger(capacity, horizon, base)
        self.search = ScheduleSearch(instance, horizon)

    def offer(self, job: BatchschedJob, limit: float) -> Offer | None:
        """Cheapest schedule; ties go to the earlier completion, then the order of modes."""
        schedule = self.search.cheapest(
            self._modes_of(job), limit=limit, last=self.last,
            greedy=self.greedy and self.engine == "oracle",
        )  # fmt: skip
        if self.engine == "model":
            schedule = self._by_model(job, limit, schedule)
        if schedule is None:
            return None
        demand = (self.search.use(schedule) / self._unit).ravel()
        return Offer(schedule.start, schedule.duration, demand, schedule.cost, schedule)

    def _by_model(
        self, job: BatchschedJob, limit: float, other: Schedule | None
    ) -> Schedule | None:
        """Solve the subproblem as an integer program; `other` is the oracle's schedule, for ties.

        A weight too small to matter stands for the oracle's rule that among schedules of equal
        cost the earlier completion is taken.
        """
        if not len(self._modes_of(job)):
            return None
        kept, few = self._kept.get(job.name), self._few_sets(job, limit, other)
        if kept is None or kept[0] != self.last or few is not None:
            tie = TIE_WEIGHT * limit / self.last
            alone = job.model_copy(update={"arrival": 1, "weight": tie})
            instance = self.instance.with_jobs((alone,))
            program = subproblem(instance, 0, slots=self.last, sets=few)
            kept = self._kept[job.name] = self.last, program
        prices, room = (
            {"capacity": values[:, :, : self.last]}
            for values in (self.search.prices, self.search.residual)
        )
        solution = solve_subproblem(kept[1], prices, room)
        if solution is None:
            return None
        found = Schedule.of(solution.rows[job.name][0], 0.0)
        paid = self.search.prices[:, :, found.start - 1 : found.last].sum(axis=2)
        cost = float((paid * self.search.use(found)).sum())
        if other is None and cost >= limit:
            return None
        least = limit if other is None else other.cost
        return replace(found, cost=cost) if pays_more(-cost, -least, limit) else other

    def _few_sets(self, job: BatchschedJob, limit: float, other: Schedule | None) -> JobSets | None:
        """Where a job has too many columns, those that may beat the known schedule; else None.

        They may cost less, or as much and end earlier; those of the known window are among them.
        """
        table = self._modes_of(job)
        if len(table) * self.last * len(self.instance.servers) <= MOST_IN_SUBPROBLEM:
            return None
        room, prices = self.search.residual[..., : self.last], self.search.prices[..., : self.last]
        cost, untold = (limit if other is None else other.cost), UNTOLD * max(1.0, limit)

        def most(k: int, t: int) -> float:
            count, end = int(table.workers[k]), t + int(table.duration[k]) - 1
            if other is None or end < other.last:
                return cost + untold
            own = (t, end, count, table.worker_type[k]) == (
                other.start, other.last, other.workers.sum(), other.worker_type
            )  # fmt: skip
            return cost + untold if own else cost - untold

        return priced_sets(self.instance, table, room, prices, most)

    def book(self, job: BatchschedJob, offer: Offer) -> None:
        """Take the schedule's resources and post the new prices."""
        self.ledger.book(offer)
        self._kept.pop(job.name, None)
        self.search.book(offer.plan)
        shape = (offer.duration, *self.instance.server_capacity.shape)
        prices = self.ledger.prices(offer.start, offer.last).reshape(shape) / self._unit
        self.search.prices[:, :, offer.start - 1 : offer.last] = prices.transpose(1, 2, 0)


def greedy_right_to_left(
    cluster: BatchschedInstance, jobs: list[tuple[BatchschedJob, Modes, float]], last: int
) -> dict[str, Schedule]:
    """Accept jobs, given with modes and density, on the empty slots 1 .. `last`: see `GreedyRtl`.

    By density, each as late as possible with the least volume, skipped if it does not fit.
    """
    if last < 1 or not jobs:
        return {}
    search = ScheduleSearch(cluster, last)
    # Prices that fall towards the deadline make the cheapest schedule the least volume, and among
    # equal volumes the latest: the slope is too small to outweigh a difference in volume.
    slope = 1e-6 / last
    per_slot = 1.0 + slope * np.arange(last - 1, -1, -1)
    prices = np.broadcast_to(1.0 / resource_units(cluster), cluster.server_capacity.shape)
    search.reset(prices=prices[..., None] * per_slot)
    accepted: dict[str, Schedule] = {}
    for job, table, _ in sorted(jobs, key=lambda item: -item[2]):
        schedule = search.cheapest(table)
        if schedule is not None:
            search.book(schedule)
            accepted[job.name] = schedule
    return accepted


class LeftShift:
    """Moves the jobs of a batch, in the order of their planned starts, to their earliest windows.

    Types, numbers of workers and durations stay; servers may change. All others stand where they
    are meanwhile, those of earlier batches included: no job ends later than planned.
    """

    def __init__(self, cluster: BatchschedInstance) -> None:
        self.cluster = cluster
        self._running: list[Schedule] = []

    @property
    def last(self) -> int:
        """Last slot that any job uses; 0 without jobs."""
        return max((schedule.last for schedule in self._running), default=0)

    def shift(
        self, now: int, batch: list[tuple[JobRecord, Modes, Schedule]]
    ) -> dict[str, Schedule]:
        """Place a batch, which starts after slot `now`, for good; all in absolute slots."""
        self._running = [schedule for schedule in self._running if schedule.last > now]
        planned = sorted(batch, key=lambda item: item[2].start)
        slots = max(s.last for s in (*self._running, *(item[2] for item in planned))) - now
        search = ScheduleSearch(self.cluster, slots)
        for schedule in (*self._running, *(item[2] for item in planned)):
            search.book(after(schedule, now))
        placed = {}
        for job, table, schedule in planned:
            own = after(schedule, now)
            search.book(own, sign=-1.0)
            found = search.cheapest(_same_mode(table, own, self.cluster.has_ps), rate=1.0)
            best = own if found is None or found.completion > own.completion else found
            search.book(best)
            placed[job.name] = best.shifted(now)
        self._running += placed.values()
        return placed


def after(schedule: Schedule, now: int) -> Schedule:
    """The part of a schedule after slot `now`, counted from there."""
    first = max(1, schedule.start - now)
    return replace(schedule, start=first, duration=schedule.last - now - first + 1, cost=0.0)


def _same_mode(table: Modes, schedule: Schedule, has_ps: bool) -> Modes:
    """The modes with the schedule's types, number of workers and duration."""
    same = (table.worker_type == schedule.worker_type) & (table.duration == schedule.duration)
    same &= table.workers == int(schedule.workers.sum())
    if has_ps:
        same &= table.ps_type == schedule.ps_type
    return table.take(same)
