"""What every family's declarative programs share: their face, and what is fixed in the middle.

Each family's module ``models/<family>/offline.py`` offers

``FORMS``
    For each formulation the ways in which it can be written, the default first. All forms of one
    formulation have the same optimum; ``printed`` is the program as the paper prints it.
``build_offline(instance, formulation, *, form=None, relax=False, commitments=None, ...)``
    An `OfflineProgram`: the jobs' blocks, the linking rows, the objective. `offline_program` calls
    it with one of ``FORMS``, or with None for the form that suits the instance.
``AGGREGATED`` (optional)
    Settings of `build_offline` under which identical servers are added up: a relaxation whose
    linear relaxation has the same optimum as the program's own.
``JOBS_SHARE_COSTS`` (optional)
    True where what jobs cost in one slot does not add up.
``program_bytes(instance, jobs)`` (optional)
    What the default program of these jobs, by position, needs at least: where slots have no end.
``build_subproblem(instance, position, formulation)``
    A `Subproblem`: one block of the same with mutable prices and what is left of the capacities.
``build_dual(instance, formulation)`` (optional)
    A `DualProgram`: the paper's dual.
``build_slot(instance, slot)`` (in ``slot_program.py``, optional)
    The paper's program of one slot in CVXPY, with the face of the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord, family_module, has_module
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.models.algebra import ModelComponent
from hindsched.models.declared import Declared
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Commitments, Solution, Violation

__all__ = ["Commitments", "Duals"]

Duals = Mapping[Any, float]  # shadow prices by the constraint itself
Planned = TypeVar("Planned", bound=Solution)
Prices = Mapping[str, Floats]
"""Prices, or what is left of capacities, by the row sets of the family's oracle with one row a
server."""
Forms = Mapping[str, tuple[str, ...]]
"""Forms by formulation, the default first in both."""
RUN, COMMIT = POLICIES = ("run", "commit")
"""Policies that decide slot by slot, or all of a job when it arrives (`models.futures`)."""
PRINTED = "printed"  # the one word, in all families, for the program as the paper prints it


class Hedge(NamedTuple):
    """What a program must allow to a policy that does not know which future it is in."""

    policies: str  # ``run`` or ``commit``
    last_arrival: int  # in any future: a schedule may wait for a job that never comes
    worst: float | None = None  # where costs are minimised, the most to be looked at


@dataclass(kw_only=True, eq=False, repr=False)
class OfflineProgram(Declared, Generic[Planned]):
    """A family's offline program: the jobs' blocks, the linking rows and the objective.

    A family's own class adds, as typed attributes, whatever else its program is made of.
    """

    form: str  # how the formulation is written: one of the family's ``FORMS``
    relaxed: bool  # whether integrality is dropped
    settings: dict[str, Any] = field(default_factory=dict)  # with which `offline_program` built it
    # the schedule from which the program's time limit follows, and a start
    incumbent: Planned | None = None

    @property
    def title(self) -> str:
        """Family, instance, formulation, form and whether it is relaxed."""
        kind = ", relaxed" if self.relaxed else ""
        name = f"{self.instance.family}: {self.instance.name}"
        return f"{name} ({self.formulation}, {self.form} form{kind})"

    @abstractmethod
    def extract(self) -> Planned | None:
        """The solution at the variables' values; None if it could not be placed on servers."""

    @abstractmethod
    def load(self, solution: Planned) -> None:
        """Set the variables from a solution: a start for the solver."""

    @abstractmethod
    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of the linking rows, never negative, as `Prices` by row set in its shape."""

    def again(self, **changes: object) -> OfflineProgram[Planned]:
        """The program built anew, with changes to what it was built with."""
        return offline_program(self.instance, self.formulation, **{**self.settings, **changes})

    def relax(self) -> OfflineProgram[Planned]:
        """The linear relaxation of the same form, built anew as the paper's formulation has it."""
        return self.again(relax=True)

    def to_dict(self) -> JsonObject:
        """What `print` shows, for JSON."""
        return {**super().to_dict(), "form": self.form, "relaxed": self.relaxed}


