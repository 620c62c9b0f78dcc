"""A cluster, a plan of all jobs on it that moves change, and the best one so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.batchsched.window_moves import improve, insert_all
from hindsched.solvers.kernels.batchsched.window_plan import (
    TAKE,
    Cluster,
    Jobs,
    Plan,
    Prices,
    book,
    renew_room,
)
from hindsched.solvers.work import spend

MULTIPLES = (1.0, 0.6, 0.3, 1.2, 0.0)
"""Multiples of the prices of the insertions of all jobs."""


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
        The best one since the level began from a plan, of cost `least`.
    """

    jobs: Jobs
    prices: Prices
    kept: Plan
    cluster: Cluster

    def __init__(self, every: Jobs, capacity: Floats, slots: int) -> None:
        self.every, self.capacity, self.slots = every, capacity, slots
        self.plan: Plan | None = None
        self.value = self.least = np.inf

    def nothing(self) -> tuple[Plan, Cluster]:
        """A plan of no jobs and the empty cluster."""
        capacity, number = self.capacity.astype(float), len(self.every.weight)
        servers, types = self.every.worker.shape[:2]
        free = np.repeat(capacity[:, :, None], self.slots, axis=2)
        room = np.zeros((types, self.slots, servers), dtype=np.int16)
        on = np.zeros((servers, types, self.slots), dtype=np.int16)
        cluster = Cluster(free, room, on, np.zeros((types, self.slots), dtype=np.int32))
        for h in range(servers):
            renew_room(cluster, self.every, h, 0, self.slots)
        what = np.zeros((number, 6), dtype=np.int64)
        return Plan(what, np.zeros((number, servers), dtype=np.int32)), cluster

    def insert(
        self, order: Ints, jobs: Jobs, multiple: float, word: np.ndarray
    ) -> tuple[Plan, Cluster, float] | None:
        """Insert all jobs in an order at a multiple of the prices; None where one does not fit."""
        plan, cluster = self.nothing()
        self.prices.multiple[0] = multiple
        done, cost = insert_all(order, np.inf, self.prices, plan, cluster, jobs, word)
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
        self.kept = Plan(plan.what.copy(), plan.workers.copy())
        self.value = self.least = cost

    def restart(self, plan: Plan, cost: float) -> None:
        """Go on from a copy of a plan."""
        empty, cluster = self.nothing()
        empty.what[:], empty.workers[:] = plan.what, plan.workers
        for j in range(len(self.every.weight)):
            book(TAKE, j, empty, cluster, self.every)
        self.begin(empty, cluster, cost)

    def improve(self, moves: int, heat: float, word: np.ndarray) -> float:
        """Try moves, of which worsenings of `heat` are accepted in the mean; return `least`."""
        assert self.plan is not None
        self.value, self.least = improve(
            moves, heat, self.value, self.least, self.prices, self.plan, self.kept, self.cluster,
            self.jobs, word,
        )  # fmt: skip
        return self.least
