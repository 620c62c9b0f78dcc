"""Random edgecloud instances with the settings of Section V, and the mapping from a trace.

Settings that the paper states are its own; those it leaves open (servers' sizes follow its trace's
two machine shapes; arrivals; epochs and minibatch times in the testbed's units) are settings too.
A slot is one hour. One number fixes a setting, two numbers are a range drawn uniformly.
"""

from __future__ import annotations

from typing import Any

from hindsched.errors import InputError
from hindsched.instances.base import Count, Instance, NonNegative, PositiveCount
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.instances.generators.ranges import Choices, Span, check_count, check_positive
from hindsched.instances.generators.registry import Suite
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.generators.settings import (
    Settings,
    draw_integer,
    envelope,
)
from hindsched.instances.traces.origin import keep_origin
from hindsched.json_types import Draft

MODELS: dict[str, tuple[int, int]] = {
    # Table II: data chunks, mini-batches a chunk
    "resnet-50": (27, 58),
    "resnet-101": (27, 58),
    "googlenet": (115, 58),
    "lenet": (115, 58),
    "alexnet": (60, 58),
    "inception-bn": (60, 58),
}
SECONDS = 3600
"""Length of a slot (Section V-A)."""

PAPER: Draft = {
    # stated in Section V-A
    "servers": 100,
    "jobs": 300,
    "worker_types": 8,
    "ps_types": 8,
    "epochs": (20, 60),
    "minibatch_hours": (0.001, 0.05),
    "update_ms": (10, 100),
    "gradient_mb": (30, 575),
    "bandwidth_mbps": (100, 5120),
    "edge_upload": (1, 4),
    "cloud_upload": (10, 15),
    # not stated
    "horizon": 100,
    "burst": 0.5,
    "workers": [2, 8],
    "ps": (4, 24),
    "chunks": None,
    "minibatches": None,
    "requested_workers": [1, 1, 1, 1, 2, 4, 8],
    "minibatch_scale": 1.0,
    "cloud_workers": None,
    "storage_gb": None,
    "chunk_gb": None,
}
"""Preset ``paper``, the simulator. ``workers`` and ``requested_workers`` are lists drawn from:
the shapes of Philly's machines, and its jobs' GPUs. ``chunks`` and ``minibatches`` None means
Table II; ``cloud_workers`` None means without limit, 0 means no cloud."""

TESTBED: Draft = {
    **PAPER,
    "servers": 8,
    "jobs": 30,
    "worker_types": 2,
    "ps_types": 1,
    "workers": [2],
    "ps": (6, 6),
    "minibatch_scale": 0.05,
    "horizon": 48,
}
"""Preset ``testbed``: eight edge machines and the cloud, two worker types (one with a GPU, one
without: a worker of each a machine), one PS type, Table II. Its minibatch times are not stated;
``minibatch_scale`` makes jobs last hours, as a small part of a data set does."""

SMALL: Draft = {
    **PAPER,
    "servers": 3,
    "jobs": 6,
    "worker_types": 2,
    "ps_types": 1,
    "workers": [1, 2],
    "ps": (1, 2),
    "chunks": (1, 4),
    "minibatches": 1,
    "epochs": 1,
    "minibatch_hours": (1.0, 4.0),
    "edge_upload": (1, 3),
    "cloud_upload": (6, 9),
    "horizon": 10,
}
"""Preset ``small``: within reach of an exact optimum."""

PRESETS: dict[str, Draft] = {"paper": PAPER, "testbed": TESTBED, "small": SMALL}


class EdgecloudSettings(Settings):
    """The settings of `PAPER`, and what each may be."""

    servers: Count
    jobs: Count
    horizon: PositiveCount
    worker_types: PositiveCount
    ps_types: PositiveCount
    epochs: Span
    minibatch_hours: Span
    update_ms: Span
    gradient_mb: Span
    bandwidth_mbps: Span
    edge_upload: Span
    cloud_upload: Span
    burst: NonNegative
    workers: Choices
    ps: Span
    chunks: Span | None
    minibatches: Span | None
    requested_workers: Choices
    minibatch_scale: NonNegative
    cloud_workers: Count | None
    storage_gb: Span | None
    chunk_gb: Span | None


