"""Row layout ``preemptive``: the blocks without contiguity.

Rows and capacities are those of the layout ``cluster``. A job may use any slots, in each of them
any placement that the rules of a slot allow, also another one than before: what a rival may do that
pauses, moves and resizes: the formulation ``preemptive``, which only this layout bounds. Every
schedule in a window is one of these, so that the bound holds for the family's own problem too,
where the other layouts' bounds are better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import NEVER, PREEMPTIVE, in_pieces, ps_for
from hindsched.models.windows.sets import WindowCluster
from hindsched.solvers.families.windows.oracle import EndToEnd, MergedOracle
from hindsched.solvers.kernels.windows.preemptive_slots import all_cheapest_slots, cheapest_slots
from hindsched.solvers.oracles.base import BlockOracle, Response

LAYOUT = PREEMPTIVE
ROWS = ("cluster", "servers", LAYOUT)
"""The layouts of both families."""
Way = tuple[int, int, Floats, Ints, Ints]
"""Worker type, PS type; rates, numbers of workers and fewest PSs."""


def first_rows(formulation: str) -> str:
    """Layout in which a formulation is bounded: windows do not bound jobs in pieces."""
    return LAYOUT if in_pieces(formulation) else "cluster"


def branched_rows(formulation: str) -> tuple[str, ...]:
    """Layouts whose blocks can be restricted, for ``tree_rows``."""
    return () if in_pieces(formulation) else ("servers",)


def slot_ways(cluster: WindowCluster, ways: Iterable[Way]) -> tuple[Floats, Floats]:
    """Rates of work and demands (ways, resources) of a slot, on the merged server."""
    rates, demands = list[float](), list[Floats]()
    for m, p, rate, count, fewest in ways:
        for speed, workers, servers in ways_in_line(rate, count, fewest):
            demand = workers * cluster.worker_demand[m]
            rates.append(speed)
            demands.append(demand + servers * cluster.ps_demand[p] if cluster.has_ps else demand)
    return ordered(np.array(rates), np.array(demands).reshape(-1, cluster.server_capacity.shape[1]))


class PiecesOracle(MergedOracle):
    """Best responses of jobs whose slots need not touch."""

    layout = LAYOUT

    def prepare_pieces(self, ways: Sequence[tuple[Floats, Floats]], instead: Floats) -> None:
        """Lay the jobs' ways end to end; `instead` is the cost of whatever a job may do instead.

        Slots behind the priced ones are used as far as the costs of ending go.
        """
        self.exact = True
        rate, table, row = self._ends
        self._free = table.shape[1] - 1 - self.slots
        self.ways = EndToEnd.of(ways, self.rows.size // self.slots)
        self._work = np.array([float(job.total_minibatches) for job in self.instance.jobs])
        self._by_end = rate[:, None] * table[row][:, 1:]
        self._instead = instead

    def of_blocks(self, blocks: slice) -> BlockOracle:
        """The same rows with some of the jobs."""
        part = copy(self)
        part.instance = self.instance.with_jobs(self.instance.jobs[blocks])
        kept = np.arange(self.num_blocks)[blocks]
        part.ways, part._first = self.ways.some(kept), self._first[kept]
        part._work, part._by_end = self._work[kept], self._by_end[kept]
        part._instead = self._instead[kept]
        return part

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest slots of a job at full capacity; `residual` is not known here."""
        if residual is not None:
            raise TypeError("slots that fit need the layout servers")
        priced = self._by_slot(prices)
        used = np.zeros_like(priced)
        cost, end = cheapest_slots(
            int(self._first[block]) - 1, float(self._work[block]), *self.ways.of_job(block),
            self._by_end[block], priced, float(self._instead[block]), used,
        )  # fmt: skip
        if end < 0 and np.isinf(cost):
            return None
        objective = cost if end < 0 else float(self._by_end[block, end])
        used = used[: self.slots].T.ravel()
        rows = np.flatnonzero(used)
        plan = None if end < 0 else (end,)
        return Response(self._sign * cost, self._sign * objective, rows, used[rows], plan)

    def _by_slot(self, prices: Floats) -> Floats:
        """Prices by slot and resource, and slots that are free."""
        by_slot = prices.reshape(-1, self.slots).T
        return np.ascontiguousarray(np.pad(by_slot, ((0, self._free), (0, 0))))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        found, ways = np.zeros(self.num_blocks), self.ways
        priced = self._by_slot(prices)
        used = np.zeros_like(priced)
        all_cheapest_slots(
            ways.first, self._first - 1, self._work, ways.number, ways.demand, self._by_end, priced,
            self._instead, found, used,
        )  # fmt: skip
        return self._sign * found, used[: self.slots].T.ravel()


