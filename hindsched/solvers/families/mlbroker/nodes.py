"""Bounds the nodes of a tree by a linear program of placements, tiers, presence and launches.

Columns are placements (workers and PS) of one job in one slot. Beside them stand units bought at
the lower price w, the fees u and the launches z of (8) in its disaggregated form, and presence that
is taken without being used, which the pricing oracle allows where nothing is decided. The duals of
w <= H u and of (8h) are the prices; what is kept of a node is the bound that the oracle proves at
them, never the program's value. New columns are best responses at the prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import highspy
import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.solutions.base import Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.door.scaling import objective_factor
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
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
Life = tuple[int, int]
"""A job and one of its slots (from 0)."""
_OPTIMAL = highspy.HighsModelStatus.kOptimal


@dataclass(frozen=True)
class PricedPlacement:
    """A placement of one job in one slot: workers by centre, the PS, and what that costs and rents.

    Parameters
    ----------
    workers, ps
        Workers (R,) and the centre of the PS.
    cost : float
        Weighted cost of transfer and communication.
    use : ndarray, shape (R, K)
        Units rented.
    present : ndarray of bool, shape (R,)
        Centres that it uses.
    """

    workers: Ints
    ps: int
    cost: float
    use: Floats
    present: Any


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

    chosen: dict[Life, PricedPlacement]
    mixed: dict[Life, list[tuple[float, PricedPlacement]]]
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
        self._limits: Mapping[int, Limits] = {}
        alive = np.argwhere(oracle.instance.alive).tolist()
        self._known: dict[Life, dict[tuple[int, ...], PricedPlacement]] = {
            (j, t): {} for j, t in alive
        }

    def bound(
        self,
        decisions: Sequence[BranchDecision],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Any = None,
    ) -> NodeBound:
        """Find good prices for the solutions that obey `decisions`; see `NodeProgram.bound`."""
        limits = self._limits = limits_of(decisions)
        if any(low > high for own in limits.values() for low, high in own.values()):
            return NodeBound(prices, math.inf, None, 0)
        best_prices = prices
        best, plans = self.oracle.priced_within(prices, limits)
        if math.isinf(best) or (cutoff is not None and best >= cutoff):
            return NodeBound(best_prices, best, None, 0)
        program = _Program(self.oracle, limits)
        for life, placements in self._known.items():
            for one in placements.values():
                program.add(life, one)
        self._add(program, plans)
        for round_ in range(1, MOST_ROUNDS + 1):
            spend()
            duals, point = program.solve()
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, plans = self.oracle.priced_within(tried, limits)
                if bound > best:
                    best_prices, best = tried, bound
                added = self._add(program, plans)
                if added:
                    break
            if cutoff is not None and best >= cutoff:
                return NodeBound(best_prices, best, None, round_)
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                return NodeBound(best_prices, best, None, round_)
            size = abs(program.value)
            if not added or program.value - best <= CONVERGED * (min(1.0, size) + size):
                break
        return NodeBound(best_prices, best, [point], round_)

    def candidates(self, shares: Sequence[NodePoint]) -> list[Split]:
        """Fees that are paid in part, PSs and workers that are mixed, then what is held unused.

        A fee that is decided prices every unit of its tier exactly.
        """
        (point,) = shares
        oracle, broker = self.oracle, len(self.oracle.instance.jobs)
        fee = oracle.tier_terms()[1]
        found = [
            Split(broker, Feature(TIER, at), 0, 0, side * float(fee[at[:2]]), share)
            for at, share in point.tiers.items()
            if (side := min(share, 1 - share)) > LEAST_SIDE
        ]
        found += self._tightening(point, [split.feature.index for split in found])
        if not found:
            found = [
                split
                for (j, t), ways in point.mixed.items()
                for name in (PS, WORKERS)
                for r in range(len(oracle.instance.datacenters))
                for split in _between(j, Feature(name, (r, t)), ways)
            ]
        if not found:
            for j, r, t in point.held:
                _, most, _, _, _ = oracle.within(j, t, self._limits.get(j, {}))
                name = WORKERS if most[r] else PS
                found.append(Split(j, Feature(name, (r, t)), 0, 0, 0.0, 1.0))
        return sorted(found, key=lambda split: -split.balance)

    def _tightening(self, point: NodePoint, torn: Sequence[tuple[int, ...]]) -> list[Split]:
        """Splits that bring H, by which torn fees are paid in part, down to what is rented."""
        instance, gain = self.oracle.instance, self.oracle.tier_terms()[0]
        worth: dict[tuple[int, Feature, int], float] = {}
        for r, k, t in torn:
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
                worth[at] = worth.get(at, 0.0) + float(gain[r, k]) * units
        return [Split(j, feature, most, 0, own, 1.0) for (j, feature, most), own in worth.items()]

    def undecided(
        self, shares: Sequence[NodePoint], decisions: Sequence[BranchDecision]
    ) -> list[Split]:
        """What an integral node leaves open: PSs and workers."""
        (point,) = shares
        limits = limits_of(decisions)
        found = []
        for (j, t), one in point.chosen.items():
            for r in range(len(self.oracle.instance.datacenters)):
                for name, value in ((PS, int(one.ps == r)), (WORKERS, int(one.workers[r]))):
                    feature = Feature(name, (r, t))
                    low, high = window_of(limits.get(j, {}), feature)
                    most = 1 if name == PS else self.oracle.crew(j, t)
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
        instance = self.oracle.instance
        shape = (len(instance.jobs), instance.horizon)
        workers = np.zeros((*shape, len(instance.datacenters)), dtype=np.int64)
        ps = np.full(shape, -1, dtype=np.int64)
        for life, one in shares[0].chosen.items():
            workers[life], ps[life] = one.workers, one.ps
        return MlbrokerSolution(instance, workers, ps, self.oracle.formulation)

    def _add(self, program: _Program, plans: Sequence[tuple[Ints, Ints]]) -> int:
        """Add the placements of the jobs' plans; return how many are new."""
        added = 0
        for (j, t), placements in self._known.items():
            step = t - (self.oracle.instance.jobs[j].arrival - 1)
            workers, ps = plans[j][0][step], int(plans[j][1][step])
            key = (*workers.tolist(), ps)
            if key not in placements:
                placements[key] = self._placement(j, t, workers.copy(), ps)
                program.add((j, t), placements[key])
                added += 1
        return added

    def _placement(self, j: int, t: int, workers: Ints, ps: int) -> PricedPlacement:
        instance, nothing = self.oracle.instance, np.zeros(workers.size)
        block = self.oracle.priced_block(j, t, nothing, nothing, nothing)
        at = np.arange(workers.size) == ps
        use = workers[:, None] * instance.worker_demand[j] + at[:, None] * instance.ps_demand[j]
        cost = placement_cost(block, workers, np.int64(ps), np.inf)
        return PricedPlacement(workers, ps, float(cost), use, (workers > 0) | at)


