"""The programs of astraea in Pyomo: (3), the round problem (4) and the subproblem (9)/(10).

``modes`` (default) consists of the blocks of `window_block`; ``literal`` is the printed program
(`literal.py`). Both have the same optimum. Worker and PS counts are the resources of the
block's cluster: a worker of type w takes one unit of resource w.

========================  =====================================================================
``eq_3``                  objective: revenue of all tenants
``eq_3c``, ``eq_3d``      workers and PSs of a server; summed they imply (3a) and (3b)
``eq_3k``                 a must-complete job runs once
``eq_4a``                 an optional job runs at most once: o_j
``eq_9``                  objective of the subproblem
========================  =====================================================================

The other constraints of (3) hold by the choice of columns or stand inside the block.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.errors import InputError
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes
from hindsched.models.astraea.literal import (
    build_literal,
    extract_literal,
    literal_prices,
    load_literal,
)
from hindsched.models.base import Commitments
from hindsched.models.windows import (
    add_job,
    fixed_rows,
    job_columns,
    read_block,
    write_block,
)
from hindsched.solutions.astraea.solution import AstraeaRow, AstraeaSolution, read_row

Array = NDArray[np.float64]
Rows = dict[str, tuple[AstraeaRow, ...]]
BLOCK_NAMES = ("eq_3l", "eq_3i")


@dataclass(frozen=True)
class UnitCluster:
    """Servers whose resources are counts of workers and PSs by type; a `WindowCluster`."""

    server_capacity: Array
    worker_demand: Array
    ps_demand: Array
    worker_bandwidth: Array
    ps_bandwidth: Array
    has_ps: bool = True

    @classmethod
    def of(cls, instance: AstraeaInstance) -> UnitCluster:
        """Build the cluster of an instance."""
        units = np.eye(len(instance.worker_types) + len(instance.ps_types))
        split = len(instance.worker_types)
        return cls(
            np.concatenate([instance.worker_count, instance.ps_count], axis=1).astype(float),
            units[:split],
            units[split:],
            instance.worker_bandwidth,
            instance.ps_bandwidth,
        )


def build_offline(
    instance: AstraeaInstance,
    formulation: str | None = None,
    *,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: AstraeaSolution | None = None,
) -> pyo.ConcreteModel:
    """Build the offline program (3).

    Parameters
    ----------
    instance : AstraeaInstance
        The instance.
    formulation : str, optional
        ``optional`` or ``must-complete``, ``modes`` or ``literal``.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed: a job with a row that begins before `now`, or a locked one,
        keeps its rows; rejected jobs get none; the others start from `now` on.
    incumbent : AstraeaSolution, optional
        A feasible solution; the program's slots are those of the horizon with or without it.

    Notes
    -----
    An optional job has no columns that earn nothing or less.
    """
    formulation = instance.check_formulation(formulation)
    obligation, writing = formulation.split(",")
    commitments = commitments or Commitments()
    fixed = fixed_rows(instance, commitments, read_row)
    free = _free(instance, fixed)
    model = pyo.ConcreteModel()
    model.instance, model.fixed, model.slots = instance, fixed, instance.horizon
    model.formulation = formulation
    open_jobs = [
        j
        for j, job in enumerate(instance.jobs)
        if job.name not in fixed and job.name not in commitments.rejected
    ]
    must = obligation == "must-complete"
    settled = AstraeaSolution(instance, dict(fixed), formulation).objective()
    if writing == "literal":
        build_literal(model, instance, open_jobs, commitments.now, free, must, relax, settled)
        return model
    cluster = UnitCluster.of(instance)
    model.job = pyo.Block(open_jobs)
    model.eq_3k = pyo.Constraint(pyo.Any)
    model.eq_4a = pyo.Constraint(pyo.Any)
    revenue = [settled]
    for j in open_jobs:
        job, block = instance.jobs[j], model.job[j]
        earliest = max(job.arrival + 1, commitments.now)
        last = instance.horizon if must else last_worthwhile_slot(instance, job)
        columns = job_columns(cluster, modes(instance, job), earliest, last, last + 1)
        add_job(block, cluster, columns, relax, BLOCK_NAMES)
        if must:
            model.eq_3k[j] = block.chosen == 1 if columns.u else pyo.Constraint.Infeasible
        elif columns.u:
            model.eq_4a[j] = block.chosen <= 1
        revenue.append(_revenue(block, instance, job))
    _link(model, open_jobs, free)
    model.eq_3 = pyo.Objective(expr=pyo.quicksum(revenue), sense=pyo.maximize)
    return model


def round_instance(instance: AstraeaInstance, slots: int) -> AstraeaInstance:
    """The round problem's instance: all jobs available at time 0, `slots` slots.

    Utilities count from the round's start, so the instance is one of (3) with arrivals 0.
    """
    jobs = tuple(job.model_copy(update={"arrival": 0}) for job in instance.jobs)
    return instance.with_fields(horizon=slots, utility_origin="absolute", jobs=jobs)


def build_round(
    instance: AstraeaInstance, slots: int, writing: str = "modes", *, relax: bool = False
) -> pyo.ConcreteModel:
    """Build the round problem (4): the best schedules of all jobs on an empty cluster.

    Parameters
    ----------
    instance : AstraeaInstance
        The batch; arrivals do not matter.
    slots : int
        tau_l.
    writing : str
        ``modes`` or ``literal``.
    relax : bool
        The linear relaxation.
    """
    return build_offline(round_instance(instance, slots), f"optional,{writing}", relax=relax)


def build_subproblem(
    instance: AstraeaInstance,
    job: str | int,
    formulation: str | None = None,
    *,
    values: Array | None = None,
) -> pyo.ConcreteModel:
    """Build subproblem (9) of one job: the same block with mutable prices and residuals.

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
    """
    formulation = instance.check_formulation(formulation)
    position = instance.job_index(job) if isinstance(job, str) else job
    record = instance.jobs[position]
    model = pyo.ConcreteModel()
    model.instance, model.fixed, model.slots = instance, {}, instance.horizon
    model.formulation = formulation
    model.job = pyo.Block([position])
    block = model.job[position]
    cluster = UnitCluster.of(instance)
    last = instance.horizon
    if values is not None:
        last = int(np.flatnonzero(np.isfinite(values)).max(initial=0))
    columns = job_columns(cluster, modes(instance, record), record.arrival + 1, last, last + 1)
    add_job(block, cluster, columns, False, BLOCK_NAMES)
    cells = sorted(block.use)
    sums = sorted({(r, t) for _, r, t in cells})
    model.quota = pyo.Param(sums, mutable=True, initialize=0.0, within=pyo.Reals)
    model.eq_3a = pyo.Constraint(sums, doc="(3a), (3b): what the job's tenant may use in all")
    model.price = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.eq_4a = pyo.Constraint(expr=block.chosen == 1 if columns.u else pyo.Constraint.Infeasible)
    model.eq_9a = pyo.Constraint(cells)
    paid = []
    for cell in cells:
        used = pyo.quicksum(amount * variable for amount, variable in block.use[cell])
        model.eq_9a[cell] = used <= model.room[cell]
        paid.append(model.price[cell] * used)
    for r, t in sums:
        terms = [
            amount * variable
            for s in range(len(instance.servers))
            for amount, variable in block.use.get((s, r, t), ())
        ]
        model.eq_3a[r, t] = pyo.quicksum(terms) <= model.quota[r, t]
    model.eq_9 = pyo.Objective(
        expr=_revenue(block, instance, record, values) - pyo.quicksum(paid), sense=pyo.maximize
    )
    return model


def set_subproblem(
    model: pyo.ConcreteModel,
    prices: Mapping[str, Array],
    residual: Mapping[str, Array] | None = None,
    quota: Array | None = None,
) -> None:
    """Set prices and what is left: ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T).

    `quota`, shape (T, W + P), is what the job's tenant may use in all; by default all there is.
    """
    instance: AstraeaInstance = model.instance
    price = np.concatenate([prices["worker_capacity"], prices["ps_capacity"]], axis=1)
    if residual is None:
        room = np.repeat(UnitCluster.of(instance).server_capacity[:, :, None], model.slots, axis=2)
    else:
        room = np.concatenate([residual["worker_capacity"], residual["ps_capacity"]], axis=1)
    for s, r, t in model.price:
        model.price[s, r, t] = float(price[s, r, t - 1])
        model.room[s, r, t] = math.floor(room[s, r, t - 1] + 1e-6)
    whole = UnitCluster.of(instance).server_capacity.sum(axis=0)
    for r, t in model.quota:
        model.quota[r, t] = float(whole[r] if quota is None else quota[t - 1, r])


def extract(
    model: pyo.ConcreteModel, instance: AstraeaInstance, formulation: str | None = None
) -> AstraeaSolution | None:
    """Solution at the variables' present values."""
    formulation = formulation or model.formulation
    if hasattr(model, "y"):
        return extract_literal(model, instance, formulation)
    rows: dict[str, Any] = dict(model.fixed)
    for j in model.job:
        window = read_block(model.job[j], UnitCluster.of(instance))
        if window is not None:
            rows[instance.jobs[j].name] = (AstraeaRow(*window),)
    return AstraeaSolution(instance, rows, formulation)


