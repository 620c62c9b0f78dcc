"""Every worker count and PS place of jobs in slots of tiny mlbroker instances, and its cost.

Shares nothing with the package: data, costs and transport are computed here from the file's JSON,
the transport by scipy's own linear programming. Every launch and every connection counts.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy.optimize import linprog


def transport(data: list[float], room: list[float], price: list[list[float]]) -> float:
    """Least cost of bringing the data to the room; infinite if it does not fit."""
    size = len(data)
    cost = [price[r][q] for r in range(size) for q in range(size)]
    bounds = [(0, 0 if math.isinf(c) else None) for c in cost]
    out = np.zeros((size, size * size))
    into = np.zeros((size, size * size))
    for r in range(size):
        for q in range(size):
            out[r, r * size + q] = 1
            into[q, r * size + q] = 1
    finite = [0.0 if math.isinf(c) else c for c in cost]
    result = linprog(
        finite, A_ub=into, b_ub=np.array(room) + 1e-9, A_eq=out, b_eq=data, bounds=bounds
    )
    return float(result.fun) if result.status == 0 else math.inf


class Slots:
    """Raw choices of jobs in slots, and what they cost, of an instance file's JSON data."""

    def __init__(self, file: dict[str, Any]) -> None:
        weights = {"transfer": 1, "resource": 1, "deployment": 1, "communication": 1}
        self.file, self.weights = file, weights | file.get("cost_weights", {})
        self.centers = [center["name"] for center in file["datacenters"]]
        self.prices = [center["prices"] for center in file["datacenters"]]

    def choices(self, job: dict[str, Any], t: int) -> list[tuple[float, Any, frozenset[int]]]:
        """Of a job in a slot of its life: (cost alone, units rented, places used)."""
        size, kinds, distance = (
            len(self.centers), self.file["resources"], self.file["transfer_usd_per_gb"],
        )  # fmt: skip
        arc = [list(row) for row in distance]
        for name in job.get("pinned_datacenters", []):
            r = self.centers.index(name)
            arc[r] = [0.0 if q == r else math.inf for q in range(size)]
        data = job["data_gb"][t - job["arrival"]]
        needed = math.ceil(sum(data) / job["capacity_gb"] - 1e-9)
        options = []
        for y in itertools.product(range(needed + size), repeat=size):
            if sum(y) > needed + size - 1:
                continue
            moved = transport(data, [job["capacity_gb"] * n for n in y], arc)
            if math.isinf(moved):
                continue
            for p in range(size):
                talk = sum(job["exchange_gb"] * distance[r][p] * y[r] for r in range(size))
                units = [
                    [
                        y[r] * job["worker"].get(kind, 0) + (r == p) * job["ps"].get(kind, 0)
                        for kind in kinds
                    ]
                    for r in range(size)
                ]
                places = frozenset(r for r in range(size) if y[r] > 0 or r == p)
                alone = self.weights["transfer"] * moved + self.weights["communication"] * talk
                options.append((alone, np.array(units, dtype=float), places))
        return options

    def bill(self, units: Any) -> float:
        """What all units of a slot cost, by data centre and resource."""
        total = 0.0
        for r in range(len(self.centers)):
            for k, kind in enumerate(self.file["resources"]):
                price, h = self.prices[r][kind], units[r][k]
                if h <= price["threshold"]:
                    total += price["unit_usd"] * h
                else:
                    total += price["discounted_usd"] * h
                    total += (price["unit_usd"] - price["discounted_usd"]) * price["threshold"]
        return self.weights["resource"] * total
