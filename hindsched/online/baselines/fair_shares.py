"""The programs of `fair_rounds`, in CVXPY, which takes long to load: hence a file of their own.

================  ================================================================
``x[j]``          share of the rounds in which job j runs
``equal[j]``      the share that a n-th of the cluster would give it, n jobs
``use[r, j]``     share of resource r's total that its gang holds
================  ================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.solvers.door.convex import solve_convex


@dataclass(frozen=True)
class Present:
    """The unfinished jobs at a round, in the order of arrival."""

    use: Floats  # share of each resource's total that a job's gang holds, (resources, jobs)
    left: Floats  # slots that the gang still needs
    total: Floats  # and needed at first
    waited: Floats  # slots since the job arrived

    @property
    def equal(self) -> Floats:
        """Share of time that an equal part of the cluster is worth to each job."""
        most = np.maximum(1e-12, self.use.max(axis=0))
        found: Floats = np.minimum(1.0, 1.0 / (len(self.left) * most))
        return found


def max_min_shares(present: Present) -> Floats:
    """Maximise ``min_j x[j] / equal[j]`` with ``x <= 1``, ``use x <= 1``."""
    x = cp.Variable(len(present.left), nonneg=True)
    least = cp.min(cp.multiply(1 / present.equal, x))
    value = _solve(cp.Problem(cp.Maximize(least), [x <= 1, present.use @ x <= 1]))
    found: Floats = np.minimum(1.0, value * present.equal)
    return found


def finish_time_shares(present: Present) -> Floats:
    """Minimise ``max_j (waited[j] + left[j] / x[j]) / (total[j] / equal[j])``, x as before."""
    alone = present.total / present.equal
    x = cp.Variable(len(present.left), nonneg=True)
    shared = present.waited + cp.multiply(present.left, cp.inv_pos(x))
    worst = cp.max(cp.multiply(1 / alone, shared))
    value = _solve(cp.Problem(cp.Minimize(worst), [x <= 1, present.use @ x <= 1]))
    found: Floats = np.minimum(1.0, present.left / (value * alone - present.waited))
    return found


def all_of_the_time(present: Present, least: Floats) -> Floats:
    """Shares of time that sum to the most, each at least its own bound."""
    x = cp.Variable(len(least))
    _solve(cp.Problem(cp.Maximize(cp.sum(x)), [x >= least, x <= 1, present.use @ x <= 1]))
    found: Floats = np.clip(x.value, least, 1.0).round(6)  # equal jobs stay equal
    return found


def _solve(problem: cp.Problem) -> float:
    """The optimal value; `SolveFailed` where no solver finds a point."""
    result = solve_convex(problem, ignore_dpp=True)
    if not result.has_point:
        raise SolveFailed(f"fair shares: {result.status}, {result.backend}")
    return float(np.asarray(problem.objective.args[0].value))
