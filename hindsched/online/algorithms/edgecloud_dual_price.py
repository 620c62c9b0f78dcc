"""``dual-price`` in the edgecloud family: every job must finish, so the horizon can grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hindsched.errors import SolveFailed
from hindsched.online.dual_price import DualPrice
from hindsched.solutions.base import Assignment
from hindsched.solvers.pricing.base import BlockOracle, build_oracle

DOUBLINGS = 12
"""How often the horizon is doubled before a job counts as impossible to place."""


class EdgecloudDualPrice(DualPrice):
    """Best responses to the duals of the relaxed program without migration.

    A job that finds no room within the horizon makes the horizon twice as long instead of being
    refused. Once placed, a job keeps its slots: this algorithm does not preempt.
    """

    def _respond(self, oracle: BlockOracle, block: int) -> list[Assignment] | None:
        for _ in range(DOUBLINGS):
            if oracle.rows.size != self._residual.size:
                cluster = self._environment.cluster.with_jobs(oracle.instance.jobs)
                formulation = self._environment.formulation
                oracle = build_oracle(cluster, formulation, rows="servers")
            rows = super()._respond(oracle, block)
            if rows is not None:
                return rows
            self._lengthen()
        raise SolveFailed(f"dual-price finds no place for {oracle.block_name(block)}")

    def _lengthen(self) -> None:
        """Double the horizon; the new slots are free and cost nothing."""
        cluster = self._environment.cluster
        longer = cluster.model_copy(update={"horizon": 2 * cluster.horizon})
        self._environment = replace(self._environment, cluster=longer)
        layout = build_oracle(longer, self._environment.formulation, rows="servers").rows
        self._prices = layout.pack(_widened(self._layout.unpack(self._prices), cluster.horizon))
        used = self._layout.capacity - self._residual
        wide = layout.pack(_widened(self._layout.unpack(used), cluster.horizon))
        self._residual = layout.capacity - wide
        self._layout = layout


def _widened(arrays: dict[str, Any], width: int) -> dict[str, Any]:
    return {name: np.pad(array, ((0, 0), (0, width))) for name, array in arrays.items()}
