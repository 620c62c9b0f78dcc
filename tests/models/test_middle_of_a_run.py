"""Programs in the middle of a run, and far from round numbers: cases that once went wrong."""

from __future__ import annotations

from typing import Any

import pytest

import hindsched as hs
from hindsched.solutions.base import Commitments
from hindsched.solvers.door.rolling import RollingProgram


def two_jobs(first: float, second: float, arrival: int) -> hs.Instance:
    """Two jobs of one slot that want the same server."""
    job = {
        "arrival": arrival, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": [1],
        "reduce_slots": 0, "gradient_mb": 0,
    }  # fmt: skip
    return hs.read({
        "format": "hindsched/1", "family": "batchsched", "name": "two", "horizon": arrival,
        "slot_seconds": 1, "architecture": "ring-allreduce", "resources": ["bw"],
        "bandwidth_resource": "bw", "servers": [{"name": "h", "capacity": {"bw": 1}}],
        "worker_types": [{"name": "w", "demand": {"bw": 1}}],
        "jobs": [{**job, "name": f"j{i}", "weight": w} for i, w in enumerate((first, second))],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "arrival", "form"),
    [
        (1e6, 1e-9, 1, "printed"),
        (1e6, 1e-9, 1, "modes"),
        (44547.8, 0.6, 1000, "modes"),
        (1704.6, 0.2, 20000, "modes"),
        (251.1, 0.3, 100000, "modes"),
    ],
)
def test_weights_far_apart_leave_a_schedule(
    first: float, second: float, arrival: int, form: str
) -> None:
    """What the incumbent has to spare is divided by the least weight: it must not cancel."""
    instance = two_jobs(first, second, arrival)
    result = hs.model(instance, form=form).solve()
    expected = first * (arrival + 1) + second * (arrival + 2)
    assert result.objective == pytest.approx(expected, rel=1e-9)


def broker(datacenter: dict[str, Any], jobs: list[dict[str, Any]]) -> hs.Instance:
    """Jobs of one resource in one data centre."""
    return hs.read({
        "format": "hindsched/1", "family": "mlbroker", "name": "x", "slot_seconds": 1,
        "horizon": max(job["departure"] for job in jobs), "resources": ["g"],
        "transfer_usd_per_gb": [[0]], "jobs": jobs,
        "datacenters": [{"name": "d", "prices": {"g": datacenter}}],
    })  # fmt: skip


def job(name: str, arrival: int, departure: int, gpus: int) -> dict[str, Any]:
    """One GB a slot, for which one worker is enough."""
    return {
        "name": name, "arrival": arrival, "departure": departure, "worker": {"g": gpus},
        "ps": {"g": 0}, "capacity_gb": 1, "exchange_gb": 0, "deployment_usd": 0,
        "data_gb": [[1]] * (departure - arrival + 1),
    }  # fmt: skip


def test_mlbroker_history_may_have_more_workers_than_needed() -> None:
    prices = {"unit_usd": 1, "discounted_usd": 1, "threshold": 0}
    instance = broker(prices, [job("a", 1, 2, gpus=1)])
    first = {"from": 1, "to": 1, "workers": {"d": 2}, "ps": "d"}
    rest = {"from": 2, "to": 2, "workers": {"d": 1}, "ps": "d"}
    assert hs.build_solution(instance, {"a": [first, rest]}).is_feasible()
    result = hs.model(instance, commitments=Commitments(now=2, assignments={"a": [first]})).solve()
    assert result.objective == 3.0


def test_jobs_that_shared_a_tier_are_settled_together() -> None:
    prices = {"unit_usd": 4, "discounted_usd": 3, "threshold": 15}
    instance = broker(prices, [job("a", 1, 2, gpus=10), job("b", 2, 4, gpus=10)])
    rows = {
        one.name: [{"from": one.arrival, "to": one.departure, "workers": {"d": 1}, "ps": "d"}]
        for one in instance.jobs
    }
    rolling = RollingProgram(instance)
    left, worth = {}, {}
    for slot in range(1, 6):
        arrived = [one for one in instance.jobs if one.arrival == slot]
        rolling.add(arrived)
        rolling.advance(slot)
        rolling.commit(
            {one.name: rows[one.name] for one in arrived}, whole=[a.name for a in arrived]
        )
        left[slot] = [one.name for one in rolling.instance.jobs]
        worth[slot] = rolling.solve().result.objective
    assert left[3] == left[4] == ["a", "b"]
    assert left[5] == []
    assert worth[3] == worth[4] == hs.build_solution(instance, rows).objective() == 195.0
