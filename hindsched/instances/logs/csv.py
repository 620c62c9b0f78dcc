"""Plain tables: a row a run, with columns that the user names."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.table import Chunk, chunks
from hindsched.instances.logs.times import MISSING

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


def read(reading: Reading) -> None:
    """Read a CSV file; several rows of one job are its runs, or its parts on several servers."""
    word = reading.choice("delimiter", tuple(DELIMITERS))
    for chunk in chunks(reading, reading.source.lines(), DELIMITERS[word]):
        add_chunk(reading, chunk)


def add_chunk(reading: Reading, chunk: Chunk) -> None:
    """Add the rows of a chunk whose columns have the roles of `ROLES`."""
    submit, submit_later = chunk.times("submit")
    start, start_later = chunk.times("start")
    end, end_later = chunk.times("end")
    resolve_repeated_hour(chunk, "submit", submit, submit_later, None)
    resolve_repeated_hour(chunk, "start", start, start_later, submit)
    resolve_repeated_hour(chunk, "end", end, end_later, np.maximum(start, submit))
    thousandths = chunk.thousandths("gpus")
    job = chunk.names("job")
    duration = chunk.spans("duration") if chunk.has("duration") else None
    deadline = chunk.times("deadline")[0] if chunk.has("deadline") else None
    weight = chunk.weights("weight") if chunk.has("weight") else None
    user = chunk.texts("user") if chunk.has("user") else None
    server = chunk.texts("server") if chunk.has("server") else None
    reading.rows.add(
        ~chunk.broken,
        job=job,
        row=chunk.rows,
        submit=submit,
        start=start,
        end=end,
        thousandths=thousandths,
        duration=duration,
        deadline=deadline,
        weight=weight,
        user=user,
        server=server,
    )


def resolve_repeated_hour(
    chunk: Chunk, role: str, times: Ints, later: dict[int, int], not_before: Ints | None
) -> None:
    """Choose between the two times of a stamp in the hour that a clock set back repeats.

    The first of the two counts, unless it would precede what it must follow.
    """
    column = chunk.reading.columns[role]
    for index, second in later.items():
        follows = MISSING if not_before is None else int(not_before[index])
        takes_second = times[index] < follows <= second
        if takes_second:
            times[index] = second
        which = "the second, for it follows what is before it" if takes_second else "the first"
        rule = f"the clock of {chunk.reading.clock.zone} shows this time twice"
        value = chunk.texts(role)[index]
        chunk.reading.notes.add(int(chunk.rows[index]), column, value, rule, f"taken as {which}")


ROLES = (
    "job",
    "submit",
    "start",
    "end",
    "gpus",
    "duration",
    "deadline",
    "weight",
    "user",
    "server",
)


FORMAT = Format(
    name="csv",
    what="a table with a header",
    read=read,
    columns={role: role for role in ROLES},
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"delimiter": ("comma", f"what separates cells: {', '.join(DELIMITERS)}")},
)
