"""Programs that a user holds: the same face in every family that has one."""

from __future__ import annotations

import json
import re
from operator import attrgetter

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import linprog

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError, SolveFailed
from hindsched.models.base import dual_program
from hindsched.models.edgecloud.relaxations import build_ilp_4
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.door.conflict import find_conflict
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.model import DualModel
from tests.node_bounds import root_bound

SMALL = {
    "oasis": {"jobs": 3, "horizon": 6},
    "batchsched": {"jobs": 2},
    "astraea": {"jobs": 2, "horizon": 8},
    "edgecloud": {"jobs": 2},
    "gang": {"preset": "small", "jobs": 3},
}
FAMILIES = tuple(SMALL)
PRINTED_PROBLEM = {"edgecloud": "literal", "mlbroker": "paper"}
"""Families whose printed problem is another one than the default."""


def printed(instance):
    """The program as the paper prints it."""
    return hs.model(instance, form="printed")


VARIABLES = {"edgecloud": ("x", "y"), "gang": ("starts", "starts")}
"""A variable with values in the relaxation and one with reduced costs; ``u``, ``y`` elsewhere."""


def oracle_of(instance):
    """The oracle whose rows the programs' prices have: one a server, where it has servers."""
    rows = "servers" if "servers" in row_layouts(instance.family) else None
    return build_oracle(instance, rows=rows)


@pytest.fixture(scope="module", params=FAMILIES)
def instance(request):
    return hs.generate(request.param, seed=1, **SMALL[request.param])


@pytest.fixture(scope="module")
def optimum(instance):
    result = hs.solve(instance, "milp", time_limit=120)
    assert result.status == "optimal"
    return result.objective


def test_it_prints_numbered_sentences_with_named_indices(instance):
    other = PRINTED_PROBLEM.get(instance.family)
    if other is not None:
        assert printed(instance).program.formulation == other
        with pytest.raises(InputError, match=f"{other} has it"):
            hs.model(instance, formulation=instance.formulations[0], form="printed")
    for program in (hs.model(instance), printed(instance)):
        shown = str(program)
        facts = program.to_dict()
        assert facts["rows"] == program.pyomo.nconstraints()
        assert facts["columns"] == program.pyomo.nvariables()
        for part in facts["components"]:
            assert part["path"] in shown
            assert part["path"].rpartition(".")[2] == part["name"]
            where = attrgetter(part["path"].partition(".")[2]) if "." in part["path"] else None
            assert where is None or len(list(where(program.pyomo.job[:])))
            assert part["doc"].startswith("(")
            assert part["doc"] in shown
            assert not any(name.startswith("index_") for name in part["indices"]), part


def test_the_relaxation_has_labelled_values_duals_and_a_certificate(instance, optimum):
    lp = hs.model(instance).relax().solve()
    valued, costed = VARIABLES.get(instance.family, ("u", "y"))
    values, duals = lp.values[valued], lp.duals
    assert set(values.index.get_level_values("job")) <= {job.name for job in instance.jobs}
    assert "(" in values.name
    assert set(duals) == {part.name for part in lp.declared.components("constraint")}
    certificate = lp.certificate()
    sign = 1 if instance.sense == "max" else -1
    assert sign * certificate.bound >= sign * optimum - 1e-6
    assert sign * lp.objective >= sign * optimum - 1e-6
    assert np.isfinite(lp.reduced_costs[costed]).all()
    with pytest.raises(InputError, match="must be one of"):
        duals["no such row"]


def test_an_integer_program_has_no_duals(instance):
    with pytest.raises(SolveFailed, match="relax"):
        _ = hs.model(instance).solve().duals


def test_a_changed_model_says_so_and_an_unchanged_one_does_not(instance):
    program = hs.model(instance)
    objective = next(iter(program.pyomo.component_data_objects(pyo.Objective)))
    assert program.solve().changed is None
    variable = next(v for v in program.pyomo.component_data_objects(pyo.Var) if not v.fixed)
    program.pyomo.extra = pyo.Constraint(expr=variable <= 0.5)
    result = program.solve()
    assert "extra has 1 rows instead of 0" in result.changed
    assert result.changed in str(result)
    program.pyomo.extra.deactivate()
    assert program.solve().changed is None
    objective.set_value(2 * objective.expr + 1)
    assert program.solve().changed == "the objective"


def test_every_dual_is_labelled_and_has_a_unit(instance):
    held = [hs.model(instance), printed(instance), hs.model(instance).subproblem(0)]
    for program in (each.program for each in held):
        for part in program.components("constraint"):
            assert part.unit or part.name not in program.SYMBOLS, part.name
            found = program.table(part.name, lambda row: 0.0)
            assert not part.unit or f"({part.unit})" in found.name
            assert "job" not in found.index.names or set(found.index.unique("job")) <= {
                job.name for job in instance.jobs
            }
    program.pyomo.extra = pyo.Constraint(
        expr=next(program.pyomo.component_data_objects(pyo.Var)) >= 0
    )
    assert program.table("extra", lambda row: 0.0).name == "extra"


