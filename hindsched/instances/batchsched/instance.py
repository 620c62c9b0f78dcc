"""Instances of batchsched: jobs that run once, in one window, with one worker and one PS type.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/batchsched.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats
from hindsched.instances import base
from hindsched.instances.decimals import NEAR, times
from hindsched.instances.modes import WindowInstance, ps_for

MOST_DURATION = 1_000_000
"""Jobs that cannot end within so many slots are mistakes: they would only exhaust the memory."""
PARAMETER_SERVER = "parameter-server"
RING_ALLREDUCE = "ring-allreduce"


class BatchschedType(base.Record):
    """A worker or parameter-server type."""

    name: base.Name = Field(description="name, unique among its kind")
    demand: base.Demand = Field(description="demand of one by resource")


class BatchschedJob(base.Record):
    """A training job, of E x D x K mini-batches."""

    name: base.Name = Field(description="name, unique in the instance")
    arrival: base.Slot = Field(description="first slot in which it may run")
    weight: base.Positive = Field(description="its weight in the objective")
    epochs: base.PositiveCount = Field(description="E: epochs")
    chunks: base.PositiveCount = Field(description="D: data chunks, and most workers")
    minibatches: base.PositiveCount = Field(description="K: mini-batches of a chunk")
    minibatch_slots: Annotated[tuple[base.Positive, ...], Field(min_length=1)] = Field(
        description="slots to train a mini-batch, per worker type"
    )
    update_slots: tuple[base.NonNegative, ...] | None = Field(
        default=None,
        description="slots to update the parameters, per PS type; parameter servers only",
    )
    reduce_slots: base.NonNegative | None = Field(
        default=None, description="slots to reduce a gradient; Ring-AllReduce only"
    )
    gradient_mb: base.NonNegative = Field(description="size of a gradient in MB")
    resource_guarantee: bool | None = Field(
        default=None,
        description="whether the baseline AntMan guarantees its resources; absent: drawn",
    )
    requested_workers: base.PositiveCount | None = Field(
        default=None, description="workers asked for, for baselines that do not choose the number"
    )

    @property
    def total_minibatches(self) -> int:
        """W = E D K, the mini-batches to train."""
        return self.epochs * self.chunks * self.minibatches


class BatchschedInstance(WindowInstance):
    """Jobs, servers and the worker and PS types that jobs may use.

    `horizon` bounds arrivals only: every job must finish.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    formulations: ClassVar[tuple[str, ...]] = ("modes", "literal")

    family: Literal["batchsched"] = "batchsched"
    architecture: Literal["parameter-server", "ring-allreduce"]
    resources: Annotated[tuple[base.Name, ...], Field(min_length=1)]
    bandwidth_resource: base.Name = Field(description="the resource that is bandwidth, in Mbps")
    servers: base.Servers
    worker_types: Annotated[tuple[BatchschedType, ...], Field(min_length=1)]
    ps_types: tuple[BatchschedType, ...] | None = None
    jobs: tuple[BatchschedJob, ...] = ()

    def cluster_rules(self) -> Iterator[base.Rule]:
        """Resources, servers and types, of which some fit together."""
        yield from base.known_resources(self.resources, self.bandwidth_resource)
        yield from base.known_servers("servers", self.servers, self.resources)
        if self.has_ps != bool(self.ps_types):
            rule = "is required" if self.has_ps else "must be absent for ring-allreduce"
            yield False, "ps_types", self.ps_types, rule
            return
        types = [*self._type_rules("worker_types"), *self._type_rules("ps_types")]
        yield from types
        if self.has_ps and all(holds for holds, *_ in types):
            rule = "must hold one worker and the PSs that serve it"
            yield self._some_schedule_fits(), "servers", len(self.servers), rule

    def _type_rules(self, where: str) -> Iterator[base.Rule]:
        types: tuple[BatchschedType, ...] = getattr(self, where) or ()
        key, least = self.bandwidth_resource, base.SMALLEST_POSITIVE
        yield from base.unique_names(where, types)
        for index, item in enumerate(types):
            here, mbps = f"{where}[{index}].demand", item.demand.get(key, 0)
            yield from base.known_keys(here, item.demand, self.resources)
            yield mbps >= least, f"{here}.{key}", mbps, f"must be at least {least:.0e}"
            demand = base.amounts_of([item.demand], self.resources)
            fits = np.any(np.all(demand <= self.server_capacity, axis=1))
            yield fits, here, dict(item.demand), "must fit on some server"

    def _some_schedule_fits(self) -> bool:
        """Whether any job fits on the cluster: one that fits at all fits with one worker."""
        capacity, workers, ps = self.whole_units
        for m, e in enumerate(workers):
            others = np.all(e <= capacity, axis=1)
            for p, z in enumerate(ps):
                if np.any(np.all(e + z <= capacity, axis=1)):
                    return True
                count = int(ps_for(1, self.ps_ratio[m, p]))
                hosts = np.all(times(np.array(count), z) <= capacity, axis=1)
                if hosts.any() and others.any() and (hosts | others).sum() >= 2:
                    return True
        return False

    def job_rules(self, job: BatchschedJob) -> Iterator[base.Rule]:
        """A job can arrive, has a time for each type and can end."""
        yield base.in_time(job.arrival, self.horizon)
        times, updates = len(job.minibatch_slots), len(job.update_slots or ())
        yield times == len(self.worker_types), "minibatch_slots", times, "one per worker type"
        updated = updates == len(self.ps_types or ()) and self.has_ps == (
            job.update_slots is not None
        )
        rule = "one per PS type" if self.has_ps else "only for parameter-server"
        yield updated, "update_slots", updates, rule
        rule = "only for ring-allreduce" if self.has_ps else "is required"
        yield (job.reduce_slots is None) == self.has_ps, "reduce_slots", job.reduce_slots, rule
        least = self.least_slots(job)
        rule = f"must be able to end within {MOST_DURATION} slots, but needs {least:.4g}"
        yield least <= MOST_DURATION, "", job.name, rule

    def least_slots(self, job: BatchschedJob) -> float:
        """Slots below which no choice of types and workers ends the job."""
        fastest = min(job.minibatch_slots) + min(job.update_slots or (0.0,))
        return job.total_minibatches * fastest / min(job.chunks, self.most_workers)

    @property
    def has_ps(self) -> bool:
        """Whether the architecture uses parameter servers."""
        return self.architecture == PARAMETER_SERVER

    @property
    def capacity_names(self) -> tuple[str, ...]:
        """The resources."""
        return self.resources

    server_capacity = base.cluster_property(base.amounts("servers", "capacity"))  # C
    worker_demand = base.cluster_property(base.amounts("worker_types", "demand"))  # e
    ps_demand = base.cluster_property(base.amounts("ps_types", "demand"))  # z

    @base.cluster_property
    def worker_bandwidth(self) -> Floats:
        """Bandwidth b in Mbps, shape (worker types,)."""
        column: Floats = self.worker_demand[:, self.resources.index(self.bandwidth_resource)]
        return column

    @base.cluster_property
    def ps_bandwidth(self) -> Floats:
        """Bandwidth B in Mbps, shape (PS types,)."""
        column: Floats = self.ps_demand[:, self.resources.index(self.bandwidth_resource)]
        return column

    def step_slots(self, job: BatchschedJob) -> tuple[Sequence[float], Sequence[float]]:
        """What (1) and (14) are made of."""
        return job.minibatch_slots, job.update_slots or (job.reduce_slots or 0,)

    def certain_bound(self) -> float:
        """Every job runs alone from its arrival, on as many of the fastest workers as fit."""
        return -base.rounded_up(
            -job.weight * (job.arrival + max(1, math.ceil(self.least_slots(job) * (1 - NEAR))))
            for job in self.jobs
        )


INSTANCE = BatchschedInstance
