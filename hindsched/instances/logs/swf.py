"""Standard Workload Format: 18 numbers a line, a header of comments, -1 for what is unknown.

The start is submission plus wait; a wait of -1 is unknown, so the job has no start. Some logs say
in their header that their submissions are really starts (NASA iPSC): then the start is the
submission, every wait is 0 by construction, and the judgement repeats what the header says. A job
that was swapped out has a line of its own (status 0, 1 or 5) and then one line a burst (status 2,
and 3 or 4 for the last), whose wait counts from the end of the burst before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.errors import InputError
from hindsched.instances.logs.capacity import pool
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.table import CHUNK_ROWS, Chunk
from hindsched.instances.logs.times import MISSING

FIELDS = (
    "job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
HEADER = re.compile(r";\s*([A-Za-z]\w*):\s*(.*?)\s*")
STARTS = re.compile(r"submit\w*\s+times?\s+are\s+(actually|really|in fact)\s+(the\s+)?start", re.I)
UNKNOWN = frozenset(("-1", "-1.0", "-1.00"))
UNFINISHED, LAST_BURSTS = 2, (3, 4)


def read(reading: Reading) -> None:
    """Read the header, then the jobs."""
    for role, column in reading.columns.items():
        if column not in FIELDS:
            raise InputError("column", f"{role}={column}", f"must be one of {', '.join(FIELDS)}")
    header: dict[str, str] = {}
    submits = reading.choice("submits", ("header", "submits", "starts"))
    lines = _numbered(reading.source.lines(), header)
    bursts = _Bursts()
    first = True
    for rows in _chunks_of_jobs(lines):
        if first:
            _use_header(reading, header)
            first = False
        are_starts = submits == "starts" or (submits == "header" and _says_starts(header))
        _add(reading, rows, bursts, are_starts=are_starts)
    if first:
        _use_header(reading, header)
    if submits == "header" and _says_starts(header):
        reading.facts.append(STARTS_FACT)
        note = header["Note"][:200]
        reading.notes.add(0, "submit", note, "the header says so", "starts are the submissions")


STARTS_FACT = (
    "The log's header says that its submission times are really start times: every wait is 0 by "
    "construction, so nothing here says how well its scheduler did."
)


Row = tuple[int, list[str]]
"""Line and cells."""


def _numbered(lines: Iterator[str], header: dict[str, str]) -> Iterator[Row]:
    """Rows of cells with their line; comments go to `header`."""
    field = ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith(";"):
            match = HEADER.fullmatch(text)
            if match:
                field = match[1]
                header[field] = f"{header[field]} {match[2]}" if field in header else match[2]
            elif field and text.lstrip("; "):  # a line that goes on with the one before
                header[field] += " " + text.lstrip("; ")
        elif text:
            yield number, text.split()


def _chunks_of_jobs(lines: Iterator[Row]) -> Iterator[list[Row]]:
    """Rows in chunks that end where a job ends: a job's lines follow one another."""
    rows: list[Row] = []
    for row in lines:
        if len(rows) >= CHUNK_ROWS and row[1][0] != rows[-1][1][0]:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _says_starts(header: dict[str, str]) -> bool:
    return STARTS.search(header.get("Note", "")) is not None


def _use_header(reading: Reading, header: dict[str, str]) -> None:
    # Jobs hold processors; nodes are the fallback of logs that allocate whole nodes.
    for name in ("MaxProcs", "MaxNodes"):
        text = header.get(name, "").split(" ")[0]
        if text.isascii() and text.isdecimal() and int(text) > 0:
            reading.capacity = pool(int(text), f"the header's {name}")
            break
    if header.get("Preemption", "").lower() not in ("", "no"):
        reading.facts.append(f"The log's header says Preemption: {header['Preemption']}.")


def _add(reading: Reading, rows: list[Row], bursts: _Bursts, *, are_starts: bool) -> None:
    good: list[Row] = []
    reading.count_rows(len(rows))
    for number, cells in rows:
        if len(cells) == len(FIELDS):
            good.append((number, cells))
        else:
            value, rule = f"{len(cells)} numbers", f"must have {len(FIELDS)} as the format says"
            reading.notes.broken(number, "(all)", value, rule)
    if not good:
        return
    lines = np.array([number for number, _ in good], dtype=np.int64)
    columns = list(zip(*(cells for _, cells in good), strict=True))
    chunk = Chunk(reading, lines, dict(zip(FIELDS, columns, strict=True)))
    submit = chunk.times("submit", UNKNOWN)[0]
    wait, run = chunk.spans("wait", UNKNOWN), chunk.spans("duration", UNKNOWN)
    status = chunk.thousandths("status", UNKNOWN) // 1000
    gpus = chunk.thousandths("gpus", UNKNOWN)
    _refuse_negative(chunk, wait, "wait")
    start = submit.copy() if are_starts else np.where(wait == MISSING, MISSING, submit + wait)
    start[submit == MISSING] = MISSING
    end = np.where((start == MISSING) | (run == MISSING), MISSING, start + run)
    burst = (status >= UNFINISHED) & (status <= LAST_BURSTS[1])
    bursts.place(chunk, burst, submit, wait, run, start, end)
    whole = bursts.summaries(chunk, burst)
    run_unknown = (run == MISSING) & ~burst
    reading.notes.add_all(lines[run_unknown], "run", "-1", "run time unknown", "no end")
    start[run_unknown] = MISSING  # it held its processors for an unknown time
    no_wait = (wait == MISSING) & ~burst & ~whole & (not are_starts)
    reading.notes.add_all(lines[no_wait], "wait", "-1", "wait unknown", "no start")
    reading.rows.add(
        ~chunk.broken & ~whole,
        job=chunk.names("job"),
        row=lines,
        submit=submit,
        start=start,
        end=end,
        thousandths=gpus,
        user=["" if user == "-1" else user for user in chunk.texts("user")],
    )


def _refuse_negative(chunk: Chunk, values: Ints, role: str) -> None:
    for index in np.flatnonzero((values < 0) & (values != MISSING)):
        text = chunk.texts(role)[int(index)]
        chunk.refuse(int(index), role, text, "must be -1 (unknown) or at least 0")


class _Bursts:
    """Jobs that were swapped out: a summary line, then the lines of its bursts."""

    def __init__(self) -> None:
        self.job = ""
        self.submit = MISSING
        self.end = MISSING

    def place(
        self,
        chunk: Chunk,
        burst: Bools,
        submit: Ints,
        wait: Ints,
        run: Ints,
        start: Ints,
        end: Ints,
    ) -> None:
        """Give bursts their start and end: each waits from the end of the one before."""
        if not burst.any():
            return
        jobs = chunk.texts("job")
        for index in np.flatnonzero(burst).tolist():
            if jobs[index] != self.job:
                self.job, self.submit, self.end = jobs[index], submit[index], submit[index]
            submit[index] = self.submit
            if MISSING in (self.end, wait[index], run[index]):
                start[index] = end[index] = self.end = MISSING
                continue
            start[index] = self.end + wait[index]
            self.end = end[index] = start[index] + run[index]

    def summaries(self, chunk: Chunk, burst: Bools) -> Bools:
        """Lines that sum up a job whose bursts follow: not rows of the schedule."""
        swapped = {chunk.texts("job")[index] for index in np.flatnonzero(burst).tolist()}
        jobs = chunk.texts("job")
        summary = np.array([job in swapped for job in jobs], dtype=bool) & ~burst
        rule = "sums up a job whose bursts follow"
        chunk.reading.notes.add_all(
            chunk.rows[summary], "status", "", rule, "its bursts are read instead"
        )
        return summary


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
