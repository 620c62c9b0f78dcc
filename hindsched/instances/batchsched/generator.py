"""Random instances of batchsched with the ranges of the paper's Section 7, and those from traces.

The paper sets the cluster's capacity to 0.2-0.5 of the summed ideal demand of all jobs. With
servers of different shapes that is: a job's ideal demand is that of D workers and their PSs, of the
pair of types with the least time per mini-batch; the fraction of the sum is split over the servers
in proportion to EC2 shapes, resource by resource.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, model_validator

from hindsched.errors import InputError
from hindsched.instances.base import Instance, Positive, PositiveCount
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.decimals import exactly
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Draws, arrival_slots, rounded
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

RESOURCES = ("gpu", "cpu", "bandwidth_mbps")
EC2_SHAPES = (
    (1, 8, 10_000), (4, 32, 10_000), (8, 64, 25_000),  # p3: 2xlarge, 8xlarge, 16xlarge
    (1, 4, 5_000), (8, 32, 10_000), (16, 64, 25_000),  # p2: xlarge, 8xlarge, 16xlarge
    (1, 16, 10_000), (2, 32, 10_000), (4, 64, 25_000),  # g3: 4xlarge, 8xlarge, 16xlarge
)  # fmt: skip
"""GPUs, virtual CPUs and Mbps of Amazon's P3, P2 and G3 instances; "up to" counts as given."""
EC2_WORKERS = (
    ("p3.4xlarge", 2, 16, 5_000),
    ("p2.2xlarge", 2, 8, 5_000),
    ("p3.2xlarge", 1, 8, 5_000),
    ("p2.xlarge", 1, 4, 5_000),
)
"""Worker types of the paper's Figure 9. Amazon sells neither the first nor the second: they are
twice the third and the fourth. Bandwidth is the most of the paper's range for workers."""
V100_OVER_K80 = 6.0
"""How many times as fast a P3's GPU trains as a P2's; our choice, the paper gives no speeds."""
SHORT_NAMES = {PARAMETER_SERVER: "ps", RING_ALLREDUCE: "rar"}
Architecture = Literal["parameter-server", "ring-allreduce"]
GPU_TYPES = ("v100", "p100", "k80")
GAVEL_MODELS = (
    (46.8, (24.093, 22.305, 7.052)),  # ResNet-18, batch size 64
    (102.2, (4.395, 2.619, 0.619)),  # ResNet-50, batch size 64
    (102.2, (2.497, 1.584, 0.347)),  # ResNet-50, batch size 128
    (260.0, (8.618, 5.092, 1.752)),  # Transformer, batch size 64
    (115.0, (64.742, 58.173, 17.142)),  # LM, batch size 20
)
"""Gradient in MB (parameters x 4 bytes), and isolated mini-batches a second on `GPU_TYPES` that
Gavel's authors measured (Narayanan et al., OSDI 2020; MIT)."""
TRACE_EPOCHS = 10
MOST_MINIBATCHES = 1_000_000
"""Of a chunk in an epoch of a trace's job: one of many weeks has more epochs instead."""


