"""Best responses of a job of oasis to own terms of either sign, against all its schedules."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from math import ceil
from typing import Any

import pytest

from hindsched import kernel
from hindsched.kernel import oasis
from hindsched.kernel.trees import NEVER

SLOTS = (1, 2, 3)
PLACES = {"worker": (("w1", 2), ("w2", 1)), "ps": (("p1", 4), ("p2", 6))}
LIMITS = ((0, NEVER), (0, 2), (0, 1), (2, NEVER), (3, NEVER), (2, 2), (4, NEVER))


def instance(draw: random.Random) -> dict[str, Any]:
    job = {
        "name": "a", "arrival": draw.randint(1, 2), "epochs": 1, "chunks": draw.randint(1, 3),
        "minibatches": draw.randint(1, 2), "minibatch_slots": 1, "gradient_mb": 0,
        "worker": {"gpu": 1, "bw": 2}, "ps": {"gpu": 0, "bw": draw.choice([2, 3, 5])},
        "utility": {"kind": "linear", "slope": -draw.randint(0, 3),
                    "intercept": draw.randint(0, 12)},
    }  # fmt: skip
    servers = {
        f"{side}_servers": [
            {"name": name, "capacity": {"gpu": n, "bw": 9} if side == "worker" else {"bw": n}}
            for name, n in places
        ]
        for side, places in PLACES.items()
    }
    return {"family": "oasis", "name": "x", "slot_seconds": 1, "horizon": 3, **servers,
            "resources": ["gpu", "bw"], "bandwidth_resource": "bw", "jobs": [job]}  # fmt: skip


def costs_by_count(job: Any, prices: Any, t: int) -> dict[int, Any]:
    """Cheapest way to run so many workers in a slot, with the PSs that they need."""
    units = {
        side: [
            (sum(job[side][r] * Fraction(prices[f"{side}_capacity"][name, r, t])
                 for r in ("gpu", "bw")),
             min(job["chunks"], n if side == "worker" else n // job["ps"]["bw"]))
            for name, n in places
        ]
        for side, places in PLACES.items()
    }  # fmt: skip
    found: dict[int, Any] = {}
    for counts in itertools.product(*(range(m + 1) for side in units.values() for _, m in side)):
        n, ps = sum(counts[:2]), sum(counts[2:])
        if n <= job["chunks"] and ps == ceil(Fraction(2 * n, job["ps"]["bw"])) and ps <= n:
            listed = [price for side in units.values() for price, _ in side]
            cost = sum(k * price for k, price in zip(counts, listed, strict=True))
            found[n] = min(cost, found.get(n, cost))
    return found


def best(
    job: Any, prices: Any, terms: Any, weight: Any, may_give_up: bool, limit: tuple[int, int]
) -> Any:
    costs = {t: costs_by_count(job, prices, t) for t in SLOTS}
    work, u, found = job["chunks"] * job["minibatches"], job["utility"], []
    for ns in itertools.product(*(costs[t] if t >= job["arrival"] else [0] for t in SLOTS)):
        paid = sum(costs[t][n] + n * terms.get((t, t, "workers"), 0)
                   for t, n in zip(SLOTS, ns, strict=True))  # fmt: skip
        if sum(ns) == work:
            end = max(t for t, n in zip(SLOTS, ns, strict=True) if n)
            value = weight * (u["slope"] * (end - job["arrival"]) + u["intercept"])
            if limit[0] <= end <= limit[1]:
                found.append(value - terms.get((end, end, "completion"), 0) - paid)
        elif sum(ns) < work and limit[1] == NEVER and (may_give_up or not sum(ns)):
            found.append(-paid)
    return max(found, default=None)


@pytest.mark.parametrize("seed", range(3))
def test_best_response_to_own_terms(seed: int) -> None:
    draw, infeasible = random.Random(seed), 0
    for _ in range(60):
        data = instance(draw)
        job = data["jobs"][0]
        prices = {
            f"{side}_capacity": {(name, r, t): draw.choice([0, 0, 0.5, 1.25, 3])
                                 for name, _ in places for r in ("gpu", "bw") for t in SLOTS}
            for side, places in PLACES.items()
        }  # fmt: skip
        file = {
            key: [{"group": name, "resource": r, "from": t, "to": t, "price": price}
                  for (name, r, t), price in own.items()]
            for key, own in prices.items()
        }  # fmt: skip
        terms = {(t, t, of): Fraction(draw.randint(-12, 12), 4) for of in oasis.TERMS
                 for t in range(job["arrival"], 4)}  # fmt: skip
        weight, may_give_up = draw.choice([Fraction(1), Fraction(1, 3)]), draw.random() < 0.5
        limit = draw.choice(LIMITS)
        part = {"kind": "lagrangian", "prices": file, "sense": "max",
                "policies": "run" if may_give_up else "commit"}  # fmt: skip
        problem = kernel.ExactInstance(data).problem("standard")
        if limit == (0, NEVER):  # also through the door, less what the rows are worth
            whole = problem.bound_with(kernel.exact_numbers(part), weight, {"a": terms})
        multipliers = oasis._Multipliers(weight, {"a": terms}, may_give_up, 4)
        rows = oasis.OasisPricing(problem.instance, False, multipliers)
        worth, respond = rows.price(kernel.exact_numbers(file))
        found = respond(0, {("completion",): limit})
        expected = best(job, prices, terms, weight, may_give_up, limit)
        if expected is None:
            infeasible += 1
            assert found is None
        else:
            assert found.low <= expected <= found.high <= expected + Fraction(1, 10**20)
            assert limit != (0, NEVER) or whole.high == worth.high + found.high
    assert infeasible
