"""The oasis family's instance: elastic training jobs on worker servers and PS servers.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/oasis.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats, Ints
from hindsched.instances import base, decimals

OasisUtility = Annotated[base.SigmoidUtility | base.LinearUtility, Field(discriminator="kind")]
"""Utilities that are finite at 0, the completion of a job that ends in its arrival slot."""


class OasisJob(base.Record):
    """A training job."""

    name: base.Name = Field(description="name, unique in the instance")
    arrival: base.Slot = Field(description="first slot in which the job may run, from 1")
    epochs: base.PositiveCount = Field(description="E: epochs")
    chunks: base.PositiveCount = Field(description="N: data chunks, and most workers at once")
    minibatches: base.PositiveCount = Field(description="M: mini-batches of a chunk")
    minibatch_slots: base.Positive = Field(description="tau: slots to train a mini-batch")
    gradient_mb: base.NonNegative = Field(
        description="e: MB of gradients sent after a mini-batch, and of parameters received back"
    )
    worker: base.Demand = Field(description="demand of a worker by resource")
    ps: base.Demand = Field(description="demand of a parameter server (PS) by resource")
    utility: OasisUtility = Field(description="of completion minus arrival; may not rise")


class OasisInstance(base.Instance):
    """A cluster, a horizon and the jobs that arrive in it."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    formulations: ClassVar[tuple[str, ...]] = ("standard",)

    family: Literal["oasis"] = "oasis"
    resources: Annotated[tuple[base.Name, ...], Field(min_length=1)] = Field(
        description="names of the resources"
    )
    bandwidth_resource: base.Name = Field(
        description="which of them is bandwidth (Mbps): b of a worker, B of a PS"
    )
    worker_servers: base.Servers = Field(description="servers for workers")
    ps_servers: base.Servers = Field(description="servers for PSs")
    jobs: tuple[OasisJob, ...] = Field(default=(), description="the jobs; their order breaks ties")

    def cluster_rules(self) -> Iterator[base.Rule]:
        """Resources and servers."""
        yield from base.known_resources(self.resources, self.bandwidth_resource)
        for role in ("worker_servers", "ps_servers"):
            yield from base.known_servers(role, getattr(self, role), self.resources)

    def job_rules(self, job: OasisJob) -> Iterator[base.Rule]:
        """A job can arrive, stand on some server, send its gradients and be counted."""
        (worker, ps), key = self.bandwidth_of(job), self.bandwidth_resource
        slope = getattr(job.utility, "slope", 0)
        yield base.in_time(job.arrival, self.horizon)
        yield from base.known_keys("worker", job.worker, self.resources)
        yield from base.known_keys("ps", job.ps, self.resources)
        yield slope <= 0, "utility.slope", slope, "must not be above 0"
        there = self._fits_somewhere(job.worker, self.worker_servers)
        yield there, "worker", job.worker, "must fit on a worker server"
        if worker == 0 and job.gradient_mb > 0:
            yield False, f"worker.{key}", 0, "must be above 0 for a job that sends gradients"
            return
        if worker > 0:
            yield ps > 0, f"ps.{key}", ps, "must be above 0 where workers have bandwidth"
            there = self._fits_somewhere(job.ps, self.ps_servers)
            yield there, "ps", job.ps, "must fit on a PS server"
            yield base.countable_work(f"ps.{key}", job.chunks * worker / ps if ps else 0)
        count = job.epochs * job.chunks * job.minibatches
        yield base.countable_work("", count * self.minibatch_time(job))

    @staticmethod
    def _fits_somewhere(demand: base.Demand, servers: tuple[base.Server, ...]) -> bool:
        return any(
            all(amount <= server.capacity.get(resource, 0) for resource, amount in demand.items())
            for server in servers
        )

    def certain_bound(self) -> float:
        """Every job completes as soon as it arrives."""
        return base.rounded_up(job.utility.value(0) for job in self.jobs)

    worker_capacity = base.cluster_property(base.amounts("worker_servers", "capacity"))  # (H, R)
    ps_capacity = base.cluster_property(base.amounts("ps_servers", "capacity"))  # (K, R)
    worker_demand = cached_property(base.amounts("jobs", "worker"))  # of one worker, (I, R)
    ps_demand = cached_property(base.amounts("jobs", "ps"))  # of one PS, (I, R)
    arrival = base.per_job("arrival")

    @cached_property
    def work(self) -> Ints:
        """Worker-slots that each job needs, shape (I,); see `work_of`."""
        return np.array([self.work_of(job) for job in self.jobs], dtype=np.int64)

    @cached_property
    def min_duration(self) -> Ints:
        """``ceil(E M (tau + 2 e / b))``: slots that each job needs with all workers, (I,)."""
        return -(-self.work // np.array([job.chunks for job in self.jobs], dtype=np.int64))

    def demand_of(self, job: OasisJob) -> tuple[Floats, Floats]:
        """Demand of one worker and of one PS, each of shape (R,)."""
        worker, ps = base.amounts_of([job.worker, job.ps], self.resources)
        return worker, ps

    def bandwidth_of(self, job: OasisJob) -> tuple[float, float]:
        """Bandwidth b of a worker and B of a PS, in Mbps."""
        key = self.bandwidth_resource
        return float(job.worker.get(key, 0)), float(job.ps.get(key, 0))

    def minibatch_time(self, job: OasisJob) -> float:
        """``tau + 2 e / b``: slots to train a mini-batch, send gradients, receive parameters."""
        return float(self.exact_chunk_time(job) / job.minibatches)

    def work_of(self, job: OasisJob) -> int:
        """Right side of (2): ``ceil(E N M (tau + 2 e / b))`` worker-slots, exactly; at least 1."""
        chunks = job.epochs * job.chunks
        return max(1, math.ceil(chunks * self.exact_chunk_time(job)))

    def exact_chunk_time(self, job: OasisJob) -> Fraction:
        """``M (tau + 2 e / b)``: slots that a worker trains on a data chunk."""
        bandwidth = self.bandwidth_of(job)[0]
        each = decimals.exact_step(
            job.minibatch_slots, job.gradient_mb, bandwidth, self.slot_seconds
        )
        return job.minibatches * each

    def ps_per_worker(self, job: OasisJob) -> float:
        """``b / B`` of (6) for programs that are solved with a tolerance; see `separated`."""
        worker, ps = self.bandwidth_of(job)
        return decimals.separated(worker, ps, job.chunks) if worker else 0.0

    def ps_needed(self, job: OasisJob, workers: int) -> int:
        """Fewest PSs that satisfy (6) for a number of workers, exactly: ``ceil(n b / B)``."""
        return int(self.ps_needed_up_to(job, workers)[-1])

    def ps_needed_up_to(self, job: OasisJob, workers: int) -> Ints:
        """`ps_needed` for 0, 1, ..., `workers` workers, shape (workers + 1,)."""
        worker, ps = self.bandwidth_of(job)
        if worker == 0:
            return np.zeros(workers + 1, dtype=np.int64)
        quotient = decimals.same_ceilings(worker, ps, max(1, workers))
        return np.ceil(np.arange(workers + 1) * quotient - decimals.NEAR).astype(np.int64)

    def most_workers(self, job: OasisJob) -> int:
        """Most workers that an empty cluster can run at once for the job.

        The least of N, what fits on the worker servers, and what the PSs that fit can serve under
        (6) and (7); 0 if a worker has more bandwidth than a PS, which (6) and (7) exclude.
        """
        worker, ps = self.demand_of(job)
        count = min(
            job.chunks, int(decimals.how_many_fit(self.worker_capacity, worker, job.chunks).sum())
        )
        needed = self.ps_needed_up_to(job, count)
        room = int(decimals.how_many_fit(self.ps_capacity, ps, count).sum())
        allowed = np.flatnonzero((needed <= room) & (needed <= np.arange(count + 1)))
        return int(allowed[-1])

    def utilities(self, job: OasisJob) -> Floats:
        """Tabulate the utility by completion slot, shape (horizon + 1,), NaN before the arrival."""
        values = np.full(self.horizon + 1, math.nan)
        values[job.arrival :] = job.utility.values(np.arange(self.horizon + 1.0 - job.arrival))
        return values


INSTANCE = OasisInstance
