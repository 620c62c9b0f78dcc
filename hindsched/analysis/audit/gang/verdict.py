"""The verdict in words: how far a schedule is from the best possible, and where it lost time.

A job holds what it ends later than in the best schedule found; jobs that end sooner there are not
counted against it. An hour holds the GPU-seconds that stood idle while jobs were waiting for GPUs.
(``hindsched explain`` splits the gap to the *bound* at its prices.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.audit.gang.impossible import held_rows
from hindsched.analysis.interval import Interval, rounded_up
from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import SECOND
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import GangSolution, use_over_time

FEW, MOST = 10, 25  # jobs of the sentence; jobs and hours of the JSON data
ROUNDING = 1e-9
WORDS = {
    "mean-jct": ("mean JCT", "weighted mean JCT"),
    "makespan": ("makespan", "makespan"),
    "deadlines-met": ("deadlines met", "weight of deadlines met"),
}


@dataclass(frozen=True)
class Verdict:
    """A schedule's value and the interval of the best possible, in the units people use."""

    objective: str  # mean-jct, makespan or deadlines-met
    value: float  # of the schedule judged: seconds, or deadlines (their weight, if weights differ)
    best: Interval  # the best possible lies there
    weighted: bool = False  # whether jobs have different weights
    out_of: float | None = None  # all deadlines

    @property
    def ratio(self) -> Interval:
        """Within which factors of the best possible the value lies."""
        low, high = self.best.lower, self.best.upper
        if self.objective == "deadlines-met":
            return Interval(_quotient(low, self.value), _quotient(high, self.value))
        return Interval(_quotient(self.value, high), _quotient(self.value, low))

    @property
    def word(self) -> str:
        """What is measured."""
        return WORDS[self.objective][self.weighted]

    def sentence(self) -> str:
        """The verdict in one sentence."""
        low, high = self.best.lower, self.best.upper
        if self.objective == "deadlines-met":
            met = f"Your scheduler met {self.value:g} of {self.out_of:g} deadlines"
            met += " by weight" * self.weighted
            if low == high == self.value:
                return f"{met}: nobody could have met more."
            best = f"{high:g}" if low == high else f"between {low or 0:g} and {high:g}"
            return f"{met}; the best possible meets {best}."
        assert low is not None
        text, least = f"Your scheduler's {self.word} is {seconds(self.value)} s", seconds(low, -1)
        if self.value < low * (1 - ROUNDING):
            return f"{text}; no schedule can be below {least} s."
        if Interval(low, self.value).is_point:
            return f"{text}: that is optimal (no schedule can be below {least} s)."
        if self.best.is_point and high is not None:
            factor = rounded_up(self.value / low)
            return f"{text}; the best possible is {seconds(high)} s: you take {factor} times that."
        most = "it" if high is None else f"{seconds(high, 1)} s"
        between = f"the best possible lies between {least} and {most}"
        return f"{text}; {between}: you are within {self.ratio} of optimal."

    def to_dict(self) -> JsonObject:
        """JSON data."""
        return {
            "objective": self.objective, "value": self.value, "out_of": self.out_of,
            "best_possible": self.best.to_dict(), "ratio": self.ratio.to_dict(),
        }  # fmt: skip


def seconds(value: float, outward: int = 0) -> str:
    """Seconds for people, four digits at least; rounded down (-1), up (1) or to the nearest."""
    places = 0 if abs(value) >= 1000 else max(0, 3 - int(math.log10(max(abs(value), 1e-3))))
    modes = {-1: ROUND_FLOOR, 0: ROUND_HALF_EVEN, 1: ROUND_CEILING}
    rounded = Decimal(repr(float(value))).scaleb(places).to_integral_value(modes[outward])
    return f"{rounded.scaleb(-places):,.{places}f}"


