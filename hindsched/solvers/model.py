"""``hindsched.model``: a family's declarative programs as objects that a user holds and solves.

A Pyomo model that was changed is solved as it is, and the result says what differs from the
paper's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, JobRecord
from hindsched.json_types import JsonObject, Keywords
from hindsched.models import base
from hindsched.models.declared import PyomoProgram
from hindsched.models.futures import ExtensiveProgram, Futures, build_extensive
from hindsched.models.schedule_dual import ScheduleDual
from hindsched.solutions.base import Solution
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.door import standard_form
from hindsched.solvers.door.conflict import find_conflict
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solution_at, solve_program
from hindsched.solvers.door.result import ProgramResult, Status

if TYPE_CHECKING:
    import cvxpy as cp
    import pandas as pd

    from hindsched.solvers.certificates.certificate import Certificate

MOST_SECONDS = 30.0  # to find which rows of an infeasible model conflict
MOST_SHOWN = 10  # rows of a conflict that are printed
MOST_ROUNDS = 1_000  # rounds of row generation after which a dual is given up
Options = SolveOptions | Keywords | None


class Numbers(dict[str, "pd.Series[float]"]):
    """One labelled pandas Series a component: ``numbers["y"]``.

    Examples
    --------
    >>> import hindsched as hs
    >>> lp = hs.model(hs.generate("oasis", jobs=2, horizon=6), relax=True).solve()
    >>> lp.duals["eq_4"].index.names
    FrozenList(['worker server', 'resource', 'slot'])
    """

    def __missing__(self, name: str) -> pd.Series[float]:
        raise InputError("component", name, f"must be one of {', '.join(self)}")

    def to_frame(self) -> pd.DataFrame:
        """All numbers in one table: component, its index in words, value; one row a number."""
        import pandas as pd

        rows = [
            (name, ", ".join(map(str, key)) if isinstance(key, tuple) else "", value)
            for name, series in self.items()
            for key, value in series.items()
        ]
        return pd.DataFrame(rows, columns=["component", "index", "value"])

    def __repr__(self) -> str:
        return f"<numbers of {', '.join(self)}: to_frame() shows all, [name] a component's>"


@dataclass(frozen=True, repr=False)
class ModelResult:
    """What is known of a model after a solve.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.generate("oasis", jobs=2, horizon=6))
    >>> model.pyomo.job[0].deactivate()
    >>> model.solve().changed is None
    False
    """

    declared: Any  # what was solved
    program: ProgramResult  # what the solver's door says of it
    point: Mapping[int, Any]  # values of the variables, by their identity
    # the point as a solution of the instance, checked by its definition; None for a relaxation, for
    # a point that could not be placed on servers, and for one that breaks a constraint
    solution: Solution | None = None
    # how the Pyomo model differs from the one that was built; None if it does not. Objective and
    # bound of a changed model say nothing of the instance
    changed: str | None = None
    # facts of the solve; ``unplaced`` and ``refused`` say why there is no solution, ``conflict``
    # which rows cannot hold together, if nothing is feasible: without any one of them the others
    # can if they are ``irreducible``
    details: Mapping[str, object] | None = None

    status = property(attrgetter("program.status"), doc="What is known of the model's optimum.")
    stopped_by = property(attrgetter("program.stopped_by"), doc="Why the solver stopped.")
    has_point = property(attrgetter("program.has_point"), doc="Whether there is a checked point.")
    objective = property(attrgetter("program.objective"), doc="The model's objective there.")
    bound = property(attrgetter("program.bound"), doc="Bound on the model's optimum.")

    @cached_property
    def values(self) -> Numbers:
        """Values of the variables by name."""
        if not self.has_point:
            raise SolveFailed(f"{self.declared.title}: {self.status}, there is no point")
        return self._numbers("variable", lambda variable: self.point.get(id(variable)))

    @cached_property
    def duals(self) -> Numbers:
        """Shadow prices of the constraints by name: d objective / d right side."""
        return self._numbers("constraint", self._of_a_relaxation(self.program.duals).get)

    @cached_property
    def reduced_costs(self) -> Numbers:
        """Reduced costs of the variables by name."""
        costs = self._of_a_relaxation(self.program.reduced_costs)
        worth = self.declared.OBJECTIVE_UNIT

        def unit(name: str) -> str:
            return " for each of ".join(filter(None, (worth, self.declared.symbol(name).unit)))

        return self._numbers("variable", costs.get, unit)

    def _numbers(
        self, kind: str, value_of: Callable[[Any], Any],
        unit: Callable[[str], str | None] = lambda name: None,
    ) -> Numbers:  # fmt: skip
        names = [part.name for part in self.declared.components(kind)]
        return Numbers((name, self.declared.table(name, value_of, unit(name))) for name in names)

    def _of_a_relaxation(self, numbers: Mapping[Any, Any] | None) -> Mapping[Any, Any]:
        if numbers is not None:
            return numbers
        linear = not any(part.integers for part in self.declared.components("variable"))
        rule = "only a linear program solved to its optimum has duals: relax() gives one"
        if self.status is Status.OPTIMAL and linear:
            rule = f"{self.program.backend} gives no duals"
        raise SolveFailed(f"{self.declared.title}: {self.status}; {rule}")

    def capacity_prices(self) -> dict[str, Floats]:
        """Duals of the linking rows as prices of the family's oracle with one row a server."""
        if not isinstance(self.declared, base.OfflineProgram):
            raise InputError("model", self.declared.title, "must be an offline program")
        return self.declared.capacity_prices(self._of_a_relaxation(self.program.duals))

    def certificate(self) -> Certificate | None:
        """The bound that the duals prove by best responses, without believing the solver.

        None for a problem whose pricing oracle is not exact. A changed model's duals are refused.
        """
        if self.changed is not None:
            rule = f"must be as it was built for a bound on its instance: {self.changed}"
            raise InputError("model", self.declared.title, rule)
        from hindsched.solvers.certificates.certificate import certify

        instance, formulation = self.declared.instance, self.declared.formulation
        rows = "servers" if "servers" in row_layouts(instance.family) else None
        oracle = build_oracle(instance, formulation, rows=rows)
        if not oracle.exact:
            return None
        available, fitted = self.capacity_prices(), dict[str, Floats]()
        for row_set in oracle.rows.sets:  # whose last slot may be another than the program's
            if row_set.name in available:
                prices, fitted[row_set.name] = available[row_set.name], np.zeros(row_set.shape)
                common = tuple(map(slice, np.minimum(prices.shape, row_set.shape).tolist()))
                fitted[row_set.name][common] = prices[common]
        return certify(oracle, oracle.rows.pack(fitted), "lp-dual")

    def __str__(self) -> str:
        objective, limit = (
            "none" if number is None else f"{number:.6g}" for number in (self.objective, self.bound)
        )
        changed = "" if self.changed is None else f"; the model was changed: {self.changed}"
        details = self.details or {}
        conflict: Any = details.get("conflict", ())
        changed += "".join(f"\n  in conflict: {row}" for row in conflict[:MOST_SHOWN])
        if len(conflict) > MOST_SHOWN:
            changed += f"\n  and {len(conflict) - MOST_SHOWN} more"
        if conflict and not details.get("irreducible", True):
            changed += "\n  perhaps fewer of these rows conflict already: time was too short to say"
        return (
            f"{self.declared.title}: {self.status}, objective {objective}, bound {limit}, "
            f"{self.program.seconds:.2f} s{changed}"
        )

    def __repr__(self) -> str:
        return f"<{self}>"


