"""A log: jobs, the schedule that they got, what was noticed; made of a reader's neutral frame.

Times are whole slots of ``1 / slots_per_second`` seconds since `Log.zero`: nothing is rounded. A
job's *run* is a time in which it held GPUs without a break. One run: ``non-preemptive``; several of
one width: ``preemptive``; of different widths: ``elastic``, known by its GPU-seconds. Where the log
gives a duration shorter than the runs (a pause that it does not show), the job is judged by its
completion alone. Runs whose work was lost hold GPUs but count for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import MOST_BYTES
from hindsched.instances.traces import published, schedulers
from hindsched.instances.traces.capacity import Capacity, said_capacity
from hindsched.instances.traces.reading import ASIDE, Format, Notes, Reading, known_true
from hindsched.instances.traces.times import SECOND, Clock, find_zone, seconds_text, stamp_text
from hindsched.json_types import JsonObject

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        schedulers.CSV, schedulers.SWF, schedulers.SACCT, schedulers.KUBERNETES,
        published.ELASTICFLOW_SCHEDULE, published.OPENB, published.PHILLY_LOG,
    )
}  # fmt: skip
"""Formats by their word, in the order of the documentation."""
TABLES = {
    "tiresias": "job=job_id submit=submit_time start=start_time end=end_time gpus=num_gpu "
    "duration=executed_time",
    "batsim": "job=job_id submit=submission_time start=starting_time end=finish_time "
    "gpus=requested_number_of_resources",
}
"""Columns by which a table of a simulator that was a format once is read as ``csv``."""
FORMULATIONS = ("non-preemptive", "preemptive", "elastic")
"""How freely jobs are scheduled, least freedom first."""
MOMENTS = ("submit", "start", "end", "completion", "deadline")
LENGTHS = ("duration", "ran", "work")
MOST_SLOTS = 10**12  # slots that an instance may span
REQUEUE_DONE = {
    "restart": "lost runs hold GPUs but count for nothing",
    "resume": "its runs add up",
    "separate": "each run is a job",
}
REASONS = {
    "no start: never ran, or unknown": "start",
    "no end: still running when the log ended": "end",
    "submitted before the log begins": "submit",
    "start and duration unknown": "start",
    "submitted before the window": "submit",
    "submitted after the window": "submit",
}
"""Why a job cannot be judged, and the role that says it; the first that applies counts."""


@dataclass(frozen=True)
class Log:
    """Jobs and the schedule that somebody's scheduler gave them.

    Parameters
    ----------
    format, source, sha256 : str
        Format of the log, name of the file (or ``frame``), hash of what is stored (or nothing).
    jobs : DataFrame
        A row a job that can be judged, by submission: ``row, job, submit, duration, gpus, work``
        (GPU-slots), ``ran`` (slots in which it ran, if known), ``runs`` (times that it was
        started), ``completion`` (end of its last run), ``completion_only`` (its runs within start
        and end are not known) and, where the log has them, ``weight, deadline, user``.
    schedule : DataFrame
        What held GPUs when: ``row, job, start, end, gpus`` and, where known, ``server``, ``lost``
        (the work of this run was thrown away) and ``part`` (rows of a job with the same one are a
        gang). Several rows a job: runs, or parts on different servers.
    runs : DataFrame
        What each judged job held, without runs whose work was lost, in stretches of one width:
        ``job`` (position in `jobs`), ``start, end, gpus``.
    others : DataFrame
        Jobs that cannot be judged, with the reason: ``row, job, submit, start, end, gpus, why``.
        They held GPUs from ``start`` (None: since before the log) to ``end`` (None: till after).
    notes : Notes
        What was noticed, by row and column.
    capacity : Capacity, optional
        GPUs, if the log or the user says how many there are.
    formulation : str
        The least of `FORMULATIONS` in which the log's schedule is a schedule.
    slots_per_second : int
        A power of ten.
    zero : int
        Microseconds of slot 0: since 1970 for stamps, since the log's zero for numbers.
    clock : str
        ``seconds`` or ``stamps``.
    zone : str, optional
        Time zone in which stamps are written.
    rows_read : int
        Rows of the log.
    waits : DataFrame
        Seconds from submission to start of all rows that have both, also of those not judged:
        ``kind, rows, mean, median, p95, p99, most``. Percentiles are waits that occur.
    facts : tuple of str
        What the log's header says that a judgement should repeat.
    """

    format: str
    source: str
    sha256: str
    jobs: pd.DataFrame
    schedule: pd.DataFrame
    runs: pd.DataFrame
    others: pd.DataFrame
    notes: Notes
    capacity: Capacity | None
    formulation: str
    slots_per_second: int
    zero: int
    clock: str
    zone: str | None
    rows_read: int
    waits: pd.DataFrame
    facts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<{self.format} log {self.source!r}: {len(self.jobs)} jobs judged, "
            f"{len(self.others)} others, {len(self.notes)} notes, {self.formulation}>"
        )

    @property
    def is_slotwise(self) -> bool:
        """Whether it is known which GPUs were held in every slot."""
        return not bool(self.jobs["completion_only"].any())

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
            rule = "the log does not say how many GPUs there are: --gpus or --servers must"
            raise InputError("gpus", "(absent)", rule)
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
    submitted_from: str | None = None,
    submitted_to: str | None = None,
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
    submitted_from, submitted_to : str, optional
        Judge only jobs submitted in this window, given as the log writes times.
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
    if format in TABLES:
        named = " ".join(f"--column {pair}" for pair in TABLES[format].split(" "))
        raise InputError("format", format, f"is a table of jobs: --format csv {named}")
    if format not in FORMATS:
        raise InputError("format", format, f"must be one of {', '.join(FORMATS)}")
    form = FORMATS[format]
    clock = Clock(time_zone or form.time_zone, time_unit, time_step)
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
    window: list[int | None] = [None, None]
    for at, text in enumerate((submitted_from, submitted_to)):
        if text is not None:
            found = clock.times(pd.Series([text], dtype=object)).iloc[0]
            if found["rule"]:
                raise InputError(f"submitted_{('from', 'to')[at]}", text, found["rule"])
            window[at] = int(found["value"])
    return build_log(reading, rows, *window)


def build_log(
    reading: Reading, rows: pd.DataFrame, begin: int | None = None, end: int | None = None
) -> Log:
    """Make the log of a neutral frame; judge submissions from `begin` until before `end`."""
    clock, notes = reading.clock, reading.notes
    if clock.rounded:
        value = f"{clock.rounded} times, by at most {seconds_text(clock.most_rounded)} s"
        notes.add(0, "(times)", value, f"rounded to multiples of {clock.step} s as asked", "kept")
    waits = _waits(rows)
    rows = _sensible_spans(reading, _whole_gpus(reading, rows))
    rows = rows.assign(gang=np.arange(len(rows)), lost=False)
    if reading.requeues:
        rows = _mark_requeues(reading, rows)
    why = _reasons(rows, begin, end)
    for reason, role in REASONS.items():
        found = rows[why == reason]
        notes.add(found["row"], reading.column(role), found["job"], reason, ASIDE)
    judged, others = rows[why == ""], rows[why != ""].assign(why=why[why != ""])
    if judged.empty:
        most = "".join(
            f": {note['count']} times {note['rule']} (column {note['column']})"
            for note in notes.summary()[:1]
        )
        number = f"{reading.rows_read} row{'s' * (reading.rows_read != 1)}"
        raise InputError(reading.source, number, f"no row can be judged{most}")
    runs = profiles(judged[~judged["lost"]])
    jobs = _jobs(reading, judged, runs)
    runs["job"] = pd.Index(jobs["job"]).get_indexer(runs["job"])
    held = judged[judged["start"].notna()]
    unit, zero = _slot_microseconds(jobs, held, others), int(jobs["submit"].min())
    zero -= zero % SECOND
    if (int(jobs["completion"].max()) - zero) // unit > MOST_SLOTS:
        rule = f"spans more than {MOST_SLOTS:.0e} slots: --time-step 1 makes slots of a second"
        raise InputError(reading.source, f"slots of {seconds_text(unit)} s", rule)

    def in_slots(rows: pd.DataFrame, names: str) -> pd.DataFrame:
        """Some columns, those that the rows have: moments and lengths in slots."""
        made = rows[[name for name in names.split() if name in rows]].reset_index(drop=True)
        for name in made:
            if name in MOMENTS or name in LENGTHS:
                slots = (made[name] - (zero if name in MOMENTS else 0)) // unit
                made[name] = slots if slots.isna().any() else slots.astype(np.int64)
        return made

    # A log's own parts (clusters) are no gangs, which `Log.schedule` calls parts.
    held = held.drop(columns=["part", *([] if held["lost"].any() else ["lost"])], errors="ignore")
    if reading.requeues:
        held["part"] = held.groupby("job")["gang"].rank("dense").astype(np.int64) - 1
    freedom = 2 if jobs["resized"].any() else ((jobs["runs"] > 1) | jobs["completion_only"]).any()
    roles = "row job gpus runs completion_only submit duration ran work completion weight user"
    made = in_slots(jobs, f"{roles} deadline")
    made["work"] = made["work"].fillna(made["duration"] * made["gpus"]).astype(np.int64)
    return Log(
        format=reading.form.name, source=reading.path.name, sha256=reading.sha256, jobs=made,
        schedule=in_slots(held, "row job start end gpus server lost part"),
        runs=in_slots(runs.sort_values(["job", "start"]), "job start end gpus"),
        others=in_slots(others, "row job submit start end gpus why"),
        notes=notes, capacity=reading.capacity, formulation=FORMULATIONS[int(freedom)],
        slots_per_second=SECOND // unit, zero=zero, clock=clock.kind or "seconds",
        zone=clock.zone or clock.offset, rows_read=reading.rows_read, waits=waits,
        facts=tuple(reading.facts),
    )  # fmt: skip


def _slot_microseconds(*tables: pd.DataFrame) -> int:
    """The largest power of ten microseconds, at most a second, that divides every time."""
    unit = SECOND
    for table in tables:
        for name in {*table} & {*MOMENTS, "duration", "ran"}:
            times = table[name].dropna().to_numpy(dtype=np.int64)
            while unit > 1 and (times % unit).any():
                unit //= 10
    return unit


def _waits(rows: pd.DataFrame) -> pd.DataFrame:
    waits, gpus = (rows["start"] - rows["submit"]).dropna(), rows["gpus"]
    kinds: dict[str, Any] = {
        "all": pd.Series(True, index=gpus.index),
        "whole GPUs": (gpus > 0) & (gpus % 1 == 0),
        "a share of a GPU": (gpus > 0) & (gpus % 1 != 0),
        "no GPU": gpus == 0,
    }
    made: list[JsonObject] = []
    for kind, mask in kinds.items():
        found = waits[mask[waits.index]].to_numpy(dtype=np.int64) / SECOND
        if len(found) and (kind == "all" or len(found) < len(waits)):
            at = np.percentile(found, [50, 95, 99, 100], method="inverted_cdf").tolist()
            numbers = dict(zip(("median", "p95", "p99", "most"), at, strict=True))
            mean = float(np.sort(found).sum() / len(found))
            made.append({"kind": kind, "rows": len(found), "mean": mean, **numbers})
    return pd.DataFrame(made)


def _whole_gpus(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows without whole GPUs."""
    gpus, column = rows["gpus"], reading.column("gpus")
    share = gpus[gpus % 1 != 0].dropna()
    reading.notes.add(rows["row"][gpus.isna()], column, "", "number of GPUs unknown", ASIDE)
    reading.notes.add(rows["row"][gpus == 0], column, "0", "asks for no GPU", ASIDE)
    reading.notes.add(rows["row"][share.index], column, share, "a share of a GPU", ASIDE)
    rows = rows[gpus.notna() & (gpus > 0) & (gpus % 1 == 0)]
    return rows.assign(gpus=rows["gpus"].astype(np.int64))


