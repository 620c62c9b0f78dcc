"""Schedules from an order: every job in turn at its earliest feasible start (one pool)."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def insert_earliest(
    time: Any, room: Any, size: int, submit: int, duration: int, gpus: int
) -> tuple[int, int]:
    """Book a job at its earliest start in a step function of free GPUs; (start, new size)."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time[middle] <= submit:
            low = middle
        else:
            high = middle - 1
    first = low
    start = submit
    at = first
    while True:
        if room[at] < gpus:
            at += 1
            start = time[at]
            first = at
        elif at + 1 == size or time[at + 1] >= start + duration:
            break
        else:
            at += 1
    end = start + duration
    # split at start and at end
    more_start = 1 if time[first] != start else 0
    more_end = 1 if (at + 1 == size or time[at + 1] != end) else 0
    shift = more_start + more_end
    if shift:
        for index in range(size - 1, at, -1):
            time[index + shift] = time[index]
            room[index + shift] = room[index]
        if more_end:
            time[at + shift] = end
            room[at + shift] = room[at]
        if more_start:
            for index in range(at, first, -1):
                time[index + 1] = time[index]
                room[index + 1] = room[index] - gpus
            time[first + 1] = start
            room[first + 1] = room[first] - gpus
        else:
            for index in range(first, at + 1):
                room[index] -= gpus
    else:
        for index in range(first, at + 1):
            room[index] -= gpus
    return start, size + shift


@njit(cache=True)
def serial(
    order: Any, submit: Any, duration: Any, gpus: Any, room_in_all: int, time: Any, room: Any,
    start: Any,
) -> None:  # fmt: skip
    """Start of every job when they are placed in an order."""
    time[0] = 0
    room[0] = room_in_all
    size = 1
    for job in order:
        start[job], size = insert_earliest(time, room, size, submit[job], duration[job], gpus[job])
