"""A_online, its variants, and every algorithm of the edgecloud paper's evaluation."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.json_types import JsonObject
from hindsched.online.baselines.infeasible_baselines import relaxing_baselines
from hindsched.online.edgecloud.all_cloud import AllCloud
from hindsched.online.edgecloud.batchsche import BatchSche
from hindsched.online.edgecloud.paper import (
    Edgecloud,
    EdgecloudEdgeOnly,
    EdgecloudEscape,
    EdgecloudMarginal,
)
from hindsched.online.edgecloud.prices import EdgecloudDualPrice
from hindsched.online.edgecloud.srtf import Srtf
from hindsched.online.edgecloud.tiresias_l import LeastAttainedService
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.protocol import Assumption, Theorem
from hindsched.online.registry import Factory

EPSILON = 1.0
"""Speed augmentation at which `theorem` states its value; the constants fall as it grows."""

ALGORITHMS: dict[str, Factory] = {
    "edgecloud": Edgecloud,
    "edgecloud-marginal": EdgecloudMarginal,
    "edgecloud-escape": EdgecloudEscape,
    "edgecloud-edge-only": EdgecloudEdgeOnly,
    "dual-price": EdgecloudDualPrice,
    "reoptimise": Reoptimise,
    "srtf": Srtf,
    "tiresias-l": LeastAttainedService,
    "batchsche": BatchSche,
    "all-cloud": AllCloud,
    **relaxing_baselines(rigid=False),
}


def declared_estimates(instance: Instance) -> JsonObject:
    """A_online needs no estimates."""
    assert isinstance(instance, EdgecloudInstance)
    return {}


def theorem(instance: Instance, epsilon: float = EPSILON) -> Theorem:
    """Theorem 3: with (1 + epsilon) speed, ``D_max (1 + 1 / epsilon)``-competitive for (2).

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    epsilon : float
        The speed augmentation, above 0.

    Returns
    -------
    dict
        ``kind``, ``value`` (None without jobs), ``assumptions``, ``quantities`` (the constant for
        problem (4)) and a ``note`` on what the printed proof leaves open.
    """
    assert isinstance(instance, EdgecloudInstance)
    if not instance.jobs:
        return {"kind": "ratio", "value": None, "assumptions": [], "quantities": {}}
    chunks = int(instance.chunks.max())
    constant = 1 + 1 / epsilon
    swapped = _overtaking(instance)
    short = _missing_ps(instance)
    assumptions: list[Assumption] = [
        {"name": f"the algorithm runs at speed {1 + epsilon:g}", "holds": False, "worst": 1.0},
        {"name": "chunks become available in the order of arrival on every worker",
         "holds": swapped == 0, "worst": swapped},
        {"name": "a PS is free whenever a job runs", "holds": short == 0, "worst": short},
        {"name": "Lemma 2: the printed dual is feasible", "holds": False, "worst": None},
    ]  # fmt: skip
    note = (
        "The printed proof does not establish the constant: Lemma 2's dual is infeasible and "
        "Lemma 4 needs the second assumption. The corrected dual is feasible but proves less."
    )
    return {
        "kind": "ratio",
        "value": chunks * constant,
        "assumptions": assumptions,
        "quantities": {"epsilon": epsilon, "ratio_for_(4)": constant, "D_max": chunks},
        "note": note,
    }


def _overtaking(instance: EdgecloudInstance) -> int:
    """Most slots by which a later job's chunk is available before an earlier job's on a server."""
    worst = 0
    for s, server in enumerate(instance.servers):
        for kind in set(server.workers):
            latest = 0
            jobs = [
                (job.arrival, j) for j, job in enumerate(instance.jobs) if job.worker_type == kind
            ]
            for arrival, j in sorted(jobs):
                ready = arrival + int(instance.upload[j, s])
                worst = max(worst, latest - ready)
                latest = max(latest, ready)
    return worst


def _missing_ps(instance: EdgecloudInstance) -> int:
    """PSs missing to serve all jobs of a type at once, where the cloud's are finite."""
    worst = 0
    for kind in {job.ps_type for job in instance.jobs}:
        cloud = instance.cloud_ps(kind)
        if cloud is not None:
            jobs = sum(job.ps_type == kind for job in instance.jobs)
            edge = sum(n for (_, k), n in instance.ps_counts.items() if k == kind)
            worst = max(worst, jobs - edge - cloud)
    return worst
