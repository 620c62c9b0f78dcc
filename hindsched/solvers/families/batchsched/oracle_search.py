"""Best schedules of single jobs against prices and what is left of the servers.

`ScheduleSearch` holds the state of a cluster over some slots (what is free, unit prices) in the
form that the compiled search needs, and keeps it up to date as schedules are booked. The pricing
oracle, the batch algorithms and list scheduling all ask it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import Modes
from hindsched.limits import check_memory
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.kernels.batchsched.window_search import (
    Groups,
    State,
    build_minima,
    cheapest_schedule,
    empty_window,
    fill_window,
    num_levels,
    update_minima,
)
from hindsched.solvers.kernels.cheapest_workers import renew_slot_costs
from hindsched.solvers.kernels.placement import Kinds, fill, num_ps
from hindsched.solvers.kernels.stable_order import order_up_to_ties

NO_LIMIT = 1e300
TABLES_BESIDE = 4
"""Tables of all slots beside the levels of minima: what is free, prices, their sums, costs."""


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

    def shifted(self, slots: int) -> Schedule:
        """Return the same schedule some slots later."""
        return replace(self, start=self.start + slots)


@dataclass(frozen=True)
class ModeIndex:
    """A job's modes grouped for the search: groups share worker type, q, N and L."""

    modes: Modes
    groups: Groups

    @classmethod
    def of(cls, table: Modes) -> ModeIndex:
        """Group the modes of a job; the groups' rank keeps their order for ties."""
        keys = (table.ps_type, table.duration, -table.one_server, table.worker_type, table.workers)
        order = np.lexsort(keys).astype(np.int64)
        ordered = table.take(order)
        shared = np.stack(
            [ordered.worker_type, ordered.one_server, ordered.workers, ordered.duration], axis=1
        )
        new = np.ones(len(order), dtype=bool)
        new[1:] = (shared[1:] != shared[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(order))[: len(starts)]
        bounds = np.column_stack([shared[starts], starts, ends]).astype(np.int64)
        return cls(ordered, Groups(np.ascontiguousarray(bounds), ordered.ps_type, order))


class ScheduleSearch:
    """Cheapest schedules on a cluster whose free capacity and prices change.

    Parameters
    ----------
    instance : BatchschedInstance
        The cluster (its jobs do not matter).
    slots : int
        Slots 1 .. slots that schedules may use.
    most_workers : int
        Most workers that any job may use.
    """

    def __init__(self, instance: BatchschedInstance, slots: int, most_workers: int) -> None:
        self.instance = instance
        self.slots = slots
        self.capacity: Floats = instance.server_capacity
        self._kinds = kinds_of(instance)
        levels, types = num_levels(slots), len(self._kinds.worker)
        check_memory(
            f"a search over {slots} slots",
            8.0 * slots * self.capacity.size * (levels + TABLES_BESIDE),
        )
        counts = max(1, min(most_workers, instance.most_workers))
        self._costs = np.zeros((types, counts, slots)), np.zeros((types, counts, slots))
        self.reset()

    def reset(self, residual: Floats | None = None, prices: Floats | None = None) -> None:
        """Begin with given free capacities and prices, shape (slots, servers, resources).

        Default: the empty cluster at price 0.
        """
        shape = (self.slots, *self.capacity.shape)
        left = np.broadcast_to(self.capacity, shape) if residual is None else residual
        full = loosened(left, self.capacity)
        given = np.zeros(shape) if prices is None else prices
        self.prices: Floats = np.array(given, dtype=float, order="C")  # as kernels are compiled
        self.state = State(
            build_minima(np.ascontiguousarray(full), num_levels(self.slots)),
            np.zeros((self.slots + 1, *self.capacity.shape)),
            *self._costs,
        )
        np.cumsum(self.prices, axis=0, out=self.state.prefix[1:])
        self._stale: tuple[int, int] | None = (0, self.slots - 1)

    @property
    def residual(self) -> Floats:
        """Free capacity, `loosened`, shape (slots, servers, resources); not to be changed."""
        table: Floats = self.state.minima[0]
        return table

    def index(self, job: BatchschedJob, table: Modes | None = None) -> ModeIndex:
        """Modes of a job in the form that `cheapest` takes."""
        return ModeIndex.of(modes(self.instance, job) if table is None else table)

    def cheapest(
        self,
        index: ModeIndex,
        *,
        rate: float = 0.0,
        limit: float | None = None,
        earliest: int = 1,
        last: int | None = None,
        greedy: bool = False,
    ) -> Schedule | None:
        """Cheapest schedule of a job at the present prices that fits what is free.

        Parameters
        ----------
        index : ModeIndex
            The job's modes.
        rate : float
            Cost per slot of completion (a weight; 0 to minimise the price alone).
        limit : float, optional
            Only schedules that cost less count.
        earliest, last : int
            First and last slot that may be used.
        greedy : bool
            Place by Algorithm 4 as printed (with its repairs) instead of exactly.

        Returns
        -------
        Schedule or None
            None if nothing below the limit fits. Ties: earlier completion, then fewer workers.
        """
        stop = self.slots if last is None else min(last, self.slots)
        self._renew()
        cost, mode, start, host, on_host = cheapest_schedule(
            float(rate), NO_LIMIT if limit is None else float(limit), earliest - 1, stop, greedy,
            tuple(index.groups), tuple(self._kinds), tuple(self.state),
        )  # fmt: skip
        if mode < 0:
            return None
        table = index.modes
        p = int(table.ps_type[mode]) if self.instance.has_ps else -1
        placed = self._placed(table, mode, start, host, on_host, greedy)
        m, length = int(table.worker_type[mode]), int(table.duration[mode])
        return Schedule(start + 1, length, m, p, *placed, float(cost))

    def _placed(
        self, table: Modes, mode: int, start: int, host: int, on_host: int, greedy: bool
    ) -> tuple[Ints, Ints]:
        """Workers and PSs by server of what the kernel chose."""
        m, count, has_ps = table.worker_type[mode], int(table.workers[mode]), self.instance.has_ps
        workers, ps = np.zeros((2, len(self.capacity)), dtype=np.int64)
        if table.one_server[mode]:
            workers[host], ps[host] = count, int(has_ps)
            return workers, ps
        window = empty_window(*self.capacity.shape)
        fill_window(start, int(table.duration[mode]), self.state, self._kinds.worker[m], window)
        order = order_up_to_ties(window.cost)
        if has_ps:
            ps[host] = num_ps(count - on_host, float(self._kinds.ratio[m, table.ps_type[mode]]))
        return fill(count, host, on_host, greedy, window.room, order), ps

    def use(self, schedule: Schedule) -> Floats:
        """Resources that a schedule takes in each slot, shape (servers, resources)."""
        used: Floats = np.outer(schedule.workers, self._kinds.worker[schedule.worker_type])
        if schedule.ps_type >= 0:
            used = used + np.outer(schedule.ps, self._kinds.server[schedule.ps_type])
        return used

    def fits(self, schedule: Schedule) -> bool:
        """Whether a schedule fits what is free."""
        window = self.residual[schedule.start - 1 : schedule.last].min(axis=0)
        return bool(np.all(self.use(schedule) <= window))

    def book(self, schedule: Schedule, sign: float = 1.0) -> None:
        """Take a schedule's resources from what is free (``sign=-1`` gives them back)."""
        used = self.use(schedule)
        first, last = schedule.start - 1, schedule.last - 1
        servers = np.flatnonzero(used.any(axis=1))
        for h in servers:
            self.state.minima[0, first : last + 1, h] -= sign * used[h]
            update_minima(self.state.minima, int(h), first, last)
        self._touch(first, last)

    def set_prices(self, first: int, last: int, servers: Ints, prices: Floats) -> None:
        """Set unit prices on some servers in slots `first` .. `last`.

        Parameters
        ----------
        first, last : int
            Slots, both inclusive.
        servers : ndarray of int
            Positions of the servers.
        prices : ndarray, shape (slots, servers given, resources)
            The prices.
        """
        self.prices[first - 1 : last, servers] = prices
        for h in servers:
            self.state.prefix[1:, h] = np.cumsum(self.prices[:, h], axis=0)
        self._touch(first - 1, last - 1)

    def _touch(self, first: int, last: int) -> None:
        """Note where prices or what is free changed; slot costs are renewed when next needed."""
        if last >= first:
            known = self._stale or (first, last)
            self._stale = min(first, known[0]), max(last, known[1])

    def _renew(self) -> None:
        if self._stale is not None:
            worker = self._kinds.worker
            renew_slot_costs(*self._costs, self.residual, self.prices, worker, *self._stale)
            self._stale = None

    def assignment(self, schedule: Schedule) -> Assignment:
        """Row of the solution file for a schedule."""
        return BatchschedSolution.write_row(self.instance, schedule.row())


def kinds_of(instance: BatchschedInstance) -> Kinds:
    """Types of workers and PSs as the kernels take them."""
    ratio = instance.ps_ratio
    if not instance.has_ps:
        ratio = np.zeros((len(instance.worker_types), 1))
    worker, server = (np.ascontiguousarray(d) for d in (instance.worker_demand, instance.ps_demand))
    return Kinds(worker, server, np.ascontiguousarray(ratio), instance.has_ps)


def most_workers(jobs: Any) -> int:
    """Most workers any of the jobs may use; 1 without jobs."""
    return max((job.chunks for job in jobs), default=1)