class BatchschedSettings(ranges.Settings):
    """Settings of `generate`; the defaults are the preset ``paper``."""

    architecture: Architecture = PARAMETER_SERVER  # type: ignore[assignment]
    jobs: PositiveCount = 100
    servers: PositiveCount = 150
    horizon: PositiveCount = 150
    worker_types: PositiveCount = 8
    ps_types: PositiveCount = 10
    capacity_fraction: Positive | None = 0.35  # None: whole EC2 shapes, or 2-3 GPUs if few
    gpus: ranges.Wholes = (1, 4)
    worker_cpus: ranges.WholesOrNone = (1, 16)
    worker_mbps: ranges.Wholes = (100, 5000)
    ps_cpus: ranges.WholesOrNone = (1, 16)
    ps_mbps: ranges.Wholes = (5000, 20_000)
    weight: ranges.Wholes = (200, 5000)
    epochs: ranges.Wholes = (50, 100)
    chunks: ranges.Wholes = (5, 50)
    minibatches: ranges.Wholes = (10, 50)
    update_ms: ranges.Amounts = (10.0, 100.0)
    minibatch_slots: ranges.Positives = (0.001, 0.05)
    gradient_mb: ranges.Amounts = (30.0, 575.0)
    # Keep one worker type only; cut each job into so many chunks of unchanged total work, rounded
    # up, so that it uses at most so many workers. Servers stay as with a free choice.
    fixed_worker_type: PositiveCount | None = None
    fixed_workers: PositiveCount | None = None
    ec2_workers: StrictBool = False  # the types are `EC2_WORKERS`

    @model_validator(mode="after")
    def _check_worker_type(self) -> Self:
        types = len(EC2_WORKERS) if self.ec2_workers else self.worker_types
        if self.fixed_worker_type is not None and self.fixed_worker_type > types:
            raise InputError("fixed_worker_type", self.fixed_worker_type, f"must be in 1..{types}")
        return self

    @property
    def has_ps(self) -> bool:
        """Whether there are parameter servers."""
        return self.architecture == PARAMETER_SERVER


