"""Solutions of gang, judged by (1)-(7) of the page on gang in integer arithmetic.

A job's decisions are rows ``{from, to, gpus}``, or ``{from, to, servers: {name: n}}`` where servers
are named. Rules of the three kinds of formulation:

==== =============================================================== =======================
(1)  does its work: `duration` slots (elastic: duration x gpus)      all
(2)  runs in no slot up to `submit`                                  all
(3)  holds exactly `gpus` GPUs (elastic: at most `most_gpus`)        all
(4)  runs in one piece, in one place                                 non-preemptive
(5)  no more GPUs are held than there are, cluster and each server   all
(6)  stands on one server, or on whole ones and a remainder          consolidated placement
(7)  rows of a job do not overlap                                    all
==== =============================================================== =======================

A job holds its GPUs for exactly as long as its work takes (elastic: at least). It is complete in
the last slot that it holds. The kernel judges, without a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import (
    MOST_SLOTS,
    GangInstance,
    GangJob,
    split_formulation,
)
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table
from hindsched.solutions.rows import check_row_keys, read_counts, read_rows, read_span

SHORT_SECONDS = 10.0
"""A bounded slowdown counts shorter jobs as if they ran so long (Feitelson et al., 1997)."""


@dataclass(frozen=True)
class GangRows:
    """Stretches of time in which a job's GPUs do not change."""

    job: Ints  # positions of the jobs, (rows,)
    start: Ints  # the row holds slots start + 1 .. end
    end: Ints
    gpus: Ints
    place_row: Ints  # GPUs of a row on a server, by row and server, (places,); may be empty
    place_server: Ints
    place_gpus: Ints

    def sorted(self) -> GangRows:
        """The same rows by job, start and end."""
        order = np.lexsort((self.end, self.start, self.job))
        if np.array_equal(order, np.arange(order.size)):
            return self
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        at = position[self.place_row]
        places = np.lexsort((self.place_server, at))
        return GangRows(
            self.job[order], self.start[order], self.end[order], self.gpus[order],
            at[places], self.place_server[places], self.place_gpus[places],
        )  # fmt: skip

    def placements(self) -> list[tuple[tuple[int, int], ...]]:
        """(server, GPUs) pairs of each row."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.job.size)]
        columns = (self.place_row.tolist(), self.place_server.tolist(), self.place_gpus.tolist())
        for row, server, gpus in zip(*columns, strict=True):
            found[row].append((server, gpus))
        return [tuple(places) for places in found]


def pool_rows(job: Ints, start: Ints, end: Ints, gpus: Ints) -> GangRows:
    """Rows that name no server."""
    none = np.zeros(0, dtype=np.int64)
    return GangRows(job, start, end, gpus, none, none, none)


def read_gang_rows(instance: GangInstance, assignments: Assignments) -> GangRows:
    """Read rows in the file's form ``{from, to, gpus}`` or ``{from, to, servers: {name: n}}``."""
    servers = [server.name for server in instance.servers or ()]

    def read(_: GangInstance, where: str, row: Assignment) -> tuple[int | Ints, int, int]:
        held = read_gpus(instance, servers, where, row)
        return held, *read_span(where, row, MOST_SLOTS)

    table: list[tuple[int, int, int, int]] = []
    places: list[tuple[int, int, int]] = []
    for name, rows in read_rows(instance, assignments, read).items():
        for held, first, last in rows:
            if not isinstance(held, int):
                at = np.flatnonzero(held).tolist()
                places += [(len(table), server, int(held[server])) for server in at]
            table.append((instance.job_index(name), first - 1, last, int(np.sum(held))))
    columns = np.array(table, dtype=np.int64).reshape(-1, 4).T
    return GangRows(*columns, *np.array(places, dtype=np.int64).reshape(-1, 3).T).sorted()


def read_gpus(
    instance: GangInstance,
    servers: list[str],
    where: str,
    row: Assignment,
    span: frozenset[str] = frozenset({"from", "to"}),
) -> int | Ints:
    """Read a row's GPUs, or GPUs by server; beside them it must have the keys `span`."""
    if "servers" in row and servers:
        check_row_keys(where, row, span | {"servers"}, span | {"servers"})
        held = read_counts(f"{where}.servers", row["servers"], servers)
        if not held.any():
            raise InputError(f"{where}.servers", row["servers"], "must hold a GPU")
        return held
    keys = span | {"servers" if instance.is_consolidated else "gpus"}
    check_row_keys(where, row, keys, keys)
    gpus = row["gpus"]
    if type(gpus) is not int or not 1 <= gpus <= MOST_SLOTS:
        raise InputError(f"{where}.gpus", gpus, "must be an integer of at least 1")
    return gpus


