"""The oasis programs against the brute force over raw decisions; the dual; the per-slot program."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

import hindsched as hs
from hindsched.models.base import dual_program, offline_program
from hindsched.models.oasis import offline as models
from hindsched.models.oasis.slot_program import OasisSlotProgram
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from tests.second_opinion.settle import is_binding, optimum, settle
from tests.strategies.oasis import make, oasis_instances

EXACT = SolveOptions(gap=1e-7)
FORMS = models.FORMS["standard"]
SMALL = hs.read("tests/data/instances/oasis-t10-i10-h5-s1.json")


def solved(instance, **form):
    model = offline_program(instance, **form)
    result = solve_program(model.pyomo, EXACT)
    assert result.has_point
    return model, result


def check_placed(model, result, instance, value):
    """The program's value is the optimum, and its point is a checked solution of that value."""
    assert result.objective == pytest.approx(value, abs=1e-5)
    solution = model.extract()
    assert solution is not None
    assert solution.violations() == []
    assert solution.objective() == pytest.approx(value, abs=1e-5)


def test_forms_equal_the_brute_force():
    binding = []

    @settings(max_examples=2 * settings.default.max_examples)  # few of the first are contended
    @given(oasis_instances())
    def check(instance):
        best = settle(instance)
        binding.append(is_binding(instance, best.value))
        checked = OasisSolution.from_assignments(instance, best.rows)
        assert checked.violations() == []
        assert checked.objective() == pytest.approx(best.value, abs=1e-7)
        for form in FORMS:
            check_placed(*solved(instance, form=form), instance, best.value)
        _, added_up = solved(instance, aggregate=True)
        assert added_up.objective >= best.value - 1e-5
        relaxed = offline_program(instance, relax=True)
        linear = solve_program(relaxed.pyomo, EXACT, want_duals=True)
        assert linear.objective >= best.value - 1e-6
        oracle = build_oracle(instance, rows="servers")
        prices = oracle.rows.pack(relaxed.capacity_prices(linear.duals))
        bound = oracle.bound(prices)
        assert best.value - 1e-9 <= bound <= linear.objective + 1e-5 * max(1, linear.objective)

    check()
    assert sum(binding) >= 0.3 * len(binding)


def test_a_solver_that_cuts_off_the_optimum_would_be_seen():
    """A case in which HiGHS's default presolve calls 1.3775 optimal."""
    job, late = {"minibatch_slots": 0.3}, {"kind": "sigmoid", "priority": 1, "decay": 0.5}
    jobs = [
        {**job, "worker": {"mbps": 2}, "ps": {"mbps": 1}},
        {**job, "worker": {"mbps": 1}, "ps": {"mbps": 1}, "arrival": 2},
        {**job, "worker": {"mbps": 1}, "ps": {"mbps": 2}, "chunks": 2, "gradient_mb": 0.25,
         "utility": {**late, "target": 0}},
    ]  # fmt: skip
    instance = make(jobs, [{"compute": 1, "mbps": 2}] * 2, [{"mbps": 2}] * 2, horizon=4)
    assert optimum(instance) == pytest.approx(1.5)
    _, result = solved(instance, form="printed")
    assert result.objective == pytest.approx(1.5)


def test_no_jobs_earn_nothing():
    instance = SMALL.with_jobs(())
    for form in FORMS:
        model, result = solved(instance, form=form)
        assert result.objective == 0
        assert model.extract().objective() == 0


def best_payoffs(oracle, prices):
    responses = [oracle.best_response(block, prices) for block in range(oracle.num_blocks)]
    return [None if response is None else response.value for response in responses]


@given(oasis_instances())
def test_weak_duality_and_the_dual_optimum(instance):
    best, oracle = optimum(instance), build_oracle(instance, rows="servers")
    found = hs.model(instance).dual().solve()
    assert found.violations == []
    assert found.objective >= best - 1e-6
    assert oracle.bound(oracle.rows.pack(found.prices)) == pytest.approx(found.objective, abs=1e-4)
    dual, rng = dual_program(instance), np.random.default_rng(len(instance.jobs))
    for scale in (0.0, 0.5, 3.0):  # no feasible point is better
        prices = scale * rng.uniform(0, 2, oracle.rows.size)
        payoffs = best_payoffs(oracle, prices)
        set_point(dual, instance, oracle.rows.unpack(prices), payoffs)
        assert dual.violations(payoffs) == []
        assert pyo.value(dual.model.eq_19) >= found.objective - 1e-5


def set_point(dual, instance, prices, payoffs):
    for variables, name, capacity in (
        (dual.model.p, "worker_capacity", instance.worker_capacity),
        (dual.model.q, "ps_capacity", instance.ps_capacity),
    ):
        for (server, r, t), variable in variables.items():
            variable.set_value(prices[name][server, r, t - 1] * capacity[server, r])
    for mu, payoff in zip(dual.model.mu.values(), payoffs, strict=True):
        mu.set_value(max(0.0, payoff or 0.0))


def test_an_infeasible_dual_point_is_named():
    oracle, dual = build_oracle(SMALL, rows="servers"), dual_program(SMALL)
    prices = np.zeros(oracle.rows.size)
    payoffs = best_payoffs(oracle, prices)
    set_point(dual, SMALL, oracle.rows.unpack(prices), payoffs)
    dual.model.mu[2].set_value(dual.model.mu[2].value - 1.0)
    dual.model.p[0, 0, 1].set_value(-1.0, skip_validation=True)
    negative, broken = dual.violations(payoffs)
    assert (broken.rule, broken.where) == ("(20)", "job j3")
    assert broken.amount == pytest.approx(1.0)
    assert (negative.rule, negative.where) == ("(19)", "p[0,0,1]")


def test_the_slot_program_equals_the_greedy_of_cost_t():
    program = OasisSlotProgram(SMALL, workloads=4)
    assert program.problem.is_dcp(dpp=True)
    rng = np.random.default_rng(0)
    workload = np.arange(4)
    for job in SMALL.jobs[:5]:
        needed = SMALL.ps_needed_up_to(job, job.chunks)[:4]
        prices = [rng.uniform(0, 1, len(part)) for part in (SMALL.worker_servers, SMALL.ps_servers)]
        room = [rng.integers(0, 3, price.size) for price in prices]
        program.set(workload, needed, prices, room)
        program.problem.solve(solver="HIGHS")
        units = [  # the cheapest first, one by one
            np.sort(np.repeat(price, count)) for price, count in zip(prices, room, strict=True)
        ]
        if units[0].size < 3 or units[1].size < needed[-1]:
            assert program.problem.status == "infeasible"
            continue
        found = program.workers.value, program.ps.value
        cost = sum(own @ price for own, price in zip(found, prices, strict=True))
        for n in workload:
            expected = units[0][:n].sum() + units[1][: needed[n]].sum()
            assert cost[n] == pytest.approx(expected, abs=1e-6)
        assert program.problem.value == pytest.approx(cost.sum(), abs=1e-6)
        assert all(np.allclose(own, np.rint(own)) for own in found)
