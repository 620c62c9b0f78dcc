"""astraea (max): tenants' revenue of jobs that run once, in one window: (3).

What tenants pay each other (2) adds up to nothing in (3); that it can be divided is checked, and
who pays and gains is said. (3a), (3b) follow from (3c), (3d), as quotas are the servers' counts.
"""

from fractions import Fraction
from typing import Any, ClassVar

from . import reading, windows
from .exact import Data, Interval, utility
from .reading import require
from .verdict import Broken, Verdict, levels

SIGNED = frozenset({"slope", "intercept", "provenance"})
EQUATIONS = {
    "arrival": "(3l)", "horizon": "(3o)", "chunks": "(3e)", "no PS": "(3g)", "bandwidth": "(3i)",
    "overlap": "(3l)", "pause": "(3l)", "change": "(3f)", "ps change": "(3h)", "work": "(3k)",
    "worker_capacity": "(3c)", "ps_capacity": "(3d)",
}  # fmt: skip


def divide(instance: Data, cluster: windows.WindowCluster, solution: Any, broken: Broken) -> Any:
    """(2), (11): what each tenant pays, and gains; a payment is a number from 0 on.

    What a job pays in a slot is divided by what tenants leave unused of a type: their quota less
    what their jobs hold that pay nothing.
    """
    known = reading.names(instance["tenants"], "tenants")
    tenants = dict(zip(known, instance["tenants"], strict=True))
    owner = {job["name"]: job["tenant"] for job in instance["jobs"]}
    rows = [(job["name"], row) for job in solution["jobs"] for row in job.get("assignments", ())]
    cuts = [(row["from"], row["to"], 0) for _, row in rows]
    paid, gained = (dict.fromkeys(tenants, Fraction()) for _ in range(2))
    for key, kind, types in (("workers", "worker", cluster.workers), ("ps", "ps", cluster.ps)):
        single, held = next(iter(types)), {(u, k): [*cuts] for u in tenants for k in types}
        reading.spend(20 * len(held) * len(cuts))
        for name, row in rows:
            if row.get("payment") is None:
                use = row["from"], row["to"], sum(row[key].values())
                held[owner[name], row.get(f"{kind}_type", single)].append(use)
        heights = {label: levels(spans) for label, spans in held.items()}
        for name, row in rows:
            k = row.get(f"{kind}_type", single)
            if row.get("payment") is not None:
                payment, here = row["payment"], f"job {name}: payment"
                require(isinstance(payment, dict) and set(payment) == {"workers", "ps"}, here)
                price = payment[key]
                require(type(price) in (int, Fraction), f"{here}.{key}: must be a number")
                says = "pays {} for {}, less than nothing", price, key
                broken.note(-price, "(2)", name, row["from"], row["to"], "", key, says)
                price = max(0, price)
                paid[owner[name]] += price * (row["to"] - row["from"] + 1)
                quotas = [_typed(t[f"{kind}_quota"], single)[k] for t in tenants.values()]
                reading.spend(len(cuts) + 1)
                for of_all in zip(*(heights[u, k] for u in tenants), strict=True):
                    first, last, _ = of_all[0]
                    if row["from"] <= first <= row["to"]:
                        reading.spend(20 * len(tenants))
                        offers = [max(0, n - h) for n, (*_, h) in zip(quotas, of_all, strict=True)]
                        unclaimed = 0 if any(offers) else price
                        says = "pays {} for {} that nobody offers", price, key
                        broken.note(unclaimed, "(2)", name, first, last, "", key, says)
                        unit = Fraction(price * (last - first + 1)) / (sum(offers) or 1)
                        for u, n in zip(tenants, offers, strict=True):
                            gained[u] += unit * n
    return [(f"tenant {u} {what}", sums[u]) for u in tenants
            for what, sums in (("pays", paid), ("gains", gained))]  # fmt: skip


def _typed(value: Any, single: str) -> Data:
    """Values by type (Section 6); a bare number is that of the single type."""
    return value if isinstance(value, dict) else {single: value}


class Problem(windows.WindowProblem):
    """(3c)-(3o) of an instance, and (2)."""

    sense = "max"
    formulations: ClassVar = {
        f"{obligation},{writing}": obligation
        for obligation in ("optional", "must-complete")
        for writing in ("modes", "literal")
    }  # fmt: skip
    nonanticipative = ("optional,modes", "optional,literal")

    def __init__(self, instance: Data, formulation: str) -> None:
        reading.natural(instance, SIGNED, "instance")
        b_w = _typed(instance["worker_bandwidth_mbps"], "worker")
        b_p = _typed(instance["ps_bandwidth_mbps"], "ps")
        names = [*b_w, *b_p]
        unit = [tuple(int(other == k) for other in range(len(names))) for k in range(len(names))]
        workers = {w: (unit[k], b_w[w]) for k, w in enumerate(b_w)}
        ps = {p: (unit[k], b_p[p]) for k, p in enumerate(b_p, len(b_w))}
        rows = {"worker_capacity": ("type", list(b_w)), "ps_capacity": ("type", list(b_p))}

        def amounts(record: Data, y: str, z: str) -> tuple[Any, ...]:
            held, held_ps = _typed(record[y], "worker"), _typed(record[z], "ps")
            return *(held[w] for w in b_w), *(held_ps[p] for p in b_p)

        known = reading.names(instance["servers"], "servers")
        rooms = [amounts(server, "workers", "ps") for server in instance["servers"]]
        quotas = [amounts(tenant, "worker_quota", "ps_quota") for tenant in instance["tenants"]]
        sums = {tuple(map(sum, zip(*held, strict=True))) for held in (quotas, rooms)}
        require(len(sums) == 1, "tenants: quotas must add up to the servers' counts")
        must = formulation.startswith("must-complete")
        servers, last = dict(zip(known, rooms, strict=True)), instance["horizon"]
        cluster = windows.WindowCluster(servers, workers, ps, last, rows, must, -1, EQUATIONS)
        reading.names(instance["jobs"], "jobs")
        self.instance, jobs = (
            instance,
            [_astraea_job(instance, cluster, job) for job in instance["jobs"]],
        )
        super().__init__(cluster, jobs, {"payment"})

    def check(self, solution: Data) -> Verdict:
        """Check (3c)-(3o), add up the revenues, and divide what is paid."""
        verdict, broken = super().check(solution), Broken()
        notes = divide(self.instance, self.cluster, solution, broken)
        broken.violations += verdict.violations
        return broken.verdict(verdict.value, notes)

    @classmethod
    def reveal_slot(cls, instance: Data, job: Data) -> int:
        """The slot after its arrival."""
        return int(job["arrival"]) + 1


def _astraea_job(instance: Data, cluster: windows.WindowCluster, job: Any) -> windows.WindowJob:
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

    return windows.WindowJob(*windows.counted(job, 0), time, cost)
