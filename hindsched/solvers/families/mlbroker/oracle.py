"""mlbroker's pricing oracle: a job's exact best response over its life, and the broker's.

Linking rows of the ``tight`` program, both with right side 0:

- ``discount`` over (datacenter, resource, job, slot): ``w <= H u``, units bought at the lower price
  only where the fee e is paid;
- ``deployment`` over (datacenter, job, slot): ``v(t) - v(t-1) <= z``, (8h).

At prices lambda and mu a job pays ``a - max(0, a - b - lambda)`` per unit and
``mu(t) - mu(t+1)`` for being present, so its slots are independent and each is solved exactly by
branch and bound. One more block, ``broker``, holds the tiers: ``sum min(0, e - sum lambda H)``.

Where the oracle is not exact it errs outward: presence that is rewarded (mu rising) is taken
without being used; a branch and bound that meets its node limit gives the bound of its open nodes;
and for ``paper``, (8) as printed, connections of surplus workers are free, so communication is left
out altogether. A branching of ``tight`` splits a job's `workers` and `ps` in a centre in a slot,
and whether a `tier`'s fee is paid; H is then the most that the decisions leave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.mlbroker.sets import most_rented
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, empty_placements
from hindsched.solvers.kernels.mlbroker.geo_placement import PricedBlock, restricted_placement
from hindsched.solvers.oracles.base import PlacingOracle, Response, RestrictableOracle
from hindsched.solvers.oracles.decisions import NEVER, Limits
from hindsched.solvers.oracles.rows import AxisLabel, Rows, RowSet, slot_labels

CANCELLED = 1e-4
"""Share of the rounding allowance for numbers that may cancel: 1e-13 of each, 500 times what adding
and comparing floats may lose."""
CLOSE = 1e-9
"""Relative difference within which one of two numbers may be the larger for all that floats say."""
NODE_LIMIT = 5_000
"""Nodes of one job's slot; beyond it the bound of the open nodes is used."""
BROKER = "broker"
Axis = tuple[str, tuple[AxisLabel, ...]]
WORKERS, PS, TIER = "workers", "ps", "tier"


