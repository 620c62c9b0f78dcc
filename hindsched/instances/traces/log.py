"""A log: the neutral frame of a reader in slots, and the jobs and the schedule that it holds.

Times are whole slots of ``1 / slots_per_second`` seconds since `Log.zero`: nothing is rounded. A
job's *run* is a time in which it held GPUs without a break. One run: ``non-preemptive``; several of
one width: ``preemptive``; of different widths: ``elastic``, known by its GPU-seconds. Where the log
gives a duration shorter than the runs (a pause that it does not show), the job is judged by its
completion alone. Runs whose work was lost hold GPUs but count for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError, check_type
from hindsched.instances.io import MOST_BYTES
from hindsched.instances.traces import published, schedulers
from hindsched.instances.traces.capacity import Capacity, said_capacity
from hindsched.instances.traces.reading import (
    ASIDE,
    MOMENTS,
    NO_GPU,
    CannotJudge,
    Format,
    Notes,
    Reading,
    known_true,
)
from hindsched.instances.traces.times import SECOND, LogClock, find_zone, seconds_text, stamp_text
from hindsched.json_types import JsonObject

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        schedulers.CSV, schedulers.SWF, schedulers.SACCT, schedulers.KUBERNETES,
        published.ELASTICFLOW_SCHEDULE, published.OPENB, published.PHILLY_LOG,
    )
}  # fmt: skip
"""Formats by their word, in the order of the documentation."""
FORMULATIONS = ("non-preemptive", "preemptive", "elastic")
"""How freely jobs are scheduled, least freedom first."""
LENGTHS = ("duration", "paused")
MOST_SLOTS = 10**12  # slots that an instance may span
REQUEUE_DONE = {
    "restart": "lost runs hold GPUs but count for nothing",
    "resume": "its runs add up",
    "separate": "each run is a job",
}


@dataclass(frozen=True)
class Log:
    """Jobs and the schedule that somebody's scheduler gave them."""

    format: str
    source: str  # name of the file, or ``frame``
    sha256: str  # of what is stored; empty for a frame
    # What held whole GPUs: row, job, submit, start, end, gpus, duration and what else the log has;
    # why its job is not judged (empty if it is), lost (the work of this run was thrown away), gang
    # (rows with the same one ran together).
    rows: pd.DataFrame
    notes: Notes  # what was noticed, by row and column
    capacity: Capacity | None  # if the log or the user says how many GPUs there are
    slots_per_second: int  # a power of ten
    zero: int  # microseconds of slot 0: since 1970 for stamps, since the log's zero for numbers
    clock: str  # seconds or stamps
    zone: str | None  # in which stamps are written
    rows_read: int
    facts: tuple[str, ...] = ()  # what the log's header says that a judgement should repeat

    @cached_property
    def schedule(self) -> pd.DataFrame:
        """What judged jobs held when: ``row, job, start, end, gpus, lost, gang`` (and ``server``).

        Several rows a job: runs, or parts of a gang on different servers.
        """
        held = self.rows[(self.rows["why"] == "") & self.rows["start"].notna()]
        held = held.astype({"start": np.int64, "end": np.int64})
        return _existing_columns(held, "row job start end gpus server lost gang")

    @cached_property
    def others(self) -> pd.DataFrame:
        """Rows of jobs that cannot be judged: ``row, job, submit, start, end, gpus, why``.

        They held GPUs from ``start`` (none: since before the log) to ``end`` (none: till after).
        """
        others = self.rows[self.rows["why"] != ""]
        return _existing_columns(others, "row job submit start end gpus why")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """What judged jobs held, without what was lost, in stretches of one width.

        ``job, start, end, gpus``. A gang runs from its last start to its last end.
        """
        rows = self.schedule[~self.schedule["lost"]]
        spans = rows.groupby(["job", "gang"], as_index=False).agg(
            {"start": "max", "end": "max", "gpus": "sum"}
        )
        ends = spans.assign(start=spans["end"], gpus=-spans["gpus"])
        changes = pd.concat([spans, ends]).groupby(["job", "start"])["gpus"].sum()
        widths = changes[changes != 0].groupby("job").cumsum().reset_index()
        widths["end"] = widths.groupby("job")["start"].shift(-1)
        return widths[widths["gpus"] > 0].astype({"end": np.int64})

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row a job that can be judged, by submission, then by row.

        ``row, job, submit, duration, gpus, work`` (GPU-slots), ``ran`` (slots in which it ran, if
        known), ``runs`` (times that it was started), ``completion`` (end of its last run),
        ``completion_only`` (its runs within start and end are not known) and, where the log has
        them, ``weight, deadline, user, gpu_kinds``.
        """
        rows, runs = self.rows[self.rows["why"] == ""], self.runs
        jobs = rows.drop_duplicates("job").set_index("job", drop=False).rename_axis(None)
        jobs["submit"] = rows.groupby("job")["submit"].min()
        kept = rows[~rows["lost"]]
        jobs["completion"] = kept.groupby("job")["end"].max()
        for name in {"duration", "deadline"} & {*rows}:
            jobs[name] = kept.groupby("job")[name].max()
        length = runs["end"] - runs["start"]
        begins = runs["start"] != runs.groupby("job")["end"].shift()
        by = runs.assign(ran=length, work=length * runs["gpus"], runs=begins).groupby("job")
        held = by.agg({"ran": "sum", "work": "sum", "runs": "sum", "gpus": "max"})
        held = held.astype("Int64").reindex(jobs.index)
        resized = known_true(held["work"] != held["ran"] * held["gpus"])
        paused = kept.groupby(["job", "gang"])["paused"].max().groupby("job").sum()
        given = jobs["duration"].fillna((held["ran"] - paused).where(paused > 0)).mask(resized)
        jobs["ran"], jobs["runs"] = held["ran"], held["runs"].fillna(1)
        jobs["gpus"] = held["gpus"].fillna(jobs["gpus"])
        jobs["completion_only"] = jobs["ran"].isna() | known_true(given < jobs["ran"])
        jobs["duration"] = given.fillna(jobs["ran"])
        jobs["work"] = held["work"].where(resized, jobs["duration"] * jobs["gpus"])
        whole = ("submit", "completion", "runs", "gpus", "duration", "work")
        jobs = jobs.astype(dict.fromkeys(whole, np.int64)).sort_values(["submit", "row"])
        return _existing_columns(
            jobs, "row job submit duration gpus work ran runs completion completion_only weight "
            "deadline user gpu_kinds",
        )  # fmt: skip

    @property
    def formulation(self) -> str:
        """The least of `FORMULATIONS` in which the log's schedule is a schedule."""
        jobs = self.jobs
        if (jobs["work"] != jobs["duration"] * jobs["gpus"]).any():
            return FORMULATIONS[2]
        return FORMULATIONS[int(((jobs["runs"] > 1) | jobs["completion_only"]).any())]

    @property
    def is_slotwise(self) -> bool:
        """Whether it is known which GPUs were held in every slot."""
        return not bool(self.jobs["completion_only"].any())

    def __repr__(self) -> str:
        return (
            f"<{self.format} log {self.source!r}: {len(self.jobs)} jobs judged, "
            f"{len(self.others)} others, {len(self.notes)} notes, {self.formulation}>"
        )

    def seconds(self, slots: int) -> int | float:
        """Slots as seconds: a whole number where it is one."""
        whole, rest = divmod(int(slots), self.slots_per_second)
        return int(slots) / self.slots_per_second if rest else whole

    def microseconds(self, slot: Any) -> Any:
        """Time of a slot's begin, or of many."""
        return self.zero + slot * (SECOND // self.slots_per_second)

    def stamp(self, slot: Any) -> str:
        """Time of a slot's begin as the log would write it; nothing for a missing one."""
        if pd.isna(slot):
            return ""
        time = self.microseconds(int(slot))
        if self.clock == "stamps":
            return stamp_text(time, find_zone(self.zone) if self.zone else UTC)
        return seconds_text(time)

    def need_capacity(self) -> Capacity:
        """The capacity, or `InputError` if nobody has said it."""
        if self.capacity is None:
            rule = "the log does not say how many GPUs there are: `gpus` or `servers` must"
            raise CannotJudge("gpus", "(absent)", rule)
        return self.capacity

    def to_frame(self) -> pd.DataFrame:
        """A row a job for people: times as the log writes them, spans in seconds."""
        jobs = self.jobs
        first = self.schedule.groupby("job", sort=False)["start"].min().reindex(jobs["job"])
        stamps = {"submit": jobs["submit"], "start": first, "end": jobs["completion"]}
        rows: JsonObject = {"row": jobs["row"], "job": jobs["job"]}
        rows |= {name: [self.stamp(slot) for slot in slots] for name, slots in stamps.items()}
        rows["duration"] = [self.seconds(slots) for slots in jobs["duration"]]
        rows["gpus"] = jobs["gpus"]
        rows["jct"] = [self.seconds(slots) for slots in jobs["completion"] - jobs["submit"]]
        if "deadline" in jobs:
            rows["deadline"] = [self.stamp(slot) for slot in jobs["deadline"]]
        rows |= {name: jobs[name] for name in ("weight", "user") if name in jobs}
        return pd.DataFrame(rows)


def _existing_columns(rows: pd.DataFrame, names: str) -> pd.DataFrame:
    """Those of some columns that there are, rows counted anew."""
    return rows[[name for name in names.split() if name in rows]].reset_index(drop=True)


def read_log(
    path: str | Path | pd.DataFrame,
    format: str = "csv",  # noqa: A002
    *,
    columns: Mapping[str, str] | None = None,
    gpus: int | None = None,
    servers: object = None,
    time_zone: str | None = None,
    time_unit: str = "s",
    time_step: str | None = None,
    dates: str | None = None,
    skip_broken: bool = False,
    most_bytes: int = MOST_BYTES,
    settings: Mapping[str, object] | None = None,
) -> Log:
    """Read what a scheduler did.

    Parameters
    ----------
    path : str, Path or DataFrame
        The log: a file (plain, gzip, bzip2 or xz), a pipe, or for some formats a folder; or a frame
        with the columns of ``csv``, its times numbers, texts, datetimes or timedeltas (durations),
        its rows counted from 1.
    format : str
        One of `FORMATS`, of a file.
    columns : mapping, optional
        The log's column for a role, where it is not the format's own, such as ``{"job": "JobID"}``.
    gpus : int, optional
        GPUs of the cluster, one pool.
    servers : str or pairs, optional
        Servers instead: ``"16x8"``, ``"a=8,b=4"``, (name, GPUs) pairs, or a CSV file.
    time_zone : str, optional
        Zone of stamps without an offset, such as ``"Europe/Berlin"``.
    time_unit : str
        Unit of numbers: s, ms, us, ns, min or h.
    time_step : str, optional
        Round times to multiples of so many seconds; otherwise to microseconds.
    dates : {"day-first", "month-first"}, optional
        How 05/06/2024 is read, where no date of the log shows it.
    skip_broken : bool
        Leave rows out that break a rule and note them, instead of refusing the log.
    most_bytes : int
        What the file may unpack to.
    settings : mapping, optional
        Settings of the format.

    Raises
    ------
    InputError
        For a log that cannot be read, or a row that breaks a rule: one line with row and column.

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = ["job,submit,start,end,gpus", "a,0,0,60,1", "b,0,60,90,2"]
    >>> _ = Path("log.csv").write_text(chr(10).join(rows))
    >>> read_log("log.csv", gpus=2).rows_read
    2
    """
    if format not in FORMATS:
        raise InputError("format", format, f"must be one of {', '.join(FORMATS)}")
    check_type("log", path, (str, os.PathLike, pd.DataFrame), "a path or a frame")
    form = FORMATS[format]
    clock = LogClock(time_zone or form.time_zone, time_unit, time_step, dates)
    file = Path("frame") if isinstance(path, pd.DataFrame) else Path(path)
    reading = Reading(
        form, file, clock, columns or {}, settings or {}, skip_broken, most_bytes=most_bytes
    )  # fmt: skip
    said = said_capacity(gpus, servers)
    if isinstance(path, pd.DataFrame):
        reading.take_frame(path)
        rows = reading.standard()
    else:
        rows = form.read(reading)
    reading.capacity = said or reading.capacity
    return build_log(reading, rows)


def build_log(reading: Reading, rows: pd.DataFrame) -> Log:
    """Make the log of a neutral frame."""
    clock, notes = reading.clock, reading.notes
    if clock.rounded:
        count = f"{clock.rounded} time{'s' * (clock.rounded != 1)}"
        value = f"{count}, by at most {seconds_text(clock.most_rounded)} s"
        notes.add(0, "(times)", value, f"rounded to multiples of {clock.step} s as asked", "kept")
    absent: dict[str, Any] = {"duration": pd.NA, "paused": 0, "failed": True}
    rows = rows.assign(**{name: value for name, value in absent.items() if name not in rows})
    times = [name for name in (*MOMENTS, *LENGTHS) if name in rows]
    rows = _countable(notes, rows.astype(dict.fromkeys(times, "Int64")))
    rows = _sensible(reading, rows)
    rows = rows.assign(gang=np.arange(len(rows)), lost=False)
    if reading.requeues:
        _mark_requeues(reading, rows)
    rows["why"] = _reasons(reading, rows)
    judged = rows[rows["why"] == ""]
    if judged.empty:
        most = "".join(
            f", most often (column {note['column']}) for this: {note['rule']}"
            for note in notes.summary()[:1]
        )
        number = f"{reading.rows_read} row{'s' * (reading.rows_read != 1)}"
        error = CannotJudge(reading.source, number, f"no row can be judged{most}")
        error.rows_read, error.notes = reading.rows_read, notes.summary()
        raise error
    submits = judged.groupby("job")["submit"]
    differ = judged[submits.transform("max") != submits.transform("min")].drop_duplicates("job")
    rule = "rows of one job have different submissions"
    notes.add(differ["row"], reading.column("submit"), differ["job"], rule, "the earliest counts")
    unit, zero = SECOND, int(judged["submit"].min()) // SECOND * SECOND
    for name in times:  # the largest power of ten that divides every time
        moments = rows[name].dropna().to_numpy(dtype=np.int64)
        while unit > 1 and (moments % unit).any():
            unit //= 10
    for name in times:
        rows[name] = (rows[name] - (zero if name in MOMENTS else 0)) // unit
    return Log(
        format=reading.form.name, source=reading.path.name, sha256=reading.sha256, rows=rows,
        notes=notes, capacity=reading.capacity, slots_per_second=SECOND // unit, zero=zero,
        clock=clock.kind or "seconds", zone=clock.zone or clock.offset,
        rows_read=reading.rows_read, facts=tuple(reading.facts),
    )  # fmt: skip


def _countable(notes: Notes, rows: pd.DataFrame) -> pd.DataFrame:
    """Times rounded to the finest power of ten of which the log has no more than can be counted."""
    moments, unit = rows[[name for name in MOMENTS if name in rows]], 1
    span = moments.max().max() - moments.min().min()
    while known_true(pd.Series([span // unit > MOST_SLOTS])).all():
        unit *= 10
    names = [*moments, *LENGTHS]
    moved = int((rows[names] % unit != 0).sum().sum())
    if moved:
        rule = f"rounded to multiples of {seconds_text(unit)} s: finer ones are too many to count"
        notes.add(0, "(times)", f"{moved} moved", rule, "kept")
    rows = rows.assign(**{name: (rows[name] + unit // 2) // unit * unit for name in names})
    ran = rows["end"] - rows["start"]
    same = known_true((rows["duration"] - ran).abs() < 2 * unit) & (moved > 0)
    return rows.assign(duration=rows["duration"].mask(same, ran))


def _sensible(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows without whole GPUs, and those that ran for no time or for less."""
    gpus, given, length = rows["gpus"], rows["duration"], rows["end"] - rows["start"]
    is_left = pd.Series(True, index=rows.index)

    def leave_out(role: str, mask: pd.Series, values: Any, rule: str) -> None:
        nonlocal is_left
        leaving = is_left & known_true(mask)
        is_left &= ~leaving
        if isinstance(values, pd.Series):
            values = values[leaving]
        reading.notes.add(rows["row"][leaving], reading.column(role), values, rule, ASIDE)

    leave_out("gpus", gpus.isna(), "", "number of GPUs unknown")
    leave_out("gpus", gpus == 0, "0", NO_GPU)
    leave_out("gpus", gpus % 1 > 0, gpus, "a share of a GPU")
    for role, spans, words, rule in (
        ("end", length, " s after its start", "must not precede the start"),
        ("duration", given, "", "must not be negative"),
    ):
        broken = is_left & known_true(spans < 0)
        for row, span in zip(rows["row"][broken], spans[broken], strict=True):
            reading.break_row(row, reading.column(role), seconds_text(int(span)) + words, rule)
        is_left &= ~broken
    leave_out("end", length == 0, "0 s", "ran for no time")
    leave_out("duration", given == 0, "0 s", "ran for no time")
    return rows[is_left].astype({"gpus": np.int64})


def _mark_requeues(reading: Reading, rows: pd.DataFrame) -> None:
    """Tell the runs of each job apart and say which were lost.

    Rows of one job that overlap in time are one ``gang``. With ``restart`` every run but a job's
    last is ``lost``, unless the log says that it did not fail; with ``separate`` runs become jobs
    of their own, ``name#2`` and so on.
    """
    column = reading.column("job")
    known = (rows["start"].notna() & rows["end"].notna()).groupby(rows["job"]).transform("all")
    many = rows[rows["job"].duplicated(keep=False) & known]
    for job, group in many.sort_values("start", kind="stable").groupby("job", sort=False):
        line = int(group["row"].iloc[-1])
        apart = group["start"] >= group["end"].cummax().shift()
        runs = [run for _, run in group.groupby(known_true(apart).cumsum())]
        for number, run in enumerate(runs, start=1):
            if run["start"].max() < run["end"].min():
                rows.loc[run.index, "gang"] = run["gang"].iloc[0]
            else:
                rule, done = "its parts never all ran at once", "no gang: judged by its GPU-seconds"
                reading.notes.add(line, column, job, rule, done)
            if reading.requeues == "separate" and number > 1:
                rows.loc[run.index, "job"] = f"{job}#{number}"
            if reading.requeues == "restart" and number < len(runs):
                rows.loc[run.index, "lost"] = bool(run["failed"].any())
        if len(runs) > 1:
            done = REQUEUE_DONE[reading.requeues]
            reading.notes.add(line, column, job, "a job that ran several times", done)


def _reasons(reading: Reading, rows: pd.DataFrame) -> pd.Series:
    """Why each row's job cannot be judged, the first reason that applies; empty if it can."""
    no_start, no_end = rows["start"].isna(), rows["end"].isna()
    # Several rows with an unknown start among them make no profile.
    no_work = rows["job"].duplicated(keep=False) | rows["duration"].isna()
    tests = {
        "no start: never ran, or unknown": ("start", no_start & no_end),
        "no end: still running when the log ended": ("end", no_end),
        "no submission: before the log begins, or unknown": ("submit", rows["submit"].isna()),
        "start and duration unknown": ("start", no_start & no_work),
    }
    first = np.select([mask for _, mask in tests.values()], range(len(tests)), len(tests))
    of_job = pd.Series(first, index=rows.index).groupby(rows["job"]).transform("min")
    why = of_job.map(dict(enumerate([*tests, ""])))
    for reason, (role, _) in tests.items():
        unjudged = rows[why == reason]
        reading.notes.add(unjudged["row"], reading.column(role), unjudged["job"], reason, ASIDE)
    return why
