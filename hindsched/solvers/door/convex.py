"""Convex programs in CVXPY: a stated chain of solvers, every step logged, no point on trust.

Interior-point solvers stall on some programs whose optimum is well defined. `solve_convex` goes
through a chain of solver settings; each step it takes stands in the result and in the log, and the
point of a step counts only if the solver says that it solved *and* the constraints hold at it.
Linear and mixed-integer programs go to HiGHS, where CVXPY returns a false point at a time limit
without an incumbent: HiGHS's own primal status decides there.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.json_types import Keywords
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import ProgramResult, ShadowPrices, Status, StoppedBy

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConvexStep:
    """One step of the escalation.

    Parameters
    ----------
    name : str
        How reports call it.
    solver : str
        CVXPY's name of the solver.
    settings : dict
        Settings by the solver's own names.
    tolerance : float
        Residual up to which its point is believed, relative to the larger of 1 and the sides.
    """

    name: str
    solver: str
    settings: Keywords = field(default_factory=dict)
    tolerance: float = 1e-5


DEFAULT_CHAIN = (
    ConvexStep("clarabel", cp.CLARABEL, {"max_step_fraction": 0.9}),
    ConvexStep(
        "clarabel short step",
        cp.CLARABEL,
        {"min_switch_step_length": 1e-3, "min_terminate_step_length": 1e-8},
    ),
    ConvexStep(
        "scs", cp.SCS, {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 100_000}, tolerance=1e-4
    ),
)
"""Escalation of a convex program."""
LINEAR_CHAIN = (ConvexStep("highs", cp.HIGHS, {}, tolerance=1e-6),)
"""Chain of a linear or mixed-integer program."""

_TIME_LIMIT_NAMES = {cp.CLARABEL: "time_limit", cp.SCS: "time_limit_secs", cp.HIGHS: "time_limit"}
_CLAIMS = {
    cp.OPTIMAL: Status.OPTIMAL,
    cp.INFEASIBLE: Status.INFEASIBLE,
    cp.UNBOUNDED: Status.UNBOUNDED,
}
_UNDECIDED = "infeasible_or_unbounded"


@dataclass(frozen=True)
class StepReport:
    """What one step of the chain did: its name, the solver's claim, the residual, its seconds."""

    name: str
    claim: str
    residual: float | None
    seconds: float
    refused: str | None = None


def solve_convex(
    problem: cp.Problem,
    *,
    chain: Sequence[ConvexStep] | None = None,
    options: SolveOptions | None = None,
    ignore_dpp: bool = False,
) -> ProgramResult:
    """Solve a CVXPY problem through a chain of solvers.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem; its variables receive the point, or no value at all.
    chain : sequence of ConvexStep, optional
        `LINEAR_CHAIN` for linear and mixed-integer problems and `DEFAULT_CHAIN` for others.
    options : SolveOptions, optional
        Its time limit (for the whole chain), and its gap for mixed-integer problems.
    ignore_dpp : bool
        As in CVXPY: canonicalise with the Parameters' values, cheaper for a few solves.

    Returns
    -------
    ProgramResult
        Never a point that was not checked.
    """
    options = SolveOptions() if options is None else options
    started = time.perf_counter()
    if chain is None:
        linear = problem.is_mixed_integer() or problem.is_lp()
        chain = LINEAR_CHAIN if linear else DEFAULT_CHAIN
    if not problem.variables():
        return _without_variables(problem, started)
    steps: list[StepReport] = []
    stopped_by = StoppedBy.ERROR
    with catch_interrupt() as interrupted:
        for step in chain:
            left = None
            if options.time_limit is not None:
                left = options.time_limit - (time.perf_counter() - started)
                if left <= 0 and steps:
                    stopped_by = StoppedBy.TIME_LIMIT
                    break
            report, status = _take_step(problem, step, options.with_time(left), ignore_dpp)
            steps.append(report)
            if report.refused is None:
                return _answer(problem, status, steps, started)
            log.warning("%s: %s (%s)", step.name, report.refused, report.claim)
            used = time.perf_counter() - started
            limit = np.inf if options.time_limit is None else options.time_limit
            if report.claim == cp.USER_LIMIT and used >= 0.9 * limit:
                stopped_by = StoppedBy.TIME_LIMIT
            if interrupted.is_set():
                stopped_by = StoppedBy.INTERRUPTED
                break
    _clear(problem)
    limits = (StoppedBy.TIME_LIMIT, StoppedBy.INTERRUPTED)
    return ProgramResult(
        Status.NO_SOLUTION if stopped_by in limits else Status.FAILED,
        stopped_by,
        backend=steps[-1].name if steps else "",
        seconds=time.perf_counter() - started,
        details={"steps": tuple(steps)},
    )


def residual(problem: cp.Problem) -> float:
    """Worst violation of constraints and variable attributes at the variables' values.

    Relative to the larger of 1 and the sizes of the constraint's sides; infinite if a variable has
    no finite value.
    """
    worst = 0.0
    for variable in problem.variables():
        value = variable.value
        if value is None or not np.all(np.isfinite(value)):
            return np.inf
        off = np.max(np.abs(value - variable.project(value)), initial=0.0)
        worst = max(worst, float(off) / max(1.0, float(np.max(np.abs(value), initial=0.0))))
    for constraint in problem.constraints:
        off = np.max(np.abs(constraint.violation()), initial=0.0)
        sides = [np.max(np.abs(side.value), initial=0.0) for side in constraint.args]
        worst = max(worst, float(off) / max(1.0, *(float(side) for side in sides)))
    return worst if np.isfinite(worst) else np.inf


