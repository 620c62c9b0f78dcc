"""Problems (8)/(17) of batchsched and (5) of astraea over whole schedules, and their duals.

A schedule of a job is one window with one placement that satisfies everything but the capacities:
here all of them are listed, so this is for small clusters. (8)/(17) is a round's: every job may
start in slot 1, and a schedule that ends in time is worth the job's weight. In (5) a schedule is
worth its revenue. Any prices with the payoffs of the best schedules are feasible in the dual, which
is how certificates work: they need no list.

=====================  =========================================================================
``payoff[j]``          u of (9)/(18), mu of (6)
``price[h, r, t]``     delta of (9)/(18), eta of (6)
=====================  =========================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.models.base import Best, DualProgram
from hindsched.models.windows.block import Expr
from hindsched.models.windows.sets import Cell, EmptyCluster, JobSets, WindowCluster, num_ps, splits
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation


class Schedule(NamedTuple):
    """What a job uses of every server's resources from `first` to `last`, and what it is worth."""

    job: int
    first: int
    last: int
    use: Floats
    worth: float

    def cells(self) -> Iterator[tuple[Cell, float]]:
        """Capacities that it uses, and how much of each."""
        for h, r in np.argwhere(self.use > 0).tolist():
            for t in range(self.first, self.last + 1):
                yield (h, r, t), float(self.use[h, r])


def schedules(j: int, empty: EmptyCluster, job: JobSets, worth: Any) -> Iterator[Schedule]:
    """Every schedule of a job: its columns, with every way to place the workers beside no PS.

    `worth` gives the value by last slot.
    """
    cluster: WindowCluster = empty.cluster
    for column in job.columns:
        k, first, n, g = column
        m, p, _, count, _ = job.modes[k]
        room = [0 if h == n else most for h, most in enumerate(empty.room[m])]
        on_host = np.zeros_like(cluster.server_capacity, dtype=float)
        if n >= 0:
            on_host[n] = g * cluster.worker_demand[m]
            if cluster.has_ps:
                on_host[n] += num_ps(cluster, m, p, count - g) * cluster.ps_demand[p]
        last = job.last_slot(column)
        for split in splits(count - g, room):
            use = on_host + np.outer(split, cluster.worker_demand[m])
            yield Schedule(j, first, last, use, float(worth(last)))


@dataclass(kw_only=True, eq=False, repr=False)
class ScheduleDual(DualProgram):
    """A dual with one row a schedule.

    Parameters
    ----------
    listed : list of Schedule
        All schedules.
    capacity : ndarray, shape (servers, resources)
        Of the cluster.
    row : str
        Number of the paper's row.
    primal : str
        Of which program it is the dual.
    slots : int
        Last slot.
    """

    listed: list[Schedule]
    capacity: Floats
    row: str
    primal: str
    slots: int

    @property
    def title(self) -> str:
        """Of which program it is the dual."""
        return f"{self.instance.family}: dual of {self.primal} of {self.instance.name}"

    @property
    def price_array(self) -> Floats:
        """Prices at the variables' values, shape (servers, resources, slots)."""
        found = [max(0.0, price.value or 0.0) for price in self.model.price.values()]
        return np.array(found, dtype=float).reshape(*self.capacity.shape, self.slots)

    def payoffs(self) -> Floats:
        """Payoffs at the variables' values."""
        return np.array([max(0.0, u.value or 0.0) for u in self.model.payoff.values()], dtype=float)

    def violations(self, best: Best | None = None) -> list[Violation]:
        """The schedule of each job that earns most above its payoff; `best` is not used."""
        prices, payoffs = self.price_array, self.payoffs()
        worst: dict[int, float] = defaultdict(float)
        for one in self.listed:
            paid = (prices[:, :, one.first - 1 : one.last].sum(axis=2) * one.use).sum()
            worst[one.job] = max(worst[one.job], float(one.worth - paid - payoffs[one.job]))
        limit = FEASIBILITY_TOLERANCE * max([1.0, *payoffs.tolist()])
        return [
            Violation(f"({self.row})", f"job {self.instance.jobs[j].name}", by)
            for j, by in worst.items() if by > limit
        ]  # fmt: skip


def build_dual_model(
    name: str, listed: list[Schedule], jobs: int, capacity: Floats, slots: int, row: str
) -> pyo.ConcreteModel:
    """The dual: least payoffs plus prices times capacities."""
    number = row.rstrip("a")
    m = pyo.ConcreteModel(name=f"dual of {name}")
    servers, resources = capacity.shape
    m.payoff = pyo.Var(
        range(jobs), domain=pyo.NonNegativeReals, initialize=0, doc=f"({number}) payoff of a job"
    )
    m.price = pyo.Var(
        range(servers), range(resources), range(1, slots + 1), domain=pyo.NonNegativeReals,
        initialize=0, doc=f"({number}) price of a server's resource",
    )  # fmt: skip

    def earns_no_more(m: Any, j: int, place: int) -> Expr:
        paid = pyo.quicksum(amount * m.price[cell] for cell, amount in listed[place].cells())
        return m.payoff[j] + paid >= listed[place].worth

    index = [(one.job, place) for place, one in enumerate(listed)]
    doc = f"({row}) no schedule earns more than the job's payoff"
    m.add_component(f"eq_{row}", pyo.Constraint(index, rule=earns_no_more, doc=doc))
    m.objective = pyo.Objective(
        expr=pyo.quicksum(m.payoff.values())
        + pyo.quicksum(float(capacity[h, r]) * price for (h, r, _), price in m.price.items()),
        sense=pyo.minimize, doc=f"({number}) payoffs and the worth of all capacity",
    )  # fmt: skip
    return m


def build_primal_model(listed: list[Schedule], capacity: Floats) -> pyo.ConcreteModel:
    """The linear relaxation of the program over schedules, whose optimum the dual shares."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(len(listed)), domain=pyo.NonNegativeReals)
    used: dict[Cell, list[Expr]] = defaultdict(list)
    of_job: dict[int, list[Expr]] = defaultdict(list)
    for place, one in enumerate(listed):
        of_job[one.job].append(m.x[place])
        for cell, amount in one.cells():
            used[cell].append(amount * m.x[place])
    m.once = pyo.Constraint(list(of_job), rule=lambda m, j: pyo.quicksum(of_job[j]) <= 1)
    m.fits = pyo.Constraint(
        list(used), rule=lambda m, *c: pyo.quicksum(used[c]) <= float(capacity[c[:2]])
    )
    m.objective = pyo.Objective(
        expr=pyo.quicksum(one.worth * m.x[place] for place, one in enumerate(listed)),
        sense=pyo.maximize,
    )
    return m
