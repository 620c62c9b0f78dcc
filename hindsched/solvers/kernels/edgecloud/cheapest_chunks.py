"""The cheapest way to finish a job of identical chunks by each completion, exact.

A job ends at completion c at the price P(c) of the worker slots that it takes; the best response
is the c with the smallest ``c + P(c)``. Slots are counted from the job's arrival (index 0).

Without migration a worker's chunks take its cheapest slots up to c, so that the next chunk on a
worker costs the next ``work`` smallest prices: increments rise, and the cheapest increments over
all workers are optimal, also if a server can store only so many. With migration any
``chunks * work`` units will do, at most one a chunk and slot. Both are greedy over sorted prices,
kept sorted as c grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.solvers.kernels.stable_order import copy_to


@njit(cache=True)
def cheapest_by_completion(
    first: Any, count: Any, price: Any, extra: Any, work: int, chunks: int, cloud: Any,
    windows: Any, owner: Any, room: Any, best: float, earliest: int,
) -> Any:  # fmt: skip
    """Best value and completion when every chunk stays on one worker; -1 if nothing beats `best`.

    Groups, (G,), of `count` identical workers from slot `first` on, of the servers `owner`. `price`
    of a worker slot, (G, L), inf where it is taken; `extra`, (G, L), is what a chunk pays beside,
    if the job completes in that slot (storage). `cloud`, (K, L), has the price of the first,
    second, ... chunk in the cloud that has ended by that slot, further ones as in the last row;
    `windows`, (L,), the most that can have. `room`, (S, L), are the chunks that each server can
    store; no rows for no limit. The job cannot complete before `earliest`.
    """
    groups, length = price.shape
    ranked = np.empty((groups, length))
    size = np.zeros(groups, dtype=np.int64)
    total = np.zeros((groups, length + 1))
    layer = np.empty(groups, dtype=np.int64)
    space = np.empty(room.shape[0])
    found = -1
    for c in range(length):
        if c + 1 >= best:
            break
        for g in range(groups):
            if c >= first[g] and price[g, c] < np.inf:
                column = size[g]
                while column > 0 and ranked[g, column - 1] > price[g, c]:
                    ranked[g, column] = ranked[g, column - 1]
                    column -= 1
                ranked[g, column] = price[g, c]
                size[g] += 1
        sky = min(chunks, windows[c])
        most = 0.0 if cloud[-1, c] == np.inf else float(sky)  # that can have ended by c
        for g in range(groups):
            most += size[g] // work * count[g]
        if c < earliest or most < chunks - cloud.shape[0] + 1:
            continue
        for g in range(groups):
            for i in range(size[g]):
                total[g, i + 1] = total[g, i] + ranked[g, i]
            layer[g] = 0
        left, cost, sent = chunks, c + 1.0, 0
        copy_to(space, room[:, c])
        while left > 0 and cost < best:
            which, cheapest = -1, cloud[sent, c] if sky > 0 else np.inf
            for g in range(groups):
                begin, end = layer[g] * work, (layer[g] + 1) * work
                if end <= size[g] and (space.size == 0 or space[owner[g]] >= 1):
                    step = total[g, end] - total[g, begin] + extra[g, c]
                    if step < cheapest or (which == -1 and step == cheapest and step < np.inf):
                        which, cheapest = g, step
            if cheapest == np.inf:
                cost = np.inf
            elif which == -1:
                taken = 1 if sent + 1 < cloud.shape[0] else min(left, sky)
                sky -= taken
                sent = min(sent + 1, cloud.shape[0] - 1)
                cost += taken * cheapest
                left -= taken
            else:
                taken = min(left, count[which])
                if space.size:
                    taken = int(min(float(taken), space[owner[which]]))
                    space[owner[which]] -= taken
                cost += taken * cheapest
                left -= taken
                layer[which] += 1
        if cost < best:
            best, found = cost, c
    return best, found


@njit(cache=True)
def cheapest_units_by_completion(
    first: Any, count: Any, price: Any, work: int, chunks: int, best: float, earliest: int
) -> Any:
    """Best value and completion when work may move between workers and slots; -1 as above.

    Arrays as for `cheapest_by_completion`, but `count` is by group and slot, (G, L), and the cloud
    is a group.
    """
    groups, length = price.shape
    ranked = np.empty(groups * length)
    amount = np.empty(groups * length)
    used = np.zeros(groups, dtype=np.bool_)
    size, found = 0, -1
    need, held = float(work) * chunks, 0.0
    for c in range(length):
        if c + 1 >= best:
            break
        room = float(chunks)
        used[:] = False
        while room > 0:
            which = -1
            for g in range(groups):
                open_ = not used[g] and c >= first[g] and count[g, c] > 0
                if open_ and (which == -1 or price[g, c] < price[which, c]):
                    which = g
            if which == -1 or price[which, c] == np.inf:
                break
            used[which] = True
            units = min(room, float(count[which, c]))
            room -= units
            held += units
            column = size
            while column > 0 and ranked[column - 1] > price[which, c]:
                ranked[column] = ranked[column - 1]
                amount[column] = amount[column - 1]
                column -= 1
            ranked[column], amount[column] = price[which, c], units
            size += 1
        if c < earliest or held < need:
            continue
        left, cost = need, c + 1.0
        for i in range(size):
            units = min(left, amount[i])
            cost += units * ranked[i]
            left -= units
            if left <= 0 or cost >= best:
                break
        if left <= 0 and cost < best:
            best, found = cost, c
    return best, found


@njit(cache=True)
def cheapest_windows(price: Any, first: int, work: int) -> Any:
    """Smallest sum of `work` consecutive prices from `first` on that has ended by each slot, (L,).

    inf where none has ended.
    """
    length = price.size
    best = np.full(length, np.inf)
    priced = length
    while priced > 0 and price[priced - 1] == 0:
        priced -= 1
    for end in range(first + work - 1, length):
        total = 0.0
        for t in range(end - work + 1, min(end + 1, priced)):
            total += price[t]
        best[end] = total
        if end > 0 and best[end - 1] < total:
            best[end] = best[end - 1]
    return best
