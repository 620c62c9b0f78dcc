"""``dual-price``: the duals of a linear relaxation as posted prices, in every family.

Dynamic learning (Agrawal, Wang & Ye 2014; Kesselheim et al. 2014): at each arrival the relaxation
of the family's offline program over the jobs seen so far is solved, its capacity duals are posted,
and each arriving job takes its best response on what is left. Jobs that are decided already are in
it undecided, as they inform of demand, or fixed; capacity ahead is scaled by the share of its
demand that has been seen. The relaxation is one kept program, or, over whole schedules, one whose
columns the pricing oracle generates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance, JobRecord
from hindsched.online.protocol import (
    AtLeastZero,
    Capabilities,
    Count,
    Decision,
    Environment,
    OnlineAlgorithm,
    Report,
)
from hindsched.solutions.base import Assignment
from hindsched.solvers.base import placing_oracle
from hindsched.solvers.bounds.schedule_prices import schedule_prices
from hindsched.solvers.door.kept import KeptProgram
from hindsched.solvers.door.result import Status
from hindsched.solvers.oracles.base import PlacingOracle
from hindsched.solvers.oracles.rows import PriceRow, Rows

Learning = Literal["undecided", "residual"]
UNDECIDED: Learning = "undecided"
RESIDUAL: Learning = "residual"
MOST_HORIZONS = 4
"""Horizons up to which slots are added to a relaxation that is infeasible; then it has no duals, as
where storage is short, whatever the time."""


class DualPrice(OnlineAlgorithm):
    """Best responses to the capacity duals of the relaxation over the jobs seen so far.

    With jobs in random order, capacities that are large against one job, and all jobs undecided,
    the loss goes to 0 as capacities grow (Agrawal, Wang & Ye 2014, Theorem 2, for packing programs
    without time). Here jobs come in an order of time and few of them fill a server: it promises
    nothing.

    Parameters
    ----------
    learning : str
        ``undecided``: all jobs seen compete for all that there is; ``residual``: decided jobs are
        fixed and the new ones compete for what is left.
    expected : float, optional
        Jobs expected over the horizon, by which capacity ahead is scaled to the share of its demand
        that has been seen; 0: no scaling. By default as many as come at the pace so far.
    iterations : int
        Simplex iterations a relaxation: the result does not depend on the machine. One that ends
        without duals is counted in the report as ``relaxations_without_duals`` and the last posted
        prices stay.
    """

    over_schedules: ClassVar[bool] = False  # columns are generated: whole schedules
    card = Capabilities(commits_at_arrival=True)

    def __init__(
        self, learning: Learning = UNDECIDED,
        expected: AtLeastZero | None = None, iterations: Count = 100_000,
    ) -> None:  # fmt: skip
        self.learning, self.expected, self.iterations = learning, expected, iterations

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster and prices 0."""
        self._environment = environment
        oracle = self.build_oracle(environment.cluster, environment.formulation)
        self._prices = 0.0 * oracle.rows.capacity
        self._residual = oracle.rows.capacity.copy()
        self._layout = oracle.rows
        self._seen: list[JobRecord] = []
        self._decided: dict[str, list[Assignment]] = {}
        if not self.over_schedules:
            self._begin_program(environment.cluster.horizon)
        self._without_duals = 0
        self._relaxations = 0

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Solve the relaxation once for all arrivals of the slot, then let each job respond."""
        if not arrivals:
            return Decision()
        self._seen += arrivals
        oracle = self._oracle_of(arrivals)
        prices = self._schedule_duals(slot, oracle) if self.over_schedules else self._duals(slot)
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
        if self.learning == RESIDUAL and not self.over_schedules:
            for job in arrivals:
                self._decided[job.name] = new.get(job.name, [])
                self._kept.fix(job.name, self._decided[job.name])
        return Decision(new, tuple(new), tuple(rejected))

    def _begin_program(self, last: int) -> None:
        """A kept program of all jobs seen, up to slot `last`."""
        cluster, formulation = self._environment.cluster, self._environment.formulation
        self._kept = KeptProgram.relaxation(
            cluster, formulation, last=last, iterations=self.iterations
        )
        self._add_jobs()

    def _add_jobs(self) -> None:
        """Add the jobs seen that the kept program lacks, and fix the decided ones of them."""
        for job in self._seen[len(self._kept.parts) :]:
            self._kept.add(job)
            if job.name in self._decided:
                self._kept.fix(job.name, self._decided[job.name])

    def _duals(self, slot: int) -> Floats | None:
        """Capacity duals of the kept program with the arrivals of this slot."""
        self._add_jobs()
        while True:
            self._kept.scale_capacities(self._shares(slot, self._kept.last))
            status = self._kept.solve()
            longest = MOST_HORIZONS * self._environment.cluster.horizon
            if status != Status.INFEASIBLE or self._kept.last >= longest:
                break
            self._begin_program(2 * self._kept.last)  # jobs that must run need more slots
        if status != Status.OPTIMAL:
            return None
        prices = self._kept.capacity_prices()
        fitted: dict[str, Floats] = {}
        for rows in self._layout.sets:  # slots are the last axis
            if rows.name in prices:
                known, price = np.zeros(rows.shape), prices[rows.name]
                slots = min(known.shape[-1], price.shape[-1])
                known[..., :slots] = price[..., :slots]
                fitted[rows.name] = known
        return self._layout.pack(fitted)

    def _schedule_duals(self, slot: int, oracle: PlacingOracle) -> Floats | None:
        """Capacity duals of the relaxation over whole schedules."""
        capacity = self._residual
        if self.learning == UNDECIDED:
            oracle, capacity = self._oracle_of(self._seen), self._layout.capacity
        shares = self._layout.pack({
            rows.name: np.broadcast_to(self._shares(slot, rows.shape[-1]), rows.shape)
            for rows in self._layout.sets
        })  # fmt: skip
        return schedule_prices(oracle, shares * capacity, iterations=self.iterations)

    def _shares(self, slot: int, last: int) -> Floats:
        """Share of each slot's demand that has been seen, 1 up to this slot; shape (last,)."""
        seen, horizon = len(self._seen), max(slot, self._environment.cluster.horizon)
        expected = seen * horizon / slot if self.expected is None else self.expected
        pace = max(0.0, expected - seen) / max(1, horizon - slot)
        waiting = np.clip(np.arange(1, last + 1) - slot, 0, horizon - slot)
        return seen / (seen + pace * waiting)

    def _oracle_of(self, jobs: Sequence[JobRecord]) -> PlacingOracle:
        cluster = self._environment.cluster.with_jobs(tuple(jobs))
        return self.build_oracle(cluster, self._environment.formulation)

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
