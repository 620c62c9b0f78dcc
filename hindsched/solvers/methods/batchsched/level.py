"""A cluster, a plan of all jobs on it that moves change, and the best one so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.batchsched.window_moves import follow, improve, insert_all
from hindsched.solvers.kernels.batchsched.window_plan import (
    Cluster,
    Jobs,
    Plan,
    Prices,
    renew_room,
)
from hindsched.solvers.side_by_side import Together
from hindsched.solvers.work import spend

MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""
ALONE = np.zeros(0, dtype=np.int64)
"""What a level shares with others while it is moved alone."""


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
        Levels of the same one have plans of the same cost, that differ in servers at most.
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
        renew_room(cluster, self.every.share, np.ones(servers, dtype=np.bool_), 0, self.slots)
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

        Others that try moves of the same plan at the same time share `over` (see the kernel).
        """
        assert self.plan is not None
        prices = self.prices._replace(multiple=np.ones(1))  # each thread draws its own
        tried, self.value, self.least = improve(
            moves, heat, self.value, self.least, prices, self.plan, self.kept, self.cluster,
            self.jobs, word, over,
        )  # fmt: skip
        return tried

    def follow(self, plan: Plan, value: float, least: float, origin: object) -> None:
        """Go on from a copy of another level's plan; the best one known costs `least`."""
        if self.plan is None:
            self.restart(plan, value)
        else:
            follow(plan, self.plan, self.cluster, self.every)
        self.value, self.least, self.origin = value, least, origin


def improve_together(
    levels: list[Level], moves: int, heat: float, words: np.ndarray, together: Together
) -> int:
    """Try moves of the first level's plan on all threads until one is accepted.

    Nearly all moves are refused, so that hardly any is tried in vain. Return how many were tried.

    Parameters
    ----------
    levels : list of Level
        One a thread; the others follow the first, which is then the one whose plan changed.
    moves, heat
        Of each, as for one level.
    words : ndarray
        State of the draws of each.
    together : callable
        See `side_by_side`.
    """
    first = levels[0]
    assert first.plan is not None
    if len(levels) == 1:
        return first.improve(moves, heat, words)
    plan, before, least = _copy(first.plan), first.value, first.least
    over = np.zeros(1, dtype=np.int64)

    def work(at: int) -> int:
        level = levels[at]
        if level.origin is not first.origin:
            level.follow(plan, before, least, first.origin)
        return level.improve(moves, heat, words[at : at + 1], over)

    tried = together(work)
    changed = [each for each in levels if each.value != before]
    if changed:
        leader = changed[0]  # of two that changed at once not the cheaper one: that would be colder
        leader.origin = object()
        if leader.least == least:
            leader.kept, first.kept = first.kept, leader.kept
        levels.remove(leader)
        levels.insert(0, leader)
    return sum(tried)


def _copy(plan: Plan) -> Plan:
    return Plan(plan.what.copy(), plan.workers.copy())
