"""Random oasis instances with the settings of the paper's Section V, and instances from traces.

The paper's ranges are kept; three things it leaves open or gets wrong are decided here. Worker
servers are EC2 P2/G3 and PS servers C4 (the text swaps them: workers need GPUs). A uniform draw of
the mini-batch time makes most jobs longer than the horizon, so it is drawn log-uniformly and a job
is kept only if it needs at most `max_duration` slots with all its workers and could finish alone on
the empty cluster. `max_duration` is the knob of contention.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import StrictBool, field_validator

from hindsched.errors import InputError
from hindsched.instances.base import Instance, NonNegative, Positive, PositiveCount
from hindsched.instances.generators.ranges import Positives
from hindsched.instances.generators.sampling import Draws, arrival_slots
from hindsched.instances.generators.settings import Settings
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.instances.oasis.trace import from_trace
from hindsched.json_types import Draft

__all__ = ["PRESETS", "SUITES", "from_trace", "generate"]

RESOURCES = ["gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_mbps"]
STORAGE_GB = 1000
"""The paper gives demands for storage and no capacity; this never binds."""

WORKER_TYPES = [  # EC2 P2 and G3: GPUs, vCPUs, GB, and a NIC within the paper's 20-50 Gbps
    (1, 4, 61, 20000),
    (8, 32, 488, 30000),
    (16, 64, 732, 50000),
    (1, 16, 122, 20000),
    (2, 32, 244, 30000),
    (4, 64, 488, 40000),
]
PS_TYPES = [  # EC2 C4: vCPUs, GB, NIC
    (2, 3.75, 20000),
    (4, 7.5, 25000),
    (8, 15, 30000),
    (16, 30, 40000),
    (36, 60, 50000),
]
TESTBED_MODELS_MB = [244, 102, 178, 241, 531, 45]
"""Parameters of AlexNet, ResNet-50, -101, -152, VGG-11 and Inception-BN in 32-bit floats."""

EPOCHS, MINIBATCHES = (50, 200), (10, 100)
MINIBATCH_SLOTS, GRADIENT_MB, WORKER_MBPS = (0.001, 0.1), (30.0, 575.0), (100, 5000)
"""Ranges of Section V-A of what a job's length follows from, in the order of their draws."""
WORDS_OF_A_DRAW = 5

MOST_TRIES = 200_000
"""Draws of one job before the settings are called impossible."""
FEWEST_AT_ONCE, MOST_AT_ONCE = 32, 512
"""Draws that are seen to be too long in one step: twice as many after a step where all were."""

Shares = tuple[float, float, float]
"""Chances of the three classes of jobs."""

PAPER: Draft = {
    "jobs": 100,
    "horizon": 100,
    "servers": 50,
    "max_duration": 15,
    "slot_seconds": 3600,
    "network": "type",
    "priority": [1, 100],
    "shares": [0.10, 0.55, 0.35],
    "exact_shares": False,
}
PRESETS: dict[str, Draft] = {
    "small": {**PAPER, "jobs": 8, "horizon": 8, "servers": 5, "max_duration": 4},
    "paper": PAPER,
    "testbed": {**PAPER, "jobs": 12, "horizon": 10, "servers": 7, "slot_seconds": 1200},
}
"""Settings by preset. ``shares``: time-insensitive, -sensitive and -critical jobs."""


class OasisSettings(Settings):
    """The settings that `generate` explains, and what each may be."""

    jobs: PositiveCount
    horizon: PositiveCount
    servers: PositiveCount
    max_duration: PositiveCount
    slot_seconds: Positive
    network: Literal["type", "random"]
    priority: Positives
    shares: tuple[NonNegative, NonNegative, NonNegative]
    exact_shares: StrictBool

    @field_validator("shares")
    @classmethod
    def _check_shares(cls, shares: Shares) -> Shares:
        if not sum(shares) > 0:
            raise ValueError("must not all be 0")
        return shares


