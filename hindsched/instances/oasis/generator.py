"""Random oasis instances with the settings of the paper's Section V, and instances from traces.

The paper's ranges are kept; three things it leaves open or gets wrong are decided here. Worker
servers are EC2 P2/G3 and PS servers C4 (the text swaps them: workers need GPUs). A uniform draw of
the mini-batch time makes most jobs longer than the horizon, so it is drawn log-uniformly and a job
is kept only if it needs at most `max_duration` slots with all its workers and could finish alone on
the empty cluster. `max_duration` is the knob of contention.

A row of a trace (submission, duration, GPUs) becomes an elastic job whose work is duration x GPUs:
one GPU a worker, up to `elasticity` times the row's GPUs at once. Utilities come from the trace's
own values and deadlines where it has them, otherwise they are drawn as in Section V-A around a
target set from the duration.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import StrictBool, field_validator

from hindsched.errors import InputError
from hindsched.instances.base import Instance, NonNegative, Positive, PositiveCount
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Draws, arrival_slots, rounded
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

RESOURCES = ["gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_mbps"]
STORAGE_GB = 1000  # the paper gives demands for storage and no capacity; this never binds
WORKER_TYPES = [  # EC2 P2 and G3: GPUs, vCPUs, GB, and a NIC within the paper's 20-50 Gbps
    (1, 4, 61, 20000), (8, 32, 488, 30000), (16, 64, 732, 50000),
    (1, 16, 122, 20000), (2, 32, 244, 30000), (4, 64, 488, 40000),
]  # fmt: skip
PS_TYPES = [  # EC2 C4: vCPUs, GB, NIC
    (2, 3.75, 20000), (4, 7.5, 25000), (8, 15, 30000), (16, 30, 40000), (36, 60, 50000),
]  # fmt: skip
TESTBED_MODELS_MB = [244, 102, 178, 241, 531, 45]
"""Parameters of AlexNet, ResNet-50, -101, -152, VGG-11 and Inception-BN in 32-bit floats."""
MOST_TRIES = 200_000  # draws of one job before the settings are called impossible
DECAYS = [(0.0, 0.0), (0.01, 1.0), (4.0, 6.0)]
"""Ranges of gamma_2 of time-insensitive, -sensitive and -critical jobs."""

PER_GPU = {"gpu": 1, "cpu": 4, "memory_gb": 61, "storage_gb": 125, "bandwidth_mbps": 5000}
"""What an EC2 P2 server has for each GPU: the demand of a worker of a trace's job."""
PS = {"cpu": 4, "memory_gb": 6, "storage_gb": 5, "bandwidth_mbps": 10000}
"""A PS serves two workers; five fit on a PS server, EC2 C4."""
PS_SERVER = {"cpu": 36, "memory_gb": 60, "storage_gb": 1000, "bandwidth_mbps": 50000}
WORKERS_PER_PS_SERVER = 10
TRACE_SLOTS = 96
"""About how many slots an instance has, if neither their number nor their length is given."""
STRICT_DECAY = 6


