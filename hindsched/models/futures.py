"""Several futures of one cluster in one program: the extensive form, for policies that see none.

Scenarios are instances of one family, cluster and horizon that differ in their jobs. What an
algorithm knows of scenario s in slot t is its history: the ordered list of job records revealed by
then. Scenarios with equal histories are indistinguishable: a policy decides the same in them,

    x_s[.., t] = x_s'[.., t]   for all s, s' with equal history at t                          (N)

for the variables that say what happens, or begins, in slot t. Each family names
these by form (`FamilyModels.decisions`). Two classes of policies:

``run``
    Slot by slot, as widely as the family's rules allow; in oasis a job may be given up.
``commit``
    All that is decided of a job is decided when it arrives: its variables are equal in scenarios
    that are indistinguishable then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Any

import pyomo.environ as pyo

from hindsched.errors import InputError, check_type
from hindsched.instances.base import Instance, canonical_json, check_instance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import (
    COMMIT,
    POLICIES,
    RUN,
    Duals,
    OfflineProgram,
    ScenarioPolicy,
    family_models,
)
from hindsched.models.declared import IndexValue, Symbol, block_index
from hindsched.solutions.base import Solution

MOST_COLUMNS = 2_000_000  # of all scenarios together; no solver ends on more
Label = tuple[tuple[int, ...], Any]
"""Scenarios that cannot be told apart when it is decided, and what is decided."""
Decisions = Mapping[Label, Expr]


@dataclass(frozen=True)
class Futures:
    """Scenarios with probabilities, and who can be told apart when.

    Examples
    --------
    >>> import hindsched as hs
    >>> futures = Futures.of(hs.tree("gang", at=[2], branches=2))
    >>> futures.members(0, 1), futures.last_arrival > 2
    ((0, 1), True)
    """

    instances: tuple[Instance, ...]
    probabilities: tuple[float, ...]  # above 0, with sum 1
    notes: tuple[str, ...] = ()  # what was done to the scenarios

    @classmethod
    def of(
        cls, instances: Sequence[Instance], probabilities: Sequence[float] | None = None
    ) -> Futures:
        """Check scenarios and merge equal ones; equally likely if nothing is said."""
        check_type("instances", instances, list | tuple, "a list of Instances")
        if not instances:
            raise InputError("instances", "[]", "must be one scenario at least")
        for at, instance in enumerate(instances):
            check_instance(instance, f"instances[{at}]")
        shares = [1 / len(instances)] * len(instances) if probabilities is None else probabilities
        if len(shares) != len(instances):
            raise InputError("probabilities", len(shares), f"must be {len(instances)} numbers")
        for at, share in enumerate(shares):
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
                raise InputError(f"probabilities[{at}]", share, "must be above 0, at most 1")
        if abs(fsum(shares) - 1) > 1e-9:
            raise InputError("probabilities", fsum(shares), "must have the sum 1")
        first, merged, notes = instances[0], dict[str, tuple[Instance, float]](), list[str]()
        data = [instance.to_dict() for instance in instances]
        jobs = [record_text(record.pop("jobs")) for record in data]
        clusters = [record_text({**record, "name": 0, "provenance": 0}) for record in data]
        for at, (instance, share) in enumerate(zip(instances, shares, strict=True)):
            here = f"instances[{at}]"
            for name in ("family", "horizon"):
                if getattr(instance, name) != getattr(first, name):
                    rule = f"must be {getattr(first, name)}, as of the first scenario"
                    raise InputError(f"{here}.{name}", getattr(instance, name), rule)
            if clusters[at] != clusters[0]:
                raise InputError(here, instance.name, "must have the cluster of the first scenario")
            if not instance.jobs:
                raise InputError(f"{here}.jobs", "[]", "must be one job at least")
            same, before = merged.get(jobs[at], (instance, 0.0))
            if before:
                notes.append(f"{instance.name} is {same.name} again: merged")
            merged[jobs[at]] = same, before + share
        scenarios = tuple(zip(*merged.values(), strict=True))
        return cls(scenarios[0], scenarios[1], tuple(notes))

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def sense(self) -> str:
        """``max`` or ``min``."""
        return self.instances[0].sense

    def revealed(self, s: int, job: int) -> int:
        """Slot in which an algorithm is told of a job."""
        return self._histories[s][job][0]

    @cached_property
    def last_arrival(self) -> int:
        """Latest slot in which anything is told in any scenario."""
        return max(slot for jobs in self._histories for slot, _ in jobs)

    @property
    def reveal_delay(self) -> int:
        """Slots from a job's arrival until an algorithm is told of it."""
        return int(family_models(self.instances[0].family).reveal_delay)

    @cached_property
    def _histories(self) -> list[list[tuple[int, str]]]:
        """Slot and record of each job of each scenario."""
        return [
            [(instance.arrival_of(job) + self.reveal_delay, record_text(record))
             for job, record in zip(instance.jobs, instance.to_dict()["jobs"], strict=True)]
            for instance in self.instances
        ]  # fmt: skip

    def record(self, s: int, job: int) -> str:
        """The job's record, by which it is known in other scenarios."""
        return self._histories[s][job][1]

    @cached_property
    def _groups(self) -> dict[int, list[tuple[int, ...]]]:
        """Scenarios that cannot be told apart, by the slots in which anything is told."""
        groups = {}
        for t in sorted({slot for jobs in self._histories for slot, _ in jobs} | {1}):
            same: dict[tuple[str, ...], list[int]] = {}
            for s, jobs in enumerate(self._histories):
                same.setdefault(tuple(job for slot, job in jobs if slot <= t), []).append(s)
            groups[t] = sorted(map(tuple, same.values()))
        return groups

    def members(self, s: int, slot: int) -> tuple[int, ...]:
        """The scenarios that cannot be told from `s` in a slot, `s` among them."""
        last = max((t for t in self._groups if t <= slot), default=min(self._groups))
        return next(group for group in self._groups[last] if s in group)

    def classes(self) -> dict[int, list[tuple[int, ...]]]:
        """Classes of indistinguishable scenarios, by the slots in which they change."""
        classes: dict[int, list[tuple[int, ...]]] = {}
        for t, groups in self._groups.items():
            if not classes or groups != classes[max(classes)]:
                classes[t] = groups
        return classes