PRESETS: dict[str, Draft] = {
    "small": BatchschedSettings.values(
        jobs=6, servers=3, horizon=6, worker_types=2, ps_types=2, capacity_fraction=None,
        gpus=(1, 2), worker_cpus=(1, 3), worker_mbps=(1000, 2000), ps_cpus=(1, 3),
        ps_mbps=(2000, 4000), weight=(1, 9), epochs=(1, 2), chunks=(2, 4), minibatches=(2, 3),
        update_ms=(180_000.0, 450_000.0), minibatch_slots=(0.4, 1.0),
        gradient_mb=(70_000.0, 170_000.0),
    ),
    "paper": BatchschedSettings.values(),
}  # fmt: skip


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance from a preset, a seed and settings of `BatchschedSettings`."""
    s = BatchschedSettings.of(PRESETS[preset], settings)
    draws = Draws(seed, "types")
    spans = s.gpus, s.worker_cpus, s.worker_mbps
    shapes = [tuple(draws.integer(*span) for span in spans) for _ in range(s.worker_types)]
    drawn = [(f"w{m}", *shape) for m, shape in enumerate(shapes, start=1)]
    chosen: Any = EC2_WORKERS if s.ec2_workers else drawn
    workers = [_type_data(name, *shape) for name, *shape in chosen]
    ps_types = [
        _type_data(f"p{p}", draws.integer(*s.ps_cpus), draws.integer(*s.ps_mbps))
        for p in range(1, s.ps_types + 1)
    ]
    jobs = _batchsched_jobs(s, seed, workers)
    servers = _servers(s, Draws(seed, "servers"), workers, ps_types if s.has_ps else [], jobs)
    if s.fixed_worker_type is not None:
        kept = s.fixed_worker_type - 1
        workers = [workers[kept]]
        for job in jobs:
            job["minibatch_slots"] = [job["minibatch_slots"][kept]]
    if s.fixed_workers is not None:
        for job in jobs:
            total = job["epochs"] * job["chunks"] * job["minibatches"]
            job["epochs"], job["chunks"] = 1, s.fixed_workers
            job["minibatches"] = -(-total // s.fixed_workers)
    data: Draft = {
        "name": f"batchsched-{preset}-{SHORT_NAMES[s.architecture]}-j{s.jobs}-s{seed}",
        "horizon": s.horizon,
        "slot_seconds": 3600,
        "architecture": s.architecture,
        "resources": RESOURCES,
        "bandwidth_resource": RESOURCES[-1],
        "servers": servers,
        "worker_types": workers,
        **({"ps_types": ps_types} if s.has_ps else {}),
        "jobs": jobs,
        "provenance": {"generator": "batchsched", "preset": preset, "seed": seed, **settings},
    }
    return BatchschedInstance.parse(data)


def _type_data(name: str, *amounts: float) -> Draft:
    """A type with the demands of a worker, or without GPUs those of a PS."""
    return {"name": name, "demand": dict(zip(RESOURCES[-len(amounts) :], amounts, strict=True))}


def _batchsched_jobs(s: BatchschedSettings, seed: int, workers: list[Draft]) -> list[Draft]:
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, s.horizon)
    jobs = []
    for number, arrival in enumerate(arrivals, start=1):
        draws = Draws(seed, "job", str(number))
        low, high = s.minibatch_slots
        base = draws.uniform(low, high)
        times = []
        for item in workers:
            speed = item["demand"]["gpu"] ** 0.8 * draws.uniform(0.8, 1.25)
            if s.ec2_workers:  # the drawn time is that of one P2 GPU
                speed *= V100_OVER_K80 if item["name"].startswith("p3") else 1.0
            times.append(rounded(min(high, max(low, base / speed))))
        job: Draft = {"name": f"j{number}", "arrival": arrival, "minibatch_slots": times}
        job |= draws.integers(s, "weight", "epochs", "chunks", "minibatches")
        job["gradient_mb"] = draws.uniform(*s.gradient_mb)
        updates = [rounded(draws.uniform(*s.update_ms) / 3.6e6) for _ in range(s.ps_types)]
        job |= {"update_slots": updates} if s.has_ps else {"reduce_slots": updates[0]}
        jobs.append(job)
    return jobs


def _servers(
    s: BatchschedSettings, draws: Draws, workers: list[Draft], ps: list[Draft], jobs: list[Draft]
) -> list[Draft]:
    shapes: list[Draft] = []
    for _ in range(s.servers):
        if s.capacity_fraction is None and s.servers <= 5:
            shape = draws.integer(2, 3), draws.integer(9, 13), 1000 * draws.integer(8, 16)
        else:
            shape = draws.choice(EC2_SHAPES)
        shapes.append(dict(zip(RESOURCES, shape, strict=True)))
    if s.capacity_fraction is not None:
        for resource, total in _ideal_demand(workers, ps, jobs).items():
            share = s.capacity_fraction * total / sum(shape[resource] for shape in shapes)
            # Running sums are rounded, so that the total does not depend on the servers' number.
            given = before = 0.0
            for server in shapes:
                before, given = given, given + share * server[resource]
                server[resource] = math.floor(given + 0.5) - math.floor(before + 0.5)
    # A type that fits nowhere would be no type at all: the largest server is made to hold each.
    largest = max(shapes, key=lambda shape: tuple(shape.values()))
    for item in (*workers, *ps):
        for resource, amount in item["demand"].items():
            largest[resource] = max(largest[resource], amount)
    return [{"name": f"s{h + 1}", "capacity": shape} for h, shape in enumerate(shapes)]


def _ideal_demand(
    workers: list[Draft], ps_types: list[Draft], jobs: list[Draft]
) -> dict[str, float]:
    """Sum of D workers and their PSs over all jobs, each with its fastest pair of types."""
    total = dict.fromkeys(RESOURCES, 0.0)
    for job in jobs:
        options = []
        for m, worker in enumerate(workers):
            send = 2 * job["gradient_mb"] * 8 / worker["demand"]["bandwidth_mbps"] / 3600
            for p, update in enumerate(job.get("update_slots") or [job["reduce_slots"]]):
                options.append((job["minibatch_slots"][m] + update + send, m, p))
        _, m, p = min(options)
        needed = [(job["chunks"], workers[m]["demand"])]
        if ps_types:
            ps = ps_types[p]["demand"]
            sent = job["chunks"] * exactly(workers[m]["demand"]["bandwidth_mbps"])
            needed.append((math.ceil(sent / exactly(ps["bandwidth_mbps"])), ps))
        for count, demand in needed:
            for resource, amount in demand.items():
                total[resource] += count * amount
    return total


class TraceSettings(ranges.RowSettings):
    """Settings of `from_trace`."""

    architecture: Architecture = PARAMETER_SERVER  # type: ignore[assignment]
    servers: Annotated[PositiveCount, Field(ge=3)] = 12  # of 100 Gbps
    gpus_per_server: PositiveCount = 8  # with 6 CPUs each
    slot_seconds: Positive = 3600


def from_trace(
    table: TraceTable, *, jobs: int = 100, seed: int = 0, **settings: object
) -> Instance:
    """Make an instance from rows of a trace, with the settings of `TraceSettings`.

    A job that held g GPUs for s seconds trains the mini-batches that g V100s of its model do in
    that time without communicating; it has 2 g chunks. Its model, and with it speeds and gradient,
    is drawn by (seed, job), as is its weight from 1..10. Servers hold one GPU type each, in turn.
    """
    s = TraceSettings.of({}, settings)
    with_ps = s.architecture == PARAMETER_SERVER
    rows = ranges.take_rows(table, jobs, s)
    arrivals = ranges.arrivals_of(rows, s.slot_seconds)
    update = rounded(0.05 / s.slot_seconds)
    records = []
    for number, (row, arrival) in enumerate(zip(rows, arrivals, strict=True), start=1):
        draws = Draws(seed, "trace", str(row["job"]))
        gradient, speeds = draws.choice(GAVEL_MODELS)
        gpus = int(row["gpus"])
        chunks, total = 2 * gpus, row["duration_seconds"] * gpus * speeds[0]
        epochs = max(TRACE_EPOCHS, math.ceil(total / (chunks * MOST_MINIBATCHES)))
        records.append({
            "name": f"j{number}", "arrival": arrival, "weight": draws.integer(1, 10),
            "epochs": epochs, "chunks": chunks, "requested_workers": gpus,
            "minibatches": max(1, math.floor(total / (epochs * chunks) + 0.5)),
            "minibatch_slots": [rounded(1.0 / speed / s.slot_seconds) for speed in speeds],
            "gradient_mb": gradient,
            **({"update_slots": [update]} if with_ps else {"reduce_slots": update}),
        })  # fmt: skip
    ps_type = {"name": "ps", "demand": {"cpu": 4, "bandwidth_mbps": 20_000}}
    size = {"cpu": 6 * s.gpus_per_server, "bandwidth_mbps": 100_000}
    data: Draft = {
        "name": f"batchsched-{table.format}-{SHORT_NAMES[s.architecture]}-j{jobs}-s{seed}",
        "horizon": arrivals[-1],
        "slot_seconds": s.slot_seconds,
        "architecture": s.architecture,
        "resources": [*GPU_TYPES, "cpu", "bandwidth_mbps"],
        "bandwidth_resource": "bandwidth_mbps",
        "servers": [
            {"name": f"s{h + 1}", "capacity": {GPU_TYPES[h % 3]: s.gpus_per_server, **size}}
            for h in range(s.servers)
        ],
        "worker_types": [
            {"name": gpu, "demand": {gpu: 1, "cpu": 4, "bandwidth_mbps": 5000}} for gpu in GPU_TYPES
        ],
        **({"ps_types": [ps_type]} if with_ps else {}),
        "jobs": records,
    }
    return ranges.traced(BatchschedInstance, data, rows, table, seed, s)


LEVELS = (
    {"jobs": 4, "servers": 3, "horizon": 12},
    {"jobs": 5, "servers": 3, "horizon": 6},
    {"jobs": 6, "servers": 3, "horizon": 4},
    {"jobs": 6, "servers": 2, "horizon": 2},
)
"""Of contention."""
ASSUMPTIONS: Draft = {
    "jobs": 4, "worker_types": 1, "ps_types": 1, "chunks": (1, 1), "gpus": (1, 1),
    "gradient_mb": (0.001, 0.001), "weight": (5, 9),
}  # fmt: skip
GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    assumptions=ASSUMPTIONS,
    enlargement=12,
    from_trace=from_trace,
    trace_settings=TraceSettings,
    suites=suites_of(
        generate,
        small=[
            ("small", 10 + level, {"architecture": architecture, **settings})
            for level, settings in enumerate(LEVELS)
            for architecture in SHORT_NAMES
        ],
    ),
)
