"""What makes a logged schedule impossible, by row and moment, in whole numbers of slots.

A schedule is judged by what it held: too many GPUs at a moment, in the cluster or on a server; a
start before the submission; a run shorter than the work. Jobs that cannot be judged held their GPUs
too. Where it is not known when a job held its GPUs, it is left out and the answer says so: what is
found is wrong all the same, what is not found may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log

if TYPE_CHECKING:
    from hindsched.instances.traces.capacity import Capacity

MOST_LISTED = 1000
"""Breaches listed of each kind; the others are counted."""
JOBS_NAMED = 5
FOREVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Breach:
    """One thing that cannot have been.

    Parameters
    ----------
    kind : str
        ``capacity``, ``server``, ``before submission`` or ``too short``.
    row : int
        Row of the log: of the job, or of the run that broke the capacity.
    where : str
        Job or server.
    begin, end : str
        From when to when, as the log writes times.
    found, allowed : int or float
        GPUs held and there, or seconds run and needed; seconds early and 0.
    jobs : tuple of str
        Jobs that ran then, the last to start first.
    """

    kind: str
    row: int
    where: str
    begin: str
    end: str
    found: float
    allowed: float
    jobs: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "before submission":
            what = f"starts {self.found:g} s before its submission"
        elif self.kind == "too short":
            what = f"runs {self.found:g} s where its work takes {self.allowed:g} s"
        else:
            what = f"{self.found:g} GPUs held where there are {self.allowed:g}"
        when = f" from {self.begin} to {self.end}" if self.end else f" at {self.begin}"
        return f"row {self.row}, {self.where}: {what}{when}"


@dataclass(frozen=True)
class Breaches:
    """All of them, and what could not be checked.

    Parameters
    ----------
    listed : tuple of Breach
        At most `MOST_LISTED` of a kind.
    counts : dict
        How many of each kind.
    unchecked : tuple of str
        What could not be checked, and why.
    peak : int
        Most GPUs known to be held at once.
    """

    listed: tuple[Breach, ...]
    counts: dict[str, int]
    unchecked: tuple[str, ...]
    peak: int

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def to_frame(self) -> pd.DataFrame:
        """A row a breach listed."""
        columns = [*Breach.__dataclass_fields__]
        rows = [[getattr(breach, name) for name in columns] for breach in self.listed]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.assign(jobs=[" ".join(breach.jobs) for breach in self.listed])


def find_breaches(log: Log) -> Breaches:
    """Find what is impossible in a log's schedule.

    Parameters
    ----------
    log : Log
        The log; somebody must have said its capacity.
    """
    capacity = log.need_capacity()
    held = held_rows(log)
    listed: list[Breach] = []
    counts: dict[str, int] = {}
    unchecked: list[str] = []
    peak, found = _over_capacity(log, held, capacity.gpus)
    servers, skipped = _over_servers(log, held, capacity)
    kinds = (found, servers, _before_submission(log), _too_short(log))
    for kind, (number, breaches) in zip(KINDS, kinds, strict=True):
        if number:
            counts[kind] = number
            listed += breaches
    hidden = int(log.jobs["completion_only"].sum())
    if hidden:
        unchecked.append(
            f"capacity, slot by slot: of {hidden} job{'s' * (hidden > 1)} only start and end are "
            "known, and they "
            "stood still in between for a time that the log does not say"
        )
    unchecked += skipped
    return Breaches(tuple(listed), counts, tuple(unchecked), peak)


KINDS = ("capacity", "server", "before submission", "too short")


def held_rows(log: Log) -> pd.DataFrame:
    """What held GPUs from when to when: rows of judged jobs that are known, and of all others."""
    hidden = set(log.jobs["job"][log.jobs["completion_only"]])
    known = log.schedule if not hidden else log.schedule[~log.schedule["job"].isin(hidden)]
    others = log.others[~(log.others["start"].isna() & log.others["end"].isna())]
    if not len(others):
        return known
    first = min(int(known["start"].min()) if len(known) else 0, 0)
    aside = pd.DataFrame(
        {
            "row": others["row"],
            "job": others["job"],
            "start": others["start"].fillna(first).astype("int64"),
            "end": others["end"].fillna(FOREVER).astype("int64"),
            "gpus": others["gpus"],
        }
    )
    aside = aside[aside["start"] < aside["end"]]
    return pd.concat([known, aside], ignore_index=True)


def _over_capacity(log: Log, held: pd.DataFrame, gpus: int) -> tuple[int, tuple[int, list[Breach]]]:
    start, end, width = (held[name].to_numpy() for name in ("start", "end", "gpus"))
    moments, used = use_over_time(start, end, width)
    spans = spans_over(moments, used, gpus)
    listed = [
        _breach(log, held, "capacity", "the cluster", begin, until, most, gpus)
        for begin, until, most in spans[:MOST_LISTED]
    ]
    return int(used.max(initial=0)), (len(spans), listed)


def _over_servers(
    log: Log, held: pd.DataFrame, capacity: Capacity
) -> tuple[tuple[int, list[Breach]], list[str]]:
    if "server" not in held:
        silent = "each server: the log does not say which ones its jobs ran on"
        return (0, []), [silent] if capacity.servers else []
    server = held["server"].fillna("").astype(str)
    named = held[server != ""].assign(server=server[server != ""])
    skipped = []
    if len(named) < len(held):
        number = len(held) - len(named)
        runs = f"{number} run{'s' * (number > 1)}"
        skipped.append(f"each server: of {runs} the log does not say what each server held")
    number, unknown = 0, 0
    listed: list[Breach] = []
    for name, rows in named.groupby("server", sort=True):
        room = log.gpus_a_server or capacity.of_server(str(name))
        if room is None:
            unknown += 1
            continue
        columns = (rows[column].to_numpy() for column in ("start", "end", "gpus"))
        spans = spans_over(*use_over_time(*columns), room)
        number += len(spans)
        listed += [
            _breach(log, rows, "server", f"server {name}", begin, until, most, room)
            for begin, until, most in spans[: max(0, MOST_LISTED - len(listed))]
        ]
    if unknown:
        skipped.append(f"each server: nobody has said how many GPUs {unknown} of them have")
    return (number, listed), skipped


def use_over_time(start: Ints, end: Ints, width: Ints) -> tuple[Ints, Ints]:
    """Moments at which the number of GPUs held changes, and the number from then on."""
    moments, where = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.zeros(len(moments), dtype=np.int64)
    np.add.at(change, where[: len(start)], width)
    np.subtract.at(change, where[len(start) :], width)
    return moments, np.cumsum(change)


def spans_over(moments: Ints, used: Ints, room: int) -> list[tuple[int, int, int]]:
    """(Begin, end, most GPUs) of each maximal time with more than `room` GPUs held."""
    over = np.r_[False, used > room, False]
    begin, end = np.flatnonzero(over[1:] & ~over[:-1]), np.flatnonzero(over[:-1] & ~over[1:])
    return [
        (int(moments[b]), int(moments[e]) if e < len(moments) else FOREVER, int(used[b:e].max()))
        for b, e in zip(begin, end, strict=True)
    ]


def _breach(
    log: Log, held: pd.DataFrame, kind: str, where: str, begin: int, end: int, most: int, room: int
) -> Breach:
    start = held["start"].to_numpy()
    running = np.flatnonzero((start <= begin) & (held["end"].to_numpy() > begin))
    latest = running[np.argsort(-start[running], kind="stable")]
    jobs = dict.fromkeys(held["job"].iloc[latest[: 4 * JOBS_NAMED]])
    return Breach(
        kind=kind,
        row=int(held["row"].iloc[latest[0]]),
        where=where,
        begin=log.stamp(begin),
        end="" if end == FOREVER else log.stamp(end),
        found=most,
        allowed=room,
        jobs=tuple(str(job) for job in jobs)[:JOBS_NAMED],
    )


def _before_submission(log: Log) -> tuple[int, list[Breach]]:
    schedule = log.schedule
    submit = log.jobs.set_index("job")["submit"]
    early = submit.reindex(schedule["job"]).to_numpy() - schedule["start"].to_numpy()
    rows = np.flatnonzero(early > 0)
    listed = [
        Breach(
            kind="before submission",
            row=int(schedule["row"].iloc[at]),
            where=f"job {schedule['job'].iloc[at]}",
            begin=log.stamp(schedule["start"].iloc[at]),
            end="",
            found=log.seconds(early[at]),
            allowed=0,
        )
        for at in rows[:MOST_LISTED]
    ]
    return len(rows), listed


def _too_short(log: Log) -> tuple[int, list[Breach]]:
    """Jobs whose runs together are shorter than the duration that the log gives."""
    jobs = log.jobs
    short = np.flatnonzero((jobs["ran"].notna() & (jobs["ran"] < jobs["duration"])).to_numpy(bool))
    listed = [
        Breach(
            kind="too short",
            row=int(jobs["row"].iloc[at]),
            where=f"job {jobs['job'].iloc[at]}",
            begin=log.stamp(jobs["completion"].iloc[at]),
            end="",
            found=log.seconds(jobs["ran"].iloc[at]),
            allowed=log.seconds(jobs["duration"].iloc[at]),
        )
        for at in short[:MOST_LISTED]
    ]
    return len(short), listed
