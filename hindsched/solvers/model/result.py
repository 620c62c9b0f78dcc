"""What is known of a model after a solve, with its numbers labelled when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.json_types import JsonObject
from hindsched.models.base import OfflineProgram
from hindsched.models.declared import Declared, Face
from hindsched.solutions.base import Solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import ProgramResult, ShadowPrices, solve_program
from hindsched.solvers.door.status import Progress, Status, StoppedBy
from hindsched.solvers.oracles.base import BlockOracle, build_oracle, row_layouts

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.solvers.certificates.certificate import Certificate


class Numbers(Mapping[str, "pd.Series[float]"]):
    """One labelled pandas Series a component: ``numbers["y"]``.

    Parameters
    ----------
    names : list of str
        The components.
    table : callable
        Makes a component's Series.

    Examples
    --------
    >>> import hindsched as hs
    >>> lp = hs.model(hs.generate("oasis", jobs=2, horizon=6), relax=True).solve()
    >>> lp.duals["eq_4"].index.names
    FrozenList(['worker server', 'resource', 'slot'])
    """

    def __init__(self, names: list[str], table: Callable[[str], pd.Series[float]]) -> None:
        self._names, self._table = names, table

    def __getitem__(self, name: str) -> pd.Series[float]:
        if name not in self._names:
            raise InputError("component", name, f"must be one of {', '.join(self._names)}")
        return self._table(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """The component's Series, or `default` if the model has none of that name."""
        return self._table(name) if name in self else default

    def to_frame(self) -> pd.DataFrame:
        """All numbers in one table: component, its index in words, value; one row a number."""
        import pandas as pd

        parts = [
            pd.DataFrame({
                "component": name,
                "index": [", ".join(map(str, key)) if isinstance(key, tuple) else ""
                          for key in series.index],
                "value": series.to_numpy(),
            })
            for name, series in self.items()
        ]  # fmt: skip
        columns = ["component", "index", "value"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LabelledResult(ABC):
    """What is known of a model after a solve: status, objective, labelled values and duals."""

    declared: Face
    """What was solved."""

    @property
    @abstractmethod
    def status(self) -> Status:
        """What is known of the model's optimum."""

    @property
    @abstractmethod
    def objective(self) -> float | None:
        """The model's objective at its point."""

    @property
    @abstractmethod
    def has_point(self) -> bool:
        """Whether there is a checked point."""

    @property
    def values(self) -> Numbers:
        """Values of the variables by name."""
        if not self.has_point:
            raise SolveFailed(f"{self.declared.title}: {self.status}, there is no point")
        return self._numbers("variable", self._value_table)

    @property
    def duals(self) -> Numbers:
        """Shadow prices of the constraints by name: d objective / d right side."""
        return self._numbers("constraint", self._dual_table())

    @abstractmethod
    def _value_table(self, name: str) -> pd.Series[float]:
        """Values of one variable."""

    @abstractmethod
    def _dual_table(self) -> Callable[[str], pd.Series[float]]:
        """What makes the shadow prices of one constraint; raises if there are none."""

    def _numbers(self, kind: str, table: Callable[[str], pd.Series[float]]) -> Numbers:
        return Numbers([part.name for part in self.declared.components(kind)], table)

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, repr=False)
class ModelResult(LabelledResult):
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
    details: Mapping[str, object] | None = None

    @property
    def status(self) -> Status:
        """What is known of the model's optimum."""
        return self.program.status

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the solver stopped."""
        return self.program.stopped_by

    @property
    def has_point(self) -> bool:
        """Whether there is a checked point."""
        return self.program.has_point

    @property
    def objective(self) -> float | None:
        """The model's objective at its point."""
        return self.program.objective

    @property
    def bound(self) -> float | None:
        """Bound on the model's optimum."""
        return self.program.bound

    @property
    def is_linear(self) -> bool:
        """Whether no variable of the model must be whole."""
        return not any(part.integers for part in self.declared.components("variable"))

    @property
    def reduced_costs(self) -> Numbers:
        """Reduced costs of the variables by name."""
        costs = self._of_a_relaxation(self.program.reduced_costs)

        def table(name: str) -> pd.Series[float]:
            units = (self.declared.OBJECTIVE_UNIT, self.declared.symbol(name).unit)
            return self.declared.table(name, costs.get, " for each of ".join(filter(None, units)))

        return self._numbers("variable", table)

    def _value_table(self, name: str) -> pd.Series[float]:
        return self.declared.table(name, lambda variable: self.point.get(id(variable)))

    def _dual_table(self) -> Callable[[str], pd.Series[float]]:
        prices = self._of_a_relaxation(self.program.duals)
        return lambda name: self.declared.table(name, prices.get)

    def _of_a_relaxation(self, numbers: ShadowPrices | None) -> ShadowPrices:
        if numbers is None:
            if self.status is Status.OPTIMAL and self.is_linear:
                raise SolveFailed(f"{self.declared.title}: {self.program.backend} gives no duals")
            raise SolveFailed(
                f"{self.declared.title}: {self.status}; only a linear program solved to its "
                "optimum has duals: relax() gives one"
            )
        return numbers

    def capacity_prices(self) -> dict[str, Floats]:
        """Duals of the linking rows as prices of the family's oracle with one row a server."""
        if not isinstance(self.declared, OfflineProgram):
            raise InputError("model", self.declared.title, "must be an offline program")
        return self.declared.capacity_prices(self._of_a_relaxation(self.program.duals))

    def certificate(self) -> Certificate | None:
        """The bound that the duals prove by best responses, without believing the solver.

        None for a problem whose pricing oracle is not exact.
        """
        from hindsched.solvers.certificates.certificate import certify

        instance = self.declared.instance
        rows = "servers" if "servers" in row_layouts(instance.family) else None
        oracle = build_oracle(instance, self.declared.formulation, rows=rows)
        if not oracle.exact and rows is not None:  # windows on servers do not bound jobs in pieces
            oracle = build_oracle(instance, self.declared.formulation)
        if not oracle.exact:
            return None
        return certify(oracle, _flat_prices(oracle, self.capacity_prices()), "lp-dual")

    def to_dict(self) -> JsonObject:
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
    return with_point(program, found)


def with_point(program: Declared, found: ProgramResult) -> ModelResult:
    """Keep the point apart from the Pyomo model, which the next solve changes."""
    point: dict[int, float] = {}
    if found.has_point:
        for variable in program.model.component_data_objects(pyo.Var):
            if variable.value is not None:
                point[id(variable)] = float(variable.value)
    return ModelResult(program, found, point, details=found.details)


def _flat_prices(oracle: BlockOracle, prices: Mapping[str, Floats]) -> Floats:
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
