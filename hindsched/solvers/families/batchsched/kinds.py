"""Servers of one kind as one: a smaller cluster on which schedules are found much sooner.

A worker takes a share of a kind's servers, and nothing is said of which server it stands on. The
share is one over the workers that one such server holds, as if every server were of one worker
type; a little less, since workers of other types go into what these leave.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.kernels.batchsched.window_plan import Jobs

SERVER = 2.0**36
"""Units of a server: sums of whole ones are exact."""
NEVER = 1e18
"""Units of what does not fit on an empty server."""
WHOLE = 0.7
"""Weight of one over the workers that a server holds; the rest is that of a worker's share of the
resource of which it takes most."""


def by_kind(jobs: Jobs, capacity: Floats, worth: Floats) -> tuple[Floats, Jobs]:
    """The cluster of kinds of servers, one resource each, and the jobs as it sees them.

    Parameters
    ----------
    jobs : Jobs
        On the real servers.
    capacity : ndarray, shape (servers, resources)
        Of the real servers.
    worth : ndarray, shape (resources,)
        What a unit is worth.
    """
    kinds, first, number = np.unique(capacity, axis=0, return_index=True, return_counts=True)
    worker, ps = jobs.worker[first], jobs.ps[first]
    held, whole = _held(kinds, worker), (kinds @ worth)[:, None]
    alone = np.maximum(worker @ worth, 1e-300)
    waste = np.divide(whole, held * alone, out=np.ones(held.shape), where=held > 0) - 1.0
    units = _units(kinds, worker)
    return (number[:, None] * SERVER).astype(np.float64), jobs._replace(
        worker=units, share=1.0 / units, ps=_units(kinds, ps), loss=np.maximum(waste, 0.0)
    )


def _held(kinds: Floats, demand: Floats) -> Floats:
    """How many of each type an empty server of each kind holds."""
    room = np.full(demand.shape, np.inf)
    np.divide(kinds[:, None] + 0.5, demand, out=room, where=demand > 0)
    return np.floor(np.minimum(room.min(axis=2), 1e6))


def _units(kinds: Floats, demand: Floats) -> Floats:
    """What one of each type takes of each kind's servers."""
    held = _held(kinds, demand)
    share = (demand / np.maximum(kinds[:, None], 1e-300)).max(axis=2)
    taken = WHOLE / np.maximum(held, 1.0) + (1.0 - WHOLE) * share
    units = np.where(held > 0, np.floor(SERVER * np.minimum(taken, 1.0)), NEVER)
    return np.ascontiguousarray(units[:, :, None])
