"""One job's block of gang in its forms; the offline program and the subproblem consist of them.

================  ================================================================================
``starts``        non-preemptive: ``starts[t]``, the job begins in slot t (time-indexed: Dyer &
                  Wolsey, 1990)
``windows``       preemptive, elastic: ``completes[C]``, and ``units[C, t]``, what it does in slot t
                  if it completes in slot C
``printed``       as ``docs/gang.md`` states it: ``runs[t]`` or ``gpus[t]``, what it holds in slot
                  t, ``done[t]``, and for one piece ``begins[t]``
================  ================================================================================

The relaxations of the first two are the convex hull of the job's schedules, so that the linear
program's optimum is the best Lagrangian bound; ``printed`` has the fewest variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Domain, Expr, Model, Variable
from hindsched.models.base import PRINTED
from hindsched.models.gang.tasks import Task

STARTS, WINDOWS = "starts", "windows"


class Ending(NamedTuple):
    """When a job is complete.

    Attributes
    ----------
    completion : expression
        Slot in which the job is complete.
    in_time : callable
        1 if the job is complete by a slot.
    """

    completion: Expr
    in_time: Callable[[int], Expr]

    @classmethod
    def known(cls, end: int) -> Ending:
        """Of a job of which it is known."""
        return cls(end, lambda due: float(end <= due))


class Terms(NamedTuple):
    """What a program needs to know of a block.

    Attributes
    ----------
    held : dict
        GPUs held, by slot.
    ending : Ending
        When the job is complete.
    load : callable
        Sets the variables from the units of work in each slot, of a job that is complete after
        them.
    """

    held: dict[int, Expr]
    ending: Ending
    load: Callable[[dict[int, int]], None]


def columns_of(task: Task, form: str) -> int:
    """Number of variables of a block."""
    if form == STARTS:
        return len(task.ends)
    if form == WINDOWS:
        return sum(end - task.first + 2 for end in task.ends)
    return 3 * len(task.slots)


def add_job(block: Model, task: Task, kind: str, form: str, relax: bool) -> Terms:
    """Add one job's block in a form."""
    if form == PRINTED:
        return _add_printed(block, task, kind, relax)
    return _add_starts(block, task, relax) if form == STARTS else _add_windows(block, task, relax)


def _add_starts(block: Model, task: Task, relax: bool) -> Terms:
    length = task.work
    begins = [end - length + 1 for end in task.ends]
    block.starts = pyo.Var(
        begins, domain=_binary(relax), doc="(1) the job begins in a slot and runs for its duration"
    )
    block.eq_1 = pyo.Constraint(
        expr=pyo.quicksum(block.starts[t] for t in begins) == 1, doc="(1) it runs once"
    )
    held = {}
    for t in task.slots:
        running = [s for s in range(t - length + 1, t + 1) if s in block.starts]
        if running:
            held[t] = pyo.quicksum(task.gpus * block.starts[s] for s in running)
    ending = Ending(
        pyo.quicksum((t + length - 1) * block.starts[t] for t in begins),
        lambda due: pyo.quicksum(block.starts[t] for t in begins if t + length - 1 <= due),
    )
    return Terms(held, ending, lambda units: set_values(block.starts, {min(units): 1}))


def _add_windows(block: Model, task: Task, relax: bool) -> Terms:
    ends = list(task.ends)
    pairs = [(end, t) for end in ends for t in range(task.first, end + 1)]
    block.completes = pyo.Var(ends, domain=_binary(relax), doc="(1) the job completes in a slot")
    block.units = pyo.Var(
        pairs,
        domain=pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers,
        doc="(1) work done in a slot if the job completes in another",
    )
    block.eq_1_once = pyo.Constraint(
        expr=pyo.quicksum(block.completes[end] for end in ends) == 1, doc="(1) it completes once"
    )

    def all_work(b: Model, end: int) -> Expr:
        done = pyo.quicksum(b.units[end, t] for t in range(task.first, end + 1))
        return done == task.work * b.completes[end]

    def in_width(b: Model, end: int, t: int) -> Expr:
        return b.units[end, t] <= task.width * b.completes[end]

    block.eq_1 = pyo.Constraint(ends, rule=all_work, doc="(1) it does its work by then")
    block.eq_3 = pyo.Constraint(pairs, rule=in_width, doc="(3) it holds no more than it can use")
    held = {
        t: pyo.quicksum(task.gpus * block.units[end, t] for end in ends if end >= t)
        for t in task.slots
    }
    ending = Ending(
        pyo.quicksum(end * block.completes[end] for end in ends),
        lambda due: pyo.quicksum(block.completes[end] for end in ends if end <= due),
    )

    def load(units: dict[int, int]) -> None:
        end = max(units)
        set_values(block.completes, {end: 1})
        set_values(block.units, {(end, slot): count for slot, count in units.items()})

    return Terms(held, ending, load)


