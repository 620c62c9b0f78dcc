"""Slurm's accounting: ``sacct --parsable2`` with a header.

A job has a row of its own and one for each of its steps (``123.batch``, ``123.0``), which hold
nothing of their own. ``123_4`` is task 4 of array 123 and a job; ``123_[5-9]`` are tasks that wait.
``123+0`` and ``123+1`` are parts of one heterogeneous job, which start together: one gang. With
``--duplicates`` a requeued job has a row for each time it ran. Times are the cluster's local clock
without an offset: its zone must be said. ``Elapsed`` leaves suspensions out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.errors import InputError
from hindsched.instances.logs.csv import resolve_repeated_hour
from hindsched.instances.logs.hostlist import only_host
from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.reruns import RERUNS
from hindsched.instances.logs.table import NONE_WORDS, Chunk, chunks
from hindsched.instances.logs.times import MISSING

NO_TIME = NONE_WORDS | {"Unknown", "UNKNOWN", "INVALID", "Partition_Limit"}
JOB = re.compile(r"(\d+)(?:_(\d+|\[[^\]]*\]))?(?:\+\d+)?(\.\S+)?", re.ASCII)
GPU = re.compile(r"(?:^|,)gres/gpu(:[^=,]+)?=([^,]*)", re.ASCII)
WAITING = frozenset(("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "REVOKED", "CONFIGURING"))
PLAIN = frozenset(("NNodes", "NTasks", "AllocNodes", "AllocCPUS", "NCPUS", "ReqCPUS", "ReqNodes"))
"""Columns that hold a number; any other that serves for GPUs holds trackable resources."""


def read(reading: Reading) -> None:
    """Read the table of jobs."""
    reading.reruns = reading.choice("requeue", RERUNS)
    delimiter = reading.settings["delimiter"]
    if len(delimiter) != 1:
        raise InputError("delimiter", delimiter, "must be one character, as sacct --delimiter")
    what = "the output of sacct --parsable2 with a header"
    for chunk in chunks(reading, reading.source.lines(), delimiter, quoted=False, what=what):
        _add(reading, chunk)


def _add(reading: Reading, chunk: Chunk) -> None:
    names, steps = _jobs(chunk)
    keep = ~chunk.broken & ~steps
    submit, submit_later = chunk.times("submit", NO_TIME)
    start, start_later = chunk.times("start", NO_TIME)
    end, end_later = chunk.times("end", NO_TIME)
    resolve_repeated_hour(chunk, "submit", submit, submit_later, None)
    resolve_repeated_hour(chunk, "start", start, start_later, submit)
    resolve_repeated_hour(chunk, "end", end, end_later, np.maximum(start, submit))
    states = chunk.texts("state") if chunk.has("state") else [""] * len(chunk)
    waiting = np.array([state.split(" ")[0] in WAITING for state in states], dtype=bool)
    start[waiting] = end[waiting] = MISSING
    never = keep & (start == MISSING) & (end != MISSING)
    rule = "ended without having started"
    reading.notes.add_all(
        chunk.rows[never], reading.columns["end"], _at(states, never), rule, "no end"
    )
    end[never] = MISSING
    thousandths = _gpus(chunk)
    paused = _paused(chunk, keep, start, end) if chunk.has("elapsed") else None
    server = [only_host(text) for text in chunk.texts("server")] if chunk.has("server") else None
    reading.rows.add(
        keep & ~chunk.broken,
        job=names,
        row=chunk.rows,
        submit=submit,
        start=start,
        end=end,
        thousandths=thousandths,
        paused=paused,
        user=chunk.texts("user") if chunk.has("user") else None,
        server=server,
    )


def _paused(chunk: Chunk, keep: Bools, start: Ints, end: Ints) -> Ints:
    """How long each job stood still between its start and its end."""
    elapsed, texts = chunk.spans("elapsed", NO_TIME), chunk.texts("elapsed")
    column, notes = chunk.reading.columns["elapsed"], chunk.reading.notes
    known = keep & (start != MISSING) & (end != MISSING) & (elapsed != MISSING)
    for index in np.flatnonzero(known & (elapsed > end - start)).tolist():
        rule = "must not exceed End - Start: is the time zone right?"
        chunk.refuse(index, column, texts[index], rule)
    shorter = known & (elapsed < end - start)
    rule = "is less than End - Start: suspended in between (or the time zone is wrong)"
    done = "judged by its completion"
    notes.add_all(chunk.rows[shorter], column, _at(texts, shorter), rule, done)
    return np.where(shorter, end - start - elapsed, 0)


def _jobs(chunk: Chunk) -> tuple[list[str], Bools]:
    """Name of each row's job, whether it is a step, or waits."""
    column, texts = chunk.reading.columns["job"], chunk.texts("job")
    names: list[str] = []
    steps = np.zeros(len(chunk), dtype=bool)
    waiting = np.zeros(len(chunk), dtype=bool)
    for index, text in enumerate(texts):
        match = JOB.fullmatch(text)
        if match is None:
            chunk.refuse(
                index, column, text, "must be a job of Slurm such as 123, 123_4, 123.batch"
            )
            names.append(text)
            continue
        number, task, step = match.groups()
        steps[index] = step is not None
        waiting[index] = task is not None and task.startswith("[")
        names.append(number if task is None else f"{number}_{task}")
    notes = chunk.reading.notes
    notes.add_all(chunk.rows[steps], column, _at(texts, steps), "a step of a job", "not a job")
    rule = "tasks of an array that still wait"
    notes.add_all(chunk.rows[waiting], column, _at(texts, waiting), rule, "set aside: not judged")
    return names, steps | waiting


def _gpus(chunk: Chunk) -> Ints:
    column = chunk.reading.columns["gpus"]
    if column in PLAIN:
        return chunk.thousandths("gpus")
    values = np.zeros(len(chunk), dtype=np.int64)
    known: dict[str, int] = {}
    for index, text in enumerate(chunk.texts("gpus")):
        if text not in known:
            found = GPU.findall(text)
            if not all(re.fullmatch(r"\d{1,9}", number) for _, number in found):
                chunk.refuse(index, column, text, "must count GPUs as gres/gpu=4 does")
                continue
            plain = [int(number) for kind, number in found if not kind]
            # A cluster with kinds of GPUs counts each twice: once with its kind, once without.
            known[text] = plain[0] if plain else sum(int(number) for _, number in found)
        values[index] = known[text] * 1000
    return values


def _at(texts: Sequence[str], mask: Bools) -> list[str]:
    return [texts[index] for index in np.flatnonzero(mask)[:100].tolist()]


FORMAT = Format(
    name="sacct",
    what="the output of sacct --parsable2",
    read=read,
    columns={
        "job": "JobID", "submit": "Submit", "start": "Start", "end": "End", "gpus": "AllocTRES",
        "elapsed": "Elapsed", "state": "State", "user": "User", "server": "NodeList",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={
        "delimiter": ("|", "what separates cells, as in sacct --delimiter"),
        "requeue": ("restart", f"what a requeued job does: {', '.join(RERUNS)}"),
    },
)  # fmt: skip
