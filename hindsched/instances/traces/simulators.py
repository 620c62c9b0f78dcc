"""Output of simulators: Tiresias', ElasticFlow's and Batsim's tables of jobs.

The first two write ``job.csv`` and ``scheduling_events.csv``. A row of the events says which job
holds each GPU (``gpu<server>-<k>``) from its time to the next row's. A job that ends in between
holds its GPUs until its ``end_time``: they stand idle till the round is over. ElasticFlow's widths
change, so ``num_gpu`` (the last allocation) and ``executed_time`` (measured at it) are no work;
what a job did is the GPU-seconds that it held. Tiresias' widths are fixed: without the events a job
is preempted and resumed between ``start_time`` and ``end_time``, its work is ``duration`` where the
file has it, else ``executed_time``, and only completions can be judged.

Batsim's ``jobs.csv`` has a row a job, its resources as a set of intervals such as ``0-3 8``. A
resource is a GPU and a server of its own, so that a resource given to two jobs at once shows.
"""

from __future__ import annotations

import re
from itertools import pairwise
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
    Cells,
    Format,
    Reading,
    read_table,
)

GPU_COLUMN = re.compile(r"gpu(\d+)-(\d+)", re.ASCII)
OVERFLOWED = ("9223372036854775807", "-9223372036854775808", "2147483647", "4294967295")
"""Largest and smallest integers of a machine: what a program writes that has no value."""
JOBS, EVENTS = "job.csv", "scheduling_events.csv"
INTERVALS = re.compile(r"\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*", re.ASCII)
NO_TIME = NONE_WORDS | {"-1", "-1.000000", "-1.0"}
MOST_RESOURCES = 1_000_000


def read(reading: Reading) -> pd.DataFrame:
    """Read ``job.csv`` and, where there is one, ``scheduling_events.csv``."""
    events = _find_events(reading)
    cells = reading.table(",", what="job.csv of the simulator, with a header")
    if events is not None:
        return _by_events(cells, events)
    if reading.format is ELASTICFLOW:
        rule = "must have scheduling_events.csv beside it (--set events=FILE): widths are unknown"
        raise InputError(reading.source, "(no events)", rule)
    start, end, duration = (_known(cells, role) for role in ("start", "end", "duration"))
    duration = duration.where((duration >= 0).fillna(False).astype(bool) & start.notna())
    if cells.has("work"):
        given = cells.spans("work")
        duration = given.where(given.notna(), duration)
    return cells.standard(start=start, end=end, duration=duration)


def _find_events(reading: Reading) -> Path | None:
    """The file of events; a folder is taken for its ``job.csv``."""
    setting = reading.settings["events"]
    if reading.path.is_dir():
        found = [reading.path / f"{JOBS}{end}" for end in ("", ".gz")]
        reading.path = next((file for file in found if file.is_file()), found[0])
        reading.notes.source = str(reading.path)
    if setting != "beside":
        return None if setting == "none" else Path(setting)
    stem, is_job_file, _ = reading.path.name.rpartition(JOBS)
    beside = [reading.path.with_name(f"{stem}{EVENTS}{end}") for end in ("", ".gz")]
    return next((file for file in beside if is_job_file and file.is_file()), None)


def _known(cells: Cells, role: str) -> pd.Series:
    """Times of a role, unknown where the program wrote a machine's largest integer."""
    texts = cells.text(role)
    over = texts.isin(OVERFLOWED) | (texts.str.split(".").str[0].str.lstrip("-").str.len() > 17)
    cells.note(over, role, texts, "overflowed", "taken as unknown")
    cells.frame[role] = texts.mask(over, "")
    return cells.spans(role) if role == "duration" else cells.times(role)


def _by_events(cells: Cells, path: Path) -> pd.DataFrame:
    """Jobs by the GPUs that they held."""
    reading = cells.reading
    end = _known(cells, "end")
    cells.frame["start"] = ""  # the events say when
    frame = cells.standard(end=end, gpus=0.0, duration=None)
    held = _held(reading, path)
    for job in held[~held["job"].isin(frame["job"])]["job"].unique():
        rule = "is not in job.csv"
        reading.notes.add(0, "(events)", f"job {job}", rule, "its GPUs are not counted")
    idle = frame[~frame["job"].isin(held["job"])]
    reading.notes.add(idle["row"], "job_id", idle["job"], "is in no event", "never held a GPU")
    kept = frame.drop(columns=["start", "gpus", "server"], errors="ignore")
    made = kept.merge(held, on="job", how="left")
    made["end"] = made["until"].where(made["end"].isna(), made[["until", "end"]].min(axis=1))
    made.loc[made["start"].isna(), "end"] = pd.NA
    made["gpus"] = made["gpus"].fillna(0.0)
    made["server"] = made["server"].fillna("")
    empty = (made["start"] >= made["end"]).fillna(False).astype(bool)
    return made[~empty].drop(columns="until").reset_index(drop=True)


