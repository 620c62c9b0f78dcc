"""What the family offers the solvers."""

from __future__ import annotations

from typing import Any

from hindsched.solvers.base import FamilySolvers

from .oracle import TollboothOracle


class TollboothSolvers(FamilySolvers):
    """What the family offers the solvers: one oracle; methods and search are the generic ones."""

    layouts = ("servers",)

    def build_oracle(self, instance: Any, formulation: str, layout: str) -> TollboothOracle:
        """Build the oracle; there is one layout."""
        return TollboothOracle(instance, formulation)


SOLVERS = TollboothSolvers()
