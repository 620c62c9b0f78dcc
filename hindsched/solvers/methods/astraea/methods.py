"""Methods of ``solve`` for astraea: the generic ones and the bound for rivals that preempt."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.instances.modes import PREEMPTIVE
from hindsched.solvers.answer import Progress
from hindsched.solvers.methods.auto import solve_auto
from hindsched.solvers.methods.base import Method, preemptive, serve_nobody, solve_milp
from hindsched.solvers.methods.generic import generic_methods
from hindsched.solvers.methods.in_pieces import if_in_pieces_small
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.result import Result


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Choose by the instance's size, and close the gap from both sides."""
    return solve_auto(
        instance,
        formulation,
        options,
        on_progress,
        incumbent=serve_nobody(instance, formulation),
        program=if_in_pieces_small(solve_milp),
    )


METHODS: dict[str, Method] = {**generic_methods(), "auto": auto, "preemptive": preemptive}
RIVALS_BOUND = ("bound", f"optional,{PREEMPTIVE}")
"""Method and formulation of the bound for rivals that may do what the offline problem forbids."""
