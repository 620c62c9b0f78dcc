"""What the astraea program needs at least: room in every slot, a column for every start."""

from __future__ import annotations

from collections.abc import Iterable

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.models.astraea.sets import UnitCluster, last_worthwhile_slot
from hindsched.models.windows.sets import EmptyCluster

BYTES_A_COLUMN, BYTES_A_ROW = 1_000, 40
"""A column of Pyomo and its part in the rows; of a server and slot, what is free there."""


def program_bytes(instance: AstraeaInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below."""
    must = instance.check_formulation(None).startswith("must-complete")
    empty, columns = EmptyCluster(UnitCluster.of(instance)), 0
    for job in (instance.jobs[i] for i in jobs):
        last = instance.horizon if must else last_worthwhile_slot(instance, job)
        columns += empty.num_columns(modes(instance, job), job.arrival + 1, last)
    rows = instance.horizon * (instance.worker_count.size + instance.ps_count.size)
    return float(BYTES_A_COLUMN * columns + BYTES_A_ROW * rows)
