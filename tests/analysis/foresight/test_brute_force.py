"""Values against all online policies of tiny trees of every family, tried in plain Python."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import hindsched as hs
from hindsched.instances.base import FAMILIES, Instance
from hindsched.models.base import COMMIT, POLICIES, RUN
from tests.brute_force import mlbroker, policies
from tests.second_opinion.settle import placements
from tests.strategies.edgecloud import instance as edgecloud_instance
from tests.strategies.edgecloud import job as edgecloud_job

LINEAR = {"kind": "linear", "slope": -1}
Tree = tuple[list[Instance], Any, int]
"""Futures, their steps by class of policies, and the last slot."""


def futures_of(family: str, data: dict[str, Any], jobs: list[Any], later: list[Any]) -> list[Any]:
    """Two futures: the second one has more jobs."""
    envelope = {"format": "hindsched/1", "family": family, "slot_seconds": 1, **data}
    kind = type(hs.generate(family))
    return [kind.parse({**envelope, "name": name, "jobs": own})
            for name, own in (("quiet", jobs), ("rush", [*jobs, *later]))]  # fmt: skip


def gang() -> Tree:
    def job(name: str, submit: int, duration: int, gpus: int, weight: int = 1) -> dict[str, Any]:
        return {"name": name, "submit": submit, "duration": duration, "gpus": gpus,
                "weight": weight}  # fmt: skip

    jobs = [job("a", 0, 3, 2), job("b", 0, 1, 1)]
    made = futures_of("gang", {"horizon": 9, "gpus": 2}, jobs,
                      [job("c", 1, 1, 2, 5), job("d", 2, 1, 1)])  # fmt: skip
    known = {each.name: each for each in made[1].jobs}
    ways = {name: [(int(each.duration), (float(each.gpus),))] for name, each in known.items()}

    def cost(name: str, end: int) -> float:
        return float(known[name].weight * (end - known[name].submit))

    return made, lambda p: policies.windows(ways, (2.0,), cost, 8, p, optional=False), 8


def batchsched_() -> Tree:
    def job(name: str, arrival: int, minibatches: int, weight: int) -> dict[str, Any]:
        return {"name": name, "arrival": arrival, "weight": weight, "epochs": 1, "chunks": 1,
                "minibatches": minibatches, "minibatch_slots": [1], "update_slots": [0],
                "gradient_mb": 0}  # fmt: skip

    cluster = {
        "horizon": 4, "architecture": "parameter-server", "resources": ["gpu", "bw"],
        "bandwidth_resource": "bw", "servers": [{"name": "s", "capacity": {"gpu": 1, "bw": 9}}],
        "worker_types": [{"name": "w", "demand": {"gpu": 1, "bw": 1}}],
        "ps_types": [{"name": "p", "demand": {"bw": 1}}],
    }  # fmt: skip
    made = futures_of(
        "batchsched", cluster, [job("a", 1, 3, 1), job("b", 1, 1, 1)], [job("c", 2, 1, 6)]
    )
    known = {each.name: each for each in made[1].jobs}
    ways = {
        name: [(math.ceil(slots), use) for slots, use in placements(made[1], each)]
        for name, each in known.items()
    }

    def cost(name: str, end: int) -> float:
        return float(known[name].weight * (end + 1))

    return made, lambda p: policies.windows(ways, (1.0, 9.0), cost, 6, p, optional=False), 6


def astraea_() -> Tree:
    def job(name: str, arrival: int, minibatches: int, worth: float) -> dict[str, Any]:
        return {"name": name, "tenant": "u", "arrival": arrival, "epochs": 1, "chunks": 2,
                "minibatches": minibatches, "minibatch_slots": 1, "update_slots": 0,
                "gradient_mb": 0, "utility": {**LINEAR, "intercept": worth}}  # fmt: skip

    cluster = {
        "horizon": 5, "utility_origin": "arrival", "worker_bandwidth_mbps": 1,
        "ps_bandwidth_mbps": 2, "tenants": [{"name": "u", "worker_quota": 2, "ps_quota": 2}],
        "servers": [{"name": "s", "workers": 2, "ps": 2}],
    }  # fmt: skip
    made = futures_of("astraea", cluster, [job("a", 0, 3, 9), job("b", 0, 1, 5)],
                      [job("c", 1, 2, 20), job("d", 2, 1, 6)])  # fmt: skip
    known = {each.name: each for each in made[1].jobs}
    ways = {
        name: [(math.ceil(slots), use) for slots, use in placements(made[1], each)]
        for name, each in known.items()
    }

    def cost(name: str, end: int) -> float:
        one = known[name]
        return float(one.utility.slope * (end - one.arrival) + one.utility.intercept)

    return made, lambda p: policies.windows(ways, (2.0, 2.0), cost, 5, p, optional=True), 5


def oasis() -> Tree:
    def job(name: str, arrival: int, minibatches: int, most: int, worth: float) -> dict[str, Any]:
        return {"name": name, "arrival": arrival, "epochs": 1, "chunks": most,
                "minibatches": minibatches, "minibatch_slots": 1, "gradient_mb": 0,
                "worker": {"gpu": 1, "bw": 1}, "ps": {"bw": 9},
                "utility": {**LINEAR, "intercept": worth}}  # fmt: skip

    cluster = {
        "horizon": 3, "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
        "worker_servers": [{"name": "w", "capacity": {"gpu": 2, "bw": 99}}],
        "ps_servers": [{"name": "p", "capacity": {"gpu": 0, "bw": 99}}],
    }  # fmt: skip
    made = futures_of("oasis", cluster, [job("a", 1, 2, 2, 9), job("b", 1, 3, 1, 7)],
                      [job("c", 2, 2, 2, 14)])  # fmt: skip
    known = {each.name: each for each in made[1].jobs}
    work = {name: each.chunks * each.minibatches for name, each in known.items()}
    most = {name: each.chunks for name, each in known.items()}

    def utility(name: str, end: int) -> float:
        return float(known[name].utility.intercept - (end - known[name].arrival))

    return made, lambda p: policies.elastic(work, most, 2, utility, 3, p), 3


def edgecloud() -> Tree:
    def job(name: str, arrival: int, slots: int, far: int) -> Any:
        return edgecloud_job(name, arrival, 1, slots, slots, {"s": 0, "cloud": far})

    servers = [{"name": "s", "workers": ["t1"], "ps": ["p"]}]
    jobs = [job("a", 1, 3, 3), job("b", 1, 2, 2)]
    later = [job("c", 2, 1, 4), job("d", 2, 1, 4)]
    made = [edgecloud_instance(servers, own, name=name)
            for name, own in (("quiet", jobs), ("rush", [*jobs, *later]))]  # fmt: skip
    known = {each.name: each for each in made[1].jobs}
    length = {"a": 3, "b": 2, "c": 1, "d": 1}
    edge = {name: (each.upload_slots["s"], length[name]) for name, each in known.items()}
    cloud = {name: (each.upload_slots["cloud"], length[name]) for name, each in known.items()}
    arrival = {name: each.arrival for name, each in known.items()}
    return made, lambda p: policies.preemptive(edge, cloud, arrival, 8, p), 8


def mlbroker_() -> Tree:
    def job(name: str, arrival: int, data: list[list[float]]) -> dict[str, Any]:
        return {"name": name, "arrival": arrival, "departure": 2, "worker": {"k": 2},
                "ps": {"k": 1}, "capacity_gb": 1, "exchange_gb": 0.5, "deployment_usd": 2,
                "data_gb": data}  # fmt: skip

    def center(name: str, unit: float, threshold: int) -> dict[str, Any]:
        price = {"unit_usd": unit, "discounted_usd": unit / 4, "threshold": threshold}
        return {"name": name, "prices": {"k": price}}

    cluster = {
        "horizon": 2, "resources": ["k"], "transfer_usd_per_gb": [[0, 1], [1, 0]],
        "datacenters": [center("one", 3, 9), center("two", 4, 2)],
    }  # fmt: skip
    made = futures_of("mlbroker", cluster, [job("a", 1, [[0.75, 0.25], [0.75, 0.25]])],
                      [job("b", 2, [[0.25, 0.75]])])  # fmt: skip
    slots = mlbroker.Slots(made[1].to_dict())
    jobs = {each["name"]: each for each in made[1].to_dict()["jobs"]}
    return made, lambda p: policies.renting(slots, jobs, p), 2


TREES = {"gang": gang, "batchsched": batchsched_, "astraea": astraea_, "oasis": oasis,
         "edgecloud": edgecloud, "mlbroker": mlbroker_}  # fmt: skip


@functools.cache
def brute_force(family: str, kind: str) -> tuple[list[Instance], Any, list[Any], list[float]]:
    """Futures, the class, value vectors of all its policies, and the optima."""
    futures, step, last = TREES[family]()
    up = futures[0].sense == "max"
    later = 1 if family == "astraea" else 0
    histories = [
        [(instance.arrival_of(job) + later, job.name) for job in instance.jobs]
        for instance in futures
    ]
    best = max if up else min
    optima = [best(v for (v,) in policies.values([own], step(kind), last, up)) for own in histories]
    return futures, kind, policies.values(histories, step(kind), last, up), optima


def mixed(vectors: list[Any], optima: list[float], up: bool) -> float:
    """The best worst quotient of a mixture of policies."""
    table, sign = np.array(vectors).T / np.array(optima)[:, None], -1.0 if up else 1.0
    cost = np.append(np.zeros(table.shape[1]), sign)
    matrix = np.hstack([sign * table, np.full((len(optima), 1), -sign)])
    whole = np.append(np.ones(table.shape[1]), 0)[None, :]
    return abs(float(linprog(cost, matrix, np.zeros(len(optima)), whole, [1.0]).fun))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", POLICIES)
def test_all_policies_have_been_tried(family: str, kind: str) -> None:
    futures, _, vectors, optima = brute_force(family, kind)
    found = hs.foresight(futures, algorithms=[], policies=kind, time_limit=60)
    up = found.is_maximised
    best, worst = (max, min) if up else (min, max)
    online = best(sum(v) / 2 for v in vectors)
    shares = [worst(v / o for v, o in zip(each, optima, strict=True)) for each in vectors]
    for interval, value in (
        (found.hindsight, sum(optima) / 2), (found.best_online, online),
        (found.guarantee_deterministic, best(shares)),
        (found.guarantee, mixed(vectors, optima, up)),
    ):  # fmt: skip
        assert interval.lower == pytest.approx(value, rel=1e-5)
        assert interval.upper == pytest.approx(value, rel=1e-5)
    assert bool(found.certified) == (family not in ("edgecloud", "mlbroker"))
    values = {
        "expected": online, "guarantee": mixed(vectors, optima, up), "deterministic": best(shares)
    }  # fmt: skip
    for name, bound in found.certified.items():
        value = values[name]
        assert bound >= value * (1 - 1e-9) if up else bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_who_peeks_is_better_somewhere(family: str) -> None:
    """Or the trees above would not tell a policy that peeks."""
    better = []
    for kind in (RUN, COMMIT):
        futures, _, vectors, optima = brute_force(family, kind)
        values = [sum(each) / 2 for each in vectors]
        up = futures[0].sense == "max"
        gap = sum(optima) / 2 - max(values) if up else min(values) - sum(optima) / 2
        assert gap >= -1e-9
        better.append(gap > 1e-6)
    assert any(better)