def record_text(record: object) -> str:
    """A job's record by its values: 1 and 1.0 are one number, null is what is not there."""

    def value(text: str) -> float:
        number = float(text)
        return int(number) if number.is_integer() else number

    def given(data: dict[str, object]) -> dict[str, object]:
        return {key: data[key] for key in data if data[key] is not None}

    return canonical_json(json.loads(canonical_json(record), parse_float=value, object_hook=given))


def extensive_form(
    models: Sequence[Model], decisions: Sequence[Decisions], probabilities: Sequence[float]
) -> tuple[Model, list[Expr]]:
    """One model of any Pyomo models, one a scenario, linked by (N).

    Parameters
    ----------
    models : sequence of ConcreteModel
        Each with one active objective, all of one sense. They become blocks ``scenario[s]``.
    decisions : sequence of mapping
        Of each scenario its decision variables by `Label`: those with equal labels are equal, and
        0 where a member has no such variable (rows ``eq_N``).
    probabilities : sequence of float
        Of the scenarios, in the objective ``expected``.

    Returns
    -------
    model, values : ConcreteModel, list of expression
        The values are the scenarios' own objectives.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> def rented(days):  # skis that cost 1 a day, or 3 for good
    ...     m = pyo.ConcreteModel()
    ...     m.buy = pyo.Var([1, 2], domain=pyo.Binary)
    ...     m.rent = pyo.Var([1, 2], bounds=(0, 1))
    ...     m.skis = pyo.Constraint(days, rule=lambda m, t: m.rent[t] + sum(
    ...         m.buy[s] for s in (1, 2) if s <= t) >= 1)
    ...     m.cost = pyo.Objective(expr=sum(m.rent.values()) + 1.5 * sum(m.buy.values()))
    ...     return m
    >>> models = [rented([1]), rented([1, 2])]
    >>> first = [{((0, 1), "day 1"): m.buy[1]} for m in models]
    >>> model, values = extensive_form(models, first, [0.5, 0.5])
    >>> _ = pyo.SolverFactory("appsi_highs").solve(model)
    >>> float(pyo.value(model.expected))
    1.5
    """
    m, values = pyo.ConcreteModel(), list[Expr]()
    m.scenario = pyo.Block(range(len(models)))
    senses = set()
    for s, model in enumerate(models):
        objective = next(model.component_data_objects(pyo.Objective, active=True))
        objective.deactivate()
        senses.add(objective.sense)
        values.append(objective.expr)
        m.scenario[s].transfer_attributes_from(model)
    if len(senses) != 1:
        raise InputError("models", len(models), "must all minimise or all maximise")
    rows: list[tuple[Any, Any]] = []
    for s, decided in enumerate(decisions):
        for label, variable in decided.items():
            members = label[0]
            following = members[(members.index(s) + 1) % len(members)]
            other = decisions[following].get(label, 0.0)
            if following != s and not (variable.fixed and getattr(other, "fixed", True)):
                rows.append((variable, other))

    @m.Constraint(range(len(rows)), doc="(N) decided alike where histories are equal")
    def eq_N(_: Model, row: int) -> Expr:
        return rows[row][0] == rows[row][1]

    expected = pyo.quicksum(p * value for p, value in zip(probabilities, values, strict=True))
    m.expected = pyo.Objective(
        expr=expected, sense=senses.pop(), doc="expected value over the scenarios"
    )
    return m, values


