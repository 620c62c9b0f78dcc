"""The declarative offline program, given to a solver as it is."""

from __future__ import annotations

import hindsched as hs
from benchmark_utils.judge import Answer
from hindsched.instances.base import Instance


def solve_program(instance: Instance, solver: str, seconds: float) -> Answer:
    """Build the family's offline program and let one solver work on it, without a start."""
    result = hs.model(instance).solve(solver=solver, time_limit=seconds)
    return Answer(result.solution, claimed_bound=result.bound)
