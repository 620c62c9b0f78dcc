"""Sequences of starts, a job longer in each layer, and the prices that keep the layers small.

A state is what those behind a sequence need to know of it: the begun jobs, what they cost, and when
each GPU becomes free, the GPUs of a server side by side. Each kind of GPUs has prices. Why a
state may be dropped stands in ``kernel.sequences``, which does the same without numpy; here costs
and prices are integers as well, so that both drop the same. Costs are in units of 1 / `UNIT` of the
least one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

UNIT = 1024
"""Prices are multiples of this part of a cost."""
MOST_JOBS = 62  # bits of a state
DEFLECTED = 0.7  # share of the last direction in the next one
PATIENCE, SHORTER = (
    15,
    0.6,
)  # steps without a better bound before steps become shorter, and how much


class Tasks(NamedTuple):
    """Jobs in one piece, in whole units of time and cost, and where they may stand."""

    submit: Ints  # (jobs,)
    duration: Ints
    gpus: Ints
    cost: Ints  # of a unit of time, (jobs,)
    first: Ints  # first row of a job in `held`; its placements end where the next one's begin
    held: Ints  # GPUs by server, (placements, servers)
    on: Ints  # kind of the GPUs; a job's placements on one kind are neighbours, (placements,)
    begin: Ints  # first GPU of each server, and of none, (servers + 1,)
    kind: Ints  # of each server's GPUs, (servers,)


class Prices(NamedTuple):
    """Prices of a GPU by kind, ``level[:, k]`` from ``cut[k]`` on, and best responses."""

    cut: Ints
    level: Ints  # (kinds, cuts - 1)
    paid: Ints  # integral up to each cut, (kinds, cuts)
    point: Ints  # starts where a job's cost bends, in order, (jobs, points)
    least: Ints  # least cost of a start at a point or behind it, (kinds, jobs, points)
    start: Ints  # and that start


class Layer(NamedTuple):
    """States of one layer, and how they came about."""

    begun: Ints  # jobs as bits, (states,)
    cost: Ints
    free: Ints  # when each GPU becomes free, (states, GPUs)
    bound: Ints  # what prices prove of the sequences that go on from it
    parent: Ints  # state of the layer before
    row: Ints  # placement of the job that was begun last, a row of `held`


@njit(cache=True, nogil=True)
def _price_paid(cut: Ints, level: Ints, paid: Ints, time: int) -> int:
    if time <= 0:
        return 0
    k = np.searchsorted(cut, time, side="right") - 1
    return paid[-1] if k >= level.size else paid[k] + level[k] * (time - cut[k])


@njit(cache=True, nogil=True)
def price(tasks: Tasks, cut: Ints, level: Ints) -> Prices:
    """Best responses to prices."""
    jobs, cuts, kinds = tasks.submit.size, cut.size, level.shape[0]
    paid = np.zeros((kinds, cuts), dtype=np.int64)
    for kind in range(kinds):
        for k in range(cuts - 1):
            paid[kind, k + 1] = paid[kind, k] + level[kind, k] * (cut[k + 1] - cut[k])
    point = np.empty((jobs, 2 * cuts), dtype=np.int64)
    least = np.empty((kinds, jobs, 2 * cuts), dtype=np.int64)
    start, bends = np.empty_like(least), np.empty(2 * cuts, dtype=np.int64)
    for j in range(jobs):
        length = tasks.duration[j]
        for k in range(cuts):
            bends[k], bends[cuts + k] = cut[k], cut[k] - length
        order = stable_order(bends)
        for k in range(2 * cuts):
            point[j, k] = bends[order[k]]
        for kind in range(kinds):
            best = at = point[j, -1]
            for k in range(2 * cuts - 1, -1, -1):
                s = point[j, k]
                own = tasks.cost[j] * (s + length - tasks.submit[j]) + tasks.gpus[j] * (
                    _price_paid(cut, level[kind], paid[kind], s + length)
                    - _price_paid(cut, level[kind], paid[kind], s)
                )
                if k == 2 * cuts - 1 or own < best:
                    best, at = own, s
                least[kind, j, k], start[kind, j, k] = best, at
    return Prices(cut, level, paid, point, least, start)


@njit(cache=True, nogil=True)
def _respond(tasks: Tasks, prices: Prices, j: int, free: Ints) -> Any:
    """Least cost of a job that is not begun, its start and its kind."""
    best, at, on, row = np.int64(2**62), np.int64(0), np.int64(0), tasks.first[j]
    while row < tasks.first[j + 1]:
        kind, first = tasks.on[row], np.int64(2**62)
        while row < tasks.first[j + 1] and tasks.on[row] == kind:
            first = min(first, begin_on(tasks, free, j, row))
            row += 1
        cut, level, paid = prices.cut, prices.level[kind], prices.paid[kind]
        end = first + tasks.duration[j]
        now = tasks.cost[j] * (end - tasks.submit[j]) + tasks.gpus[j] * (
            _price_paid(cut, level, paid, end) - _price_paid(cut, level, paid, first)
        )
        k = np.searchsorted(prices.point[j], first)
        if k < prices.point.shape[1] and prices.least[kind, j, k] < now:
            now, first = prices.least[kind, j, k], prices.start[kind, j, k]
        if now < best:
            best, at, on = now, first, kind
    return best, at, on


@njit(cache=True, nogil=True)
def _worth_left(tasks: Tasks, prices: Prices, free: Ints) -> Any:
    """What prices pay till the GPUs become free, less all that they pay: below 0."""
    found = np.int64(0)
    for h in range(tasks.kind.size):
        level, paid = prices.level[tasks.kind[h]], prices.paid[tasks.kind[h]]
        for time in free[tasks.begin[h] : tasks.begin[h + 1]]:
            found += _price_paid(prices.cut, level, paid, time) - paid[-1]
    return found


@njit(cache=True, nogil=True)
def begin_on(tasks: Tasks, free: Ints, j: int, row: int) -> int:
    """Earliest start of a job on a placement."""
    found = tasks.submit[j]
    for h in range(tasks.held.shape[1]):
        if tasks.held[row, h]:
            found = max(found, free[tasks.begin[h] + tasks.held[row, h] - 1])
    return found


@njit(cache=True, nogil=True)
def _earliest(tasks: Tasks, free: Ints, j: int) -> int:
    found = begin_on(tasks, free, j, tasks.first[j])
    for row in range(tasks.first[j] + 1, tasks.first[j + 1]):
        found = min(found, begin_on(tasks, free, j, row))
    return found


@njit(cache=True, nogil=True)
def occupy(tasks: Tasks, free: Ints, new: Ints, row: int, start: int, end: int) -> None:
    """When GPUs become free once a job runs; servers of one size in order of that."""
    for h in range(tasks.held.shape[1]):
        first, last, width = tasks.begin[h], tasks.begin[h + 1], tasks.held[row, h]
        into, at = first, first + width
        while at < last and free[at] < end:
            new[into] = max(free[at], start)
            into += 1
            at += 1
        for _ in range(width):
            new[into] = end
            into += 1
        while at < last:
            new[into] = free[at]
            into += 1
            at += 1
    for h in range(1, tasks.held.shape[1]):  # by insertion
        size = tasks.begin[h + 1] - tasks.begin[h]
        for low in range(tasks.begin[h] - size, -1, -size):
            if not _is_before(tasks, new, low, size):
                break
            for k in range(low, low + size):
                new[k], new[k + size] = new[k + size], new[k]


@njit(cache=True, nogil=True)
def _is_before(tasks: Tasks, free: Ints, low: int, size: int) -> bool:
    """Whether the server of a size behind `low` is like the one at `low`, and before it."""
    at = np.searchsorted(tasks.begin, low)
    if tasks.begin[at] != low or tasks.begin[at + 1] - low != size:
        return False
    if tasks.kind[at] != tasks.kind[at + 1]:
        return False
    for k in range(low, low + size):
        if free[k] != free[k + size]:
            return bool(free[k + size] < free[k])
    return False


@njit(cache=True, nogil=True)
def _remaining_bound(tasks: Tasks, prices: Prices, begun: int, cost: int, free: Ints) -> int:
    """What prices prove of all that goes on from a state; where nothing does, what it costs."""
    if begun == (np.int64(1) << tasks.submit.size) - 1:
        return cost
    found = cost + _worth_left(tasks, prices, free)
    for j in range(tasks.submit.size):
        if not (begun >> j) & 1:
            found += _respond(tasks, prices, j, free)[0]
    return found


@njit(cache=True, nogil=True)
def extend(tasks: Tasks, layer: Layer, prices: Prices, least: int, room: int) -> Any:
    """The states a job longer whose bound is below `least`; how many, and how many were looked at.

    A further state beyond `room` ends it: there are room + 1 then.
    """
    jobs, gpus = tasks.submit.size, layer.free.shape[1]
    begun, cost = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    free, bounds = np.empty((room, gpus), dtype=np.int64), np.empty(room, dtype=np.int64)
    parent, rows = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    new, count, looked = np.empty(gpus, dtype=np.int64), 0, 0
    for state in range(layer.begun.size):
        soonest = np.int64(2**62)
        for j in range(jobs):
            if not (layer.begun[state] >> j) & 1:
                end = _earliest(tasks, layer.free[state], j) + tasks.duration[j]
                soonest = min(soonest, end)
        for j in range(jobs):
            if (layer.begun[state] >> j) & 1:
                continue
            for row in range(tasks.first[j], tasks.first[j + 1]):
                start = begin_on(tasks, layer.free[state], j, row)
                if start >= soonest:
                    continue
                looked += 1
                end = start + tasks.duration[j]
                occupy(tasks, layer.free[state], new, row, start, end)
                spent = layer.cost[state] + tasks.cost[j] * (end - tasks.submit[j])
                after = layer.begun[state] | (np.int64(1) << j)
                bound = _remaining_bound(tasks, prices, after, spent, new)
                if bound >= least:
                    continue
                if count == room:
                    return Layer(begun, cost, free, bounds, parent, rows), room + 1, looked
                copy_to(free[count], new)
                begun[count], cost[count] = after, spent
                bounds[count], parent[count], rows[count] = bound, state, row
                count += 1
    found = Layer(
        begun[:count], cost[:count], free[:count], bounds[:count], parent[:count], rows[:count]
    )
    return found, count, looked


@njit(cache=True, nogil=True)
def irreplaceable(tasks: Tasks, layer: Layer, order: Ints) -> tuple[Ints, int]:
    """States that no other of the same jobs can replace; and the kernel's steps to find them.

    `order` is by jobs, cost and sum of the times.
    """
    kept, count, first, weight = np.empty(order.size, dtype=np.int64), 0, 0, 0
    compared = pairs = 0
    for place in range(order.size):
        state = order[place]
        if place == 0 or layer.begun[state] != layer.begun[order[place - 1]]:
            first, weight = count, 0
            for j in range(tasks.submit.size):
                if not (layer.begun[state] >> j) & 1:
                    weight += tasks.cost[j]
        replaced = False
        for other in kept[first:count]:
            spare = layer.cost[state] - layer.cost[other]
            late = spare // weight if weight else np.int64(2**62)
            pairs += 1
            replaced = (
                layer.free[other, 0] - layer.free[state, 0] <= late
                and layer.free[other, -1] - layer.free[state, -1] <= late
            )
            if not replaced:
                continue
            compared += 1
            for k in range(layer.free.shape[1]):
                if layer.free[other, k] - layer.free[state, k] > late:
                    replaced = False
                    break
            if replaced:
                break
        if not replaced:
            kept[count] = state
            count += 1
    return kept[:count], 2 * pairs + (2 + layer.free.shape[1]) * compared


@njit(cache=True, nogil=True)
def climb(tasks: Tasks, layer: Layer, cut: Ints, level: Ints, target: int, steps: int) -> Any:
    """Prices at which states' bounds, each up to `target`, have the largest sum; and that sum.

    A deflected subgradient (Polyak's step, in the metric of the intervals' lengths).
    """
    jobs, (kinds, pieces) = tasks.submit.size, level.shape
    length = (cut[1:] - cut[:-1]).astype(np.float64)
    point, direction = level.astype(np.float64), np.zeros(level.shape)
    best, best_level, share, stalled = -np.inf, level.copy(), 1.0, 0
    for _ in range(steps):
        now = np.rint(point).astype(np.int64)
        prices = price(tasks, cut, now)
        total, missing = 0.0, 0.0
        gradient, jump = np.zeros((kinds, pieces + 1)), np.zeros((kinds, pieces + 1))
        start, on = np.empty(jobs, dtype=np.int64), np.empty(jobs, dtype=np.int64)
        for state in range(layer.begun.size):
            begun, free = layer.begun[state], layer.free[state]
            bound = layer.cost[state] + _worth_left(tasks, prices, free)
            for j in range(jobs):
                if not (begun >> j) & 1:
                    own, start[j], on[j] = _respond(tasks, prices, j, free)
                    bound += own
            total += min(bound, target)
            if bound >= target:
                continue
            missing += target - bound
            for h in range(tasks.kind.size):
                bend, leap = gradient[tasks.kind[h]], jump[tasks.kind[h]]
                for time in free[tasks.begin[h] : tasks.begin[h + 1]]:
                    _add(bend, leap, cut, time, 1.0)
                _add(bend, leap, cut, cut[-1], float(tasks.begin[h] - tasks.begin[h + 1]))
            for j in range(jobs):
                if not (begun >> j) & 1:
                    bend, leap, width = gradient[on[j]], jump[on[j]], float(tasks.gpus[j])
                    _add(bend, leap, cut, start[j] + tasks.duration[j], width)
                    _add(bend, leap, cut, start[j], -width)
        if total > best:
            best, best_level, stalled = total, now, 0
        else:
            stalled += 1
            if stalled > PATIENCE:
                share, stalled = share * SHORTER, 0
                point, direction = best_level.astype(np.float64), np.zeros(level.shape)
        norm = 0.0
        for kind in range(kinds):
            held = 0.0
            for k in range(pieces - 1, -1, -1):  # an integral up to t covers all before it
                held += jump[kind, k + 1]
                pull = gradient[kind, k] + held * length[k]
                direction[kind, k] = pull + DEFLECTED * direction[kind, k]
                if point[kind, k] <= 0 and direction[kind, k] < 0:
                    direction[kind, k] = 0.0
                norm += direction[kind, k] ** 2 / length[k]
        if norm <= 0 or missing <= 0:
            break
        for kind in range(kinds):
            for k in range(pieces):
                step = share * missing / norm * direction[kind, k] / length[k]
                point[kind, k] = max(0.0, point[kind, k] + step)
    return best_level, best


@njit(cache=True, nogil=True)
def _add(gradient: Floats, jump: Floats, cut: Ints, time: int, times: float) -> None:
    """Add the derivative of the prices' integral up to a time."""
    k = np.searchsorted(cut, time, side="right") - 1
    jump[k] += times
    if k < cut.size - 1:
        gradient[k] += times * (time - cut[k])
