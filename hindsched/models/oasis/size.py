"""What the oasis program needs at least: each job has columns in every slot until the end."""

from __future__ import annotations

from hindsched.instances.oasis.instance import OasisInstance

BYTES_A_SLOT = 1_000
"""Of a job: a few columns and rows of Pyomo."""


def program_bytes(instance: OasisInstance) -> float:
    """Bytes, from below."""
    slots = sum(max(0, instance.horizon - job.arrival + 1) for job in instance.jobs)
    return float(BYTES_A_SLOT * slots)
