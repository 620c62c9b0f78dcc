"""The programs of batchsched in Pyomo: (2)/(15), (7)/(16) and the subproblem (12)/(20).

``modes`` (default) consists of the blocks of `window_block`; ``literal`` is the printed program
(`literal.py`). Both have the same optimum. The slots that the program spans follow from a
feasible schedule (`incumbent`, else a list schedule made here): in an optimal schedule no job
completes later than ``cmin_j + (UB - sum w cmin) / w_j``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.models.base import Commitments
from hindsched.models.batchsched.incumbent import plan_rest
from hindsched.models.batchsched.literal import (
    build_literal,
    extract_literal,
    literal_prices,
    load_literal,
)
from hindsched.models.batchsched.reduction import ColumnReduction
from hindsched.models.windows import (
    add_job,
    fixed_rows,
    job_columns,
    read_block,
    write_block,
)
from hindsched.solutions.batchsched.solution import (
    BatchschedRow,
    BatchschedSolution,
    read_row,
    row_use,
)

Array = NDArray[np.float64]


def build_offline(
    instance: BatchschedInstance,
    formulation: str | None = None,
    *,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: BatchschedSolution | None = None,
    reduction: ColumnReduction | None = None,
) -> pyo.ConcreteModel:
    """Build the offline program.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    formulation : str, optional
        ``modes`` or ``literal``.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed: a job with a row that begins before `now`, or a locked one,
        keeps its rows; the others start from `now` on.
    incumbent : BatchschedSolution, optional
        A feasible solution, from which the time limit follows.
    reduction : ColumnReduction, optional
        Columns to leave out of the mode-based form because no schedule better than the incumbent
        contains them. The program's bound is then one on the optimum only up to the incumbent's
        objective, which the incumbent itself attains.
    """
    formulation = instance.check_formulation(formulation)
    commitments = commitments or Commitments()
    fixed = fixed_rows(instance, commitments, read_row)
    if incumbent is None:
        incumbent = plan_rest(instance, commitments)
    latest = _latest_completions(instance, fixed, commitments.now, incumbent)
    slots = max(
        [row.last for rows in fixed.values() for row in rows]
        + [math.floor(latest[job.name] + 1e-9) - 1 for job in instance.jobs if job.name in latest],
        default=1,
    )
    model = pyo.ConcreteModel()
    model.fixed = fixed
    model.slots = slots
    model.instance = instance
    model.incumbent = incumbent
    if formulation == "literal":
        build_literal(model, instance, commitments, fixed, slots, relax)
        return model
    open_jobs = [j for j, job in enumerate(instance.jobs) if job.name not in fixed]
    model.job = pyo.Block(open_jobs)
    model.eq_2a = pyo.Constraint(pyo.Any)
    cost = [
        float(job.weight) * _fixed_completion(fixed[job.name])
        for job in instance.jobs
        if job.name in fixed
    ]
    for j in open_jobs:
        job = instance.jobs[j]
        earliest = max(job.arrival, commitments.now)
        keep = None if reduction is None else partial(reduction.keep, j)
        table = modes(instance, job)
        columns = job_columns(instance, table, earliest, slots, latest[job.name], keep)
        add_job(model.job[j], instance, columns, relax)
        model.eq_2a[j] = model.job[j].chosen == 1
        cost.append(float(job.weight) * model.job[j].completion)
    _link(model, instance, open_jobs, _free(instance, fixed, slots))
    model.objective = pyo.Objective(expr=pyo.quicksum(cost), sense=pyo.minimize)
    return model


def build_max_weight(
    instance: BatchschedInstance, last: int, *, relax: bool = False
) -> pyo.ConcreteModel:
    """Build the maximum weighted schedule problem (7)/(16) on an empty cluster.

    Parameters
    ----------
    instance : BatchschedInstance
        The batch; arrivals do not matter, every job may start in slot 1.
    last : int
        Last slot that may be used: tau - 1 for (7b) as printed, tau with tight slots.
    relax : bool
        The linear relaxation; that of (8), over whole schedules, is tighter (`batchsched_duals`).
    """
    model = pyo.ConcreteModel()
    jobs = list(range(len(instance.jobs)))
    model.instance, model.fixed, model.slots = instance, {}, last
    model.job = pyo.Block(jobs)
    model.eq_7a = pyo.Constraint(pyo.Any)
    gain = []
    for j in jobs:
        columns = job_columns(instance, modes(instance, instance.jobs[j]), 1, last, last + 1)
        add_job(model.job[j], instance, columns, relax)
        if columns.u:
            model.eq_7a[j] = model.job[j].chosen <= 1
            gain.append(float(instance.jobs[j].weight) * model.job[j].chosen)
    _link(model, instance, jobs, _free(instance, {}, max(last, 0)))
    model.objective = pyo.Objective(expr=pyo.quicksum(gain), sense=pyo.maximize)
    return model


def build_subproblem(
    instance: BatchschedInstance, job: str | int, formulation: str | None = None
) -> pyo.ConcreteModel:
    """Build subproblem (12)/(20) of one job: the same block with prices and what is left.

    The slots are those of the prices given to `set_subproblem`, which fills the model.
    """
    position = instance.job_index(job) if isinstance(job, str) else job
    model = pyo.ConcreteModel()
    model.instance, model.position, model.fixed = instance, position, {}
    model.formulation = instance.check_formulation(formulation)
    return model


def set_subproblem(
    model: pyo.ConcreteModel,
    prices: Mapping[str, Array],
    residual: Mapping[str, Array] | None = None,
) -> None:
    """Set prices and residual capacities, both ``capacity`` of shape (H, R, T).

    The block and its mutable prices and capacities are built at the first call; a later call with
    the same number of slots only changes the parameters.
    """
    instance: BatchschedInstance = model.instance
    price = prices["capacity"]
    slots = price.shape[2]
    free = np.repeat(instance.server_capacity[:, :, None], slots, axis=2)
    if residual is not None:
        free = residual["capacity"]
    if getattr(model, "slots", None) != slots:
        names = ("eq_2h", "eq_12a") if instance.has_ps else ("eq_15b", "eq_20a")
        for name in ("objective", *names, "job", "price", "room"):
            model.del_component(name)
        _fill_subproblem(model, slots)
    for h, r, t in model.cells:
        model.price[h, r, t] = float(price[h, r, t - 1])
        model.room[h, r, t] = float(free[h, r, t - 1])


def _fill_subproblem(model: pyo.ConcreteModel, slots: int) -> None:
    instance: BatchschedInstance = model.instance
    position: int = model.position
    job = instance.jobs[position]
    columns = job_columns(instance, modes(instance, job), job.arrival, slots, slots + 1)
    model.slots = slots
    model.job = pyo.Block([position])
    block = model.job[position]
    add_job(block, instance, columns, False)
    model.cells = sorted(block.use)
    model.price = pyo.Param(model.cells, mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(model.cells, mutable=True, initialize=0.0, within=pyo.Reals)
    once = pyo.Constraint(expr=block.chosen == 1 if columns.u else pyo.Constraint.Infeasible)
    setattr(model, "eq_12a" if instance.has_ps else "eq_20a", once)
    capacity = _add_capacity(model)
    paid = []
    for cell in model.cells:
        used = pyo.quicksum(amount * variable for amount, variable in block.use[cell])
        capacity[cell] = used <= model.room[cell]
        paid.append(model.price[cell] * used)
    model.objective = pyo.Objective(
        expr=float(job.weight) * block.completion + pyo.quicksum(paid), sense=pyo.minimize
    )


def extract(
    model: pyo.ConcreteModel, instance: BatchschedInstance, formulation: str | None = None
) -> BatchschedSolution | None:
    """Solution at the variables' present values."""
    if hasattr(model, "x"):
        return extract_literal(model, instance)
    rows: dict[str, Any] = dict(model.fixed)
    for j in model.job:
        row = read_block(model.job[j], instance)
        if row is not None:
            rows[instance.jobs[j].name] = (BatchschedRow(*row),)
    return BatchschedSolution(instance, rows, formulation)


