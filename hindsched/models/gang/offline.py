"""The programs of gang in Pyomo: problem (0)-(6) of the page on gang in its three kinds.

=====================  ===========================================================================
``eq_0``               completion: total weighted seconds from submission to completion; makespan:
                       the last completion; deadlines: weight of the missed deadlines
``eq_5``               GPUs in use in a slot, on a server where jobs must be consolidated
``job[j]``             the blocks: `printed.py`, and tighter ones in `block.py`
=====================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.gang.instance import (
    KINDS,
    MOST_PROGRAM_SLOTS,
    GangInstance,
    split_formulation,
)
from hindsched.models import base
from hindsched.models.algebra import Expr, Model, set_equations
from hindsched.models.declared import DeclarativeProgram, symbols
from hindsched.models.gang import block
from hindsched.models.gang.printed import (
    MAKESPAN,
    job_cost,
    link_equations,
    link_jobs,
    open_cost,
    printed_program,
)
from hindsched.models.gang.sets import GangSets, GangTask, gang_sets, priced_task
from hindsched.solutions.gang.solution import GangSolution

FORMS = {
    formulation: (
        "starts" if split_formulation(formulation)[0] == KINDS[0] else "windows",
        base.PRINTED,
    )
    for formulation in GangInstance.formulations
}
BLOCKS = {"starts": block.starts, "windows": block.windows}
MOST_COLUMNS = 400_000  # variables that a program may have; no solver ends on more
MOST_TERMS = 4_000_000  # of its rows: about a gigabyte


class GangNames(DeclarativeProgram):
    """Servers read by their names."""

    SYMBOLS = symbols(
        {
            ("", "s"): "span",
            ("", ""): "eq_1_once",
            ("", "cost a job"): "eq_1_last",
            ("", "cost a begin"): "eq_4_once",
            ("", "cost a GPU"): "eq_4_place",
            ("job", "seconds a second"): "eq_0_span",
            ("slot", "starts"): "starts",
            ("slot", "completions"): "completes",
            ("slot", "units"): "y",
            ("slot", "jobs"): "done wide",
            ("slot", "begins"): "begins",
            ("slot", "cost a job"): "eq_1_kept",
            ("slot", "cost a GPU"): "eq_3_over eq_6 eq_6_wide",
            ("slot", "cost a begin"): "eq_4",
            ("slot", "cost a server"): "eq_6_part eq_6_spread",
            ("completion, slot", "units of work"): "units",
            ("server", "GPUs"): "stays",
            ("slot, server", "GPUs"): "held",
            ("slot, server", "servers"): "whole part",
            ("slot, server", "cost a GPU"): "eq_4_stays eq_6_most eq_6_whole",
            ("slot | completion |", "cost a unit"): "eq_1",
            ("slot | completion, slot", "cost a GPU"): "eq_3",
            ("slot | slot, server", "cost a GPU"): "eq_5",
        }
    )
    """Costs are weighted seconds, seconds or weight by the objective: "cost" throughout."""
    OBJECTIVE_UNIT = "cost"

    instance: GangInstance

    def name_of(self, index: str, place: int) -> str | None:
        instance = self.instance
        if index == "server" and instance.servers is not None:
            return instance.servers[place].name
        return None


@dataclass(kw_only=True, eq=False, repr=False)
class GangProgram(GangNames, base.OfflineProgram[GangSolution]):
    """The offline program of one formulation."""

    view: GangSets  # open jobs, what is fixed, the last slot

    def extract(self) -> GangSolution:
        rows = self.view.fixed.assignments()
        for task in self.view.tasks:
            name = self.instance.jobs[task.job].name
            rows.setdefault(name, []).extend(
                block.read_block(self.instance, task, self.model.job[task.job])
            )
        return GangSolution.from_assignments(self.instance, rows, self.formulation)

    def load(self, solution: GangSolution) -> None:
        for task in self.view.tasks:
            block.load_block(task, self.model.job[task.job], solution)
        if split_formulation(self.formulation)[1] == MAKESPAN:
            self.model.span.set_value(solution.objective())

    def capacity_prices(self, duals: base.Duals) -> dict[str, Floats]:
        """``gpus``, shape (slots,): duals of (5) for a GPU-second.

        Servers' prices count by their share of all GPUs.
        """
        instance = self.instance
        price = np.zeros(self.view.slots)
        share = instance.server_gpus / instance.total_gpus
        for key, row in self.model.eq_5.items():
            slot, part = (key[0], share[key[1]]) if isinstance(key, tuple) else (key, 1.0)
            price[slot - 1] += part * max(0.0, -duals.get(row, 0.0))
        return {"gpus": price / float(instance.slot_seconds)}


def build_offline(
    instance: GangInstance, formulation: str, *, form: str | None = None, relax: bool = False,
    commitments: base.Commitments | None = None, incumbent: GangSolution | None = None,
    policy: base.ScenarioPolicy | None = None,
) -> GangProgram:  # fmt: skip
    """Build (0)-(6); later slots than an `incumbent` needs are left out."""
    form = form or FORMS[formulation][0]
    kind, goal = split_formulation(formulation)
    view = gang_sets(instance, formulation, commitments or base.Commitments(), incumbent, policy)
    _check_size(instance, view, form)
    free = _free(instance, view)
    if form == base.PRINTED:
        m = printed_program(instance, kind, goal, view.tasks, free, relax)
    else:
        m = pyo.ConcreteModel(name=instance.name)
        m.job = pyo.Block([task.job for task in view.tasks])
        for task in view.tasks:
            BLOCKS[form](m.job[task.job], task, kind, relax)
        link_jobs(m, instance, kind, goal, view.tasks, free, relax)
        links = link_equations(goal, instance.is_consolidated, *block.LINKS[form])
        set_equations(m, links | block.EQUATIONS[form], block.NOTATION)
    _add_fixed(m, instance, view, goal)
    return GangProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=m,
        incumbent=incumbent, view=view,
    )  # fmt: skip


def program_size(
    instance: GangInstance, formulation: str, incumbent: GangSolution | None = None
) -> tuple[int, int]:
    """Variables and terms of the default form, as `_size_of_form`; too many slots are too many."""
    if instance.serial_end > MOST_PROGRAM_SLOTS:
        return MOST_COLUMNS + 1, MOST_TERMS + 1
    view = gang_sets(instance, formulation, base.Commitments(), incumbent)
    return _size_of_form(instance, view, FORMS[formulation][0])


def _size_of_form(instance: GangInstance, view: GangSets, form: str) -> tuple[int, int]:
    """Variables of a form, without places, and roughly its rows' terms: memory and time grow so."""
    servers = len(instance.server_gpus) if instance.is_consolidated else 1
    variables = terms = 0
    for task in view.tasks:
        ends, slots = len(task.ends), len(task.slots)
        if form == "starts":
            count, cost = ends, ends * (task.work + 2)
        elif form == "windows":
            count = sum(end - task.first + 2 for end in task.ends)
            cost = 4 * count
        else:
            count, cost = 3 * slots, ends * slots // 2 + 6 * slots
        variables, terms = variables + count, terms + cost + servers * slots
    return variables, terms


