"""Blocks of gang read as rows of a solution file, and set from a schedule."""

from __future__ import annotations

from typing import Any

from hindsched.instances.gang.instance import GangInstance
from hindsched.models import algebra as pyo
from hindsched.models.gang.tasks import Task
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution


def read_block(block: Any, instance: GangInstance, task: Task) -> list[Assignment]:
    """Rows of a job at the variables' values; neighbouring slots that hold the same are one."""
    rows: list[Assignment] = []
    for slot, gpus in sorted(_gpus_by_slot(block, task).items()):
        held: dict[str, Any] = {"gpus": gpus}
        if instance.is_consolidated:
            assert instance.servers is not None
            places = [
                (server.name, round(pyo.value(block.held[slot, h])))
                for h, server in enumerate(instance.servers)
            ]
            held = {"servers": {name: count for name, count in places if count}}
        if rows and rows[-1]["to"] == slot - 1 and rows[-1] == {**rows[-1], **held}:
            rows[-1]["to"] = slot
        else:
            rows.append({"from": slot, "to": slot, **held})
    return rows


def _gpus_by_slot(block: Any, task: Task) -> dict[int, int]:
    """GPUs that a job holds in each slot in which it holds any."""
    if hasattr(block, "starts"):
        begin = next(t for t, variable in block.starts.items() if pyo.value(variable) > 0.5)
        return dict.fromkeys(range(begin, begin + task.work), task.gpus)
    held: dict[int, int] = {}
    if hasattr(block, "units"):
        items = [(key[1], variable) for key, variable in block.units.items()]
    else:
        items = list((block.runs if hasattr(block, "runs") else block.gpus).items())
    for slot, variable in items:
        units = round(pyo.value(variable))
        if units:
            held[slot] = held.get(slot, 0) + units * task.gpus
    return held


def load_block(block: Any, instance: GangInstance, task: Task, solution: GangSolution) -> None:
    """Set a block's variables from a feasible schedule.

    A job that holds its GPUs for longer than its work takes gives them back as soon as it is done.
    """
    left = task.work
    units: dict[int, int] = {}
    for slot, gpus in _held_slots(solution, task):
        if left > 0:
            units[slot] = min(left, gpus // task.gpus)
            left -= units[slot]
    if left > 0:
        return
    end = max(units)
    if hasattr(block, "starts"):
        _set(block.starts, {end - task.work + 1: 1})
    elif hasattr(block, "units"):
        _set(block.completes, {end: 1})
        _set(block.units, {(end, slot): count for slot, count in units.items()})
    else:
        _set(block.runs if hasattr(block, "runs") else block.gpus, units)
        _set(block.done, {slot: 1 for slot in block.done if slot >= end})
        if hasattr(block, "begins"):
            _set(block.begins, {min(units): 1})
    if instance.is_consolidated:
        _load_places(block, instance, task, solution, units)


def _set(variable: Any, values: dict[Any, int]) -> None:
    for key, item in variable.items():
        item.set_value(values.get(key, 0))


def _held_slots(solution: GangSolution, task: Task) -> list[tuple[int, int]]:
    """Slots that the task may use in which a schedule holds GPUs for it, and how many."""
    rows = solution.rows
    found = []
    for row in (rows.job == task.job).nonzero()[0]:
        for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
            if slot in task.slots:
                found.append((slot, int(rows.gpus[row])))
    return found


def _load_places(
    block: Any, instance: GangInstance, task: Task, solution: GangSolution, units: dict[int, int]
) -> None:
    rows, sizes = solution.rows, instance.server_gpus.tolist()
    places = rows.placements()
    held: dict[tuple[int, int], int] = {}
    for row in (rows.job == task.job).nonzero()[0]:
        for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
            over = int(rows.gpus[row]) - units.get(slot, 0) * task.gpus
            for server, gpus in sorted(places[row], key=lambda pair: pair[1] == sizes[pair[0]]):
                given_back = min(gpus, over)  # first where it stands on a part of a server
                over -= given_back
                held[slot, server] = gpus - given_back
    _set(block.held, held)
    _set(block.whole, {cell: 1 for cell, gpus in held.items() if gpus == sizes[cell[1]]})
    _set(block.part, {cell: 1 for cell, gpus in held.items() if 0 < gpus < sizes[cell[1]]})
    if hasattr(block, "wide"):
        wide = {slot: 1 for slot, count in units.items() if count * task.gpus > max(sizes)}
        _set(block.wide, wide)
    if hasattr(block, "stays"):
        first = min(units)
        _set(block.stays, {h: held.get((first, h), 0) for h in range(len(sizes))})
