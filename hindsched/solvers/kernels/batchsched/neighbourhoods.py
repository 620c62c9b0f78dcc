"""Neighbourhoods of a whole schedule: take jobs out, put each back where it is cheapest.

A job's cost is ``weight x completion + price of what it uses``, at one price a resource and slot
for all servers, so that only the servers that it stands on are left to choose: those on which it
wastes least. What is free is counted in whole units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.draws import Words, below, unit
from hindsched.solvers.kernels.placement import covering_ps, fits_together
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

TAKE, GIVE_BACK = np.int64(1), np.int64(-1)
"""What `book` does; it would be compiled once for each of two plain numbers."""
MOST = 32000.0
"""Workers on a server that are counted."""
TIMES = np.array([0.3, 0.7, 1.0, 1.5])
"""What idleness before and after a job counts, beside idleness in its window."""
STEP = 0.2
"""Slots of delay below which a schedule is no better than an earlier one."""
MOST_REMOVED = 10
"""Jobs taken out at most."""
BANDS = 0.5
"""Share of the moves that clear a window of the pivot's length in its wait, not all of that."""
MULTIPLES = np.array([0.0, 0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4])
"""Multiples of the prices at which jobs are put back."""
LITTLE = 1e-9
"""Relative gain below which a plan is no better."""


class WindowJobs(NamedTuple):
    """The jobs and the cluster's types, which no move changes."""

    arrival: Ints  # first slot, 0-based, (jobs,)
    weight: Floats  # cost of a slot, (jobs,)
    # where the modes of each job and worker type begin, and the last type's end, (jobs, worker
    # types + 1)
    first: Ints
    # q, N, L, PS type, fewest PSs, worker type; by worker type and ascending L, (modes, 6)
    modes: Ints
    shortest: Ints  # least L, (jobs,)
    worker: Floats  # demands in whole units, (types, resources)
    ps: Floats  # the same of PSs
    share: Floats  # workers to a unit; inf where they need none, (worker types, resources)
    ratio: Floats  # bandwidth of a worker over that of a PS, (worker types, PS types)
    has_ps: bool  # whether workers need PSs


class FreeCapacity(NamedTuple):
    """What is free."""

    free: Floats  # whole units, in floats, which tell quotients sooner, (servers, resources, slots)
    room: NDArray[np.int16]  # workers that fit, (worker types, slots, servers)
    total: NDArray[np.int32]  # their sum over the servers, (worker types, slots)


class WindowPlan(NamedTuple):
    """Schedules of all jobs."""

    # worker type, start (0-based), stop, host of PSs (-1: none), their type and number, (jobs, 6)
    what: Ints
    workers: NDArray[np.int32]  # workers by server, (jobs, servers)


class SearchPrices(NamedTuple):
    """What guides the search."""

    # prefix sums over the slots of the price of one worker or PS, (types, slots + 1)
    worker: Floats
    ps: Floats
    worth: Floats  # what a unit is worth where one is chosen among servers, (resources,)
    density: Floats  # jobs of high density are put back first, (jobs,)


@njit(cache=True)
def excess_costs(jobs: WindowJobs, prices: SearchPrices, slots: int) -> Floats:
    """How much a mode costs at the prices above its job's cheapest one, in slots of the job."""
    found = np.full(jobs.modes.shape[0], np.inf)
    for j in range(jobs.weight.shape[0]):
        low, high = jobs.first[j, 0], jobs.first[j, -1]
        for m in range(jobs.worker.shape[0]):
            for k in range(jobs.first[j, m], jobs.first[j, m + 1]):
                count, length = jobs.modes[k, 1], jobs.modes[k, 2]
                for t in range(jobs.arrival[j], slots - length + 1):
                    cost = jobs.weight[j] * (t + length)
                    if cost >= found[k]:
                        break
                    cost += count * (prices.worker[m, t + length] - prices.worker[m, t])
                    found[k] = min(found[k], cost)
        least = np.inf
        for k in range(low, high):
            least = min(least, found[k])
        for k in range(low, high):
            found[k] = (found[k] - least) / jobs.weight[j]
    return found


