"""Judging a schedule that somebody else made: whether it can have been, and how good it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.gang.breaches import Breach, Breaches, find_breaches
from hindsched.analysis.gang.gap import Gap, find_gap
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
from hindsched.analysis.gang.verdict import Verdict
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, has_module
from hindsched.instances.gang.from_log import instance_of_log
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.instances.logs import Log
from hindsched.online.gang.replay import POLICIES, replay
from hindsched.solvers.api import solve

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.solvers.certificate import Certificate
    from hindsched.solvers.result import Result

Say = Callable[[str], None]
BEATS_BOUND = "better than possible"
WORDS = {
    "capacity": "more GPUs held than there are",
    "server": "more GPUs held on a server than it has",
    "before submission": "started before submission",
    "too short": "ran too short",
    BEATS_BOUND: "better than the best possible",
}
DEFAULT_SECONDS = 60.0
BREACHES_TOLD = 100
BY_PRICES, BY_RULE = "prices", "rule"
SAME = 1e-9
"""Relative difference below which prices are preferred to a rule: they are a file."""


@dataclass(frozen=True)
class Audit:
    """What is known of a log's schedule.

    Parameters
    ----------
    log : Log
        What was read.
    instance : GangInstance
        The jobs that are judged and the GPUs that there are.
    objective : str
        ``mean-jct``, ``makespan`` or ``deadlines-met``.
    formulation : str
        How freely the best possible may schedule the jobs, with the family's objective.
    breaches : Breaches
        What makes the schedule impossible.
    schedule : Schedule
        What the log's scheduler did.
    policies : tuple of Schedule
        What others would have done with the same jobs.
    best : Schedule, optional
        Best schedule found, of all above and of the search.
    certificate : Certificate, optional
        Prices that prove a bound: the one reported, unless a rule gives a better one.
    bound : float
        No schedule has a smaller objective of the formulation.
    bound_by : {"prices", "rule"}
        Whether the certificate's prices prove it, or a rule that needs none (`simple_bound`).
    verdict : Verdict
        The interval in the units people use.
    seconds : dict
        Seconds that each step took.
    remarks : tuple of str
        What a reader of the verdict should know.
    """

    log: Log = field(repr=False)
    instance: GangInstance = field(repr=False)
    objective: str
    formulation: str
    breaches: Breaches = field(repr=False)
    schedule: Schedule = field(repr=False)
    policies: tuple[Schedule, ...] = field(repr=False)
    best: Schedule | None = field(repr=False)
    certificate: Certificate | None = field(repr=False)
    bound: float
    bound_by: str
    verdict: Verdict
    seconds: Mapping[str, float] = field(repr=False)
    remarks: tuple[str, ...] = field(repr=False)

    @property
    def is_possible(self) -> bool:
        """Whether nothing shows that the schedule cannot have been."""
        return self.breaches.total == 0

    @property
    def is_elastic(self) -> bool:
        """Whether jobs are known by their GPU-seconds only."""
        return kind_of(self.formulation) == KINDS[-1]

    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.is_possible:
            return self.verdict.sentence()
        kinds = ", ".join(
            f"{WORDS[kind]} ({count} time{'s' * (count > 1)})"
            for kind, count in self.breaches.counts.items()
        )
        return f"This schedule is impossible: {kinds}. As logged: {self.verdict.sentence()}"

    def rows(self) -> list[dict[str, Any]]:
        """Measures of the log's schedule, of the policies and of the best found."""
        found = [self.schedule, *self.policies]
        if self.best is not None and self.best not in found:
            found.append(self.best)
        rows: list[dict[str, Any]] = []
        for schedule in found:
            verdict = self.judge(schedule)
            low, high = verdict.ratio
            measured = schedule.measures(elastic=self.is_elastic)
            rows.append(
                {
                    "scheduler": schedule.name,
                    "value": verdict.value,
                    "ratio_lower": low,
                    "ratio_upper": high,
                    "pauses": schedule.pauses,
                    **{key: value for key, value in measured.items() if key != "users"},
                }
            )
        return rows

    def judge(self, schedule: Schedule) -> Verdict:
        """The verdict on another schedule of the same jobs."""
        value = schedule.objective(goal_of(self.objective))
        return _verdict(self.instance, self.objective, value, self.bound, self.best)

    @cached_property
    def gap(self) -> Gap | None:
        """Which jobs and hours hold the gap to the best schedule found; None if there is none."""
        if self.best is None or self.best is self.schedule:
            return None
        return find_gap(self.log, self.schedule, self.best)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``hindsched audit --json`` prints."""
        capacity = self.log.need_capacity()
        breaches = self.breaches
        return {
            "log": self.log.source,
            "format": self.log.format,
            "sha256": self.log.sha256,
            "rows_read": self.log.rows_read,
            "jobs": len(self.instance.jobs),
            "jobs_set_aside": int(self.log.others["job"].nunique()),
            "gpus": capacity.gpus,
            "gpus_said_by": capacity.said_by,
            "formulation": self.formulation,
            "possible": self.is_possible,
            "sentence": self.sentence(),
            **self.verdict.to_dict(),
            "bound": self.bound,
            "bound_by": self.bound_by,
            "best_schedule": None if self.best is None else self.best.name,
            "breaches": dict(breaches.counts),
            "breaches_listed": [str(breach) for breach in breaches.listed[:BREACHES_TOLD]],
            "not_checked": list(breaches.unchecked),
            "most_gpus_held": breaches.peak,
            "notes": self.log.notes.summary(),
            "remarks": list(self.remarks),
            "schedulers": self.rows(),
            "users": self.schedule.measures(elastic=self.is_elastic)["users"],
            "gap": None if self.gap is None else self.gap.to_dict(),
            "waits": [asdict(waits) for waits in self.log.waits],
            "seconds": dict(self.seconds),
        }

    def to_html(self) -> str:
        """The audit as one self-contained page."""
        from hindsched.analysis.gang.page import render_page

        return render_page(self)

    def write(self, folder: str | Path) -> list[Path]:
        """Write page, tables, pictures, schedules and certificate to a folder."""
        from hindsched.analysis.gang.folder import write_folder

        return write_folder(self, folder)

    def _repr_html_(self) -> str:
        frame = self.to_frame()[["scheduler", "value", "ratio_lower", "ratio_upper"]]
        return f"<p><strong>{escape(self.sentence())}</strong></p>{frame.to_html(index=False)}"

    def __repr__(self) -> str:
        return f"<audit of {self.log.source!r}: {self.sentence()}>"

    def to_frame(self) -> pd.DataFrame:
        """`rows` as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def jobs(self) -> pd.DataFrame:
        """A row a job with its identifiers and times as the log writes them."""
        frame = self.log.to_frame()
        if self.best is not None:
            slots = self.best.completions - self.instance.submits
            frame["best_found_jct"] = [self.log.seconds(slot) for slot in slots.tolist()]
        return frame


