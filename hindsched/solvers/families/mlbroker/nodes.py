"""Bounds the nodes of a tree by a linear program of placements, tiers, presence and launches.

Columns are placements (workers and PS) of one job in one slot. Beside them stand units bought at
the lower price w, the fees u and the launches z of (8) in its disaggregated form, and presence that
is taken without being used. The duals of w <= H u and of (8h) are the prices; what is kept of a
node is the bound that the oracle proves at them. (Column generation over whole lives, as for other
families, leaves five of the eight instances of suite `small` open after 40 s; this proves each in
5.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import highspy
import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.solutions.base import Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, nobody
from hindsched.solvers.door.standard_form import objective_factor
from hindsched.solvers.door.work import interrupted, spend
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.kernels.mlbroker.geo_placement import placement_cost
from hindsched.solvers.oracles.decisions import (
    BranchDecision,
    Feature,
    Limits,
    limits_of,
    window_of,
)
from hindsched.solvers.tree.node_program import CONVERGED, LEAST_SIDE, NodeBound, Split

MOST_ROUNDS = 60
"""Rounds of pricing at one node."""
SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""
Life = tuple[int, int]
"""A job and one of its slots (from 0)."""
_OPTIMAL = highspy.HighsModelStatus.kOptimal


class PricedPlacement(NamedTuple):
    """A placement of one job in one slot."""

    workers: Ints  # (R,)
    ps: int
    cost: float  # of transfer and communication, weighted
    use: Floats  # units rented, (R, K)
    present: Bools  # centres that it uses, (R,)


@dataclass(frozen=True)
class NodePoint:
    """Solution of a node's program."""

    mixed: dict[Life, list[tuple[float, PricedPlacement]]]  # all placements with their shares
    tiers: dict[tuple[int, int, int], float]  # how far a fee is paid, by (r, k, t)
    held: list[tuple[int, int, int]]  # (j, r, t) where a job stays deployed without a use

    @property
    def chosen(self) -> dict[Life, PricedPlacement]:
        """The placements with the largest shares."""
        return {life: max(own, key=lambda way: way[0])[1] for life, own in self.mixed.items()}


