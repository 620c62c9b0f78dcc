"""The second statement by itself: answers that follow by hand or were proven elsewhere."""

from __future__ import annotations

import importlib
from fractions import Fraction
from typing import Any

import pytest

from tests.second_opinion.instances import envelope

pytestmark = pytest.mark.nightly


def optimum(data: dict[str, Any], formulation: str) -> Fraction | None:
    """Optimum of an instance given as JSON data of whole numbers and decimals."""
    module = importlib.import_module(f"tests.second_opinion.{data['family']}")
    found = module.Statement(as_written(data), formulation).program.optimum()
    return found.value


def as_written(data: Any) -> Any:
    """Floats as the decimals that they are written as."""
    if isinstance(data, dict):
        return {key: as_written(value) for key, value in data.items()}
    if isinstance(data, list):
        return [as_written(value) for value in data]
    return Fraction(repr(data)) if isinstance(data, float) else data


def sharing(gpu: list[float], capacity: float, mbps: float = 0.5) -> dict[str, Any]:
    """One slot, one GPU server: jobs worth 10 each that need so much of it."""
    job = {
        "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
        "gradient_mb": 0, "ps": {"mbps": mbps},
        "utility": {"kind": "linear", "slope": 0, "intercept": 10},
    }  # fmt: skip
    return envelope("oasis", 0, 1) | {
        "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
        "worker_servers": [{"name": "w", "capacity": {"gpu": capacity, "mbps": 99}}],
        "ps_servers": [{"name": "p", "capacity": {"mbps": 99}}],
        "jobs": [
            job | {"name": f"j{i}", "worker": {"gpu": need, "mbps": 0.5}}
            for i, need in enumerate(gpu)
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "capacity", "value"),
    [
        ([0.5, 0.5], 1, 20),
        ([0.5000004, 0.5000004], 1, 10),
        ([0.1, 0.2], 0.3, 20),
        ([1e-7] * 10, 1e-7, 10),
    ],
)
def test_oasis_shares_a_server_exactly(gpu: list[float], capacity: float, value: int) -> None:
    assert optimum(sharing(gpu, capacity), "standard") == value


def test_oasis_needs_whole_parameter_servers() -> None:
    # 0.5 / 0.4999999 needs two PSs, which (7) does not allow to one worker.
    assert optimum(sharing([1], 1, 0.4999999), "standard") == 0


def test_oasis_waits_for_what_is_worth_more() -> None:
    data = sharing([1, 1], 1) | {"horizon": 2}
    for job, slope, worth in zip(data["jobs"], (-2, -1), (10, 6), strict=True):
        job["utility"] = {"kind": "linear", "slope": slope, "intercept": worth}
    assert optimum(data, "standard") == 15


def batchsched(architecture: str) -> dict[str, Any]:
    ring = architecture == "ring-allreduce"
    slots = (0.5, 0.5) if ring else (0.75, 0.25)
    jobs = [
        {
            "name": f"j{j}", "arrival": a, "weight": w, "epochs": 1, "chunks": chunks,
            "minibatches": k, "minibatch_slots": [slots[0]], "gradient_mb": 0.0625,
            **({"reduce_slots": slots[1]} if ring else {"update_slots": [slots[1]]}),
        }
        for j, (a, w, chunks, k) in enumerate([(1, 3, 3, 2), (1, 2, 2, 1), (2, 5, 2, 2)])
    ]  # fmt: skip
    capacity = {"gpu": 2, "cpu": 2 if ring else 3, "mbps": 99}
    data = envelope("batchsched", 0, 2, 1) | {
        "architecture": architecture, "resources": ["gpu", "cpu", "mbps"],
        "bandwidth_resource": "mbps",
        "servers": [{"name": f"s{s}", "capacity": capacity} for s in range(2)],
        "worker_types": [{"name": "w", "demand": {"gpu": 1, "cpu": 1, "mbps": 1}}], "jobs": jobs,
    }  # fmt: skip
    return data if ring else data | {"ps_types": [{"name": "p", "demand": {"cpu": 1, "mbps": 1}}]}


@pytest.mark.parametrize("architecture", ["parameter-server", "ring-allreduce"])
def test_batchsched_examples(architecture: str) -> None:
    assert optimum(batchsched(architecture), "modes") == 36


