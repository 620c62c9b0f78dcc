"""What the oasis program needs at least: each job has columns in every slot until the end."""

from __future__ import annotations

from collections.abc import Iterable

from hindsched.instances.oasis.instance import OasisInstance

BYTES_A_SLOT = 1_000
"""Of a job: a few columns and rows of Pyomo."""


def program_bytes(instance: OasisInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below."""
    slots = sum(max(0, instance.horizon - instance.jobs[i].arrival + 1) for i in jobs)
    return float(BYTES_A_SLOT * slots)