def _between(job: int, feature: Feature, ways: list[tuple[float, PricedPlacement]]) -> list[Split]:
    """The most even split of a job's workers or PS in a centre, if they are mixed."""
    r = feature.index[0]
    counts = [int(one.ps == r) if feature.name == PS else int(one.workers[r]) for _, one in ways]
    found = []
    for k in sorted(set(counts))[:-1]:
        below = sum(share for (share, _), count in zip(ways, counts, strict=True) if count <= k)
        if (side := min(below, 1 - below)) > LEAST_SIDE:
            found.append(Split(job, feature, k, 0, side, below))
    return sorted(found, key=lambda split: -split.balance)[:1]


class _Program:
    """A node's linear program over the placements that its limits allow, in HiGHS."""

    def __init__(self, oracle: MlbrokerOracle, limits: Mapping[int, Limits]) -> None:
        self.oracle, self._limits = oracle, limits
        self._gain, fee, _ = oracle.tier_terms()
        self._largest = oracle.most_use(limits)
        self.value = 0.0
        sizes = [*fee.ravel(), *oracle.launches, *oracle.unit_prices.ravel(), *self._gain.ravel()]
        self._factor = objective_factor(np.array(sizes))
        self._highs = highspy.Highs()
        for name, setting in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self._highs.setOptionValue(name, setting)
        self._lives: dict[Life, list[tuple[PricedPlacement, int]]] = {}
        self._one: dict[Life, int] = {}
        self._present: dict[tuple[int, int, int], int] = {}
        self._deployed: dict[tuple[int, int, int], int] = {}
        self._extra: dict[tuple[int, int, int], int] = {}
        self._rented: dict[tuple[int, int, int, int], int] = {}
        self._bought: dict[tuple[int, int, int, int], int] = {}
        self._columns = self._rows = 0
        broker = limits.get(len(oracle.instance.jobs), {})
        self._fees = {}
        worth = self._gain[:, :, None] * self._largest.sum(axis=2)
        for r, k, t in np.ndindex(worth.shape):
            low, high = window_of(broker, Feature(TIER, (r, k, t)))
            if worth[r, k, t] > (0.0 if low else fee[r, k]):
                self._fees[r, k, t] = self._column(float(fee[r, k]), {}, low, min(high, 1))
        for j, t in np.argwhere(oracle.instance.alive).tolist():
            self._begin(j, t)

    def _column(
        self, cost: float, terms: Mapping[int, float], low: float = 0.0, high: float = math.inf
    ) -> int:
        rows, values = np.array(list(terms), dtype=np.int32), np.array(list(terms.values()))
        self._highs.addCol(cost * self._factor, low, high, rows.size, rows, values)
        self._columns += 1
        return self._columns - 1

    def _row(self, terms: Mapping[int, float], low: float, high: float) -> int:
        columns, values = np.array(list(terms), dtype=np.int32), np.array(list(terms.values()))
        self._highs.addRow(low, high, columns.size, columns, values)
        self._rows += 1
        return self._rows - 1

    def _begin(self, j: int, t: int) -> None:
        """Rows of a job's slot, without any placement."""
        least, most, may, must, _ = self.oracle.within(j, t, self._limits.get(j, {}))
        closed = must | (least > 0) | (~may & (most == 0))  # used, or barred
        self._lives[j, t] = []
        self._one[j, t] = self._row({}, 1.0, 1.0)
        for r, is_closed in enumerate(closed.tolist()):
            extra = self._extra[j, r, t] = self._column(0.0, {}, 0.0, 0.0 if is_closed else 1.0)
            self._present[j, r, t] = self._row({extra: 1.0}, -math.inf, 1.0)
            launch = self._column(float(self.oracle.launches[j]), {}, 0.0, 1.0)
            terms = {extra: 1.0, launch: -1.0}
            if (j, r, t - 1) in self._extra:
                terms[self._extra[j, r, t - 1]] = -1.0
            self._deployed[r, j, t] = self._row(terms, -math.inf, 0.0)
            for k in range(self._gain.shape[1]):
                if (r, k, t) in self._fees:
                    bought = self._column(-float(self._gain[r, k]), {})
                    self._rented[r, k, j, t] = self._row({bought: 1.0}, -math.inf, 0.0)
                    share = {bought: 1.0, self._fees[r, k, t]: -float(self._largest[r, k, j, t])}
                    self._bought[r, k, j, t] = self._row(share, -math.inf, 0.0)

    def add(self, life: Life, one: PricedPlacement) -> None:
        """Add a placement of a job's slot, where the node's limits allow it."""
        j, t = life
        least, most, may, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
        if not (may[one.ps] and (least <= one.workers).all() and (one.workers <= most).all()):
            return
        terms = {self._one[life]: 1.0}
        for r in np.flatnonzero(one.present).tolist():
            terms[self._present[j, r, t]] = terms[self._deployed[r, j, t]] = 1.0
            if (r, j, t + 1) in self._deployed:
                terms[self._deployed[r, j, t + 1]] = -1.0
        for r, k in np.argwhere(one.use).tolist():
            if (r, k, j, t) in self._rented:
                terms[self._rented[r, k, j, t]] = -float(one.use[r, k])
        cost = one.cost + float((self.oracle.unit_prices * one.use).sum())
        self._lives[life].append((one, self._column(cost, terms)))

    def solve(self) -> tuple[Floats, NodePoint]:
        """Prices of the oracle's rows, and the point; `value` is the optimum."""
        self._highs.run()
        if self._highs.getModelStatus() != _OPTIMAL:  # a basis may lead it astray
            self._highs.clearSolver()
            self._highs.run()
        status = self._highs.getModelStatus()
        if status != _OPTIMAL:
            name = self._highs.modelStatusToString(status)
            raise SolveFailed(f"a node's program ended with {name}")
        self.value = float(self._highs.getInfo().objective_function_value) / self._factor
        found = self._highs.getSolution()
        duals, values = np.array(found.row_dual) / self._factor, np.array(found.col_value)
        # where no fee can pay, and where nothing is rented, units cost the higher price
        discount = np.where(self._largest > 0, self._gain[:, :, None, None], 0.0)
        for (r, k, j, t), row in self._bought.items():
            if self._largest[r, k, j, t]:
                discount[r, k, j, t] = min(max(0.0, -duals[row]), float(self._gain[r, k]))
        deployment = np.zeros((len(self._gain), *self._largest.shape[2:]))
        for at, row in self._deployed.items():
            deployment[at] = max(0.0, -duals[row])
        prices = self.oracle.rows.pack({"discount": discount, "deployment": deployment})
        mixed = {
            life: [(float(values[i]), one) for one, i in own if values[i] > LEAST_SIDE]
            for life, own in self._lives.items()
        }
        chosen = {life: max(own, key=lambda way: way[0])[1] for life, own in mixed.items()}
        fees = {tier: float(values[column]) for tier, column in self._fees.items()}
        held = [at for at, column in self._extra.items() if values[column] > LEAST_SIDE]
        return prices, NodePoint(chosen, mixed, fees, held)


NODE_PROGRAM = TierNodes
"""What bounds the nodes of this family's trees."""
