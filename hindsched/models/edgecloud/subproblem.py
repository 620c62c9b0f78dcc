"""One edgecloud job's block of problem (2) with prices on workers and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Prices, Subproblem
from hindsched.models.edgecloud.literal import literal
from hindsched.models.edgecloud.no_migration import no_migration
from hindsched.models.edgecloud.reading import read_program
from hindsched.models.edgecloud.sets import may_wait_in_cloud, read_sets
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.solutions.edgecloud.frozen_schedule import Past
from hindsched.solutions.edgecloud.solution import EdgecloudSolution


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudSubproblem(EdgecloudNames, Subproblem):
    """A job's part of the program of problem (2), with mutable prices and residual capacities.

    Parameters
    ----------
    last : int
        Last slot in which the job may run.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    last: int

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left.

        Parameters
        ----------
        prices : mapping
            ``worker_capacity``, shape (W, T): price of a worker's slots. In ``literal``, where
            identical workers are counted, they must have one price.
        room : mapping, optional
            What is left of the same rows; None for full capacity. Slots after T are not for sale.
        """
        groups = list(self.instance.groups.values())
        given = prices["worker_capacity"]
        everything = float(len(self.instance.worker_list))
        for place, t in self.model.price:
            workers = list(groups[place]) if self.formulation == "literal" else [place]
            inside = t <= given.shape[1]
            self.model.price[place, t] = float(given[workers[0], t - 1]) if inside else 0.0
            free = everything
            if room is not None:
                free = float(room["worker_capacity"][workers, t - 1].sum()) if inside else 0.0
            self.model.residual[place, t] = free

    def extract(self) -> EdgecloudSolution | None:
        """The job's schedule at the variables' values; None if counts do not add up."""
        past = Past(open_jobs=[self.position])
        last = {self.position: self.last}
        return read_program(self.model, self.instance, past, last, self.formulation)


def build_subproblem(
    instance: EdgecloudInstance, job: int | str, formulation: str | None = None
) -> EdgecloudSubproblem:
    """One job's block with prices 0 and everything free.

    The block is the job's part of `build_offline`. Its objective is the job's time plus the prices
    of the worker slots that it takes.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        ``no-migration`` (default) or ``literal``.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("edgecloud", jobs=2), 0).formulation
    'no-migration'
    """
    formulation = instance.check_formulation(formulation)
    j = instance.position_of(job)
    last = _last_at_any_prices(instance, j)
    facts = read_sets(instance, formulation, Past(open_jobs=[j]), {j: last})
    m = (literal if formulation == "literal" else no_migration)(facts)
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
