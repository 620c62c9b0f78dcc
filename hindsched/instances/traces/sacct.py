"""Slurm's accounting: ``sacct --parsable2`` with a header.

A job has a row of its own and one for each of its steps (``123.batch``, ``123.0``), which hold
nothing of their own. ``123_4`` is task 4 of array 123 and a job; ``123_[5-9]`` are tasks that wait.
``123+0`` and ``123+1`` are parts of one heterogeneous job, which start together: one gang. With
``--duplicates`` a requeued job has a row for each time it ran. Times are the cluster's local clock
without an offset: its zone must be said. ``Elapsed`` leaves suspensions out. Where ``AllocTRES`` is
empty, ``ReqTRES`` counts.
"""

from __future__ import annotations

import re

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import ASIDE, NONE_WORDS, REQUEUES, Cells, Format, Reading

NO_TIME = NONE_WORDS | {"Unknown", "UNKNOWN", "INVALID", "Partition_Limit"}
JOB = r"(?a:^(?P<number>\d+)(?:_(?P<task>\d+|\[[^\]]*\]))?(?:\+\d+)?(?P<step>\.\S+)?$)"
GPU = re.compile(r"(?:^|,)gres/gpu(:[^=,]+)?=([^,]*)", re.ASCII)
ONE_HOST = re.compile(r"([^\[\],\s]+)(?:\[(\d+)\])?")
WAITING = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "REVOKED", "CONFIGURING")
PLAIN = ("NNodes", "NTasks", "AllocNodes", "AllocCPUS", "NCPUS", "ReqCPUS", "ReqNodes")
"""Columns that hold a number; any other that serves for GPUs holds trackable resources."""


def read(reading: Reading) -> pd.DataFrame:
    """Read the table of jobs."""
    reading.requeues = reading.choice("requeue", REQUEUES)
    delimiter = reading.settings["delimiter"]
    if len(delimiter) != 1:
        raise InputError("delimiter", delimiter, "must be one character, as sacct --delimiter")
    what = "the output of sacct --parsable2 with a header"
    cells = reading.table(delimiter, quoted=False, what=what)
    names = cells.text("job")
    parts = names.str.extract(JOB)
    rule = "must be a job of Slurm such as 123, 123_4, 123.batch"
    cells.refuse(parts["number"].isna(), "job", names, rule)
    steps, waiting = parts["step"].notna(), parts["task"].fillna("").str.startswith("[")
    cells.note(steps, "job", names, "a step of a job", "not a job")
    cells.note(waiting, "job", names, "tasks of an array that still wait", ASIDE)
    submit = cells.times("submit", NO_TIME)
    start = cells.times("start", NO_TIME, after=submit)
    end = cells.times("end", NO_TIME, after=start.where(start.notna(), submit))
    holds_nothing = cells.text("state").str.split(" ").str[0].isin(WAITING)
    start[holds_nothing] = end[holds_nothing] = pd.NA
    keep = ~steps & ~waiting & ~cells.broken
    never = keep & start.isna() & end.notna()
    cells.note(never, "end", cells.text("state"), "ended without having started", "no end")
    end[never] = pd.NA
    return cells.neutral(
        keep,
        job=parts["number"] + ("_" + parts["task"]).fillna(""),
        submit=submit,
        start=start,
        end=end,
        gpus=_gpus(cells),
        paused=_paused(cells, keep, start, end) if cells.has("elapsed") else None,
        user="user",
        server=cells.text("server").map(_only_host) if cells.has("server") else None,
    )


def _only_host(text: str) -> str:
    """The host if Slurm's list names exactly one, else nothing: a share of each is not known."""
    match = ONE_HOST.fullmatch(text)
    return "" if match is None or text in ("None", "(null)") else match[1] + (match[2] or "")


def _paused(cells: Cells, keep: pd.Series, start: pd.Series, end: pd.Series) -> pd.Series:
    """How long each job stood still between its start and its end."""
    elapsed, texts = cells.spans("elapsed", NO_TIME), cells.text("elapsed")
    still = (end - start - elapsed).fillna(0)
    rule = "must not exceed End - Start: is the time zone right?"
    cells.refuse(keep & (still < 0), "elapsed", texts, rule)
    rule = "is less than End - Start: suspended in between (or the time zone is wrong)"
    cells.note(keep & (still > 0), "elapsed", texts, rule, "judged by its completion")
    return still.clip(lower=0)


def _gpus(cells: Cells) -> pd.Series:
    if cells.column("gpus") in PLAIN:
        return cells.amounts("gpus")
    allocated = cells.text("gpus")
    texts = allocated.where(allocated != "", cells.text("requested"))
    known: dict[str, int] = {}
    for text in texts.unique():
        found = GPU.findall(text)
        if all(re.fullmatch(r"\d{1,9}", number) for _, number in found):
            plain = [int(number) for kind, number in found if not kind]
            # A cluster with kinds of GPUs counts each twice: once with its kind, once without.
            known[text] = plain[0] if plain else sum(int(number) for _, number in found)
    bad = ~texts.isin(list(known))
    cells.refuse(bad, "gpus", texts, "must count GPUs as gres/gpu=4 does")
    return texts.map(known).astype(float)


FORMAT = Format(
    name="sacct",
    what="the output of sacct --parsable2",
    read=read,
    columns={
        "job": "JobID", "submit": "Submit", "start": "Start", "end": "End", "gpus": "AllocTRES",
        "requested": "ReqTRES", "elapsed": "Elapsed", "state": "State", "user": "User",
        "server": "NodeList",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={
        "delimiter": ("|", "what separates cells, as in sacct --delimiter"),
        "requeue": ("restart", f"what a requeued job does: {', '.join(REQUEUES)}"),
    },
)  # fmt: skip
