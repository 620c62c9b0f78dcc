"""Philly (Microsoft, 2017): the original JSON log of attempts, and the derived flat CSV.

An attempt names its GPUs by server. A job's runs are its attempts and add up. Times are the
cluster's local clock (Pacific) and cross the end of daylight saving: of an hour's two, the first
that does not precede what it follows. ``null``, ``""`` and ``"None"`` mean missing. The log's
machine list contradicts it, so that nothing here is a capacity.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import json_records
from hindsched.instances.traces.cells import NONE_WORDS, Cells, Format, Reading

TIME_ZONE = "America/Los_Angeles"
FIELDS = ("job", "submit", "start", "end", "gpus", "server", "user", "part", "state")
KNOWN = {"jobid", "submitted_time", "attempts"}


def read(reading: Reading) -> pd.DataFrame:
    """Read the list of jobs, a row an attempt and server."""
    reading.notes.word = "job"
    by = reading.choice("user", ("user", "vc"))
    reading.refuse_columns("the JSON log")
    text = reading.text()
    if text.lstrip()[:1] not in ("[", "{"):
        rule = "must be the published JSON log; the derived CSV file has no start times"
        raise InputError(reading.source, "(no JSON)", rule)
    rows: list[tuple[int, tuple[str, ...]]] = []
    for number, job in enumerate(json_records(text, "jobs", reading.source), start=1):
        reading.rows_read += 1
        rows += [(number, cells) for cells in _attempts(reading, number, job, by)]
    index = [number for number, _ in rows]
    cells = Cells(
        reading,
        pd.DataFrame([cells for _, cells in rows], index=index, columns=list(FIELDS), dtype=object),
    )
    submit = cells.times("submit")
    jobs = cells.text("job")
    about = cells.times("start", after=submit, notes=False)
    ends = cells.times("end", after=about.where(about.notna(), submit), notes=False)
    before = ends.groupby(jobs.to_numpy()).shift().groupby(jobs.to_numpy()).cummax()
    start = cells.times("start", after=before.where(before.notna(), submit))
    return cells.neutral(
        job=cells.names("job"),
        submit=submit,
        start=start,
        end=cells.times("end", after=start.where(start.notna(), submit)),
        gpus=cells.amounts("gpus"),
        **{role: cells.text(role) for role in ("user", "server", "part", "state")},
    )


def _attempts(reading: Reading, number: int, job: Any, by: str) -> list[tuple[str, ...]]:
    """Cells of `FIELDS` of each attempt and server, or of a job without any."""
    if not isinstance(job, dict) or not set(job) >= KNOWN:
        found = ", ".join(job)[:60] if isinstance(job, dict) else str(job)
        reading.notes.broken(number, "(all)", found, f"must have {', '.join(sorted(KNOWN))}")
        return []
    attempts = job["attempts"]
    if not isinstance(attempts, list) or not all(isinstance(a, dict) for a in attempts):
        reading.notes.broken(number, "attempts", attempts, "must be a list of objects")
        attempts = []
    head = _text(job["jobid"]), _text(job["submitted_time"])
    tail = _text(job.get(by)), _text(job.get("vc")), _text(job.get("status"))
    rows: list[tuple[str, ...]] = []
    for attempt in attempts:
        detail = attempt.get("detail") or []
        if not isinstance(detail, list) or not all(
            isinstance(node, dict) and isinstance(node.get("gpus"), list) for node in detail
        ):
            rule = "must be a list of servers with their gpus"
            reading.notes.broken(number, "detail", detail, rule)
            detail = []
        held = [(str(len(n["gpus"])), _text(n.get("ip"))) for n in detail if n["gpus"]]
        times = _text(attempt.get("start_time")), _text(attempt.get("end_time"))
        rows += [(*head, *times, *place, *tail) for place in held or [("0", "")]]
    return rows or ([] if attempts else [(*head, "", "", "1", "", *tail)])


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
