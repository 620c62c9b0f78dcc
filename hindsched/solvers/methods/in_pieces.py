"""The offline program of jobs in pieces has a column for every slot and placement: not if large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hindsched.errors import SolveFailed
from hindsched.instances.modes import in_pieces
from hindsched.solvers.door.result import Result
from hindsched.solvers.oracles.base import build_oracle

MOST_COLUMNS = 50_000
"""Jobs x slots x most workers x servers up to which ``auto`` solves it beside the prices."""


def if_in_pieces_small(program: Callable[..., Result]) -> Callable[..., Result]:
    """Refuse to build a large program of jobs in pieces; ``auto`` then goes on without it."""

    def solve(instance: Any, formulation: str, *given: Any, **build: Any) -> Result:
        if in_pieces(formulation):
            slots = build_oracle(instance, formulation).rows.sets[0].shape[-1]
            most = sum(min(job.chunks, instance.most_workers) for job in instance.jobs)
            columns = slots * most * len(instance.servers)
            if columns > MOST_COLUMNS:
                raise SolveFailed(f"the program has about {columns} columns, above {MOST_COLUMNS}")
        return program(instance, formulation, *given, **build)

    return solve
