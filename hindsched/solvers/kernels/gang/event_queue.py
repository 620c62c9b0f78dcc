"""Policies of clusters in use, event by event: one state and one loop, six queue disciplines.

Jobs stand in a list by key, equal keys by position. ``BLOCKING`` starts jobs from the head until
one does not fit (strict FIFO where the key is the submission); ``SKIPPING`` every job that fits
(first fit). ``BACKFILLING`` is blocking, but later jobs start if they are expected to end before
the head can start or stand on GPUs that it does not need then (EASY: Lifka 1995). ``RESERVING``
gives every job, when it arrives, the earliest start that delays no earlier one; if a job ends
before it was expected to, the others are given theirs again one at a time (conservative
backfilling: Mu'alem & Feitelson 2001). Two disciplines rank all jobs anew at every event and pause
those that have no room: ``SHORTEST_REMAINING`` (SRTF) and ``LEAST_ATTAINED``, which ranks jobs
below a threshold of attained GPU-slots first (discretised LAS: Tiresias, NSDI 2019; Nuyens &
Wierman 2008). A job that stays keeps its servers if they are still free in its turn.

Where a gang stands: one pool is one server that has all GPUs. Small gangs take the fullest server
that holds them (the first of equals), large ones whole free servers, largest first, and the fullest
server that holds the remainder: on an empty cluster that fits every gang no larger than it. Where
GPUs are of several kinds, a gang stands on one that it names; kinds that are pools are servers.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.gang.instance import GangInstance
from hindsched.solvers.kernels.gang.timeline import FOREVER, book, earliest_start, step_at
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

DISCIPLINES = range(6)
BLOCKING, SKIPPING, BACKFILLING, RESERVING, SHORTEST_REMAINING, LEAST_ATTAINED = DISCIPLINES
PRESENT, STARTED, STOPPED = range(3)  # what `PolicyState.counts` counts
ADD, REMOVE = np.int64(1), np.int64(-1)  # signs; of a plain number numba compiles each value anew


class PolicyState(NamedTuple):
    """A cluster, the jobs that a policy knows, and what it did in the last event."""

    sizes: Ints  # GPUs of each server, (servers,)
    by_size: Ints  # servers, largest first, (servers,)
    kind: Ints  # position of each server's kind of GPU, (servers,)
    allowed: Bools  # whether each job may run on each kind, (jobs, kinds)
    free: Ints  # GPUs that are free, (servers,)
    counts: Ints  # jobs in `present`, `started` and `stopped`, (3,)
    gpus: Ints  # GPUs of each job, (jobs,)
    expected: Ints  # slots that it is expected to run in all, if that is known, (jobs,)
    key: Floats  # smaller goes first, (jobs,)
    since: Ints  # when it last began to run; -1 while it does not, (jobs,)
    done: Ints  # slots that it had run by then, (jobs,)
    present: Ints  # jobs that wait or run, by key; the first ``counts[PRESENT]``, (jobs,)
    started: Ints  # jobs started, resumed or moved in this event, (jobs,)
    stopped: Ints  # jobs paused or moved, (jobs,)
    held: Ints  # GPUs of a running job by server (of one that waits: no matter), (jobs, servers)
    # reservations: starts, (jobs,); from `time` on `room` GPUs of a server are unreserved, until
    # the next step, (steps, servers); number of steps, the last of which begins at `FOREVER`
    start: Ints
    time: Ints
    room: Ints
    steps: Ints


def cluster_state(instance: GangInstance, jobs: int, discipline: int) -> PolicyState:
    """An instance's free cluster with room for so many jobs, of which none is there yet."""
    _, sizes, kinds = zip(*instance.places, strict=True)
    return empty_state(np.array(sizes), jobs, discipline, np.array(kinds))


def empty_state(sizes: Ints, jobs: int, discipline: int, kinds: Ints | None = None) -> PolicyState:
    """A free cluster with room for so many jobs; servers may be of several kinds."""
    kinds = np.zeros(sizes.size, dtype=np.int64) if kinds is None else kinds
    allowed = np.ones((jobs, kinds.max() + 1), dtype=bool)
    servers, steps = sizes.size, (2 * jobs + 4) * (discipline == RESERVING)
    by_size, counts = np.argsort(-sizes, kind="stable"), np.zeros(3, dtype=np.int64)
    gpus, expected, done, present, started, stopped, start = np.zeros((7, jobs), dtype=np.int64)
    time, room = np.zeros((2, steps, servers), dtype=np.int64)
    if discipline == RESERVING:
        time[1], room[:2] = FOREVER, sizes
    return PolicyState(
        sizes, by_size, kinds, allowed, sizes.copy(), counts, gpus, expected, np.zeros(jobs),
        np.full(jobs, -1), done, present, started, stopped,
        np.zeros((jobs, servers), dtype=np.int64), start, time, room, np.full(servers, 2),
    )  # fmt: skip


