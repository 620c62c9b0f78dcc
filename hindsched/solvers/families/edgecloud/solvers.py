"""What edgecloud offers the solvers."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solvers.base import FamilySolvers, Method
from hindsched.solvers.families.edgecloud.oracle import (
    EdgecloudGroups,
    EdgecloudOracle,
    EdgecloudServers,
)


class EdgecloudSolvers(FamilySolvers):
    """What edgecloud offers the solvers."""

    layouts = ("groups", "types", "servers")

    def build_oracle(
        self, instance: EdgecloudInstance, formulation: str, layout: str
    ) -> EdgecloudOracle:
        """Build the oracle of a layout."""
        if layout == "servers":
            return EdgecloudServers(instance, formulation)
        if layout in self.tree_layouts(instance, formulation):
            return EdgecloudGroups(instance, formulation)
        return EdgecloudOracle(instance, formulation, layout)

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Where a job without migration can be restricted."""
        return ("groups",) if formulation == "no-migration" else ()

    def methods(self) -> dict[str, Method]:
        """LP (4)+ in place of the generic relaxation."""
        from hindsched.solvers.families.edgecloud.methods import METHODS

        return METHODS


SOLVERS = EdgecloudSolvers()
