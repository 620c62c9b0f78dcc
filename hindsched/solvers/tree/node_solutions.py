"""Solutions near the nodes of a branching: the search follows the nodes' prices and schedules.

At a node the linear program says which jobs to run and roughly when, and its prices what capacity
is worth there. Jobs are inserted on real servers in the program's order at those prices, and the
neighbourhood search goes on under them, in turn from its best solution and from the inserted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.door.work import now
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES
from hindsched.solvers.search import NeighbourhoodSearch, Search
from hindsched.solvers.tree.branching import Share

MULTIPLES = (1.0, 0.6, 0.2)
"""Multiples of a node's prices at which jobs are inserted."""
RANDOM_TRIES, NOISE = 12, 0.3
"""Further insertions in random orders, and how far prices are moved for them, relatively."""
SHARE_OF_TIME = 0.25
"""Part of the time since the last node that the neighbourhood search may take, and of all the time
that looking for solutions may take."""
PATIENCE = 3.0
"""About how many calls in a row that find nothing halve that share."""


class NodeSolutions:
    """Looks for solutions near nodes.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle in the layout that the nodes are bounded in.
    servers : BlockOracle
        Oracle with one row a server, on which schedules are placed.
    search : Search
        The search to go on with.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(
        self,
        oracle: BlockOracle,
        servers: BlockOracle,
        search: Search,
        interrupted: Event,
    ) -> None:
        self.oracle, self.servers, self.search = oracle, servers, search
        self._interrupted = interrupted
        self._sign = 1.0 if oracle.sense == "max" else -1.0
        self._begun = self._last = now()
        self._spent = 0.0
        self._calls = self._in_vain = 0
        self._best: float | None = None
        self._random = np.random.Generator(np.random.PCG64(0))

    def __call__(self, prices: Floats, shares: Sequence[Share]) -> Solution | None:
        """Best solution found near a node, or None; none is looked for where that took too long."""
        begun = now()
        if self._spent > self._share() * (begun - self._begun):
            return None
        try:
            found = self._look(prices, shares)
        finally:
            self._spent += now() - begun
        value = None if found is None else self._sign * found.objective()
        better = value is not None and (self._best is None or value > self._best)
        self._best, self._in_vain = (value, 0) if better else (self._best, self._in_vain + 1)
        return found

    def _share(self) -> float:
        """The share of the time: less, the longer nothing better was found."""
        return SHARE_OF_TIME * PATIENCE / (PATIENCE + self._in_vain)

    def _look(self, prices: Floats, shares: Sequence[Share]) -> Solution | None:
        on_servers = self.oracle.prices_on_servers(prices)
        inserted = self._insert(on_servers, shares)
        found = [inserted, self._improve(on_servers, inserted)]
        solutions = [solution for solution in found if solution is not None]
        key = max if self._sign > 0 else min
        return key(solutions, key=lambda one: one.objective()) if solutions else None

    def _insert(self, prices: Floats, shares: Sequence[Share]) -> Solution | None:
        """Insert the jobs that the program runs, surest and earliest first, then the others."""
        blocks = self.servers.num_blocks
        runs, ends = np.zeros(blocks), np.zeros(blocks)
        for share in shares:
            if share.block < blocks and share.features is not None:
                runs[share.block] += share.share
                ends[share.block] += share.share * share.features.get(COMPLETES, 0)
        ends = np.divide(ends, runs, out=np.full(blocks, np.inf), where=runs > 1e-9)
        surest, earliest = np.lexsort((ends, -runs.round(6))), np.lexsort((-runs, ends))
        tries = [(order, m * prices) for order in (surest, earliest) for m in MULTIPLES]
        for _ in range(RANDOM_TRIES):
            order = np.lexsort((self._random.random(blocks), -runs.round(6)))
            noise = self._random.uniform(1 - NOISE, 1 + NOISE, prices.size)
            tries.append((order, float(self._random.choice(MULTIPLES)) * noise * prices))
        best: tuple[float, list[Response | None]] | None = None
        for order, at in tries:
            placed = self._fill(order, at)
            if placed is None:
                continue
            value = sum(response.objective for response in placed if response is not None)
            if best is None or self._sign * (value - best[0]) > 0:
                best = value, placed
        if best is None:
            return None
        rows = {
            self.servers.block_name(block): self.servers.assignments(block, response)
            for block, response in enumerate(best[1])
            if response is not None
        }
        return build_solution(self.servers.instance, rows, self.servers.formulation)

    def _fill(self, order: np.ndarray, prices: Floats) -> list[Response | None] | None:
        """Schedules inserted in this order; None if a job that must be served is not."""
        residual = self.servers.rows.capacity.astype(float).copy()
        placed: list[Response | None] = [None] * len(order)
        for block in order.tolist():
            response = self.servers.best_response(block, prices, residual)
            if response is None or response.plan is None:
                if not self.servers.optional:
                    return None
                continue
            if self.servers.optional and response.value <= 0:
                continue
            np.subtract.at(residual, response.rows, response.amounts)
            placed[block] = response
        return placed

    def _improve(self, prices: Floats, inserted: Solution | None) -> Solution | None:
        """Search on under the node's prices for a part of the time.

        Every other time from what was inserted, which serves the jobs that the node serves.
        """
        begun = now()
        deadline = begun + self._share() * (begun - self._last)
        self._calls += 1
        search: Search = self.search
        if inserted is not None and self._calls % 2:
            search = NeighbourhoodSearch(self.servers, prices, seed=self._calls, start=inserted)
        else:
            search.set_prices(prices)
        improved = search.improve(lambda: self._interrupted.is_set() or now() >= deadline)
        self._last = now()
        return search.solution() if improved else None
