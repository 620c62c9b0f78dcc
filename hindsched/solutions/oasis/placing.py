"""Placing counts per group of servers on the servers themselves.

An aggregated optimum says how many workers of each job a group of identical servers runs in a
slot; whether they fit server by server is a small vector bin packing, solved here by best-fit
orders and then by a search that gives up after a while. Giving up is no proof that they do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened

SEARCH_STEPS = 20_000
"""Units tried in one search before it gives up."""


def place(counts: Ints, demand: Floats, free: Floats) -> Ints | None:
    """Put units of several jobs on servers.

    Parameters
    ----------
    counts : ndarray of int, shape (J,)
        Units of each job.
    demand : ndarray, shape (J, R)
        Demand of one unit of each job.
    free : ndarray, shape (S, R)
        What is free on each server.

    Returns
    -------
    ndarray of int, shape (J, S), or None
        Units by job and server; None if no placement was found.
    """
    free = loosened(free, free.max(axis=0, initial=0.0))
    if (counts @ demand > free.sum(axis=0)).any():
        return None
    scale = np.maximum(free.max(axis=0, initial=0.0), 1e-300)
    size = demand / scale
    orders = [
        np.argsort(-size.max(axis=1), kind="stable"),
        np.argsort(-size.sum(axis=1), kind="stable"),
        *(np.argsort(-size[:, r], kind="stable") for r in range(size.shape[1])),
    ]
    for order in orders:
        placed = _best_fit(counts, demand, free, order, scale)
        if placed is not None:
            return placed
    return _search(counts, demand, free, orders[0])


def _best_fit(
    counts: Ints,
    demand: Floats,
    free: Floats,
    order: Ints,
    scale: Floats,
) -> Ints | None:
    """Each unit onto the server that it leaves fullest."""
    left = free.copy()
    placed = np.zeros((counts.size, free.shape[0]), dtype=np.int64)
    for job in order:
        for _ in range(int(counts[job])):
            after = left - demand[job]
            fits = (after >= 0).all(axis=1)
            if not fits.any():
                return None
            server = int(np.argmin(np.where(fits, (after / scale).sum(axis=1), np.inf)))
            left[server] = after[server]
            placed[job, server] += 1
    return placed


def _search(counts: Ints, demand: Floats, free: Floats, order: Ints) -> Ints | None:
    """Depth-first over units; units of a job go to servers in rising order; equal servers once."""
    units = [int(job) for job in order for _ in range(int(counts[job]))]
    left = free.copy()
    chosen: list[int] = []
    steps = 0
    start = 0
    while len(chosen) < len(units):
        job = units[len(chosen)]
        server = _next_server(left, free, demand[job], start)
        steps += 1
        if steps > SEARCH_STEPS:
            return None
        if server is None:
            if not chosen:
                return None
            last = chosen.pop()
            left[last] += demand[units[len(chosen)]]
            start = last + 1
            continue
        left[server] -= demand[job]
        chosen.append(server)
        same = len(chosen) < len(units) and units[len(chosen)] == job
        start = server if same else 0
    placed = np.zeros((counts.size, free.shape[0]), dtype=np.int64)
    np.add.at(placed, (units, chosen), 1)
    return placed


def _next_server(left: Floats, free: Floats, demand: Floats, start: int) -> int | None:
    tried: set[bytes] = set()
    for server in range(free.shape[0]):
        key = left[server].tobytes() + free[server].tobytes()
        if server >= start and key not in tried and (left[server] >= demand).all():
            return server
        if server < start:
            continue
        tried.add(key)
    return None


def place_slot(
    counts: Sequence[Ints],
    demand: Floats,
    free: Sequence[Floats],
) -> list[Ints] | None:
    """Place one slot group by group; if a group fails, all groups' units on all servers.

    Parameters
    ----------
    counts : sequence of ndarray, shape (J,)
        Units of each job in each group.
    demand : ndarray, shape (J, R)
        Demand of one unit.
    free : sequence of ndarray, shape (servers of the group, R)
        What is free on the servers of each group.

    Returns
    -------
    list of ndarray, shape (J, servers of the group), or None
    """
    placed = [place(count, demand, left) for count, left in zip(counts, free, strict=True)]
    if all(one is not None for one in placed):
        return [one for one in placed if one is not None]
    total = np.sum(counts, axis=0)
    everywhere = place(total, demand, np.concatenate(list(free)))
    if everywhere is None:
        return None
    edges = np.cumsum([left.shape[0] for left in free])[:-1]
    return list(np.split(everywhere, edges, axis=1))
