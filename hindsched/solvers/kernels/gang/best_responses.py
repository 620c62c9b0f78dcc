"""Exact best responses of all jobs to piecewise-constant prices, and their use.

Prices ``price[k]`` hold from ``cut[k]`` to ``cut[k + 1]``; after the last cut everything is free.
``total[k]`` is their running integral up to ``cut[k]``. A job's answer minimises its own cost plus
what it pays. Its own cost is ``slope`` times the slots from submission to completion, it must be
complete by ``latest``, and it may instead not run at all at cost ``skip`` (infinite where it must).
All cuts and times are integers, so that every minimum is at an integer.

One piece (`rigid_responses`): the cost is piecewise linear in the start s, with breaks where s or
s + p is a cut. It is scanned forward until the own cost alone is no better than the best.

Smoothed (`soft_responses`): in place of that minimum over breaks stands
``-mu log sum exp(-value / mu)``, smooth in the prices and at most ``mu log(breaks)`` below. Its
gradient is the expected use of a start drawn with weights ``exp(-value / mu)``: quasi-Newton
methods climb it in a few hundred evaluations where subgradients need tens of thousands, and the
expected starts say in which order jobs run.

Pausing (`pausing_responses`): the cheapest ``work`` GPU-slots in ``[submit, C]``, at most ``most``
a slot, plus the own cost of C. As C grows the dearest GPU-slots chosen give way to cheaper ones,
which a heap of price levels follows; within an interval the cost is convex in C.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.gang.sequences import GangJobs
from hindsched.solvers.kernels.gang.timeline import FOREVER

NEGLIGIBLE = 12.0
"""Starts that are so many mu dearer than the best have no weight."""
Held = list[tuple[float, np.int64, np.int64]]
"""A heap of (-price, GPU-slots, interval)."""


@njit(cache=True)
def _integral(cut: Ints, price: Floats) -> Floats:
    """Running integral of the prices at each cut."""
    total = np.zeros(cut.size)
    for k in range(price.size):
        total[k + 1] = total[k] + price[k] * (cut[k + 1] - cut[k])
    return total


@njit(cache=True)
def interval_of(cut: Ints, time: int) -> int:
    """Interval in which a time lies; -1 before the first cut."""
    return int(np.searchsorted(cut, time, side="right")) - 1


@njit(cache=True)
def _paid(cut: Ints, price: Floats, total: Floats, interval: int, time: int) -> float:
    """Integral of the prices up to a time in an interval."""
    if interval < 0:
        return 0.0
    if interval >= price.size:
        return total[price.size]
    return total[interval] + price[interval] * (time - cut[interval])


@njit(cache=True)
def _breaks(
    cut: Ints, price: Floats, total: Floats, blocks: GangJobs, job: int, slack: float, starts: Ints,
    values: Floats,
) -> tuple[int, float]:  # fmt: skip
    """Fill a job's starts in one piece at which its cost bends, and what it then costs in all.

    Starts whose own cost alone is `slack` dearer than the best so far are left out. Returns how
    many there are and the cheapest value, which may be that of not running.
    """
    submit, duration = blocks.submit[job], blocks.duration[job]
    gpus, slope = blocks.gpus[job], blocks.slope[job]
    last, latest = price.size, blocks.latest[job] - duration
    start, count, best = submit, 0, blocks.skip[job]
    here, there = interval_of(cut, start), interval_of(cut, start + duration)
    while start <= latest:
        own_cost = slope * (start + duration - submit)
        if own_cost >= best + slack:
            break
        high = _paid(cut, price, total, there, start + duration)
        starts[count] = start
        values[count] = own_cost + gpus * (high - _paid(cut, price, total, here, start))
        best = min(best, values[count])
        count += 1
        if here >= last:
            break
        step = cut[here + 1] - start
        if there < last:
            step = min(step, cut[there + 1] - duration - start)
        if start < latest:
            step = min(step, latest - start)
        start += step
        if start == cut[here + 1]:
            here += 1
        if there < last and start + duration == cut[there + 1]:
            there += 1
    return count, best


@njit(cache=True)
def _add_use(cut: Ints, use: Floats, change: Floats, start: int, end: int, amount: float) -> None:
    """Hold `amount` GPUs from start to end; `_finish_use` completes the sums."""
    last = use.size
    here, there = interval_of(cut, start), interval_of(cut, end)
    if 0 <= here < last:
        use[here] -= amount * (start - cut[here])
    if 0 <= there < last:
        use[there] += amount * (end - cut[there])
    if here < last:
        change[max(here, 0)] += amount
    if 0 <= there < last:
        change[there] -= amount


@njit(cache=True)
def _finish_use(cut: Ints, use: Floats, change: Floats) -> None:
    """Add what is held throughout each interval."""
    held = 0.0
    for k in range(use.size):
        held += change[k]
        use[k] += held * (cut[k + 1] - cut[k])


@njit(cache=True)
def rigid_responses(cut: Ints, price: Floats, blocks: GangJobs) -> tuple[Ints, Floats, Floats]:
    """Starts (-1: does not run) and values of all jobs, and GPU-slots used by interval."""
    jobs, last = blocks.submit.size, price.size
    total = _integral(cut, price)
    use, change = np.zeros(last), np.zeros(last + 1)
    start, value = np.full(jobs, -1), blocks.skip.copy()
    starts, values = np.empty(2 * last + 4, dtype=np.int64), np.empty(2 * last + 4)
    for job in range(jobs):
        count, _ = _breaks(cut, price, total, blocks, job, 0.0, starts, values)
        for index in range(count):
            if values[index] < value[job]:
                start[job], value[job] = starts[index], values[index]
        if start[job] >= 0:
            end = start[job] + blocks.duration[job]
            _add_use(cut, use, change, start[job], end, blocks.gpus[job])
    _finish_use(cut, use, change)
    return start, value, use


@njit(cache=True)
def soft_responses(
    cut: Ints, price: Floats, blocks: GangJobs, mu: float, weight: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Smoothed responses of all jobs in one piece, of which each counts by a share `weight`.

    The soft and the true minima, (jobs,); expected GPU-slots held by interval, (intervals,), times
    the shares; expected starts, (jobs,), the submission of a job that would rather not run.
    """
    jobs, last = blocks.submit.size, price.size
    total = _integral(cut, price)
    use, change = np.zeros(last), np.zeros(last + 1)
    expected = np.empty(jobs)
    starts, values = np.empty(2 * last + 4, dtype=np.int64), np.empty(2 * last + 4)
    soft, hard = np.empty(jobs), np.empty(jobs)
    for job in range(jobs):
        slack = NEGLIGIBLE * mu
        count, best = _breaks(cut, price, total, blocks, job, slack, starts, values)
        skip = blocks.skip[job]
        mass = np.exp((best - skip) / mu) if skip < np.inf else 0.0
        for index in range(count):
            far = (values[index] - best) / mu
            values[index] = np.exp(-far) if far < NEGLIGIBLE else 0.0
            mass += values[index]
        soft[job], hard[job] = best - mu * np.log(mass), best
        mean = seen = 0.0
        for index in range(count):
            if values[index] > 0.0:
                share = values[index] / mass
                mean += share * (starts[index] - blocks.submit[job])
                seen += share
                end = starts[index] + blocks.duration[job]
                amount = share * weight[job] * blocks.gpus[job]
                _add_use(cut, use, change, starts[index], end, amount)
        expected[job] = blocks.submit[job] + (mean / seen if seen > 0.0 else 0.0)
    _finish_use(cut, use, change)
    return soft, hard, use, expected


