"""Rounding of fractional workers: Algorithms 2 and 3, Independent, Greedy and largest remainder.

==============  ==========================================================
paper           here
==============  ==========================================================
``y~``          `fractional`, shape (J, R)
``p_i``         fractional parts
``omega_i``     `weights`: n_ik in Round1 over jobs, 1 in Round2 over centres
``Psi_1, _2``   `up`, `down`
==============  ==========================================================

Decided where the paper is silent or wrong: values within 1e-4 of an integer are integers; the
tolerance of the integer test is 1e-9; lines 17 and 20 index i1 and i2; a weight of 0 (no GPU) would
divide by 0 in Psi, so such jobs are rounded by themselves. The element that remains without a
partner is rounded up, as printed, which breaks the marginal law (P1) and the weight law (P2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.protocol import draws
from hindsched.solvers.families.mlbroker.placements import largest_remainder

SNAP = 1e-4
INTEGRAL = 1e-9
Rounding = Literal["paper", "round2", "independent", "greedy", "largest-remainder"]


def dependent_round(parts: Floats, weights: Floats, generator: np.random.Generator) -> Ints:
    """Algorithm 3 for one set: round fractional parts to 0 or 1 in pairs.

    Each pair keeps ``omega1 p1 + omega2 p2``, omega the positive weights; parts of 0 and 1 stay.
    """
    p = np.array(parts, dtype=float)
    undecided = [i for i in range(p.size) if INTEGRAL < p[i] < 1 - INTEGRAL]
    while len(undecided) > 1:
        places = generator.choice(len(undecided), size=2, replace=False).tolist()
        i, j = (undecided[place] for place in places)
        ratio = weights[j] / weights[i]
        up = min(1 - p[i], ratio * p[j])
        down = min(p[i], ratio * (1 - p[j]))
        if generator.random() < down / (up + down):
            p[i], p[j] = p[i] + up, p[j] - up / ratio
        else:
            p[i], p[j] = p[i] - down, p[j] + down / ratio
        for place in sorted(places, reverse=True):  # no other element has changed
            if not INTEGRAL < p[undecided[place]] < 1 - INTEGRAL:
                del undecided[place]
    p[undecided] = 1.0
    return np.rint(p).astype(np.int64)


def round1(fractional: Floats, weights: Floats, slot: int, seed: int, purpose: str) -> Ints:
    """Round1_y: in each centre over the jobs, keeping the units of one resource.

    Jobs of weight 0 are rounded up by themselves with their fraction as probability.
    """
    floor = np.floor(fractional)
    parts = fractional - floor
    result = floor.astype(np.int64)
    for r in range(fractional.shape[1]):
        generator = draws(seed, purpose, f"slot {slot}", f"centre {r}")
        weighted = weights > 0
        result[weighted, r] += dependent_round(parts[weighted, r], weights[weighted], generator)
        others = np.flatnonzero(~weighted)
        result[others, r] += generator.random(others.size) < parts[others, r]
    return result


def round2(fractional: Floats, names: tuple[str, ...], slot: int, seed: int) -> Ints:
    """Round2_y: for each job over the centres, keeping its number of workers; the last one up."""
    floor = np.floor(fractional)
    result = floor.astype(np.int64)
    ones = np.ones(fractional.shape[1])
    for j, name in enumerate(names):
        generator = draws(seed, name, f"round2 slot {slot}")
        result[j] += dependent_round(fractional[j] - floor[j], ones, generator)
    return result


def round_workers(
    view: SlotData, fractional: Floats, slot: int, seed: int, method: Rounding = "paper"
) -> Ints:
    """Integer workers by one of the methods; not yet repaired.

    ``paper`` takes the largest of the K + 1 roundings of Algorithm 2, ``round2`` the second alone,
    ``independent`` (IR) the nearest integer, ``greedy`` (GR) the next one up.
    """
    nearest = np.rint(fractional)
    value = np.where(np.abs(fractional - nearest) < SNAP, nearest, np.maximum(fractional, 0.0))
    if method == "independent":
        return np.floor(value + 0.5).astype(np.int64)
    if method == "greedy":
        return np.ceil(value - INTEGRAL).astype(np.int64)
    if method == "largest-remainder":
        return largest_remainder(view, value)
    workers = round2(value, view.jobs, slot, seed)
    if method == "paper":
        for k in range(view.worker.shape[1]):
            more = round1(value, view.worker[:, k], slot, seed, f"round1 resource {k}")
            workers = np.maximum(workers, more)
    return workers


def round_server(
    view: SlotData, server: Floats, slot: int, seed: int, method: Rounding = "paper"
) -> Ints:
    """Place of each PS: drawn by s~ (Step 2), or its largest entry in ``greedy`` and ours."""
    if method in ("greedy", "largest-remainder"):
        return np.argmax(server, axis=1).astype(np.int64)
    places = np.zeros(len(view.jobs), dtype=np.int64)
    for j, name in enumerate(view.jobs):
        share = np.clip(server[j], 0.0, None)
        share = share / share.sum()
        places[j] = draws(seed, name, f"ps slot {slot}").choice(share.size, p=share)
    return places


def repair(view: SlotData, workers: Ints, fractional: Floats) -> tuple[Ints, int]:
    """Add workers until the data fits, never remove any; also how many jobs needed more."""
    workers = workers.copy()
    repairs = 0
    for j in range(len(view.jobs)):
        short = bool((workers[j] < view.pinned[j]).any())
        workers[j] = np.maximum(workers[j], view.pinned[j])
        while workers[j].sum() < view.needed[j]:  # with the pinned ones N are enough
            short = True
            workers[j, int(np.argmax(fractional[j] - workers[j]))] += 1
        repairs += short
    return workers, repairs
