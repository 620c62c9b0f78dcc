"""What astraea offers the solvers."""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.solvers.base import Method
from hindsched.solvers.families.astraea.oracle import (
    AstraeaMerged,
    AstraeaOracle,
    AstraeaServers,
)
from hindsched.solvers.families.windows.solvers import WindowSolvers


class AstraeaSolvers(WindowSolvers):
    """What astraea offers the solvers."""

    def build_oracle(
        self, instance: AstraeaInstance, formulation: str, layout: str
    ) -> AstraeaOracle:
        """Build the oracle of a layout."""
        oracle = AstraeaServers if layout == "servers" else AstraeaMerged
        return oracle(instance, formulation)

    def methods(self) -> dict[str, Method]:
        """The generic ones."""
        from hindsched.solvers.families.astraea.methods import METHODS

        return METHODS


SOLVERS = AstraeaSolvers()
