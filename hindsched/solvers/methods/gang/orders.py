"""Method ``orders``: few jobs placed in the best order that moving single jobs leads to.

It counts its work in orders and looks at no clock: the same instance gives the same schedule. There
is no proof; where the bound of counting meets the schedule, it is optimal all the same.
"""

from __future__ import annotations

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.answer import Progress
from hindsched.solvers.certificate import certify
from hindsched.solvers.kernels.gang.orders import FAR, Jobs
from hindsched.solvers.kernels.gang.responses import FOREVER
from hindsched.solvers.kernels.gang.small_orders import best_small_order
from hindsched.solvers.methods.gang.incumbents import incumbents
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.gang.pool import GangOracle, job_blocks
from hindsched.solvers.result import Result
from hindsched.solvers.status import Status, StoppedBy

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
    goal = split_formulation(formulation)[1]
    blocks = job_blocks(instance, formulation)
    due = np.where(blocks.latest == FOREVER, FAR, blocks.latest)
    penalty = np.where(np.isfinite(blocks.skip), blocks.skip, 0.0)
    jobs = Jobs(blocks.submit, blocks.duration, instance.job_gpus, blocks.slope, due, penalty)
    oracle = GangOracle(instance, formulation)
    certificate = certify(oracle, np.zeros(oracle.rows.size))
    known = list(incumbents(instance, formulation))
    begin = [np.argsort(solution.starts, kind="stable") for solution in known]
    begin.append(np.argsort(-blocks.duration, kind="stable"))
    starts, placed = best_small_order(
        np.unique(np.array(begin), axis=0),
        jobs,
        instance.total_gpus,
        makespan=goal == "makespan",
        restarts=RESTARTS,
        most=MOST_ORDERS,
        enough=certificate.bound / float(instance.slot_seconds) if goal == "makespan" else 0.0,
    )
    number = np.arange(starts.size)
    rows = pool_rows(number, starts, starts + jobs.duration, instance.job_gpus)
    best = min([GangSolution(instance, rows, formulation), *known], key=GangSolution.objective)
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
