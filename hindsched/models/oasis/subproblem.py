"""The oasis family's subproblem (27): one job's best schedule at given prices, on real servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Ints
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Prices, Subproblem
from hindsched.models.oasis.block import Domains, add_job
from hindsched.models.oasis.program import Parts, Pools, ProgramJob, job_facts
from hindsched.models.oasis.reading import read_counts
from hindsched.models.oasis.symbols import SYMBOLS, OasisNames
from hindsched.solutions.oasis.solution import OasisSolution


@dataclass(kw_only=True, eq=False, repr=False)
class OasisSubproblem(OasisNames, Subproblem):
    """Subproblem (27) with the limits (30) and (31) on what fits.

    Parameters
    ----------
    parts : Parts
        One pool a server, and the job.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "utility"

    instance: OasisInstance
    parts: Parts

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set the prices and what is left.

        Parameters
        ----------
        prices : mapping
            ``worker_capacity`` of shape (H, R, T) and ``ps_capacity`` of shape (K, R, T).
        room : mapping, optional
            What is left of the capacities, in the same shapes; None for all of it.
        """
        instance, job = self.instance, self.instance.jobs[self.position]
        worker, ps = instance.demand_of(job)
        most_ps = max(1, instance.ps_needed(job, job.chunks))
        model = self.model
        for price, fits, name, demand, capacity, most in (
            (model.worker_price, model.worker_room, "worker_capacity", worker,
             instance.worker_capacity, job.chunks),
            (model.ps_price, model.ps_room, "ps_capacity", ps, instance.ps_capacity, most_ps),
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
        job, block = self.instance.jobs[self.position], self.model.job[self.position]
        horizon = self.instance.horizon
        workers = {job.name: read_counts(block.y, self.parts.worker_pools, horizon).T}
        ps = {job.name: read_counts(block.z, self.parts.ps_pools, horizon).T}
        return OasisSolution(self.instance, workers, ps, formulation=self.formulation)


def build_subproblem(
    instance: OasisInstance, job: str | int, formulation: str | None = None
) -> OasisSubproblem:
    """Build subproblem (27) of one job on real servers: the best schedule at given prices.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        The family has one.

    Returns
    -------
    OasisSubproblem
        The strong block ``job[i]``, one pool a server; objective ``eq_27``; ``eq_30`` and
        ``eq_31`` limit what fits. Prices are 0 and everything is free until `set`.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("oasis", jobs=2, horizon=6), 0).parts.jobs[0].index
    0
    """
    formulation = instance.check_formulation(formulation)
    position = instance.position_of(job)
    record = instance.jobs[position]
    worker_pools, ps_pools = (
        Pools.of(capacity, np.zeros((instance.horizon + 1, *capacity.shape)), grouped=False)
        for capacity in (instance.worker_capacity, instance.ps_capacity)
    )
    facts = job_facts(instance, record, worker_pools, ps_pools, record.arrival, 0)
    nothing = np.zeros((instance.horizon, 0), dtype=np.int64)
    parts = Parts(worker_pools, ps_pools, [ProgramJob(position, (nothing, nothing), facts)])
    model = pyo.ConcreteModel(name=record.name)
    model.job = pyo.Block([position])
    block = model.job[position]
    add_job(block, facts, "strong", Domains(), must_run=True)
    workers, ps = list(block.y), list(block.z)
    model.worker_price = pyo.Param(workers, initialize=0.0, mutable=True, domain=pyo.Reals)
    model.worker_room = _room(workers, facts.worker_room)
    model.ps_price = pyo.Param(ps, initialize=0.0, mutable=True, domain=pyo.Reals)
    model.ps_room = _room(ps, facts.ps_room)

    @model.Constraint(workers, doc="(30) workers that fit in what is left of a server")
    def eq_30(m: Model, server: int, t: int) -> Expr:
        return block.y[server, t] <= m.worker_room[server, t]

    @model.Constraint(ps, doc="(31) PSs that fit in what is left of a server")
    def eq_31(m: Model, server: int, t: int) -> Expr:
        return block.z[server, t] <= m.ps_room[server, t]

    cost = pyo.quicksum(model.worker_price[key] * var for key, var in block.y.items())
    cost += pyo.quicksum(model.ps_price[key] * var for key, var in block.z.items())
    model.eq_27 = pyo.Objective(
        expr=block.utility - cost, sense=pyo.maximize, doc="(27) utility less what the use costs"
    )
    return OasisSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, parts=parts
    )


def _room(keys: list[tuple[int, int]], fits: Ints) -> pyo.Param:
    full = {key: int(fits[key]) for key in keys}
    return pyo.Param(keys, initialize=full, mutable=True, domain=pyo.NonNegativeIntegers)
