"""Subproblem (12)/(20) of batchsched: one job's cheapest schedule at given prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.models.base import Prices, Subproblem
from hindsched.models.batchsched.symbols import SYMBOLS, BatchschedNames
from hindsched.models.slots import refuse_in_pieces
from hindsched.models.sums import expressions, gather, tuples
from hindsched.models.windows import BlockNumbers, Starts, WindowBlock, add_job, job_columns
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution

BLOCK = BlockNumbers(
    "eq_2k",
    "(2k) no worker of a window that is not chosen",
    "eq_13c",
    "(13c) the chosen mode's workers beside no PS",
)


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedSubproblem(BatchschedNames, Subproblem):
    """Subproblem (12)/(20): the job's block with mutable prices and what is left.

    Parameters
    ----------
    slots : int
        Slots that have prices; what lies behind them cannot be used.
    block : WindowBlock
        The job's block.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"

    instance: BatchschedInstance
    slots: int
    block: WindowBlock

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left, both ``capacity`` of shape (H, R, slots).

        Other slots than before make another program: the model is then built anew.
        """
        price = prices["capacity"]
        if price.shape[2] != self.slots:
            fresh = build_subproblem(
                self.instance, self.position, self.formulation, slots=price.shape[2]
            )
            self.model, self.slots, self.block = fresh.model, fresh.slots, fresh.block
        left = np.repeat(self.instance.server_capacity[:, :, None], self.slots, axis=2)
        if room is not None:
            left = room["capacity"]
        model, price, left = self.model, price.tolist(), left.tolist()
        for h, r, t in model.price:
            model.price[h, r, t].set_value(price[h][r][t - 1])
            model.room[h, r, t].set_value(left[h][r][t - 1])

    def extract(self) -> BatchschedSolution:
        """The job's schedule at the variables' values."""
        rows: dict[str, Sequence[BatchschedRow]] = {}
        window = self.block.read(self.instance)
        if window is not None:
            rows[self.instance.jobs[self.position].name] = (BatchschedRow(*window),)
        return BatchschedSolution(self.instance, rows, self.formulation)


def build_subproblem(
    instance: BatchschedInstance,
    job: str | int,
    formulation: str | None = None,
    *,
    slots: int | None = None,
) -> BatchschedSubproblem:
    """Build subproblem (12)/(20) of one job: the block with prices 0 and everything free.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        Both have this block.
    slots : int, optional
        Last slot that may be used; by default the one by which the job is done when it waits for
        the last arrival and then takes its longest duration.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("batchsched", jobs=2), 0, slots=9).slots
    9
    """
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    position = instance.position_of(job)
    record = instance.jobs[position]
    table = modes(instance, record)
    if slots is None:
        slots = max(j.arrival for j in instance.jobs) + int(table.duration.max())
    if slots < 1:
        raise InputError("slots", slots, "must be at least 1")
    model = pyo.ConcreteModel(name=record.name)
    model.job = pyo.Block([position])
    columns = job_columns(Starts.of(instance, table, record.arrival, slots))
    block = add_job(model.job[position], instance, columns, False, BLOCK)
    keys, terms = gather(block.uses)
    cells = tuples(keys)
    capacity = instance.server_capacity
    model.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(
        cells, mutable=True, initialize={c: float(capacity[c[:2]]) for c in cells}, within=pyo.Reals
    )
    used = dict(zip(cells, expressions(len(cells), terms), strict=True))
    number, limit = ("12a", "2h") if instance.has_ps else ("20a", "15b")
    once = pyo.Constraint(
        expr=block.chosen == 1 if columns.u else pyo.Constraint.Infeasible,
        doc=f"({number}) the job runs once",
    )
    model.add_component(f"eq_{number}", once)
    fits = pyo.Constraint(
        cells,
        rule=lambda m, *cell: used[cell] <= m.room[cell],
        doc=f"({limit}) what runs fits in what is left of its server",
    )
    model.add_component(f"eq_{limit}", fits)
    paid = pyo.quicksum(model.price[cell] * used[cell] for cell in cells)
    model.objective = pyo.Objective(
        expr=float(record.weight) * block.completion + paid,
        sense=pyo.minimize,
        doc=f"({number[:2]}) weighted completion time and what the use costs",
    )
    return BatchschedSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, slots=slots,
        block=block,
    )  # fmt: skip
