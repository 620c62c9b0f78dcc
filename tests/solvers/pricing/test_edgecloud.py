"""The edgecloud oracle against the program of the same block, and its bounds against optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.edgecloud.generator import generate
from hindsched.instances.io import read
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.families.edgecloud import methods
from hindsched.solvers.families.edgecloud.methods import lp_4_plus
from hindsched.solvers.families.edgecloud.oracle import ORACLE_ROWS
from hindsched.solvers.families.edgecloud.search import PrioritySearch, list_schedule
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER
from tests.strategies.edgecloud import instance, job, tiny_instances

FORMULATIONS = ("no-migration", "literal")


def random_prices(oracle, seed):
    """Prices in [0, 2], half of them 0; equal for identical workers in ``literal``."""
    draws = np.random.default_rng(seed)
    prices = draws.uniform(0, 2, oracle.rows.size) * (draws.random(oracle.rows.size) < 0.5)
    if oracle.formulation == "literal" and oracle.layout == "servers":
        wide = prices.reshape(-1, oracle.last)[: len(oracle.instance.worker_list)]
        for workers in oracle.instance.groups.values():
            wide[list(workers)] = wide[workers[0]]
    return prices


@given(tiny_instances(max_jobs=2, clouds=(None, 0)), st.integers(0, 10**6), st.booleans())
def test_best_response_equals_the_program(tiny, seed, limited):
    for formulation in FORMULATIONS:
        oracle = build_oracle(tiny, formulation, rows="servers")
        prices = random_prices(oracle, seed)
        residual = None
        if limited:
            taken = np.random.default_rng(seed + 1).random(oracle.rows.size) < 0.2
            residual = oracle.rows.capacity - taken
        for block in range(oracle.num_blocks):
            found = oracle.best_response(block, prices, residual)
            exact = model_response(oracle, block, prices, residual)
            assert (found is None) == (exact is None)
            if found is not None:
                assert found.value == pytest.approx(exact.value, abs=1e-6)


@given(tiny_instances(storage=True), st.integers(0, 10**6))
def test_any_prices_bound_the_optimum(tiny, seed):
    optima = {f: solve(tiny, "milp", formulation=f).objective for f in FORMULATIONS}
    for formulation in FORMULATIONS:
        if optima[formulation] is None:
            continue
        for layout in ORACLE_ROWS:
            oracle = build_oracle(tiny, formulation, rows=layout)
            for scale in (0.0, 0.3, 1.0):
                bound = oracle.bound(scale * random_prices(oracle, seed))
                assert bound <= optima[formulation] + 1e-6


@given(tiny_instances())
def test_certified_duals_prove_lp_4_plus(tiny):
    """LP (4)+ <= its duals with exact blocks <= optimum, in both formulations and layouts."""
    for formulation in FORMULATIONS:
        best = solve(tiny, "milp", formulation=formulation).objective
        for layout in ("groups", "types"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(methods, "lp_layout", lambda _, layout=layout: layout)
                certificate, details = lp_4_plus(tiny, formulation, SolveOptions())
            assert certificate.layout == layout
            assert details["lp_4_plus"] <= certificate.bound + 1e-4
            assert certificate.bound <= best + 1e-6


def test_certificate_files_are_checked_without_a_solver():
    known = read("tests/data/instances/edgecloud-j7-s600.json")
    for formulation, value in (("no-migration", 52), ("literal", 50)):
        found = solve(known, "bound", formulation=formulation, time_limit=5)
        data = found.certificate.to_dict()
        verified = verify_certificate(known, data)
        assert verified.bound == pytest.approx(found.bound)
        assert 0.95 * value < verified.bound <= value
        data["bound"] = value + 1.0
        with pytest.raises(ValueError, match="bound"):
            verify_certificate(known, data)


def test_lp_4_plus_is_close_on_the_small_suite():
    """The issue asks for 0.85 of the optimum of (2) on average."""
    shares = []
    for seed in range(12):
        small = generate("small", seed)
        best = solve(small, "milp", formulation="literal").objective
        _, details = lp_4_plus(small, "literal", SolveOptions())
        shares.append(details["lp_4_plus"] / best)
    assert np.mean(shares) >= 0.85


def test_simple_schedules_are_feasible_on_all_variants():
    found = []
    for settings_ in ({}, {"cloud_workers": 2}, {"cloud_workers": 0}, {"storage_gb": 8}):
        for seed in range(3):
            small = generate("small", seed, chunk_gb=(2, 4), **settings_)
            best = solve(small, "relaxation").bound
            orders = PrioritySearch(small, "no-migration").solution()
            for number, made in enumerate((list_schedule(small, "no-migration"), orders)):
                if made is not None:
                    assert made.violations() == []
                    assert made.objective() >= best - 1e-6
                    found.append(number)
    assert set(found) == {0, 1}


def crowded(seed):
    """Servers that store little, a cloud of few workers and PSs: all rows that there are."""
    draws = np.random.default_rng(seed)
    servers = [
        {"name": f"s{s}", "workers": ["t1"] * int(draws.integers(1, 3)), "ps": ["p"] * int(s == 0)}
        for s in range(int(draws.integers(2, 4)))
    ]
    for server in servers:
        if draws.random() < 0.7:
            server["storage_gb"] = int(draws.integers(1, 5))
    cloud = {"workers": {"t1": int(draws.integers(0, 3))}} if draws.random() < 0.7 else {}
    if draws.random() < 0.5:
        cloud["ps"] = {"p": int(draws.integers(0, 2))}
    jobs = []
    for j in range(3):
        edge = int(draws.integers(1, 4))
        upload = {server["name"]: int(draws.integers(0, 3)) for server in servers}
        more = {"chunk_gb": int(draws.integers(0, 3))}
        jobs.append(
            job(f"j{j}", int(draws.integers(1, 4)), int(draws.integers(1, 5)), edge,
                int(draws.integers(1, edge + 1)), {**upload, "cloud": int(draws.integers(1, 4))},
                **more)
        )  # fmt: skip
    return instance(servers, jobs, cloud, horizon=25)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_crowded_responses_cost_what_they_say_and_fit_what_is_left(formulation):
    placed, together, met = 0, 0, set()
    beyond = ["cloud_parameter_servers", *(["storage"] * (formulation == "literal"))]
    for seed in range(60):
        tiny = crowded(seed)
        for layout in ORACLE_ROWS:
            oracle = build_oracle(tiny, formulation, rows=layout)
            prices = random_prices(oracle, seed)
            for name, part in oracle.rows.slices.items():
                met.add(name)
                if "parameter_servers" in name:
                    prices[part] = 0
            for block in range(oracle.num_blocks):
                found = oracle.best_response(block, prices)
                cost = float(prices[found.rows] @ found.amounts)
                assert found.value == pytest.approx(found.objective + cost)
                one = oracle.block_values(prices)[0][block]
                assert one == pytest.approx(found.value)
            if layout != "servers":
                continue
            left, answers = oracle.rows.capacity.copy(), []
            for block in range(oracle.num_blocks):
                found = oracle.best_response(block, prices, left)
                if found is None:
                    break
                assert found.value >= oracle.best_response(block, prices).value - 1e-9
                cost = float(prices[found.rows] @ found.amounts)
                assert found.value == pytest.approx(found.objective + cost)
                use = np.zeros(oracle.rows.size)
                np.add.at(use, found.rows, found.amounts)
                spans = {last - first + 1 for first, last in found.plan.cloud}
                if "parameter_servers" in oracle.rows.slices and found.plan.cloud:
                    every, there = (
                        use[oracle.rows.slices[name]]
                        for name in ("parameter_servers", "cloud_parameter_servers")
                    )
                    wholly = spans == {int(tiny.cloud_slots[block])} != {tiny.edge_slots[block]}
                    wholly &= len(found.plan.cloud) == tiny.jobs[block].chunks
                    assert every.any()
                    if wholly:  # as fast as only with its PS beside it
                        assert there.tolist() == every.tolist()
                        together += 1
                    else:
                        assert there.tolist() in (every.tolist(), [0.0] * every.size)
                left -= use
                assert left.min() >= -1e-9
                answers.append(found)
            if len(answers) < oracle.num_blocks:
                continue
            placed += 1
            solution = oracle.place(answers)
            # PSs are written down on the cloud, also where only the edge has one left: (2f).
            assert {broken.rule for broken in solution.violations()} <= {"(2f)"}
            assert solution.objective() == sum(found.objective for found in answers)
            for found, own in zip(answers, oracle.use_of(solution), strict=True):
                assert own.objective == found.objective
                use = np.zeros((2, oracle.rows.size))
                np.add.at(use[0], found.rows, found.amounts)
                np.add.at(use[1], own.rows, own.amounts)
                # The solution's PSs are in the cloud, and in `literal` it stores all the time.
                for name in beyond:
                    kept = oracle.rows.slices.get(name, slice(0, 0))
                    assert (use[0, kept] <= use[1, kept]).all()
                    use[:, kept] = 0
                assert use[0].tolist() == use[1].tolist()
    assert placed > 20
    assert together > 5 or formulation == "literal"
    assert len(met) == 7


def test_limits_that_hold_for_every_schedule_change_no_value():
    for seed in range(40):
        tiny = crowded(seed)
        oracle = build_oracle(tiny, "no-migration", rows="groups")
        for number in range(3):
            prices = random_prices(oracle, seed + 100 * number) / (1 + 3 * number)
            for block in range(oracle.num_blocks):
                free = oracle.best_response(block, prices)
                held = oracle.restricted_response(block, prices, {COMPLETES: (0, NEVER - 1)})
                assert held.value == pytest.approx(free.value)
