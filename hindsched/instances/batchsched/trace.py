"""Instances of batchsched from cluster traces, with speeds that Gavel's authors measured."""

from __future__ import annotations

import math
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.generators.ranges import check_count
from hindsched.instances.generators.sampling import Draws, rounded
from hindsched.instances.traces.origin import keep_origin
from hindsched.json_types import Draft

SHORT_NAMES = {PARAMETER_SERVER: "ps", RING_ALLREDUCE: "rar"}
GAVEL_MODELS = (
    # model, gradient in MB (parameters x 4 bytes), mini-batches a second on V100, P100, K80
    ("ResNet-18, batch size 64", 46.8, (24.093, 22.305, 7.052)),
    ("ResNet-50, batch size 64", 102.2, (4.395, 2.619, 0.619)),
    ("ResNet-50, batch size 128", 102.2, (2.497, 1.584, 0.347)),
    ("Transformer, batch size 64", 260.0, (8.618, 5.092, 1.752)),
    ("LM, batch size 20", 115.0, (64.742, 58.173, 17.142)),
)
"""Isolated throughputs on one GPU that Gavel's authors measured (OSDI 2020; MIT)."""
GPU_TYPES = ("v100", "p100", "k80")
TRACE_EPOCHS = 10
MOST_MINIBATCHES = 1_000_000
"""Of a chunk in an epoch: a job of many weeks has more epochs instead."""


def from_trace(
    table: Any,
    *,
    jobs: int = 100,
    seed: int = 0,
    architecture: str = PARAMETER_SERVER,
    servers: int = 12,
    gpus_per_server: int = 8,
    slot_seconds: int = 3600,
) -> Instance:
    """Make an instance from a cluster trace.

    A job that held g GPUs for s seconds trains the mini-batches that g V100s of its model do in
    that time without communicating; it has 2 g chunks (at least 2), so it may use up to twice its
    GPUs. Its model, and with it the measured speeds on V100, P100 and K80 and the gradient's size,
    is drawn by (seed, job), as is its weight from 1..10. Its requested workers are g. Servers hold
    one GPU type each, in turn.

    Parameters
    ----------
    table : TraceTable
        Jobs of a trace; the first `jobs` of them are used.
    jobs : int
        How many jobs.
    seed : int
        Seed of the draws.
    architecture : str
        ``parameter-server`` or ``ring-allreduce``.
    servers, gpus_per_server : int
        Number and size of the servers: 6 CPUs a GPU, 100 Gbps.
    slot_seconds : int
        Length of a slot.

    Raises
    ------
    InputError
        If the trace has too few jobs, or for a setting out of its range.
    """
    if len(table) < jobs or jobs < 1:
        raise InputError("jobs", jobs, f"must be at least 1; the trace has {len(table)} jobs")
    if architecture not in SHORT_NAMES:
        raise InputError(
            "set.architecture", architecture, f"must be one of {', '.join(SHORT_NAMES)}"
        )
    least = {"servers": 3, "gpus_per_server": 1, "slot_seconds": 1}
    given = {"servers": servers, "gpus_per_server": gpus_per_server, "slot_seconds": slot_seconds}
    for key, value in given.items():
        check_count(key, value, least[key])
    rows = table.rows.head(jobs)
    first = float(rows["submit_seconds"].min())
    records = []
    for number, (_, row) in enumerate(rows.iterrows(), start=1):
        draws = Draws(seed, "trace", str(row["job"]))
        _, gradient, speeds = draws.choice(GAVEL_MODELS)
        gpus = max(1, int(row["gpus"]))
        chunks = max(2, 2 * gpus)
        total = float(row["duration_seconds"]) * gpus * speeds[0]
        epochs = max(TRACE_EPOCHS, math.ceil(total / (chunks * MOST_MINIBATCHES)))
        record: Draft = {
            "name": f"j{number}",
            "arrival": 1 + int((float(row["submit_seconds"]) - first) / slot_seconds),
            "weight": draws.integer(1, 10),
            "epochs": epochs,
            "chunks": chunks,
            "minibatches": max(1, math.floor(total / (epochs * chunks) + 0.5)),
            "minibatch_slots": [rounded(1.0 / speed / slot_seconds) for speed in speeds],
            "gradient_mb": gradient,
            "requested_workers": gpus,
        }
        update = rounded(0.05 / slot_seconds)
        if architecture == PARAMETER_SERVER:
            record["update_slots"] = [update]
        else:
            record["reduce_slots"] = update
        records.append(record)
    data: Draft = {
        "name": f"batchsched-{table.format}-{SHORT_NAMES[architecture]}-j{jobs}-s{seed}",
        "horizon": max(record["arrival"] for record in records),
        "slot_seconds": slot_seconds,
        "architecture": architecture,
        "resources": [*GPU_TYPES, "cpu", "bandwidth_mbps"],
        "bandwidth_resource": "bandwidth_mbps",
        "servers": [
            {
                "name": f"s{h + 1}",
                "capacity": {
                    GPU_TYPES[h % 3]: gpus_per_server,
                    "cpu": 6 * gpus_per_server,
                    "bandwidth_mbps": 100_000,
                },
            }
            for h in range(servers)
        ],
        "worker_types": [
            {"name": gpu, "demand": {gpu: 1, "cpu": 4, "bandwidth_mbps": 5000}} for gpu in GPU_TYPES
        ],
        "jobs": records,
        "provenance": {"generator": "batchsched", "seed": seed, **table.provenance()},
    }
    if architecture == PARAMETER_SERVER:
        data["ps_types"] = [{"name": "ps", "demand": {"cpu": 4, "bandwidth_mbps": 20_000}}]
    return keep_origin(
        BatchschedInstance.parse(data),
        rows,
        took=(
            "submission: arrival",
            "duration x GPUs: work at a V100's speed",
            "GPUs: requested workers, and half the most at once",
        ),
        made_up=(
            "model of each job, and with it measured speeds and gradient, drawn",
            "weights, drawn from 1 to 10",
            f"{servers} servers of {gpus_per_server} GPUs, types in turn",
            "demands and bandwidths of workers and PSs",
        ),
    )