class MlbrokerOracle(PlacingOracle, RestrictableOracle):
    """Best responses of the jobs and of the broker."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: MlbrokerInstance
    layout = "servers"

    def __init__(self, instance: MlbrokerInstance, formulation: str) -> None:
        self.instance, self.formulation = instance, formulation
        place: Axis = "datacenter", tuple(center.name for center in instance.datacenters)
        kind: Axis = "resource", instance.resources
        who: Axis = "job", tuple(job.name for job in instance.jobs)
        sizes = [len(labels) for _, labels in (place, kind, who)]
        slots = slot_labels(instance.horizon, sizes[0] * sizes[2] * (sizes[1] + 1))
        when: Axis = "slot", slots
        tiers = RowSet("discount", (place, kind, who, when), np.zeros((*sizes, len(slots))))
        launches = RowSet("deployment", (place, who, when), np.zeros((*sizes[::2], len(slots))))
        self.rows = Rows([tiers, launches])
        w = instance.weights
        self.unit_prices: Floats = w[1] * instance.unit_price  # a, (R, K), weighted like all here
        self._discounted: Floats = w[1] * instance.discounted_price
        self.gains: Floats = w[1] * (instance.unit_price - instance.discounted_price)
        self.fees: Floats = w[1] * instance.tier_fee
        self.launches: Floats = w[2] * instance.deployment  # c, (J,)
        if formulation == "tight":
            at = place, when
            self.features = {TIER: (place, kind, when), WORKERS: at, PS: at}
        self._distance = w[3] * instance.transfer_price * (formulation != "paper")
        self._arcs = instance.arc_prices(float(w[0]))
        most = most_rented(instance, empty_placements(instance)[0])
        self._most = most * instance.alive[:, :, None]  # H, (J, T, K)
        self._last: tuple[Floats, tuple[float, list[tuple[Ints, Ints]]]] | None = None

    @property
    def num_blocks(self) -> int:
        """One block a job, and the broker's."""
        return len(self.instance.jobs) + 1

    @property
    def num_decided(self) -> int:
        """The broker's block has decisions too."""
        return self.num_blocks

    def block_name(self, block: int) -> str:
        """Name of the job, or ``broker``."""
        jobs = self.instance.jobs
        return BROKER if block == len(jobs) else str(jobs[block].name)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best response of a job or of the broker; there is no capacity to leave a residual of."""
        return self.restricted_response(block, prices, {})

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best response of a job within its workers and PSs, or of the broker within its tiers."""
        arrays = self.rows.unpack(prices)
        discount, deployment = arrays["discount"], arrays["deployment"]
        if block == len(self.instance.jobs):
            _, worth, bought = self._tiers(discount, {block: limits})
            value, plan = float(worth.sum()), bought
            rows, amounts = self._broker(bought)
        else:
            value, _, workers, ps = self._priced(block, discount, deployment, limits)
            if math.isinf(value):
                return None
            life, plan = self._life(block), (workers, ps)
            bought = discount[:, :, block, life] < self.gains[:, :, None]  # (R, K, life)
            launched = deployment[:, block, life] > float(self.launches[block])
            _, rows, amounts = self._use(block, workers, ps, bought, launched)
        if math.isinf(value):
            return None
        return Response(value, value - float(prices[rows] @ amounts), rows, amounts, plan)

    def bound_within(self, prices: Floats, limits: Mapping[int, Limits]) -> float | None:
        """Bound at `prices` on the solutions within limits, rounded outward."""
        return self.priced_within(prices, limits)[0]

    def priced_within(
        self, prices: Floats, limits: Mapping[int, Limits]
    ) -> tuple[float, list[tuple[Ints, Ints]]]:
        """`bound_within`, and each job's best workers (life, R) and places of its PS (life,)."""
        arrays = self.rows.unpack(prices)
        discount, deployment = arrays["discount"], arrays["deployment"]
        priced = [
            self._priced(j, discount, deployment, limits.get(j, {}))
            for j in range(len(self.instance.jobs))
        ]
        earned, worth, _ = self._tiers(discount, limits)
        terms = worth[worth != 0]
        fees = (self.unit_prices + self._discounted) * self.instance.threshold
        fees = fees * (earned > (1 - CLOSE) * self.fees)  # others are no term
        size = np.abs(terms).sum() + CANCELLED * (earned + fees).sum()
        bound = self.round_outward(
            [*terms.tolist(), *(value for value, _, _, _ in priced)],
            float(size) + math.fsum(size_ for _, size_, _, _ in priced),
        )
        return bound, [(workers, ps) for _, _, workers, ps in priced]

    def _tiers(self, discount: Floats, limits: Mapping[int, Limits]) -> tuple[Floats, Floats, Any]:
        """What tiers earn, cost within limits (inf: nothing is), and who pays the fee.

        Each of shape (T, R, K).
        """
        earned = np.einsum("rkjt,rkjt->trk", discount, self.most_use(limits))
        bought = earned > self.fees
        empty = np.zeros(bought.shape, dtype=bool)
        for feature, (low, high) in limits.get(len(self.instance.jobs), {}).items():
            if feature.name == TIER:
                r, k, t = feature.index
                bought[t, r, k] = low > 0 or (bought[t, r, k] and high > 0)
                empty[t, r, k] = low > min(high, 1)
        return earned, np.where(empty, np.inf, np.where(bought, self.fees - earned, 0.0)), bought

    def within(self, job: int, t: int, limits: Limits) -> tuple[Ints, Ints, Any, Any, bool]:
        """Least and most workers by centre, where the PS may and must be, if nothing can."""
        size, empty = len(self.instance.datacenters), False
        least, most = np.zeros(size, dtype=np.int64), np.full(size, NEVER)
        may, must = np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
        for feature, (low, high) in limits.items():
            if feature.name == TIER or feature.index[1] != t:
                continue
            r, top = feature.index[0], 1
            if feature.name == WORKERS:
                least[r], most[r], top = low, high, self.crew(job, t)
            else:
                may[r], must[r] = high > 0, low > 0
            empty |= low > min(high, top)
        if must.any():
            may &= must
        return least, most, may, must, bool(empty or must.sum() > 1 or not may.any())

    def crew(self, job: int, t: int) -> int:
        """Most workers of a job in one centre in a slot: max(N, 1)."""
        return max(int(self.instance.workers_needed[job, t]), 1)

    def most_use(self, limits: Mapping[int, Limits]) -> Floats:
        """H within limits by job, shape (R, K, J, T): most that a job rents in a centre."""
        instance = self.instance
        most_used = np.repeat(
            self._most.transpose(2, 0, 1)[None], len(instance.datacenters), axis=0
        )
        for job in (job for job in limits if job < len(instance.jobs)):
            for t in range(instance.horizon)[self._life(job)]:
                _, most, may, _, _ = self.within(job, t, limits[job])
                crew = np.minimum(most, self.crew(job, t))[:, None] * instance.worker_demand[job]
                most_used[:, :, job, t] = crew + may[:, None] * instance.ps_demand[job]
        return most_used

    def _life(self, job: int) -> slice:
        record = self.instance.jobs[job]
        return slice(record.arrival - 1, record.departure)

    def priced_block(
        self, job: int, t: int, worker_price: Floats, ps_price: Floats, launch: Floats
    ) -> PricedBlock:
        """The job in slot t (from 0) at prices of a worker, of the PS and of using a centre."""
        instance = self.instance
        return PricedBlock(
            instance.data[job, t], float(instance.capacity[job]), instance.workers_needed[job, t],
            instance.workers_pinned[job, t], worker_price, ps_price,
            instance.exchange[job] * self._distance, self._arcs[job], launch,
        )  # fmt: skip

    def _priced(
        self, job: int, discount: Floats, deployment: Floats, limits: Limits
    ) -> tuple[float, float, Ints, Ints]:
        """Least cost of a job at prices, the size of what may be lost there, workers and PSs.

        A slot's search keeps flows to 1e-14 of the data, at a price of at most `dearest`; terms and
        differences of prices are right to 1e-16 of them. Both are in the size, with some room.
        """
        instance, life = self.instance, self._life(job)
        capacity = float(instance.capacity[job])
        talk, arcs = instance.exchange[job] * self._distance, self._arcs[job]
        launch = float(self.launches[job])
        far = float(arcs[np.isfinite(arcs)].max()) + float(talk.max()) / capacity
        price = np.minimum(
            self.unit_prices[:, :, None], self._discounted[:, :, None] + discount[:, :, job, life]
        ).transpose(2, 0, 1)  # (life, R, K)
        each = price @ instance.worker_demand[job]
        ps_price = price @ instance.ps_demand[job]
        mu = deployment[:, job, life].T  # (life, R)
        later = np.zeros(mu.shape)
        later[:-1] = mu[1:]
        presence = mu - later
        workers = np.zeros(mu.shape, dtype=np.int64)
        ps = np.zeros(len(mu), dtype=np.int64)
        ways = [self.within(job, life.start + step, limits) for step in range(len(mu))]
        if any(empty for *_, empty in ways):
            return math.inf, 0.0, workers, ps
        used = np.array([must | (least > 0) for least, _, _, must, _ in ways])
        barred = np.array([~may & (most == 0) for _, most, may, _, _ in ways])
        taken = np.where(used, presence, np.where(barred, 0.0, np.minimum(presence, 0.0)))
        worth = launch - mu
        more = np.where(used, 0.0, np.maximum(presence, 0.0))
        terms = [*taken.ravel().tolist(), *np.minimum(worth, 0.0).ravel().tolist()]
        for step, (least, most, may, _, _) in enumerate(ways):
            t = life.start + step
            block = self.priced_block(job, t, each[step], ps_price[step], more[step])
            _, bound, workers[step], ps[step] = restricted_placement(
                block, least, most, may, NODE_LIMIT, np.inf
            )
            if math.isinf(bound):
                return math.inf, 0.0, workers, ps
            terms.append(bound)
        dearest = far + (each.max(axis=1) + more.max(axis=1)) / capacity
        lost = float((mu + later).sum() + launch * (worth < CLOSE * launch).sum())
        lost += float(dearest @ (instance.data[job, life].sum(axis=1) + capacity))
        value = math.fsum(terms)
        return value, abs(value) + CANCELLED * (lost + math.fsum(map(abs, terms))), workers, ps

    def _use(
        self, job: int, workers: Ints, ps: Ints, bought: Any, launched: Any = None
    ) -> tuple[float, Ints, Floats]:
        """Rent of a job's plan, and its use of the rows.

        The lower price is taken where `bought`, (R, K, life); `launched` is z, (R, life), None
        derives it from the plan, in which v stays 1 once it is 1 if (8) is as printed.
        """
        instance, life = self.instance, self._life(job)
        is_ps = ps[:, None] == np.arange(workers.shape[1])
        present = (workers > 0) | is_ps
        if launched is None and self.formulation == "paper":
            present = np.logical_or.accumulate(present, axis=0)
        before = np.vstack([np.zeros_like(present[:1]), present[:-1]])
        z = (present & ~before).T if launched is None else launched
        used = (
            workers[:, :, None] * instance.worker_demand[job]
            + is_ps[:, :, None] * instance.ps_demand[job]
        ).transpose(1, 2, 0)  # (R, K, life)
        discounted = np.minimum(used * bought, self._most[job, life].T[None])
        rent = (self.unit_prices[:, :, None] * used - self.gains[:, :, None] * discounted).sum()
        flat = np.zeros(self.rows.size)
        arrays = self.rows.unpack(flat)
        arrays["discount"][:, :, job, life] = discounted
        arrays["deployment"][:, job, life] = present.T * 1.0 - before.T - z
        rows = np.flatnonzero(flat)
        return float(rent), rows, flat[rows]

    def _broker(self, bought: Bools) -> tuple[Ints, Floats]:
        """Use -H u of the broker's block at tiers `bought`, shape (T, R, K)."""
        use = -np.einsum("trk,jtk->rkjt", bought.astype(float), self._most)
        flat = self.rows.pack({"discount": use})
        rows = np.flatnonzero(flat)
        return rows, flat[rows]

    def use_of(self, solution: Solution) -> list[Response | None]:
        """A solution's plans as use of the rows; the tiers are bought where they pay."""
        assert isinstance(solution, MlbrokerSolution)
        instance, costs, w = self.instance, solution.costs, self.instance.weights
        tier = instance.discounted_price * costs.used + instance.tier_fee
        bought = tier < instance.unit_price * costs.used  # (T, R, K)
        shared_costs = w[0] * costs.transfer + w[2] * costs.deployment + w[3] * costs.communication
        responses: list[Response | None] = []
        for job in range(len(instance.jobs)):
            life = self._life(job)
            plan = solution.workers[job, life], solution.ps[job, life]
            rent, rows, amounts = self._use(job, *plan, bought[life].transpose(1, 2, 0))
            objective = rent + float(shared_costs[job].sum())
            responses.append(Response(objective, objective, rows, amounts, plan))
        fees = solution.objective() - sum(each.objective for each in responses if each is not None)
        return [*responses, Response(fees, fees, *self._broker(bought), bought)]

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a job's plan; the broker has none."""
        if block == len(self.instance.jobs):
            return []
        workers, ps = empty_placements(self.instance)
        life = self._life(block)
        workers[block, life], ps[block, life] = response.plan
        rows = MlbrokerSolution(self.instance, workers, ps).assignments()
        return rows[self.block_name(block)]

    def bound(self, prices: Floats) -> float:
        """Bound at `prices`, rounded outward by the size of all that was summed or cancelled."""
        return self.priced(prices)[0]

    def priced(self, prices: Floats) -> tuple[float, list[tuple[Ints, Ints]]]:
        """`priced_within` without limits; that of the last prices is kept."""
        if self._last is None or not np.array_equal(self._last[0], prices):
            self._last = prices.copy(), self.priced_within(prices, {})
        return self._last[1]
