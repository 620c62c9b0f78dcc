"""Solutions of batchsched, judged by (2a)-(2o) and (15a)-(15b).

A job's decisions are rows
``{from, to, worker_type, workers: {server: n}, ps_type, ps: {server: n}}`` (no ``ps_type`` and
``ps`` for Ring-AllReduce). q of (2d) and (15a) is no decision of the file: it follows from the
placement, as do x and d.
"""

from __future__ import annotations

from typing import ClassVar

from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.json_types import JsonObject
from hindsched.solutions.window_solution import WindowSolution


class BatchschedSolution(WindowSolution):
    """When, where and with what each job runs; see `WindowSolution`.

    The formulations ``modes`` and ``literal`` are the same problem written twice.
    """

    family: ClassVar[str] = "batchsched"
    always_typed = True
    instance: BatchschedInstance

    def job_facts(self, job: BatchschedJob) -> JsonObject:
        """Weighted completion time, and how the job ran."""
        completion = self.completion(job.name)
        return {
            "value": None if completion is None else job.weight * (completion + 1),
            "weight": job.weight,
            **self.how_it_ran(job.name),
            "resizes": max(0, len(self.rows.get(job.name, ())) - 1),
        }


SOLUTION = BatchschedSolution
