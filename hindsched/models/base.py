"""What every family's declarative programs share, and what a family offers: `FamilyModels`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord, family_module
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.models.algebra import ModelComponent
from hindsched.models.declared import PyomoProgram, Symbol
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Commitments, Solution

__all__ = ["Commitments", "Duals"]

Duals = Mapping[Any, float]  # shadow prices by the constraint itself
Planned = TypeVar("Planned", bound=Solution)
Prices = Mapping[str, Floats]
"""Prices, or what is left of capacities, by the row sets of the family's oracle with one row a
server."""
Forms = Mapping[str, tuple[str, ...]]
"""Forms by formulation, the default first in both."""
Terms = Iterable[tuple[Any, float]]
"""Variables with their coefficients."""
RUN, COMMIT = POLICIES = ("run", "commit")
ALONE = "alone"  # of a job's part of a program to which jobs are added
"""Policies that decide slot by slot, or all of a job when it arrives (`models.futures`)."""
PRINTED = "printed"  # the one word, in all families, for the program as the paper prints it


class ScenarioPolicy(NamedTuple):
    """What a program must allow to a policy that does not know which future it is in."""

    kind: str  # ``run`` or ``commit``
    last_arrival: int  # in any future: a schedule may wait for a job that never comes
    worst_cost: float | None = None  # where costs are minimised: schedules above it are left out


@dataclass(kw_only=True, eq=False, repr=False)
class OfflineProgram(PyomoProgram, Generic[Planned]):
    """A family's offline program: the jobs' blocks, the linking rows and the objective.

    A family's own class adds, as typed attributes, whatever else its program is made of.
    """

    PRINTED_SYMBOLS: ClassVar[Mapping[str, Symbol]] = {}
    """Of the printed form, which has components of its own."""

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

    def symbol(self, name: str) -> Symbol:
        """Indices and unit of a component, in the form at hand."""
        own = self.PRINTED_SYMBOLS if self.form == PRINTED else {}
        return own.get(name) or super().symbol(name)

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
class Subproblem(PyomoProgram):
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

    def ties(self) -> Iterator[Terms]:
        """What decides among schedules of equal payoff, one after the other: the least is taken.

        By default nothing does.
        """
        yield from ()

    @abstractmethod
    def extract(self) -> Solution | None:
        """The job's schedule at the variables' values, as a solution of its instance."""


@dataclass(frozen=True)
class BrokenRow:
    """A row or bound of a dual program that a point breaks."""

    constraint: str  # the paper's equation number, such as "(2)"
    where: str  # the row's name
    amount: float  # in the row's own unit

    @property
    def rule(self) -> str:
        """The constraint, as the kernel's violations call it."""
        return self.constraint

    @property
    def detail(self) -> str:
        """By how much."""
        return f"by {self.amount:.6g}"

    def __str__(self) -> str:
        return f"{self.rule} at {self.where}: {self.detail}"


@dataclass(kw_only=True, eq=False, repr=False)
class DualProgram(PyomoProgram):
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

    def violations(self, best: Sequence[float | None] | None = None) -> list[BrokenRow]:
        """Rows and bounds that the variables' present values break.

        A dual that has a row for every schedule, and does not list them, needs the `best` payoff of
        each job at the present prices (None for a job without a schedule).
        """
        broken = []
        rows = self.model.component_data_objects(pyo.Constraint, active=True)
        for item in (*rows, *self.model.component_data_objects(pyo.Var)):
            value = pyo.value(getattr(item, "body", item), exception=False) or 0.0
            below = -np.inf if item.lb is None else item.lb - value
            above = -np.inf if item.ub is None else value - item.ub
            over, size = max(below, above), max(1.0, abs(item.lb or 0.0), abs(item.ub or 0.0))
            if over > FEASIBILITY_TOLERANCE * size:
                number, _, _ = (item.parent_component().doc or "(").partition(")")
                broken.append(BrokenRow(f"{number})", item.name, over))
        return broken


