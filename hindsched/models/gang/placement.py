"""(6) of gang: where the GPUs of a job stand that must be consolidated.

==============  =============  =====================================================================
paper           here           index, domain
==============  =============  =====================================================================
``y_jh(t)``     ``held``       (t, h), integer: GPUs held on server h
                ``whole``      (t, h), binary: all GPUs of the server
                ``part``       (t, h), binary: some of them
                ``wide``       t, binary: an elastic job is wider than the largest server
                ``stays``      h, integer: GPUs of a job in one piece
==============  =============  =====================================================================
"""

from __future__ import annotations

import pyomo.environ as pyo

from hindsched.instances.gang.instance import GangInstance
from hindsched.models.gang.block import (
    ELASTIC,
    NON_PREEMPTIVE,
    Expr,
    JobBlock,
    set_values,
    total,
)
from hindsched.models.gang.sets import Task
from hindsched.solutions.gang.solution import GangSolution


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
        binary = pyo.UnitInterval if relax else pyo.Binary
        count = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
        b.held = pyo.Var(
            cells, domain=count, bounds=lambda _, t, h: (0, min(sizes[h], most)),
            doc="(6) GPUs held on a server",
        )  # fmt: skip
        b.whole = pyo.Var(cells, domain=binary, doc="(6) all GPUs of a server are held")
        b.part = pyo.Var(cells, domain=binary, doc="(6) some GPUs of a server are held")

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
            b.wide = pyo.Var(slots, domain=binary, doc="(6) wider than the largest server")

            @b.Constraint(slots, doc="(6) only what is wider may stand on several")
            def eq_6_wide(b: Expr, t: int) -> Expr:
                return job.held[t] >= (largest + 1) * b.wide[t]

        @b.Constraint(slots, doc="(6) one server, unless the job is wider than the largest")
        def eq_6_spread(b: Expr, t: int) -> Expr:
            wide = b.wide[t] if may_widen else float(most > largest)
            used = total(b.whole[t, h] + b.part[t, h] for h in servers)
            return used <= 1 + (len(sizes) - 1) * wide

        if kind == NON_PREEMPTIVE:
            b.stays = pyo.Var(servers, domain=count, doc="(4) where the job stands")

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
        placements = rows.placements()
        held: dict[tuple[int, int], int] = {}
        for row in (rows.job == self.task.job).nonzero()[0]:
            parts_first = sorted(placements[row], key=lambda place: place[1] == sizes[place[0]])
            for slot in range(int(rows.start[row]) + 1, int(rows.end[row]) + 1):
                over = int(rows.gpus[row]) - units.get(slot, 0) * gpus
                for server, count in parts_first:
                    given_back = min(count, over)
                    over -= given_back
                    held[slot, server] = count - given_back
        set_values(b.held, held)
        set_values(b.whole, {cell: 1 for cell, n in held.items() if n == sizes[cell[1]]})
        set_values(b.part, {cell: 1 for cell, n in held.items() if 0 < n < sizes[cell[1]]})
        if hasattr(b, "wide"):
            set_values(b.wide, {t: 1 for t, n in units.items() if n * gpus > max(sizes)})
        if hasattr(b, "stays"):
            first = min(units)
            set_values(b.stays, {h: held.get((first, h), 0) for h in b.stays})
