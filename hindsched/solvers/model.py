"""``hindsched.model``: a family's declarative programs as objects that a user holds and solves.

A `Model` has the offline program, a `SubproblemModel` one job's block with prices, a `DualModel`
the paper's dual. Each prints its equations, writes its file and gives its Pyomo model away; to
solve it goes through the door of `solve_program`. A Pyomo model that was changed is solved as it
is, and the result says what differs from the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.models.base import (
    Array,
    DualProgram,
    OfflineProgram,
    Prices,
    Subproblem,
    convex_program,
    dual_program,
    offline_program,
    subproblem,
)
from hindsched.models.declared import Declared
from hindsched.solutions.base import Solution, Violation
from hindsched.solvers.answer import Progress
from hindsched.solvers.changes import what_changed
from hindsched.solvers.numbers import Numbers
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle, build_oracle, row_layouts
from hindsched.solvers.program import ProgramResult, solve_program
from hindsched.solvers.status import Status, StoppedBy
from hindsched.solvers.subproblem import HotSubproblem

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.solvers.certificate import Certificate
    from hindsched.solvers.convex_model import ConvexModel

AnyDeclared = TypeVar("AnyDeclared", bound=Declared)
MOST_ROUNDS = 1_000
"""Rounds of row generation after which a dual is given up."""


@dataclass(frozen=True)
class ModelResult:
    """What is known of a model after a solve.

    Parameters
    ----------
    declared : Declared
        What was solved.
    program : ProgramResult
        What the solver's door says of the Pyomo model.
    solution : Solution, optional
        The point as a solution of the instance, checked by its definition; None for a relaxation,
        for a point that could not be placed on servers, and for one that breaks a constraint.
    changed : str, optional
        How the Pyomo model differs from the one that was built; None if it does not. Objective and
        bound of a changed model say nothing of the instance.
    details : mapping
        Facts of the solve; ``unplaced`` and ``refused`` say why there is no solution.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.generate("oasis", jobs=2, horizon=6))
    >>> model.pyomo.job[0].deactivate()
    >>> model.solve().changed is None
    False
    """

    declared: Declared
    program: ProgramResult
    point: Mapping[int, float]
    solution: Solution | None = None
    changed: str | None = None
    details: Mapping[str, Any] | None = None

    @property
    def status(self) -> Status:
        """What is known of the model's optimum."""
        return self.program.status

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the solver stopped."""
        return self.program.stopped_by

    @property
    def objective(self) -> float | None:
        """The model's objective at its point."""
        return self.program.objective

    @property
    def bound(self) -> float | None:
        """Bound on the model's optimum."""
        return self.program.bound

    @property
    def values(self) -> Numbers:
        """Values of the variables by name."""
        if not self.program.has_point:
            raise SolveFailed(f"{self.declared.title}: {self.status}, there is no point")
        names = [part.name for part in self.declared.components("variable")]
        return Numbers(names, lambda name: self.declared.table(name, self._value))

    @property
    def duals(self) -> Numbers:
        """Shadow prices of the constraints by name: d objective / d right side."""
        prices = self._of_a_relaxation(self.program.duals)
        names = [part.name for part in self.declared.components("constraint")]
        return Numbers(names, lambda name: self.declared.table(name, prices.get))

    @property
    def reduced_costs(self) -> Numbers:
        """Reduced costs of the variables by name."""
        costs = self._of_a_relaxation(self.program.reduced_costs)
        names = [part.name for part in self.declared.components("variable")]

        def table(name: str) -> pd.Series[Any]:
            units = (self.declared.OBJECTIVE_UNIT, self.declared.symbol(name).unit)
            return self.declared.table(name, costs.get, " for each of ".join(filter(None, units)))

        return Numbers(names, table)

    def _value(self, variable: Any) -> float | None:
        return self.point.get(id(variable))

    def _of_a_relaxation(self, numbers: Mapping[Any, float] | None) -> Mapping[Any, float]:
        if numbers is None:
            raise SolveFailed(
                f"{self.declared.title}: {self.status}; only a linear program solved to its "
                "optimum has duals: relax() gives one"
            )
        return numbers

    def capacity_prices(self) -> dict[str, Array]:
        """Duals of the linking rows as prices of the family's oracle with one row a server."""
        if not isinstance(self.declared, OfflineProgram):
            raise InputError("model", self.declared.title, "must be an offline program")
        return self.declared.capacity_prices(self._of_a_relaxation(self.program.duals))

    def certificate(self) -> Certificate | None:
        """The bound that the duals prove by best responses, without believing the solver.

        None for a problem whose pricing oracle is not exact.
        """
        from hindsched.solvers.certificate import certify

        instance = self.declared.instance
        rows = "servers" if "servers" in row_layouts(instance.family) else None
        oracle = build_oracle(instance, self.declared.formulation, rows=rows)
        if not oracle.exact:
            return None
        return certify(oracle, _flat_prices(oracle, self.capacity_prices()), "lp-dual")

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "model": self.declared.title,
            "status": str(self.status),
            "stopped_by": str(self.stopped_by),
            "objective": self.objective,
            "bound": self.bound,
            "changed": self.changed,
            "solution": None if self.solution is None else self.solution.objective(),
            "seconds": self.program.seconds,
            "backend": self.program.backend,
        }

    def __str__(self) -> str:
        def show(number: float | None) -> str:
            return "none" if number is None else f"{number:.6g}"

        changed = "" if self.changed is None else f"; the model was changed: {self.changed}"
        return (
            f"{self.declared.title}: {self.status}, objective {show(self.objective)}, bound "
            f"{show(self.bound)}, {self.program.seconds:.2f} s{changed}"
        )

    def __repr__(self) -> str:
        return f"<{self}>"


