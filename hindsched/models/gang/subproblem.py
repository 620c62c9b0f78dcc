"""gang's subproblem: one job's block with a price for every GPU-second of a slot."""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.models.base import Prices, Subproblem
from hindsched.models.gang.block import NON_PREEMPTIVE, Expr, JobBlock, Starts, Windows, job_cost
from hindsched.models.gang.reading import read_block
from hindsched.models.gang.sets import Task, priced_task
from hindsched.models.gang.symbols import SYMBOLS, GangNames
from hindsched.solutions.gang.solution import GangSolution


@dataclass(kw_only=True, eq=False, repr=False)
class GangSubproblem(GangNames, Subproblem):
    """A job's cheapest schedule in the pool; slots after those with a price are free and empty."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "cost"

    instance: GangInstance
    slots: int  # that have a price
    task: Task  # with slots enough to run after all prices
    job: JobBlock

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left, both ``gpus`` of shape (slots,), for GPU-seconds."""
        price = prices["gpus"]
        if price.size != self.slots:
            rule = f"must have a price for each of the {self.slots} slots"
            raise InputError("prices.gpus", price.size, rule)
        everything = self.instance.total_gpus * float(self.instance.slot_seconds)
        for t in self.model.price:
            self.model.price[t] = float(price[t - 1])
            self.model.room[t] = everything if room is None else float(room["gpus"][t - 1])

    def extract(self) -> GangSolution:
        """The job's schedule at the variables' values."""
        pool = self.instance.with_fields(placement="pool")
        rows = {self.instance.jobs[self.position].name: read_block(pool, self.task, self.job)}
        return GangSolution.from_assignments(pool, rows, self.formulation)


def build_subproblem(
    instance: GangInstance,
    job: str | int,
    formulation: str | None = None,
    *,
    slots: int | None = None,
) -> GangSubproblem:
    """Build a job's subproblem, with prices 0 and everything free.

    By default the oracle's slots have a price. The makespan does not fall apart into jobs.
    """
    formulation = instance.check_formulation(formulation)
    kind, goal = split_formulation(formulation)
    if goal == "makespan":
        rule = "has no subproblems: the makespan is no sum over jobs"
        raise InputError("formulation", formulation, rule)
    position = instance.position_of(job)
    slots = max(instance.serial_end, 1) if slots is None else slots
    if slots < 0:
        raise InputError("slots", slots, "must not be negative")
    task = priced_task(instance, position, kind, slots)
    m = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[position].name}")
    m.job = pyo.Block([position])
    form = Starts if kind == NON_PREEMPTIVE else Windows
    own = form(m.job[position], task, kind, relax=False)
    seconds = float(instance.slot_seconds)
    priced = [t for t in own.held if t <= slots]
    m.price = pyo.Param(priced, mutable=True, initialize=0.0, within=pyo.Reals)
    m.room = pyo.Param(
        priced, mutable=True, initialize=instance.total_gpus * seconds, within=pyo.Reals
    )

    @m.Constraint(priced, doc="(5) what is held is left")
    def eq_5(m: Expr, t: int) -> Expr:
        return seconds * own.held[t] <= m.room[t]

    @m.Objective(doc="(0) the job's own cost and what it pays for its GPUs")
    def eq_0(m: Expr) -> Expr:
        paid = pyo.quicksum(m.price[t] * seconds * own.held[t] for t in priced)
        return job_cost(instance, position, goal, own.completion, own.in_time) + paid

    return GangSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, slots=slots,
        task=task, job=own,
    )  # fmt: skip
