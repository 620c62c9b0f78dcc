"""From a neutral frame to a log: what each job is, which rows cannot be judged and why.

A job's *run* is a time in which it held GPUs without a break. From its runs follow what it is:

- one run: ``non-preemptive``;
- several runs of one width: ``preemptive``; its duration is the sum of its runs;
- runs of different widths: ``elastic``; its work is the GPU-seconds it held.

Where the log gives a duration that is shorter than the runs (a pause that it does not show), the
job is judged by its completion alone. Runs whose work was lost hold GPUs but count for nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.traces.log import FORMULATIONS, Log, Waits
from hindsched.instances.traces.reading import ASIDE, Reading
from hindsched.instances.traces.times import NANO, seconds_text
from hindsched.json_types import JsonObject

Span = tuple[int, int, int]
"""Begin, end and GPUs."""
MOST_SLOTS = 10**12
"""Slots that an instance may span."""
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


def build_log(
    reading: Reading, rows: pd.DataFrame, begin: int | None = None, end: int | None = None
) -> Log:
    """Make the log of a neutral frame; judge submissions from `begin` until before `end`."""
    clock, notes = reading.clock, reading.notes
    if clock.rounded:
        most = seconds_text(clock.most_rounded) if clock.most_rounded else "0.000000001"
        value = f"{clock.rounded} times, by at most {most} s"
        notes.add(0, "(times)", value, f"rounded to multiples of {clock.step} s as asked", "kept")
    waits = _waits(rows)
    rows = _sensible_spans(reading, _whole_gpus(reading, rows))
    if reading.requeues:
        rows = _mark_requeues(reading, rows)
    why = _reasons(rows, begin, end)
    for reason, role in REASONS.items():
        found = rows[why == reason]
        notes.add(found["row"], reading.columns.get(role, role), found["job"], reason, ASIDE)
    judged, others = rows[why == ""], rows[why != ""].assign(why=why[why != ""])
    if judged.empty:
        first = next(iter(notes.summary()), None)
        most = "" if first is None else (
            f": {first['count']} times {first['rule']} (column {first['column']})"
        )  # fmt: skip
        number = f"{reading.rows_read} row{'s' * (reading.rows_read != 1)}"
        raise InputError(reading.source, number, f"no row can be judged{most}")
    return _in_slots(reading, _jobs(reading, judged), judged, others, waits)


def _waits(rows: pd.DataFrame) -> tuple[Waits, ...]:
    waits, gpus = (rows["start"] - rows["submit"]).dropna(), rows["gpus"]
    kinds: dict[str, Any] = {
        "all": pd.Series(True, index=gpus.index),
        "whole GPUs": (gpus > 0) & (gpus % 1 == 0),
        "a share of a GPU": (gpus > 0) & (gpus % 1 != 0),
        "no GPU": gpus == 0,
    }
    made: list[Waits] = []
    for kind, mask in kinds.items():
        found = np.sort(waits[mask[waits.index]].to_numpy(dtype=np.int64)) / NANO
        number = len(found)
        if number and (kind == "all" or number < len(waits)):
            at = [float(found[-(-share * number // 100) - 1]) for share in (50, 95, 99, 100)]
            made.append(Waits(kind, number, float(np.sum(found) / number), *at))
    return tuple(made)


def _whole_gpus(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows without whole GPUs."""
    gpus, column = rows["gpus"], reading.columns.get("gpus", "gpus")
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
        column = reading.columns.get(role, role)
        for at in rows.index[_true(spans < 0)]:
            value = seconds_text(int(spans[at])) + words
            reading.notes.broken(int(rows["row"][at]), column, value, rule)
        zero = _true(spans == 0) & (role == "end" or ~_true(length == 0))
        reading.notes.add(rows["row"][zero], column, "0 s", "ran for no time", ASIDE)
        kept &= ~_true(spans <= 0)
    return rows[kept]