def test_astraea_example_of_the_paper() -> None:
    jobs = [
        {
            "name": f"j{j}", "tenant": "u", "arrival": 3, "epochs": 2, "chunks": chunks,
            "minibatches": 1, "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 0.0625,
            "utility": {"kind": "linear", "slope": -2, "intercept": 100},
        }
        for j, chunks in enumerate((2, 3, 2, 30))
    ]  # fmt: skip
    data = envelope("astraea", 0, 36, 1) | {
        "utility_origin": "arrival", "tenants": [{"name": "u", "worker_quota": 8, "ps_quota": 4}],
        "servers": [{"name": f"s{s}", "workers": 2, "ps": 1} for s in range(4)],
        "worker_bandwidth_mbps": 1, "ps_bandwidth_mbps": 1, "jobs": jobs,
    }  # fmt: skip
    assert optimum(data, "optional,modes") == 96 + 94 + 96 + 40


def test_edgecloud_example() -> None:
    sizes = [(0, 2, 3, 2), (1, 1, 2, 2), (2, 2, 1, 1)]
    jobs = [
        {
            "name": f"j{j}", "arrival": r + 1, "epochs": 1, "chunks": chunks, "minibatches": 1,
            "minibatch_slots": p1, "update_slots": 0, "gradient_mb": p - p1, "bandwidth_mbps": 1,
            "worker_type": "t", "ps_type": "p", "upload_slots": {"s0": 1, "s1": 2, "c": 6},
        }
        for j, (r, chunks, p, p1) in enumerate(sizes)
    ]  # fmt: skip
    data = envelope("edgecloud", 0, 3, 16) | {
        "servers": [{"name": f"s{s}", "workers": ["t"], "ps": ["p"]} for s in range(2)],
        "cloud": {"name": "c"}, "jobs": jobs,
    }  # fmt: skip
    assert optimum(data, "no-migration") == 13
    assert optimum(data, "literal") == 13


def mlbroker(transfer: float, jobs: list[dict[str, Any]], unit: dict[str, Any]) -> dict[str, Any]:
    size = range(len(jobs[0]["data_gb"][0]))
    jobs = [
        job | {
            "name": f"j{i}", "arrival": 1, "departure": len(job["data_gb"]), "worker": {"gpu": 1},
        }
        for i, job in enumerate(jobs)
    ]  # fmt: skip
    return envelope("mlbroker", 0, jobs[0]["departure"], 43200) | {
        "resources": ["gpu"], "jobs": jobs,
        "datacenters": [{"name": f"r{r}", "prices": {"gpu": unit}} for r in size],
        "transfer_usd_per_gb": [[0 if r == o else transfer for o in size] for r in size],
    }  # fmt: skip


@pytest.mark.parametrize(("formulation", "value"), [("paper", 14), ("tight", 16)])
def test_mlbroker_flicker(formulation: str, value: int) -> None:
    job = {
        "ps": {"gpu": 1}, "capacity_gb": 1, "exchange_gb": 0.1, "deployment_usd": 3,
        "data_gb": [[1, 0], [0, 1], [1, 0], [0, 1]],
    }  # fmt: skip
    unit = {"unit_usd": 1, "discounted_usd": 1, "threshold": 10}
    assert optimum(mlbroker(10, [job], unit), formulation) == value


@pytest.mark.parametrize(("formulation", "value"), [("paper", 3), ("tight", 201)])
def test_mlbroker_surplus(formulation: str, value: int) -> None:
    job = {
        "ps": {}, "capacity_gb": 3, "exchange_gb": 1, "deployment_usd": 0, "data_gb": [[1, 1, 1]],
    }  # fmt: skip
    unit = {"unit_usd": 1, "discounted_usd": 1, "threshold": 1000}
    assert optimum(mlbroker(100, [job], unit), formulation) == value


@pytest.mark.parametrize(("transfer", "value"), [(0.5, 62), (0.75, 64), (1, 64)])
def test_mlbroker_discount_is_worth_a_transfer(transfer: float, value: int) -> None:
    job = {"ps": {}, "capacity_gb": 1, "exchange_gb": 0, "deployment_usd": 0}
    unit = {"unit_usd": 4, "discounted_usd": 3, "threshold": 10}
    jobs = [job | {"data_gb": [[8, 0]]}, job | {"data_gb": [[0, 8]]}]
    assert optimum(mlbroker(transfer, jobs, unit), "tight") == value