@njit(cache=True)
def renew_room(h: int, start: int, stop: int, cluster: FreeCapacity, share: Floats) -> None:
    """Count anew the workers that fit on a server in slots from `start` on, before `stop`.

    Half a unit more changes no quotient of whole numbers, and no rounding can then change one.
    Unsigned slots never count from an array's end, and what is written is never what was read: so
    that several are counted at once.
    """
    free, room, total = cluster
    types, resources = share.shape
    slots = range(np.uint64(0), np.uint64(stop - start))
    least, lower = np.empty(stop - start), np.empty(stop - start)
    for m in range(types):
        for t in slots:
            least[t] = MOST
        for r in range(resources):
            by, row = share[m, r], free[h, r, start:stop]
            for t in slots:
                lower[t] = min(least[t], (row[t] + 0.5) * by)
            least, lower = lower, least
        for t in range(stop - start):
            most = np.int32(max(0.0, least[t]))
            total[m, start + t] += most - room[m, start + t, h]
            room[m, start + t, h] = most


@njit(cache=True)
def book_job(
    sign: np.int64, j: int, plan: WindowPlan, cluster: FreeCapacity, jobs: WindowJobs
) -> None:
    """Take what a job's schedule uses (`TAKE`), or give it back (`GIVE_BACK`)."""
    m, start, stop, host, p, units = plan.what[j]
    free, workers, worker, ps = cluster.free, plan.workers, jobs.worker, jobs.ps
    for h in range(workers.shape[1]):
        count = workers[j, h]
        if count <= 0 and h != host:
            continue
        for r in range(worker.shape[1]):
            used = count * worker[m, r]
            if h == host:
                used += units * ps[p, r]
            used *= sign
            for t in range(np.uint64(start), np.uint64(stop)):
                free[h, r, t] -= used
        renew_room(h, start, stop, cluster, jobs.share)


@njit(cache=True)
def lower_free(left: Floats, free: Floats, first: int, stop: int) -> None:
    """Lower what is free on all servers to what is in some more slots."""
    for h in range(left.shape[0]):
        for r in range(left.shape[1]):
            least = left[h, r]
            row = free[h, r]
            for t in range(first, stop):
                least = min(least, row[t])
            left[h, r] = least


@njit(cache=True)
def beside(
    mode: Ints, m: int, p: int, most: int, elsewhere: int, left: Floats, jobs: WindowJobs
) -> tuple[int, int]:
    """Workers on a host and its PSs, the fewest; PSs 0 if it can be none."""
    count = mode[1]
    if mode[0] == 1:
        found = most >= count and fits_together(count, 1, jobs.worker[m], jobs.ps[p], left)
        return count, 1 if found else 0
    on = min(most, count - 1)
    while on >= 0 and count - on <= elsewhere:
        units = covering_ps(count - on, jobs.ratio[m, p])
        if fits_together(on, units, jobs.worker[m], jobs.ps[p], left):
            return on, units
        on -= 1
    return 0, 0


@njit(cache=True)
def has_host(
    k: int, m: int, total: int, room: NDArray[np.int16], left: Floats, jobs: WindowJobs
) -> bool:
    """Whether some server can hold the fewest PSs of a mode that any server needs."""
    mode = jobs.modes[k]
    p, fewest = mode[3], mode[4]
    for h in range(room.shape[0]):
        if fits_together(0, fewest, jobs.worker[m], jobs.ps[p], left[h]):
            _, units = beside(mode, m, p, room[h], total - room[h], left[h], jobs)
            if 0 < units <= fewest:
                return True
    return False


