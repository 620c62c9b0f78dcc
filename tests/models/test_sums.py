"""Sums over many rows by arrays, in Pyomo and on the recorder, against the rows written out."""

from __future__ import annotations

import numpy as np
import pyomo.environ
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.models import algebra as pyo
from hindsched.models.recorder import recording
from hindsched.models.sums import (
    Terms,
    Uses,
    expressions,
    gather,
    restrict,
    row_prices,
    sum_rows,
    weighted,
)
from hindsched.solutions.capacity_timeline import SLOTS_OF_A_PAGE, Room
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import compile_program

FACTORS = st.floats(-3, 3).map(lambda x: round(x, 2)).filter(bool)


def build(rows, kind, fixed):
    """A program with columns x[0..4] and y[0..2], of which some are fixed."""
    model = pyo.ConcreteModel(name="sums")
    model.x = pyo.Var(range(5), bounds=(0, 10))
    model.y = pyo.Var(range(3), bounds=(0, 10))
    for position in fixed:
        model.x[position].fix(position + 0.5)
    columns, terms = {"x": model.x, "y": model.y}, []
    for name, variable in columns.items():
        own = [(r, e, a) for r, row in enumerate(rows) for n, e, a in row if n == name]
        row, element, factor = (np.array(part) for part in zip(*own, strict=True)) if own else (
            np.zeros(0, int), np.zeros(0, int), np.zeros(0))  # fmt: skip
        terms.append(Terms(variable, row, element, factor))
    keys = [(r, 7) for r in range(len(rows))]
    model.eq = sum_rows(keys, terms, kind, np.arange(len(rows)) + 1.0, "(1) rows")
    model.worth = pyo.Objective(
        expr=weighted(model.x, np.arange(5.0)) + weighted(model.y), sense=pyo.maximize
    )
    return model


@given(
    st.lists(
        st.lists(
            st.one_of(
                st.tuples(st.just("x"), st.integers(0, 4), FACTORS),
                st.tuples(st.just("y"), st.integers(0, 2), FACTORS),
            ),
            min_size=1, max_size=5,
        ),
        min_size=1, max_size=4,
    ),
    st.sampled_from(["<=", ">=", "=="]),
    st.sets(st.integers(0, 4), max_size=2),
)  # fmt: skip
def test_both_say_what_the_rows_say(rows, kind, fixed):
    with recording():
        recorded = compile_program(build(rows, kind, fixed))
    found = {}
    for i, row in enumerate(recorded.rows):
        assert row.name == f"eq[{(i, 7)}]"
        line = recorded.matrix.tocsr()[[i]].tocoo()
        found[i] = {
            recorded.columns[j].name: a
            for j, a in zip(line.coords[1], line.data, strict=True)
            if abs(a) > 1e-12
        }
    declared = build(rows, kind, fixed)
    for i, row in enumerate(rows):
        wanted, paid = {}, 0.0
        for name, element, factor in row:
            if name == "x" and element in fixed:
                paid += factor * (element + 0.5)
            else:
                key = f"{name}[{element}]"
                wanted[key] = wanted.get(key, 0.0) + factor
        wanted = {key: value for key, value in wanted.items() if abs(value) > 1e-12}
        assert found[i] == pytest.approx(wanted)
        of_pyomo = declared.eq[i, 7]
        for side, end, none in (("upper", "<", np.inf), ("lower", ">", -np.inf)):
            if kind == "==" or kind[0] == end:
                assert getattr(recorded, f"row_{side}")[i] == pytest.approx(i + 1 - paid)
                assert pyomo.environ.value(getattr(of_pyomo, side)) == i + 1
            else:
                assert getattr(recorded, f"row_{side}")[i] == none
                assert getattr(of_pyomo, side) is None
        assert of_pyomo.equality == (kind == "==")
        for column in [*declared.x.values(), *declared.y.values()]:
            if not column.fixed:
                column.set_value(1.0)
        assert pyomo.environ.value(of_pyomo.body) == pytest.approx(sum(wanted.values()) + paid)


@pytest.mark.parametrize("record", [False, True])
def test_some_elements_are_weighted(record):
    def declare():
        model = pyo.ConcreteModel(name="some")
        model.x = pyo.Var(range(4), initialize=1.0)
        return weighted(model.x, np.array([2.0, 5.0, 10.0]), np.array([3, 0, 3]))

    if record:
        with recording():
            found = declare()
        assert [column.index for column in found.written_out().columns] == [3, 0, 3]
    else:
        found = declare()
    assert pyo.value(found) == 17.0


def test_capacities_are_sorted_and_used_by_all():
    with recording():
        model = pyo.ConcreteModel(name="uses")
        model.x = pyo.Var(range(2))
        model.y = pyo.Var(range(1))
        uses = [
            Uses(model.x, np.array([[1, 0, 4], [0, 2, 9]]), np.array([0, 1]), np.array([3.0, 5.0])),
            Uses(model.y, np.array([[1, 0, 4]]), np.array([0]), np.array([7.0])),
        ]
        keys, terms = gather(uses)
        assert keys.tolist() == [[0, 2, 9], [1, 0, 4]]
        sums = [dict(zip(e.columns, e.factors, strict=True)) for e in expressions(2, terms)]
        assert sums == [{model.x[1]: 5.0}, {model.x[0]: 3.0, model.y[0]: 7.0}]
        (first,) = expressions(1, restrict(terms, np.array([False, True])))
        assert first.factors == [3.0, 7.0]
        empty, none = gather([])
        assert empty.shape == (0, 3)
        assert none == []


@pytest.mark.parametrize("record", [False, True])
def test_prices_of_capacities_by_their_keys(record):
    def declare():
        model = pyo.ConcreteModel(name="prices")
        model.x = pyo.Var([(0, 0, 1), (2, 1, 3)], bounds=(0, None))
        keys = np.array([[0, 0, 1], [2, 1, 3]])
        uses = [Uses(model.x, keys, np.arange(2), np.ones(2))]
        found, terms = gather(uses)
        model.eq = sum_rows(found, terms, "<=", np.array([4.0, 5.0]), "(4) capacities")
        model.none = sum_rows(found[:0], [], "<=", 0.0, "(5) no capacity")
        model.worth = pyo.Objective(
            expr=weighted(model.x, np.array([2.0, 0.5])), sense=pyo.maximize
        )
        return model

    if record:
        with recording():
            model = declare()
    else:
        model = declare()
    result = solve_program(model, want_duals=True)
    assert result.objective == pytest.approx(10.5)
    (h, r, t), prices = row_prices(model.eq, result.duals)
    assert (h.tolist(), r.tolist(), t.tolist()) == ([0, 2], [0, 1], [1, 3])
    assert prices == pytest.approx([2.0, 0.5])
    assert row_prices(model.eq, result.duals, sign=-1)[1].tolist() == [0.0, 0.0]
    (h, _, _), prices = row_prices(model.none, result.duals)
    assert (h.size, prices.size) == (0, 0)


def test_room_of_many_slots_at_once():
    room = Room(np.array([[4.0, 2.0], [8.0, 1.0]]))
    room.book(SLOTS_OF_A_PAGE, SLOTS_OF_A_PAGE + 1, 3.0, 0, 0)
    slots = np.array([1, SLOTS_OF_A_PAGE, SLOTS_OF_A_PAGE + 1, 9 * SLOTS_OF_A_PAGE])
    servers, resources = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    found = room.of(slots, servers, resources)
    assert found.tolist() == [4.0, 1.0, 1.0, 1.0]
    assert found.tolist() == [
        room.at(t)[h, r] for t, h, r in zip(slots, servers, resources, strict=True)
    ]
