"""Neighbourhoods of a whole schedule: take jobs out, put each back where it is cheapest.

A move (`improve_plan`) takes out a pivot and jobs near it (`draw_removed`) and puts them back one
after the other (`insert_all`): each in its cheapest mode and window (`cheapest_mode`), on the
servers on which it wastes least (`place_job`).

A job's cost is ``weight x completion + price of what it uses``, at one price a resource and slot
for all servers, so that only the servers that it stands on are left to choose. What is free is
counted in whole units. Slots count from 0; a window ends before its `stop`.
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
"""What `book_job` does; it would be compiled once for each of two plain numbers."""
MOST_WORKERS = 32000.0
"""Workers on a server that are counted."""
IDLE_WEIGHTS = np.array([0.3, 0.7, 1.0, 1.5])
"""What idleness before and after a job counts, beside idleness in its window."""
LEAST_DELAY = 0.2
"""Slots of delay below which a schedule is no better than an earlier one."""
MOST_REMOVED = 10
"""Jobs taken out at most."""
SHORT_WINDOWS = 0.5
"""Share of the moves that clear a window of the pivot's length in its wait, not all of that."""
MULTIPLES = np.array([0.0, 0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4])
"""Multiples of the prices at which jobs are put back."""
LEAST_GAIN = 1e-9
"""Relative gain below which a plan is no better."""

WORKER_TYPE, PS_TYPE = 0, 4
"""Columns of modes and of a plan's rows."""
WORKERS, DURATION, ONE_SERVER, FEWEST_PS = 1, 2, 3, 5
"""Further columns of modes: whether all stand on one server, and the fewest PSs."""
START, STOP, HOST, NUM_PS = 1, 2, 3, 5
"""Further columns of a plan's rows: the window, the server of the PSs (-1: none), their number."""


class WindowJobs(NamedTuple):
    """The jobs and the cluster's types, which no move changes."""

    arrival: Ints  # first slot, (jobs,)
    weight: Floats  # cost of a slot, (jobs,)
    # where the modes of each job and worker type begin, and the last type's end, (jobs, worker
    # types + 1)
    first: Ints
    modes: Ints  # by job, worker type and ascending duration, (modes, 6)
    shortest: Ints  # least duration, (jobs,)
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

    rows: Ints  # (jobs, 6)
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
    costs = np.full(jobs.modes.shape[0], np.inf)
    for j in range(jobs.weight.shape[0]):
        low, high = jobs.first[j, 0], jobs.first[j, -1]
        for k in range(low, high):
            mode = jobs.modes[k]
            m, workers, duration = mode[WORKER_TYPE], mode[WORKERS], mode[DURATION]
            for start in range(jobs.arrival[j], slots - duration + 1):
                cost = jobs.weight[j] * (start + duration)
                if cost >= costs[k]:
                    break
                cost += workers * (prices.worker[m, start + duration] - prices.worker[m, start])
                costs[k] = min(costs[k], cost)
        least = np.inf
        for k in range(low, high):
            least = min(least, costs[k])
        for k in range(low, high):
            costs[k] = (costs[k] - least) / jobs.weight[j]
    return costs


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
            least[t] = MOST_WORKERS
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
    m, start, stop, host, p, num_ps = plan.rows[j]
    free, workers, worker, ps = cluster.free, plan.workers, jobs.worker, jobs.ps
    for h in range(workers.shape[1]):
        count = workers[j, h]
        if count <= 0 and h != host:
            continue
        for r in range(worker.shape[1]):
            used = count * worker[m, r]
            if h == host:
                used += num_ps * ps[p, r]
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
def lower_room(room: NDArray[np.int16], by_slot: NDArray[np.int16], first: int, stop: int) -> None:
    """Lower the workers that fit on each server to those that do in some more slots."""
    for t in range(first, stop):
        for h in range(room.shape[0]):
            room[h] = min(room[h], by_slot[t, h])


