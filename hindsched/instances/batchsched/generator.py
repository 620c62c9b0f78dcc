"""Random instances of batchsched with the ranges of the paper's Section 7.

The paper draws job sizes, weights and types from ranges that are kept here (preset ``paper``). It
sets the cluster's capacity to 0.2-0.5 of the summed ideal demand of all jobs; with servers of
different shapes that is made precise as follows: a job's ideal demand is that of D workers and the
PSs they need, of the pair of types with the least time per mini-batch; the fraction of the sum is
split over the servers in proportion to EC2 shapes, resource by resource.
"""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import StrictBool, model_validator

from hindsched.instances.base import BrokenRule, Instance, Positive, PositiveCount
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.batchsched.trace import SHORT_NAMES, from_trace
from hindsched.instances.decimals import exactly
from hindsched.instances.generators.ranges import (
    Amounts,
    Positives,
    Wholes,
    WholesOrNone,
)
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.generators.settings import Settings
from hindsched.json_types import Draft

RESOURCES = ("gpu", "cpu", "bandwidth_mbps")
EC2_SHAPES = (
    ("p3.2xlarge", 1, 8, 10_000),
    ("p3.8xlarge", 4, 32, 10_000),
    ("p3.16xlarge", 8, 64, 25_000),
    ("p2.xlarge", 1, 4, 5_000),
    ("p2.8xlarge", 8, 32, 10_000),
    ("p2.16xlarge", 16, 64, 25_000),
    ("g3.4xlarge", 1, 16, 10_000),
    ("g3.8xlarge", 2, 32, 10_000),
    ("g3.16xlarge", 4, 64, 25_000),
)
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

_PAPER: Draft = {
    "architecture": PARAMETER_SERVER,
    "jobs": 100,
    "servers": 150,
    "horizon": 150,
    "worker_types": 8,
    "ps_types": 10,
    "capacity_fraction": 0.35,
    "gpus": (1, 4),
    "worker_cpus": (1, 16),
    "worker_mbps": (100, 5000),
    "ps_cpus": (1, 16),
    "ps_mbps": (5000, 20_000),
    "weight": (200, 5000),
    "epochs": (50, 100),
    "chunks": (5, 50),
    "minibatches": (10, 50),
    "update_ms": (10.0, 100.0),
    "minibatch_slots": (0.001, 0.05),
    "gradient_mb": (30.0, 575.0),
    "time_scale": 1.0,
    "fixed_worker_type": None,
    "fixed_workers": None,
    "ec2_workers": False,
}
_SMALL: Draft = {
    **_PAPER,
    "jobs": 6,
    "servers": 3,
    "horizon": 6,
    "worker_types": 2,
    "ps_types": 2,
    "capacity_fraction": None,
    "gpus": (1, 2),
    "worker_cpus": (1, 3),
    "worker_mbps": (1000, 2000),
    "ps_cpus": (1, 3),
    "ps_mbps": (2000, 4000),
    "weight": (1, 9),
    "epochs": (1, 2),
    "chunks": (2, 4),
    "minibatches": (2, 3),
    "update_ms": (180_000.0, 450_000.0),
    "minibatch_slots": (0.4, 1.0),
    "gradient_mb": (70_000.0, 170_000.0),
}
PRESETS: dict[str, Draft] = {"small": _SMALL, "paper": _PAPER}


class BatchschedSettings(Settings):
    """The settings that `generate` explains, and what each may be."""

    architecture: Literal["parameter-server", "ring-allreduce"]
    jobs: PositiveCount
    servers: PositiveCount
    horizon: PositiveCount
    worker_types: PositiveCount
    ps_types: PositiveCount
    capacity_fraction: Positive | None
    gpus: Wholes
    worker_cpus: WholesOrNone
    worker_mbps: Wholes
    ps_cpus: WholesOrNone
    ps_mbps: Wholes
    weight: Wholes
    epochs: Wholes
    chunks: Wholes
    minibatches: Wholes
    update_ms: Amounts
    minibatch_slots: Positives
    gradient_mb: Amounts
    time_scale: Positive
    fixed_worker_type: PositiveCount | None
    fixed_workers: PositiveCount | None
    ec2_workers: StrictBool

    @model_validator(mode="after")
    def _check_worker_type(self) -> Self:
        types = len(EC2_WORKERS) if self.ec2_workers else self.worker_types
        if self.fixed_worker_type is not None and self.fixed_worker_type > types:
            raise BrokenRule("fixed_worker_type", self.fixed_worker_type, f"must be in 1..{types}")
        return self


