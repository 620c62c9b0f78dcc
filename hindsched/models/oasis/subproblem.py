"""The oasis family's subproblem (27): one job's best schedule at given prices.

=====================  ==============================================  ==============
paper                  here                                            indices
=====================  ==============================================  ==============
``p_h^r(t)``           ``worker_price``: of all that a worker takes    server, slot
``q_k^r(t)``           ``ps_price``: of all that a PS takes            server, slot
(30), (31)             ``worker_room``, ``ps_room``: how many fit      server, slot
(27)                   ``eq_27``                                       the objective
=====================  ==============================================  ==============
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Prices, Subproblem
from hindsched.models.oasis.block import Domains, add_job
from hindsched.models.oasis.reading import read_job
from hindsched.models.oasis.sets import Cell, Plan
from hindsched.models.oasis.symbols import SYMBOLS, OasisNames
from hindsched.solutions.oasis.solution import OasisSolution


@dataclass(kw_only=True, eq=False, repr=False)
class OasisSubproblem(OasisNames, Subproblem):
    """Subproblem (27) with the limits (30) and (31) on what fits."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "utility"

    instance: OasisInstance
    plan: Plan

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """As of the base: ``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        instance, job, m = self.instance, self.instance.jobs[self.position], self.model
        worker, ps = instance.demand_of(job)
        most_ps = max(1, instance.ps_needed(job, job.chunks))
        for name, price, fits, demand, capacity, most in (
            ("worker_capacity", m.worker_price, m.worker_room, worker, instance.worker_capacity,
             job.chunks),
            ("ps_capacity", m.ps_price, m.ps_room, ps, instance.ps_capacity, most_ps),
        ):  # fmt: skip
            unit = np.einsum("hrt,r->ht", prices[name], demand).tolist()
            whole = np.repeat(capacity[:, :, None], instance.horizon, axis=2)
            left = loosened(whole if room is None else room[name], whole)
            count = how_many_left(left.transpose(0, 2, 1), demand, most).tolist()
            for server, slot in price:
                price[server, slot].set_value(unit[server][slot - 1])
                fits[server, slot].set_value(count[server][slot - 1])

    def extract(self) -> OasisSolution:
        """The job's schedule at the variables' values."""
        job = self.instance.jobs[self.position]
        workers, ps = read_job(self.model.job[self.position], self.instance, job)
        deployed = {job.name: workers}, {job.name: ps}
        return OasisSolution(self.instance, *deployed, formulation=self.formulation)


def build_subproblem(
    instance: OasisInstance, job: str | int, formulation: str | None = None
) -> OasisSubproblem:
    """Build (27) over the strong block ``job[i]``, with prices 0 and everything free."""
    formulation = instance.check_formulation(formulation)
    position = instance.position_of(job)
    plan = Plan.of(instance.with_jobs((instance.jobs[position],)))
    sets = plan.jobs[0]
    m = pyo.ConcreteModel(name=instance.jobs[position].name)
    m.job = pyo.Block(
        [position], rule=lambda b, _: add_job(b, sets, "strong", Domains(), must_run=True)
    )
    block = m.job[position]
    m.worker_price, m.worker_room = _prices(sets.worker_room), _room(sets.worker_room)
    m.ps_price, m.ps_room = _prices(sets.ps_room), _room(sets.ps_room)

    @m.Constraint(list(sets.worker_room), doc="(30) workers that fit in what is left of a server")
    def eq_30(m: Model, h: int, t: int) -> Expr:
        return block.y[h, t] <= m.worker_room[h, t]

    @m.Constraint(list(sets.ps_room), doc="(31) PSs that fit in what is left of a server")
    def eq_31(m: Model, k: int, t: int) -> Expr:
        return block.z[k, t] <= m.ps_room[k, t]

    @m.Objective(sense=pyo.maximize, doc="(27) utility less what the use costs")
    def eq_27(m: Model) -> Expr:
        workers = total(m.worker_price[cell] * block.y[cell] for cell in sets.worker_room)
        servers = total(m.ps_price[cell] * block.z[cell] for cell in sets.ps_room)
        return block.utility - workers - servers

    return OasisSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, plan=plan
    )


def _prices(room: dict[Cell, int]) -> pyo.Param:
    return pyo.Param(list(room), initialize=0.0, mutable=True, domain=pyo.Reals)


def _room(room: dict[Cell, int]) -> pyo.Param:
    return pyo.Param(list(room), initialize=room, mutable=True, domain=pyo.NonNegativeIntegers)
