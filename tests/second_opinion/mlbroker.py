"""mlbroker: problem (8), as printed and as meant.

``paper``: (8a)-(8k) with U = N + 1 and M large enough. ``tight``: what a schedule really costs: a
job is in a data centre (v) only where it has workers or its PS, and every worker is connected to
the PS; at most R - 1 workers beyond the N needed.

==  ============================================================================================
y   workers of job i in data centre r; s = 1 where its PS is; v = 1 where it is deployed
q   data moved from r to r', in units of what one worker trains in a slot
g   connections of workers in r to the PS in r'
x   cost of resource k in data centre r, the cheaper of two lines; u picks the line
==  ============================================================================================
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .milp import Milp, ceil_div

FORMULATIONS = ("tight", "paper")
UNSURE = Fraction(1, 10**4)
"""Ten times the usual, of costs that are 64 times smaller: schedules 6e-9 apart were confused."""


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.program = program = Milp("min", unsure=UNSURE)
        weights = instance.get("cost_weights") or {}
        w1, w2, w3, w4 = (
            Fraction(weights.get(name, 1))
            for name in ("transfer", "resource", "deployment", "communication")
        )
        jobs = instance["jobs"]
        centres = instance["datacenters"]
        R = range(len(centres))
        d = [[Fraction(price) for price in row] for row in instance["transfer_usd_per_gb"]]
        tight = formulation == "tight"
        self.y: dict[tuple[int, int, int], int] = {}
        self.s: dict[tuple[int, int, int], int] = {}
        for i, job in enumerate(jobs):
            P, B = Fraction(job["capacity_gb"]), Fraction(job["exchange_gb"])
            pinned = job.get("pinned_datacenters") or []
            before: list[int] = []
            for t in range(job["arrival"], job["departure"] + 1):
                D = [Fraction(amount) for amount in job["data_gb"][t - job["arrival"]]]
                N = ceil_div(sum(D), P)
                most = N if tight else N + 1
                y = [program.variable(most) for _ in R]
                s = [program.variable(1) for _ in R]
                v = [program.variable(1) for _ in R]
                z = [program.variable(1, w3 * Fraction(job["deployment_usd"])) for _ in R]
                q = [[program.variable(None, w1 * P * d[r][o], False) for o in R] for r in R]
                g = [[program.variable(most, w4 * B * d[r][o]) for o in R] for r in R]
                for r in R:
                    program.row([(y[r], -1), *((q[o][r], 1) for o in R)], at_most=0)  # (8a)
                    program.equal([(q[r][o], 1) for o in R], D[r] / P)  # (8b)
                    if centres[r]["name"] in pinned:
                        program.equal([(q[r][r], 1)], D[r] / P)
                        program.row([(y[r], 1)], at_least=ceil_div(D[r], P))  # implied
                program.row([(y[r], 1) for r in R], at_least=N)  # implied by (8a), (8b)
                program.equal([(s[r], 1) for r in R], 1)  # (8f)
                for r in R:
                    program.row([(y[r], 1), (s[r], 1), (v[r], -(N + 1))], at_most=0)  # (8g)
                    past = [(before[r], -1)] if before else []  # v(t_i - 1) = 0
                    program.row([(v[r], 1), *past, (z[r], -1)], at_most=0)  # (8h)
                    program.equal([(y[r], -1), *((g[r][o], 1) for o in R)])  # (8i)
                    joined = [(g[o][r], 1) for o in R]
                    if tight:
                        program.row([*joined, (s[r], -(N + len(R) - 1))], at_most=0)
                        program.row([(v[r], 1), (y[r], -1), (s[r], -1)], at_most=0)
                        program.row([(y[r], 1), (v[r], -N)], at_most=0)
                        program.row([(s[r], 1), (v[r], -1)], at_most=0)
                    else:
                        program.row([*joined, (s[r], -N)], at_least=0)  # (8j)
                if tight:
                    program.row([(y[r], 1) for r in R], at_most=N + len(R) - 1)
                before = v
                for r in R:
                    self.y[i, r, t], self.s[i, r, t] = y[r], s[r]
        for t in range(1, instance["horizon"] + 1):
            for r in R:
                for k in instance["resources"]:
                    self.resource_cost(r, k, t, w2)

    def resource_cost(self, r: int, k: str, t: int, weight: Fraction) -> None:
        """Add x of a resource: (8c)-(8e) with a large enough M for each line."""
        program = self.program
        price = self.instance["datacenters"][r]["prices"][k]
        a, b = Fraction(price["unit_usd"]), Fraction(price["discounted_usd"])
        e = (a - b) * Fraction(price["threshold"])
        amount: list[tuple[int, Fraction]] = []
        for i, job in enumerate(self.instance["jobs"]):
            if (i, r, t) in self.y:
                amount.append((self.y[i, r, t], Fraction(job["worker"].get(k, 0))))
                amount.append((self.s[i, r, t], Fraction(job["ps"].get(k, 0))))
        most = sum((n * (program.upper[j] or 0) for j, n in amount), Fraction(0))
        if not most:
            return
        # x counts in small parts of the largest cost: a row may be broken by HiGHS' tolerance, and
        # that much of a cost decides between lines that nearly meet
        unit = a * most / 64 or Fraction(1)
        x = program.variable(None, weight * unit, False)
        a, b, e = a / unit, b / unit, e / unit
        above = max(Fraction(0), (a - b) * most - e)  # most that line 1 lies above line 2
        u = [program.variable(1), program.variable(1)]
        program.row([(x, 1), *((j, -a * n) for j, n in amount), (u[0], above)], at_least=0)  # (8c)
        program.row([(x, 1), *((j, -b * n) for j, n in amount), (u[1], e)], at_least=e)  # (8d)
        program.equal([(u[0], 1), (u[1], 1)], 1)  # (8e)

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        names = [centre["name"] for centre in self.instance["datacenters"]]
        listed = []
        for i, job in enumerate(self.instance["jobs"]):
            rows = []
            for t in range(job["arrival"], job["departure"] + 1):
                workers = {
                    name: int(point[self.y[i, r, t]])
                    for r, name in enumerate(names)
                    if point[self.y[i, r, t]]
                }
                home = next(name for r, name in enumerate(names) if point[self.s[i, r, t]])
                rows.append({"from": t, "to": t, "workers": workers, "ps": home})
            listed.append(
                {"name": job["name"], "completion": job["departure"], "assignments": rows}
            )
        return listed
