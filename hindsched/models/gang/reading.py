"""Blocks of gang read as rows of a solution file, and set from a schedule."""

from __future__ import annotations

from hindsched.instances.gang.instance import GangInstance
from hindsched.json_types import JsonObject
from hindsched.models import algebra as pyo
from hindsched.models.gang.block import Terms, set_values
from hindsched.models.gang.placement import Places
from hindsched.models.gang.tasks import Task
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution


def read_block(
    instance: GangInstance, task: Task, terms: Terms, places: Places | None = None
) -> list[Assignment]:
    """Rows of a job at the variables' values; neighbouring slots that hold the same are one."""
    rows: list[Assignment] = []
    for slot, gpus in sorted(terms.held.items()):
        units = round(pyo.value(gpus) / task.gpus)
        if not units:
            continue
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


def load_block(
    instance: GangInstance, task: Task, terms: Terms, places: Places | None, solution: GangSolution
) -> None:
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
    terms.load(units)
    if places is not None:
        _load_places(places, instance, task, solution, units)


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
    places: Places,
    instance: GangInstance,
    task: Task,
    solution: GangSolution,
    units: dict[int, int],
) -> None:
    rows, sizes = solution.rows, instance.server_gpus.tolist()
    placements = rows.placements()
    held: dict[tuple[int, int], int] = {}
    for row in (rows.job == task.job).nonzero()[0]:
        for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
            over = int(rows.gpus[row]) - units.get(slot, 0) * task.gpus
            for server, gpus in sorted(placements[row], key=lambda pair: pair[1] == sizes[pair[0]]):
                given_back = min(gpus, over)  # first where it stands on a part of a server
                over -= given_back
                held[slot, server] = gpus - given_back
    set_values(places.held, held)
    set_values(places.whole, {cell: 1 for cell, gpus in held.items() if gpus == sizes[cell[1]]})
    set_values(places.part, {cell: 1 for cell, gpus in held.items() if 0 < gpus < sizes[cell[1]]})
    if places.wide is not None:
        wide = {slot: 1 for slot, count in units.items() if count * task.gpus > max(sizes)}
        set_values(places.wide, wide)
    if places.stays is not None:
        first = min(units)
        set_values(places.stays, {h: held.get((first, h), 0) for h in range(len(sizes))})
