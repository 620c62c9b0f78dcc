"""Bounds the nodes of a tree by a linear program of placements, tiers, presence and launches.

The duals of w <= H u and of (8h) are the prices; what is kept of a node is the bound that the
oracle proves at them, never the program's value. New columns are best responses at the prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solutions.base import Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.bounds.branching import LEAST_SIDE, Split
from hindsched.solvers.bounds.node_program import CONVERGED, NodeBound
from hindsched.solvers.kernels.mlbroker.geo_placement import placement_cost
from hindsched.solvers.methods.mlbroker.tier_program import PricedPlacement, Tier, TierProgram
from hindsched.solvers.pricing.decisions import (
    BranchDecision,
    Feature,
    Limits,
    limits_of,
    window_of,
)
from hindsched.solvers.pricing.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.work import spend

MOST_ROUNDS = 60
"""Rounds of pricing at one node."""
SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""
MOST_PROBED = 8
"""Fees whose two sides are solved before one of them is split."""
LEAST_CLOSED = 0.25
"""Share of a node's gap that both sides of a fee's split close, or placements are split first."""
LEAST_GAIN = 1e-6
"""What a side of a split costs at least, relatively, when splits are compared."""


@dataclass(frozen=True)
class NodePoint:
    """Solution of a node's program.

    Parameters
    ----------
    chosen : dict
        The placement with the largest share, by job and slot (from 0).
    mixed : dict
        All placements with their shares, by job and slot.
    tiers : dict
        How far a fee is paid, by centre, resource and slot.
    most : ndarray, shape (R, K, J, T)
        H within the node's decisions.
    """

    chosen: dict[tuple[int, int], PricedPlacement]
    mixed: dict[tuple[int, int], list[tuple[float, PricedPlacement]]]
    tiers: dict[tuple[int, int, int], float]
    most: Floats


class TierNodes:
    """Bounds the nodes of a tree of ``tight``.

    Parameters
    ----------
    oracle : MlbrokerOracle
        Oracle of the instance.
    size : float
        Not used: placements are made where none is known, so nothing is bought off.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: MlbrokerOracle, size: float, interrupted: Event) -> None:
        self.oracle, self._interrupted = oracle, interrupted
        self._program = TierProgram(oracle)
        self._known: set[tuple[int, ...]] = set()
        self._limits: Mapping[int, Limits] = {}
        self._enough = math.inf
        self._gain, self._fee, _ = oracle.tier_terms()

    def bound(
        self,
        decisions: Sequence[BranchDecision],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Any = None,
    ) -> NodeBound:
        """Find good prices for the solutions that obey `decisions`; see `NodeProgram.bound`.

        `known` is not used: the oracle adds up its own bounds.
        """
        limits = self._limits = limits_of(decisions)
        self._enough = math.inf if cutoff is None else cutoff
        if any(low > high for own in limits.values() for low, high in own.values()):
            return NodeBound(prices, math.inf, None, 0)
        best_prices = prices
        best, plans = self.oracle.priced_within(prices, limits)
        if math.isinf(best) or (cutoff is not None and best >= cutoff):
            return NodeBound(best_prices, best, None, 0)
        largest = self._program.switch(limits)
        self._add(plans)
        for round_ in range(1, MOST_ROUNDS + 1):
            spend()
            value, duals, point = self._solve(largest)
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, plans = self.oracle.priced_within(tried, limits)
                if bound > best:
                    best_prices, best = tried, bound
                added = self._add(plans)
                if added:
                    break
            if cutoff is not None and best >= cutoff:
                return NodeBound(best_prices, best, None, round_)
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                return NodeBound(best_prices, best, None, round_)
            if not added or value - best <= CONVERGED * (min(1.0, abs(value)) + abs(value)):
                break
        return NodeBound(best_prices, best, [point], round_)

    def refuting(
        self, decisions: Sequence[BranchDecision], shares: Sequence[Any] | None = None
    ) -> tuple[BranchDecision, ...] | None:
        """No solver says anything; see `NodeProgram.refuting`."""
        return None

    def candidates(self, shares: Sequence[NodePoint]) -> list[Split]:
        """Fees that are paid in part, then places of PSs and workers that are mixed.

        A fee that is decided prices every unit of its tier exactly. Where no fee's two sides close
        much of the gap, placements are split first, those that are not mixed so that H, by which
        fees are paid in part, is nearer to what is rented.
        """
        (point,) = shares
        torn = [
            (min(share, 1 - share) * float(self._fee[at[:2]]), at, share)
            for at, share in point.tiers.items()
            if min(share, 1 - share) > LEAST_SIDE
        ]
        of_fees: list[Split] = []
        if torn:
            torn.sort(key=lambda one: -one[0])
            tried = torn[:MOST_PROBED]
            gains = self._program.gains([at for _, at, _ in tried])
            of_fees = [
                self._of_tier(at, share, own)
                for (_, at, share), own in zip(tried, gains, strict=True)
            ]
            of_fees.sort(key=lambda split: -split.balance)
            if of_fees[0].balance >= (LEAST_CLOSED * (self._enough - self._program.value)) ** 2:
                return of_fees
        found = []
        for (j, t), ways in point.mixed.items():
            for name, rank in ((PS, 1), (WORKERS, 2)):
                for r in range(len(self.oracle.instance.datacenters)):
                    found += self._between(j, Feature(name, (r, t)), rank, ways)
        if not found:
            found = [split for _, at, _ in torn for split in self._tightening(point, at)]
        return sorted(found, key=lambda split: (split.rank, -split.balance)) or of_fees

    def _tightening(self, point: NodePoint, tier: Tier) -> list[Split]:
        """Splits of workers or PSs in a centre and slot that bring H of a tier down to its use."""
        instance, (r, k, t) = self.oracle.instance, tier
        gain = float(self._gain[r, k])
        found = []
        for (j, slot), one in point.chosen.items():
            if slot != t:
                continue
            _, most, may, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
            workers = int(one.workers[r])
            spare = min(int(most[r]), self.oracle.crew(j, t)) - workers
            demand, of_ps = float(instance.worker_demand[j, k]), float(instance.ps_demand[j, k])
            if spare > 0:
                worth = gain * spare * demand
                found.append(Split(j, Feature(WORKERS, (r, t)), workers, 0, worth, 1.0))
            elif may[r] and one.ps != r:
                found.append(Split(j, Feature(PS, (r, t)), 0, 0, gain * of_ps, 1.0))
        return [split for split in found if split.balance > 0]

    def _between(
        self, job: int, feature: Feature, rank: int, ways: list[tuple[float, PricedPlacement]]
    ) -> list[Split]:
        """The most even split of a job's workers or PS in a centre, if they are mixed."""
        r = feature.index[0]
        count = {
            id(one): int(one.ps == r) if feature.name == PS else int(one.workers[r])
            for _, one in ways
        }
        found = []
        for k in sorted(set(count.values()))[:-1]:
            below = sum(share for share, one in ways if count[id(one)] <= k)
            side = min(below, 1 - below)
            if side > LEAST_SIDE:
                found.append(Split(job, feature, k, rank, side, below))
        return sorted(found, key=lambda split: -split.balance)[:1]

    def _of_tier(self, tier: Tier, share: float, gains: Sequence[float]) -> Split:
        """Split a fee, which is worth more the more both sides cost the node's program.

        What passes the bound that is good enough is worth no more than what reaches it.
        """
        value = self._program.value
        least = LEAST_GAIN * (min(1.0, abs(value)) + abs(value))
        most = max(least, self._enough - value)
        worth = math.prod(min(max(gain, least), most) for gain in gains)
        broker = len(self.oracle.instance.jobs)
        return Split(broker, Feature(TIER, tier), 0, 0, worth, share)

    def undecided(
        self, shares: Sequence[NodePoint], decisions: Sequence[BranchDecision]
    ) -> list[Split]:
        """What an integral node leaves open: PSs, workers, then fees."""
        (point,) = shares
        limits = limits_of(decisions)
        found = []
        for (j, t), one in point.chosen.items():
            for r in range(len(self.oracle.instance.datacenters)):
                for name, value in ((PS, int(one.ps == r)), (WORKERS, int(one.workers[r]))):
                    feature = Feature(name, (r, t))
                    low, high = window_of(limits.get(j, {}), feature)
                    most = 1 if name == PS else int(self.oracle.crew(j, t))
                    if min(high, most) > value:
                        found.append(Split(j, feature, value, 0, 0.0, 1.0))
                    elif low < value:
                        found.append(Split(j, feature, value - 1, 0, 0.0, 0.0))
        return found

    def solution(
        self, shares: Sequence[NodePoint], splits: Sequence[Split], seconds: float | None
    ) -> Solution | None:
        """Placements with the largest shares, together, where nothing is mixed."""
        if splits:
            return None
        (point,) = shares
        instance = self.oracle.instance
        shape = (len(instance.jobs), instance.horizon)
        workers = np.zeros((*shape, len(instance.datacenters)), dtype=np.int64)
        ps = np.full(shape, -1, dtype=np.int64)
        for (j, t), placement in point.chosen.items():
            workers[j, t], ps[j, t] = placement.workers, placement.ps
        return MlbrokerSolution(instance, workers, ps, self.oracle.formulation)

    def _add(self, plans: Sequence[tuple[Ints, Ints]]) -> int:
        """Add the placements of the jobs' plans; return how many are new."""
        instance, added = self.oracle.instance, 0
        for j, t in self._program.lives:
            step = t - (instance.jobs[j].arrival - 1)
            workers, ps = plans[j][0][step], int(plans[j][1][step])
            key = (j, t, *workers.tolist(), ps)
            if key in self._known:
                continue
            self._known.add(key)
            added += 1
            self._program.add((j, t), self._placement(j, t, workers.copy(), ps))
        return added

    def _placement(self, j: int, t: int, workers: Ints, ps: int) -> PricedPlacement:
        instance, nothing = self.oracle.instance, np.zeros(workers.size)
        block = self.oracle.priced_block(j, t, nothing, nothing, nothing)
        at = np.arange(workers.size) == ps
        use = workers[:, None] * instance.worker_demand[j] + at[:, None] * instance.ps_demand[j]
        cost = placement_cost(block, workers, np.int64(ps), np.inf)
        return PricedPlacement(workers, ps, float(cost), use, (workers > 0) | at)

    def _solve(self, largest: Floats) -> tuple[float, Floats, NodePoint]:
        """Value, prices and solution of the program over all placements known."""
        program = self._program
        columns, discount, deployment = program.solve(largest)
        prices = self.oracle.rows.pack({"discount": discount, "deployment": deployment})
        mixed = {
            life: [(float(columns[i]), one) for one, i in own if columns[i] > LEAST_SIDE]
            for life, own in program.placements.items()
        }
        chosen = {life: max(own, key=lambda way: way[0])[1] for life, own in mixed.items()}
        return program.value, prices, NodePoint(chosen, mixed, program.fees(columns), largest)


NODE_PROGRAM = TierNodes
"""What bounds the nodes of this family's trees."""