def generate(preset: str = "small", seed: int = 0, **settings: object) -> Instance:
    """Generate a random instance.

    Parameters
    ----------
    preset : str
        ``paper``, ``testbed`` or ``small``.
    seed : int
        Seed of all draws.
    **settings
        Settings in place of the preset's, see `PAPER`.

    Raises
    ------
    InputError
        For an unknown preset or setting, or a value that breaks a rule.
    """
    values = EdgecloudSettings.of("edgecloud", PRESETS, preset, settings)
    arrivals = arrival_slots(
        Draws(seed, "arrivals"), values.jobs, values.horizon, burst=values.burst
    )
    facts: list[Draft] = [{} for _ in arrivals]
    return _build(preset, seed, values, arrivals, facts, {})


def from_trace(
    table: Any,
    *,
    jobs: int = 300,
    seed: int = 0,
    preset: str = "paper",
    slot_hours: float = 1.0,
    slot_seconds: float | None = None,
    **settings: object,
) -> Instance:
    """Make an instance whose jobs arrive as in a cluster trace.

    Submission times become arrival slots and GPUs become requested workers, as in Section V-A;
    each job's worker type is drawn, and so is everything else that a trace does not say, as in
    `generate`.

    Parameters
    ----------
    table : TraceTable
        Jobs of a trace, from ``hindsched.instances.traces``; the first `jobs` of them are used.
    jobs : int
        How many jobs.
    seed : int
        Seed of the other draws.
    preset : str
        Preset of the other settings.
    slot_hours : float
        Hours of the trace that one slot stands for; above 1 the arrivals come closer together.
    slot_seconds : float, optional
        The same in seconds, in place of `slot_hours`, and the length of the instance's slots.
    **settings
        Settings in place of the preset's; the horizon follows from the arrivals.

    Raises
    ------
    InputError
        If the trace has too few jobs, or for an unknown setting.
    """
    check_count("jobs", jobs, 0)
    if len(table) < jobs:
        raise InputError("jobs", jobs, f"the trace has only {len(table)} jobs")
    check_positive("slot_hours", slot_hours)
    if slot_seconds is not None:
        check_positive("slot_seconds", slot_seconds)
        slot_hours = slot_seconds / SECONDS
    length = SECONDS if slot_seconds is None else slot_seconds
    rows = table.rows.head(jobs)
    submitted = [float(seconds) for seconds in rows["submit_seconds"]]
    first = min(submitted, default=0.0)
    slots = [1 + int((seconds - first) / (slot_hours * SECONDS)) for seconds in submitted]
    horizon = max(slots, default=1)
    given = {**settings, "jobs": jobs, "horizon": horizon}
    values = EdgecloudSettings.of("edgecloud", PRESETS, preset, given)
    facts = [{"requested_workers": max(1, int(gpus))} for gpus in rows["gpus"]]
    return keep_origin(
        _build(preset, seed, values, slots, facts, table.provenance(), length),
        rows,
        took=(
            f"submission: arrival, {slot_hours * SECONDS:g} seconds of the trace a slot",
            "GPUs: requested workers, as far as the chunks reach",
        ),
        made_up=(
            "work: chunks, mini-batches, epochs and speeds, drawn; no duration is used",
            f"{values.servers} servers with workers and PSs, drawn",
            "worker and PS type, gradient, bandwidth and upload times of each job, drawn",
        ),
    )


def _build(
    preset: str,
    seed: int,
    values: EdgecloudSettings,
    arrivals: list[int],
    facts: list[Draft],
    origin: Draft,
    slot_seconds: float = SECONDS,
) -> Instance:
    servers = _servers(preset, seed, values)
    jobs = [
        _job(seed, values, index, slot, servers, extra)
        for index, (slot, extra) in enumerate(zip(arrivals, facts, strict=True))
    ]
    cloud: Draft = {"name": "cloud"}
    if values.cloud_workers is not None:
        kinds = [f"t{k + 1}" for k in range(values.worker_types)]
        cloud["workers"] = dict.fromkeys(kinds, values.cloud_workers)
    size = f"h{len(servers)}-j{len(jobs)}"
    shared = envelope("edgecloud", preset, seed, values.horizon, values, size, slot_seconds, origin)
    return EdgecloudInstance.parse({**shared, "servers": servers, "cloud": cloud, "jobs": jobs})


