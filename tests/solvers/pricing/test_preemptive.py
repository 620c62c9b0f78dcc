"""Layout ``preemptive``: best responses against linear programs, bounds against every rival."""

from __future__ import annotations

import math
from fractions import Fraction
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
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.families.windows.oracle import ways_in_line
from hindsched.solvers.kernels.windows.merged_server import cheapest_slots
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force.astraea import placings
from tests.brute_force.batchsched import times
from tests.kernel.agreement import certificate, kernel_bound, random_prices
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import instance as batch_instance
from tests.strategies.batchsched import tiny_instances

CASES = [
    ("batchsched", {}),
    ("batchsched", {"architecture": "ring-allreduce"}),
    ("astraea", {}),
]


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
    cost, end = cheapest_slots(first, work, *ways, values, prices, math.inf, used)
    expected = cheapest_by_programs(first, work, (rate, demand), values, prices)
    assert cost == pytest.approx(expected)
    if end >= 0:
        assert values[end] + (prices * used).sum() == pytest.approx(cost)
        assert not used[:first].any()
        assert not used[end + 1 :].any()


@pytest.mark.parametrize(("family", "changes"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_rival_is_better_than_the_bound(family: str, changes: Any, seed: int) -> None:
    """At a hundred iterations' prices: below every rival, and no better than with contiguity."""
    tiny = generate(family, "small", seed, **changes)
    bound = hs.solve(tiny, "preemptive", options={"time_limit": 3}).bound
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


@given(st.integers(0, 2**32))
def test_the_relaxation_is_below_the_merged_server_at_any_prices(seed: int) -> None:
    family, changes = CASES[seed % 3]
    tiny = generate(family, "small", seed % 7, **changes)
    free, window = (build_oracle(tiny, rows=rows) for rows in ("preemptive", "cluster"))
    prices = random_prices(window, seed)
    sign = 1 if tiny.sense == "min" else -1
    assert sign * free.bound(prices) <= sign * window.bound(prices) + 1e-6


def test_pausing_is_worth_what_it_is_by_hand() -> None:
    """One worker: long (4 slots) starts in 1, urgent (1 slot, weight 9) comes in 2.

    In windows 2 x 5 + 9 x 7 or wait: 9 x 3 + (3 .. 6) 7 = 34; pausing 9 x 3 + 1 x 6 = 33.
    """
    jobs = [
        {"name": "long", "arrival": 1, "weight": 1, "epochs": 4},
        {"name": "urgent", "arrival": 2, "weight": 9, "epochs": 1},
    ]
    tiny = one_worker(jobs)
    assert hs.solve(tiny, "milp").objective == pytest.approx(34)
    rival = simulate(tiny, "shortest-remaining")
    assert rival.objective == 33
    assert rival.solution.violations() == []
    bound = subgradient_bound(build_oracle(tiny, rows="preemptive"), max_iterations=300).bound
    assert 32 < bound <= 33


def one_worker(jobs: list[dict[str, Any]]) -> Any:
    """A server that holds one worker and its parameter server; a mini-batch takes a slot."""
    return batch_instance(
        "parameter-server", [(1, 2)], [(1, 1)], [1],
        [
            {**job, "chunks": 1, "minibatches": 1, "minibatch_slots": [1], "update_slots": [0],
             "gradient_mb": 0}
            for job in jobs
        ]
    )  # fmt: skip


def test_ratios_of_rivals_are_against_their_own_problem() -> None:
    for family, inside in (("batchsched", "wspt"), ("astraea", "batchsche")):
        tiny = generate(family, "small", 1)
        found = hs.compare([tiny], [inside, "optimus", "gavel"], time_limit=5, progress=False)
        (item,) = found.instances
        assert item.contradiction is None
        for name in ("optimus", "gavel"):
            row = item.algorithm(name)
            assert not row.ratio.starred
            assert row.ratio.interval.lower >= 1 - 1e-9
            assert "without these rules" in row.ratio.reason
            assert row.optimum.for_rivals
        assert not item.algorithm(inside).optimum.for_rivals
        (summary,) = [row for row in found.summary_rows() if row["algorithm"] == inside]
        assert summary["rival"] is False


@pytest.mark.parametrize(("family", "changes"), CASES)
def test_the_kernel_proves_the_same_bound(family: str, changes: Any) -> None:
    tiny = generate(family, "small", 3, **changes)
    found = hs.solve(tiny, "preemptive", options={"time_limit": 2})
    oracle = build_oracle(tiny, rows="preemptive")
    prices = found.certificate.prices
    exact = kernel_bound(tiny, certificate(oracle, prices, found.bound, layout="preemptive"))
    end = exact.low if tiny.sense == "min" else exact.high
    assert float(end) == pytest.approx(found.bound, rel=1e-6)
    assert (end >= Fraction(found.bound)) is (tiny.sense == "min")


def test_a_job_that_fits_nowhere_stays_out_or_has_no_schedule() -> None:
    """No server with a parameter server: nothing can be done in any slot."""
    tiny = generate("astraea", "small", 1)
    servers = tuple(server.model_copy(update={"ps": {}}) for server in tiny.servers)
    ways = build_oracle(tiny, rows="preemptive")._ways[0]
    assert len(ways[0])
    bare = tiny.model_copy(update={"servers": servers})
    object.__setattr__(bare, "ps_count", 0 * tiny.ps_count)
    oracle = build_oracle(bare, "optional,modes", rows="preemptive")
    assert len(oracle._ways[0][0]) == 0
    assert oracle.bound(np.zeros(oracle.rows.size)) == pytest.approx(0, abs=1e-6)


@given(st.integers(0, 2**32))
def test_ways_in_line_are_mixed_to_all_others(seed: int) -> None:
    """No way is left that is faster than every mix of those kept of no more workers and PSs."""
    draws = np.random.default_rng(seed)
    count = np.unique(draws.integers(1, 40, int(draws.integers(1, 12))))
    units = np.sort(draws.integers(0, 12, count.size))
    proportional = bool(draws.integers(2))
    rate = 0.5 * count if proportional else np.cumsum(draws.random(count.size) + 0.01)
    if not proportional:  # rings have no parameter servers
        units[:] = 0
    kept = [(r, int(count[at]), int(units[at])) for at, r in ways_in_line(rate, count, units)]
    known = list(zip(count.tolist(), units.tolist(), strict=True))
    assert all((n, u) in known for _, n, u in kept)
    assert [n for _, n, _ in kept] == sorted({n for _, n, _ in kept})
    if not proportional:
        assert len(kept) <= 3 + math.log(40, 1.5)
        assert kept[-1][1] == count[-1]
    for r, n, u in kept:
        own = rate[known.index((n, u))]
        assert r == pytest.approx(own) if proportional else r >= own - 1e-12
    fastest, workers, servers = (
        np.array(column, dtype=float) for column in zip(*kept, strict=True)
    )
    for r, (n, u) in zip(rate.tolist(), known, strict=True):
        found = linprog(
            -fastest,
            A_ub=np.vstack([workers, servers, np.ones_like(workers)]),
            b_ub=[n, u, 1.0],
        )
        assert -found.fun >= r * (1 - 1e-9)
    # A corner that others mixed could replace is not kept.
    if proportional:
        for k in range(len(kept) - 1):
            before = (0.0, 0.0) if k == 0 else kept[k - 1][1:]
            (x0, y0), (x1, y1), (x2, y2) = before, kept[k][1:], kept[k + 1][1:]
            assert (y1 - y0) * (x2 - x0) < (y2 - y0) * (x1 - x0)
    assert list(ways_in_line(rate[:0], count[:0], units[:0])) == []


def raw_ways(instance: Any, job: Any) -> Any:
    """(rate of work, use of all servers together) of every placement, from the definition."""
    if instance.family == "batchsched":
        for slots, use in times(instance, job):
            yield job.total_minibatches / slots, np.array(use).sum(axis=0)
        return
    kinds = [("w", name) for name in instance.worker_types]
    kinds += [("p", name) for name in instance.ps_types]
    for slots, takes, _ in placings(instance, job):
        use = np.zeros(len(kinds))
        for (role, kind, _), number in takes.items():
            use[kinds.index((role, kind))] += number
        yield job.total_minibatches / slots, use


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
