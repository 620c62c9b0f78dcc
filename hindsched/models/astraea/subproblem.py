"""Subproblem (9) of astraea: one job's best schedule at given prices; with one start it is (10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.models.algebra import Expr, Model
from hindsched.models.astraea.cluster import BLOCK, SYMBOLS, AstraeaNames, UnitCluster, revenue_of
from hindsched.models.astraea.printed import REVENUE
from hindsched.models.base import Prices, Subproblem
from hindsched.models.declared import Symbol
from hindsched.models.slots import refuse_in_pieces
from hindsched.models.sums import expressions, gather, tuples
from hindsched.models.windows import Starts, WindowBlock, add_job, job_columns
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaSubproblem(AstraeaNames, Subproblem):
    """Subproblem (9): the job's block with mutable prices, residuals and quotas.

    Parameters
    ----------
    block : WindowBlock
        The job's block.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        **SYMBOLS,
        "eq_3a": Symbol("worker or PS type, slot", f"{REVENUE} a worker or PS"),
    }
    OBJECTIVE_UNIT = REVENUE

    instance: AstraeaInstance
    block: WindowBlock

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
        instance, model = self.instance, self.model
        capacity = UnitCluster.of(instance).server_capacity
        price = np.concatenate([prices["worker_capacity"], prices["ps_capacity"]], axis=1).tolist()
        left = np.repeat(capacity[:, :, None], instance.horizon, axis=2)
        if room is not None:
            left = np.concatenate([room["worker_capacity"], room["ps_capacity"]], axis=1)
        for s, r, t in model.price:
            model.price[s, r, t].set_value(price[s][r][t - 1])
            model.room[s, r, t].set_value(math.floor(left[s, r, t - 1] + 1e-6))
        whole = capacity.sum(axis=0)
        for r, t in model.quota:
            model.quota[r, t].set_value(float(whole[r] if quota is None else quota[t - 1, r]))

    def extract(self) -> AstraeaSolution:
        """The job's schedule at the variables' values."""
        rows: dict[str, Sequence[AstraeaRow]] = {}
        window = self.block.read(UnitCluster.of(self.instance))
        if window is not None:
            rows[self.instance.jobs[self.position].name] = (AstraeaRow(*window),)
        return AstraeaSolution(self.instance, rows, self.formulation)


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
    record = instance.jobs[position]
    cluster = UnitCluster.of(instance)
    last = instance.horizon
    if values is not None:
        last = int(np.flatnonzero(np.isfinite(values)).max(initial=0))
    model = pyo.ConcreteModel(name=record.name)
    model.job = pyo.Block([position])
    starts = Starts.of(cluster, modes(instance, record), record.arrival + 1, last)
    columns = job_columns(starts)
    block = add_job(model.job[position], cluster, columns, False, BLOCK)
    keys, terms = gather(block.uses)
    cells = tuples(keys)
    sums = sorted({(r, t) for _, r, t in cells})
    full = {(s, r, t): float(cluster.server_capacity[s, r]) for s, r, t in cells}
    whole = {(r, t): float(cluster.server_capacity[:, r].sum()) for r, t in sums}
    model.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(cells, mutable=True, initialize=full, within=pyo.Reals)
    model.quota = pyo.Param(sums, mutable=True, initialize=whole, within=pyo.Reals)
    used = dict(zip(cells, expressions(len(cells), terms), strict=True))
    in_all: dict[tuple[int, int], list[Expr]] = {key: [] for key in sums}
    for s, r, t in cells:
        in_all[r, t].append(used[s, r, t])
    model.eq_4a = pyo.Constraint(
        expr=block.chosen == 1 if columns.u else pyo.Constraint.Infeasible, doc="(4a) the job runs"
    )

    @model.Constraint(sums, doc="(3a), (3b) what the job's tenant may use in all")
    def eq_3a(m: Model, r: int, t: int) -> Expr:
        return pyo.quicksum(in_all[r, t]) <= m.quota[r, t]

    @model.Constraint(cells, doc="(9a) what runs fits in what is left of its server")
    def eq_9a(m: Model, s: int, r: int, t: int) -> Expr:
        return used[s, r, t] <= m.room[s, r, t]

    paid = pyo.quicksum(model.price[cell] * used[cell] for cell in cells)
    model.eq_9 = pyo.Objective(
        expr=revenue_of(block, instance, record, values) - paid,
        sense=pyo.maximize,
        doc="(9) revenue less what the use costs",
    )
    return AstraeaSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, block=block
    )
