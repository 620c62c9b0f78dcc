"""A form never changes a formulation's optimum: the written files say so to HiGHS alone."""

from __future__ import annotations

from importlib import import_module

import highspy
import pytest

import hindsched as hs

SMALL = {
    "oasis": {"jobs": 5, "horizon": 5},
    "batchsched": {"jobs": 2},
    "astraea": {"jobs": 2, "horizon": 6},
    "edgecloud": {"jobs": 3},
    "mlbroker": {"jobs": 2},
    "gang": {"preset": "small", "jobs": 3},
}
FORMS = {name: import_module(f"hindsched.models.{name}.offline").FORMS for name in SMALL}
FORMULATIONS = [(family, formulation) for family in SMALL for formulation in FORMS[family]]


def example(family):
    return hs.generate(family, seed=1, **SMALL[family])


def proven_optimum(program, folder):
    """The optimum of the program's file, which HiGHS reads and proves without our code."""
    path = folder / "program.mps"
    program.write(path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("time_limit", 30.0)
    # Pyomo writes a missing upper bound of an integer as 1E21: HiGHS warns and takes it as infinite
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal, program.program.title
    return highs.getInfo().objective_function_value


def test_every_family_is_here():
    assert set(SMALL) == set(hs.families())


@pytest.mark.parametrize(("family", "formulation"), FORMULATIONS)
def test_every_form_has_the_proven_optimum_of_its_formulation(family, formulation, tmp_path):
    instance = example(family)
    result = hs.solve(instance, "milp", formulation=formulation, time_limit=30)
    assert result.status == "optimal"
    for form in FORMS[family][formulation]:
        program = hs.model(instance, formulation=formulation, form=form)
        assert "relaxation" not in program.program.title
        found = proven_optimum(program, tmp_path)
        assert found == pytest.approx(result.objective, rel=1e-6, abs=1e-6), form


@pytest.mark.parametrize("family", SMALL)
def test_the_default_program_has_the_optimum_that_solve_proves(family, tmp_path):
    instance = example(family)
    result = hs.solve(instance, time_limit=30)
    assert result.status == "optimal"
    found = proven_optimum(hs.model(instance), tmp_path)
    assert found == pytest.approx(result.objective, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("form", FORMS["oasis"]["standard"])
def test_a_program_that_adds_up_servers_is_called_a_relaxation(form, tmp_path):
    instance = example("oasis")
    program = hs.model(instance, form=form, aggregate=True)
    exact = proven_optimum(hs.model(instance), tmp_path)
    assert ("relaxation" in program.program.title) == (form != "printed")
    assert proven_optimum(program, tmp_path) >= exact - 1e-6
