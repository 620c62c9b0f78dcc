"""The ways in which a job of a non-preemptive family can run: all but its start and placement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
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
PREEMPTIVE = "preemptive"
"""The formulation, or its token, in which slots need not touch and placements may change."""


def in_pieces(formulation: str) -> bool:
    """Whether jobs of a formulation may pause, move and resize."""
    return PREEMPTIVE in formulation.split(",")


class ModeColumns(NamedTuple):
    """The arrays of `Modes`, as compiled kernels take them."""

    worker_type: Ints
    ps_type: Ints
    one_server: Ints
    workers: Ints
    duration: Ints


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
    def columns(self) -> ModeColumns:
        """The arrays."""
        return ModeColumns(
            self.worker_type, self.ps_type, self.one_server, self.workers, self.duration
        )

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


def ps_ratios(worker_bandwidth: Floats, ps_bandwidth: Floats, most: int) -> Floats:
    """Bandwidth of a worker over that of a PS, shape (worker types, PS types); see `same_ceilings`.

    `most` is the most workers that any job can have.
    """
    rows = [[same_ceilings(b, big_b, most) for big_b in ps_bandwidth] for b in worker_bandwidth]
    return np.array(rows).reshape(len(worker_bandwidth), len(ps_bandwidth))


class Hosting:
    """Fewest PSs of the best host of N workers, by types and N.

    Takes capacities (servers, resources), demands (types, resources), and the bandwidth of a worker
    over that of a PS (worker types, PS types), as `ps_for` takes it.
    """

    def __init__(self, capacity: Floats, worker: Floats, ps: Floats, ratio: Floats) -> None:
        self._ratio = ratio
        whole = WholeUnits.of(np.unique(capacity, axis=0), worker, ps)
        self._free, self._worker, self._ps = whole.tables
        self._table = np.zeros((len(worker), len(ps), 2, 0), dtype=np.int64)

    def fewest_ps(self, most: int) -> Ints:
        """Fewest PSs of N = 1 .. `most` workers; `NEVER` where no server holds them.

        Shape (worker types, PS types, q in 0..1, most): with q = 1 the host holds all workers,
        otherwise N - 1 at most.
        """
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
