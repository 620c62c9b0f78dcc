"""What schedules of one pool cost, and annealing over sequences of jobs.

Placing jobs in turn at their earliest feasible start gives, over all orders, every schedule in
which no job could start earlier alone; one of them is optimal for any objective that never rewards
waiting.

In a *sequence* each job starts as early as possible, but not before the one in front of it; every
schedule is at most improved by sequencing its own starts so. All that a later job needs to know of
those before it is when each GPU becomes free: one sorted row a place, no timeline. GPUs that are
free before the last start are entered as free from then on, so equal rows mean equal futures; and
later free GPUs never make a later job start earlier. So what a move costs is known as soon as the
rows agree again, and a move that costs too much is given up as soon as GPUs are no sooner free in
sum: of those that would have paid all the same so few are lost that it is worth the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.draws import Words, below, unit
from hindsched.solvers.kernels.stable_order import copy_to


class GangJobs(NamedTuple):
    """What bounds and searches know of the jobs."""

    submit: Ints  # the jobs; pausing ones have ``duration x gpus`` units of work, (jobs,)
    duration: Ints
    gpus: Ints
    most: Ints  # most units a slot of pausing ones, (jobs,)
    slope: Floats  # cost of a slot between submission and completion, (jobs,)
    latest: Ints  # last slot by which it must be complete; `FOREVER` for none, (jobs,)
    skip: Floats  # cost of being later, or of not running; infinite if it must run, (jobs,)


@njit(cache=True, nogil=True)
def cost_of(jobs: GangJobs, job: int, start: int) -> float:
    """Cost of a job that starts then."""
    end = start + jobs.duration[job]
    late = jobs.skip[job] if end > jobs.latest[job] else 0.0
    return jobs.slope[job] * (end - jobs.submit[job]) + late


@njit(cache=True, nogil=True)
def total_cost(jobs: GangJobs, start: Ints) -> float:
    """Cost of a schedule."""
    total = 0.0
    for job in range(start.size):
        total += cost_of(jobs, job, start[job])
    return total


SWAP, ONE = 0.3, 0.6
"""Share of the moves that swap two jobs; share of the others that move one job, not a block."""


@njit(cache=True, nogil=True)
def advance(old: Ints, new: Ints, job: int, jobs: GangJobs) -> int:
    """Start the next job where the GPUs become free at `old`; fill `new`, return the start."""
    width = jobs.gpus[job]
    start = max(jobs.submit[job], old[width - 1])
    end = start + jobs.duration[job]
    low = width + int(np.searchsorted(old[width:], end))  # the first GPU not free before this job's
    for index in range(low - width):
        new[index] = max(old[index + width], start)
    for index in range(low - width, low):
        new[index] = end
    for index in range(low, old.size):
        new[index] = old[index]
    return start


@njit(cache=True, nogil=True)
def starts_in_sequence(sequence: Ints, jobs: GangJobs, gpus_in_all: int) -> Ints:
    """Starts of jobs that start one after another, shape (jobs,)."""
    start = np.empty(sequence.size, dtype=np.int64)
    row = np.zeros((2, gpus_in_all), dtype=np.int64)
    for place in range(sequence.size):
        job = sequence[place]
        start[job] = advance(row[place % 2], row[1 - place % 2], job, jobs)
    return start


@njit(cache=True, nogil=True)
def _later(new: Ints, old: Ints) -> int:
    """0 if two rows are equal, 1 if the new one is later in sum, else -1."""
    differ, later = False, 0
    for index in range(new.size):
        differ |= new[index] != old[index]
        later += new[index] - old[index]
    return (1 if later >= 0 else -1) if differ else 0


@njit(cache=True, nogil=True)
def _draw_move(state: Words, old: Ints, new: Ints, first: int, last: int) -> None:
    """Draw what comes to places `first` to `last`: two swapped, or a block moved to an end."""
    if unit(state) < SWAP:
        new[first], new[last] = old[last], old[first]
        return
    apart = last - first
    block = 1 if unit(state) < ONE else int((apart + 0.999) ** unit(state))
    if unit(state) < 0.5:
        block = apart + 1 - block  # the rest comes to the front: the block goes to the back
    for index in range(block):
        new[first + index] = old[last + 1 - block + index]
    for index in range(apart + 1 - block):
        new[first + block + index] = old[first + index]


@njit(cache=True, nogil=True)
def resequence(
    sequence: Ints, jobs: GangJobs, gpus_in_all: int, rounds: int, heat: float, state: Words,
    reach: int,
) -> int:  # fmt: skip
    """Anneal a sequence in place at one temperature, in the cost's unit; how many jobs were placed.

    Every round moves jobs within a stretch of the sequence, of `reach` at most, whose length is
    drawn from all orders of magnitude alike, and accepts what costs less, or more by chance. A row
    of memory for each job has `gpus_in_all` entries.
    """
    places = sequence.size
    free = np.empty((places + 1, gpus_in_all), dtype=np.int64)
    new_free = np.empty_like(free)
    cost, new_cost = np.empty((2, places))
    free[0] = 0
    for place in range(places):
        start = advance(free[place], free[place + 1], sequence[place], jobs)
        cost[place] = cost_of(jobs, sequence[place], start)
    new = sequence.copy()
    placed = places
    reach = min(reach, places - 1)
    for _ in range(rounds):
        limit = -heat * np.log(1.0 - unit(state))
        begin, end = below(state, places), int((reach + 0.999) ** unit(state))
        end += begin
        if end >= places:
            continue
        _draw_move(state, sequence, new, begin, end)
        change, stop = 0.0, places
        copy_to(new_free[begin], free[begin])
        for place in range(begin, places):
            start = advance(new_free[place], new_free[place + 1], new[place], jobs)
            new_cost[place] = cost_of(jobs, new[place], start)
            change += new_cost[place] - cost[place]
            if place >= end:
                gone = _later(new_free[place + 1], free[place + 1])
                if gone == 0 or (gone == 1 and change > limit):
                    stop = place + 1
                    break
        placed += stop - begin
        if change > limit:
            copy_to(new[begin : end + 1], sequence[begin : end + 1])
            continue
        copy_to(sequence[begin : end + 1], new[begin : end + 1])
        for place in range(begin + 1, stop + 1):
            copy_to(free[place], new_free[place])
        copy_to(cost[begin:stop], new_cost[begin:stop])
    return placed
