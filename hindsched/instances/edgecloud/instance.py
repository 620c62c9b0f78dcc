"""The edgecloud family's instance: preemptive training jobs on edge servers and a cloud.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/edgecloud.md``.

A chunk needs ``ceil(E B (m + G + 2 q / b))`` slots, or ``ceil(E B (m + G))`` when all workers and
the PS of its job are in the cloud (equation (1); whole slots are our reading).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats, Ints
from hindsched.instances import base
from hindsched.instances.decimals import exact_step, exactly

Key = TypeVar("Key")


class EdgecloudServer(base.Record):
    """An edge server."""

    name: base.Name = Field(description="name, unique among servers and cloud")
    workers: tuple[base.Name, ...] = Field(default=(), description="type of each worker on it")
    ps: tuple[base.Name, ...] = Field(
        default=(), description="type of each parameter server (PS) on it"
    )
    storage_gb: base.NonNegative | None = Field(
        default=None, description="storage for chunks in GB; absent: unlimited"
    )


class EdgecloudCloud(base.Record):
    """The cloud: one large server on which nothing is preempted."""

    name: base.Name = Field(description="name")
    workers: dict[base.Name, base.Count] | None = Field(
        default=None, description="workers by type; a type that is not named is unlimited"
    )
    ps: dict[base.Name, base.Count] | None = Field(
        default=None, description="PSs by type, the same"
    )


class EdgecloudJob(base.Record):
    """A training job."""

    name: base.Name = Field(description="name, unique in the instance")
    arrival: base.Slot = Field(description="slot in whose beginning the job becomes known")
    epochs: base.PositiveCount = Field(description="E: epochs")
    chunks: base.PositiveCount = Field(description="D: data chunks")
    minibatches: base.PositiveCount = Field(description="B: mini-batches of a chunk")
    minibatch_slots: base.NonNegative = Field(description="m: slots to train a mini-batch")
    update_slots: base.NonNegative = Field(description="G: slots to update the parameters")
    gradient_mb: base.NonNegative = Field(description="q: size of a gradient in MB")
    bandwidth_mbps: base.Positive = Field(description="b: bandwidth in Mbps")
    worker_type: base.Name = Field(description="type of workers that qualify")
    ps_type: base.Name = Field(description="type of PSs that qualify")
    chunk_gb: base.NonNegative | None = Field(
        default=None, description="storage that a chunk takes, GB"
    )
    requested_workers: base.PositiveCount | None = Field(
        default=None, description="workers asked for; only baselines that schedule gangs read it"
    )
    upload_slots: dict[base.Name, base.Count] = Field(
        description="slots to upload a chunk to each server and to the cloud"
    )

    def chunk_slots(self, slot_seconds: float, *, in_cloud: bool) -> int:
        """Slots to train one chunk: equation (1), exactly; zeta = 1 if `in_cloud`, else 0."""
        return max(1, math.ceil(self.exact_chunk_slots(slot_seconds, in_cloud=in_cloud)))

    def exact_chunk_slots(self, slot_seconds: float, *, in_cloud: bool) -> Fraction:
        """Slots to train one chunk before rounding up: ``E B / n_j``."""
        sent = 0 if in_cloud else self.gradient_mb
        step = exact_step(self.minibatch_slots, sent, self.bandwidth_mbps, slot_seconds)
        return self.epochs * self.minibatches * (step + exactly(self.update_slots))


def _positions_by_key(keys: Iterable[Key]) -> dict[Key, tuple[int, ...]]:
    """Positions of each key, keys in order of the first."""
    by_key: dict[Key, list[int]] = {}
    for position, key in enumerate(keys):
        by_key.setdefault(key, []).append(position)
    return {key: tuple(positions) for key, positions in by_key.items()}


class EdgecloudInstance(base.Instance):
    """An instance of the edgecloud family: minimise the total job completion time."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    formulations: ClassVar[tuple[str, ...]] = ("no-migration", "literal")

    family: Literal["edgecloud"] = "edgecloud"
    servers: tuple[EdgecloudServer, ...]
    cloud: EdgecloudCloud
    jobs: tuple[EdgecloudJob, ...] = ()

    def cluster_rules(self) -> Iterator[base.Rule]:
        """Servers and the cloud have names of their own."""
        yield from base.unique_names("servers", self.servers)
        is_unique = self.cloud.name not in self.server_index
        yield is_unique, "cloud.name", self.cloud.name, "must differ from the servers' names"

    def job_rules(self, job: EdgecloudJob) -> Iterator[base.Rule]:
        """A job can arrive, be uploaded where it can run, and find a worker and a PS."""
        cloud, rule = self.cloud.name, "must name a server or the cloud"
        for name, slots in job.upload_slots.items():
            known = name in self.server_index or name == cloud
            yield known, f"upload_slots.{name}", slots, rule
        yield base.in_time(job.arrival, self.horizon)
        takes = job.minibatch_slots + job.update_slots > 0 or job.gradient_mb > 0
        yield takes, "minibatch_slots", job.minibatch_slots, "must take time"
        work = job.exact_chunk_slots(self.slot_seconds, in_cloud=False)
        yield base.countable_work("", float(work))
        qualified = [self.servers[s].name for s, _ in self.places(job)]
        qualified += [cloud] if self.has_cloud(job) else []
        rule = "is required: there is a worker of the job's type"
        for name in qualified:
            yield name in job.upload_slots, f"upload_slots.{name}", "(absent)", rule
        yield qualified, "worker_type", job.worker_type, "must be the type of some worker"
        has_ps = any(kind == job.ps_type for _, kind in self.ps_counts)
        has_ps |= self.cloud_ps(job.ps_type) != 0
        yield has_ps, "ps_type", job.ps_type, "must be the type of some PS"

    def cloud_workers(self, worker_type: str) -> int | None:
        """Workers of a type in the cloud; None if unlimited."""
        return None if self.cloud.workers is None else self.cloud.workers.get(worker_type)

    def cloud_ps(self, ps_type: str) -> int | None:
        """PSs of a type in the cloud; None if unlimited."""
        return None if self.cloud.ps is None else self.cloud.ps.get(ps_type)

    @base.cluster_property
    def server_index(self) -> dict[str, int]:
        """Position of each server by name."""
        return {server.name: index for index, server in enumerate(self.servers)}

    @base.cluster_property
    def worker_list(self) -> tuple[tuple[int, int, str], ...]:
        """(server, number on the server from 1, type) of every edge worker, in order."""
        return tuple(
            (s, number, kind)
            for s, server in enumerate(self.servers)
            for number, kind in enumerate(server.workers, 1)
        )

    @base.cluster_property
    def ps_list(self) -> tuple[tuple[int, str], ...]:
        """Server and type of each PS at the edge."""
        return tuple((s, kind) for s, server in enumerate(self.servers) for kind in server.ps)

    @base.cluster_property
    def worker_index(self) -> dict[tuple[str, int], int]:
        """Position in `worker_list` by (server's name, number on the server)."""
        return {(self.servers[s].name, n): w for w, (s, n, _) in enumerate(self.worker_list)}

    @base.cluster_property
    def workers_by_type(self) -> dict[str, tuple[int, ...]]:
        """Positions in `worker_list` by worker type, in order."""
        return _positions_by_key(kind for _, _, kind in self.worker_list)

    @base.cluster_property
    def groups(self) -> dict[tuple[int, str], tuple[int, ...]]:
        """Identical workers: positions in `worker_list` by (server, type)."""
        return _positions_by_key((s, kind) for s, _, kind in self.worker_list)

    @base.cluster_property
    def ps_counts(self) -> dict[tuple[int, str], int]:
        """Number of PSs by (server, type)."""
        return Counter((s, kind) for s, server in enumerate(self.servers) for kind in server.ps)

    @cached_property
    def edge_slots(self) -> Ints:
        """Slots a chunk when its job is not wholly in the cloud, shape (J,)."""
        slots = [job.chunk_slots(self.slot_seconds, in_cloud=False) for job in self.jobs]
        return np.array(slots, dtype=np.int64)

    @cached_property
    def cloud_slots(self) -> Ints:
        """Slots a chunk when its job is wholly in the cloud, shape (J,)."""
        slots = [job.chunk_slots(self.slot_seconds, in_cloud=True) for job in self.jobs]
        return np.array(slots, dtype=np.int64)

    arrivals = base.per_job("arrival")
    chunks = base.per_job("chunks")
    chunk_gb = base.per_job(lambda job: job.chunk_gb or 0.0, float)

    @cached_property
    def upload(self) -> Ints:
        """Slots to upload a chunk to a server, shape (J, S); -1 where it cannot be uploaded."""
        rows = [[job.upload_slots.get(s.name, -1) for s in self.servers] for job in self.jobs]
        return np.array(rows, dtype=np.int64).reshape(len(self.jobs), len(self.servers))

    @cached_property
    def cloud_upload(self) -> Ints:
        """Slots to upload a chunk to the cloud, shape (J,); -1 where it cannot be uploaded."""
        return np.array([j.upload_slots.get(self.cloud.name, -1) for j in self.jobs], np.int64)

    @base.cluster_property
    def storage_gb(self) -> Floats:
        """Storage of the servers, GB, shape (S,); inf where unlimited."""
        limits = [np.inf if s.storage_gb is None else s.storage_gb for s in self.servers]
        return np.array(limits, dtype=float)

    def certain_bound(self) -> float:
        """Every job has all its chunks trained at once, where that is fastest."""
        return float(np.minimum(self.edge_slots, self.cloud_slots).sum())

    def has_cloud(self, job: base.JobRecord) -> bool:
        """Whether the cloud has any worker that qualifies for `job`."""
        return self.cloud_workers(job.worker_type) != 0

    def places(self, job: base.JobRecord) -> list[tuple[int, tuple[int, ...]]]:
        """(server, qualified workers on it) of every server where `job` can run, in order."""
        groups = self.groups.items()
        return [(s, workers) for (s, kind), workers in groups if kind == job.worker_type]


INSTANCE = EdgecloudInstance