@dataclass(kw_only=True, eq=False, repr=False)
class ExtensiveProgram(OfflineProgram[Any]):
    """The scenarios' programs as blocks, linked by (N); the objective is the expected value."""

    BLOCKS = ("scenario", "job")

    futures: Futures
    policies: str
    programs: list[OfflineProgram[Any]] = field(default_factory=list)  # whose models are blocks
    values: list[Expr] = field(default_factory=list)  # their objectives

    @property
    def title(self) -> str:
        """How many scenarios, of what, for which policies."""
        first = self.programs[0].title
        return f"{len(self.futures)} scenarios, policies that {self.policies}, of {first}"

    def symbol(self, name: str) -> Symbol:
        """As of the scenarios' programs."""
        return Symbol("row") if name == "eq_N" else self.programs[0].symbol(name)

    def unit(self, name: str, kind: str) -> str:
        """As of the scenarios' programs."""
        return self.programs[0].unit(name, kind)

    def label(self, index: str, value: IndexValue) -> IndexValue:
        """Scenarios by their instances' names; jobs by place, as scenarios differ in them."""
        if index == "scenario" and isinstance(value, int):
            return self.futures.instances[value].name
        return value if index == "job" else self.programs[0].label(index, value)

    def again(self, **changes: object) -> ExtensiveProgram:
        """The program built anew, with changes to what it was built with."""
        build: dict[str, Any] = {**self.settings, **changes}
        return build_extensive(self.futures, self.policies, self.formulation, **build)

    def extract(self) -> None:
        """Nothing: there is a schedule for every scenario (`schedules`)."""

    def schedules(self) -> list[Solution]:
        """The scenarios' schedules at the variables' values, checked by their definition."""
        schedules = []
        for program in self.programs:
            solution = program.extract()
            broken = "no place" if solution is None else next(iter(solution.violations()), None)
            if solution is None or broken:
                raise InputError("policy", program.title, f"must be feasible: {broken}")
            schedules.append(solution)
        return schedules

    def load(self, solution: Any) -> None:
        """Set the variables from one schedule a scenario."""
        for program, schedule in zip(self.programs, solution, strict=True):
            program.load(schedule)

    def capacity_prices(self, duals: Duals) -> Any:
        """Each scenario has its own: ask its program."""
        raise InputError("model", self.title, "must be of one scenario for its prices")


def build_extensive(
    futures: Futures, policies: str = RUN, formulation: str | None = None, **build: Any
) -> ExtensiveProgram:
    """The extensive form; arguments as of `scenario_programs`."""
    programs, decisions = scenario_programs(futures, policies, formulation, **build)
    m, values = extensive_form(
        [program.model for program in programs], decisions, futures.probabilities
    )
    first = programs[0]
    for s, program in enumerate(programs):
        program.model = m.scenario[s]
    return ExtensiveProgram(
        instance=first.instance, formulation=first.formulation, form=first.form,
        relaxed=first.relaxed, model=m, settings=build, futures=futures, policies=policies,
        programs=programs, values=values,
    )  # fmt: skip


def scenario_programs(
    futures: Futures, policies: str = RUN, formulation: str | None = None, *,
    form: str | None = None, relax: bool = False, worst: Sequence[float] | None = None,
) -> tuple[list[OfflineProgram[Any]], list[Decisions]]:  # fmt: skip
    """Each scenario's own program and its decisions; for `worst` see `ScenarioPolicy`."""
    if policies not in POLICIES:
        raise InputError("policies", policies, f"must be {' or '.join(POLICIES)}")
    first = futures.instances[0]
    models, formulation = family_models(first.family), first.check_formulation(formulation)
    slots = models.decisions
    forms = [each for each in slots if each in models.forms.get(formulation, ())]
    if not forms or form not in (None, *forms):
        raise InputError("form", form or formulation, f"must be {' or '.join(slots) or 'another'}")
    build: dict[str, Any] = {"form": form or forms[0], "relax": relax}
    programs, decisions = list[OfflineProgram[Any]](), list[Decisions]()
    for s, instance in enumerate(futures.instances):
        worst_cost = None if worst is None else worst[s]
        build["policy"] = ScenarioPolicy(policies, futures.last_arrival, worst_cost)
        program = models.build_offline(instance, formulation, **build)
        if (columns := program.model.nvariables() * len(futures)) > MOST_COLUMNS:
            rule = f"would have {columns} columns, at most {MOST_COLUMNS}: fewer or smaller futures"
            raise InputError("instances", f"{len(futures)} scenarios", rule)
        programs.append(program)
        decisions.append(_decisions(futures, policies, s, program.model, slots[build["form"]]))
    return programs, decisions


def _decisions(
    futures: Futures, policies: str, s: int, model: Model, slots: Mapping[str, int | None]
) -> dict[Label, Expr]:
    """A scenario's decision variables: of ``slots`` where each has its slot, None at arrival.

    An index of a variable outside a job's block begins with the job. Who commits has decided all
    that a job's block says.
    """
    decisions: dict[Label, Expr] = {}
    for component in model.component_objects(pyo.Var):
        inside = bool(block_index(component))
        if component.local_name not in slots and not (inside and policies == COMMIT):
            continue
        place = slots.get(component.local_name)
        for key, variable in component.items():
            index = key if isinstance(key, tuple) else (key,)
            job: Any = block_index(component)[-1] if inside else index[0]
            slot = futures.revealed(s, job)
            if policies == RUN and place is not None:
                slot = max(slot, index[place])
            what = component.local_name, futures.record(s, job), index if inside else index[1:]
            decisions[futures.members(s, slot), what] = variable
    return decisions
