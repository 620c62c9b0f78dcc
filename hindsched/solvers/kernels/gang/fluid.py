"""Prices of the fluid relaxation: all GPUs as one fast machine that may pause.

Mean busy times of jobs on one machine that may pause are weighted best by running the largest
weight per GPU-slot first (Goemans, Queyranne, Schulz, Skutella & Wang, 2002). Its dual prices are
the upper envelope of one line a job, of slope minus its density; a line begins where the job ends
and meets there that of the job which takes over.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints


def fluid_prices(cut: Ints, submit: Ints, area: Floats, density: Floats, room: int) -> Floats:
    """Mean price of the fluid relaxation in each interval between cuts, (intervals,).

    Jobs by submission, sorted, with GPU-slots of work (`area`) and weight per GPU-slot (`density`).
    """
    time, price = _lines(submit, area / room, density)
    steps = np.diff(time) * (price[1:] + price[:-1]) / 2
    steps[1::2] = 0.0  # between two pieces nothing runs or a line jumps
    upto = np.concatenate([[0.0], np.cumsum(steps)])
    return np.diff(np.interp(cut, time, upto)) / np.diff(cut)


@njit(cache=True)
def _lines(submit: Ints, length: Floats, density: Floats) -> tuple[Floats, Floats]:
    """Begin and end of each piece of the schedule, in pairs, and the price there."""
    jobs = submit.size
    pieces = np.empty((2 * jobs, 2))
    owner = np.empty(2 * jobs, dtype=np.int64)
    left = length.copy()
    heir = np.full(jobs, -1)
    queue = [(0.0, np.int64(0))]
    queue.pop()
    now, arrived, count = 0.0, 0, 0
    while arrived < jobs or len(queue) > 0:
        if len(queue) == 0:
            now = max(now, float(submit[arrived]))
        while arrived < jobs and submit[arrived] <= now:
            heapq.heappush(queue, (-density[arrived], np.int64(arrived)))
            arrived += 1
        job = queue[0][1]
        end = now + left[job]
        finishes = arrived == jobs or end <= submit[arrived]
        if not finishes:
            end = float(submit[arrived])
        pieces[count, 0], pieces[count, 1] = now, end
        owner[count] = job
        count += 1
        left[job] -= end - now
        now = end
        if finishes:
            heapq.heappop(queue)
            heir[job] = queue[0][1] if len(queue) > 0 else -1
    height = np.full(jobs, np.nan)
    time, price = np.empty(2 * count), np.empty(2 * count)
    for piece in range(count - 1, -1, -1):
        job = owner[piece]
        begin, end = pieces[piece]
        if np.isnan(height[job]):
            other = heir[job]
            level = height[other] - density[other] * end if other >= 0 else 0.0
            height[job] = level + density[job] * end
        time[2 * piece], time[2 * piece + 1] = begin, end
        price[2 * piece] = max(0.0, height[job] - density[job] * begin)
        price[2 * piece + 1] = max(0.0, height[job] - density[job] * end)
    return time, price
