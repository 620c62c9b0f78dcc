"""Subproblem (12)/(20) of batchsched: one job's cheapest schedule at given prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.models.base import Prices, Subproblem
from hindsched.models.batchsched.symbols import BLOCK, SYMBOLS, BatchschedNames
from hindsched.models.windows.block import JobBlock, add_job, refuse_in_pieces, use_by_cell
from hindsched.models.windows.offline import add_prices, set_prices
from hindsched.models.windows.sets import EmptyCluster, Starts, job_sets
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedSubproblem(BatchschedNames, Subproblem):
    """Subproblem (12)/(20): the job's block with mutable prices and what is left.

    Parameters
    ----------
    slots : int
        Slots that have prices; what lies behind them cannot be used.
    block : JobBlock
        The job's block.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"

    instance: BatchschedInstance
    slots: int
    block: JobBlock

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
        whole = np.repeat(self.instance.server_capacity[:, :, None], self.slots, axis=2)
        set_prices(self.model, price, whole if room is None else room["capacity"])

    def extract(self) -> BatchschedSolution:
        """The job's schedule at the variables' values."""
        rows = [BatchschedRow(*window) for window in self.block.read(self.instance)]
        name = self.instance.jobs[self.position].name
        return BatchschedSolution(self.instance, {name: rows} if rows else {}, self.formulation)


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
        ``modes`` and ``literal`` have this block.
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
    record, table = instance.jobs[position], modes(instance, instance.jobs[position])
    if slots is None:
        slots = max(j.arrival for j in instance.jobs) + int(table.duration.max())
    if slots < 1:
        raise InputError("slots", slots, "must be at least 1")
    model = pyo.ConcreteModel(name=record.name)
    model.job = pyo.Block([position])
    sets = job_sets(Starts.of(EmptyCluster(instance), table, record.arrival, slots))
    block = add_job(model.job[position], sets, BLOCK, relax=False)
    used = use_by_cell(instance, {position: block})
    paid = add_prices(model, used, instance.server_capacity)
    once, limit = ("12a", "2h") if instance.has_ps else ("20a", "15b")

    def fits(m: Any, h: int, r: int, t: int) -> Any:
        return pyo.quicksum(used[h, r, t]) <= m.room[h, r, t]

    runs = pyo.Constraint(
        expr=block.chosen == 1 if sets.columns else pyo.Constraint.Infeasible,
        doc=f"({once}) the job runs once",
    )
    model.add_component(f"eq_{once}", runs)
    doc = f"({limit}) what runs fits in what is left of its server"
    model.add_component(f"eq_{limit}", pyo.Constraint(list(used), rule=fits, doc=doc))
    model.objective = pyo.Objective(
        expr=float(record.weight) * block.worth(lambda last: last + 1.0) + paid,
        sense=pyo.minimize, doc=f"({once[:2]}) weighted completion time and what the use costs",
    )  # fmt: skip
    return BatchschedSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, slots=slots,
        block=block,
    )  # fmt: skip
