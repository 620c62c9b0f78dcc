"""The cheapest way to finish a job of identical chunks by each completion, exact.

A job ends at completion c at the price P(c) of the worker slots that it takes; the best response
is the c with the smallest ``c + P(c)``. Slots are counted from the job's arrival (index 0).

Without migration a worker's chunks take its cheapest slots up to c, so that the next chunk on a
worker costs the next ``work`` smallest prices: increments rise, and the cheapest increments over
all workers are optimal, also if a server can store only so many, or a place must have some.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.solvers.kernels.stable_order import copy_to


@njit(cache=True)
def cheapest_by_completion(
    first: Any, count: Any, price: Any, extra: Any, work: int, chunks: int, cloud: Any,
    windows: Any, owner: Any, room: Any, least: Any, most: Any, best: float, earliest: int,
    paid_until: int,
) -> Any:  # fmt: skip
    """Best value, completion and chunks by place; the completion is -1 if nothing beats `best`.

    Groups, (G,), of `count` identical workers from slot `first` on, of the servers `owner`. `price`
    of a worker slot, (G, L), inf where it is taken; `extra`, (G, L), is what a chunk pays beside,
    if the job completes in that slot (storage). `cloud`, (K, L), has the price of the first,
    second, ... chunk in the cloud that has ended by that slot, further ones as in the last row;
    `windows`, (L,), the most that can have. `room`, (S, L), are the chunks that each server can
    store; no rows for no limit. `least` and `most`, (G + 1,), limit the chunks of each group and,
    last, of the cloud. The job cannot complete before `earliest`, and pays until `paid_until`.
    """
    groups, length = price.shape
    ranked, total = np.empty((groups, length)), np.zeros((groups, length + 1))
    size = np.zeros(groups, dtype=np.int64)
    taken, best_taken = np.zeros(groups + 1, dtype=np.int64), np.zeros(groups + 1, dtype=np.int64)
    space = np.empty(room.shape[0])
    completion = -1
    for c in range(length):
        time = max(c, paid_until) + 1.0
        if time >= best:
            break
        for g in range(groups):
            if c >= first[g] and price[g, c] < np.inf:
                column = size[g]
                while column > 0 and ranked[g, column - 1] > price[g, c]:
                    ranked[g, column] = ranked[g, column - 1]
                    column -= 1
                ranked[g, column] = price[g, c]
                size[g] += 1
        room_left = 0.0 if cloud[-1, c] == np.inf else float(windows[c])  # for chunks, by c
        for g in range(groups):
            room_left += size[g] // work * count[g]
        if c < earliest or room_left < chunks - cloud.shape[0] + 1:
            continue
        for g in range(groups):
            for i in range(size[g]):
                total[g, i + 1] = total[g, i] + ranked[g, i]
        taken[:] = 0
        left, cost = chunks, time
        copy_to(space, room[:, c])
        while left > 0 and cost < best:
            which, cheapest, number = -1, np.inf, 0
            for g in range(groups + 1):
                if g == groups:
                    row = min(taken[g], cloud.shape[0] - 1)
                    step = cloud[row, c]
                    offered = windows[c] - taken[g] if row + 1 == cloud.shape[0] else 1
                else:
                    layer = taken[g] // count[g] + 1
                    if layer * work > size[g]:
                        continue
                    step = total[g, layer * work] - total[g, (layer - 1) * work] + extra[g, c]
                    offered = layer * count[g] - taken[g]
                    if space.size:
                        offered = int(min(float(offered), space[owner[g]]))
                offered = min(offered, most[g] - taken[g])
                if offered < 1 or step == np.inf:
                    continue
                if taken[g] < least[g]:
                    which, cheapest, number = g, step, min(offered, least[g] - taken[g])
                    break
                if step < cheapest:
                    which, cheapest, number = g, step, offered
            if which == -1:
                break
            number = min(number, left)
            if which < groups and space.size:
                space[owner[which]] -= number
            taken[which] += number
            left -= number
            cost += number * cheapest
        if left == 0 and cost < best and np.all(taken >= least):
            best, completion = cost, c
            copy_to(best_taken, taken)
    return best, completion, best_taken
