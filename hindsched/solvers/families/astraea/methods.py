"""Methods of ``solve`` for astraea: the generic ones and the bound for baselines that preempt."""

from __future__ import annotations

from hindsched.instances.modes import PREEMPTIVE
from hindsched.solvers.methods.base import Method, preemptive, solve_milp
from hindsched.solvers.methods.generic import generic_methods
from hindsched.solvers.methods.in_pieces import if_in_pieces_small

METHODS: dict[str, Method] = {
    **generic_methods(program=if_in_pieces_small(solve_milp)), "preemptive": preemptive,
}  # fmt: skip
RIVALS_BOUND = ("bound", f"optional,{PREEMPTIVE}")
"""Method and formulation of the bound for baselines that may do what the problem forbids."""
