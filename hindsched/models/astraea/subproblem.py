"""Subproblem (9) of astraea: one job's best schedule at given prices; with one start it is (10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.models.astraea.cluster import (
    BLOCK,
    SYMBOLS,
    AstraeaNames,
    UnitCluster,
    revenue_by_slot,
)
from hindsched.models.astraea.printed import REVENUE
from hindsched.models.base import Prices, Subproblem
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import JobBlock, add_job, refuse_in_pieces, use_by_cell
from hindsched.models.windows.offline import add_prices, set_prices
from hindsched.models.windows.sets import EmptyCluster, Starts, job_sets
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution

PER_UNIT = f"{REVENUE} a worker or PS"


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaSubproblem(AstraeaNames, Subproblem):
    """Subproblem (9): the job's block with mutable prices, residuals and quotas.

    Parameters
    ----------
    block : JobBlock
        The job's block.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        **SYMBOLS,
        "eq_3a": Symbol("worker or PS type, slot", PER_UNIT),
        "eq_9a": Symbol("server, worker or PS type, slot", PER_UNIT),
    }
    OBJECTIVE_UNIT = REVENUE

    instance: AstraeaInstance
    block: JobBlock

    def set(self, prices: Prices, room: Prices | None = None, quota: Floats | None = None) -> None:
        """Set prices and what is left.

        Parameters
        ----------
        prices : mapping
            ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T).
        room : mapping, optional
            What is left, in the same shapes; None for all of it.
        quota : ndarray, shape (T, W + P), optional
            What the job's tenant may use in all; by default all there is.
        """
        capacity = UnitCluster.of(self.instance).server_capacity
        left = np.repeat(capacity[:, :, None], self.instance.horizon, axis=2)
        if room is not None:
            left = np.concatenate([room["worker_capacity"], room["ps_capacity"]], axis=1)
        price = np.concatenate([prices["worker_capacity"], prices["ps_capacity"]], axis=1)
        set_prices(self.model, price, np.floor(left + 1e-6))
        whole = capacity.sum(axis=0)
        for r, t in self.model.quota:
            self.model.quota[r, t].set_value(float(whole[r] if quota is None else quota[t - 1, r]))

    def extract(self) -> AstraeaSolution:
        """The job's schedule at the variables' values."""
        windows = self.block.read(UnitCluster.of(self.instance))
        rows = [AstraeaRow(*window) for window in windows]
        name = self.instance.jobs[self.position].name
        return AstraeaSolution(self.instance, {name: rows} if rows else {}, self.formulation)


def build_subproblem(
    instance: AstraeaInstance,
    job: str | int,
    formulation: str | None = None,
    *,
    values: Floats | None = None,
) -> AstraeaSubproblem:
    """Build subproblem (9) of one job: the block with prices 0 and everything free.

    With one start and completion slot left, (9) is (10). Prices may differ by server.

    Parameters
    ----------
    instance : AstraeaInstance
        The cluster.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        As for `build_offline`; the job has to run in either.
    values : ndarray, shape (horizon + 1,), optional
        Value by completion slot in place of the revenue, never rising, -inf where it may not end.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_subproblem(hs.generate("astraea", jobs=2), 1).position
    1
    """
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    position = instance.position_of(job)
    record, cluster, last = instance.jobs[position], UnitCluster.of(instance), instance.horizon
    if values is not None:
        last = int(np.flatnonzero(np.isfinite(values)).max(initial=0))
    model = pyo.ConcreteModel(name=record.name)
    model.job = pyo.Block([position])
    table, first = modes(instance, record), record.arrival + 1
    sets = job_sets(Starts.of(EmptyCluster(cluster), table, first, last))
    block = add_job(model.job[position], sets, BLOCK, relax=False)
    used = use_by_cell(cluster, {position: block})
    paid = add_prices(model, used, cluster.server_capacity)
    in_all: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for _, r, t in used:
        in_all[r, t] = []
    for (_, r, t), taken in used.items():
        in_all[r, t] += taken
    whole = {(r, t): float(cluster.server_capacity[:, r].sum()) for r, t in in_all}
    model.quota = pyo.Param(sorted(in_all), mutable=True, initialize=whole, within=pyo.Reals)
    model.eq_4a = pyo.Constraint(
        expr=block.chosen == 1 if sets.columns else pyo.Constraint.Infeasible,
        doc="(4a) the job runs",
    )

    @model.Constraint(sorted(in_all), doc="(3a), (3b) what the job's tenant may use in all")
    def eq_3a(m: Any, r: int, t: int) -> Any:
        return pyo.quicksum(in_all[r, t]) <= m.quota[r, t]

    @model.Constraint(list(used), doc="(9a) what runs fits in what is left of its server")
    def eq_9a(m: Any, s: int, r: int, t: int) -> Any:
        return pyo.quicksum(used[s, r, t]) <= m.room[s, r, t]

    model.eq_9 = pyo.Objective(
        expr=block.worth(revenue_by_slot(instance, record, values)) - paid,
        sense=pyo.maximize, doc="(9) revenue less what the use costs",
    )  # fmt: skip
    return AstraeaSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, block=block
    )
