"""The linear program of a tree's nodes, kept for the whole tree: a decision changes bounds.

Columns are placements (workers and PS) of one job in one slot. Beside them stand units bought at
the lower price w, the fees u and the launches z of (8) in its disaggregated form, and presence that
is taken without being used, which the pricing oracle allows where nothing is decided. Placements
that a node forbids are held at 0, H is what its decisions leave, and the simplex method goes on
from the node before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.solvers.door.scaling import objective_factor
from hindsched.solvers.families.mlbroker.oracle import TIER, MlbrokerOracle
from hindsched.solvers.oracles.decisions import BranchDecision, Feature, Limits, window_of
from hindsched.solvers.tree.branching import LEAST_SIDE

Life = tuple[int, int]
"""A job and one of its slots (from 0)."""
Tier = tuple[int, int, int]
"""Centre, resource and slot."""
_OPTIONS = {"output_flag": False, "threads": 1, "presolve": "off"}
_OPTIMAL = highspy.HighsModelStatus.kOptimal


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


class TierProgram:
    """The program over all placements known.

    Parameters
    ----------
    oracle : MlbrokerOracle
        Oracle of the instance.

    Attributes
    ----------
    lives : list of Life
        What is placed.
    placements : dict
        Placements and their columns, by life.
    value : float
        The optimum, once it is solved.
    """

    def __init__(self, oracle: MlbrokerOracle) -> None:
        self.oracle = oracle
        self.lives: list[Life] = [
            (j, t)
            for j, job in enumerate(oracle.instance.jobs)
            for t in range(job.arrival - 1, job.departure)
        ]
        self.placements: dict[Life, list[tuple[PricedPlacement, int]]] = {
            one: [] for one in self.lives
        }
        self.value = math.nan
        self._factor = 1.0  # of costs, for HiGHS: it gives up on costs such as 1e19
        self._gain, self._fee, most = oracle.tier_terms()
        worth = self._gain[None] * most.sum(axis=0)[:, None] > self._fee[None]  # (T, R, K)
        self._cost: list[float] = []
        self._high: list[float] = []
        self._rows: list[tuple[dict[int, float], float, float]] = []
        self._fees: dict[Tier, int] = {
            (int(r), int(k), int(t)): self._column(float(self._fee[r, k]), 1.0)
            for t, r, k in np.argwhere(worth)
        }
        self._one: dict[Life, int] = {}
        self._extra: dict[tuple[int, int, int], int] = {}
        self._present: dict[tuple[int, int, int], int] = {}
        self._deployed: dict[tuple[int, int, int], int] = {}
        self._rented: dict[tuple[int, int, int, int], int] = {}
        self._bought: dict[tuple[int, int, int, int], int] = {}
        for j, t in self.lives:
            self._begin(j, t)
        self._low, self._up = [0.0] * len(self._high), list(self._high)
        self._shares = dict.fromkeys(self._bought, 0.0)
        self._highs = self._passed()

    def _column(self, cost: float, high: float = math.inf) -> int:
        self._cost.append(cost)
        self._high.append(high)
        return len(self._cost) - 1

    def _row(self, terms: dict[int, float], low: float, high: float) -> int:
        self._rows.append((terms, low, high))
        return len(self._rows) - 1

    def _begin(self, j: int, t: int) -> None:
        """Rows of a job's slot, without any placement."""
        centers, kinds = self._gain.shape
        self._one[j, t] = self._row({}, 1.0, 1.0)
        for r in range(centers):
            extra = self._extra[j, r, t] = self._column(0.0)
            self._present[j, r, t] = self._row({extra: 1.0}, -math.inf, 1.0)
            launch = self._column(float(self.oracle.launches[j]), 1.0)
            terms = {extra: 1.0, launch: -1.0}
            if (j, r, t - 1) in self._extra:
                terms[self._extra[j, r, t - 1]] = -1.0
            self._deployed[r, j, t] = self._row(terms, -math.inf, 0.0)
            for k in range(kinds):
                if (r, k, t) in self._fees and self._gain[r, k] > 0:
                    bought = self._column(-float(self._gain[r, k]))
                    self._rented[r, k, j, t] = self._row({bought: 1.0}, -math.inf, 0.0)
                    terms = {bought: 1.0}  # and the fee, times H
                    self._bought[r, k, j, t] = self._row(terms, -math.inf, 0.0)

    def _passed(self) -> Any:
        """HiGHS with the program so far."""
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._cost), len(self._rows)
        model.col_cost_, model.col_lower_ = np.array(self._cost), np.zeros(len(self._cost))
        model.col_upper_ = np.array(self._high)
        model.row_lower_ = np.array([low for _, low, _ in self._rows])
        model.row_upper_ = np.array([high for _, _, high in self._rows])
        lengths = [len(terms) for terms, _, _ in self._rows]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        model.a_matrix_.index_ = np.array([i for t, _, _ in self._rows for i in t], dtype=np.int32)
        model.a_matrix_.value_ = np.array([x for t, _, _ in self._rows for x in t.values()])
        highs = highspy.Highs()
        for name, setting in _OPTIONS.items():
            highs.setOptionValue(name, setting)
        highs.passModel(model)
        return highs

    def add(self, life: Life, one: PricedPlacement) -> None:
        """Add a placement of a job's slot."""
        j, t = life
        terms = {self._one[life]: 1.0}
        for r in np.flatnonzero(one.present).tolist():
            terms[self._present[j, r, t]] = 1.0
            terms[self._deployed[r, j, t]] = 1.0
            if (r, j, t + 1) in self._deployed:
                terms[self._deployed[r, j, t + 1]] = -1.0
        for r, k in np.argwhere(one.use).tolist():
            if (r, k, j, t) in self._rented:
                terms[self._rented[r, k, j, t]] = -float(one.use[r, k])
        cost = one.cost + float((self.oracle.unit_prices * one.use).sum())
        column = self._column(cost)
        self._low.append(0.0)
        self._up.append(math.inf)
        rows, values = np.array(list(terms), dtype=np.int32), np.array(list(terms.values()))
        self._highs.addCol(cost * self._factor, 0.0, math.inf, rows.size, rows, values)
        self.placements[life].append((one, column))

    def switch(self, limits: Mapping[int, Limits]) -> Floats:
        """Take a node's limits; return its H, shape (R, K, J, T)."""
        oracle = self.oracle
        low, high = np.zeros(len(self._high)), np.array(self._high)
        broker = limits.get(len(oracle.instance.jobs), {})
        for tier, column in self._fees.items():
            paid, may_pay = window_of(broker, Feature(TIER, tier))
            low[column], high[column] = paid, min(may_pay, 1)
        for j, t in self.lives:
            if j in limits:
                high[self._closed(j, t, limits[j])] = 0.0
        every = np.arange(high.size, dtype=np.int32)
        self._highs.changeColsBounds(high.size, every, low, high)
        self._low, self._up = low.tolist(), high.tolist()
        largest = oracle.most_use(limits)
        for at in self._bought:
            self._set_share(at, float(largest[at]))
        return largest

    def _closed(self, j: int, t: int, own: Limits) -> list[int]:
        """Columns of a job's slot that its limits leave at 0."""
        least, most, may, must, _ = self.oracle.within(j, t, own)
        closed = must | (least > 0) | (~may & (most == 0))  # used, or barred
        found = [self._extra[j, r, t] for r in np.flatnonzero(closed).tolist()]
        for one, column in self.placements[j, t]:
            if not (may[one.ps] and (least <= one.workers).all() and (one.workers <= most).all()):
                found.append(column)
        return found

    def _set_share(self, at: tuple[int, int, int, int], share: float) -> None:
        """Set H of a centre, a resource, a job and a slot."""
        if share != self._shares[at]:
            r, k, _, t = at
            self._shares[at] = share
            self._highs.changeCoeff(self._bought[at], self._fees[r, k, t], -share)

    def _scale(self) -> None:
        """Pass costs to HiGHS as suits the largest."""
        cost = np.array(self._cost)
        factor = objective_factor(cost)
        if factor != self._factor:
            self._factor = factor
            every = np.arange(cost.size, dtype=np.int32)
            self._highs.changeColsCost(every.size, every, cost * factor)

    def solve(self, largest: Floats) -> tuple[Floats, Floats, Floats]:
        """Solve it; return values of the columns, and discount and deployment prices."""
        self._scale()
        highs = self._highs
        highs.run()
        if highs.getModelStatus() != _OPTIMAL:  # a basis may lead it astray
            highs.clearSolver()
            highs.run()
        status = highs.getModelStatus()
        if status != _OPTIMAL:
            raise SolveFailed(f"a node's program ended with {highs.modelStatusToString(status)}")
        self.value = float(highs.getInfo().objective_function_value) / self._factor
        found = highs.getSolution()
        duals = np.array(found.row_dual) / self._factor
        # Where no fee can pay, and where nothing is rented, units cost the higher price.
        lam = np.where(largest > 0, self._gain[:, :, None, None], 0.0)
        for (r, k, j, t), row in self._bought.items():
            if largest[r, k, j, t]:
                lam[r, k, j, t] = min(max(0.0, -duals[row]), float(self._gain[r, k]))
        mu = np.zeros((len(self._gain), *largest.shape[2:]))
        for at, row in self._deployed.items():
            mu[at] = max(0.0, -duals[row])
        return np.array(found.col_value), lam, mu

    def fees(self, values: Floats) -> dict[Tier, float]:
        """How far each fee is paid."""
        return {tier: float(values[column]) for tier, column in self._fees.items()}

    def held(self, values: Floats) -> list[tuple[int, int, int]]:
        """Job, centre and slot where a job stays deployed without a use."""
        return [at for at, column in self._extra.items() if values[column] > LEAST_SIDE]

    def losses(self, limits: Mapping[int, Limits]) -> Callable[[BranchDecision], float]:
        """What the optimum of a node loses by a further decision; infinite if nothing is left.

        Placements that are not known are not made, so it may lose less.
        """
        highs = self._highs
        basis = highs.getBasis()

        def loss(side: BranchDecision) -> float:
            with self._on(side, limits):
                highs.run()
                status = highs.getModelStatus()
                value = float(highs.getInfo().objective_function_value) / self._factor
            highs.setBasis(basis)
            if status == highspy.HighsModelStatus.kInfeasible:
                return math.inf
            return value - self.value if status == _OPTIMAL else 0.0

        return loss

    @contextmanager
    def _on(self, side: BranchDecision, limits: Mapping[int, Limits]) -> Iterator[None]:
        """The program with a decision beside the limits that it has taken."""
        block, feature = side.block, side.feature
        shares: dict[tuple[int, int, int, int], float] = {}
        if feature.name == TIER:
            r, k, t = feature.index
            columns = [self._fees[r, k, t]]
            low, high = [float(side.low)], [float(min(side.high, 1))]
        else:
            own = dict(limits.get(block, {}))
            least, most = window_of(own, feature)
            own[feature] = max(least, side.low), min(most, side.high)
            t = feature.index[1]
            columns = self._closed(block, t, own)
            low = high = [0.0] * len(columns)
            use = self.oracle.use_within(block, t, own)
            for r, k in np.ndindex(use.shape):
                if (at := (r, k, block, t)) in self._bought:
                    shares[at] = self._shares[at]
                    self._set_share(at, float(use[r, k]))
        before = [self._low[column] for column in columns], [self._up[column] for column in columns]
        self._bound(columns, low, high)
        try:
            yield
        finally:
            self._bound(columns, *before)
            for at, share in shares.items():
                self._set_share(at, share)

    def _bound(self, columns: list[int], low: list[float], high: list[float]) -> None:
        """Pass bounds of columns to HiGHS."""
        index = np.array(columns, dtype=np.int32)
        self._highs.changeColsBounds(index.size, index, np.array(low), np.array(high))
