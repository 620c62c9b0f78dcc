"""Integer placements of one mlbroker slot, and their exact cost.

`tight_placement`: chord price, PS-conditioned relaxation, largest remainder, relocation.
`priced_placement`: tier-price iteration; a concave two-tier bill is the least, over which tiers are
bought, of a linear bill plus fees, and with the tiers fixed each job takes its exact best response.
`relocated`: the local search that both end with. ``launch`` of shape (J, R) is the weighted cost of
using a centre: 0 where the job already runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.mlbroker.transport import ship
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    LEFT,
    PricedBlock,
    best_placement,
    relaxed_best,
    round_largest_remainder,
)
from hindsched.solvers.kernels.mlbroker.geo_relocation import SlotJobs, Tiers, relocate

ONLINE_NODE_LIMIT = 2_000
"""Nodes of a best response inside a heuristic, where no proof is needed."""
MOST_PASSES = 50
"""Passes of the local search over the jobs."""
MAX_ROUNDS = 30
"""Rounds of tier-price iteration from one start."""


@dataclass(frozen=True)
class SlotPlacement:
    """An integer placement of a slot's jobs."""

    workers: Ints  # y, (J, R)
    ps: Ints  # position of each job's PS, (J,)
    cost: float  # exact weighted cost of the slot, launches included

    @property
    def used(self) -> Bools:
        """Which centres each job uses, (J, R)."""
        used = self.workers > 0
        used[np.arange(len(self.ps)), self.ps] = True
        return used


def tiers_of(slot: SlotData) -> Tiers:
    """The slot's tiers, as the kernels want them."""
    return Tiers(slot.unit, slot.discounted, slot.fee)


def jobs_of(slot: SlotData, launch: Floats) -> SlotJobs:
    """The slot's jobs, as the kernels want them."""
    return SlotJobs(
        slot.data, slot.capacity, slot.needed, slot.pinned, slot.worker, slot.server, slot.exchange,
        slot.distance, slot.arc, launch,
    )  # fmt: skip


def priced_block(
    slot: SlotData, job: int, worker_price: Floats, ps_price: Floats, launch: Floats
) -> PricedBlock:
    """One job of the slot at prices of a worker, of the PS and of a launch, each of shape (R,)."""
    return PricedBlock(
        slot.data[job], slot.capacity[job], slot.needed[job], slot.pinned[job], worker_price,
        ps_price, slot.exchange[job] * slot.distance, slot.arc[job], launch,
    )  # fmt: skip


def slot_cost(slot: SlotData, launch: Floats, workers: Ints, ps: Ints) -> float:
    """Exact weighted cost of an integer placement; infinite if some data finds no worker."""
    cost = slot.bill(slot.rented(workers, ps))
    used = SlotPlacement(workers, ps, 0.0).used
    for j in range(len(slot.jobs)):
        room = slot.capacity[j] * workers[j].astype(float)
        moved, left, _ = ship(slot.data[j], room, slot.arc[j], np.inf)
        if left > LEFT * slot.data[j].sum():
            return float("inf")
        cost += moved + slot.exchange[j] * slot.distance[:, ps[j]] @ workers[j]
        cost += launch[j][used[j]].sum()
    return float(cost)


def relocated(
    slot: SlotData, launch: Floats, workers: Ints, ps: Ints, *, respond: bool = True
) -> SlotPlacement:
    """Improve a placement by moves of single jobs at exact cost until none gains."""
    workers = np.array(workers, dtype=np.int64)
    ps = np.array(ps, dtype=np.int64)
    if len(slot.jobs):
        nodes = ONLINE_NODE_LIMIT if respond else 0
        relocate(jobs_of(slot, launch), tiers_of(slot), workers, ps, MOST_PASSES, nodes)
    return SlotPlacement(workers, ps, slot_cost(slot, launch, workers, ps))


def largest_remainder(slot: SlotData, fractional: Floats) -> Ints:
    """Round each job's workers to N in total, the largest remainders up."""
    workers = np.zeros(fractional.shape, dtype=np.int64)
    for j in range(len(slot.jobs)):
        workers[j] = round_largest_remainder(fractional[j], slot.needed[j], slot.pinned[j])
    return workers


def best_responses(
    slot: SlotData, launch: Floats, unit_price: Floats, node_limit: int = ONLINE_NODE_LIMIT
) -> tuple[Ints, Ints]:
    """Exact best response of every job at linear unit prices (R, K): workers and PS."""
    jobs = len(slot.jobs)
    workers = np.zeros((jobs, slot.num_centers), dtype=np.int64)
    ps = np.zeros(jobs, dtype=np.int64)
    for j in range(jobs):
        prices = unit_price @ slot.worker[j], unit_price @ slot.server[j]
        block = priced_block(slot, j, *prices, launch[j])
        _, _, workers[j], ps[j] = best_placement(block, node_limit, np.inf)
    return workers, ps


def tight_placement(slot: SlotData, launch: Floats, *, relocation: bool = True) -> SlotPlacement:
    """Chord price, PS-conditioned relaxation, largest remainder and relocation."""
    fractional, ps = np.zeros(slot.data.shape), np.zeros(len(slot.jobs), dtype=np.int64)
    for j in range(len(slot.jobs)):
        prices = slot.chord @ slot.worker[j], slot.chord @ slot.server[j]
        _, fractional[j], ps[j] = relaxed_best(priced_block(slot, j, *prices, launch[j]))
    workers = largest_remainder(slot, fractional)
    if relocation:
        return relocated(slot, launch, workers, ps)
    return SlotPlacement(workers, ps, slot_cost(slot, launch, workers, ps))


def tier_prices(slot: SlotData, placement: SlotPlacement) -> Floats:
    """Marginal unit prices (R, K) at what a placement rents."""
    used = slot.rented(placement.workers, placement.ps)
    bought = slot.discounted * used + slot.fee < slot.unit * used
    price: Floats = np.where(bought, slot.discounted, slot.unit)
    return price


def priced_placement(
    slot: SlotData, launch: Floats, *, starts: Iterable[Floats] = (), relocation: bool = False
) -> tuple[SlotPlacement, Floats]:
    """Tier-price iteration from full prices, the chord, discounted prices and further starts.

    Returns the cheapest placement, with `relocation` improved by the local search, and the unit
    prices that led to it, (R, K).
    """
    best: SlotPlacement | None = None
    best_price = slot.unit
    seen: set[bytes] = set()
    for start in (slot.unit, slot.chord, slot.discounted, *starts):
        price = start
        for _ in range(MAX_ROUNDS):
            if price.tobytes() in seen:
                break
            seen.add(price.tobytes())
            workers, ps = best_responses(slot, launch, price)
            found = SlotPlacement(workers, ps, slot_cost(slot, launch, workers, ps))
            if best is None or found.cost < best.cost:
                best, best_price = found, price
            price = tier_prices(slot, found)
    assert best is not None, "full prices are always tried"
    if relocation:
        best = relocated(slot, launch, best.workers, best.ps)
    return best, best_price
