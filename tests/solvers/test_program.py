"""The door itself: checked points, rounding, starts, interrupts, hot re-solves."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from hindsched.errors import SolveFailed
from hindsched.solvers.door import program as door
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Answer, Status, StoppedBy
from hindsched.solvers.door.standard_form import compile_program
from hindsched.solvers.door.work import catch_interrupt
from tests import knapsack as knapsack_module
from tests.knapsack import knapsack


def small(domain=pyo.NonNegativeReals):
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], domain=domain)
    model.row = pyo.Constraint(expr=2 * model.x[0] + 3 * model.x[1] <= 12.5)
    model.cap = pyo.Constraint(expr=model.x[0] <= 4)
    model.objective = pyo.Objective(expr=3 * model.x[0] + 4 * model.x[1], sense=pyo.maximize)
    return model


# -- what is compiled


def test_the_standard_form_is_the_one_we_rely_on():
    """The compiler's interface is version-sensitive: signs, kinds of rows, ranges, offsets."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 7))
    model.y = pyo.Var(domain=pyo.Integers)
    model.unused = pyo.Var(domain=pyo.Binary)
    model.fixed = pyo.Var(initialize=2)
    model.fixed.fix()
    model.at_most = pyo.Constraint(expr=model.x + 2 * model.y + 1 <= 9)
    model.at_least = pyo.Constraint(expr=model.x - model.y >= -3)
    model.equal = pyo.Constraint(expr=model.x + 5 * model.fixed == 4 * model.y)
    model.range = pyo.Constraint(expr=(1, model.x + model.y, 6))
    model.objective = pyo.Objective(expr=3 * model.x - model.y + 10, sense=pyo.maximize)
    form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=pyo.minimize)
    assert [row.bound_type for row in form.rows] == [1, -1, 0, 1, -1]

    program = compile_program(model)
    assert [row.name for row in program.rows] == ["at_most", "at_least", "equal", "range", "range"]
    assert [column.name for column in program.columns] == ["x", "y"]
    assert [variable.name for variable in program.idle] == ["unused"]
    inf = math.inf
    assert program.matrix.toarray().tolist() == [[1, 2], [1, -1], [1, -4], [1, 1], [1, 1]]
    assert program.row_lower.tolist() == [-inf, -3, -10, -inf, 1]
    assert program.row_upper.tolist() == [8, inf, -10, 6, inf]
    assert (program.cost.tolist(), program.offset, program.sign) == ([-3, 1], -10, -1)
    assert (program.lower.tolist(), program.upper.tolist()) == ([0, -inf], [7, inf])
    assert program.integer.tolist() == [False, True]


def test_variables_that_occur_nowhere_get_a_value():
    model = small()
    model.idle = pyo.Var(bounds=(2, 5))
    model.whole = pyo.Var(domain=pyo.Integers, bounds=(-7.5, -2.5))
    solve_program(model)
    assert model.idle.value == 2
    assert model.whole.value == -3


@pytest.mark.parametrize(("excess", "status"), [(1e-8, Status.OPTIMAL), (1e-3, Status.INFEASIBLE)])
def test_a_row_of_fixed_variables_may_be_off_by_rounding(excess, status):
    model = small()
    model.done = pyo.Var(initialize=1 + excess)
    model.done.fix()
    model.history = pyo.Constraint(expr=model.done <= 1)
    result = solve_program(model)
    assert result.status is status
    assert model.history.active
    if status is Status.INFEASIBLE:
        assert result.details["constraint"] == "history"


def test_what_is_not_a_linear_program_fails():
    model = small()
    model.square = pyo.Constraint(expr=model.x[0] ** 2 <= 3)
    with pytest.raises(SolveFailed, match="no linear program"):
        solve_program(model)
    model = small()
    model.second = pyo.Objective(expr=model.x[0])
    with pytest.raises(SolveFailed, match="2 objectives"):
        solve_program(model)


# -- what is believed