def _take_step(
    problem: cp.Problem,
    step: ConvexStep,
    options: SolveOptions,
    ignore_dpp: bool,
) -> tuple[StepReport, Status]:
    settings = dict(step.settings)
    if options.time_limit is not None and step.solver in _TIME_LIMIT_NAMES:
        # SCS reads 0 as "no limit".
        settings[_TIME_LIMIT_NAMES[step.solver]] = max(options.time_limit, 1e-3)
    if step.solver == cp.HIGHS and problem.is_mixed_integer():
        settings.setdefault("mip_rel_gap", options.gap / (1.0 + options.gap))
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # "Solution may be inaccurate": such a claim is refused below, not warned of.
            warnings.simplefilter("ignore", UserWarning)
            # A warm start would keep the solver object of an earlier step, settings included.
            problem.solve(solver=step.solver, ignore_dpp=ignore_dpp, warm_start=False, **settings)
    except cp.SolverError as error:
        seconds = time.perf_counter() - started
        refused = " ".join(str(error).split())[:200]
        return StepReport(step.name, "solver error", None, seconds, refused), Status.FAILED
    seconds = time.perf_counter() - started
    claim = str(problem.status)
    status = _CLAIMS.get(claim, Status.FAILED)
    if claim == _UNDECIDED or (status is Status.UNBOUNDED and problem.is_mixed_integer()):
        status = _unbounded_or_infeasible(problem)
    if claim == cp.USER_LIMIT and _highs_says_feasible(problem):
        status = Status.FEASIBLE
    if status in (Status.INFEASIBLE, Status.UNBOUNDED):
        return StepReport(step.name, claim, None, seconds), status
    if status is Status.FAILED:
        return StepReport(step.name, claim, None, seconds, "the solver does not say solved"), status
    off = residual(problem)
    why = None
    if not off <= step.tolerance:
        why = f"its point violates a constraint by {off:.3g}"
    return StepReport(step.name, claim, off, seconds, why), status


def _unbounded_or_infeasible(problem: cp.Problem) -> Status:
    """Tell the two apart: a problem that is one of them is unbounded if it has a point."""
    probe = cp.Problem(cp.Minimize(0), problem.constraints)
    try:
        probe.solve(solver=cp.HIGHS if probe.is_mixed_integer() or probe.is_lp() else cp.CLARABEL)
    except cp.SolverError:
        return Status.FAILED
    found = {cp.OPTIMAL: Status.UNBOUNDED, cp.INFEASIBLE: Status.INFEASIBLE}
    return found.get(str(probe.status), Status.FAILED)


def _highs_says_feasible(problem: cp.Problem) -> bool:
    """Trap: at a limit CVXPY hands over HiGHS's values whether or not they are a point."""
    extra = getattr(problem.solver_stats, "extra_stats", None)
    return getattr(extra, "primal_solution_status", 0) == 2


def _answer(
    problem: cp.Problem, status: Status, steps: list[StepReport], started: float
) -> ProgramResult:
    last = steps[-1]
    stopped_by = {
        Status.INFEASIBLE: StoppedBy.INFEASIBLE,
        Status.UNBOUNDED: StoppedBy.UNBOUNDED,
        Status.FEASIBLE: StoppedBy.TIME_LIMIT,
    }.get(status, StoppedBy.GAP)
    has_point = status in (Status.OPTIMAL, Status.FEASIBLE)
    if not has_point:
        _clear(problem)
    optimal = status is Status.OPTIMAL and not problem.is_mixed_integer()
    return ProgramResult(
        status,
        stopped_by,
        has_point,
        float(np.squeeze(problem.objective.value)) if has_point else None,
        duals=_duals(problem) if optimal else None,
        backend=last.name,
        seconds=time.perf_counter() - started,
        details={"steps": tuple(steps), "residual": last.residual},
    )


def _duals(problem: cp.Problem) -> ShadowPrices:
    """Shadow prices of equations and inequalities, from CVXPY's multipliers y.

    CVXPY's Lagrangian of ``min f`` is ``f + y (left - right)``, so the derivative of the minimum
    with respect to the right side is -y; for ``max f`` it minimises -f, which gives +y. An
    inequality whose constant is on the left is one of the other kind.
    """
    maximises = isinstance(problem.objective, cp.Maximize)
    rows, prices = list[cp.Constraint](), list[Floats]()
    for row in problem.constraints:
        is_equation = isinstance(row, cp.constraints.Equality)
        known = is_equation or isinstance(row, cp.constraints.Inequality)
        if not known or row.dual_value is None:
            continue
        left, right = row.args
        turned = left.is_constant() and not right.is_constant()
        sign = 1.0 if maximises != turned else -1.0
        rows.append(row)
        prices.append(np.asarray(sign * np.asarray(row.dual_value, dtype=float)))
    return ShadowPrices(rows, prices)


def _without_variables(problem: cp.Problem, started: float) -> ProgramResult:
    """Constants only: the constraints hold or not, and the objective is what it is."""
    feasible = residual(problem) <= LINEAR_CHAIN[0].tolerance
    return ProgramResult(
        Status.OPTIMAL if feasible else Status.INFEASIBLE,
        StoppedBy.GAP if feasible else StoppedBy.INFEASIBLE,
        feasible,
        float(np.squeeze(problem.objective.value)) if feasible else None,
        duals=ShadowPrices((), ()) if feasible else None,
        backend="answered without a solver",
        seconds=time.perf_counter() - started,
    )


def _clear(problem: cp.Problem) -> None:
    for variable in problem.variables():
        variable.save_value(None)
