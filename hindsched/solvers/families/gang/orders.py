"""Method ``orders``: few jobs placed in the best order that moving single jobs leads to.

It counts its work in orders and looks at no clock: the same instance gives the same schedule. There
is no proof; where the bound of counting meets the schedule, it is optimal all the same. Jobs of one
GPU each that are all there get the least makespan of all.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.families.gang.incumbents import incumbents
from hindsched.solvers.families.gang.makespan import makespan_bound_slots
from hindsched.solvers.families.gang.pool import job_blocks
from hindsched.solvers.families.gang.prices import certify_without_prices
from hindsched.solvers.kernels.gang.equal_machines import starts_on_machines
from hindsched.solvers.kernels.gang.orders import FAR, Jobs
from hindsched.solvers.kernels.gang.responses import FOREVER
from hindsched.solvers.kernels.gang.small_orders import best_small_order

RESTARTS = 20
"""How often the best order is shaken."""
MOST_ORDERS = 6_000
"""Orders placed in all."""


def orders(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Replay the policies, then place jobs in the best order that is found from theirs."""
    assert isinstance(instance, GangInstance)
    if instance.is_consolidated:
        raise InputError("method", "orders", "needs a pool: it places no jobs on servers")
    known = list(incumbents(instance, formulation))
    begin = [np.argsort(solution.starts, kind="stable") for solution in known]
    starts, placed = best_starts(instance, formulation, begin)
    number = np.arange(starts.size)
    rows = pool_rows(number, starts, starts + instance.durations, instance.job_gpus)
    best = min([GangSolution(instance, rows, formulation), *known], key=GangSolution.objective)
    certificate = certify_without_prices(instance, formulation)
    return Result(
        instance=instance,
        formulation=formulation,
        method="orders",
        status=Status.FEASIBLE,
        stopped_by=StoppedBy.CONVERGED,
        solution=best,
        bound=certificate.bound,
        certificate=certificate,
        backend="orders",
        details={"orders": placed},
    )


def best_starts(
    instance: GangInstance, formulation: str, begin: list[Ints] | None = None
) -> tuple[Ints, int]:
    """Starts of the best schedule found, and how many orders, or nodes, were looked at.

    Parameters
    ----------
    instance : GangInstance
        A pool with at least one job.
    formulation : str
        Kind and objective.
    begin : list of ndarray of int, optional
        Orders to begin from, besides the queues of simple rules.
    """
    goal = split_formulation(formulation)[1]
    duration, gpus = instance.durations, instance.job_gpus
    if goal == "makespan" and gpus.max() == 1 and not instance.submits.any():
        return starts_on_machines(duration, instance.total_gpus)
    blocks = job_blocks(instance, formulation)
    due = np.where(blocks.latest == FOREVER, FAR, blocks.latest)
    penalty = np.where(np.isfinite(blocks.skip), blocks.skip, 0.0)
    jobs = Jobs(blocks.submit, blocks.duration, gpus, blocks.slope, due, penalty)
    work = duration * gpus
    keys = (blocks.submit, duration, work, work / instance.weights, due, -duration)
    found = [np.argsort(key, kind="stable") for key in keys]
    enough = makespan_bound_slots(instance, "non-preemptive") if goal == "makespan" else 0.0
    return best_small_order(
        np.unique(np.array([*found, *(begin or [])]), axis=0),
        jobs,
        instance.total_gpus,
        makespan=goal == "makespan",
        restarts=RESTARTS,
        most=MOST_ORDERS,
        enough=float(enough),
    )
