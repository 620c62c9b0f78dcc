"""gang's subproblem: one job's block with a price for every GPU-second of a slot."""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.gang.instance import KINDS, GangInstance, split_formulation
from hindsched.models.base import Prices, Subproblem
from hindsched.models.gang.block import STARTS, WINDOWS, Terms, add_job, job_cost
from hindsched.models.gang.reading import read_block
from hindsched.models.gang.symbols import SYMBOLS, GangNames
from hindsched.models.gang.tasks import Task, priced_task
from hindsched.solutions.gang.solution import GangSolution


@dataclass(kw_only=True, eq=False, repr=False)
class GangSubproblem(GangNames, Subproblem):
    """A job's cheapest schedule in the pool; slots after those with a price are free and empty.

    Parameters
    ----------
    slots : int
        Slots that have a price.
    task : Task
        The job, with slots enough to run after all prices.
    terms : Terms
        What its block says.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "cost"

    instance: GangInstance
    slots: int
    task: Task
    terms: Terms

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left, both ``gpus`` of shape (slots,), for GPU-seconds.

        Other slots than before make another program: the model is then built anew.
        """
        price = prices["gpus"]
        if price.size != self.slots:
            fresh = build_subproblem(
                self.instance, self.position, self.formulation, slots=price.size
            )
            self.model, self.slots = fresh.model, fresh.slots
            self.task, self.terms = fresh.task, fresh.terms
        everything = self.instance.total_gpus * float(self.instance.slot_seconds)
        for t in self.model.price:
            self.model.price[t].set_value(float(price[t - 1]))
            left = everything if room is None else float(room["gpus"][t - 1])
            self.model.room[t].set_value(left)

    def extract(self) -> GangSolution:
        """The job's schedule at the variables' values."""
        pool = self.instance.with_fields(placement="pool")
        rows = {self.instance.jobs[self.position].name: read_block(pool, self.task, self.terms)}
        return GangSolution.from_assignments(pool, rows, self.formulation)


def build_subproblem(
    instance: GangInstance,
    job: str | int,
    formulation: str | None = None,
    *,
    slots: int | None = None,
) -> GangSubproblem:
    """Build the subproblem of one job: its block with prices 0 and everything free.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        Kind and objective; the makespan does not fall apart into jobs.
    slots : int, optional
        Slots that have a price; by default those of the family's oracle.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("gang", preset="small"), 0, slots=9).slots
    9
    """
    formulation = instance.check_formulation(formulation)
    kind, goal = split_formulation(formulation)
    if goal == "makespan":
        rule = "has no subproblems: the makespan is no sum over jobs"
        raise InputError("formulation", formulation, rule)
    position = instance.position_of(job)
    if slots is None:
        slots = max(instance.serial_end, 1)
    if slots < 0:
        raise InputError("slots", slots, "must not be negative")
    task = priced_task(instance, position, kind, slots)
    model = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[position].name}")
    model.job = pyo.Block([position])
    form = STARTS if kind == KINDS[0] else WINDOWS
    terms = add_job(model.job[position], task, kind, form, relax=False)
    priced = [t for t in terms.held if t <= slots]
    seconds = float(instance.slot_seconds)
    everything = instance.total_gpus * seconds
    model.price = pyo.Param(priced, mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(priced, mutable=True, initialize=everything, within=pyo.Reals)
    model.eq_5 = pyo.Constraint(
        priced,
        rule=lambda m, t: seconds * terms.held[t] <= m.room[t],
        doc="(5) what is held is left",
    )
    paid = pyo.quicksum(model.price[t] * seconds * terms.held[t] for t in priced)
    model.eq_0 = pyo.Objective(
        expr=job_cost(instance, position, goal, terms.ending) + paid,
        sense=pyo.minimize,
        doc="(0) the job's own cost and what it pays for its GPUs",
    )
    return GangSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, slots=slots,
        task=task, terms=terms,
    )  # fmt: skip