@njit(cache=True)
def workers_on_host(
    mode: Ints, room: int, elsewhere: int, left: Floats, jobs: WindowJobs
) -> tuple[int, int]:
    """Workers on a host, as many as leave room for the PSs, and PSs; 0 PSs if it can be no host.

    `room` workers fit on it, and so many `elsewhere`.
    """
    m, workers, p = mode[WORKER_TYPE], mode[WORKERS], mode[PS_TYPE]
    if mode[ONE_SERVER] == 1:
        fits = room >= workers and fits_together(workers, 1, jobs.worker[m], jobs.ps[p], left)
        return workers, 1 if fits else 0
    on_host = min(room, workers - 1)
    while on_host >= 0 and workers - on_host <= elsewhere:
        num_ps = covering_ps(workers - on_host, jobs.ratio[m, p])
        if fits_together(on_host, num_ps, jobs.worker[m], jobs.ps[p], left):
            return on_host, num_ps
        on_host -= 1
    return 0, 0


@njit(cache=True)
def has_host(
    mode: Ints, total: int, room: NDArray[np.int16], left: Floats, jobs: WindowJobs
) -> bool:
    """Whether some server can hold the fewest PSs of a mode that any server needs."""
    m, p, fewest = mode[WORKER_TYPE], mode[PS_TYPE], mode[FEWEST_PS]
    for h in range(room.shape[0]):
        if fits_together(0, fewest, jobs.worker[m], jobs.ps[p], left[h]):
            _, num_ps = workers_on_host(mode, room[h], total - room[h], left[h], jobs)
            if 0 < num_ps <= fewest:
                return True
    return False


@njit(cache=True)
def window_price(
    mode: Ints, start: int, stop: int, prices: SearchPrices, jobs: WindowJobs
) -> float:
    """Price of a mode's workers and fewest PSs in a window."""
    m, p = mode[WORKER_TYPE], mode[PS_TYPE]
    paid = mode[WORKERS] * (prices.worker[m, stop] - prices.worker[m, start])
    if jobs.has_ps:
        paid += mode[FEWEST_PS] * (prices.ps[p, stop] - prices.ps[p, start])
    return paid


@njit(cache=True)
def cheapest_mode(
    j: int, multiple: float, prices: SearchPrices, cluster: FreeCapacity, jobs: WindowJobs
) -> tuple[int, int]:
    """Cheapest mode of a job at a multiple of the prices that fits, and its start; -1 if none.

    As modes of one worker type become longer, what is free in all slots of the window is lowered
    slot by slot: first the workers on all servers together, then, if the mode is cheap enough, the
    workers on each server, then its resources.
    """
    servers, resources, slots = cluster.free.shape
    weight, shortest = jobs.weight[j], jobs.shortest[j]
    best_mode, best_start, limit = -1, -1, np.inf
    room, left = np.empty(servers, np.int16), np.empty((servers, resources))
    for start in range(jobs.arrival[j], slots):
        if weight * (start + 1 + shortest) >= limit:
            break
        for m in range(jobs.worker.shape[0]):
            most, most_slots = np.int64(1) << 40, 0
            total, largest, room_slots, left_slots = np.int64(0), 0, 0, 0
            for k in range(jobs.first[j, m], jobs.first[j, m + 1]):
                mode = jobs.modes[k]
                duration, workers = mode[DURATION], mode[WORKERS]
                stop = start + duration
                cost = weight * (stop + 1)
                if stop > slots or cost >= limit:
                    break
                while most_slots < duration:
                    most = min(most, cluster.total[m, start + most_slots])
                    most_slots += 1
                if most == 0:
                    break
                if most < workers:
                    continue
                cost += multiple * window_price(mode, start, stop, prices, jobs)
                if cost >= limit:
                    continue
                if room_slots < duration:
                    if room_slots == 0:
                        room[:] = MOST_WORKERS
                    lower_room(room, cluster.room[m], start + room_slots, stop)
                    room_slots, total, largest = duration, room.sum(), room.max()
                if total == 0:
                    break
                if (largest if mode[ONE_SERVER] == 1 else total) < workers:
                    continue
                if jobs.has_ps:
                    if left_slots == 0:
                        left[:] = np.inf
                    lower_free(left, cluster.free, start + left_slots, stop)
                    left_slots = duration
                    if not has_host(mode, total, room, left, jobs):
                        continue
                best_mode, best_start = k, start
                limit = cost - LEAST_DELAY * weight
    return best_mode, best_start