def audit_log(
    log: Log,
    *,
    objective: str = "mean-jct",
    formulation: str | None = None,
    policies: Sequence[str] | None = None,
    time_limit: float = DEFAULT_SECONDS,
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
    time_limit : float
        Seconds for the bound and the search together.
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
    if not 0 <= time_limit < float("inf"):
        raise InputError("time_limit", time_limit, "must be a number of seconds, at least 0")
    kind = _kind(log, formulation)
    chosen = tuple(POLICIES) if policies is None else tuple(policies)
    for name in chosen:
        if name not in POLICIES:
            raise InputError("policy", name, f"must be one of {', '.join(POLICIES)}")
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
        for name in chosen:
            tell(f"what {name} would have done")
            replayed.append(_replayed(instance, name, kind, objective))
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
        verdict=_verdict(instance, objective, value, bound, best),
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
    """Bound and schedule by prices and search, where the family has methods for them."""
    known = instance.family in FAMILIES
    if not (known and time_limit and has_module("solvers.methods", instance.family, "methods")):
        return None
    return solve(instance, formulation=formulation, time_limit=time_limit)


def _replayed(instance: GangInstance, name: str, kind: str, objective: str) -> Schedule:
    pauses = POLICIES[name].preemptive
    strictest = kind if not pauses or kind != KINDS[0] else KINDS[1]
    made = of_solution(name, replay(instance, name, formulation_of(strictest, objective)))
    return replace(made, pauses=pauses)


def _verdict(
    instance: GangInstance,
    objective: str,
    value: float,
    bound: float | None,
    best: Schedule | None,
) -> Verdict:
    """The interval in the units people use."""
    weights = instance.weights
    goal = goal_of(objective)
    found = None if best is None else best.objective(goal)
    weighted = bool((weights != weights[0]).any())
    if objective == "makespan":
        return Verdict(objective, value, bound, found)
    if objective == "mean-jct":
        below = float(sum(instance.exact_weights[0])) / instance.exact_weights[1]
        least, most = (None if end is None else end / below for end in (bound, found))
        return Verdict(objective, value / below, least, most, weighted)
    due = instance.deadlines >= 0
    unit = 1.0 if weighted else float(weights[0])
    out_of = float(weights[due].sum())
    least, most = (None if end is None else (out_of - end) / unit for end in (found, bound))
    return Verdict(objective, (out_of - value) / unit, least, most, weighted, out_of / unit)


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