def load(model: pyo.ConcreteModel, solution: AstraeaSolution) -> None:
    """Set the variables from a solution whose jobs run in one window each: a start."""
    if hasattr(model, "y"):
        load_literal(model, solution)
        return
    cluster = UnitCluster.of(model.instance)
    for j in model.job:
        row = whole_window(solution, model.instance.jobs[j].name)
        write_block(model.job[j], cluster, row)


def whole_window(solution: AstraeaSolution, name: str) -> AstraeaRow | None:
    """A completed job's single window, joined over changes of payment, or None."""
    rows = solution.rows.get(name, ())
    if solution.completion(name) is None:
        return None
    first, last = rows[0], rows[-1]
    for row in rows:
        if not row.same_placement(first):
            raise InputError("incumbent", name, "must keep its placement")
    return AstraeaRow(
        first.first, last.last, first.worker_type, first.ps_type, first.workers, first.ps
    )


def capacity_prices(model: pyo.ConcreteModel, duals: Mapping[Any, float]) -> dict[str, Array]:
    """Duals of (3c) and (3d): ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T)."""
    instance: AstraeaInstance = model.instance
    workers = np.zeros((*instance.worker_count.shape, model.slots))
    ps = np.zeros((*instance.ps_count.shape, model.slots))
    if hasattr(model, "y"):
        literal_prices(model, duals, workers, ps)
    else:
        split = workers.shape[1]
        for rows in (model.eq_3c, model.eq_3d):
            for (s, r, t), row in rows.items():
                price = max(0.0, duals.get(row, 0.0))
                if r < split:
                    workers[s, r, t - 1] = price
                else:
                    ps[s, r - split, t - 1] = price
    return {"worker_capacity": workers, "ps_capacity": ps}