@dataclass(frozen=True, kw_only=True)
class FamilyModels:
    """What a family offers on this floor: ``MODELS`` of its ``offline.py``."""

    forms: Forms
    """Ways to write each formulation, all with the same optimum; ``printed`` is
    the paper's."""
    build_offline: Callable[..., OfflineProgram[Any]]
    """``(instance, formulation, *, form, relax, commitments, incumbent, policy)``: all blocks, the
    linking rows, the objective; without a form the one that suits the instance. `policy`, a
    `ScenarioPolicy`, is there for families with `decisions`."""
    build_subproblem: Callable[..., Subproblem] | None = None
    """``(instance, position, formulation)``: a block with mutable prices and capacities."""
    build_dual: Callable[..., DualProgram] | None = None
    """``(instance, formulation)``: the paper's dual."""
    build_slot: Callable[..., Any] | None = None
    """``(instance, slot)``: the paper's program of one slot in CVXPY."""
    aggregated: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `build_offline` under which identical servers are added up: a relaxation whose
    linear relaxation has the same optimum as the program's own."""
    program_bytes: Callable[[Any, Iterable[int]], float] = lambda instance, jobs: 0.0
    """What the default program of these jobs, by position, needs at least."""
    jobs_share_costs: bool = False
    """Whether what jobs cost in one slot does not add up."""
    decisions: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    """By form, the variables that a policy decides (`models.futures`) and where in their index the
    slot stands: None for what is decided when the job arrives."""
    linking: frozenset[str] = frozenset()
    """Names of the rows that link jobs, in their index the slot at `linking_slot`: capacities."""
    shared: frozenset[str] = frozenset()
    """Names of the variables that are no job's own."""
    linking_slot: int = -1
    reveal_delay: int = 0
    """Slots between a job's arrival and the step in which an algorithm learns of it."""


def family_models(family: str) -> FamilyModels:
    """What a family offers on this floor, found by its word."""
    models: FamilyModels = family_module("models", family, "offline").MODELS
    return models


def row_prices(rows: ModelComponent, duals: Duals, sign: int = 1) -> dict[Any, float]:
    """Shadow prices of capacity rows by key, never negative; 0 for rows that no solver saw.

    `sign` is 1 where more capacity raises the objective, -1 where it lowers it.
    """
    return {key: max(0.0, sign * duals.get(row, 0.0)) for key, row in rows.items()}


def offline_program(
    instance: Instance, formulation: str | None = None, *, form: str | None = None, **build: Any
) -> OfflineProgram:
    """A family's offline program, found by the instance's word; None stands for the default.

    A form never changes the optimum: one that only another formulation has is refused. Without a
    formulation a form stands for the first that has it.
    """
    models, commitments = family_models(instance.family), build.get("commitments") or Commitments()
    decided = commitments.locked | commitments.rejected
    check_size(instance, [i for i, job in enumerate(instance.jobs) if job.name not in decided])
    forms = models.forms
    with_form = (name for name, known in forms.items() if form in known)
    chosen = next(with_form, next(iter(forms)))
    if formulation is not None:
        chosen = instance.check_formulation(formulation)
    if form is not None and form not in forms[chosen]:
        rule = f"must be {' or '.join(forms[chosen])} in the formulation {chosen}"
        others = [name for name, known in forms.items() if form in known]
        raise InputError("form", form, rule + (f"; {', '.join(others)} has it" if others else ""))
    program = models.build_offline(instance, chosen, form=form, **build)
    program.settings = {"form": form, **build}
    return program


def check_size(instance: Instance, jobs: Sequence[int] | None = None) -> None:
    """Refuse a program of these jobs (all) that no memory will hold, before a row is built."""
    jobs = range(len(instance.jobs)) if jobs is None else jobs
    needed = family_models(instance.family).program_bytes(instance, jobs)
    check_memory(f"the program of {instance.name}", needed)


def subproblem(
    instance: Instance, job: JobRecord, formulation: str | None = None, **build: object
) -> Subproblem:
    """The subproblem of a job (its record, name or position), found by the instance's word."""
    position, chosen = instance.position_of(job), instance.check_formulation(formulation)
    builder = family_models(instance.family).build_subproblem
    if builder is None:
        raise InputError("family", instance.family, "must be one with subproblems")
    return builder(instance, position, chosen, **build)


def dual_program(
    instance: Instance, formulation: str | None = None, **build: object
) -> DualProgram:
    """The paper's dual, found by the instance's word."""
    builder = family_models(instance.family).build_dual
    if builder is None:
        raise InputError("family", instance.family, "must be one whose paper states a dual")
    return builder(instance, instance.check_formulation(formulation), **build)


def convex_program(instance: Instance, slot: int, **build: object) -> Any:
    """The convex program of one slot of the family's paper, found by the instance's word."""
    builder = family_models(instance.family).build_slot
    if builder is None:
        raise InputError("family", instance.family, "must be one with convex programs")
    return builder(instance, slot, **build)
