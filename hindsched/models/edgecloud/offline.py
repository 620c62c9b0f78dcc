"""The edgecloud family's programs of problem (2), and one job's part of them at prices.

``no-migration`` (default) is problem (2) with every chunk on one worker, which is what A_online may
do; ``literal`` is (2) as printed, which lets work move and split: another problem, with another
optimum. Both carry the storage rows of problem (7) where storage is limited. What they share is in
``rules.py``, the linear relaxations (4) and (8) in ``relaxations.py``, the duals (6) and (9) in
``dual.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import (
    PRINTED,
    Commitments,
    Duals,
    Hedge,
    OfflineProgram,
    Prices,
    Subproblem,
    choose_form,
)
from hindsched.models.edgecloud.literal import literal
from hindsched.models.edgecloud.no_migration import no_migration
from hindsched.models.edgecloud.reading import load_solution, read_program
from hindsched.models.edgecloud.sets import last_slots, may_wait_in_cloud, read_sets
from hindsched.models.edgecloud.symbols import EdgecloudNames
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import Past, read_past
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

FORMS: dict[str, tuple[str, ...]] = {"no-migration": ("strong",), "literal": (PRINTED,)}
DECISIONS = {"strong": {"y": 2, "s": 2, "xc": None, "zeta": None}}
"""By form the variables that are decided, and where their slot stands, if they have one."""
BUILDERS = {"no-migration": no_migration, "literal": literal}


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudProgram(EdgecloudNames, OfflineProgram[EdgecloudSolution]):
    """A program of problem (2); `past` is what is fixed, `last` each open job's last slot."""

    past: Past
    last: dict[int, int]

    def load(self, solution: EdgecloudSolution) -> None:
        """Set the variables' values from a solution of the whole instance, as a start."""
        load_solution(self.model, self.past, solution, literal=self.formulation == "literal")

    def extract(self) -> EdgecloudSolution | None:
        """The solution at the variables' values; None if their counts do not add up."""
        return read_program(self.model, self.instance, self.past, self.last, self.formulation)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2d) as prices of the oracle: ``worker_capacity``, shape (W, T)."""
        prices = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (place, t), row in self.model.eq_2d.items():
            if t <= self.instance.horizon:
                price = max(0.0, -duals.get(row, 0.0))
                prices[self.workers_of(place), t - 1] = price
        return {"worker_capacity": prices}


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudSubproblem(EdgecloudNames, Subproblem):
    """A job's part of the program of problem (2), with mutable prices and residual capacities."""

    last: int

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """``worker_capacity`` (W, T); in ``literal`` identical workers must have one price.

        Slots after T cost nothing, and are not for sale where `room` is given.
        """
        given = prices["worker_capacity"]
        everything = float(len(self.instance.worker_list))
        for place, t in self.model.price:
            workers, inside = self.workers_of(place), t <= given.shape[1]
            self.model.price[place, t] = float(given[workers[0], t - 1]) if inside else 0.0
            free = everything
            if room is not None:
                free = float(room["worker_capacity"][workers, t - 1].sum()) if inside else 0.0
            self.model.residual[place, t] = free

    def extract(self) -> EdgecloudSolution | None:
        """The job's schedule at the variables' values; None if counts do not add up."""
        past, last = Past(open_jobs=[self.position]), {self.position: self.last}
        return read_program(self.model, self.instance, past, last, self.formulation)


def build_offline(
    instance: EdgecloudInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: Solution | None = None,
    hedge: Hedge | None = None,
) -> EdgecloudProgram:
    """Build problem (2); a feasible `incumbent` shortens the time that it spans."""
    formulation, form = choose_form(FORMS, instance.check_formulation(formulation), form)
    past = read_past(instance, commitments)
    given = incumbent if isinstance(incumbent, EdgecloudSolution) else None
    last = last_slots(instance, formulation, past, given, hedge)
    return EdgecloudProgram(
        instance=instance, formulation=formulation, form=form or FORMS[formulation][0],
        relaxed=relax, past=past, last=last,
        model=BUILDERS[formulation](read_sets(instance, formulation, past, last), relax),
        again=partial(
            build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
            incumbent=incumbent, hedge=hedge,
        ),
    )  # fmt: skip


def build_subproblem(
    instance: EdgecloudInstance, job: int | str, formulation: str | None = None
) -> EdgecloudSubproblem:
    """A job's part of (2), prices 0, everything free: its time and what its workers cost."""
    formulation = instance.check_formulation(formulation)
    j = instance.position_of(job)
    last = _last_at_any_prices(instance, j)
    m = BUILDERS[formulation](read_sets(instance, formulation, Past(open_jobs=[j]), {j: last}))
    cells = sorted({key[1:] for key in m.y})
    everything = float(len(instance.worker_list))
    m.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    m.residual = pyo.Param(cells, mutable=True, initialize=everything, within=pyo.Reals)

    @m.Constraint(list(m.y), doc="(2d) within what is left of the workers")
    def residual_capacity(m: Model, j: int, place: int, t: int) -> Expr:
        return m.y[j, place, t] <= m.residual[place, t]

    paid = (m.price[place, t] * y for (_, place, t), y in m.y.items())
    m.objective.expr = m.objective.expr + pyo.quicksum(paid)
    return EdgecloudSubproblem(
        instance=instance, formulation=formulation, model=m, position=j, last=last
    )


def _last_at_any_prices(instance: EdgecloudInstance, j: int) -> int:
    """Last slot of a job's best response: the cloud's, or all work behind the last priced slot."""
    job = instance.jobs[j]
    if not may_wait_in_cloud(instance, j):
        return job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
    ready = job.arrival + max(job.upload_slots.values())
    return max(instance.horizon, ready) + job.chunks * int(instance.edge_slots[j])
