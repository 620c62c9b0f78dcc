"""What a family offers this floor: `FamilySolvers`, found by the family's word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from hindsched.arrays import Floats
from hindsched.instances.base import Instance, family_module
from hindsched.solutions.base import Solution

if TYPE_CHECKING:
    from hindsched.solvers.door.options import SolveOptions
    from hindsched.solvers.door.result import Progress, Result
    from hindsched.solvers.oracles.base import PlacingOracle, PricingOracle

Method: TypeAlias = "Callable[[Instance, str, SolveOptions, Progress | None], Result]"
"""``method(instance, formulation, options, on_progress) -> Result``."""


class FamilySolvers(ABC):
    """A family's oracles, methods and search; what it does not override is generic.

    ``SOLVERS`` of the family's module ``solvers/families/FAMILY/oracle.py`` is an object of its
    subclass. Modules that load a solver are imported where they are needed.
    """

    layouts: ClassVar[tuple[str, ...]]
    """Names of its layouts of the linking rows, the default first; one row a server: servers."""
    rivals_bound: ClassVar[tuple[str, str] | None] = None
    """Method and formulation of the bound for baselines that may do what the problem forbids."""

    @abstractmethod
    def build_oracle(self, instance: Any, formulation: str, layout: str) -> PricingOracle:
        """Build the oracle of a formulation on one of the layouts."""

    def first_layout(self, formulation: str) -> str:
        """Layout in which a formulation is bounded."""
        return self.layouts[0]

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Layouts that are branched on, the first first; empty if none is.

        Their oracles are a `RestrictableOracle`, and a `BranchingOracle` where the family has no
        `node_program` of its own.
        """
        return ()

    def node_program(self, oracle: Any, size: float) -> Any:
        """What bounds the nodes of a tree: a `NodeProgram` or what has its methods."""
        from hindsched.solvers.tree.node_program import NodeProgram

        return NodeProgram(oracle, size)

    def methods(self) -> dict[str, Method]:
        """Methods of `solve` by name."""
        from hindsched.solvers.methods.auto import generic_methods

        return generic_methods()

    def search(
        self, oracle: PlacingOracle, prices: Floats, *, seed: int = 0,
        start: Solution | None = None,
    ) -> Any:  # fmt: skip
        """The search of schedules: a `NeighbourhoodSearch` or what has its methods."""
        from hindsched.solvers.search import NeighbourhoodSearch

        return NeighbourhoodSearch(oracle, prices, seed=seed, start=start)


def family_solvers(family: str) -> FamilySolvers:
    """What a family offers this floor; `InputError` in one line if it is missing."""
    solvers: FamilySolvers = family_module("solvers.families", family, "oracle").SOLVERS
    return solvers
