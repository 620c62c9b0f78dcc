"""Spaces of gang instances: one pool, few jobs, times in whole slots."""

from __future__ import annotations

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

BASE: Draft = {
    "format": "hindsched/1", "family": "gang", "horizon": 1, "slot_seconds": 1, "gpus": 1,
    "jobs": [{"name": "j1", "submit": 0, "duration": 1, "gpus": 1, "weight": 1}],
}  # fmt: skip


def repair(data: Draft) -> Draft:
    """The horizon ends with the last submission; no job is wider than the pool."""
    data["horizon"] = 1 + max(int(job["submit"] // data["slot_seconds"]) for job in data["jobs"])
    if "gpus" in data:
        for job in data["jobs"]:
            job["gpus"] = min(job["gpus"], data["gpus"])
    return data


SMALL = SearchSpace(
    base=BASE,
    lists={"jobs": (1, 6)},
    job_fields=(
        Field("submit", 0, 20), Field("duration", 1, 20), Field("gpus", 1, 4),
        Field("weight", 1, 5),
    ),
    cluster_fields=(Field("gpus", 1, 4),),
    repair=repair,
    note="weighted flow time of rigid jobs in a pool of up to 4 GPUs",
)  # fmt: skip
ONE_GPU = SearchSpace(
    base=BASE,
    lists={"jobs": (1, 10)},
    job_fields=(
        Field("submit", 0, 20), Field("duration", 1, 500, log=True), Field("weight", 1, 1),
    ),
    repair=repair,
    note="flow time on one GPU; durations over almost three orders of magnitude",
)  # fmt: skip
MACHINES = SearchSpace(
    base=BASE,
    lists={"jobs": (1, 13)},
    job_fields=(Field("duration", 1, 12),),
    cluster_fields=(Field("gpus", 2, 4),),
    repair=repair,
    formulation="non-preemptive,makespan",
    note="makespan of jobs of one GPU each that are all there at 0 (Graham's parallel machines)",
)  # fmt: skip
SPACES = {"small": SMALL, "one-gpu": ONE_GPU, "machines": MACHINES}
