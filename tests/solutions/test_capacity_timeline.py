"""What is free by slot, laid out only where something was booked: compared with all slots."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindsched.solutions.capacity_timeline import SLOTS_OF_A_PAGE, CapacityTimeline

SLOTS = 3 * SLOTS_OF_A_PAGE
spans = st.tuples(st.integers(1, SLOTS), st.integers(1, SLOTS)).map(sorted)
bookings = st.lists(
    st.tuples(spans, st.integers(0, 1), st.lists(st.integers(-3, 3), min_size=3, max_size=3)),
    max_size=8,
)


@given(bookings, spans)
def test_it_is_what_an_array_of_all_slots_says(booked, span):
    capacity = np.array([[5.0, 7.0, 9.0], [1.0, 2.0, 3.0]])
    room, all_slots = CapacityTimeline(capacity), np.repeat(capacity[None], SLOTS, axis=0)
    for (first, last), server, used in booked:
        room.book(first, last, np.array(used), server)
        all_slots[first - 1 : last, server] -= used
    first, last = span
    window = all_slots[first - 1 : last]
    assert np.array_equal(room.window(first, last), window)
    assert np.array_equal(room.window(first, last, slice(None), 2), window[:, :, 2])
    assert np.array_equal(room.least(first, last), window.min(axis=0))
    assert np.array_equal(room.at(first), window[0])
    assert room.capacity.tolist() == [[5, 7, 9], [1, 2, 3]]


def test_slots_in_which_nothing_happens_take_no_room():
    room = CapacityTimeline(np.ones((1000, 8)))
    room.book(10**12, 10**12 + 1, 1.0, 0)
    assert room.pages == 2 - (10**12 % SLOTS_OF_A_PAGE != 0)
    assert room.at(10**11).sum() == 8000
