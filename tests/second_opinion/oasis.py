"""oasis: problem (1)-(13) of the paper, line by line.

====  ==================================================================
x_i   job i is admitted: it completes in one of its slots
u_ie  job i completes in slot e, (8)
y_iht workers of job i on server h in slot t
z_ikt parameter servers of job i on server k in slot t
====  ==================================================================
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .milp import Milp, utility

FORMULATIONS = ("standard",)


def work(job: dict[str, Any], instance: dict[str, Any]) -> int:
    """Worker-slots of a job: the right side of (2), rounded up since its left side is whole."""
    sent = 8 * Fraction(job["gradient_mb"])
    seconds = sent / bandwidth(job["worker"], instance) if sent else 0
    slots = Fraction(job["minibatch_slots"]) + 2 * seconds / Fraction(instance["slot_seconds"])
    return math.ceil(job["epochs"] * job["chunks"] * job["minibatches"] * slots)


def bandwidth(demand: dict[str, Any], instance: dict[str, Any]) -> Fraction:
    """Bandwidth of a worker (b_i) or of a parameter server (B_i)."""
    return Fraction(demand.get(instance["bandwidth_resource"], 0))


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.program = program = Milp("max")
        jobs = instance["jobs"]
        horizon = instance["horizon"]
        sides = (instance["worker_servers"], instance["ps_servers"])
        self.y: dict[tuple[int, int, int], int] = {}
        self.z: dict[tuple[int, int, int], int] = {}
        for i, job in enumerate(jobs):
            most = job["chunks"]
            slots = range(job["arrival"], horizon + 1)  # (9), (10)
            u = {e: program.variable(1, utility(job["utility"], e - job["arrival"])) for e in slots}
            program.row([(u[e], 1) for e in slots], at_most=1)  # (11)
            for t in slots:
                for h in range(len(sides[0])):
                    self.y[i, h, t] = program.variable(most)
                for k in range(len(sides[1])):
                    self.z[i, k, t] = program.variable(most)
            need = work(job, instance)
            everything = [(self.y[i, h, t], 1) for t in slots for h in range(len(sides[0]))]
            program.row([*everything, *((u[e], -need) for e in slots)], at_least=0)  # (2)
            b, B = bandwidth(job["worker"], instance), bandwidth(job["ps"], instance)
            for t in slots:
                workers = [(self.y[i, h, t], Fraction(1)) for h in range(len(sides[0]))]
                servers = [(self.z[i, k, t], Fraction(1)) for k in range(len(sides[1]))]
                later = [(u[e], -most) for e in slots if e >= t]
                program.row([*workers, *later], at_most=0)  # (3), (8)
                program.row(
                    [*((j, b) for j, _ in workers), *((j, -B) for j, _ in servers)], at_most=0
                )  # (6)
                program.row([*servers, *((j, -1) for j, _ in workers)], at_most=0)  # (7)
        for side, units, role in ((sides[0], self.y, "worker"), (sides[1], self.z, "ps")):
            for t in range(1, horizon + 1):
                for s, server in enumerate(side):
                    for r in instance["resources"]:
                        terms = [
                            (units[i, s, t], job[role].get(r, 0))
                            for i, job in enumerate(jobs)
                            if (i, s, t) in units
                        ]
                        program.row(terms, at_most=server["capacity"].get(r, 0))  # (4), (5)

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        listed = []
        for i, job in enumerate(self.instance["jobs"]):
            rows = []
            for t in range(job["arrival"], self.instance["horizon"] + 1):
                workers, ps = (
                    {
                        server["name"]: int(point[units[i, s, t]])
                        for s, server in enumerate(self.instance[side])
                        if point[units[i, s, t]]
                    }
                    for units, side in ((self.y, "worker_servers"), (self.z, "ps_servers"))
                )
                if workers:
                    rows.append({"from": t, "to": t, "workers": workers, "ps": ps})
            done = sum(sum(row["workers"].values()) for row in rows) >= work(job, self.instance)
            listed.append(
                {
                    "name": job["name"],
                    "completion": rows[-1]["to"] if rows and done else None,
                    "assignments": rows if done else [],
                }
            )
        return listed
