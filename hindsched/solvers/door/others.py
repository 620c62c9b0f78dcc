"""SCIP and Gurobi by Pyomo's own plugins, asked about the same arrays as HiGHS.

A plain copy of the program is minimised, so that senses and signs have one convention. What the
solver says is only an `Answer`; `solve_program` checks the point. Duals are HiGHS' alone.
"""

from __future__ import annotations

import io
import math
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.log import LoggingIntercept

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Answer, Status, StoppedBy
from hindsched.solvers.door.standard_form import LinearProgram
from hindsched.solvers.door.work import catch_interrupt


@dataclass(frozen=True)
class OtherSolver:
    """What is special about a solver."""

    plugin: str  # Pyomo's name of it
    needs: str  # the package that it needs
    gap: str  # its own name of the option
    seed: str  # its own name of the option
    threads: str | None = None
    most_seed: int = 2**31  # the largest seed that it takes

    @property
    def is_installed(self) -> bool:
        """Whether the package is there."""
        return find_spec(self.needs) is not None


OTHERS = {
    "scip": OtherSolver(
        "scip_direct", "pyscipopt", "limits/gap", "randomization/randomseedshift"
    ),
    "gurobi": OtherSolver(
        "gurobi_direct_v2", "gurobipy", "MIPGap", "Seed", "Threads", 2_000_000_000
    ),
}  # fmt: skip

_CLAIMS = {
    "optimal": (Status.OPTIMAL, StoppedBy.GAP),
    "infeasible": (Status.INFEASIBLE, StoppedBy.INFEASIBLE),
    "unbounded": (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
    "infeasibleOrUnbounded": (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
    "maxTimeLimit": (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
    "feasible": (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
    "intermediateNonInteger": (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
    "maxIterations": (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    "userInterrupt": (Status.NO_SOLUTION, StoppedBy.INTERRUPTED),
}


def solve_by_other(
    program: LinearProgram, options: SolveOptions, index: Any, values: Floats
) -> Answer:
    """Solve by the solver that the options name; `SolveFailed` if it breaks down."""
    solver = OTHERS[options.solver]
    if not solver.is_installed:
        rule = f'is not installed: no {solver.needs} (pip install ".[solvers]")'
        raise InputError("solver", options.solver, rule)
    if options.time_limit == 0:  # which some take for none
        return Answer(Status.NO_SOLUTION, StoppedBy.TIME_LIMIT, backend=options.solver)
    model = _copy(program)
    for column, value in zip(index, values, strict=True):
        model.x[int(column)].value = round(value) if program.integer[column] else float(value)
    plugin = pyo.SolverFactory(solver.plugin)
    settings: dict[str, Any] = {solver.seed: options.seed % solver.most_seed}
    if program.is_mixed_integer:
        settings[solver.gap] = options.gap / (1.0 + options.gap)
    if solver.threads is not None and options.solver_threads > 1:
        settings[solver.threads] = options.solver_threads
    arguments: dict[str, Any] = {
        "load_solutions": False,
        "options": settings | options.solver_options,
    }
    if options.time_limit is not None:
        arguments["timelimit"] = options.time_limit
    plugin.config.warmstart_discrete_vars = len(index) > 0
    output = io.StringIO()
    with catch_interrupt() as interrupted:
        try:
            with LoggingIntercept(output, "pyomo"), redirect_stdout(output):
                result = plugin.solve(model, **arguments)
                if len(result.solution):
                    result.solver.status = "ok"
                    model.solutions.load_from(result)
        except Exception as error:
            output.write(str(error))
            _check_options(output.getvalue(), options)
            raise SolveFailed(f"{options.solver}: {' '.join(str(error).split())[-200:]}") from None
        _check_options(output.getvalue(), options)
    claim = str(result.solver.termination_condition)
    status, stopped_by = _CLAIMS.get(claim, (Status.FAILED, StoppedBy.ERROR))
    if interrupted.is_set() and status is not Status.OPTIMAL:
        status, stopped_by = Status.NO_SOLUTION, StoppedBy.INTERRUPTED
    known = [model.x[i].value for i in range(len(program.columns))]
    point = None
    if status in (Status.OPTIMAL, Status.NO_SOLUTION) and len(result.solution):
        point = np.array([0.0 if value is None else value for value in known])
        if status is Status.NO_SOLUTION and program.residual(program.rounded(point))[0] <= 1:
            status = Status.FEASIBLE
        elif status is Status.NO_SOLUTION:
            point = None
    bound = result.problem.lower_bound
    is_bound = isinstance(bound, int | float) and abs(bound) < 1e20 and program.is_mixed_integer
    if status is Status.OPTIMAL and not program.is_mixed_integer and point is not None:
        bound, is_bound = float(program.cost @ point) + program.offset, True
    version = ".".join(str(part) for part in plugin.version() or ())
    return Answer(
        status, stopped_by, point, float(bound) if is_bound else None,
        backend=f"{options.solver} {version}".strip(), details={"claim": claim},
    )  # fmt: skip


def _copy(program: LinearProgram) -> Any:
    """The arrays as a Pyomo model of their own, which is minimised."""
    model = pyo.ConcreteModel()
    lower, upper = program.lower.tolist(), program.upper.tolist()
    model.x = pyo.Var(
        range(len(program.columns)),
        within=lambda _, i: pyo.Integers if program.integer[i] else pyo.Reals,
        bounds=lambda _, i: (
            None if lower[i] == -math.inf else lower[i], None if upper[i] == math.inf else upper[i]
        ),
    )  # fmt: skip
    by_row = program.matrix.tocsr()

    def row(m: Any, i: int) -> Any:
        part = slice(by_row.indptr[i], by_row.indptr[i + 1])
        terms = zip(by_row.data[part].tolist(), by_row.indices[part].tolist(), strict=True)
        body = pyo.quicksum((value * m.x[j] for value, j in terms))
        low, high = float(program.row_lower[i]), float(program.row_upper[i])
        if low == high:
            return body == high
        return body <= high if high < math.inf else body >= low

    filled = np.flatnonzero(np.diff(by_row.indptr)).tolist()
    model.rows = pyo.Constraint(filled, rule=row)
    priced = np.flatnonzero(program.cost).tolist()
    cost = pyo.quicksum(float(program.cost[j]) * model.x[j] for j in priced)
    model.cost = pyo.Objective(expr=cost + program.offset)
    return model


def _check_options(output: str, options: SolveOptions) -> None:
    """Name the solver option that a solver complains of."""
    complaints = ("No match for", "Invalid", "invalid", "nknown", "Not a valid", "not a valid")
    lines = [line for line in output.splitlines() if any(word in line for word in complaints)]
    for name, value in options.solver_options.items():
        if any(name in line or "parameter name" in line for line in lines):
            rule = f"must be an option that {options.solver} knows, with a value that it takes"
            raise InputError(f"solver_options.{name}", value, rule)
