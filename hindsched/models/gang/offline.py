"""The programs of gang in Pyomo: problem (0)-(6) of ``docs/gang.md`` in its three kinds.

=====================  ===========================================================================
``eq_0``               completion: total weighted seconds from submission to completion; makespan:
                       the last completion; deadlines: weight of the missed deadlines
``eq_5``               GPUs in use in a slot, on a server where jobs must be consolidated
``job[j]``             the blocks: `block.py` for (1), (3), (4), `placement.py` for (6)
=====================  ===========================================================================

(2), not before the submission, holds by the choice of slots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.gang.instance import (
    KINDS,
    MOST_PROGRAM_SLOTS,
    OBJECTIVES,
    GangInstance,
    split_formulation,
)
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import PRINTED, Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.gang.block import (
    STARTS,
    WINDOWS,
    Ending,
    Terms,
    add_job,
    columns_of,
    job_cost,
)
from hindsched.models.gang.placement import Places, add_places
from hindsched.models.gang.reading import load_block, read_block
from hindsched.models.gang.subproblem import build_subproblem
from hindsched.models.gang.symbols import SYMBOLS, GangNames
from hindsched.models.gang.tasks import Outlook, outlook
from hindsched.solutions.gang.solution import GangSolution

__all__ = ["FORMS", "WORST_JOB", "GangProgram", "build_offline", "build_subproblem"]

FORMS = {
    formulation: (STARTS if split_formulation(formulation)[0] == KINDS[0] else WINDOWS, PRINTED)
    for formulation in GangInstance.formulations
}
WORST_JOB = tuple(name for name in FORMS if split_formulation(name)[1] == "makespan")
MOST_COLUMNS = 400_000
"""Variables that a program may have; above it would not be solved anyway."""


@dataclass(kw_only=True, eq=False, repr=False)
class GangProgram(GangNames, OfflineProgram[GangSolution]):
    """The offline program of one formulation.

    Parameters
    ----------
    view : Outlook
        Open jobs, what is fixed, and the last slot.
    terms, places : dict
        What the blocks say of the open jobs; where they stand, if they must be consolidated.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "cost"

    instance: GangInstance
    view: Outlook
    terms: dict[int, Terms]
    places: dict[int, Places]

    def extract(self) -> GangSolution:
        """The schedule at the variables' values."""
        rows = self.view.fixed.assignments()
        for task in self.view.tasks:
            name = self.instance.jobs[task.job].name
            own, places = self.terms[task.job], self.places.get(task.job)
            found = read_block(self.instance, task, own, places)
            rows[name] = [*rows.get(name, []), *found]
        return GangSolution.from_assignments(self.instance, rows, self.formulation)

    def load(self, solution: GangSolution) -> None:
        """Set the variables from a feasible schedule."""
        for task in self.view.tasks:
            own, places = self.terms[task.job], self.places.get(task.job)
            load_block(self.instance, task, own, places, solution)
        if split_formulation(self.formulation)[1] == "makespan":
            self.model.span.set_value(solution.objective())

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
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
    instance: GangInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: GangSolution | None = None,
) -> GangProgram:
    """Build the offline program.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    formulation : str, optional
        Kind and objective, ``non-preemptive`` by default.
    form : str, optional
        ``starts`` (non-preemptive), ``windows`` (the others) or ``printed``.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed.
    incumbent : GangSolution, optional
        A feasible schedule that keeps the commitments: later slots than it needs are left out.

    Raises
    ------
    InputError
        If the program would be too large: `MOST_COLUMNS`, `MOST_PROGRAM_SLOTS`.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = build_offline(hs.generate("gang", preset="small"), "preemptive")
    >>> program.form, [part.name for part in program.components("objective")]
    ('windows', ['eq_0'])
    """
    known = None if formulation is None else instance.check_formulation(formulation)
    formulation, chosen = choose_form(FORMS, known, form)
    form = chosen or FORMS[formulation][0]
    kind, goal = split_formulation(formulation)
    again = partial(
        build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
        incumbent=incumbent,
    )  # fmt: skip
    view = outlook(instance, formulation, commitments or Commitments(), incumbent)
    _check_size(instance, view, form)
    model = pyo.ConcreteModel(name=instance.name)
    model.job = pyo.Block([task.job for task in view.tasks])
    terms, places = dict[int, Terms](), dict[int, Places]()
    for task in view.tasks:
        block = model.job[task.job]
        terms[task.job] = add_job(block, task, kind, form, relax)
        if instance.is_consolidated:
            held = terms[task.job].held
            places[task.job] = add_places(block, instance, task, kind, held, relax)
    _add_capacity(model, instance, view, terms, places)
    _add_objective(model, instance, view, goal, terms)
    return GangProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, incumbent=incumbent, view=view, terms=terms, places=places,
    )  # fmt: skip