def solve_declared(program: PyomoProgram, options: SolveOptions, **how: Any) -> ModelResult:
    """Solve a declarative model as `solve_program` does, and keep the point apart from it."""
    result = solve_program(program.model, options, **{"want_duals": True, **how})
    variables = program.model.component_data_objects(pyo.Var) if result.has_point else ()
    point = {id(each): float(each.value) for each in variables if each.value is not None}
    return ModelResult(program, result, point, details=result.details)


class _ProgramModel:
    """What all models share: they have a declarative program and print what it says."""

    def __init__(self, program: Any) -> None:
        self.program = program

    @property
    def instance(self) -> Instance:
        """What the model is about."""
        instance: Instance = self.program.instance
        return instance

    def to_dict(self) -> JsonObject:
        """Equations and sizes as JSON data."""
        facts: JsonObject = self.program.to_dict()
        return facts

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return repr(self.program)


class _PyomoModel(_ProgramModel):
    """A model whose program is a Pyomo model: it is given away, and written to a file."""

    program: PyomoProgram

    @property
    def pyomo(self) -> pyo.ConcreteModel:
        """The Pyomo model: read it, change it, give it to any solver."""
        return self.program.pyomo

    def to_latex(self, sample: bool = False) -> str:
        """The rules as mathematics, each with its sentence and number, and a table of the symbols.

        Of a rule that is not stated in general, and of all for a `sample`, one row is shown.
        """
        return self.program.to_latex(sample)

    def write(self, path: str | Path) -> None:
        """Write an MPS or LP file with readable names; the path's ending says which."""
        self.program.write(path)


