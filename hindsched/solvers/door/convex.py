"""Convex programs in CVXPY: a stated chain of solvers, every step logged, no point on trust.

Interior-point solvers stall on some programs whose optimum is well defined. `solve_convex` goes
through a chain of solver settings; each step it takes stands in the result and in the log, and the
point of a step counts only if the solver says that it solved *and* the constraints hold at it.
Integer programs are Pyomo's (`door.program`).
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.json_types import Keywords
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import ProgramResult, Status, StoppedBy, shadow_prices
from hindsched.solvers.door.work import catch_interrupt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConvexStep:
    """One step of the escalation."""

    name: str  # how reports call it
    solver: str  # CVXPY's name of the solver
    settings: Keywords = field(default_factory=dict)  # settings by the solver's own names
    # residual up to which its point is believed, relative to the larger of 1 and the sides
    tolerance: float = 1e-5


DEFAULT_CHAIN = (
    ConvexStep("clarabel", cp.CLARABEL, {"max_step_fraction": 0.9}),
    ConvexStep(
        "clarabel short step", cp.CLARABEL,
        {"min_switch_step_length": 1e-3, "min_terminate_step_length": 1e-8},
    ),
    ConvexStep("scs", cp.SCS, {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 100_000}, 1e-4),
)  # fmt: skip
"""Escalation of a convex program."""
LINEAR_CHAIN = (ConvexStep("highs", cp.HIGHS, {}, tolerance=1e-6),)  # chain of a linear program

_TIME_LIMIT_NAMES = {cp.CLARABEL: "time_limit", cp.SCS: "time_limit_secs", cp.HIGHS: "time_limit"}
_CLAIMS = {
    cp.OPTIMAL: (Status.OPTIMAL, StoppedBy.GAP),
    cp.INFEASIBLE: (Status.INFEASIBLE, StoppedBy.INFEASIBLE),
    cp.UNBOUNDED: (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
}


class StepReport(NamedTuple):
    """What one step of the chain did."""

    name: str
    claim: str  # the solver's
    residual: float | None  # of its point
    seconds: float
    refused: str | None = None  # why it is not believed


def solve_convex(
    problem: cp.Problem, *, chain: Sequence[ConvexStep] | None = None,
    options: SolveOptions | None = None, ignore_dpp: bool = False,
) -> ProgramResult:  # fmt: skip
    """Solve a CVXPY problem without integers through a chain of solvers, within the options' time.

    Its variables receive a point that was checked, or no value at all. The chain is by default
    `LINEAR_CHAIN` for linear problems, else `DEFAULT_CHAIN`. `ignore_dpp` is CVXPY's: canonicalise
    with the Parameters' values, cheaper for a few solves.
    """
    begin = time.perf_counter()
    limit = None if options is None else options.time_limit
    if chain is None:
        chain = LINEAR_CHAIN if problem.is_lp() else DEFAULT_CHAIN
    steps: list[StepReport] = []
    status, stopped_by = Status.FAILED, StoppedBy.ERROR
    with catch_interrupt() as interrupted:
        for step in chain:
            left = None if limit is None else limit - (time.perf_counter() - begin)
            if steps and (interrupted.is_set() or (left is not None and left <= 0)):
                status = Status.NO_SOLUTION
                late = not interrupted.is_set()
                stopped_by = StoppedBy.TIME_LIMIT if late else StoppedBy.INTERRUPTED
                break
            steps.append(_take_step(problem, step, left, ignore_dpp))
            claim, refused = steps[-1].claim, steps[-1].refused
            if refused is None:
                status, stopped_by = _CLAIMS[claim]
                break
            log.warning("%s: %s (%s)", step.name, refused, claim)
            if claim == cp.USER_LIMIT and left is not None and steps[-1].seconds >= 0.9 * left:
                status, stopped_by = Status.NO_SOLUTION, StoppedBy.TIME_LIMIT
    optimal = status is Status.OPTIMAL
    if not optimal:
        for variable in problem.variables():
            variable.save_value(None)
    objective = float(np.squeeze(problem.objective.value)) if optimal else None
    return ProgramResult(
        status, stopped_by, optimal, objective, duals=_duals(problem) if optimal else None,
        backend=steps[-1].name, seconds=time.perf_counter() - begin,
        details={"steps": tuple(steps), "residual": steps[-1].residual},
    )  # fmt: skip


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
    problem: cp.Problem, step: ConvexStep, seconds: float | None, ignore_dpp: bool
) -> StepReport:
    settings = dict(step.settings)
    if seconds is not None and step.solver in _TIME_LIMIT_NAMES:
        # SCS reads 0 as "no limit".
        settings[_TIME_LIMIT_NAMES[step.solver]] = max(seconds, 1e-3)
    begin, off, refused = time.perf_counter(), None, None
    try:
        with warnings.catch_warnings():
            # "Solution may be inaccurate": such a claim is refused below, not warned of.
            warnings.simplefilter("ignore", UserWarning)
            # A warm start would keep the solver object of an earlier step, settings included.
            problem.solve(solver=step.solver, ignore_dpp=ignore_dpp, warm_start=False, **settings)
        claim = str(problem.status)
        if claim == "infeasible_or_unbounded":  # unbounded if it has a point
            probe = cp.Problem(cp.Minimize(0), problem.constraints)
            probe.solve(solver=cp.HIGHS if probe.is_lp() else cp.CLARABEL)
            claim = cp.UNBOUNDED if probe.status == cp.OPTIMAL else str(probe.status)
        if claim not in _CLAIMS:
            refused = "the solver does not say solved"
        elif claim == cp.OPTIMAL:
            off = residual(problem)
            if not off <= step.tolerance:
                refused = f"its point violates a constraint by {off:.3g}"
    except cp.SolverError as error:
        claim, refused = "solver error", " ".join(str(error).split())[:200]
    return StepReport(step.name, claim, off, time.perf_counter() - begin, refused)


def _duals(problem: cp.Problem) -> Mapping[Any, Any]:
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
    return shadow_prices(rows, prices)