class _Held(Generic[AnyDeclared]):
    """The face that all models share: print it, write it, have its Pyomo model."""

    def __init__(self, program: AnyDeclared) -> None:
        self.program = program

    @property
    def instance(self) -> Instance:
        """What the model is about."""
        return self.program.instance

    @property
    def pyomo(self) -> pyo.ConcreteModel:
        """The Pyomo model: read it, change it, give it to any solver."""
        return self.program.pyomo

    def write(self, path: str | Path) -> None:
        """Write an MPS or LP file with readable names; the path's ending says which."""
        self.program.write(path)

    def to_dict(self) -> dict[str, Any]:
        """Equations and sizes as JSON data."""
        return self.program.to_dict()

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return repr(self.program)


class Model(_Held[OfflineProgram]):
    """An instance's offline program, as `model` returns it.

    Parameters
    ----------
    program : OfflineProgram
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.generate("oasis", jobs=2, horizon=6), form="printed")
    >>> model.solve(time_limit=60).status
    <Status.OPTIMAL: 'optimal'>
    """

    def solve(
        self,
        options: SolveOptions | Mapping[str, Any] | None = None,
        *,
        start: Solution | None = None,
        **option_keywords: Any,
    ) -> ModelResult:
        """Solve the Pyomo model as it is now.

        Parameters
        ----------
        options : SolveOptions or mapping, optional
            How to solve.
        start : Solution, optional
            A solution to begin from.
        **option_keywords
            Options by name: ``time_limit=60``.
        """
        program = self.program
        if start is not None:
            program.load(start)
        chosen = SolveOptions.of(**{**_as_mapping(options), **option_keywords})
        result = solve_declared(
            program, chosen, start=start is not None, want_duals=program.relaxed
        )
        changed = what_changed(program)
        details = dict(result.program.details)
        solution = None
        if result.program.has_point and not program.relaxed:
            solution = program.extract()
            if solution is None:
                details["unplaced"] = result.objective
            elif broken := solution.violations():
                details["refused"] = str(broken[0])
                solution = None
        return replace(result, solution=solution, changed=changed, details=details)

    def relax(self) -> Model:
        """The linear relaxation of the same form, built anew without changes made since."""
        return Model(self.program.relax())

    def dual(self, **build: Any) -> DualModel:
        """The paper's dual as a program of its own; keywords are those of its ``build_dual``."""
        return DualModel(dual_program(self.instance, self.program.formulation, **build))

    def slot(self, slot: int, **build: Any) -> ConvexModel:
        """The paper's convex program of one slot; keywords are those of its ``build_slot``."""
        from hindsched.solvers.convex_model import ConvexModel

        return ConvexModel(convex_program(self.instance, "slot", slot, **build))

    def fractional(self, **build: Any) -> ConvexModel:
        """The paper's convex relaxation; keywords are those of its ``build_fractional``."""
        from hindsched.solvers.convex_model import ConvexModel

        return ConvexModel(convex_program(self.instance, "fractional", **build))

    def subproblem(self, job: str | int) -> SubproblemModel:
        """One job's block of the same formulation with prices, all 0 until they are set."""
        return SubproblemModel(subproblem(self.instance, job, self.program.formulation))


