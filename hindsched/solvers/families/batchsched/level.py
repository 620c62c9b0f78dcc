"""A cluster, a plan of all jobs on it that moves change, and the best one so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.kernels.batchsched.common_plan import Common, Seat
from hindsched.solvers.kernels.batchsched.window_moves import improve, insert_all
from hindsched.solvers.kernels.batchsched.window_plan import (
    Changed,
    Cluster,
    Jobs,
    Plan,
    Prices,
    renew_room,
)
from hindsched.solvers.kernels.turns import apart
from hindsched.solvers.side_by_side import Together

MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""
Heat = Callable[[int], float]
"""Mean worsening to accept after so many moves."""
TOGETHER, SECONDS_TOGETHER = 10, 0.1
"""Several threads meet after so many times the moves of one, or after about this time."""


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
    has_plan : bool
        Whether there is a plan to move.
    threads : int
        Threads that move it.
    """

    jobs: Jobs
    prices: Prices

    def __init__(self, every: Jobs, capacity: Floats, slots: int) -> None:
        self.every, self.capacity, self.slots = every, capacity, slots
        self._empty: Cluster | None = None
        plan, other = self.no_plan(), self.no_plan()
        words = (apart(np.int64(0)) for _ in range(3))
        changed = np.zeros(len(every.weight), dtype=np.int64)
        self.common = Common(plan, other, np.full(2, np.inf), changed, *words)
        self.has_plan = False
        self.seats: list[Seat] = []
        self.threads = 1
        self._most = 0  # moves of a thread until all meet

    @property
    def threads(self) -> int:
        """Threads that move the plan."""
        return len(self.seats)

    @threads.setter
    def threads(self, number: int) -> None:
        del self.seats[number:]
        self.seats += [
            Seat(*self.nothing(), apart(np.int64(0))) for _ in range(number - self.threads)
        ]

    @property
    def kept(self) -> Plan:
        """The best plan since the level began from one."""
        return self.common.kept

    @property
    def least(self) -> float:
        """What that costs."""
        return float(self.common.cost[1])

    def no_plan(self) -> Plan:
        """A plan of no jobs."""
        number, servers = len(self.every.weight), len(self.capacity)
        what = np.tile(np.array([0, 0, 0, -1, 0, 0]), (number, 1))  # on no host
        return Plan(what, np.zeros((number, servers), dtype=np.int32))

    def nothing(self) -> tuple[Plan, Cluster]:
        """A plan of no jobs and the empty cluster."""
        if self._empty is None:
            self._empty = self._empty_cluster()
        free, room, total = self._empty
        return self.no_plan(), Cluster(free.copy(), room.copy(), total.copy())

    def _empty_cluster(self) -> Cluster:
        servers, types = self.every.worker.shape[:2]
        free = np.repeat(self.capacity.astype(float)[:, :, None], self.slots, axis=2)
        room = np.zeros((types, self.slots, servers), dtype=np.int16)
        cluster = Cluster(free, room, np.zeros((types, self.slots), dtype=np.int32))
        spans = np.array([(h, 0, self.slots) for h in range(servers)]).reshape(-1, 3)
        everywhere = Changed(spans, np.zeros(servers, dtype=np.int64), np.full(1, servers))
        renew_room(cluster, self.every.share, everywhere)
        return cluster

    def insert(
        self, order: Ints, jobs: Jobs, multiple: float, word: np.ndarray
    ) -> tuple[Plan, float] | None:
        """Insert all jobs in an order at a multiple of the prices; None where one does not fit."""
        plan, cluster = self.nothing()
        prices = self.prices._replace(multiple=np.full(1, multiple))
        done, cost = insert_all(order, np.inf, prices, plan, cluster, jobs, word)
        return (plan, cost) if done == len(order) else None

    def construct(self, word: Callable[[], np.ndarray], stop: Callable[[], bool]) -> None:
        """Insert all jobs by density, at a few multiples of the prices, and begin from the best.

        `stop` is asked after every insertion of all jobs once there is a plan.
        """
        order = np.argsort(-self.prices.density, kind="stable")
        for multiple in MULTIPLES:
            spend()
            for jobs in (self.jobs, self.every):
                if (found := self.insert(order, jobs, multiple, word())) is not None:
                    if not self.has_plan or found[1] < self.least:
                        self.begin(*found)
                    break
            if self.has_plan and stop():
                break

    def begin(self, plan: Plan, cost: float) -> None:
        """Go on from a plan: every thread takes it over with its next move."""
        common = self.common
        for to in (common.plan, common.kept):
            to.what[:], to.workers[:] = plan
        common.cost[:] = cost
        common.version[0] += 1
        common.changed[:] = common.version[0]
        self.has_plan = True

    def improve(self, moves: int, heat: Heat, words: np.ndarray, together: Together) -> int:
        """Try moves on all threads; return how many were tried.

        Parameters
        ----------
        moves : int
            Of one thread; of several each tries more, see `TOGETHER`, until one is through.
        heat : callable
            Mean worsening to accept after so many moves of all.
        words : ndarray
            State of the draws of each.
        together : callable
            See `side_by_side`.
        """
        assert self.has_plan
        self.common.over[0], number = 0, self.threads
        if number > 1:
            moves = min(TOGETHER * moves, self._most or moves)
        begin, heats = now(), (heat(0), heat(number * moves))
        try:
            tried = together(lambda at: self._work(at, moves, heats, apart(words[at])))
        except BaseException:  # in the middle of a move: what is free is not what the plan leaves
            self.threads = 0
            self.threads = number
            raise
        if number > 1:
            seconds = max(now() - begin, 1e-9)
            self._most = max(1, int(max(tried) * SECONDS_TOGETHER / seconds))
        return sum(tried)

    def _work(self, at: int, moves: int, heats: tuple[float, float], word: np.ndarray) -> int:
        """Try moves of one thread."""
        prices = self.prices._replace(multiple=apart(np.float64(1.0)))  # each draws its own
        return improve(moves, heats, self.common, self.seats[at], prices, self.jobs, word)
