"""The linear program of a tree's nodes: placements of a job's slot, tiers, presence, launches.

Columns are placements (workers and PS) of one job in one slot. Beside them stand units bought at
the lower price w, the fees u and the launches z of (8) in its disaggregated form, and presence that
is taken without being used, which the pricing oracle allows where nothing is decided. The duals of
w <= H u and of (8h) are the prices; what is kept of a node is the bound that the oracle proves at
them, never the program's value. New columns are best responses at the prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import highspy
import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.solutions.base import Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.bounds.branching import LEAST_SIDE, Split
from hindsched.solvers.bounds.node_program import CONVERGED, NodeBound
from hindsched.solvers.kernels.mlbroker.geo_placement import placement_cost, restricted_placement
from hindsched.solvers.pricing.decisions import BranchDecision, Feature, limits_of, window_of
from hindsched.solvers.pricing.mlbroker.oracle import NODE_LIMIT, PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.pricing.restricted import RestrictedOracle
from hindsched.solvers.work import spend

MOST_ROUNDS = 60
"""Rounds of pricing at one node."""
SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""
MOST_PROBED = 8
"""Fees whose two sides are solved before one of them is split."""
LEAST_GAIN = 1e-6
"""What a side of a split costs at least, relatively, when splits are compared."""


@dataclass(frozen=True)
class PricedPlacement:
    """A placement of one job in one slot, with what it costs and rents.

    Parameters
    ----------
    workers : ndarray of int, shape (R,)
        Workers by centre.
    ps : int
        Centre of the PS.
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
    most : ndarray, shape (R, K, J, T)
        H within the node's decisions.
    """

    chosen: dict[tuple[int, int], PricedPlacement]
    mixed: dict[tuple[int, int], list[tuple[float, PricedPlacement]]]
    tiers: dict[tuple[int, int, int], float]
    most: Floats


class TierProgram:
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
        instance = oracle.instance
        self._lives = [
            (j, t)
            for j, job in enumerate(instance.jobs)
            for t in range(job.arrival - 1, job.departure)
        ]
        self._pool: dict[tuple[int, int], dict[tuple[int, ...], PricedPlacement]] = {
            life: {} for life in self._lives
        }
        self._gain, self._fee, self._most = oracle.tier_terms()
        worth = self._gain[None] * self._most.sum(axis=0)[:, None] > self._fee[None]  # (T, R, K)
        self._tiers = [(int(r), int(k), int(t)) for t, r, k in np.argwhere(worth)]

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
        restricted = RestrictedOracle(self.oracle, decisions)
        limits = limits_of(decisions)
        self._enough = math.inf if cutoff is None else cutoff
        best_prices, best = prices, restricted.bound(prices)
        if math.isinf(best) or (cutoff is not None and best >= cutoff):
            return NodeBound(best_prices, best, None, 0)
        self._add(prices, limits)
        for round_ in range(1, MOST_ROUNDS + 1):
            spend()
            value, duals, point = self._solve(limits)
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound = restricted.bound(tried)
                if bound > best:
                    best_prices, best = tried, bound
                added = self._add(tried, limits)
                if added:
                    break
            if cutoff is not None and best >= cutoff:
                return NodeBound(best_prices, best, None, round_)
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                return NodeBound(best_prices, best, None, round_)
            if not added or value - best <= CONVERGED * (1 + abs(value)):
                break
        return NodeBound(best_prices, best, [point], round_)

    def candidates(self, shares: Sequence[NodePoint]) -> list[Split]:
        """Fees that are paid in part, then places of PSs and workers that are mixed.

        A fee that is decided prices every unit of its tier exactly; placements are then mixed only
        where launches tie slots together.
        """
        (point,) = shares
        torn = [
            (min(share, 1 - share) * float(self._fee[at[:2]]), at, share)
            for at, share in point.tiers.items()
            if min(share, 1 - share) > LEAST_SIDE
        ]
        if torn:
            torn.sort(key=lambda one: -one[0])
            splits = [self._of_tier(at, share) for _, at, share in torn[:MOST_PROBED]]
            return sorted(splits, key=lambda split: -split.balance)
        found = []
        for (j, t), ways in point.mixed.items():
            for name, rank in ((PS, 1), (WORKERS, 2)):
                for r in range(len(self.oracle.instance.datacenters)):
                    found += self._between(j, Feature(name, (r, t)), rank, ways)
        return sorted(found, key=lambda split: (split.rank, -split.balance))

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

    def _of_tier(self, tier: tuple[int, int, int], share: float) -> Split:
        """Split a fee, which is worth more the more both sides cost the node's program.

        What passes the bound that is good enough is worth no more than what reaches it.
        """
        program, column = self._last
        least = LEAST_GAIN * (1 + abs(program.value))
        most = max(least, self._enough - program.value)
        gains = [program.value_with(column[tier], paid) - program.value for paid in (0.0, 1.0)]
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

    def _add(self, prices: Floats, limits: Any) -> int:
        """Add the best placements at prices; return how many are new."""
        oracle, instance = self.oracle, self.oracle.instance
        arrays = oracle.rows.unpack(prices)
        nothing = np.zeros(len(instance.datacenters))
        added = 0
        for j, t in self._lives:
            each, ps_price, presence = oracle.slot_prices(
                j, t, arrays["discount"], arrays["deployment"]
            )
            least, most, may, must, _ = oracle.within(j, t, limits.get(j, {}))
            more = np.where(must | (least > 0), 0.0, np.maximum(presence, 0.0))
            block = oracle.priced_block(j, t, each, ps_price, more)
            _, _, workers, ps = restricted_placement(block, least, most, may, NODE_LIMIT, np.inf)
            key = (*workers.tolist(), int(ps))
            if key in self._pool[j, t]:
                continue
            added += 1
            unpriced = block._replace(worker_price=nothing, ps_price=nothing, launch=nothing)
            cost = placement_cost(unpriced, workers, ps)
            at = np.arange(len(nothing)) == ps
            use = workers[:, None] * instance.worker_demand[j] + at[:, None] * instance.ps_demand[j]
            found = PricedPlacement(workers, int(ps), float(cost), use, (workers > 0) | at)
            self._pool[j, t][key] = found
        return added

    def _solve(self, limits: Any) -> tuple[float, Floats, NodePoint]:
        """Value, prices and solution of the program over all placements known."""
        oracle, instance = self.oracle, self.oracle.instance
        build, largest = _Program(), oracle.most_use(limits)
        broker = limits.get(len(instance.jobs), {})
        fees: dict[tuple[int, int, int], int] = {}
        for r, k, t in self._tiers:
            low, high = window_of(broker, Feature(TIER, (r, k, t)))
            fees[r, k, t] = build.column(float(self._fee[r, k]), low, min(high, 1))
        kept: dict[tuple[int, int], list[tuple[PricedPlacement, int]]] = {}
        presence: dict[tuple[int, int, int], dict[int, float]] = {}
        discount, deployment = {}, {}
        centers = range(len(instance.datacenters))
        for j, t in self._lives:
            least, most, may, must, _ = oracle.within(j, t, limits.get(j, {}))
            used, barred = must | (least > 0), ~may & (most == 0)
            allowed = [
                one
                for one in self._pool[j, t].values()
                if may[one.ps] and (least <= one.workers).all() and (one.workers <= most).all()
            ]
            unit = oracle.unit_prices
            kept[j, t] = [
                (one, build.column(one.cost + float((unit * one.use).sum()))) for one in allowed
            ]
            build.row({at: 1.0 for _, at in kept[j, t]}, 1.0, 1.0)
            for r in centers:
                own = {at: 1.0 for one, at in kept[j, t] if one.present[r]}
                if not used[r] and not barred[r]:  # presence that is not used
                    extra = build.column(0.0)
                    build.row({extra: 1.0, **own}, -math.inf, 1.0)
                    own[extra] = 1.0
                presence[j, r, t] = own
                launch = build.column(float(oracle.launches[j]), 0.0, 1.0)
                before = presence.get((j, r, t - 1), {})
                terms = {**own, **dict.fromkeys(before, -1.0), launch: -1.0}
                deployment[r, j, t] = build.row(terms, -math.inf, 0.0)
                for k in range(len(instance.resources)):
                    share = float(largest[r, k, j, t])
                    if (r, k, t) not in fees or not share or self._gain[r, k] <= 0:
                        continue
                    bought = build.column(-float(self._gain[r, k]))
                    rented = {at: -float(one.use[r, k]) for one, at in kept[j, t] if one.use[r, k]}
                    build.row({bought: 1.0, **rented}, -math.inf, 0.0)
                    terms = {bought: 1.0, fees[r, k, t]: -share}
                    discount[r, k, j, t] = build.row(terms, -math.inf, 0.0)
        value, columns, rows = build.solve()
        shape = (len(centers), len(instance.resources), *self._most.shape[:2])
        # Where no fee can pay, and where nothing is rented, units cost the higher price.
        lam = np.zeros(shape)
        lam[:] = np.where(largest > 0, self._gain[:, :, None, None], 0.0)
        for (r, k, j, t), row in discount.items():
            lam[r, k, j, t] = min(max(0.0, -rows[row]), float(self._gain[r, k]))
        mu = np.zeros((len(centers), *self._most.shape[:2]))
        for at, row in deployment.items():
            mu[at] = max(0.0, -rows[row])
        prices = oracle.rows.pack({"discount": lam, "deployment": mu})
        mixed = {
            life: [(float(columns[i]), one) for one, i in own if columns[i] > LEAST_SIDE]
            for life, own in kept.items()
        }
        chosen = {life: max(own, key=lambda way: columns[way[1]])[0] for life, own in kept.items()}
        tiers = {at: float(columns[i]) for at, i in fees.items()}
        self._last = build, fees
        return value, prices, NodePoint(chosen, mixed, tiers, largest)


class _Program:
    """A linear program that is built row by row and solved, and again with a variable fixed.

    Attributes
    ----------
    value : float
        Its optimum, once it is solved.
    """

    def __init__(self) -> None:
        self.value = math.nan
        self._cost: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._rows: list[tuple[dict[int, float], float, float]] = []

    def column(self, cost: float, low: float = 0.0, high: float = math.inf) -> int:
        """Add a variable; return its number."""
        self._cost.append(cost)
        self._low.append(low)
        self._high.append(high)
        return len(self._cost) - 1

    def row(self, terms: dict[int, float], low: float, high: float) -> int:
        """Add a row; return its number."""
        self._rows.append((terms, low, high))
        return len(self._rows) - 1

    def solve(self) -> tuple[float, Floats, Floats]:
        """Optimum, values of the variables and duals of the rows."""
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._cost), len(self._rows)
        model.col_cost_, model.col_lower_ = np.array(self._cost), np.array(self._low)
        model.col_upper_ = np.array(self._high)
        model.row_lower_ = np.array([low for _, low, _ in self._rows])
        model.row_upper_ = np.array([high for _, _, high in self._rows])
        lengths = [len(terms) for terms, _, _ in self._rows]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        model.a_matrix_.index_ = np.array([i for t, _, _ in self._rows for i in t], dtype=np.int32)
        model.a_matrix_.value_ = np.array([x for t, _, _ in self._rows for x in t.values()])
        highs = highspy.Highs()
        for name, setting in {"output_flag": False, "threads": 1, "presolve": "off"}.items():
            highs.setOptionValue(name, setting)
        highs.passModel(model)
        highs.run()
        status = highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolveFailed(f"a node's program ended with {highs.modelStatusToString(status)}")
        found = highs.getSolution()
        self._highs, self.value = highs, float(highs.getInfo().objective_function_value)
        return self.value, np.array(found.col_value), np.array(found.row_dual)

    def value_with(self, column: int, fixed: float) -> float:
        """Optimum with a variable fixed; infinite if there is none, `value` if HiGHS fails."""
        self._highs.changeColBounds(column, fixed, fixed)
        self._highs.run()
        status = self._highs.getModelStatus()
        found = float(self._highs.getInfo().objective_function_value)
        self._highs.changeColBounds(column, self._low[column], self._high[column])
        if status == highspy.HighsModelStatus.kInfeasible:
            return math.inf
        return found if status == highspy.HighsModelStatus.kOptimal else self.value


NODE_PROGRAM = TierProgram
"""What bounds the nodes of this family's trees."""