def _add_printed(block: Model, task: Task, kind: str, relax: bool) -> Terms:
    slots, ends = list(task.slots), list(task.ends)
    if kind == KINDS[-1]:
        block.gpus = pyo.Var(
            slots,
            domain=pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers,
            bounds=(0, task.width),
            doc="(3) GPUs held in a slot",
        )
        units = block.gpus
    else:
        block.runs = pyo.Var(
            slots, domain=_binary(relax), doc="(3) the job holds its GPUs in a slot"
        )
        units = block.runs
    block.done = pyo.Var(ends, domain=_binary(relax), doc="(1) the job is complete in a slot")

    def work_first(b: Model, t: int) -> Expr:
        return pyo.quicksum(units[s] for s in range(task.first, t + 1)) >= task.work * b.done[t]

    def nothing_after(b: Model, t: int) -> Expr:
        return units[t] <= task.width * (1 - b.done[t - 1])

    block.eq_1 = pyo.Constraint(ends, rule=work_first, doc="(1) complete once its work is done")
    block.eq_1_kept = pyo.Constraint(
        ends[1:], rule=lambda b, t: b.done[t] >= b.done[t - 1], doc="(1) complete is for good"
    )
    block.eq_1_last = pyo.Constraint(
        expr=block.done[ends[-1]] == 1, doc="(1) it is complete in the end"
    )
    block.eq_3 = pyo.Constraint(
        ends[1:], rule=nothing_after, doc="(3) it holds nothing once it is complete"
    )
    if kind == KINDS[0]:
        _add_one_piece(block, slots, relax)
    waiting = pyo.quicksum(1 - block.done[t] for t in ends)
    ending = Ending(
        ends[0] + waiting,
        lambda due: block.done[min(due, ends[-1])] if due >= ends[0] else 0.0,
    )

    def load(done: dict[int, int]) -> None:
        set_values(units, done)
        set_values(block.done, {slot: 1 for slot in ends if slot >= max(done)})
        if kind == KINDS[0]:
            set_values(block.begins, {min(done): 1})

    return Terms({t: task.gpus * units[t] for t in slots}, ending, load)


def _add_one_piece(block: Model, slots: list[int], relax: bool) -> None:
    block.begins = pyo.Var(slots, domain=_binary(relax), doc="(4) the job begins in a slot")

    def begun(b: Model, t: int) -> Expr:
        earlier = b.runs[t - 1] if t > slots[0] else 0.0
        return b.begins[t] >= b.runs[t] - earlier

    block.eq_4 = pyo.Constraint(slots, rule=begun, doc="(4) who runs has begun or ran before")
    block.eq_4_once = pyo.Constraint(
        expr=pyo.quicksum(block.begins[t] for t in slots) == 1, doc="(4) it begins once"
    )


def _binary(relax: bool) -> Domain:
    return pyo.UnitInterval if relax else pyo.Binary


def set_values(variable: Variable, values: dict[int, int] | dict[tuple[int, int], int]) -> None:
    """Set a variable's values, 0 where none is given."""
    for key, item in variable.items():
        item.set_value(values.get(key, 0))


def job_cost(instance: GangInstance, job: int, goal: str, ending: Ending) -> Expr:
    """What a job adds to (0), which the makespan is not a sum of."""
    weight = instance.jobs[job].weight
    if goal == "deadlines":
        due = int(instance.deadlines[job])
        return weight * (1 - ending.in_time(due)) if due >= 0 else 0.0
    waited = ending.completion - int(instance.submits[job])
    return weight * float(instance.slot_seconds) * waited
