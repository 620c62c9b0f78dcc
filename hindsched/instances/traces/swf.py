"""Standard Workload Format: 18 numbers a line, a header of comments, -1 for what is unknown.

The start is submission plus wait; a wait of -1 is unknown, so the job has no start. Some logs say
in their header that their submissions are really starts (NASA iPSC): then the start is the
submission, every wait is 0 by construction, and the judgement repeats what the header says. A job
that was swapped out has a line of its own (status 0, 1 or 5) and then one line a burst (status 2,
and 3 or 4 for the last), whose wait counts from the end of the burst before.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.reading import Cells, Format, Reading

FIELDS = (
    "job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
HEADER = re.compile(r";\s*([A-Za-z]\w*):\s*(.*?)\s*")
STARTS = re.compile(r"submit\w*\s+times?\s+are\s+(actually|really|in fact)\s+(the\s+)?start", re.I)
UNKNOWN = frozenset(("-1", "-1.0", "-1.00"))
BURSTS = ("2", "3", "4")
STARTS_FACT = (
    "The log's header says that its submission times are really start times: every wait is 0 by "
    "construction, so nothing here says how well its scheduler did."
)


def read(reading: Reading) -> pd.DataFrame:
    """Read the header and the jobs."""
    for role, column in reading.columns.items():
        if column not in FIELDS:
            raise InputError("column", f"{role}={column}", f"must be one of {', '.join(FIELDS)}")
    submits = reading.choice("submits", ("header", "submits", "starts"))
    header, cells = _lines(reading)
    says_starts = submits == "header" and STARTS.search(header.get("Note", "")) is not None
    # Jobs hold processors; nodes are the fallback of logs that allocate whole nodes.
    for name in ("MaxNodes", "MaxProcs"):
        text = header.get(name, "").split(" ")[0]
        if text.isascii() and text.isdecimal() and int(text) > 0:
            reading.capacity = Capacity(int(text), (), f"the header's {name}")
    if header.get("Preemption", "").lower() not in ("", "no"):
        reading.facts.append(f"The log's header says Preemption: {header['Preemption']}.")
    if says_starts:
        reading.facts.append(STARTS_FACT)
        rule, done = "the header says so", "starts are the submissions"
        reading.notes.add(0, "submit", header["Note"][:200], rule, done)
    return _jobs(cells, are_starts=says_starts or submits == "starts")


def _lines(reading: Reading) -> tuple[dict[str, str], Cells]:
    """Fields of the header, and the lines of 18 numbers."""
    header: dict[str, str] = {}
    last, rows = "", {}
    for number, line in enumerate(reading.text().splitlines(), start=1):
        text = line.strip()
        match = HEADER.fullmatch(text)
        if match:
            last = match[1]
            header[last] = f"{header[last]} {match[2]}" if last in header else match[2]
        elif text.startswith(";"):
            if last and text.lstrip("; "):  # a line that goes on with the one before
                header[last] += " " + text.lstrip("; ")
        elif text:
            reading.rows_read += 1
            rows[number] = text.split()
            if (found := len(rows[number])) != len(FIELDS):
                del rows[number]
                rule = f"must have {len(FIELDS)} as the format says"
                reading.notes.broken(number, "(all)", f"{found} numbers", rule)
    frame = pd.DataFrame(list(rows.values()), index=list(rows), columns=list(FIELDS), dtype=object)
    made = {role: frame[column] for role, column in reading.columns.items()}
    return header, Cells(reading, pd.DataFrame(made, index=frame.index, dtype=object))


def _jobs(cells: Cells, *, are_starts: bool) -> pd.DataFrame:
    submit = cells.times("submit", UNKNOWN)
    wait, run = cells.spans("wait", UNKNOWN), cells.spans("duration", UNKNOWN)
    negative = (wait < 0).fillna(False).astype(bool)
    cells.refuse(negative, "wait", cells.text("wait"), "must be -1 (unknown) or at least 0")
    start = submit.copy() if are_starts else submit + wait
    end = start + run
    burst = cells.text("status").isin(BURSTS)
    before: dict[str, Any] = {}  # a burst waits from the end of the one before
    row: Any
    for row, job in cells.text("job")[burst].items():
        submit[row], ended = before.get(job, (submit[row], submit[row]))
        start[row] = ended + wait[row]
        end[row] = start[row] + run[row]
        before[job] = submit[row], end[row]
    summary = cells.text("job").isin(cells.text("job")[burst]) & ~burst
    rule = "sums up a job whose bursts follow"
    cells.note(summary, "status", "", rule, "its bursts are read instead")
    no_run = run.isna() & ~burst
    cells.note(no_run, "duration", "-1", "run time unknown", "no end")
    start = start.mask(no_run)  # it held its processors for an unknown time
    if not are_starts:
        cells.note(wait.isna() & ~burst & ~summary, "wait", "-1", "wait unknown", "no start")
    return cells.neutral(
        ~summary,
        job=cells.names("job"),
        submit=submit,
        start=start,
        end=end,
        gpus=cells.amounts("gpus", UNKNOWN),
        user=cells.text("user").replace("-1", "") if cells.has("user") else None,
    )


FORMAT = Format(
    name="swf",
    what="a workload in Standard Workload Format",
    read=read,
    columns={
        "job": "job", "submit": "submit", "wait": "wait", "duration": "run", "gpus": "allocated",
        "status": "status", "user": "user",
    },
    settings={
        "submits": ("header", "what submissions are: header (what it says), submits, starts"),
    },
)  # fmt: skip
