"""What the edgecloud program needs at least: a job has rows on every place while it runs."""

from __future__ import annotations

from collections.abc import Iterable

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.edgecloud.sets import lone_time

BYTES_A_CELL = 1_000
"""Of a job, a place and a slot: a column and a row of Pyomo."""


def program_bytes(instance: EdgecloudInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below."""
    formulation = instance.check_formulation(None)
    cells = sum(
        lone_time(instance, j, formulation) * (1 + len(list(instance.places(instance.jobs[j]))))
        for j in jobs
    )
    return float(BYTES_A_CELL * cells)