def lie(monkeypatch, **changes):
    """Let HiGHS solve and then say something else."""
    solve = HighsProgram.solve

    def changed(self, *settings):
        answer = solve(self, *settings)
        parts = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
        return Answer(**{**parts, **changes})

    monkeypatch.setattr(HighsProgram, "solve", changed)


@pytest.mark.parametrize("point", [[5.0, 0.0], [-1.0, 0.0], [4.0, 2.0], [math.nan, 0.0]])
def test_a_point_that_breaks_a_row_or_a_bound_is_refused(monkeypatch, point):
    lie(monkeypatch, point=np.array(point))
    model = small()
    result = solve_program(model)
    assert (result.status, result.has_point, result.objective) == (Status.FAILED, False, None)
    assert "refused" in result.details
    assert model.x[0].value is None


def test_a_fractional_integer_is_refused(monkeypatch):
    model = small(pyo.NonNegativeIntegers)
    program = compile_program(model)
    assert program.residual(np.array([4.0, 1.0]))[0] <= 1
    assert program.residual(np.array([4.0, 1.01]))[0] > 1
    lie(monkeypatch, point=np.array([0.5, 0.5]))
    monkeypatch.setattr(door, "_polish", lambda program, point: None)
    assert solve_program(model).status is Status.FAILED


def test_a_claim_without_a_point_has_failed(monkeypatch):
    lie(monkeypatch, point=None)
    assert solve_program(small()).status is Status.FAILED


def test_a_bound_on_the_wrong_side_is_refused(monkeypatch):
    lie(monkeypatch, bound=0.0)
    result = solve_program(small(pyo.NonNegativeIntegers))
    assert result.has_point
    assert result.bound is None
    assert result.status is Status.FEASIBLE


def test_a_gap_below_the_solver_s_tolerances_is_closed_by_its_word(monkeypatch):
    """HiGHS ends with gaps of 1e-8 that it cannot close; a claim of less than optimal may not."""
    options = SolveOptions(gap=1e-12)
    lie(monkeypatch, bound=-17.0 * (1 + 1e-7))
    assert solve_program(small(pyo.NonNegativeIntegers), options).status is Status.OPTIMAL
    monkeypatch.undo()
    near_zero = small(pyo.NonNegativeIntegers)
    near_zero.objective.set_value(near_zero.objective.expr - 17)
    lie(monkeypatch, bound=-1e-7)
    assert solve_program(near_zero, options).status is Status.OPTIMAL
    monkeypatch.undo()
    lie(monkeypatch, bound=-17.0 * (1 + 1e-4))
    assert solve_program(small(pyo.NonNegativeIntegers), options).status is Status.FEASIBLE
    monkeypatch.undo()
    lie(monkeypatch, bound=-17.0 * (1 + 1e-7), status=Status.FEASIBLE)
    assert solve_program(small(pyo.NonNegativeIntegers), options).status is Status.FEASIBLE


def test_integers_are_rounded_and_the_rest_solved_again(monkeypatch):
    """A big M turns 1e-6 of a binary into a broken row: the continuous part must be repaired."""
    model = pyo.ConcreteModel()
    model.open = pyo.Var(domain=pyo.Binary)
    model.flow = pyo.Var(bounds=(0, 50))
    model.link = pyo.Constraint(expr=model.flow <= 1e6 * model.open)
    model.objective = pyo.Objective(expr=model.flow - 20 * model.open, sense=pyo.maximize)
    lie(monkeypatch, point=np.array([50.0, 4e-6]), status=Status.FEASIBLE, bound=-50.0)
    program = compile_program(model)
    order = {column.name: i for i, column in enumerate(program.columns)}
    point = np.zeros(2)
    point[order["flow"]], point[order["open"]] = 4.0, 4e-6
    monkeypatch.undo()
    assert program.residual(point)[0] <= 1, "feasible as the solver means it"
    answer = Answer(Status.OPTIMAL, StoppedBy.GAP, point=point, bound=-50.0)
    believed = door.believe(program, answer)
    assert believed.point is not None
    assert believed.point[order["open"]] == 0
    assert believed.point[order["flow"]] == pytest.approx(0)


