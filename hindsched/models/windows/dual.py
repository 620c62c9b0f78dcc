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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.modes import WindowInstance
from hindsched.models.algebra import Expr, Model, RowKey
from hindsched.models.base import DualProgram
from hindsched.models.windows.block import Family, equation
from hindsched.models.windows.program import WindowFace, refuse_in_pieces
from hindsched.models.windows.sets import JobSets, Spans, host_use, sets_by_job


class Schedule(NamedTuple):
    """What a schedule of a job is worth, and what it uses of the capacities."""

    job: int
    worth: float
    use: dict[RowKey, float]


@dataclass(kw_only=True, eq=False, repr=False)
class ScheduleDual(WindowFace, DualProgram):
    """A dual with one row a schedule."""

    listed: list[Schedule]
    slots: int  # last slot

    def prices(self) -> dict[str, Floats]:
        """Prices at the variables' values by the capacities' names, (servers, kinds, slots)."""
        found = np.array([max(0.0, price.value or 0.0) for price in self.model.price.values()])
        shape = (*self.family.cluster.server_capacity.shape, self.slots)
        return self.family.by_name(found.astype(float).reshape(shape))

    def payoffs(self) -> Floats:
        """Payoffs at the variables' values."""
        return np.array([max(0.0, u.value or 0.0) for u in self.model.payoff.values()], dtype=float)


def schedules(
    instance: WindowInstance, sets: Mapping[int, JobSets], worth: Callable[[int, int], float]
) -> list[Schedule]:
    """All schedules: the jobs' columns, with every way to place the workers beside no PS.

    `worth` gives a job's value by its last slot.
    """
    found = list[Schedule]()
    for j, job in sets.items():
        for column in job.columns:
            k, first, n, g = column
            mode, last = job.modes[k], job.last_slot(column)
            on_host = np.zeros_like(instance.server_capacity)
            if n >= 0:
                on_host[n] = host_use(instance, mode, g)
            room = instance.worker_room[:, mode.worker_type].tolist()
            for split in splits(mode.workers - g, [0 if h == n else m for h, m in enumerate(room)]):
                use = on_host + np.outer(split, instance.worker_demand[mode.worker_type])
                cells = {
                    (h, r, t): float(use[h, r])
                    for h, r in np.argwhere(use > 0).tolist() for t in range(first, last + 1)
                }  # fmt: skip
                found.append(Schedule(j, float(worth(j, last)), cells))
    return found


def splits(count: int, room: Sequence[int]) -> list[tuple[int, ...]]:
    """All ways to put `count` workers on servers with this room."""
    if not room:
        return [()] if count == 0 else []
    return [
        (here, *rest)
        for here in range(min(room[0], count) + 1) for rest in splits(count - here, room[1:])
    ]  # fmt: skip


def build(
    kind: type[ScheduleDual], family: Family, formulation: str, row: str,
    spans: Spans, worth: Callable[[int, int], float], slots: int,
    whose: str,
) -> Any:  # fmt: skip
    """The dual of a `kind`: least payoffs plus prices times capacities, one `row` a schedule."""
    refuse_in_pieces(formulation)
    instance, number = family.cluster, row.rstrip("a")
    listed = schedules(instance, sets_by_job(instance, spans), worth)
    servers, resources = map(range, instance.server_capacity.shape)
    m = pyo.ConcreteModel(name=f"dual of {instance.name}")
    m.payoff = pyo.Var(
        range(len(instance.jobs)), domain=pyo.NonNegativeReals, initialize=0,
        doc=f"({number}) payoff of a job",
    )  # fmt: skip
    m.price = pyo.Var(
        servers, resources, range(1, slots + 1), domain=pyo.NonNegativeReals,
        initialize=0, doc=f"({number}) price of a server's resource",
    )  # fmt: skip
    index = [(schedule.job, place) for place, schedule in enumerate(listed)]

    @equation(m, row, "no schedule earns more than the job's payoff", index)
    def earns_no_more(m: Model, j: int, place: int) -> Expr:
        paid = total(amount * m.price[cell] for cell, amount in listed[place].use.items())
        return m.payoff[j] + paid >= listed[place].worth

    m.objective = pyo.Objective(
        expr=total(m.payoff.values())
        + total(
            float(instance.server_capacity[h, r]) * price for (h, r, _), price in m.price.items()
        ),
        sense=pyo.minimize, doc=f"({number}) payoffs and the worth of all capacity",
    )  # fmt: skip
    return kind(
        instance=instance, formulation=formulation, family=family, listed=listed, slots=slots,
        whose=whose, model=m,
    )  # fmt: skip
