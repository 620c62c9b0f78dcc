"""Solutions of gang, judged by (1)-(7) of the page on gang, by the kernel and without a tolerance.

A job's decisions are rows ``{from, to, gpus}``, or ``{from, to, servers: {name: n}}`` where servers
are named, or ``{from, to, gpus, gpu_kind}`` where GPUs are of several kinds. It is complete in the
last slot that it holds.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import (
    MOST_SLOTS,
    GangInstance,
    GangJob,
    split_formulation,
)
from hindsched.json_types import JsonObject
from hindsched.solutions import rows as file_rows
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table

if TYPE_CHECKING:  # pandas is not loaded until it is needed
    import pandas as pd

SHORT_SECONDS = 10.0
"""A bounded slowdown counts shorter jobs as if they ran so long (Feitelson et al., 1997)."""


class GangRows(NamedTuple):
    """Stretches of time in which a job's GPUs do not change."""

    job: Ints  # positions of the jobs, (rows,)
    start: Ints  # the row holds slots start + 1 .. end
    end: Ints
    gpus: Ints
    # GPUs by server (where GPUs are of several kinds in pools, by kind) of rows that name some,
    # (rows, servers); (rows, 0) if none does
    held: Ints

    def sorted(self) -> GangRows:
        """The same rows by job, start and end."""
        order = np.lexsort((self.end, self.start, self.job))
        return GangRows._make(column[order] for column in self)


def pool_rows(job: Ints, start: Ints, end: Ints, gpus: Ints) -> GangRows:
    """Rows that name no server."""
    return GangRows(job, start, end, gpus, np.zeros((job.size, 0), dtype=np.int64))


def read_gpus(
    instance: GangInstance, servers: list[str], where: str, row: Assignment,
    span: frozenset[str] = frozenset({"from", "to"}),
) -> int | Ints:  # fmt: skip
    """Read a row's GPUs, or GPUs by place; beside them it must have the keys `span`."""
    by_kind = instance.has_kinds and not instance.is_consolidated
    if "servers" in row and servers and not by_kind:
        file_rows.check_row_keys(where, row, span | {"servers"}, span | {"servers"})
        held = file_rows.read_counts(f"{where}.servers", row["servers"], servers)
        if not held.any():
            raise InputError(f"{where}.servers", row["servers"], "must hold a GPU")
        return held
    keys = span | {"servers" if instance.is_consolidated else "gpus"}
    keys |= {"gpu_kind"} if by_kind else set()
    file_rows.check_row_keys(where, row, keys, keys)
    gpus = row["gpus"]
    if type(gpus) is not int or not 1 <= gpus <= MOST_SLOTS:
        raise InputError(f"{where}.gpus", gpus, "must be an integer of at least 1")
    if by_kind:
        if row["gpu_kind"] not in servers:
            raise InputError(f"{where}.gpu_kind", row["gpu_kind"], "must be that of a server")
        held = np.zeros(len(servers), dtype=np.int64)
        held[servers.index(row["gpu_kind"])] = gpus
        return held
    return gpus


def place_names(instance: GangInstance) -> list[str]:
    """What the columns of `GangRows.held` are: kinds that are pools, else servers."""
    if instance.has_kinds and not instance.is_consolidated:
        return list(instance.gpu_kinds)
    return [server.name for server in instance.servers or ()]


def write_gpus(instance: GangInstance, places: list[str], gpus: int, held: Ints) -> Assignment:
    """A row's GPUs in the file's form."""
    if instance.has_kinds and not instance.is_consolidated:
        return {"gpus": int(gpus), "gpu_kind": places[int(held.argmax())]}
    counts = file_rows.write_counts(held, places)
    return {"servers": counts} if counts else {"gpus": int(gpus)}


