"""(6) of gang: where the GPUs of a job stand that must be consolidated.

A job of at most as many GPUs as the largest server has stands on one server; a wider one on whole
servers and at most one more. One that runs in one piece stays where it is.
"""

from __future__ import annotations

from typing import NamedTuple

from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Variable
from hindsched.models.gang.tasks import Task


class Places(NamedTuple):
    """Variables of (6), by slot and server.

    Attributes
    ----------
    held, whole, part : variable
        GPUs held on a server; whether these are all, or some of it.
    wide : variable, optional
        By slot, whether an elastic job is wider than the largest server.
    stays : variable, optional
        By server, GPUs of a job in one piece.
    """

    held: Variable
    whole: Variable
    part: Variable
    wide: Variable | None = None
    stays: Variable | None = None


def add_places(
    block: Model, instance: GangInstance, task: Task, kind: str, held: dict[int, Expr], relax: bool
) -> Places:
    """Add the GPUs held on each server, which make up those `held` in each slot."""
    sizes = instance.server_gpus.tolist()
    slots, servers, largest = list(held), range(len(sizes)), max(sizes)
    cells = [(t, h) for t in slots for h in servers]
    most = task.width * task.gpus
    whole_numbers = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    binary = pyo.UnitInterval if relax else pyo.Binary
    block.held = pyo.Var(
        cells,
        domain=whole_numbers,
        bounds=lambda _, t, h: (0, min(sizes[h], most)),
        doc="(6) GPUs held on a server",
    )
    block.whole = pyo.Var(cells, domain=binary, doc="(6) all GPUs of a server are held")
    block.part = pyo.Var(cells, domain=binary, doc="(6) some GPUs of a server are held")
    block.eq_6 = pyo.Constraint(
        slots,
        rule=lambda b, t: pyo.quicksum(b.held[t, h] for h in servers) == held[t],
        doc="(6) all GPUs stand on servers",
    )
    block.eq_6_most = pyo.Constraint(
        cells,
        rule=lambda b, t, h: b.held[t, h] <= sizes[h] * (b.whole[t, h] + b.part[t, h]),
        doc="(6) a server that is used is used whole or in part",
    )
    block.eq_6_whole = pyo.Constraint(
        cells,
        rule=lambda b, t, h: b.held[t, h] >= sizes[h] * b.whole[t, h],
        doc="(6) whole is all of it",
    )
    block.eq_6_part = pyo.Constraint(
        slots,
        rule=lambda b, t: pyo.quicksum(b.part[t, h] for h in servers) <= 1,
        doc="(6) at most one is used in part",
    )
    fixed = most > largest  # a gang is wide or not; an elastic job may be
    if kind == KINDS[-1] and fixed:
        block.wide = pyo.Var(slots, domain=binary, doc="(6) wider than the largest server")
        block.eq_6_wide = pyo.Constraint(
            slots,
            rule=lambda b, t: held[t] >= (largest + 1) * b.wide[t],
            doc="(6) only what is wider may stand on several",
        )

    def spread(b: Model, t: int) -> Expr:
        wide = b.wide[t] if kind == KINDS[-1] and fixed else float(fixed)
        used = pyo.quicksum(b.whole[t, h] + b.part[t, h] for h in servers)
        return used <= 1 + (len(sizes) - 1) * wide

    block.eq_6_spread = pyo.Constraint(
        slots, rule=spread, doc="(6) one server, unless the job is wider than the largest"
    )
    if kind == KINDS[0]:
        block.stays = pyo.Var(servers, domain=whole_numbers, doc="(4) where the job stands")
        block.eq_4_stays = pyo.Constraint(
            cells, rule=lambda b, t, h: b.held[t, h] <= b.stays[h], doc="(4) it does not move"
        )
        block.eq_4_place = pyo.Constraint(
            expr=pyo.quicksum(block.stays[h] for h in servers) == task.gpus,
            doc="(4) it stands in one place",
        )
    return Places(
        block.held, block.whole, block.part,
        block.wide if kind == KINDS[-1] and fixed else None,
        block.stays if kind == KINDS[0] else None,
    )  # fmt: skip
