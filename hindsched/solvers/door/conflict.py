"""Which rows of an infeasible program conflict: those of a proof, then a deletion filter.

Where the linear relaxation has no point, the rows of Farkas' proof conflict; else all rows do. The
deletion filter (Chinneck, Dravnieks, 1991) drops whole equations that are not needed for a
conflict, then halves of them, then single rows. Integrality counts, as do the bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import csc_array

from hindsched.arrays import Ints
from hindsched.models.algebra import grouped
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Answer, Status
from hindsched.solvers.door.standard_form import LinearProgram, compile_program
from hindsched.solvers.door.work import now

SHARE_OF_TIME = 0.2
"""Of the time left, what one attempt may take."""


class Conflict(NamedTuple):
    """Rows that cannot hold together."""

    rows: list[Any]  # the Pyomo constraints
    irreducible: bool  # whether without any one of them the others can hold


def find_conflict(model: pyo.ConcreteModel, time_limit: float = 30.0) -> Conflict:
    """Find rows of an infeasible model that cannot hold together; all of them at worst."""
    program, end = compile_program(model), now() + time_limit
    program = replace(program, cost=0 * program.cost, offset=0.0)
    rows = _contradicted(replace(program, integer=np.zeros_like(program.integer)), end)
    rows, irreducible = np.arange(len(program.rows)) if rows is None else rows, True
    names = [program.rows[row].parent_component().local_name for row in rows.tolist()]
    parts = [rows[np.array(at)] for at in grouped((n, i) for i, n in enumerate(names)).values()]
    while parts and (left := end - now()) > 0:
        parts.sort(key=len)
        others = np.setdiff1d(rows, part := parts.pop())
        status = _solve_once(_only(program, others), now() + SHARE_OF_TIME * left).status
        if status is Status.INFEASIBLE:
            rows = others
        elif len(part) > 1:
            parts += np.array_split(part, 2)
        else:
            irreducible &= status in (Status.OPTIMAL, Status.FEASIBLE)
    return Conflict(_constraints(program, rows), irreducible and not parts)


def _contradicted(program: LinearProgram, end: float) -> Ints | None:
    """Rows of a linear program's proof that it has no point (Farkas); None if it gives none."""
    highs = HighsProgram(program, SolveOptions(solver_options={"presolve": "off"}))
    if highs.solve(max(0.0, end - now())).status is not Status.INFEASIBLE:
        return None
    _, has_ray, ray = highs.highs.getDualRay()
    rows = np.flatnonzero(np.abs(ray) > 1e-9) if has_ray else np.arange(0)
    return rows if _solve_once(_only(program, rows), end).status is Status.INFEASIBLE else None


def _constraints(program: LinearProgram, rows: Ints) -> list[Any]:
    return list({id(program.rows[row]): program.rows[row] for row in rows.tolist()}.values())


def _solve_once(program: LinearProgram, end: float) -> Answer:
    left = max(0.0, end - now())
    return HighsProgram(program, SolveOptions(time_limit=left)).solve(left)


def _only(program: LinearProgram, rows: Ints) -> LinearProgram:
    """The program with these rows alone."""
    return replace(
        program, matrix=csc_array(program.matrix.tocsr()[rows]),
        row_lower=program.row_lower[rows], row_upper=program.row_upper[rows],
        rows=[program.rows[row] for row in rows.tolist()],
    )  # fmt: skip
