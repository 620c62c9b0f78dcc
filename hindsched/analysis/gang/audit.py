"""Judging a schedule that somebody else made: whether it can have been, and how good it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from hindsched.analysis.gang.folder import write_folder
from hindsched.analysis.gang.judgement import BEATS_BOUND, Judgement, verdict_on
from hindsched.analysis.gang.page import render_page
from hindsched.analysis.gang.schedules import (
    GOALS,
    Schedule,
    formulation_of,
    goal_of,
    kind_of,
    of_log,
    of_solution,
)
from hindsched.analysis.gang.simple_bounds import simple_bound
from hindsched.analysis.gang.violations import Breach, Breaches, find_breaches
from hindsched.errors import InputError
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.instances.traces.log import Log
from hindsched.limits import OutOfTime, seconds_before
from hindsched.limits import time_limit as stopped_after
from hindsched.online.gang.replay import POLICIES, replay
from hindsched.solvers.door.api import compile_replays, compile_solve, solve

if TYPE_CHECKING:
    from hindsched.solvers.door.result import Result

Say = Callable[[str], None]
DEFAULT_SECONDS = 60.0
FAMILY = "gang"
BY_PRICES, BY_RULE = "prices", "rule"
SAME = 1e-9
"""Relative difference below which prices are preferred to a rule: they are a file."""


class Audit(Judgement):
    """A judgement that shows itself as a page and as a folder."""

    def to_html(self) -> str:
        """The audit as one self-contained page."""
        return render_page(self)

    def write(self, folder: str | Path) -> list[Path]:
        """Write page, tables, pictures, schedules and certificate to a folder."""
        return write_folder(self, folder)

    def _repr_html_(self) -> str:
        frame = self.to_frame()[["scheduler", "value", "ratio_lower", "ratio_upper"]]
        return f"<p><strong>{escape(self.sentence())}</strong></p>{frame.to_html(index=False)}"


def audit_log(
    log: Log,
    *,
    objective: str = "mean-jct",
    formulation: str | None = None,
    policies: Sequence[str] | None = None,
    time_limit: float | None = None,
    say: Say | None = None,
) -> Audit:
    """Judge the schedule of a log.

    Parameters
    ----------
    log : Log
        The log; somebody must have said its capacity.
    objective : {"mean-jct", "makespan", "deadlines-met"}
        What counts.
    formulation : {"non-preemptive", "preemptive", "elastic"}, optional
        How freely the best possible may schedule; by default as freely as the log's scheduler did.
    policies : sequence of str, optional
        Policies to replay on the same jobs; all if None.
    time_limit : float, optional
        Seconds for the bound and the search together; `DEFAULT_SECONDS` if None. In a command that
        has this limit as a whole, policies for which no time is left are not replayed.
    say : callable, optional
        Is told what is being done.

    Raises
    ------
    InputError
        For an unknown word, a log without capacity, or a formulation that the log is too free for.
    """
    tell = say or (lambda text: None)
    if objective not in GOALS:
        raise InputError("objective", objective, f"must be one of {', '.join(GOALS)}")
    if time_limit is None:
        time_limit = DEFAULT_SECONDS
    if not 0 <= time_limit < float("inf"):
        raise InputError("time_limit", time_limit, "must be a number of seconds, at least 0")
    kind = _kind(log, formulation)
    chosen = tuple(POLICIES) if policies is None else tuple(policies)
    for name in chosen:
        if name not in POLICIES:
            raise InputError("policy", name, f"must be one of {', '.join(POLICIES)}")
    compile_solve(FAMILY)
    compile_replays(FAMILY)
    clock = _Clock()
    instance = instance_of_log(log, formulation=kind)
    if objective == "deadlines-met" and not (instance.deadlines >= 0).any():
        raise InputError("objective", objective, "no job of the log has a deadline")
    full = formulation_of(kind, objective)
    schedule = of_log(log, instance, full)
    tell(f"{len(instance.jobs)} jobs on {instance.total_gpus} GPUs: what is impossible")
    breaches = find_breaches(log)
    clock.lap("checks")
    replayed: list[Schedule] = []
    remarks = _remarks(log, instance)
    if kind == KINDS[-1]:
        if policies:
            raise InputError("policy", ", ".join(policies), "widths changed: no policy is defined")
    else:
        late: list[str] = []
        for name in chosen:
            tell(f"what {name} would have done")
            seconds = _seconds_for_policies(time_limit)
            if seconds == 0:
                late.append(name)
                continue
            try:
                with stopped_after(seconds):
                    replayed.append(_replayed(instance, name, kind, objective))
            except OutOfTime:
                late.append(name)
        if late:
            remarks.append(f"Not replayed, for no time was left: {', '.join(late)}.")
    clock.lap("policies")
    tell(f"bound and search ({full})")
    bound, bound_by, certificate = simple_bound(instance, full), BY_RULE, None
    result = _solved(instance, full, time_limit)
    if result is not None and result.certificate is not None:
        certificate = result.certificate
        if certificate.bound >= bound * (1 - SAME):
            bound, bound_by = float(certificate.bound), BY_PRICES
    clock.lap("bound")
    candidates = [item for item in replayed if not item.pauses or kind != KINDS[0]]
    if result is not None and result.solution is not None:
        candidates.insert(0, of_solution("best found", result.solution))  # type: ignore[arg-type]
    goal = goal_of(objective)
    value = schedule.objective(goal)
    if value < bound * (1 - SAME):
        breaches = _beats(breaches, log, value, bound)
    if not breaches.total:
        candidates.insert(0, schedule)
    best = min(candidates, key=lambda item: item.exact_objective(goal), default=None)
    return Audit(
        log=log,
        instance=instance,
        objective=objective,
        formulation=full,
        breaches=breaches,
        schedule=schedule,
        policies=tuple(replayed),
        best=best,
        certificate=certificate,
        bound=bound,
        bound_by=bound_by,
        verdict=verdict_on(instance, objective, value, bound, best),
        seconds=clock.laps,
        remarks=tuple(remarks),
    )


def _kind(log: Log, formulation: str | None) -> str:
    """How freely the log is judged: never less freely than it was scheduled."""
    if formulation is None:
        return log.formulation
    if formulation not in KINDS:
        raise InputError("formulation", formulation, f"must be one of {', '.join(KINDS)}")
    if KINDS.index(formulation) < KINDS.index(log.formulation):
        rule = f"the log's own schedule is {log.formulation}: it cannot be judged by less freedom"
        raise InputError("formulation", formulation, rule)
    return formulation


def _solved(instance: GangInstance, formulation: str, time_limit: float) -> Result | None:
    """Bound and schedule by prices and search, if there is time for them."""
    if not time_limit:
        return None
    return solve(instance, formulation=formulation, time_limit=time_limit)


def _seconds_for_policies(limit: float) -> float | None:
    """Seconds until bound and search need what a command's limit leaves; None if it has none."""
    left = seconds_before(limit / 2)
    return left if limit and math.isfinite(left) else None


