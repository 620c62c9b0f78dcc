"""What a candidate is worth: the algorithm's run against the best schedule, in a race.

The algorithm runs first. Where a bound shows that the ratio cannot reach what the search asks for,
or where the run itself meets the bound, no optimum is sought; else the space's exact method is
asked. A score is the algorithm's objective against a schedule that exists, so that it never exceeds
the worst case; the witness's own schedules are checked once more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from hindsched.analysis.ratio import Interval, Sense, competitive_ratio, optimum_of
from hindsched.analysis.worst.problem import Problem, Runner
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import Instance, family_module, has_module
from hindsched.json_types import JsonObject
from hindsched.online.simulator import SimulationResult
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import StoppedBy

EXACT, BOUNDED, INVALID, FAILED = "exact", "bounded", "invalid", "failed"
"""How a candidate's race ended: ratio to a schedule; bound too low; no member; the run failed."""
SAME = 1e-6
"""Relative distance to a bound at which a schedule is the best one."""


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
        Whether the exact method was cut by its limit of work.
    message : str, optional
        Why the run failed.
    """

    stage: str
    score: float = -math.inf
    objective: float | None = None
    reference: float | None = None
    limited: bool = False
    message: str | None = None


def evaluate(problem: Problem, data: JsonObject, threshold: float = -math.inf) -> Evaluation:
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
    objective, own = _values(problem, problem.algorithm, instance)
    sense = instance.sense
    if problem.against is not None:
        other, _ = _values(problem, problem.against, instance)
        return Evaluation(EXACT, quotient(sense, objective, other), objective, other)
    sign = 1.0 if sense == "max" else -1.0

    def cannot_win(bound: float | None) -> Evaluation | None:
        """The race's end where no schedule beyond the bound is known to exist."""
        if bound is None or not math.isfinite(threshold):
            return None
        most = quotient(sense, objective, bound)
        return Evaluation(BOUNDED, most, objective) if most < threshold else None

    if lost := cannot_win(instance.certain_bound()):
        return lost
    bound, value, limited = _reference(problem, instance, objective / max(threshold, 1.0))
    if bound is not None:
        if lost := cannot_win(bound):
            return lost
        if own is not None and sign * (bound - own) <= SAME * abs(bound):
            return Evaluation(EXACT, quotient(sense, objective, own), objective, own)
    if value is None:
        found = _solved(problem, instance, problem.space.exact)
        value, limited = found.objective, found.stopped_by is StoppedBy.ITERATION_LIMIT
    known = [one for one in (value, own) if one is not None]
    if not known:
        return Evaluation(FAILED, objective=objective, message="no schedule was found in time")
    reference = sign * max(sign * one for one in known)
    score = quotient(sense, objective, reference)
    return Evaluation(EXACT, score, objective, reference, limited)


def _values(problem: Problem, runner: Runner, instance: Instance) -> tuple[float, float | None]:
    """An algorithm's mean objective, and the best one of its runs that are offline schedules."""
    short = _short_cuts(instance.family)
    if short is not None and runner.is_registered:
        value = short.value_of_run(instance, runner.name, problem.formulation, runner.settings)
        if value is not None:
            return value, value
    runs = problem.runs(runner, instance, range(problem.seeds))
    own = [run.objective for run in runs if not run.violations]
    best = max if instance.sense == "max" else min
    return mean_objective(runs), best(own, default=None)


def _reference(
    problem: Problem, instance: Instance, most: float
) -> tuple[float | None, float | None, bool]:
    """A bound in little time, and the best schedule where that comes with it."""
    space = problem.space
    short = _short_cuts(instance.family)
    if short is not None:
        found = short.value_of_reference(instance, space.exact, problem.formulation, most)
        if found is not None:
            bound, value = found
            return bound, None if math.isinf(value) else value, False
    if space.quick is None:
        return None, None, False
    return _solved(problem, instance, space.quick).bound, None, False


def _solved(problem: Problem, instance: Instance, method: str) -> Result:
    """An offline answer that is the same whatever else the machine does."""
    options = {"work_limit": problem.exact_work, "threads": 1}
    return solve(instance, method, formulation=problem.formulation, options=options)


@cache
def _short_cuts(family: str) -> Any:
    """The family's runs and references in numbers alone, if it has them."""
    if not has_module("solvers.families", family, "in_numbers"):
        return None
    return family_module("solvers.families", family, "in_numbers")


def mean_objective(runs: list[SimulationResult]) -> float:
    """Mean objective over the runs; `HindschedError` if one breaks what it must not."""
    for run in runs:
        if run.in_feasible_set and run.violations:
            raise InputError(run.algorithm, run.violations[0], "must not break a constraint")
    return fmean(run.objective for run in runs)


def quotient(sense: Sense, objective: float, reference: float) -> float:
    """The ratio to a schedule of this objective, at least 1 if the algorithm is not better.

    -inf where the two have no ratio.

    Examples
    --------
    >>> quotient("min", 30.0, 10.0), quotient("max", 0.0, 10.0), quotient("max", 0.0, 0.0)
    (3.0, inf, 1.0)
    """
    optimum = optimum_of(sense, reference, reference, "feasible", proof="solver")
    found: Interval = competitive_ratio(optimum, objective).interval
    return -math.inf if found.lower is None else found.lower
