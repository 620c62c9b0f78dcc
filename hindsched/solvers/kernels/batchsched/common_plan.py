"""One plan that several threads move, each on a copy of its own.

Nearly all moves are refused, so that hardly any is tried in vain: an accepted one changes the
common plan, and all others take it over when they are through with the move that they are trying.
Where another thread changed the plan meanwhile, a move is still worth what it was worth, unless one
of its jobs was changed or there is no room left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.batchsched.window_plan import (
    GIVE_BACK,
    TAKE,
    Changed,
    Cluster,
    Jobs,
    Plan,
    least_of,
    renew_room,
    use,
)
from hindsched.solvers.kernels.stable_order import copy_to
from hindsched.solvers.kernels.turns import end_turn, exchange, read, take_turn

LITTLE = 1e-9
"""Relative gain below which a plan is no better."""


class Common(NamedTuple):
    """What all threads share; only who has the turn changes it.

    Parameters
    ----------
    plan, kept : Plan
        The plan as it was changed last, and the best one.
    cost : ndarray, shape (2,)
        What these two cost.
    changed : ndarray of int, shape (jobs,)
        Version in which the schedule of each job was changed last.
    version, turn, over : ndarray of int, shape (1,)
        How often the plan was changed; 1 while somebody has the turn; 1 once somebody is through
        with its moves. On cache lines of their own.
    """

    plan: Plan
    kept: Plan
    cost: Floats
    changed: Ints
    version: Ints
    turn: Ints
    over: Ints


class Seat(NamedTuple):
    """What one thread has: the plan in some version, and what it leaves free.

    Parameters
    ----------
    plan : Plan
        The plan.
    cluster : Cluster
        What is free.
    version : ndarray of int, shape (1,)
        The version.
    """

    plan: Plan
    cluster: Cluster
    version: Ints


@njit(cache=True, nogil=True)
def copy_job(j: int, given: Plan, plan: Plan) -> None:
    """Copy one job's schedule."""
    copy_to(plan.what[j], given.what[j])
    copy_to(plan.workers[j], given.workers[j])


@njit(cache=True, nogil=True)
def take_over(common: Common, seat: Seat, moved: Ints, jobs: Jobs, changed: Changed) -> bool:
    """Take over what others changed, beside what the thread moved itself.

    Returns
    -------
    bool
        Whether these go together: no job was moved twice, and there is room for all. Where one was,
        nothing is taken over.
    """
    plan, cluster, version = seat
    number = plan.what.shape[0]
    taken, is_all, is_twice = np.zeros(number, np.bool_), False, False
    while not is_all:
        for j in range(number):
            if common.changed[j] > version[0] and not taken[j]:
                taken[j] = True
                use(GIVE_BACK, j, plan, cluster, jobs, changed)
        take_turn(common.turn)
        is_all = True
        for j in range(number):
            is_all &= taken[j] or common.changed[j] <= version[0]
        for j in moved:
            is_twice |= common.changed[j] > version[0]
        is_all |= is_twice
        if is_all and not is_twice:
            for j in range(number):
                if taken[j]:
                    copy_job(j, common.plan, plan)
            version[0] = common.version[0]
        end_turn(common.turn)
    for j in range(number):
        if taken[j]:
            use(TAKE, j, plan, cluster, jobs, changed)
    has_room = True
    for j in range(number):
        if taken[j] and has_room and moved.size > 0:
            has_room = least_left(j, plan, cluster) >= 0.0
    renew_room(cluster, jobs.share, changed)
    return has_room and not is_twice


@njit(cache=True, nogil=True)
def least_left(j: int, plan: Plan, cluster: Cluster) -> float:
    """What is left of anything where a job runs, at least; 0 if that is more."""
    least, free, workers = 0.0, cluster.free, plan.workers[j]
    _, start, stop, host, _, _ = plan.what[j]
    for h in range(free.shape[0]):
        if workers[h] > 0 or h == host:
            for r in range(free.shape[1]):
                least = min(least, least_of(free[h, r], start, stop))
    return least


@njit(cache=True, nogil=True)
def agree(
    common: Common, seat: Seat, moved: Ints, gain: float, jobs: Jobs, changed: Changed
) -> bool:
    """Change the common plan as a thread changed its own, if that is still possible.

    Parameters
    ----------
    common, seat : Common, Seat
        The plan of all, and the thread's.
    moved : ndarray of int
        Jobs whose schedules the thread changed.
    gain : float
        How much dearer that is.
    jobs, changed : Jobs, Changed
        As for `take_over`.

    Returns
    -------
    bool
        Whether the plan is changed.
    """
    while not is_agreed(common, seat, moved, gain):
        if not take_over(common, seat, moved, jobs, changed):
            return False
    return True


@njit(cache=True, nogil=True)
def is_agreed(common: Common, seat: Seat, moved: Ints, gain: float) -> bool:
    """Change the common plan as a thread changed its own, unless it was changed before."""
    cost = common.cost
    take_turn(common.turn)
    is_first = common.version[0] == seat.version[0]
    if is_first:
        seat.version[0] += 1
        for j in moved:
            copy_job(j, seat.plan, common.plan)
            common.changed[j] = seat.version[0]
        cost[0] += gain
        if cost[0] < cost[1] - LITTLE * abs(cost[1]):
            cost[1] = cost[0]
            for j in range(common.changed.shape[0]):
                copy_job(j, common.plan, common.kept)
        exchange(common.version, seat.version[0])
    end_turn(common.turn)
    return is_first


@njit(cache=True, nogil=True)
def is_behind(common: Common, seat: Seat) -> bool:
    """Whether somebody else changed the plan."""
    return bool(read(common.version) != seat.version[0])
