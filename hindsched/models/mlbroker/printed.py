"""(10) of one slot as the paper prints it, in workers and GB: to be read, and to test the fast one.

Interior-point solvers fail on many slots in these units; `convex.py` states the same scaled and
without what no optimum needs. Symbols: y workers, s the PS, v presence, q data sent, g connections,
x the bill, u1 and u2 the tiers; U = N + 1.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.sets import big_m


def printed_slot(slot: SlotData, before: Floats, epsilon: float = 0.01) -> cp.Problem:
    """(10) as printed, costs weighted; `before` is v of the slot before, (J, R)."""
    jobs, centers = slot.data.shape
    sigma, big = np.log1p(1 / epsilon), big_m(slot)
    x, u1, u2 = (cp.Variable(slot.unit.shape, nonneg=True) for _ in range(3))
    cost, h, rows = cp.sum(x), 0.0, [u1 + u2 == 1]  # (8e)
    for i in range(jobs):
        y, s, v = (cp.Variable(centers, nonneg=True) for _ in range(3))
        q, g = (cp.Variable((centers, centers), nonneg=True) for _ in range(2))
        sent = np.isfinite(slot.arc[i])
        rows += [
            slot.capacity[i] * y >= cp.sum(q, axis=0),  # (8a)
            cp.sum(q, axis=1) == slot.data[i],  # (8b)
            cp.multiply(~sent, q) == 0,
            cp.sum(s) == 1,  # (8f)
            (slot.needed[i] + 1) * v >= y + s,  # (8g)
            cp.sum(g, axis=1) == y,  # (8i)
            cp.sum(g, axis=0) >= slot.needed[i] * s,  # (8j)
        ]
        h += cp.outer(y, slot.worker[i]) + cp.outer(s, slot.server[i])  # (2)
        cost += cp.sum(cp.multiply(np.where(sent, slot.arc[i], 0.0), q))  # C1
        cost += cp.sum(cp.multiply(slot.exchange[i] * slot.distance, g))  # C4
        entropy = cp.rel_entr(v + epsilon, before[i] + epsilon) - v
        cost += slot.deployment[i] / sigma * cp.sum(entropy)  # C3, regularised
    rows += [
        x >= cp.multiply(slot.unit, h) - cp.multiply(big, u1),  # (8c)
        x >= cp.multiply(slot.discounted, h) + slot.fee - cp.multiply(big, u2),  # (8d)
    ]
    return cp.Problem(cp.Minimize(cost), rows)
