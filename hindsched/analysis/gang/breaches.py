"""What makes a logged schedule impossible, by row and moment.

Every row of the log that held GPUs counts, on one pool of all GPUs and on the servers that the log
names: jobs that cannot be judged, and runs whose work was lost, held their GPUs too. Where it is
not known when a job held its GPUs, it is left out and the answer says so: what is found is wrong
all the same, what is not found may be. The judged jobs' schedule goes to the judge of all schedules
besides (`audit`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from hindsched.arrays import Ints
from hindsched.instances.traces.log import Log

BEATS_BOUND, REFUSED = "better than possible", "refused"
WORDS = {
    "capacity": "more GPUs held than there are",
    "server": "more GPUs held on a server than it has",
    "before submission": "started before submission",
    "too short": "ran too short",
    BEATS_BOUND: "better than the best possible",
    REFUSED: "refused by the judge of schedules",
}


@dataclass(frozen=True)
class Breach:
    """One thing that cannot have been.

    Parameters
    ----------
    kind : str
        One of `WORDS`.
    row : int
        Row of the log: of the job, or of the last to start of those that hold too much.
    where : str
        Job or server.
    begin, end : str
        From when to when, as the log writes times.
    found, allowed : int or float
        GPUs held and there, or seconds run and needed; seconds early and 0.
    """

    kind: str
    row: int
    where: str
    begin: str
    end: str
    found: float
    allowed: float

    def __str__(self) -> str:
        what = f"{self.found:g} GPUs held where there are {self.allowed:g}"
        if self.kind == "before submission":
            what = f"starts {self.found:g} s before its submission"
        elif self.kind == "too short":
            what = f"runs {self.found:g} s where its work takes {self.allowed:g} s"
        when = f" from {self.begin} to {self.end}" if self.end else f" at {self.begin}"
        return f"row {self.row}, {self.where}: {what}{when}"


@dataclass(frozen=True)
class Breaches:
    """All breaches, what could not be checked, and the most GPUs known to be held at once."""

    listed: tuple[Breach, ...]
    unchecked: tuple[str, ...]
    peak: int

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        kinds = [breach.kind for breach in self.listed]
        return {kind: kinds.count(kind) for kind in WORDS if kind in kinds}

    def with_one(self, breach: Breach) -> Breaches:
        """The same and one more."""
        return replace(self, listed=(*self.listed, breach))

    def to_frame(self) -> pd.DataFrame:
        """A row a breach."""
        rows = [asdict(each) for each in self.listed]
        return pd.DataFrame(rows, columns=[*Breach.__annotations__])


def find_breaches(log: Log) -> Breaches:
    """What is impossible in a log's schedule; somebody must have said its capacity."""
    held, gpus = held_rows(log), log.need_capacity().gpus
    unchecked: list[str] = []
    hidden = int(log.jobs["completion_only"].sum())
    if hidden:
        unchecked.append(
            f"capacity, slot by slot: of {hidden} job{'s' * (hidden > 1)} only start and end are "
            "known, and they stood still in between for a time that the log does not say"
        )
    named, sizes = _on_servers(log, held, unchecked)
    listed = [*_judged(log, held, gpus), *_judged(log, named, sizes), *_too_short(log)]
    _, used = use_over_time(*(held[name].to_numpy() for name in ("start", "end", "gpus")))
    return Breaches(tuple(listed), tuple(unchecked), int(used.max(initial=0)))


def held_rows(log: Log) -> pd.DataFrame:
    """What held GPUs from when to when: rows of judged jobs that are known, and of all others."""
    hidden = set(log.jobs["job"][log.jobs["completion_only"]])
    known = log.schedule[~log.schedule["job"].isin(hidden)]
    submit = log.jobs.set_index("job")["submit"].reindex(known["job"])
    known = known.assign(submit=submit.to_numpy())
    others = log.others[~(log.others["start"].isna() & log.others["end"].isna())]
    if not len(others):
        return known
    times = pd.concat([known["start"], known["end"], others["start"], others["end"]]).dropna()
    aside = pd.DataFrame(
        {
            "row": others["row"],
            "job": others["job"],
            "start": others["start"].fillna(min(0, times.min())).astype("int64"),
            "end": others["end"].fillna(times.max() + 1).astype("int64"),
            "gpus": others["gpus"],
        }
    )
    aside = aside[aside["start"] < aside["end"]].assign(submit=lambda rows: rows["start"])
    return pd.concat([known, aside], ignore_index=True)