def ordered(rate: Floats, demand: Floats) -> tuple[Floats, Floats]:
    """Ways by rising rate, without those that another one is as fast as and no larger than."""
    order = np.lexsort((demand.sum(axis=1), -rate))
    kept: list[int] = []
    for k in order.tolist():
        if not any((demand[other] <= demand[k]).all() for other in kept):
            kept.append(k)
    kept.reverse()
    return np.ascontiguousarray(rate[kept]), np.ascontiguousarray(demand[kept])


def fewest_ps(
    most: int, together: bool, workers: Ints, ps: Ints, ratio: float
) -> tuple[Ints, Ints]:
    """Numbers of workers that some host serves, and the fewest PSs that it needs.

    Parameters
    ----------
    most : int
        Most workers.
    together : bool
        All on the host; otherwise at least one elsewhere.
    workers, ps : ndarray of int, shape (servers,)
        How many of each an empty server holds.
    ratio : float
        Bandwidth of a worker over that of a PS, as `ps_for` takes it.
    """
    count = np.arange(1, most + 1)
    hosted = np.minimum(count - (0 if together else 1), workers[:, None])
    needed = ps_for(count - hosted, ratio)
    serves = needed <= ps[:, None]
    if together:
        serves &= hosted == count
    fewest = np.where(serves, needed, NEVER).min(axis=0, initial=NEVER)
    return count[fewest < NEVER], fewest[fewest < NEVER]


def ways_in_line(rate: Floats, count: Ints, units: Ints) -> Iterator[tuple[float, int, int]]:
    """Ways (rate, workers, PSs) of one pair of types that no mix of others beats at any prices.

    Parameters
    ----------
    rate : ndarray
        Work in a slot.
    count : ndarray of int
        Of so many workers, ascending.
    units : ndarray of int
        PSs that they need.

    Notes
    -----
    Where the rate is proportional to the workers, only corners of the PSs' lower envelope over the
    workers are left. Otherwise all are: of many about one in each factor of 3/2 is kept, with rates
    raised until the lines between them are above all others (a relaxation).
    """
    if not len(rate):
        return
    per_worker = rate / count
    if np.allclose(per_worker, per_worker[0], rtol=1e-12):
        for at in _corners(count, units):
            yield float(rate[at]), int(count[at]), int(units[at])
        return
    steps = np.unique(np.floor(np.log(count) / np.log(1.5)), return_index=True)[1]
    kept = np.unique([*steps, len(count) - 1])
    line = np.interp(count, [0, *count[kept]], [0.0, *rate[kept]])
    factor = max(1.0, float((rate / line).max()))
    for at in kept.tolist():
        yield factor * float(rate[at]), int(count[at]), int(units[at])


def _corners(count: Ints, units: Ints) -> list[int]:
    """Positions of the corners of the lower envelope of (workers, PSs) from (0, 0)."""
    hull = [(0, 0, -1)]
    for at, (n, u) in enumerate(zip(count.tolist(), units.tolist(), strict=True)):
        while len(hull) > 1:
            (n0, u0, _), (n1, u1, _) = hull[-2:]
            if (u1 - u0) * (n - n0) < (u - u0) * (n1 - n0):
                break
            hull.pop()
        hull.append((n, u, at))
    return [at for _, _, at in hull[1:]]
