"""What batchsched offers the solvers."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.solvers.base import Method
from hindsched.solvers.families.batchsched.oracle import (
    BatchschedMerged,
    BatchschedOracle,
    BatchschedServers,
)
from hindsched.solvers.families.windows.solvers import WindowSolvers


class BatchschedSolvers(WindowSolvers):
    """What batchsched offers the solvers."""

    def build_oracle(
        self, instance: BatchschedInstance, formulation: str, layout: str
    ) -> BatchschedOracle:
        """Build the oracle of a layout."""
        oracle = BatchschedServers if layout == "servers" else BatchschedMerged
        return oracle(instance, formulation)

    def methods(self) -> dict[str, Method]:
        """The generic ones, begun from a list schedule."""
        from hindsched.solvers.families.batchsched.methods import METHODS

        return METHODS


SOLVERS = BatchschedSolvers()
