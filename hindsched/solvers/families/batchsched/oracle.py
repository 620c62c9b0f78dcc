"""Pricing oracles of batchsched: best response of one job to prices on the servers' resources.

The layouts are those of `windows/oracle.py`. Slots beyond the last priced one, T, cost nothing.
What begins in a priced slot may end there; of what begins there the shortest mode in T + 1 is the
cheapest, at ``w (T + 1 + L)``: it is every job's outside option.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.decimals import common_step, exactly
from hindsched.instances.modes import Modes
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.families.batchsched.list_schedule import smith_schedule
from hindsched.solvers.families.windows import oracle as windows
from hindsched.solvers.families.windows.schedules import ScheduleSearch
from hindsched.solvers.oracles.base import Response


class BatchschedOracle(windows.WindowOracle):
    """What all layouts share."""

    sense: ClassVar[Literal["max", "min"]] = "min"

    @property
    def row_sets(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        """All resources."""
        return [("capacity", "resource", self.instance.resources)]

    def price_slots(self, slots: int, shortest: Floats) -> None:
        """Price so many slots; `shortest` are the jobs' least durations, inf where there is none.

        Behind the priced slots are as many as every job needs that uses no other: what ends later
        is dearer than the outside option.
        """
        self.slots = slots
        jobs = self.instance.jobs
        self.first = np.array([job.arrival for job in jobs], dtype=np.int64)
        rate: Floats = np.array([job.weight for job in jobs], dtype=float)
        tail = int(shortest[np.isfinite(shortest)].max(initial=0))
        table = np.arange(1.0, slots + tail + 2)[None]
        self.ends = windows.EndCosts(rate, table, np.zeros_like(self.first))
        self.outside_costs = rate * (np.maximum(self.first, slots + 1) + shortest)

    def worth(self, solution: Any, job: JobRecord) -> float:
        """Weight x (last slot + 1)."""
        rows, completion = solution.rows.get(job.name, ()), solution.completion(job.name)
        if completion is None or len(rows) > 1:
            raise InputError("solution", job.name, "must run the job once, to its end")
        return float(job.weight) * (completion + 1)  # type: ignore[attr-defined]


class BatchschedMerged(BatchschedOracle, windows.MergedOracle):
    """Best responses on all servers merged into one."""

    def __init__(self, instance: BatchschedInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        choices = [windows.merged_modes(instance, job) for job in instance.jobs]
        total = instance.server_capacity.sum(axis=0)
        volume = sum(
            ((length[:, None] * demand).min(axis=0) for length, demand in choices), 0 * total
        )
        busy = np.divide(volume, total, out=np.zeros(len(total)), where=total > 0)
        shortest = np.array([float(duration[0]) for duration, _ in choices])
        latest = max((job.arrival + int(duration[0]) for job, (duration, _) in
                      zip(instance.jobs, choices, strict=True)), default=1)  # fmt: skip
        self.price_slots(latest + math.ceil(1.5 * float(busy.max(initial=0.0))), shortest)
        self.prepare(choices)

    @cached_property
    def _server_slots(self) -> int:
        return BatchschedServers(self.instance, self.formulation).slots

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        by_slot = prices.reshape(-1, self.slots)
        spread = np.zeros((len(self.instance.servers), len(by_slot), self._server_slots))
        common = min(self._server_slots, self.slots)
        spread[:, :, :common] = by_slot[:, :common]
        return spread.ravel()


class BatchschedServers(BatchschedOracle, windows.WindowServerOracle):
    """Best responses on real servers: the paper's subproblem (12), exact.

    Without `slots`, enough are priced for a list schedule and one more job after it. Ties: earlier
    completion, then fewer workers, worker type, q = 1 first, PS type.
    """

    solution = BatchschedSolution

    def __init__(
        self, instance: BatchschedInstance, formulation: str | None = None, slots: int | None = None
    ) -> None:
        super().__init__(instance, formulation)
        listed = [] if slots else smith_schedule(instance).values()
        longest = max((row.slots for row in listed), default=1)
        slots = slots or max((row.last for row in listed), default=1) + longest
        once = ScheduleSearch(instance, 1)
        shortest = [self._shortest(self.table(j), once) for j in range(self.num_blocks)]
        self.price_slots(slots, np.array(shortest, dtype=float))
        self.lay_rows(servers=True)
        self.outside_ends_after = self.slots
        self.step = common_step(exactly(job.weight) for job in instance.jobs) or None

    @staticmethod
    def _shortest(table: Modes, once: ScheduleSearch) -> float:
        """Duration of the shortest mode that the empty servers hold."""
        for length in np.unique(table.duration).tolist():
            alike = table.take(table.duration == length)
            at_once = replace(alike, duration=np.ones_like(alike.duration))
            if once.cheapest(at_once) is not None:
                return float(length)
        return math.inf

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest schedule of a job; at full capacity the outside option is one."""
        response, outside = super().best_response(block, prices, residual), self.outside(block)
        if residual is None and (response is None or outside.value < response.value):
            return outside
        return response

    def outside(self, block: int) -> Response:
        """The shortest mode after all priced slots: no schedule that begins there is cheaper."""
        cost = float(self.outside_costs[block])
        return Response(cost, cost, windows.NO_ROWS, np.zeros(0))
