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

`Starts` (time-indexed: Dyer & Wolsey, 1990) is for jobs in one piece, `Windows` for jobs that may
pause or change: their relaxations are the convex hull of the job's schedules, so that the linear
program's optimum is the best Lagrangian bound. `Printed` says (1)-(4) of the page on gang word by
word and has the fewest variables. `Places` are for a job that must be consolidated.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Expr, binary, whole
from hindsched.models.base import PRINTED
from hindsched.models.gang.sets import Task
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangSolution

NON_PREEMPTIVE, _, ELASTIC = KINDS
STARTS, WINDOWS = "starts", "windows"


class Starts:
    """A job in one piece by its begin; every form has the attributes of this one.

    ``held``: GPUs held by slot; ``completion``: the slot in which it is complete, an expression.
    """

    def __init__(self, b: Expr, task: Task, kind: str, relax: bool) -> None:
        length = task.work
        begins = [end - length + 1 for end in task.ends]
        b.starts = pyo.Var(begins, domain=binary(relax), doc="(1) the job begins in a slot")

        @b.Constraint(doc="(1) it runs once, for its duration")
        def eq_1(b: Expr) -> Expr:
            return total(b.starts[t] for t in begins) == 1

        self.block, self.length = b, length
        self.held = {
            t: task.gpus * total(b.starts[s] for s in range(t - length + 1, t + 1) if s in b.starts)
            for t in range(begins[0], begins[-1] + length)
        }
        self.completion = total((t + length - 1) * b.starts[t] for t in begins)

    @staticmethod
    def columns(task: Task) -> int:
        """Number of variables."""
        return len(task.ends)

    def in_time(self, due: int) -> Expr:
        """1 if the job is complete by slot `due`."""
        starts = self.block.starts
        return total(starts[t] for t in starts if t + self.length - 1 <= due)

    def load(self, units: dict[int, int]) -> None:
        """Set the variables from the units of work done in each slot."""
        set_values(self.block.starts, {min(units): 1})


class Windows:
    """A job that may pause or change by its completion, and by what it does until then."""

    def __init__(self, b: Expr, task: Task, kind: str, relax: bool) -> None:
        ends = list(task.ends)
        slots_until = {end: range(task.first, end + 1) for end in ends}
        pairs = [(end, t) for end in ends for t in slots_until[end]]
        b.completes = pyo.Var(ends, domain=binary(relax), doc="(1) the job completes in a slot")
        b.units = pyo.Var(
            pairs, domain=whole(relax), doc="(1) work done in a slot if it completes in another"
        )

        @b.Constraint(doc="(1) it completes once")
        def eq_1_once(b: Expr) -> Expr:
            return total(b.completes[end] for end in ends) == 1

        @b.Constraint(ends, doc="(1) it does its work by then")
        def eq_1(b: Expr, end: int) -> Expr:
            return total(b.units[end, t] for t in slots_until[end]) == task.work * b.completes[end]

        @b.Constraint(pairs, doc="(3) it holds no more than it can use")
        def eq_3(b: Expr, end: int, t: int) -> Expr:
            return b.units[end, t] <= task.width * b.completes[end]

        self.block = b
        self.held = {
            t: task.gpus * total(b.units[end, t] for end in ends if end >= t) for t in task.slots
        }
        self.completion = total(end * b.completes[end] for end in ends)

    @staticmethod
    def columns(task: Task) -> int:
        return sum(end - task.first + 2 for end in task.ends)

    def in_time(self, due: int) -> Expr:
        completes = self.block.completes
        return total(completes[end] for end in completes if end <= due)

    def load(self, units: dict[int, int]) -> None:
        end = max(units)
        set_values(self.block.completes, {end: 1})
        set_values(self.block.units, {(end, slot): count for slot, count in units.items()})


