"""The window search against a plain loop over every mode, start, host and split of workers."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.astraea.valued_window import Room, best_window, place_window

SLOTS = 6


def cheapest(mode, start, data):
    """Least price of a mode at a start: a pair (price, host), by trying every placement."""
    length, count, together = mode
    span = slice(start, start + length)
    room = data["workers"][:, span].min(axis=1).astype(int)
    ps = data["ps"][:, span].min(axis=1)
    cost, ps_cost = data["price"][:, span].sum(axis=1), data["ps_price"][:, span].sum(axis=1)
    best = None
    for placed in itertools.product(*(range(min(count, n) + 1) for n in room)):
        if sum(placed) != count:
            continue
        for host in range(len(room)):
            beside = count - placed[host]
            if (beside == 0) != together:
                continue
            needed = 1 if together else max(1, int(np.ceil(beside * data["ratio"])))
            if needed <= ps[host]:
                price = float(placed @ cost + needed * ps_cost[host])
                if best is None or price < best:
                    best = price
    return best


@st.composite
def searches(draw):
    servers = draw(st.integers(1, 3))

    def table(values):
        flat = draw(st.lists(values, min_size=servers * SLOTS, max_size=servers * SLOTS))
        return np.array(flat, dtype=float).reshape(servers, SLOTS)

    prices = st.sampled_from([0.0, 0.0, 0.25, 1.0])
    falls = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=SLOTS, max_size=SLOTS))
    modes = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.integers(1, 3), st.booleans()), min_size=0, max_size=4
        )
    )
    return (
        modes,
        draw(st.integers(0, 2)),
        {
            "workers": table(st.sampled_from([0, 1, 2, 3])),
            "ps": table(st.sampled_from([0, 1, 1, 2])),
            "price": table(prices),
            "ps_price": table(prices),
            "ratio": draw(st.sampled_from([0.5, 1.0])),
            "values": 4.0 - np.concatenate([[0.0], np.cumsum(falls)]),
            "floor": draw(st.sampled_from([-np.inf, 0.0, 2.0])),
        },
    )


@given(searches())
def test_the_first_of_the_best_windows_is_found(search):
    modes, first, data = search
    length, count, together = (
        (np.array(x, dtype=np.int64) for x in zip(*modes, strict=True))
        if (modes)
        else (np.zeros(0, dtype=np.int64),) * 3
    )
    columns = ModeColumns(0 * length, 0 * length, together, count, length)
    free = Room(data["workers"], data["ps"], data["price"], data["ps_price"])
    value, mode, start, host, on_host = best_window(
        first, tuple(columns), data["values"], tuple(free), data["ratio"], data["floor"]
    )
    best, expected = data["floor"], None
    for k, (d, n, one) in enumerate(modes):
        for t in range(first, SLOTS - d + 1):
            price = cheapest((d, n, one), t, data)
            if price is not None and data["values"][t + d] - price > best:
                best, expected = data["values"][t + d] - price, (k, t)
    assert (None if mode < 0 else (mode, start)) == expected
    assert value == best
    if expected is None or together[mode]:
        return
    placed = place_window(
        int(count[mode]), start, int(length[mode]), host, on_host, data["workers"], data["price"]
    )
    span = slice(start, start + length[mode])
    assert placed.sum() == count[mode]
    assert placed[host] == on_host
    assert (placed <= data["workers"][:, span].min(axis=1)).all()