def use_over_time(start: Any, end: Any, gpus: Any) -> pd.Series:
    """GPUs held from each moment on at which their number changes."""
    import pandas as pd

    changes = pd.Series(np.append(gpus, np.negative(gpus)), np.append(start, end))
    return changes.groupby(level=0).sum().cumsum()


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
    import pandas as pd

    seconds = float(instance.slot_seconds)
    done = completions >= 0
    rows = pd.DataFrame({
        "user": [job.user or "" for job in instance.jobs],
        "jct": (completions - instance.submits) * seconds,
        "wait": (starts - instance.submits) * seconds,
        "gpu_seconds": instance.durations * instance.job_gpus * seconds,
        "weight": instance.weights,
        "length": np.maximum(instance.durations * seconds, SHORT_SECONDS),
    })[done]  # fmt: skip
    some, jct = len(rows) > 0, rows["jct"]
    due = instance.deadlines >= 0
    last = int(completions.max(initial=0))
    room = instance.total_gpus * (last - int(instance.submits.min())) if some else 0
    p50, p95, p99 = np.percentile(jct, [50, 95, 99]).tolist() if some else (None, None, None)
    users = rows.groupby("user").agg(
        jobs=("jct", "size"), mean_jct=("jct", "mean"), mean_wait=("wait", "mean"),
        gpu_seconds=("gpu_seconds", "sum"),
    )  # fmt: skip
    return {
        "jobs": len(instance.jobs),
        "completed": len(rows),
        "mean_jct": float(jct.mean()) if some else None,
        "weighted_mean_jct": float(np.average(jct, weights=rows["weight"])) if some else None,
        "p50_jct": p50,
        "p95_jct": p95,
        "p99_jct": p99,
        "mean_wait": float(rows["wait"].mean()) if some else None,
        "makespan": last * seconds if some else None,
        "bounded_slowdown": float((jct / rows["length"]).clip(lower=1).mean()) if some else None,
        "utilisation": used_gpu_slots / room if room else None,
        "deadlines": int(due.sum()),
        "deadlines_met": int((due & done & (completions <= instance.deadlines)).sum()),
        "users": users.reset_index().to_dict("records") if rows["user"].any() else [],
    }


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
        """Build from rows ``{from, to, gpus}`` or ``{from, to, servers: {name: n}}``."""
        servers = place_names(instance)

        def read(_: GangInstance, where: str, row: Assignment) -> tuple[int | Ints, int, int]:
            held = read_gpus(instance, servers, where, row)
            return held, *file_rows.read_span(where, row, MOST_SLOTS)

        table, by_server, none = [], [], np.zeros(len(servers), dtype=np.int64)
        for name, rows in file_rows.read_rows(instance, assignments, read).items():
            for held, first, last in rows:
                table.append((instance.job_index(name), first - 1, last, int(np.sum(held))))
                by_server.append(none if isinstance(held, int) else held)
        columns = np.array(table, dtype=np.int64).reshape(-1, 4).T
        named = np.array(by_server, dtype=np.int64).reshape(len(table), len(servers))
        return cls(instance, GangRows._make([*columns, named]), formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form for every job that runs."""
        places = place_names(self.instance)
        written: dict[str, list[Assignment]] = {}
        columns = (column.tolist() for column in self.rows[:4])
        for job, start, end, gpus, held in zip(*columns, self.rows.held, strict=True):
            row = {"from": start + 1, "to": end}
            row |= write_gpus(self.instance, places, gpus, held)
            written.setdefault(self.instance.jobs[job].name, []).append(row)
        return written

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
        start, end, submit, pieces = (int(array[index]) for array in times)
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
        used = use_over_time(self.rows.start, self.rows.end, self.rows.gpus)
        times = used.index.to_numpy()
        by_slot = np.repeat(used.to_numpy()[:-1], np.diff(times))[:, None, None]
        table = usage_table(by_slot, np.array([[self.instance.total_gpus]]), ["cluster"], ["gpu"])
        return [row | {"slot": row["slot"] + int(times[0])} for row in table]


SOLUTION = GangSolution
