"""The search over windows at prices alike on all servers, against all (mode, start) one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.astraea.shared_window import (
    Room,
    best_offer,
    central_host,
    spread_host,
)

RATIO = 0.4


def drawn(seed: int) -> tuple[ModeColumns, np.ndarray, Room]:
    """Modes, values that do not rise and what is left; whole prices, so that sums are exact."""
    rng = np.random.default_rng(seed)
    slots, servers, number = rng.integers(2, 14), rng.integers(1, 5), rng.integers(1, 6)
    modes = ModeColumns(
        *np.zeros((2, number), dtype=np.int64),
        rng.integers(0, 2, number),
        rng.integers(1, 5, number),
        rng.integers(1, slots + 1, number),
    )
    values = np.sort(rng.integers(-5, 40, slots + 1).astype(float))[::-1].copy()
    values[slots + 1 - rng.integers(0, 3) :] = -np.inf
    most = rng.integers(1, 4)
    room = Room(
        rng.integers(0, most + 1, (slots, servers)),
        rng.integers(0, 3, (slots, servers)),
        rng.integers(0, 2 * most + 1, slots),
        rng.integers(0, 4, slots),
        rng.integers(0, 4, slots).astype(float),
        rng.integers(0, 3, slots).astype(float),
    )
    return modes, values, room


def offers(modes: ModeColumns, values: np.ndarray, free: Room) -> list[tuple]:
    """What fits: (-payoff, not central, start, workers, mode, cost, host, PSs), the best first."""
    found = []
    for k, (together, count, length) in enumerate(zip(*modes[2:], strict=True)):
        for start in range(len(values) - length):
            span = slice(start, start + length)
            workers, ps = free.workers[span].min(axis=0), free.ps[span].min(axis=0)
            quota, quota_ps = free.worker_quota[span].min(), free.ps_quota[span].min()
            if quota < count or quota_ps < 1 or values[start + length] == -np.inf:
                continue
            host, needed = central_host(count, workers, ps), 1
            if not together:
                host, needed = spread_host(count, workers, ps, RATIO, quota_ps)
            if host >= 0:
                cost = count * free.worker_price[span].sum() + needed * free.ps_price[span].sum()
                payoff = values[start + length] - cost
                found.append((-payoff, 1 - together, start, count, k, cost, host, needed))
    return sorted(found)


@given(st.integers(0, 2**32))
def test_the_best_offer_is_the_best_of_all_windows_that_fit(seed):
    modes, values, free = drawn(seed)
    found = best_offer(tuple(modes), values, tuple(free), RATIO, -np.inf)
    every = offers(modes, values, free)
    if not every:
        assert found[2] == -1
        return
    loss, _, start, count, _, cost, host, needed = every[0]
    assert (found[0], found[1], *found[3:]) == (-loss, cost, start, host, needed)
    assert modes.workers[found[2]] == count


@given(st.integers(0, 2**32))
def test_offers_of_a_lower_payoff_are_left_out_and_no_others(seed):
    modes, values, free = drawn(seed)
    anything = best_offer(tuple(modes), values, tuple(free), RATIO, -np.inf)
    for least in (anything[0] - 1, anything[0], 0.0):
        found = best_offer(tuple(modes), values, tuple(free), RATIO, least)
        if anything[2] >= 0 and anything[0] >= least:
            assert found == pytest.approx(anything, abs=0)
        else:
            assert found[2] == -1
