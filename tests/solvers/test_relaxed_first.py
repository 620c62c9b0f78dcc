"""Programs with a start: what the relaxation answers, and leaves, against the program itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hindsched as hs
from hindsched.online.engines import reoptimise
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import Solver, solve_program
from hindsched.solvers.door.relaxed_first import RelaxedFirst, _narrowed
from hindsched.solvers.door.rolling import RollingProgram
from hindsched.solvers.door.standard_form import compile_program
from hindsched.solvers.door.status import Status

GAP = 1e-9


@st.composite
def knapsacks(draw: Any) -> tuple[pyo.ConcreteModel, list[int]]:
    """A few integers (and a real) in a few knapsacks, and a greedy start in a drawn order."""
    number, rows = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    ints = st.integers(1, 9)
    worth = [draw(st.integers(0, 12)) for _ in range(number)]
    use = [[draw(ints) for _ in range(number)] for _ in range(rows)]
    room = [draw(st.integers(1, 25)) for _ in range(rows)]
    most = [draw(st.integers(1, 3)) for _ in range(number)]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(number), domain=pyo.Integers, bounds=lambda _, j: (0, most[j]))
    model.y = pyo.Var(bounds=(0, 2))

    @model.Constraint(range(rows))
    def knapsack(m: Any, r: int) -> Any:
        return sum(use[r][j] * m.x[j] for j in range(number)) + int(r == 0) * m.y <= room[r]

    model.worth = pyo.Objective(
        expr=sum(worth[j] * model.x[j] for j in range(number)) + 0.5 * model.y, sense=pyo.maximize
    )
    start = [0] * number
    for j in draw(st.permutations(range(number)))[: draw(st.integers(0, number))]:
        left = [room[r] - sum(map(int.__mul__, use[r], start)) for r in range(rows)]
        start[j] = min(most[j], *(left[r] // use[r][j] for r in range(rows)))
    return model, start


def set_start(model: pyo.ConcreteModel, start: list[int]) -> None:
    for j, value in enumerate(start):
        model.x[j].value = value
    model.y.value = 0


def test_a_started_program_has_the_optimum_of_the_program() -> None:
    answered: Counter[str] = Counter()

    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(knapsacks())
    def compare(drawn: Any) -> None:
        model, start = drawn
        best = solve_program(model, SolveOptions(gap=GAP))
        set_start(model, start)
        found = Solver(SolveOptions(gap=GAP)).solve(model, start=True)
        assert found.status == best.status == Status.OPTIMAL
        assert found.objective == pytest.approx(best.objective, abs=1e-6)
        assert found.bound == pytest.approx(best.objective, abs=1e-5)
        answered[str(found.details.get("point", "the search's"))] += 1

    compare()
    assert min(answered[kind] for kind in ("the start", "the relaxation's", "the search's")) >= 10


def test_narrower_bounds_keep_every_point_that_is_no_worse_than_the_start() -> None:
    narrowed = []

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(knapsacks())
    def check(drawn: Any) -> None:
        model, start = drawn
        set_start(model, start)
        program = compile_program(model)
        first = RelaxedFirst(HighsProgram(program, SolveOptions(gap=GAP)))
        first.set_start(*program.start_values())
        known = first._whole_start()
        assert known is not None
        before = program.lower.copy(), program.upper.copy()
        if first._by_relaxation(None) is not None:
            return
        narrowed.append(not all(map(np.array_equal, before, (program.lower, program.upper))))
        ranges = [
            np.arange(low, high + 1) if whole else np.zeros(1)
            for low, high, whole in zip(*before, program.integer, strict=True)
        ]
        points = np.array(np.meshgrid(*ranges)).reshape(len(ranges), -1).T
        fits = (program.matrix @ points.T <= program.row_upper[:, None]).all(axis=0)
        kept = points[fits & (points @ program.cost <= program.cost @ known)]
        assert len(kept)
        assert (kept >= program.lower - 1e-9).all()
        assert (kept <= program.upper + 1e-9).all()

    check()
    assert sum(narrowed) >= 10


def test_rounding_and_infinite_bounds_narrow_nothing() -> None:
    bounds = [(0, 9), (None, 9), (0, None)]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Integers, bounds=lambda _, j: bounds[j])
    model.row = pyo.Constraint(expr=sum(model.x.values()) <= 20)
    model.worth = pyo.Objective(expr=sum(model.x.values()))
    program = compile_program(model)
    lower, upper = _narrowed(program, np.array([1e-9, 5.0, -5.0]), 1.0, 1e-6)
    np.testing.assert_array_equal(lower, program.lower)
    np.testing.assert_array_equal(upper, program.upper)
    lower, upper = _narrowed(program, np.array([0.4, -5.0, 5.0]), 1.0, 1e-6)
    assert (lower.tolist(), upper.tolist()) == ([0, 9, 0], [2, 9, 0])


@pytest.mark.parametrize("currency", [2.0**-40, 1.0, 2.0**40])
def test_a_start_is_as_good_in_any_currency(currency: float) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary, initialize={0: 0, 1: 1})
    model.row = pyo.Constraint(expr=2 * model.x[0] + 2 * model.x[1] <= 3)
    worth = currency * (3 * model.x[0] + 2 * model.x[1])
    model.worth = pyo.Objective(expr=worth, sense=pyo.maximize)
    found = Solver(SolveOptions()).solve(model, start=True)
    assert (found.status, found.objective) == (Status.OPTIMAL, 3 * currency)


def test_bounds_of_integers_need_not_be_whole() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(0.5, 4.5))
    model.row = pyo.Constraint(expr=sum(model.x.values()) <= 20)
    model.worth = pyo.Objective(expr=sum(model.x.values()))
    lower, upper = _narrowed(compile_program(model), np.array([1.0, -1.0]), 0.7, 1e-6)
    assert (lower.tolist(), upper.tolist()) == ([0.5, 4.0], [1.0, 4.5])


def test_a_start_that_is_none_is_left_to_the_solver() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary)
    model.row = pyo.Constraint(expr=model.x[0] + model.x[1] <= 1)
    model.worth = pyo.Objective(expr=2 * model.x[0] + model.x[1], sense=pyo.maximize)
    for start in ({0: 1, 1: 1}, {0: 1}):
        for j in range(2):
            model.x[j].value = start.get(j)
        found = Solver(SolveOptions()).solve(model, start=True)
        assert (found.objective, found.details.get("point")) == (2.0, None)


@pytest.mark.parametrize("family", ["astraea", "batchsched"])
def test_every_solve_of_reoptimise_has_the_objective_of_the_program_alone(family, monkeypatch):
    answers = []

    class Compared(RollingProgram):
        def solve(self, start=None):
            alone = solve_program(self.build().model, SolveOptions(gap=1e-7))
            step = super().solve(start)
            assert step.result.status == alone.status == Status.OPTIMAL
            assert step.result.objective == pytest.approx(alone.objective, rel=1e-4)
            answers.append(step.result.details.get("point"))
            return step

    monkeypatch.setattr(reoptimise, "RollingProgram", Compared)
    for seed in range(3):
        hs.simulate(hs.generate(family, seed=seed, jobs=5), "reoptimise")
    assert "the start" in answers
