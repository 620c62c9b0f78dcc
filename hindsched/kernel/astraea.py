"""astraea (max): tenants' revenue of jobs that run once, in one window: (3).

What tenants pay each other (2) adds up to nothing and is no part of (3): it is not checked. (3a)
and (3b) follow from (3c) and (3d), as quotas add up to the servers' counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from . import reading, windows
from .exact import Interval, utility
from .reading import Checked, Progress, names, require

SENSE = "max"
SIGNED = frozenset({"slope", "intercept", "provenance"})
FORMULATIONS = {
    f"{obligation},{writing}": obligation
    for obligation in ("optional", "must-complete") for writing in ("modes", "literal")
}  # fmt: skip
EQUATIONS = {
    "arrival": "(3l)", "horizon": "(3o)", "chunks": "(3e)", "no worker": "(3n)", "no PS": "(3g)",
    "workers": "(3o)", "ps": "(3o)", "bandwidth": "(3i)", "pause": "(3l)", "change": "(3f), (3h)",
    "work": "(3k)", "capacity": "(3c), (3d)",
}  # fmt: skip


def check(instance: dict[str, Any], solution: dict[str, Any]) -> Checked:
    """Check (3c)-(3o) and add up the revenues."""
    return windows.check(*_problem(instance, solution["formulation"]), solution)


def bound(instance: dict[str, Any], certificate: dict[str, Any], progress: Progress) -> Interval:
    """P b + sum of max over X_j of [f_j - p A x], of max(0, .) where jobs are optional."""
    problem = _problem(instance, certificate["formulation"])
    return windows.bound(*problem, certificate, progress)


def _problem(
    instance: Mapping[str, Any], formulation: str
) -> tuple[windows.Cluster, list[windows.Job]]:
    reading.natural(instance, SIGNED, "instance")

    def typed(value: Any, single: str) -> dict[str, Any]:
        return value if isinstance(value, dict) else {single: value}

    b_w, b_p = (
        typed(instance["worker_bandwidth_mbps"], "worker"),
        typed(instance["ps_bandwidth_mbps"], "ps"),
    )
    width = len(b_w) + len(b_p)
    unit = [tuple(int(i == k) for i in range(width)) for k in range(width)]

    def amounts(record: Mapping[str, Any], workers: str, ps: str) -> tuple[Any, ...]:
        both = typed(record[workers], "worker"), typed(record[ps], "ps")
        return *(both[0][w] for w in b_w), *(both[1][p] for p in b_p)

    names(instance["servers"], "servers")
    servers = {h["name"]: amounts(h, "workers", "ps") for h in instance["servers"]}
    quotas = [amounts(tenant, "worker_quota", "ps_quota") for tenant in instance["tenants"]]
    sums = (list(map(sum, zip(*rows, strict=True))) for rows in (quotas, servers.values()))
    require(len({tuple(each) for each in sums}) == 1, "tenants: quotas must add up to the servers")
    cluster = windows.Cluster(
        servers,
        {w: (demand, b) for (w, b), demand in zip(b_w.items(), unit, strict=False)},
        {p: (demand, b) for (p, b), demand in zip(b_p.items(), unit[len(b_w) :], strict=True)},
        instance["horizon"],
        {"worker_capacity": ("type", list(b_w)), "ps_capacity": ("type", list(b_p))},
        FORMULATIONS[formulation] == "must-complete",
        -1,
        EQUATIONS,
    )
    jobs = []
    for name, job in zip(names(instance["jobs"], "jobs"), instance["jobs"], strict=True):
        train, update = typed(job["minibatch_slots"], "worker"), typed(job["update_slots"], "ps")
        require(all(train[w] > 0 for w in b_w), f"job {name}: minibatch_slots must be above 0")
        far = Fraction(16 * job["gradient_mb"]) / instance["slot_seconds"]
        origin = {"arrival": job["arrival"], "absolute": 0}[instance["utility_origin"]]
        times = {
            (w, p, q): train[w] + update[p] + (0 if q else far / b_w[w])  # 1 / n_j of (1)
            for w in b_w for p in b_p for q in (0, 1)
        }  # fmt: skip
        work = job["epochs"] * job["chunks"] * job["minibatches"]
        time = partial(_time, times)
        cost = partial(_cost, job["utility"], origin)
        jobs.append(windows.Job(name, job["arrival"] + 1, job["chunks"], work, time, cost))
    return cluster, jobs


def _time(times: Mapping[Any, Any], w: str, p: Any, q: int, _: int) -> Any:
    return times[w, p, q]


def _cost(f: Mapping[str, Any], origin: int, end: int) -> Interval:
    return -utility(f, end - origin)
