"""ElasticFlow's simulator: ``job.csv`` and ``scheduling_events.csv``, a column a GPU.

A row of the events says which job holds each GPU (``gpu<server>-<k>``) from its time to the next
row's. A job that ends in between holds its GPUs until its ``end_time``: they stand idle till the
round is over. Widths change, so ``num_gpu`` (the last allocation) and ``executed_time`` (measured
at it) are no work; what a job did is the GPU-seconds that it held.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.logs.capacity import Capacity
from hindsched.instances.logs.csv import DELIMITERS
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.table import NONE_WORDS, Chunk, chunks
from hindsched.instances.logs.times import MISSING, OVERFLOWED
from hindsched.instances.open_compressed import Source

GPU_COLUMN = re.compile(r"gpu(\d+)-(\d+)", re.ASCII)
JOBS_END, EVENTS_END = "job.csv", "scheduling_events.csv"
COLUMNS = {
    "job": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
    "gpus": "num_gpu", "deadline": "ddl", "duration": "executed_time",
}  # fmt: skip
SETTINGS = {
    "events": ("beside", "the file of scheduling events: beside (the job file), none, or a path"),
}


def read(reading: Reading) -> None:
    """Read jobs and events; without events widths are unknown, and so is every job's work."""
    read_with_events(reading, needs_events=True)


def read_with_events(reading: Reading, *, needs_events: bool) -> None:
    """Read ``job.csv`` and, where there is one, ``scheduling_events.csv``."""
    events = _find(reading)
    what = "job.csv of the simulator, with a header"
    table = list(chunks(reading, reading.source.lines(), DELIMITERS["comma"], what=what))
    if events is not None:
        _add_events(reading, table, events)
    elif needs_events:
        rule = "must have scheduling_events.csv beside it (--set events=FILE): widths are unknown"
        raise InputError(reading.source.name, "(no events)", rule)
    else:
        for chunk in table:
            _add_jobs(reading, chunk)


def _find(reading: Reading) -> Path | None:
    """The file of events; a folder is taken for its ``job.csv``."""
    path, setting = reading.source.path, reading.settings["events"]
    if path.is_dir():
        found = [path / f"{JOBS_END}{end}" for end in ("", ".gz")]
        reading.source.path = path = next((file for file in found if file.is_file()), found[0])
    if setting == "none":
        return None
    if setting != "beside":
        return Path(setting)
    stem, is_job_file, _ = path.name.rpartition(JOBS_END)
    if not is_job_file:
        return None
    beside = (path.with_name(f"{stem}{EVENTS_END}{end}") for end in ("", ".gz"))
    return next((file for file in beside if file.is_file()), None)


def _add_jobs(reading: Reading, chunk: Chunk) -> None:
    """Jobs by their first start and last end alone."""
    start, end, duration = (_or_overflow(chunk, role) for role in ("start", "end", "duration"))
    duration[(duration < 0) | (start == MISSING)] = MISSING
    if chunk.has("work"):
        given = chunk.spans("work")
        duration = np.where(given == MISSING, duration, given)
    reading.rows.add(
        ~chunk.broken,
        job=chunk.names("job"),
        row=chunk.rows,
        submit=chunk.times("submit")[0],
        start=start,
        end=end,
        thousandths=chunk.thousandths("gpus"),
        duration=duration,
        deadline=chunk.times("deadline")[0] if chunk.has("deadline") else None,
    )


def _or_overflow(chunk: Chunk, role: str) -> Ints:
    """Times of a role, unknown where the program wrote a machine's largest integer."""
    texts, column = chunk.texts(role), chunk.reading.columns[role]
    over = np.array([_is_overflow(text) for text in texts], dtype=bool)
    rows, values = chunk.rows[over], [text for text, bad in zip(texts, over, strict=True) if bad]
    chunk.reading.notes.add_all(rows, column, values, "overflowed", "taken as unknown")
    cells = ["" if bad else text for text, bad in zip(texts, over, strict=True)]
    parse = chunk.reading.clock.span if role == "duration" else chunk.reading.clock.parse
    found = parse(cells, column, NONE_WORDS, chunk.refuse)
    return found[0] if isinstance(found, tuple) else found


def _is_overflow(text: str) -> bool:
    return text in OVERFLOWED or len(text.split(".")[0].lstrip("-")) > 17