def write_gang_rows(instance: GangInstance, rows: GangRows) -> dict[str, list[Assignment]]:
    """Write rows in the file's form, by job name."""
    names = [job.name for job in instance.jobs]
    servers = [server.name for server in instance.servers or ()]
    placements = rows.placements()
    written: dict[str, list[Assignment]] = {}
    columns = (rows.job.tolist(), rows.start.tolist(), rows.end.tolist(), rows.gpus.tolist())
    for job, start, end, gpus, places in zip(*columns, placements, strict=True):
        row: JsonObject = {"from": start + 1, "to": end}
        if places:
            row["servers"] = {servers[server]: held for server, held in places}
        else:
            row["gpus"] = gpus
        written.setdefault(names[job], []).append(row)
    return written


def gang_metrics(
    instance: GangInstance, starts: Ints, completions: Ints, used_gpu_slots: int
) -> JsonObject:
    """Metrics over the jobs that complete; times in seconds, None where there is nothing to count.

    From time of the first start and last slot of each job, (jobs,), -1 for none, and the GPU-slots
    that all held. Waits are from submission to first start, the makespan is since the trace's
    start, ``bounded_slowdown`` the mean of ``max(1, JCT / max(duration, 10 s))``, ``utilisation``
    GPU-seconds held over those from the first submission to the last completion; ``users`` a row a
    user.
    """
    seconds = float(instance.slot_seconds)
    done = completions >= 0
    jct = (completions - instance.submits)[done] * seconds
    weights = instance.weights[done]
    due = instance.deadlines >= 0
    last = int(completions.max(initial=0))
    first = int(instance.submits.min()) if done.any() else 0
    room = instance.total_gpus * (last - first)
    slowdown = jct / np.maximum(instance.durations[done] * seconds, SHORT_SECONDS)
    waits = (starts - instance.submits)[done] * seconds
    some = bool(done.any())
    p50, p95, p99 = np.percentile(jct, [50, 95, 99]).tolist() if some else (None, None, None)
    return {
        "jobs": len(instance.jobs),
        "completed": int(done.sum()),
        "mean_jct": float(jct.mean()) if some else None,
        "weighted_mean_jct": float((jct * weights).sum() / weights.sum()) if some else None,
        "p50_jct": p50,
        "p95_jct": p95,
        "p99_jct": p99,
        "mean_wait": float(waits.mean()) if some else None,
        "makespan": last * seconds if some else None,
        "bounded_slowdown": float(np.maximum(slowdown, 1.0).mean()) if some else None,
        "utilisation": used_gpu_slots / room if room else None,
        "deadlines": int(due.sum()),
        "deadlines_met": int((due & done & (completions <= instance.deadlines)).sum()),
        "users": _by_user(instance, done, starts, completions),
    }


def _by_user(
    instance: GangInstance, done: Bools, starts: Ints, completions: Ints
) -> list[JsonObject]:
    """Jobs, mean completion time and wait, and GPU-seconds asked for, by user in name order."""
    users = np.array([job.user or "" for job in instance.jobs], dtype=object)[done]
    if not any(users):
        return []
    names, who = np.unique(users.astype(str), return_inverse=True)
    seconds = float(instance.slot_seconds)
    count = np.bincount(who)
    jct = np.bincount(who, weights=(completions - instance.submits)[done] * seconds)
    wait = np.bincount(who, weights=(starts - instance.submits)[done] * seconds)
    work = np.bincount(who, weights=(instance.durations * instance.job_gpus)[done] * seconds)
    columns = (names.tolist(), count.tolist(), (jct / count).tolist(), (wait / count).tolist())
    return [
        {"user": user, "jobs": jobs, "mean_jct": mean, "mean_wait": late, "gpu_seconds": held}
        for user, jobs, mean, late, held in zip(*columns, work.tolist(), strict=True)
    ]