def _servers(preset: str, seed: int, values: EdgecloudSettings) -> list[Draft]:
    types, ps_types = values.worker_types, values.ps_types
    servers: list[Draft] = []
    for index in range(values.servers):
        draws = Draws(seed, f"server {index + 1}")
        count = draws.choice(values.workers)
        if preset == "testbed":
            workers = [f"t{1 + number % types}" for number in range(count)]
        else:
            workers = [f"t{draws.integer(1, types)}" for _ in range(count)]
        ps = [f"p{draws.integer(1, ps_types)}" for _ in range(draw_integer(draws, values.ps))]
        server: Draft = {"name": f"s{index + 1}", "workers": workers, "ps": ps}
        if values.storage_gb is not None:
            server["storage_gb"] = draws.uniform(*values.storage_gb)
        servers.append(server)
    if values.cloud_workers == 0:
        _cover_types(servers, types)
    return servers


def _cover_types(servers: list[Draft], types: int) -> None:
    """Without a cloud every type needs a worker: the first workers take the missing types."""
    present = {kind for server in servers for kind in server["workers"]}
    missing = [f"t{k + 1}" for k in range(types) if f"t{k + 1}" not in present]
    for server in servers:
        for number, kind in enumerate(server["workers"]):
            many = sum(s["workers"].count(kind) for s in servers) > 1
            if missing and many:
                server["workers"][number] = missing.pop()
    if missing:
        raise InputError("set.worker_types", types, "must not exceed the edge's workers: no cloud")


def _job(
    seed: int,
    values: EdgecloudSettings,
    index: int,
    arrival: int,
    servers: list[Draft],
    facts: Draft,
) -> Draft:
    name = f"j{index + 1}"
    draws = Draws(seed, f"job {name}")
    chunks, minibatches = draws.choice(list(MODELS.values()))
    if values.chunks is not None:
        chunks = max(1, draw_integer(draws, values.chunks))
    if values.minibatches is not None:
        minibatches = max(1, draw_integer(draws, values.minibatches))
    hours = draws.uniform(*values.minibatch_hours) * values.minibatch_scale
    upload = {server["name"]: draw_integer(draws, values.edge_upload) for server in servers}
    upload["cloud"] = draw_integer(draws, values.cloud_upload)
    job: Draft = {
        "name": name,
        "arrival": arrival,
        "epochs": max(1, draw_integer(draws, values.epochs)),
        "chunks": chunks,
        "minibatches": minibatches,
        "minibatch_slots": rounded(hours),
        "update_slots": rounded(draws.uniform(*values.update_ms) / 1000 / SECONDS),
        "gradient_mb": draws.uniform(*values.gradient_mb),
        "bandwidth_mbps": max(1.0, draws.uniform(*values.bandwidth_mbps)),
        "worker_type": f"t{draws.integer(1, values.worker_types)}",
        "ps_type": f"p{draws.integer(1, values.ps_types)}",
    }
    requested = facts.get("requested_workers") or draws.choice(values.requested_workers)
    job["requested_workers"] = min(requested, chunks)
    if values.chunk_gb is not None:
        job["chunk_gb"] = draws.uniform(*values.chunk_gb)
    job["upload_slots"] = upload
    return job


def _small() -> list[Instance]:
    """Instances whose optimum is proven within seconds."""
    return [generate("small", seed) for seed in range(5)]


def _variants() -> list[Instance]:
    """A finite cloud, no cloud, limited storage: ``all-cloud`` cannot run on the first two."""
    return [
        generate("small", 3, cloud_workers=2),
        generate("small", 4, cloud_workers=0, jobs=5),
        generate("small", 5, storage_gb=8, chunk_gb=(2, 4)),
    ]


def _testbed() -> list[Instance]:
    return [generate("testbed", seed) for seed in range(3)]


def _paper() -> list[Instance]:
    return [
        generate("paper", 0),
        generate("paper", 1, minibatch_scale=0.05),
        generate("paper", 2, minibatch_scale=0.05, cloud_workers=0),
    ]


SUITES: dict[str, Suite] = {
    "small": _small,
    "variants": _variants,
    "testbed": _testbed,
    "paper": _paper,
}
