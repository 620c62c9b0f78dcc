"""The Lagrangian dual of gang as a linear program: payoffs and prices of GPU-seconds.

==================  ==========================================================================
``payoff[j]``       what job j costs at least, and pays, at the prices
``price[t]``        of a GPU-second in slot t; later ones are free
``level[j,C]``,     dual of the cheapest units until slot C: what the dearest one of them costs,
``spared[j,C,t]``   and how much less those of slot t do
==================  ==========================================================================

maximise (7) sum of payoffs - GPUs x prices, where no schedule is cheaper than a payoff: one row a
begin for jobs in one piece (8); for others a completion's cheapest units are a linear program,
whose dual stands in (9). Its optimum is the best bound that prices can prove (`pricing/gang`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.gang.instance import KINDS, GangInstance, split_formulation
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Best, DualProgram
from hindsched.models.declared import Symbol
from hindsched.models.gang.block import Ending, job_cost
from hindsched.models.gang.symbols import DUAL_SYMBOLS
from hindsched.models.gang.tasks import Task, priced_task
from hindsched.solutions.base import Violation

TOLERANCE = 1e-6
"""Relative: rows that are broken by less are broken by rounding."""


@dataclass(kw_only=True, eq=False, repr=False)
class GangDual(DualProgram):
    """(7)-(9): the best prices.

    Parameters
    ----------
    slots : int
        Slots that have a price.
    tasks : tuple of Task
        The jobs, with slots enough to run after all prices.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = DUAL_SYMBOLS
    OBJECTIVE_UNIT = "cost"

    instance: GangInstance
    slots: int
    tasks: tuple[Task, ...]

    def prices(self) -> dict[str, Floats]:
        """``gpus``: price of a GPU-second by slot."""
        values = [max(0.0, self.model.price[t].value or 0.0) for t in self.model.price]
        return {"gpus": np.array(values)}

    def payoffs(self) -> Floats:
        """Payoffs at the variables' values."""
        return np.array([payoff.value or 0.0 for payoff in self.model.payoff.values()])

    def violations(self, best: Best | None = None) -> list[Violation]:
        """Jobs with a schedule that is cheaper than their payoff, over all schedules."""
        price, payoffs = self.prices()["gpus"], self.payoffs().tolist()
        found = []
        for task, payoff in zip(self.tasks, payoffs, strict=True):
            end, least = _cheapest(self.instance, self.formulation, task, price)
            over = payoff - least
            if over > TOLERANCE * max(1.0, abs(least)):
                name = self.instance.jobs[task.job].name
                number = "(8)" if split_formulation(self.formulation)[0] == KINDS[0] else "(9)"
                found.append(Violation(number, f"job {name}, complete in slot {end}", over))
        return found


def build_dual(
    instance: GangInstance, formulation: str | None = None, *, slots: int | None = None
) -> GangDual:
    """Build (7)-(9).

    Parameters
    ----------
    instance : GangInstance
        The instance; servers are one pool.
    formulation : str, optional
        Kind and objective; the makespan's bound needs no prices.
    slots : int, optional
        Slots that have a price; by default all that a schedule may need.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("gang", preset="small"), slots=9).slots
    9
    """
    formulation = instance.check_formulation(formulation)
    kind, goal = split_formulation(formulation)
    if goal == "makespan":
        raise InputError("formulation", formulation, "has no prices: its bound is a rule")
    slots = max(instance.serial_end, 1) if slots is None else slots
    seconds = float(instance.slot_seconds)
    tasks = tuple(priced_task(instance, job, kind, slots) for job in range(len(instance.jobs)))
    model = pyo.ConcreteModel(name=f"dual of {instance.name}")
    model.payoff = pyo.Var([task.job for task in tasks], initialize=0, doc="(7) payoff of a job")
    model.price = pyo.Var(
        range(1, slots + 1), within=pyo.NonNegativeReals, initialize=0,
        doc="(7) price of a GPU-second",
    )  # fmt: skip

    def price(task: Task, slot: int) -> Expr:
        return seconds * task.gpus * model.price[slot] if slot <= slots else 0.0

    if kind == KINDS[0]:

        def no_cheaper(m: Model, j: int, begin: int) -> Expr:
            task = tasks[j]
            end = begin + task.work - 1
            paid = pyo.quicksum(price(task, t) for t in range(begin, end + 1))
            return m.payoff[j] <= _cost(instance, j, goal, end) + paid

        begins = [(task.job, end - task.work + 1) for task in tasks for end in task.ends]
        model.eq_8 = pyo.Constraint(begins, rule=no_cheaper, doc="(8) no schedule is cheaper")
    else:
        _add_cheapest_units(model, instance, tasks, goal, price)
    worth = pyo.quicksum(instance.total_gpus * seconds * item for item in model.price.values())
    model.eq_7 = pyo.Objective(
        expr=pyo.quicksum(model.payoff.values()) - worth,
        sense=pyo.maximize,
        doc="(7) payoffs less the worth of all GPUs",
    )
    return GangDual(
        instance=instance, formulation=formulation, model=model, slots=slots, tasks=tasks
    )


def _add_cheapest_units(
    model: Model,
    instance: GangInstance,
    tasks: tuple[Task, ...],
    goal: str,
    price: Callable[[Task, int], Expr],
) -> None:
    pairs = [(task.job, end) for task in tasks for end in task.ends]
    cells = [(j, end, t) for j, end in pairs for t in range(tasks[j].first, end + 1)]
    model.level = pyo.Var(pairs, initialize=0, doc="(9) cost of the dearest unit until a slot")
    model.spared = pyo.Var(
        cells, within=pyo.NonNegativeReals, initialize=0, doc="(9) how much less a slot's costs"
    )

    def no_cheaper(m: Model, j: int, end: int) -> Expr:
        task = tasks[j]
        spared = pyo.quicksum(m.spared[j, end, t] for t in range(task.first, end + 1))
        units = task.work * m.level[j, end] - task.width * spared
        return m.payoff[j] <= _cost(instance, j, goal, end) + units

    def at_most_its_price(m: Model, j: int, end: int, t: int) -> Expr:
        return m.level[j, end] - m.spared[j, end, t] <= price(tasks[j], t)

    model.eq_9 = pyo.Constraint(pairs, rule=no_cheaper, doc="(9) no schedule is cheaper")
    model.eq_9_unit = pyo.Constraint(
        cells, rule=at_most_its_price, doc="(9) a unit counts at most its price"
    )


def _cost(instance: GangInstance, job: int, goal: str, end: int) -> float:
    return float(job_cost(instance, job, goal, Ending.known(end)))


def _cheapest(
    instance: GangInstance, formulation: str, task: Task, price: Floats
) -> tuple[int, float]:
    """Completion and cost of a job's cheapest schedule, found by looking at all completions."""
    kind, goal = split_formulation(formulation)
    per_unit = np.zeros(task.last + 1)
    per_unit[1 : price.size + 1] = price[: task.last] * float(instance.slot_seconds) * task.gpus
    found = []
    for end in task.ends:
        first = end - task.work + 1 if kind == KINDS[0] else task.first
        levels = np.sort(per_unit[first : end + 1])
        full, rest = divmod(task.work, task.width)
        paid = task.width * float(levels[:full].sum())
        if rest:
            paid += rest * float(levels[full])
        found.append((_cost(instance, task.job, goal, end) + paid, end))
    least, end = min(found)
    return end, least
