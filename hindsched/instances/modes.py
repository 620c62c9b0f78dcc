"""The ways in which a job of batchsched and astraea can run: all but its start and placement.

The exact programs and the pricing oracles share them, the brute force of the tests does not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import Instance, cluster_property
from hindsched.instances.decimals import (
    NEAR,
    Whole,
    common_step,
    exact_step,
    exactly,
    how_many_fit,
    how_many_left,
    same_ceilings,
    times,
    whole_units,
)

NEVER = np.iinfo(np.int32).max
"""A duration, or a number of PSs, that stands for all larger ones."""


@dataclass(frozen=True)
class Modes:
    """Modes of a job, in the order that breaks ties: worker type, q = 1 first, PS type, workers."""

    worker_type: Ints  # positions of the types, each column (num_modes,)
    ps_type: Ints  # 0 for Ring-AllReduce
    one_server: Ints  # q: 1 if everything stands on one server
    workers: Ints  # N
    duration: Ints  # the least L with ``L N rho >= E D K``

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
        """Modes as (worker type, PS type, q, workers, duration)."""
        return list(zip(*(column.tolist() for column in self.columns), strict=True))


def units(capacity: Floats, demand: Floats) -> Ints:
    """How many of each type every empty server holds, exactly, shape (servers, types)."""
    columns = [how_many_fit(capacity, amounts, NEVER) for amounts in demand]
    return np.stack(columns, axis=1) if columns else np.zeros((len(capacity), 0), dtype=np.int64)


def ps_for(elsewhere: Any, ratio: Any) -> Ints:
    """PSs of one host that serve the workers elsewhere, at least 1; see `ps_ratio` below."""
    needed: Ints = np.maximum(1, np.ceil(elsewhere * ratio - NEAR)).astype(np.int64)
    return needed


class Hosting:
    """Fewest PSs of the best host of N workers, by types and N.

    Takes capacities (servers, resources), demands (types, resources), and the bandwidth of a worker
    over that of a PS (worker types, PS types), as `ps_for` takes it.
    """

    def __init__(self, capacity: Floats, worker: Floats, ps: Floats, ratio: Floats) -> None:
        self._ratio = ratio
        self._free, self._worker, self._ps = whole_units(np.unique(capacity, axis=0), worker, ps)
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
        places = how_many_left(self._free, self._ps[p], int(needed[-1]))
        units = np.arange(1, int(places.max(initial=0)) + 1)
        if not units.size:
            return
        left = self._free[:, None, :] - times(units[:, None], self._ps[p])
        beside = how_many_left(left, self._worker[m], len(counts))
        holds = units <= places[:, None]
        table[1, : int(np.where(holds, beside, 0)[:, 0].max())] = 1
        elsewhere = np.searchsorted(needed, units, side="right")
        served = np.where(holds & (elsewhere > 0), beside + elsewhere, 0).max(axis=0)
        fewest = np.searchsorted(np.maximum.accumulate(served), counts)
        table[0] = np.where(fewest < len(units), fewest + 1, NEVER)


class WindowInstance(Instance):
    """What the families whose jobs run in one window derive alike of servers and types.

    A family gives what stands first. Units are whole workers and PSs.
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
    def step_slots(self, job: Any) -> tuple[Sequence[float], Sequence[float]]:
        """Slots to train a mini-batch, by worker type, and to update the parameters, by PS type.

        Without PSs the latter are those to reduce a gradient, as if of one type.
        """

    @property
    def has_ps(self) -> bool:
        """Whether jobs use parameter servers."""
        return True

    def exact_time(self, job: Any, m: int, p: int, one_server: bool, workers: int) -> Fraction:
        """``1 / rho``: slots that one of so many workers needs for a mini-batch, exactly.

        Of worker type m and PS type p: it trains, sends unless all stand on `one_server`, and the
        PSs update; on a ring it reduces and sends (N - 1) / N of the gradient.
        """
        train, after = self.step_slots(job)
        sent = 0 if one_server else job.gradient_mb
        far = exact_step(after[p], sent, self.worker_bandwidth[m], self.slot_seconds)
        return exactly(train[m]) + (far if self.has_ps else far * Fraction(workers - 1, workers))

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
        demand, mbps, order = self.ps_demand, self.ps_bandwidth, np.arange(len(self.ps_demand))
        less = (demand[:, None] <= demand).all(axis=2) & (mbps[:, None] >= mbps)
        same = (demand[:, None] == demand).all(axis=2)
        replaces = less & (~same | (order[:, None] < order))
        return tuple((better, p) for better, p in np.argwhere(replaces).tolist())

    @cluster_property
    def hosting(self) -> Hosting:
        """Which numbers of workers some server's PSs can serve."""
        return Hosting(self.server_capacity, self.worker_demand, self.ps_demand, self.ps_ratio)

    @cluster_property
    def whole_units(self) -> tuple[Whole, ...]:
        """Tables `server_capacity`, `worker_demand` and `ps_demand` as whole numbers."""
        return whole_units(self.server_capacity, self.worker_demand, self.ps_demand)

    @cluster_property
    def usable_capacity(self) -> Floats:
        """Most of C that any units can take, shape (servers, resources).

        Whole workers and PSs take a multiple of the largest amount that every demand for the
        resource is a multiple of: of 3 GPUs workers of 2 use 2.
        """
        demands = np.concatenate([self.worker_demand, self.ps_demand])
        steps = [common_step(map(exactly, column)) for column in demands.T.tolist()]
        usable = self.server_capacity.copy()
        for (h, r), amount in np.ndenumerate(self.server_capacity):
            if steps[r]:
                usable[h, r] = exactly(amount) // steps[r] * steps[r]
        return usable


