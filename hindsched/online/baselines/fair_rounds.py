"""``gavel`` and ``themis``: fair shares of time by a convex program, given out in rounds.

``gavel`` is max-min fairness in the form of Narayanan et al., "Heterogeneity-aware cluster
scheduling policies for deep learning workloads" (OSDI 2020); ``themis`` is the finish-time fairness
of Mahajan et al., "Themis: Fair and efficient GPU cluster scheduling" (NSDI 2020), as the former
writes it as a program. From the papers' published formulas; the full texts were not at hand.

================  ================================================================
``x[j]``          share of the rounds in which job j runs
``equal[j]``      the share that a n-th of the cluster would give it, n jobs
``use[r, j]``     share of resource r's total that its gang holds
================  ================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import JobRecord
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.protocol import Decision, Environment, Report

SLACK = 1e-4  # how much of its fair share a job may lose to the solver's tolerance
CONVEX = "hindsched.solvers.door.convex"  # and CVXPY


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
        return np.minimum(1.0, 1.0 / (len(self.left) * most))


def max_min_shares(present: Present) -> Floats:
    """Maximise ``min_j x[j] / equal[j]`` with ``x <= 1``, ``use x <= 1``."""
    cp = import_module("cvxpy")
    x = cp.Variable(len(present.left), nonneg=True)
    least = cp.min(cp.multiply(1 / present.equal, x))
    value = _solve(cp.Problem(cp.Maximize(least), [x <= 1, present.use @ x <= 1]))
    return np.minimum(1.0, value * present.equal)


def finish_time_shares(present: Present) -> Floats:
    """Minimise ``max_j (waited[j] + left[j] / x[j]) / (total[j] / equal[j])``, x as before."""
    alone = present.total / present.equal
    cp = import_module("cvxpy")
    x = cp.Variable(len(present.left), nonneg=True)
    shared = present.waited + cp.multiply(present.left, cp.inv_pos(x))
    worst = cp.max(cp.multiply(1 / alone, shared))
    value = _solve(cp.Problem(cp.Minimize(worst), [x <= 1, present.use @ x <= 1]))
    return np.minimum(1.0, present.left / (value * alone - present.waited))


def all_of_the_time(present: Present, least: Floats) -> Floats:
    """Shares of time that sum to the most, each at least its own bound."""
    cp = import_module("cvxpy")
    x = cp.Variable(len(least))
    _solve(cp.Problem(cp.Maximize(cp.sum(x)), [x >= least, x <= 1, present.use @ x <= 1]))
    return np.clip(x.value, least, 1.0).round(6)  # equal jobs stay equal


def _solve(problem: Any) -> float:
    """The optimal value of a problem of CVXPY; `SolveFailed` where no solver finds a point."""
    result = import_module(CONVEX).solve_convex(problem, ignore_dpp=True)
    if not result.has_point:
        raise SolveFailed(f"fair shares: {result.status}, {result.backend}")
    return float(np.asarray(problem.objective.args[0].value))


class FairRounds(FixedWidth):
    """Shares of time by a program at arrivals and completions; gangs run in rounds of a slot.

    The program bounds from below what share of the rounds each job gets; what is left over goes
    where the summed shares grow most. In every round the jobs are asked in the order of share over
    the part of the rounds they had since the last program (Gavel's mechanism), and every gang that
    fits runs, in its former place if that is free. What it is not: no types of accelerators to
    choose from, no sharing of one by two jobs, no cost of a switch, no auction.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    every_slot = True
    least_shares: ClassVar[Any]  # from who is present, what each job must get

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        import_module(CONVEX)  # takes long: not before a run, and outside its decisions' times
        super().start(environment)
        self._arrived: dict[str, int] = {}
        self._known: tuple[str, ...] = ()
        self._shares: dict[str, float] = {}
        self._ran: dict[str, int] = {}
        self._solved = 0

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Every slot is a round."""
        self._arrived.update((job.name, slot) for job in arrivals)
        decision = super().step(slot, arrivals)
        for name in self.held:
            self._ran[name] = self._ran.get(name, 0) + 1
        return decision

    def reallocate(self) -> None:
        """New shares if the jobs have changed; then the gangs by share over time had."""
        if tuple(self.jobs) != self._known:
            self._known, self._ran = tuple(self.jobs), {}
            self._shares = self._solve()
        before = self.release_all()
        for name in sorted(self.jobs, key=self._priority):
            width = self.cluster.fixed_workers(self.jobs[name])
            self.resume(name, before) or self.hold(name, width)

    def _priority(self, name: str) -> tuple[float, float]:
        """First who had no round, then by the share over the rounds had; larger shares first."""
        share, ran = self._shares.get(name, 0.0), self._ran.get(name, 0)
        return (-share / ran if ran else -np.inf, -share)

    def _solve(self) -> dict[str, float]:
        widths = {name: self.cluster.fixed_workers(job) for name, job in self.jobs.items()}
        names = [name for name, width in widths.items() if width]
        if not names:
            return {}
        speed = [self.cluster.speed(self.jobs[name], widths[name]) for name in names]
        use = [self.cluster.shares(self.jobs[name], widths[name]) for name in names]
        present = Present(
            np.column_stack(use),
            np.array([float(self.remaining[name]) for name in names]) / speed,
            np.array([float(self.cluster.work(self.jobs[name])) for name in names]) / speed,
            np.array([self.slot - self._arrived[name] for name in names], dtype=float),
        )
        self._solved += 1
        least = type(self).least_shares(present)
        shares = all_of_the_time(present, (1 - SLACK) * least)
        return dict(zip(names, shares.tolist(), strict=True))

    def report(self) -> Report:
        """How many programs were solved."""
        return {"programs": self._solved}


class Gavel(FairRounds):
    """Max-min fairness: the least share over that of an equal part of the cluster is largest."""

    least_shares = staticmethod(max_min_shares)


class Themis(FairRounds):
    """Finish-time fairness: the worst ratio of a job's time shared to its time alone is least.

    Time shared is the time since the job arrived and what is left at its share of the rounds; time
    alone is all of its work on an equal part of the cluster.
    """

    least_shares = staticmethod(finish_time_shares)