def load(model: pyo.ConcreteModel, solution: BatchschedSolution) -> None:
    """Set the variables from a solution: a start for the solver."""
    if hasattr(model, "x"):
        load_literal(model, solution)
        return
    instance: BatchschedInstance = model.instance
    for j in model.job:
        rows = solution.rows.get(instance.jobs[j].name, ())
        write_block(model.job[j], instance, rows[0] if len(rows) == 1 else None)


def capacity_prices(model: pyo.ConcreteModel, duals: Mapping[Any, float]) -> dict[str, Array]:
    """Duals of (2h)/(15b) as prices ``capacity``, shape (H, R, slots of the model)."""
    instance: BatchschedInstance = model.instance
    array = np.zeros((*instance.server_capacity.shape, model.slots))
    if hasattr(model, "x"):
        return {"capacity": literal_prices(model, duals, array)}
    capacity = model.eq_2h if instance.has_ps else model.eq_15b
    for (h, r, t), row in capacity.items():
        array[h, r, t - 1] = max(0.0, -duals.get(row, 0.0))
    return {"capacity": array}


def _link(
    model: pyo.ConcreteModel, instance: BatchschedInstance, jobs: list[int], free: Array
) -> None:
    """Add (2h)/(15b): what all jobs use of a server's resource in a slot."""
    use: dict[tuple[int, int, int], list[tuple[float, Any]]] = defaultdict(list)
    for j in jobs:
        for key, terms in model.job[j].use.items():
            use[key] += terms
    capacity = _add_capacity(model)
    for h, r, t in sorted(use):
        used = pyo.quicksum(amount * variable for amount, variable in use[h, r, t])
        capacity[h, r, t] = used <= float(free[t - 1, h, r])


