"""gang: rules (1)-(7) with a variable for every slot in which a job may hold GPUs.

A *way* to run is what a job holds on every server (a pool is one server): exactly its GPUs, or any
number up to the most that it can use where it is elastic, placed as (6) allows. A job in one piece
chooses a way and a start; any other chooses a way in every slot, and the slot after which it holds
none. Idle slots behind the last submission help nobody, so all ends by then plus all durations.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from .milp import Milp

GOALS = ("", ",makespan", ",deadlines")
FORMULATIONS = tuple(
    kind + goal for goal in GOALS for kind in ("non-preemptive", "preemptive", "elastic")
)


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.kind, _, self.goal = formulation.partition(",")
        self.seconds = Fraction(instance["slot_seconds"])
        self.jobs_of = instance["jobs"]
        listed = instance.get("servers") or [{"name": "", "gpus": instance["gpus"]}]
        self.consolidated = instance.get("placement") == "consolidated"
        self.kind_of = {server["name"]: server.get("gpu_kind", "") for server in listed}
        self.kinds = dict.fromkeys(self.kind_of.values(), 0)
        for server in listed:
            self.kinds[self.kind_of[server["name"]]] += server["gpus"]
        self.sizes = self.kinds
        if self.consolidated:
            self.sizes = {server["name"]: server["gpus"] for server in listed}
        else:
            self.kind_of = {kind: kind for kind in self.kinds}
        self.program = Milp("min")
        starts = [self.slots(job["submit"]) for job in self.jobs_of]
        self.end = max(starts, default=0) + sum(self.slots(j["duration"]) for j in self.jobs_of)
        self.held: dict[tuple[int, int, tuple[int, ...]], list[Any]] = {}
        """Variables by job, slot and way: those that are 1 where the job holds it."""
        latest = self.program.variable(self.end, self.seconds if self.goal == "makespan" else 0)
        for j, job in enumerate(self.jobs_of):
            if self.kind == "non-preemptive":
                self.one_piece(j, job, starts[j], latest)
            else:
                self.slot_by_slot(j, job, starts[j], latest)
        for t in range(1, self.end + 1):
            for h, size in enumerate(self.sizes.values()):
                use = [(x, way[h]) for (_, slot, way), own in self.held.items() if slot == t
                       for x in own]  # fmt: skip
                self.program.row(use, at_most=size)  # (5)

    def slots(self, seconds: Any) -> int:
        """A time as a whole number of slots."""
        found = Fraction(seconds) / self.seconds
        assert found.denominator == 1
        return int(found)

    def ways(self, job: dict[str, Any]) -> list[tuple[int, ...]]:
        """What a job may hold on every server in a slot: (3), (6) and (8)."""
        sizes, places = tuple(self.sizes.values()), list(self.sizes)
        mine = job.get("gpu_kinds") or list(self.kinds)
        largest = max(self.sizes[h] for h in places if self.kind_of[h] in mine)
        most = min(job.get("most_gpus") or sum(sizes), sum(sizes))
        counts = range(1, most + 1) if self.kind == "elastic" else (job["gpus"],)
        found = []
        for way in itertools.product(*(range(size + 1) for size in sizes)):
            held = [(n, size) for n, size in zip(way, sizes, strict=True) if n]
            partial = sum(n < size for n, size in held)
            together = len(held) == 1 if sum(way) <= largest else partial <= 1
            kinds = {self.kind_of[h] for h, n in zip(places, way, strict=True) if n}
            if len(kinds) != 1 or not kinds <= set(mine):
                continue
            if sum(way) in counts and (together or not self.consolidated):
                found.append(way)
        return found

    def cost(self, job: dict[str, Any], end: int) -> Any:
        """What a job costs that completes in a slot; nothing for the makespan."""
        weight = Fraction(job.get("weight", 1))
        if self.goal == "deadlines":
            due = job.get("deadline")
            return weight if due is not None and end * self.seconds > due else 0
        return 0 if self.goal else weight * (end * self.seconds - Fraction(job["submit"]))

    def one_piece(self, j: int, job: dict[str, Any], submit: int, latest: int) -> None:
        """(1), (2), (4): a way and a start."""
        length, own = self.slots(job["duration"]), []
        for way in self.ways(job):
            for first in range(submit + 1, self.end - length + 2):
                x = self.program.variable(1, self.cost(job, first + length - 1))
                own.append((x, first + length - 1))
                for t in range(first, first + length):
                    self.held.setdefault((j, t, way), []).append(x)
        self.program.equal([(x, 1) for x, _ in own], 1)
        self.program.row([(latest, 1), *((x, -end) for x, end in own)], at_least=0)

    def slot_by_slot(self, j: int, job: dict[str, Any], submit: int, latest: int) -> None:
        """(1), (2): a way in every slot up to the last one."""
        slots = range(submit + 1, self.end + 1)
        last = {t: self.program.variable(1, self.cost(job, t)) for t in slots}
        self.program.equal([(z, 1) for z in last.values()], 1)
        self.program.row([(latest, 1), *((z, -t) for t, z in last.items())], at_least=0)
        done = []
        for t in slots:
            now = [(self.program.variable(1), way) for way in self.ways(job)]
            for x, way in now:
                self.held[j, t, way] = [x]
                done.append((x, sum(way) if self.kind == "elastic" else 1))
            running = [(z, -1) for end, z in last.items() if end >= t]
            self.program.row([*((x, 1) for x, _ in now), *running], at_most=0)
        work = self.slots(job["duration"]) * (job["gpus"] if self.kind == "elastic" else 1)
        most = None if self.kind == "elastic" else work  # a rigid job runs exactly for its duration
        self.program.row(done, at_least=work, at_most=most)

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        rows: list[list[dict[str, Any]]] = [[] for _ in self.jobs_of]
        for (j, t, way), own in sorted(self.held.items()):
            if any(point[x] for x in own):
                held = {h: n for h, n in zip(self.sizes, way, strict=True) if n}
                where = {"servers": held} if self.consolidated else {"gpus": sum(way)}
                if len(self.kinds) > 1 and not self.consolidated:
                    (where["gpu_kind"],) = held
                rows[j].append({"from": t, "to": t, **where})
        return [
            {"name": job["name"], "completion": max(row["to"] for row in own), "assignments": own}
            for job, own in zip(self.jobs_of, rows, strict=True)
        ]
