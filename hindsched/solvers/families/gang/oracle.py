"""Which pricing oracle of gang is built: of the pool's intervals, or of every server's slots."""

from __future__ import annotations

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import MOST_PROGRAM_SLOTS, GangInstance, split_formulation
from hindsched.solvers.families.gang import placements, pool
from hindsched.solvers.families.gang.pool import GangOracle

ORACLE_ROWS = (pool.LAYOUT, placements.LAYOUT)


def tree_rows(instance: Instance, formulation: str) -> tuple[str, ...]:
    """Layouts that a tree can be grown on: servers only where they say more than the pool."""
    assert isinstance(instance, GangInstance)
    kind, goal = split_formulation(formulation)
    if kind != "non-preemptive" or goal == "makespan":
        return ()
    with_servers = instance.is_consolidated and instance.serial_end <= MOST_PROGRAM_SLOTS
    return ORACLE_ROWS if with_servers else ORACLE_ROWS[:1]


def build(instance: Instance, formulation: str, rows: str | None = None) -> GangOracle:
    """Build the oracle: of intervals that prices bring along, or of every server's slots."""
    assert isinstance(instance, GangInstance)
    if rows not in (None, *ORACLE_ROWS):
        raise InputError("rows", rows, f"must be one of {', '.join(ORACLE_ROWS)}")
    if rows == placements.LAYOUT:
        return placements.GangPlacementsOracle(instance, formulation)
    return GangOracle(instance, formulation)