@dataclass(kw_only=True, eq=False, repr=False)
class Subproblem(Declared):
    """One job's block with mutable prices and what is left of the capacities."""

    position: int  # of the job in the instance

    @property
    def title(self) -> str:
        """Family, instance, job and formulation."""
        name = self.instance.jobs[self.position].name
        return f"{self.instance.family}: best schedule of {name} ({self.formulation})"

    @abstractmethod
    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set the prices and what is left of the capacities; None for all of it."""

    @abstractmethod
    def extract(self) -> Solution | None:
        """The job's schedule at the variables' values, as a solution of its instance."""


@dataclass(kw_only=True, eq=False, repr=False)
class DualProgram(Declared):
    """A paper's dual as a program of its own, with the check of its points."""

    whose: str  # the dual's number and the program whose dual it is, as the title says it

    @property
    def title(self) -> str:
        """Family, what it is the dual of, and instance."""
        return f"{self.instance.family}: {self.whose} of {self.instance.name}"

    @abstractmethod
    def prices(self) -> dict[str, Floats]:
        """Prices of the capacities at the variables' values, by the oracle's row sets."""

    @abstractmethod
    def payoffs(self) -> Floats:
        """Payoff of each job at the variables' values, in the instance's order."""

    def violations(self, best: Sequence[float | None] | None = None) -> list[Violation]:
        """Rows and bounds that the variables' present values break.

        A dual that has a row for every schedule, and does not list them, needs the `best` payoff of
        each job at the present prices (None for a job without a schedule).
        """
        found = []
        rows = self.model.component_data_objects(pyo.Constraint, active=True)
        for item in (*rows, *self.model.component_data_objects(pyo.Var)):
            value = pyo.value(getattr(item, "body", item), exception=False) or 0.0
            below = -np.inf if item.lb is None else item.lb - value
            above = -np.inf if item.ub is None else value - item.ub
            over, size = max(below, above), max(1.0, abs(item.lb or 0.0), abs(item.ub or 0.0))
            if over > FEASIBILITY_TOLERANCE * size:
                number, _, _ = (item.parent_component().doc or "(").partition(")")
                found.append(Violation(f"{number})", item.name, over))
        return found


def model_module(family: str) -> ModuleType:
    """The module with a family's declarative programs, found by its name."""
    return family_module("models", family, "offline")


def aggregated(family: str) -> Mapping[str, Any]:
    """Settings of a family's `build_offline` for the smallest program with its LP's optimum."""
    found: Mapping[str, Any] = getattr(model_module(family), "AGGREGATED", {})
    return found


def row_prices(rows: ModelComponent, duals: Duals, sign: int = 1) -> dict[Any, float]:
    """Shadow prices of capacity rows by key, never negative; 0 for rows that no solver saw.

    `sign` is 1 where more capacity raises the objective, -1 where it lowers it.
    """
    return {key: max(0.0, sign * duals.get(row, 0.0)) for key, row in rows.items()}


def offline_program(
    instance: Instance, formulation: str | None = None, *, form: str | None = None, **build: Any
) -> OfflineProgram:
    """A family's offline program, found by the instance's word; None stands for the default.

    A form never changes the optimum: one that only another formulation has is refused.
    """
    module, commitments = model_module(instance.family), build.get("commitments") or Commitments()
    decided = commitments.locked | commitments.rejected
    check_size(instance, [i for i, job in enumerate(instance.jobs) if job.name not in decided])
    forms: Forms = module.FORMS
    chosen = next(iter(forms)) if formulation is None else instance.check_formulation(formulation)
    if form is not None and form not in forms[chosen]:
        rule = f"must be {' or '.join(forms[chosen])} in the formulation {chosen}"
        others = [name for name, known in forms.items() if form in known]
        raise InputError("form", form, rule + (f"; {', '.join(others)} has it" if others else ""))
    made: OfflineProgram = module.build_offline(instance, chosen, form=form, **build)
    made.settings = {"form": form, **build}
    return made


def check_size(instance: Instance, jobs: Sequence[int] | None = None) -> None:
    """Refuse a program of these jobs (all) that no memory will hold, before a row is built."""
    needed = getattr(model_module(instance.family), "program_bytes", None)
    if needed is not None:
        jobs = range(len(instance.jobs)) if jobs is None else jobs
        check_memory(f"the program of {instance.name}", needed(instance, jobs))


def subproblem(
    instance: Instance, job: JobRecord, formulation: str | None = None, **build: object
) -> Subproblem:
    """The subproblem of a job (its record, name or position), found by the instance's word."""
    position, chosen = instance.position_of(job), instance.check_formulation(formulation)
    module = model_module(instance.family)
    made: Subproblem = module.build_subproblem(instance, position, chosen, **build)
    return made


def dual_program(
    instance: Instance, formulation: str | None = None, **build: object
) -> DualProgram:
    """The paper's dual, found by the instance's word."""
    module, chosen = model_module(instance.family), instance.check_formulation(formulation)
    if not hasattr(module, "build_dual"):
        raise InputError("family", instance.family, "must be one whose paper states a dual")
    made: DualProgram = module.build_dual(instance, chosen, **build)
    return made


def convex_program(instance: Instance, slot: int, **build: object) -> Any:
    """The convex program of one slot of the family's paper, found by the instance's word."""
    if not has_module("models", instance.family, "slot_program"):
        raise InputError("family", instance.family, "must be one with convex programs")
    module = family_module("models", instance.family, "slot_program")
    return module.build_slot(instance, slot, **build)
