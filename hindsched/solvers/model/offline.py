"""``hindsched.model``: a family's declarative programs as objects that a user holds and solves.

A `Model` has the offline program, a `SubproblemModel` one job's block with prices, a `DualModel`
the paper's dual. Each prints its equations, writes its file and gives its Pyomo model away; to
solve it goes through the door of `solve_program`. A Pyomo model that was changed is solved as it
is, and the result says what differs from the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord
from hindsched.json_types import Keywords
from hindsched.models.base import (
    OfflineProgram,
    Prices,
    Subproblem,
    convex_program,
    dual_program,
    offline_program,
    subproblem,
)
from hindsched.models.futures import ExtensiveProgram, Futures, build_extensive
from hindsched.solutions.base import Solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.model.dual import DualModel
from hindsched.solvers.model.held import HeldPyomo, what_changed
from hindsched.solvers.model.result import ModelResult, solve_declared, with_point

if TYPE_CHECKING:
    from hindsched.solvers.model.convex import ConvexModel


class Model(HeldPyomo[OfflineProgram]):
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
        options: SolveOptions | Keywords | None = None,
        *,
        start: Solution | None = None,
        **option_keywords: object,
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
        chosen = SolveOptions.of(options, **option_keywords)
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
        """The linear relaxation: the family's own, or of the model as it was changed."""
        program = self.program
        if what_changed(program) is None:
            return Model(program.relax())
        relaxed = copy(program)
        relax_domains = pyo.TransformationFactory("core.relax_integer_vars")
        relaxed.model = relax_domains.create_using(program.model)
        relaxed.relaxed, relaxed.again = True, partial(program.again, relax=True)
        return Model(relaxed)

    def dual(self, **build: object) -> DualModel:
        """The paper's dual as a program of its own; keywords are those of its ``build_dual``.

        Raises
        ------
        InputError
            If the model was changed, or the family's paper has no dual.
        """
        changed = what_changed(self.program)
        if changed is not None:
            rule = f"must be as it was built for the paper's dual to be its dual: {changed}"
            raise InputError("model", self.program.title, rule)
        return DualModel(dual_program(self.instance, self.program.formulation, **build))

    def slot(self, slot: int, **build: object) -> ConvexModel:
        """The paper's convex program of one slot; keywords are those of its ``build_slot``."""
        from hindsched.solvers.model.convex import ConvexModel

        return ConvexModel(convex_program(self.instance, slot, **build))

    def subproblem(self, job: JobRecord) -> SubproblemModel:
        """One job's block of the same formulation with prices, all 0 until they are set.

        The job is given by its record, its name or its position.
        """
        return SubproblemModel(subproblem(self.instance, job, self.program.formulation))


class ExtensiveModel(HeldPyomo[ExtensiveProgram]):
    """Several futures of one cluster in one program, as `model` returns it for a list.

    Parameters
    ----------
    program : ExtensiveProgram
        The extensive form.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.tree("gang", at=[2], branches=2))
    >>> best = model.solve(time_limit=60)
    >>> len(model.program.schedules())
    2
    """

    def solve(
        self,
        options: SolveOptions | Keywords | None = None,
        *,
        start: bool = False,
        **option_keywords: object,
    ) -> ModelResult:
        """Solve the Pyomo model as it is now; ``program.schedules()`` are then the best policy's.

        Parameters
        ----------
        options : SolveOptions or mapping, optional
            How to solve.
        start : bool
            Whether the variables' values are a start.
        **option_keywords
            Options by name: ``time_limit=60``.
        """
        chosen = SolveOptions.of(options, **option_keywords)
        return solve_declared(self.program, chosen, start=start, want_duals=self.program.relaxed)

    def relax(self) -> ExtensiveModel:
        """The linear relaxation, built anew."""
        return ExtensiveModel(cast("ExtensiveProgram", self.program.again(relax=True)))


class SubproblemModel(HeldPyomo[Subproblem]):
    """One job's best schedule at given prices, which are changed and solved for again.

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

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left of the capacities, by row set of the family's oracle.

        Raises
        ------
        InputError
            If a row set is missing, or has too few rows or slots.
        """
        try:
            self.program.set(prices, room)
        except (KeyError, IndexError) as error:
            rule = f"must have the row sets of the family's oracle in their shapes ({error})"
            given = {name: np.shape(array) for name, array in {**(room or {}), **prices}.items()}
            raise InputError("prices", given, rule) from None

    def solve(
        self, options: SolveOptions | Keywords | None = None, **option_keywords: object
    ) -> ModelResult:
        """Solve at the present prices; `ModelResult.solution` has the job's schedule alone."""
        given = options if isinstance(options, SolveOptions) else {"gap": 1e-9, **(options or {})}
        chosen = SolveOptions.of(given, **option_keywords)
        result = with_point(self.program, solve_program(self.program.model, chosen))
        solution = self.program.extract() if result.program.has_point else None
        return replace(result, solution=solution)


@overload
def model(
    instance: Instance, *, form: str | None = None, formulation: str | None = None,
    relax: bool = False, **build: object,
) -> Model: ...  # fmt: skip
@overload
def model(
    instance: Sequence[Instance], probabilities: Sequence[float] | None = None, *,
    form: str | None = None, formulation: str | None = None, relax: bool = False, **build: object,
) -> ExtensiveModel: ...  # fmt: skip
def model(  # type: ignore[misc]
    instance: Instance | Sequence[Instance],
    probabilities: Sequence[float] | None = None,
    *,
    form: str | None = None,
    formulation: str | None = None,
    relax: bool = False,
    **build: object,
) -> Any:
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
        Which of the family's problems; the default one if None.
    relax : bool
        The linear relaxation.
    **build
        Further keywords of the family's ``build_offline``: ``commitments``, ``incumbent``, ...; of
        futures ``policies``: ``run`` (default) or ``commit``.

    Returns
    -------
    Model or ExtensiveModel
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
        settings: Any = {"formulation": formulation, "form": form, "relax": relax, **build}
        return ExtensiveModel(build_extensive(futures, **settings))
    return Model(offline_program(instance, formulation, form=form, relax=relax, **build))
