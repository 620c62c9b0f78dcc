"""Numbers that no generator makes: tiny and huge money, hairs, ties, a thousand jobs at once."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import compile_program, solve_program, within_gap
from hindsched.solvers.door.standard_form import Scaling, objective_factor
from hindsched.solvers.search import NeighbourhoodSearch
from tests.node_bounds import root_bound
from tests.second_opinion import instances
from tests.strategies.oasis import flat, make

MONEY = {
    "unit_usd", "discounted_usd", "transfer_usd_per_gb", "deployment_usd", "weight", "priority",
    "slope", "intercept",
}  # fmt: skip


def times(value, factor, money=False):
    """A record with its money times a factor."""
    if isinstance(value, dict):
        return {key: times(own, factor, money or key in MONEY) for key, own in value.items()}
    if isinstance(value, list):
        return [times(own, factor, money) for own in value]
    return value * factor if money else value


def costly(unit):
    """Two of three, with the cost on a row of its own."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.cost = pyo.Var(bounds=(0, None))
    model.two = pyo.Constraint(expr=sum(model.x.values()) >= 2)
    spent = unit * (3 * model.x[0] + 5 * model.x[1] + 7 * model.x[2])
    model.paid = pyo.Constraint(expr=model.cost >= spent)
    model.least = pyo.Objective(expr=model.cost)
    return model


def test_columns_are_scaled_by_the_rows_of_integers_which_cannot_give_way():
    """A program in GB a slot, of which HiGHS called a worse point optimal: it cut 1e-7 off."""
    model = pyo.ConcreteModel()
    model.workers, model.flow = pyo.Var(domain=pyo.Integers), pyo.Var()
    model.fits = pyo.Constraint(expr=model.flow <= 5e6 * model.workers)
    model.stays = pyo.Constraint(expr=model.flow == 2e6)
    model.least = pyo.Objective(expr=model.workers)
    program = compile_program(model)
    scaling = Scaling.of(program)
    scaled = program.matrix.toarray() * scaling.rows[:, None] * scaling.columns
    assert np.abs(scaled[scaled != 0]).min() > 0.1


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e3, 3e13])
def test_value_bound_and_duals_are_those_of_the_program_as_it_was(unit):
    program = compile_program(costly(unit))
    scaling = Scaling.of(program)
    assert (scaling.columns[program.integer] == 1).all()
    factors = np.concatenate([scaling.rows, scaling.columns, [scaling.objective]])
    assert (np.frexp(factors)[0] == 0.5).all()  # powers of two: no digit is touched
    if 1 <= unit <= 1e3:
        assert (factors == 1).all()
    found = solve_program(costly(unit), SolveOptions())
    assert found.objective == pytest.approx(8 * unit, rel=1e-12)
    assert found.bound == pytest.approx(8 * unit, rel=1e-9)
    model = costly(unit)
    for x in model.x.values():
        x.domain = pyo.UnitInterval
    found = solve_program(model, SolveOptions(), want_duals=True)
    assert found.objective == pytest.approx(8 * unit, rel=1e-9)
    assert found.duals[model.two] == pytest.approx(5 * unit, rel=1e-9)
    assert abs(found.duals[model.paid]) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("largest", [0.0, 0.25, 100.0, 1e6, 1e-300, 1e-6, 0.01, 1e7, 1e19])
def test_costs_that_are_not_moderate_are_passed_as_some_thousands(largest):
    factor = objective_factor([largest / 2, -largest])
    assert factor == 1 if largest in (0.0, 0.25, 100.0, 1e6) else 2**13 <= factor * largest < 2**14


@pytest.mark.parametrize("seed", [33, 4])
def test_money_times_a_factor_costs_that_factor(seed):
    """At 5e12 HiGHS called a point optimal with a bound beyond a better, checked schedule."""
    plain = instances.mlbroker(seed)
    one, other = (
        hs.solve(hs.read(data), "milp", formulation="paper")
        for data in (plain, times(plain, 1.25e12))
    )
    assert str(one.status) == str(other.status) == "optimal"
    assert other.objective == pytest.approx(1.25e12 * one.objective, rel=2e-6)


SUITES = ["oasis", "mlbroker/small/r3-t4-j5-s1", "batchsched/small/ps-j5-s11"]


