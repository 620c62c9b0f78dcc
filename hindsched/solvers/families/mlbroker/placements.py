"""Integer placements of mlbroker's slots, alone and together, and their exact cost.

One slot: `tight_placement` is chord price, PS-conditioned relaxation, largest remainder;
`priced_placement` tier-price iteration: a concave two-tier bill is the least, over which tiers are
bought, of a linear bill plus fees, and with the tiers fixed each job takes its exact best response.
``launch`` of shape (J, R) is the weighted cost of using a centre: 0 where the job already runs.

All slots of an instance: `Planner` places one after the other, a launch spread over what is left of
a job's life.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.mlbroker.solution import empty_placements, used_by
from hindsched.solvers.door.work import Clock, count_work
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    SlotJobs,
    best_placement,
    placement_cost,
    priced_job,
    relaxed_best,
    round_largest_remainder,
)

ONLINE_NODE_LIMIT = 2_000
"""Nodes of a best response inside a heuristic, where no proof is needed."""
MAX_ROUNDS = 30
"""Rounds of tier-price iteration from one start."""
BrokerPlan = tuple[Ints, Ints]
"""Workers (J, T, R) and places of the PS (J, T), -1 for none."""


class SlotPlacement(NamedTuple):
    """An integer placement of a slot's jobs."""

    workers: Ints  # y, (J, R)
    ps: Ints  # position of each job's PS, (J,)
    cost: float  # exact weighted cost of the slot, launches included


def kernel_jobs(slot: SlotData, launch: Floats) -> SlotJobs:
    """The slot's jobs, as the kernels want them."""
    return SlotJobs(
        slot.data, slot.capacity, slot.needed, slot.pinned, slot.worker, slot.server, slot.exchange,
        slot.distance, slot.arc, launch, slot.unit, slot.discounted, slot.fee,
    )  # fmt: skip


def slot_cost(slot: SlotData, launch: Floats, workers: Ints, ps: Ints) -> float:
    """Exact weighted cost of an integer placement; infinite if some data finds no worker."""
    jobs, no_price = kernel_jobs(slot, launch), np.zeros(slot.num_centers)
    costs = [
        placement_cost(priced_job(jobs, j, no_price, no_price), workers[j], ps[j], np.inf)
        for j in range(len(slot.jobs))
    ]
    return slot.bill(slot.rented(workers, ps)) + math.fsum(costs)


def largest_remainder(slot: SlotData, fractional: Floats) -> Ints:
    """Round each job's workers to N in total, the largest remainders up."""
    workers = np.zeros(fractional.shape, dtype=np.int64)
    for j in range(len(slot.jobs)):
        workers[j] = round_largest_remainder(fractional[j], slot.needed[j], slot.pinned[j])
    return workers


def best_responses(slot: SlotData, launch: Floats, unit_price: Floats) -> tuple[Ints, Ints]:
    """Exact best response of every job at linear unit prices (R, K): workers and PS."""
    jobs = kernel_jobs(slot, launch)
    workers = np.zeros(slot.data.shape, dtype=np.int64)
    ps = np.zeros(len(slot.jobs), dtype=np.int64)
    for j in range(len(slot.jobs)):
        prices = unit_price @ slot.worker[j], unit_price @ slot.server[j]
        _, _, workers[j], ps[j] = best_placement(priced_job(jobs, j, *prices), ONLINE_NODE_LIMIT)
    return workers, ps


def tight_placement(slot: SlotData, launch: Floats) -> SlotPlacement:
    """Chord price, PS-conditioned relaxation, largest remainder."""
    jobs, fractional = kernel_jobs(slot, launch), np.zeros(slot.data.shape)
    ps = np.zeros(len(slot.jobs), dtype=np.int64)
    for j in range(len(slot.jobs)):
        prices = slot.chord @ slot.worker[j], slot.chord @ slot.server[j]
        _, fractional[j], ps[j] = relaxed_best(priced_job(jobs, j, *prices))
    workers = largest_remainder(slot, fractional)
    return SlotPlacement(workers, ps, slot_cost(slot, launch, workers, ps))


