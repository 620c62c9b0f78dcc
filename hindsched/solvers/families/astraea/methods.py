"""Methods of ``solve`` for astraea: the generic ones."""

from __future__ import annotations

from hindsched.solvers.base import Method
from hindsched.solvers.families.windows.methods import solve_if_small
from hindsched.solvers.methods.auto import generic_methods

METHODS: dict[str, Method] = generic_methods(program=solve_if_small)
