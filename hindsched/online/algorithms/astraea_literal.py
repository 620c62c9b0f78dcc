"""Algorithms 3-5 of astraea as printed, for the record and as the benchmark's rival.

Every (first slot, number of workers) is tried, server by server, as the printed loops do. Kept as
printed: MINCOSTD takes a host with fewer PSs than (3i) needs, both subroutines hold PSs against the
*worker* quota, and MINCOSTC prices a whole window by its first slot. Repaired, because nothing runs
otherwise: ``t+ = t- + d - 1`` and prices that follow from what is booked (the paper's own example
does both). Quotas in phase 2 are a_w(t), frozen after phase 1.
"""

from __future__ import annotations

import math

import numpy as np

from hindsched.instances.astraea import AstraeaJob, Integers, Reals
from hindsched.instances.astraea_modes import durations
from hindsched.instances.base import ROUNDING_TOLERANCE
from hindsched.instances.modes import Modes
from hindsched.online.algorithms.astraea_online import Astraea, Origin, TenantRound
from hindsched.online.batching import Offer
from hindsched.solutions.astraea import AstraeaRow

Placed = tuple[float, Integers, Integers]
"""Cost, workers and PSs by server."""


class LiteralRound(TenantRound):
    """A round in which schedules are found by the printed loops."""

    _frozen: Integers | None = None

    def end_phase(self) -> None:
        """After phase 1: a_w(t) is what all tenants leave unused of their quotas."""
        if self._frozen is None:
            self._frozen = self.unused_workers.sum(axis=1)

    def offer(self, job: AstraeaJob, table: Modes, values: Reals, *, shared: bool) -> Offer | None:
        """Algorithm 3: the first of the best among all (slot, workers), centralised on ties."""
        length = durations(self.instance, job)
        prices = self.ledger.prices()
        tenant = self.instance.tenant_index[job.tenant]
        best, chosen = 0.0, None
        for w in range(length.shape[0]):
            quota = self.unused_workers[:, tenant, w]
            if shared and self._frozen is not None:
                quota = np.maximum(quota, self._frozen[:, w])
            for p in range(length.shape[1]):
                for first in range(self.slots):
                    for count in range(1, length.shape[3] + 1):
                        found = self._better_of_two(
                            length[w, p, :, count - 1], (w, p), first, count, values, quota, prices
                        )
                        if found is not None and found[0] > best:
                            best = found[0]
                            chosen = (w, p, first, found)
        if chosen is None:
            return None
        w, p, first, (_, d, (cost, workers, ps)) = chosen
        demand = np.zeros(self.ledger.capacity.size)
        demand[w] = workers.sum()
        demand[len(self.instance.worker_types) + p] = ps.sum()
        row = AstraeaRow(first + 1, first + d, w, p, workers, ps)
        return Offer(first + 1, d, demand, cost, row)

    def _better_of_two(
        self,
        length: Integers,
        types: tuple[int, int],
        first: int,
        count: int,
        values: Reals,
        quota: Integers,
        prices: Reals,
    ) -> tuple[float, int, Placed] | None:
        """Lines 4-9 of Algorithm 3: payoff, duration and placement; None if both are infinite."""
        found: tuple[float, int, Placed] | None = None
        for zeta, place in ((0, self._min_cost_d), (1, self._min_cost_c)):
            d = int(length[zeta])
            if first + d > self.slots or quota[first : first + d].min() < count:
                continue
            placed = place(types, first, d, count, quota, prices)
            if placed is not None:
                payoff = float(values[first + d]) - placed[0]
                if found is None or payoff >= found[0]:
                    found = payoff, d, placed
        return found

    def _min_cost_d(
        self,
        types: tuple[int, int],
        first: int,
        d: int,
        count: int,
        quota: Integers,
        prices: Reals,
    ) -> Placed | None:
        """Algorithm 4."""
        w, p = types
        span = slice(first, first + d)
        room = self.free_workers[span, :, w].min(axis=0)
        ps_room = self.free_ps[span, :, p].min(axis=0)
        ratio = float(self.instance.worker_bandwidth[w] / self.instance.ps_bandwidth[p])
        most_ps = int(quota[span].min())
        workers, ps = np.zeros_like(room), np.zeros_like(room)
        best, fewest = -1, 0
        for s in range(len(room)):
            on_host = min(count - 1, int(room[s]))
            needed = math.ceil((count - on_host) * ratio - ROUNDING_TOLERANCE)
            there = min(needed, int(ps_room[s]), most_ps)
            if there >= 1 and (best < 0 or there < fewest):
                best, fewest = s, there
        if best < 0:
            return None
        ps[best] = fewest
        workers[best] = min(count - 1, int(room[best]))
        left = count - int(workers[best])
        for s in np.argsort(room, kind="stable"):
            if s != best:
                workers[s] = min(int(room[s]), left)
                left -= int(workers[s])
        if left > 0:
            return None
        split = len(self.instance.worker_types)
        cost = float((prices[span, w] * count + prices[span, split + p] * fewest).sum())
        return cost, workers, ps

    def _min_cost_c(
        self,
        types: tuple[int, int],
        first: int,
        d: int,
        count: int,
        quota: Integers,
        prices: Reals,
    ) -> Placed | None:
        """Algorithm 5: any server that takes all; the first is taken."""
        w, p = types
        span = slice(first, first + d)
        if quota[span].min() < 1:
            return None
        room = self.free_workers[span, :, w].min(axis=0)
        ps_room = self.free_ps[span, :, p].min(axis=0)
        able = np.flatnonzero((room >= count) & (ps_room >= 1))
        if not able.size:
            return None
        workers, ps = np.zeros_like(room), np.zeros_like(room)
        workers[able[0]], ps[able[0]] = count, 1
        split = len(self.instance.worker_types)
        cost = d * float(prices[first, w] * count + prices[first, split + p])
        return cost, workers, ps


class AstraeaLiteral(Astraea):
    """Astraea with the printed subroutines, whose placements may break (3i).

    Parameters
    ----------
    rounds, theta_workers, theta_ps, theta_scale, origin, guard
        As in `Astraea`.
    """

    feasible_set = False
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
