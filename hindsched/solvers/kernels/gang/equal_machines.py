"""The least makespan of jobs that are all there, on equal machines: depth first, in few nodes."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.stable_order import copy_to

MOST_NODES = 20_000
"""Nodes after which the best schedule found so far stands."""


@njit(cache=True, nogil=True)
def _largest(load: Ints) -> int:
    """As ``load.max()``, which takes ten times as long to compile."""
    found = load[0]
    for other in load:
        found = max(found, other)
    return found


@njit(cache=True, nogil=True)
def _longest_first(size: Ints, load: Ints, machine: Ints) -> int:
    load[:] = 0
    for job in range(size.size):
        machine[job] = np.argmin(load)
        load[machine[job]] += size[job]
    return _largest(load)


@njit(cache=True, nogil=True)
def _spread(size: Ints, machines: int, most: int) -> tuple[Ints, int]:
    """Machine of each job, sizes falling; and the nodes looked at."""
    count = size.size
    load = np.zeros(machines, dtype=np.int64)
    best = np.empty(count, dtype=np.int64)
    least = _longest_first(size, load, best)
    total = size.sum()
    low = max(-(-total // machines), size[0])
    machine = np.full(count, -1, dtype=np.int64)
    left = np.empty(count + 1, dtype=np.int64)  # work of this job and of all after it
    left[count] = 0
    for job in range(count - 1, -1, -1):
        left[job] = left[job + 1] + size[job]
    load[:] = 0
    job = nodes = 0
    while job >= 0 and least > low and nodes < most:
        if machine[job] >= 0:
            load[machine[job]] -= size[job]
        room = 0
        for other in range(machines):
            room += max(0, least - 1 - load[other])
        at = machine[job] + 1 if room >= left[job] else machines
        while at < machines:
            fits = load[at] + size[job] < least
            for other in range(at):  # equally loaded machines are the same
                fits = fits and load[other] != load[at]
            if fits:
                break
            at += 1
        if at == machines:
            machine[job] = -1
            job -= 1
            continue
        nodes += 1
        machine[job] = at
        load[at] += size[job]
        if job + 1 < count:
            job += 1
            machine[job] = -1
            continue
        least = _largest(load)
        copy_to(best, machine)
    return best, nodes


def starts_on_machines(duration: Ints, machines: int) -> tuple[Ints, int]:
    """Starts of a schedule with the least makespan, and the nodes it took.

    It is proven to be the least where there were fewer nodes than the limit.

    Parameters
    ----------
    duration : ndarray of int, shape (jobs,)
        At least one job; each needs one machine.
    machines : int
        How many there are.

    Examples
    --------
    >>> import numpy as np
    >>> starts, _ = starts_on_machines(np.array([3, 3, 2, 2, 2]), 2)
    >>> int((starts + [3, 3, 2, 2, 2]).max())
    6
    """
    order = np.argsort(-duration, kind="stable")
    machine, nodes = _spread(duration[order], machines, MOST_NODES)
    start = np.empty_like(duration)
    end = np.zeros(machines, dtype=np.int64)
    for job, at in zip(order, machine, strict=True):
        start[job] = end[at]
        end[at] += duration[job]
    return start, nodes