@njit(cache=True)
def cheapest_mode(
    j: int, multiple: float, prices: SearchPrices, cluster: FreeCapacity, jobs: WindowJobs
) -> tuple[int, int, int]:
    """Cheapest mode of a job at a multiple of the prices, its worker type and start; -1 if none."""
    servers, resources, slots = cluster.free.shape
    weight, modes, shortest = jobs.weight[j], jobs.modes, jobs.shortest[j]
    paid_worker, paid_ps = prices.worker, prices.ps
    all_room, in_all = cluster.room, cluster.total
    best, best_k, best_m, best_t = np.inf, -1, -1, -1
    limit = np.inf
    room = np.empty(servers, np.int16)
    left = np.empty((servers, resources))
    types = jobs.worker.shape[0]
    for t in range(jobs.arrival[j], slots):
        if weight * (t + 1 + shortest) >= limit:
            break
        for m in range(types):
            seen, least = 0, np.int64(1) << 40
            filled, lowered, total, largest = 0, 0, np.int64(0), 0
            for k in range(jobs.first[j, m], jobs.first[j, m + 1]):
                length, count = modes[k, 2], modes[k, 1]
                stop = t + length
                cost = weight * (stop + 1)
                if stop > slots or cost >= limit:
                    break
                while seen < length:
                    least = min(least, in_all[m, t + seen])
                    seen += 1
                if least == 0:
                    break
                if least < count:
                    continue
                paid = count * (paid_worker[m, stop] - paid_worker[m, t])
                if jobs.has_ps:
                    p = modes[k, 3]
                    paid += modes[k, 4] * (paid_ps[p, stop] - paid_ps[p, t])
                cost += multiple * paid
                if cost >= limit:
                    continue
                if filled < length:
                    if filled == 0:
                        room[:] = all_room[m, t]
                    for at in range(t + filled, stop):
                        for h in range(servers):
                            room[h] = min(room[h], all_room[m, at, h])
                    filled = length
                    total, largest = np.int64(0), 0
                    for h in range(servers):
                        total += room[h]
                        largest = max(largest, room[h])
                if total == 0:
                    break
                if (largest if modes[k, 0] == 1 else total) < count:
                    continue
                if jobs.has_ps:
                    if lowered == 0:
                        left[:] = np.inf
                    lower_free(left, cluster.free, t + lowered, stop)
                    lowered = length
                    if not has_host(k, m, total, room, left, jobs):
                        continue
                best, best_k, best_m, best_t = cost, k, m, t
                limit = best - STEP * weight
    return best_k, best_m, best_t


@njit(cache=True)
def place_job(
    j: int, k: int, m: int, start: int, prices: SearchPrices, plan: WindowPlan,
    cluster: FreeCapacity, jobs: WindowJobs, word: Words,
) -> None:  # fmt: skip
    """Put a job on the servers on which it wastes least, at what a resource is worth."""
    mode = jobs.modes[k]
    one, count, length, p, fewest, _ = mode
    worth, free, all_room = prices.worth, cluster.free, cluster.room
    servers, resources, slots = free.shape
    stop = start + length
    room, waste = np.empty(servers, np.int16), np.empty(servers)
    left, value = np.full((servers, resources), np.inf), np.zeros(servers)
    lower_free(left, free, start, stop)
    room[:] = all_room[m, start]
    for t in range(start + 1, stop):
        for h in range(servers):
            room[h] = min(room[h], all_room[m, t, h])
    whole = (jobs.worker[m] * worth).sum() + 1e-12
    total = 0
    beside_time = TIMES[below(word, len(TIMES))]
    for h in range(servers):
        total += room[h]
        take = min(room[h], count)
        if take > 0 or jobs.has_ps:
            for r in range(resources):
                value[h] += worth[r] * left[h, r] / whole
        if take == 0:
            waste[h] = np.inf
            continue
        idle = value[h] - take  # beside the workers, and before and after them
        if start > 0:
            idle += beside_time * min(all_room[m, start - 1, h], room[h])
        if stop < slots:
            idle += beside_time * min(all_room[m, stop, h], room[h])
        waste[h] = idle / take + 0.01 * room[h] + 1e-3 * unit(word)
    host, on_host, units, best = -1, 0, 0, np.inf
    for h in range(servers):
        if jobs.has_ps and fits_together(0, fewest, jobs.worker[m], jobs.ps[p], left[h]):
            on, need = beside(mode, m, p, room[h], total - room[h], left[h], jobs)
            rest = value[h] - on + 1e6 * (need - fewest)
            if need > 0 and rest < best:
                best, host, on_host, units = rest, h, on, need
        elif not jobs.has_ps and one == 1 and room[h] >= count and waste[h] < best:
            best, host, on_host = waste[h], h, count
    what = plan.what[j]
    what[0], what[1], what[2] = m, start, start + length
    what[3] = host if jobs.has_ps else -1
    what[4], what[5] = p, units
    plan.workers[j, :] = 0
    if host >= 0:
        plan.workers[j, host] = on_host
        count -= on_host
    for h in stable_order(waste):
        if count == 0:
            break
        if h != host:
            take = min(count, room[h])
            plan.workers[j, h] = take
            count -= take


