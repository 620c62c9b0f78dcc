"""Hypothesis strategies: tiny mlbroker instances that a brute force can settle."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hindsched.instances.mlbroker.instance import MlbrokerInstance


def prices(threshold: tuple[int, int]) -> st.SearchStrategy[dict[str, Any]]:
    """A two-tier price within reach of a few workers."""
    return st.builds(
        lambda unit, share, limit: {
            "unit_usd": unit,
            "discounted_usd": unit * share / 4,
            "threshold": limit,
        },
        st.integers(0, 8),
        st.integers(0, 4),
        st.integers(*threshold),
    )


@st.composite
def instances(
    draw: st.DrawFn,
    centers: int = 2,
    slots: int = 2,
    jobs: int = 2,
    workers: int = 2,
    kinds: int = 1,
    pins: bool = True,
    weights: bool = True,
) -> MlbrokerInstance:
    """Tiny instances: at most `workers` workers a job-slot, quarters of GB, odd transfer prices.

    Transfer prices need not be symmetric nor obey the triangle inequality.
    """
    names = [f"r{i + 1}" for i in range(centers)]
    resources = [f"k{i + 1}" for i in range(kinds)]
    transfer = [
        [0 if r == q else draw(st.integers(0, 12)) / 4 for q in range(centers)]
        for r in range(centers)
    ]
    job_list = []
    for index in range(draw(st.integers(1, jobs))):
        arrival = draw(st.integers(1, slots))
        departure = draw(st.integers(arrival, slots))
        capacity = draw(st.sampled_from([1, 2, 1.5]))
        most = int(4 * capacity * workers / centers)
        job: dict[str, Any] = {
            "name": f"j{index + 1}", "arrival": arrival, "departure": departure,
            "worker": {name: draw(st.integers(0, 3)) for name in resources},
            "ps": {name: draw(st.integers(0, 2)) for name in resources},
            "capacity_gb": capacity, "exchange_gb": draw(st.integers(0, 4)) / 2,
            "deployment_usd": draw(st.integers(0, 12)) / 2,
            "data_gb": [
                [draw(st.integers(0, most)) / 4 for _ in names]
                for _ in range(arrival, departure + 1)
            ],
        }  # fmt: skip
        if pins and draw(st.integers(0, 4)) == 0:
            job["pinned_datacenters"] = [draw(st.sampled_from(names))]
        job_list.append(job)
    data: dict[str, Any] = {
        "format": "hindsched/1", "family": "mlbroker", "name": "tiny", "horizon": slots,
        "slot_seconds": 43200, "resources": resources,
        "datacenters": [
            {"name": name, "prices": {kind: draw(prices((0, 6))) for kind in resources}}
            for name in names
        ],
        "transfer_usd_per_gb": transfer, "jobs": job_list,
    }  # fmt: skip
    if weights and draw(st.integers(0, 3)) == 0:
        costs = ("transfer", "resource", "deployment", "communication")
        data["cost_weights"] = {cost: draw(st.integers(0, 2)) for cost in costs}
    return MlbrokerInstance.parse(data)


def scaled(instance: MlbrokerInstance, factor: float) -> MlbrokerInstance:
    """The same instance with all money multiplied by `factor`."""
    data = instance.to_dict()
    for center in data["datacenters"]:
        for price in center["prices"].values():
            price["unit_usd"] *= factor
            price["discounted_usd"] *= factor
    data["transfer_usd_per_gb"] = [
        [value * factor for value in row] for row in data["transfer_usd_per_gb"]
    ]
    for job in data["jobs"]:
        job["deployment_usd"] *= factor
    return MlbrokerInstance.parse(data)


def make(centers, slots, transfer, prices, jobs):
    """An instance by hand: prices (unit, discounted, threshold) per centre, one resource."""
    names = [f"r{r + 1}" for r in range(centers)]
    tiers = [dict(zip(("unit_usd", "discounted_usd", "threshold"), p, strict=True)) for p in prices]
    return MlbrokerInstance.parse({
        "format": "hindsched/1", "family": "mlbroker", "name": "by-hand", "horizon": slots,
        "slot_seconds": 43200, "resources": ["k"],
        "datacenters": [
            {"name": name, "prices": {"k": tier}} for name, tier in zip(names, tiers, strict=True)
        ],
        "transfer_usd_per_gb": [[0 if r == q else transfer for q in names] for r in names],
        "jobs": [
            {
                "name": f"j{i + 1}", "arrival": 1, "departure": slots,
                "worker": {"k": job.get("n", 1)}, "ps": {"k": job.get("m", 0)},
                "capacity_gb": job["P"], "exchange_gb": job.get("B", 0),
                "deployment_usd": job.get("c", 0), "data_gb": job["D"],
            }
            for i, job in enumerate(jobs)
        ],
    })  # fmt: skip


def flicker():
    """K3: data alternates between two centres."""
    job = {"n": 1, "m": 1, "P": 1, "B": 0.1, "c": 3, "D": [[1, 0], [0, 1], [1, 0], [0, 1]]}
    return make(2, 4, 10, [(1, 1, 10)] * 2, [job])


def surplus():
    """K4: three centres with data, workers large enough for all of it."""
    job = {"n": 1, "m": 0, "P": 3, "B": 1, "c": 0, "D": [[1, 1, 1]]}
    return make(3, 1, 100, [(1, 1, 1000)] * 3, [job])


def two_jobs(distance):
    """K7: two jobs with data at opposite centres; together they would earn the discount."""
    jobs = [{"P": 1, "D": [[8, 0]]}, {"P": 1, "D": [[0, 8]]}]
    return make(2, 1, distance, [(4, 3, 10)] * 2, jobs)
