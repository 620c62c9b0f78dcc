"""Rivals that rank by sums, beside the same rules in fractions: equal sums go by arrival."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from hindsched.instances.io import parse_instance
from hindsched.online.simulator import simulate

WORKERS = 7
TICKETS = {"a": Fraction(3, WORKERS), "b": Fraction(4, WORKERS)}


def drawn_jobs(seed: int) -> list[dict[str, Any]]:
    """Jobs of one server in the order of arrival, each a gang of its chunks."""
    rng = random.Random(seed)
    jobs = [
        {
            "name": f"j{number}",
            "tenant": rng.choice("ab"),
            "arrival": rng.randint(0, 2),
            "epochs": 1,
            "chunks": rng.randint(1, WORKERS),
            "minibatches": rng.choice([1, 3, 6, 7, 12, 14]),
            "minibatch_slots": 1,
            "update_slots": 0,
            "gradient_mb": 0,
            "utility": {"kind": "power", "scale": 5, "exponent": 1},
        }
        for number in range(6)
    ]
    return sorted(jobs, key=lambda job: job["arrival"])


def one_server(jobs: list[dict[str, Any]]) -> Any:
    return parse_instance(
        {
            "format": "hindsched/1", "family": "astraea", "name": "one", "horizon": 300,
            "slot_seconds": 8, "utility_origin": "arrival",
            "tenants": [
                {"name": name, "worker_quota": int(share * WORKERS), "ps_quota": 50}
                for name, share in TICKETS.items()
            ],
            "servers": [{"name": "s", "workers": WORKERS, "ps": 100}],
            "worker_bandwidth_mbps": 1, "ps_bandwidth_mbps": 1, "jobs": jobs,
        }
    )  # fmt: skip


def slots_of(jobs: list[dict[str, Any]], growth: Any, newcomer: Any) -> dict[str, list[int]]:
    """Slots in which each job runs: every slot, by the smallest sum, whoever fits."""
    left = {job["name"]: job["minibatches"] for job in jobs}
    found: dict[str, list[int]] = {name: [] for name in left}
    sums: dict[str, Fraction] = {}
    slot = 0
    while any(left.values()):
        slot += 1
        here = [job for job in jobs if job["arrival"] < slot and left[job["name"]]]
        first = newcomer([sums[job["name"]] for job in here if job["name"] in sums])
        for job in here:
            sums.setdefault(job["name"], first)
        free = WORKERS
        for job in sorted(here, key=lambda job: sums[job["name"]]):
            name = job["name"]
            if job["chunks"] <= free:
                free -= job["chunks"]
                sums[name] += growth(job, here)
                left[name] -= 1
                found[name].append(slot)
    return found


def service(job: dict[str, Any], here: list[dict[str, Any]]) -> Fraction:
    return Fraction(job["chunks"], WORKERS)


def stride(job: dict[str, Any], here: list[dict[str, Any]]) -> Fraction:
    own = sum(other["tenant"] == job["tenant"] for other in here)
    return job["chunks"] * own / TICKETS[job["tenant"]]


@pytest.mark.parametrize(
    ("name", "growth", "newcomer"),
    [
        ("least-attained", service, lambda sums: Fraction(0)),
        ("gandiva-fair", stride, lambda sums: min(sums, default=Fraction(0))),
    ],
)
def test_equal_sums_go_by_arrival(name: str, growth: Any, newcomer: Any) -> None:
    for seed in range(40):
        jobs = drawn_jobs(seed)
        rows = simulate(one_server(jobs), name).solution.assignments()
        found = {
            job: [slot for row in given for slot in range(row["from"], row["to"] + 1)]
            for job, given in rows.items()
        }
        assert found == slots_of(jobs, growth, newcomer)
