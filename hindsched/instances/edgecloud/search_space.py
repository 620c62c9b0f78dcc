"""A space of edgecloud instances that is small enough for exact optima."""

from __future__ import annotations

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

BASE: Draft = {
    "format": "hindsched/1", "family": "edgecloud", "horizon": 6, "slot_seconds": 3600,
    "servers": [{"name": "s1", "workers": ["t1"], "ps": ["p1"]}],
    "cloud": {"name": "cloud", "workers": {"t1": 0}, "ps": {"p1": 4}},
    "jobs": [{
        "name": "j1", "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
        "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 0, "bandwidth_mbps": 1000,
        "worker_type": "t1", "ps_type": "p1", "upload_slots": {"s1": 1, "cloud": 6},
    }],
}  # fmt: skip


def repair(data: Draft) -> Draft:
    """Every job can be uploaded to every server and the cloud."""
    names = [server["name"] for server in data["servers"]]
    cloud = data["cloud"]["name"]
    for job in data["jobs"]:
        uploads = job["upload_slots"]
        first = next(iter(uploads.values()), 1)
        job["upload_slots"] = {name: uploads.get(name, first) for name in [*names, cloud]}
    return data


SMALL = SearchSpace(
    base=BASE,
    lists={"servers": (1, 3), "jobs": (1, 4)},
    job_fields=(
        Field("arrival", 1, 6), Field("minibatch_slots", 1, 6), Field("chunks", 1, 3),
        Field("upload_slots.*", 0, 6),
    ),
    cluster_fields=(
        Field("servers[].workers", 1, 2, repeats=True), Field("servers[].ps", 1, 2, repeats=True),
        Field("cloud.workers.t1", 0, 4),
    ),
    repair=repair,
    exact="milp",
    note="jobs of up to 3 chunks on up to 3 edge servers and a cloud of up to 4 workers",
)  # fmt: skip
SPACES = {"small": SMALL}