class Model(_PyomoModel):
    """The offline program of an instance, or of several futures, as `model` returns it.

    Of futures ``program.schedules()`` are the best policy's after a solve.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.generate("oasis", jobs=2, horizon=6), form="printed")
    >>> model.solve(time_limit=60).status
    <Status.OPTIMAL: 'optimal'>
    >>> several = hs.model(hs.tree("gang", at=[2], branches=2))
    >>> best = several.solve(time_limit=60)
    >>> len(several.program.schedules())
    2
    """

    program: base.OfflineProgram

    def __init__(self, program: base.OfflineProgram) -> None:
        super().__init__(program)
        self._handed_out = False  # and may have been changed
        self._as_built: _Compiled | None = None

    @property
    def pyomo(self) -> pyo.ConcreteModel:
        """The Pyomo model: read it, change it, give it to any solver."""
        if not self._handed_out:
            self._handed_out, self._as_built = True, _Compiled.of(self.program)
        return self.program.pyomo

    def _changed(self) -> str | None:
        """What differs from the program that was built; None if nothing does."""
        return (
            _differences(self._as_built, _Compiled.of(self.program)) if self._handed_out else None
        )

    def solve(
        self, options: Options = None, *, start: Solution | None = None, **keywords: object
    ) -> ModelResult:
        """Solve the Pyomo model as it is now.

        Parameters
        ----------
        options : SolveOptions or mapping, optional
            How to solve.
        start : Solution, optional
            A solution to begin from; of futures one each.
        **keywords
            Options by name: ``time_limit=60``.
        """
        program, chosen = self.program, SolveOptions.of(options, **keywords)
        if start is not None:
            program.load(start)
        relaxed = program.relaxed
        result = solve_declared(program, chosen, start=start is not None, want_duals=relaxed)
        solution, details = None, dict(result.program.details)
        if not relaxed and not isinstance(program, ExtensiveProgram):
            solution, details = solution_at(program, result.program)
        if result.status is Status.INFEASIBLE and "constraint" in details:
            details["conflict"] = [details["constraint"]]
        elif result.status is Status.INFEASIBLE:
            conflict = find_conflict(program.model, min(MOST_SECONDS, chosen.time_limit or np.inf))
            details["conflict"] = [program.row_name(row) for row in conflict.rows]
            details["irreducible"] = conflict.irreducible
        return replace(result, solution=solution, changed=self._changed(), details=details)

    def relax(self) -> Model:
        """The linear relaxation: the family's own, or of the model as it was changed."""
        program = self.program
        if self._changed() is None:
            return Model(program.relax())
        relaxed = copy(program)
        relax_domains = pyo.TransformationFactory("core.relax_integer_vars")
        relaxed.model = relax_domains.create_using(program.model)
        relaxed.relaxed, relaxed.settings = True, {**program.settings, "relax": True}
        model, built = Model(relaxed), self._as_built
        if built is not None:
            continuous = np.zeros_like(built.program.integer)
            built = built._replace(program=replace(built.program, integer=continuous))
        model._handed_out, model._as_built = True, built
        return model

    def dual(self, **build: object) -> DualModel:
        """The paper's dual as a program of its own; keywords are those of its ``build_dual``."""
        program, changed = self._of_one, self._changed()
        if changed is not None:
            rule = f"must be as it was built for the paper's dual to be its dual: {changed}"
            raise InputError("model", program.title, rule)
        return DualModel(base.dual_program(self.instance, program.formulation, **build))

    @property
    def _of_one(self) -> base.OfflineProgram:
        """The program; `InputError` if it is of several futures."""
        if isinstance(self.program, ExtensiveProgram):
            raise InputError("model", self.program.title, "must be of one instance")
        return self.program

    def slot(self, slot: int, **build: object) -> ConvexModel:
        """The paper's convex program of one slot; keywords are those of its ``build_slot``."""
        return ConvexModel(base.convex_program(self._of_one.instance, slot, **build))

    def subproblem(self, job: JobRecord) -> SubproblemModel:
        """One job's block of the same formulation with prices, all 0 until they are set.

        The job is given by its record, its name or its position.
        """
        return SubproblemModel(base.subproblem(self.instance, job, self._of_one.formulation))