def generate(preset: str, seed: int, **settings: object) -> Instance:
    """Generate a random instance.

    Parameters
    ----------
    preset : str
        ``small`` or ``paper``.
    seed : int
        Seed of the draws.
    **settings
        In place of the preset's: ``architecture, jobs, servers, horizon, worker_types, ps_types,
        capacity_fraction`` (share of the summed ideal demand; None for whole EC2 shapes, or 2-3
        GPU servers in ``small``), the ranges ``[low, high]`` of ``gpus, worker_cpus, worker_mbps,
        ps_cpus, ps_mbps, weight, epochs, chunks, minibatches, update_ms, minibatch_slots,
        gradient_mb``, ``time_scale`` (factor on minibatch_slots), ``fixed_worker_type`` (keep this
        worker type only, from 1) and ``fixed_workers`` (cut every job into this many chunks of
        unchanged total work, rounded up, so that it uses at most so many workers), ``ec2_workers``
        (the worker types are Figure 9's four EC2 instances). ``fixed_worker_type`` and
        ``fixed_workers`` leave the servers as they are with a free choice.
    """
    s = BatchschedSettings.of("batchsched", PRESETS, preset, settings)
    worker_types, ps_types = _types(s, seed)
    jobs = _jobs(s, seed, worker_types)
    servers = _servers(s, seed, worker_types, ps_types, jobs)
    if s.fixed_worker_type is not None:
        chosen = s.fixed_worker_type - 1
        worker_types = [worker_types[chosen]]
        for job in jobs:
            job["minibatch_slots"] = [job["minibatch_slots"][chosen]]
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
        "resources": list(RESOURCES),
        "bandwidth_resource": "bandwidth_mbps",
        "servers": servers,
        "worker_types": worker_types,
        "jobs": jobs,
        "provenance": {"generator": "batchsched", "preset": preset, "seed": seed, **settings},
    }
    if s.architecture == PARAMETER_SERVER:
        data["ps_types"] = ps_types
    return BatchschedInstance.parse(data)


def _types(s: BatchschedSettings, seed: int) -> tuple[list[Draft], list[Draft]]:
    draws = Draws(seed, "types")
    workers = [
        {
            "name": f"w{m + 1}",
            "demand": {
                "gpu": draws.integer(*s.gpus),
                "cpu": draws.integer(*s.worker_cpus),
                "bandwidth_mbps": draws.integer(*s.worker_mbps),
            },
        }
        for m in range(s.worker_types)
    ]
    if s.ec2_workers:
        workers = [
            {"name": name, "demand": dict(zip(RESOURCES, shape, strict=True))}
            for name, *shape in EC2_WORKERS
        ]
    ps = [
        {
            "name": f"p{p + 1}",
            "demand": {
                "cpu": draws.integer(*s.ps_cpus),
                "bandwidth_mbps": draws.integer(*s.ps_mbps),
            },
        }
        for p in range(s.ps_types)
    ]
    return workers, ps


def _jobs(s: BatchschedSettings, seed: int, worker_types: list[Draft]) -> list[Draft]:
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, s.horizon)
    jobs = []
    for number, arrival in enumerate(arrivals, start=1):
        draws = Draws(seed, "job", str(number))
        low, high = s.minibatch_slots
        base = draws.uniform(low, high)
        times = []
        for item in worker_types:
            speed = item["demand"]["gpu"] ** 0.8 * draws.uniform(0.8, 1.25)
            if s.ec2_workers:  # the drawn time is that of one P2 GPU
                speed *= V100_OVER_K80 if item["name"].startswith("p3") else 1.0
            times.append(rounded(min(high, max(low, base / speed)) * s.time_scale))
        job: Draft = {
            "name": f"j{number}",
            "arrival": arrival,
            "weight": draws.integer(*s.weight),
            "epochs": draws.integer(*s.epochs),
            "chunks": draws.integer(*s.chunks),
            "minibatches": draws.integer(*s.minibatches),
            "minibatch_slots": times,
            "gradient_mb": draws.uniform(*s.gradient_mb),
        }
        updates = [rounded(draws.uniform(*s.update_ms) / 3.6e6) for _ in range(s.ps_types)]
        if s.architecture == PARAMETER_SERVER:
            job["update_slots"] = updates
        else:
            job["reduce_slots"] = updates[0]
        jobs.append(job)
    return jobs


