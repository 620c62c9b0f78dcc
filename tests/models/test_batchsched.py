"""The batchsched programs against the brute force over raw decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.io import read
from hindsched.models.base import dual_program, offline_program
from hindsched.solvers.door.api import check_result, methods
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.batchsched.list_schedule import find_incumbent
from hindsched.solvers.families.batchsched.oracle import (
    BatchschedMerged,
    BatchschedServers,
)
from tests.brute_force import batchsched as brute_force
from tests.second_opinion.settle import is_binding, optimum
from tests.strategies.batchsched import known_b, tiny_instances

DATA = "tests/data/instances/"


def solved(instance, formulation="modes", **build):
    model = offline_program(instance, formulation, **build)
    start = "incumbent" in build and not build.get("relax")
    if start:
        model.load(build["incumbent"])
    result = solve_program(model.pyomo, SolveOptions(gap=1e-7), start=start)
    assert result.has_point
    return model, result


def test_modes_and_literal_equal_the_brute_force():
    binding, literal = [], []

    @settings(max_examples=60)  # few tell apart whether a job stands on one server
    @given(tiny_instances())
    def check(instance):
        best = optimum(instance)
        schedule = find_incumbent(instance, "modes")
        model, result = solved(instance, incumbent=schedule)
        assert result.objective == pytest.approx(best, abs=1e-6)
        solution = model.extract()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(best, abs=1e-6)
        _, relaxed = solved(instance, relax=True)
        assert relaxed.objective <= best + 1e-6
        if len(binding) % 2 and model.slots <= 7:
            model, result = solved(instance, "literal", incumbent=solution)
            assert result.objective == pytest.approx(best, abs=1e-6)
            solution = model.extract()
            assert solution.violations() == []
            assert solution.objective() == pytest.approx(best, abs=1e-6)
            _, loose = solved(instance, "literal", relax=True, incumbent=solution)
            assert loose.objective <= relaxed.objective + 1e-6
            literal.append(relaxed.objective - loose.objective)
        for oracle in (BatchschedServers(instance), BatchschedMerged(instance)):
            prices = np.linspace(0, 1, oracle.rows.size)
            assert oracle.bound(prices) <= best + 1e-6
        binding.append(is_binding(instance, best))

    check()
    assert np.mean(binding) >= 0.3
    assert max(literal) > 1e-3  # the mode-based relaxation is the tighter one


@pytest.mark.parametrize(("name", "known"), [("ps", 243), ("rar", 251)])
def test_known_optima_of_the_shared_instances(name, known):
    instance = read(f"{DATA}batchsched-{name}-j5-s200.json")
    result = check_result(
        methods("batchsched")["milp"](instance, "modes", SolveOptions(), None), DEFAULT_GAP
    )
    assert result.status == "optimal"
    assert result.objective == known
    assert result.bound == pytest.approx(known, abs=1e-4)


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
@pytest.mark.parametrize("formulation", ["modes", "literal"])
def test_b1_and_b2(architecture, formulation):
    instance = known_b(architecture)
    result = check_result(
        methods("batchsched")["milp"](instance, formulation, SolveOptions(), None), DEFAULT_GAP
    )
    assert (result.status, result.objective) == ("optimal", 36)


@given(tiny_instances())
def test_the_dual_of_a_round_bounds_the_best_subset(instance):
    for last in (1, 3):
        bound = solve_program(dual_program(instance, last=last).pyomo)
        assert bound.objective >= brute_force.best_subset(instance, last) - 1e-6
