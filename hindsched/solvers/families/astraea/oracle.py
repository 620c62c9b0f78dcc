"""The astraea family's pricing oracle: one job's best window at prices on workers and PSs.

The layouts are those of `windows/oracle.py`, with row sets ``worker_capacity`` over (type, slot),
in ``servers`` (server, type, slot), and ``ps_capacity``. The horizon is hard. With ``optional`` a
job may stay out at value 0; with ``must-complete`` a job that fits nowhere makes the bound -inf, as
the problem then is infeasible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.base import JobRecord
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solvers.families.windows import oracle as windows


class AstraeaOracle(windows.WindowOracle):
    """What all layouts share: values, types, and the worth of a given schedule."""

    sense: ClassVar[Literal["max", "min"]] = "max"

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.optional = self.formulation.startswith("optional")
        self.slots, jobs = instance.horizon, instance.jobs
        self.first = np.array([job.arrival + 1 for job in jobs], dtype=np.int64)
        values = np.array([self.values_of(job) for job in jobs]).reshape(len(jobs), self.slots + 1)
        self.ends = windows.EndCosts(np.ones(len(jobs)), -values, np.arange(len(jobs)))
        self.outside_costs = np.full(len(jobs), 0.0 if self.optional else math.inf)

    @property
    def row_sets(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        """Workers, then PSs."""
        return [
            ("worker_capacity", "type", self.instance.worker_types),
            ("ps_capacity", "type", self.instance.ps_types),
        ]

    def values_of(self, job: AstraeaJob) -> Floats:
        """Revenue by completion slot, shape (horizon + 1,); -inf before the first."""
        table, first = np.full(self.slots + 1, -math.inf), job.arrival + 1
        table[first:] = self.instance.revenues(job, np.arange(float(first), self.slots + 1))
        return table

    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """Revenue of a completed job."""
        revenue: float | None = solution.revenue(job.name)
        return revenue


class AstraeaMerged(AstraeaOracle, windows.MergedOracle):
    """Best responses on all servers merged into one."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.prepare([windows.merged_modes(instance, job) for job in instance.jobs])

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        servers = len(self.instance.servers)
        arrays = self.rows.unpack(prices).values()
        return np.concatenate([np.repeat(array[None], servers, axis=0).ravel() for array in arrays])


class AstraeaServers(AstraeaOracle, windows.WindowServerOracle):
    """Best responses on real servers, exact; ties by completion, workers, the order of modes."""

    solution = AstraeaSolution

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.lay_rows(servers=True)