@njit(cache=True)
def insert_all(
    order: Ints, multiple: float, budget: float, prices: SearchPrices, plan: WindowPlan,
    cluster: FreeCapacity, jobs: WindowJobs, word: Words,
) -> tuple[int, float]:  # fmt: skip
    """Put jobs back one after the other within the budget: how many, their weighted completion."""
    ahead = 0.0
    for j in order:
        ahead += jobs.weight[j] * (jobs.arrival[j] + jobs.shortest[j] + 1)
    cost = 0.0
    for done, j in enumerate(order):
        ahead -= jobs.weight[j] * (jobs.arrival[j] + jobs.shortest[j] + 1)
        k, m, t = cheapest_mode(j, multiple, prices, cluster, jobs)
        if k < 0:
            return done, cost
        cost += jobs.weight[j] * (t + jobs.modes[k, 2] + 1)
        if cost + ahead > budget:
            return done, cost
        place_job(j, k, m, t, prices, plan, cluster, jobs, word)
        book_job(TAKE, j, plan, cluster, jobs)
    return len(order), cost


@njit(cache=True)
def choose_removed(plan: WindowPlan, jobs: WindowJobs, word: Words) -> Ints:
    """Jobs to take out, the pivot first: that has its way, or the order is by noisy density."""
    number = jobs.weight.shape[0]
    end = plan.what[:, 2].astype(np.float64)
    delay = np.empty(number)
    for j in range(number):
        delay[j] = jobs.weight[j] * (end[j] - jobs.arrival[j] - jobs.shortest[j])
    count = min(number, 1 + below(word, MOST_REMOVED))
    pivot = below(word, number)
    if unit(word) < 0.7:
        aim = unit(word) * delay.sum()
        for j in range(number):
            aim -= delay[j]
            if aim < 0:
                pivot = j
                break
    low, high = float(jobs.arrival[pivot]), end[pivot]
    if unit(word) < BANDS:
        length = min(high - low, (1.0 + unit(word)) * jobs.shortest[pivot])
        low += unit(word) * (high - low - length)
        high = low + length
    far = np.empty(number)
    for j in range(number):
        overlap = min(high, end[j]) - max(low, float(plan.what[j, 1]))
        far[j] = -np.log(1.0 - unit(word)) / (0.2 + max(0.0, overlap))
    far[pivot] = -1.0
    return stable_order(far)[:count]


@njit(cache=True)
def improve(
    moves: int, heat: float, cost: Floats, plan: WindowPlan, cluster: FreeCapacity,
    prices: SearchPrices, jobs: WindowJobs, word: Words,
) -> int:  # fmt: skip
    """Try moves of a plan until one makes it better than the best; return how many were tried.

    `heat` is the mean worsening that is accepted; `cost` holds what the plan and the best one cost.
    """
    what = np.empty((MOST_REMOVED, plan.what.shape[1]), np.int64)
    workers = np.empty((MOST_REMOVED, plan.workers.shape[1]), np.int32)
    for tried in range(moves):
        chosen = choose_removed(plan, jobs, word)
        count = chosen.shape[0]
        before = 0.0
        keys = np.empty(count)
        for i in range(count):
            j = chosen[i]
            copy_to(what[i], plan.what[j])
            copy_to(workers[i], plan.workers[j])
            before += jobs.weight[j] * (plan.what[j, 2] + 1)
            book_job(GIVE_BACK, j, plan, cluster, jobs)
            keys[i] = -prices.density[j] * np.exp(unit(word) + unit(word) + unit(word))
        if unit(word) < 0.4:
            keys[0] = -np.inf
        order = chosen[stable_order(keys)]
        multiple = MULTIPLES[below(word, len(MULTIPLES))]
        budget = before - np.log(1.0 - unit(word)) * heat
        done, after = insert_all(order, multiple, budget, prices, plan, cluster, jobs, word)
        if done == count:
            cost[0] += after - before
            if cost[0] < cost[1] - LITTLE * abs(cost[1]):
                cost[1] = cost[0]
                return tried + 1
            continue
        for i in range(done):
            book_job(GIVE_BACK, order[i], plan, cluster, jobs)
        for i in range(count):
            copy_to(plan.what[chosen[i]], what[i])
            copy_to(plan.workers[chosen[i]], workers[i])
            book_job(TAKE, chosen[i], plan, cluster, jobs)
    return moves
