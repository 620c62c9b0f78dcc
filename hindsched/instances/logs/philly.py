"""Philly's published job log: one JSON list of jobs with their attempts.

An attempt names its GPUs by server. A job's runs are its attempts and add up. Times are the
cluster's local clock (Pacific, as the trace's other files say), and cross the end of daylight
saving: of an hour's two, the first that does not precede what it follows. ``null``, ``""`` and
``"None"`` mean missing. The log's machine list contradicts it, so that nothing here is a capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.logs.csv import resolve_repeated_hour
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.records import peek, records
from hindsched.instances.logs.table import CHUNK_ROWS, NONE_WORDS, Chunk
from hindsched.instances.logs.times import MISSING

TIME_ZONE = "America/Los_Angeles"
FIELDS = ("job", "submit", "start", "end", "gpus", "server", "user")


def read(reading: Reading) -> None:
    """Read the list of jobs."""
    reading.row_word = "job"
    by = reading.choice("user", ("user", "vc"))
    reading.refuse_columns("the JSON log")
    lines, mark = peek(reading.source.lines())
    if mark not in ("[", "{"):
        rule = "must be the published JSON log; the derived CSV file has no start times"
        raise InputError(reading.source.name, "(no JSON)", rule)
    attempts = _attempts(reading, lines, by)
    while rows := list(islice(attempts, CHUNK_ROWS)):
        numbers = np.array([number for number, _ in rows], dtype=np.int64)
        cells = dict(zip(FIELDS, zip(*(cells for _, cells in rows), strict=True), strict=True))
        _add(reading, Chunk(reading, numbers, cells))


def _add(reading: Reading, chunk: Chunk) -> None:
    submit, submit_later = chunk.times("submit")
    start, start_later = chunk.times("start")
    end, end_later = chunk.times("end")
    resolve_repeated_hour(chunk, "submit", submit, submit_later, None)
    follows = np.maximum(submit, _end_before(chunk, end))
    resolve_repeated_hour(chunk, "start", start, start_later, follows)
    resolve_repeated_hour(chunk, "end", end, end_later, np.maximum(start, submit))
    reading.rows.add(
        ~chunk.broken,
        job=chunk.names("job"),
        row=chunk.rows,
        submit=submit,
        start=start,
        end=end,
        thousandths=chunk.thousandths("gpus"),
        user=chunk.texts("user"),
        server=chunk.texts("server"),
    )


def _end_before(chunk: Chunk, end: Any) -> Any:
    """End of the attempt before each row's, `MISSING` for a job's first."""
    jobs = chunk.texts("job")
    before = np.full(len(chunk), MISSING, dtype=np.int64)
    for index in range(1, len(chunk)):
        if jobs[index] == jobs[index - 1]:
            before[index] = max(end[index - 1], before[index - 1])
    return before


def _attempts(
    reading: Reading, lines: Iterator[str], by: str
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(Number of the job, cells of `FIELDS`) of each attempt, or of a job without any."""
    for number, job in records(reading.source, lines, "jobs"):
        reading.count_rows(1)
        known = {"jobid", "submitted_time", "attempts"}
        if not isinstance(job, dict) or not known <= set(job):
            found = ", ".join(job)[:60] if isinstance(job, dict) else str(job)
            rule = f"must have {', '.join(sorted(known))}"
            reading.notes.broken(number, "(all)", found, rule, "job")
            continue
        attempts = job["attempts"]
        if not isinstance(attempts, list) or not all(isinstance(a, dict) for a in attempts):
            rule = "must be a list of objects"
            reading.notes.broken(number, "attempts", attempts, rule, "job")
            continue
        head = _text(job["jobid"]), _text(job["submitted_time"])
        user = _text(job.get(by))
        if not attempts:
            yield number, (*head, "", "", "1", "", user)
        for attempt in attempts:
            times = _text(attempt.get("start_time")), _text(attempt.get("end_time"))
            for gpus, server in _places(reading, number, attempt):
                yield number, (*head, *times, str(gpus), server, user)


def _places(reading: Reading, number: int, attempt: Mapping[str, Any]) -> list[tuple[int, str]]:
    """GPUs on each server of an attempt."""
    detail = attempt.get("detail") or []
    good = isinstance(detail, list) and all(
        isinstance(node, dict) and isinstance(node.get("gpus"), list) for node in detail
    )
    if not good:
        rule = "must be a list of servers with their gpus"
        reading.notes.broken(number, "detail", detail, rule, "job")
        return []
    found = [(len(node["gpus"]), _text(node.get("ip"))) for node in detail if node["gpus"]]
    return found or [(0, "")]


def _text(value: object) -> str:
    return "" if value is None or str(value) in NONE_WORDS else str(value)


FORMAT = Format(
    name="philly",
    what="Philly's published job log",
    read=read,
    columns={name: name for name in FIELDS},
    settings={"user": ("user", "who counts as the user: user or vc (virtual cluster)")},
    time_zone=TIME_ZONE,
)
