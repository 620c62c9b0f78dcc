"""mlbroker's subproblem: one block of the ``tight`` program at prices on its linking rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.base import Prices, Subproblem
from hindsched.models.mlbroker.block import add_job
from hindsched.models.mlbroker.sets import bills, job_sets
from hindsched.models.mlbroker.symbols import SYMBOLS, MlbrokerNames
from hindsched.solutions.mlbroker.solution import MlbrokerSolution


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerSubproblem(MlbrokerNames, Subproblem):
    """A job's placements over its life, in every slot at the prices given.

    A job pays ``discount`` for every unit that it buys at the lower price, and ``deployment`` for
    being deployed where it was not the slot before, less its launch.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "USD"

    instance: MlbrokerInstance

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set the prices; there are no capacities to leave anything of.

        Parameters
        ----------
        prices : mapping
            ``discount`` of shape (R, K, J, T) and ``deployment`` of shape (R, J, T).
        room : mapping, optional
            Not used.
        """
        m, job = self.model, self.position
        for t, r, k in m.discount_price:
            m.discount_price[t, r, k] = float(prices["discount"][r, k, job, t - 1])
        for t, r in m.deployment_price:
            m.deployment_price[t, r] = float(prices["deployment"][r, job, t - 1])

    def extract(self) -> MlbrokerSolution:
        """The job's placements at the variables' values, of the instance with this job alone."""
        alone = self.instance.with_jobs((self.instance.jobs[self.position],))
        block = self.model.job[self.position]
        workers = np.zeros((1, alone.horizon, len(alone.datacenters)), dtype=np.int64)
        ps = np.full((1, alone.horizon), -1, dtype=np.int64)
        for (t, r), variable in block.workers.items():
            workers[0, t - 1, r] = round(variable.value)
            if block.server[t, r].value > 0.5:
                ps[0, t - 1] = r
        return MlbrokerSolution(alone, workers, ps, self.formulation)


def build_subproblem(
    instance: MlbrokerInstance, job: str | int, formulation: str | None = None
) -> MlbrokerSubproblem:
    """Build the subproblem of one job, the block ``job[i]`` with prices 0 until `set`.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        Only ``tight`` falls apart into blocks.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("mlbroker", preset="small"), 0).position
    0
    """
    formulation = instance.check_formulation(formulation)
    if formulation != "tight":
        raise InputError("formulation", formulation, "must be tight for a subproblem")
    position = instance.position_of(job)
    f = job_sets(instance, position)
    m = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[position].name}")
    m.job = pyo.Block([position])
    b = m.job[position]
    add_job(b, f, bills(instance), formulation)
    prices = {"mutable": True, "initialize": 0.0, "domain": pyo.Reals}
    m.discount_price = pyo.Param(list(b.discounted), **prices)
    m.deployment_price = pyo.Param(f.places, **prices)
    paid = [m.discount_price[key] * unit for key, unit in b.discounted.items()]
    for t, r in f.places:
        before = b.present[t - 1, r] if t > f.slots[0] else 0.0
        paid.append(m.deployment_price[t, r] * (b.present[t, r] - before - b.launched[t, r]))
    m.eq_8 = pyo.Objective(
        expr=b.cost + pyo.quicksum(paid),
        doc="(8) the job's own cost and what it pays for the linking rows",
    )
    return MlbrokerSubproblem(
        instance=instance, formulation=formulation, model=m, position=position
    )
