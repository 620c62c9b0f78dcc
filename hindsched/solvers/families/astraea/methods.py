"""Methods of ``solve`` for astraea: the generic ones."""

from __future__ import annotations

from hindsched.instances.modes import PREEMPTIVE
from hindsched.solvers.families.windows.methods import solve_if_small
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import Method

METHODS: dict[str, Method] = generic_methods(program=solve_if_small)
RIVALS_BOUND = ("bound", f"optional,{PREEMPTIVE}")
"""Method and formulation of the bound for baselines that may do what the problem forbids."""
