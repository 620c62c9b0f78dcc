"""Whether a logged schedule can have been, how far it is from the best possible, and where it lost.

Every row of the log that held GPUs is a job of its own for the exact kernel, on one pool of all
GPUs and on the servers that the log names: jobs that cannot be judged, and runs whose work was
lost, held their GPUs too. Where it is not known when a job held its GPUs, it is left out and the
answer says so: what is found is wrong all the same, what is not found may be.

A job holds what it ends later than in the best schedule found; jobs that end sooner there are not
counted against it. An hour holds the GPU-seconds that stood idle while jobs were waiting for GPUs.
(``hindsched explain`` splits the gap to the *bound* at its prices.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from hindsched import kernel
from hindsched.analysis.audit.gang.words import plural, seconds, span_text
from hindsched.analysis.bounds import Bounds, written_near
from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import SECOND
from hindsched.json_types import JsonObject
from hindsched.solutions.gang.solution import GangSolution, use_over_time

FEW, MOST = 10, 25  # jobs of the sentence; jobs and hours of the JSON data
MOST_STRETCHES, STRETCHES = 10_000, (1, 24, 168, 8766)  # stretches of time, and their hours
ROUNDING = 1e-9
BEATS_BOUND, REFUSED = "better than possible", "refused"
WORDS = {
    "capacity": "more GPUs held than there are",
    "server": "more GPUs held on a server than it has",
    "before submission": "started before submission",
    "too short": "ran too short",
    BEATS_BOUND: "better than the best possible",
    REFUSED: "refused by the judge of schedules",
}
MEASURED = {
    "mean-jct": ("mean JCT", "weighted mean JCT"),
    "makespan": ("makespan", "makespan"),
    "deadlines-met": ("deadlines met", "deadlines met by weight"),
}


@dataclass(frozen=True)
class AuditVerdict:
    """A schedule's value and the interval of the best possible, in the units people use."""

    objective: str  # mean-jct, makespan or deadlines-met
    value: float  # of the schedule judged: seconds, or deadlines (their weight, if weights differ)
    best: Bounds  # the best possible lies there
    weighted: bool = False  # whether jobs have different weights
    out_of: float | None = None  # all deadlines

    @property
    def ratio(self) -> Bounds:
        """Within which factors of the best possible the value lies."""
        low, high = self.best.lower, self.best.upper
        if self.objective == "deadlines-met":
            return Bounds(_factor(low, self.value), _factor(high, self.value))
        return Bounds(_factor(self.value, high), _factor(self.value, low))

    @property
    def word(self) -> str:
        """What is measured."""
        return MEASURED[self.objective][self.weighted]

    @property
    def measure(self) -> str:
        """The column of an audit's rows that has it."""
        return self.word.lower().replace(" ", "_")

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
        text = f"Your scheduler's {self.word} is {seconds(self.value)} s"
        text += f" ({span_text(self.value)})" * (self.value >= 60)
        # where the ends agree, the schedule's says what the best possible is
        least = seconds(low, -1) if high is None or not self.best.is_point else seconds(high)
        if self.value < low * (1 - ROUNDING):
            return f"{text}; no schedule can be below {least} s."
        proven = high if high is not None and self.best.is_point else low
        if self.value <= proven * (1 + ROUNDING):
            return f"{text}: that is optimal (no schedule can be below {least} s)."
        if self.best.is_point and high is not None:
            factor = written_near(self.value / high)
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