class SubproblemModel(_Held[Subproblem]):
    """One job's best schedule at given prices; the solver is kept hot between solves.

    Parameters
    ----------
    program : Subproblem
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> sub = hs.model(hs.generate("oasis", jobs=2, horizon=6)).subproblem(0)
    >>> sub.solve().objective is not None
    True
    """

    def __init__(self, program: Subproblem) -> None:
        super().__init__(program)
        self._hot = HotSubproblem(program)

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left of the capacities, by row set of the family's oracle."""
        self.program.set(prices, room)

    def solve(
        self, options: SolveOptions | Mapping[str, Any] | None = None, **option_keywords: Any
    ) -> ModelResult:
        """Solve at the present prices; `ModelResult.solution` has the job's schedule alone."""
        chosen = SolveOptions.of(**{"gap": 1e-9, **_as_mapping(options), **option_keywords})
        if chosen != self._hot.options:
            self._hot = HotSubproblem(self.program, chosen)
        result = _with_point(self.program, self._hot.solve())
        solution = self.program.extract() if result.program.has_point else None
        return replace(result, solution=solution)


@dataclass(frozen=True)
class DualResult:
    """An optimal point of a paper's dual.

    Parameters
    ----------
    result : ModelResult
        The solve.
    prices : dict
        Prices of the capacities by the oracle's row sets.
    payoffs : ndarray
        Payoff of each job.
    violations : list of Violation
        Constraints of the dual that the point breaks, over all schedules; empty if it is feasible.
    rows : int
        Rows of schedules that were added on the way.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.model(hs.generate("oasis", jobs=2, horizon=6)).dual().solve().violations
    []
    """

    result: ModelResult
    prices: dict[str, Array]
    payoffs: Array
    violations: list[Violation]
    rows: int

    @property
    def objective(self) -> float | None:
        """The dual's optimum, which bounds the primal one where the point is feasible."""
        return self.result.objective


class DualModel(_Held[DualProgram]):
    """The paper's dual, as `Model.dual` returns it.

    Parameters
    ----------
    program : DualProgram
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> dual = hs.model(hs.generate("oasis", jobs=2, horizon=6)).dual()
    >>> dual.solve().objective >= 0
    True
    """

    def solve(
        self, options: SolveOptions | Mapping[str, Any] | None = None, **option_keywords: Any
    ) -> DualResult:
        """Solve it; a dual with a row a schedule gets the rows that best responses break.

        Raises
        ------
        SolveFailed
            If there is no optimum, or rows do not come to an end.
        """
        chosen = SolveOptions.of(**{**_as_mapping(options), **option_keywords})
        program = self.program
        oracle = None
        if program.grows:
            oracle = build_oracle(program.instance, program.formulation, rows="servers")
        added = 0
        for _ in range(MOST_ROUNDS):
            result = solve_declared(program, chosen)
            if result.status is not Status.OPTIMAL:
                raise SolveFailed(f"{program.title}: {result.status}")
            best = None if oracle is None else _best_payoffs(oracle)
            violations = program.violations(best)
            new = 0 if oracle is None or not violations else _add_broken_rows(program, oracle)
            added += new
            if not new:
                return DualResult(result, program.prices(), program.payoffs(), violations, added)
        raise SolveFailed(f"{program.title}: row generation has not ended")


