"""Which jobs and which hours hold the gap between a log's schedule and the best one found.

A job holds what it ends later than in the best schedule found; jobs that end sooner there are not
counted against it. An hour holds the GPU-seconds that stood idle while jobs were waiting for GPUs.
(Where there is a certificate, ``hindsched explain`` splits the gap to the *bound* at its prices.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hindsched.analysis.gang.schedules import Schedule
from hindsched.analysis.gang.violations import held_rows, use_over_time
from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import NANO
from hindsched.json_types import JsonObject

HOUR_SECONDS = 3600
MOST_STRETCHES = 20_000
"""Beyond so many hours idle GPUs are added up by day, beyond so many days by week."""
FEW = 10


@dataclass(frozen=True)
class Gap:
    """Where time was lost.

    Parameters
    ----------
    best : str
        Whose schedule the jobs are compared with.
    jobs : DataFrame
        A row a job, the largest loss first: ``job, row, submit, start, end, gpus, duration, jct,
        best_jct, later, share``; times as the log writes them, spans in seconds.
    hours : DataFrame
        A row an hour with GPUs idle while jobs waited, the worst first: ``begin, end, idle``
        (GPU-seconds) and its ``share``. Empty where it is not known when jobs held GPUs.
    """

    best: str
    jobs: pd.DataFrame = field(repr=False)
    hours: pd.DataFrame = field(repr=False)

    def sentence(self) -> str:
        """Which jobs and hours lose how much."""
        losing = int((self.jobs["later"] > 0).sum())
        if not losing:
            return f"No job ends later than in the best schedule found ({self.best})."
        few = min(FEW, losing)
        share = self.jobs["share"].head(few).sum()
        text = (
            f"{losing} of {len(self.jobs)} jobs end later than in the best schedule found "
            f"({self.best}); {few} of them hold {share:.0%} of the loss."
        )
        if len(self.hours):
            first = self.hours.iloc[0]
            text += (
                f" {self.hours['idle'].sum():,.0f} GPU-seconds stood idle while jobs waited, most "
                f"from {first['begin']} to {first['end']} ({first['share']:.1%})."
            )
        return text

    def top_jobs(self, most: int) -> list[JsonObject]:
        """The jobs that lose most."""
        return _records(self.jobs[self.jobs["later"] > 0].head(most))

    def top_hours(self, most: int) -> list[JsonObject]:
        """The hours with most GPU-seconds idle while jobs waited."""
        return _records(self.hours.head(most))

    def to_dict(self, most: int = 25) -> JsonObject:
        """JSON data with the largest losses."""
        return {
            "against": self.best,
            "sentence": self.sentence(),
            "jobs": self.top_jobs(most),
            "hours": self.top_hours(most),
        }


def _records(table: pd.DataFrame) -> list[JsonObject]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]


def find_gap(log: Log, schedule: Schedule, best: Schedule) -> Gap:
    """Compare a log's schedule with the best one found."""
    instance = schedule.instance
    later = schedule.completions - best.completions
    lost = np.maximum(later, 0) * instance.weights
    total = float(lost.sum())
    frame = log.to_frame()
    kept = frame[["job", "row", "submit", "start", "end", "gpus", "duration", "jct"]]
    spans = (best.completions - instance.submits).tolist()
    table = kept.assign(
        best_jct=[log.seconds(slots) for slots in spans],
        later=[log.seconds(slots) for slots in later.tolist()],
        share=lost / total if total > 0 else 0.0,
    )
    order = np.argsort(-lost, kind="stable")
    return Gap(best.name, table.iloc[order].reset_index(drop=True), _hours(log, schedule))


def _hours(log: Log, schedule: Schedule) -> pd.DataFrame:
    """GPU-seconds idle while jobs waited, by hour of the log's clock."""
    columns = ["begin", "end", "idle", "share"]
    if schedule.solution is None:
        return pd.DataFrame(columns=columns)
    jobs, rows, room = log.jobs, schedule.solution.rows, schedule.instance.total_gpus
    first, last = int(jobs["submit"].min()), int(jobs["completion"].max())
    held = held_rows(log)
    curves = [
        use_over_time(*(held[name].to_numpy() for name in ("start", "end", "gpus"))),
        use_over_time(*(jobs[name].to_numpy() for name in ("submit", "completion", "gpus"))),
        use_over_time(rows.start, rows.end, rows.gpus),
    ]
    edges = hour_edges(log, first, last)
    cut = np.unique(np.concatenate([edges, *(moments for moments, _ in curves)]))
    cut = cut[(cut >= first) & (cut <= last)]
    begin, length = cut[:-1], np.diff(cut)
    used, present, running = (_at(curve, begin) for curve in curves)
    idle = np.minimum(np.maximum(room - used, 0), np.maximum(present - running, 0)) * length
    where = np.searchsorted(edges, begin, side="right") - 1
    total = np.bincount(where, weights=idle, minlength=len(edges) - 1)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    share = total[order] / total.sum() if len(order) else total[order]
    seconds = total[order] / log.slots_per_second
    stamps = [(log.stamp(edges[k]), log.stamp(edges[k + 1])) for k in order.tolist()]
    found = zip(stamps, seconds.tolist(), share.tolist(), strict=True)
    return pd.DataFrame([(a, b, idle, part) for (a, b), idle, part in found], columns=columns)


def _at(curve: tuple[Ints, Ints], times: Ints) -> Ints:
    """A step curve's values at some times."""
    moments, values = curve
    at = np.searchsorted(moments, times, side="right") - 1
    return np.where(at >= 0, values[np.maximum(at, 0)], 0)


def hour_edges(log: Log, first: int, last: int) -> Ints:
    """Full hours of the clock (days or weeks, if there are too many) around two slots."""
    unit = NANO // log.slots_per_second
    for seconds in (HOUR_SECONDS, 24 * HOUR_SECONDS, 7 * 24 * HOUR_SECONDS):
        step = seconds * NANO
        begin, end = (log.zero + first * unit) // step, -(-(log.zero + last * unit) // step)
        if end - begin <= MOST_STRETCHES:
            break
    moments = [(number * step - log.zero) // unit for number in range(begin, end + 1)]
    return np.array(moments, dtype=np.int64)
