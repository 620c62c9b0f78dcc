"""Free GPUs over time: a step function, on which jobs are booked.

``room[i]`` GPUs are free from ``time[i]`` to ``time[i + 1]``; the last step holds for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.arrays import Ints

FOREVER: Any = np.int64(2**62)
"""The last step of a timeline begins here: no schedule comes so far."""


@njit(cache=True, nogil=True)
def step_at(time: Ints, size: int, moment: int) -> int:
    """The step that holds at a moment."""
    return int(np.searchsorted(time[:size], moment, side="right")) - 1


@njit(cache=True, nogil=True)
def _step_from(time: Ints, room: Ints, size: int, moment: int) -> tuple[int, int]:
    """The step that begins at a moment, made if need be; and the new size."""
    step = step_at(time, size, moment)
    if time[step] == moment:
        return step, size
    for index in range(size - 1, step, -1):
        time[index + 1] = time[index]
        room[index + 1] = room[index]
    time[step + 1] = moment
    room[step + 1] = room[step]
    return step + 1, size + 1


@njit(cache=True, nogil=True)
def book(time: Ints, room: Ints, size: int, start: int, end: int, gpus: int) -> int:
    """Take GPUs from `start` to `end`, or give them back, and join equal steps; the new size."""
    if start >= end:
        return size
    first, size = _step_from(time, room, size, start)
    last, size = _step_from(time, room, size, end)
    for index in range(first, last):
        room[index] -= gpus
    for step in (last, first):
        if step > 0 and room[step] == room[step - 1]:
            size -= 1
            for index in range(step, size):
                time[index] = time[index + 1]
                room[index] = room[index + 1]
    return size


@njit(cache=True, nogil=True)
def earliest_start(
    time: Ints, room: Ints, size: int, earliest: int, duration: int, gpus: int
) -> int:
    """Earliest start at which GPUs are free for a duration; `FOREVER` for none."""
    at = step_at(time, size, earliest)
    start = earliest
    while at < size - 1:
        if room[at] < gpus:
            start = time[at + 1]
        elif time[at + 1] >= start + duration:
            return start
        at += 1
    return FOREVER
