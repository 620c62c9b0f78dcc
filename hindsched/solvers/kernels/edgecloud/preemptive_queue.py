"""Workers that serve chunks by static priority, preempting and resuming: exact, event-driven.

A worker always trains the available chunk of the smallest key; equal keys go by the time at which
they became available, then by order of arrival. Identical chunks of one job on one worker are one
entry with a count, because they tie and run one after the other. Times are real numbers: with
integer data every event falls on an integer.

State arrays have one row a worker and one column an entry, in order of priority; ``size`` says how
many columns of a row are in use, ``clock`` up to when a worker has been advanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.stable_order import copy_to

TINY = 1e-9
"""Remaining work below this is none: only real-valued data ever leaves any."""


class QueueState:
    """The queues of all workers; `capacity` entries a worker at first, more when needed."""

    def __init__(self, workers: int, capacity: int = 16) -> None:
        self.clock = np.zeros(workers)
        self.size = np.zeros(workers, dtype=np.int64)
        self.job = np.zeros((workers, capacity), dtype=np.int64)
        # key, available from, remaining work, work of one chunk, weight of one chunk
        self.data = np.zeros((workers, capacity, 5))
        self._load_kernels()

    def _load_kernels(self) -> None:
        """Call the kernels once on empty queues, so that no later call waits for the compiler."""
        self.advance(0.0)
        self.running()
        self.outlook(np.zeros(0, dtype=np.int64), np.zeros(0), 0.0)
        if self.size.size:
            self.weighted_completion(0, 0, 0.0, 0.0, 1.0, 0.0)
            self.planned_end(0, 0)

    def insert(
        self, worker: int, job: int, count: int, key: float, available: float, work: float,
        weight: float,
    ) -> None:  # fmt: skip
        """Add `count` identical chunks of a job to a worker that is advanced to now."""
        if self.size[worker] == self.job.shape[1]:
            self.job = np.concatenate((self.job, np.zeros_like(self.job)), axis=1)
            self.data = np.concatenate((self.data, np.zeros_like(self.data)), axis=1)
        entry = np.array((key, available, count * work, work, weight))
        _insert(self.size, self.job, self.data, worker, job, entry)

    def remove(self, worker: int, job: int) -> None:
        """Take a job's chunks away from a worker again."""
        size = int(self.size[worker])
        kept = [c for c in range(size) if self.job[worker, c] != job]
        self.job[worker, : len(kept)] = self.job[worker, kept]
        self.data[worker, : len(kept)] = self.data[worker, kept]
        self.size[worker] = len(kept)

    def advance(self, now: float) -> None:
        """Let every worker run up to `now`."""
        _advance_all(self.clock, self.size, self.job, self.data, float(now))

    def hold_back(self, job: int, until: float) -> None:
        """Let no worker run a job before `until`; its place in the queues stays."""
        columns = np.arange(self.job.shape[1])
        mine = (self.job == job) & (columns[None, :] < self.size[:, None])
        self.data[..., 1][mine] = np.maximum(self.data[..., 1][mine], until)

    def unfinished(self) -> set[int]:
        """Jobs with work left on some worker."""
        columns = np.arange(self.job.shape[1])
        return set(np.unique(self.job[columns[None, :] < self.size[:, None]]).tolist())

    def running(self) -> Ints:
        """Job that each worker is about to run at its clock, -1 if none, shape (workers,)."""
        jobs: Ints = _running(self.clock, self.size, self.job, self.data)
        return jobs

    def outlook(self, workers: Ints, ready: Floats, key: float) -> Floats:
        """What a chunk of priority `key` finds on workers when it is ready, with no more arrivals.

        By worker, (len(workers), 3): remaining work of key at most `key`; weight of the unfinished
        chunks of larger key; the same with each chunk's weight scaled by its unfinished share.
        """
        found: Floats = _outlook(self.clock, self.size, self.data, workers, ready, key)
        return found

    def weighted_completion(
        self, worker: int, count: int, key: float, available: float, work: float, weight: float
    ) -> float:
        """Sum of weight x completion over a worker's chunks after `count` more are added."""
        entry = np.array((key, available, count * work, work, weight))
        total: float = _weighted_completion(self.clock, self.size, self.data, worker, entry)
        return total

    def planned_end(self, worker: int, job: int) -> float:
        """When a job's last chunk on a worker ends if nothing more arrives."""
        end: float = _planned_end(self.clock, self.size, self.job, self.data, worker, job)
        return end


@njit(cache=True)
def _goes_before(data: Any, worker: int, column: int, entry: Any) -> bool:
    """Whether a new entry goes before an old one: smaller key, then earlier available."""
    if entry[0] != data[worker, column, 0]:
        return bool(entry[0] < data[worker, column, 0])
    return bool(entry[1] < data[worker, column, 1])


@njit(cache=True)
def _insert(size: Any, job: Any, data: Any, worker: int, name: int, entry: Any) -> None:
    column = size[worker]
    while column > 0 and _goes_before(data, worker, column - 1, entry):
        copy_to(data[worker, column], data[worker, column - 1])
        job[worker, column] = job[worker, column - 1]
        column -= 1
    copy_to(data[worker, column], entry)
    job[worker, column] = name
    size[worker] += 1


@njit(cache=True)
def _top(available: Any, remaining: Any, size: int, now: float) -> tuple[int, float]:
    """First available unfinished entry, and when one before it becomes available."""
    soonest = np.inf
    for column in range(size):
        if remaining[column] <= TINY:
            continue
        if available[column] <= now:
            return column, soonest
        soonest = min(soonest, available[column])
    return -1, soonest


