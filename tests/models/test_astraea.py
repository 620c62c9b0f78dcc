"""The astraea programs against the brute force over raw decisions, and the known answers."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.models.base import dual_program, offline_program
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from tests.astraea_example import round_instance, worked_example
from tests.second_opinion.settle import is_binding, optimum, settle
from tests.strategies.astraea import astraea_instances

EXACT = SolveOptions(gap=1e-7)


def solved(instance, formulation):
    """Optimum of a form, its point checked and its objective recomputed."""
    model = offline_program(instance, formulation)
    result = solve_program(model.pyomo, EXACT)
    assert result.has_point
    solution = model.extract()
    assert solution.violations() == []
    assert solution.objective() == pytest.approx(result.objective, abs=1e-5)
    return solution.objective()


def test_programs_equal_the_brute_force():
    binds = []

    def check(instance):
        best = settle(instance)
        checked = AstraeaSolution.from_assignments(instance, best.rows)
        assert checked.violations() == []
        assert checked.objective() == pytest.approx(best.value, abs=1e-9)
        assert solved(instance, "optional,modes") == pytest.approx(best.value, abs=1e-5)
        if len(binds) % 5 == 0:
            assert solved(instance, "optional,literal") == pytest.approx(best.value, abs=1e-5)
            must = settle(instance, "must-complete,modes").value
            for writing in ("modes", "literal"):
                if must is not None:
                    found = solved(instance, f"must-complete,{writing}")
                    assert found == pytest.approx(float(must), abs=1e-5)
                else:
                    model = offline_program(instance, f"must-complete,{writing}")
                    assert not solve_program(model.pyomo, EXACT).has_point
        binds.append(is_binding(instance, best.value))

    for types in (1, 2):
        given(astraea_instances(types))(check)()
    assert sum(binds) >= 0.3 * len(binds)


@given(astraea_instances())
def test_relaxations_from_tight_to_loose_and_the_dual(instance):
    best = optimum(instance)
    dual = dual_program(instance)
    schedules = solve_program(dual.pyomo, EXACT).objective
    prices = dual.prices()
    oracle = build_oracle(instance, rows="servers")
    assert oracle.bound(oracle.rows.pack(prices)) == pytest.approx(schedules, abs=1e-5)
    bounds = [best, schedules]
    for writing in ("modes", "literal"):
        relaxed = offline_program(instance, f"optional,{writing}", relax=True)
        linear = solve_program(relaxed.pyomo, EXACT, want_duals=True)
        bounds.append(linear.objective)
        posted = oracle.rows.pack(relaxed.capacity_prices(linear.duals))
        assert oracle.bound(posted) >= best - 1e-6
    assert bounds == pytest.approx(sorted(bounds), abs=1e-6)


def test_worked_example_round_problem_and_offline_optimum():
    example = worked_example()
    values = []
    for form in ("modes", "printed"):
        model = offline_program(round_instance(example, 4), form=form)
        values.append(solve_program(model.pyomo, EXACT).objective)
        solution = model.extract()
        assert solution.completion("j22") is None
    assert values == pytest.approx([286, 286], abs=1e-5)  # 96 + 94 + 96
    # 96 + 94 + 96 + 40: j22 on 2 workers of one server for 30 slots
    assert solved(worked_example(horizon=40), "optional,modes") == pytest.approx(326, abs=1e-5)
    must = offline_program(worked_example(horizon=40), "must-complete,modes")
    assert solve_program(must.pyomo, EXACT).objective == pytest.approx(326, abs=1e-5)


def test_psp_trap_of_3i_is_infeasible():
    """A2: three servers of one worker and one PS hold no job of three workers."""
    example = worked_example(("j12",), horizon=20).to_dict()
    example["servers"] = [{"name": f"s{s}", "workers": 1, "ps": 1} for s in (1, 2, 3)]
    example["tenants"] = [
        {"name": "u1", "worker_quota": 3, "ps_quota": 3},
        {"name": "u2", "worker_quota": 0, "ps_quota": 0},
    ]
    instance = AstraeaInstance.parse(example)
    rows = {"from": 4, "to": 7, "workers": {"s1": 1, "s2": 1, "s3": 1}, "ps": {"s1": 1}}
    solution = AstraeaSolution.from_assignments(instance, {"j12": [rows]})
    assert [broken.rule for broken in solution.violations()] == ["(3i)"]
    model = offline_program(instance)
    solve_program(model.pyomo, EXACT)
    assert model.extract().rows["j12"][0].num_workers <= 2
