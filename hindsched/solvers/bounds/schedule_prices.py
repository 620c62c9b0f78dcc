"""Duals of what is left of the capacities, over whole schedules of a few jobs.

The linear program chooses among schedules of each job (Dantzig and Wolfe),

    max sum f_s x_s,  sum_s A_s x_s <= residual,  sum_{s of j} x_s <= 1   ("= 1": jobs must run)

and the pricing oracle finds the schedules that it lacks, so its size does not depend on how many
windows, types and placements a job may choose from: at the papers' sizes those are billions.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.solvers.bounds.column_generation import Column
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.oracles.base import BlockOracle

LEFT_OUT = 10.0
"""What a job that must run costs where it does not, in the largest cost of a schedule."""


def schedule_prices(
    oracle: BlockOracle,
    residual: Floats,
    most_rounds: int = 20,
    options: SolveOptions | None = None,
) -> Floats | None:  # fmt: skip
    """Duals of the linking rows when the oracle's jobs share what is left.

    Parameters
    ----------
    oracle : BlockOracle
        With one row a server; its best responses keep within `residual`.
    residual : ndarray, shape (rows.size,)
        What is left of the capacities.
    most_rounds : int
        Times that schedules are looked for; the program then has those found by then.
    options : SolveOptions, optional
        How each linear program is solved.

    Returns
    -------
    ndarray, shape (rows.size,), or None
        Never negative; all 0 where the best schedules fit together. None if the solver gave none.
    """
    prices, known = np.zeros(oracle.rows.size), dict[tuple[int, bytes], Column]()
    for _ in range(most_rounds):
        before = len(known)
        for block in range(oracle.num_decided):
            found = oracle.best_response(block, prices, residual)
            if found is not None and found.plan is not None:
                column = Column.of(block, found)
                known.setdefault((block, column.key), column)
        if len(known) == before:
            break
        duals = _duals(oracle, list(known.values()), residual, options)
        if duals is None:
            return None
        prices = duals
        if not prices.any():
            break  # the best schedules at price 0 are all there
    return prices


def _duals(
    oracle: BlockOracle, columns: list[Column], residual: Floats, options: SolveOptions | None
) -> Floats | None:
    """Solve the program over some schedules; prices of all linking rows."""
    sign = 1 if oracle.sense == "max" else -1
    jobs: dict[int, list[int]] = {}
    for s, column in enumerate(columns):
        jobs.setdefault(column.block, []).append(s)
    use = sp.csr_array(
        (
            np.concatenate([column.amounts for column in columns]),
            np.concatenate([column.rows for column in columns]),
            np.cumsum([0, *(column.rows.size for column in columns)]),
        ),
        shape=(len(columns), oracle.rows.size),
    )
    short = np.flatnonzero(use.sum(axis=0) > residual)
    # of rows with the same users, only the one with the least room can bind
    short = short[np.argsort(residual[short], kind="stable")]
    amounts = use[:, short].toarray()
    _, first = np.unique(amounts, axis=1, return_index=True)
    users = {
        int(short[k]): [(int(s), float(amounts[s, k])) for s in np.flatnonzero(amounts[:, k])]
        for k in np.sort(first)
    }
    rows = list(users)
    prices = np.zeros(oracle.rows.size)
    if not rows:
        return prices

    m = pyo.ConcreteModel(name="schedules")
    m.x = pyo.Var(range(len(columns)), bounds=(0, None), doc="(ours) a schedule is taken")
    m.out = pyo.Var(list(jobs), bounds=(0, None), doc="(ours) a job does not run")
    left = [max(0.0, float(each)) for each in residual]
    m.fits = pyo.Constraint(
        rows, doc="(ours) what is left of a server",
        rule=lambda m, row: total(a * m.x[s] for s, a in users[row]) <= left[row],
    )  # fmt: skip
    m.once = pyo.Constraint(
        list(jobs), doc="(ours) a job runs once",
        rule=lambda m, j: total(m.x[s] for s in jobs[j]) + m.out[j] == 1,
    )  # fmt: skip
    cost = 0.0 if oracle.optional else LEFT_OUT * max(abs(column.objective) for column in columns)
    worth = total(column.objective * m.x[s] for s, column in enumerate(columns))
    m.objective = pyo.Objective(
        expr=worth - sign * cost * total(m.out.values()),
        sense=pyo.maximize if sign > 0 else pyo.minimize,
    )
    result = solve_program(m, options, want_duals=True, small=True)
    if result.duals is None:
        return None
    for row in rows:
        prices[row] = max(0.0, sign * result.duals.get(m.fits[row], 0.0))
    return prices