class Printed:
    """A job of any kind by what it holds in each slot."""

    def __init__(self, b: Expr, task: Task, kind: str, relax: bool) -> None:
        slots, ends = task.slots, task.ends
        if kind == ELASTIC:
            b.gpus = pyo.Var(
                slots, domain=whole(relax), bounds=(0, task.width), doc="(3) GPUs held in a slot"
            )
        else:
            b.runs = pyo.Var(
                slots, domain=binary(relax), doc="(3) the job holds its GPUs in a slot"
            )
        y = b.gpus if kind == ELASTIC else b.runs
        b.done = pyo.Var(ends, domain=binary(relax), doc="(1) the job is complete in a slot")

        @b.Constraint(ends, doc="(1) complete once its work is done")
        def eq_1(b: Expr, t: int) -> Expr:
            return total(y[s] for s in range(task.first, t + 1)) >= task.work * b.done[t]

        @b.Constraint(ends[1:], doc="(1) complete is for good")
        def eq_1_kept(b: Expr, t: int) -> Expr:
            return b.done[t] >= b.done[t - 1]

        @b.Constraint(doc="(1) it is complete in the end")
        def eq_1_last(b: Expr) -> Expr:
            return b.done[ends[-1]] == 1

        @b.Constraint(ends[1:], doc="(3) it holds nothing once it is complete")
        def eq_3(b: Expr, t: int) -> Expr:
            return y[t] <= task.width * (1 - b.done[t - 1])

        if kind == NON_PREEMPTIVE:
            b.begins = pyo.Var(slots, domain=binary(relax), doc="(4) the job begins in a slot")

            @b.Constraint(slots, doc="(4) who runs has begun or ran before")
            def eq_4(b: Expr, t: int) -> Expr:
                return b.begins[t] >= b.runs[t] - (b.runs[t - 1] if t > task.first else 0)

            @b.Constraint(doc="(4) it begins once")
            def eq_4_once(b: Expr) -> Expr:
                return total(b.begins[t] for t in slots) == 1

        self.block, self.units, self.ends = b, y, ends
        self.held = {t: task.gpus * y[t] for t in slots}
        self.completion = ends[0] + total(1 - b.done[t] for t in ends)

    @staticmethod
    def columns(task: Task) -> int:
        return 3 * len(task.slots)

    def in_time(self, due: int) -> Expr:
        return self.block.done[min(due, self.ends[-1])] if due >= self.ends[0] else 0

    def load(self, units: dict[int, int]) -> None:
        set_values(self.units, units)
        set_values(self.block.done, {slot: 1 for slot in self.ends if slot >= max(units)})
        if hasattr(self.block, "begins"):
            set_values(self.block.begins, {min(units): 1})


JobBlock: TypeAlias = Starts | Windows | Printed
FORM_CLASSES: dict[str, type[JobBlock]] = {STARTS: Starts, WINDOWS: Windows, PRINTED: Printed}


def job_cost(instance: GangInstance, job: int, goal: str, completion: Expr, in_time: Expr) -> Expr:
    """What a job adds to (0) for ``completion`` or ``deadlines``; the makespan is no sum over jobs.

    `in_time` says of a slot whether the job is complete by then.
    """
    weight = instance.jobs[job].weight
    if goal == "deadlines":
        due = int(instance.deadlines[job])
        return weight * (1 - in_time(due)) if due >= 0 else 0.0
    return weight * float(instance.slot_seconds) * (completion - int(instance.submits[job]))


def set_values(variable: Expr, values: dict[int, int] | dict[tuple[int, int], int]) -> None:
    """Set a variable's values, 0 where none is given."""
    for key, item in variable.items():
        item.set_value(values.get(key, 0))


