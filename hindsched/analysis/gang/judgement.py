"""What is known of a schedule that somebody else made, apart from how it is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hindsched.analysis.gang.gap import Gap, find_gap
from hindsched.analysis.gang.schedules import Schedule, goal_of, kind_of
from hindsched.analysis.gang.verdict import Verdict
from hindsched.analysis.gang.violations import Breaches
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.instances.traces.log import Log
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.solvers.certificates.certificate import Certificate

BEATS_BOUND = "better than possible"
WORDS = {
    "capacity": "more GPUs held than there are",
    "server": "more GPUs held on a server than it has",
    "before submission": "started before submission",
    "too short": "ran too short",
    BEATS_BOUND: "better than the best possible",
}
BREACHES_TOLD = 100
ROUNDING = 1e-12


@dataclass(frozen=True)
class Judgement:
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
        return verdict_on(self.instance, self.objective, value, self.bound, self.best)

    @cached_property
    def gap(self) -> Gap | None:
        """Which jobs and hours hold the gap to the best schedule found; None if there is none."""
        if self.best is None or self.best is self.schedule:
            return None
        return find_gap(self.log, self.schedule, self.best)

    def to_dict(self) -> JsonObject:
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


def verdict_on(
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
    if bound is not None and not weighted:  # deadlines are whole
        bound = unit * math.ceil(bound / unit * (1 - ROUNDING))
    least, most = (None if end is None else (out_of - end) / unit for end in (found, bound))
    return Verdict(objective, (out_of - value) / unit, least, most, weighted, out_of / unit)
