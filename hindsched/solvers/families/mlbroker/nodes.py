"""Bounds the nodes of a tree by a linear program of placements, tiers, presence and launches.

Columns are placements (workers and PS) of one job in one slot. Beside them stand units bought at
the lower price w, the fees u and the launches z of (8) in its disaggregated form, and presence that
is taken without being used. The duals of w <= H u and of (8h) are the prices; what is kept of a
node is the bound that the oracle proves at them. (Column generation over whole lives, as for other
families, leaves open after 75 processor seconds what this proves in five nodes.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.solutions.base import Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, empty_placements
from hindsched.solvers.door.standard_form import objective_factor
from hindsched.solvers.door.work import count_work, interrupted
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.kernels.mlbroker.geo_placement import placement_cost
from hindsched.solvers.oracles.decisions import BranchDecision, Feature, Limits, limits_of
from hindsched.solvers.tree.node_program import CONVERGED, LEAST_SIDE, NodeBound, Split

MOST_ROUNDS = 60
"""Rounds of pricing at one node."""
SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""


class PlacementColumn(NamedTuple):
    """A placement of one job in one slot."""

    life: int  # which of the jobs' slots
    workers: Ints  # (R,)
    ps: int
    cost: float  # of transfer and communication, and the rent at the higher price, weighted
    use: Floats  # units rented, (R, K)
    present: Bools  # centres that it uses, (R,)


class NodePoint(NamedTuple):
    """Solution of a node's program."""

    mixed: list[list[tuple[float, PlacementColumn]]]  # by life, the placements with their shares
    tiers: Floats  # how far a fee is paid, (T, R, K)
    held: Bools  # where a job stays deployed without a use, (lives, R)


