"""What gang offers the solvers."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance
from hindsched.solvers.base import FamilySolvers, Method
from hindsched.solvers.families.gang.oracle import LAYOUT, GangOracle, gang_oracle, is_rigid


class GangSolvers(FamilySolvers):
    """What gang offers the solvers."""

    layouts = (LAYOUT,)

    def build_oracle(self, instance: GangInstance, formulation: str, layout: str) -> GangOracle:
        """The oracle on single slots, where there are not too many."""
        return gang_oracle(instance, formulation)

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """None but for jobs in one piece on GPUs of one kind."""
        assert isinstance(instance, GangInstance)
        return self.layouts if is_rigid(formulation) and not instance.has_kinds else ()

    def methods(self) -> dict[str, Method]:
        """Replayed policies, prices and orders."""
        from hindsched.solvers.families.gang.methods import METHODS

        return METHODS


SOLVERS = GangSolvers()
