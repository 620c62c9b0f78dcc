"""What a family offers this floor, found by its word: `FamilySolvers`, and its oracles built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module
from hindsched.solvers.oracles.base import PlacingOracle, PricingOracle

if TYPE_CHECKING:
    from hindsched.solvers.door.options import SolveOptions
    from hindsched.solvers.door.result import Progress, Result

Method: TypeAlias = "Callable[[Instance, str, SolveOptions, Progress | None], Result]"
"""``method(instance, formulation, options, on_progress) -> Result``."""


class FamilySolvers(ABC):
    """A family's oracles and methods; what it does not override is generic.

    ``SOLVERS`` of the family's module ``solvers/families/FAMILY/solvers.py`` is an object of its
    subclass. Modules that load a solver are imported where they are needed.
    """

    layouts: ClassVar[tuple[str, ...]]
    """Names of its layouts of the linking rows, the default first; one row a server: servers."""

    @abstractmethod
    def build_oracle(self, instance: Any, formulation: str, layout: str) -> PricingOracle:
        """Build the oracle of a formulation on one of the layouts."""

    def tree_layouts(self, instance: Instance, formulation: str) -> tuple[str, ...]:
        """Layouts that are branched on, the first first; empty if none is.

        Their oracles are a `RestrictableOracle`, and a `BranchingOracle` where the family has no
        `node_program` of its own.
        """
        return ()

    def node_program(self, oracle: Any, size: float) -> Any:
        """What bounds the nodes of a tree, with the methods of `NodeProgram`; None: it does."""
        return None

    def methods(self) -> dict[str, Method] | None:
        """Methods of `solve` by name; None: `generic_methods`."""
        return None


def family_solvers(family: str) -> FamilySolvers:
    """What a family offers this floor; `InputError` in one line if it is missing."""
    offered: FamilySolvers = family_module("solvers.families", family, "solvers").SOLVERS
    return offered


def build_oracle(
    instance: Instance, formulation: str | None = None, *, rows: str | None = None
) -> PricingOracle:
    """Build the oracle of an instance's family, by default of its default formulation.

    `rows` is one of the `row_layouts`, by default the first: certificates use one
    aggregated over identical servers where that costs nothing; ``"servers"`` has one row a server,
    for schedules.
    """
    family, layouts = family_solvers(instance.family), row_layouts(instance.family)
    if rows is not None and rows not in layouts:
        raise InputError("rows", rows, f"must be {' or '.join(layouts)}")
    chosen = instance.check_formulation(formulation)
    return family.build_oracle(instance, chosen, rows or layouts[0])


def placing_oracle(instance: Instance, formulation: str | None = None) -> PlacingOracle:
    """The oracle with one row a server; `InputError` for a family that places nothing."""
    oracle = build_oracle(instance, formulation, rows="servers")
    if not isinstance(oracle, PlacingOracle):
        raise InputError("family", instance.family, "must place schedules on servers")
    return oracle


def row_layouts(family: str) -> tuple[str, ...]:
    """Names of a family's layouts of the linking rows, the default first."""
    return family_solvers(family).layouts
