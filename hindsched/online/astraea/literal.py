"""Algorithms 3-5 of astraea as printed, for the record and as the benchmark's rival.

Every (first slot, number of workers) is tried, server by server, as the printed loops do. Kept as
printed: MINCOSTD takes a host with fewer PSs than (3i) needs, both subroutines hold PSs against the
*worker* quota, and MINCOSTC prices a whole window by its first slot. Repaired, because nothing runs
otherwise: ``t+ = t- + d - 1`` and prices that follow from what is booked (the paper's own example
does both). Quotas in phase 2 are a_w(t), frozen after phase 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.instances.astraea.modes import durations
from hindsched.instances.decimals import NEAR
from hindsched.instances.modes import Modes
from hindsched.online.astraea.paper import Astraea, Origin, TenantRound
from hindsched.online.engines.batching import Offer
from hindsched.solutions.astraea.row import AstraeaRow

Placed = tuple[float, Ints, Ints]
"""Cost, workers and PSs by server."""


@dataclass(frozen=True)
class Window:
    """What Algorithms 4 and 5 are told of a window.

    Parameters
    ----------
    count : int
        D_w, the workers to place.
    workers, ps : ndarray of int, shape (servers,)
        What is free on a server in every slot.
    quota : int
        What is left of the *worker* quota, against which the printed lines hold PSs too.
    prices : ndarray, shape (slots, 2)
        Prices of a worker and of a PS.
    ratio : float
        b_w / b_p, as `same_ceilings` has it.
    """

    count: int
    workers: Ints
    ps: Ints
    quota: int
    prices: Floats
    ratio: float


def min_cost_d(window: Window) -> Placed | None:
    """Algorithm 4, MINCOSTD; None for a cost of infinity."""
    most_here = np.minimum(window.count - 1, window.workers)
    best, fewest = -1, 0
    for s, on_host in enumerate(most_here.tolist()):
        needed = math.ceil((window.count - on_host) * window.ratio - NEAR)
        there = min(needed, int(window.ps[s]), window.quota)
        if there >= 1 and (best < 0 or there < fewest):
            best, fewest = s, there
    if best < 0:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[best], ps[best] = most_here[best], fewest
    left = window.count - int(workers[best])
    for s in np.argsort(window.workers, kind="stable"):
        if s != best:
            workers[s] = min(int(window.workers[s]), left)
            left -= int(workers[s])
    if left > 0:
        return None
    return float((window.prices @ [window.count, fewest]).sum()), workers, ps


def min_cost_c(window: Window) -> Placed | None:
    """Algorithm 5, MINCOSTC: any server that takes all; the first is taken. None for infinity."""
    able = np.flatnonzero((window.workers >= window.count) & (window.ps >= 1))
    if window.quota < 1 or not able.size:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[able[0]], ps[able[0]] = window.count, 1
    return len(window.prices) * float(window.prices[0] @ [window.count, 1]), workers, ps


class LiteralRound(TenantRound):
    """A round in which schedules are found by the printed loops."""

    _frozen: Ints | None = None

    def end_phase(self) -> None:
        """After phase 1: a_w(t) is what all tenants leave unused of their quotas."""
        if self._frozen is None:
            self._frozen = self.unused_workers.sum(axis=1)

    def offer(
        self,
        job: AstraeaJob,
        table: Modes,
        values: Floats,
        *,
        shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:
        """Algorithm 3: the first of the best among all (slot, workers), centralised on ties."""
        length = durations(self.instance, job)
        prices = self.ledger.prices()
        tenant = self.instance.tenant_index[job.tenant]
        best, chosen = 0.0, None
        for w, p in np.ndindex(length.shape[:2]):
            quota = self.unused_workers[:, tenant, w]
            if shared and self._frozen is not None:
                quota = np.maximum(quota, self._frozen[:, w])
            own = prices[:, [w, len(self.instance.worker_types) + p]]
            for first in range(self.slots):
                for count in range(1, length.shape[3] + 1):
                    found = self._better_of_two(
                        length[w, p, :, count - 1], (w, p), first, count, values, quota, own
                    )
                    if found is not None and found[0] > best:
                        best = found[0]
                        chosen = found[1]
        return chosen

    def _better_of_two(
        self,
        length: Ints,
        types: tuple[int, int],
        first: int,
        count: int,
        values: Floats,
        quota: Ints,
        prices: Floats,
    ) -> tuple[float, Offer] | None:
        """Lines 4-9 of Algorithm 3: payoff and schedule; None if both costs are infinite."""
        found: tuple[float, Offer] | None = None
        w, p = types
        for zeta, place in ((0, min_cost_d), (1, min_cost_c)):
            d = int(length[zeta])
            if first + d > self.slots or quota[first : first + d].min() < count:
                continue
            span = slice(first, first + d)
            placed = place(
                Window(
                    count,
                    self.free_workers[span, :, w].min(axis=0),
                    self.free_ps[span, :, p].min(axis=0),
                    int(quota[span].min()),
                    prices[span],
                    float(self.instance.ps_ratio[w, p]),
                )
            )
            if placed is not None:
                cost, workers, ps = placed
                payoff = float(values[first + d]) - cost
                if found is None or payoff >= found[0]:
                    row = AstraeaRow(first + 1, first + d, w, p, workers, ps)
                    found = payoff, self.offer_of(row, cost)
        return found


class AstraeaLiteral(Astraea):
    """Astraea with the printed subroutines, whose placements may break (3i).

    Parameters
    ----------
    rounds, theta_workers, theta_ps, theta_scale, origin, guard
        As in `Astraea`.
    """

    relaxes_constraints = True
    make_round = LiteralRound

    def __init__(
        self,
        rounds: int = 2,
        theta_workers: float | None = None,
        theta_ps: float | None = None,
        theta_scale: float = 1.0,
        origin: Origin = "round",
        guard: bool = False,
    ) -> None:
        super().__init__(rounds, theta_workers, theta_ps, theta_scale, origin, guard)
