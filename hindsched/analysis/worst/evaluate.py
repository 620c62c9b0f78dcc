"""What a candidate is worth: the algorithm's run against the best schedule, in a race.

The algorithm runs first. Where a bound shows that the ratio cannot reach what the search asks for,
no optimum is sought; where it may, the space's exact method is asked. A score is the algorithm's
objective against a schedule that was checked, so that it never exceeds the worst case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hindsched.analysis.ratio import Interval, Sense, competitive_ratio, optimum_of
from hindsched.analysis.worst.problem import Problem
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance
from hindsched.online.simulator import SimulationResult
from hindsched.solvers.api import solve

EXACT, BOUNDED, INVALID, FAILED = "exact", "bounded", "invalid", "failed"
"""How a candidate's race ended: ratio to a schedule; bound too low; no member; the run failed."""


@dataclass(frozen=True)
class Evaluation:
    """A candidate's race.

    Parameters
    ----------
    stage : str
        How it ended.
    score : float
        ``exact``: the ratio to a checked schedule; ``bounded``: what the ratio cannot exceed;
        else -inf.
    objective, reference : float, optional
        Of the algorithm (its mean over the seeds) and of the schedule.
    limited : bool
        Whether the exact method was cut by its time limit.
    message : str, optional
        Why the run failed.
    """

    stage: str
    score: float = -math.inf
    objective: float | None = None
    reference: float | None = None
    limited: bool = False
    message: str | None = None


def evaluate(problem: Problem, data: dict[str, Any], threshold: float = -math.inf) -> Evaluation:
    """Race a candidate: its ratio, or that it cannot reach the threshold.

    Parameters
    ----------
    problem : Problem
        The search.
    data : dict
        The candidate.
    threshold : float
        A ratio below it is of no interest.
    """
    try:
        instance = problem.space.instance(data)
    except InputError as error:
        return Evaluation(INVALID, message=str(error))
    try:
        return _race(problem, instance, threshold)
    except HindschedError as error:
        return Evaluation(FAILED, message=f"{type(error).__name__}: {error}")


def _race(problem: Problem, instance: Instance, threshold: float) -> Evaluation:
    seeds = range(problem.seeds)
    runs = problem.runs(problem.algorithm, instance, seeds)
    objective = mean_objective(runs)
    sense = instance.sense
    if problem.against is not None:
        other = mean_objective(problem.runs(problem.against, instance, seeds))
        return Evaluation(EXACT, quotient(sense, objective, other), objective, other)
    options = {"time_limit": problem.exact_seconds, "threads": 1}
    space = problem.space
    if space.quick is not None and math.isfinite(threshold):
        bound = solve(instance, space.quick, formulation=problem.formulation, options=options).bound
        if bound is not None and (most := quotient(sense, objective, bound)) < threshold:
            return Evaluation(BOUNDED, most, objective)
    found = solve(instance, space.exact, formulation=problem.formulation, options=options)
    known = [value for value in (found.objective, *own_values(runs)) if value is not None]
    if not known:
        return Evaluation(FAILED, objective=objective, message="no schedule was found in time")
    reference = max(known) if sense == "max" else min(known)
    limited = str(found.stopped_by) == "time_limit"
    score = quotient(sense, objective, reference)
    return Evaluation(EXACT, score, objective, reference, limited)


def mean_objective(runs: list[SimulationResult]) -> float:
    """Mean objective over the runs; `HindschedError` if one breaks what it must not."""
    for run in runs:
        if run.in_feasible_set and run.violations:
            raise InputError(run.algorithm, run.violations[0], "must not break a constraint")
    return fmean(run.objective for run in runs)


def own_values(runs: list[SimulationResult]) -> list[float]:
    """Objectives of the runs that are schedules of the offline problem."""
    return [run.objective for run in runs if not run.violations]


def quotient(sense: Sense, objective: float, reference: float) -> float:
    """The ratio to a schedule of this objective, at least 1 if the algorithm is not better.

    -inf where the two have no ratio: an algorithm that earns less than nothing.

    Examples
    --------
    >>> quotient("min", 30.0, 10.0), quotient("max", 0.0, 10.0), quotient("max", 0.0, 0.0)
    (3.0, inf, 1.0)
    """
    optimum = optimum_of(sense, reference, reference, "feasible", proof="solver")
    found: Interval = competitive_ratio(optimum, objective).interval
    return -math.inf if found.lower is None else found.lower
