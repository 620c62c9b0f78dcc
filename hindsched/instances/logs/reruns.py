"""Jobs with several runs: which of them count, and which rows are one gang."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hindsched.arrays import Ints
from hindsched.instances.logs.notes import Notes
from hindsched.instances.logs.times import MISSING

RERUNS = ("restart", "resume", "separate")
"""Begins anew, so only the last run counts; goes on where it was; is a job of its own."""

DONE = {
    "restart": "lost runs hold GPUs but count for nothing",
    "resume": "its runs add up",
    "separate": "each run is a job",
}


def mark_reruns(columns: dict[str, NDArray], policy: str, column: str, notes: Notes) -> None:
    """Tell the runs of each job apart and say which were lost.

    Rows of one job that overlap in time are one gang: they get the same ``part``. With ``restart``
    every run but a job's last is ``lost``, unless the log says that it did not fail; with
    ``separate`` runs become jobs of their own, ``name#2`` and so on.
    """
    codes, _ = pd.factorize(columns["job"])
    order = np.lexsort((columns["start"], codes))
    part = np.zeros(len(codes), dtype=np.int64)
    lost = np.zeros(len(codes), dtype=bool)
    bounds = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0, True])
    job, start, end = columns["job"], columns["start"], columns["end"]
    for at in np.flatnonzero(np.diff(bounds) > 1):
        rows = order[bounds[at] : bounds[at + 1]]
        if MISSING in start[rows] or MISSING in end[rows]:
            continue  # the job is set aside
        runs = _overlapping(rows, start, end)
        line, name = int(columns["row"][rows[-1]]), job[rows[0]]
        number = 0
        for run in runs:
            together = start[run].max() < end[run].min()
            part[run] = number if together else number + np.arange(len(run))
            number = int(part[run].max()) + 1
            if not together:
                rule = "its parts never all ran at once"
                notes.add(line, column, name, rule, "no gang: judged by its GPU-seconds")
        if len(runs) == 1:
            continue
        if policy == "separate":
            for k, run in enumerate(runs[1:], start=2):
                job[run] = f"{name}#{k}"
        elif policy == "restart":
            for run in runs[:-1]:
                lost[run] = columns["failed"][run].any() if "failed" in columns else True
        notes.add(line, column, name, "a job that ran several times", DONE[policy])
    columns["part"] = part
    if lost.any():
        columns["lost"] = lost


def _overlapping(rows: Ints, start: Ints, end: Ints) -> list[Ints]:
    """Rows, ordered by start, in groups between which no row runs."""
    latest = np.maximum.accumulate(end[rows])
    return np.split(rows, np.flatnonzero(start[rows][1:] >= latest[:-1]) + 1)