def _sensible_spans(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows that end before they start or run for no time."""
    length = rows["end"] - rows["start"]
    given = rows.get("duration", _unknown(rows))
    kept = pd.Series(True, index=rows.index)
    for role, spans, words, rule in (
        ("end", length, " s after its start", "must not precede the start"),
        ("duration", given, "", "must not be negative"),
    ):
        for at in rows.index[known_true(spans < 0)]:
            value = seconds_text(int(spans[at])) + words
            reading.break_row(rows["row"][at], reading.column(role), value, rule)
        zero = known_true(spans == 0) & (role == "end" or ~known_true(length == 0))
        reading.notes.add(rows["row"][zero], reading.column(role), "0 s", "ran for no time", ASIDE)
        kept &= ~known_true(spans <= 0)
    return rows[kept]


def _mark_requeues(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Tell the runs of each job apart and say which were lost.

    Rows of one job that overlap in time are one ``gang``. With ``restart`` every run but a job's
    last is ``lost``, unless the log says that it did not fail; with ``separate`` runs become jobs
    of their own, ``name#2`` and so on.
    """
    column = reading.column("job")
    many = rows[rows["job"].duplicated(keep=False)]
    known = many.groupby("job")[["start", "end"]].transform("count").min(axis=1)
    many = many[known == many.groupby("job")["row"].transform("size")]  # no missing time
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
                rows.loc[run.index, "lost"] = bool(run["failed"].any()) if "failed" in run else True
        if len(runs) > 1:
            done = REQUEUE_DONE[reading.requeues]
            reading.notes.add(line, column, job, "a job that ran several times", done)
    return rows


def _reasons(rows: pd.DataFrame, begin: int | None, end: int | None) -> pd.Series:
    """Why each row's job cannot be judged; empty if it can."""
    no_start, no_end, submit = rows["start"].isna(), rows["end"].isna(), rows["submit"]
    # Several rows with an unknown start among them make no profile.
    no_work = rows["job"].duplicated(keep=False)
    no_work |= rows["duration"].isna() if "duration" in rows else True
    tests = [
        no_start & no_end,
        ~no_start & no_end,
        submit.isna(),
        no_start & no_work,
        known_true(submit < (submit if begin is None else begin)),
        known_true(submit >= (submit + 1 if end is None else end)),
    ]
    worst = pd.Series(len(tests), index=rows.index)
    for number, mask in reversed(list(enumerate(tests))):
        worst[mask] = number
    of_job = worst.groupby(rows["job"]).transform("min")
    return of_job.map(dict(enumerate([*REASONS, ""])))


def _jobs(reading: Reading, rows: pd.DataFrame, held: pd.DataFrame) -> pd.DataFrame:
    """What each judged job is, by submission, then by row; times in microseconds."""
    jobs = rows.drop_duplicates("job").set_index("job", drop=False).rename_axis(None)
    submits = rows.groupby("job", sort=False)["submit"]
    found = jobs[submits.max() != submits.min()]
    rule = "rows of one job have different submissions"
    column = reading.column("submit")
    reading.notes.add(found["row"], column, found["job"], rule, "the earliest counts")
    rows = rows[~rows["lost"]]
    length = held["end"] - held["start"]
    begins = held["start"] != held.groupby("job")["end"].shift()
    held = held.assign(length=length, work=length * held["gpus"], begins=begins)
    by = held.groupby("job")
    jobs["submit"] = submits.min()
    jobs["completion"] = by["end"].max().astype("Int64").reindex(jobs.index).fillna(jobs["end"])
    jobs["gpus"] = by["gpus"].max().reindex(jobs.index).fillna(jobs["gpus"]).astype(np.int64)
    jobs["runs"] = by["begins"].sum().reindex(jobs.index).fillna(1).astype(np.int64)
    jobs["ran"] = by["length"].sum().astype("Int64")
    jobs["resized"] = (by["gpus"].nunique() > 1).reindex(jobs.index, fill_value=False)
    for name in ("duration", "deadline"):
        if name in jobs:
            jobs[name] = rows.groupby("job")[name].max()
    given = jobs.get("duration", _unknown(jobs))
    if "paused" in rows:
        paused = rows.groupby(["job", "gang"])["paused"].max().groupby("job").sum()
        given = given.fillna((jobs["ran"] - paused).where(paused > 0))
    given = given.mask(jobs["resized"])
    jobs["completion_only"] = jobs["ran"].isna() | known_true(given < jobs["ran"])
    jobs["duration"] = given.fillna(jobs["ran"])
    jobs["work"] = by["work"].sum().astype("Int64").where(jobs["resized"])  # else by its duration
    return jobs.sort_values(["submit", "row"], kind="stable").reset_index(drop=True)


def profiles(rows: pd.DataFrame) -> pd.DataFrame:
    """Stretches of one width in which each job held GPUs: ``job, start, end, gpus``.

    Rows of one ``gang`` run together, from the last row's start to the last row's end.
    """
    rows = rows[rows["start"].notna() & rows["end"].notna()]
    spans = rows.groupby(["job", "gang"]).agg({"start": "max", "end": "max", "gpus": "sum"})
    spans = spans.astype(np.int64).reset_index()
    ends = spans.assign(start=spans["end"], gpus=-spans["gpus"])
    changes = pd.concat([spans, ends]).groupby(["job", "start"])["gpus"].sum()
    widths = changes[changes != 0].groupby("job").cumsum().reset_index()
    widths["end"] = widths.groupby("job")["start"].shift(-1)
    return widths[widths["gpus"] > 0].astype({"end": np.int64})


def _unknown(rows: pd.DataFrame) -> pd.Series:
    return pd.Series(pd.NA, index=rows.index, dtype="Int64")