def _add_events(reading: Reading, table: list[Chunk], path: Path) -> None:
    """Jobs by the GPUs that they held."""
    events = _Events(reading, Source(path, reading.source.limits))
    for chunk in table:
        end, submit = _or_overflow(chunk, "end"), chunk.times("submit")[0]
        deadline = chunk.times("deadline")[0] if chunk.has("deadline") else None
        names = chunk.names("job")
        rows = _Held()
        for index, name in enumerate(names):
            held = events.held.pop(name, [])
            stop = int(end[index])
            if not held:
                rows.add(index, MISSING, MISSING, 0, "")
                reading.notes.add(
                    int(chunk.rows[index]), "job_id", name, "is in no event", "never held a GPU"
                )
            for begin, until, server, gpus in held:
                until = until if stop == MISSING else min(until, stop)
                if begin < until:
                    rows.add(index, begin, until, gpus, server)
        at = np.array(rows.index, dtype=np.int64)
        reading.rows.add(
            ~chunk.broken[at],
            job=[names[index] for index in rows.index],
            row=chunk.rows[at],
            submit=submit[at],
            start=np.array(rows.start, dtype=np.int64),
            end=np.array(rows.end, dtype=np.int64),
            thousandths=np.array(rows.gpus, dtype=np.int64) * 1000,
            deadline=None if deadline is None else deadline[at],
            server=rows.server,
        )
    for name in events.held:
        value = f"job {name}"
        reading.notes.add(0, "(events)", value, "is not in job.csv", "its GPUs are not counted")
    servers = tuple(sorted(events.servers.items(), key=lambda item: int(item[0])))
    reading.capacity = Capacity(sum(events.servers.values()), servers, "the columns of the events")


class _Held:
    """Rows of the schedule as columns."""

    def __init__(self) -> None:
        self.index: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.gpus: list[int] = []
        self.server: list[str] = []

    def add(self, index: int, start: int, end: int, gpus: int, server: str) -> None:
        self.index.append(index)
        self.start.append(start)
        self.end.append(end)
        self.gpus.append(gpus)
        self.server.append(server)


class _Events:
    """Which job held how many GPUs of which server, and when."""

    def __init__(self, reading: Reading, source: Source) -> None:
        self.held: dict[str, list[tuple[int, int, str, int]]] = {}
        self.servers: Counter[str] = Counter()
        self._reading, self._source = reading, source
        self._open: dict[tuple[str, str], tuple[int, int]] = {}
        self._read()

    def _read(self) -> None:
        table = csv.reader(self._source.lines(), strict=True)
        header = next(table, [])
        columns = [(k, match[1]) for k, name in enumerate(header) if (match := _gpu(name))]
        if "time" not in header or not columns:
            rule = "must have a column time and a column gpu<server>-<k> for each GPU"
            raise InputError(f"{self._source.name}, row 1", ", ".join(header[:5]), rule)
        self.servers.update(server for _, server in columns)
        at, before, moment = header.index("time"), MISSING, MISSING
        for cells in table:
            if not cells:
                continue
            where = f"{self._source.name}, row {table.line_num}"
            if len(cells) != len(header):
                rule = f"must have {len(header)} cells as the header has"
                raise InputError(where, f"{len(cells)} cells", rule)
            moment = self._time(where, cells[at].strip())
            if moment <= before:
                rule = "must be later than the row before"
                raise InputError(f"{where}, column time", cells[at], rule)
            self._reading.count_rows(1)
            self._see(moment, Counter((cells[k], server) for k, server in columns if cells[k]))
            before = moment
        self._see(moment, Counter())

    def _time(self, where: str, cell: str) -> int:
        def refuse(index: int, column: str, value: str, rule: str) -> None:
            raise InputError(f"{where}, column {column}", value, rule)

        return int(self._reading.clock.parse([cell], "time", frozenset(), refuse)[0][0])

    def _see(self, moment: int, holds: Counter[tuple[str, str]]) -> None:
        """Close what changes at this moment and open what begins."""
        for key in [key for key, (_, gpus) in self._open.items() if holds.get(key) != gpus]:
            begin, gpus = self._open.pop(key)
            self.held.setdefault(key[0], []).append((begin, moment, key[1], gpus))
        for key, gpus in holds.items():
            self._open.setdefault(key, (moment, gpus))


def _gpu(name: str) -> re.Match[str] | None:
    return GPU_COLUMN.fullmatch(name.strip())


FORMAT = Format(
    name="elasticflow",
    what="job.csv and scheduling_events.csv of ElasticFlow's simulator",
    read=read,
    columns=COLUMNS,
    needed=("job", "submit", "start", "end", "gpus", "duration"),
    settings=SETTINGS,
)
