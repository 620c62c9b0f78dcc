"""optimus, gavel, themis and sia: known small answers, schedules by hand, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.generators.registry import generate
from hindsched.online.baselines.fair_shares import (
    Present,
    all_of_the_time,
    finish_time_shares,
    max_min_shares,
)
from hindsched.online.baselines.sia import Sia
from hindsched.online.registry import algorithms
from hindsched.online.simulator import simulate
from tests.online.elastic_server import completions, server_of_four

SHARED = ("optimus", "gavel", "themis", "sia")
OVER_TIME = ("oasis", "batchsched", "astraea", "edgecloud")


def present(use: Any, left: Any, total: Any = None, waited: Any = None) -> Present:
    slots = np.array(left, dtype=float)
    return Present(
        np.array(use, dtype=float),
        slots,
        slots if total is None else np.array(total, dtype=float),
        np.zeros(len(slots)) if waited is None else np.array(waited, dtype=float),
    )


def test_optimus_by_hand() -> None:
    # 1: j1 2, j2 1, j3 1. 2: j1 1, j4 1, and j2 saves most by the second. 5: j1 2, j4 2.
    result = simulate(server_of_four(), "optimus")
    assert result.violations == []
    assert completions(result) == [5, 4, 1, 5]


def test_max_min_shares_of_a_whole_and_a_half_cluster() -> None:
    """An equal part is half the time to the job that needs all, all of it to the other."""
    jobs = present([[1.0, 0.5]], [3, 3])
    assert jobs.equal == pytest.approx([0.5, 1.0])
    assert max_min_shares(jobs) == pytest.approx([0.5, 1.0], abs=1e-5)


def test_max_min_shares_are_bound_by_the_scarcest_resource() -> None:
    # Row 1: x1 + x2 <= 1; row 2: x2 + x3 <= 1; equal parts are a third each, so 1/2 for all.
    jobs = present([[1, 1, 0], [0, 1, 1]], [1, 1, 1])
    assert max_min_shares(jobs) == pytest.approx([0.5, 0.5, 0.5], abs=1e-5)


def test_finish_time_shares() -> None:
    """Two jobs of the whole cluster: equal ones share equally, whoever waited gets more."""
    assert finish_time_shares(present([[1, 1]], [4, 4])) == pytest.approx([0.5, 0.5], abs=1e-4)
    # (4 / x) / 8 = (2 + 1 / (1 - x)) / 2 at x = 1 - sqrt(1/2).
    waited = present([[1, 1]], [4, 1], waited=[0, 2])
    root = math.sqrt(0.5)
    assert finish_time_shares(waited) == pytest.approx([1 - root, root], abs=1e-4)


def test_what_is_left_over_is_shared_out_too() -> None:
    jobs = present([[1, 1, 0], [0, 0, 1]], [1, 1, 1])
    shares = all_of_the_time(jobs, np.array([0.2, 0.3, 0.1]))
    assert shares[2] == pytest.approx(1)
    assert shares[0] + shares[1] == pytest.approx(1)
    assert shares[0] >= 0.2 - 1e-6
    assert shares[1] >= 0.3 - 1e-6
    with pytest.raises(SolveFailed, match="fair shares: infeasible"):
        all_of_the_time(present([[0.9, 0.9]], [1, 1]), np.array([0.9, 0.9]))


@pytest.mark.parametrize("name", ["gavel", "themis"])
def test_fair_rounds_alternate_by_hand(name: str) -> None:
    """Two jobs that need the whole server for two slots each take turns; then a third joins."""
    result = simulate(server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2)), name)
    assert completions(result) == [3, 4]
    rows = result.solution.assignments()
    assert [row["from"] for row in rows["a"]] == [1, 3]
    assert [row["from"] for row in rows["b"]] == [2, 4]


def test_sia_by_hand() -> None:
    """Two jobs of up to four workers: 2 + 2 saves more than 4 + 0, 2 * 1.1 - 2 / sqrt(2)."""
    assert completions(simulate(server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2)), "sia")) == [4, 4]
    # A third would have one worker at the price of two: with idle = 1.1 it waits, with 2 not.
    three = server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2), ("c", 1, 4, 2))
    first = {}
    for idle in (1.1, 2.0):
        rows = simulate(three, "sia", settings={"idle": idle}).solution.assignments()
        first[idle] = sum(row["from"] == 1 for given in rows.values() for row in given)
    assert first == {1.1: 2, 2.0: 3}


def test_sia_counts_its_limit_and_does_not_depend_on_the_clock() -> None:
    runs = [simulate(generate("oasis", "small", 1), "sia", settings={"nodes": 1}) for _ in range(2)]
    assert runs[0].solution.assignments() == runs[1].solution.assignments()
    assert set(runs[0].report) >= {"programs", "limits_reached"}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("family", OVER_TIME)
def test_every_family_over_time_has_it(family: str, name: str) -> None:
    result = simulate(generate(family, "small", 2), name)
    assert result.in_feasible_set is (family == "oasis")
    assert name not in algorithms("mlbroker")


def test_bad_settings() -> None:
    for settings in ({"power": 0.5}, {"power": -math.inf}, {"idle": 1.0}, {"nodes": 0}):
        with pytest.raises(InputError, match=next(iter(settings))):
            Sia(**settings)