def _held(reading: Reading, path: Path) -> pd.DataFrame:
    """Stretches of time in which a job held so many GPUs of a server; sets the capacity."""
    source = str(path)
    text = decoded(read_bytes(path, reading.most_bytes)[0], source)
    table = read_table(text, source, ",", what="a table of events")
    odd = table.pop("(cells)")
    servers = {name: match[1] for name in table if (match := GPU_COLUMN.fullmatch(str(name)))}
    if "time" not in table or not servers:
        rule = "must have a column time and a column gpu<server>-<k> for each GPU"
        raise InputError(f"{source}, row 1", ", ".join(map(str, list(table)[:5])), rule)
    for row, count in odd[odd > 0].items():
        rule = f"must have {table.shape[1]} cells as the header has"
        raise InputError(f"{source}, row {row}", f"{count} cells", rule)
    reading.rows_read += len(table)
    moments = _moments(reading, source, table["time"])
    each: Any = table[list(servers)].fillna("").set_axis(moments, axis=0).stack()
    each = each[each != ""].rename("job").rename_axis(["time", "gpu"]).reset_index()
    each["server"] = each["gpu"].map(servers)
    counts = each.groupby(["job", "server", "time"]).size()
    order = {name: number for number, name in enumerate(dict.fromkeys(servers.values()))}
    held: list[tuple[Any, ...]] = []
    if len(counts):
        wide = counts.unstack(fill_value=0).reindex(columns=moments, fill_value=0)
        for (job, server), row in zip(wide.index, wide.to_numpy(), strict=True):
            # the last row of the events ends what the one before it says
            edges = [0, *(np.flatnonzero(np.diff(row[:-1])) + 1).tolist(), len(moments) - 1]
            held += [
                (job, moments[begin], moments[end], server, float(row[begin]))
                for begin, end in pairwise(edges)
                if row[begin] and begin < end
            ]
    held.sort(key=lambda span: (span[2], span[1], order[span[3]]))
    gpus = pd.Series(servers.values()).value_counts()
    named = tuple((name, int(gpus[name])) for name in sorted(order, key=int))
    reading.capacity = Capacity(len(servers), named, "the columns of the events")
    frame = pd.DataFrame(held, columns=["job", "start", "until", "server", "gpus"])
    return frame.astype({"start": "Int64", "until": "Int64", "gpus": float})


def _moments(reading: Reading, source: str, cells: pd.Series) -> list[int]:
    moments: list[int] = []
    for row, cell in cells.items():
        try:
            moments.append(reading.clock.time(str(cell).strip())[0])
            if len(moments) > 1 and moments[-1] <= moments[-2]:
                raise ValueError("must be later than the row before")
        except ValueError as error:
            raise InputError(f"{source}, row {row}, column time", cell, str(error)) from None
    return moments


def read_batsim(reading: Reading) -> pd.DataFrame:
    """Read Batsim's table of jobs."""
    per_resource = reading.choice("resources", ("yes", "no")) == "yes"
    reading.gpus_a_server = 1 if per_resource else None
    cells = reading.table(",", what="Batsim's jobs.csv with a header")
    rejected = cells.text("state") == "REJECTED"
    cells.note(rejected, "state", "REJECTED", "the job was rejected", ASIDE)
    job, workload = cells.names("job"), cells.text("workload")
    start, gpus, sets = cells.times("start", NO_TIME), cells.amounts("gpus"), cells.text("server")
    if workload.nunique() > 1:  # numbers of jobs are unique within a workload
        job = workload + "!" + job
    held: dict[Any, list[int]] = {}
    given = sets[~sets.isin(NO_TIME) & start.notna()] if per_resource else sets[:0]
    for row, text, asked in zip(given.index, given, gpus[given.index], strict=True):
        try:
            held[row] = _resources(text)
            if len(held[row]) != asked:
                raise ValueError(f"must be as many resources as the {asked:g} requested")
        except ValueError as error:
            cells.refuse(pd.Series(sets.index == row, sets.index), "server", text, str(error))
    is_held = per_resource and cells.has("server")
    frame = cells.neutral(
        ~rejected,
        job=job,
        submit=cells.times("submit", NO_TIME),
        start=start,
        end=cells.times("end", NO_TIME),
        gpus=gpus,
        server=pd.Series([held.get(row, [""]) for row in sets.index], sets.index, dtype=object)
        if is_held
        else None,
    )
    if is_held:
        frame["gpus"] = frame["gpus"].where(frame["server"].map(len) <= 1, 1.0)
        frame = frame.explode("server", ignore_index=True)
        frame["server"] = [str(name) for name in frame["server"]]
    return frame


def _resources(text: str) -> list[int]:
    """Numbers of a set of intervals; `ValueError` says the rule that it breaks."""
    if not INTERVALS.fullmatch(text):
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
    return found


COLUMNS = {
    "job": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
    "gpus": "num_gpu", "deadline": "ddl", "duration": "executed_time",
}  # fmt: skip
SETTINGS = {
    "events": ("beside", "the file of scheduling events: beside (the job file), none, or a path"),
}
NEEDED = ("job", "submit", "start", "end", "gpus", "duration")
ELASTICFLOW = Format(
    name="elasticflow",
    what="job.csv and scheduling_events.csv of ElasticFlow's simulator",
    read=read,
    columns=COLUMNS,
    needed=NEEDED,
    settings=SETTINGS,
)
TIRESIAS = Format(
    name="tiresias",
    what="job.csv of Tiresias' simulator",
    read=read,
    columns={**COLUMNS, "work": "duration"},
    needed=NEEDED,
    settings=SETTINGS,
)
BATSIM = Format(
    name="batsim",
    what="Batsim's jobs.csv",
    read=read_batsim,
    columns={
        "job": "job_id", "submit": "submission_time", "start": "starting_time",
        "end": "finish_time", "gpus": "requested_number_of_resources", "state": "final_state",
        "server": "allocated_resources", "workload": "workload_name",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"resources": ("yes", "whether each resource is checked by itself: yes or no")},
)  # fmt: skip
