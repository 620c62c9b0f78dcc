"""A space of mlbroker instances that is small enough for exact optima."""

from __future__ import annotations

from typing import Any

from hindsched.instances.search_space import Field, SearchSpace
from hindsched.json_types import Draft

PRICE = {"unit_usd": 2, "discounted_usd": 1, "threshold": 10}
BASE: Draft = {
    "format": "hindsched/1", "family": "mlbroker", "horizon": 4, "slot_seconds": 43200,
    "resources": ["gpu"], "datacenters": [{"name": "d1", "prices": {"gpu": PRICE}}],
    "transfer_usd_per_gb": [[0]],
    "jobs": [{
        "name": "j1", "arrival": 1, "departure": 1, "worker": {"gpu": 1}, "ps": {"gpu": 0},
        "capacity_gb": 16, "exchange_gb": 5, "deployment_usd": 0.1, "data_gb": [[10]],
    }],
}  # fmt: skip


def repair(data: Draft) -> Draft:
    """Lives within the horizon, data for each of their slots, prices that are concave."""
    centers, horizon = len(data["datacenters"]), data["horizon"]
    transfer = data["transfer_usd_per_gb"]
    most = max((price for row in transfer for price in row), default=0)
    rows = [_fit(row, centers, most) for row in _fit(transfer, centers, [])]
    data["transfer_usd_per_gb"] = [
        [0 if here == there else price for there, price in enumerate(row)]
        for here, row in enumerate(rows)
    ]
    for center in data["datacenters"]:
        for price in center["prices"].values():
            price["discounted_usd"] = min(price["discounted_usd"], price["unit_usd"])
    for job in data["jobs"]:
        job["departure"] = min(max(job["departure"], job["arrival"]), horizon)
        life = job["departure"] - job["arrival"] + 1
        lists = _fit(job["data_gb"], life, job["data_gb"][-1])
        job["data_gb"] = [_fit(row, centers, row[-1]) for row in lists]
    return data


def _fit(items: list[Any], length: int, more: object) -> list[Any]:
    """A list cut or filled up to a length."""
    return [items[index] if index < len(items) else more for index in range(length)]


SMALL = SearchSpace(
    base=BASE,
    lists={"datacenters": (1, 3), "jobs": (1, 4)},
    job_fields=(
        Field("arrival", 1, 4), Field("departure", 1, 4), Field("data_gb[][]", 0, 60),
        Field("capacity_gb", 16, 66), Field("worker.gpu", 1, 4), Field("exchange_gb", 5, 80),
        Field("deployment_usd", 0, 10, grain=10),
    ),
    cluster_fields=(
        Field("datacenters[].prices.*.unit_usd", 1, 10, grain=10),
        Field("datacenters[].prices.*.discounted_usd", 1, 10, grain=10),
        Field("datacenters[].prices.*.threshold", 1, 30),
        Field("transfer_usd_per_gb[][]", 0, 1, grain=100),
    ),
    repair=repair,
    note="up to 4 jobs and 3 data centres over 4 slots, one resource with two price tiers",
)  # fmt: skip
SPACES = {"small": SMALL}