class Places:
    """A job on one server or, if wider than the largest, on whole ones and at most one more (6).

    `job` holds the GPUs that are placed here; ``held`` are those by slot and server.
    """

    def __init__(
        self, b: Expr, instance: GangInstance, task: Task, kind: str, job: JobBlock, relax: bool
    ) -> None:
        sizes = instance.server_gpus.tolist()
        slots, servers, largest = list(job.held), range(len(sizes)), max(sizes)
        cells = [(t, h) for t in slots for h in servers]
        most = task.width * task.gpus
        b.held = pyo.Var(
            cells, domain=whole(relax), bounds=lambda _, t, h: (0, min(sizes[h], most)),
            doc="(6) GPUs held on a server",
        )  # fmt: skip
        b.whole = pyo.Var(cells, domain=binary(relax), doc="(6) all GPUs of a server are held")
        b.part = pyo.Var(cells, domain=binary(relax), doc="(6) some GPUs of a server are held")

        @b.Constraint(slots, doc="(6) all GPUs stand on servers")
        def eq_6(b: Expr, t: int) -> Expr:
            return total(b.held[t, h] for h in servers) == job.held[t]

        @b.Constraint(cells, doc="(6) a server that is used is used whole or in part")
        def eq_6_most(b: Expr, t: int, h: int) -> Expr:
            return b.held[t, h] <= sizes[h] * (b.whole[t, h] + b.part[t, h])

        @b.Constraint(cells, doc="(6) whole is all of it")
        def eq_6_whole(b: Expr, t: int, h: int) -> Expr:
            return b.held[t, h] >= sizes[h] * b.whole[t, h]

        @b.Constraint(slots, doc="(6) at most one is used in part")
        def eq_6_part(b: Expr, t: int) -> Expr:
            return total(b.part[t, h] for h in servers) <= 1

        may_widen = kind == ELASTIC and most > largest
        if may_widen:
            b.wide = pyo.Var(slots, domain=binary(relax), doc="(6) wider than the largest server")

            @b.Constraint(slots, doc="(6) only what is wider may stand on several")
            def eq_6_wide(b: Expr, t: int) -> Expr:
                return job.held[t] >= (largest + 1) * b.wide[t]

        @b.Constraint(slots, doc="(6) one server, unless the job is wider than the largest")
        def eq_6_spread(b: Expr, t: int) -> Expr:
            wide = b.wide[t] if may_widen else float(most > largest)
            used = total(b.whole[t, h] + b.part[t, h] for h in servers)
            return used <= 1 + (len(sizes) - 1) * wide

        if kind == NON_PREEMPTIVE:
            b.stays = pyo.Var(servers, domain=whole(relax), doc="(4) where the job stands")

            @b.Constraint(cells, doc="(4) it does not move")
            def eq_4_stays(b: Expr, t: int, h: int) -> Expr:
                return b.held[t, h] <= b.stays[h]

            @b.Constraint(doc="(4) it stands in one place")
            def eq_4_place(b: Expr) -> Expr:
                return total(b.stays[h] for h in servers) == task.gpus

        self.block, self.task, self.sizes, self.held = b, task, sizes, b.held

    def load(self, units: dict[int, int], solution: GangSolution) -> None:
        """Set the variables from a schedule, of which only `units` of work a slot are needed.

        GPUs that are not needed are given back, first where the job stands on a part of a server.
        """
        b, rows, sizes, gpus = self.block, solution.rows, self.sizes, self.task.gpus
        held: dict[tuple[int, int], int] = {}
        for row in (rows.job == self.task.job).nonzero()[0]:
            parts_first = sorted(
                np.flatnonzero(rows.held[row]), key=lambda h: rows.held[row, h] == sizes[h]
            )
            for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
                over = int(rows.gpus[row]) - units.get(slot, 0) * gpus
                for server in parts_first:
                    given_back = min(int(rows.held[row, server]), over)
                    over -= given_back
                    held[slot, int(server)] = int(rows.held[row, server]) - given_back
        set_values(b.held, held)
        set_values(b.whole, {cell: 1 for cell, n in held.items() if n == sizes[cell[1]]})
        set_values(b.part, {cell: 1 for cell, n in held.items() if 0 < n < sizes[cell[1]]})
        if hasattr(b, "wide"):
            set_values(b.wide, {t: 1 for t, n in units.items() if n * gpus > max(sizes)})
        if hasattr(b, "stays"):
            first = min(units)
            set_values(b.stays, {h: held.get((first, h), 0) for h in b.stays})


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
