"""``dual-price``: the duals of a linear relaxation as posted prices, in every family.

At each arrival the relaxation of the family's offline program over the jobs seen so far, with all
commitments fixed, is solved; its capacity duals are posted and each arriving job takes its best
response on what is left. Written once: the family gives the program, the duals' place in its price
vector and the oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pyomo.common.gc_manager import PauseGC

from hindsched.arrays import Floats
from hindsched.instances.base import Instance, JobRecord
from hindsched.online.protocol import (
    Capabilities,
    Count,
    Decision,
    Environment,
    OnlineAlgorithm,
    Report,
)
from hindsched.solutions.base import Assignment
from hindsched.solvers.bounds.schedule_prices import schedule_prices
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.rolling import RollingProgram
from hindsched.solvers.oracles.base import PlacingOracle, placing_oracle
from hindsched.solvers.oracles.rows import PriceRow, Rows


class DualPrice(OnlineAlgorithm):
    """Best responses to the capacity duals of the relaxation over the jobs seen so far.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation: the result does not depend on the machine. One that ends
        without duals is counted in the report as ``relaxations_without_duals`` and the last posted
        prices stay.
    """

    over_schedules: ClassVar[bool] = False  # the relaxation over whole schedules
    card = Capabilities(commits_at_arrival=True)

    def __init__(self, iterations: Count = 100_000) -> None:
        self.iterations = iterations
        self.options = SolveOptions(solver_options={"simplex_iteration_limit": iterations})

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster and prices 0."""
        self._environment = environment
        oracle = self.build_oracle(environment.cluster, environment.formulation)
        self._prices = 0.0 * oracle.rows.capacity
        self._residual = oracle.rows.capacity.copy()
        self._layout = oracle.rows
        self._rolling = None
        if not self.over_schedules:
            self._rolling = RollingProgram(
                environment.cluster, environment.formulation, relax=True, options=self.options
            )
        self._without_duals = 0
        self._relaxations = 0

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Solve the relaxation once for all arrivals of the slot, then let each job respond."""
        if not arrivals:
            return Decision()
        known = self._environment.cluster.with_jobs(arrivals)
        oracle = self.build_oracle(known, self._environment.formulation)
        prices = self._duals(slot, arrivals, oracle)
        self._relaxations += 1
        self._without_duals += prices is None
        if prices is not None:
            self._prices = prices
        new: dict[str, list[Assignment]] = {}
        rejected: list[str] = []
        for block, job in enumerate(arrivals):
            rows = self._respond(oracle, block)
            if rows is None:
                rejected.append(job.name)
            else:
                new[job.name] = rows
        if self._rolling is not None:
            self._rolling.commit(new, whole=new, rejected=rejected)
        return Decision(new, tuple(new), tuple(rejected))

    def _duals(
        self, slot: int, arrivals: tuple[JobRecord, ...], oracle: PlacingOracle
    ) -> Floats | None:
        """Capacity duals of the relaxation with everything decided so far fixed."""
        if self._rolling is None:
            return schedule_prices(oracle, self._residual, iterations=self.iterations)
        with PauseGC():  # the program is no garbage before its prices are read, and gone after it
            self._rolling.add(arrivals)
            self._rolling.advance(slot)
            prices = self._rolling.solve().prices
        if prices is None:
            return None
        # programs whose jobs may pause have rows of the whole cluster: on each server their prices
        return self._layout.pack({
            rows.name: np.broadcast_to(prices[rows.name], rows.shape)
            for rows in self._layout.sets if rows.name in prices
        })  # fmt: skip

    def build_oracle(self, cluster: Instance, formulation: str) -> PlacingOracle:
        """Oracle over the jobs of `cluster` with one linking row a server."""
        return placing_oracle(cluster, formulation)

    def _respond(self, oracle: PlacingOracle, block: int) -> list[Assignment] | None:
        response = oracle.best_response(block, self._prices, self._residual)
        if response is None or response.plan is None:
            return None
        if oracle.optional and response.value <= 0:
            return None
        self._residual[response.rows] -= response.amounts
        return oracle.assignments(block, response)

    def lengthen(self, layout: Rows) -> None:
        """Take prices and what is left to rows of more slots (the last axis), free and unpriced."""
        prices, residual = 0.0 * layout.capacity, layout.capacity.copy()
        for longer, known in ((prices, self._prices), (residual, self._residual)):
            parts = layout.unpack(longer)
            for name, values in self._layout.unpack(known).items():
                parts[name][..., : values.shape[-1]] = values
        self._prices, self._residual, self._layout = prices, residual, layout

    def report(self) -> Report:
        """Count the relaxations solved and those that gave no duals."""
        return {
            "relaxations": self._relaxations,
            "relaxations_without_duals": self._without_duals,
            "iterations_a_relaxation": self.iterations,
        }

    def prices(self) -> dict[str, Floats]:
        """Last posted prices by row set."""
        return self._layout.unpack(self._prices)

    def price_path(self) -> Sequence[PriceRow]:
        """Last posted prices by slot and resource."""
        return self._layout.mean_by_slot(self._prices)
