"""Every family against brute force: its optimum is feasible, and no prices beat it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.instances.base import FAMILIES
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force import astraea, batchsched, edgecloud, gang, mlbroker, oasis
from tests.kernel.agreement import KERNELS, certificate, checked, exact, kernel_bound, random_prices
from tests.solvers.pricing.contract import layouts
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances as batchsched_instances
from tests.strategies.edgecloud import tiny_instances as edgecloud_instances
from tests.strategies.gang import tiny_instances as gang_instances
from tests.strategies.mlbroker import instances as mlbroker_instances
from tests.strategies.mlbroker import scaled
from tests.strategies.oasis import oasis_instances

FLOAT = Fraction(1, 10**9)
"""Relative rounding of an optimum that brute force adds up in floats."""
WINDOWS = ("batchsched", "astraea")
"""Families whose other formulations mean the same, or are those of jobs in pieces
(``tests/solvers/test_in_pieces.py``)."""
EXTREME = (1.0, 1.0, 1e-9, 1e6, 1e15)


@dataclass(frozen=True)
class Known:
    """An optimum, None if nothing is feasible, and the rows of a schedule where they are known."""

    value: Any
    rows: Any = None


def oasis_optimum(instance: Any, formulation: str) -> Known:
    best = oasis.optimum(instance)
    return Known(best.value, best.assignments)


def batchsched_optimum(instance: Any, formulation: str) -> Known:
    return Known(batchsched.optimum(instance))


def astraea_optimum(instance: Any, formulation: str) -> Known:
    best = astraea.optimum(instance, formulation.startswith("must"))
    return Known(None) if best is None else Known(best.value, best.assignments)


def edgecloud_optimum(instance: Any, formulation: str) -> Known:
    value = edgecloud.optimum(instance, formulation)
    return Known(None if math.isinf(value) else value)


def mlbroker_optimum(instance: Any, formulation: str) -> Known:
    return Known(mlbroker.optimum(instance.to_dict(), formulation))


def gang_optimum(instance: Any, formulation: str) -> Known:
    return Known(gang.optimum(instance.to_dict(), *formulation.split(",")))


CASES = {
    "oasis": (oasis_instances(), oasis_optimum),
    "batchsched": (batchsched_instances(num_jobs=2, horizon=3), batchsched_optimum),
    "astraea": (
        st.integers(1, 2).flatmap(lambda types: astraea_instances(types, 2, 3)), astraea_optimum,
    ),
    "edgecloud": (
        edgecloud_instances(finite_ps=False)
        | edgecloud_instances(max_jobs=2, storage=True, finite_ps=True),
        edgecloud_optimum,
    ),
    "mlbroker": (
        st.builds(scaled, mlbroker_instances(kinds=2), st.sampled_from([1, 1e-9, 1e9])),
        mlbroker_optimum,
    ),
    "gang": (gang_instances(), gang_optimum),
}  # fmt: skip


def some_prices(oracle: Any, seed: int) -> Any:
    """Prices of about what rows are worth, a few of them absurd."""
    draws = np.random.default_rng(seed)
    prices = random_prices(oracle, seed) * draws.choice(EXTREME)
    return prices * np.where(draws.random(prices.size) < 0.2, draws.choice(EXTREME), 1.0)


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data(), st.integers(0, 2**32))
def test_no_prices_beat_the_optimum_and_its_schedule_is_feasible(family, data, seed):
    instances, optimum = CASES[family]
    instance = data.draw(instances)
    known = [w for w in instance.formulations if family not in WINDOWS or w.endswith("modes")]
    for formulation in known if len(known) < 4 else [known[seed % len(known)]]:
        best = optimum(instance, formulation)
        if best.rows is not None:
            solution = hs.build_solution(instance, best.rows, formulation)
            verdict = checked(KERNELS[family], exact(instance.to_dict()), exact(solution.to_dict()))
            assert verdict.violations == ()
            assert float(verdict.objective.low) == pytest.approx(best.value, abs=1e-9)
        for layout in layouts(instance, formulation):
            oracle = build_oracle(instance, formulation, rows=layout)
            for number in range(3):
                prices = some_prices(oracle, seed + number)
                found = kernel_bound(instance, certificate(oracle, prices, 0, layout=layout))
                if best.value is None or found is None:
                    assert best.value is None
                elif instance.sense == "max":
                    assert found.high >= Fraction(best.value) * (1 - FLOAT)
                else:
                    assert found.low <= Fraction(best.value) * (1 + FLOAT)
