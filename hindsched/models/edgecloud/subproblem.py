"""One edgecloud job's block of problem (2) with prices on workers and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Prices, Subproblem
from hindsched.models.edgecloud.literal import LiteralBuilder
from hindsched.models.edgecloud.no_migration import NoMigrationBuilder
from hindsched.models.edgecloud.reading import read_literal, read_no_migration
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.solutions.edgecloud.frozen_schedule import Past
from hindsched.solutions.edgecloud.ps import place_parameter_servers
from hindsched.solutions.edgecloud.runs import Runs
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
        members = list(self.instance.groups.values())
        given = prices["worker_capacity"]
        left = None if room is None else room["worker_capacity"]
        everything = float(len(self.instance.worker_list))
        for place, t in self.model.price:
            workers = members[place] if self.formulation == "literal" else (place,)
            inside = t <= given.shape[1]
            price = float(given[workers[0], t - 1]) if inside else 0.0
            self.model.price[place, t].set_value(price)
            free = everything
            if left is not None:
                free = float(sum(left[w, t - 1] for w in workers)) if inside else 0.0
            self.model.residual[place, t].set_value(free)

    def extract(self) -> EdgecloudSolution | None:
        """The job's schedule at the variables' values; None if counts do not add up."""
        j, past = self.position, Past(open_jobs=[self.position])
        if self.formulation == "literal":
            rows = read_literal(self.model, self.instance, past, self.last, j, {})
        else:
            rows = read_no_migration(self.model, self.instance, past, self.last, j)
        if rows is None:
            return None
        runs = Runs.of(rows)
        together = {j} if round(self.model.zeta[j].value) else set()
        holds = place_parameter_servers(self.instance, runs, together)
        return EdgecloudSolution(self.instance, runs, holds, self.formulation)


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
    position = instance.position_of(job)
    last = _last_at_any_prices(instance, position)
    builder = LiteralBuilder if formulation == "literal" else NoMigrationBuilder
    model = builder(instance, Past(open_jobs=[position]), {position: last}, False, False).build()
    cells = sorted({key[1:] for key in model.y})
    everything = float(len(instance.worker_list))
    model.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.residual = pyo.Param(cells, mutable=True, initialize=everything, within=pyo.Reals)

    @model.Constraint(list(model.y), doc="(2d) within what is left of the workers")
    def residual_capacity(m: Model, j: int, place: int, t: int) -> Expr:
        return m.y[j, place, t] <= m.residual[place, t]

    model.objective.expr = model.objective.expr + pyo.quicksum(
        model.price[place, t] * y for (_, place, t), y in model.y.items()
    )
    return EdgecloudSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, last=last
    )


def _last_at_any_prices(instance: EdgecloudInstance, j: int) -> int:
    """Last slot of a job's best response: the cloud's, or all work behind the last priced slot."""
    job = instance.jobs[j]
    free = instance.cloud_workers(job.worker_type) is None
    if free and instance.cloud_ps(job.ps_type) is None:
        return job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
    ready = job.arrival + max(job.upload_slots.values())
    return max(instance.horizon, ready) + job.chunks * int(instance.edge_slots[j])
