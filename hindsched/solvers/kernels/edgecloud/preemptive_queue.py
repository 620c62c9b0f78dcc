"""Workers that serve chunks by static priority, preempting and resuming: exact, event-driven.

A worker always trains the available chunk of the smallest key; equal keys go by the time at which
they became available, then by order of arrival. Identical chunks of one job on one worker are one
entry with a count, because they tie and run one after the other. Times are real numbers: with
integer data every event falls on an integer.

A queue is an array of entries in order of priority, with the columns below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

KEY, AVAILABLE, LEFT, WORK, WEIGHT, JOB = range(6)
"""Key, first time, remaining work, work of a chunk, weight of a chunk, number of the job."""
TINY = 1e-9
"""Remaining work below this is none: only real-valued data ever leaves any."""


class QueueState:
    """The queues of all workers, advanced to `now`; `capacity` entries a worker at first."""

    def __init__(self, workers: int, capacity: int = 16) -> None:
        self.now = 0.0
        self.size = np.zeros(workers, dtype=np.int64)
        self.data = np.zeros((workers, capacity, 6))
        # the kernels once on empty queues: no later call waits for the compiler
        self.advance(0.0)
        self.running()
        self.outlook(np.zeros(0, dtype=np.int64), np.zeros(0), 0.0)
        run_queue(np.zeros((0, 6)), 0.0, np.inf, np.zeros((0, 2)))

    def queue(self, worker: int) -> Floats:
        """A worker's entries."""
        entries: Floats = self.data[worker, : self.size[worker]]
        return entries

    def _with(self, worker: int, entry: Floats) -> Floats:
        """A worker's entries and a new one, behind those that it does not beat."""
        queue = self.queue(worker)
        behind = (queue[:, KEY] < entry[KEY]) | (
            (queue[:, KEY] == entry[KEY]) & (queue[:, AVAILABLE] <= entry[AVAILABLE])
        )
        at = int(behind.sum())
        return np.concatenate((queue[:at], entry[None], queue[at:]))

    def insert(self, worker: int, entry: Floats) -> None:
        """Add an entry, see `entry_of`, to a worker."""
        queue = self._with(worker, entry)
        if len(queue) > self.data.shape[1]:
            self.data = np.concatenate((self.data, np.zeros_like(self.data)), axis=1)
        self.size[worker] = len(queue)
        self.queue(worker)[:] = queue

    def advance(self, now: float) -> None:
        """Let every worker run up to `now`."""
        _advance(self.data, self.size, self.now, float(now))
        self.now = float(now)

    def _in_use(self) -> Any:
        return np.arange(self.data.shape[1]) < self.size[:, None]

    def hold_back(self, job: int, until: float) -> None:
        """Let no worker run a job before `until`; its place in the queues stays."""
        waiting = self._in_use() & (self.data[..., JOB] == job)
        self.data[..., AVAILABLE][waiting] = np.maximum(self.data[..., AVAILABLE][waiting], until)

    def unfinished(self) -> set[int]:
        """Jobs with work left on some worker."""
        return set(self.data[..., JOB][self._in_use()].astype(int).tolist())

    def running(self) -> Ints:
        """Job that each worker is about to run now, -1 if none, shape (workers,)."""
        jobs: Ints = _running(self.data, self.size, self.now)
        return jobs

    def outlook(self, workers: Ints, ready: Floats, key: float) -> Floats:
        """What a chunk of priority `key` finds on workers when it is ready, with no more arrivals.

        By worker, (len(workers), 3): remaining work of key at most `key`; weight of the unfinished
        chunks of larger key; the same with each chunk's weight scaled by its unfinished share.
        """
        work_ahead: Floats = _outlook(self.data, self.size, self.now, workers, ready, key)
        return work_ahead

    def weighted_completion(self, worker: int, entry: Floats) -> float:
        """Sum of weight x completion over a worker's chunks and those of one more entry."""
        queue = self._with(worker, entry)
        return float(run_queue(queue, self.now, np.inf, np.zeros((len(queue), 2))))

    def planned_end(self, worker: int, entry: Floats) -> float:
        """When the last chunk of one more entry ends if nothing else arrives."""
        queue = self._with(worker, entry)
        ends = np.zeros((len(queue), 2))
        run_queue(queue, self.now, np.inf, ends)
        return float(ends[queue[:, JOB] == entry[JOB], 0].max())


def entry_of(
    job: int, count: int, key: float, available: float, work: float, weight: float
) -> Floats:
    """`count` identical chunks of a job."""
    return np.array((key, available, count * work, work, weight, job))


@njit(cache=True)
def run_queue(queue: Any, now: float, end: float, ends: Any) -> float:
    """Run a queue from `now` to `end`; what remains stays in it.

    `ends`, (n, 2), gets when entries were last served, and the integral of the time over their
    service. Returns the sum of weight x completion of the chunks that ended.
    """
    total = 0.0
    while now < end:
        top, until = -1, end
        for i in range(len(queue)):
            if queue[i, LEFT] > TINY:
                if queue[i, AVAILABLE] <= now:
                    top = i
                    until = min(until, now + queue[i, LEFT])
                    break
                until = min(until, queue[i, AVAILABLE])
        if top < 0:
            if until == end:
                break
            now = until
            continue
        work, left = queue[top, WORK], queue[top, LEFT]
        after = left - (until - now)
        chunks = np.ceil(left / work - TINY) - 1  # whole chunks behind the one that runs
        while chunks * work >= after - TINY and chunks >= 0:
            total += queue[top, WEIGHT] * (now + left - chunks * work)
            chunks -= 1
        queue[top, LEFT] = after
        ends[top, 0] = until
        ends[top, 1] += (until * until - now * now) / 2
        now = until
    return total


@njit(cache=True)
def _advance(data: Any, size: Any, now: float, end: float) -> None:
    ends = np.zeros((data.shape[1], 2))
    for worker in range(size.size):
        if size[worker]:
            run_queue(data[worker, : size[worker]], now, end, ends)
            kept = 0
            for i in range(size[worker]):
                if data[worker, i, LEFT] > TINY:
                    for column in range(data.shape[2]):
                        data[worker, kept, column] = data[worker, i, column]
                    kept += 1
            size[worker] = kept


@njit(cache=True)
def _running(data: Any, size: Any, now: float) -> Any:
    jobs = np.full(size.size, -1, dtype=np.int64)
    for worker in range(size.size):
        for i in range(size[worker]):
            if data[worker, i, LEFT] > TINY and data[worker, i, AVAILABLE] <= now:
                jobs[worker] = int(data[worker, i, JOB])
                break
    return jobs


@njit(cache=True)
def _outlook(data: Any, size: Any, now: float, workers: Any, ready: Any, key: float) -> Any:
    ahead, ends = np.zeros((workers.size, 3)), np.zeros((data.shape[1], 2))
    for row in range(workers.size):
        queue = data[workers[row], : size[workers[row]]].copy()
        run_queue(queue, now, ready[row], ends)
        for i in range(len(queue)):
            left = queue[i, LEFT]
            if left <= TINY or queue[i, AVAILABLE] > ready[row]:
                continue
            if queue[i, KEY] <= key:
                ahead[row, 0] += left
            else:
                share = left / queue[i, WORK]
                ahead[row, 1] += np.ceil(share - TINY) * queue[i, WEIGHT]
                ahead[row, 2] += share * queue[i, WEIGHT]
    return ahead
