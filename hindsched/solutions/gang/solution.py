"""Solutions of gang, judged by (1)-(7) of ``docs/gang.md`` in integer arithmetic.

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

A job may hold its GPUs for longer than its work takes: that is never better. It is complete in the
last slot that it holds. Nothing here has a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import GangInstance, exact, split_formulation
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Assignment, Assignments, Solution, Violation
from hindsched.solutions.gang.metrics import gang_metrics
from hindsched.solutions.gang.rows import GangRows, read_gang_rows, write_gang_rows
from hindsched.solutions.tables import JobRow, UsageRow


class GangJobRow(JobRow):
    """A job, how long it waited and ran."""

    weight: float
    gpus: int
    wait_seconds: float | None
    completion_seconds: float | None
    pieces: int
    user: str | None


class GangSolution(Solution):
    """When and on how many GPUs each job runs.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    rows : GangRows
        What each job holds.
    formulation : str, optional
        Kind and objective, ``non-preemptive`` by default.
    """

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
        instance, ends = self.instance, self.completions
        seconds = exact(instance.slot_seconds)
        if self.goal == "makespan":
            return int(ends.max(initial=0)) * seconds
        weights, below = instance.exact_weights
        if self.goal == "deadlines":
            missed = (instance.deadlines >= 0) & ((ends < 0) | (ends > instance.deadlines))
            return Fraction(sum(weights[job] for job in np.flatnonzero(missed)), below)
        spans = np.where(ends < 0, 0, ends - instance.submits).tolist()
        total = sum(weight * span for weight, span in zip(weights, spans, strict=True))
        return Fraction(total, below) * seconds

    def objective(self) -> float:
        """``sum w (C - submit)`` in seconds, the makespan, or the weight of missed deadlines."""
        return float(self.exact_objective)

    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None if its work is not done."""
        end = int(self.completions[self.instance.names[job]])
        return None if end < 0 else end

    def violations(self) -> list[Violation]:
        """Every rule of (1)-(7) that is broken."""
        return [*self._of_jobs(), *self._of_rows(), *self._of_capacity()]

    def _of_jobs(self) -> Iterator[Violation]:
        jobs = self.instance.jobs
        unit = "GPU-slots" if self.kind == "elastic" else "slots"
        for job in np.flatnonzero(self.work_done < self.work):
            missing = int(self.work[job] - self.work_done[job])
            what = f"too short by {missing} {unit}" if self.work_done[job] else "does not run"
            yield Violation("(1)", f"job {jobs[job].name}: {what}", missing)

    def _of_rows(self) -> Iterator[Violation]:
        instance, rows = self.instance, self.rows
        early = instance.submits[rows.job] - rows.start
        for row in np.flatnonzero(early > 0):
            where = f"{self._where(row)}: before its submission"
            yield Violation("(2)", where, int(early[row]))
        asked = instance.job_gpus[rows.job]
        if self.kind == "elastic":
            wrong = np.maximum(rows.gpus - instance.most_gpus[rows.job], 0)
        else:
            wrong = np.abs(rows.gpus - asked)
        for row in np.flatnonzero(wrong):
            where = f"{self._where(row)}: {rows.gpus[row]} GPUs for {asked[row]}"
            yield Violation("(3)", where, int(wrong[row]))
        same = rows.job[1:] == rows.job[:-1]
        gap = rows.start[1:] - rows.end[:-1]
        if self.kind == "non-preemptive":
            for row in np.flatnonzero(same & (gap > 0)):
                where = f"{self._where(row)}: paused until slot {rows.start[row + 1] + 1}"
                yield Violation("(4)", where, int(gap[row]))
            yield from self._of_moves(np.flatnonzero(same & (gap == 0)))
        for row in np.flatnonzero(same & (gap < 0)):
            yield Violation("(7)", f"{self._where(row + 1)}: overlaps itself", -int(gap[row]))
        if instance.is_consolidated:
            yield from self._of_placement()

    def _of_moves(self, touching: Ints) -> Iterator[Violation]:
        if touching.size and self.rows.place_row.size:
            placements = self.rows.placements()
            for row in touching:
                if placements[row] != placements[row + 1]:
                    yield Violation("(4)", f"{self._where(row + 1)}: moved", 1)

    def _of_placement(self) -> Iterator[Violation]:
        rows, sizes = self.rows, self.instance.server_gpus
        count = np.bincount(rows.place_row, minlength=rows.size)
        partial = rows.place_gpus < sizes[rows.place_server]
        partials = np.bincount(rows.place_row, weights=partial, minlength=rows.size)
        spread = np.where(rows.gpus <= sizes.max(), count - 1, np.maximum(partials - 1, 0))
        for row in np.flatnonzero(spread > 0):
            where = f"{self._where(row)}: spread over {count[row]} servers"
            yield Violation("(6)", where, int(spread[row]))

    def _of_capacity(self) -> Iterator[Violation]:
        rows, room = self.rows, self.instance.total_gpus
        pool = np.zeros(rows.size, dtype=np.int64)
        for _, start, end, used in excess(pool, rows.start, rows.end, rows.gpus, np.array([room])):
            where = f"cluster, slots {start + 1}-{end}: {used} of {room} GPUs"
            yield Violation("(5)", where, used - room)
        at, sizes = rows.place_row, self.instance.server_gpus
        spans = rows.start[at], rows.end[at]
        for server, start, end, used in excess(rows.place_server, *spans, rows.place_gpus, sizes):
            assert self.instance.servers is not None
            name = f"server {self.instance.servers[server].name}"
            where = f"{name}, slots {start + 1}-{end}: {used} of {sizes[server]} GPUs"
            yield Violation("(5)", where, used - int(sizes[server]))

    def _where(self, row: int | np.integer[Any]) -> str:
        rows = self.rows
        name = self.instance.jobs[rows.job[row]].name
        return f"job {name}, slots {rows.start[row] + 1}-{rows.end[row]}"

    def metrics(self) -> JsonObject:
        """Completion times, waits, utilisation and the like in seconds; see `gang_metrics`."""
        return gang_metrics(self.instance, self.starts, self.completions, self.used_gpu_slots)

    @cached_property
    def used_gpu_slots(self) -> int:
        """GPU-slots held by all jobs."""
        return int(((self.rows.end - self.rows.start) * self.rows.gpus).sum())

    def job_rows(self) -> list[GangJobRow]:
        """One row a job: start, completion, weighted completion time, how it ran."""
        instance = self.instance
        pieces = np.bincount(self.rows.job, minlength=len(instance.jobs)).tolist()
        seconds = instance.slot_seconds
        table: list[GangJobRow] = []
        columns = (self.starts.tolist(), self.completions.tolist(), instance.submits.tolist())
        for job, start, end, submit, parts in zip(instance.jobs, *columns, pieces, strict=True):
            done = end >= 0
            row: GangJobRow = {
                "job": job.name,
                "arrival": submit + 1,
                "start": start + 1 if start >= 0 else None,
                "completion": end if done else None,
                "value": job.weight * (end - submit) * seconds if done else None,
                "weight": job.weight,
                "gpus": job.gpus,
                "wait_seconds": (start - submit) * seconds if start >= 0 else None,
                "completion_seconds": (end - submit) * seconds if done else None,
                "pieces": parts,
                "user": job.user,
            }
            table.append(row)
        return table

    def usage_steps(self) -> tuple[Ints, Ints]:
        """GPUs in use as a step function: `used[i]` from time ``times[i]`` to ``times[i + 1]``."""
        rows = self.rows
        times, place = np.unique(np.concatenate([rows.start, rows.end]), return_inverse=True)
        used = np.zeros(times.size, dtype=np.int64)
        np.add.at(used, place, np.concatenate([rows.gpus, -rows.gpus]))
        return times, np.cumsum(used)

    def places(self) -> list[tuple[str, str]]:
        """The cluster as a whole."""
        return [("cluster", "gpu")]

    def run_of(self, row: Assignment) -> tuple[int, int, float]:
        """GPUs stand for workers."""
        gpus = row["gpus"] if "gpus" in row else sum(row["servers"].values())
        return row["from"], row["to"], float(gpus)

    def usage_rows(self) -> list[UsageRow]:
        """GPUs in use per slot, the cluster as a whole."""
        times, used = self.usage_steps()
        room = float(self.instance.total_gpus)
        steps = zip(times[:-1].tolist(), times[1:].tolist(), used[:-1].tolist(), strict=True)
        return [
            {"slot": slot, "server": "cluster", "resource": "gpu", "used": float(held),
             "capacity": room}
            for start, end, held in steps if held
            for slot in range(start + 1, end + 1)
        ]  # fmt: skip


def excess(
    group: Ints, start: Ints, end: Ints, gpus: Ints, room: Ints
) -> Iterator[tuple[int, int, int, int]]:
    """Stretches in which a group holds more GPUs than it has: (group, start, end, GPUs held)."""
    owner = np.concatenate([group, group])
    time = np.concatenate([start, end])
    change = np.concatenate([gpus, -gpus])
    order = np.lexsort((time, owner))
    owner, time = owner[order], time[order]
    held = np.cumsum(change[order])  # every group ends at 0
    last = np.ones(owner.size, dtype=bool)  # the last event of its moment
    last[:-1] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
    for event in np.flatnonzero(last & (held > room[owner])):
        until = event + 1
        while not last[until]:
            until += 1
        yield int(owner[event]), int(time[event]), int(time[until]), int(held[event])


SOLUTION = GangSolution
