"""The astraea family's instance: tenants who share servers, and their jobs.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/astraea.md``.

Slot t is the interval (t-1, t]: a job that arrives at time r may use slots r+1, ..., T.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictInt

from hindsched.arrays import Floats, Ints
from hindsched.instances import base
from hindsched.instances.modes import WindowInstance

WORKER, PS = "worker", "ps"  # names of the single types when an instance gives bare numbers

MOST_UNITS = 1_000_000
"""Most workers or PSs of a type on a server, and most chunks: tables are as long as these."""
MOST_MINIBATCHES = 10**15
"""Mini-batches of a job up to which counting them in floating point is exact."""
MOST_REVENUE = 1e15  # size of a revenue up to which sums of revenues keep their cents

Units = Annotated[StrictInt, Field(ge=0, le=MOST_UNITS)]
TypedUnits = Units | dict[str, Units]
Quota = Annotated[StrictInt, Field(ge=0, le=MOST_UNITS**2)]
TypedQuota = Quota | dict[str, Quota]
TypedTime = base.NonNegative | dict[str, base.NonNegative]
TypedPositive = base.Positive | dict[str, base.Positive]
AstraeaUtility = Annotated[base.LinearUtility | base.PowerUtility, Field(discriminator="kind")]

OBLIGATIONS = ("optional", "must-complete")
WRITINGS = ("modes", "literal")


class AstraeaTenant(base.Record):
    """A tenant and its fair share; counts are by type where there are several."""

    name: base.Name = Field(description="name, unique among the tenants")
    worker_quota: TypedQuota = Field(description="q: workers that it brought into the coalition")
    ps_quota: TypedQuota = Field(description="q: PSs that it brought into the coalition")


class AstraeaServer(base.Record):
    """A server; counts are by type where there are several."""

    name: base.Name = Field(description="name, unique among the servers")
    workers: TypedUnits = Field(description="C: workers on it")
    ps: TypedUnits = Field(description="C: PSs on it")


class AstraeaJob(base.Record):
    """A tenant's job, of E x D x M mini-batches; slots are by type where there are several."""

    name: base.Name = Field(description="name, unique in the instance")
    tenant: base.Name = Field(description="its owner")
    arrival: base.Count = Field(
        description="time point 0..horizon-1: the job may use slots from arrival + 1 on"
    )
    epochs: base.PositiveCount = Field(description="E: epochs")
    chunks: Annotated[StrictInt, Field(ge=1, le=MOST_UNITS)] = Field(
        description="D: data chunks, and most workers"
    )
    minibatches: base.PositiveCount = Field(description="M: mini-batches of a chunk")
    minibatch_slots: TypedPositive = Field(description="m: slots to train a mini-batch")
    update_slots: TypedTime = Field(description="G: slots to update the parameters")
    gradient_mb: base.NonNegative = Field(description="epsilon: size of a gradient in MB")
    utility: AstraeaUtility = Field(description="revenue; see `utility_origin`")
    requested_workers: base.PositiveCount | None = Field(
        default=None, description="workers asked for, for baselines that do not choose the number"
    )

    @property
    def total_minibatches(self) -> int:
        """E D M, the mini-batches to train."""
        return self.epochs * self.chunks * self.minibatches


def _counts_by_type(
    records: str, field: str, types: str, single: str
) -> base.cluster_property[Ints]:
    """Counts by type of a field of records, shape (records, types)."""

    def read(instance: AstraeaInstance) -> Ints:
        held = [typed(getattr(record, field), single) for record in getattr(instance, records)]
        return base.amounts_of(held, getattr(instance, types)).astype(np.int64)

    return base.cluster_property(read)