def priced_placement(
    slot: SlotData, launch: Floats, *, starts: Iterable[Floats] = ()
) -> tuple[SlotPlacement, Floats]:
    """Tier-price iteration from full prices, the chord, discounted prices and further starts.

    Returns the cheapest placement, and the unit prices that led to it, (R, K).
    """
    tried: list[tuple[SlotPlacement, Floats]] = []
    seen: set[bytes] = set()
    for start in (slot.unit, slot.chord, slot.discounted, *starts):
        price = start
        for _ in range(MAX_ROUNDS):
            if price.tobytes() in seen:
                break
            seen.add(price.tobytes())
            workers, ps = best_responses(slot, launch, price)
            cost, used = slot_cost(slot, launch, workers, ps), slot.rented(workers, ps)
            tried.append((SlotPlacement(workers, ps, cost), price))
            bought = slot.discounted * used + slot.fee < slot.unit * used
            price = np.where(bought, slot.discounted, slot.unit)
    return min(tried, key=lambda candidate: candidate[0].cost)


class Planner:
    """Plans of all slots of an instance.

    Where a job is `held`, (J, R), it ran before its first slot, and a launch costs it nothing.
    Nothing is begun after the clock.
    """

    def __init__(
        self, instance: MlbrokerInstance, held: Bools | None = None, clock: Clock | None = None
    ) -> None:
        self.instance, self._clock = instance, clock
        shape = len(instance.jobs), len(instance.datacenters)
        self._held = np.zeros(shape, dtype=bool) if held is None else held
        self._slots = [
            (t, np.flatnonzero(alive), SlotData.at(instance, t + 1))
            for t, alive in enumerate(instance.alive.T)
            if alive.any()
        ]

    def is_late(self) -> bool:
        """Whether the clock is over."""
        count_work()
        return self._clock is not None and self._clock.is_over

    def answered(self, answers: Sequence[BrokerPlan]) -> BrokerPlan:
        """Every job's own plan, over its life, as one of all jobs."""
        workers, ps = empty_placements(self.instance)
        for j, (crew, places) in enumerate(answers):
            workers[j, self.instance.alive[j]] = crew
            ps[j, self.instance.alive[j]] = np.maximum(places, 0)
        return workers, ps

    def slot_by_slot(self) -> BrokerPlan:
        """One slot after the other: by tier prices, and in milliseconds once it is late."""
        workers, ps = empty_placements(self.instance)
        left = self.instance.slots_left
        before = self._held.copy()
        for t, live, view in self._slots:
            launch = view.deployment[:, None] * ~before[live] / left[live, t][:, None]
            if self.is_late():
                placed = tight_placement(view, launch)
            else:
                placed, _ = priced_placement(view, launch)
            workers[live, t], ps[live, t] = placed.workers, placed.ps
            before[live] = used_by(placed.workers, placed.ps)
        return workers, ps

    def best(self, answers: BrokerPlan | None = None) -> tuple[float, BrokerPlan]:
        """The better of what jobs answer to prices and of slot by slot; its cost before it."""
        plans = [] if answers is None else [answers]
        if not plans or not self.is_late():
            plans.append(self.slot_by_slot())
        return min(((self._cost(plan), plan) for plan in plans), key=itemgetter(0))

    def _cost(self, plan: BrokerPlan) -> float:
        """Cost of a plan; a launch costs nothing where the slot before had the job there."""
        instance, used = self.instance, used_by(*plan)
        before = np.zeros_like(used)
        before[:, 1:] = used[:, :-1]
        before[np.arange(len(used)), instance.alive.argmax(axis=1)] = self._held
        launches = instance.weights[2] * instance.deployment[:, None, None] * ~before
        return math.fsum(
            slot_cost(view, launches[live, t], plan[0][live, t], plan[1][live, t])
            for t, live, view in self._slots
        )
