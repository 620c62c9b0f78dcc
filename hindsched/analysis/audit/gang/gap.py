"""Which jobs and which hours hold the gap between a log's schedule and the best one found.

A job holds what it ends later than in the best schedule found; jobs that end sooner there are not
counted against it. An hour holds the GPU-seconds that stood idle while jobs were waiting for GPUs.
(``hindsched explain`` splits the gap to the *bound* at its prices.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hindsched.analysis.audit.gang.impossible import held_rows, use_over_time
from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import SECOND
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import GangSolution

FEW = 10


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each job started and ended, and by whom.

    The name is ``log``, a policy, or ``best found``. Of a log that only knows when jobs ended, the
    work stands before the end, a start of -1 is not known, nor is what was held in every slot.
    """

    name: str
    solution: GangSolution = field(repr=False)
    starts: Ints = field(repr=False)
    pauses: bool = False
    is_known: bool = True


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
        text = (
            f"{losing} of {len(self.jobs)} jobs end later than in the best schedule found "
            f"({self.best}); {few} of them hold {self.jobs['share'].head(few).sum():.0%} of the "
            "loss."
        )
        if len(self.hours):
            first = self.hours.iloc[0]
            text += (
                f" {self.hours['idle'].sum():,.0f} GPU-seconds stood idle while jobs waited, most "
                f"from {first['begin']} to {first['end']} ({first['share']:.1%})."
            )
        return text

    def to_dict(self, most: int = 25) -> JsonObject:
        """JSON data with the largest losses."""
        losing = self.jobs[self.jobs["later"] > 0]
        return {
            "against": self.best,
            "sentence": self.sentence(),
            "jobs": losing.head(most).to_dict("records"),
            "hours": self.hours.head(most).to_dict("records"),
        }


def find_gap(log: Log, schedule: Schedule, best: Schedule) -> Gap:
    """Compare a log's schedule with the best one found."""
    ends, instance = best.solution.completions, schedule.solution.instance
    later = schedule.solution.completions - ends
    lost = np.maximum(later, 0) * instance.weights
    total = float(lost.sum())
    kept = log.to_frame()[["job", "row", "submit", "start", "end", "gpus", "duration", "jct"]]
    table = kept.assign(
        best_jct=[log.seconds(slots) for slots in (ends - instance.submits).tolist()],
        later=[log.seconds(slots) for slots in later.tolist()],
        share=lost / total if total > 0 else 0.0,
    )
    order = np.argsort(-lost, kind="stable")
    return Gap(best.name, table.iloc[order].reset_index(drop=True), _hours(log, schedule))


def _hours(log: Log, schedule: Schedule) -> pd.DataFrame:
    """GPU-seconds idle while jobs waited, by hour of the log's clock."""
    if not schedule.is_known:
        return pd.DataFrame(columns=["begin", "end", "idle", "share"])
    jobs, rows, held = log.jobs, schedule.solution.rows, held_rows(log)
    first, last = int(jobs["submit"].min()), int(jobs["completion"].max())
    curves = [
        use_over_time(*(held[name].to_numpy() for name in ("start", "end", "gpus"))),
        use_over_time(*(jobs[name].to_numpy() for name in ("submit", "completion", "gpus"))),
        use_over_time(rows.start, rows.end, rows.gpus),
    ]
    edges = _hours_around(log, first, last)
    cut = np.unique(np.concatenate([edges, *(moments for moments, _ in curves)]))
    cut = cut[(cut >= first) & (cut <= last)]
    begin = cut[:-1]
    used, present, running = (
        np.append(0, values)[np.searchsorted(moments, begin, side="right")]
        for moments, values in curves
    )
    free = np.maximum(schedule.solution.instance.total_gpus - used, 0)
    idle = np.minimum(free, np.maximum(present - running, 0)) * np.diff(cut)
    where = np.searchsorted(edges, begin, side="right") - 1
    total = np.bincount(where, weights=idle, minlength=len(edges) - 1)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    return pd.DataFrame(
        {
            "begin": [log.stamp(edges[k]) for k in order],
            "end": [log.stamp(edges[k + 1]) for k in order],
            "idle": total[order] / log.slots_per_second,
            "share": total[order] / max(1.0, total.sum()),
        }
    )


def _hours_around(log: Log, first: int, last: int) -> Ints:
    """Full hours of the clock around two slots."""
    unit, step = SECOND // log.slots_per_second, 3600 * SECOND
    begin, end = (log.zero + first * unit) // step, -(-(log.zero + last * unit) // step)
    moments = [(number * step - log.zero) // unit for number in range(begin, end + 1)]
    return np.array(moments, dtype=np.int64)
