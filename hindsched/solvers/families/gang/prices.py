"""Good prices for gang: climb the Lagrangian bound, and cut time finer where use bends.

Jobs in one piece: the smoothed bound (`soft_responses`) is climbed by L-BFGS-B from the fluid
relaxation's prices, in a metric in which a unit is a price for the length of an interval. Smoothing
begins coarse, on few intervals, and becomes finer; then the intervals are halved in which the two
halves would pull the price apart most. Pausing jobs: the subgradient method of all families, from
the fluid's prices on equal intervals. The result is the best that was seen, in few digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import Clock, count_work
from hindsched.solvers.families.gang.oracle import GangOracle, gang_oracle
from hindsched.solvers.kernels.gang.best_responses import fluid_prices

COARSE = 1000
"""Intervals at first."""
STAGES = (
    *((share, False) for share in (1.0, 0.3, 0.1, 0.03, 0.01)),
    *((share, True) for share in (0.01, 0.01, 0.003, 0.003, 0.001, 0.001, 0.0003, 0.0003)),
    *((share, False) for share in (0.001, 0.001, 0.0003, 0.0003)),
)
"""Smoothing relative to the mean weighted duration, and whether intervals are halved before."""
MOST_INTERVALS = 40_000
ITERATIONS = 50
MEMORY = 20
DIGITS = 6
"""Significant digits of the largest price; all prices are multiples of its last."""


@dataclass
class DualAscent:
    """Climbs the bound, and keeps the best prices."""

    oracle: GangOracle  # the oracle on the present intervals
    prices: Floats  # present prices per GPU-second, (intervals,)
    clock: Clock  # says when to stop
    # called with the expected starts after each stage
    on_expected: Callable[[Floats], None] | None = None
    best: float = -math.inf
    best_prices: Floats = field(default_factory=lambda: np.zeros(0))
    best_cut: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    expected: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def scale(self) -> float:
        """Mean cost of a job's own duration (deadlines: of missing one), in the objective."""
        blocks = self.oracle.blocks
        if self.oracle.goal == "deadlines":
            return max(float(blocks.skip.mean()), 1e-12)
        return float((blocks.slope * blocks.duration).mean())

    def record(self, bound: float, cut: Ints, prices: Floats) -> None:
        """Remember prices whose bound is the best so far."""
        if bound > self.best:
            self.best, self.best_cut, self.best_prices = bound, cut, prices.copy()

    def smooth(self, share: float, iterations: int = ITERATIONS) -> None:
        """DualAscent the bound smoothed by `share` of the scale."""
        oracle, scale = self.oracle, self.scale
        seconds = float(oracle.instance.slot_seconds)
        length = np.sqrt(np.diff(oracle.cut) * seconds)
        length = np.tile(length, len(oracle.rows.kinds))
        capacity = oracle.rows.capacity
        unit = scale * max(1, oracle.num_blocks)
        mu = share * scale

        def negative(point: Floats) -> tuple[float, Floats]:
            prices = np.maximum(point, 0.0) / length
            soft, hard, use, self.expected = oracle.soft_responses(oracle.cut, prices * seconds, mu)
            count_work()
            paid = float(prices @ capacity)
            self.record(hard - paid, oracle.cut, prices)
            return -(soft - paid) / unit, -(use * seconds - capacity) / length / unit

        def look_at_the_clock(_: Floats) -> None:
            if self.clock.is_over:
                raise StopIteration

        from scipy.optimize import minimize  # a quarter of a second, of every process that starts

        optimum: Any = minimize(  # type: ignore[call-overload]
            negative, self.prices * length, jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * length.size, callback=look_at_the_clock,
            options={"maxiter": iterations, "maxcor": MEMORY, "ftol": 1e-10, "gtol": 1e-9},
        )  # fmt: skip
        self.prices = np.maximum(optimum.x, 0.0) / length
        if self.on_expected is not None:
            self.on_expected(self.expected)

    def refine(self, share: float) -> None:
        """Halve the intervals whose halves pull the price apart most, at most all of them."""
        oracle, cut = self.oracle, self.oracle.cut
        seconds = float(oracle.instance.slot_seconds)
        length = np.diff(cut)
        middle = cut[:-1] + length // 2
        whole = length > 1
        fine = np.unique(np.concatenate([cut, middle[whole]]))
        owner = np.searchsorted(cut, fine[:-1], side="right") - 1
        known, counts = oracle.rows.by_kind(self.prices), list(oracle.instance.gpu_kinds.values())
        per_slot = known[:, owner] * seconds
        use = oracle.soft_responses(fine, per_slot, share * self.scale).use.reshape(per_slot.shape)
        pull = use - np.outer(counts, np.diff(fine))
        first = np.searchsorted(fine, cut[:-1])
        left, right = pull[:, first], pull[:, np.minimum(first + 1, pull.shape[1] - 1)]
        free = known <= 0  # such a price can only rise
        left, right = (np.where(free, np.maximum(side, 0.0), side) for side in (left, right))
        pulled = np.abs(left - right).sum(axis=0)
        gain = np.where(whole, pulled / np.sqrt(length), 0.0)
        count = min(length.size, MOST_INTERVALS - length.size)
        if count <= 0:
            return
        chosen = np.argsort(-gain, kind="stable")[:count]
        chosen = chosen[gain[chosen] > 0]
        new = np.unique(np.concatenate([cut, middle[chosen]]))
        self.prices = known[:, np.searchsorted(cut, new[:-1], side="right") - 1].ravel()
        self.oracle = gang_oracle(oracle.instance, oracle.formulation, new)

    def result(self) -> tuple[GangOracle, Floats]:
        """Oracle and prices of the best bound, in few digits, neighbours of one price joined."""
        instance, formulation = self.oracle.instance, self.oracle.formulation
        cut, prices = self.best_cut, self.best_prices
        if (largest := float(prices.max(initial=0.0))) > 0:  # few digits: exact sums are short
            places = DIGITS - 1 - math.floor(math.log10(largest))
            prices = np.round(prices, places) + 0.0
        table = prices.reshape(len(self.oracle.rows.kinds), -1)
        while table.shape[1] and not table[:, -1].any():
            cut, table = cut[:-1], table[:, :-1]
        kept = np.ones(table.shape[1], dtype=bool)
        kept[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
        cut = np.concatenate([cut[:-1][kept], cut[-1:]])
        return gang_oracle(instance, formulation, cut), table[:, kept].ravel()


def first_cut(instance: GangInstance, end: int, count: int = COARSE) -> Ints:
    """Intervals of equal length from the first submission to `end`, and one before."""
    first = int(instance.submits.min()) if instance.jobs else 0
    cuts = np.linspace(first, max(end, first + 1), count + 1).astype(np.int64)
    return np.unique(np.concatenate([[0], cuts]))


def start_prices(oracle: GangOracle) -> Floats:
    """Prices of the fluid relaxation per GPU-second; none where the objective is another."""
    instance = oracle.instance
    if oracle.goal != "completion":
        return np.zeros(oracle.rows.size)
    order = np.argsort(instance.submits, kind="stable")
    area = (instance.durations * instance.job_gpus)[order].astype(float)
    density = instance.weights[order] / area  # a slot of time and a slot of GPU alike
    rooms = np.array(list(instance.gpu_kinds.values()))
    shares = instance.allowed_kinds[order] * rooms  # work spreads by the sizes of its kinds
    shares = shares / shares.sum(axis=1, keepdims=True)
    known = []
    for room, share in zip(rooms.tolist(), shares.T, strict=True):
        members = np.flatnonzero(share)
        if not members.size:
            known.append(np.zeros(oracle.cut.size - 1))
            continue
        submit, work = instance.submits[order][members], (area * share)[members]
        known.append(fluid_prices(oracle.cut, submit, work, density[members], room))
    return np.concatenate(known)


def certify_without_prices(instance: GangInstance, formulation: str) -> Certificate:
    """What each job costs if the others are not there, or what counting says of the makespan."""
    oracle = gang_oracle(instance, formulation, np.array([0, max(1, instance.serial_end)]))
    return certify(oracle, np.zeros(oracle.rows.size))


def ascend_prices(
    instance: GangInstance, formulation: str, end: int, target: float, clock: Clock,
    on_expected: Callable[[Floats], None] | None = None,
) -> DualAscent:  # fmt: skip
    """Find good prices; the makespan's bound needs none.

    A known schedule of objective `target` is complete by slot `end`; `on_expected` gets the
    expected starts after each stage of jobs in one piece.
    """
    oracle = gang_oracle(instance, formulation, first_cut(instance, end))
    first = start_prices(oracle)
    ascent = DualAscent(oracle, first, clock, on_expected)
    ascent.record(oracle.bound(first), oracle.cut, first)
    if oracle.kind != KINDS[0]:
        options = SolveOptions(time_limit=clock.seconds_left)
        subgradient = subgradient_bound(oracle, options, start_prices=first, target=target)
        ascent.record(subgradient.bound, oracle.cut, subgradient.certificate.prices)
        return ascent
    for share, finer in STAGES:
        if clock.is_over:
            break
        if finer:
            ascent.refine(share)
        ascent.smooth(share)
    return ascent