@njit(cache=True)
def idle_values(
    mode: Ints, start: int, stop: int, room: NDArray[np.int16], left: Floats, worth: Floats,
    cluster: FreeCapacity, jobs: WindowJobs, word: Words,
) -> tuple[Floats, Floats]:  # fmt: skip
    """By server what is free, in workers, and what idles a worker placed there; inf: none fits."""
    m, workers, slots = mode[WORKER_TYPE], mode[WORKERS], cluster.free.shape[2]
    servers, resources = left.shape
    value, waste = np.zeros(servers), np.empty(servers)
    worker_value = (jobs.worker[m] * worth).sum() + 1e-12
    idle_weight = IDLE_WEIGHTS[below(word, len(IDLE_WEIGHTS))]
    for h in range(servers):
        here = min(room[h], workers)
        if here > 0 or jobs.has_ps:
            for r in range(resources):
                value[h] += worth[r] * left[h, r] / worker_value
        if here == 0:
            waste[h] = np.inf
            continue
        idle = value[h] - here  # beside the workers, and before and after them
        if start > 0:
            idle += idle_weight * min(cluster.room[m, start - 1, h], room[h])
        if stop < slots:
            idle += idle_weight * min(cluster.room[m, stop, h], room[h])
        waste[h] = idle / here + 0.01 * room[h] + 1e-3 * unit(word)
    return value, waste


@njit(cache=True)
def cheapest_host(
    mode: Ints, room: NDArray[np.int16], left: Floats, value: Floats, waste: Floats,
    jobs: WindowJobs,
) -> tuple[int, int, int]:  # fmt: skip
    """The server of the PSs, or of all workers where they stand together; workers and PSs there.

    The server -1 if there is none: workers without PSs that may be spread.
    """
    m, workers, p, fewest = mode[WORKER_TYPE], mode[WORKERS], mode[PS_TYPE], mode[FEWEST_PS]
    host, on_host, num_ps, best = -1, 0, 0, np.inf
    total = room.sum()
    for h in range(room.shape[0]):
        if jobs.has_ps and fits_together(0, fewest, jobs.worker[m], jobs.ps[p], left[h]):
            here, needed = workers_on_host(mode, room[h], total - room[h], left[h], jobs)
            idle = value[h] - here + 1e6 * (needed - fewest)
            if needed > 0 and idle < best:
                best, host, on_host, num_ps = idle, h, here, needed
        elif not jobs.has_ps and mode[ONE_SERVER] == 1 and room[h] >= workers and waste[h] < best:
            best, host, on_host = waste[h], h, workers
    return host, on_host, num_ps


