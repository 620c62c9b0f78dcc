"""What the programs of the two window families do alike."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.models.astraea.dual import build_dual as astraea_dual
from hindsched.models.batchsched.dual import build_dual as batchsched_dual
from hindsched.models.windows.dual import splits
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances

EXACT = SolveOptions(gap=1e-7)
DUALS = st.one_of(
    tiny_instances().map(lambda instance: batchsched_dual(instance, last=3)),
    astraea_instances().map(astraea_dual),
)


def primal_of(dual):
    """The linear relaxation of the program over schedules, written from the definition."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(len(dual.listed)), domain=pyo.NonNegativeReals)
    m.once, m.fits = pyo.ConstraintList(), pyo.ConstraintList()
    for j in {schedule.job for schedule in dual.listed}:
        m.once.add(sum(m.x[s] for s, one in enumerate(dual.listed) if one.job == j) <= 1)
    for cell in {cell for schedule in dual.listed for cell in schedule.use}:
        used = sum(one.use.get(cell, 0.0) * m.x[s] for s, one in enumerate(dual.listed))
        m.fits.add(used <= float(dual.family.cluster.server_capacity[cell[:2]]))
    worth = sum(one.worth * m.x[s] for s, one in enumerate(dual.listed))
    m.objective = pyo.Objective(expr=worth, sense=pyo.maximize)
    return m


@settings(max_examples=30, derandomize=True, database=None, deadline=None)
@given(DUALS)
def test_a_dual_and_the_program_that_it_names_have_one_optimum(dual):
    assert ("dual of (5)" if dual.instance.family == "astraea" else "dual of (") in dual.title
    value = solve_program(dual.pyomo, EXACT).objective
    assert dual.violations() == []
    if dual.listed:
        assert solve_program(primal_of(dual), EXACT).objective == pytest.approx(value, abs=1e-6)
    for payoff in dual.model.payoff.values():
        if payoff.value > 0.1:
            payoff.value -= 0.01
            assert [broken.constraint for broken in dual.violations()] == [f"({dual.row})"]
            break


def test_all_ways_to_place_workers():
    assert splits(2, [1, 0, 2]) == [(0, 0, 2), (1, 0, 1)]
    assert splits(3, [1, 1]) == []
