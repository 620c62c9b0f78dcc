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
out altogether.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.mlbroker.solution import MlbrokerSolution
from hindsched.solvers.kernels.mlbroker.geo_placement import best_placement
from hindsched.solvers.pricing.base import BlockOracle, Response
from hindsched.solvers.pricing.rows import Rows, RowSet

ORACLE_ROWS = ("servers",)
CANCELLED = 1e-2
"""Share of the rounding allowance for numbers that may cancel: 1e-11 of each."""
NODE_LIMIT = 2_000
"""Nodes of one job's slot; beyond it the bound of the open nodes is used."""
BROKER = "broker"


@dataclass(frozen=True)
class Plan:
    """A job's placement over its life: workers (life, R) and PS positions (life,)."""

    workers: Ints
    ps: Ints


class MlbrokerOracle(BlockOracle):
    """Best responses of the jobs and of the broker.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    formulation : {"tight", "paper"}
        Which problem is bounded.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: MlbrokerInstance
    layout = "servers"

    def __init__(self, instance: MlbrokerInstance, formulation: str) -> None:
        self.instance, self.formulation = instance, formulation
        centers = tuple(center.name for center in instance.datacenters)
        jobs = tuple(job.name for job in instance.jobs)
        slots = tuple(range(1, instance.horizon + 1))
        shape = (len(centers), len(jobs), len(slots))
        place: tuple[str, tuple[Any, ...]] = ("datacenter", centers)
        who: tuple[str, tuple[Any, ...]] = ("job", jobs)
        when: tuple[str, tuple[Any, ...]] = ("slot", slots)
        kind: tuple[str, tuple[Any, ...]] = ("resource", instance.resources)
        kinds = len(instance.resources)
        self.rows = Rows(
            [
                RowSet(
                    "discount", (place, kind, who, when), np.zeros((shape[0], kinds, *shape[1:]))
                ),
                RowSet("deployment", (place, who, when), np.zeros(shape)),
            ]
        )
        weights = instance.weights
        self._unit = weights[1] * instance.unit_price
        self._discounted = weights[1] * instance.discounted_price
        self._gain = weights[1] * (instance.unit_price - instance.discounted_price)
        self._fee = weights[1] * instance.tier_fee
        self._launch = weights[2] * instance.deployment
        self._distance = weights[3] * instance.transfer_price * (formulation != "paper")
        self._arcs = [
            SlotData.of(instance, [job], [job.data_gb[0]]).arc[0] for job in instance.jobs
        ]
        self._most = (
            np.maximum(instance.workers_needed, 1)[:, :, None] * instance.worker_demand[:, None]
            + instance.ps_demand[:, None]
        ) * instance.alive[:, :, None]  # H, (J, T, K)

    @property
    def num_blocks(self) -> int:
        """One block a job, and the broker's."""
        return len(self.instance.jobs) + 1

    def block_name(self, block: int) -> str:
        """Name of the job, or ``broker``."""
        jobs = self.instance.jobs
        return BROKER if block == len(jobs) else str(jobs[block].name)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best response of a job or of the broker; there is no capacity to leave a residual of."""
        arrays = self.rows.unpack(prices)
        if block == len(self.instance.jobs):
            return self._broker(arrays["discount"])
        return self._job(block, arrays["discount"], arrays["deployment"])

    def _job(self, job: int, discount: Floats, deployment: Floats) -> Response:
        record = self.instance.jobs[job]
        first, last = record.arrival - 1, record.departure
        value, _, workers, ps = self._priced(job, discount, deployment)
        bought = discount[:, :, job, first:last] < self._gain[:, :, None]  # (R, K, life)
        launched = deployment[:, job, first:last] > float(self._launch[job])
        objective, rows, amounts = self._cost_of(job, workers, ps, bought, launched)
        return Response(value, objective, rows, amounts, Plan(workers, ps))

    def _priced(
        self, job: int, discount: Floats, deployment: Floats
    ) -> tuple[float, float, Ints, Ints]:
        """Least cost of a job at prices, the size of what was summed for it, workers and PSs.

        A slot's search keeps flows to 1e-14 of the data, at a price of at most `dearest`; a
        difference of prices is right to 1e-16 of them. Both are in the size, with some room.
        """
        instance, record = self.instance, self.instance.jobs[job]
        first, last = record.arrival - 1, record.departure
        worker, server = instance.worker_demand[job], instance.ps_demand[job]
        capacity = float(instance.capacity[job])
        talk = instance.exchange[job] * self._distance
        launch = float(self._launch[job])
        arcs = self._arcs[job]
        far = float(arcs[np.isfinite(arcs)].max()) + float(talk.max()) / capacity
        terms, size = [], 0.0
        workers = np.zeros((last - first, len(instance.datacenters)), dtype=np.int64)
        ps = np.zeros(last - first, dtype=np.int64)
        mu = deployment[:, job]
        for t in range(first, last):
            price = np.minimum(self._unit, self._discounted + discount[:, :, job, t])
            later = mu[:, t + 1] if t + 1 < last else 0.0
            presence = mu[:, t] - later
            terms += np.minimum(presence, 0.0).tolist()
            terms += np.minimum(launch - mu[:, t], 0.0).tolist()
            each, used = price @ worker, np.maximum(presence, 0.0)
            _, bound, workers[t - first], ps[t - first] = best_placement(
                instance.data[job, t], capacity, instance.workers_needed[job, t], each,
                price @ server, talk, arcs, used, NODE_LIMIT, np.inf,
            )  # fmt: skip
            terms.append(bound)
            dearest = far + float(each.max() + used.max()) / capacity
            size += bound + CANCELLED * float((mu[:, t] + later).sum() + launch)
            size += CANCELLED * dearest * float(instance.data[job, t].sum() + capacity)
        return math.fsum(terms), size + math.fsum(map(abs, terms)), workers, ps

    def _cost_of(
        self, job: int, workers: Ints, ps: Ints, bought: Any, launched: Any, keeps: bool = False
    ) -> tuple[float, Ints, Floats]:
        """Objective and use of the rows of a job's plan.

        Parameters
        ----------
        bought : ndarray of bool, shape (R, K, life)
            Where the lower price is taken.
        launched : ndarray of bool, shape (R, life), or None
            z; None derives it from the plan.
        keeps : bool
            Whether v stays 1 once it is 1, as (8) is printed.
        """
        instance, record = self.instance, self.instance.jobs[job]
        first, last = record.arrival - 1, record.departure
        centers = len(instance.datacenters)
        is_ps = ps[:, None] == np.arange(centers)
        present = (workers > 0) | is_ps
        if keeps:
            present = np.logical_or.accumulate(present, axis=0)
        before = np.vstack([np.zeros((1, centers), dtype=bool), present[:-1]])
        z = (present & ~before).T if launched is None else launched
        used = (
            workers[:, :, None] * instance.worker_demand[job]
            + is_ps[:, :, None] * instance.ps_demand[job]
        ).transpose(1, 2, 0)  # (R, K, life)
        discounted = np.minimum(used * bought, self._most[job, first:last].T[None])
        single = MlbrokerSolution(
            instance.with_jobs((record,)),
            _placed(workers, first, instance.horizon),
            _placed(ps, first, instance.horizon, -1),
            self.formulation,
        )
        w, costs = instance.weights, single.costs.by_cost
        objective = w[0] * costs["transfer"] + w[3] * costs["communication"]
        objective += float(
            (self._unit[:, :, None] * used - self._gain[:, :, None] * discounted).sum()
        )
        objective += float(self._launch[job]) * int(z.sum())
        arrays = {"discount": discounted, "deployment": present.T * 1.0 - before.T - z}
        rows, amounts = [], []
        for name, values in arrays.items():
            at = np.argwhere(values != 0)
            full = [at[:, :-1].T, np.full((1, len(at)), job), at[:, -1:].T + first]
            shape = next(s.shape for s in self.rows.sets if s.name == name)
            index = np.ravel_multi_index(tuple(np.vstack(full).astype(np.int64)), shape)
            rows.append(self.rows.slices[name].start + index)
            amounts.append(values[tuple(at.T)])
        return float(objective), np.concatenate(rows).astype(np.int64), np.concatenate(amounts)

    def _broker(self, discount: Floats) -> Response:
        earned = np.einsum("rkjt,jtk->trk", discount, self._most)
        bought = earned > self._fee
        value = float(np.minimum(0.0, self._fee - earned).sum())
        return self._broker_response(bought, value, float((self._fee * bought).sum()))

    def _broker_response(self, bought: Any, value: float, objective: float) -> Response:
        """Use -H u of the broker's block at tiers `bought`, shape (T, R, K)."""
        use = -np.einsum("trk,jtk->rkjt", bought.astype(float), self._most)
        rows = np.flatnonzero(use).astype(np.int64)
        start = self.rows.slices["discount"].start
        return Response(value, objective, rows + start, use.ravel()[rows], bought)

    def use_of(self, solution: Solution) -> list[Response | None]:
        """A solution's plans as use of the rows; the tiers are bought where they pay."""
        assert isinstance(solution, MlbrokerSolution)
        instance, costs = self.instance, solution.costs
        tier = instance.discounted_price * costs.used + instance.tier_fee
        bought = tier < instance.unit_price * costs.used  # (T, R, K)
        found: list[Response | None] = []
        total = 0.0
        for job, record in enumerate(instance.jobs):
            life = slice(record.arrival - 1, record.departure)
            objective, rows, amounts = self._cost_of(
                job, solution.workers[job, life], solution.ps[job, life],
                bought[life].transpose(1, 2, 0), None, keeps=self.formulation == "paper",
            )  # fmt: skip
            total += objective
            plan = Plan(solution.workers[job, life], solution.ps[job, life])
            found.append(Response(objective, objective, rows, amounts, plan))
        fees = solution.objective() - total
        found.append(self._broker_response(bought, fees, fees))
        return found

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a job's plan; the broker has none."""
        if not isinstance(response.plan, Plan):
            return []
        record, names = self.instance.jobs[block], [c.name for c in self.instance.datacenters]
        return [
            {
                "from": record.arrival + step,
                "to": record.arrival + step,
                "workers": {names[r]: int(placed[r]) for r in np.flatnonzero(placed)},
                "ps": names[int(center)],
            }
            for step, (placed, center) in enumerate(
                zip(response.plan.workers, response.plan.ps, strict=True)
            )
        ]

    def bound(self, prices: Floats) -> float:
        """Bound at `prices`, rounded outward by the size of all that was summed or cancelled."""
        arrays = self.rows.unpack(prices)
        discount, deployment = arrays["discount"], arrays["deployment"]
        jobs = range(len(self.instance.jobs))
        priced = [self._priced(job, discount, deployment)[:2] for job in jobs]
        earned = np.einsum("rkjt,jtk->trk", discount, self._most)
        terms = np.minimum(0.0, self._fee - earned)[earned > 0]
        fees = (self._unit + self._discounted) * self.instance.threshold
        size = np.abs(terms).sum() + CANCELLED * (earned + fees * (earned > 0)).sum()
        return self.round_outward(
            [*terms.tolist(), *(value for value, _ in priced)],
            float(size) + math.fsum(size_ for _, size_ in priced),
        )

    def responses(self, prices: Floats) -> Sequence[Response | None]:
        """Best responses of all blocks."""
        return [self.best_response(block, prices) for block in range(self.num_blocks)]

    def amortised_launches(self) -> Floats:
        """Deployment prices that spread a launch evenly over a job's life, shape (R, J, T)."""
        shape = (len(self.instance.datacenters), len(self.instance.jobs), self.instance.horizon)
        prices = np.zeros(shape)
        for j, record in enumerate(self.instance.jobs):
            life = record.departure - record.arrival + 1
            left = np.arange(life, 0, -1) / life
            prices[:, j, record.arrival - 1 : record.departure] = self._launch[j] * left
        return prices


def _placed(values: Ints, first: int, horizon: int, empty: int = 0) -> Ints:
    """Lay a life's rows into the horizon, with a leading axis of one job."""
    full = np.full((1, horizon, *values.shape[1:]), empty, dtype=np.int64)
    full[0, first : first + len(values)] = values
    return full


def build(instance: MlbrokerInstance, formulation: str, rows: str) -> MlbrokerOracle:
    """Build the oracle; data centres are not aggregated, so there is one layout."""
    return MlbrokerOracle(instance, formulation)
