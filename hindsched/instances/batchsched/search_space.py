"""A space of batchsched instances that is small enough for exact optima."""

from __future__ import annotations

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

BASE: Draft = {
    "format": "hindsched/1", "family": "batchsched", "horizon": 8, "slot_seconds": 3600,
    "architecture": "parameter-server", "resources": ["gpu", "cpu", "bandwidth_mbps"],
    "bandwidth_resource": "bandwidth_mbps",
    "servers": [{"name": "s1", "capacity": {"gpu": 2, "cpu": 8, "bandwidth_mbps": 20000}}],
    "worker_types": [{"name": "w1", "demand": {"gpu": 1, "cpu": 1, "bandwidth_mbps": 1000}}],
    "ps_types": [{"name": "p1", "demand": {"cpu": 1, "bandwidth_mbps": 4000}}],
    "jobs": [{
        "name": "j1", "arrival": 1, "weight": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
        "minibatch_slots": [1], "update_slots": [0], "gradient_mb": 0,
    }],
}  # fmt: skip


SMALL = SearchSpace(
    base=BASE,
    lists={"servers": (1, 2), "jobs": (1, 3)},
    job_fields=(
        Field("arrival", 1, 8), Field("weight", 1, 100, log=True), Field("epochs", 1, 4),
        Field("chunks", 1, 3), Field("gradient_mb", 0, 200_000),
    ),
    cluster_fields=(
        Field("servers[].capacity.gpu", 1, 4), Field("servers[].capacity.cpu", 2, 8),
        Field("horizon", 1, 8),
    ),
    note="up to 3 jobs of up to 3 workers with a parameter server on one or two servers",
)  # fmt: skip
SPACES = {"small": SMALL}
