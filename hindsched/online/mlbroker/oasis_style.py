"""``oasis-style``: each job takes the placement of least payment at given unit prices."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.mlbroker.dynamics import Broker
from hindsched.solvers.families.mlbroker.slot import (
    ONLINE_NODE_LIMIT,
    best_responses,
    priced_block,
    tiers_of,
)
from hindsched.solvers.kernels.mlbroker.geo_placement import best_placement
from hindsched.solvers.kernels.mlbroker.geo_relocation import average_prices


class OasisStyle(Broker):
    """Exact best response of every job, none of them seeing the volume discount it helps to earn.

    Parameters
    ----------
    prices : {"unit", "marginal"}
        ``unit``: the full price a, as the paper runs it. ``marginal``: jobs choose one after the
        other at the average price that joining the earlier ones in a centre would have.
    """

    def __init__(self, prices: Literal["unit", "marginal"] = "unit") -> None:
        self.prices_seen = prices

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Let each job respond."""
        if self.prices_seen == "unit":
            return best_responses(view, launch, view.unit)
        workers = np.zeros(view.data.shape, dtype=np.int64)
        ps = np.zeros(len(view.jobs), dtype=np.int64)
        used = np.zeros(view.unit.shape)
        for j in range(len(view.jobs)):
            worker_price, ps_price = average_prices(
                int(view.needed[j]), view.worker[j], view.server[j], used, tiers_of(view)
            )
            block = priced_block(view, j, worker_price, ps_price, launch[j])
            _, _, workers[j], ps[j] = best_placement(block, ONLINE_NODE_LIMIT, np.inf)
            used += np.outer(workers[j], view.worker[j])
            used[ps[j]] += view.server[j]
        return workers, ps