def enlarged(state: PolicyState, discipline: int) -> PolicyState:
    """The same state with room for twice as many jobs."""
    larger = empty_state(state.sizes, 2 * state.gpus.size, discipline, state.kind)
    for old, new in zip(state, larger, strict=True):
        new[: len(old)] = old
    return larger


@njit(cache=True)
def _is_narrow(state: PolicyState, job: int) -> bool:
    """Whether a server of a job's kinds holds all of its GPUs."""
    for server in state.by_size:
        if state.allowed[job, state.kind[server]]:
            return bool(state.gpus[job] <= state.sizes[server])
    return False


@njit(cache=True)
def place_gang(state: PolicyState, free: Ints, job: int) -> bool:
    """Choose where a gang stands on free GPUs, in its row of `held`; says whether it fits."""
    sizes, held, narrow = state.sizes, state.held[job], _is_narrow(state, job)
    for kind in range(1 if narrow else state.allowed.shape[1]):
        left = state.gpus[job]
        for server in range(sizes.size):
            held[server] = 0
        if not narrow:
            for server in state.by_size:
                fits = state.kind[server] == kind and state.allowed[job, kind]
                if fits and free[server] == sizes[server] and sizes[server] <= left:
                    held[server] = sizes[server]
                    left -= sizes[server]
            if left == 0:
                return True
        best = -1
        for server in range(sizes.size):
            fits = state.allowed[job, state.kind[server]]
            fits = fits and (narrow or state.kind[server] == kind)
            fits = fits and free[server] - held[server] >= left
            if fits and (best < 0 or free[server] < free[best]):
                best = server
        if best >= 0:
            held[best] = left
            return True
    return False


@njit(cache=True)
def _release(state: PolicyState, free: Ints, job: int, sign: int) -> None:
    """Add what a job holds to free GPUs, or with `REMOVE` take it."""
    for server in range(free.size):
        free[server] += sign * state.held[job, server]


@njit(cache=True)
def process_event(
    state: PolicyState, now: int, discipline: int, threshold: int, ended: Ints, arrived: Ints
) -> int:
    """One event: jobs end, jobs arrive, the policy decides; when it wants to decide again.

    Whom it starts and stops is in `started` and `stopped`.
    """
    present, counts = state.present, state.counts
    counts[STARTED] = counts[STOPPED] = 0
    for job in ended:
        _release(state, state.free, job, ADD)
        state.since[job] = -1
        at = 0
        while present[at] != job:
            at += 1
        counts[PRESENT] -= 1
        for index in range(at, counts[PRESENT]):
            present[index] = present[index + 1]
    if discipline == RESERVING:
        _reserve_again(state, now, ended)
    for job in arrived:
        state.since[job], state.done[job] = -1, 0
        present[counts[PRESENT]] = job
        counts[PRESENT] += 1
        _move_up(state, counts[PRESENT] - 1)
        if discipline == RESERVING:
            _reserve(state, job, now)
    if discipline == RESERVING:
        return int(_start_reserved(state, now))
    if discipline >= SHORTEST_REMAINING:
        _rank(state, now, discipline, threshold)
        return (
            int(_next_crossing(state, now, threshold))
            if discipline == LEAST_ATTAINED
            else int(FOREVER)
        )
    _start_in_turn(state, now, discipline)
    return int(FOREVER)


@njit(cache=True)
def _move_up(state: PolicyState, at: int) -> None:
    """Move the job at a place of `present` before those that come later."""
    present, key, job = state.present, state.key, state.present[at]
    while at > 0:
        before = present[at - 1]
        if key[before] < key[job] or (key[before] == key[job] and before < job):
            break
        present[at] = before
        at -= 1
    present[at] = job


@njit(cache=True)
def _start(state: PolicyState, job: int, now: int) -> None:
    """A job that was placed begins to run."""
    _release(state, state.free, job, REMOVE)
    state.since[job] = now
    state.started[state.counts[STARTED]] = job
    state.counts[STARTED] += 1


