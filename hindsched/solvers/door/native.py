"""SCIP and Gurobi through their own Python interfaces, from the same arrays as HiGHS.

SCIP is built natively, column by column: a file in between has been seen to lose integrality.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.json_types import JsonObject
from hindsched.solvers.door.answer import Answer
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.standard_form import LinearProgram
from hindsched.solvers.door.status import Status, StoppedBy

MODULES = {"scip": "pyscipopt", "gurobi": "gurobipy"}


def solve_natively(
    program: LinearProgram, options: SolveOptions, start_index: Any, start_point: Floats
) -> Answer:
    """Solve by SCIP or Gurobi.

    Raises
    ------
    InputError
        If its package is not installed or it does not know a solver option.
    SolveFailed
        If it breaks down (no licence, for example).
    """
    package = MODULES[options.solver]
    try:
        module = importlib.import_module(package)
    except ImportError:
        rule = f"is not installed: pip install 'hindsched[solvers]' (package {package})"
        raise InputError("solver", options.solver, rule) from None
    solve = _solve_by_scip if options.solver == "scip" else _solve_by_gurobi
    return solve(module, program, options, start_index, start_point)


def _solve_by_scip(
    scip: Any, program: LinearProgram, options: SolveOptions, start_index: Any, start_point: Floats
) -> Answer:
    model = scip.Model()
    model.hideOutput()
    own: JsonObject = {"randomization/randomseedshift": options.seed % 2**31}
    own["limits/gap"] = options.gap
    if options.time_limit is not None:
        own["limits/time"] = options.time_limit
    for name, value in own.items():
        model.setParam(name, value)
    for name, value in options.solver_options.items():
        try:
            model.setParam(name, value)
        except (KeyError, ValueError, TypeError, LookupError, OSError, Warning) as error:
            rule = f"SCIP must know the option and take its value ({error})"
            raise InputError(f"solver_options.{name}", value, rule) from None
    columns = [
        model.addVar(
            name=f"x{index}",
            vtype="I" if whole else "C",
            lb=None if lower == -math.inf else lower,
            ub=None if upper == math.inf else upper,
            obj=cost,
        )
        for index, (whole, lower, upper, cost) in enumerate(
            zip(
                program.integer.tolist(),
                program.lower.tolist(),
                program.upper.tolist(),
                program.cost.tolist(),
                strict=True,
            )
        )
    ]
    model.addObjoffset(program.offset)
    by_row = program.matrix.tocsr()
    for row in range(len(program.rows)):
        part = slice(by_row.indptr[row], by_row.indptr[row + 1])
        entries = zip(by_row.indices[part].tolist(), by_row.data[part].tolist(), strict=True)
        body = scip.quicksum(value * columns[column] for column, value in entries)
        lower, upper = float(program.row_lower[row]), float(program.row_upper[row])
        if part.start == part.stop:
            body = 0.0 * columns[0]
        if lower == upper:
            model.addCons(body == lower)
        elif math.isfinite(upper):
            model.addCons(body <= upper)
        else:
            model.addCons(body >= lower)
    if len(start_index) and program.is_mixed_integer:
        complete = len(start_index) == len(columns)
        start = model.createSol() if complete else model.createPartialSol()
        for column, value in zip(start_index.tolist(), start_point.tolist(), strict=True):
            model.setSolVal(start, columns[column], value)
        model.addSol(start)
    with catch_interrupt() as interrupted:
        model.optimize()
        if model.getStatus() == "inforunbd":
            model.freeTransform()
            model.setPresolve(scip.SCIP_PARAMSETTING.OFF)
            model.optimize()
        claim = str(model.getStatus())
        if claim == "userinterrupt":
            interrupted.set()
    status, stopped_by = _SCIP_STATUS.get(claim, (Status.FAILED, StoppedBy.ERROR))
    point = bound = None
    if model.getNSols() and status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        best = model.getBestSol()
        point = np.array([model.getSolVal(best, column) for column in columns])
        status = Status.FEASIBLE if status is Status.NO_SOLUTION else status
    if status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION):
        dual_bound = float(model.getDualbound())
        bound = dual_bound if abs(dual_bound) < model.infinity() else None
    details = {"model_status": claim, "nodes": int(model.getNTotalNodes())}
    backend = f"scip {model.version():.4g}"
    return Answer(status, stopped_by, point, bound, backend=backend, details=details)


_SCIP_STATUS = {
    "optimal": (Status.OPTIMAL, StoppedBy.GAP),
    "gaplimit": (Status.OPTIMAL, StoppedBy.GAP),
    "infeasible": (Status.INFEASIBLE, StoppedBy.INFEASIBLE),
    "unbounded": (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
    "timelimit": (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
    "userinterrupt": (Status.NO_SOLUTION, StoppedBy.INTERRUPTED),
    "nodelimit": (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    "totalnodelimit": (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    "stallnodelimit": (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    "sollimit": (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
}


def _solve_by_gurobi(
    gurobi: Any, program: LinearProgram, options: SolveOptions, index: Any, point: Floats
) -> Answer:
    try:
        quiet = gurobi.Env(params={"OutputFlag": 0})
        with quiet, gurobi.Model(env=quiet) as model:
            return _run_gurobi(gurobi, model, program, options, index, point)
    except gurobi.GurobiError as error:
        raise SolveFailed(f"Gurobi: {error}") from None


def _run_gurobi(
    gurobi: Any,
    model: Any,
    program: LinearProgram,
    options: SolveOptions,
    start_index: Any,
    start_point: Floats,
) -> Answer:
    grb = gurobi.GRB
    gap = options.gap / (1.0 + options.gap)
    own: JsonObject = {"MIPGap": gap, "MIPGapAbs": 1e-9, "DualReductions": 1}
    own.update(Threads=options.solver_threads, Seed=options.seed % 2_000_000_000)
    if options.time_limit is not None:
        own["TimeLimit"] = options.time_limit
    for name, value in own.items():
        model.setParam(name, value)
    for name, value in options.solver_options.items():
        try:
            model.setParam(name, value)
        except (gurobi.GurobiError, TypeError, ValueError) as error:
            rule = f"Gurobi must know the option and take its value ({error})"
            raise InputError(f"solver_options.{name}", value, rule) from None
    kinds = np.where(program.integer, grb.INTEGER, grb.CONTINUOUS)
    count = len(program.columns)
    x = model.addMVar(count, lb=program.lower, ub=program.upper, obj=program.cost, vtype=kinds)
    model.ObjCon = program.offset
    equal = program.row_lower == program.row_upper
    at_most = np.isfinite(program.row_upper)
    senses = np.where(equal, "=", np.where(at_most, "<", ">"))
    sides = np.where(at_most, program.row_upper, program.row_lower)
    rows = model.addMConstr(program.matrix.tocsr(), x, senses, sides)
    if len(start_index) and program.is_mixed_integer:
        start = np.full(count, grb.UNDEFINED)
        start[start_index] = start_point
        x.Start = start
    with catch_interrupt() as interrupted:

        def stop_if_asked(running: Any, where: int) -> None:
            if interrupted.is_set():
                running.terminate()

        model.optimize(stop_if_asked)
        if model.Status == grb.INF_OR_UNBD:
            model.setParam("DualReductions", 0)
            model.optimize(stop_if_asked)
    known = {
        grb.OPTIMAL: (Status.OPTIMAL, StoppedBy.GAP),
        grb.INFEASIBLE: (Status.INFEASIBLE, StoppedBy.INFEASIBLE),
        grb.UNBOUNDED: (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
        grb.TIME_LIMIT: (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
        grb.INTERRUPTED: (Status.NO_SOLUTION, StoppedBy.INTERRUPTED),
        grb.NODE_LIMIT: (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
        grb.ITERATION_LIMIT: (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
        grb.SOLUTION_LIMIT: (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    }
    status, stopped_by = known.get(model.Status, (Status.FAILED, StoppedBy.ERROR))
    mixed_integer = program.is_mixed_integer
    found = bound = row_duals = column_duals = None
    has_point = status is Status.OPTIMAL or (mixed_integer and model.SolCount > 0)
    if has_point and status in (Status.OPTIMAL, Status.NO_SOLUTION):
        found = np.array(x.X, dtype=float)
        status = Status.FEASIBLE if status is Status.NO_SOLUTION else status
    if mixed_integer and status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION):
        bound = float(model.ObjBound) if abs(model.ObjBound) < grb.INFINITY else None
    elif status is Status.OPTIMAL:
        bound = float(model.ObjVal)
        row_duals, column_duals = np.array(rows.Pi, dtype=float), np.array(x.RC, dtype=float)
    backend = "gurobi " + ".".join(str(part) for part in gurobi.gurobi.version())
    details = {"model_status": int(model.Status), "nodes": int(model.NodeCount)}
    return Answer(status, stopped_by, found, bound, row_duals, column_duals, backend, details)