@pytest.mark.parametrize(("total", "status"), [(1, Status.INFEASIBLE), (2, Status.UNBOUNDED)])
def test_an_unbounded_relaxation_does_not_make_an_integer_point(total, status):
    model = pyo.ConcreteModel()
    model.z = pyo.Var([0, 1, 2], domain=pyo.Binary)
    model.x = pyo.Var()
    model.even = pyo.Constraint(expr=2 * model.z[0] + 2 * model.z[1] + 2 * model.z[2] == total)
    model.free = pyo.Constraint(expr=model.x >= model.z[0])
    model.objective = pyo.Objective(expr=model.x, sense=pyo.maximize)
    for presolve in ("on", "off"):
        options = SolveOptions(solver_options={"presolve": presolve}, time_limit=30)
        assert solve_program(model, options).status is status


# -- starts


def test_a_feasible_start_contradicts_infeasible(monkeypatch):
    lie(monkeypatch, status=Status.INFEASIBLE, stopped_by=StoppedBy.INFEASIBLE, point=None)
    model = small(pyo.NonNegativeIntegers)
    model.x[0].value, model.x[1].value = 1, 1
    result = solve_program(model, start=True)
    assert (result.status, result.stopped_by) == (Status.FEASIBLE, StoppedBy.ERROR)
    assert result.objective == 7
    assert "infeasible" in result.details["refused"]


# -- options, progress, threads


def test_progress_is_told_in_the_models_own_sense():
    told = []
    solve_program(
        knapsack(), SolveOptions(time_limit=2), on_progress=lambda *news: told.append(news)
    )
    assert told
    bound, objective, seconds, message = told[-1]
    assert bound > objective > 0
    assert seconds > 0
    assert "nodes" in message


def test_a_listener_that_fails_stops_the_solve():
    def fail(*news):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve_program(knapsack(), SolveOptions(time_limit=20), on_progress=fail)


def test_it_works_outside_the_main_thread():
    found = []

    def work():
        found.append(solve_program(small()))
        found.append(solve_program(knapsack(), SolveOptions(time_limit=0.5)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert [result.status for result in found] == [Status.OPTIMAL, Status.FEASIBLE]


# -- interrupts


def test_an_interrupt_inside_nested_blocks_is_seen_by_all():
    before = signal.getsignal(signal.SIGINT)
    with catch_interrupt() as outer:
        with catch_interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner.is_set()
        assert outer.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


SCRIPT = Path(knapsack_module.__file__).read_text(encoding="utf-8") + textwrap.dedent("""
    import json, sys, threading, time
    from hindsched.solvers.door.options import SolveOptions
    from hindsched.solvers.door.program import solve_program

    model = knapsack(100, 60)
    told = []

    def listen(bound, objective, seconds, message):
        if objective is not None and not told:
            told.append(objective)
            print("incumbent", flush=True)

    result = solve_program(model, SolveOptions(time_limit=120), on_progress=listen)
    print(json.dumps({
        "status": result.status, "stopped_by": result.stopped_by, "objective": result.objective,
        "bound": result.bound, "values": sum(model.x[i].value for i in model.x),
    }))
    """)


def test_ctrl_c_stops_highs_at_once_and_keeps_incumbent_and_bound():
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "incumbent\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert errors == ""
    result = json.loads(out)
    assert (result["status"], result["stopped_by"]) == ("feasible", "interrupted")
    assert result["bound"] > result["objective"] > 0
    assert result["values"] > 0


def test_a_release_of_highs_that_cuts_off_optima_is_refused(monkeypatch):
    monkeypatch.setattr(highspy, "HIGHS_VERSION_MAJOR", 1)
    monkeypatch.setattr(highspy, "HIGHS_VERSION_MINOR", 16)
    with pytest.raises(SolveFailed, match="install another release"):
        solve_program(knapsack())