class AstraeaInstance(WindowInstance):
    """Tenants, servers and jobs.

    Quotas over the tenants add up to the counts over the servers, type by type.
    """

    sense: ClassVar[Literal["max", "min"]] = "max"
    formulations: ClassVar[tuple[str, ...]] = tuple(
        f"{obligation},{writing}" for obligation in OBLIGATIONS for writing in WRITINGS
    )

    family: Literal["astraea"] = "astraea"
    utility_origin: Literal["arrival", "absolute"] = Field(
        description="whether utilities take completion - arrival or the completion slot itself"
    )
    tenants: Annotated[tuple[AstraeaTenant, ...], Field(min_length=1)]
    servers: Annotated[tuple[AstraeaServer, ...], Field(min_length=1)]
    worker_bandwidth_mbps: TypedPositive = Field(description="b: what a worker reserves")
    ps_bandwidth_mbps: TypedPositive = Field(description="b: what a PS reserves")
    jobs: tuple[AstraeaJob, ...] = Field(
        default=(), description="the jobs; their order breaks ties"
    )

    def cluster_rules(self) -> Iterator[base.Rule]:
        """Names, types, and quotas that add up to what there is."""
        sides = ("worker", self.worker_types), ("ps", self.ps_types)
        for side, types in sides:
            yield types, f"{side}_bandwidth_mbps", {}, "must name at least one type"
        yield from base.unique_names("tenants", self.tenants)
        yield from base.unique_names("servers", self.servers)
        rules = [
            rule
            for records, fields in (
                ("tenants", ("worker_quota", "ps_quota")), ("servers", ("workers", "ps")),
            )
            for index, record in enumerate(getattr(self, records))
            for field, (_, types) in zip(fields, sides, strict=True)
            for rule in typed_rules(f"{records}[{index}].{field}", getattr(record, field), types)
        ]  # fmt: skip
        yield from rules
        if all(holds for holds, *_ in rules):
            for side, types in sides:
                quota, count = getattr(self, f"{side}_quota"), getattr(self, f"{side}_count")
                for at, name in enumerate(types):
                    given, there = int(quota[:, at].sum()), int(count[:, at].sum())
                    rule = f"must add up to the servers' {there} ({name})"
                    yield given == there, f"tenants.{side}_quota", given, rule

    def job_rules(self, job: AstraeaJob) -> Iterator[base.Rule]:
        """A job has a tenant, can arrive, and its work and revenue can be counted."""
        slope, last = getattr(job.utility, "slope", 0), self.horizon - 1
        yield job.tenant in self.tenant_index, "tenant", job.tenant, "must name a tenant"
        yield job.arrival <= last, "arrival", job.arrival, f"must be in 0..{last}"
        yield slope <= 0, "utility.slope", slope, "must not exceed 0"
        countable = slope > 0 or _largest_revenue(job, self.horizon) <= MOST_REVENUE
        rule = f"must stay within {MOST_REVENUE:.0e} in every slot"
        yield countable, "utility", job.utility, rule
        rule = f"epochs x chunks x minibatches must not exceed {MOST_MINIBATCHES:.0e}"
        yield job.total_minibatches <= MOST_MINIBATCHES, "epochs", job.epochs, rule
        yield from typed_rules("minibatch_slots", job.minibatch_slots, self.worker_types)
        yield from typed_rules("update_slots", job.update_slots, self.ps_types)

    @base.cluster_property
    def worker_types(self) -> tuple[str, ...]:
        """Names of the worker types; one, called ``worker``, where numbers are bare."""
        return tuple(typed(self.worker_bandwidth_mbps, WORKER))

    @base.cluster_property
    def ps_types(self) -> tuple[str, ...]:
        """Names of the PS types; one, called ``ps``, where numbers are bare."""
        return tuple(typed(self.ps_bandwidth_mbps, PS))

    @base.cluster_property
    def worker_bandwidth(self) -> Floats:
        """b_w in Mbps, shape (W,)."""
        return np.array([*typed(self.worker_bandwidth_mbps, WORKER).values()], dtype=float)

    @base.cluster_property
    def ps_bandwidth(self) -> Floats:
        """b_p in Mbps, shape (P,)."""
        return np.array([*typed(self.ps_bandwidth_mbps, PS).values()], dtype=float)

    worker_quota = _counts_by_type("tenants", "worker_quota", "worker_types", WORKER)  # (U, W)
    ps_quota = _counts_by_type("tenants", "ps_quota", "ps_types", PS)  # (U, P)
    worker_count = _counts_by_type("servers", "workers", "worker_types", WORKER)  # C, (S, W)
    ps_count = _counts_by_type("servers", "ps", "ps_types", PS)  # C, (S, P)

    @base.cluster_property
    def server_capacity(self) -> Floats:
        """Counts of workers by type, then of PSs, as resources, (S, W + P)."""
        counts: Floats = np.hstack([self.worker_count, self.ps_count]).astype(float)
        return counts

    @base.cluster_property
    def tenant_quota(self) -> Ints:
        """Quotas of workers by type, then of PSs, (U, W + P)."""
        quota: Ints = np.hstack([self.worker_quota, self.ps_quota])
        return quota

    @property
    def capacity_names(self) -> tuple[str, ...]:
        """Types of workers, then of PSs."""
        return (*self.worker_types, *self.ps_types)

    @base.cluster_property
    def worker_demand(self) -> Floats:
        """A worker takes one of its type, (W, W + P)."""
        return np.eye(len(self.worker_types), self.server_capacity.shape[1])

    @base.cluster_property
    def ps_demand(self) -> Floats:
        """A PS takes one of its type, (P, W + P)."""
        split = len(self.worker_types)
        return np.eye(len(self.ps_types), self.server_capacity.shape[1], split)

    @base.cluster_property
    def tenant_index(self) -> dict[str, int]:
        """Position of each tenant by name."""
        return {tenant.name: index for index, tenant in enumerate(self.tenants)}

    def certain_bound(self) -> float:
        """Every job that brings revenue completes in its first slot."""
        return base.rounded_up(max(0.0, self.revenue(job, job.arrival + 1)) for job in self.jobs)

    def step_slots(self, job: AstraeaJob) -> tuple[Sequence[float], Sequence[float]]:
        """What (1) is made of."""
        train = typed(job.minibatch_slots, WORKER)
        update = typed(job.update_slots, PS)
        return [train[w] for w in self.worker_types], [update[p] for p in self.ps_types]

    def revenue(self, job: AstraeaJob, completion: int) -> float:
        """``f_j`` at a completion slot, by the instance's origin."""
        origin = job.arrival if self.utility_origin == "arrival" else 0
        return job.utility.value(completion - origin)

    def revenues(self, job: AstraeaJob, completions: Floats) -> Floats:
        """`revenue` at each of many completion slots."""
        origin = job.arrival if self.utility_origin == "arrival" else 0
        return job.utility.values(completions - origin)


