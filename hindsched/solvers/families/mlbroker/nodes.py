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
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.families.mlbroker.tier_program import PricedPlacement, TierProgram
from hindsched.solvers.kernels.mlbroker.geo_placement import placement_cost
from hindsched.solvers.oracles.decisions import (
    BranchDecision,
    Feature,
    Limits,
    limits_of,
    window_of,
)
from hindsched.solvers.tree.branching import LEAST_SIDE, Split
from hindsched.solvers.tree.node_program import CONVERGED, NodeBound

MOST_ROUNDS = 60
"""Rounds of pricing at one node."""
SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""
MOST_FEES, MOST_MIXED, MOST_TIGHT = 5, 4, 8
"""Splits of fees, of what is mixed and of what tightens H whose two sides are tried at a node."""
LEAST_GAIN = 1e-6
"""Share of the gap that a side of a split closes at least, when splits are compared."""


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
    held : list
        Job, centre and slot where a job stays deployed without a use.
    """

    chosen: dict[tuple[int, int], PricedPlacement]
    mixed: dict[tuple[int, int], list[tuple[float, PricedPlacement]]]
    tiers: dict[tuple[int, int, int], float]
    held: list[tuple[int, int, int]]


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
        """Fees that are paid in part, PSs and workers that are mixed or not, the best split first.

        A fee that is decided prices every unit of its tier exactly. Workers that are bounded above
        bring H, by which fees are paid in part, nearer to what is rented, for all resources of the
        centre. Which closes more of the gap is tried, on both sides of each split.
        """
        (point,) = shares
        broker = len(self.oracle.instance.jobs)
        torn = [
            Split(broker, Feature(TIER, at), 0, 0, side * float(self._fee[at[:2]]), share)
            for at, share in point.tiers.items()
            if (side := min(share, 1 - share)) > LEAST_SIDE
        ]
        mixed = [
            split
            for (j, t), ways in point.mixed.items()
            for name in (PS, WORKERS)
            for r in range(len(self.oracle.instance.datacenters))
            for split in self._between(j, Feature(name, (r, t)), ways)
        ]
        tried = [
            split
            for splits, most in (
                (torn, MOST_FEES), (mixed, MOST_MIXED), (self._tightening(point, torn), MOST_TIGHT)
            )
            for split in sorted(splits, key=lambda split: -split.balance)[:most]
        ]  # fmt: skip
        return self._best(tried) or self._of_held(point)

    def _tightening(self, point: NodePoint, torn: Sequence[Split]) -> list[Split]:
        """Splits of workers or PSs that bring H of torn tiers down to what is rented."""
        instance = self.oracle.instance
        worth: dict[tuple[int, Feature, int], float] = {}
        for r, k, t in (split.feature.index for split in torn):
            gain = float(self._gain[r, k])
            for (j, slot), one in point.chosen.items():
                if slot != t:
                    continue
                _, most, may, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
                workers = int(one.workers[r])
                spare = min(int(most[r]), self.oracle.crew(j, t)) - workers
                if spare > 0:
                    at = j, Feature(WORKERS, (r, t)), workers
                    units = spare * float(instance.worker_demand[j, k])
                elif may[r] and one.ps != r:
                    at, units = (j, Feature(PS, (r, t)), 0), float(instance.ps_demand[j, k])
                else:
                    continue
                if units:
                    worth[at] = worth.get(at, 0.0) + gain * units
        return [Split(j, feature, k, 0, own, 1.0) for (j, feature, k), own in worth.items()]

    def _of_held(self, point: NodePoint) -> list[Split]:
        """Splits by what makes a centre used, where a job stays deployed without a use."""
        found = []
        for j, r, t in point.held:
            _, most, _, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
            name = WORKERS if most[r] else PS
            found.append(Split(j, Feature(name, (r, t)), 0, 0, 0.0, 1.0))
        return found

    def _between(
        self, job: int, feature: Feature, ways: list[tuple[float, PricedPlacement]]
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
                found.append(Split(job, feature, k, 0, side, below))
        return sorted(found, key=lambda split: -split.balance)[:1]

    def _best(self, splits: Sequence[Split]) -> list[Split]:
        """The split whose sides close the largest shares of the gap, multiplied; none of none.

        No share is above 1, so that one side may tell that a split is not the best.
        """
        value = self._program.value
        size = abs(value) or 1.0
        most = max(min(self._enough - value, size), LEAST_GAIN * size)
        loss = self._program.losses(self._limits)

        def share(side: BranchDecision) -> float:
            return min(max(loss(side) / most, LEAST_GAIN), 1.0)

        best, worth = list(splits[:1]), 0.0
        for split in splits:
            other, larger = split.sides
            own = share(larger)
            if own > worth and (own := own * share(other)) > worth:
                best, worth = [split], own
        return best

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
        point = NodePoint(chosen, mixed, program.fees(columns), program.held(columns))
        return program.value, prices, point


NODE_PROGRAM = TierNodes
"""What bounds the nodes of this family's trees."""
