"""Algorithms 3-5 of astraea as printed, for the record and as the benchmark's rival.

Every (first slot, number of workers) is tried, server by server, as the printed loops do. Kept as
printed: MINCOSTD takes a host with fewer PSs than (3i) needs, both subroutines hold PSs against the
*worker* quota, and MINCOSTC prices a whole window by its first slot. Repaired, because nothing runs
otherwise: ``t+ = t- + d - 1`` and prices that follow from what is booked (the paper's own example
does both). Quotas in phase 2 are a_w(t), frozen after phase 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.instances.astraea.modes import durations
from hindsched.instances.decimals import NEAR
from hindsched.instances.modes import Modes
from hindsched.online.astraea.paper import Astraea, Origin, Rounds, Scale, TenantRound, Theta
from hindsched.online.engines.batching import Offer
from hindsched.solutions.window_solution import WindowRow

Placed = tuple[float, Ints, Ints]
"""Cost, workers and PSs by server."""


class Window(NamedTuple):
    """What Algorithms 4 and 5 are told of a window."""

    num_workers: int  # D_w
    workers: Ints  # free on each server throughout
    ps: Ints
    quota: int  # of *workers*, against which the printed lines hold PSs too
    prices: Floats  # of a worker and of a PS, (slots, 2)
    ratio: float  # b_w / b_p


def min_cost_d(window: Window) -> Placed | None:
    """Algorithm 4, MINCOSTD; None for a cost of infinity."""
    most_here = np.minimum(window.num_workers - 1, window.workers)
    best, fewest = -1, 0
    for s, on_host in enumerate(most_here.tolist()):
        needed = math.ceil((window.num_workers - on_host) * window.ratio - NEAR)
        there = min(needed, int(window.ps[s]), window.quota)
        if there >= 1 and (best < 0 or there < fewest):
            best, fewest = s, there
    if best < 0:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[best], ps[best] = most_here[best], fewest
    left = window.num_workers - int(workers[best])
    for s in np.argsort(window.workers, kind="stable"):
        if s != best:
            workers[s] = min(int(window.workers[s]), left)
            left -= int(workers[s])
    if left > 0:
        return None
    return float((window.prices @ [window.num_workers, fewest]).sum()), workers, ps


def min_cost_c(window: Window) -> Placed | None:
    """Algorithm 5, MINCOSTC: any server that takes all; the first is taken. None for infinity."""
    able = np.flatnonzero((window.workers >= window.num_workers) & (window.ps >= 1))
    if window.quota < 1 or not able.size:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[able[0]], ps[able[0]] = window.num_workers, 1
    return len(window.prices) * float(window.prices[0] @ [window.num_workers, 1]), workers, ps


class LiteralRound(TenantRound):
    """A round in which schedules are found by the printed loops."""

    _frozen: Ints | None = None

    def end_phase(self) -> None:
        """After phase 1: a_w(t) is what all tenants leave unused of their quotas."""
        if self._frozen is None:
            self._frozen = self.unused_workers.sum(axis=1)

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
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
            for first, count in np.ndindex(self.slots, length.shape[3]):
                here: tuple[float, Offer] | None = None
                for zeta, place in ((0, min_cost_d), (1, min_cost_c)):  # lines 4-9
                    d = int(length[w, p, zeta, count])
                    span = slice(first, first + d)
                    if first + d > self.slots or quota[span].min() < count + 1:
                        continue
                    workers = self.free_workers[span, :, w].min(axis=0)
                    ps = self.free_ps[span, :, p].min(axis=0)
                    ratio = float(self.instance.ps_ratio[w, p])
                    placed = place(
                        Window(count + 1, workers, ps, int(quota[span].min()), own[span], ratio)
                    )
                    if placed is None:
                        continue
                    payoff = float(values[first + d]) - placed[0]
                    if here is None or payoff >= here[0]:
                        row = WindowRow(first + 1, first + d, w, p, placed[1], placed[2])
                        here = payoff, self.offer_of(row, placed[0])
                if here is not None and here[0] > best:
                    best, chosen = here
        return chosen


class AstraeaLiteral(Astraea):
    """Astraea with the printed subroutines (Algorithms 3-5), whose placements may break (3i).

    Parameters
    ----------
    rounds, theta_workers, theta_ps, theta_scale, origin, guard
        As in `Astraea`.
    """

    relaxes_constraints = True
    make_round = LiteralRound

    def __init__(
        self, rounds: Rounds = 2, theta_workers: Theta | None = None, theta_ps: Theta | None = None,
        theta_scale: Scale = 1.0, origin: Origin = "round", guard: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(rounds, theta_workers, theta_ps, theta_scale, origin, guard)