def _servers(
    s: BatchschedSettings,
    seed: int,
    worker_types: list[Draft],
    ps_types: list[Draft],
    jobs: list[Draft],
) -> list[Draft]:
    draws = Draws(seed, "servers")
    count = s.servers
    if s.capacity_fraction is None and s.servers <= 5:
        shapes = [
            {
                "gpu": draws.integer(2, 3),
                "cpu": draws.integer(9, 13),
                "bandwidth_mbps": 1000 * draws.integer(8, 16),
            }
            for _ in range(count)
        ]
    else:
        shapes = [
            dict(zip(RESOURCES, draws.choice(EC2_SHAPES)[1:], strict=True)) for _ in range(count)
        ]
    if s.capacity_fraction is not None:
        total = _ideal_demand(s, worker_types, ps_types, jobs)
        for resource in RESOURCES:
            weight = sum(shape[resource] for shape in shapes)
            share = s.capacity_fraction * total[resource] / weight
            # Running sums are rounded, so that the total does not depend on the servers' number.
            given = before = 0.0
            for shape in shapes:
                before, given = given, given + share * shape[resource]
                shape[resource] = math.floor(given + 0.5) - math.floor(before + 0.5)
    # A type that fits nowhere would be no type at all: the largest server is made to hold each.
    largest = max(shapes, key=lambda shape: tuple(shape[r] for r in RESOURCES))
    used = ps_types if s.architecture == PARAMETER_SERVER else []
    for item in (*worker_types, *used):
        for resource, amount in item["demand"].items():
            largest[resource] = max(largest[resource], amount)
    return [{"name": f"s{h + 1}", "capacity": shape} for h, shape in enumerate(shapes)]


def _ideal_demand(
    s: BatchschedSettings,
    worker_types: list[Draft],
    ps_types: list[Draft],
    jobs: list[Draft],
) -> dict[str, float]:
    """Sum of D workers and their PSs over all jobs, each with its fastest pair of types."""
    total = dict.fromkeys(RESOURCES, 0.0)
    with_ps = s.architecture == PARAMETER_SERVER
    for job in jobs:
        options = []
        for m, worker in enumerate(worker_types):
            send = 2 * job["gradient_mb"] * 8 / worker["demand"]["bandwidth_mbps"] / 3600
            for p in range(len(ps_types) if with_ps else 1):
                update = job["update_slots"][p] if with_ps else job["reduce_slots"]
                options.append((job["minibatch_slots"][m] + update + send, m, p))
        _, m, p = min(options)
        demand = worker_types[m]["demand"]
        for resource in RESOURCES:
            total[resource] += job["chunks"] * demand.get(resource, 0)
        if with_ps:
            ps = ps_types[p]["demand"]
            sent = job["chunks"] * exactly(demand["bandwidth_mbps"])
            needed = math.ceil(sent / exactly(ps["bandwidth_mbps"]))
            for resource in RESOURCES:
                total[resource] += needed * ps.get(resource, 0)
    return total


def _small_suite() -> list[Instance]:
    """Make both architectures at four levels of contention."""
    levels = (
        {"jobs": 4, "servers": 3, "horizon": 12},
        {"jobs": 5, "servers": 3, "horizon": 6},
        {"jobs": 6, "servers": 3, "horizon": 4},
        {"jobs": 6, "servers": 2, "horizon": 2},
    )
    return [
        generate("small", 10 + level, architecture=architecture, **settings)
        for level, settings in enumerate(levels)
        for architecture in (PARAMETER_SERVER, RING_ALLREDUCE)
    ]


SUITES = {"small": _small_suite}

__all__ = ["PRESETS", "SUITES", "from_trace", "generate"]
