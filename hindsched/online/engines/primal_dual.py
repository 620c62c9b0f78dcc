"""The shared primal-dual engine: posted prices, a best response a job, admit on positive payoff.

A family says how prices follow from what is used (`PriceFunction`); everything else is here. The
best response comes from the pricing oracle or, with ``engine="model"``, from the same block as an
integer program solved through the solver door.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import JobRecord
from hindsched.json_types import JsonObject
from hindsched.online.protocol import Capabilities, Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.base import Assignment
from hindsched.solvers.base import placing_oracle
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.oracles.base import PlacingOracle, Response
from hindsched.solvers.oracles.rows import PriceRow, Rows

Engine = Literal["oracle", "model"]


PriceFunction = Callable[[Ints, Floats], Floats]
"""Posted prices of linking rows (flat indices) when so much of each is used."""


class PrimalDual(OnlineAlgorithm):
    """Posted prices on the linking rows; each job takes its best response or leaves.

    Parameters
    ----------
    engine : {"oracle", "model"}
        Who computes best responses; their decisions are equal.
    """

    card = Capabilities(commits_at_arrival=True)

    least_payoff: float = 0.0  # a job is admitted if its payoff is above this

    def __init__(self, engine: Engine = "oracle") -> None:
        self.engine: str = engine

    @abstractmethod
    def price_function(self, environment: Environment, rows: Rows) -> PriceFunction:
        """Prices as a function of use, from the cluster and the declared estimates."""

    def start(self, environment: Environment) -> None:
        """Post the prices of the empty cluster."""
        self._environment = environment
        cluster, formulation = environment.cluster, environment.formulation
        self._rows = placing_oracle(cluster, formulation).rows  # one a server
        self._used = np.zeros(self._rows.size)
        self.residual = self._rows.capacity.copy()
        self._price = self.price_function(environment, self._rows)
        self.posted_prices = self._price(np.arange(self._rows.size), self._used)
        self._ledger: list[JsonObject] = []

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Offer each arriving job its best response, in the order of arrival."""
        if not arrivals:
            return Decision()
        known = self._environment.cluster.with_jobs(arrivals)
        oracle = placing_oracle(known, self._environment.formulation)
        assignments: dict[str, Sequence[Assignment]] = {}
        rejected: list[str] = []
        for block, job in enumerate(arrivals):
            response = self._respond(oracle, block)
            if response is None or response.plan is None or response.value <= self.least_payoff:
                rejected.append(job.name)
                continue
            assignments[job.name] = oracle.assignments(block, response)
            self._admit(job.name, slot, response)
        return Decision(assignments, tuple(assignments), tuple(rejected))

    def _respond(self, oracle: PlacingOracle, block: int) -> Response | None:
        if self.engine == "model":
            return model_response(oracle, block, self.posted_prices, self.residual)
        return self.respond_by_oracle(oracle, block)

    def respond_by_oracle(self, oracle: PlacingOracle, block: int) -> Response | None:
        """Best response at the posted prices on what is left."""
        return oracle.best_response(block, self.posted_prices, self.residual)

    def _admit(self, name: str, slot: int, response: Response) -> None:
        """Book the use, raise the prices and write the ledger."""
        rows = response.rows
        before = float(self.posted_prices[rows] @ self._rows.capacity[rows])
        np.add.at(self._used, rows, response.amounts)
        self.residual = self._rows.capacity - self._used
        touched = np.unique(rows)
        self.posted_prices[touched] = self._price(touched, self._used[touched])
        after = float(self.posted_prices[rows] @ self._rows.capacity[rows])
        self._ledger.append(
            {"job": name, "slot": slot, "payoff": response.value, "primal": response.objective,
             "dual": response.value + after - before}
        )  # fmt: skip

    def report(self) -> Report:
        """Ledger of primal and dual increments, one row an admission."""
        return {"ledger": list(self._ledger)}

    def prices(self) -> Mapping[str, object]:
        """Final posted prices by row set."""
        return self._rows.unpack(self.posted_prices.copy())

    def price_path(self) -> Sequence[PriceRow]:
        """Posted prices by slot and resource."""
        return self._rows.mean_by_slot(self.posted_prices)