def generate(preset: str = "small", seed: int = 0, **settings: object) -> OasisInstance:
    """Generate an instance.

    Parameters
    ----------
    preset : {"small", "paper", "testbed"}
        ``paper``: Section V-A at T = 100 with 100 jobs on 50 + 50 servers; ``small``: the same
        draws, 8 jobs on 5 + 5 servers over 8 slots; ``testbed``: Section V-B, whose cluster
        (7 + 2 servers) is fixed.
    seed : int
        Seed; the same arguments give the same bytes everywhere.
    **settings
        ``jobs``, ``horizon``, ``servers`` (worker servers, and as many PS servers),
        ``max_duration`` (slots with all workers; contention), ``slot_seconds``, ``network``
        (``type``: a NIC a server type, ``random``: any in 20-50 Gbps), ``priority`` (range of
        gamma_1), ``shares`` (time-insensitive, -sensitive, -critical), ``exact_shares`` (so many
        jobs of each class, in random order, not each job's class drawn).

    Raises
    ------
    InputError
        For settings that make no sense, or under which no job can be drawn.
    """
    chosen = OasisSettings.of("oasis", PRESETS, preset, settings)
    testbed = preset == "testbed"
    servers = _testbed_servers() if testbed else _draw_servers(Draws(seed, "servers"), chosen)
    instance: Draft = {
        "format": "hindsched/1",
        "family": "oasis",
        "name": _name(preset, seed, chosen),
        "horizon": chosen.horizon,
        "slot_seconds": chosen.slot_seconds,
        "provenance": {"generator": "oasis", "preset": preset, "seed": seed, "settings": settings},
        "resources": RESOURCES,
        "bandwidth_resource": "bandwidth_mbps",
        "worker_servers": servers[0],
        "ps_servers": servers[1],
        "jobs": [],
    }
    cluster = OasisInstance.parse(instance)
    tail = 1 if testbed else min(chosen.max_duration, max(1, 2 * chosen.horizon // 5))
    last = max(1, chosen.horizon - tail)
    arrivals = arrival_slots(Draws(seed, "arrivals"), chosen.jobs, last)
    draw = _draw_testbed_job if testbed else _draw_job
    classes = _classes(Draws(seed, "classes"), chosen)
    for index, arrival in enumerate(arrivals):
        draws = Draws(seed, "job", str(index))
        own = chosen.model_copy(update={"shares": classes[index]})
        instance["jobs"].append(_first_possible(draws, draw, cluster, arrival, index, own))
    return OasisInstance.parse(instance)


def _classes(draws: Draws, settings: OasisSettings) -> list[Shares]:
    """Every job's shares of the three classes: all of one class where the numbers are exact."""
    shares, jobs = settings.shares, settings.jobs
    if not settings.exact_shares:
        return [shares] * jobs
    ends = [round(jobs * sum(shares[:kind]) / sum(shares)) for kind in range(4)]
    pool = [kind for kind in range(3) for _ in range(ends[kind], ends[kind + 1])]
    found = [pool.pop(draws.integer(0, len(pool) - 1)) for _ in range(jobs)]
    return [(float(own == 0), float(own == 1), float(own == 2)) for own in found]


def _name(preset: str, seed: int, settings: OasisSettings) -> str:
    return (
        f"oasis-{preset}-t{settings.horizon}-j{settings.jobs}-h{settings.servers}"
        f"-d{settings.max_duration}-s{seed}"
    )


def _server(name: str, gpu: int, cpu: int, memory: float, storage: float, mbps: int) -> Draft:
    capacity: Draft = {"gpu": gpu} if gpu else {}
    capacity |= {"cpu": cpu, "memory_gb": memory, "storage_gb": storage, "bandwidth_mbps": mbps}
    return {"name": name, "capacity": capacity}


def _draw_servers(draws: Draws, settings: OasisSettings) -> tuple[list[Draft], list[Draft]]:
    def nic(of_type: int) -> int:
        return of_type if settings.network == "type" else draws.integer(20000, 50000)

    workers, servers = [], []
    for index in range(settings.servers):
        gpu, cpu, memory, mbps = draws.choice(WORKER_TYPES)
        workers.append(_server(f"w{index + 1}", gpu, cpu, memory, STORAGE_GB, nic(mbps)))
    for index in range(settings.servers):
        ps_cpu, ps_memory, mbps = draws.choice(PS_TYPES)
        servers.append(_server(f"p{index + 1}", 0, ps_cpu, ps_memory, STORAGE_GB, nic(mbps)))
    return workers, servers


def _testbed_servers() -> tuple[list[Draft], list[Draft]]:
    """Section V-B: 7 servers for workers, 4 of them with a GPU, and 2 for PSs; 10 GbE."""
    workers = [_server(f"w{i + 1}", int(i < 4), 32, 80, 600, 10000) for i in range(7)]
    return workers, [_server(f"p{i + 1}", 0, 8, 32, 1500, 10000) for i in range(2)]


Draw = Callable[[Draws, OasisInstance, int, OasisSettings], Draft | None]


def _first_possible(
    draws: Draws,
    draw: Draw,
    cluster: OasisInstance,
    arrival: int,
    index: int,
    settings: OasisSettings,
) -> Draft:
    """Draw until a job can finish alone on the empty cluster."""
    tries, at_once = 0, FEWEST_AT_ONCE
    while tries < MOST_TRIES:
        if draw is _draw_job and tries > 0:
            most = min(at_once, MOST_TRIES - tries)
            skipped = _skip_long_jobs(most, draws, cluster, arrival, settings)
            at_once = min(2 * at_once, MOST_AT_ONCE) if skipped == at_once else FEWEST_AT_ONCE
            tries += skipped
            if tries == MOST_TRIES:
                break
        job = draw(draws, cluster, arrival, settings)
        if job is not None:
            return {"name": f"j{index + 1}", **job}
        tries += 1
    rule = f"no job that arrives in slot {arrival} can finish under these settings"
    raise InputError("set.max_duration", settings.max_duration, rule)


def _draw_job(
    draws: Draws, cluster: OasisInstance, arrival: int, settings: OasisSettings
) -> Draft | None:
    """Section V-A; None if the job is too long or could not finish alone."""
    slots = cluster.horizon - arrival
    epochs, minibatches = draws.integer(*EPOCHS), draws.integer(*MINIBATCHES)
    minibatch_slots = draws.log_uniform(*MINIBATCH_SLOTS)
    gradient, b = draws.uniform(*GRADIENT_MB), draws.integer(*WORKER_MBPS)
    per_batch = minibatch_slots + 2 * gradient * 8 / b / settings.slot_seconds
    length = epochs * minibatches * per_batch
    if length > min(settings.max_duration, slots):
        return None
    job = {
        "arrival": arrival,
        "epochs": epochs,
        "chunks": draws.integer(5, 100),
        "minibatches": minibatches,
        "minibatch_slots": minibatch_slots,
        "gradient_mb": gradient,
        "worker": _demand(draws, b, gpus=(0, 4), cpus=(1, 10), memory=(2, 32)),
        "ps": _demand(draws, draws.integer(5000, 20000), None, cpus=(1, 10), memory=(2, 32)),
        "utility": _draw_utility(draws, settings, draws.uniform(1, 15)),
    }
    if _has_no_room(cluster, job, length / slots):
        return None
    return job if _could_finish(cluster, job, slots) else None


def _skip_long_jobs(
    number: int, draws: Draws, cluster: OasisInstance, arrival: int, settings: OasisSettings
) -> int:
    """Skip draws that `_draw_job` would call too long, up to a number, and say how many.

    Nearly all are, by more than any rounding. The first that is not, or that has a word which
    `Draws.integer` may refuse, is left to be drawn.
    """
    longest = min(settings.max_duration, cluster.horizon - arrival)
    words = draws.ahead(number * WORDS_OF_A_DRAW).reshape(number, WORDS_OF_A_DRAW)
    unit = words / 2.0**64
    first, last = MINIBATCH_SLOTS
    minibatch_slots = first * (last / first) ** unit[:, 2]
    gradient = GRADIENT_MB[0] + (GRADIENT_MB[1] - GRADIENT_MB[0]) * unit[:, 3]

    def integers(low: int, high: int, at: int) -> np.ndarray:
        return low + words[:, at] % np.uint64(high - low + 1)

    per_batch = minibatch_slots + 16 * gradient / integers(*WORKER_MBPS, 4) / settings.slot_seconds
    slots = integers(*EPOCHS, 0) * integers(*MINIBATCHES, 1) * per_batch
    is_long = (slots > longest * (1 + 1e-6)) & (unit.max(axis=1) < 1 - 1e-9)
    skipped = number if is_long.all() else int(is_long.argmin())
    draws.skip(skipped * WORDS_OF_A_DRAW)
    return skipped


def _draw_testbed_job(
    draws: Draws, cluster: OasisInstance, arrival: int, settings: OasisSettings
) -> Draft | None:
    """Section V-B: 200 images in chunks of 20 or 30, 2-6 slots of 20 minutes at 1-4 workers."""
    images = draws.choice([20, 30])
    epochs, chunks, minibatches = draws.integer(4, 30), math.ceil(200 / images), images // 10
    b = draws.integer(1000, 3000)
    gradient = draws.choice(TESTBED_MODELS_MB)
    work = draws.uniform(2, 6) * draws.integer(1, 4)
    sending = 2 * gradient * 8 / b / settings.slot_seconds
    minibatch_slots = work / (epochs * chunks * minibatches) - sending
    if minibatch_slots <= 0:
        return None
    job = {
        "arrival": arrival,
        "epochs": epochs,
        "chunks": chunks,
        "minibatches": minibatches,
        "minibatch_slots": float(f"{minibatch_slots:.12g}"),
        "gradient_mb": gradient,
        "worker": _demand(draws, b, gpus=(0, 1), cpus=(1, 5), memory=(2, 10)),
        "ps": _demand(draws, max(b, draws.integer(1000, 3000)), None, cpus=(1, 5), memory=(2, 10)),
        "utility": _draw_utility(draws, settings, draws.uniform(1, 6)),
    }
    return job if _could_finish(cluster, job, cluster.horizon - arrival) else None


def _demand(
    draws: Draws,
    mbps: int,
    gpus: tuple[int, int] | None,
    cpus: tuple[int, int],
    memory: tuple[int, int],
) -> Draft:
    demand: Draft = {}
    if gpus is not None:
        demand["gpu"] = draws.integer(*gpus)
    demand["cpu"] = draws.integer(*cpus)
    demand["memory_gb"] = draws.integer(*memory)
    demand["storage_gb"] = draws.integer(5, 10)
    demand["bandwidth_mbps"] = mbps
    return demand


def _draw_utility(draws: Draws, settings: OasisSettings, target: float) -> Draft:
    low, high = settings.priority
    decay = draws.choice([(0.0, 0.0), (0.01, 1.0), (4.0, 6.0)], settings.shares)
    return {
        "kind": "sigmoid",
        "priority": draws.uniform(low, high),
        "decay": draws.uniform(*decay),
        "target": target,
    }


def _has_no_room(cluster: OasisInstance, job: Draft, share: float) -> bool:
    """Whether a job surely could not finish: it has to run more than a share of its workers.

    Says of nearly all that cannot what `_could_finish` would, at a tenth of its effort.
    """
    demand = np.array([job["worker"].get(resource, 0) for resource in cluster.resources])
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.nanmin(cluster.worker_capacity / demand, axis=1)
    return float(np.floor(fits + 1e-6).sum()) < share * job["chunks"] * (1 - 1e-6)


def _could_finish(cluster: OasisInstance, job: Draft, slots: int) -> bool:
    """Whether the job, alone on the empty cluster, has room for its work in `slots` slots."""
    record = OasisJob.model_validate({"name": "j", **job})
    return cluster.most_workers(record) * slots >= cluster.work_of(record)


def small_suite() -> list[Instance]:
    """Make two instances at each of four cluster sizes (levels of contention)."""
    return [
        generate("small", seed, servers=servers) for servers in (3, 5, 8, 14) for seed in (0, 1)
    ]


def contention_suite() -> list[Instance]:
    """The paper's ratio experiment: T = 10, 10 jobs, 5-50 servers, three levels of contention."""
    return [
        generate("paper", seed, jobs=10, horizon=10, servers=servers, max_duration=duration)
        for servers in (5, 10, 25, 50)
        for duration in (2, 4, 10)
        for seed in (0, 1)
    ]


SUITES: dict[str, Callable[[], list[Instance]]] = {
    "small": small_suite,
    "contention": contention_suite,
}