class _Compiled(NamedTuple):
    """A Pyomo model as a solver gets it, and how many rows and columns each component has."""

    program: standard_form.LinearProgram
    sizes: Mapping[str, Counter[str]]

    @classmethod
    def of(cls, program: base.OfflineProgram) -> _Compiled | None:
        """Compile a program; None if its constants alone cannot hold."""
        try:
            compiled = standard_form.compile_program(program.model)
        except standard_form.TriviallyInfeasibleError:
            return None
        parts = {"rows": compiled.rows, "columns": compiled.columns}
        return cls(compiled, {
            kind: Counter(item.parent_component().local_name for item in items)
            for kind, items in parts.items()
        })  # fmt: skip


def _differences(built: _Compiled | None, now: _Compiled | None) -> str | None:
    """What differs between a model as it was built and as it is; None if nothing does."""
    if now is None or built is None:
        return None if now is built else "whether its constants can hold at all"
    differences = [
        f"{name} has {now.sizes[kind][name]} {kind} instead of {sizes[name]}"
        for kind, sizes in built.sizes.items()
        for name in sorted(now.sizes[kind] | sizes) if now.sizes[kind][name] != sizes[name]
    ]  # fmt: skip
    if differences:
        return ", ".join(differences)
    for what, names in (
        ("the objective", ("sign", "offset", "cost")),
        ("right sides", ("row_lower", "row_upper")),
        ("bounds", ("lower", "upper")),
        ("domains", ("integer",)),
    ):
        pairs = ((getattr(each.program, name) for each in (built, now)) for name in names)
        if not all(np.array_equal(*pair) for pair in pairs):
            differences.append(what)
    if (now.program.matrix - built.program.matrix).count_nonzero():
        differences.append("coefficients")
    return ", ".join(differences) or None


class SubproblemModel(_PyomoModel):
    """One job's best schedule at given prices, which are changed and solved for again.

    Examples
    --------
    >>> import hindsched as hs
    >>> sub = hs.model(hs.generate("oasis", jobs=2, horizon=6)).subproblem(0)
    >>> sub.solve().objective is not None
    True
    """

    program: base.Subproblem

    def set(self, prices: base.Prices, capacity: base.Prices | None = None) -> None:
        """Set prices and what is left of the capacities, by row set of the family's oracle."""
        try:
            self.program.set(prices, capacity)
        except (KeyError, IndexError) as error:
            rule = f"must have the row sets of the family's oracle in their shapes ({error})"
            arrays = {**(capacity or {}), **prices}
            given = {name: np.shape(array) for name, array in arrays.items()}
            raise InputError("prices", given, rule) from None

    def solve(self, options: Options = None, **keywords: object) -> ModelResult:
        """Solve at the present prices; `ModelResult.solution` has the job's schedule alone."""
        given = options if isinstance(options, SolveOptions) else {"gap": 1e-9, **(options or {})}
        chosen = SolveOptions.of(given, **keywords)
        result = solve_declared(self.program, chosen, want_duals=False)
        return replace(result, solution=self.program.extract() if result.has_point else None)


@dataclass(frozen=True, repr=False)
class DualResult(ModelResult):
    """An optimal point of a paper's dual; its objective bounds the primal one if it is feasible.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.model(hs.generate("oasis", jobs=2, horizon=6)).dual().solve().violations
    []
    """

    prices: Mapping[str, Floats] = field(default_factory=dict)  # by the oracle's row sets
    payoffs: Floats = field(default_factory=lambda: np.zeros(0))  # of each job
    # constraints of the dual that the point breaks, over all schedules; empty if it is feasible
    violations: list[base.BrokenRow] = field(default_factory=list)
    rows: int = 0  # of schedules that were added on the way


