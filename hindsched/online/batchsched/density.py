"""Volumes and densities of batchsched's jobs, in which its prices are measured.

Resources count in units of their mean capacity a server.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.modes import ps_for


def resource_units(instance: BatchschedInstance) -> Floats:
    """Mean capacity a server by resource, 1 where there is none: the unit of volumes."""
    mean = instance.server_capacity.mean(axis=0)
    return np.where(mean > 0, mean, 1.0)


def volumes(instance: BatchschedInstance, job: BatchschedJob) -> Floats:
    """Resources x slots of a job's modes with the fewest PSs, in units of `resource_units`."""
    table = modes(instance, job)
    unit = resource_units(instance)
    demand = table.workers * (instance.worker_demand / unit).sum(axis=1)[table.worker_type]
    if instance.has_ps:
        room = instance.worker_room.max(axis=0)[table.worker_type]
        away = table.workers - np.minimum(table.workers - 1, room)
        count = ps_for(away, instance.ps_ratio[table.worker_type, table.ps_type])
        count = np.where(table.one_server == 1, 1, count)
        demand = demand + count * (instance.ps_demand / unit).sum(axis=1)[table.ps_type]
    found: Floats = table.duration * demand
    return found


def least_volume(instance: BatchschedInstance, job: BatchschedJob) -> float:
    """Smallest of a job's `volumes`."""
    return float(volumes(instance, job).min())


def densities(instance: BatchschedInstance) -> Floats:
    """Weight per least volume of every job."""
    return np.array([job.weight / least_volume(instance, job) for job in instance.jobs])
