"""The oasis family's solution: workers and PSs of each job, per server and slot.

Arrays by slot and server, and the tables that follow from them; the kernel judges the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import (
    Assignment,
    Assignments,
    Solution,
)
from hindsched.solutions.rows import read_counts, write_counts
from hindsched.solutions.tables import JobRow, UsageRow

Deployment = NDArray[Any]
"""Counts by slot and server: shape (T, H) or (T, K), slot t in row t - 1."""

ROW_KEYS = frozenset({"from", "to", "workers", "ps"})


class OasisJobRow(JobRow):
    """A job, its utility and its workers."""

    target: float | None
    decay: float | None
    priority: float | None
    work: int
    worker_slots: int
    most_workers: int


class OasisUsageRow(UsageRow):
    """Use of a server of workers or of PSs."""

    role: str


class OasisSolution(Solution):
    """Decisions x, y and z of the offline problem (1)-(13).

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    workers : mapping of str to ndarray, shape (T, H)
        y: workers by slot and worker server, for each job that runs.
    ps : mapping of str to ndarray, shape (T, K)
        z: PSs by slot and PS server; a job that is absent has none.
    formulation : str, optional
        The family has one.

    Notes
    -----
    A job that runs without reaching its work breaks (2): a scheduler that lets a job run in vain
    leaves it out of its solution, which frees capacity and changes no utility.
    """

    family: ClassVar[str] = "oasis"
    instance: OasisInstance

    def __init__(
        self,
        instance: OasisInstance,
        workers: Mapping[str, Deployment],
        ps: Mapping[str, Deployment],
        formulation: str | None = None,
    ) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        shapes = (len(instance.worker_servers), len(instance.ps_servers))
        self.workers: dict[str, Deployment] = {}
        self.ps: dict[str, Deployment] = {}
        for job in instance.jobs:
            pair = [
                _counts(given.get(job.name), (instance.horizon, width))
                for given, width in zip((workers, ps), shapes, strict=True)
            ]
            if any(counts.any() for counts in pair):
                self.workers[job.name], self.ps[job.name] = pair

    @classmethod
    def from_assignments(
        cls, instance: OasisInstance, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows ``{"from", "to", "workers": {server: n}, "ps": {server: n}}``.

        A row is all that its job has then: rows of a job do not overlap.
        """
        servers = {
            "workers": [server.name for server in instance.worker_servers],
            "ps": [server.name for server in instance.ps_servers],
        }
        known = {job.name for job in instance.jobs}
        deployed: dict[str, dict[str, Deployment]] = {"workers": {}, "ps": {}}
        for name, rows in assignments.items():
            if name not in known:
                raise InputError("jobs", name, "must name a job of the instance")
            for role, names in servers.items():
                shape = (instance.horizon, len(names))
                deployed[role][name] = np.zeros(shape, dtype=np.int64)
            taken = np.zeros(instance.horizon, dtype=bool)
            for number, row in enumerate(rows):
                where = f"jobs[{name}].assignments[{number}]"
                span = _span(row, instance.horizon, where)
                if taken[span].any():
                    raise InputError(where, row, "must not overlap another row of the job")
                taken[span] = True
                for role, names in servers.items():
                    counts = read_counts(f"{where}.{role}", row.get(role, {}), names)
                    deployed[role][name][span] += counts
        return cls(instance, deployed["workers"], deployed["ps"], formulation=formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows of every job that runs, run-length over slots."""
        worker_names = [server.name for server in self.instance.worker_servers]
        ps_names = [server.name for server in self.instance.ps_servers]
        return {
            name: run_length(self.workers[name], self.ps[name], worker_names, ps_names)
            for name in self.workers
        }

    def completion(self, job: str) -> int | None:
        """(8): last slot with a worker; None for a job that does not reach its work."""
        index = self.instance.job_index(job)
        if job not in self.workers:
            return None
        per_slot = self.workers[job].sum(axis=1)
        if per_slot.sum() < self.instance.work[index]:
            return None
        return int(np.flatnonzero(per_slot > 0)[-1]) + 1

    def value(self, job: str) -> float:
        """Return what the job earns: ``f(completion - arrival)``, 0 without a completion."""
        completion = self.completion(job)
        if completion is None:
            return 0.0
        record = self.instance.jobs[self.instance.job_index(job)]
        return record.utility.value(completion - record.arrival)

    def job_rows(self) -> list[OasisJobRow]:
        """One row a job; beside the shared keys: target, work, worker_slots, most_workers."""
        rows: list[OasisJobRow] = []
        for index, job in enumerate(self.instance.jobs):
            y = self.workers.get(job.name)
            per_slot = np.zeros(self.instance.horizon) if y is None else y.sum(axis=1)
            running = np.flatnonzero(per_slot > 0)
            rows.append(
                {
                    "job": job.name,
                    "arrival": job.arrival,
                    "start": int(running[0]) + 1 if running.size else None,
                    "completion": self.completion(job.name),
                    "value": self.value(job.name),
                    "target": getattr(job.utility, "target", None),
                    "decay": getattr(job.utility, "decay", None),
                    "priority": getattr(job.utility, "priority", None),
                    "work": int(self.instance.work[index]),
                    "worker_slots": int(per_slot.sum()),
                    "most_workers": int(per_slot.max(initial=0)),
                }
            )
        return rows

    def places(self) -> list[tuple[str, str]]:
        """Servers of workers, then of PSs, each with the resources that it has."""
        servers = (*self.instance.worker_servers, *self.instance.ps_servers)
        return [(s.name, name) for s in servers for name, amount in s.capacity.items() if amount]

    def usage_rows(self) -> list[OasisUsageRow]:
        """Use and capacity where anything is used; ``role`` is ``worker`` or ``ps``."""
        instance = self.instance
        rows: list[OasisUsageRow] = []
        for role, deployed, demand, capacity, servers in (
            ("worker", self.workers, instance.worker_demand, instance.worker_capacity,
             instance.worker_servers),
            ("ps", self.ps, instance.ps_demand, instance.ps_capacity, instance.ps_servers),
        ):  # fmt: skip
            running = [counts.any(axis=1) for counts in deployed.values()]
            last = 1 + int(np.flatnonzero(np.any(running, axis=0)).max(initial=-1))
            use = np.zeros((last, *capacity.shape))
            for index, job in enumerate(instance.jobs):
                if job.name in deployed:
                    use += deployed[job.name][:last, :, None] * demand[index]
            for slot, server, resource in np.argwhere(use > 0):
                rows.append(
                    {
                        "slot": int(slot) + 1,
                        "role": role,
                        "server": servers[server].name,
                        "resource": instance.resources[resource],
                        "used": float(use[slot, server, resource]),
                        "capacity": float(capacity[server, resource]),
                    }
                )
        return rows


def run_length(
    workers: Deployment, ps: Deployment, worker_names: list[str], ps_names: list[str]
) -> list[Assignment]:
    """Rows of the file's form from counts by slot and server, equal neighbours merged."""
    both = np.concatenate([workers, ps], axis=1)
    busy: Any = both.any(axis=1)
    starts = np.concatenate([[0], np.flatnonzero(np.any(both[1:] != both[:-1], axis=1)) + 1])
    stops = np.concatenate([starts[1:], [workers.shape[0]]])
    return [
        {
            "from": int(start) + 1,
            "to": int(stop),
            "workers": write_counts(workers[start], worker_names),
            "ps": write_counts(ps[start], ps_names),
        }
        for start, stop in zip(starts, stops, strict=True)
        if bool(busy[int(start)])
    ]


def _counts(given: Deployment | None, shape: tuple[int, int]) -> Deployment:
    if given is None:
        return np.zeros(shape, dtype=np.int64)
    counts = np.asarray(given)
    if counts.shape != shape:
        raise ValueError(f"counts have shape {counts.shape}, not {shape}")
    if counts.dtype.kind == "f" and np.array_equal(counts, np.rint(counts)):
        counts = counts.astype(np.int64)
    return counts


def _span(row: Any, horizon: int, where: str) -> slice:
    if not isinstance(row, dict) or not {"from", "to"} <= set(row) <= ROW_KEYS:
        raise InputError(where, row, "must have the keys from, to, workers, ps and no other")
    for key in ("from", "to"):
        if type(row[key]) is not int or not 1 <= row[key] <= horizon:
            raise InputError(f"{where}.{key}", row[key], f"must be a slot in 1..{horizon}")
    if row["from"] > row["to"]:
        raise InputError(f"{where}.to", row["to"], f"must not precede from = {row['from']}")
    return slice(row["from"] - 1, row["to"])


SOLUTION = OasisSolution
