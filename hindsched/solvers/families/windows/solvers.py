"""What batchsched and astraea offer the solvers alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hindsched.instances.base import Instance
from hindsched.solvers.base import FamilySolvers, Method
from hindsched.solvers.oracles.base import PricingOracle


@dataclass(frozen=True)
class WindowSolvers(FamilySolvers):
    """What a family of jobs in one window offers the solvers."""

    layouts = ("cluster", "servers")

    merged: type[Any]  # oracle of all servers as one
    servers: type[Any]  # oracle with one row a server
    find_incumbent: Any = None  # as of `generic_methods`

    def build_oracle(self, instance: Any, formulation: str, layout: str) -> PricingOracle:
        """Build the oracle of a layout."""
        oracle: PricingOracle = (self.servers if layout == "servers" else self.merged)(
            instance, formulation
        )
        return oracle

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Schedules on servers are branched on."""
        return ("servers",)

    def methods(self) -> dict[str, Method]:
        """The generic ones, with a program that is solved where it is not large."""
        from hindsched.solvers.families.windows.methods import solve_if_small
        from hindsched.solvers.methods.auto import generic_methods

        return generic_methods(self.find_incumbent, solve_if_small)