def last_worthwhile_slot(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Last slot at which completing the job earns something; 0 if none."""
    for slot in range(instance.horizon, job.arrival, -1):
        if instance.revenue(job, slot) > 0:
            return slot
    return 0


def _revenue(
    block: Any, instance: AstraeaInstance, job: AstraeaJob, values: Array | None = None
) -> Any:
    """``sum f(t + d - 1) u``, or with given values by slot in place of f."""
    table = block.columns.table.tuples()
    if values is None:
        values = np.zeros(instance.horizon + 1)
        for slot in range(job.arrival + 1, instance.horizon + 1):
            values[slot] = instance.revenue(job, slot)
    return pyo.quicksum(
        float(values[index[1] + table[index[0]][4] - 1]) * block.u[index]
        for index in block.columns.u
    )


def _free(instance: AstraeaInstance, fixed: Rows) -> Array:
    """Capacity that fixed rows leave, shape (slots, S, W + P)."""
    split = len(instance.worker_types)
    free = np.repeat(UnitCluster.of(instance).server_capacity[None], instance.horizon, axis=0)
    for rows in fixed.values():
        for row in rows:
            free[row.first - 1 : row.last, :, row.worker_type] -= row.workers
            free[row.first - 1 : row.last, :, split + row.ps_type] -= row.ps
    return free


def _link(model: pyo.ConcreteModel, jobs: list[int], free: Array) -> None:
    """Add (3c) and (3d): what all jobs use of a server's workers and PSs in a slot."""
    use: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    for j in jobs:
        for key, terms in model.job[j].use.items():
            use[key] += [amount * variable for amount, variable in terms]
    model.eq_3c = pyo.Constraint(pyo.Any, doc="workers of a server")
    model.eq_3d = pyo.Constraint(pyo.Any, doc="PSs of a server")
    split = len(model.instance.worker_types)
    for s, r, t in sorted(use):
        rows = model.eq_3c if r < split else model.eq_3d
        rows[s, r, t] = pyo.quicksum(use[s, r, t]) <= float(free[t - 1, s, r])
