"""The simulators of Tiresias and ElasticFlow: ``job.csv`` and ``scheduling_events.csv``.

A row of the events says which job holds each GPU (``gpu<server>-<k>``) from its time to the next
row's. A job that ends in between holds its GPUs until its ``end_time``: they stand idle till the
round is over. ElasticFlow's widths change, so ``num_gpu`` (the last allocation) and
``executed_time`` (measured at it) are no work; what a job did is the GPU-seconds that it held.
Tiresias' widths are fixed: without the events a job is preempted and resumed between ``start_time``
and ``end_time``, its work is ``duration`` where the file has it, else ``executed_time``, and only
completions can be judged.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.cells import Cells, Format, Reading, read_table

GPU_COLUMN = re.compile(r"gpu(\d+)-(\d+)", re.ASCII)
OVERFLOWED = ("9223372036854775807", "-9223372036854775808", "2147483647", "4294967295")
"""Largest and smallest integers of a machine: what a program writes that has no value."""
JOBS, EVENTS = "job.csv", "scheduling_events.csv"
COLUMNS = {
    "job": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
    "gpus": "num_gpu", "deadline": "ddl", "duration": "executed_time",
}  # fmt: skip


def read(reading: Reading) -> pd.DataFrame:
    """Read ``job.csv`` and, where there is one, ``scheduling_events.csv``."""
    events = _find(reading)
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


def _find(reading: Reading) -> Path | None:
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
    strangers = held[~held["job"].isin(frame["job"])]["job"].unique()
    for job in strangers:
        rule = "is not in job.csv"
        reading.notes.add(0, "(events)", f"job {job}", rule, "its GPUs are not counted")
    idle = frame[~frame["job"].isin(held["job"])]
    for row, job in zip(idle["row"], idle["job"], strict=True):
        reading.notes.add(row, "job_id", job, "is in no event", "never held a GPU")
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
    names, table = read_table(text, source, ",", what="a table of events")
    servers = {name: match[1] for name in names if (match := GPU_COLUMN.fullmatch(name))}
    if "time" not in names or not servers:
        rule = "must have a column time and a column gpu<server>-<k> for each GPU"
        raise InputError(f"{source}, row 1", ", ".join(names[:5]), rule)
    odd = table[table["(cells)"] > 0]
    for row, count in odd["(cells)"].items():
        rule = f"must have {len(names)} cells as the header has"
        raise InputError(f"{source}, row {row}", f"{count} cells", rule)
    reading.rows_read += len(table)
    moments = _moments(reading, source, table["time"])
    each: Any = table[list(servers)].fillna("").set_axis(moments, axis=0).stack()
    each = each[each != ""].rename("job").rename_axis(["time", "gpu"]).reset_index()
    each["server"] = each["gpu"].map(servers)
    counts = each.groupby(["job", "server", "time"]).size()
    held: list[tuple[Any, ...]] = []
    if len(counts):
        wide = counts.unstack(fill_value=0).reindex(columns=moments, fill_value=0)
        for (job, server), row in zip(wide.index, wide.to_numpy(), strict=True):
            since = 0
            for at in range(1, len(moments)):
                if row[at] != row[since] or at == len(moments) - 1:
                    if row[since]:
                        held.append((job, moments[since], moments[at], server, float(row[since])))
                    since = at
    order = {name: number for number, name in enumerate(dict.fromkeys(servers.values()))}
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
