"""Row layout ``servers`` of batchsched and astraea: rows (server, resource, slot), the subproblem.

A job runs one mode in one window on one placement. Its features are ``completion`` and ``start``
(slots), ``workers`` (N), ``worker_type`` and ``ps_type`` (positions of the types, from 0),
``server_workers`` and ``server_ps``.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.modes import Modes
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.families.windows.oracle import WindowOracle
from hindsched.solvers.kernels.placement import Kinds, no_limits
from hindsched.solvers.kernels.windows.window import Parts, cheapest_window
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    COMPLETION,
    Axes,
    Feature,
    Limits,
    window_of,
)

START, WORKERS = Feature("start"), Feature("workers")
WORKER_TYPE, PS_TYPE = Feature("worker_type"), Feature("ps_type")
ON_SERVER, PS_ON_SERVER = "server_workers", "server_ps"


class WindowServerOracle(WindowOracle):
    """Best responses within limits on real servers, exact."""

    layout = "servers"
    kinds: Kinds

    @abstractmethod
    def table(self, block: int) -> Modes:
        """Modes of a job."""

    @abstractmethod
    def end_costs(self, block: int) -> Floats:
        """What ending in a slot costs, 1-based; it never falls; a revenue's negative."""

    @abstractmethod
    def earliest(self, block: int) -> int:
        """First slot that a job may use."""

    @abstractmethod
    def parts(self, vector: Floats) -> Parts:
        """A vector over the rows as the kernel takes it."""

    def features_on(self, servers: tuple[str, ...]) -> dict[str, Axes]:
        """Features of a window on these servers."""
        on_server: Axes = (("server", servers),)
        plain = (COMPLETION, START.name, WORKERS.name, WORKER_TYPE.name, PS_TYPE.name)
        return {**dict.fromkeys(plain, ()), ON_SERVER: on_server, PS_ON_SERVER: on_server}

    @cached_property
    @abstractmethod
    def full(self) -> Parts:
        """The empty servers, `loosened`."""

    def cheapest(
        self, block: int, free: Parts, prices: Parts, limits: Limits, slack: float = 0.0
    ) -> Response | None:
        """Best schedule of a job on what is free, by slot, within limits on its features."""
        servers, _, slots = prices.first.shape
        table, base, earliest = self.table(block), self.end_costs(block), self.earliest(block)
        if any(low > high for low, high in limits.values()):
            return None
        keep = np.ones(len(table), dtype=bool)
        for feature, values in (
            (WORKERS, table.workers), (WORKER_TYPE, table.worker_type), (PS_TYPE, table.ps_type),
        ):  # fmt: skip
            low, high = window_of(limits, feature)
            keep &= (low <= values) & (values <= high)
        table = table if keep.all() else table.take(keep)
        starts, ends = (
            (max(low, earliest), min(high, slots))
            for low, high in (window_of(limits, START), window_of(limits, COMPLETES))
        )
        ranges = {name: no_limits(servers) for name in (ON_SERVER, PS_ON_SERVER)}
        for feature, (low, high) in limits.items():
            if feature.name == PS_ON_SERVER and low > 0 and not self.kinds.has_ps:
                return None
            if feature.name in ranges:
                ranges[feature.name].low[feature.index] = low
                ranges[feature.name].high[feature.index] = high
        workers, ps = np.zeros(servers, dtype=np.int64), np.zeros(servers, dtype=np.int64)
        cost, mode, start = cheapest_window(
            base, starts, ends, tuple(table.columns), tuple(self.kinds), tuple(free), tuple(prices),
            slack, tuple(ranges[ON_SERVER]), tuple(ranges[PS_ON_SERVER]), np.inf, False,
            workers, ps,
        )  # fmt: skip
        if mode < 0:
            return None
        last = start + int(table.duration[mode]) - 1
        ps_type = int(table.ps_type[mode]) if self.kinds.has_ps else -1
        row = WindowRow(start, last, int(table.worker_type[mode]), ps_type, workers, ps)
        return self.response(self.sign * float(cost), self.sign * float(base[last]), row)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of a job within limits, at full capacity, without the outside option."""
        return self.cheapest(block, self.full, self.parts(prices), limits)

    def response(self, value: float, objective: float, row: WindowRow) -> Response:
        """A row as a response."""
        return Response(value, objective, *self.place_use(row), (row,))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Value of every feature of a schedule that is not 0."""
        row: WindowRow = response.plan[0]
        found = {
            COMPLETES: row.last,
            START: row.first,
            WORKERS: row.num_workers,
            WORKER_TYPE: row.worker_type,
            PS_TYPE: max(0, row.ps_type),
        }
        for name, counts in ((ON_SERVER, row.workers), (PS_ON_SERVER, row.ps)):
            for server in np.flatnonzero(counts).tolist():
                found[Feature(name, (server,))] = int(counts[server])
        return found

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Return the prices: the layout is that of servers."""
        return prices
