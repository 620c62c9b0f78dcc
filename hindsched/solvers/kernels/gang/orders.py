"""Schedules of one pool from an order, and what they cost.

Free GPUs are a step function of time: ``room[i]`` from ``time[i]`` to ``time[i + 1]``, the last
step for ever. Placing jobs in turn at their earliest feasible start gives, over all orders, every
schedule in which no job could start earlier alone; one of them is optimal for any objective that
never rewards waiting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

FOREVER: Any = np.int64(2**62)
"""The last step of a timeline begins here: no schedule comes so far."""


class Jobs(NamedTuple):
    """What the searches know of the jobs."""

    submit: Ints  # the jobs, (jobs,)
    duration: Ints
    gpus: Ints
    slope: Floats  # cost of a slot until completion, (jobs,)
    due: Ints  # last slot without penalty, (jobs,)
    penalty: Floats  # cost of a later completion, (jobs,)


@njit(cache=True, nogil=True)
def step_at(time: Ints, size: int, moment: int) -> int:
    """The step that holds at a moment."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time[middle] <= moment:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True, nogil=True)
def _split(time: Ints, room: Ints, size: int, moment: int) -> tuple[int, int]:
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
    first, size = _split(time, room, size, start)
    last, size = _split(time, room, size, end)
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


@njit(cache=True, nogil=True)
def _place_in_order(
    order: Ints, submit: Ints, duration: Ints, gpus: Ints, gpus_in_all: int, time: Ints, room: Ints,
    start: Ints,
) -> None:  # fmt: skip
    time[0], room[0] = 0, gpus_in_all
    time[1], room[1] = FOREVER, gpus_in_all
    size: Any = np.int64(2)  # a literal 2 would be a type of its own, compiled once more
    for job in order:
        start[job] = earliest_start(time, room, size, submit[job], duration[job], gpus[job])
        size = book(time, room, size, start[job], start[job] + duration[job], gpus[job])


def starts_in_order(order: Ints, jobs: Jobs, gpus_in_all: int) -> Ints:
    """Starts of all jobs when they are placed in an order, shape (jobs,)."""
    time, room = np.empty((2, 2 * order.size + 4), dtype=np.int64)
    start = np.empty(order.size, dtype=np.int64)
    _place_in_order(order, jobs.submit, jobs.duration, jobs.gpus, gpus_in_all, time, room, start)
    return start


@njit(cache=True, nogil=True)
def cost_of(jobs: Jobs, job: int, start: int) -> float:
    """Cost of a job that starts then."""
    end = start + jobs.duration[job]
    late = jobs.penalty[job] if end > jobs.due[job] else 0.0
    return jobs.slope[job] * (end - jobs.submit[job]) + late


@njit(cache=True, nogil=True)
def total_cost(jobs: Jobs, start: Ints) -> float:
    """Cost of a schedule."""
    total = 0.0
    for job in range(start.size):
        total += cost_of(jobs, job, start[job])
    return total