def _largest_revenue(job: AstraeaJob, horizon: int) -> float:
    """Largest size of a revenue that any completion can bring, inf where it overflows."""
    try:
        return max(abs(job.utility.value(1)), abs(job.utility.value(horizon)))
    except OverflowError:
        return math.inf


def typed(value: Any, single: str) -> Mapping[str, Any]:
    """Values by type; a bare number is that of the single type."""
    return value if isinstance(value, Mapping) else {single: value}


def typed_rules(where: str, value: object, types: tuple[str, ...]) -> Iterator[base.Rule]:
    """A number is bare where there is one type, else it has exactly the instance's types."""
    if isinstance(value, Mapping):
        yield from base.known_keys(where, value, types)
        missing = [name for name in types if name not in value]
        yield not missing, where, dict(value), f"must have a value for {', '.join(missing)}"
    else:
        rule = f"must be keyed by {', '.join(types)}"
        yield types in ((WORKER,), (PS,)), where, value, rule


def private_units(instance: AstraeaInstance) -> Ints:
    """Units of each type that tenants would own if nothing were shared, (U, S, W + P).

    Units are dealt out in the order of the servers and the tenants, so that an instance whose
    tenants own whole servers in one stretch (as generated and traced ones do) gives each its own.
    """
    quota, count = instance.tenant_quota, instance.server_capacity.astype(np.int64)
    ends_quota, ends_count = np.cumsum(quota, axis=0), np.cumsum(count, axis=0)
    last = np.minimum(ends_quota[:, None], ends_count[None])
    first = np.maximum((ends_quota - quota)[:, None], (ends_count - count)[None])
    dealt: Ints = np.maximum(0, last - first)  # where the stretches of numbered units overlap
    return dealt


def tenant_alone(instance: AstraeaInstance, tenant: int) -> AstraeaInstance:
    """The instance of a tenant (by position) alone on its own units (not validated again)."""
    units_owned, split = private_units(instance)[tenant], len(instance.worker_types)
    servers = tuple(
        instance.servers[s].model_copy(update={
            "workers": dict(zip(instance.worker_types, units[:split], strict=True)),
            "ps": dict(zip(instance.ps_types, units[split:], strict=True)),
        })
        for s, units in enumerate(units_owned.tolist()) if any(units)
    )  # fmt: skip
    return instance.with_fields(servers=servers, tenants=(instance.tenants[tenant],), jobs=())


INSTANCE = AstraeaInstance