def test_the_dual_is_feasible_and_its_check_can_fail(instance):
    if instance.family == "gang":  # no paper states one
        with pytest.raises(hs.InputError, match="must be one whose paper states a dual"):
            hs.model(instance).dual()
        return
    dual = hs.model(instance).dual()
    if instance.family == "batchsched":  # it lists every schedule: fewer slots are enough here
        dual = DualModel(dual_program(instance, last=3))
    result = dual.solve()
    assert result.violations == []
    assert result.objective >= 0
    assert set(result.prices) <= {part.name for part in oracle_of(instance).rows.sets}
    payoff = next(iter(dual.program.model.component_objects(pyo.Var)))
    worth = {key: item.value for key, item in payoff.items()}
    for key, item in payoff.items():  # mu: lower is infeasible when minimised, higher when not
        item.set_value(worth[key] * (2.0 if instance.family == "edgecloud" else 0.0))
    if instance.family != "oasis" and any(worth.values()):
        assert dual.program.violations() != []


def test_the_command_prints_and_writes(instance, tmp_path, capsys):
    file, target = tmp_path / "i.json", tmp_path / "x.mps"
    hs.write(instance, file)
    own = PRINTED_PROBLEM.get(instance.family)
    asked = ["--form", "printed", *([] if own is None else ["--formulation", own])]
    assert run(["model", str(file), *asked, "--relax"]) == 0
    assert "printed form, relaxed" in capsys.readouterr().out
    assert run(["model", str(file), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == str(target)
    assert target.stat().st_size > 0
    assert run(["model", str(file), "--form", "nonsense"]) == 2
    assert "form: nonsense: must be" in capsys.readouterr().err


@pytest.mark.parametrize("family", ["oasis", "astraea", "gang"])
def test_a_changed_model_is_relaxed_as_it_is_and_has_no_dual(family):
    model = hs.model(hs.generate(family, "small", 1))
    free = model.relax().solve().objective
    worth = next(iter(model.pyomo.component_data_objects(pyo.Objective, active=True)))
    sign = 1 if worth.sense == pyo.maximize else -1
    model.pyomo.mine = pyo.Constraint(expr=sign * worth.expr <= sign * free - 0.5 * abs(free))
    lp = model.relax().solve()
    assert lp.objective == pytest.approx(free - sign * 0.5 * abs(free))
    assert "mine" in lp.duals
    assert lp.duals.get("none of that name") is None
    assert set(lp.duals.to_frame()["component"]) == set(lp.duals)
    with pytest.raises(hs.InputError, match="mine has 1 rows"):
        model.dual()
    with pytest.raises(hs.InputError, match="mine has 1 rows"):
        lp.certificate()
    assert model.solve(time_limit=5).changed is not None


def test_an_infeasible_model_says_which_rows_conflict(instance):
    """Two rows that no point keeps; then a row that only the family's own rows contradict."""
    model = hs.model(instance)
    one = next(v for v in model.pyomo.component_data_objects(pyo.Var) if not v.fixed)
    model.pyomo.more = pyo.Constraint(expr=one >= 0.75, doc="(mine) more")
    model.pyomo.less = pyo.Constraint(expr=one <= 0.25, doc="(mine) less")
    result = model.solve()
    assert result.status == "infeasible"
    assert result.details["conflict"] == ["more: (mine) more", "less: (mine) less"]
    assert result.details["irreducible"]
    assert "in conflict: less: (mine) less" in str(result)


def test_a_conflict_is_irreducible_with_integrality_too():
    """Of the relaxation all three conflict; of the program any two with the middle one do."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(domain=pyo.Binary), pyo.Var(domain=pyo.Binary)
    m.cost = pyo.Objective(expr=m.x)
    m.some = pyo.Constraint(expr=m.x >= 0.4)
    m.both = pyo.Constraint(expr=m.x + m.y <= 0.7)
    m.other = pyo.Constraint(expr=m.y >= 0.5)
    conflict = find_conflict(m)
    assert conflict.irreducible
    assert len(conflict.rows) == 2


def test_a_conflict_of_integrality_alone_is_named_in_time():
    """A better objective than the optimum, which the relaxation has."""
    instance = hs.suite("gang", "small")[0]
    model = hs.model(instance)
    less = hs.solve(instance, time_limit=5).objective - 0.5
    assert model.relax().solve().objective < less
    model.pyomo.better = pyo.Constraint(expr=model.pyomo.eq_0.expr <= less, doc="(mine) better")
    conflict = find_conflict(model.pyomo)
    assert conflict.irreducible
    for row in model.pyomo.component_data_objects(pyo.Constraint):
        row.deactivate()
    for row in conflict.rows:
        row.activate()
    assert solve_program(model.pyomo).status == "infeasible"
    for row in conflict.rows:
        row.deactivate()
        assert solve_program(model.pyomo).status != "infeasible"
        row.activate()
    short = find_conflict(model.pyomo, time_limit=1e-3)
    assert not short.irreducible
    assert set(map(id, conflict.rows)) == set(map(id, short.rows))


def test_a_conflict_with_the_papers_rows_names_them_by_equation_and_index():
    instance = hs.generate("gang", jobs=2, servers=1, seed=1, placement="consolidated")
    model = hs.model(instance, formulation="preemptive", form="printed")
    for t in (block := model.pyomo.job[0]).y:
        block.y[t].setub(0)
    conflict = model.solve().details["conflict"]
    name = instance.jobs[0].name
    assert any(row.startswith(f"eq_1 at job {name}, slot ") for row in conflict)
    assert f"eq_1_last at job {name}: (1) it is complete in the end" in conflict
    assert len(conflict) == 2


def test_a_program_of_several_futures_is_of_no_single_instance():
    several = hs.model(hs.tree("gang", at=[2], branches=2))
    lp, best = several.relax().solve(), several.solve(time_limit=60)
    sign = 1 if several.instance.sense == "max" else -1
    assert sign * lp.objective >= sign * best.objective - 1e-6
    assert best.solution is None
    for part in (several.dual, lambda: several.subproblem(0), lambda: several.slot(1)):
        with pytest.raises(InputError, match="must be of one instance"):
            part()


def optimum_of_its_primal(dual):
    """The optimum of the program that a dual's title names, built without the dual."""
    instance = dual.instance
    if instance.family == "oasis":  # (14), the choice of schedules: by column generation
        return root_bound(build_oracle(instance)).bound
    if instance.family == "edgecloud":
        return solve_program(build_ilp_4(instance, relax=True).model).objective
    if instance.family == "mlbroker":
        return hs.model(instance, formulation="paper").relax().solve().objective
    capacity = dual.family.cluster.server_capacity  # a share of each schedule that is listed
    room = np.repeat(capacity[:, :, None], dual.slots, axis=2).ravel()
    jobs = np.eye(len(instance.jobs))
    use = np.array([np.append(jobs[own.job], own.use.ravel()) for own in dual.listed])
    worth = [-own.worth for own in dual.listed]
    return -linprog(worth, A_ub=use.T, b_ub=np.append(np.ones(len(jobs)), room)).fun


@pytest.mark.parametrize(
    ("family", "named", "build"),
    [("oasis", "(14)", {}), ("batchsched", "(", {"last": 3}), ("astraea", "(5)", {}),
     ("edgecloud", "LP (4)", {}), ("mlbroker", "P_f (9)", {})],
)  # fmt: skip
def test_a_dual_names_the_program_whose_dual_it_is(family, named, build):
    instance = hs.generate(family, seed=1, **SMALL.get(family, {"preset": "small", "jobs": 2}))
    formulation = "paper" if family == "mlbroker" else None
    dual = hs.model(instance, formulation=formulation).dual(**build)
    assert f"dual of {named}" in re.sub(r"dual \(\d+\)", "dual", dual.program.title)
    found = dual.solve()
    assert found.objective == pytest.approx(optimum_of_its_primal(dual.program), abs=1e-4)


@pytest.mark.parametrize("family", hs.families())
def test_every_equation_is_shown_as_mathematics(family):
    instance = hs.generate(family, "small", 1)
    held = [hs.model(instance), hs.model(instance).relax(), printed(instance)]
    if family != "gang":
        held.append(hs.model(instance).dual(**({"last": 3} if family == "batchsched" else {})))
    for program in held:
        text = program.to_latex()
        assert len(text) < 12_000
        assert text.count("{") == text.count("}")
        symbols = text.count("symbols, and their names here")
        assert text.count("\\[") - symbols == text.count("\\]") - symbols == text.count("\\tag")
        assert symbols == (not isinstance(program, DualModel))
        for part in program.to_dict()["components"]:
            if part["kind"] != "variable":
                number = part["doc"].partition("(")[2].partition(")")[0]
                assert f"\\tag{{{number}}}" in text


def test_a_solver_without_duals_is_named():
    pytest.importorskip("pyscipopt", reason="hindsched[solvers] is not installed")
    program = hs.model(hs.generate("oasis", seed=2, jobs=3), relax=True)
    found = program.solve(solver="scip")
    assert found.bound == pytest.approx(program.solve().bound)
    with pytest.raises(SolveFailed, match=r"scip [\d.]+ gives no duals"):
        found.duals
