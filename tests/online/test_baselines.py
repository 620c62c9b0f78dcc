"""Baselines of several families: by hand, known small answers, ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hindsched.instances.generators.registry import generate
from hindsched.online.baselines.fair_shares import (
    Present,
    finish_time_shares,
    max_min_shares,
)
from hindsched.online.registry import algorithms, settings_of
from hindsched.online.simulator import simulate


def present(use: Any, left: Any, total: Any = None, waited: Any = None) -> Present:
    slots = np.array(left, dtype=float)
    return Present(
        np.array(use, dtype=float),
        slots,
        slots if total is None else np.array(total, dtype=float),
        np.zeros(len(slots)) if waited is None else np.array(waited, dtype=float),
    )


def test_max_min_shares_of_a_whole_and_a_half_cluster() -> None:
    """An equal part is half the time to the job that needs all, all of it to the other."""
    jobs = present([[1.0, 0.5]], [3, 3])
    assert jobs.equal == pytest.approx([0.5, 1.0])
    assert max_min_shares(jobs) == pytest.approx([0.5, 1.0], abs=1e-5)


def test_finish_time_shares() -> None:
    """Two jobs of the whole cluster: equal ones share equally, whoever waited gets more."""
    assert finish_time_shares(present([[1, 1]], [4, 4])) == pytest.approx([0.5, 0.5], abs=1e-4)
    # (4 / x) / 8 = (2 + 1 / (1 - x)) / 2 at x = 1 - sqrt(1/2).
    waited = present([[1, 1]], [4, 1], waited=[0, 2])
    root = math.sqrt(0.5)
    assert finish_time_shares(waited) == pytest.approx([1 - root, root], abs=1e-4)


YARDSTICKS = ("shortest-remaining", "least-attained")
OVER_TIME = ("oasis", "batchsched", "astraea", "edgecloud")
GANG_RIVALS = [
    (family, name)
    for family in OVER_TIME
    for name in algorithms(family)
    if "gangs" in settings_of(algorithms(family)[name]) and name not in ("gavel", "themis")
]


@pytest.mark.parametrize(("family", "name"), GANG_RIVALS)
def test_best_gangs_are_the_best_of_the_three(family: str, name: str) -> None:
    tiny = generate(family, "small", 3)
    settings = {"elastic": False} if name in YARDSTICKS else {}
    alone = {
        width: simulate(tiny, name, settings={**settings, "gangs": width}).objective
        for width in ("ideal", "half", "drawn")
    }
    result = simulate(tiny, name, settings={**settings, "gangs": "best"})
    best = (max if tiny.sense == "max" else min)(alone.values())
    assert result.objective == best == alone[result.report["gangs"]]
    assert result.report["objective_by_gangs"] == alone
    assert result.mark.endswith(f"(best gangs: {result.report['gangs']})")
