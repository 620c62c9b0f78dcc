"""How many workers the PSs of one server can serve while nothing else runs.

The server holds the PSs together with the workers beside them, so that a mode whose PSs no server
holds is none, and the others need at least the PSs of the best server. Counted exactly: a worker
and a PS that only rounding lets into a server are no mode.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import Whole, WholeUnits, times
from hindsched.instances.modes import NEVER, ps_for


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
