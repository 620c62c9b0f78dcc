"""The ways in which a job of batchsched and astraea can run: all but its start and placement.

The exact programs and the pricing oracles share them, the brute force of the tests does not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import Instance, cluster_property
from hindsched.instances.decimals import (
    LARGEST_INTEGER,
    NEAR,
    Whole,
    WholeUnits,
    how_many_fit,
    near_whole,
    same_ceilings,
    times,
)

NEVER = np.iinfo(np.int32).max
"""A duration, or a number of PSs, that stands for all larger ones."""
LONGEST = Fraction(10**300)
"""Slots of a mini-batch that stand for all longer ones: floats go not much further."""
PREEMPTIVE = "preemptive"
"""The formulation, or its token, in which slots need not touch and placements may change."""


def in_pieces(formulation: str) -> bool:
    """Whether jobs of a formulation may pause, move and resize."""
    return PREEMPTIVE in formulation.split(",")


@dataclass(frozen=True)
class Modes:
    """Modes of a job, in the order that breaks ties: worker type, q = 1 first, PS type, workers."""

    worker_type: Ints  # positions of the types, each column (num_modes,)
    ps_type: Ints  # 0 for Ring-AllReduce
    one_server: Ints  # q: 1 if everything stands on one server
    workers: Ints  # N
    duration: Ints  # the least L with ``L N rho >= E D K``

    @classmethod
    def of(cls, *columns: Ints) -> Modes:
        """Modes from arrays of any layout."""
        return cls(*(np.ascontiguousarray(column) for column in columns))

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """The arrays, as compiled kernels take them."""
        return self.worker_type, self.ps_type, self.one_server, self.workers, self.duration

    def take(self, which: Any) -> Modes:
        """Choose modes by a mask or by positions."""
        return Modes(*(column[which] for column in self.columns))

    def tuples(self) -> list[tuple[int, int, int, int, int]]:
        """Modes as (worker type, PS type, q, workers, duration); not to be changed."""
        return self._tuples

    @cached_property
    def _tuples(self) -> list[tuple[int, int, int, int, int]]:
        return list(zip(*(column.tolist() for column in self.columns), strict=True))


def units(capacity: Floats, demand: Floats) -> Ints:
    """How many of each type every empty server holds, exactly, shape (servers, types)."""
    columns = [how_many_fit(capacity, amounts, NEVER) for amounts in demand]
    return np.stack(columns, axis=1) if columns else np.zeros((len(capacity), 0), dtype=np.int64)


def ps_for(elsewhere: Any, ratio: Any) -> Ints:
    """PSs of one host whose bandwidth covers the workers elsewhere, at least 1; see `ps_ratios`."""
    found: Ints = np.maximum(1, np.ceil(elsewhere * ratio - NEAR)).astype(np.int64)
    return found


class Hosting:
    """Fewest PSs of the best host of N workers, by types and N.

    Takes capacities (servers, resources), demands (types, resources), and the bandwidth of a worker
    over that of a PS (worker types, PS types), as `ps_for` takes it.
    """

    def __init__(self, capacity: Floats, worker: Floats, ps: Floats, ratio: Floats) -> None:
        self._ratio = ratio
        whole = WholeUnits.of(np.unique(capacity, axis=0), worker, ps)
        self._free, self._worker, self._ps = whole.tables
        self._table = np.zeros((*ratio.shape, 2, 0), dtype=np.int64)

    def fewest_ps(self, most: int) -> Ints:
        """Fewest PSs of N = 1 .. `most` workers; `NEVER` where no server holds them.

        Shape (worker types, PS types, q in 0..1, most): with q = 1 the host holds all workers,
        otherwise N - 1 at most. Without PS types 0, as if of one.
        """
        if not len(self._ps):
            return np.zeros((len(self._ratio), 1, 2, most), dtype=np.int64)
        if most > self._table.shape[3]:
            self._table = np.full((*self._ratio.shape, 2, most), NEVER, dtype=np.int64)
            for m, p in np.ndindex(*self._ratio.shape):
                self._fill(m, p, self._table[m, p])
        return self._table[..., :most]

    def _fill(self, m: int, p: int, table: Ints) -> None:
        counts = np.arange(1, table.shape[1] + 1)
        needed = ps_for(counts, self._ratio[m, p])
        places = _how_many(self._free, self._ps[p], int(needed[-1]))
        units = np.arange(1, int(places.max(initial=0)) + 1)
        if not units.size:
            return
        left = self._free[:, None, :] - times(units[:, None], self._ps[p])
        beside = _how_many(left, self._worker[m], len(counts))
        holds = units <= places[:, None]
        table[1, : int(np.where(holds, beside, 0)[:, 0].max())] = 1
        elsewhere = np.searchsorted(needed, units, side="right")
        served = np.where(holds & (elsewhere > 0), beside + elsewhere, 0).max(axis=0)
        fewest = np.searchsorted(np.maximum.accumulate(served), counts)
        table[0] = np.where(fewest < len(units), fewest + 1, NEVER)


def _how_many(free: Whole, demand: Whole, most: int) -> Ints:
    """How many units of a demand (R,) fit into what is free (..., R), in whole numbers."""
    needed = np.flatnonzero(demand > 0)
    if not needed.size:
        return np.full(free.shape[:-1], most, dtype=np.int64)
    fits = (free[..., needed] // demand[needed]).min(axis=-1)
    return np.clip(fits, 0, most).astype(np.int64)


class MinibatchTime(NamedTuple):
    """Slots that one of N workers needs for a mini-batch: ``own + shared (N - 1) / N``."""

    own: Fraction
    shared: Fraction = Fraction()

    def of(self, workers: int) -> Fraction:
        """The time with so many workers."""
        return self.own + self.shared * Fraction(workers - 1, workers)


def least_durations(
    work: int, times: Floats, exact: Callable[[int, int, int], MinibatchTime], longest: int
) -> Ints:
    """Least L with ``L N >= W v`` for work W and N workers of v slots a mini-batch, exactly.

    `times` holds v, shape (worker types, PS types, 2, most workers), N from 1; `exact` says it by
    the first three positions. `longest` stands for all longer durations.
    """
    with np.errstate(over="ignore"):
        slots = work * times / np.arange(1, times.shape[-1] + 1)
    near = near_whole(slots) & (slots <= longest)
    length = np.clip(np.ceil(slots), 1, longest).astype(np.int64)
    for m, p, q in np.argwhere(near.any(axis=-1)).tolist() if near.any() else ():
        place, (own, shared) = (m, p, q), exact(m, p, q)
        unit = math.lcm(own.denominator, shared.denominator)
        at = np.flatnonzero(near[place])
        size = max(work * int((own + shared) * unit), unit * len(slots[place])) * len(slots[place])
        n = (at + 1).astype(np.int64 if size * len(slots[place]) < LARGEST_INTEGER else object)
        spent = work * (int(own * unit) * n + int(shared * unit) * (n - 1))
        length[(*place, at)] = np.clip((-(-spent // (unit * n * n))).astype(np.int64), 1, longest)
    return length


class WindowInstance(Instance):
    """What the families whose jobs run in one window derive alike of servers and types.

    A family gives what stands first, and `exact_time`. Units are whole workers and PSs.
    """

    server_capacity: ClassVar[cluster_property[Floats]]  # C, (servers, resources)
    worker_demand: ClassVar[cluster_property[Floats]]  # of a unit, (types, resources)
    ps_demand: ClassVar[cluster_property[Floats]]
    worker_bandwidth: ClassVar[cluster_property[Floats]]  # Mbps, (types,)
    ps_bandwidth: ClassVar[cluster_property[Floats]]

    @property
    @abstractmethod
    def capacity_names(self) -> tuple[str, ...]:
        """Names of the resources."""

    @abstractmethod
    def exact_time(
        self, job: Any, worker_type: int, ps_type: int, one_server: bool
    ) -> MinibatchTime:
        """Slots that one worker needs for a mini-batch, exactly."""

    @property
    def has_ps(self) -> bool:
        """Whether jobs use parameter servers."""
        return True

    @cluster_property
    def worker_room(self) -> Ints:
        """How many workers of a type an empty server holds, shape (servers, worker types)."""
        return units(self.server_capacity, self.worker_demand)

    @cluster_property
    def most_workers(self) -> int:
        """Most workers of one type that the empty cluster holds; at least 1."""
        return max(1, int(self.worker_room.sum(axis=0).max()))

    @cluster_property
    def ps_ratio(self) -> Floats:
        """Bandwidth of a worker over that of a PS, (worker types, PS types), as `ps_for` takes it.

        0 without PSs, as if of one type.
        """
        if not self.has_ps:
            return np.zeros((len(self.worker_demand), 1))
        rows = [
            [same_ceilings(b, big_b, self.most_workers) for big_b in self.ps_bandwidth]
            for b in self.worker_bandwidth
        ]
        return np.array(rows)

    @cluster_property
    def ps_replacements(self) -> tuple[tuple[int, int], ...]:
        """Pairs (better, worse) of PS types: no larger demand, no less bandwidth; first if equal.

        The better one replaces the worse in any schedule, unless its updates take longer.
        """

        def replaces(better: int, p: int) -> bool:
            less = self.ps_demand[better] <= self.ps_demand[p]
            wide = self.ps_bandwidth[better] >= self.ps_bandwidth[p]
            same = bool((self.ps_demand[better] == self.ps_demand[p]).all())
            return bool(less.all() and wide) and (not same or better < p)

        pairs = np.ndindex(len(self.ps_demand), len(self.ps_demand))
        return tuple((better, p) for p, better in pairs if better != p and replaces(better, p))

    @cluster_property
    def hosting(self) -> Hosting:
        """Which numbers of workers some server's PSs can serve."""
        return Hosting(self.server_capacity, self.worker_demand, self.ps_demand, self.ps_ratio)

    @cluster_property
    def whole_units(self) -> WholeUnits:
        """Tables `server_capacity`, `worker_demand` and `ps_demand` as whole numbers."""
        return WholeUnits.of(self.server_capacity, self.worker_demand, self.ps_demand)

    @cluster_property
    def usable_capacity(self) -> Floats:
        """Most of C that any units can take, shape (servers, resources).

        Whole workers and PSs take a multiple of the largest amount that every demand for the
        resource is a multiple of: of 3 GPUs workers of 2 use 2.
        """
        capacity, workers, ps = self.whole_units.tables
        step = np.gcd.reduce(np.concatenate([workers, ps]))
        idle = capacity % np.maximum(step, 1)
        usable = self.server_capacity.copy()
        for h, r in np.argwhere(idle):
            usable[h, r] = self.whole_units.amount(capacity[h, r] - idle[h, r], r)
        return usable


