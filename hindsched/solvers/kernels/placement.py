"""Workers and the PSs that serve them on servers, in one window of slots.

Once the window's prices and what is free in all of its slots are known, time is out of the
problem: (13) and (21) of batchsched, and every other placement of identical workers around one
host. One PS host is no loss of generality; given the host and the g workers on it the rest is
the cheapest N - g workers elsewhere, which a greedy choice finds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats

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
def num_ps(elsewhere: int, ratio: float) -> int:
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
