"""Tiny batchsched instances: two servers, two resources, few slots; both architectures."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)

SLOT_SECONDS = 8
"""Then ``gradient_mb / net`` is the transfer time in slots."""


def instance(
    architecture: str,
    servers: list[tuple[int, int]],
    worker_types: list[tuple[int, int]],
    ps_types: list[int],
    jobs: list[dict[str, Any]],
    horizon: int = 4,
    name: str = "tiny",
) -> BatchschedInstance:
    """Servers and worker types as (gpu, net), PS types as net; jobs are j0, j1, ..."""
    data: dict[str, Any] = {
        "name": name,
        "horizon": horizon,
        "slot_seconds": SLOT_SECONDS,
        "architecture": architecture,
        "resources": ["gpu", "net"],
        "bandwidth_resource": "net",
        "servers": [
            {"name": f"s{h}", "capacity": {"gpu": gpu, "net": net}}
            for h, (gpu, net) in enumerate(servers)
        ],
        "worker_types": [
            {"name": f"w{m}", "demand": {"gpu": gpu, "net": net}}
            for m, (gpu, net) in enumerate(worker_types)
        ],
        "jobs": [{"name": f"j{j}", **job} for j, job in enumerate(jobs)],
    }
    if architecture == PARAMETER_SERVER:
        data["ps_types"] = [
            {"name": f"p{p}", "demand": {"net": net}} for p, net in enumerate(ps_types)
        ]
    return BatchschedInstance.parse(data)


def known_b(architecture: str) -> BatchschedInstance:
    """B1 (parameter servers) and B2 (Ring-AllReduce) of the specification."""
    ps = architecture == PARAMETER_SERVER
    rows = [(1, 3, 3, 2), (1, 2, 2, 1), (2, 5, 2, 2)]
    jobs = []
    for arrival, weight, chunks, minibatches in rows:
        job = {
            "arrival": arrival, "weight": weight, "epochs": 1, "chunks": chunks,
            "minibatches": minibatches, "gradient_mb": 0.5,
        }  # fmt: skip
        if ps:
            job |= {"minibatch_slots": [0.75], "update_slots": [0.25]}
        else:
            job |= {"minibatch_slots": [0.5], "reduce_slots": 0.5}
        jobs.append(job)
    return instance(architecture, [(2, 3 if ps else 2)] * 2, [(1, 1)], [1], jobs, horizon=2)


@st.composite
def jobs_of(
    draw: st.DrawFn, architecture: str, num_worker_types: int, num_ps_types: int, horizon: int
) -> dict[str, Any]:
    """A job of one to eight mini-batches."""
    times = st.sampled_from([0.25, 0.5, 0.75, 1.0])
    more = st.sampled_from([0, 0.25, 0.5])
    job: dict[str, Any] = {
        "arrival": draw(st.integers(1, horizon)),
        "weight": draw(st.sampled_from([1, 3, 9, 20])),
        "epochs": draw(st.integers(1, 2)),
        "chunks": draw(st.integers(1, 3)),
        "minibatches": draw(st.integers(1, 2)),
        "minibatch_slots": [draw(times) for _ in range(num_worker_types)],
        "gradient_mb": draw(more),
    }
    if architecture == PARAMETER_SERVER:
        job["update_slots"] = [draw(more) for _ in range(num_ps_types)]
    else:
        job["reduce_slots"] = draw(more)
    return job


@st.composite
def tiny_instances(draw: st.DrawFn, num_jobs: int = 3, horizon: int = 4) -> BatchschedInstance:
    """Instances of `num_jobs` jobs that a brute force over raw decisions can settle."""
    architecture = draw(st.sampled_from([PARAMETER_SERVER, RING_ALLREDUCE]))
    worker_types = draw(
        st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=2)
    )
    ps_types = draw(st.lists(st.integers(1, 2), min_size=1, max_size=2))
    servers = draw(
        st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3)), min_size=2, max_size=2)
    )
    demands = [*worker_types, *((0, net) for net in ps_types)]
    assume(all(any(g >= d[0] and n >= d[1] for g, n in servers) for d in demands))
    jobs = [
        draw(jobs_of(architecture, len(worker_types), len(ps_types), horizon))
        for _ in range(num_jobs)
    ]
    if draw(st.booleans()):  # a light, long job is alone at first: what to do is hard to know
        jobs[0] |= {"arrival": 1, "weight": 1, "epochs": 2}
        for job in jobs[1:]:
            job["arrival"] = max(2, job["arrival"])
    try:
        return instance(architecture, servers, worker_types, ps_types, jobs, horizon)
    except ValueError:
        assume(False)
        raise