@njit(cache=True)
def _advance(data: Any, size: int, remaining: Any, start: float, end: float) -> None:
    """Run one worker's queue over [start, end); `remaining` is changed."""
    now = start
    while now < end:
        column, soonest = _top(data[:, 1], remaining, size, now)
        if column < 0:
            if soonest >= end:
                return
            now = soonest
            continue
        until = min(end, soonest, now + remaining[column])
        remaining[column] -= until - now
        now = until


@njit(cache=True)
def _advance_all(clock: Any, size: Any, job: Any, data: Any, now: float) -> None:
    for worker in range(clock.size):
        if size[worker]:
            _advance(data[worker], size[worker], data[worker, :, 2], clock[worker], now)
            kept = 0
            for column in range(size[worker]):
                if data[worker, column, 2] > TINY:
                    if kept < column:
                        copy_to(data[worker, kept], data[worker, column])
                        job[worker, kept] = job[worker, column]
                    kept += 1
            size[worker] = kept
        clock[worker] = now


@njit(cache=True)
def _running(clock: Any, size: Any, job: Any, data: Any) -> Any:
    jobs = np.full(clock.size, -1, dtype=np.int64)
    for worker in range(clock.size):
        top, _ = _top(data[worker, :, 1], data[worker, :, 2], size[worker], clock[worker])
        if top >= 0:
            jobs[worker] = job[worker, top]
    return jobs


@njit(cache=True)
def _outlook(clock: Any, size: Any, data: Any, workers: Any, ready: Any, key: float) -> Any:
    found = np.zeros((workers.size, 3))
    for i in range(workers.size):
        worker = workers[i]
        count = size[worker]
        remaining = data[worker, :count, 2].copy()
        _advance(data[worker], count, remaining, clock[worker], ready[i])
        for column in range(count):
            left = remaining[column]
            if left <= TINY or data[worker, column, 1] > ready[i]:
                continue
            if data[worker, column, 0] <= key:
                found[i, 0] += left
            else:
                share = left / data[worker, column, 3]
                found[i, 1] += np.ceil(share - TINY) * data[worker, column, 4]
                found[i, 2] += share * data[worker, column, 4]
    return found


@njit(cache=True)
def _weighted_completion(clock: Any, size: Any, data: Any, worker: int, entry: Any) -> float:
    count = size[worker]
    plan = np.empty((count + 1, data.shape[2]))
    for column in range(count):
        copy_to(plan[column], data[worker, column])
    if entry[2] > 0:
        column = count
        while column > 0 and _goes_before(data, worker, column - 1, entry):
            copy_to(plan[column], plan[column - 1])
            column -= 1
        copy_to(plan[column], entry)
        count += 1
    remaining = plan[:, 2].copy()
    now, total = clock[worker], 0.0
    while True:
        column, soonest = _top(plan[:, 1], remaining, count, now)
        if column < 0:
            if soonest == np.inf:
                return total
            now = soonest
            continue
        until = min(soonest, now + remaining[column])
        work, left = plan[column, 3], remaining[column]
        after = left - (until - now)
        chunks = np.ceil(left / work - TINY) - 1  # whole chunks behind the one that runs
        while chunks * work >= after - TINY and chunks >= 0:
            total += plan[column, 4] * (now + left - chunks * work)
            chunks -= 1
        remaining[column] = after
        now = until


@njit(cache=True)
def _planned_end(clock: Any, size: Any, job: Any, data: Any, worker: int, name: int) -> float:
    count = size[worker]
    remaining = data[worker, :count, 2].copy()
    now, end = clock[worker], 0.0
    while True:
        column, soonest = _top(data[worker, :, 1], remaining, count, now)
        if column < 0:
            if soonest == np.inf:
                return end
            now = soonest
            continue
        until = min(soonest, now + remaining[column])
        remaining[column] -= until - now
        now = until
        if job[worker, column] == name and remaining[column] <= TINY:
            end = now


def serve(worker: Ints, available: Floats, key: Floats, work: Floats) -> tuple[Ints, Floats]:
    """Run all queues to the end: the chunk of each segment, and its begin and end, (segments, 2).

    Chunks, (n,), in order of dispatch. Touching segments of a chunk are joined.
    """
    order = np.lexsort((np.arange(worker.size), available, worker))
    available, key, work = (np.asarray(part, dtype=float) for part in (available, key, work))
    entry, span = _serve(worker[order], available[order], key[order], work[order])
    return order[entry], span


@njit(cache=True)
def _serve(worker: Any, available: Any, key: Any, work: Any) -> Any:
    n = worker.size
    entry = np.empty(2 * n, dtype=np.int64)
    span = np.empty((2 * n, 2))
    segments, i, now = 0, 0, 0.0
    active = np.empty(n, dtype=np.int64)
    remaining = work.copy()
    waiting = 0
    current = -1
    while i < n or waiting > 0:
        if waiting == 0:
            if worker[i] != current:
                current, now = worker[i], available[i]
            now = max(now, available[i])
        while i < n and worker[i] == current and available[i] <= now:
            place = waiting
            while place > 0 and key[active[place - 1]] <= key[i]:
                active[place] = active[place - 1]
                place -= 1
            active[place] = i
            waiting += 1
            i += 1
        top = active[waiting - 1]
        until = now + remaining[top]
        if i < n and worker[i] == current:
            until = min(until, available[i])
        if segments and entry[segments - 1] == top and span[segments - 1, 1] == now:
            span[segments - 1, 1] = until
        else:
            entry[segments] = top
            span[segments, 0] = now
            span[segments, 1] = until
            segments += 1
        remaining[top] -= until - now
        now = until
        if remaining[top] <= TINY:
            waiting -= 1
    return entry[:segments], span[:segments]
