"""Blocks of gang read as rows of a solution file, and set from a schedule."""

from __future__ import annotations

import pyomo.environ as pyo

from hindsched.instances.gang.instance import GangInstance
from hindsched.json_types import JsonObject
from hindsched.models.gang.block import JobBlock
from hindsched.models.gang.placement import Places
from hindsched.models.gang.sets import Task
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution


def read_block(
    instance: GangInstance, task: Task, job: JobBlock, places: Places | None = None
) -> list[Assignment]:
    """Rows of a job at the variables' values; neighbouring slots that hold the same are one.

    Where only deadlines or the makespan count a job may hold its GPUs for longer than its work
    takes: they are given back as soon as it is done.
    """
    rows: list[Assignment] = []
    left = task.work
    for slot, gpus in sorted(job.held.items()):
        units = round(pyo.value(gpus) / task.gpus)
        if not units or left <= 0:
            continue
        left -= units
        held: JsonObject = {"gpus": units * task.gpus}
        if places is not None:
            assert instance.servers is not None
            counts = [
                (server.name, round(pyo.value(places.held[slot, h])))
                for h, server in enumerate(instance.servers)
            ]
            held = {"servers": {name: count for name, count in counts if count}}
        if rows and rows[-1]["to"] == slot - 1 and rows[-1] == {**rows[-1], **held}:
            rows[-1]["to"] = slot
        else:
            rows.append({"from": slot, "to": slot, **held})
    return rows


def load_block(task: Task, job: JobBlock, places: Places | None, solution: GangSolution) -> None:
    """Set a block's variables from a feasible schedule.

    A job that holds its GPUs for longer than its work takes gives them back as soon as it is done.
    """
    rows, left = solution.rows, task.work
    units: dict[int, int] = {}
    for row in (rows.job == task.job).nonzero()[0]:
        for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
            if slot in task.slots and left > 0:
                units[slot] = min(left, int(rows.gpus[row]) // task.gpus)
                left -= units[slot]
    if left > 0:
        return
    job.load(units)
    if places is not None:
        places.load(units, solution)
