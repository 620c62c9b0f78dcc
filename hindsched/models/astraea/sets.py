"""What astraea's block is built on: a cluster of unit demands, and how late a job is of use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob

SLOTS_AT_ONCE = 4096
"""Of a search from the horizon back."""


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
        units, split = (
            np.eye(len(instance.worker_types) + len(instance.ps_types)),
            len(instance.worker_types),
        )
        counts = np.concatenate([instance.worker_count, instance.ps_count], axis=1)
        return cls(counts.astype(float), units[:split], units[split:], instance.ps_ratio)


def last_worthwhile_slot(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Last slot at which completing the job earns something; 0 if none."""
    for end in range(instance.horizon, job.arrival, -SLOTS_AT_ONCE):
        slots = np.arange(max(job.arrival, end - SLOTS_AT_ONCE) + 1, end + 1)
        worth = np.flatnonzero(instance.revenues(job, slots.astype(float)) > 0)
        if worth.size:
            return int(slots[worth[-1]])
    return 0
