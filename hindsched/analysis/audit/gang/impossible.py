"""What makes a logged schedule impossible, by row and moment, as the judge of schedules finds it.

Every row of the log that held GPUs is a job of its own for the exact kernel, on one pool of all
GPUs and on the servers that the log names: jobs that cannot be judged, and runs whose work was
lost, held their GPUs too. Where it is not known when a job held its GPUs, it is left out and the
answer says so: what is found is wrong all the same, what is not found may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from hindsched import kernel
from hindsched.instances.traces.log import Log
from hindsched.solutions.gang.solution import use_over_time

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
    """One thing that cannot have been."""

    kind: str  # one of `WORDS`
    row: int  # of the log: of the job, or of the last to start of those that hold too much
    where: str  # job or server
    begin: str  # as the log writes times
    end: str
    found: float  # GPUs held, or seconds run; seconds early
    allowed: float  # GPUs there, or seconds needed; 0

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
    """What cannot have been."""

    listed: tuple[Breach, ...]
    unchecked: tuple[str, ...]  # what could not be checked, and why
    peak: int  # most GPUs known to be held at once

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        kinds = [breach.kind for breach in self.listed]
        return {kind: kinds.count(kind) for kind in WORDS if kind in kinds}

    def to_frame(self) -> pd.DataFrame:
        """A row a breach."""
        return pd.DataFrame(map(asdict, self.listed), columns=[*Breach.__annotations__])


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
    sizes = _known_servers(log, held, unchecked)
    listed = [*_judged(log, held, gpus, {})]
    if sizes:
        named = held[held["server"].fillna("").astype(str).isin(sizes)]
        listed += _judged(log, named, sum(sizes.values()), sizes)
    jobs = log.jobs
    short: Any = jobs[jobs["ran"].notna() & (jobs["ran"] < jobs["duration"])]
    for job in short.itertuples():
        ran, needed, end = (
            log.seconds(job.ran),
            log.seconds(job.duration),
            log.stamp(job.completion),
        )
        listed.append(Breach("too short", job.row, f"job {job.job}", end, "", ran, needed))
    used = use_over_time(held["start"], held["end"], held["gpus"])
    return Breaches(tuple(listed), tuple(unchecked), int(used.max() if len(used) else 0))


def held_rows(log: Log) -> pd.DataFrame:
    """What held GPUs from when to when: rows of judged jobs that are known, and of all others."""
    jobs, rows = log.jobs, log.rows
    is_judged = rows["why"] == ""
    hidden = rows["job"].isin(jobs["job"][jobs["completion_only"]]) & is_judged
    held = rows[~hidden & (rows["start"].notna() | rows["end"].notna())]
    times = pd.concat([held["start"], held["end"]]).dropna()
    first, last = min([0, *times]), max([0, *times])
    start, end = held["start"].fillna(first), held["end"].fillna(last + 1)
    submit = held["job"].map(jobs.set_index("job")["submit"]).where(is_judged[held.index], start)
    held = held.assign(submit=submit, start=start, end=end)[start < end]
    return held.astype({"submit": "int64", "start": "int64", "end": "int64"})


def _known_servers(log: Log, held: pd.DataFrame, unchecked: list[str]) -> dict[str, int]:
    """GPUs of the servers that the rows name, where they are known; what is not is said."""
    capacity = log.need_capacity()
    if "server" not in held:
        if capacity.servers:
            unchecked.append("each server: the log does not say which ones its jobs ran on")
        return {}
    server = held["server"].fillna("").astype(str)
    if (number := int((server == "").sum())) > 0:
        runs = f"{number} run{'s' * (number > 1)}"
        unchecked.append(f"each server: of {runs} the log does not say what each server held")
    sizes = {name: capacity.of_server(name) for name in sorted({*server} - {""})}
    unknown = [name for name, gpus in sizes.items() if gpus is None]
    if unknown:
        unchecked.append(
            f"each server: nobody has said how many GPUs {len(unknown)} of them have, such as "
            f"{unknown[0]} (--servers)"
        )
    return {name: gpus for name, gpus in sizes.items() if gpus is not None}


def _judged(
    log: Log, held: pd.DataFrame, gpus: int, servers: Mapping[str, int]
) -> Iterator[Breach]:
    """What the exact kernel says of rows as jobs of their own, on one pool or on each server."""
    zero = min([0, *held["start"], *held["submit"]])
    jobs, runs = [], []
    rows: Any = held.itertuples()
    for number, row in enumerate(rows):
        job = {"submit": row.submit - zero, "duration": row.end - row.start}
        jobs.append({"name": str(number), **job, "gpus": min(row.gpus, gpus)})
        place = {"servers": {row.server: row.gpus}} if servers else {"gpus": row.gpus}
        span = {"from": row.start - zero + 1, "to": row.end - zero}
        runs.append({"name": str(number), "assignments": [{**span, **place}]})
    listed = [{"name": name, "gpus": size} for name, size in servers.items()]
    cluster = {"servers": listed} if servers else {"gpus": gpus}
    instance = {"family": "gang", "slot_seconds": 1, "jobs": jobs, **cluster}
    found = kernel.check(instance, {"formulation": "non-preemptive", "jobs": runs})
    over: dict[tuple[str, int], Breach] = {}  # by place and the slot after which it ends
    for each in found.violations if jobs else ():
        logged, amount = held.iloc[int(each.job)], int(each.amount)
        begins, ends = log.stamp(each.first - 1 + zero), log.stamp(each.last + zero)
        if each.rule == "(2)" and not servers:
            early, where = log.seconds(amount), f"job {logged['job']}"
            yield Breach("before submission", logged["row"], where, begins, "", early, 0)
        elif each.rule == "(5)" and (each.server == "cluster") != bool(servers):
            where = f"server {each.server}" if servers else "the cluster"
            kind, room = "server" if servers else "capacity", servers.get(each.server, gpus)
            made = Breach(kind, logged["row"], where, begins, ends, room + amount, room)
            before = over.pop((each.server, each.first - 1), None)
            if before is not None:  # goes on at another height
                made = replace(before, end=ends, found=max(before.found, made.found))
            over[each.server, each.last] = made
    yield from over.values()