class TierNodes:
    """Bounds the nodes of a tree of ``tight``.

    `size` is not used: placements are made where none is known, so nothing is bought off.
    """

    def __init__(self, oracle: MlbrokerOracle, size: float) -> None:
        self.oracle, self._interrupted = oracle, interrupted()
        self._limits: Mapping[int, Limits] = {}
        alive = np.argwhere(oracle.instance.alive).tolist()
        self._known: dict[Life, dict[tuple[int, ...], PricedPlacement]]
        self._known = {(j, t): {} for j, t in alive}

    def bound(
        self, decisions: Sequence[BranchDecision], prices: Floats, cutoff: float | None,
        seconds: Callable[[], float | None], known: Any = None,
    ) -> NodeBound:  # fmt: skip
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
            value, duals, point = program.solve()
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, plans = self.oracle.priced_within(tried, limits)
                if bound > best:
                    best_prices, best = tried, bound
                added = self._add(program, plans)
                if added:
                    break
            left = seconds()
            late = self._interrupted.is_set() or (left is not None and left <= 0)
            if late or (cutoff is not None and best >= cutoff):
                return NodeBound(best_prices, best, None, round_)
            if not added or value - best <= CONVERGED * (min(1.0, abs(value)) + abs(value)):
                break
        return NodeBound(best_prices, best, [point], round_)

    def candidates(self, shares: Sequence[NodePoint]) -> list[Split]:
        """Fees that are paid in part, PSs and workers that are mixed, then what is held unused.

        A fee that is decided prices every unit of its tier exactly.
        """
        (point,) = shares
        oracle, broker = self.oracle, len(self.oracle.instance.jobs)
        found = [
            Split(broker, Feature(TIER, at), 0, 0, side * float(oracle.fees[at[:2]]), share)
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
        instance, gain = self.oracle.instance, self.oracle.gains
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
        limits = limits_of(decisions)
        found = []
        for (j, t), one in shares[0].chosen.items():
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
        workers, ps = nobody(self.oracle.instance)
        for life, one in shares[0].chosen.items():
            workers[life], ps[life] = one.workers, one.ps
        return MlbrokerSolution(self.oracle.instance, workers, ps, self.oracle.formulation)

    def _add(self, program: _Program, plans: Sequence[tuple[Ints, Ints]]) -> int:
        """Add the placements of the jobs' plans; return how many are new."""
        instance, added = self.oracle.instance, 0
        for (j, t), placements in self._known.items():
            step = t - (instance.jobs[j].arrival - 1)
            workers, ps = plans[j][0][step], int(plans[j][1][step])
            key = (*workers.tolist(), ps)
            if key in placements:
                continue
            at, nothing = np.arange(workers.size) == ps, np.zeros(workers.size)
            block = self.oracle.priced_block(j, t, nothing, nothing, nothing)
            cost = placement_cost(block, workers, np.int64(ps), np.inf)
            use = workers[:, None] * instance.worker_demand[j] + at[:, None] * instance.ps_demand[j]
            found = PricedPlacement(workers.copy(), ps, cost, use, (workers > 0) | at)
            placements[key] = found
            program.add((j, t), found)
            added += 1
        return added


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
    """A node's linear program over the placements that its limits allow, by HiGHS.

    Rows are named: ``one`` (j, t), a job is placed, an equation; and at most 0, ``present``
    (j, r, t) at most 1, ``deployed`` (j, r, t), (8h), ``rented`` and ``bought`` (r, k, j, t).
    """

    def __init__(self, oracle: MlbrokerOracle, limits: Mapping[int, Limits]) -> None:
        self.oracle, self._limits = oracle, limits
        self._largest = oracle.most_use(limits)
        sizes = [*oracle.fees.ravel(), *oracle.launches, *oracle.unit_prices.ravel()]
        self._factor = objective_factor(np.array(sizes))
        self._highs = highspy.Highs()
        for name, setting in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self._highs.setOptionValue(name, setting)
        self._rows: dict[Any, int] = {}
        self._passed = 0
        self._columns: list[tuple[float, dict[Any, float], float, float]] = []
        self._placed: dict[Life, list[tuple[PricedPlacement, int]]] = {}
        self._extra: dict[tuple[int, int, int], int] = {}
        self._fees: dict[tuple[int, int, int], int] = {}
        broker, fee = limits.get(len(oracle.instance.jobs), {}), oracle.fees
        worth = oracle.gains[:, :, None] * self._largest.sum(axis=2)
        for r, k, t in np.ndindex(worth.shape):
            low, high = window_of(broker, Feature(TIER, (r, k, t)))
            if worth[r, k, t] > (0.0 if low else fee[r, k]):
                column = self._column(float(fee[r, k]), {}, low, min(high, 1))
                self._fees[r, k, t] = column
        for j, t in np.argwhere(oracle.instance.alive).tolist():
            self._begin(j, t)

    def _column(
        self, cost: float, terms: dict[Any, float], low: float = 0.0, high: float = math.inf
    ) -> int:
        self._columns.append((cost, terms, low, high))
        return len(self._columns) - 1

    def _being(self, j: int, r: int, t: int) -> dict[Any, float]:
        """Terms of what makes a job present in a centre in a slot."""
        terms = {("present", j, r, t): 1.0, ("deployed", j, r, t): 1.0}
        if t + 1 < self.oracle.instance.jobs[j].departure:
            terms["deployed", j, r, t + 1] = -1.0
        return terms

    def _begin(self, j: int, t: int) -> None:
        """What a job's slot has beside placements."""
        oracle = self.oracle
        least, most, may, must, _ = oracle.within(j, t, self._limits.get(j, {}))
        closed = must | (least > 0) | (~may & (most == 0))  # used, or barred
        self._placed[j, t] = []
        for r, is_closed in enumerate(closed.tolist()):
            high = 0.0 if is_closed else 1.0
            self._extra[j, r, t] = self._column(0.0, self._being(j, r, t), 0.0, high)
            self._column(float(oracle.launches[j]), {("deployed", j, r, t): -1.0}, 0.0, 1.0)
            for k in range(oracle.gains.shape[1]):
                if (r, k, t) in self._fees:
                    rows = {("rented", r, k, j, t): 1.0, ("bought", r, k, j, t): 1.0}
                    self._column(-float(oracle.gains[r, k]), rows)
                    most_use = float(self._largest[r, k, j, t])
                    self._columns[self._fees[r, k, t]][1]["bought", r, k, j, t] = -most_use

    def add(self, life: Life, one: PricedPlacement) -> None:
        """Add a placement of a job's slot, where the node's limits allow it."""
        j, t = life
        least, most, may, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
        if not (may[one.ps] and (least <= one.workers).all() and (one.workers <= most).all()):
            return
        terms: dict[Any, float] = {("one", j, t): 1.0}
        for r in np.flatnonzero(one.present).tolist():
            terms |= self._being(j, r, t)
        for r, k in np.argwhere(one.use).tolist():
            if (r, k, t) in self._fees:
                terms["rented", r, k, j, t] = -float(one.use[r, k])
        cost = one.cost + float((self.oracle.unit_prices * one.use).sum())
        self._placed[life].append((one, self._column(cost, terms)))

    def solve(self) -> tuple[float, Floats, NodePoint]:
        """The optimum, prices of the oracle's rows, and the point."""
        highs, rows = self._highs, self._rows
        for cost, terms, low, high in self._columns[self._passed :]:
            for key in terms.keys() - rows.keys():
                rows[key] = len(rows)
                least = 1.0 if key[0] == "one" else -math.inf
                highs.addRow(least, float(key[0] in ("one", "present")), 0, [], [])
            at = np.array([rows[key] for key in terms], dtype=np.int32)
            values = np.array(list(terms.values()))
            highs.addCol(cost * self._factor, low, high, at.size, at, values)
        self._passed = len(self._columns)
        highs.run()
        if highs.getModelStatus() != _OPTIMAL:  # a basis may lead it astray
            highs.clearSolver()
            highs.run()
        if (status := highs.getModelStatus()) != _OPTIMAL:
            name = highs.modelStatusToString(status)
            raise SolveFailed(f"a node's program ended with {name}")
        found, value = highs.getSolution(), float(highs.getInfo().objective_function_value)
        prices = self._prices(-np.array(found.row_dual) / self._factor)
        return value / self._factor, prices, self._point(np.array(found.col_value))

    def _prices(self, duals: Floats) -> Floats:
        """Duals as prices of the oracle's rows.

        Where no fee can pay, and where nothing is rented, units cost the higher price.
        """
        gain = self.oracle.gains[:, :, None, None]
        discount = np.where(self._largest > 0, gain, 0.0)
        deployment = np.zeros((len(gain), *self._largest.shape[2:]))
        for (name, *index), row in self._rows.items():
            if name == "bought" and self._largest[tuple(index)]:
                top = float(self.oracle.gains[tuple(index[:2])])
                discount[tuple(index)] = min(max(0.0, duals[row]), top)
            elif name == "deployed":
                j, r, t = index
                deployment[r, j, t] = max(0.0, duals[row])
        return self.oracle.rows.pack({"discount": discount, "deployment": deployment})

    def _point(self, values: Floats) -> NodePoint:
        mixed = {
            life: [(float(values[i]), one) for one, i in own if values[i] > LEAST_SIDE]
            for life, own in self._placed.items()
        }
        fees = {tier: float(values[column]) for tier, column in self._fees.items()}
        held = [at for at, column in self._extra.items() if values[column] > LEAST_SIDE]
        return NodePoint(mixed, fees, held)


NODE_PROGRAM = TierNodes
"""What bounds the nodes of this family's trees."""
