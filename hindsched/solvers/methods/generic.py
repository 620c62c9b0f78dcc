"""The methods of `solve` that every family with a program and a pricing oracle has."""

from __future__ import annotations

from collections.abc import Callable

from hindsched.instances.base import Instance
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Progress
from hindsched.solvers.methods.auto import solve_auto
from hindsched.solvers.methods.base import (
    FindIncumbent,
    Method,
    bound,
    column_generation,
    relaxation,
    serve_nobody,
    solve_milp,
)
from hindsched.solvers.tree.method import solve_tree


def generic_methods(
    find_incumbent: FindIncumbent | None = None, program: Callable[..., Result] = solve_milp
) -> dict[str, Method]:
    """The methods of a family that has a program and a pricing oracle.

    Parameters
    ----------
    find_incumbent : callable, optional
        Cheap feasible solution from which `milp` and `auto` begin; by default the solution that
        serves nobody, where that is feasible.
    program : callable
        How `auto` solves the offline program: called like `solve_milp`.
    """
    find = find_incumbent or serve_nobody

    def milp(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Solve the offline program by a mixed-integer solver."""
        incumbent = find(instance, formulation)
        return solve_milp(instance, formulation, options, on_progress, incumbent=incumbent)

    def auto(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Choose by the instance's size, and close the gap from both sides."""
        incumbent = find(instance, formulation)
        return solve_auto(
            instance, formulation, options, on_progress, incumbent=incumbent, program=program
        )

    def tree(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Prove an optimum by branch and bound on prices; its tree is the certificate."""
        incumbent = find(instance, formulation)
        return solve_tree(instance, formulation, options, on_progress, incumbent=incumbent)

    return {
        "auto": auto,
        "milp": milp,
        "tree": tree,
        "relaxation": relaxation,
        "bound": bound,
        "column-generation": column_generation,
    }
