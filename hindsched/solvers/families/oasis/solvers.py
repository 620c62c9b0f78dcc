"""What oasis offers the solvers."""

from __future__ import annotations

from typing import Any

from hindsched.instances.base import Instance
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.base import FamilySolvers, Method
from hindsched.solvers.families.oasis.oracle import OasisOracle, OasisServers
from hindsched.solvers.families.oasis.patterns import PatternOracle
from hindsched.solvers.oracles.base import BranchingOracle


class OasisSolvers(FamilySolvers):
    """What oasis offers the solvers."""

    layouts = ("groups", "servers", "patterns")

    def build_oracle(
        self, instance: OasisInstance, formulation: str, layout: str
    ) -> BranchingOracle:
        """Build the oracle of a layout."""
        oracles: dict[str, Any] = {"servers": OasisServers, "patterns": PatternOracle}
        return oracles.get(layout, OasisOracle)(instance, formulation)

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Patterns first: they see which units a server holds together."""
        return "patterns", "servers"

    def methods(self) -> dict[str, Method]:
        """The generic ones, with a program of ends."""
        from hindsched.solvers.families.oasis.methods import METHODS

        return METHODS


SOLVERS = OasisSolvers()
