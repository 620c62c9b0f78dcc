"""Output of simulators: Tiresias', ElasticFlow's and Batsim's tables of jobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.reading import (
    ASIDE,
    NONE_WORDS,
    Format,
    Reading,
    known_true,
    read_table,
)

OVERFLOWED = ("9223372036854775807", "-9223372036854775808", "2147483647", "4294967295")
"""Largest and smallest integers of a machine: what a program writes that has no value."""
JOBS, EVENTS = "job.csv", "scheduling_events.csv"
MOST_RESOURCES = 1_000_000


def read_jobs(log: Reading) -> pd.DataFrame:
    """Tiresias' and ElasticFlow's ``job.csv`` and, where there is one, its table of events.

    A row of ``scheduling_events.csv`` says which job holds each GPU (``gpu<server>-<k>``) from its
    time to the next row's. A job that ends in between holds its GPUs until its ``end_time``: they
    stand idle till the round is over. ElasticFlow's widths change: what a job did is the
    GPU-seconds that it held. Tiresias' widths are fixed: without the events a job is preempted and
    resumed between ``start_time`` and ``end_time``, its work is ``duration`` where the file has
    it, else ``executed_time``, and only completions can be judged.
    """
    if log.path.is_dir():
        found = [log.path / f"{JOBS}{end}" for end in ("", ".gz")]
        log.path = next((file for file in found if file.is_file()), found[0])
    stem, is_job_file, _ = log.path.name.rpartition(JOBS)
    beside = [log.path.with_name(f"{stem}{EVENTS}{end}") for end in ("", ".gz")]
    events = next((file for file in beside if is_job_file and file.is_file()), None)
    if log.settings["events"] != "beside":
        events = None if log.settings["events"] == "none" else Path(log.settings["events"])
    log.table(",", what="job.csv of the simulator, with a header")
    if events is not None:
        return _by_events(log, events)
    if log.form is ELASTICFLOW:
        rule = "must have scheduling_events.csv beside it (--set events=FILE): widths are unknown"
        raise InputError(log.source, "(no events)", rule)
    start, end, duration = (_known(log, role) for role in ("start", "end", "duration"))
    duration = duration.where(known_true(duration >= 0) & start.notna())
    if log.has("work"):
        given = log.spans("work")
        duration = given.where(given.notna(), duration)
    return log.standard(start=start, end=end, duration=duration)


def _known(log: Reading, role: str) -> pd.Series:
    """Times of a role, unknown where the program wrote a machine's largest integer."""
    texts = log.text(role)
    over = texts.isin(OVERFLOWED) | (texts.str.split(".").str[0].str.lstrip("-").str.len() > 17)
    log.note(over, role, texts, "overflowed", "taken as unknown")
    log.cells[role] = texts.mask(over, "")
    return log.spans(role) if role == "duration" else log.times(role)


def _by_events(log: Reading, path: Path) -> pd.DataFrame:
    """Jobs by the GPUs that they held."""
    nothing = pd.Series(pd.NA, index=log.cells.index, dtype="Int64")
    frame = log.standard(start=nothing, end=_known(log, "end"), gpus=None, duration=None)
    held = _held(log, path)
    for job in held[~held["job"].isin(frame["job"])]["job"].unique():
        rule = "is not in job.csv"
        log.notes.add(0, "(events)", f"job {job}", rule, "its GPUs are not counted")
    idle = frame[~frame["job"].isin(held["job"])]
    log.notes.add(idle["row"], "job_id", idle["job"], "is in no event", "never held a GPU")
    made = frame.drop(columns="start").merge(held, on="job", how="left")
    made["end"] = made[["until", "end"]].min(axis=1).where(made["start"].notna())
    made["gpus"], made["server"] = made["gpus"].fillna(0.0), made["server"].fillna("")
    return (
        made[~known_true(made["start"] >= made["end"])].drop(columns="until").reset_index(drop=True)
    )


