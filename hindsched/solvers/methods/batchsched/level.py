"""A cluster, a plan of all jobs on it that moves change, and the best one so far."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.batchsched.window_moves import follow, improve, insert_all
from hindsched.solvers.kernels.batchsched.window_plan import (
    Changed,
    Cluster,
    Jobs,
    Plan,
    Prices,
    renew_room,
)
from hindsched.solvers.side_by_side import Together
from hindsched.solvers.work import now, spend

MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""
ALONE = np.zeros(0, dtype=np.int64)
"""Where nobody says that it is over: a level that is moved alone goes on from any cost."""
CACHE_LINE = 64
"""Bytes that cores exchange at once, at most."""
Heat = Callable[[int], float]
"""Mean worsening to accept after so many moves."""
TOGETHER, SECONDS_TOGETHER = 10, 0.1
"""Levels on several threads meet after so many times the moves of one, or after this time."""


class Level:
    """Plans on one cluster: the real one, or that of kinds of servers.

    Parameters
    ----------
    every : Jobs
        The jobs with all their modes.
    capacity : ndarray, shape (servers, resources)
        What the cluster has.
    slots : int
        Slots of all plans.

    Attributes
    ----------
    jobs, prices
        The jobs with the modes that moves try, and what guides them; set by the owner.
    plan : Plan or None
        The plan that moves change.
    kept : Plan
        The best one since the level began from a plan, of cost `least`; that of the first level
        where several are moved together.
    origin : object
        Levels of the same one have the same plan.
    is_changed : bool
        Whether the last moves changed the plan.
    """

    jobs: Jobs
    prices: Prices
    kept: Plan
    cluster: Cluster
    origin: object

    def __init__(self, every: Jobs, capacity: Floats, slots: int) -> None:
        self.every, self.capacity, self.slots = every, capacity, slots
        self.plan: Plan | None = None
        self.value = self.least = np.inf
        self._empty: Cluster | None = None
        self.origin = object()
        self.is_changed = False

    def another(self) -> Level:
        """A level of the same cluster and jobs, without a plan."""
        found = Level(self.every, self.capacity, self.slots)
        found.jobs, found.prices = self.jobs, self.prices
        return found

    def nothing(self) -> tuple[Plan, Cluster]:
        """A plan of no jobs and the empty cluster."""
        number, servers = len(self.every.weight), len(self.capacity)
        if self._empty is None:
            self._empty = self._empty_cluster()
        what = np.tile(np.array([0, 0, 0, -1, 0, 0]), (number, 1))  # on no host
        plan = Plan(what, np.zeros((number, servers), dtype=np.int32))
        free, room, on, total = self._empty
        return plan, Cluster(free.copy(), room.copy(), on.copy(), total.copy())

    def _empty_cluster(self) -> Cluster:
        servers, types = self.every.worker.shape[:2]
        free = np.repeat(self.capacity.astype(float)[:, :, None], self.slots, axis=2)
        room = np.zeros((types, self.slots, servers), dtype=np.int16)
        on = np.zeros((servers, types, self.slots), dtype=np.int16)
        cluster = Cluster(free, room, on, np.zeros((types, self.slots), dtype=np.int32))
        spans = np.array([(h, 0, self.slots) for h in range(servers)]).reshape(-1, 3)
        everywhere = Changed(spans, np.zeros(servers, dtype=np.int64), np.full(1, servers))
        renew_room(cluster, self.every.share, everywhere)
        return cluster

    def insert(
        self, order: Ints, jobs: Jobs, multiple: float, word: np.ndarray
    ) -> tuple[Plan, Cluster, float] | None:
        """Insert all jobs in an order at a multiple of the prices; None where one does not fit."""
        plan, cluster = self.nothing()
        prices = self.prices._replace(multiple=np.full(1, multiple))
        done, cost = insert_all(order, np.inf, prices, plan, cluster, jobs, word)
        return (plan, cluster, cost) if done == len(order) else None

    def construct(self, word: Callable[[], np.ndarray], stop: Callable[[], bool]) -> None:
        """Insert all jobs by density, at a few multiples of the prices, and begin from the best.

        `stop` is asked after every insertion of all jobs once there is a plan.
        """
        order = np.argsort(-self.prices.density, kind="stable")
        for multiple in MULTIPLES:
            spend()
            for jobs in (self.jobs, self.every):
                if (found := self.insert(order, jobs, multiple, word())) is not None:
                    if self.plan is None or found[2] < self.least:
                        self.begin(*found)
                    break
            if self.plan is not None and stop():
                break

    def begin(self, plan: Plan, cluster: Cluster, cost: float) -> None:
        """Go on from a plan and its cluster."""
        self.plan, self.cluster = plan, cluster
        self.kept = _copy(plan)
        self.value = self.least = cost
        self.origin = object()

    def restart(self, plan: Plan, cost: float) -> None:
        """Go on from a copy of a plan."""
        empty, cluster = self.nothing()
        follow(plan, empty, cluster, self.every)
        self.begin(empty, cluster, cost)

    def improve(self, moves: int, heat: float, word: np.ndarray, over: Ints = ALONE) -> int:
        """Try moves, of which worsenings of `heat` are accepted in the mean; return how many.

        With `over` it ends as soon as the plan changes, or somebody says so there.
        """
        assert self.plan is not None
        prices = self.prices._replace(multiple=np.ones(1))  # each thread draws its own
        tried, self.is_changed, self.value, self.least = improve(
            moves, heat, self.value, self.least, prices, self.plan, self.kept, self.cluster,
            self.jobs, word, over,
        )  # fmt: skip
        return tried

    def follow(self, plan: Plan, value: float, origin: object) -> None:
        """Go on from a copy of another level's plan."""
        if self.plan is None:
            self.restart(plan, value)
        else:
            follow(plan, self.plan, self.cluster, self.every)
        self.value, self.origin = value, origin