def _add_capacity(model: pyo.ConcreteModel) -> pyo.Constraint:
    """Rows by (server, resource, slot), named by the architecture's number."""
    capacity = pyo.Constraint(pyo.Any)
    setattr(model, "eq_2h" if model.instance.has_ps else "eq_15b", capacity)
    return capacity


def _free(
    instance: BatchschedInstance, fixed: Mapping[str, tuple[BatchschedRow, ...]], slots: int
) -> Array:
    free = np.repeat(instance.server_capacity[None], slots, axis=0)
    for rows in fixed.values():
        for row in rows:
            free[row.first - 1 : row.last] -= row_use(instance, row)
    return free


def _fixed_completion(rows: tuple[BatchschedRow, ...]) -> int:
    return rows[-1].last + 1


def _latest_completions(
    instance: BatchschedInstance,
    fixed: Mapping[str, tuple[BatchschedRow, ...]],
    now: int,
    incumbent: BatchschedSolution,
) -> dict[str, float]:
    """Latest completion t + L of every open job in a schedule no worse than the incumbent.

    Some optimal schedule has no empty slot once all jobs are there and all fixed rows have ended:
    what starts after an empty slot could start one slot earlier. Hence no job need end later than
    in the incumbent, or than if all then ran one after another, however small its weight.
    """
    open_jobs = [job for job in instance.jobs if job.name not in fixed]
    durations = {job.name: modes(instance, job).duration for job in open_jobs}
    least = {job.name: max(job.arrival, now) + int(durations[job.name].min()) for job in open_jobs}
    ends = [row.last + 1 for rows in fixed.values() for row in rows]
    ready = max([now, *ends, *(job.arrival for job in open_jobs)])
    last = ready + sum(int(duration.max()) for duration in durations.values())
    weight = {job.name: float(job.weight) for job in instance.jobs}
    spare = -sum(weight[name] * completion for name, completion in least.items())
    for name in least:
        completion = incumbent.completion(name)
        if completion is None:
            raise InputError("incumbent", name, "must complete every job")
        spare += weight[name] * (completion + 1)
        last = max(last, completion + 1)
    return {
        name: min(last, completion + max(0.0, spare) / weight[name])
        for name, completion in least.items()
    }
