"""First come, first served; and posted prices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.online.base import FamilyOnline
from hindsched.online.cluster_state import ClusterState, whole_window
from hindsched.online.engines.primal_dual import PrimalDual
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm


class FirstCome(OnlineAlgorithm):
    """The earliest booth for every car."""

    def start(self, environment: Environment) -> None:
        """Nobody has come yet."""
        cluster: Any = environment.cluster
        self._cluster = cluster
        self._free = np.full(cluster.horizon + 1, cluster.booths)

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """Give every car that arrives the first booth that is free for long enough."""
        rows = {}
        for job in arrivals:
            for first in self._cluster.starts(job):
                held = slice(first, first + job.length)
                if (self._free[held] > 0).all():
                    self._free[held] -= 1
                    rows[job.name] = [self._cluster.row(job, first)]
                    break
        return Decision(rows)


class Posted(PrimalDual):
    """A price that rises with what is taken."""

    def price_function(self, environment: Environment, rows: Any) -> Any:
        """Price of a booth in a slot, of the share of booths that is taken then."""
        return lambda index, used: used / rows.capacity[index]


ONLINE = FamilyOnline(
    algorithms={"tollbooth": Posted, "first-come": FirstCome},
    state=ClusterState,
    committed_rows=whole_window,
)