def _factor(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or below == 0:
        return 1.0 if above == below == 0 else None
    return above / below


@dataclass(frozen=True, eq=False)
class AuditSchedule:
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
        losing = int((self.jobs["later"] > 0).sum())
        best = "the best schedule found" if self.best == "best found" else f"under {self.best}"
        if not losing:
            return f"No job ends later than in {best}."
        text = f"{losing} of {plural(len(self.jobs), 'job')} end{'s' * (losing == 1)} later than in"
        text += f" {best}"
        if losing > FEW:
            text += f"; {FEW} of them hold {self.jobs['share'].head(FEW).sum():.0%} of the loss"
        text += "."
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


def find_gap(log: Log, schedule: AuditSchedule, best: AuditSchedule) -> Gap:
    """Compare a log's schedule with the best one found."""
    ends, instance = best.solution.completions, schedule.solution.instance
    later = schedule.solution.completions - ends
    lost = np.maximum(later, 0) * instance.weights
    jobs = log.to_frame()[["job", "row", "submit", "start", "end", "gpus", "duration", "jct"]]
    table = jobs.assign(
        best_jct=list(map(log.seconds, ends - instance.submits)),
        later=list(map(log.seconds, later)),
        share=lost / max(float(lost.sum()), 1e-300),
    )
    order = np.argsort(-lost, kind="stable")
    return Gap(best.name, table.iloc[order].reset_index(drop=True), _idle_hours(log, schedule))


def _idle_hours(log: Log, schedule: AuditSchedule) -> pd.DataFrame:
    """GPU-seconds idle while jobs waited, by full hour (of a long log: day, week) of its clock."""
    columns = ["begin", "end", "idle", "share"]
    if not schedule.is_known:
        return pd.DataFrame(columns=columns)
    jobs, rows, held = log.jobs, schedule.solution.rows, held_rows(log)
    first, last = int(jobs["submit"].min()), int(jobs["completion"].max())
    unit, hours = SECOND // log.slots_per_second, (last - first) / log.slots_per_second / 3600
    step = 3600 * SECOND * next(n for n in STRETCHES if hours <= MOST_STRETCHES * n)
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
    idle: Any = np.minimum(free, (present - running).clip(lower=0))[:-1] * np.diff(cut)
    hourly = idle.groupby(np.searchsorted(edges, cut[:-1], side="right") - 1).sum()
    hourly = hourly[hourly > 0].sort_values(ascending=False, kind="stable")
    found = [
        (log.stamp(edges[hour]), log.stamp(min(edges[hour + 1], last)), lost / log.slots_per_second)
        for hour, lost in hourly.items()
    ]
    return pd.DataFrame(found, columns=columns[:3]).assign(share=hourly.to_numpy() / hourly.sum())


@dataclass(frozen=True)
class Breach:
    """One thing that cannot have been."""

    kind: str  # one of `WORDS`
    row: int  # of the log: of the job, or of the last to start of those that hold too much
    where: str  # job or server
    begin: str  # as the log writes times
    end: str
    found: float  # GPUs held, or seconds run; seconds early
    allowed: float  # GPUs there, or seconds needed; 0

    def __str__(self) -> str:
        what = f"{self.found:g} GPUs held where there are {self.allowed:g}"
        if self.kind == "before submission":
            what = f"starts {self.found:g} s before its submission"
        elif self.kind == "too short":
            what = f"runs {self.found:g} s where its work takes {self.allowed:g} s"
        elif self.kind == BEATS_BOUND:
            what = f"cost {self.found:.10g} where no schedule costs less than {self.allowed:.10g}"
        when = f" from {self.begin} to {self.end}" if self.end else f" at {self.begin}"
        place = f"row {self.row}, {self.where}" if self.row else self.where
        return f"{place}: {what}{when}"


@dataclass(frozen=True)
class Breaches:
    """What cannot have been."""

    listed: tuple[Breach, ...]
    unchecked: tuple[str, ...]  # what could not be checked, and why
    peak: int  # most GPUs known to be held at once

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        kinds = [breach.kind for breach in self.listed]
        return {kind: kinds.count(kind) for kind in WORDS if kind in kinds}

    @property
    def are_many(self) -> bool:
        """Whether there are several of some kind."""
        return len(self.listed) > len(self.counts)

    def to_frame(self) -> pd.DataFrame:
        """A row a breach."""
        return pd.DataFrame(map(asdict, self.listed), columns=[*Breach.__annotations__])


def find_breaches(log: Log) -> Breaches:
    """What is impossible in a log's schedule; somebody must have said its capacity."""
    held, gpus = held_rows(log), log.need_capacity().gpus
    unchecked: list[str] = []
    hidden = int(log.jobs["completion_only"].sum())
    if hidden:
        unchecked.append(
            f"capacity, slot by slot: of {plural(hidden, 'job')} only start and end are "
            "known, and they stood still in between for a time that the log does not say"
        )
    sizes = _known_servers(log, held, unchecked)
    listed = [*_breaches_of(log, held, gpus, {})]
    if sizes:
        named = held[held["server"].fillna("").astype(str).isin(sizes)]
        listed += _breaches_of(log, named, sum(sizes.values()), sizes)
    jobs = log.jobs
    short: Any = jobs[jobs["ran"].notna() & (jobs["ran"] < jobs["duration"])]
    for job in short.itertuples():
        ran, needed = log.seconds(job.ran), log.seconds(job.duration)
        end = log.stamp(job.completion)
        listed.append(Breach("too short", job.row, f"job {job.job}", end, "", ran, needed))
    used = use_over_time(held["start"], held["end"], held["gpus"])
    return Breaches(tuple(listed), tuple(unchecked), int(used.max() if len(used) else 0))


def held_rows(log: Log) -> pd.DataFrame:
    """What held GPUs from when to when: rows of judged jobs that are known, and of all others."""
    jobs, rows = log.jobs, log.rows
    is_judged = rows["why"] == ""
    hidden = rows["job"].isin(jobs["job"][jobs["completion_only"]]) & is_judged
    held = rows[~hidden & (rows["start"].notna() | rows["end"].notna())]
    times = pd.concat([held["start"], held["end"]]).dropna()
    first, last = min([0, *times]), max([0, *times])
    start, end = held["start"].fillna(first), held["end"].fillna(last + 1)
    submit = held["job"].map(jobs.set_index("job")["submit"]).where(is_judged[held.index], start)
    held = held.assign(submit=submit, start=start, end=end)[start < end]
    return held.astype({"submit": "int64", "start": "int64", "end": "int64"})


def _known_servers(log: Log, held: pd.DataFrame, unchecked: list[str]) -> dict[str, int]:
    """GPUs of the servers that the rows name, where they are known; what is not is said."""
    capacity = log.need_capacity()
    if "server" not in held:
        if capacity.servers:
            unchecked.append("each server: the log does not say which ones its jobs ran on")
        return {}
    server = held["server"].fillna("").astype(str)
    if (number := int((server == "").sum())) > 0:
        runs = plural(number, "run")
        unchecked.append(f"each server: of {runs} the log does not say what each server held")
    sizes = {name: capacity.of_server(name) for name in sorted({*server} - {""})}
    unknown = [name for name, gpus in sizes.items() if gpus is None]
    if unknown:
        unchecked.append(
            f"each server: nobody has said how many GPUs {len(unknown)} of them have, such as "
            f"{unknown[0]} (`servers`)"
        )
    return {name: gpus for name, gpus in sizes.items() if gpus is not None}


def _breaches_of(
    log: Log, held: pd.DataFrame, gpus: int, servers: Mapping[str, int]
) -> Iterator[Breach]:
    """What the exact kernel says of rows as jobs of their own, on one pool or on each server."""
    zero = min([0, *held["start"], *held["submit"]])
    jobs, runs = [], []
    rows: Any = held.itertuples()
    for number, row in enumerate(rows):
        job = {"submit": row.submit - zero, "duration": row.end - row.start}
        jobs.append({"name": str(number), **job, "gpus": min(row.gpus, gpus)})
        place = {"servers": {row.server: row.gpus}} if servers else {"gpus": row.gpus}
        span = {"from": row.start - zero + 1, "to": row.end - zero}
        runs.append({"name": str(number), "assignments": [{**span, **place}]})
    listed = [{"name": name, "gpus": size} for name, size in servers.items()]
    cluster = {"servers": listed} if servers else {"gpus": gpus}
    instance = {"family": "gang", "slot_seconds": 1, "jobs": jobs, **cluster}
    verdict = kernel.check(instance, {"formulation": "non-preemptive", "jobs": runs})
    over: dict[tuple[str, int], Breach] = {}  # by place and the slot after which it ends
    for each in verdict.violations if jobs else ():
        logged, amount = held.iloc[int(each.job)], int(each.amount)
        begins, ends = log.stamp(each.first - 1 + zero), log.stamp(each.last + zero)
        if each.rule == "(2)" and not servers:
            early, where = log.seconds(amount), f"job {logged['job']}"
            yield Breach("before submission", logged["row"], where, begins, "", early, 0)
        elif each.rule == "(5)" and (each.server == "cluster") != bool(servers):
            where = f"server {each.server}" if servers else "the cluster"
            kind, room = "server" if servers else "capacity", servers.get(each.server, gpus)
            made = Breach(kind, logged["row"], where, begins, ends, room + amount, room)
            before = over.pop((each.server, each.first - 1), None)
            if before is not None:  # goes on at another height
                made = replace(before, end=ends, found=max(before.found, made.found))
            over[each.server, each.last] = made
    yield from over.values()