def _mark_requeues(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Tell the runs of each job apart and say which were lost.

    Rows of one job that overlap in time are one gang: they get the same ``gang``. With ``restart``
    every run but a job's last is ``lost``, unless the log says that it did not fail; with
    ``separate`` runs become jobs of their own, ``name#2`` and so on.
    """
    rows = rows.assign(gang=0, lost=False)
    column = reading.columns.get("job", "job")
    many = rows[rows["job"].duplicated(keep=False)]
    known = many.groupby("job")[["start", "end"]].transform("count").min(axis=1)
    many = many[known == many.groupby("job")["row"].transform("size")]  # no missing time
    for job, group in many.sort_values("start", kind="stable").groupby("job", sort=False):
        line, gang = int(group["row"].iloc[-1]), 0
        apart = group["start"] >= group["end"].cummax().shift()
        runs = [run for _, run in group.groupby(_true(apart).cumsum())]
        for number, run in enumerate(runs, start=1):
            together = run["start"].max() < run["end"].min()
            rows.loc[run.index, "gang"] = gang if together else gang + np.arange(len(run))
            gang += 1 if together else len(run)
            if not together:
                rule = "its parts never all ran at once"
                reading.notes.add(line, column, job, rule, "no gang: judged by its GPU-seconds")
            if reading.requeues == "separate" and number > 1:
                rows.loc[run.index, "job"] = f"{job}#{number}"
            if reading.requeues == "restart" and number < len(runs):
                rows.loc[run.index, "lost"] = bool(run["failed"].any()) if "failed" in run else True
        if len(runs) > 1:
            done = REQUEUE_DONE[reading.requeues]
            reading.notes.add(line, column, job, "a job that ran several times", done)
    return rows if rows["lost"].any() else rows.drop(columns="lost")


def _reasons(rows: pd.DataFrame, begin: int | None, end: int | None) -> pd.Series:
    """Why each row's job cannot be judged; empty if it can."""
    no_start, no_end = rows["start"].isna(), rows["end"].isna()
    # Several rows with an unknown start among them make no profile.
    no_work = rows["job"].duplicated(keep=False)
    no_work |= rows["duration"].isna() if "duration" in rows else True
    tests = [
        no_start & no_end,
        ~no_start & no_end,
        rows["submit"].isna(),
        no_start & no_work,
        _true(rows["submit"] < (0 if begin is None else begin)) & (begin is not None),
        _true(rows["submit"] >= (0 if end is None else end)) & (end is not None),
    ]
    worst = pd.Series(len(tests), index=rows.index)
    for number, mask in reversed(list(enumerate(tests))):
        worst[mask] = number
    of_job = worst.groupby(rows["job"]).transform("min")
    return of_job.map(dict(enumerate([*REASONS, ""])))


def _jobs(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """What each judged job is, by submission, then by row; times in nanoseconds."""
    groups = rows.groupby("job", sort=False)
    jobs = rows.drop_duplicates("job").set_index("job", drop=False).rename_axis(None)
    earliest = groups["submit"].min()
    found = jobs[groups["submit"].max() != earliest]
    rule = "rows of one job have different submissions"
    column = reading.columns.get("submit", "submit")
    reading.notes.add(found["row"], column, found["job"], rule, "the earliest counts")
    jobs = jobs.assign(
        submit=earliest, completion=jobs["end"], runs=1, ran=jobs["end"] - jobs["start"],
        area=_unknown(jobs),
    )  # fmt: skip
    several = rows[rows["job"].duplicated(keep=False)].groupby("job")
    merged = {str(job): _merged(group) for job, group in several}
    if merged:
        found = pd.DataFrame.from_dict(merged, orient="index")
        for name in found:
            changed = jobs[name].mask(jobs.index.isin(found.index), found[name])
            jobs[name] = changed.astype(jobs[name].dtype)
    given = jobs.get("duration", _unknown(jobs))
    if "paused" in jobs:
        given = given.fillna((jobs["ran"] - jobs["paused"]).where(jobs["paused"] > 0))
    given = given.where(jobs["area"].isna())
    jobs["completion_only"] = jobs["ran"].isna() | _true(given < jobs["ran"])
    jobs["duration"] = given.fillna(jobs["ran"])
    return jobs.sort_values(["submit", "row"], kind="stable").reset_index(drop=True)


def _merged(rows: pd.DataFrame) -> JsonObject:
    """What a job of several rows is, from its profile: how many GPUs it held when."""
    if "lost" in rows and not rows["lost"].all():
        rows = rows[~rows["lost"]]
    profile = profile_of(rows)
    widths = {width for _, _, width in profile}
    stretches = pairwise(profile)
    found: JsonObject = {
        "completion": profile[-1][1],
        "gpus": max(widths),
        "runs": 1 + sum(begin != end for (_, end, _), (begin, _, _) in stretches),
        "ran": sum(end - begin for begin, end, _ in profile),
        "area": None if len(widths) == 1 else sum((e - b) * width for b, e, width in profile),
    }
    found |= {name: rows[name].max() for name in ("duration", "deadline") if name in rows}
    if "paused" in rows:
        gangs = rows["gang"] if "gang" in rows else rows["job"]
        found["paused"] = rows["paused"].groupby(gangs).max().sum()
    return found


def profile_of(rows: pd.DataFrame) -> list[Span]:
    """GPUs held over time by some rows: maximal stretches of one width, without those of none.

    Rows of one ``gang`` run together, from the last row's start to the last row's end.
    """
    spans = rows[["start", "end", "gpus"]]
    if "gang" in rows:
        spans = rows.groupby("gang", sort=False).agg({"start": "max", "end": "max", "gpus": "sum"})
    changes: dict[int, int] = {}
    for begin, end, gpus in spans.itertuples(index=False):
        changes[int(begin)] = changes.get(int(begin), 0) + int(gpus)
        changes[int(end)] = changes.get(int(end), 0) - int(gpus)
    profile: list[Span] = []
    width, since = 0, 0
    for moment in sorted(changes):
        if changes[moment]:
            if width:
                profile.append((since, moment, width))
            width, since = width + changes[moment], moment
    return profile


def runs_of(jobs: pd.DataFrame, schedule: pd.DataFrame) -> dict[str, Ints]:
    """What each judged job of a log held, without runs whose work was lost.

    Returns
    -------
    dict of ndarray of int
        ``job`` (position in `jobs`), ``start``, ``end``, ``gpus``: stretches of one width.
    """
    rows = schedule.assign(at=pd.Index(jobs["job"]).get_indexer(schedule["job"]))
    rows = rows.rename(columns={"part": "gang"})
    if "lost" in rows:
        rows = rows[~rows["lost"]]
    several = rows["at"].duplicated(keep=False)
    found = [rows.loc[~several, ["at", "start", "end", "gpus"]].to_numpy(dtype=np.int64)]
    for at, group in rows[several].groupby("at"):
        found.append(np.array([(at, *span) for span in profile_of(group)], dtype=np.int64))
    table = np.concatenate(found)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return dict(zip(("job", "start", "end", "gpus"), table.T, strict=True))


def _in_slots(
    reading: Reading,
    jobs: pd.DataFrame,
    rows: pd.DataFrame,
    others: pd.DataFrame,
    waits: tuple[Waits, ...],
) -> Log:
    """The log, its nanoseconds as slots."""
    held = rows[rows["start"].notna()]
    unit = _slot_nanoseconds(jobs, held, others)
    zero = int(jobs["submit"].min()) // NANO * NANO
    if (int(jobs["completion"].max()) - zero) // unit > MOST_SLOTS:
        rule = f"spans more than {MOST_SLOTS:.0e} slots: --time-step 1 makes slots of a second"
        raise InputError(reading.source, f"slots of {seconds_text(unit)} s", rule)

    def slots(times: pd.Series, since: int = zero) -> pd.Series:
        found = (times - since) // unit
        return found if found.isna().any() else found.astype(np.int64)

    def frame(rows: pd.DataFrame, times: tuple[str, ...], kept: tuple[str, ...]) -> pd.DataFrame:
        rows = rows.assign(**{name: slots(rows[name]) for name in times})
        return rows[[name for name in kept if name in rows]].reset_index(drop=True)

    duration, area = slots(jobs["duration"], 0), slots(jobs["area"], 0)
    made: JsonObject = {
        "row": jobs["row"],
        "job": jobs["job"],
        "submit": slots(jobs["submit"]),
        "duration": duration,
        "gpus": jobs["gpus"],
        "work": area.fillna(duration * jobs["gpus"]).astype(np.int64),
        "ran": slots(jobs["ran"], 0),
        "runs": jobs["runs"],
        "completion": slots(jobs["completion"]),
        "completion_only": jobs["completion_only"],
    }
    made |= {name: jobs[name] for name in ("weight", "user") if name in jobs}
    made |= {"deadline": slots(jobs["deadline"])} if "deadline" in jobs else {}
    # A log's own parts (clusters) are no gangs, which `Log.schedule` calls parts.
    held = held.drop(columns="part", errors="ignore").rename(columns={"gang": "part"})
    spans = ("row", "job", "start", "end", "gpus")
    freedom = int(((jobs["runs"] > 1) | jobs["completion_only"]).any())
    return Log(
        format=reading.format.name,
        source=reading.path.name,
        sha256=reading.sha256,
        jobs=pd.DataFrame(made),
        schedule=frame(held, ("start", "end"), (*spans, "server", "lost", "part")),
        others=frame(others, ("submit", "start", "end"), (*spans[:2], "submit", *spans[2:], "why")),
        notes=reading.notes,
        capacity=reading.capacity,
        formulation=FORMULATIONS[2 if jobs["area"].notna().any() else freedom],
        slots_per_second=NANO // unit,
        zero=zero,
        clock=reading.clock.kind or "seconds",
        zone=reading.clock.zone or reading.clock.offset,
        rows_read=reading.rows_read,
        waits=waits,
        facts=tuple(reading.facts),
        gpus_a_server=reading.gpus_a_server,
    )


def _slot_nanoseconds(*tables: pd.DataFrame) -> int:
    """The largest power of ten nanoseconds, at most a second, that divides every time."""
    unit = NANO
    for table in tables:
        for name in ("submit", "start", "end", "completion", "duration", "ran", "deadline"):
            if name in table:
                times = table[name].dropna().to_numpy(dtype=np.int64)
                while unit > 1 and (times % unit).any():
                    unit //= 10
    return unit


def _unknown(rows: pd.DataFrame) -> pd.Series:
    return pd.Series(pd.NA, index=rows.index, dtype="Int64")


def _true(mask: pd.Series) -> pd.Series:
    """A comparison that a missing value does not satisfy."""
    return mask.fillna(False).astype(bool)