def most_workers(instance: WindowInstance, job: Any) -> int:
    """Most workers a job can have: its chunks, as far as one type's workers go; at least 1."""
    return min(int(job.chunks), instance.most_workers)


def _step_units(instance: WindowInstance, job: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Slots of a mini-batch of N workers as ``fixed + shared (N - 1) / N``, in units of one slot.

    Python's integers by (worker type, PS type, q), and how many units a slot has.
    """
    train_slots, after = ([exactly(slots) for slots in given] for given in instance.step_slots(job))
    bandwidths = instance.worker_bandwidth.tolist()
    sent = [exact_step(0, job.gradient_mb, mbps, instance.slot_seconds) for mbps in bandwidths]
    unit = math.lcm(*(part.denominator for part in (*train_slots, *after, *sent)))
    train, finish, send = (
        np.array([int(part * unit) for part in parts], dtype=object)
        for parts in (train_slots, after, sent)
    )
    far = np.stack([send, 0 * send], axis=1)[:, None, :]
    alone, last = train[:, None, None] + 0 * far, finish[None, :, None] + far
    return (alone + last, 0 * last, unit) if instance.has_ps else (alone, last, unit)


def minibatch_times(instance: WindowInstance, job: Any) -> Floats:
    """Slots per mini-batch, shape (worker types, PS types or 1, q in 0..1, most workers)."""
    fixed, shared, unit = _step_units(instance, job)
    counts = np.arange(1, most_workers(instance, job) + 1)
    alone, far = ((part / unit).astype(float)[..., None] for part in (fixed, shared))
    times: Floats = alone + far * ((counts - 1) / counts)
    return times


def durations(instance: WindowInstance, job: Any) -> Ints:
    """Least L with ``L N rho >= E D K``, exactly, shape as `minibatch_times`; from 1 to `NEVER`."""
    fixed, shared, unit = _step_units(instance, job)
    work, counts = job.total_minibatches, np.arange(1, most_workers(instance, job) + 1)
    if instance.has_ps:
        whole = np.minimum(-(-work * fixed // unit), NEVER * len(counts)).astype(np.int64)
        length = -(-whole[..., None] // counts)  # rounding up twice is rounding up once
    else:
        n = counts.astype(object)
        length = -(-work * (fixed[..., None] * n + shared[..., None] * (n - 1)) // (unit * n * n))
    return np.clip(length, 1, NEVER).astype(np.int64)


def modes(instance: WindowInstance, job: Any) -> Modes:
    """Modes worth considering for a job.

    Left out, because a kept mode is never worse at any non-negative prices and any residual:

    - N workers when fewer workers of the same (worker type, PS type, q) take the same duration,
      and a PS type when another takes no longer, needs no more and has no less bandwidth;
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
    keep[:, :, 1, :] &= (counts <= room.max(axis=0, initial=0)[:, None])[:, None, :]
    least = np.minimum.accumulate(length, axis=3)
    keep[..., 1:] &= length[..., 1:] < least[..., :-1]
    for better, p in instance.ps_replacements:
        keep[:, p] &= length[:, better] > length[:, p]
    m, not_q, ps, n = map(np.ascontiguousarray, np.nonzero(keep[:, :, ::-1].transpose(0, 2, 1, 3)))
    return Modes(m, ps, 1 - not_q, n + 1, length[m, ps, 1 - not_q, n])


def fewest_ps(instance: WindowInstance, table: Modes) -> Ints:
    """PSs that the best host of each mode needs while nothing else runs."""
    every = instance.hosting.fewest_ps(int(table.workers.max(initial=0)))
    needed: Ints = every[table.worker_type, table.ps_type, table.one_server, table.workers - 1]
    return needed
