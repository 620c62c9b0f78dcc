"""Batsim's ``jobs.csv``: a row a job, its resources as a set of intervals such as ``0-3 8``.

A resource is a GPU and a server of its own, so that a resource given to two jobs at once shows.
"""

from __future__ import annotations

import re

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.table import NONE_WORDS, Chunk, chunks
from hindsched.instances.logs.times import MISSING

INTERVALS = re.compile(r"\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*", re.ASCII)
NO_TIME = NONE_WORDS | {"-1", "-1.000000", "-1.0"}
MOST_RESOURCES = 1_000_000


def read(reading: Reading) -> None:
    """Read the table of jobs."""
    per_resource = reading.choice("resources", ("yes", "no")) == "yes"
    reading.gpus_a_server = 1 if per_resource else None
    what = "Batsim's jobs.csv with a header"
    for chunk in chunks(reading, reading.source.lines(), what=what):
        _add(reading, chunk, per_resource=per_resource)


def _add(reading: Reading, chunk: Chunk, *, per_resource: bool) -> None:
    submit = chunk.times("submit", NO_TIME)[0]
    start, end = chunk.times("start", NO_TIME)[0], chunk.times("end", NO_TIME)[0]
    thousandths = chunk.thousandths("gpus")
    states = chunk.texts("state") if chunk.has("state") else [""] * len(chunk)
    rejected = np.array([state == "REJECTED" for state in states], dtype=bool)
    column = reading.columns.get("state", "final_state")
    done = "set aside: not judged"
    reading.notes.add_all(chunk.rows[rejected], column, "REJECTED", "the job was rejected", done)
    texts = chunk.names("job")
    workloads = chunk.texts("workload") if chunk.has("workload") else [""] * len(chunk)
    if len(set(workloads)) > 1:  # numbers of jobs are unique within a workload
        texts = [f"{workload}!{job}" for workload, job in zip(workloads, texts, strict=True)]
    held = _resources(chunk, thousandths, start) if per_resource and chunk.has("server") else None
    if held is None:
        reading.rows.add(
            ~chunk.broken & ~rejected, job=texts, row=chunk.rows, submit=submit, start=start,
            end=end, thousandths=thousandths,
        )  # fmt: skip
        return
    keep = np.flatnonzero(~chunk.broken & ~rejected)
    counts = np.array([max(1, len(held[index])) for index in keep.tolist()], dtype=np.int64)
    at = np.repeat(keep, counts)
    servers = [f"{number}" for index in keep.tolist() for number in held[index] or ("",)]
    each = np.where(np.repeat(counts, counts) > 1, 1000, thousandths[at])
    reading.rows.add(
        np.ones(len(at), dtype=bool),
        job=[texts[index] for index in at.tolist()],
        row=chunk.rows[at],
        submit=submit[at],
        start=start[at],
        end=end[at],
        thousandths=each,
        server=servers,
    )


def _resources(chunk: Chunk, thousandths: Ints, start: Ints) -> list[list[int]]:
    """Resources of each row; none where they are not given."""
    column = chunk.reading.columns["server"]
    held: list[list[int]] = []
    for index, text in enumerate(chunk.texts("server")):
        found: list[int] = []
        if text in NO_TIME or start[index] == MISSING:
            pass
        elif not INTERVALS.fullmatch(text):
            chunk.refuse(index, column, text, "must be a set of intervals such as 0-3 8")
        else:
            found = _expand(chunk, index, text)
            if found and len(found) * 1000 != thousandths[index]:
                gpus = thousandths[index] // 1000
                rule = f"must be as many resources as the {gpus} requested"
                chunk.refuse(index, column, text, rule)
        held.append(found)
    return held


def _expand(chunk: Chunk, index: int, text: str) -> list[int]:
    found: list[int] = []
    for part in re.split("[ ,]+", text):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if end < begin or end - begin + len(found) >= MOST_RESOURCES:
            rule = f"must be ascending, of at most {MOST_RESOURCES} resources"
            chunk.refuse(index, chunk.reading.columns["server"], text, rule)
            return []
        found.extend(range(begin, end + 1))
    if len(set(found)) < len(found):
        rule = "must name each resource once"
        chunk.refuse(index, chunk.reading.columns["server"], text, rule)
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