def use_over_time(start: Ints, end: Ints, width: Ints) -> tuple[Ints, Ints]:
    """Moments at which the number of GPUs held changes, and the number from then on."""
    moments, where = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.zeros(len(moments), dtype=np.int64)
    np.add.at(change, where, np.concatenate([width, -width]))
    return moments, np.cumsum(change)


def _on_servers(
    log: Log, held: pd.DataFrame, unchecked: list[str]
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows that name a server, and the GPUs of those that are known."""
    capacity = log.need_capacity()
    if "server" not in held:
        if capacity.servers:
            unchecked.append("each server: the log does not say which ones its jobs ran on")
        return held[:0], {}
    server = held["server"].fillna("").astype(str)
    if (server == "").any():
        number = int((server == "").sum())
        runs = f"{number} run{'s' * (number > 1)}"
        unchecked.append(f"each server: of {runs} the log does not say what each server held")
    names = sorted(set(server) - {""})
    sizes = {name: log.gpus_a_server or capacity.of_server(name) for name in names}
    known = {name: gpus for name, gpus in sizes.items() if gpus is not None}
    unknown = [name for name in names if name not in known]
    if unknown:
        unchecked.append(
            f"each server: nobody has said how many GPUs {len(unknown)} of them have, such as "
            f"{unknown[0]} (--servers)"
        )
    return held[server.isin(known)], known


def _judged(log: Log, held: pd.DataFrame, room: int | Mapping[str, int]) -> Iterator[Breach]:
    """Too many GPUs at once, on a pool of so many or on each server; starts before submission."""
    if isinstance(room, int):
        yield from _over(log, held, "capacity", "the cluster", room)
        early = held["submit"] - held["start"]
        for _, row in held.assign(early=early)[early > 0].iterrows():
            begin, seconds = log.stamp(row["start"]), log.seconds(row["early"])
            where = f"job {row['job']}"
            yield Breach("before submission", int(row["row"]), where, begin, "", seconds, 0)
        return
    for name, gpus in room.items():
        own = held[held["server"].astype(str) == name]
        yield from _over(log, own, "server", f"server {name}", gpus)


def _over(log: Log, held: pd.DataFrame, kind: str, where: str, room: int) -> Iterator[Breach]:
    """Each maximal time with more than `room` GPUs held, by whoever started last before it."""
    moments, used = use_over_time(*(held[name].to_numpy() for name in ("start", "end", "gpus")))
    over = np.r_[False, used > room, False]
    begins, ends = np.flatnonzero(over[1:] & ~over[:-1]), np.flatnonzero(over[:-1] & ~over[1:])
    for first, last in zip(begins, ends, strict=True):
        begin, end = int(moments[first]), int(moments[last])
        running = held[(held["start"] <= begin) & (held["end"] > begin)]
        row = int(running["row"].iloc[int(running["start"].argmax())])
        most = int(used[first:last].max())
        yield Breach(kind, row, where, log.stamp(begin), log.stamp(end), most, room)


def _too_short(log: Log) -> Iterator[Breach]:
    """Jobs whose runs together are shorter than the duration that the log gives."""
    jobs = log.jobs
    for _, job in jobs[(jobs["ran"].notna() & (jobs["ran"] < jobs["duration"]))].iterrows():
        ran, needed = log.seconds(job["ran"]), log.seconds(job["duration"])
        yield Breach("too short", int(job["row"]), f"job {job['job']}",
                     log.stamp(job["completion"]), "", ran, needed)  # fmt: skip
