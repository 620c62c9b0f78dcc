"""Floors of pieces of slots never exceed what the cheapest units of a whole window cost."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.solvers.kernels.batchsched.window_floors import renew_floors, window_floor
from hindsched.solvers.kernels.batchsched.window_minima import build_minima, num_levels

DEMAND = np.array([[2.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
"""Two worker types and what any PS needs."""


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What is free and sums of prices in some slots, on three servers."""
    rng = np.random.default_rng(seed)
    slots = int(rng.integers(8, 40))
    free = rng.choice([-1e-9, 0.0, 1.0, 2.0, 3.0], (slots, 3, 2), p=[0.01, 0.01, 0.2, 0.38, 0.4])
    prefix = np.zeros((slots + 1, 3, 2))
    prefix[1:] = np.cumsum(rng.choice([0.0, 0.0, 1.0, 5.0], (slots, 3, 2)), axis=0)
    return free, prefix


def cheapest(free: np.ndarray, paid: np.ndarray, kind: int) -> float:
    """Least price of a unit on a server that has room for it in all slots."""
    need = DEMAND[kind]
    fits = (np.maximum(free.min(axis=0), 0) >= need).all(axis=1)
    return float(np.where(fits, paid @ need, np.inf).min())


def floors_of(minima: np.ndarray, prefix: np.ndarray) -> np.ndarray:
    """All floors, from nothing."""
    levels, slots = minima.shape[:2]
    floors = np.zeros((len(DEMAND), levels, slots))
    renew_floors(floors, minima, prefix, DEMAND, 0, slots - 1)
    return floors


@pytest.mark.parametrize("seed", range(30))
def test_a_floor_is_what_its_pieces_cost_and_no_more_than_the_window(seed):
    free, prefix = drawn(seed)
    slots = len(free)
    floors = floors_of(build_minima(free, num_levels(slots)), prefix)
    for t in range(slots):
        for length in range(1, slots - t + 1):
            for kind in (0, 1):
                one, ps = (
                    cheapest(free[t : t + length], prefix[t + length] - prefix[t], unit)
                    for unit in (kind, 2)
                )
                floor = window_floor(floors, kind, 3, t, length)
                assert floor <= 3 * one + ps
                if length in (8, 16, 32):
                    assert floor == 3 * one + ps


@pytest.mark.parametrize("seed", range(30))
def test_only_pieces_that_touch_what_changed_are_renewed(seed):
    free, prefix = drawn(seed)
    slots, levels = len(free), num_levels(len(free))
    known = floors_of(build_minima(free, levels), prefix)
    first, last = sorted(np.random.default_rng(seed + 99).integers(0, slots, 2).tolist())
    free[first : last + 1, 1] -= 1.0
    raised = np.diff(prefix, axis=0)
    raised[first : last + 1, 1] += 2.0
    prefix[1:] = np.cumsum(raised, axis=0)
    minima = build_minima(free, levels)
    renew_floors(known, minima, prefix, DEMAND, first, last)
    assert known.tolist() == floors_of(minima, prefix).tolist()
