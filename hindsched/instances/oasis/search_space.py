"""Spaces of oasis instances that are small enough for exact optima."""

from __future__ import annotations

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

JOB: Draft = {
    "name": "j1", "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
    "gradient_mb": 0, "worker": {"gpu": 1, "mbps": 1}, "ps": {"cpu": 1, "mbps": 1},
    "utility": {"kind": "sigmoid", "priority": 1, "decay": 0, "target": 1},
}  # fmt: skip
BASE: Draft = {
    "format": "hindsched/1", "family": "oasis", "horizon": 6, "slot_seconds": 3600,
    "resources": ["gpu", "cpu", "mbps"], "bandwidth_resource": "mbps",
    "worker_servers": [{"name": "w1", "capacity": {"gpu": 2, "mbps": 100}}],
    "ps_servers": [{"name": "p1", "capacity": {"cpu": 8, "mbps": 100}}], "jobs": [JOB],
}  # fmt: skip


def repair(data: Draft) -> Draft:
    """A worker fits on the largest server."""
    room = max(server["capacity"]["gpu"] for server in data["worker_servers"])
    for job in data["jobs"]:
        if "gpu" in job["worker"]:
            job["worker"]["gpu"] = min(job["worker"]["gpu"], room)
    return data


SMALL = SearchSpace(
    base=BASE,
    lists={"worker_servers": (1, 2), "jobs": (1, 4)},
    job_fields=(
        Field("arrival", 1, 6), Field("epochs", 1, 6), Field("chunks", 1, 4),
        Field("worker.gpu", 1, 4), Field("utility.priority", 1, 100, log=True),
        Field("utility.decay", choices=(0, 0.5, 5)), Field("utility.target", 0, 6),
    ),
    cluster_fields=(
        Field("worker_servers[].capacity.gpu", 1, 4), Field("ps_servers[].capacity.cpu", 1, 8),
        Field("horizon", 2, 6),
    ),
    repair=repair,
    note="elastic jobs with sigmoid utilities on one or two servers for workers and one for PSs",
)  # fmt: skip
ONE_SLOT = SearchSpace(
    base={
        **BASE,
        "horizon": 1,
        "worker_servers": [{"name": "w1", "capacity": {"gpu": 1, "mbps": 100}}],
        "jobs": [{**JOB, "utility": {"kind": "linear", "slope": 0, "intercept": 1}}],
    },
    lists={"jobs": (1, 4)},
    job_fields=(Field("utility.intercept", 1, 10, grain=10),),
    note="one server, one slot, one unit: what counts is whose value is taken",
)  # fmt: skip
SPACES = {"small": SMALL, "one-slot": ONE_SLOT}
