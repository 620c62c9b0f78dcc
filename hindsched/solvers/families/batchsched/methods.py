"""Methods of ``solve`` for batchsched: the generic ones, begun from a list schedule."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.base import Method
from hindsched.solvers.families.batchsched.list_schedule import as_solution, smith_schedule
from hindsched.solvers.families.windows.methods import solve_if_small
from hindsched.solvers.methods.auto import generic_methods


def find_incumbent(instance: Instance, formulation: str) -> Solution:
    """List schedule by weight over shortest duration: what all methods begin from."""
    assert isinstance(instance, BatchschedInstance)
    return as_solution(instance, smith_schedule(instance), formulation)


METHODS: dict[str, Method] = generic_methods(find_incumbent, solve_if_small)
