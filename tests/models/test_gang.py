"""The gang programs against the brute force over raw decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from hindsched.errors import InputError
from hindsched.instances.gang.instance import KINDS, GangInstance, gang_data
from hindsched.models.base import offline_program, subproblem
from hindsched.models.gang.offline import FORMS
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.gang.replay import incumbents
from hindsched.solvers.model import Model, SubproblemModel
from tests.second_opinion.settle import is_binding, optimum
from tests.strategies.gang import tiny_instances

NEAR = {"rel": 1e-7, "abs": 1e-7}


def solved(instance, formulation, **build):
    """The schedule found and the objective."""
    program = offline_program(instance, formulation, **build)
    if "incumbent" in build:
        program.load(build["incumbent"])
    options = SolveOptions(gap=1e-9)
    found = solve_program(program.model, options, start="incumbent" in build)
    assert found.has_point
    return (None if program.relaxed else program.extract()), found.objective


def best_known(instance, formulation):
    return min(incumbents(instance, formulation), key=lambda one: one.objective())


@pytest.mark.parametrize("kind", KINDS)
def test_the_programs_equal_the_brute_force(kind):
    binding, goals = [], ["", ",makespan", ",deadlines"]

    @given(tiny_instances(longest=2 if kind == "elastic" else 3))
    def check(instance):
        turn = len(binding)
        formulation = kind + goals[turn % 3 if turn % 2 else 0]
        best = optimum(instance, formulation)
        form = FORMS[formulation][turn % 4 == 0]
        solution, objective = solved(instance, formulation, form=form)
        assert objective == pytest.approx(best, **NEAR)
        assert solution.violations() == []
        assert solution.objective() == best
        if turn % 2:
            _, relaxed = solved(instance, formulation, relax=True)
            assert relaxed <= best + 1e-7 * max(1.0, best)
        binding.append("," not in formulation and is_binding(instance, best, formulation))
        if turn % 5 == 0:
            begun, objective = solved(
                instance, formulation, incumbent=best_known(instance, formulation)
            )
            assert objective == pytest.approx(best, **NEAR)
            assert begun.objective() == best

    check()
    assert np.mean(binding) >= 0.2


@given(tiny_instances(longest=2))
def test_blocks_and_bounds_agree(instance):
    """The subproblem is the oracle's best response; relaxation and its prices have one bound."""
    draw = np.random.default_rng(len(instance.jobs) + instance.serial_end)
    for formulation in draw.choice([*KINDS, *(f"{kind},deadlines" for kind in KINDS)], 1).tolist():
        oracle = build_oracle(instance, formulation)
        prices = draw.choice([0.0, 0.0, 0.3, 1.0, 2.5], oracle.rows.size)
        job = int(draw.integers(len(instance.jobs)))
        sub = SubproblemModel(subproblem(instance, job, formulation))
        sub.set(oracle.rows.unpack(prices))
        found, response = sub.solve(), oracle.best_response(job, prices)
        assert found.objective == pytest.approx(response.value, **NEAR)
        alone = oracle.use_of(found.solution)[job]
        paid = alone.objective + float(prices[alone.rows] @ alone.amounts)
        assert paid == pytest.approx(response.value, **NEAR)
        lp = Model(offline_program(instance, formulation, relax=True)).solve()
        goal, best = formulation.partition(",")[2], optimum(instance, formulation)
        certified = lp.certificate().bound
        assert certified <= best
        if not goal and not instance.is_consolidated:  # servers are narrower than the oracle's pool
            assert certified == pytest.approx(lp.objective, rel=1e-6, abs=1e-6)


def pool(jobs, gpus=2, **fields):
    listed = [
        {"name": f"j{k}", "submit": submit, "duration": duration, "gpus": width}
        for k, (submit, duration, width) in enumerate(jobs)
    ]
    return GangInstance.parse(gang_data("pool", listed, gpus=gpus, **fields))


def test_an_elastic_and_a_rigid_optimum_by_hand():
    instance = pool([(0, 2, 1), (0, 2, 1)])
    assert solved(instance, "non-preemptive")[1] == pytest.approx(4)  # side by side
    assert solved(instance, "elastic")[1] == pytest.approx(3)  # one after the other on both
    interrupted = pool([(0, 3, 2), (1, 1, 2)])
    assert solved(interrupted, "non-preemptive")[1] == pytest.approx(6)
    assert solved(interrupted, "preemptive")[1] == pytest.approx(5)


def test_what_is_too_large_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"30000 slots, at most 20000"):
        offline_program(pool([(0, 30_000, 1)]))
    with pytest.raises(InputError, match=r"variables in the form windows, at most"):
        offline_program(pool([(0, 2_000, 1)] * 3), "preemptive")
    with pytest.raises(InputError, match="no sum over jobs"):
        subproblem(pool([(0, 1, 1)]), 0, "elastic,makespan")
    with pytest.raises(InputError, match="must not be negative"):
        subproblem(pool([(0, 1, 1)]), 0, slots=-1)


@pytest.mark.parametrize("formulation", FORMS)
def test_a_program_without_jobs_is_worth_nothing(formulation):
    for relax in (False, True):
        assert Model(offline_program(pool([]), formulation, relax=relax)).solve().objective == 0
