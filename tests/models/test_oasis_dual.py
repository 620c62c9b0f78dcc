"""The dual (19) by row generation, its feasibility check, weak duality; the per-slot program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from hindsched.instances.io import read
from hindsched.models.oasis.dual import DualPoint, build_dual, schedules_of
from hindsched.models.oasis.slot import SlotProgram
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.oasis.resources import OasisOracle
from tests.brute_force.oasis import optimum
from tests.strategies.oasis import oasis_instances
from tests.worker_slot_numpy import slot_costs, unit_prices


def best_payoffs(oracle, prices):
    responses = [oracle.best_response(block, prices) for block in range(oracle.num_blocks)]
    return responses, [None if response is None else response.value for response in responses]


def flat(oracle, point):
    return oracle.rows.pack({"worker_capacity": point.worker_prices,
                             "ps_capacity": point.ps_prices})  # fmt: skip


def solve_dual(instance):
    """Row generation: add the schedules that best responses show to be violated."""
    oracle = OasisOracle(instance, layout="servers")
    dual = build_dual(instance)
    for _ in range(200):
        result = solve_program(dual.pyomo)
        point = dual.point()
        assert point.objective() == pytest.approx(result.objective, abs=1e-6)
        responses, best = best_payoffs(oracle, flat(oracle, point))
        if not point.violations(best):
            return oracle, point
        for block, (response, payoff) in enumerate(zip(responses, best, strict=True)):
            if payoff is not None and payoff > point.payoffs[block] + 1e-7:
                rows = {oracle.block_name(block): oracle.assignments(block, response)}
                (schedule,) = schedules_of(OasisSolution.from_assignments(instance, rows))
                dual.add(schedule)
                assert point.payoff_of(schedule) == pytest.approx(payoff, abs=1e-7)
    raise AssertionError("row generation did not end")


@given(oasis_instances())
def test_weak_duality_and_the_dual_optimum(instance):
    best = optimum(instance).value
    oracle, point = solve_dual(instance)
    assert point.objective() >= best - 1e-6
    assert oracle.bound(flat(oracle, point)) == pytest.approx(point.objective(), abs=1e-4)
    rng = np.random.default_rng(len(instance.jobs))
    for scale in (0.0, 0.5, 3.0):
        prices = scale * rng.uniform(0, 2, oracle.rows.size)
        _, payoffs = best_payoffs(oracle, prices)
        arrays = oracle.rows.unpack(prices)
        mu = np.array([max(0.0, payoff or 0.0) for payoff in payoffs])
        anywhere = DualPoint(instance, mu, arrays["worker_capacity"], arrays["ps_capacity"])
        assert anywhere.violations(payoffs) == []
        assert anywhere.objective() >= point.objective() - 1e-5  # no feasible point is better


def test_an_infeasible_dual_point_is_named():
    instance = read("tests/data/instances/oasis-t10-i10-h5-s1.json")
    oracle = OasisOracle(instance, layout="servers")
    zero = oracle.rows.unpack(np.zeros(oracle.rows.size))
    _, payoffs = best_payoffs(oracle, np.zeros(oracle.rows.size))
    mu = np.array([max(0.0, payoff or 0.0) for payoff in payoffs])
    mu[2] -= 1.0
    point = DualPoint(instance, mu, zero["worker_capacity"], zero["ps_capacity"])
    (violation,) = point.violations(payoffs)
    assert (violation.rule, violation.where) == ("(20)", "job j3")
    assert violation.amount == pytest.approx(1.0)
    negative = DualPoint(instance, mu + 1, zero["worker_capacity"] - 1, zero["ps_capacity"])
    assert [v.rule for v in negative.violations(payoffs)] == ["(19)"]


def test_the_slot_program_equals_the_greedy_of_cost_t():
    instance = read("tests/data/instances/oasis-t10-i10-h5-s1.json")
    program = SlotProgram(instance)
    assert program.problem.is_dcp(dpp=True)
    rng = np.random.default_rng(0)
    solved = 0
    for job in instance.jobs[:5]:
        worker, ps = instance.demand_of(job)
        prices = [rng.uniform(0, 0.01, capacity.shape)
                  for capacity in (instance.worker_capacity, instance.ps_capacity)]  # fmt: skip
        left = [capacity * rng.choice([0.5, 1.0], capacity.shape)
                for capacity in (instance.worker_capacity, instance.ps_capacity)]  # fmt: skip
        program.set(job, 0, *prices, *left)
        costs = slot_costs(
            unit_prices(prices[0], worker),
            program.worker_room.value.astype(int),
            unit_prices(prices[1], ps),
            program.ps_room.value.astype(int),
            instance.ps_needed_up_to(job, job.chunks),
        )
        for workload in (0, 1, 3):
            program.set(job, workload, *prices, *left)
            program.problem.solve(solver="HIGHS")
            if np.isinf(costs[workload]):
                assert program.problem.status == "infeasible"
                continue
            solved += 1
            assert program.problem.value == pytest.approx(costs[workload], abs=1e-6)
    assert solved >= 8


def test_the_relaxed_slot_program_is_a_lower_bound():
    instance = read("tests/data/instances/oasis-t10-i10-h5-s1.json")
    job = instance.jobs[4]
    prices = [np.full(capacity.shape, 0.01)
              for capacity in (instance.worker_capacity, instance.ps_capacity)]  # fmt: skip
    values = []
    for integer in (True, False):
        program = SlotProgram(instance, integer=integer)
        program.set(job, 3, *prices)
        program.problem.solve(solver="HIGHS")
        values.append(program.problem.value)
    assert values[1] <= values[0] + 1e-9
