"""What mlbroker offers the solvers."""

from __future__ import annotations

from typing import Any

from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.solvers.base import FamilySolvers, Method
from hindsched.solvers.families.mlbroker.oracle import BROKER, MlbrokerOracle


class MlbrokerSolvers(FamilySolvers):
    """What mlbroker offers the solvers."""

    layouts = ("servers",)

    def build_oracle(
        self, instance: MlbrokerInstance, formulation: str, layout: str
    ) -> MlbrokerOracle:
        """Build the oracle; data centres are not aggregated, so there is one layout."""
        return MlbrokerOracle(instance, formulation)

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Of ``tight``, where no job has the broker's name."""
        named = any(job.name == BROKER for job in instance.jobs)
        return self.layouts if formulation == "tight" and not named else ()

    def node_program(self, oracle: MlbrokerOracle, size: float) -> Any:
        """Shared fees in closed form."""
        from hindsched.solvers.families.mlbroker.nodes import TierNodes

        return TierNodes(oracle, size)

    def methods(self) -> dict[str, Method]:
        """Placements of all slots together, and bounds with shared fees."""
        from hindsched.solvers.families.mlbroker.methods import METHODS

        return METHODS


SOLVERS = MlbrokerSolvers()
