"""The per-slot program (10) through CVXPY: the reference for the direct path.

A program is compiled once for each number of jobs and re-solved with new Parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.slot import Floats, SlotData
from hindsched.models.mlbroker.convex import Price, SlotBlock, SlotProgram, Switching
from hindsched.solvers.backends.convex import solve_convex
from hindsched.solvers.methods.mlbroker.convex import Fractional, regulariser


class ReferencePrograms:
    """Compiled programs by their shape."""

    def __init__(self) -> None:
        self._programs: dict[tuple[Any, ...], SlotProgram] = {}

    def solve(
        self,
        slot: SlotData,
        before: Floats,
        *,
        price: Price = "paper",
        switching: Switching = "entropy",
        epsilon: float = 0.01,
        big: Floats | None = None,
    ) -> Fractional:
        """Solve (10) for one slot; arguments and result as `solve_fractional`.

        Raises
        ------
        SolveFailed
            If no step of the chain of `solve_convex` solves it.
        """
        jobs, centers = slot.data.shape
        kinds = slot.unit.shape[1]
        if jobs == 0:
            empty = np.zeros((0, centers))
            return Fractional(empty, empty, empty, 0.0, 0.0, 0.0, "empty")
        key = (jobs, centers, kinds, price, switching, epsilon)
        if key not in self._programs:
            block = SlotBlock(jobs, centers, kinds, price)
            self._programs[key] = SlotProgram(block, switching, epsilon)
        program = self._programs[key]
        values = {"big": big} if price == "paper" else {}
        program.set(slot, before, **values)
        answer = solve_convex(program.problem)
        if not answer.has_point:
            raise SolveFailed(f"slot of {jobs} jobs: no step of the chain solved program (10)")
        backend = f"cvxpy {answer.backend}"
        block = program.block
        needed = np.maximum(slot.needed, 1)[:, None]
        present = np.maximum(block.present.value, 0.0)
        static = float(block.static_cost().value)
        launched = float((slot.deployment[:, None] * np.maximum(present - before, 0.0)).sum())
        regular = regulariser(slot.deployment, present, before, epsilon)
        return Fractional(
            workers=np.maximum(block.workers.value, 0.0) * needed,
            server=np.maximum(block.server.value, 0.0),
            present=present,
            static=static,
            switching=launched,
            objective=static + (launched if switching == "relu" else regular),
            backend=backend,
        )
