"""`fair_shares.finish_time_shares` as it is printed, in CVXPY: for points that are refused there.

CVXPY takes long to load and longer to state the program than Clarabel to solve it.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.solvers.door.convex import solve_convex


def finish_time_printed(use: Floats, left: Floats, alone: Floats, waited: Floats) -> cp.Problem:
    """Minimise ``max_j (waited[j] + left[j] / x[j]) / alone[j]``, ``x <= 1``, ``use x <= 1``."""
    x = cp.Variable(len(left), nonneg=True)
    shared = waited + cp.multiply(left, cp.inv_pos(x))
    worst = cp.max(cp.multiply(1 / alone, shared))
    return cp.Problem(cp.Minimize(worst), [x <= 1, use @ x <= 1])


def worst_by_chain(use: Floats, left: Floats, alone: Floats, waited: Floats) -> float:
    """Its least value, by the chain of solvers for convex programs."""
    problem = finish_time_printed(use, left, alone, waited)
    result = solve_convex(problem, ignore_dpp=True)
    if not result.has_point:
        raise SolveFailed(f"fair shares: {result.status}, {result.backend}")
    return float(np.asarray(problem.objective.args[0].value))
