"""The batchsched programs against the brute force over raw decisions."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.io import read
from hindsched.models.base import Commitments
from hindsched.models.batchsched import offline as models
from hindsched.models.batchsched.dual import build_dual
from hindsched.models.batchsched.plan import plan_rest
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import check_result
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.batchsched.list_schedule import as_solution, list_schedule
from hindsched.solvers.families.batchsched.methods import METHODS
from hindsched.solvers.families.batchsched.oracle import BatchschedMerged, ServerOracle
from tests.brute_force import batchsched as brute_force
from tests.strategies.batchsched import known_b, tiny_instances

ONLINE = ("batchsched", "batchsched-exact", "batchsched-adaptive", "wspt", "fifo", "reoptimise")
DATA = "tests/data/instances/"


def solved(instance, formulation="modes", **build):
    model = models.build_offline(instance, formulation, **build)
    start = "incumbent" in build and not build.get("relax")
    if start:
        model.load(build["incumbent"])
    result = solve_program(model.pyomo, SolveOptions(gap=1e-7), start=start)
    assert result.has_point
    return model, result


def test_modes_and_literal_equal_the_brute_force():
    binding, beaten, literal = [], [], []

    @settings(max_examples=200)  # it counts what it saw
    @given(tiny_instances())
    def check(instance):
        best = brute_force.optimum(instance)
        schedule = as_solution(instance, list_schedule(instance))
        model, result = solved(instance, incumbent=schedule)
        assert result.objective == pytest.approx(best, abs=1e-6)
        solution = model.extract()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(best, abs=1e-6)
        _, relaxed = solved(instance, relax=True)
        assert relaxed.objective <= best + 1e-6
        if len(literal) < 50 and model.slots <= 7:
            model, result = solved(instance, "literal", incumbent=solution)
            assert result.objective == pytest.approx(best, abs=1e-6)
            solution = model.extract()
            assert solution.violations() == []
            assert solution.objective() == pytest.approx(best, abs=1e-6)
            _, loose = solved(instance, "literal", relax=True, incumbent=solution)
            assert loose.objective <= relaxed.objective + 1e-6
            literal.append(relaxed.objective - loose.objective)
        for oracle in (ServerOracle(instance), BatchschedMerged(instance)):
            prices = np.linspace(0, 1, oracle.rows.size)
            assert oracle.bound(prices) <= best + 1e-6
        online = []
        for name in ONLINE:
            run = simulate(instance, name)
            assert run.violations == []
            assert run.objective >= best - 1e-6
            online.append(run.objective)
        binding.append(best > brute_force.least_alone(instance) + 1e-6)
        beaten.append(min(online) > best + 1e-6)

    check()
    assert len(binding) >= 200
    assert np.mean(binding) >= 0.3
    assert np.mean(beaten) >= 0.2
    assert len(literal) == 50
    assert max(literal) > 1e-3  # the mode-based relaxation is the tighter one


@pytest.mark.parametrize(("name", "optimum"), [("ps", 243), ("rar", 251)])
def test_known_optima_of_the_shared_instances(name, optimum):
    instance = read(f"{DATA}batchsched-{name}-j5-s200.json")
    result = check_result(METHODS["milp"](instance, "modes", SolveOptions(), None), DEFAULT_GAP)
    assert result.status == "optimal"
    assert result.objective == optimum
    assert result.bound == pytest.approx(optimum, abs=1e-4)


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
@pytest.mark.parametrize("formulation", ["modes", "literal"])
def test_b1_and_b2(architecture, formulation):
    instance = known_b(architecture)
    result = check_result(METHODS["milp"](instance, formulation, SolveOptions(), None), DEFAULT_GAP)
    assert (result.status, result.objective) == ("optimal", 36)


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
@pytest.mark.parametrize("light", [0, 1, 2])
def test_a_light_job_does_not_stretch_the_program(architecture, light):
    data = known_b(architecture).to_dict()
    data["jobs"][light]["weight"] = 1e-9
    instance = type(known_b(architecture)).model_validate(data)
    model, result = solved(instance)
    assert result.objective == pytest.approx(brute_force.optimum(instance), abs=1e-6)
    longest = [int(modes(instance, job).duration.max()) for job in instance.jobs]
    assert model.slots <= max(job.arrival for job in instance.jobs) + sum(longest)


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
def test_every_equation_number_is_a_component(architecture):
    model = models.build_offline(known_b(architecture), "literal")
    names = {c.name.split("_")[1] for c in model.pyomo.component_objects(pyo.Constraint)}
    names = {f"eq_{number}" for number in names}
    for part in model.components("constraint", "variable"):
        number = part.name.split("_")[1] if part.kind == "constraint" else ""
        assert part.doc.startswith((f"({number})" if number else "(2", f"({number or 15}"))
        assert not any(index.startswith("index") for index in part.indices)
    shared = {"eq_2a", "eq_2b", "eq_2f", "eq_2g", "eq_2j"}
    with_ps = {"eq_2c", "eq_2d", "eq_2e", "eq_2h", "eq_2i"}
    assert names == shared | (with_ps if architecture == PARAMETER_SERVER else {"eq_15a", "eq_15b"})


@pytest.mark.parametrize(
    ("architecture", "offline", "round_", "sub"),
    [
        (PARAMETER_SERVER, {"eq_2a", "eq_2h"}, {"eq_7a", "eq_2h"}, {"eq_12a", "eq_2h"}),
        (RING_ALLREDUCE, {"eq_2a", "eq_15b"}, {"eq_7a", "eq_15b"}, {"eq_20a", "eq_15b"}),
    ],
)
def test_linking_rows_are_named_by_the_architectures_numbers(architecture, offline, round_, sub):
    instance = known_b(architecture)
    subproblem = models.build_subproblem(instance, 0)
    for slots in (5, 6):  # filled twice
        free = np.ones((*instance.server_capacity.shape, slots))
        subproblem.set({"capacity": free}, {"capacity": free})
    for model, expected in (
        (models.build_offline(instance), offline),
        (models.build_max_weight(instance, 5), round_),
        (subproblem, sub),
    ):
        names = {
            component.name
            for component in model.pyomo.component_objects(pyo.Constraint, descend_into=False)
        }
        assert names == expected


def test_a_solution_can_be_loaded_and_read_back():
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        instance = generate("small", 3, jobs=4, architecture=architecture)
        plan = plan_rest(instance, Commitments())
        assert plan.violations() == []
        for formulation in instance.formulations:
            model = models.build_offline(instance, formulation, incumbent=plan)
            model.load(plan)
            again = model.extract()
            assert again.objective() == plan.objective()
            broken = [
                row.name
                for row in model.pyomo.component_data_objects(pyo.Constraint)
                if row.uslack() < -1e-6 or row.lslack() < -1e-6
            ]
            assert broken == []


def test_reduction_keeps_the_optimum():
    for seed in range(4):
        instance = generate("small", seed, jobs=4)
        plain = solved(instance)[1].objective
        result = METHODS["milp"](instance, "modes", SolveOptions(), None)
        assert result.objective == pytest.approx(plain)
        assert result.bound <= plain + 1e-6


@given(tiny_instances())
def test_max_weight_equals_the_brute_force(instance):
    for last in (1, 3):
        best = brute_force.best_subset(instance, last)
        result = solve_program(models.build_max_weight(instance, last).pyomo)
        assert result.objective == pytest.approx(best, abs=1e-6)
        dual = build_dual(instance, last=last)
        bound = solve_program(dual.pyomo)
        assert bound.objective >= best - 1e-6  # weak duality
        relaxed = solve_program(models.build_max_weight(instance, last, relax=True).pyomo)
        assert bound.objective <= relaxed.objective + 1e-6  # (8) is the tighter relaxation


def test_commitments_keep_what_has_begun():
    instance = known_b(PARAMETER_SERVER)
    plan = METHODS["milp"](instance, "modes", SolveOptions(), None).solution
    rows = {"j0": plan.assignments()["j0"]}
    for formulation in instance.formulations:
        model, result = solved(
            instance, formulation, commitments=Commitments(now=3, assignments=rows)
        )
        solution = model.extract()
        assert solution.assignments()["j0"] == rows["j0"]
        assert min(solution.rows[name][0].first for name in ("j1", "j2")) >= 3
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(result.objective)
