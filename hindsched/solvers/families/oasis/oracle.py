"""The pricing oracle of oasis with one of its layouts of rows."""

from __future__ import annotations

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.families.oasis.patterns import PatternOracle
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.oracles.base import BlockOracle

ORACLE_ROWS = ("groups", "servers", "patterns")
TREE_ROWS = ("patterns", "servers")


def build(instance: OasisInstance, formulation: str, rows: str) -> BlockOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    if rows == "patterns":
        return PatternOracle(instance, formulation)
    return OasisOracle(instance, formulation, rows)
