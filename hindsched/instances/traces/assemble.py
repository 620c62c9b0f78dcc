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

from hindsched.errors import InputError
from hindsched.instances.traces.cells import Reading
from hindsched.instances.traces.log import FORMULATIONS, Log, Waits
from hindsched.instances.traces.profiles import profile_of
from hindsched.instances.traces.times import NANO, seconds_text
from hindsched.json_types import JsonObject

MOST_SLOTS = 10**12
"""Slots that an instance may span."""
SET_ASIDE = "set aside: not judged"
RERUN_DONE = {
    "restart": "lost runs hold GPUs but count for nothing",
    "resume": "its runs add up",
    "separate": "each run is a job",
}


def assemble(
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
    if reading.reruns:
        rows = _mark_reruns(reading, rows)
    why = _reasons(rows, begin, end)
    for reason, role in REASONS.items():
        found = rows[why == reason]
        if len(found):
            column = reading.columns.get(role, role)
            notes.add(found["row"], column, found["job"], reason, SET_ASIDE)
    judged, others = rows[why == ""], rows[why != ""].assign(why=why[why != ""])
    if judged.empty:
        first = next(iter(notes.summary()), None)
        most = "" if first is None else (
            f": {first['count']} times {first['rule']} (column {first['column']})"
        )  # fmt: skip
        number = f"{reading.rows_read} row{'s' * (reading.rows_read != 1)}"
        raise InputError(reading.source, number, f"no row can be judged{most}")
    return _log(reading, _jobs(reading, judged), judged, others, waits)


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
    unknown, none = rows["row"][gpus.isna()], rows["row"][gpus == 0]
    reading.notes.add(unknown, column, "", "number of GPUs unknown", SET_ASIDE)
    reading.notes.add(none, column, "0", "asks for no GPU", SET_ASIDE)
    reading.notes.add(rows["row"][share.index], column, share, "a share of a GPU", SET_ASIDE)
    rows = rows[gpus.notna() & (gpus > 0) & (gpus % 1 == 0)]
    return rows.assign(gpus=rows["gpus"].astype(np.int64))


def _sensible_spans(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows that end before they start or run for no time."""
    columns, notes = reading.columns, reading.notes
    length = rows["end"] - rows["start"]
    given = rows.get("duration", pd.Series(pd.NA, index=rows.index, dtype="Int64"))
    backwards, negative = _true(length < 0), _true(given < 0)
    for at in rows.index[backwards]:
        value = f"{seconds_text(int(length[at]))} s after its start"
        rule = "must not precede the start"
        notes.broken(int(rows["row"][at]), columns.get("end", "end"), value, rule)
    for at in rows.index[negative]:
        value = seconds_text(int(given[at]))
        column = columns.get("duration", "duration")
        notes.broken(int(rows["row"][at]), column, value, "must not be negative")
    empty, zero = _true(length == 0), _true(given == 0) & ~_true(length == 0)
    for mask, role in ((empty, "end"), (zero, "duration")):
        column = columns.get(role, role)
        notes.add(rows["row"][mask], column, "0 s", "ran for no time", SET_ASIDE)
    return rows[~(backwards | negative | empty | zero)]


def _mark_reruns(reading: Reading, rows: pd.DataFrame) -> pd.DataFrame:
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
        line = int(group["row"].iloc[-1])
        apart = group["start"] >= group["end"].cummax().shift()
        runs = [run for _, run in group.groupby(apart.fillna(False).astype(bool).cumsum())]
        gang = 0
        for run in runs:
            together = run["start"].max() < run["end"].min()
            rows.loc[run.index, "gang"] = gang if together else gang + np.arange(len(run))
            gang += 1 if together else len(run)
            if not together:
                rule = "its parts never all ran at once"
                reading.notes.add(line, column, job, rule, "no gang: judged by its GPU-seconds")
        if len(runs) == 1:
            continue
        for number, run in enumerate(runs, start=1):
            if reading.reruns == "separate" and number > 1:
                rows.loc[run.index, "job"] = f"{job}#{number}"
            if reading.reruns == "restart" and number < len(runs):
                rows.loc[run.index, "lost"] = bool(run["failed"].any()) if "failed" in run else True
        rule = "a job that ran several times"
        reading.notes.add(line, column, job, rule, RERUN_DONE[reading.reruns])
    return rows if rows["lost"].any() else rows.drop(columns="lost")


REASONS = {
    "no start: never ran, or unknown": "start",
    "no end: still running when the log ended": "end",
    "submitted before the log begins": "submit",
    "start and duration unknown": "start",
    "submitted before the window": "submit",
    "submitted after the window": "submit",
}
"""Why a job cannot be judged, and the role that says it; the first that applies counts."""


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
    differ = groups["submit"].max() != earliest
    if differ.any():
        column = reading.columns.get("submit", "submit")
        rule = "rows of one job have different submissions"
        found = jobs[differ]
        reading.notes.add(found["row"], column, found["job"], rule, "the earliest counts")
    jobs = jobs.assign(
        submit=earliest, completion=jobs["end"], runs=1, ran=jobs["end"] - jobs["start"],
        area=pd.Series(pd.NA, index=jobs.index, dtype="Int64"),
    )  # fmt: skip
    several = rows[rows["job"].duplicated(keep=False)].groupby("job")
    merged = {str(job): _merged(group) for job, group in several}
    if merged:
        found = pd.DataFrame.from_dict(merged, orient="index")
        for name in found:
            changed = jobs[name].mask(jobs.index.isin(found.index), found[name])
            jobs[name] = changed.astype(jobs[name].dtype)
    given = jobs.get("duration", pd.Series(pd.NA, index=jobs.index, dtype="Int64"))
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


def _log(
    reading: Reading,
    jobs: pd.DataFrame,
    rows: pd.DataFrame,
    others: pd.DataFrame,
    waits: tuple[Waits, ...],
) -> Log:
    held = rows[rows["start"].notna()]
    unit = _slot_nanoseconds(jobs, held, others)
    zero = int(jobs["submit"].min()) // NANO * NANO
    if (int(jobs["completion"].max()) - zero) // unit > MOST_SLOTS:
        rule = f"spans more than {MOST_SLOTS:.0e} slots: --time-step 1 makes slots of a second"
        raise InputError(reading.source, f"slots of {seconds_text(unit)} s", rule)

    def slots(times: pd.Series, since: int = zero) -> pd.Series:
        found = (times - since) // unit
        return found if found.isna().any() else found.astype(np.int64)

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
    schedule = _in_slots(held, slots, ("start", "end"))
    schedule = schedule.rename(columns={"gang": "part"})
    kept = ("row", "job", "start", "end", "gpus", "server", "lost", "part")
    aside = ["row", "job", "submit", "start", "end", "gpus", "why"]
    is_elastic = jobs["area"].notna()
    freedom = int(((jobs["runs"] > 1) | jobs["completion_only"]).any())
    return Log(
        format=reading.format.name,
        source=reading.path.name,
        sha256=reading.sha256,
        jobs=pd.DataFrame(made),
        schedule=schedule[[name for name in kept if name in schedule]].reset_index(drop=True),
        others=_in_slots(others, slots, ("submit", "start", "end"))[aside].reset_index(drop=True),
        notes=reading.notes,
        capacity=reading.capacity,
        formulation=FORMULATIONS[2 if is_elastic.any() else freedom],
        slots_per_second=NANO // unit,
        zero=zero,
        clock=reading.clock.kind or "seconds",
        zone=reading.clock.display_zone,
        rows_read=reading.rows_read,
        waits=waits,
        facts=tuple(reading.facts),
        gpus_a_server=reading.gpus_a_server,
    )


def _in_slots(rows: pd.DataFrame, slots: Any, names: tuple[str, ...]) -> pd.DataFrame:
    # A log's own parts (clusters) are no gangs, which `Log.schedule` calls parts.
    return rows.drop(columns="part", errors="ignore").assign(**{n: slots(rows[n]) for n in names})


def _slot_nanoseconds(*tables: pd.DataFrame) -> int:
    """The largest power of ten nanoseconds, at most a second, that divides every time."""
    unit = NANO
    for table in tables:
        for name in ("submit", "start", "end", "completion", "duration", "ran", "deadline"):
            if name in table:
                times = table[name].dropna().to_numpy(dtype=np.int64)
                while unit > 1 and (times % unit != 0).any():
                    unit //= 10
    return unit


def _true(mask: pd.Series) -> pd.Series:
    """A comparison that a missing value does not satisfy."""
    return mask.fillna(False).astype(bool)
