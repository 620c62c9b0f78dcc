"""The oasis programs against the brute force over raw decisions."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from hindsched.instances.io import read
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.base import Commitments
from hindsched.models.oasis import offline as models
from hindsched.solutions.oasis.placing import place
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.api import check_result
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.oasis.methods import METHODS
from hindsched.solvers.families.oasis.resources import OasisOracle
from tests.brute_force.oasis import capacity_binds, optimum
from tests.strategies.oasis import oasis_instances

EXACT = SolveOptions(gap=1e-7)
FORMS = models.FORMS["standard"]


def solved(instance, **form):
    model = models.build_offline(instance, **form)
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


def test_forms_equal_the_brute_force_on_200_instances():
    binding = []

    @settings(max_examples=200)  # it counts what it saw
    @given(oasis_instances())
    def check(instance):
        best = optimum(instance)
        binding.append(capacity_binds(instance, best.value))
        checked = OasisSolution.from_assignments(instance, best.assignments)
        assert checked.violations() == []
        assert checked.objective() == pytest.approx(best.value, abs=1e-7)
        for form in FORMS:
            check_placed(*solved(instance, form=form), instance, best.value)
        _, added_up = solved(instance, aggregate=True)
        assert added_up.objective >= best.value - 1e-5
        relaxed = models.build_offline(instance, relax=True)
        linear = solve_program(relaxed.pyomo, EXACT, want_duals=True)
        assert linear.objective >= best.value - 1e-6
        oracle = OasisOracle(instance, layout="servers")
        prices = oracle.rows.pack(relaxed.capacity_prices(linear.duals))
        bound = oracle.bound(prices)
        assert best.value - 1e-9 <= bound <= linear.objective + 1e-5 * max(1, linear.objective)

    check()
    assert len(binding) >= 200
    assert sum(binding) >= 0.3 * len(binding)


@given(oasis_instances())
def test_a_loaded_solution_satisfies_every_form(instance):
    best = optimum(instance)
    solution = OasisSolution.from_assignments(instance, best.assignments)
    for form in FORMS:
        model = models.build_offline(instance, form=form)
        model.load(solution)
        assert pyo.value(model.pyomo.eq_1) == pytest.approx(best.value, abs=1e-9)
        for row in model.pyomo.component_data_objects(pyo.Constraint, active=True):
            assert row.slack() >= -1e-9, (form, row.name)
        again = model.extract()
        assert again is not None
        assert again.objective() == pytest.approx(best.value)


@given(oasis_instances())
def test_commitments_are_kept_and_the_rest_is_planned_as_well_as_it_can_be(instance):
    """From slot 3 on: the first job is locked, the last is rejected, another may be given up."""
    plan = optimum(instance).assignments
    names = [job.name for job in instance.jobs]
    commitments = Commitments(
        now=3,
        assignments={name: plan[name] for name in names[:2] if name in plan},
        locked=frozenset(names[:1]) & set(plan),
        rejected=frozenset(names[-1:]),
    )
    values = set()
    for form in FORMS:
        model = models.build_offline(instance, form=form, commitments=commitments)
        result = solve_program(model.pyomo, EXACT)
        solution = model.extract()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(result.objective, abs=1e-5)
        values.add(round(result.objective, 4))
        assert names[-1] not in solution.workers
        past = {name: commitments.history(name) for name in names}
        history = OasisSolution.from_assignments(instance, past)
        for name, y in solution.workers.items():
            assert (y[:2] == history.workers.get(name, np.zeros_like(y))[:2]).all()
        if names[0] in commitments.locked:
            whole = OasisSolution.from_assignments(instance, {names[0]: plan[names[0]]})
            assert (solution.workers[names[0]] == whole.workers[names[0]]).all()
    assert len(values) == 1


def test_printed_form_names_one_component_an_equation():
    model = models.build_offline(read("tests/data/instances/oasis-t10-i10-h5-s1.json"),
                                 form="printed")  # fmt: skip
    assert {"eq_1", "eq_4", "eq_5"} <= {
        c.name for c in model.pyomo.component_objects(descend_into=False)
    }
    names = {c.local_name for c in model.pyomo.job[0].component_objects()}
    assert {f"eq_{n}" for n in (2, 3, 6, 7, 9, 10)} <= names
    assert {"eq_8_one", "eq_8_none_after", "eq_8_busy"} <= names


def test_a_solver_that_cuts_off_the_optimum_would_be_seen():
    """A case in which HiGHS's default presolve calls 1.3775 optimal."""
    server = {"compute": 1, "mbps": 2}
    job = {"epochs": 1, "minibatches": 1, "minibatch_slots": 0.3}
    flat = {"kind": "linear", "slope": 0, "intercept": 1}
    jobs = [
        {**job, "name": "j1", "arrival": 1, "chunks": 1, "gradient_mb": 0,
         "worker": {"mbps": 2}, "ps": {"mbps": 1}, "utility": flat},
        {**job, "name": "j2", "arrival": 2, "chunks": 1, "gradient_mb": 0,
         "worker": {"mbps": 1}, "ps": {"mbps": 1}, "utility": flat},
        {**job, "name": "j3", "arrival": 1, "chunks": 2, "gradient_mb": 0.25,
         "worker": {"mbps": 1}, "ps": {"mbps": 2},
         "utility": {"kind": "sigmoid", "priority": 1, "decay": 0.5, "target": 0}},
    ]  # fmt: skip
    instance = OasisInstance.parse(
        {
            "family": "oasis", "name": "presolve", "horizon": 4, "slot_seconds": 8,
            "resources": ["compute", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": n, "capacity": server} for n in ("w1", "w2")],
            "ps_servers": [{"name": n, "capacity": {"mbps": 2}} for n in ("p1", "p2")],
            "jobs": jobs,
        }
    )  # fmt: skip
    assert optimum(instance).value == pytest.approx(1.5)
    _, result = solved(instance, form="printed")
    assert result.objective == pytest.approx(1.5)


def test_no_jobs_earn_nothing():
    instance = read("tests/data/instances/oasis-t10-i10-h5-s1.json").with_jobs(())
    for form in FORMS:
        model, result = solved(instance, form=form)
        assert result.objective == 0
        assert model.extract().objective() == 0


def test_placing_finds_what_fits_and_refuses_what_does_not():
    free = np.array([[4.0, 8.0], [4.0, 8.0]])
    demand = np.array([[3.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    placed = place(np.array([1, 1, 3]), demand, free)
    assert (placed.T @ demand <= free).all()
    assert placed.sum(axis=1).tolist() == [1, 1, 3]
    assert place(np.array([2, 1, 0]), demand, free) is None  # 3 + 3 + 2 = 8, but 2 fits nowhere


def test_placing_searches_where_best_fit_fails():
    demand = np.array([[4.0], [3.0], [2.0]])
    free = np.array([[7.0], [7.0], [6.0]])  # 4 + 3, 4 + 3, 2 + 2 + 2
    placed = place(np.array([2, 2, 3]), demand, free)
    assert (placed.T @ demand <= free).all()


def test_the_method_proves_a_known_optimum():
    instance = read("tests/data/instances/oasis-t10-i10-h25-s0.json")
    result = check_result(METHODS["milp"](instance, "standard", SolveOptions(), None), DEFAULT_GAP)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(182.359, rel=1e-4)
    assert result.solution.violations() == []


def one_slot(worker, ps, capacities, values):
    """Jobs of one worker-slot each, in a cluster of one slot."""
    job = {"arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
           "gradient_mb": 0, "worker": worker, "ps": ps}  # fmt: skip
    flat = [{"kind": "linear", "slope": 0, "intercept": value} for value in values]
    servers = [[{"name": f"{role}{i}", "capacity": c} for i, c in enumerate(own)]
               for role, own in zip("wp", capacities, strict=True)]  # fmt: skip
    return OasisInstance.parse(
        {
            "family": "oasis", "name": "one-slot", "horizon": 1, "slot_seconds": 60,
            "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": servers[0], "ps_servers": servers[1],
            "jobs": [{**job, "name": f"j{i}", "utility": u} for i, u in enumerate(flat)],
        }
    )  # fmt: skip


def check_method(instance, value, cuts):
    assert optimum(instance).value == pytest.approx(value)
    nobody = OasisSolution(instance, {}, {})
    result = check_result(
        METHODS["milp"](instance, "standard", SolveOptions(), None, incumbent=nobody), DEFAULT_GAP
    )
    assert result.status == "optimal"
    assert result.objective == pytest.approx(value)
    assert result.bound == pytest.approx(value)
    assert result.details["conflict_cuts"] == cuts


def test_patterns_see_that_an_aggregated_optimum_does_not_fit():
    """Three 2-GPU workers fill two 3-GPU servers in the sum, and two fit."""
    instance = one_slot({"gpu": 2}, {}, ([{"gpu": 3}, {"gpu": 3}], [{}]), (3, 2, 1))
    relaxation, aggregated = solved(instance, aggregate=True)
    assert aggregated.objective == pytest.approx(6)
    assert "relaxation" in relaxation.title
    assert relaxation.extract() is None
    assert solved(instance)[1].objective == pytest.approx(5)
    check_method(instance, 5, cuts=0)


def test_whole_ps_are_counted():
    """Two workers need half a PS each, and the one PS that fits serves one job."""
    worker, ps = {"gpu": 1, "mbps": 1}, {"mbps": 2}
    capacities = ([{"gpu": 2, "mbps": 2}], [{"mbps": 2}])
    check_method(one_slot(worker, ps, capacities, (3, 2)), 3, cuts=0)


def test_promises_that_no_schedule_keeps_are_cut_off():
    """Three worker-slots a job: where two run in one slot and one in the next, a PS serves both
    slots, of which the program counts the second by a half."""
    job = {"arrival": 1, "epochs": 1, "chunks": 2, "minibatches": 1, "minibatch_slots": 0.6,
           "gradient_mb": 0.25}  # fmt: skip
    jobs = [
        {"name": "j1", "worker": {"gpu": 1, "mbps": 1}, "ps": {"mbps": 2}, "minibatch_slots": 1,
         "utility": {"kind": "sigmoid", "priority": 8, "decay": 1.5, "target": 1}},
        {"name": "j2", "worker": {"mbps": 1}, "ps": {"gpu": 1, "mbps": 2},
         "utility": {"kind": "linear", "slope": -2, "intercept": 3}},
        {"name": "j3", "worker": {"gpu": 1, "mbps": 1}, "ps": {"gpu": 1, "mbps": 2}, "epochs": 2,
         "gradient_mb": 0, "utility": {"kind": "linear", "slope": -4, "intercept": 7}},
    ]  # fmt: skip
    servers = {
        "worker_servers": [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 1}],
        "ps_servers": [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 3}],
    }
    instance = OasisInstance.parse({
        "family": "oasis", "name": "promises", "horizon": 4, "slot_seconds": 8,
        "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
        "jobs": [job | own for own in jobs],
        **{side: [{"name": f"{side[0]}{i}", "capacity": c} for i, c in enumerate(own)]
           for side, own in servers.items()},
    })  # fmt: skip
    check_method(instance, optimum(instance).value, cuts=1)


@given(oasis_instances())
def test_the_method_proves_the_brute_forces_optimum(instance):
    nobody = OasisSolution(instance, {}, {})
    result = check_result(
        METHODS["milp"](instance, "standard", EXACT, None, incumbent=nobody), DEFAULT_GAP
    )
    best = optimum(instance).value
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.bound == pytest.approx(best, abs=1e-5)
    assert result.solution.violations() == []


@pytest.mark.parametrize(("name", "best"), [("h5-s1", 250.338), ("h10-s0", 287.064)])
def test_any_time_limit_gives_an_interval_with_the_optimum(name, best):
    instance = read(f"tests/data/instances/oasis-t10-i10-{name}.json")
    for limit in (0.0, 0.5, 2.0):
        result = METHODS["milp"](instance, "standard", SolveOptions(time_limit=limit), None)
        assert result.solution.violations() == []
        assert result.objective <= best * (1 + 1e-4)
        assert result.bound is None or result.bound >= best * (1 - 1e-4)
