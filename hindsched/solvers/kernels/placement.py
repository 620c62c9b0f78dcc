"""Workers and the PSs that serve them on servers, in one window of slots.

Once the window's prices and what is free in all of its slots are known, time is out of the problem:
(13) and (21) of batchsched, and every other placement of identical workers around one host. One PS
host is no loss of generality; given the host and the g workers on it the rest is the cheapest N - g
workers elsewhere, which a greedy choice finds, also where each server takes at least and at most so
many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

NEAR = 1e-9
"""No multiple of a `same_ceilings` quotient lies as close above a whole number."""
NOTHING: int = np.int64(-1)  # type: ignore[assignment]
"""No server; a kernel that is handed a plain number would be compiled for it alone."""


class Kinds(NamedTuple):
    """Types of workers and of PSs."""

    worker: Floats  # demands of a worker, (types, resources)
    server: Floats  # demands of a PS, (types, resources)
    # bandwidth of a worker over that of a PS, as `same_ceilings` has it, (worker types, PS types)
    ratio: Floats
    has_ps: bool  # whether workers need parameter servers


@njit(cache=True)
def covering_ps(elsewhere: int, ratio: float) -> int:
    """PSs whose bandwidth covers the workers elsewhere; at least one."""
    return max(1, int(np.ceil(elsewhere * ratio - NEAR)))


@njit(cache=True)
def fits_together(workers: int, ps: int, worker: Floats, server: Floats, free: Floats) -> bool:
    """Whether workers and PSs fit into what is free, all of shape (resources,)."""
    for r in range(free.shape[0]):
        need = workers * worker[r] + ps * server[r]
        if need > free[r]:
            return False
    return True


@njit(cache=True)
def room_for(residual: Floats, demand: Floats) -> int:
    """How many units of `demand` fit into a `loosened` `residual`, both of shape (resources,)."""
    most = 1 << 30
    for r in range(demand.shape[0]):
        if demand[r] > 0:
            most = min(most, int(np.floor(residual[r] / demand[r])))
    return max(0, most)


UNLIMITED: int = np.int64(2**31 - 1)  # type: ignore[assignment]


class Range(NamedTuple):
    """Least and most units, by server, by slot, or by both."""

    low: Ints
    high: Ints


def no_limits(*shape: int) -> Range:
    """A range that limits nothing."""
    return Range(np.zeros(shape, dtype=np.int64), np.full(shape, UNLIMITED, dtype=np.int64))


@njit(cache=True, nogil=True)
def limited_prefix(
    skipped: int, low: Ints, most: Ints, price: Floats, order: Ints, cost: Floats
) -> None:
    """Fill ``cost[n]`` with the price of the cheapest `n` units within the limits, or inf.

    Each server takes `low` to `most` units; `order` has them from cheap to dear; `skipped` takes no
    part (-1: all do).
    """
    cost[:] = np.inf
    forced = 0
    total = 0.0
    for h in range(low.shape[0]):
        if h != skipped:
            if low[h] > most[h]:
                return
            forced += low[h]
            total += low[h] * price[h]
    if forced >= cost.shape[0]:
        return
    cost[forced] = total
    n = forced
    for h in order:
        if h == skipped:
            continue
        for _ in range(most[h] - low[h]):
            n += 1
            if n == cost.shape[0]:
                return
            total += price[h]
            cost[n] = total


@njit(cache=True, nogil=True)
def fill_limited(
    skipped: int, low: Ints, most: Ints, order: Ints, wanted: int, placed: Ints
) -> None:
    """Put the cheapest `wanted` units within the limits into `placed`; see `limited_prefix`."""
    for h in range(low.shape[0]):
        if h != skipped:
            placed[h] = low[h]
            wanted -= low[h]
    for h in order:
        if h != skipped:
            units = min(wanted, most[h] - low[h])
            placed[h] += units
            wanted -= units