@njit(cache=True)
def place_job(
    j: int, k: int, start: int, prices: SearchPrices, plan: WindowPlan, cluster: FreeCapacity,
    jobs: WindowJobs, word: Words,
) -> None:  # fmt: skip
    """Put a job on the servers on which it wastes least, at what a resource is worth."""
    mode = jobs.modes[k]
    m, stop = mode[WORKER_TYPE], start + mode[DURATION]
    servers, resources, _ = cluster.free.shape
    room, left = np.empty(servers, np.int16), np.full((servers, resources), np.inf)
    room[:] = MOST_WORKERS
    lower_room(room, cluster.room[m], start, stop)
    lower_free(left, cluster.free, start, stop)
    value, waste = idle_values(mode, start, stop, room, left, prices.worth, cluster, jobs, word)
    host, on_host, num_ps = cheapest_host(mode, room, left, value, waste, jobs)
    row, missing = plan.rows[j], mode[WORKERS]
    row[WORKER_TYPE], row[START], row[STOP] = m, start, stop
    row[HOST] = host if jobs.has_ps else -1
    row[PS_TYPE], row[NUM_PS] = mode[PS_TYPE], num_ps
    plan.workers[j, :] = 0
    if host >= 0:
        plan.workers[j, host] = on_host
        missing -= on_host
    for h in stable_order(waste):
        if missing == 0:
            break
        if h != host:
            here = min(missing, room[h])
            plan.workers[j, h] = here
            missing -= here


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
        k, start = cheapest_mode(j, multiple, prices, cluster, jobs)
        if k < 0:
            return done, cost
        cost += jobs.weight[j] * (start + jobs.modes[k, DURATION] + 1)
        if cost + ahead > budget:
            return done, cost
        place_job(j, k, start, prices, plan, cluster, jobs, word)
        book_job(TAKE, j, plan, cluster, jobs)
    return len(order), cost


@njit(cache=True)
def draw_removed(plan: WindowPlan, jobs: WindowJobs, word: Words) -> Ints:
    """Jobs to take out: the pivot first, mostly one that waits long; then what runs near it."""
    number = jobs.weight.shape[0]
    end = plan.rows[:, STOP].astype(np.float64)
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
    if unit(word) < SHORT_WINDOWS:
        length = min(high - low, (1.0 + unit(word)) * jobs.shortest[pivot])
        low += unit(word) * (high - low - length)
        high = low + length
    distance = np.empty(number)
    for j in range(number):
        overlap = min(high, end[j]) - max(low, float(plan.rows[j, START]))
        distance[j] = -np.log(1.0 - unit(word)) / (0.2 + max(0.0, overlap))
    distance[pivot] = -1.0
    return stable_order(distance)[:count]


@njit(cache=True)
def improve_plan(
    moves: int, heat: float, cost: Floats, plan: WindowPlan, cluster: FreeCapacity,
    prices: SearchPrices, jobs: WindowJobs, word: Words,
) -> int:  # fmt: skip
    """Try moves of a plan until one makes it better than the best; return how many were tried.

    `heat` is the mean worsening that is accepted; `cost` holds what the plan and the best one cost.
    Removed jobs return by density, blurred, the pivot often first.
    """
    old_rows = np.empty((MOST_REMOVED, plan.rows.shape[1]), np.int64)
    old_workers = np.empty((MOST_REMOVED, plan.workers.shape[1]), np.int32)
    for tried in range(moves):
        removed = draw_removed(plan, jobs, word)
        count = removed.shape[0]
        before = 0.0
        keys = np.empty(count)
        for i in range(count):
            j = removed[i]
            copy_to(old_rows[i], plan.rows[j])
            copy_to(old_workers[i], plan.workers[j])
            before += jobs.weight[j] * (plan.rows[j, STOP] + 1)
            book_job(GIVE_BACK, j, plan, cluster, jobs)
            keys[i] = -prices.density[j] * np.exp(unit(word) + unit(word) + unit(word))
        if unit(word) < 0.4:
            keys[0] = -np.inf
        order = removed[stable_order(keys)]
        multiple = MULTIPLES[below(word, len(MULTIPLES))]
        budget = before - np.log(1.0 - unit(word)) * heat
        done, after = insert_all(order, multiple, budget, prices, plan, cluster, jobs, word)
        if done == count:
            cost[0] += after - before
            if cost[0] < cost[1] - LEAST_GAIN * abs(cost[1]):
                cost[1] = cost[0]
                return tried + 1
            continue
        for i in range(done):
            book_job(GIVE_BACK, order[i], plan, cluster, jobs)
        for i in range(count):
            copy_to(plan.rows[removed[i]], old_rows[i])
            copy_to(plan.workers[removed[i]], old_workers[i])
            book_job(TAKE, removed[i], plan, cluster, jobs)
    return moves
