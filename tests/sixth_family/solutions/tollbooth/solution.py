"""When each car drives up."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from hindsched.errors import InputError
from hindsched.solutions.base import Assignment, Assignments, Solution, Violation


class TollboothSolution(Solution):
    """First slot by car."""

    family = "tollbooth"

    def __init__(self, instance: Any, start: dict[str, int], formulation: str | None = None):
        self.instance, self.start = instance, start
        self.formulation = instance.check_formulation(formulation)

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        start = {}
        for name, rows in assignments.items():
            job = instance.jobs[instance.job_index(name)]
            if not rows:
                continue
            if len(rows) != 1 or rows[0]["to"] - rows[0]["from"] + 1 != job.length:
                raise InputError(f"assignments.{name}", rows, f"must be one run of {job.length}")
            start[name] = rows[0]["from"]
        return cls(instance, start, formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        return {
            job.name: [
                {
                    "from": self.start[job.name],
                    "to": self.completion(job.name),
                    "workers": {"booth": 1},
                }
            ]
            for job in self.instance.jobs
            if job.name in self.start
        }

    def objective(self) -> float:
        return math.fsum(job.toll for job in self.instance.jobs if job.name in self.start)

    def violations(self) -> list[Violation]:
        found = [
            Violation("(1)", f"job {job.name}", 1.0)
            for job in self.instance.jobs
            if job.name in self.start and self.start[job.name] not in self.instance.starts(job)
        ]
        over = self.used() - self.instance.booths
        return found + [
            Violation("(2)", f"slot {slot + 1}", float(over[slot]))
            for slot in np.flatnonzero(over > 0)
        ]

    def used(self) -> Any:
        used = np.zeros(self.instance.horizon)
        for name, start in self.start.items():
            used[start - 1 : self.completion(name)] += 1
        return used

    def completion(self, job: str) -> int | None:
        if job not in self.start:
            return None
        return self.start[job] + self.instance.jobs[self.instance.job_index(job)].length - 1

    def job_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "job": job.name,
                "arrival": job.arrival,
                "start": self.start.get(job.name),
                "completion": self.completion(job.name),
                "value": job.toll if job.name in self.start else 0.0,
            }
            for job in self.instance.jobs
        ]

    def places(self) -> list[tuple[str, str]]:
        return [("booth", "lane")]

    def usage_rows(self) -> list[dict[str, Any]]:
        capacity = float(self.instance.booths)
        return [
            {
                "slot": slot + 1,
                "server": "booth",
                "resource": "lane",
                "used": float(used),
                "capacity": capacity,
            }
            for slot, used in enumerate(self.used())
            if used
        ]


SOLUTION = TollboothSolution