def _quotient(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or below == 0:
        return 1.0 if above == below == 0 else None
    return above / below


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each job started and ended, and by whom."""

    name: str  # log, a policy, or best found
    solution: GangSolution = field(repr=False)  # where only ends are known, work stands before them
    pauses: bool = False
    starts: Ints | None = field(default=None, repr=False)  # -1 unknown; None: the solution's
    is_known: bool = True  # what was held in every slot


@dataclass(frozen=True)
class Gap:
    """Where time was lost."""

    best: str  # whose schedule the jobs are compared with
    # A row a job, the largest loss first: job, row, submit, start, end, gpus, duration, jct,
    # best_jct, later, share; times as the log writes them, spans in seconds.
    jobs: pd.DataFrame = field(repr=False)
    # A row an hour with GPUs idle while jobs waited, the worst first: begin, end, idle
    # (GPU-seconds), share. Empty where it is not known when jobs held GPUs.
    hours: pd.DataFrame = field(repr=False)

    def sentence(self) -> str:
        """Which jobs and hours lose how much."""
        losing, against = int((self.jobs["later"] > 0).sum()), f"({self.best})"
        if not losing:
            return f"No job ends later than in the best schedule found {against}."
        few = min(FEW, losing)
        text = (
            f"{losing} of {len(self.jobs)} jobs end later than in the best schedule found "
            f"{against}; {few} of them hold {self.jobs['share'].head(few).sum():.0%} of the loss."
        )
        worst: Any
        for worst in self.hours.head(1).itertuples():
            text += (
                f" {self.hours['idle'].sum():,.0f} GPU-seconds stood idle while jobs waited, most "
                f"from {worst.begin} to {worst.end} ({worst.share:.1%})."
            )
        return text

    def to_dict(self) -> JsonObject:
        """JSON data with the largest losses."""
        losing = self.jobs[self.jobs["later"] > 0]
        return {
            "against": self.best, "sentence": self.sentence(),
            "jobs": losing.head(MOST).to_dict("records"),
            "hours": self.hours.head(MOST).to_dict("records"),
        }  # fmt: skip


def find_gap(log: Log, schedule: Schedule, best: Schedule) -> Gap:
    """Compare a log's schedule with the best one found."""
    ends, instance = best.solution.completions, schedule.solution.instance
    later = schedule.solution.completions - ends
    lost = np.maximum(later, 0) * instance.weights
    kept = log.to_frame()[["job", "row", "submit", "start", "end", "gpus", "duration", "jct"]]
    table = kept.assign(
        best_jct=list(map(log.seconds, ends - instance.submits)),
        later=list(map(log.seconds, later)),
        share=lost / max(float(lost.sum()), 1e-300),
    )
    order = np.argsort(-lost, kind="stable")
    return Gap(best.name, table.iloc[order].reset_index(drop=True), _idle_hours(log, schedule))


def _idle_hours(log: Log, schedule: Schedule) -> pd.DataFrame:
    """GPU-seconds idle while jobs waited, by full hour of the log's clock."""
    columns = ["begin", "end", "idle", "share"]
    if not schedule.is_known:
        return pd.DataFrame(columns=columns)
    jobs, rows, held = log.jobs, schedule.solution.rows, held_rows(log)
    first, last = int(jobs["submit"].min()), int(jobs["completion"].max())
    unit, step = SECOND // log.slots_per_second, 3600 * SECOND
    begin, end = log.microseconds(first) // step, -(-log.microseconds(last) // step)
    edges = (np.arange(begin, end + 1) * step - log.zero) // unit
    curves = (
        use_over_time(held["start"], held["end"], held["gpus"]),
        use_over_time(jobs["submit"], jobs["completion"], jobs["gpus"]),
        use_over_time(rows.start, rows.end, rows.gpus),
    )
    cut = np.unique(np.concatenate([edges, *(curve.index for curve in curves)]))
    cut = cut[(cut >= first) & (cut <= last)]
    used, present, running = (c.reindex(cut, method="ffill").fillna(0) for c in curves)
    free = (schedule.solution.instance.total_gpus - used).clip(lower=0)
    idle = np.minimum(free, (present - running).clip(lower=0))[:-1] * np.diff(cut)
    found = idle.groupby(np.searchsorted(edges, cut[:-1], side="right") - 1).sum()
    found = found[found > 0].sort_values(ascending=False, kind="stable")
    hours = [
        (log.stamp(edges[hour]), log.stamp(edges[hour + 1]), lost / log.slots_per_second)
        for hour, lost in found.items()
    ]
    return pd.DataFrame(hours, columns=columns[:3]).assign(share=found.to_numpy() / found.sum())