def most_workers(instance: WindowInstance, job: Any) -> int:
    """Most workers a job can have: its chunks, as far as one type's workers go; at least 1."""
    return min(int(job.chunks), instance.most_workers)


def minibatch_times(instance: WindowInstance, job: Any) -> Floats:
    """Slots per mini-batch, shape (worker types, PS types or 1, q in 0..1, most workers)."""
    types = instance.ps_ratio.shape
    exact = [instance.exact_time(job, m, p, bool(q)) for m, p, q in np.ndindex(*types, 2)]
    rounded = [[float(min(part, LONGEST)) for part in time] for time in exact]
    own, shared = np.array(rounded).T.reshape(2, *types, 2, 1)
    counts = np.arange(1, most_workers(instance, job) + 1)
    found: Floats = own + shared * ((counts - 1) / counts)
    return found


def durations(instance: WindowInstance, job: Any) -> Ints:
    """L of every combination, exactly, shape as `minibatch_times`; from 1 to `NEVER`."""

    def exact(m: int, p: int, q: int) -> MinibatchTime:
        return instance.exact_time(job, m, p, bool(q))

    return least_durations(job.total_minibatches, minibatch_times(instance, job), exact, NEVER)


def modes(instance: WindowInstance, job: Any, *, every_count: bool = False) -> Modes:
    """Modes worth considering for a job.

    Left out, because a kept mode is never worse at any non-negative prices and any residual:

    - N workers when fewer workers of the same (worker type, PS type, q) take the same duration,
      and a PS type when another takes no longer, needs no more and has no less bandwidth (unless
      `every_count`: in a slot what counts is the pace);
    - without PSs one worker over several servers;
    - workers beyond what the empty cluster (for q = 1: any one server) holds;
    - those whose PSs no server holds, together with the workers that must stand beside them.
    """
    length, room = durations(instance, job), instance.worker_room
    if not instance.has_ps:
        length[:, :, 0, 0] = NEVER
    counts = np.arange(1, length.shape[3] + 1)
    keep = (length < NEVER) & (instance.hosting.fewest_ps(len(counts)) < NEVER)
    keep[:, :, 0, :] &= (counts <= room.sum(axis=0)[:, None])[:, None, :]
    keep[:, :, 1, :] &= (counts <= room.max(axis=0)[:, None])[:, None, :]
    if not every_count:
        least = np.minimum.accumulate(length, axis=3)
        keep[..., 1:] &= length[..., 1:] < least[..., :-1]
        for better, p in instance.ps_replacements:
            keep[:, p] &= length[:, better] > length[:, p]
    m, not_q, ps, n = np.nonzero(keep[:, :, ::-1].transpose(0, 2, 1, 3))
    return Modes.of(m, ps, 1 - not_q, n + 1, length[m, ps, 1 - not_q, n])


def fewest_ps(instance: WindowInstance, table: Modes) -> Ints:
    """PSs that the best host of each mode needs while nothing else runs."""
    every = instance.hosting.fewest_ps(int(table.workers.max(initial=0)))
    found: Ints = every[table.worker_type, table.ps_type, table.one_server, table.workers - 1]
    return found


def slot_modes(instance: WindowInstance, job: Any) -> tuple[Modes, list[Fraction]]:
    """What a job may do in one slot, as modes of one slot, and the mini-batches of each."""
    table = modes(instance, job, every_count=True)
    rates = [
        count / instance.exact_time(job, m, p, bool(q)).of(count)
        for m, p, q, count, _ in table.tuples()
    ]
    return replace(table, duration=np.ones_like(table.duration)), rates
