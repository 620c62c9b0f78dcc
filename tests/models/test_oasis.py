"""The oasis programs against the brute force over raw decisions; the dual; the per-slot program."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.base import Commitments
from hindsched.models.oasis import offline as models
from hindsched.models.oasis.dual import build_dual
from hindsched.models.oasis.slots import SlotProgram
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force.oasis import capacity_binds, optimum
from tests.strategies.oasis import oasis_instances
from tests.worker_slot_numpy import slot_costs, unit_prices

EXACT = SolveOptions(gap=1e-7)
FORMS = models.FORMS["standard"]
SMALL = hs.read("tests/data/instances/oasis-t10-i10-h5-s1.json")


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
        oracle = build_oracle(instance, rows="servers")
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
    model = models.build_offline(SMALL, form="printed")
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
    best, oracle = optimum(instance).value, build_oracle(instance, rows="servers")
    found = hs.model(instance).dual().solve()
    assert found.violations == []
    assert found.objective >= best - 1e-6
    assert oracle.bound(oracle.rows.pack(found.prices)) == pytest.approx(found.objective, abs=1e-4)
    dual, rng = build_dual(instance), np.random.default_rng(len(instance.jobs))
    for scale in (0.0, 0.5, 3.0):  # no feasible point is better
        prices = scale * rng.uniform(0, 2, oracle.rows.size)
        payoffs = best_payoffs(oracle, prices)
        set_point(dual, instance, oracle.rows.unpack(prices), payoffs)
        assert dual.violations(lambda _, known=payoffs: known) == []
        assert pyo.value(dual.model.eq_19) >= found.objective - 1e-5


def set_point(dual, instance, prices, payoffs):
    for variables, name, capacity in (
        (dual.model.p, "worker_capacity", instance.worker_capacity),
        (dual.model.q, "ps_capacity", instance.ps_capacity),
    ):
        for (server, r, t), variable in variables.items():
            variable.set_value(prices[name][server, r, t] * capacity[server, r])
    for mu, payoff in zip(dual.model.mu.values(), payoffs, strict=True):
        mu.set_value(max(0.0, payoff or 0.0))


def test_an_infeasible_dual_point_is_named():
    oracle, dual = build_oracle(SMALL, rows="servers"), build_dual(SMALL)
    prices = np.zeros(oracle.rows.size)
    payoffs = best_payoffs(oracle, prices)
    set_point(dual, SMALL, oracle.rows.unpack(prices), payoffs)
    dual.model.mu[2].set_value(dual.model.mu[2].value - 1.0)
    dual.model.p[0, 0, 0].set_value(-1.0, skip_validation=True)
    broken, negative = dual.violations(lambda _: payoffs)
    assert (broken.rule, broken.where) == ("(20)", "job j3")
    assert broken.amount == pytest.approx(1.0)
    assert (negative.rule, negative.where) == ("(19)", "smallest p")


def test_the_slot_program_equals_the_greedy_of_cost_t_and_its_relaxation_is_below():
    programs = [SlotProgram(SMALL), SlotProgram(SMALL, integer=False)]
    assert programs[0].problem.is_dcp(dpp=True)
    rng = np.random.default_rng(0)
    solved = 0
    for job in SMALL.jobs[:5]:
        whole = SMALL.worker_capacity, SMALL.ps_capacity
        prices = [rng.uniform(0, 0.01, capacity.shape) for capacity in whole]
        left = [capacity * rng.choice([0.5, 1.0], capacity.shape) for capacity in whole]
        for workload in (0, 1, 3):
            for program in programs:
                program.set(job, workload, prices, left)
                program.problem.solve(solver="HIGHS")
            units = zip(prices, SMALL.demand_of(job), strict=True)
            worker_price, ps_price = (unit_prices(price, demand) for price, demand in units)
            rooms = programs[0].worker_room.value, programs[0].ps_room.value
            costs = slot_costs(
                worker_price, rooms[0].astype(int), ps_price, rooms[1].astype(int),
                SMALL.ps_needed_up_to(job, job.chunks),
            )  # fmt: skip
            if np.isinf(costs[workload]):
                assert programs[0].problem.status == "infeasible"
                continue
            solved += 1
            assert programs[0].problem.value == pytest.approx(costs[workload], abs=1e-6)
            assert programs[1].problem.value <= costs[workload] + 1e-9
    assert solved >= 8
