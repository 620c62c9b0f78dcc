"""When ``auto`` solves the offline program of batchsched and astraea: not where it is large."""

from __future__ import annotations

from typing import Any

from hindsched.errors import SolveFailed
from hindsched.instances.modes import modes
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.result import Result
from hindsched.solvers.methods.base import solve_milp

MOST_COLUMNS = 50_000
"""Columns, about, up to which ``auto`` solves the program beside the prices."""


def solve_if_small(instance: Any, formulation: str, *given: Any, **build: Any) -> Result:
    """`solve_milp` for a program that is not large; ``auto`` goes on without another.

    Each of a job's modes has a column for every start and server.
    """
    slots = build_oracle(instance, formulation).rows.sets[0].shape[-1]
    ways = sum(len(modes(instance, job)) for job in instance.jobs)
    columns = slots * ways * len(instance.servers)
    if columns > MOST_COLUMNS:
        raise SolveFailed(f"the program has about {columns} columns, above {MOST_COLUMNS}")
    return solve_milp(instance, formulation, *given, **build)