class GangSolution(Solution):
    """When and on how many GPUs each job runs; ``non-preemptive`` by default."""

    family: ClassVar[str] = "gang"
    capacity_name: ClassVar[str] = "GPUs"
    instance: GangInstance

    def __init__(
        self, instance: GangInstance, rows: GangRows, formulation: str | None = None
    ) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.kind, self.goal = split_formulation(self.formulation)
        self.rows = rows.sorted()

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form."""
        return cls(instance, read_gang_rows(instance, assignments), formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form for every job that runs."""
        return write_gang_rows(self.instance, self.rows)

    @cached_property
    def starts(self) -> Ints:
        """Time at which each job starts, in slots; -1 if it does not run. Shape (jobs,)."""
        starts = np.full(len(self.instance.jobs), -1)
        starts[self.rows.job[::-1]] = self.rows.start[::-1]
        return starts

    @cached_property
    def work_done(self) -> Ints:
        """Slots (elastic: GPU-slots) that each job holds, shape (jobs,)."""
        rows = self.rows
        done = np.zeros(len(self.instance.jobs), dtype=np.int64)
        length = rows.end - rows.start
        np.add.at(done, rows.job, length * rows.gpus if self.kind == "elastic" else length)
        return done

    @cached_property
    def work(self) -> Ints:
        """Slots (elastic: GPU-slots) that each job needs, shape (jobs,)."""
        durations = self.instance.durations
        return durations * self.instance.job_gpus if self.kind == "elastic" else durations

    @cached_property
    def completions(self) -> Ints:
        """Last slot of each job, -1 if its work is not done. Shape (jobs,)."""
        ends = np.full(len(self.instance.jobs), -1)
        np.maximum.at(ends, self.rows.job, self.rows.end)
        ends[self.work_done < self.work] = -1
        return ends

    @cached_property
    def exact_objective(self) -> Fraction:
        """The objective as a fraction: weighted seconds, seconds or weight by the formulation."""
        ends = {job.name: self.completion(job.name) for job in self.instance.jobs}
        worth: Fraction = self.instance.exact.problem(self.formulation).worth(ends).low
        return worth

    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None if its work is not done."""
        end = int(self.completions[self.instance.job_index(job)])
        return None if end < 0 else end

    def metrics(self) -> JsonObject:
        """Completion times, waits, utilisation and the like in seconds; see `gang_metrics`."""
        return gang_metrics(self.instance, self.starts, self.completions, self.used_gpu_slots)

    @cached_property
    def used_gpu_slots(self) -> int:
        """GPU-slots held by all jobs."""
        return int(((self.rows.end - self.rows.start) * self.rows.gpus).sum())

    def job_facts(self, job: GangJob) -> JsonObject:
        """Start, weighted completion time, how the job waited and ran."""
        index, seconds = self.instance.job_index(job.name), self.instance.slot_seconds
        times = self.starts, self.completions, self.instance.submits, self._pieces
        start, end, submit, pieces = (int(own[index]) for own in times)
        done = (end - submit) * seconds if end >= 0 else None
        return {
            "start": start + 1 if start >= 0 else None,
            "value": None if done is None else job.weight * done,
            "weight": job.weight,
            "gpus": job.gpus,
            "wait_seconds": (start - submit) * seconds if start >= 0 else None,
            "completion_seconds": done,
            "pieces": pieces,
            "user": job.user,
        }

    @cached_property
    def _pieces(self) -> Ints:
        pieces: Ints = np.bincount(self.rows.job, minlength=len(self.instance.jobs))
        return pieces

    def places(self) -> list[tuple[str, str]]:
        """The cluster as a whole."""
        return [("cluster", "gpu")]

    def run_of(self, row: Assignment) -> tuple[int, int, float]:
        """GPUs stand for workers."""
        gpus = row["gpus"] if "gpus" in row else sum(row["servers"].values())
        return row["from"], row["to"], float(gpus)

    def usage_rows(self) -> list[TableRow]:
        """GPUs in use per slot, the cluster as a whole."""
        rows = self.rows
        times, place = np.unique(np.concatenate([rows.start, rows.end]), return_inverse=True)
        change = np.zeros(times.size, dtype=np.int64)
        np.add.at(change, place, np.concatenate([rows.gpus, -rows.gpus]))
        held = np.cumsum(change)[:-1]
        used = np.repeat(held, np.diff(times))[:, None, None]
        table = usage_table(used, np.array([[self.instance.total_gpus]]), ["cluster"], ["gpu"])
        return [row | {"slot": row["slot"] + int(times[0])} for row in table]


SOLUTION = GangSolution
