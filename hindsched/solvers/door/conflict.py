"""Which rows of an infeasible program conflict: those of a proof, then a deletion filter.

Where the linear relaxation has no point, the rows of Farkas' proof conflict; else an elastic filter
finds some (Chinneck, Dravnieks, 1991): every row may be broken at a price; those that the
cheapest point breaks become hard, until nothing is feasible: they then contain a conflict. The
deletion filter drops each of them that is not needed for it. Integrality counts, as do the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import csc_array, hstack

from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Answer, Status
from hindsched.solvers.door.standard_form import LinearProgram, compile_program
from hindsched.solvers.door.work import now


class Conflict(NamedTuple):
    """Rows that cannot hold together."""

    rows: list[Any]  # the Pyomo constraints
    irreducible: bool  # whether without any one of them the others can hold


def find_conflict(model: pyo.ConcreteModel, time_limit: float = 30.0) -> Conflict | None:
    """Find rows that cannot hold together; None if there are none, or time was too short."""
    program = compile_program(model)
    program, end = replace(program, cost=0 * program.cost, offset=0.0), now() + time_limit
    hard = _contradicted(replace(program, integer=np.zeros_like(program.integer)), end)
    if hard is None:
        hard = _elastic_filter(program, end)
    if hard is None:
        return None
    for row in list(hard):
        others = [other for other in hard if other != row]
        status = _solve_once(_only(program, others), end).status
        if status is Status.INFEASIBLE:
            hard = others
        elif status not in (Status.OPTIMAL, Status.FEASIBLE):
            return Conflict(_constraints(program, hard), irreducible=False)
    return Conflict(_constraints(program, hard), irreducible=True)


def _contradicted(program: LinearProgram, end: float) -> list[int] | None:
    """Rows of a linear program's proof that it has no point (Farkas); None if it gives none."""
    highs = HighsProgram(program, SolveOptions(solver_options={"presolve": "off"}))
    if highs.solve(max(0.0, end - now())).status is not Status.INFEASIBLE:
        return None
    _, has_ray, ray = highs.highs.getDualRay()
    rows: list[int] = np.flatnonzero(np.abs(ray) > 1e-9).tolist() if has_ray else []
    return rows if _solve_once(_only(program, rows), end).status is Status.INFEASIBLE else None


def _elastic_filter(program: LinearProgram, end: float) -> list[int] | None:
    """Rows that cannot hold together; None if all can, or time was too short."""
    hard, everything = list[int](), np.arange(len(program.rows))
    while True:
        answer, over = _solve_once(_elastic_program(program, hard), end), len(program.columns)
        if answer.status is Status.INFEASIBLE:
            return hard
        soft = np.setdiff1d(everything, hard)
        if answer.point is None or not soft.size:
            return None
        broken = soft[answer.point[over:].reshape(-1, 2).sum(axis=1) > 1e-6]
        if not broken.size:
            return None
        hard += broken.tolist()


def _constraints(program: LinearProgram, rows: Sequence[int]) -> list[Any]:
    return list({id(program.rows[row]): program.rows[row] for row in sorted(rows)}.values())


def _solve_once(program: LinearProgram, end: float) -> Answer:
    left = max(0.0, end - now())
    return HighsProgram(program, SolveOptions(time_limit=left)).solve(left)


def _only(program: LinearProgram, rows: Sequence[int]) -> LinearProgram:
    """The program with these rows alone."""
    return replace(
        program, matrix=csc_array(program.matrix.tocsr()[rows]),
        row_lower=program.row_lower[rows], row_upper=program.row_upper[rows],
        rows=[program.rows[row] for row in rows],
    )  # fmt: skip


def _elastic_program(program: LinearProgram, hard: Sequence[int]) -> LinearProgram:
    """The program in which rows that are not `hard` may be broken, each way at a price of 1."""
    soft = np.setdiff1d(np.arange(len(program.rows)), hard)
    largest = abs(program.matrix).max(axis=1).toarray().ravel()[soft]
    sizes = np.where(largest > 0, largest, 1.0)
    entries = np.ravel(np.column_stack((sizes, -sizes)))
    places = np.repeat(soft, 2), np.arange(entries.size)
    shape, zero = (len(program.rows), entries.size), np.zeros(entries.size)
    return replace(
        program, matrix=csc_array(hstack([program.matrix, csc_array((entries, places), shape)])),
        columns=[*program.columns, *[None] * entries.size],
        cost=np.concatenate((program.cost, zero + 1)),
        lower=np.concatenate((program.lower, zero)),
        upper=np.concatenate((program.upper, zero + np.inf)),
        integer=np.concatenate((program.integer, zero > 0)),
    )  # fmt: skip
