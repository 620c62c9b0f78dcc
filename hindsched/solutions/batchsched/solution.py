"""Solutions of batchsched, judged by (2a)-(2o) and (15a)-(15b).

A job's decisions are rows
``{from, to, worker_type, workers: {server: n}, ps_type, ps: {server: n}}`` (no ``ps_type`` and
``ps`` for Ring-AllReduce). q of (2d) and (15a) is no decision of the file: it follows from the
placement, as do x and d.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.solutions.base import TableRow, usage_table
from hindsched.solutions.window_solution import WindowRow, WindowSolution


class BatchschedSolution(WindowSolution):
    """When, where and with what each job runs; see `WindowSolution`.

    The formulations ``modes`` and ``literal`` are the same problem written twice.
    """

    family: ClassVar[str] = "batchsched"
    always_typed = True
    instance: BatchschedInstance

    @cached_property
    def use(self) -> Floats:
        """Resources in use, shape (last_slot, servers, resources)."""
        capacity = self.instance.server_capacity
        check_memory(f"what runs in {self.last_slot} slots", capacity.nbytes * self.last_slot)
        used = np.zeros((self.last_slot, *capacity.shape))
        for rows in self.rows.values():
            for row in rows:
                used[row.first - 1 : row.last] += row_use(self.instance, row)
        return used

    def job_facts(self, job: BatchschedJob) -> JsonObject:
        """Weighted completion time, and how the job ran."""
        completion = self.completion(job.name)
        return {
            "value": None if completion is None else job.weight * (completion + 1),
            "weight": job.weight,
            **self.how_it_ran(job.name),
            "resizes": max(0, len(self.rows.get(job.name, ())) - 1),
        }

    def places(self) -> list[tuple[str, str]]:
        """Servers, each with the resources that it has."""
        servers = self.instance.servers
        return [(s.name, name) for s in servers for name, amount in s.capacity.items() if amount]

    def usage_rows(self) -> list[TableRow]:
        """Use and capacity per slot, server and resource, where something is used."""
        instance = self.instance
        names = instance.server_names, instance.resources
        return usage_table(self.use, instance.server_capacity, *names)


def row_use(instance: BatchschedInstance, row: WindowRow) -> Floats:
    """Resources that a row takes in each of its slots, shape (servers, resources)."""
    used: Floats = np.outer(row.workers, instance.worker_demand[row.worker_type])
    if row.ps_type >= 0:
        used = used + np.outer(row.ps, instance.ps_demand[row.ps_type])
    return used


SOLUTION = BatchschedSolution
