"""Batsim's ``jobs.csv``: a row a job, its resources as a set of intervals such as ``0-3 8``.

A resource is a GPU and a server of its own, so that a resource given to two jobs at once shows.
"""

from __future__ import annotations

import re

import pandas as pd

from hindsched.instances.traces.cells import NONE_WORDS, Cells, Format, Reading

INTERVALS = re.compile(r"\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*", re.ASCII)
NO_TIME = NONE_WORDS | {"-1", "-1.000000", "-1.0"}
MOST_RESOURCES = 1_000_000


def read(reading: Reading) -> pd.DataFrame:
    """Read the table of jobs."""
    per_resource = reading.choice("resources", ("yes", "no")) == "yes"
    reading.gpus_a_server = 1 if per_resource else None
    cells = reading.table(",", what="Batsim's jobs.csv with a header")
    rejected = cells.text("state") == "REJECTED"
    cells.note(rejected, "state", "REJECTED", "the job was rejected", "set aside: not judged")
    job, workload = cells.names("job"), cells.text("workload")
    start, gpus = cells.times("start", NO_TIME), cells.amounts("gpus")
    if workload.nunique() > 1:  # numbers of jobs are unique within a workload
        job = workload + "!" + job
    held = _resources(cells, gpus, start) if per_resource and cells.has("server") else None
    frame = cells.neutral(
        ~rejected,
        job=job,
        submit=cells.times("submit", NO_TIME),
        start=start,
        end=cells.times("end", NO_TIME),
        gpus=gpus,
        server=held,
    )
    if held is None:
        return frame
    frame["gpus"] = frame["gpus"].where(frame["server"].map(len) <= 1, 1.0)
    frame = frame.explode("server", ignore_index=True)
    return frame.assign(server=[str(held) if held == held else "" for held in frame["server"]])


def _resources(cells: Cells, gpus: pd.Series, start: pd.Series) -> pd.Series:
    """Resources of each row; none where they are not given."""
    held: list[list[int]] = []
    for row, text, asked, begin in zip(gpus.index, cells.text("server"), gpus, start, strict=True):
        found: list[int] = []
        if text not in NO_TIME and not pd.isna(begin):
            try:
                found = resources(text)
                if len(found) != asked:
                    raise ValueError(f"must be as many resources as the {asked:g} requested")
            except ValueError as error:
                cells.refuse([row], "server", [text], str(error))
        held.append(found)
    return pd.Series(held, index=gpus.index, dtype=object)


def resources(text: str) -> list[int]:
    """Numbers of a set of intervals; `ValueError` says the rule that it breaks.

    Examples
    --------
    >>> resources("0-2 8")
    [0, 1, 2, 8]
    """
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


FORMAT = Format(
    name="batsim",
    what="Batsim's jobs.csv",
    read=read,
    columns={
        "job": "job_id", "submit": "submission_time", "start": "starting_time",
        "end": "finish_time", "gpus": "requested_number_of_resources", "state": "final_state",
        "server": "allocated_resources", "workload": "workload_name",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"resources": ("yes", "whether each resource is checked by itself: yes or no")},
)  # fmt: skip