def _replayed(instance: GangInstance, name: str, kind: str, objective: str) -> Schedule:
    pauses = POLICIES[name].preemptive
    strictest = kind if not pauses or kind != KINDS[0] else KINDS[1]
    made = of_solution(name, replay(instance, name, formulation_of(strictest, objective)))
    return replace(made, pauses=pauses)


def _beats(breaches: Breaches, log: Log, value: float, bound: float) -> Breaches:
    """The objective itself is impossible: it is below what is proven of every schedule."""
    breach = Breach(BEATS_BOUND, 0, "all jobs", log.stamp(0), "", value, bound)
    counts = {**breaches.counts, BEATS_BOUND: 1}
    return Breaches((*breaches.listed, breach), counts, breaches.unchecked, breaches.peak)


def _remarks(log: Log, instance: GangInstance) -> list[str]:
    remarks = list(log.facts)
    aside = log.others["job"].nunique()
    if aside:
        verb = "s are" if aside > 1 else " is"
        remarks.append(
            f"{aside} job{verb} not judged beside the {len(instance.jobs)} that are: the scheduler "
            "served them too, so the ratio may blame it for room that they took."
        )
    if kind_of(log.formulation) == KINDS[-1]:
        remarks.append(
            "Widths changed, so jobs are known by the GPU-seconds that they held: the bound is for "
            "schedules that give each job the same GPU-seconds, on any number of GPUs and with "
            "linear speed-up. Real speed-up is less, and at another width a job needs others."
        )
    if not log.is_slotwise:
        remarks.append(
            "Of some jobs only start and end are known, and their work is less than the time "
            "between: they are judged by their completions, and capacity cannot be checked slot by "
            "slot."
        )
    if "lost" in log.schedule and log.schedule["lost"].any():
        lost = log.schedule[log.schedule["lost"]]
        slots = int(((lost["end"] - lost["start"]) * lost["gpus"]).sum())
        held = f"{log.seconds(slots):,} GPU-seconds"
        remarks.append(f"Runs whose work was lost: {len(lost)}. They held {held} for nothing.")
    return remarks


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._since = now - self._since, now
