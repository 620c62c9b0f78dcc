"""One job's block of gang in its tight forms, and the way from any block to rows and back.

==============  ================  ==================================================================
paper           here              index, domain
==============  ================  ==================================================================
``x_j(t)``      ``starts``        t, binary: the job begins in slot t
``e_j(C)``      ``completes``     C, binary: it is complete in slot C
``u_j(C, t)``   ``units``         (C, t), integer: work done in slot t if it completes in slot C
==============  ================  ==================================================================

`starts` (time-indexed: Dyer & Wolsey, 1990) is for jobs in one piece, `windows` for jobs that may
pause or change: their relaxations are the convex hull of the job's schedules, so that the linear
program's optimum is the best Lagrangian bound. In them as in `printed.py` the expressions
``uses[t]``, the GPUs held in slot t, and ``ends[C]``, 1 if the job completes in slot C, are what
the rest of a program is about: (0), (5) and (6), which are as printed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.gang.instance import GangInstance
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain
from hindsched.models.gang.printed import EACH_JOB
from hindsched.models.gang.printed import NOTATION as PRINTED_NOTATION
from hindsched.models.gang.sets import GangTask
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution

EACH_END = r"\quad \forall j \in [J], C"
NOTATION = {
    key: (here, what) for key, (here, what) in PRINTED_NOTATION.items()
    if here not in ("y", "done", "begins")
} | {
    "C": ("completion", "slot in which the job may be complete"),
    "x_j(t)": ("starts", "1 if the job begins in slot t"),
    "e_j(C)": ("completes", "1 if it is complete in slot C"),
    "u_j(C, t)": ("units", "units of work done in slot t if it is complete in slot C"),
    "p_j": ("duration", "slots that the job takes"),
}  # fmt: skip
EQUATIONS = {
    "starts": {"eq_1": rf"\sum_t x_j(t) = 1, {EACH_JOB}"},
    "windows": {
        "eq_1_once": rf"\sum_C e_j(C) = 1, {EACH_JOB}",
        "eq_1": rf"\sum_{{t \le C}} u_j(C, t) = W_j e_j(C), {EACH_END}",
        "eq_3": rf"u_j(C, t) \le m_j e_j(C), {EACH_END}, t \le C",
    },
}
"""Of a job, by form."""
LINKS = {
    "starts": (r"\sum_{t - p_j < t' \le t} x_j(t')", "C", "x_j(C - p_j + 1)"),
    "windows": (r"\sum_{C \ge t} u_j(C, t)", "C", "e_j(C)"),
}
"""What is held in a slot and what is 1 at the completion, of `link_equations`."""


def starts(b: Model, task: GangTask, kind: str, relax: bool) -> None:
    """Fill the block of a job in one piece, by its begin."""
    length = task.work
    begins = [end - length + 1 for end in task.ends]
    b.starts = pyo.Var(begins, domain=binary_domain(relax), doc="(1) the job begins in a slot")

    @b.Constraint(doc="(1) it runs once, for its duration")
    def eq_1(b: Model) -> Expr:
        return total(b.starts[t] for t in begins) == 1

    @b.Expression(task.slots)
    def uses(b: Model, t: int) -> Expr:
        begun = (s for s in range(t - length + 1, t + 1) if s in b.starts)
        return task.gpus * total(b.starts[s] for s in begun)

    b.ends = pyo.Expression(task.ends, rule=lambda b, end: b.starts[end - length + 1])


def windows(b: Model, task: GangTask, kind: str, relax: bool) -> None:
    """Fill the block of a job that may pause or change, by its completion and what it does then."""
    until = {end: range(task.first, end + 1) for end in task.ends}
    pairs = [(end, t) for end in task.ends for t in until[end]]
    b.completes = pyo.Var(
        task.ends, domain=binary_domain(relax), doc="(1) the job completes in a slot"
    )
    b.units = pyo.Var(
        pairs,
        domain=integer_domain(relax),
        doc="(1) work done in a slot if it completes in another",
    )

    @b.Constraint(doc="(1) it completes once")
    def eq_1_once(b: Model) -> Expr:
        return total(b.completes[end] for end in task.ends) == 1

    @b.Constraint(task.ends, doc="(1) it does its work by then")
    def eq_1(b: Model, end: int) -> Expr:
        return total(b.units[end, t] for t in until[end]) == task.work * b.completes[end]

    @b.Constraint(pairs, doc="(3) it holds no more than it can use")
    def eq_3(b: Model, end: int, t: int) -> Expr:
        return b.units[end, t] <= task.width * b.completes[end]

    @b.Expression(task.slots)
    def uses(b: Model, t: int) -> Expr:
        return task.gpus * total(b.units[end, t] for end in task.ends if end >= t)

    b.ends = pyo.Expression(task.ends, rule=lambda b, end: b.completes[end])


def read_block(instance: GangInstance, task: GangTask, b: Model) -> list[Assignment]:
    """Rows of a job at the variables' values; neighbouring slots that hold the same are one.

    Where only deadlines or the makespan count a job may hold its GPUs for longer than its work
    takes: they are given back as soon as it is done.
    """
    rows: list[Assignment] = []
    left = task.work
    for slot in task.slots:
        units = round(pyo.value(b.uses[slot]) / task.gpus)
        if not units or left <= 0:
            continue
        left -= units
        held: JsonObject = {"gpus": units * task.gpus}
        if hasattr(b, "held"):
            names = [server.name for server in instance.servers or ()]
            counts = {name: round(b.held[slot, h].value) for h, name in enumerate(names)}
            held = {"servers": {name: count for name, count in counts.items() if count}}
        if rows and rows[-1]["to"] == slot - 1 and rows[-1] == {**rows[-1], **held}:
            rows[-1]["to"] = slot
        else:
            rows.append({"from": slot, "to": slot, **held})
    return rows


def load_block(task: GangTask, b: Model, solution: GangSolution) -> None:
    """Set a block's variables from a feasible schedule.

    GPUs that are held but not needed are given back, at first where the job stands on a part of a
    server.
    """
    rows, left, sizes = solution.rows, task.work, solution.instance.server_gpus
    units: dict[int, int] = {}
    held: dict[tuple[int, int], int] = {}
    for row in (rows.job == task.job).nonzero()[0]:
        used = np.flatnonzero(rows.held[row])
        whole_last = used[np.argsort(rows.held[row, used] == sizes[used], kind="stable")].tolist()
        for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
            if slot not in task.slots or left <= 0:
                continue
            units[slot] = min(left, int(rows.gpus[row]) // task.gpus)
            left -= units[slot]
            over = int(rows.gpus[row]) - units[slot] * task.gpus
            for h in whole_last:
                given_back = min(int(rows.held[row, h]), over)
                over -= given_back
                held[slot, h] = int(rows.held[row, h]) - given_back
    if left > 0:
        return
    first, end, largest = min(units), max(units), int(sizes.max(initial=0))
    values: dict[str, dict[Any, int]] = {
        "starts": {first: 1}, "begins": {first: 1}, "y": units,
        "completes": {end: 1}, "units": {(end, slot): n for slot, n in units.items()},
        "done": {slot: 1 for slot in task.ends if slot >= end},
        "held": held, "whole": {cell: 1 for cell, n in held.items() if n == sizes[cell[1]]},
        "part": {cell: 1 for cell, n in held.items() if 0 < n < sizes[cell[1]]},
        "wide": {slot: 1 for slot, n in units.items() if n * task.gpus > largest},
        "stays": {h: n for (slot, h), n in held.items() if slot == first},
    }  # fmt: skip
    for variable in b.component_objects(pyo.Var):
        for key, item in variable.items():
            item.set_value(values[variable.local_name].get(key, 0))
