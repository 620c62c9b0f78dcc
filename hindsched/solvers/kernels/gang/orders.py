"""Schedules of one pool from an order, and their improvement by taking jobs out and in again.

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
from hindsched.solvers.kernels.draws import Words, below, unit
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

FAR: Any = np.int64(2**60)
"""The last step of a timeline begins here: no schedule comes so far."""
STEPS_AROUND = 1 << 11
"""Steps of the timeline before and after the jobs taken out at which an exchange looks."""

"""State of the draws."""


class Jobs(NamedTuple):
    """What the exchanges know of the jobs.

    Attributes
    ----------
    submit, duration, gpus : ndarray of int, shape (jobs,)
        The jobs.
    slope : ndarray, shape (jobs,)
        Cost of a slot until completion.
    due : ndarray of int, shape (jobs,)
        Last slot without penalty.
    penalty : ndarray, shape (jobs,)
        Cost of a later completion.
    """

    submit: Ints
    duration: Ints
    gpus: Ints
    slope: Floats
    due: Ints
    penalty: Floats


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
def split(time: Ints, room: Ints, size: int, step: int, moment: int) -> tuple[int, int]:
    """The step that begins at a moment in or after `step`, made if need be; and the new size."""
    while step + 1 < size and time[step + 1] <= moment:
        step += 1
    if time[step] == moment:
        return step, size
    for index in range(size - 1, step, -1):
        time[index + 1] = time[index]
        room[index + 1] = room[index]
    time[step + 1] = moment
    room[step + 1] = room[step]
    return step + 1, size + 1


@njit(cache=True, nogil=True)
def book(time: Ints, room: Ints, size: int, step: int, start: int, end: int, gpus: int) -> int:
    """Take GPUs from `start` (in or after `step`) to `end`; the new size."""
    first, size = split(time, room, size, step, start)
    last, size = split(time, room, size, first, end)
    for index in range(first, last):
        room[index] -= gpus
    return size


@njit(cache=True, nogil=True)
def insert(
    time: Ints, room: Ints, size: int, earliest: int, duration: int, gpus: int
) -> tuple[int, int]:
    """Book a job at its earliest start before the last step; (start, new size), -1 for none."""
    first = at = step_at(time, size, earliest)
    start = earliest
    while at < size - 1:
        if room[at] < gpus:
            at += 1
            first = at
            start = time[at]
        elif time[at + 1] >= start + duration:
            return start, book(time, room, size, first, start, start + duration, gpus)
        else:
            at += 1
    return -1, size


@njit(cache=True, nogil=True)
def join_equal(time: Ints, room: Ints, size: int) -> int:
    """Join steps of equal room, but not the last; the new size."""
    kept = 0
    for index in range(1, size):
        if room[index] != room[kept] or index == size - 1:
            kept += 1
            time[kept] = time[index]
            room[kept] = room[index]
    return kept + 1


@njit(cache=True, nogil=True)
def place_in_order(
    order: Ints, submit: Ints, duration: Ints, gpus: Ints, gpus_in_all: int, time: Ints, room: Ints,
    start: Ints,
) -> int:  # fmt: skip
    """Start all jobs in an order, each as early as possible; the size of the timeline.

    `time` and `room` have two entries a job and two more.
    """
    time[0], room[0] = 0, gpus_in_all
    time[1], room[1] = FAR, gpus_in_all
    size: Any = np.int64(2)  # a literal 2 would be a type of its own, compiled once more
    for job in order:
        start[job], size = insert(time, room, size, submit[job], duration[job], gpus[job])
    return size


def starts_in_order(order: Ints, jobs: Jobs, gpus_in_all: int) -> Ints:
    """Starts of all jobs when they are placed in an order, shape (jobs,)."""
    time, room = np.empty((2, 2 * order.size + 4), dtype=np.int64)
    start = np.empty(order.size, dtype=np.int64)
    place_in_order(order, jobs.submit, jobs.duration, jobs.gpus, gpus_in_all, time, room, start)
    return start


@njit(cache=True, nogil=True)
def timeline(
    start: Ints, duration: Ints, gpus: Ints, gpus_in_all: int, time: Ints, room: Ints
) -> int:
    """Fill the timeline of a feasible schedule; its size."""
    jobs = start.size
    moment = np.empty(2 * jobs, dtype=np.int64)
    for job in range(jobs):
        moment[job] = start[job]
        moment[jobs + job] = start[job] + duration[job]
    time[0], room[0] = 0, gpus_in_all
    size = 1
    for event in stable_order(moment):
        job = event if event < jobs else event - jobs
        if moment[event] != time[size - 1]:
            time[size], room[size] = moment[event], room[size - 1]
            size += 1
        room[size - 1] += -gpus[job] if event < jobs else gpus[job]
    time[size], room[size] = FAR, gpus_in_all
    return size + 1


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


@njit(cache=True, nogil=True)
def _choose(state: Words, order: Ints, first: int, reach: int, most: int, chosen: Ints) -> int:
    """Draw jobs that start one after another: always the first, others of the next `reach`."""
    end = min(order.size, first + reach)
    wanted = min(2 + below(state, most - 1), end - first)
    count = 0
    for index in range(first, end):
        left = end - index
        if index == first or unit(state) * left < wanted - count:
            chosen[count] = order[index]
            count += 1
            if count == wanted:
                break
    return count


@njit(cache=True, nogil=True)
def _reorder(state: Words, chosen: Ints, count: int) -> None:
    """Draw an order in which jobs come back: shuffled, one put first, or the first put last."""
    draw = unit(state)
    if draw < 0.4:
        for index in range(count - 1, 0, -1):
            other = below(state, index + 1)
            chosen[index], chosen[other] = chosen[other], chosen[index]
    elif draw < 0.7:
        moved = 1 + below(state, count - 1)
        job = chosen[moved]
        for index in range(moved, 0, -1):
            chosen[index] = chosen[index - 1]
        chosen[0] = job
    else:
        job = chosen[0]
        for index in range(count - 1):
            chosen[index] = chosen[index + 1]
        chosen[count - 1] = job


@njit(cache=True, nogil=True)
def exchange(
    start: Ints, best_start: Ints, jobs: Jobs, gpus_in_all: int, rounds: int, hot: float,
    cold: float, state: Words, most: int, reach: int,
) -> tuple[float, float]:  # fmt: skip
    """Improve a schedule in place by simulated annealing; its cost and that of the best one.

    Every round takes a few jobs that start close to each other out of the schedule and puts them
    back, in another order, each as early as possible while all others stay. The result is accepted
    if it costs no more, or more by chance at a temperature that falls from `hot` to `cold`.

    Parameters
    ----------
    start, best_start : ndarray of int, shape (jobs,)
        A feasible schedule, and the best one so far; both are changed.
    jobs : Jobs
        The jobs.
    gpus_in_all : int
        GPUs of the pool.
    rounds : int
        How many exchanges to try.
    hot, cold : float
        Temperatures, in the unit of the cost, above 0.
    state : ndarray of uint64, shape (1,)
        State of the draws, not 0; changed.
    most, reach : int
        At most so many jobs (at least 2) of so many that start one after another.
    """
    count_all = start.size
    time = np.empty(4 * count_all + 8 * most + 64, dtype=np.int64)
    room = np.empty_like(time)
    near_time, near_room = np.empty_like(time), np.empty_like(time)
    chosen = np.empty(most + 1, dtype=np.int64)
    new = np.empty(most + 1, dtype=np.int64)
    order = stable_order(start)
    size = timeline(start, jobs.duration, jobs.gpus, gpus_in_all, time, room)
    cost, best = total_cost(jobs, start), total_cost(jobs, best_start)
    if cost < best:
        best = cost
        copy_to(best_start, start)
    for turn in range(rounds):
        if turn % (2 * count_all) == 0:
            order = stable_order(start)
        count = _choose(state, order, below(state, count_all), reach, most, chosen)
        if count < 2:
            continue
        begin, end, longest = start[chosen[0]], np.int64(0), np.int64(0)
        for index in range(count):
            job = chosen[index]
            begin = min(begin, start[job])
            end = max(end, start[job] + jobs.duration[job])
            longest = max(longest, jobs.duration[job])
        low, high = step_at(time, size, begin), step_at(time, size, end)
        low = max(low - STEPS_AROUND, step_at(time, size, max(0, begin - longest)))
        high = min(high + STEPS_AROUND, step_at(time, size, end + longest)) + 2
        high = min(high, size)
        steps = high - low
        copy_to(near_time[:steps], time[low:high])
        copy_to(near_room[:steps], room[low:high])
        length = steps
        for index in range(count):
            job = chosen[index]
            at = step_at(near_time, length, start[job])
            until = start[job] + jobs.duration[job]
            length = book(near_time, near_room, length, at, start[job], until, -jobs.gpus[job])
        _reorder(state, chosen, count)
        change, fits = 0.0, True
        for index in range(count):
            job = chosen[index]
            earliest = max(jobs.submit[job], near_time[0])
            begin, length = insert(
                near_time, near_room, length, earliest, jobs.duration[job], jobs.gpus[job]
            )
            if begin < 0:
                fits = False
                break
            new[index] = begin
            change += cost_of(jobs, job, begin) - cost_of(jobs, job, start[job])
        if not fits:
            continue
        if change > 0.0:
            heat = hot * (cold / hot) ** (turn / rounds)
            if unit(state) >= np.exp(-change / heat):
                continue
        length = join_equal(near_time, near_room, length)
        shift = length - steps
        if shift > 0:
            for index in range(size - 1, high - 1, -1):
                time[index + shift] = time[index]
                room[index + shift] = room[index]
        elif shift < 0:
            for index in range(high, size):
                time[index + shift] = time[index]
                room[index + shift] = room[index]
        copy_to(time[low : low + length], near_time[:length])
        copy_to(room[low : low + length], near_room[:length])
        size += shift
        for index in range(count):
            start[chosen[index]] = new[index]
        cost += change
        if cost < best:
            best = cost
            copy_to(best_start, start)
    return cost, best