def _check_size(instance: GangInstance, view: GangSets, form: str) -> None:
    slots, (variables, terms) = (
        max(instance.serial_end, view.slots),
        _size_of_form(instance, view, form),
    )
    for count, most, what in (
        (slots, MOST_PROGRAM_SLOTS, "slots"),
        (variables, MOST_COLUMNS, f"variables in the form {form}"),
        (terms, MOST_TERMS, f"terms in the form {form}"),
    ):
        if count > most:
            rule = f"too large for a program: {count} {what}, at most {most}"
            raise InputError("instance", instance.name, rule)


def _free(instance: GangInstance, view: GangSets) -> Callable[[int, int], int]:
    """What fixed rows leave, by slot and server; a pool is one server."""
    rows, by_server = view.fixed.rows, instance.is_consolidated
    sizes = instance.server_gpus if by_server else np.array([instance.total_gpus])
    free = np.tile(sizes, (view.slots + 1, 1))
    for start, end, gpus in zip(
        rows.start, rows.end, rows.held if by_server else rows.gpus[:, None], strict=True
    ):
        free[start + 1 : end + 1] -= gpus
    return lambda t, h: int(free[t, h])


def _add_fixed(m: Model, instance: GangInstance, view: GangSets, goal: str) -> None:
    """What the fixed jobs add to (0)."""
    ends = view.fixed.completions
    if goal == MAKESPAN:
        m.span.setlb(float(instance.slot_seconds) * int(ends.max(initial=0)))
    else:
        m.eq_0.expr += sum(
            job_cost(instance, j, goal, end) for j, end in enumerate(ends.tolist()) if end >= 0
        )


@dataclass(kw_only=True, eq=False, repr=False)
class GangSubproblem(GangNames, base.Subproblem):
    """A job's cheapest schedule in the pool; slots after those with a price are free and empty."""

    slots: int  # that have a price
    task: GangTask  # with slots enough to run after all prices

    def set(self, prices: base.Prices, room: base.Prices | None = None) -> None:
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
        pool = self.instance.with_fields(placement="pool")
        rows = block.read_block(pool, self.task, self.model.job[self.position])
        name = self.instance.jobs[self.position].name
        return GangSolution.from_assignments(pool, {name: rows}, self.formulation)


def build_subproblem(
    instance: GangInstance, position: int, formulation: str, *, slots: int | None = None
) -> GangSubproblem:
    """Build a job's subproblem, with prices 0 and everything free.

    By default the oracle's slots have a price. The makespan does not fall apart into jobs.
    """
    kind, goal = split_formulation(formulation)
    if goal == "makespan":
        rule = "has no subproblems: the makespan is no sum over jobs"
        raise InputError("formulation", formulation, rule)
    slots = max(instance.serial_end, 1) if slots is None else slots
    if slots < 0:
        raise InputError("slots", slots, "must not be negative")
    task = priced_task(instance, position, kind, slots)
    m = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[position].name}")
    m.job = pyo.Block([position])
    b, seconds = m.job[position], float(instance.slot_seconds)
    BLOCKS[FORMS[formulation][0]](b, task, kind, relax=False)
    priced = [t for t in task.slots if t <= slots]
    m.price = pyo.Param(priced, mutable=True, initialize=0.0, within=pyo.Reals)
    m.room = pyo.Param(
        priced, mutable=True, initialize=instance.total_gpus * seconds, within=pyo.Reals
    )

    @m.Constraint(priced, doc="(5) what is held is left")
    def eq_5(m: Model, t: int) -> Expr:
        return seconds * b.uses[t] <= m.room[t]

    @m.Objective(doc="(0) the job's own cost and what it pays for its GPUs")
    def eq_0(m: Model) -> Expr:
        paid = total(m.price[t] * seconds * b.uses[t] for t in priced)
        return open_cost(instance, position, goal, b.ends) + paid

    return GangSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, slots=slots,
        task=task,
    )  # fmt: skip


MODELS = base.FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    decisions={"starts": {"starts": 0, "held": 0}, base.PRINTED: {"y": 0, "held": 0}},
    linking=frozenset({"eq_5"}),
    linking_slot=0,
)
