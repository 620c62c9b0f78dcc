"""Variables of the recorder: arrays until a column is asked for, and the same numbers then."""

from __future__ import annotations

import numpy as np
import pyomo.environ
import pytest

from hindsched.models import algebra as pyo
from hindsched.models.recorder import recording
from hindsched.models.sums import Terms, consecutive, sum_rows, variable, weighted
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import compile_program

KEYS = np.array([[0, 1], [0, 2], [3, 1]])


def build(change=None):
    """``max x + 2 z`` over x[0,1], x[0,2], x[3,1], an idle w, a bounded z, and x in one row."""
    model = pyo.ConcreteModel(name="lazy")
    model.x = variable(KEYS, pyo.NonNegativeIntegers, "(1) counts", np.array([4.0, 5.0, 6.0]))
    model.w = pyo.Var(range(2), bounds=lambda _, i: (i + 1, None))
    model.z = pyo.Var(domain=pyo.UnitInterval, bounds=(None, 7))
    row, ones = np.zeros(3, dtype=np.int64), np.ones(3)
    model.eq = sum_rows([0], [Terms(model.x, row, np.arange(3), ones)], "<=", 8.0, "(2) at most")
    model.worth = pyo.Objective(expr=weighted(model.x) + 2 * model.z, sense=pyo.maximize)
    if change is not None:
        change(model)
    return model


def both(change=None):
    with recording():
        recorded = build(change)
    return recorded, build(change)


def values_of(model):
    parts = [*model.x.items(), *((("w", i), c) for i, c in model.w.items()), ("z", model.z)]
    return {key: column.value for key, column in parts}


@pytest.mark.parametrize(
    "change",
    [
        None,
        lambda m: m.x[0, 1].fix(3),
        lambda m: m.x[3, 1].setub(1),
        lambda m: (m.x[0, 2].setlb(2), m.x[0, 2].setub(2)),
        lambda m: m.w[0].fix(9),
        lambda m: m.z.fix(0.5),
    ],
)
def test_columns_made_late_are_those_of_pyomo(change):
    recorded, declared = both(change)
    mine, theirs = compile_program(recorded), compile_program(declared)
    assert [c.name for c in mine.idle] == [c.name for c in theirs.idle]

    def sides(program):
        parts = zip(program.columns, program.lower, program.upper, program.cost, strict=True)
        return {(c.local_name, str(c.index() if callable(c.index) else c.index)): (*rest,)
                for c, *rest in parts}  # fmt: skip

    assert {key[1]: value for key, value in sides(mine).items()} == {
        key[1]: value for key, value in sides(theirs).items()
    }
    found, wanted = solve_program(recorded), solve_program(declared)
    assert found.objective == pytest.approx(wanted.objective)
    assert sum(recorded.x[key].value for key in recorded.x) == pytest.approx(
        sum(pyomo.environ.value(c) for c in declared.x.values())
    )
    assert {k: v for k, v in values_of(recorded).items() if "w" in str(k)} == {
        k: v for k, v in values_of(declared).items() if "w" in str(k)
    }


def test_no_column_is_made_before_one_is_asked_for():
    with recording():
        model = build()
    result = solve_program(model)
    assert model.x._columns is None
    assert result.objective == 10
    whole = [column.value for column in model.x.values()]
    assert sum(whole) == 8
    assert all(type(value) is int for value in whole)
    assert [column.name for column in model.x[0, :]] == ["x[(0, 1)]", "x[(0, 2)]"]
    assert [column.position for column in model.x.values()] == [0, 1, 2]


def test_a_solve_without_a_point_leaves_no_values():
    def impossible(model):
        model.never = sum_rows(
            [0], [Terms(model.x, np.array([0]), np.array([0]), np.ones(1))], ">=", 5.0, "(3) never"
        )

    with recording():
        model = build(impossible)
    model.x[0, 2].set_value(2)
    assert solve_program(model).has_point is False
    assert {column.value for column in model.columns} == {None}


def test_the_refusal_of_a_point_names_row_and_column():
    with recording():
        program = compile_program(build())
    assert program.residual(np.array([4.0, 4.0, 0.0, 1.0])) == (0.0, "")
    worst, where = program.residual(np.array([4.0, 5.0, 0.0, 1.0]))
    assert worst > 1
    assert where == "eq[0]"
    worst, where = program.residual(np.array([4.0, 4.0, 0.0, 1.5]))
    assert worst > 1
    assert where == "z"


def test_elements_in_a_row_are_added_up():
    with recording():
        model = build()
        found = consecutive(model.x, [(0, 2), (3, 1)], 1)
    for value, column in enumerate(model.x.values(), 1):
        column.set_value(value)
    assert found.evaluate() == 5
    declared = build()
    for value, column in enumerate(declared.x.values(), 1):
        column.set_value(value)
    assert pyomo.environ.value(consecutive(declared.x, [(0, 2), (3, 1)], 1)) == 5


def test_a_relation_of_weighted_sums_is_the_same_row():
    def row(model):
        model.more = pyo.Constraint(expr=3 * weighted(model.x) - 1 >= model.z - weighted(model.x))

    recorded, declared = both(row)
    mine, theirs = compile_program(recorded), compile_program(declared)
    rows = [dict(zip([r.local_name if hasattr(r, "local_name") else r.name for r in p.rows],
                     zip(np.abs(p.matrix.toarray()).sum(axis=1), p.row_lower, p.row_upper,
                         strict=True), strict=True)) for p in (mine, theirs)]  # fmt: skip
    assert rows[0]["more"][0] == rows[1]["more"][0] == 13
    assert set(np.abs(rows[0]["more"][1:])) == set(np.abs(rows[1]["more"][1:])) == {1.0, np.inf}
