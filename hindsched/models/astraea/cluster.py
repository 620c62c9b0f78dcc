"""What astraea's block is built on: a cluster of unit demands, revenues, symbols and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.models.astraea.printed import PER_PS, PER_WORKER, PRINTED_SYMBOLS, REVENUE
from hindsched.models.declared import Face, Symbol
from hindsched.models.windows.block import BlockRules, Rule, block_symbols

SLOTS_AT_ONCE = 4096
"""Of a search from the horizon back."""
BLOCK = BlockRules(
    Rule("eq_3l", "(3l) no worker of a window that is not chosen"),
    Rule("eq_3i", "(3i) the chosen mode's workers beside no PS"),
)
SYMBOLS: Mapping[str, Symbol] = {
    **PRINTED_SYMBOLS,
    **block_symbols(REVENUE),
    "y": Symbol("worker type, duration, slot, server | job, server, worker type, slot", "workers"),
    "eq_3a": Symbol("worker type, slot", PER_WORKER),
    "eq_3c": Symbol("server, worker type, slot", PER_WORKER),
    "eq_3d": Symbol("server, PS type, slot", PER_PS),
    "eq_3i": Symbol("worker type, duration, slot | job, server, slot", PER_WORKER),
    "eq_3k": Symbol("job", REVENUE),
    "eq_3l": Symbol("worker type, duration, slot, server | job, slot", PER_WORKER),
}


@dataclass(frozen=True)
class UnitCluster:
    """Servers whose resources are counts of workers and PSs by type; a `WindowCluster`."""

    server_capacity: Floats
    worker_demand: Floats
    ps_demand: Floats
    ps_ratio: Floats
    has_ps: bool = True

    @classmethod
    def of(cls, instance: AstraeaInstance) -> UnitCluster:
        """Build the cluster of an instance."""
        units = np.eye(len(instance.worker_types) + len(instance.ps_types))
        split = len(instance.worker_types)
        return cls(
            np.concatenate([instance.worker_count, instance.ps_count], axis=1).astype(float),
            units[:split],
            units[split:],
            instance.ps_ratio,
        )


class AstraeaNames(Face):
    """Servers and types read by their names."""

    instance: AstraeaInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        named = {
            "server": [server.name for server in instance.servers],
            "worker type": instance.worker_types,
            "PS type": instance.ps_types,
            "worker or PS type": [*instance.worker_types, *instance.ps_types],
        }
        return named[index][place] if index in named else None


def last_worthwhile_slot(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Last slot at which completing the job earns something; 0 if none."""
    for end in range(instance.horizon, job.arrival, -SLOTS_AT_ONCE):
        slots = np.arange(max(job.arrival, end - SLOTS_AT_ONCE) + 1, end + 1)
        worth = np.flatnonzero(instance.revenues(job, slots.astype(float)) > 0)
        if worth.size:
            return int(slots[worth[-1]])
    return 0


def revenue_by_slot(
    instance: AstraeaInstance, job: AstraeaJob, values: Floats | None = None
) -> Callable[[int], float]:
    """F by last slot, or given values in its place."""
    if values is not None:
        return lambda slot: float(values[slot])
    return cache(partial(instance.revenue, job))
