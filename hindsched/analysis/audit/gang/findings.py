"""What is known of a log's schedule, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from hindsched.analysis.audit.gang.gap import Gap, Schedule, find_gap
from hindsched.analysis.audit.gang.impossible import WORDS, Breaches
from hindsched.analysis.audit.gang.verdict import Verdict
from hindsched.analysis.interval import Interval
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.instances.traces.log import Log
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.metrics import gang_metrics
from hindsched.solvers.certificates.certificate import Certificate

MEASURES = (
    "mean_jct", "p50_jct", "p95_jct", "p99_jct", "mean_wait", "makespan", "bounded_slowdown",
    "utilisation", "deadlines_met", "weighted_mean_jct",
)  # fmt: skip
BREACHES_TOLD = 100


@dataclass(frozen=True, repr=False)
class Findings:
    """What is known of a log's schedule.

    Attributes
    ----------
    log, instance
        What was read; the jobs that are judged and the GPUs that there are.
    objective, formulation : str
        ``mean-jct``, ``makespan`` or ``deadlines-met``; how freely the best possible may schedule
        the jobs, with the family's objective.
    breaches : Breaches
        What makes the schedule impossible.
    schedule, policies, best : Schedule
        What the log's scheduler did, what others would have done with the same jobs, and the best
        found of all and of the search.
    certificate, verdict
        Prices that prove the bound; the interval in the units people use.
    seconds, remarks
        Seconds that each step took; what a reader of the verdict should know.
    """

    log: Log
    instance: GangInstance
    objective: str
    formulation: str
    breaches: Breaches
    schedule: Schedule
    policies: tuple[Schedule, ...]
    best: Schedule | None
    certificate: Certificate
    verdict: Verdict
    seconds: Mapping[str, float] = field(hash=False)
    remarks: tuple[str, ...] = ()

    @property
    def is_possible(self) -> bool:
        """Whether nothing shows that the schedule cannot have been."""
        return not self.breaches.listed

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
        rows: list[dict[str, Any]] = []
        for schedule in dict.fromkeys([self.schedule, *self.policies, self.best or self.schedule]):
            value = schedule.solution.objective()
            verdict = verdict_on(
                self.instance, self.objective, value, self.certificate.bound, self.best
            )
            measured = _measures(schedule, elastic=self.formulation.startswith(KINDS[-1]))
            rows.append(
                {"scheduler": schedule.name, "value": verdict.value,
                 "ratio_lower": verdict.ratio.lower, "ratio_upper": verdict.ratio.upper,
                 "pauses": schedule.pauses, **{name: measured[name] for name in MEASURES}}
            )  # fmt: skip
        return rows

    def to_frame(self) -> pd.DataFrame:
        """`rows` as a pandas frame."""
        return pd.DataFrame(self.rows())

    @cached_property
    def gap(self) -> Gap | None:
        """Which jobs and hours hold the gap to the best schedule found; None if there is none."""
        if self.best is None or self.best is self.schedule:
            return None
        return find_gap(self.log, self.schedule, self.best)

    def users(self) -> list[JsonObject]:
        """Jobs, mean completion time, mean wait and GPU-seconds asked for, a row a user."""
        found: Any = _measures(self.schedule, elastic=False)["users"]
        return list(found)

    def jobs(self) -> pd.DataFrame:
        """A row a job with its identifiers and times as the log writes them."""
        frame = self.log.to_frame()
        if self.best is not None:
            slots = self.best.solution.completions - self.instance.submits
            frame["best_found_jct"] = [self.log.seconds(slot) for slot in slots.tolist()]
        return frame

    def to_dict(self) -> JsonObject:
        """The object that ``hindsched audit --json`` prints."""
        capacity = self.log.need_capacity()
        return {
            "log": self.log.source, "format": self.log.format, "sha256": self.log.sha256,
            "rows_read": self.log.rows_read, "jobs": len(self.instance.jobs),
            "jobs_set_aside": int(self.log.others["job"].nunique()),
            "gpus": capacity.gpus, "gpus_said_by": capacity.said_by,
            "formulation": self.formulation, "possible": self.is_possible,
            "sentence": self.sentence(), **self.verdict.to_dict(),
            "bound": self.certificate.bound,
            "best_schedule": None if self.best is None else self.best.name,
            "breaches": dict(self.breaches.counts),
            "breaches_listed": [str(each) for each in self.breaches.listed[:BREACHES_TOLD]],
            "not_checked": list(self.breaches.unchecked),
            "most_gpus_held": self.breaches.peak,
            "notes": self.log.notes.summary(),
            "remarks": list(self.remarks),
            "schedulers": self.rows(),
            "users": self.users(),
            "gap": None if self.gap is None else self.gap.to_dict(),
            "waits": self.log.waits.to_dict("records"),
            "seconds": dict(self.seconds),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<audit of {self.log.source!r}: {self.sentence()}>"


def _measures(schedule: Schedule, *, elastic: bool) -> JsonObject:
    """Numbers of `gang_metrics`; None where the log does not say enough."""
    solution = schedule.solution
    found = gang_metrics(
        solution.instance, schedule.starts, solution.completions, solution.used_gpu_slots
    )
    unknown = {
        "mean_wait": (schedule.starts < 0).any(),
        "utilisation": not schedule.is_known,
        "bounded_slowdown": elastic,  # jobs have no duration of their own
        "deadlines_met": not found["deadlines"],
    }
    return found | dict.fromkeys(name for name, missing in unknown.items() if missing)


def verdict_on(
    instance: GangInstance, objective: str, value: float, bound: float, best: Schedule | None
) -> Verdict:
    """The interval in the units people use."""
    weights = instance.weights
    found = None if best is None else best.solution.objective()
    weighted = bool((weights != weights[0]).any())
    if objective == "makespan":
        return Verdict(objective, value, Interval(bound, found))
    if objective == "mean-jct":
        below = float(sum(instance.exact_weights[0])) / instance.exact_weights[1]
        most = None if found is None else found / below
        return Verdict(objective, value / below, Interval(bound / below, most), weighted)
    unit = 1.0 if weighted else float(weights[0])
    out_of = float(weights[instance.deadlines >= 0].sum())
    if not weighted:  # deadlines are whole
        bound = unit * math.ceil(bound / unit * (1 - 1e-12))
    least = None if found is None else (out_of - found) / unit
    best_possible = Interval(least, (out_of - bound) / unit)
    return Verdict(objective, (out_of - value) / unit, best_possible, weighted, out_of / unit)
