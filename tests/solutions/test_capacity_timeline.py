"""What is free by slot, kept only where it changes: compared with all slots."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindsched.solutions.capacity_timeline import CapacityTimeline

SLOTS = 40
spans = st.tuples(st.integers(1, SLOTS), st.integers(1, SLOTS)).map(sorted)
bookings = st.lists(
    st.tuples(spans, st.lists(st.integers(-3, 3), min_size=3, max_size=3)), max_size=8
)


@given(bookings, spans)
def test_it_is_what_an_array_of_all_slots_says(booked, span):
    capacity = np.array([[5.0, 7.0, 9.0], [1.0, 2.0, 3.0]])
    free, all_slots = CapacityTimeline(capacity), np.repeat(capacity[None], SLOTS, axis=0)
    for (first, last), used in booked:
        free.book(first, last, np.array(used))
        all_slots[first - 1 : last] -= used
    first, last = span
    assert np.array_equal(free.least(first, last), all_slots[first - 1 : last].min(axis=0))
    assert all(np.array_equal(free.at(t), all_slots[t - 1]) for t in range(1, SLOTS + 1))
    assert free.capacity.tolist() == [[5, 7, 9], [1, 2, 3]]
