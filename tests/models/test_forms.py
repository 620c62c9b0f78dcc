"""Every form of every family: one optimum, schedules in and out, and what is kept of a run."""

from __future__ import annotations

import json
from functools import cache

import highspy
import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched.models.base import Commitments, family_models, offline_program
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program

SMALL = {
    "oasis": {"jobs": 5, "horizon": 5},
    "batchsched": {"jobs": 2},
    "astraea": {"jobs": 2, "horizon": 6},
    "edgecloud": {"jobs": 3},
    "mlbroker": {"jobs": 2},
    "gang": {"preset": "small", "jobs": 3},
}
FORMS_OF = {name: family_models(name).forms for name in SMALL}
FORMULATIONS = [(family, word) for family in SMALL for word in FORMS_OF[family]]
FORMS = [(*both, form) for both in FORMULATIONS for form in FORMS_OF[both[0]][both[1]]]
EXACT = SolveOptions(gap=1e-7)
each_form = pytest.mark.parametrize(("family", "formulation", "form"), FORMS)


@cache
def example(family):
    return hs.generate(family, seed=1, **SMALL[family])


@cache
def optimum(family, formulation):
    result = hs.solve(example(family), "milp", formulation=formulation, time_limit=30)
    assert result.status == "optimal"
    return result.solution


def built(family, formulation, form, **more):
    return offline_program(example(family), formulation, form=form, **more)


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


@each_form
def test_every_form_has_the_proven_optimum_of_its_formulation(family, formulation, form, tmp_path):
    program = hs.model(example(family), formulation=formulation, form=form)
    assert "relaxation" not in program.program.title
    best = optimum(family, formulation).objective()
    assert proven_optimum(program, tmp_path) == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("form", FORMS_OF["oasis"]["standard"])
def test_a_program_that_adds_up_servers_is_called_a_relaxation(form, tmp_path):
    program = hs.model(example("oasis"), form=form, aggregate=True)
    assert ("relaxation" in program.program.title) == (form != "printed")
    best = optimum("oasis", "standard").objective()
    assert proven_optimum(program, tmp_path) >= best - 1e-6


@each_form
def test_a_schedule_is_a_point_of_the_program_and_is_read_back(family, formulation, form):
    known = optimum(family, formulation)
    program = built(family, formulation, form, incumbent=known)
    program.load(known)
    for row in program.model.component_data_objects(pyo.Constraint, active=True):
        assert min(row.uslack(), row.lslack()) >= -1e-6, row.name
    (worth,) = program.model.component_data_objects(pyo.Objective, active=True)
    assert pyo.value(worth) == pytest.approx(known.objective())
    assert program.extract().violations() == []
    assert program.extract().objective() == pytest.approx(known.objective())


def slot_by_slot(rows, until=10**9):
    """What runs in each slot before `until`; not which of the same workers, nor whose chunk."""
    return sorted(
        (slot, json.dumps({k: v for k, v in row.items() if k not in ("to", "worker", "chunk")}
                          | {"from": 0}, sort_keys=True))
        for row in rows for slot in range(row["from"], min(row["to"] + 1, until))
    )  # fmt: skip


@each_form
def test_what_has_begun_is_kept_and_the_rest_planned_to_the_same_optimum(family, formulation, form):
    best = optimum(family, formulation)
    rows = best.assignments()
    names = [name for name, own in rows.items() if own]
    firsts = {name: min(row["from"] for row in rows[name]) for name in names}
    now = sorted(firsts.values())[len(names) // 2] + 1
    begun = {name: rows[name] for name in names if firsts[name] < now}
    locked = frozenset(list(begun)[:1])
    past = Commitments(now=now, assignments=begun, locked=locked)
    program = built(family, formulation, form, commitments=past)
    result = solve_program(program.model, EXACT)
    found = program.extract()
    assert found.violations() == []
    assert found.objective() == pytest.approx(result.objective, rel=1e-6)
    assert result.objective == pytest.approx(best.objective(), rel=1e-6)
    again = found.assignments()
    for name in names:
        kept = slot_by_slot(past.history(name), now)
        assert slot_by_slot(again.get(name, ()), now) == kept
        if name in locked:
            assert slot_by_slot(again[name]) == slot_by_slot(rows[name])
    if family in ("oasis", "astraea") and not formulation.startswith("must"):
        refused = Commitments(now=now, rejected=frozenset(names[-1:]))
        program = built(family, formulation, form, commitments=refused)
        result = solve_program(program.model, EXACT)
        assert not program.extract().assignments().get(names[-1])
        assert result.objective <= best.objective() + 1e-6


EQUATIONS = {
    ("oasis", "standard"): "1 2 3 4 5 6 7 8 9 10",
    ("batchsched", "literal"): "2a 2b 2c 2d 2e 2f 2g 2h 2i 2j",
    ("astraea", "optional,literal"): "3a 3b 3c 3d 3e 3f 3g 3h 3i 3j 3k 3l 3m 3n",
    ("edgecloud", "literal"): "2b 2c 2d 2e 2f 2g 2h 2i 2j",
    ("mlbroker", "paper"): "8a 8b 8c 8d 8e 8f 8g 8h 8i 8j",
}
"""Equations that the printed program has a component of."""


@each_form
def test_components_are_named_by_their_equations_and_say_what_they_are(family, formulation, form):
    program = built(family, formulation, form)
    numbers = set()
    for part in program.components():
        assert not any(index.startswith("index") for index in part.indices)
        if part.kind == "variable":
            assert part.doc.startswith("(")
            continue
        number = part.name.partition("_")[2].split("_")[0]
        numbers.add(number)
        assert part.doc.startswith((f"({number}", "(ours)")), part
    if form == "printed":
        assert set(EQUATIONS.get((family, formulation), "").split()) <= numbers