class OasisSettings(ranges.Settings):
    """Settings of `generate`; the defaults are the preset ``paper``."""

    jobs: PositiveCount = 100
    horizon: PositiveCount = 100
    servers: PositiveCount = 50  # worker servers, and as many PS servers
    max_duration: PositiveCount = 15  # slots with all workers; the knob of contention
    slot_seconds: Positive = 3600
    priority: ranges.Positives = (1, 100)  # gamma_1
    shares: tuple[NonNegative, NonNegative, NonNegative] = (0.10, 0.55, 0.35)  # as in `DECAYS`
    exact_shares: StrictBool = False  # so many jobs of each class, in random order

    @field_validator("shares")
    @classmethod
    def _check_shares(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if not sum(shares) > 0:
            raise ValueError("must not all be 0")
        return shares


PRESETS: dict[str, Draft] = {
    "small": OasisSettings.values(jobs=8, horizon=8, servers=5, max_duration=4),
    "paper": OasisSettings.values(),
    "testbed": OasisSettings.values(jobs=12, horizon=10, servers=7, slot_seconds=1200),
}


def generate(preset: str = "small", seed: int = 0, **settings: object) -> OasisInstance:
    """Generate an instance from a preset, a seed and settings of `OasisSettings`.

    ``paper``: Section V-A at T = 100 with 100 jobs on 50 + 50 servers; ``small``: the same draws, 8
    jobs on 5 + 5 servers over 8 slots; ``testbed``: Section V-B, whose cluster (7 + 2) is fixed.
    """
    s = OasisSettings.of(PRESETS[preset], settings)
    testbed = preset == "testbed"
    workers, ps = _testbed_servers() if testbed else _draw_servers(Draws(seed, "servers"), s)
    data: Draft = {
        "name": f"oasis-{preset}-t{s.horizon}-j{s.jobs}-h{s.servers}-d{s.max_duration}-s{seed}",
        "horizon": s.horizon,
        "slot_seconds": s.slot_seconds,
        "provenance": {"generator": "oasis", "preset": preset, "seed": seed, "settings": settings},
        "resources": RESOURCES,
        "bandwidth_resource": RESOURCES[-1],
        "worker_servers": workers,
        "ps_servers": ps,
    }
    cluster = OasisInstance.parse(data)
    tail = 1 if testbed else min(s.max_duration, max(1, 2 * s.horizon // 5))
    last = max(1, s.horizon - tail)
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, last)
    jobs = []
    for index, job_settings in enumerate(_classes(Draws(seed, "classes"), s)):
        draws = Draws(seed, "job", str(index))
        jobs.append(
            _first_possible(f"j{index + 1}", draws, testbed, cluster, arrivals[index], job_settings)
        )
    return OasisInstance.parse({**data, "jobs": jobs})


def _classes(draws: Draws, s: OasisSettings) -> list[OasisSettings]:
    """Every job's settings: its shares are of one class where the numbers are exact."""
    if not s.exact_shares:
        return [s] * s.jobs
    ends = [round(s.jobs * sum(s.shares[:kind]) / sum(s.shares)) for kind in range(4)]
    pool = [kind for kind in range(3) for _ in range(ends[kind], ends[kind + 1])]
    classes = [pool.pop(draws.integer(0, len(pool) - 1)) for _ in range(s.jobs)]
    alone = np.eye(3).tolist()
    return [s.model_copy(update={"shares": tuple(alone[kind_of_job])}) for kind_of_job in classes]


def _server_data(name: str, gpu: int, cpu: int, memory: float, storage: float, mbps: int) -> Draft:
    amounts = dict(zip(RESOURCES, (gpu, cpu, memory, storage, mbps), strict=True))
    return {"name": name, "capacity": {r: n for r, n in amounts.items() if r != "gpu" or n}}


def _draw_servers(draws: Draws, s: OasisSettings) -> tuple[list[Draft], list[Draft]]:
    workers, servers = [], []
    for index in range(1, s.servers + 1):
        gpu, cpu, memory, mbps = draws.choice(WORKER_TYPES)
        workers.append(_server_data(f"w{index}", gpu, cpu, memory, STORAGE_GB, mbps))
    for index in range(1, s.servers + 1):
        ps_cpu, ps_memory, mbps = draws.choice(PS_TYPES)
        servers.append(_server_data(f"p{index}", 0, ps_cpu, ps_memory, STORAGE_GB, mbps))
    return workers, servers


def _testbed_servers() -> tuple[list[Draft], list[Draft]]:
    """Section V-B: 7 servers for workers, 4 of them with a GPU, and 2 for PSs; 10 GbE."""
    workers = [_server_data(f"w{i + 1}", int(i < 4), 32, 80, 600, 10000) for i in range(7)]
    return workers, [_server_data(f"p{i + 1}", 0, 8, 32, 1500, 10000) for i in range(2)]


def _first_possible(
    name: str, draws: Draws, testbed: bool, cluster: OasisInstance, arrival: int, s: OasisSettings
) -> Draft:
    """Draw until a job can finish alone on the empty cluster."""
    slots = cluster.horizon - arrival
    for _ in range(MOST_TRIES):
        job = (
            _testbed_job(draws, s)
            if testbed
            else _elastic_job(draws, min(s.max_duration, slots), s)
        )
        if job is not None:
            job |= {"name": name, "arrival": arrival}
            record = OasisJob.model_validate(job)
            if cluster.most_workers(record) * slots >= cluster.work_of(record):
                return job
    rule = f"no job that arrives in slot {arrival} can finish under these settings"
    raise InputError("set.max_duration", s.max_duration, rule)


def _elastic_job(draws: Draws, longest: int, s: OasisSettings) -> Draft | None:
    """Section V-A; None if the job is too long."""
    epochs, minibatches = draws.integer(50, 200), draws.integer(10, 100)
    minibatch_slots = draws.log_uniform(0.001, 0.1)
    gradient, b = draws.uniform(30.0, 575.0), draws.integer(100, 5000)
    per_batch = minibatch_slots + 2 * gradient * 8 / b / s.slot_seconds
    if epochs * minibatches * per_batch > longest:
        return None
    return {
        "epochs": epochs,
        "chunks": draws.integer(5, 100),
        "minibatches": minibatches,
        "minibatch_slots": minibatch_slots,
        "gradient_mb": gradient,
        **_demands(draws, b, (5000, 20000), gpus=4, cpus=10, memory=32),
        "utility": _draw_utility(draws, s, draws.uniform(1, 15)),
    }


def _testbed_job(draws: Draws, s: OasisSettings) -> Draft | None:
    """Section V-B: 200 images in chunks of 20 or 30, 2-6 slots of 20 minutes at 1-4 workers."""
    images = draws.choice([20, 30])
    epochs, chunks, minibatches = draws.integer(4, 30), math.ceil(200 / images), images // 10
    b = draws.integer(1000, 3000)
    gradient = draws.choice(TESTBED_MODELS_MB)
    work = draws.uniform(2, 6) * draws.integer(1, 4)
    sending = 2 * gradient * 8 / b / s.slot_seconds
    minibatch_slots = work / (epochs * chunks * minibatches) - sending
    if minibatch_slots <= 0:
        return None
    return {
        "epochs": epochs,
        "chunks": chunks,
        "minibatches": minibatches,
        "minibatch_slots": rounded(minibatch_slots),
        "gradient_mb": gradient,
        **_demands(draws, b, (1000, 3000), gpus=1, cpus=5, memory=10),
        "utility": _draw_utility(draws, s, draws.uniform(1, 6)),
    }


def _demands(
    draws: Draws, b: int, ps_mbps: tuple[int, int], *, gpus: int, cpus: int, memory: int
) -> Draft:
    """Demands of a worker that sends b Mbps, and of a PS that takes no less; up to so much."""

    def others(mbps: int) -> Draft:
        amounts = draws.integer(1, cpus), draws.integer(2, memory), draws.integer(5, 10), mbps
        return dict(zip(RESOURCES[1:], amounts, strict=True))

    worker = {"gpu": draws.integer(0, gpus), **others(b)}
    return {"worker": worker, "ps": others(max(b, draws.integer(*ps_mbps)))}


def _draw_utility(draws: Draws, s: OasisSettings, target: float) -> Draft:
    decay = draws.choice(DECAYS, s.shares)
    return _sigmoid(draws.uniform(*s.priority), draws.uniform(*decay), target)


def _sigmoid(priority: float, decay: float, target: float) -> Draft:
    values = {"priority": priority, "decay": decay, "target": target}
    return {"kind": "sigmoid", **{name: rounded(value) for name, value in values.items()}}


class TraceSettings(ranges.RowSettings):
    """Settings of `from_trace`.

    By default the horizon is the last arrival plus what nine tenths of the jobs need with all their
    workers, and slots are the whole minutes with which it has about `TRACE_SLOTS`.
    """

    slot_seconds: Positive | None = None
    horizon: PositiveCount | None = None
    elasticity: PositiveCount = 2  # most workers at once, as a multiple of the row's GPUs
    load: Positive = 2.0  # offered GPU load that sets the servers where `servers` does not
    gpus_per_server: PositiveCount = 4  # the other resources are in P2's proportion
    servers: PositiveCount | None = None  # of workers; PS servers follow, one for 10 workers


def from_trace(table: TraceTable, *, jobs: int = 60, seed: int = 0, **settings: object) -> Instance:
    """Make an instance from rows of a trace, with the settings of `TraceSettings`."""
    s = TraceSettings.of({}, settings)
    rows = ranges.take_rows(table, jobs, s)
    shortest = sorted(row["duration_seconds"] / s.elasticity for row in rows)
    most_need = shortest[(9 * (jobs - 1)) // 10]
    minutes = math.ceil((rows[-1]["waited"] + most_need) / 60 / TRACE_SLOTS)
    slot_seconds = s.slot_seconds or 60.0 * max(1, minutes)
    arrivals = ranges.arrivals_of(rows, slot_seconds)
    horizon = s.horizon or arrivals[-1] + math.ceil(most_need / slot_seconds)
    if horizon < arrivals[-1]:
        rule = f"must reach the last arrival, slot {arrivals[-1]}"
        raise InputError("set.horizon", horizon, rule)
    records, offered, too_long = [], [], []
    for index, (row, arrival) in enumerate(zip(rows, arrivals, strict=True)):
        most = s.elasticity * int(row["gpus"])
        work = row["duration_seconds"] * row["gpus"] / slot_seconds
        if work <= most * (horizon - arrival + 1):
            offered.append(work)
        else:
            too_long.append(str(row["job"]))
        records.append({
            "name": f"j{index + 1}", "arrival": arrival, "epochs": 1, "chunks": most,
            "minibatches": 1, "minibatch_slots": rounded(work / most), "gradient_mb": 0,
            "worker": PER_GPU, "ps": PS,
            "utility": _trace_utility(row, Draws(seed, "utility", str(index)), slot_seconds),
        })  # fmt: skip
    each = s.gpus_per_server
    servers = s.servers or max(1, math.floor(math.fsum(offered) / (s.load * horizon * each)))
    ps_servers = max(1, math.ceil(servers * each / WORKERS_PER_PS_SERVER))
    worker_server = {key: value * each for key, value in PER_GPU.items()}
    data = {
        "name": f"oasis-{table.format}-{jobs}-{int(s.start)}-s{seed}",
        "horizon": horizon,
        "slot_seconds": slot_seconds,
        "resources": RESOURCES,
        "bandwidth_resource": RESOURCES[-1],
        "worker_servers": [
            {"name": f"w{h + 1}", "capacity": worker_server} for h in range(servers)
        ],
        "ps_servers": [{"name": f"p{k + 1}", "capacity": PS_SERVER} for k in range(ps_servers)],
        "jobs": records,
    }
    notes = {"too_long_for_the_horizon": too_long}
    return ranges.traced(OasisInstance, data, rows, table, seed, s, **notes)


def _trace_utility(row: dict[str, Any], draws: Draws, slot_seconds: float) -> Draft:
    """Values of the trace as a sigmoid, or Section V-A's classes around the row's duration."""
    deadlines = [float(second) / slot_seconds for second in row["deadlines_seconds"]]
    values = [float(value) for value in row["values"]]
    if row["value_kind"] == "best-effort":
        return _sigmoid(2 * values[0], 0, 0)
    if row["value_kind"] == "strict":
        return _sigmoid(values[0], STRICT_DECAY, deadlines[0] + 0.5)
    if row["value_kind"] == "soft":
        last = deadlines[-1]
        shape = [rounded(deadline / last) for deadline in deadlines]
        priority, decay, target = fit_steps(shape, values)
        return _sigmoid(priority, decay / last, target * last)
    decay_range = draws.choice(DECAYS, OasisSettings().shares)
    target = row["duration_seconds"] / slot_seconds * draws.uniform(0.5, 1.5)
    return _sigmoid(draws.uniform(1, 100), draws.uniform(*decay_range), target)


def fit_steps(deadlines: list[float], values: list[float]) -> tuple[float, float, float]:
    """Fit a sigmoid (priority, decay, target) to a falling staircase, at the steps' middles.

    Least squares; ends of the steps ascend to 1. Decay and target are searched on a fixed grid and
    the priority follows in closed form, so that the result does not hang on an optimiser's last
    digits.
    """
    middles = (np.array([0.0, *deadlines[:-1]]) + np.array(deadlines)) / 2
    steps = np.array(values)
    decays = np.array([rounded(float(d)) for d in np.geomspace(0.5, 100.0, 120)])
    targets = np.linspace(0.0, 1.5, 151)
    exponent = decays[:, None, None] * (middles - targets[None, :, None])
    shape = 1.0 / (1.0 + np.exp(exponent))
    priority = (shape * steps).sum(axis=2) / (shape**2).sum(axis=2)
    error = ((priority[:, :, None] * shape - steps) ** 2).sum(axis=2)
    best = np.unravel_index(int(np.argmin(np.round(error, 9))), error.shape)
    return rounded(float(priority[best])), float(decays[best[0]]), rounded(float(targets[best[1]]))


GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    assumptions={},
    enlargement=400,  # demands are small against capacities
    from_trace=from_trace,
    trace_settings=TraceSettings,
    suites=suites_of(
        generate,
        # Two instances at each of four cluster sizes (levels of contention).
        small=[
            ("small", seed, {"servers": servers}) for servers in (3, 5, 8, 14) for seed in (0, 1)
        ],
        # The paper's ratio experiment.
        contention=[
            (
                "paper",
                seed,
                {"jobs": 10, "horizon": 10, "servers": servers, "max_duration": duration},
            )
            for servers in (5, 10, 25, 50)
            for duration in (2, 4, 10)
            for seed in (0, 1)
        ],
    ),
)