@njit(cache=True)
def _start_in_turn(state: PolicyState, now: int, discipline: int) -> None:
    """Start jobs from the head, past those that do not fit if the discipline allows it."""
    room, index = state.free.sum(), 0
    while index < state.counts[PRESENT] and room > 0:
        job = state.present[index]
        index += 1
        if state.since[job] >= 0:
            continue
        if state.gpus[job] <= room and place_gang(state, state.free, job):
            _start(state, job, now)
            room -= state.gpus[job]
        elif discipline != SKIPPING:
            break
    else:
        return
    if discipline == BACKFILLING:
        _backfill(state, now, index)


@njit(cache=True)
def _backfill(state: PolicyState, now: int, index: int) -> None:
    """Start later jobs that do not delay the one in front of `index`, which does not fit."""
    until, spare = _reservation(state, state.present[index - 1], now)
    usable, room = state.free.copy(), state.free.sum()
    while index < state.counts[PRESENT] and room > 0:
        job = state.present[index]
        index += 1
        if state.since[job] >= 0 or state.gpus[job] > room:
            continue
        short = now + state.expected[job] <= until
        for server in range(usable.size):
            free = state.free[server]
            usable[server] = free if short else min(free, spare[server])
        if place_gang(state, usable, job):
            _start(state, job, now)
            room -= state.gpus[job]
            if not short:
                _release(state, spare, job, REMOVE)


@njit(cache=True)
def _reservation(state: PolicyState, job: int, now: int) -> tuple[int, Ints]:
    """When a job that does not fit now can start, and GPUs left free by it then, by server."""
    free, running, count = state.free.copy(), np.empty_like(state.present), 0
    for other in state.present[: state.counts[PRESENT]]:
        if state.since[other] >= 0:
            running[count] = other
            count += 1
    ends = np.empty(count, dtype=np.int64)
    for index in range(count):
        ends[index] = max(now, state.since[running[index]] + state.expected[running[index]])
    order, index, until = stable_order(ends), 0, now
    while not place_gang(state, free, job):
        until = ends[order[index]]
        while index < count and ends[order[index]] == until:
            _release(state, free, running[order[index]], ADD)
            index += 1
    _release(state, free, job, REMOVE)
    return until, free


@njit(cache=True)
def _book(state: PolicyState, job: int, begin: int, sign: int) -> None:
    """Reserve what a job holds until its expected end, or with `REMOVE` give it back."""
    end = state.start[job] + state.expected[job]
    for h in range(state.sizes.size):
        if state.held[job, h] > 0:
            time, room, gpus = state.time[:, h], state.room[:, h], sign * state.held[job, h]
            state.steps[h] = book(time, room, state.steps[h], begin, end, gpus)


@njit(cache=True)
def _reserve(state: PolicyState, job: int, now: int) -> None:
    """Book a job's earliest start from now on."""
    gpus, duration, steps = state.gpus[job], state.expected[job], state.steps
    start, free = np.int64(now), np.empty_like(state.free)
    if _is_narrow(state, job):  # the first start at which it fits on one of the servers
        start = FOREVER
        for h in range(steps.size):
            if not state.allowed[job, state.kind[h]]:
                continue
            time, room = state.time[:, h], state.room[:, h]
            start = min(start, earliest_start(time, room, steps[h], now, duration, gpus))
    while True:
        following = FOREVER
        for h in range(steps.size):
            time, room = state.time[:, h], state.room[:, h]
            step = step_at(time, steps[h], start)
            following = min(following, time[step + 1])
            free[h] = room[step]
            while time[step + 1] < start + duration:
                step += 1
                free[h] = min(free[h], room[step])
        if place_gang(state, free, job):
            break
        start = following
    state.start[job] = start
    _book(state, job, start, ADD)


@njit(cache=True)
def reserve_in_order(state: PolicyState, fixed: int, order: Ints) -> None:
    """Give jobs in an order their earliest starts from `start` on, beside the first `fixed`."""
    for job in range(fixed):
        _book(state, job, state.start[job], ADD)
    for job in order:
        _reserve(state, job, state.start[job])


@njit(cache=True)
def _reserve_again(state: PolicyState, now: int, ended: Ints) -> None:
    """Where a job ended early, each waiting one gets its earliest start anew; none is delayed."""
    early = False
    for job in ended:
        if state.start[job] + state.expected[job] > now:
            _book(state, job, now, REMOVE)
            early = True
    if early:
        for job in state.present[: state.counts[PRESENT]]:
            if state.since[job] < 0:
                _book(state, job, state.start[job], REMOVE)
                _reserve(state, job, now)


