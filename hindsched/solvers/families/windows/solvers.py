"""What batchsched and astraea offer the solvers alike."""

from __future__ import annotations

from hindsched.instances import modes
from hindsched.instances.base import Instance
from hindsched.solvers.base import FamilySolvers


class WindowSolvers(FamilySolvers):
    """What both families offer the solvers alike."""

    layouts = ("cluster", "servers", modes.PREEMPTIVE)

    def first_layout(self, formulation: str) -> str:
        """Layout in which a formulation is bounded: windows do not bound jobs in pieces."""
        return modes.PREEMPTIVE if modes.in_pieces(formulation) else "cluster"

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Jobs in pieces are not branched on."""
        return () if modes.in_pieces(formulation) else ("servers",)
