"""Columns that no schedule better than the incumbent can contain, told by their reduced costs.

Any prices p >= 0 on the servers' resources give the bound ``LB = sum_j v_j - p.b``, where v_j is
job j's cheapest schedule at those prices. A schedule that uses a column whose own cost at the
prices is c costs at least ``LB + c - v_j``: beyond the incumbent UB the column can go. With whole
weights an objective below UB is at most UB - 1. The incumbent's own columns always stay.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import units
from hindsched.models.windows.sets import Mode, host_use
from hindsched.solutions.batchsched.solution import BatchschedSolution


class ColumnReduction:
    """Which columns are still worth having.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    prices : ndarray, shape (servers, resources, slots)
        Prices; slots beyond the last are free.
    values : ndarray, shape (jobs,)
        v_j: each job's cheapest cost at the prices, or less.
    bound : float
        LB at these prices and values.
    incumbent : BatchschedSolution
        A feasible solution; its objective is UB.
    """

    def __init__(
        self, instance: BatchschedInstance, prices: Floats, values: Floats, bound: float,
        incumbent: BatchschedSolution,
    ) -> None:  # fmt: skip
        self.instance, self.values, self.incumbent = instance, values, incumbent
        self._prefix = np.zeros((prices.shape[2] + 1, *prices.shape[:2]))
        np.cumsum(prices.transpose(2, 0, 1), axis=0, out=self._prefix[1:])
        step = 1.0 if all(float(job.weight).is_integer() for job in instance.jobs) else 0.0
        objective = incumbent.objective()
        self.spare = max(0.0, objective - step - bound) + 1e-6 * max(1.0, abs(objective))
        room = units(instance.server_capacity, instance.worker_demand)
        room = np.minimum(room, max((job.chunks for job in instance.jobs), default=1))

        @cache
        def window(m: int, start: int, length: int) -> tuple[Floats, Floats]:
            """Window prices (servers, resources), and of the cheapest 0, 1, 2, ... workers."""
            last = len(self._prefix) - 1
            low, high = min(start - 1, last), min(start - 1 + length, last)
            unit = self._prefix[high] - self._prefix[low]
            cheapest = np.sort(np.repeat(unit @ instance.worker_demand[m], room[:, m]))
            return unit, np.concatenate([[0.0], np.cumsum(cheapest)])

        self._window = window

    def keep(self, job: int, mode: Mode, start: int, host: int, on_host: int) -> bool:
        """Whether a job's column may be in a better schedule than the incumbent, or is in it."""
        record, length = self.instance.jobs[job], mode.duration
        row = self.incumbent.rows[record.name][0]
        if (row.first, row.slots, row.worker_type) == (start, length, mode.worker_type):
            return True
        unit, total = self._window(mode.worker_type, start, length)
        cost = float(record.weight) * (start + length)
        if host >= 0:
            cost += float(unit[host] @ host_use(self.instance, mode, on_host))
        beside = mode.workers - on_host
        if beside < len(total):
            cost += float(total[beside])
        return cost - float(self.values[job]) <= self.spare
