"""The astraea family's pricing oracle: one job's best window at prices on workers and PSs.

The layouts are those of `windows/oracle.py`, with row sets ``worker_capacity`` over (type, slot),
in ``servers`` (server, type, slot), and ``ps_capacity``. The horizon is hard. With ``optional`` a
job may stay out at value 0; with ``must-complete`` a job that fits nowhere makes the bound -inf, as
the problem then is infeasible.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes, most_workers
from hindsched.instances.base import JobRecord
from hindsched.instances.modes import PREEMPTIVE, Hosting, Modes
from hindsched.models.astraea.sets import UnitCluster
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.windows.oracle import (
    ROWS,
    EndCosts,
    MergedOracle,
    PiecesOracle,
    WindowOracle,
    WindowServerOracle,
    first_rows,
    merged_modes,
    slot_ways,
    tree_rows,
)
from hindsched.solvers.kernels.placement import Kinds
from hindsched.solvers.kernels.windows.window import Parts
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
ORACLE_ROWS = ROWS
WHOLE = 1e-6
"""By how much a number of free units may fall short of a whole one by rounding."""


class AstraeaOracle(WindowOracle):
    """What all layouts share: values, types, and the worth of a given schedule."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: AstraeaInstance

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.cluster = UnitCluster.of(instance)
        self.optional = self.formulation.startswith("optional")
        self.slots = instance.horizon

    def lay_rows(self, servers: tuple[str, ...] | None) -> None:
        """Lay out the rows, of each server or of all merged."""
        sets = []
        for name, types, count in (
            ("worker_capacity", self.instance.worker_types, self.instance.worker_count),
            ("ps_capacity", self.instance.ps_types, self.instance.ps_count),
        ):
            units = count if servers else count.sum(axis=0)
            axes = (("type", types), ("slot", slot_labels(self.slots, units.size)))
            capacity = np.repeat(units[..., None].astype(float), self.slots, axis=-1)
            sets.append(RowSet(name, (("server", servers), *axes) if servers else axes, capacity))
        self.rows = Rows(sets)

    def values_of(self, job: AstraeaJob) -> Floats:
        """Revenue by completion slot, shape (horizon + 1,); -inf before the first."""
        table, first = np.full(self.slots + 1, -math.inf), job.arrival + 1
        table[first:] = self.instance.revenues(job, np.arange(float(first), self.slots + 1))
        return table

    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """Revenue of a completed job."""
        found: float | None = solution.revenue(job.name)
        return found


class AstraeaMerged(AstraeaOracle, MergedOracle):
    """Best responses on all servers merged into one."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.lay_rows(None)
        jobs, hosted = instance.jobs, self.hosted()
        found = [merged_modes(self.cluster, modes(instance, job), hosted) for job in jobs]
        values = np.array([self.values_of(job) for job in jobs]).reshape(len(jobs), self.slots + 1)
        self.prepare(
            found,
            np.array([job.arrival + 1 for job in jobs], dtype=np.int64),
            EndCosts(np.ones(len(jobs)), -values, np.arange(len(jobs))),
            np.full(len(jobs), 0.0 if self.optional else math.inf),
        )

    def hosted(self) -> Ints:
        """PSs that the best host needs by types, q and number of workers."""
        of = self.cluster
        hosting = Hosting(of.server_capacity, of.worker_demand, of.ps_demand, of.ps_ratio)
        return hosting.fewest_ps(self.instance.most_workers)

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        servers = len(self.instance.servers)
        arrays = self.rows.unpack(prices).values()
        return np.concatenate([np.repeat(array[None], servers, axis=0).ravel() for array in arrays])


class AstraeaPieces(PiecesOracle, AstraeaMerged):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        hosted, ways = self.hosted(), []
        for job in instance.jobs:
            times = instance.minibatch_times(job)[..., None]
            times = np.broadcast_to(times, (*times.shape[:3], most_workers(instance, job)))
            ways.append(slot_ways(self.cluster, times, instance.worker_count, hosted))
        self.prepare_pieces(ways, self._outside)


class ServerOracle(AstraeaOracle, WindowServerOracle):
    """Best responses on real servers, exact; ties by completion and the order of `table`."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        names = tuple(server.name for server in instance.servers)
        self.lay_rows(names)
        self.features = self.features_on(names)
        demands = (self.cluster.worker_demand, self.cluster.ps_demand)
        worker, server = map(np.ascontiguousarray, demands)
        self.kinds = Kinds(worker, server, instance.ps_ratio, True)
        self._known: dict[int, tuple[Modes, Floats]] = {}

    def _of_job(self, block: int) -> tuple[Modes, Floats]:
        if block not in self._known:
            job = self.instance.jobs[block]
            table = modes(self.instance, job)
            keys = (table.workers, -table.one_server, table.ps_type, table.worker_type)
            self._known[block] = table.take(np.lexsort(keys)), -self.values_of(job)
        return self._known[block]

    def table(self, block: int) -> Modes:
        """Modes of a job, by types."""
        return self._of_job(block)[0]

    def end_costs(self, block: int) -> Floats:
        """The negative revenue."""
        return self._of_job(block)[1]

    def earliest(self, block: int) -> int:
        """The slot behind the arrival."""
        return self.instance.jobs[block].arrival + 1

    def parts(self, vector: Floats) -> Parts:
        """A vector over the rows by server, type and slot: of workers, and of PSs."""
        workers, ps = self.rows.unpack(vector).values()
        return Parts(workers, ps)

    @cached_property
    def full(self) -> Parts:
        """The empty servers."""
        return self.parts(self.rows.capacity)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job; see `BlockOracle.best_response`."""
        free = self.full if residual is None else self.parts(residual)
        return self.cheapest(block, free, self.parts(prices), {}, slack=WHOLE)

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file."""
        return [AstraeaSolution.write_row(self.instance, row) for row in response.plan]


def build(instance: AstraeaInstance, formulation: str, rows: str) -> AstraeaOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    oracles = {"servers": ServerOracle, PREEMPTIVE: AstraeaPieces}
    return oracles.get(rows, AstraeaMerged)(instance, formulation)