class DualModel(_PyomoModel):
    """The paper's dual, as `Model.dual` returns it."""

    program: base.DualProgram

    def solve(self, options: Options = None, **keywords: object) -> DualResult:
        """Solve it; a dual with a row a schedule gets the rows that best responses break."""
        chosen, added = SolveOptions.of(options, **keywords), 0
        program: Any = self.program
        grows = isinstance(program, ScheduleDual) and program.grows
        oracle = build_oracle(self.instance, program.formulation, rows="servers" if grows else None)
        for _ in range(MOST_ROUNDS):
            result = solve_declared(program, chosen)
            if result.status is not Status.OPTIMAL:
                raise SolveFailed(f"{program.title}: {result.status}")
            prices, payoffs, best, before = program.prices(), program.payoffs(), [], added
            if grows:
                flat = oracle.rows.pack(prices)
                best = [oracle.best_response(block, flat) for block in range(oracle.num_blocks)]
            broken = program.violations([None if each is None else each.value for each in best])
            for block, response in enumerate(best if broken else []):
                least = payoffs[block] + 1e-7 * max(1.0, abs(payoffs[block]))
                if response is not None and response.value > least:
                    use = np.zeros(oracle.rows.size)
                    np.add.at(use, response.rows, response.amounts)
                    program.add_row(block, response.objective, oracle.rows.unpack(use))
                    added += 1
            if added == before:
                return DualResult(
                    program, result.program, result.point, details=result.details,
                    prices=prices, payoffs=payoffs, violations=broken, rows=added,
                )  # fmt: skip
        raise SolveFailed(f"{program.title}: row generation has not ended")


class ConvexModel(_ProgramModel):
    """A convex program in CVXPY, as `Model.slot` returns it.

    Examples
    --------
    >>> import hindsched as hs
    >>> slot = hs.model(hs.generate("mlbroker", preset="small")).slot(2)
    >>> slot.set(epsilon=1.0)
    >>> slot.solve().values["server"].groupby("job").sum().round(6).unique().tolist()
    [1.0]
    """

    program: Any

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem: read it, or make one of your own from its parts."""
        return self.program.cvxpy

    def set(self, *given: object, **values: object) -> None:
        """Set the Parameters, as the family's program names them."""
        self.program.set(*given, **values)

    def solve(self, options: Options = None, **keywords: object) -> ModelResult:
        """Solve at the Parameters' present values, through the stated chain of solvers."""
        from hindsched.solvers.door.convex import solve_convex

        chosen, problem = SolveOptions.of(options, **keywords), self.program.cvxpy
        # with many Parameters CVXPY takes far longer to compile once than for these values alone
        result = solve_convex(problem, options=chosen, ignore_dpp=True)
        variables = problem.variables() if result.has_point else []
        point = {id(each): np.array(each.value, dtype=float) for each in variables}
        return ModelResult(self.program, result, point, details=result.details)


def model(
    instance: Instance | Sequence[Instance], probabilities: Sequence[float] | None = None, *,
    form: str | None = None, formulation: str | None = None, relax: bool = False, **build: Any,
) -> Model:  # fmt: skip
    """Build an instance's offline program, to be read, changed and solved.

    Parameters
    ----------
    instance : Instance, or sequence of Instance
        The instance; or several futures of one cluster, whose programs are linked so that who
        cannot tell them apart decides alike.
    probabilities : sequence of float, optional
        Of the futures; equal by default.
    form : str, optional
        How it is written, which never changes the optimum; ``printed`` is as the paper prints it.
    formulation : str, optional
        Which of the family's problems; the default one if None, or the first that has the form.
    relax : bool
        The linear relaxation.
    **build
        Further keywords of the family's ``build_offline``: ``commitments``, ``incumbent``, ...; of
        futures ``policies``: ``run`` (default) or ``commit``.

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
    if not isinstance(instance, Instance):
        futures = Futures.of(instance, probabilities)
        build = {"formulation": formulation, "form": form, "relax": relax, **build}
        return Model(build_extensive(futures, **build))
    return Model(base.offline_program(instance, formulation, form=form, relax=relax, **build))
