"""What batchsched and astraea offer the solvers alike."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.solvers.base import FamilySolvers


class WindowSolvers(FamilySolvers):
    """What both families offer the solvers alike."""

    layouts = ("cluster", "servers")

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Schedules on servers are branched on."""
        return ("servers",)
