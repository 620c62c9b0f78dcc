"""Layout ``preemptive``: best responses against linear programs, bounds against every rival."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import hindsched as hs
from hindsched.instances.generators.registry import generate
from hindsched.online.registry import algorithms
from hindsched.online.simulator import simulate
from hindsched.solvers.base import build_oracle
from hindsched.solvers.kernels.windows.merged_server import cheapest_merged_slots
from tests.second_opinion.settle import placements
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances

CASES = [("batchsched", {}), ("batchsched", {"architecture": "ring-allreduce"}), ("astraea", {})]


def cheapest_by_programs(first: int, work: float, ways: Any, values: Any, prices: Any) -> float:
    """A linear program an end: mixes of ways in each slot, all the work by then."""
    rate, demand = ways
    best = math.inf
    for end in range(first, len(prices)):
        slots = end - first + 1
        cost = (prices[first : end + 1] @ demand.T).ravel()
        once = np.kron(np.eye(slots), np.ones(len(rate)))
        found = linprog(
            cost,
            A_ub=np.vstack([once, -np.tile(rate, slots)]),
            b_ub=np.concatenate([np.ones(slots), [-work]]),
        )
        if found.status == 0:
            best = min(best, values[end] + found.fun)
    return best


@given(st.integers(0, 2**32))
def test_best_responses_are_those_of_linear_programs(seed: int) -> None:
    draws = np.random.default_rng(seed)
    slots, kinds, resources = draws.integers(1, 5), draws.integers(1, 5), draws.integers(1, 3)
    rate = draws.integers(1, 9, kinds).astype(float)
    demand = draws.integers(0, 5, (kinds, resources)).astype(float)
    order = np.argsort(rate, kind="stable")
    ways = rate[order], demand[order]
    first, work = int(draws.integers(0, slots)), float(draws.integers(1, 20))
    values = np.cumsum(draws.integers(0, 4, slots)).astype(float)
    prices = draws.integers(0, 4, (slots, resources)).astype(float)
    used = np.zeros_like(prices)
    cost, end = cheapest_merged_slots(first, work, *ways, values, prices, math.inf, used)
    expected = cheapest_by_programs(first, work, (rate, demand), values, prices)
    assert cost == pytest.approx(expected)
    if end >= 0:
        assert values[end] + (prices * used).sum() == pytest.approx(cost)
        assert not used[:first].any()
        assert not used[end + 1 :].any()


@pytest.mark.parametrize(("family", "changes"), CASES)
@pytest.mark.parametrize("seed", [1])
def test_no_rival_is_better_than_the_bound(family: str, changes: Any, seed: int) -> None:
    """At a hundred iterations' prices: below every rival, and no better than with contiguity."""
    tiny = generate(family, "small", seed, **changes)
    in_pieces = {"batchsched": "preemptive", "astraea": "optional,preemptive"}[family]
    bound = hs.solve(tiny, "bound", formulation=in_pieces, options={"time_limit": 3}).bound
    other = hs.solve(tiny, "bound", options={"time_limit": 3}).bound
    sign = 1 if tiny.sense == "min" else -1
    assert sign * bound <= sign * other + 1e-2 * abs(other)
    rivals = [
        name
        for name, build in algorithms(family).items()
        if build().relaxes_constraints and name != "astraea-literal"
    ]
    assert len(rivals) >= 8
    for name in rivals:
        run = simulate(tiny, name)
        assert run.solution.violations() == []
        assert sign * bound <= sign * run.objective


def raw_ways(instance: Any, job: Any) -> Any:
    """(rate of work, use of all servers together) of every placement, from the definition."""
    axis = 0 if instance.family == "batchsched" else 1  # of the servers
    shape = (len(instance.servers), -1) if axis == 0 else (-1, len(instance.servers))
    for slots, use in placements(instance, job):
        yield job.total_minibatches / float(slots), np.reshape(use, shape).sum(axis)


@pytest.mark.parametrize(
    "strategy", [tiny_instances(num_jobs=2), *(astraea_instances(types=n) for n in (1, 2))]
)
def test_no_placement_is_faster_than_all_mixes_of_a_slot_s_ways(strategy: Any) -> None:
    """Sound: each placement is mixed of ways that are as small; and no way is faster than all."""

    @settings(max_examples=12)
    @given(strategy)
    def check(instance: Any) -> None:
        oracle = build_oracle(instance, rows="preemptive")
        for block, job in enumerate(instance.jobs):
            rate, demand = oracle._ways[block]
            known = list(raw_ways(instance, job))
            if not len(rate):
                assert not known
                continue
            if known and job.gradient_mb == 0:
                fastest = max(speed for speed, _ in known)
                assert rate.max() <= fastest * (1 + 1e-9) or instance.family == "batchsched"
            for speed, use in known:
                found = linprog(
                    -rate, A_ub=np.vstack([demand.T, np.ones(len(rate))]), b_ub=[*use + 1e-9, 1.0]
                )
                assert -found.fun >= speed * (1 - 1e-6)

    check()
