"""The block of one job whose slots need not touch: that of `windows`, slot by slot.

In every slot the job has any placement that the rules of a slot allow, or none: the columns of the
window block with windows of one slot. What links them is how much work they do, and an end.

================================  ==============================================================
``u``, ``y``                      as in `windows`, for windows of one slot
``e[t]``                          the job's last slot is t
================================  ==============================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm

from hindsched.errors import InputError
from hindsched.instances.modes import Modes, in_pieces
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Variable
from hindsched.models.declared import Symbol
from hindsched.models.sums import Uses
from hindsched.models.windows import (
    BlockNumbers,
    JobColumns,
    Starts,
    Window,
    WindowBlock,
    add_job,
    job_columns,
)
from hindsched.solutions.window_placing import WindowCluster
from hindsched.solutions.window_row import WindowRow

MOST_WHOLE = 10**6
"""Coefficients of the work's row are whole numbers where none has to be larger."""


def slot_symbols(unit: str) -> dict[str, Symbol]:
    """Indices and units of what the block adds to the windows'."""
    return {
        "e": Symbol("slot", "jobs"),
        "eq_work": Symbol("", unit),
        "eq_slot": Symbol("slot", unit),
        "eq_end": Symbol("slot", unit),
    }


@dataclass(frozen=True)
class SlotBlock:
    """A job's Pyomo block and what the rest of a program needs to know of it.

    Parameters
    ----------
    window : WindowBlock
        The placements, a window a slot.
    by_slot : dict
        Their columns by slot.
    ends : dict
        The variables ``e`` by slot.
    """

    window: WindowBlock
    by_slot: dict[int, JobColumns]
    ends: dict[int, Variable]

    @property
    def columns(self) -> JobColumns:
        """All columns."""
        return self.window.columns

    @property
    def uses(self) -> list[Uses]:
        """What the placements use of every (server, resource, slot)."""
        return self.window.uses

    @property
    def completion(self) -> Expr:
        """Last slot + 1."""
        return pyo.quicksum(float(t + 1) * end for t, end in self.ends.items())

    @property
    def chosen(self) -> Expr:
        """1 if the job runs."""
        return pyo.quicksum(self.ends.values())

    def read(self, cluster: WindowCluster) -> list[Window]:
        """Placements at the variables' values, one a slot; none if the job is not scheduled."""
        found = (
            replace(self.window, columns=columns).read(cluster)
            for _, columns in sorted(self.by_slot.items())
        )
        return [window for window in found if window is not None]

    def write(self, cluster: WindowCluster, rows: Sequence[WindowRow]) -> None:
        """Set the variables to rows, slot by slot, as far as the columns can express them."""
        last = max((row.last for row in rows), default=0)
        for t, end in self.ends.items():
            end.value = int(t == last)
        running = {t: row for row in rows for t in range(row.first, row.last + 1)}
        y_by_slot: dict[int, dict[tuple[int, int, int, int], int]] = defaultdict(dict)
        for cell, most in self.columns.y.items():
            y_by_slot[cell[2]][cell] = most
        for t, columns in self.by_slot.items():
            own = JobColumns(columns.table, columns.u, y_by_slot[t])
            row = running.get(t)
            placed = None if row is None else replace(row, first=t, last=t)
            replace(self.window, columns=own).write(cluster, placed)


def refuse_in_pieces(formulation: str) -> None:
    """Refuse what only jobs in one window have: the papers' subproblem."""
    if in_pieces(formulation):
        raise InputError("formulation", formulation, "must be one of jobs in one window")


def windows_of(block: WindowBlock | SlotBlock, cluster: WindowCluster) -> list[Window]:
    """A job's windows at the variables' values, in one piece or in many."""
    if isinstance(block, SlotBlock):
        return block.read(cluster)
    window = block.read(cluster)
    return [] if window is None else [window]


def add_slots(
    block: Model,
    cluster: WindowCluster,
    ways: tuple[Modes, Sequence[Fraction]],
    span: tuple[int, int],
    work: int,
    relax: bool,
    numbers: BlockNumbers,
) -> SlotBlock:
    """Fill a Pyomo block with a job's placements by slot, its work and its end.

    Parameters
    ----------
    block : pyomo Block
        Receives ``u``, ``y``, ``e`` and the constraints.
    cluster : WindowCluster
        The cluster.
    ways : (Modes, list of Fraction)
        What the job may do in a slot, as modes of one slot, and the work that each does.
    span : (int, int)
        First and last slot that may be used.
    work : int
        Work to do.
    relax : bool
        Drop integrality.
    numbers : BlockNumbers
        The family's names of the placements' two constraints.
    """
    table, rates = ways
    first, last = span
    columns = job_columns(Starts.of(cluster, table, first, last))
    window = add_job(block, cluster, columns, relax, numbers)
    by_slot: dict[int, JobColumns] = defaultdict(lambda: JobColumns(table, y=columns.y))
    for index in sorted(columns.u, key=lambda index: -rates[index[0]]):  # `write` takes the first
        by_slot[index[1]].u.append(index)
    slots = sorted(by_slot)
    block.e = pyo.Var(
        slots,
        domain=pyo.UnitInterval if relax else pyo.Binary,
        doc="(ours) the job's last slot",
    )
    runs = {t: pyo.quicksum(block.u[i] for i in by_slot[t].u) for t in slots}
    amounts, needed = _amounts(rates, work)
    ends = {t: block.e[t] for t in slots}
    done = pyo.quicksum(amounts[i[0]] * block.u[i] for i in columns.u)
    if slots:
        block.eq_work = pyo.Constraint(
            expr=done >= needed * pyo.quicksum(ends.values()),
            doc="(ours) a job that runs does its work",
        )
    block.eq_slot = pyo.Constraint(
        slots, rule=lambda _, t: runs[t] <= 1, doc="(ours) one placement in a slot"
    )
    block.eq_end = pyo.Constraint(
        slots,
        rule=lambda _, t: runs[t] <= pyo.quicksum(ends[s] for s in slots if s >= t),
        doc="(ours) nothing runs after the last slot",
    )
    return SlotBlock(window, dict(by_slot), ends)


def _amounts(rates: Sequence[Fraction], work: int) -> tuple[list[float], float]:
    """Coefficients of the work's row and its right side, whole where they are small enough."""
    units = lcm(*(rate.denominator for rate in rates))
    whole = [int(rate * units) for rate in rates]
    step = gcd(*whole, work * units) or 1
    numbers = [value // step for value in (*whole, work * units)]
    if max(numbers) > MOST_WHOLE:
        return [float(rate / work) for rate in rates], 1.0
    return [float(value) for value in numbers[:-1]], float(numbers[-1])
