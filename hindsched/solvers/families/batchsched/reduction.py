"""Columns that no schedule better than the incumbent can contain, told by their reduced costs.

Any prices p >= 0 on the servers' resources give the bound ``LB = sum_j v_j - p.b``, where v_j is
job j's cheapest schedule at those prices. A schedule that uses a column whose own cost at the
prices is c costs at least ``LB + c - v_j``: beyond the incumbent UB the column can go. With whole
weights an objective below UB is at most UB - 1. The incumbent's own columns always stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import units
from hindsched.models.windows.sets import num_ps
from hindsched.solutions.batchsched.solution import BatchschedSolution


@dataclass
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

    instance: BatchschedInstance
    prices: Floats
    values: Floats
    bound: float
    incumbent: BatchschedSolution
    _prefix: Floats = field(init=False)
    _windows: dict[tuple[int, int, int], tuple[Floats, Floats, Floats]] = field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        slots = self.prices.shape[2]
        self._prefix = np.zeros((slots + 1, *self.prices.shape[:2]))
        np.cumsum(self.prices.transpose(2, 0, 1), axis=0, out=self._prefix[1:])
        whole = all(float(job.weight).is_integer() for job in self.instance.jobs)
        step = 1.0 if whole else 0.0
        objective = self.incumbent.objective()
        self.spare = max(0.0, objective - step - self.bound) + 1e-6 * max(1.0, abs(objective))
        room = units(self.instance.server_capacity, self.instance.worker_demand)
        self._room = np.minimum(room, max((job.chunks for job in self.instance.jobs), default=1))

    def _window(self, m: int, start: int, length: int) -> tuple[Floats, Floats, Floats]:
        """Window prices per resource, per worker, and of the cheapest 0, 1, 2, ... workers."""
        key = (m, start, length)
        if key not in self._windows:
            last = len(self._prefix) - 1
            low, high = min(start - 1, last), min(start - 1 + length, last)
            unit = self._prefix[high] - self._prefix[low]
            worker = unit @ self.instance.worker_demand[m]
            cheapest = np.sort(np.repeat(worker, self._room[:, m]))
            total = np.concatenate([[0.0], np.cumsum(cheapest)])
            self._windows[key] = (unit, worker, total)
        return self._windows[key]

    def keep(
        self, job: int, mode: tuple[int, int, int, int, int], start: int, host: int, on_host: int
    ) -> bool:
        """Whether a job's column may be in a better schedule than the incumbent, or is in it."""
        m, p, _, count, length = mode
        row = self.incumbent.rows[self.instance.jobs[job].name][0]
        if (row.first, row.slots, row.worker_type) == (start, length, m):
            return True
        unit, worker, total = self._window(m, start, length)
        cost = float(self.instance.jobs[job].weight) * (start + length)
        beside = count - on_host
        if host >= 0:
            cost += on_host * float(worker[host])
            if self.instance.has_ps:
                ps = num_ps(self.instance, m, p, beside)
                cost += ps * float(unit[host] @ self.instance.ps_demand[p])
        if beside < len(total):
            cost += float(total[beside])
        return cost - float(self.values[job]) <= self.spare