def columns_needed(
    instance: GangInstance, formulation: str, incumbent: GangSolution | None = None
) -> int:
    """Variables of the default form without places; more than `MOST_COLUMNS` if too many slots."""
    if instance.serial_end > MOST_PROGRAM_SLOTS:
        return MOST_COLUMNS + 1
    view = outlook(instance, formulation, Commitments(), incumbent)
    return sum(columns_of(task, FORMS[formulation][0]) for task in view.tasks)


def _check_size(instance: GangInstance, view: Outlook, form: str) -> None:
    slots = max(instance.serial_end, view.slots)
    columns = sum(columns_of(task, form) for task in view.tasks)
    for count, most, what in (
        (slots, MOST_PROGRAM_SLOTS, "slots"),
        (columns, MOST_COLUMNS, f"variables in the form {form}"),
    ):
        if count > most:
            rule = f"too large for a program: {count} {what}, at most {most}"
            raise InputError("instance", instance.name, rule)


def _add_capacity(
    model: Model,
    instance: GangInstance,
    view: Outlook,
    terms: dict[int, Terms],
    places: dict[int, Places],
) -> None:
    """(5): what the open jobs hold of the GPUs that nothing fixed holds."""
    used: dict[Any, list[Expr]] = defaultdict(list)
    for job, own in terms.items():
        held = places[job].held if job in places else own.held
        for cell, gpus in held.items():
            used[cell].append(gpus)
    free = _free(instance, view)
    model.eq_5 = pyo.Constraint(
        sorted(used),
        rule=lambda m, *cell: pyo.quicksum(used[cell if len(cell) > 1 else cell[0]]) <= free(cell),
        doc="(5) what is held is there",
    )


def _free(instance: GangInstance, view: Outlook) -> Callable[[tuple[int, ...]], int]:
    """GPUs by slot, and server, that nothing fixed holds."""
    rows, sizes = view.fixed.rows, instance.server_gpus
    if instance.is_consolidated:
        room = np.repeat(sizes[None], view.slots + 1, axis=0)
        for row, server, gpus in zip(
            rows.place_row, rows.place_server, rows.place_gpus, strict=True
        ):
            room[rows.start[row] + 1 : rows.end[row] + 1, server] -= gpus
    else:
        room = np.full((view.slots + 1, 1), instance.total_gpus)
        for start, end, gpus in zip(rows.start, rows.end, rows.gpus, strict=True):
            room[start + 1 : end + 1] -= gpus
    table = room.tolist()
    return lambda cell: table[cell[0]][cell[1] if len(cell) > 1 else 0]


def _add_objective(
    model: Model, instance: GangInstance, view: Outlook, goal: str, terms: dict[int, Terms]
) -> None:
    """Add (0): what is minimised, with what the fixed jobs cost."""
    seconds = float(instance.slot_seconds)
    fixed_ends = view.fixed.completions
    if goal == OBJECTIVES[1]:
        earliest = seconds * int(fixed_ends.max(initial=0))
        model.span = pyo.Var(domain=pyo.NonNegativeReals, bounds=(earliest, None),
                             doc="(0) the last completion")  # fmt: skip
        model.eq_0_span = pyo.Constraint(
            list(terms),
            rule=lambda m, j: m.span >= seconds * terms[j].ending.completion,
            doc="(0) no job completes later",
        )
        cost = model.span
    else:
        costs = [job_cost(instance, job, goal, own.ending) for job, own in terms.items()]
        for job in np.flatnonzero(fixed_ends >= 0).tolist():
            end = int(fixed_ends[job])
            costs.append(job_cost(instance, job, goal, Ending.known(end)))
        cost = pyo.quicksum(costs)
    model.eq_0 = pyo.Objective(
        expr=cost,
        sense=pyo.minimize,
        doc={
            "completion": "(0) weighted seconds from submission to completion",
            "makespan": "(0) the makespan",
            "deadlines": "(0) weight of the deadlines that are missed",
        }[goal],
    )
