"""One job's block of gang in its forms, where it stands (6), and the way from it to rows and back.

==============  ================  ==================================================================
paper           here              index, domain
==============  ================  ==================================================================
``x_j(t)``      ``starts``        t, binary: the job begins in slot t
``e_j(C)``      ``completes``     C, binary: it is complete in slot C
``u_j(C, t)``   ``units``         (C, t), integer: work done in slot t if it completes in slot C
``y_j(t)``      ``runs``          t, binary: it holds its GPUs in slot t
``y_j(t)``      ``gpus``          t, integer: GPUs held in slot t by an elastic job
``done_j(t)``   ``done``          t, binary: it is complete in slot t
``begins_j(t)`` ``begins``        t, binary: it begins in slot t
``y_jh(t)``     ``held``          (t, h), integer: GPUs held on server h
                ``whole``         (t, h), binary: all GPUs of the server
                ``part``          (t, h), binary: some of them
                ``wide``          t, binary: an elastic job is wider than the largest server
                ``stays``         h, integer: GPUs of a job in one piece
==============  ================  ==================================================================

`starts` (time-indexed: Dyer & Wolsey, 1990) is for jobs in one piece, `windows` for jobs that may
pause or change: their relaxations are the convex hull of the job's schedules, so that the linear
program's optimum is the best Lagrangian bound. `printed` says (1)-(4) of the page on gang word by
word and has the fewest variables. In all of them the expressions ``uses[t]``, the GPUs held in slot
t, and ``ends[C]``, 1 if the job completes in slot C, are what the rest of a program is about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain
from hindsched.models.gang.sets import GangTask
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution

NON_PREEMPTIVE, _, ELASTIC = KINDS


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


def printed(b: Model, task: GangTask, kind: str, relax: bool) -> None:
    """Fill the block of a job of any kind, by what it holds in each slot."""
    slots, ends = task.slots, task.ends
    if kind == ELASTIC:
        b.gpus = pyo.Var(
            slots,
            domain=integer_domain(relax),
            bounds=(0, task.width),
            doc="(3) GPUs held in a slot",
        )
    else:
        b.runs = pyo.Var(
            slots, domain=binary_domain(relax), doc="(3) the job holds its GPUs in a slot"
        )
    y = b.gpus if kind == ELASTIC else b.runs
    b.done = pyo.Var(ends, domain=binary_domain(relax), doc="(1) the job is complete in a slot")

    @b.Constraint(ends, doc="(1) complete once its work is done")
    def eq_1(b: Model, t: int) -> Expr:
        return total(y[s] for s in range(task.first, t + 1)) >= task.work * b.done[t]

    @b.Constraint(ends[1:], doc="(1) complete is for good")
    def eq_1_kept(b: Model, t: int) -> Expr:
        return b.done[t] >= b.done[t - 1]

    @b.Constraint(doc="(1) it is complete in the end")
    def eq_1_last(b: Model) -> Expr:
        return b.done[ends[-1]] == 1

    @b.Constraint(ends[1:], doc="(3) it holds nothing once it is complete")
    def eq_3(b: Model, t: int) -> Expr:
        return y[t] <= task.width * (1 - b.done[t - 1])

    if kind == NON_PREEMPTIVE:
        b.begins = pyo.Var(slots, domain=binary_domain(relax), doc="(4) the job begins in a slot")

        @b.Constraint(slots, doc="(4) who runs has begun or ran before")
        def eq_4(b: Model, t: int) -> Expr:
            return b.begins[t] >= b.runs[t] - (b.runs[t - 1] if t > task.first else 0)

        @b.Constraint(doc="(4) it begins once")
        def eq_4_once(b: Model) -> Expr:
            return total(b.begins[t] for t in slots) == 1

    b.uses = pyo.Expression(slots, rule=lambda b, t: task.gpus * y[t])

    b.ends = pyo.Expression(
        ends, rule=lambda b, t: b.done[t] - (b.done[t - 1] if t > ends[0] else 0)
    )


def places(b: Model, sizes: list[int], task: GangTask, kind: str, relax: bool) -> None:
    """Place a job's GPUs on one server or, if wider than the largest, on whole ones and one more.

    `sizes` are the servers' GPUs (6).
    """
    slots, servers, largest = task.slots, range(len(sizes)), max(sizes)
    cells, most = [(t, h) for t in slots for h in servers], task.width * task.gpus
    b.held = pyo.Var(
        cells, domain=integer_domain(relax), bounds=lambda _, t, h: (0, min(sizes[h], most)),
        doc="(6) GPUs held on a server",
    )  # fmt: skip
    b.whole = pyo.Var(cells, domain=binary_domain(relax), doc="(6) all GPUs of a server are held")
    b.part = pyo.Var(cells, domain=binary_domain(relax), doc="(6) some GPUs of a server are held")

    @b.Constraint(slots, doc="(6) all GPUs stand on servers")
    def eq_6(b: Model, t: int) -> Expr:
        return total(b.held[t, h] for h in servers) == b.uses[t]

    @b.Constraint(cells, doc="(6) a server that is used is used whole or in part")
    def eq_6_most(b: Model, t: int, h: int) -> Expr:
        return b.held[t, h] <= sizes[h] * (b.whole[t, h] + b.part[t, h])

    @b.Constraint(cells, doc="(6) whole is all of it")
    def eq_6_whole(b: Model, t: int, h: int) -> Expr:
        return b.held[t, h] >= sizes[h] * b.whole[t, h]

    @b.Constraint(slots, doc="(6) at most one is used in part")
    def eq_6_part(b: Model, t: int) -> Expr:
        return total(b.part[t, h] for h in servers) <= 1

    may_widen = kind == ELASTIC and most > largest
    if may_widen:
        b.wide = pyo.Var(
            slots, domain=binary_domain(relax), doc="(6) wider than the largest server"
        )

        @b.Constraint(slots, doc="(6) only what is wider may stand on several")
        def eq_6_wide(b: Model, t: int) -> Expr:
            return b.uses[t] >= (largest + 1) * b.wide[t]

    @b.Constraint(slots, doc="(6) one server, unless the job is wider than the largest")
    def eq_6_spread(b: Model, t: int) -> Expr:
        wide = b.wide[t] if may_widen else float(most > largest)
        used = total(b.whole[t, h] + b.part[t, h] for h in servers)
        return used <= 1 + (len(sizes) - 1) * wide

    if kind == NON_PREEMPTIVE:
        b.stays = pyo.Var(servers, domain=integer_domain(relax), doc="(4) where the job stands")

        @b.Constraint(cells, doc="(4) it does not move")
        def eq_4_stays(b: Model, t: int, h: int) -> Expr:
            return b.held[t, h] <= b.stays[h]

        @b.Constraint(doc="(4) it stands in one place")
        def eq_4_place(b: Model) -> Expr:
            return total(b.stays[h] for h in servers) == task.gpus


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
        "starts": {first: 1}, "begins": {first: 1}, "runs": units, "gpus": units,
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