@njit(cache=True)
def _start_reserved(state: PolicyState, now: int) -> int:
    """Start the jobs whose time has come; when that of the next one does."""
    following = FOREVER
    for job in state.present[: state.counts[PRESENT]]:
        if state.since[job] < 0 and state.start[job] <= now:
            _start(state, job, now)
        elif state.since[job] < 0:
            following = min(following, state.start[job])
    return following


@njit(cache=True)
def _run_until(state: PolicyState, job: int, now: int) -> int:
    """Slots that a job has run."""
    return state.done[job] + (now - state.since[job] if state.since[job] >= 0 else 0)


@njit(cache=True)
def _rank(state: PolicyState, now: int, discipline: int, threshold: int) -> None:
    """Rank all jobs as of now and place them in turn: some begin, some stop, some move."""
    present, free, since = state.present[: state.counts[PRESENT]], state.free, state.since
    for at in range(present.size):  # they are nearly sorted already
        job = present[at]
        if discipline == SHORTEST_REMAINING:
            state.key[job] = state.expected[job] - _run_until(state, job, now)
        else:
            state.key[job] = _run_until(state, job, now) * state.gpus[job] >= threshold
        _move_up(state, at)
    copy_to(free, state.sizes)
    for job in present:
        if since[job] >= 0:
            stays = True
            for server in range(free.size):
                stays = stays and free[server] >= state.held[job, server]
            if stays:
                _release(state, free, job, REMOVE)
                continue
            state.stopped[state.counts[STOPPED]] = job
            state.counts[STOPPED] += 1
            state.done[job] = _run_until(state, job, now)
            since[job] = -1
        if place_gang(state, free, job):
            _start(state, job, now)


@njit(cache=True)
def _next_crossing(state: PolicyState, now: int, threshold: int) -> int:
    """When the next running job attains the threshold."""
    soonest = FOREVER
    for job in state.present[: state.counts[PRESENT]]:
        missing = threshold - _run_until(state, job, now) * state.gpus[job]
        if state.since[job] >= 0 and missing > 0:
            soonest = min(soonest, now + (missing + state.gpus[job] - 1) // state.gpus[job])
    return soonest


@njit(cache=True)
def play(
    state: PolicyState, submit: Ints, duration: Ints, discipline: int, threshold: int
) -> tuple[Ints, Ints]:
    """Replay all jobs, which stand in order of submission.

    Returns rows (job, start, end), (rows, 3), and where they stand: (row, server, GPUs),
    (places, 3).
    """
    jobs, since = submit.size, state.since
    row_of = np.empty(jobs, dtype=np.int64)
    rows: Any = [(np.int64(-1), np.int64(0), np.int64(0))]  # typed by its first entry
    places = rows.copy()
    ends = [(FOREVER, np.int64(-1), np.int64(-1))]  # of runs: when, job, begin
    ended, wake, arrived = np.empty(jobs, dtype=np.int64), FOREVER, np.int64(0)
    while arrived < jobs or state.counts[PRESENT] > 0:
        while ends[0][1] >= 0 and since[ends[0][1]] != ends[0][2]:
            heapq.heappop(ends)  # it was stopped before
        now = min(ends[0][0], wake)
        if arrived < jobs:
            now = min(now, submit[arrived])
        count, first = 0, arrived
        while ends[0][0] <= now:
            _, job, begin = heapq.heappop(ends)
            if since[job] == begin:
                ended[count] = job
                count += 1
        while arrived < jobs and submit[arrived] <= now:
            arrived += 1
        wake = process_event(
            state, now, discipline, threshold, ended[:count], np.arange(first, arrived)
        )
        for job in ended[:count]:
            rows[row_of[job]] = (job, rows[row_of[job]][1], now)
        for job in state.stopped[: state.counts[STOPPED]]:
            rows[row_of[job]] = (job, rows[row_of[job]][1], now)
        for job in state.started[: state.counts[STARTED]]:
            row_of[job] = len(rows)
            for server in range(state.sizes.size):
                if state.held[job, server] > 0:
                    places.append((len(rows) - 1, np.int64(server), state.held[job, server]))
            rows.append((job, now, now))
            heapq.heappush(ends, (now + duration[job] - state.done[job], job, np.int64(now)))
    return np.array(rows)[1:], np.array(places)[1:]
