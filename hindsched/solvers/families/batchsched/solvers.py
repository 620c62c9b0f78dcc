"""What batchsched offers the solvers."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import PREEMPTIVE
from hindsched.solvers.base import Method
from hindsched.solvers.families.batchsched.oracle import (
    BatchschedMerged,
    BatchschedOracle,
    BatchschedPieces,
    BatchschedServers,
)
from hindsched.solvers.families.windows.solvers import WindowSolvers


class BatchschedSolvers(WindowSolvers):
    """What batchsched offers the solvers."""

    rivals_bound = ("bound", PREEMPTIVE)

    def build_oracle(
        self, instance: BatchschedInstance, formulation: str, layout: str
    ) -> BatchschedOracle:
        """Build the oracle of a layout."""
        oracles = {"servers": BatchschedServers, PREEMPTIVE: BatchschedPieces}
        return oracles.get(layout, BatchschedMerged)(instance, formulation)

    def methods(self) -> dict[str, Method]:
        """The generic ones, begun from a list schedule."""
        from hindsched.solvers.families.batchsched.methods import METHODS

        return METHODS


SOLVERS = BatchschedSolvers()
