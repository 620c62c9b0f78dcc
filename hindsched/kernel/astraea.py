"""astraea (max): tenants' revenue of jobs that run once, in one window: (3).

What tenants pay each other (2) adds up to nothing in (3); that it can be divided is checked, and
who pays and gains is said. (3a), (3b) follow from (3c), (3d), as quotas are the servers' counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from . import reading, windows
from .exact import Interval, utility
from .reading import Checked, Progress, Violation, note, require

SENSE = "max"
SIGNED = frozenset({"slope", "intercept", "provenance"})
FORMULATIONS = {
    f"{obligation},{writing}": problem
    for obligation in ("optional", "must-complete")
    for writing, problem in (
        ("modes", obligation), ("literal", obligation), ("preemptive", f"{obligation}, in pieces")
    )
}  # fmt: skip
EQUATIONS = {
    "arrival": "(3l)", "horizon": "(3o)", "chunks": "(3e)", "no worker": "(3n)", "no PS": "(3g)",
    "workers": "(3o)", "ps": "(3o)", "bandwidth": "(3i)", "pause": "(3l)", "change": "(3f), (3h)",
    "work": "(3k)", "capacity": "(3c), (3d)",
}  # fmt: skip


def check(instance: dict[str, Any], solution: dict[str, Any]) -> Checked:
    """Check (3c)-(3o), add up the revenues, and divide what is paid."""
    cluster, jobs = _problem(instance, solution["formulation"])
    found = windows.check(cluster, jobs, solution)
    return replace(found, notes=divide(instance, cluster, solution, found.violations))


def divide(
    instance: Mapping[str, Any], cluster: windows.Cluster, solution: Any, broken: list[Violation]
) -> list[tuple[str, Fraction]]:
    """(2), (11): what each tenant pays, and gains.

    What a job pays in a slot is divided by what tenants leave unused of a type: their quota less
    what their jobs hold that pay nothing.
    """
    known = reading.names(instance["tenants"], "tenants")
    tenants = dict(zip(known, instance["tenants"], strict=True))
    owner = {job["name"]: job["tenant"] for job in instance["jobs"]}
    rows = [(job["name"], row) for job in solution["jobs"] for row in job.get("assignments", ())]
    cuts = sorted({slot for _, row in rows for slot in (row["from"], row["to"] + 1)})
    at = {slot: position for position, slot in enumerate(cuts)}
    reading.spend(10 * len(tenants) * len(cuts) * (len(cluster.workers) + len(cluster.ps)))
    paid, gained = (dict.fromkeys(tenants, Fraction()) for _ in range(2))
    for key, kind, types in (("workers", "worker", cluster.workers), ("ps", "ps", cluster.ps)):
        single = next(iter(types))
        unused = {(u, k): [n, *[0] * len(cuts)] for u, t in tenants.items()
                  for k, n in _typed(t[f"{kind}_quota"], single).items()}  # fmt: skip
        for name, row in rows:
            if row.get("payment") is None:
                change = unused[owner[name], row.get(f"{kind}_type", single)]
                change[at[row["from"]]] -= sum(row[key].values())
                change[at[row["to"] + 1]] += sum(row[key].values())
        left = {label: list(accumulate(change)) for label, change in unused.items()}
        for name, row in rows:
            here = f"job {name}, {key} of nobody"
            if row.get("payment") is not None:
                require(set(row["payment"]) == {"workers", "ps"}, f"job {name}: payment")
                price = reading.number(row["payment"][key], f"job {name}: payment")
                paid[owner[name]] += price * (row["to"] - row["from"] + 1)
                for i in range(at[row["from"]], at[row["to"] + 1]):
                    reading.spend(20 * len(tenants))
                    offers = [max(0, left[u, row.get(f"{kind}_type", single)][i]) for u in tenants]
                    note(broken, "(2)", f"{here}, slot {cuts[i]}", 0 if any(offers) else price)
                    unit = Fraction(price * (cuts[i + 1] - cuts[i])) / (sum(offers) or 1)
                    for u, n in zip(tenants, offers, strict=True):
                        gained[u] += unit * n
    return [(f"tenant {u} {what}", sums[u]) for u in tenants
            for what, sums in (("pays", paid), ("gains", gained))]  # fmt: skip


def bound(instance: dict[str, Any], certificate: dict[str, Any], progress: Progress) -> Interval:
    """P b + sum of max over X_j of [f_j - p A x], of max(0, .) where jobs are optional."""
    problem = _problem(instance, certificate["formulation"])
    return windows.bound(*problem, certificate, progress)


def _typed(value: Any, single: str) -> dict[str, Any]:
    """Values by type (Section 6); a bare number is that of the single type."""
    return value if isinstance(value, dict) else {single: value}


def _problem(
    instance: Mapping[str, Any], formulation: str
) -> tuple[windows.Cluster, list[windows.Job]]:
    reading.natural(instance, SIGNED, "instance")
    b_w = _typed(instance["worker_bandwidth_mbps"], "worker")
    b_p = _typed(instance["ps_bandwidth_mbps"], "ps")
    names = [*b_w, *b_p]
    unit = [tuple(int(other == k) for other in range(len(names))) for k in range(len(names))]
    workers = {w: (unit[k], b_w[w]) for k, w in enumerate(b_w)}
    ps = {p: (unit[k], b_p[p]) for k, p in enumerate(b_p, len(b_w))}
    rows = {"worker_capacity": ("type", list(b_w)), "ps_capacity": ("type", list(b_p))}

    def amounts(record: Mapping[str, Any], y: str, z: str) -> tuple[Any, ...]:
        held, held_ps = _typed(record[y], "worker"), _typed(record[z], "ps")
        return *(held[w] for w in b_w), *(held_ps[p] for p in b_p)

    known = reading.names(instance["servers"], "servers")
    rooms = [amounts(server, "workers", "ps") for server in instance["servers"]]
    quotas = [amounts(tenant, "worker_quota", "ps_quota") for tenant in instance["tenants"]]
    sums = {tuple(map(sum, zip(*held, strict=True))) for held in (quotas, rooms)}
    require(len(sums) == 1, "tenants: quotas must add up to the servers' counts")
    must, pieces = formulation.startswith("must-complete"), formulation.endswith("preemptive")
    servers, last = dict(zip(known, rooms, strict=True)), instance["horizon"]
    cluster = windows.Cluster(servers, workers, ps, last, rows, must, -1, EQUATIONS, pieces)
    reading.names(instance["jobs"], "jobs")
    return cluster, [_job(instance, cluster, job) for job in instance["jobs"]]


def _job(instance: Mapping[str, Any], cluster: windows.Cluster, job: Any) -> windows.Job:
    train, update = _typed(job["minibatch_slots"], "worker"), _typed(job["update_slots"], "ps")
    require(all(train[w] > 0 for w in cluster.workers), f"job {job['name']}: must take time")
    far = Fraction(16 * job["gradient_mb"]) / instance["slot_seconds"]
    origin = {"arrival": job["arrival"], "absolute": 0}[instance["utility_origin"]]

    def time(w: str, p: Any, q: int, _: int) -> Any:
        """1 / n_j of (1)."""
        return train[w] + update[p] + (0 if q else far / cluster.workers[w][1])

    def cost(end: int) -> Interval:
        """Negative of f_j, whose argument counts from the instance's origin."""
        return -utility(job["utility"], end - origin)

    return windows.Job(*windows.counted(job, 0), time, cost)
