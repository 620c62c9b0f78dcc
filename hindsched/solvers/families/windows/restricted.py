"""Gang jobs under decisions: the features of a window, and its best response within limits.

A gang job runs one mode in one window on one placement. Its features are ``completion`` and
``start`` (slots), ``workers`` (N), ``worker_type`` and ``ps_type`` (positions of the types, from 0)
and, on real servers, ``server_workers`` and ``server_ps``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.modes import Modes
from hindsched.solutions.window_row import WindowRow
from hindsched.solvers.kernels.limited_servers import no_limits
from hindsched.solvers.kernels.placement import Kinds
from hindsched.solvers.kernels.windows.restricted_window import best_limited_window
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


@dataclass(frozen=True)
class Cluster:
    """What jobs of a gang family run on, at full capacity.

    Parameters
    ----------
    capacity : ndarray, shape (servers, resources)
        Capacity of each server, `loosened`.
    kinds : Kinds
        Demands and bandwidths of workers and PSs.
    """

    capacity: Floats
    kinds: Kinds

    def features(self, servers: Sequence[str]) -> dict[str, Axes]:
        """Features of a window on these servers."""
        on_server: Axes = (("server", tuple(servers)),)
        plain = (COMPLETION, START.name, WORKERS.name, WORKER_TYPE.name, PS_TYPE.name)
        return {**dict.fromkeys(plain, ()), ON_SERVER: on_server, PS_ON_SERVER: on_server}

    def best_within(
        self, table: Modes, base: Floats, earliest: int, prices: Floats, limits: Limits
    ) -> tuple[float, WindowRow] | None:
        """Cheapest schedule of a job within limits.

        Parameters
        ----------
        table : Modes
            The job's modes.
        base : ndarray, shape (slots + 1,)
            Cost by the last slot of the window, 1-based.
        earliest : int
            First slot it may use.
        prices : ndarray, shape (slots, servers, resources)
            Unit prices.
        limits : mapping
            Smallest and largest value allowed, by feature.

        Returns
        -------
        cost, row
            None if there is no schedule.
        """
        slots, servers = prices.shape[:2]
        if any(low > high for low, high in limits.values()):
            return None
        keep = np.ones(len(table), dtype=bool)
        for feature, values in (
            (WORKERS, table.workers),
            (WORKER_TYPE, table.worker_type),
            (PS_TYPE, table.ps_type),
        ):
            low, high = window_of(limits, feature)
            keep &= (low <= values) & (values <= high)
        if not keep.all():
            if not keep.any():
                return None
            table = table.take(keep)
        low, high = window_of(limits, START)
        starts = (max(low, earliest), min(high, slots))
        low, high = window_of(limits, COMPLETES)
        ends = (max(low, earliest), min(high, slots))
        ranges = {name: no_limits(servers) for name in (ON_SERVER, PS_ON_SERVER)}
        for feature, (low, high) in limits.items():
            if feature.name == PS_ON_SERVER and low > 0 and not self.kinds.has_ps:
                return None
            if feature.name in ranges:
                ranges[feature.name].low[feature.index] = low
                ranges[feature.name].high[feature.index] = high
        prefix = np.zeros((slots + 1, *prices.shape[1:]))
        np.cumsum(prices, axis=0, out=prefix[1:])
        workers, ps = np.zeros(servers, dtype=np.int64), np.zeros(servers, dtype=np.int64)
        cost, mode, start = best_limited_window(
            base, starts, ends, tuple(table.columns), tuple(self.kinds), self.capacity, prefix,
            tuple(ranges[ON_SERVER]), tuple(ranges[PS_ON_SERVER]), workers, ps,
        )  # fmt: skip
        if mode < 0:
            return None
        duration = int(table.duration[mode])
        ps_type = int(table.ps_type[mode]) if self.kinds.has_ps else -1
        last = start + duration - 1
        if not self.kinds.has_ps:
            ps[:] = 0
        row = WindowRow(start, last, int(table.worker_type[mode]), ps_type, workers, ps)
        return float(cost), row


def window_features(row: WindowRow) -> dict[Feature, int]:
    """Value of every feature of a schedule that is not 0."""
    found = {
        COMPLETES: row.last,
        START: row.first,
        WORKERS: int(row.workers.sum()),
        WORKER_TYPE: row.worker_type,
        PS_TYPE: max(0, row.ps_type),
    }
    for name, counts in ((ON_SERVER, row.workers), (PS_ON_SERVER, row.ps)):
        for server in np.flatnonzero(counts).tolist():
            found[Feature(name, (server,))] = int(counts[server])
    return found