def _held(log: Reading, path: Path) -> pd.DataFrame:
    """Stretches of time in which a job held so many GPUs of a server; sets the capacity."""
    source = str(path)
    text = decoded(read_bytes(path, log.most_bytes)[0], source)
    table = read_table(text, source, ",", what="a table of events")
    odd = table.pop("(cells)")
    names = pd.Series(table.columns, index=table.columns)
    servers = names.str.extract(r"(?a:^gpu(\d+)-\d+$)")[0].dropna()
    if "time" not in table or servers.empty:
        rule = "must have a column time and a column gpu<server>-<k> for each GPU"
        raise InputError(f"{source}, row 1", ", ".join(map(str, list(table)[:5])), rule)
    row: Any
    for row, count in odd[odd > 0].items():
        rule = f"must have {table.shape[1]} cells as the header has"
        raise InputError(f"{source}, row {row}", f"{count} cells", rule)
    log.rows_read += len(table)
    cells = table["time"].str.strip()
    moments = log.clock.times(cells)
    rules = moments["rule"].mask(
        known_true(moments["value"].diff() <= 0), "must be later than the row before"
    )
    for row, rule in rules[rules != ""].items():
        raise InputError(f"{source}, row {row}, column time", cells[row], rule)
    times = moments["value"].to_numpy(np.int64)
    each: Any = table[list(servers.index)].fillna("").set_axis(range(len(times)), axis=0)
    each = each.iloc[:-1].stack()  # the last row ends what the one before it says
    each = each[each != ""].rename("job").rename_axis(["at", "gpu"]).reset_index()
    each["server"] = each["gpu"].map(servers)
    wide = each.groupby(["job", "server", "at"]).size().unstack(fill_value=0)
    wide = wide.reindex(columns=range(len(times)), fill_value=0)
    found = wide.stack().rename("gpus").reset_index()
    found["at"] = found["at"].astype(np.int64)
    of_place = found.groupby(["job", "server"])["gpus"]
    changes = found[(found["gpus"] != of_place.shift()) | (found["at"] == 0)].copy()
    changes["until"] = changes.groupby(["job", "server"])["at"].shift(-1)
    held = changes[changes["gpus"] > 0].astype({"until": np.int64, "gpus": float})
    held = held.assign(start=times[held["at"]], until=times[held["until"]])
    gpus = servers.value_counts()
    order = {name: place for place, name in enumerate(servers.unique())}
    held = held.assign(place=held["server"].map(order)).sort_values(
        ["until", "start", "place"], kind="stable"
    )
    named = tuple((name, int(gpus[name])) for name in sorted(order, key=int))
    log.capacity = Capacity(len(servers), named, "the columns of the events")
    held = held[["job", "start", "until", "server", "gpus"]]
    return held.astype({"start": "Int64", "until": "Int64", "gpus": float})


def read_batsim(log: Reading) -> pd.DataFrame:
    """Batsim's ``jobs.csv``: a row a job, its resources as intervals such as ``0-3 8``.

    A resource is a GPU and a server of its own, so that a resource given to two jobs shows.
    """
    per_resource = log.choice("resources", ("yes", "no")) == "yes"
    log.gpus_a_server = 1 if per_resource else None
    log.table(",", what="Batsim's jobs.csv with a header")
    rejected = log.text("state") == "REJECTED"
    log.note(rejected, "state", "REJECTED", "the job was rejected", ASIDE)
    job, workload = log.names("job"), log.text("workload")
    start, gpus, sets = log.times("start"), log.amounts("gpus"), log.text("server")
    if workload.nunique() > 1:  # numbers of jobs are unique within a workload
        job = workload + "!" + job
    held: pd.Series | None = None
    if per_resource and log.has("server"):
        held = pd.Series([[""]] * len(sets), sets.index, dtype=object)
        row: Any
        for row, text in sets[~sets.isin(log.form.missing) & start.notna()].items():
            try:
                held[row] = _resources(text)
                if len(held[row]) != gpus[row]:
                    raise ValueError(f"must be as many resources as the {gpus[row]:g} requested")
            except ValueError as error:
                log.refuse(pd.Series(sets.index == row, sets.index), "server", text, str(error))
    frame = log.neutral(
        ~rejected,
        job=job,
        submit=log.times("submit"),
        start=start,
        end=log.times("end"),
        gpus=gpus,
        server=held,
    )
    if held is not None:
        frame["gpus"] = frame["gpus"].where(frame["server"].map(len) <= 1, 1.0)
        frame = frame.explode("server", ignore_index=True)
    return frame


def _resources(text: str) -> list[str]:
    """Numbers of a set of intervals; `ValueError` says the rule that it breaks."""
    if not re.fullmatch(r"(?a:\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*)", text):
        raise ValueError("must be a set of intervals such as 0-3 8")
    found: list[int] = []
    for part in re.split("[ ,]+", text):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if end < begin or end - begin + len(found) >= MOST_RESOURCES:
            raise ValueError(f"must be ascending, of at most {MOST_RESOURCES} resources")
        found.extend(range(begin, end + 1))
    if len(set(found)) < len(found):
        raise ValueError("must name each resource once")
    return list(map(str, found))


COLUMNS = {
    "job": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
    "gpus": "num_gpu", "deadline": "ddl", "duration": "executed_time",
}  # fmt: skip
SETTINGS = {
    "events": ("beside", "the file of scheduling events: beside (the job file), none, or a path"),
}
NEEDED = ("job", "submit", "start", "end", "gpus", "duration")
ELASTICFLOW = Format(
    "elasticflow", "job.csv and scheduling_events.csv of ElasticFlow's simulator", read_jobs,
    columns=COLUMNS, needed=NEEDED, settings=SETTINGS,
)  # fmt: skip
TIRESIAS = Format(
    "tiresias", "job.csv of Tiresias' simulator", read_jobs,
    columns={**COLUMNS, "work": "duration"}, needed=NEEDED, settings=SETTINGS,
)  # fmt: skip
BATSIM = Format(
    "batsim", "Batsim's jobs.csv", read_batsim,
    columns={
        "job": "job_id", "submit": "submission_time", "start": "starting_time",
        "end": "finish_time", "gpus": "requested_number_of_resources", "state": "final_state",
        "server": "allocated_resources", "workload": "workload_name",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"resources": ("yes", "whether each resource is checked by itself: yes or no")},
    missing=NONE_WORDS | {"-1", "-1.000000", "-1.0"},
)  # fmt: skip