@pytest.mark.parametrize("name", SUITES)
def test_trees_close_whatever_the_currency(name):
    instance = hs.named_instance(name) if "/" in name else hs.generate(name, "small", 5)
    cheap = hs.read(times(instance.to_dict(), 2.0**-27))
    best, small = (hs.solve(one, "tree", threads=1, work_limit=4000) for one in (instance, cheap))
    assert best.status == small.status == "optimal"
    assert small.objective == pytest.approx(2.0**-27 * best.objective, rel=1e-6)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea", "mlbroker", "gang"])
def test_bounds_are_as_good_whatever_the_currency(family, factor):
    instance = hs.generate(family, "small", 1)
    rows = None if family in ("mlbroker", "gang") else "servers"
    oracle = build_oracle(instance, rows=rows)
    other = build_oracle(hs.read(times(instance.to_dict(), factor)), rows=rows)
    if rows is not None:
        best = root_bound(oracle).bound
        assert root_bound(other).bound == pytest.approx(factor * best, rel=1e-6)
    best = subgradient_bound(oracle, max_iterations=200).bound
    found = subgradient_bound(other, max_iterations=200).bound
    assert found == pytest.approx(factor * best, rel=1e-9)


TINY = gang_data("ties", [
    {"name": "j0", "submit": 0, "gpus": 1, "duration": 1.5, "weight": 2e-9},
    {"name": "j1", "submit": 2, "gpus": 1, "duration": 0.5, "weight": 1e-9},
], slot_seconds=0.5, placement="consolidated",
    servers=[{"name": "s0", "gpus": 1}, {"name": "s1", "gpus": 2}])  # fmt: skip
"""Weights below every absolute tolerance of a solver: elastic, the optimum is 1.5e-9."""
UNEQUAL = gang_data("ties", [
    {"name": "j0", "submit": 240, "gpus": 2, "duration": 180, "weight": 1e6},
    {"name": "j1", "submit": 0, "gpus": 4, "duration": 180, "weight": 5e6, "most_gpus": 5},
    {"name": "j2", "submit": 240, "gpus": 1, "duration": 120},
], slot_seconds=60, gpus=4)  # fmt: skip
"""A solver's relative tolerance is worth 17 slots of j2: elastic, the optimum is 1020000060."""


@pytest.mark.parametrize(("data", "optimum"), [(TINY, 1.5e-9), (UNEQUAL, 1020000060)])
def test_a_bound_that_is_called_certified_is_the_certificates(data, optimum):
    result = hs.solve(GangInstance.parse(data), formulation="elastic", time_limit=20)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.bound <= optimum
    assert result.proof == "certificate"
    assert result.bound == result.certified_bound


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "within"),
    [
        (99.0, 100.0, 0.01, True), (98.9, 100.0, 0.01, False), (None, 100.0, 0.5, False),
        (3.5e-9, 3.1e-9, 1e-6, False), (3.5e-9, 3.5e-9 * (1 - 1e-7), 1e-6, True),
        (0.0, 1e-9, 1e-6, True), (0.0, -1e-9, 1e-6, True), (0.0, -1e-7, 1e-6, False),
    ],
)  # fmt: skip
def test_a_gap_is_relative_to_the_bound(objective, bound, gap, within):
    assert within_gap(objective, bound, gap) is within


def at_once(gpus, capacity=1):
    """Jobs of one worker and one slot each, worth 1, 2, ..., on one server."""
    jobs = [{"worker": {"gpu": g}, "utility": flat(1 + n)} for n, g in enumerate(gpus)]
    return make(jobs, [{"gpu": capacity, "mbps": 1}], [{"mbps": 1}])


@pytest.mark.parametrize("gpus", [(1 / 6, 5 / 6), (5 / 6, 1 / 6)])
def test_jobs_that_only_rounding_lets_in_are_left_out(gpus):
    """5/6 is written 0.8333333333333334: with 0.16666666666666666 it is more than 1."""
    instance = at_once(gpus)
    search = NeighbourhoodSearch(build_oracle(instance, rows="servers"))
    search.construct()
    found = search.solution()
    assert not found.violations()
    assert search.objective == found.objective() == 2
    best = hs.solve(instance, time_limit=20)
    assert best.status == "optimal"
    assert best.objective == 2


def test_more_jobs_than_calls_within_calls():
    """Patterns are not looked for among a thousand jobs in one slot."""
    many = 1200
    result = hs.solve(at_once([1] * many, capacity=3), "milp", time_limit=60)
    assert result.objective == many + (many - 1) + (many - 2)
