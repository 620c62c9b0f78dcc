"""Best (mode, start) of one job at prices that are the same on every server.

The subproblem (9) of astraea: only the number of workers and parameter servers (PSs) costs, so the
placement is a question of room. Centralised: the server with the smallest room that takes all.
Distributed: the host that needs the fewest PSs, the other workers on servers in order of room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.placement import num_ps
from hindsched.solvers.kernels.stable_order import stable_order
from hindsched.solvers.kernels.ties import TIE

NOTHING = -1


@njit(cache=True)
def window_rooms(free: Ints, first: int, length: int, room: Ints) -> None:
    """Fill `room`, shape (servers,), with the least of `free` (slots, servers) in a window."""
    servers = free.shape[1]
    for s in range(servers):
        room[s] = free[first, s]
    for t in range(first + 1, first + length):  # servers inside: they lie side by side
        for s in range(servers):
            room[s] = min(room[s], free[t, s])


@njit(cache=True)
def central_host(count: int, workers: Ints, ps: Ints) -> int:
    """Server with the least room for workers that takes `count` of them and a PS; -1 if none."""
    best = NOTHING
    for s in range(workers.shape[0]):
        if workers[s] >= count and ps[s] >= 1 and (best < 0 or workers[s] < workers[best]):
            best = s
    return best


@njit(cache=True)
def spread_host(
    count: int, workers: Ints, ps: Ints, ratio: float, ps_quota: int
) -> tuple[int, int]:
    """Host and its PSs for `count` workers on at least two servers, fewest PSs first; -1 if none.

    The host takes as many workers as fit, at most `count` - 1; its PSs must serve the others (3i).
    """
    total = 0
    for s in range(workers.shape[0]):
        total += workers[s]
    best, fewest = NOTHING, 0
    for s in range(workers.shape[0]):
        on_host = min(count - 1, workers[s])
        if total - workers[s] < count - on_host:
            continue
        needed = num_ps(count - on_host, ratio)
        if needed <= min(ps[s], ps_quota) and (best < 0 or needed < fewest):
            best, fewest = s, needed
    return best, fewest


class Room(NamedTuple):
    """What is free of one pair of types, what a tenant may use of it, and prices of a unit."""

    workers: Ints  # what is free, (slots, servers)
    ps: Ints
    worker_quota: Ints  # what the job's tenant may use in all, (slots,)
    ps_quota: Ints
    worker_price: Floats  # prices of a unit, (slots,)
    ps_price: Floats


@njit(cache=True)
def best_offer(
    modes: ModeColumns, values: Floats, free: Room, ratio: float, least: float
) -> tuple[float, float, int, int, int, int]:
    """Best (mode, start) of a job below its values: payoff, cost, mode, start (0-based), host, PSs.

    Mode -1 if nothing fits. Ties: earlier completion, fewer workers, fewer PSs, mode order. `modes`
    are of one pair of types; ``values[t]``, by the last slot, 1-based, must not rise, -inf where a
    window may not end; `ratio` is that of `same_ceilings`; a payoff below `least`, but for a tie,
    does not count. A window costs a look at its sums of prices; the slots of one that is worth its
    price are looked at once a mode for the quotas, and its servers only if these leave room.
    """
    _, _, together, count, length = modes
    free_workers, free_ps, quota_workers, quota_ps, price_workers, price_ps = free
    slots, servers = free_workers.shape
    prefix_workers, prefix_ps = np.zeros(slots + 1), np.zeros(slots + 1)
    for t in range(slots):
        prefix_workers[t + 1] = prefix_workers[t] + price_workers[t]
        prefix_ps[t + 1] = prefix_ps[t] + price_ps[t]
    workers, ps = np.empty(servers, dtype=np.int64), np.empty(servers, dtype=np.int64)
    most, best, best_cost = least, least, 0.0  # `most` is the largest payoff, `best` the chosen
    best_mode, best_start, best_host, best_ps = NOTHING, 0, NOTHING, 0
    for k in range(length.shape[0]):
        d, n = length[k], count[k]
        seen, refused = 0, NOTHING  # slots whose quotas were looked at, the last that lacks them
        for start in range(slots - d + 1):
            tie = TIE * abs(values[start + d])
            if values[start + d] < most - tie or values[start + d] == -np.inf:
                break
            cost = n * (prefix_workers[start + d] - prefix_workers[start])
            unit = prefix_ps[start + d] - prefix_ps[start]
            payoff = values[start + d] - cost - unit
            if payoff < most - tie:
                continue
            if payoff <= most + tie and not _first(
                k, start, 1, best_mode, best_start, best_ps, count, length
            ):
                continue
            for t in range(max(seen, start), start + d):
                if quota_workers[t] < n or quota_ps[t] < 1:
                    refused = t
            seen = start + d
            if refused >= start:
                continue
            window_rooms(free_workers, start, d, workers)
            window_rooms(free_ps, start, d, ps)
            if together[k]:
                host, needed = central_host(n, workers, ps), 1
            else:
                most_ps = quota_ps[start]
                for t in range(start + 1, start + d):
                    most_ps = min(most_ps, quota_ps[t])
                host, needed = spread_host(n, workers, ps, ratio, most_ps)
                payoff = values[start + d] - cost - needed * unit
            if host < 0:
                continue
            chosen = best_mode, best_start, best_ps
            if payoff > most + tie or (
                payoff >= most - tie and _first(k, start, needed, *chosen, count, length)
            ):
                most = max(most, payoff)
                best, best_cost = payoff, cost + needed * unit
                best_mode, best_start, best_host, best_ps = k, start, host, needed
    return best, best_cost, best_mode, best_start, best_host, best_ps


@njit(cache=True)
def _first(
    mode: int, start: int, ps: int, other: int, other_start: int, other_ps: int,
    count: Ints, length: Ints,
) -> bool:  # fmt: skip
    """Whether a tie goes to (mode, start, PSs): earlier end, fewer workers, PSs, mode order."""
    if other < 0:
        return True
    end, other_end = start + length[mode], other_start + length[other]
    if end != other_end:
        return bool(end < other_end)
    if count[mode] != count[other]:
        return bool(count[mode] < count[other])
    return ps < other_ps


@njit(cache=True)
def spread_workers(count: int, host: int, free_workers: Ints, first: int, length: int) -> Ints:
    """Workers by server of a distributed placement: the host's, then servers by ascending room."""
    servers = free_workers.shape[1]
    room = np.empty(servers, dtype=np.int64)
    window_rooms(free_workers, first, length, room)
    placed = np.zeros(servers, dtype=np.int64)
    placed[host] = min(count - 1, room[host])
    left = count - placed[host]
    for s in stable_order(room):
        if s != host and left > 0:
            placed[s] = min(left, room[s])
            left -= placed[s]
    return placed