@njit(cache=True)
def _follow_completion(
    cut: Ints, price: Floats, blocks: GangJobs, job: int, until: int
) -> tuple[np.int64, float, Held]:
    """Follow the cheapest GPU-slots as the completion grows: best completion, value, levels held.

    The levels (-price, GPU-slots, interval) are those held when the sweep ended at `until`.
    """
    submit, most, slope = blocks.submit[job], blocks.most[job], blocks.slope[job]
    work = blocks.duration[job] * blocks.gpus[job]
    latest = min(blocks.latest[job], until)
    held = [(0.0, np.int64(0), np.int64(-1))]
    held.pop()
    best, value = np.int64(-1), blocks.skip[job]
    missing, cost, now = work, 0.0, submit
    k = interval_of(cut, now)
    while now < latest:
        if slope * (now - submit) >= value and until == FOREVER:
            break
        last = k >= price.size
        level = 0.0 if last or k < 0 else price[k]
        end = latest if last else min(cut[k + 1], latest)
        if missing > 0:  # fill up: all that the interval offers, at most what is missing
            slots = min(end - now, (missing + most - 1) // most)
            amount = min(missing, slots * most)
            heapq.heappush(held, (-level, amount, np.int64(k)))
            cost += level * amount
            missing -= amount
            now += slots
            if missing == 0:
                if slots * most > amount:  # the last slot has room left
                    cost, _, _, _ = _replace(
                        held, cost, level, slots * most - amount, most, k, -1.0
                    )
                if slope * (now - submit) + cost < value:
                    best, value = now, slope * (now - submit) + cost
        else:
            offered = min(end - now, work // most + 1) * most
            worth = level + slope / most  # what is dearer is worth waiting a slot for
            cost, taken, whole, even = _replace(held, cost, level, offered, most, k, worth)
            if whole > 0 and slope * (now + whole - submit) + even < value:
                best, value = now + whole, slope * (now + whole - submit) + even
            if taken > whole * most:  # the last slot is not full: it takes what is dearer than it
                rest = (whole + 1) * most - taken
                cost, more, _, _ = _replace(held, cost, level, rest, most, k, -1.0)
                taken += more
                if slope * (now + whole + 1 - submit) + cost < value:
                    best, value = now + whole + 1, slope * (now + whole + 1 - submit) + cost
            cost, _, _, _ = _replace(held, cost, level, offered - taken, most, k, -1.0)
            now = end
        if not last and now >= cut[k + 1]:
            k += 1
    return best, value, held


@njit(cache=True)
def _replace(
    held: Held, cost: float, level: float, offered: int, most: int, interval: int, worth: float
) -> tuple[float, np.int64, np.int64, float]:
    """Replace the dearest GPU-slots held by up to `offered` ones at `level`.

    Only those dearer than `level` and than `worth` go. Returns the cost, how many went, how many
    whole slots of `most` that fills, and the cost when those were full.
    """
    taken, whole, even = np.int64(0), np.int64(0), cost
    while taken < offered and len(held) > 0 and -held[0][0] > level and -held[0][0] > worth:
        dear, size, where = heapq.heappop(held)
        number = min(size, offered - taken)
        full = (taken + number) // most
        if full > whole:
            whole, even = full, cost + (full * most - taken) * (level + dear)
        cost += number * (level + dear)
        taken += number
        if number < size:
            heapq.heappush(held, (dear, size - number, where))
    if taken > 0:
        heapq.heappush(held, (-level, taken, np.int64(interval)))
    return cost, taken, whole, even


@njit(cache=True)
def pausing_responses(
    cut: Ints, price: Floats, blocks: GangJobs, factor: Floats
) -> tuple[Ints, Floats, Floats]:
    """Completions (-1: does not run) and values of all jobs, and GPU-slots used by interval.

    A unit of work of a job stands for `factor` GPU-slots: its gang's where it is all or nothing.
    """
    jobs = blocks.submit.size
    completion = np.empty(jobs, dtype=np.int64)
    value = np.empty(jobs)
    use = np.zeros(price.size)
    for job in range(jobs):
        scaled = price * factor[job]
        completion[job], value[job], held = _follow_completion(cut, scaled, blocks, job, FOREVER)
        if completion[job] >= 0:
            _, _, held = _follow_completion(cut, scaled, blocks, job, completion[job])
            for _, amount, interval in held:
                if 0 <= interval < use.size:
                    use[interval] += amount * factor[job]
    return completion, value, use


def fluid_prices(cut: Ints, submit: Ints, area: Floats, density: Floats, room: int) -> Floats:
    """Mean price of the fluid relaxation in each interval between cuts, (intervals,).

    All GPUs are one fast machine that may pause. Mean busy times of its jobs are weighted best by
    running the largest weight per GPU-slot first (Goemans, Queyranne, Schulz, Skutella & Wang,
    2002). Its dual prices are the upper envelope of one line a job, of slope minus its density; a
    line begins where the job ends and meets there that of the job which takes over.
    Jobs by submission, sorted, with GPU-slots of work (`area`) and weight per GPU-slot (`density`).
    """
    time, price = _lines(submit, area / room, density)
    steps = np.diff(time) * (price[1:] + price[:-1]) / 2
    steps[1::2] = 0.0  # between two pieces nothing runs or a line jumps
    upto = np.concatenate([[0.0], np.cumsum(steps)])
    return np.diff(np.interp(cut, time, upto)) / np.diff(cut)


@njit(cache=True)
def _lines(submit: Ints, length: Floats, density: Floats) -> tuple[Floats, Floats]:
    """Begin and end of each piece of the schedule, in pairs, and the price there."""
    jobs = submit.size
    pieces = np.empty((2 * jobs, 2))
    owner = np.empty(2 * jobs, dtype=np.int64)
    left = length.copy()
    heir = np.full(jobs, -1)
    queue = [(0.0, np.int64(0))]
    queue.pop()
    now, arrived, count = 0.0, 0, 0
    while arrived < jobs or len(queue) > 0:
        if len(queue) == 0:
            now = max(now, float(submit[arrived]))
        while arrived < jobs and submit[arrived] <= now:
            heapq.heappush(queue, (-density[arrived], np.int64(arrived)))
            arrived += 1
        job = queue[0][1]
        end = now + left[job]
        finishes = arrived == jobs or end <= submit[arrived]
        if not finishes:
            end = float(submit[arrived])
        pieces[count, 0], pieces[count, 1] = now, end
        owner[count] = job
        count += 1
        left[job] -= end - now
        now = end
        if finishes:
            heapq.heappop(queue)
            heir[job] = queue[0][1] if len(queue) > 0 else -1
    height = np.full(jobs, np.nan)
    time, price = np.empty(2 * count), np.empty(2 * count)
    for piece in range(count - 1, -1, -1):
        job = owner[piece]
        begin, end = pieces[piece]
        if np.isnan(height[job]):
            other = heir[job]
            level = height[other] - density[other] * end if other >= 0 else 0.0
            height[job] = level + density[job] * end
        time[2 * piece], time[2 * piece + 1] = begin, end
        price[2 * piece] = max(0.0, height[job] - density[job] * begin)
        price[2 * piece + 1] = max(0.0, height[job] - density[job] * end)
    return time, price
