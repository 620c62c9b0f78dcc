"""What astraea's block is built on: a cluster of unit demands, revenues, symbols and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr
from hindsched.models.astraea.printed import PRINTED_SYMBOLS, REVENUE
from hindsched.models.declared import Face, Symbol
from hindsched.models.slots import SlotBlock, slot_symbols
from hindsched.models.windows import WINDOW_SYMBOLS, BlockNumbers, WindowBlock

SLOTS_AT_ONCE = 4096
"""Of a search from the horizon back."""
BLOCK = BlockNumbers(
    "eq_3l",
    "(3l) no worker of a window that is not chosen",
    "eq_3i",
    "(3i) the chosen mode's workers beside no PS",
)
SYMBOLS: Mapping[str, Symbol] = {
    **PRINTED_SYMBOLS,
    "u": WINDOW_SYMBOLS["u"],
    "y": Symbol("worker type, duration, slot, server | job, server, worker type, slot", "workers"),
    "eq_3c": Symbol("server, worker type, slot", f"{REVENUE} a worker"),
    "eq_3d": Symbol("server, PS type, slot", f"{REVENUE} a PS"),
    "eq_3i": Symbol("worker type, duration, slot | job, server, slot", f"{REVENUE} a worker"),
    "eq_3k": Symbol("job", REVENUE),
    "eq_3l": Symbol("worker type, duration, slot, server | job, slot", f"{REVENUE} a worker"),
    "eq_9a": Symbol("server, worker or PS type, slot", f"{REVENUE} a worker or PS"),
    **slot_symbols(REVENUE),
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
        kinds = [*instance.worker_types, *instance.ps_types]
        if index == "server":
            return instance.servers[place].name
        if index == "worker type":
            return instance.worker_types[place]
        if index == "PS type":
            return instance.ps_types[place]
        return kinds[place] if index == "worker or PS type" else None


def last_worthwhile_slot(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Last slot at which completing the job earns something; 0 if none."""
    for end in range(instance.horizon, job.arrival, -SLOTS_AT_ONCE):
        slots = np.arange(max(job.arrival, end - SLOTS_AT_ONCE) + 1, end + 1)
        worth = np.flatnonzero(instance.revenues(job, slots.astype(float)) > 0)
        if worth.size:
            return int(slots[worth[-1]])
    return 0


def revenue_of(
    block: WindowBlock | SlotBlock,
    instance: AstraeaInstance,
    job: AstraeaJob,
    values: Floats | None = None,
) -> Expr:
    """``sum f(t + d - 1) u``, or with given values by slot in place of f."""
    earned = cache(partial(instance.revenue, job)) if values is None else values.__getitem__
    if isinstance(block, SlotBlock):
        return pyo.quicksum(float(earned(t)) * end for t, end in block.ends.items())
    duration = block.columns.table.duration
    return block.earned(lambda k, t: [earned(slot) for slot in (t + duration[k] - 1).tolist()])