def model(
    instance: Instance,
    *,
    form: str | None = None,
    formulation: str | None = None,
    relax: bool = False,
    **build: Any,
) -> Model:
    """Build an instance's offline program, to be read, changed and solved.

    Parameters
    ----------
    instance : Instance
        The instance.
    form : str, optional
        How it is written; ``printed`` is the program as the paper prints it, in every family.
    formulation : str, optional
        Which of the family's problems; the default one if None, or the printed one where
        ``form="printed"`` exists for that alone.
    relax : bool
        The linear relaxation.
    **build
        Further keywords of the family's ``build_offline``: ``commitments``, ``incumbent``, ...

    Returns
    -------
    Model
        Print it; ``pyomo``, ``write``, ``solve``, ``relax``, ``dual``, ``subproblem``.

    Raises
    ------
    InputError
        For an unknown form or formulation.

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", jobs=2, horizon=6)
    >>> lp = hs.model(instance, relax=True).solve()
    >>> hs.model(instance).solve().objective <= lp.objective + 1e-6
    True
    """
    return Model(offline_program(instance, formulation, form=form, relax=relax, **build))


def solve_declared(
    program: Declared,
    options: SolveOptions,
    *,
    start: bool = False,
    want_duals: bool = True,
    on_progress: Progress | None = None,
) -> ModelResult:
    """Solve a declarative model and keep the point apart from its Pyomo model.

    Parameters
    ----------
    program : Declared
        The model.
    options, start, want_duals, on_progress
        As for `solve_program`.
    """
    found = solve_program(
        program.model, options, start=start, want_duals=want_duals, on_progress=on_progress
    )
    return _with_point(program, found)


def _with_point(program: Declared, found: ProgramResult) -> ModelResult:
    """Keep the point apart from the Pyomo model, which the next solve changes."""
    point: dict[int, float] = {}
    if found.has_point:
        for variable in program.model.component_data_objects(pyo.Var):
            if variable.value is not None:
                point[id(variable)] = float(variable.value)
    return ModelResult(program, found, point, details=found.details)


def _flat_prices(oracle: BlockOracle, prices: Mapping[str, Array]) -> Array:
    """Prices on the oracle's rows, whose last slot may be another than the program's."""
    fitted = {}
    for row_set in oracle.rows.sets:
        found = prices.get(row_set.name)
        if found is not None:
            common = tuple(
                slice(min(pair)) for pair in zip(found.shape, row_set.shape, strict=True)
            )
            fitted[row_set.name] = np.zeros(row_set.shape)
            fitted[row_set.name][common] = found[common]
    return oracle.rows.pack(fitted)


def _best_payoffs(oracle: BlockOracle) -> Callable[[Prices], list[float | None]]:
    def best(prices: Prices) -> list[float | None]:
        flat = oracle.rows.pack(prices)
        responses = [oracle.best_response(block, flat) for block in range(oracle.num_blocks)]
        return [None if response is None else response.value for response in responses]

    return best


def _add_broken_rows(program: DualProgram, oracle: BlockOracle) -> int:
    """Add the row of each job's best schedule that earns more than the job's payoff."""
    flat = oracle.rows.pack(program.prices())
    added = 0
    for block, payoff in enumerate(program.payoffs().tolist()):
        response = oracle.best_response(block, flat)
        if response is None or response.value <= payoff + 1e-7 * max(1.0, abs(payoff)):
            continue
        use = np.zeros(oracle.rows.size)
        np.add.at(use, response.rows, response.amounts)
        program.add_row(block, response.objective, oracle.rows.unpack(use))
        added += 1
    return added


def _as_mapping(options: SolveOptions | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if options is None:
        return {}
    return options.to_dict() if isinstance(options, SolveOptions) else options
