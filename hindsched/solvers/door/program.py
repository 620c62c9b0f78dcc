"""The one door for Pyomo models: solve, check the point, and say only what is known.

A solver's status decides nothing by itself. A point is loaded into the model only if the solver's
own primal status says feasible *and* the point passes the residual check of `LinearProgram`; the
objective is the model's own expression at the loaded values; and after a solve without a point the
free variables hold no values at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.models.base import OfflineProgram
from hindsched.solutions.base import Solution
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.others import OTHERS, solve_by_other
from hindsched.solvers.door.result import (
    Answer,
    ProgramResult,
    Progress,
    Status,
    StoppedBy,
    shadow_prices,
)
from hindsched.solvers.door.standard_form import (
    LinearProgram,
    TriviallyInfeasibleError,
    compile_program,
)
from hindsched.solvers.door.work import now

OBJECTIVE_TOLERANCE = 1e-6
"""Relative difference within which two computations of one objective agree.

It excuses a solver's word only, where 1 is the size of its own absolute tolerances; a bound that a
certificate proves may be passed by rounding alone.
"""
ABSOLUTE_GAP = 1e-8
"""Distance of bound and objective that counts as no gap at all, relative to an objective below 1.

So it is for an objective of 0 alone that it is absolute: there bounds are rounded away from 0.
"""


def solve_program(
    model: pyo.ConcreteModel, options: SolveOptions | None = None, *, start: bool = False,
    want_duals: bool = False, on_progress: Progress | None = None,
) -> ProgramResult:  # fmt: skip
    """Solve a linear or mixed-integer Pyomo model, compilation included in the options' time.

    Its free variables receive the point found, or no value at all. With `start` their present
    values are a start, perhaps of some variables only; a complete one that passes the check is
    never lost. `want_duals` asks for the duals of a linear program.
    """
    options = SolveOptions() if options is None else options
    started = now()
    try:
        program = compile_program(model)
    except TriviallyInfeasibleError as error:
        for variable in model.component_data_objects(pyo.Var, active=True):
            if not variable.fixed:
                variable.set_value(None, skip_validation=True)
        return ProgramResult(
            Status.INFEASIBLE, StoppedBy.INFEASIBLE, seconds=now() - started,
            backend="checked before the solver", details={"constraint": str(error)},
        )  # fmt: skip
    index, point = program.start_values() if start else (np.zeros(0, int), np.zeros(0))
    if not program.columns:
        answer = _answer_without_columns(program)
    else:

        def ask(asked: LinearProgram) -> Answer:
            within = options.without(now() - started)
            if options.solver in OTHERS and asked.rows:
                return solve_by_other(asked, within, index, point)
            highs = HighsProgram(asked, within)
            if asked.is_mixed_integer:
                highs.set_start(index, point)
            return highs.solve(within.time_limit, _in_model_sense(program, on_progress))

        answer = ask(program)
        if answer.status is Status.UNBOUNDED:  # or infeasible, or without an integer point
            probe = ask(replace(program, cost=np.zeros_like(program.cost), offset=0.0))
            if probe.status is Status.UNBOUNDED:  # which nothing is that costs nothing
                probe = replace(probe, status=Status.INFEASIBLE, stopped_by=StoppedBy.INFEASIBLE)
            is_unbounded = probe.point is not None
            answer = replace(answer if is_unbounded else probe, point=None, bound=None)
    answer = believe(program, answer)
    if start and len(index) == len(program.columns):
        answer = _keep_start(program, answer, index, point)
    return _conclude(program, answer, options, now() - started, want_duals)


def _in_model_sense(program: LinearProgram, on_progress: Progress | None) -> Progress | None:
    """The listener of a solver that minimises."""
    if on_progress is None:
        return None

    def report(bound: float | None, objective: float | None, seconds: float, text: str) -> None:
        sign = program.sign
        on_progress(_times(sign, bound), _times(sign, objective), seconds, text)

    return report


def _answer_without_columns(program: LinearProgram) -> Answer:
    """Answer a program without variables, which HiGHS calls empty whatever its rows say."""
    backend = "answered without a solver"
    if np.any(program.row_lower > 1e-9) or np.any(program.row_upper < -1e-9):
        return Answer(Status.INFEASIBLE, StoppedBy.INFEASIBLE, backend=backend)
    nothing, rows = np.zeros(0), np.zeros(len(program.rows))
    return Answer(
        Status.OPTIMAL, StoppedBy.GAP, nothing, program.offset, rows, nothing, backend=backend
    )


def believe(program: LinearProgram, answer: Answer) -> Answer:
    """Keep the answer's point only if it passes the residual check, integers rounded first."""
    if answer.point is None:
        if answer.status in (Status.OPTIMAL, Status.FEASIBLE):
            return _refused(answer, "a claim without a point")
        return answer
    point = program.rounded(answer.point)
    worst, where = program.residual(point)
    if worst > 1 and program.is_mixed_integer:
        polished = _polish(program, point)
        if polished is not None:
            point = polished
            worst, where = program.residual(point)
    if worst <= 1:
        return replace(answer, point=point)
    return _refused(answer, f"{where} is off by {worst:.3g} times the tolerance")


