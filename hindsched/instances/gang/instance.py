"""Instances of gang: jobs that ask for GPUs at a second and run for a duration.

The symbols by field, with units and shapes, stand in ``docs/problems/gang.md``.

Times in files are seconds since the trace's start and multiples of `slot_seconds`; arrays are in
slots. Slot t is ``[t - 1, t) x slot_seconds``: a job submitted at slot s may use slots from s + 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictInt

from hindsched.arrays import Bools, Ints
from hindsched.instances import base
from hindsched.instances.decimals import exactly
from hindsched.json_types import Draft

POOL = "pool"
CONSOLIDATED = "consolidated"
KINDS = ("non-preemptive", "preemptive", "elastic")
"""How freely a job may be scheduled, least freedom first."""
OBJECTIVES = ("completion", "makespan", "deadlines")
"""What is minimised: weighted completion time, makespan, weight of the missed deadlines."""
MOST_SLOTS = 10**12  # later slots are mistakes: sums over them could not be counted exactly
MOST_PROGRAM_SLOTS = 20_000
"""Slots up to which declarative programs are stated, and default rows are single slots."""
MOST_WORK = 10**15  # more GPU-slots in all are mistakes: they could not be counted exactly


class GangServer(base.Record):
    """A server."""

    name: base.Name = Field(description="name, unique among the servers")
    gpus: base.PositiveCount = Field(description="its GPUs")
    gpu_kind: base.Name | None = Field(default=None, description="kind of its GPUs, such as V100")


class GangRequest(base.Record):
    """What a job says when it is submitted, which is not how long it will run."""

    name: base.Name = Field(description="name, unique in the instance")
    submit: base.NonNegative = Field(description="second of submission, since the trace's start")
    gpus: base.PositiveCount = Field(description="GPUs that it runs on")
    weight: base.Positive = Field(default=1, description="its weight in the objective")
    deadline: base.NonNegative | None = Field(
        default=None, description="second by which it should be complete, since the trace's start"
    )
    user: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="who submits it"
    )
    most_gpus: base.PositiveCount | None = Field(
        default=None, description="most GPUs at a time in the formulation `elastic`; absent: all"
    )
    gpu_kinds: Annotated[tuple[base.Name, ...], Field(min_length=1)] | None = Field(
        default=None, description="kinds of GPUs, on one of which it runs; absent: on any"
    )


class GangJob(GangRequest):
    """A job that asks for GPUs."""

    duration: base.Positive = Field(description="seconds that it runs on them")

    def request(self) -> GangRequest:
        """The job without its duration."""
        fields = {key: value for key, value in vars(self).items() if key != "duration"}
        return GangRequest.model_construct(
            _fields_set=self.model_fields_set - {"duration"}, **fields
        )


def _times_in_slots(field: str) -> cached_property[Ints]:
    """A time of every job in slots, rounded down; -1 where it has none. Shape (jobs,)."""

    def slots(self: GangInstance) -> Ints:
        unit, times = self.slot_seconds, [getattr(job, field) for job in self.jobs]
        if unit != 1 or not all(type(time) is int for time in times):
            times = [-1 if time is None else int(slots_of(time, unit)) for time in times]
        return np.array(times, dtype=np.int64)

    return cached_property(slots)


class GangInstance(base.Instance):
    """Jobs and the GPUs that they share.

    Exactly one of `gpus` (one pool) and `servers` is given. `horizon` bounds submissions only:
    every job must finish.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    formulations: ClassVar[tuple[str, ...]] = (
        *KINDS,
        *(f"{kind},{objective}" for objective in OBJECTIVES[1:] for kind in KINDS),
    )

    family: Literal["gang"] = "gang"
    horizon: Annotated[StrictInt, Field(ge=1, le=MOST_SLOTS)]
    gpus: base.PositiveCount | None = None
    servers: Annotated[tuple[GangServer, ...], Field(min_length=1)] | None = None
    placement: Literal["pool", "consolidated"] = "pool"
    jobs: tuple[GangJob, ...] = ()

    def cluster_rules(self) -> Iterator[base.Rule]:
        """One pool, or servers."""
        given = "(both)" if self.servers else "(absent)"
        exactly_one = (self.gpus is None) != (self.servers is None)
        yield exactly_one, "gpus", given, "exactly one of gpus and servers must be given"
        yield from base.unique_names("servers", self.servers or ())
        placed = self.servers is not None or self.placement == POOL
        yield placed, "placement", self.placement, "needs servers"

    def job_rules(self, job: GangJob) -> Iterator[base.Rule]:
        """A job fits, and its times are whole slots."""
        kinds, most, seconds = self.kinds_of(job), job.most_gpus, self.slot_seconds
        yield bool(kinds), "gpu_kinds", job.gpu_kinds, "must name a gpu_kind that a server has"
        room, of_kind = self.room_of(job), " of one kind" * self.has_kinds
        yield job.gpus <= room, "gpus", job.gpus, f"must not exceed {room} GPUs{of_kind}"
        rule = f"must be at least gpus = {job.gpus}"
        yield most is None or most >= job.gpus, "most_gpus", most, rule
        rule = f"must be a multiple of slot_seconds = {seconds}"
        for key, value in (("submit", job.submit), ("duration", job.duration)):
            whole = seconds == 1 and type(value) is int
            yield whole or slots_of(value, seconds).denominator == 1, key, value, rule

    def rules_of_all(self) -> Iterator[base.Rule]:
        """Submissions within the horizon; slots and GPU-slots that can be counted."""
        if not self.jobs:
            return
        late, durations = int(self.submits.argmax()), self.durations.tolist()
        last, submit = int(self.submits[late]), self.jobs[late].submit
        rule = f"must precede horizon = {self.horizon} slots"
        yield last < self.horizon, f"jobs[{late}].submit", submit, rule
        # Python's integers, which add up without overflow
        work = sum(job * gpus for job, gpus in zip(durations, self.job_gpus.tolist(), strict=True))
        countable = work <= MOST_WORK and sum(durations) + last <= MOST_SLOTS
        rule = f"must be at most {MOST_WORK:.0e} GPU-slots and end within {MOST_SLOTS:.0e}"
        yield countable, "jobs", work, rule

    def certain_bound(self) -> float:
        """No objective is below 0."""
        return 0.0

    @base.cluster_property
    def total_gpus(self) -> int:
        """GPUs M of the cluster."""
        if self.servers is None:
            return int(self.gpus or 0)
        return sum(server.gpus for server in self.servers)

    @base.cluster_property
    def server_gpus(self) -> Ints:
        """GPUs of each server, shape (servers,); one pool counts as one server."""
        if self.servers is None:
            return np.array([self.total_gpus])
        return np.array([server.gpus for server in self.servers])

    @base.cluster_property
    def gpu_kinds(self) -> dict[str, int]:
        """GPUs of each kind, in the order of the servers; what has none is of the kind ``""``."""
        kinds: dict[str, int] = {}
        for server in self.servers or ():
            kind = server.gpu_kind or ""
            kinds[kind] = kinds.get(kind, 0) + server.gpus
        return kinds or {"": self.total_gpus}

    @property
    def has_kinds(self) -> bool:
        """Whether GPUs are of several kinds, so that a job's are of one of them at a time."""
        return len(self.gpu_kinds) > 1

    def kinds_of(self, job: GangRequest) -> list[int]:
        """Positions of the kinds on which a job may run."""
        named = job.gpu_kinds
        return [k for k, kind in enumerate(self.gpu_kinds) if named is None or kind in named]

    def room_of(self, job: GangRequest) -> int:
        """GPUs of the largest kind on which a job may run."""
        counts = list(self.gpu_kinds.values())
        return max((counts[k] for k in self.kinds_of(job)), default=0)

    @cached_property
    def allowed_kinds(self) -> Bools:
        """Whether each job may run on each kind, shape (jobs, kinds)."""
        allowed = np.ones((len(self.jobs), len(self.gpu_kinds)), dtype=bool)
        for position, job in enumerate(self.jobs):
            if job.gpu_kinds is not None:
                allowed[position] = np.isin(list(self.gpu_kinds), job.gpu_kinds)
        return allowed

    @base.cluster_property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """Where schedules put jobs: name, GPUs and position of the kind.

        Servers where jobs are consolidated, else kinds where there are several, else one pool.
        """
        kinds = list(self.gpu_kinds)
        if self.is_consolidated:
            servers = self.servers or ()
            return tuple((s.name, s.gpus, kinds.index(s.gpu_kind or "")) for s in servers)
        return tuple((kind, gpus, k) for k, (kind, gpus) in enumerate(self.gpu_kinds.items()))

    @property
    def names_places(self) -> bool:
        """Whether a schedule must say where its jobs run."""
        return self.is_consolidated or self.has_kinds

    @property
    def is_consolidated(self) -> bool:
        """Whether a job must stand on one server, or on whole ones and a remainder."""
        return self.placement == CONSOLIDATED

    submits = _times_in_slots("submit")  # slot after which each job may run, (jobs,)
    durations = _times_in_slots("duration")  # slots that each job runs, (jobs,)
    deadlines = _times_in_slots("deadline")  # last slot by which it should be complete, -1 for none
    job_gpus = base.per_job("gpus")

    @cached_property
    def most_gpus(self) -> Ints:
        """Most GPUs that each job can use if it is elastic, shape (jobs,)."""
        rooms = [self.room_of(job) for job in self.jobs]
        most = [min(job.most_gpus or n, n) for job, n in zip(self.jobs, rooms, strict=True)]
        return np.array(most, dtype=np.int64)

    weights = base.per_job("weight", float)

    @cached_property
    def serial_end(self) -> int:
        """Last slot if all jobs ran one after another after the last submission.

        Some optimal schedule of any formulation ends by then.
        """
        return int(self.submits.max(initial=0)) + int(self.durations.sum())

    @cached_property
    def exact_weights(self) -> tuple[list[int], int]:
        """Weights as integers over one denominator."""
        weights = [exactly(job.weight) for job in self.jobs]
        below = math.lcm(*(weight.denominator for weight in weights))
        return [int(weight * below) for weight in weights], below

    def arrival_of(self, job: GangRequest) -> int:
        """First slot that a job may use."""
        return int(slots_of(job.submit, self.slot_seconds)) + 1


def slots_of(seconds: float, slot_seconds: float) -> Fraction:
    """Seconds as an exact number of slots."""
    return exactly(seconds) / exactly(slot_seconds)


def split_formulation(formulation: str) -> tuple[str, str]:
    """Kind (one of `KINDS`) and objective (one of `OBJECTIVES`) of a formulation."""
    kind, _, objective = formulation.partition(",")
    return kind, objective or OBJECTIVES[0]


def gang_data(name: str, jobs: Sequence[Draft], **fields: Any) -> Draft:
    """JSON data of an instance whose horizon ends with its last submission.

    Further fields: ``gpus`` or ``servers``, ``placement``, ``slot_seconds`` (1 by default),
    ``provenance``.
    """
    slot_seconds = fields.pop("slot_seconds", 1)
    last = max((job["submit"] for job in jobs), default=0)
    horizon = int(slots_of(last, slot_seconds)) + 1
    envelope = {"format": "hindsched/1", "family": "gang", "name": name, "horizon": horizon}
    return {**envelope, "slot_seconds": slot_seconds, **fields, "jobs": list(jobs)}


INSTANCE = GangInstance
