"""Schedules on one footing: what the log's scheduler did, and what others would have done."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import GangInstance, exact, split_formulation
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.profiles import runs_of
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.metrics import gang_metrics
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution

GOALS = {"mean-jct": "completion", "makespan": "makespan", "deadlines-met": "deadlines"}
"""Word of the command line: objective of the family."""
MEASURES = (
    "mean_jct", "p50_jct", "p95_jct", "p99_jct", "mean_wait", "makespan", "bounded_slowdown",
    "utilisation", "deadlines_met",
)  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """When each job started and ended.

    Parameters
    ----------
    name : str
        Whose schedule: ``log``, a policy, or ``best found``.
    instance : GangInstance
        The jobs.
    starts, completions : ndarray of int, shape (jobs,)
        Slots; a start of -1 is not known.
    used : int, optional
        GPU-slots held; None if not known.
    solution : GangSolution, optional
        The same as a solution, where every run is known.
    pauses : bool
        Whether it pauses jobs.
    """

    name: str
    instance: GangInstance = field(repr=False)
    starts: Ints = field(repr=False)
    completions: Ints = field(repr=False)
    used: int | None
    solution: GangSolution | None = field(repr=False)
    pauses: bool = False

    def objective(self, goal: str) -> float:
        """``sum w (C - submit)`` in seconds, the makespan in seconds, or weight of missed jobs."""
        return float(self.exact_objective(goal))

    def exact_objective(self, goal: str) -> Fraction:
        """The objective as a fraction."""
        instance, ends = self.instance, self.completions
        seconds = exact(instance.slot_seconds)
        if goal == "makespan":
            return int(ends.max(initial=0)) * seconds
        weights, below = instance.exact_weights
        if goal == "deadlines":
            missed = (instance.deadlines >= 0) & (ends > instance.deadlines)
            return Fraction(sum(weights[job] for job in np.flatnonzero(missed)), below)
        spans = (ends - instance.submits).tolist()
        total = sum(weight * span for weight, span in zip(weights, spans, strict=True))
        return Fraction(total, below) * seconds

    def measures(self, *, elastic: bool = False) -> JsonObject:
        """Numbers of `MEASURES`; None where the log does not say enough.

        Parameters
        ----------
        elastic : bool
            Whether jobs have no duration of their own, so that no slowdown is defined.
        """
        found = gang_metrics(self.instance, self.starts, self.completions, self.used or 0)
        if (self.starts < 0).any():
            found["mean_wait"] = None
        if self.used is None:
            found["utilisation"] = None
        if elastic:
            found["bounded_slowdown"] = None
        if not found["deadlines"]:
            found["deadlines_met"] = None
        return {name: found[name] for name in (*MEASURES, "weighted_mean_jct", "users")}


def of_solution(name: str, solution: GangSolution) -> Schedule:
    """A schedule that is a solution."""
    rows = solution.rows
    return Schedule(
        name=name,
        instance=solution.instance,
        starts=solution.starts,
        completions=solution.completions,
        used=int(((rows.end - rows.start) * rows.gpus).sum()),
        solution=solution,
        pauses=solution.kind != "non-preemptive",
    )


def of_log(log: Log, instance: GangInstance, formulation: str) -> Schedule:
    """The log's own schedule of the jobs that it is judged by.

    Parameters
    ----------
    log : Log
        The log.
    instance : GangInstance
        Made from the log: its jobs stand in the log's order.
    formulation : str
        By which it is judged.
    """
    jobs = log.jobs
    first = log.schedule.groupby("job", sort=False)["start"].min().reindex(jobs["job"])
    starts = np.where(first.isna(), -1, first.fillna(-1)).astype(np.int64)
    solution, used = None, None
    if log.is_slotwise:
        runs = runs_of(jobs, log.schedule)
        rows = pool_rows(runs["job"], runs["start"], runs["end"], runs["gpus"])
        solution = GangSolution(instance, rows, formulation)
        held = log.schedule
        used = int(((held["end"] - held["start"]) * held["gpus"]).sum())
    completions = jobs["completion"].to_numpy(dtype=np.int64)
    pauses = bool((jobs["runs"] > 1).any() or not log.is_slotwise)
    return Schedule("log", instance, starts, completions, used, solution, pauses)


def goal_of(objective: str) -> str:
    """The family's word for an objective of the command line."""
    return GOALS[objective]


def formulation_of(kind: str, objective: str) -> str:
    """The family's formulation of a kind and an objective of the command line."""
    goal = GOALS[objective]
    return kind if goal == GOALS["mean-jct"] else f"{kind},{goal}"


def kind_of(formulation: str) -> str:
    """How freely a formulation lets jobs be scheduled."""
    return split_formulation(formulation)[0]