def _refused(answer: Answer, why: str) -> Answer:
    """Nothing of the answer is believed."""
    details = {**answer.details, "refused": why}
    return Answer(Status.FAILED, StoppedBy.ERROR, backend=answer.backend, details=details)


def _polish(program: LinearProgram, point: Floats) -> Floats | None:
    """Solve for the continuous columns with the integers fixed at their rounded values."""
    whole = np.rint(point)
    fixed = replace(
        program,
        lower=np.where(program.integer, whole, program.lower),
        upper=np.where(program.integer, whole, program.upper),
        integer=np.zeros_like(program.integer),
    )
    answer = HighsProgram(fixed, SolveOptions()).solve(None)
    return None if answer.point is None else fixed.rounded(answer.point)


def _keep_start(program: LinearProgram, answer: Answer, index: Any, values: Floats) -> Answer:
    """Return to the caller's complete start if the solver has nothing as good."""
    if answer.status is Status.UNBOUNDED:
        return answer
    full = np.empty(len(program.columns))
    full[index] = values
    full = program.rounded(full)
    if program.residual(full)[0] > 1:
        return answer
    if answer.point is not None and program.cost @ answer.point <= program.cost @ full + 1e-12:
        return answer
    details = {**answer.details, "point": "the start"}
    if answer.status is Status.INFEASIBLE:
        details["refused"] = "the solver calls infeasible what the start satisfies"
        answer = replace(answer, stopped_by=StoppedBy.ERROR)
    kept = (Status.OPTIMAL, Status.FEASIBLE)
    status = answer.status if answer.status in kept else Status.FEASIBLE
    return replace(answer, status=status, point=full, details=details)


def _conclude(
    program: LinearProgram, answer: Answer, options: SolveOptions, seconds: float, want_duals: bool
) -> ProgramResult:
    sign = program.sign
    common: dict[str, Any] = {"seconds": seconds, "backend": answer.backend}
    bound = _times(sign, answer.bound)
    if answer.point is None:
        program.clear()
        return ProgramResult(
            answer.status, answer.stopped_by, bound=bound, details=answer.details, **common
        )
    program.load(answer.point)
    status, stopped_by, details = answer.status, answer.stopped_by, dict(answer.details)
    by_arrays = sign * (float(program.cost @ answer.point) + program.offset)
    objective = by_arrays
    if program.objective is not None:
        objective = float(pyo.value(program.objective.expr))
    if not _agree(objective, by_arrays):
        program.clear()
        details["refused"] = f"the model's objective {objective} is not the program's {by_arrays}"
        return ProgramResult(Status.FAILED, StoppedBy.ERROR, details=details, **common)
    if not program.is_mixed_integer and status is Status.OPTIMAL:
        bound = objective
    if bound is not None and sign * (bound - objective) > 0:
        # The bound is on the wrong side of a checked point: rounding, or a false bound.
        if _agree(bound, objective):
            bound = objective
        else:
            details["refused_bound"] = bound
            bound, status, stopped_by = None, Status.FEASIBLE, StoppedBy.ERROR
    if program.is_mixed_integer and status in (Status.OPTIMAL, Status.FEASIBLE):
        closed = within_gap(objective, bound, options.gap)
        if status is Status.OPTIMAL and bound is not None:
            # A solver's arithmetic cannot prove a smaller gap than its tolerances allow.
            closed = closed or _agree(objective, bound)
        status = Status.OPTIMAL if closed else Status.FEASIBLE
    duals = reduced = None
    if want_duals and answer.row_duals is not None and answer.column_duals is not None:
        duals = shadow_prices(program.rows, (sign * answer.row_duals).tolist())
        reduced = shadow_prices(program.columns, (sign * answer.column_duals).tolist())
    return ProgramResult(
        status, stopped_by, True, objective, bound, duals, reduced, details=details, **common
    )


def within_gap(objective: float | None, bound: float | None, gap: float) -> bool:
    """Whether ``|bound - objective| <= gap |bound|``, or is next to nothing.

    >>> within_gap(3.5e-9, 3.1e-9, 1e-6), within_gap(0.0, 3.1e-9, 1e-6)
    (False, True)
    """
    if objective is None or bound is None:
        return False
    return abs(bound - objective) <= gap * abs(bound) + next_to_nothing(objective)


def next_to_nothing(objective: float) -> float:
    """Distance from an objective that counts as no gap at all, by `ABSOLUTE_GAP`."""
    return ABSOLUTE_GAP * (min(1.0, abs(objective)) or 1.0)


def _agree(first: float, second: float) -> bool:
    return abs(first - second) <= OBJECTIVE_TOLERANCE * max(1.0, abs(first), abs(second))


def _times(sign: int, value: float | None) -> float | None:
    return None if value is None else sign * value


def solution_at(
    program: OfflineProgram, result: ProgramResult
) -> tuple[Solution | None, dict[str, Any]]:
    """The schedule at a program's point, if there is one that holds, and the details of the solve.

    They say where a point could not be placed on servers (``unplaced``: its objective), and where
    its schedule breaks a constraint (``refused``).
    """
    details, solution = dict(result.details), None
    if result.has_point:
        solution = program.extract()
        if solution is None:
            details["unplaced"] = result.objective
        elif broken := solution.violations():
            details["refused"] = str(broken[0])
            solution = None
    return solution, details