class Agreed(NamedTuple):
    """The plan from which all levels move on; its identity is that of the plan."""

    plan: Plan
    value: float
    level: Level


class Agreement:
    """What levels that are moved together agree upon: the plan as it was changed last.

    Parameters
    ----------
    levels : list of Level
        The first has the plan.
    """

    def __init__(self, levels: list[Level]) -> None:
        first = levels[0]
        assert first.plan is not None
        self.levels, self.lock = levels, Lock()
        self.over = [apart(np.int64(0)) for _ in levels]
        self.is_over = False
        self.agreed = Agreed(_copy(first.plan), first.value, first)
        self.least, self.keeper = first.least, first
        for level in levels:
            if level.origin is first.origin:
                level.origin = self.agreed

    def work(self, at: int, moves: int, heat: Heat, word: np.ndarray) -> int:
        """Try moves of one level, so many at a time, from the plan of all until all meet."""
        level, over, tried = self.levels[at], self.over[at], 0
        last = now() + SECONDS_TOGETHER
        while tried < TOGETHER * moves and not self.is_over and now() < last:
            over[0] = 0  # before it looks: so that nothing newer is missed
            agreed = self.agreed
            if level.origin is not agreed:
                level.follow(agreed.plan, agreed.value, agreed)
            level.least = self.least
            tried += level.improve(moves, heat(tried * len(self.levels)), word, over)
            if level.is_changed:
                self.offer(level, agreed)
        self.is_over = True
        self.tell()
        return tried

    def offer(self, level: Level, before: Agreed) -> None:
        """Agree upon a level's plan unless another one changed the plan that it had before.

        Not the cheaper one of both: that would be colder.
        """
        assert level.plan is not None
        with self.lock:
            if level.least < self.least:
                self.least, self.keeper = level.least, level
            if self.agreed is before:
                level.origin = self.agreed = Agreed(_copy(level.plan), level.value, level)
                self.tell()

    def tell(self) -> None:
        """Let all look what is new."""
        for over in self.over:
            over[0] = 1

    def end(self) -> None:
        """Put the level whose plan is that of all first, with the best plan."""
        leader, keeper = self.agreed.level, self.keeper
        if keeper is not leader:
            leader.kept, keeper.kept = keeper.kept, leader.kept
        leader.least = self.least
        self.levels.remove(leader)
        self.levels.insert(0, leader)


def improve_together(
    levels: list[Level], moves: int, heat: Heat, words: np.ndarray, together: Together
) -> int:
    """Try moves of the first level's plan on all threads; return how many were tried.

    A level goes its way until the plan changes, by its own move or another one's; then all go on
    from that plan. Nearly all moves are refused, so that hardly any is tried in vain. Moves that
    only change servers count: they make the room in which a job ends sooner.

    Parameters
    ----------
    levels : list of Level
        One a thread; the others follow the first, which is then the one whose plan changed last.
    moves : int
        As for one level; of several each tries more, see `TOGETHER`.
    heat : callable
        Mean worsening to accept after so many moves of all.
    words : ndarray
        State of the draws of each.
    together : callable
        See `side_by_side`.
    """
    if len(levels) == 1:
        return levels[0].improve(moves, heat(0), words)
    agreement = Agreement(levels)
    tried = together(lambda at: agreement.work(at, moves, heat, apart(words[at])))
    agreement.end()
    return sum(tried)


def apart(value: np.integer) -> np.ndarray:
    """An array of one number on a cache line of its own, which no other core writes to."""
    numbers = CACHE_LINE // value.itemsize
    found = np.full(2 * numbers, value)
    return found[numbers : numbers + 1]  # with a line's bytes before and behind it


def _copy(plan: Plan) -> Plan:
    return Plan(plan.what.copy(), plan.workers.copy())
