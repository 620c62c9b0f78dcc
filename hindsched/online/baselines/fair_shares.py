"""The programs of `fair_rounds`, in a file of their own: solvers take long to load.

They are as small as the number of jobs, so that CVXPY takes twenty times as long to state as a
solver to solve them: they are stated as the rows that CVXPY would make of them.

================  ================================================================
``x[j]``          share of the rounds in which job j runs
``equal[j]``      the share that a n-th of the cluster would give it, n jobs
``use[r, j]``     share of resource r's total that its gang holds
================  ================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.door.cones import Cones
from hindsched.solvers.door.inequalities import Inequalities

LONGEST_STEP = 0.9
"""As the chain of solvers for convex programs begins."""
TOLERANCE = 1e-5
"""How far a point may violate a row."""


@dataclass(frozen=True)
class Present:
    """The unfinished jobs at a round, in the order of arrival.

    Parameters
    ----------
    use : array (resources, jobs)
        Share of each resource's total that a job's gang holds.
    left, total : array (jobs,)
        Slots that the gang still needs, and needed at first.
    waited : array (jobs,)
        Slots since the job arrived.
    """

    use: Floats
    left: Floats
    total: Floats
    waited: Floats

    @property
    def equal(self) -> Floats:
        """Share of time that an equal part of the cluster is worth to each job."""
        most = np.maximum(1e-12, self.use.max(axis=0))
        found: Floats = np.minimum(1.0, 1.0 / (len(self.left) * most))
        return found


def max_min_shares(present: Present) -> Floats:
    """Maximise ``min_j x[j] / equal[j]``."""
    worth = 1 / present.equal
    x = max_min_program(present).solve()[1:]
    found: Floats = np.minimum(1.0, float(np.min(worth * x)) * present.equal)
    return found


def max_min_program(present: Present) -> Inequalities:
    """Minimise v with ``v >= -x[j] / equal[j]``, ``x <= 1``, ``use x <= 1`` over v and ``x >= 0``.

    Rows and their order are those in which CVXPY would state it.
    """
    jobs = len(present.left)
    zero, ones = np.zeros((jobs, 1)), np.ones((jobs, 1))
    return Inequalities(
        cost=np.eye(1, jobs + 1)[0],
        matrix=np.block(
            [
                [-ones, -np.diag(1 / present.equal)],
                [zero, np.eye(jobs)],
                [np.zeros((len(present.use), 1)), present.use],
            ]
        ),
        right=np.concatenate([np.zeros(jobs), np.ones(jobs + len(present.use))]),
        lower=np.array([-np.inf] + [0.0] * jobs),
    )


def finish_time_shares(present: Present) -> Floats:
    """Minimise ``max_j (waited[j] + left[j] / x[j]) / (total[j] / equal[j])``."""
    alone = present.total / present.equal
    worst = _worst(present, alone)
    found: Floats = np.minimum(1.0, present.left / (worst * alone - present.waited))
    return found


def finish_time_program(present: Present, alone: Floats) -> Cones:
    """Minimise w with ``w >= (waited[j] + left[j] y[j]) / alone[j]`` over w, x and ``y >= 1 / x``.

    The last is ``(x + y)^2 >= (x - y)^2 + 2^2``.
    """
    jobs, resources = len(present.left), len(present.use)
    one = np.eye(jobs)
    zero, column = np.zeros((jobs, jobs)), np.zeros((jobs, 1))
    hyperbola = np.zeros((3 * jobs, 1 + 2 * jobs))
    hyperbola[0::3] = np.hstack([column, -one, -one])
    hyperbola[1::3] = np.hstack([column, -one, one])
    rows = np.block(
        [
            [column, -one, zero],
            [-np.ones((jobs, 1)), zero, np.diag(1 / alone * present.left)],
            [column, one, zero],
            [np.zeros((resources, 1)), present.use, np.zeros((resources, jobs))],
        ]
    )
    right = [np.zeros(jobs), -(1 / alone * present.waited), np.ones(jobs + resources)]
    return Cones(
        cost=np.eye(1, 1 + 2 * jobs)[0],
        matrix=np.vstack([rows, hyperbola]),
        right=np.concatenate([*right, np.tile([0.0, 0.0, 2.0], jobs)]),
        triples=jobs,
    )


def _worst(present: Present, alone: Floats) -> float:
    """The least of the worst ratios; where Clarabel's point is none, by what knows more solvers."""
    point = finish_time_program(present, alone).solve(max_step_fraction=LONGEST_STEP)
    if point is not None:
        x = point[1 : 1 + len(alone)]
        off = np.concatenate([-x, x - 1, present.use @ x - 1])
        if np.max(off) <= TOLERANCE:
            shared = present.waited + present.left * np.power(x, -1.0)
            return float(np.max(1 / alone * shared))
    from hindsched.online.baselines.finish_time import worst_by_chain

    return worst_by_chain(present.use, present.left, alone, present.waited)


def all_of_the_time(present: Present, least: Floats) -> Floats:
    """Shares of time that sum to the most, each at least its own bound."""
    x = sum_program(present, least).solve()
    found: Floats = np.clip(x, least, 1.0).round(6)  # equal jobs stay equal
    return found


def sum_program(present: Present, least: Floats) -> Inequalities:
    """Maximise the sum of x with ``x >= least``, ``x <= 1``, ``use x <= 1``, as CVXPY states it."""
    jobs = len(least)
    return Inequalities(
        cost=np.full(jobs, -1.0),
        matrix=np.vstack([-np.eye(jobs), np.eye(jobs), present.use]),
        right=np.concatenate([-least, np.ones(jobs + len(present.use))]),
        lower=np.full(jobs, -np.inf),
    )