class TierNodes:
    """Bounds the nodes of a tree of ``tight``.

    `size` is not used: placements are made where none is known, so nothing is bought off.
    """

    def __init__(self, oracle: MlbrokerOracle, size: float) -> None:
        self.oracle, self._interrupted = oracle, interrupted()
        self._limits: Mapping[int, Limits] = {}
        self._lives = [(j, t) for j, t in np.argwhere(oracle.instance.alive).tolist()]
        self._known: dict[tuple[int, ...], PlacementColumn] = {}

    def bound(
        self, decisions: Sequence[BranchDecision], prices: Floats, cutoff: float | None,
        seconds: Callable[[], float | None], known: Any = None,
    ) -> NodeBound:  # fmt: skip
        """Find good prices for the solutions that obey `decisions`; see `NodeProgram.bound`."""
        limits = self._limits = limits_of(decisions)
        if any(low > high for job_limits in limits.values() for low, high in job_limits.values()):
            return NodeBound(prices, math.inf, None)
        best_prices = prices
        best, plans = self.oracle.priced_within(prices, limits)
        if math.isinf(best) or (cutoff is not None and best >= cutoff):
            return NodeBound(best_prices, best, None)
        self._add(plans)
        for _ in range(MOST_ROUNDS):
            count_work()
            value, duals, point = self._solve()
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, plans = self.oracle.priced_within(tried, limits)
                if bound > best:
                    best_prices, best = tried, bound
                added = self._add(plans)
                if added:
                    break
            left = seconds()
            late = self._interrupted.is_set() or (left is not None and left <= 0)
            if late or (cutoff is not None and best >= cutoff):
                return NodeBound(best_prices, best, None)
            if not added or value - best <= CONVERGED * (min(1.0, abs(value)) + abs(value)):
                break
        return NodeBound(best_prices, best, [point])

    def candidates(self, shares: Sequence[NodePoint]) -> list[Split]:
        """Fees that are paid in part, PSs and workers that are mixed, then what is held unused.

        A fee that is decided prices every unit of its tier exactly.
        """
        (point,) = shares
        oracle, broker = self.oracle, len(self.oracle.instance.jobs)
        side = np.minimum(point.tiers, 1 - point.tiers)
        torn = np.argwhere(side > LEAST_SIDE).tolist()
        splits = [
            Split(broker, Feature(TIER, (r, k, t)), 0, 0, float(side[t, r, k] * oracle.fees[r, k]),
                  float(point.tiers[t, r, k]))
            for t, r, k in torn
        ]  # fmt: skip
        splits += self._tightening(point, torn)
        if not splits:
            splits = [
                split
                for (j, t), ways in zip(self._lives, point.mixed, strict=True)
                for name in (PS, WORKERS)
                for r in range(len(oracle.instance.datacenters))
                for split in _between(j, Feature(name, (r, t)), ways)
            ]
        if not splits:
            for life, r in np.argwhere(point.held).tolist():
                j, t = self._lives[life]
                _, most, _, _, _ = oracle.within(j, t, self._limits.get(j, {}))
                name = WORKERS if most[r] else PS
                splits.append(Split(j, Feature(name, (r, t)), 0, 0, 0.0, 1.0))
        return sorted(splits, key=lambda split: -split.balance)

    def _tightening(self, point: NodePoint, torn: Sequence[Sequence[int]]) -> list[Split]:
        """Splits that bring H, by which torn fees are paid in part, down to what is rented."""
        instance, gain = self.oracle.instance, self.oracle.gains
        worth: dict[tuple[int, Feature, int], float] = {}
        for slot, r, k in torn:
            for (j, t), column in zip(self._lives, _largest_shares(point), strict=True):
                if t != slot:
                    continue
                _, most, may, _, _ = self.oracle.within(j, t, self._limits.get(j, {}))
                workers = int(column.workers[r])
                spare = min(int(most[r]), self.oracle.crew(j, t)) - workers
                if spare > 0:
                    at = j, Feature(WORKERS, (r, t)), workers
                    units = spare * float(instance.worker_demand[j, k])
                elif may[r] and column.ps != r:
                    at, units = (j, Feature(PS, (r, t)), 0), float(instance.ps_demand[j, k])
                else:
                    continue
                worth[at] = worth.get(at, 0.0) + float(gain[r, k]) * units
        return [
            Split(j, feature, most, 0, gained, 1.0) for (j, feature, most), gained in worth.items()
        ]

    def undecided(
        self, shares: Sequence[NodePoint], decisions: Sequence[BranchDecision]
    ) -> list[Split]:
        """Nothing: the value of an integral node is what its placements cost."""
        return []

    def solution(
        self, shares: Sequence[NodePoint], splits: Sequence[Split], seconds: float | None
    ) -> Solution | None:
        """Placements with the largest shares, together, where nothing is mixed."""
        if splits:
            return None
        workers, ps = empty_placements(self.oracle.instance)
        for (j, t), column in zip(self._lives, _largest_shares(shares[0]), strict=True):
            workers[j, t], ps[j, t] = column.workers, column.ps
        return MlbrokerSolution(self.oracle.instance, workers, ps, self.oracle.formulation)

    def _add(self, plans: Sequence[tuple[Ints, Ints]]) -> int:
        """Add the placements of the jobs' plans; return how many are new."""
        oracle, instance, before = self.oracle, self.oracle.instance, len(self._known)
        for life, (j, t) in enumerate(self._lives):
            step = t - (instance.jobs[j].arrival - 1)
            workers, ps = plans[j][0][step], int(plans[j][1][step])
            key = (life, ps, *workers.tolist())
            if key in self._known:
                continue
            at, no_price = np.arange(workers.size) == ps, np.zeros(workers.size)
            block = oracle.priced_block(j, t, no_price, no_price, no_price)
            use = workers[:, None] * instance.worker_demand[j] + at[:, None] * instance.ps_demand[j]
            cost = placement_cost(block, workers, np.int64(ps), np.inf)
            cost += float((oracle.unit_prices * use).sum())
            present = (workers > 0) | at
            self._known[key] = PlacementColumn(life, workers.copy(), ps, cost, use, present)
        return len(self._known) - before

    def _solve(self) -> tuple[float, Floats, NodePoint]:
        """The optimum over the placements within limits, prices of the oracle's rows, the point.

        Columns are placements, presence without a use, launches z, w, and the fees u. Rows say that
        presence is at most 1, (8h), that w is at most what is rented, and w <= H u.
        """
        oracle, limits, (job, slot) = self.oracle, self._limits, np.array(self._lives).T
        (R, K), L, T = oracle.fees.shape, len(job), oracle.instance.horizon
        within = [oracle.within(j, t, limits.get(j, {})) for j, t in self._lives]
        columns = []
        for column in self._known.values():
            least, most, may, _, _ = within[column.life]
            if (
                may[column.ps]
                and (least <= column.workers).all()
                and (column.workers <= most).all()
            ):
                columns.append(column)
        closed = [must | (least > 0) | (~may & (most == 0)) for least, most, may, must, _ in within]
        largest = oracle.most_use(limits)[:, :, job, slot].transpose(2, 0, 1)  # H, (L, R, K)
        least_paid, most_paid = np.zeros((T, R, K)), np.ones((T, R, K))
        for feature, (low, high) in limits.get(len(oracle.instance.jobs), {}).items():
            r, k, t = feature.index
            least_paid[t, r, k], most_paid[t, r, k] = low, min(high, 1)

        def of_placements(amounts: list[Any]) -> Any:
            """A row for each life and each place of an amount."""
            table = np.zeros((L, np.size(amounts[0]), len(columns)))
            lives = [column.life for column in columns]
            table[lives, :, np.arange(len(columns))] = np.reshape(amounts, (len(columns), -1))
            return sp.csr_array(table.reshape(-1, len(columns)))

        present = of_placements([column.present for column in columns])
        use = of_placements([column.use for column in columns])
        after = (job[:, None] == job) & (slot[:, None] == slot + 1)
        launched = sp.csr_array(np.eye(L * R) - np.kron(after, np.eye(R)))
        in_slot = slot[:, None] == np.arange(T)
        fee_share = sp.diags_array(largest.ravel()) @ np.kron(in_slot, np.eye(R * K))
        identity, unit = sp.eye_array(L * R), sp.eye_array(L * R * K)
        rows = sp.block_array(
            [
                [present, identity, None, None, None],
                [launched @ present, launched, -identity, None, None],
                [-use, None, None, unit, None],
                [None, None, None, unit, -sp.csr_array(fee_share)],
            ]
        )
        others = sp.csr_array((L, rows.shape[1] - len(columns)))
        once = sp.hstack([of_placements([1.0] * len(columns)), others])
        costs = (
            [column.cost for column in columns], np.zeros(L * R),
            np.repeat(oracle.launches[job], R),
            np.tile(-oracle.gains.ravel(), L), np.tile(oracle.fees.ravel(), T),
        )  # fmt: skip
        above = (
            [np.inf] * len(columns),
            ~np.ravel(closed),
            np.ones(L * R),
            np.full(L * R * K, np.inf),
        )
        bounds = np.zeros((rows.shape[1], 2))
        bounds[-least_paid.size :, 0] = least_paid.ravel()
        bounds[:, 1] = np.concatenate([*above, most_paid.ravel()])
        factor = objective_factor(np.concatenate(costs))
        solve: Any = linprog  # whose types know no sparse matrices
        optimum = solve(
            factor * np.concatenate(costs), rows, np.arange(rows.shape[0]) < L * R, once,
            np.ones(L), bounds, method="highs",
        )  # fmt: skip
        if optimum.status != 0:
            raise SolveFailed(f"a node's program ended with {optimum.message}")
        _, deployed, _, paid = np.split(
            np.maximum(0.0, -optimum.ineqlin.marginals / factor),
            np.cumsum([L * R, L * R, L * R * K]),
        )
        flat = np.zeros(oracle.rows.size)
        prices = oracle.rows.unpack(flat)
        prices["discount"][:, :, job, slot] = paid.reshape(L, R, K).transpose(1, 2, 0)
        prices["deployment"][:, job, slot] = deployed.reshape(L, R).T
        shares, held, _, _, tiers = np.split(
            optimum.x, np.cumsum([len(part) for part in costs[:-1]])
        )
        mixed: list[list[tuple[float, PlacementColumn]]] = [[] for _ in self._lives]
        for share, column in zip(shares.tolist(), columns, strict=True):
            if share > LEAST_SIDE:
                mixed[column.life].append((share, column))
        point = NodePoint(mixed, tiers.reshape(T, R, K), held.reshape(L, R) > LEAST_SIDE)
        return float(optimum.fun) / factor, flat, point


def _largest_shares(point: NodePoint) -> list[PlacementColumn]:
    """The placements with the largest shares, by life."""
    return [max(shares, key=lambda way: way[0])[1] for shares in point.mixed]


def _between(job: int, feature: Feature, ways: list[tuple[float, PlacementColumn]]) -> list[Split]:
    """The most even split of a job's workers or PS in a centre, if they are mixed."""
    r = feature.index[0]
    counts = [
        int(column.ps == r) if feature.name == PS else int(column.workers[r]) for _, column in ways
    ]
    splits = []
    for k in sorted(set(counts))[:-1]:
        below = sum(share for (share, _), count in zip(ways, counts, strict=True) if count <= k)
        if (side := min(below, 1 - below)) > LEAST_SIDE:
            splits.append(Split(job, feature, k, 0, side, below))
    return sorted(splits, key=lambda split: -split.balance)[:1]


"""What bounds the nodes of this family's trees."""
