"""Best schedules of single jobs against prices and what is left of the servers.

`ScheduleSearch` holds the state of a cluster over some slots (what is free, unit prices) and keeps
it up to date as schedules are booked. The batch algorithms and list scheduling ask it. The list
schedule, one job after the other at its earliest completion on what is left, is the incumbent of
the exact methods, the time limit of the programs and the start of every search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import Modes
from hindsched.limits import check_memory
from hindsched.models.windows.sets import row_use
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.kernels.placement import Kinds, no_limits
from hindsched.solvers.kernels.windows.window import Parts, cheapest_window

KEPT = "_list_schedule"
"""Where an instance keeps its list schedule."""


@dataclass(frozen=True)
class Schedule:
    """A job's window and placement."""

    start: int  # first slot
    duration: int  # number of slots
    worker_type: int  # position of the type
    ps_type: int  # position of the type; -1 for Ring-AllReduce
    workers: Ints  # how many stand on each server, (servers,)
    ps: Ints  # how many stand on each server, (servers,)
    cost: float  # what the search minimised: rate x completion + price

    @property
    def last(self) -> int:
        """Last slot it runs in."""
        return self.start + self.duration - 1

    @property
    def completion(self) -> int:
        """Completion as the paper counts it, t + L."""
        return self.start + self.duration

    def row(self) -> WindowRow:
        """The same as a row of a solution."""
        return WindowRow(
            self.start, self.last, self.worker_type, self.ps_type, self.workers, self.ps
        )

    @classmethod
    def of(cls, row: WindowRow, cost: float) -> Schedule:
        """A row as a schedule."""
        return cls(row.first, row.slots, row.worker_type, row.ps_type, row.workers, row.ps, cost)

    def shifted(self, slots: int) -> Schedule:
        """Return the same schedule some slots later."""
        return replace(self, start=self.start + slots)


class ScheduleSearch:
    """Cheapest schedules in slots 1 .. `slots` of a cluster whose free capacity and prices change.

    The instance is the cluster; its jobs do not matter.
    """

    def __init__(self, instance: BatchschedInstance, slots: int) -> None:
        self.instance, self.slots = instance, slots
        self.capacity: Floats = instance.server_capacity
        self._kinds = kinds_of(instance)
        check_memory(f"a search over {slots} slots", 8.0 * slots * self.capacity.size * 3)
        self._limits = tuple(no_limits(len(self.capacity)))
        self.reset()

    def reset(self, prices: Floats | None = None) -> None:
        """Begin with the empty cluster at given prices, (servers, resources, slots); default 0."""
        full = loosened(self.capacity, self.capacity)
        self.residual: Floats = np.repeat(full[:, :, None], self.slots, axis=2)
        """Free capacity, `loosened`, shape (servers, resources, slots)."""
        self.prices: Floats = np.zeros_like(self.residual)
        if prices is not None:
            self.prices[:] = prices

    def cheapest(
        self, table: Modes, *, rate: float = 0.0, limit: float = np.inf, earliest: int = 1,
        last: int | None = None, greedy: bool = False,
    ) -> Schedule | None:  # fmt: skip
        """Cheapest schedule of a job below `limit` that fits what is free; None if there is none.

        It costs its resources and `rate` a slot of completion, and runs in the slots `earliest` ..
        `last`. `greedy` places by Algorithm 4 as printed (with its repairs) instead of exactly.
        """
        stop = self.slots if last is None else min(last, self.slots)
        workers, ps = np.zeros((2, len(self.capacity)), dtype=np.int64)
        cost, mode, start = cheapest_window(
            rate * np.arange(1.0, self.slots + 2), (earliest, stop), (1, stop),
            tuple(table.columns), tuple(self._kinds), tuple(Parts.of(self.residual)),
            tuple(Parts.of(self.prices)), 0.0, self._limits, self._limits, limit, greedy,
            workers, ps,
        )  # fmt: skip
        if mode < 0:
            return None
        p = int(table.ps_type[mode]) if self.instance.has_ps else -1
        m, length = int(table.worker_type[mode]), int(table.duration[mode])
        return Schedule(start, length, m, p, workers, ps, float(cost))

    def use(self, schedule: Schedule) -> Floats:
        """Resources that a schedule takes in each slot, shape (servers, resources)."""
        return row_use(self.instance, schedule.row())

    def book(self, schedule: Schedule, sign: float = 1.0) -> None:
        """Take a schedule's resources from what is free (``sign=-1`` gives them back)."""
        used = sign * self.use(schedule)
        self.residual[:, :, schedule.start - 1 : schedule.last] -= used[:, :, None]


def list_schedule(instance: BatchschedInstance) -> Mapping[str, Schedule]:
    """List schedule in order of weight over shortest duration, kept with the instance.

    Smith's rule on durations; slots are added until all jobs fit.
    """
    kept = vars(instance)
    if KEPT not in kept:
        jobs = instance.jobs
        tables = [modes(instance, job) for job in jobs]
        fastest = np.array([each.duration.min() for each in tables], dtype=np.int64)
        weights = np.array([job.weight for job in jobs], dtype=float)
        order = np.argsort(-weights / fastest, kind="stable").tolist()
        slots = max((job.arrival for job in jobs), default=1)
        slots += 2 * int(fastest.max(initial=1)) + 8
        found: dict[str, Schedule] = {}
        while len(found) < len(jobs):
            search = ScheduleSearch(instance, slots)
            for known in found.values():
                search.book(known)
            for at in order[len(found) :]:
                job = jobs[at]
                rate = float(job.weight)
                schedule = search.cheapest(tables[at], rate=rate, earliest=job.arrival)
                if schedule is None:
                    break
                search.book(schedule)
                schedule.workers.flags.writeable = False  # whoever asks has the same ones
                schedule.ps.flags.writeable = False
                found[job.name] = schedule
            slots *= 2
        kept[KEPT] = found
    listed: Mapping[str, Schedule] = kept[KEPT]
    return listed


def as_solution(
    instance: BatchschedInstance, schedules: Mapping[str, Schedule], formulation: str | None = None
) -> BatchschedSolution:
    """Schedules as a solution."""
    rows = {name: (schedule.row(),) for name, schedule in schedules.items()}
    return BatchschedSolution(instance, dict(rows), formulation)


def kinds_of(instance: BatchschedInstance) -> Kinds:
    """Types of workers and PSs as the kernels take them."""
    ratio = instance.ps_ratio
    if not instance.has_ps:
        ratio = np.zeros((len(instance.worker_types), 1))
    worker, server = (np.ascontiguousarray(d) for d in (instance.worker_demand, instance.ps_demand))
    return Kinds(worker, server, np.ascontiguousarray(ratio), instance.has_ps)
