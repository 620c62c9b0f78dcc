"""A space of astraea instances that is small enough for exact optima."""

from __future__ import annotations

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

BASE: Draft = {
    "format": "hindsched/1", "family": "astraea", "horizon": 16, "slot_seconds": 3600,
    "utility_origin": "absolute",
    "tenants": [
        {"name": "t1", "worker_quota": 1, "ps_quota": 1},
        {"name": "t2", "worker_quota": 0, "ps_quota": 0},
    ],
    "servers": [{"name": "s1", "workers": 1, "ps": 1}], "worker_bandwidth_mbps": 1000,
    "ps_bandwidth_mbps": 4000,
    "jobs": [{
        "name": "j1", "tenant": "t1", "arrival": 0, "epochs": 1, "chunks": 1, "minibatches": 1,
        "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 0,
        "utility": {"kind": "linear", "slope": -1, "intercept": 60},
    }],
}  # fmt: skip


def repair(data: Draft) -> Draft:
    """Quotas add up to the servers' counts, the last tenant has the rest; arrivals in range."""
    for quota, count in (("worker_quota", "workers"), ("ps_quota", "ps")):
        left = sum(server[count] for server in data["servers"])
        for tenant in data["tenants"][:-1]:
            tenant[quota] = min(tenant[quota], left)
            left -= tenant[quota]
        data["tenants"][-1][quota] = left
    for job in data["jobs"]:
        job["arrival"] = min(job["arrival"], data["horizon"] - 1)
    return data


LINEAR = SearchSpace(
    base=BASE,
    lists={"servers": (1, 2), "jobs": (1, 4)},
    job_fields=(
        Field("arrival", 0, 6), Field("epochs", 1, 6), Field("chunks", 1, 4),
        Field("tenant", choices=("t1", "t2")), Field("utility.slope", -4, -0.5, grain=10),
        Field("utility.intercept", 60, 150),
    ),
    cluster_fields=(
        Field("servers[].workers", 1, 3), Field("servers[].ps", 1, 2),
        Field("tenants[].worker_quota", 0, 6), Field("tenants[].ps_quota", 0, 4),
        Field("horizon", 8, 16),
    ),
    repair=repair,
    note="two tenants on one or two servers, revenue falling linearly from at least 60",
)  # fmt: skip
SPACES = {"linear": LINEAR}
