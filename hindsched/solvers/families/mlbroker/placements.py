"""Integer placements of mlbroker's slots, alone and together, and their exact cost.

One slot: `tight_placement` is chord price, PS-conditioned relaxation, largest remainder, moves;
`priced_placement` tier-price iteration: a concave two-tier bill is the least, over which tiers are
bought, of a linear bill plus fees, and with the tiers fixed each job takes its exact best response;
`relocated` the local search that both end with. ``launch`` of shape (J, R) is the weighted cost of
using a centre: 0 where the job already runs.

Several slots: at fixed unit prices a job's plan is a shortest path through its slots over a few
candidate placements each; a step costs a launch for every newly used centre. The tiers that the
plans reach give the next prices. ``held`` says by job which centres it used in the slot before the
first view, bool (R,); a job's slots are consecutive, as the views are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.mlbroker.transport import ship
from hindsched.solvers.door.work import Clock, spend
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    LEFT,
    PricedBlock,
    best_placement,
    placement_cost,
    relaxed_best,
    relaxed_by_place,
    round_largest_remainder,
)
from hindsched.solvers.kernels.mlbroker.geo_relocation import SlotJobs, Tiers, relocate

ONLINE_NODE_LIMIT = 2_000
"""Nodes of a best response inside a heuristic, where no proof is needed."""
MOST_PASSES = 50
"""Passes of the local search over the jobs."""
MAX_ROUNDS = 30
"""Rounds of tier-price iteration from one start."""
CANDIDATE_NODES = 200
"""Nodes of the best response that makes a candidate."""
ROUNDS = 6
"""Rounds of price iteration from one start."""
NEAREST = 3
"""How many places of the PS, and single centres for everything, are candidates, cheapest first."""
Held = Mapping[str, Bools]
Option = tuple[Ints, int, float]
"""Workers (R,), position of the PS, cost at the prices without launches."""


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


def improved_plans(
    views: Sequence[SlotData], held: Held, clock: Clock | None,
    answers: list[SlotPlacement] | None = None,
) -> Iterator[list[SlotPlacement]]:  # fmt: skip
    """Plans of consecutive slots: from what the jobs answer to prices, and from other prices.

    Nothing is begun after the clock; without anything better slots are placed one by one, by the
    relaxation and largest remainder alone, in milliseconds.
    """

    def late() -> bool:
        spend()
        return clock is not None and clock.is_over

    def improved(plan: list[SlotPlacement]) -> list[SlotPlacement]:
        while not late() and (polished := polish(views, held, plan)) is not plan:
            plan = polished
        return plan

    if answers is not None:
        yield improved(with_launches(views, held, answers))
    plan = None if answers is not None and late() else plan_slots(views, held, clock)
    if plan is not None:
        yield improved(plan)
    elif answers is None:
        plan = []
        for view in views:
            plan.append(tight_placement(view, launches(view, held), relocation=False))
            held = dict(zip(view.jobs, plan[-1].used, strict=True))
        yield improved(plan)


def plan_slots(
    views: Sequence[SlotData], held: Held, clock: Clock | None = None
) -> list[SlotPlacement] | None:
    """Place the jobs of consecutive slots together; each cost holds the launches of the plan.

    No further prices are tried once the clock is over; None if that is before the first plan.
    """
    best: list[SlotPlacement] | None = None
    best_cost = np.inf
    for start in ("unit", "chord"):
        prices = [getattr(view, start) for view in views]
        seen: set[bytes] = set()
        for _ in range(ROUNDS):
            key = b"".join(price.tobytes() for price in prices)
            if key in seen:
                break
            seen.add(key)
            plan = _plan_at(views, held, prices, clock)
            if plan is None:
                return best
            cost = sum(placement.cost for placement in plan)
            if cost < best_cost:
                best, best_cost = plan, cost
            spend()
            if clock is not None and clock.is_over:
                return best
            prices = [tier_prices(v, p) for v, p in zip(views, plan, strict=True)]
    return best


def first_of_plan(views: Sequence[SlotData], held: Held, relocation: bool = True) -> SlotPlacement:
    """Plan the slots together and return the first slot's placement.

    With `relocation` it ends with the local search, a launch shared among the slots in a row that
    the plan uses it in.
    """
    plan = plan_slots(views, held)
    assert plan is not None, "only a clock ends it before"
    if not relocation:
        return plan[0]
    shared = shared_launches(views, held, plan)[0]
    return relocated(views[0], shared, plan[0].workers, plan[0].ps, respond=False)


def polish(views: Sequence[SlotData], held: Held, plan: list[SlotPlacement]) -> list[SlotPlacement]:
    """Relocate slot by slot with launches that a plan shares, and keep what is cheaper in all."""
    steps = zip(views, plan, shared_launches(views, held, plan), strict=True)
    better = [relocated(view, shared, p.workers, p.ps, respond=False) for view, p, shared in steps]
    priced = with_launches(views, held, better)
    before = sum(placement.cost for placement in plan)
    return priced if sum(placement.cost for placement in priced) < before else plan


def with_launches(
    views: Sequence[SlotData], held: Held, plan: Sequence[SlotPlacement]
) -> list[SlotPlacement]:
    """The same placements, each with its exact cost, launches where the slot before had none."""
    priced = []
    for view, placement in zip(views, plan, strict=True):
        launch = launches(view, held)
        cost = slot_cost(view, launch, placement.workers, placement.ps)
        priced.append(SlotPlacement(placement.workers, placement.ps, cost))
        held = dict(zip(view.jobs, placement.used, strict=True))
    return priced


def launches(view: SlotData, held: Held) -> Floats:
    """What using a centre costs each job, (J, R): 0 where it is held."""
    nowhere = np.zeros(view.num_centers, dtype=bool)
    before = np.array([held.get(name, nowhere) for name in view.jobs], dtype=bool)
    launch: Floats = view.deployment[:, None] * ~before.reshape(view.data.shape)
    return launch


def shared_launches(
    views: Sequence[SlotData], held: Held, plan: Sequence[SlotPlacement]
) -> list[Floats]:
    """Launch costs per slot, divided by the slots in a row that the plan uses the centre in."""
    used = [dict(zip(v.jobs, p.used, strict=True)) for v, p in zip(views, plan, strict=True)]
    shared = []
    for at, view in enumerate(views):
        launch = launches(view, used[at - 1] if at else held)
        for j, name in enumerate(view.jobs):
            run, going = np.ones(view.num_centers), np.ones(view.num_centers, dtype=bool)
            for later in used[at + 1 :]:
                if name not in later:
                    break
                going = going & later[name]
                run += going
            launch[j] /= run
        shared.append(launch)
    return shared


def _plan_at(
    views: Sequence[SlotData], held: Held, prices: Sequence[Floats], clock: Clock | None
) -> list[SlotPlacement] | None:
    """Plan every job at fixed unit prices; None if the time passes on the way."""
    life: dict[str, list[tuple[int, int]]] = {}
    for at, view in enumerate(views):
        for j, name in enumerate(view.jobs):
            life.setdefault(name, []).append((at, j))
    workers = [np.zeros(view.data.shape, dtype=np.int64) for view in views]
    ps = [np.zeros(len(view.jobs), dtype=np.int64) for view in views]
    for name, steps in life.items():
        if clock is not None and clock.is_over:
            return None
        first, place = steps[0]
        cost = float(views[first].deployment[place])
        nowhere = np.zeros(views[first].num_centers, dtype=bool)
        start = np.asarray(held.get(name, nowhere), dtype=bool) if first == 0 else nowhere
        options = [_candidates(views[at], j, prices[at], cost / len(steps)) for at, j in steps]
        for (at, j), option in zip(steps, _shortest(options, start, cost), strict=True):
            workers[at][j], ps[at][j], _ = option
    plan = [SlotPlacement(w, p, 0.0) for w, p in zip(workers, ps, strict=True)]
    return with_launches(views, held, plan)


def _candidates(view: SlotData, job: int, price: Floats, share: float) -> list[Option]:
    """Placements of a job in a slot with their cost at `price`, launches left out."""
    worker, server = price @ view.worker[job], price @ view.server[job]
    data, needed, stays = view.data[job], int(view.needed[job]), view.pinned[job]
    free = np.zeros(view.num_centers)
    block = priced_block(view, job, worker, server, free)
    found: dict[tuple[bytes, int], Option] = {}

    def add(workers: Ints, ps: int) -> None:
        if (workers.tobytes(), ps) not in found:
            cost = placement_cost(block, workers, ps, np.inf)
            found[workers.tobytes(), ps] = (workers, ps, cost)

    costs, fractional = relaxed_by_place(block)
    for ps in np.argsort(costs)[:NEAREST].tolist():
        add(round_largest_remainder(fractional[ps], needed, stays), ps)
    arc = np.where(np.isinf(view.arc[job]), 0.0, view.arc[job])
    alone = data @ arc + needed * worker + server
    for r in np.argsort(alone)[:NEAREST].tolist():
        workers = stays.copy()
        workers[r] = max(workers[r], needed - (stays.sum() - stays[r]))
        add(workers, r)
    for charge in {0.0, share}:
        cheapest = min(
            cost + charge * (np.count_nonzero(workers) + (workers[ps] == 0))
            for workers, ps, cost in found.values()
        )
        charged = block._replace(launch=free + charge)
        _, _, workers, ps = best_placement(charged, CANDIDATE_NODES, cheapest)
        if ps >= 0:
            add(workers, int(ps))
    return list(found.values())


def _shortest(options: Sequence[list[Option]], held: Bools, cost: float) -> list[Option]:
    """Cheapest choice of a candidate per slot, launches between them included."""
    values, used, back = [0.0], [held], []
    for step in options:
        after = [(workers > 0) | (np.arange(workers.size) == ps) for workers, ps, _ in step]
        ways = [[v + cost * int((a & ~b).sum()) for v, b in zip(values, used, strict=True)]
                for a in after]  # fmt: skip
        origin = [int(np.argmin(way)) for way in ways]
        chosen = zip(ways, origin, step, strict=True)
        values, used = [way[i] + price for way, i, (_, _, price) in chosen], after
        back.append(origin)
    at = int(np.argmin(values))
    path = [at]
    for origin in reversed(back[1:]):
        path.append(origin[path[-1]])
    return [step[index] for step, index in zip(options, path[::-1], strict=True)]
