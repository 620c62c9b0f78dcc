"""Methods of the oasis family: the generic ones, with a program that is sure to be placed.

The aggregated program is the fastest, but its optimum counts only once it is placed on real
servers: by best fit, or by a leaf, the program server by server with each job's end given. What no
leaf can place is cut off (`oasis_conflicts`). If a leaf stays undecided, the printed program takes
over with what is left of the time; the smaller bound stands.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.oasis import OasisInstance
from hindsched.models import oasis as models
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis import OasisSolution
from hindsched.solvers.answer import Progress
from hindsched.solvers.methods.auto import solve_auto
from hindsched.solvers.methods.base import Method, better, generic_methods, solve_milp
from hindsched.solvers.methods.oasis_conflicts import Leaves, add_cut, promised_ends
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.oasis import OasisOracle
from hindsched.solvers.program import solve_program, within_gap
from hindsched.solvers.result import Result
from hindsched.solvers.status import Status, StoppedBy

SHARE_OF_AGGREGATED = 0.6
"""Share of a time limit that the aggregated program may use if it may have to be placed."""
SHARE_OF_PLACING = 0.5
"""Share of what is left of it that placing its best point may use."""


def milp(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
) -> Result:
    """Solve the aggregated program, placing its points and cutting off what cannot be placed."""
    started = time.perf_counter()

    def left() -> float | None:
        limit = options.time_limit
        return None if limit is None else max(0.0, limit - (time.perf_counter() - started))

    def out_of_time() -> bool:
        seconds = left()
        return seconds is not None and seconds <= 0

    best = incumbent or insert_by_density(instance, formulation)
    model = models.build_offline(cast(OasisInstance, instance), formulation)
    twins = _has_twins(instance)
    leaves: Leaves | None = None
    bounds: list[float] = []
    cuts = 0
    while True:
        models.load(model, cast(OasisSolution, best))
        limit = _share(left(), SHARE_OF_AGGREGATED if twins else 1.0)
        program = solve_program(
            model, options.with_time(limit), start=True, on_progress=on_progress
        )
        bounds += [] if program.bound is None else [program.bound]
        if not program.has_point:
            break
        placed = models.extract(model, cast(OasisInstance, instance), formulation)
        impossible = False
        if placed is None:
            leaves = leaves or Leaves(model, options)
            promised = promised_ends(model)
            leaf = leaves.decide(promised, _share(left(), SHARE_OF_PLACING))
            placed = leaves.solution() if leaf.has_point else None
            impossible = leaf.status == Status.INFEASIBLE
        if placed is not None and placed.is_feasible():
            best = better(best, placed) or best
        if leaves is None or not impossible or program.status != Status.OPTIMAL or out_of_time():
            break
        add_cut(model, leaves.conflict(promised, out_of_time))
        cuts += 1
    bound = min(bounds, default=None)
    details: dict[str, Any] = {
        **program.details,
        "conflict_cuts": cuts,
        "leaves": 0 if leaves is None else leaves.count,
    }
    result = Result(
        instance=instance,
        formulation=formulation,
        method="milp",
        status=Status.FEASIBLE,
        stopped_by=program.stopped_by,
        solution=best,
        bound=bound,
        backend=program.backend,
        options=options.to_dict(),
        details=details,
    )
    closed = within_gap(best.objective(), bound, options.gap)
    if not closed and twins and program.stopped_by != StoppedBy.INTERRUPTED:
        result = _printed(result, options.with_time(left()), on_progress)
        closed = within_gap(result.objective, result.bound, options.gap)
    return replace(
        result,
        status=Status.OPTIMAL if closed else Status.FEASIBLE,
        stopped_by=StoppedBy.GAP if closed else result.stopped_by,
        seconds=time.perf_counter() - started,
        options=options.to_dict(),
    )


def _printed(first: Result, options: SolveOptions, on_progress: Progress | None) -> Result:
    """Go on with the printed program; the better solution and the smaller bound stand."""
    second = solve_milp(
        first.instance,
        first.formulation,
        options,
        on_progress,
        incumbent=first.solution,
        form="printed",
    )
    bounds = [bound for bound in (first.bound, second.bound) if bound is not None]
    return replace(
        second,
        solution=better(second.solution, first.solution),
        bound=min(bounds, default=None),
        details={**second.details, "aggregated": {**first.details, "bound": first.bound}},
    )


def _share(seconds: float | None, share: float) -> float | None:
    return None if seconds is None else share * seconds


def auto(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
) -> Result:
    """Bound and search in turns; small instances by `milp` from the search's solution."""
    return solve_auto(instance, formulation, options, on_progress, program=milp)


def insert_by_density(instance: Instance, formulation: str | None = None) -> Solution:
    """Insert jobs at their earliest completion, most utility a unit of scarce resource first."""
    instance = cast(OasisInstance, instance)
    oracle = OasisOracle(instance, formulation, "servers")
    residual = oracle.rows.capacity.copy()
    prices = np.zeros(oracle.rows.size)
    total = np.maximum(instance.worker_capacity.sum(axis=0), 1e-300)
    size = (instance.worker_demand / total).max(axis=1, initial=0.0) * instance.work
    best = [
        job.utility.value(int(shortest) - 1)
        for job, shortest in zip(instance.jobs, instance.min_duration, strict=True)
    ]
    order = sorted(range(len(best)), key=lambda i: -best[i] / max(size[i], 1e-300))
    rows: dict[str, list[Assignment]] = {}
    for block in order:
        response = oracle.best_response(block, prices, residual, above=0.0)
        if response is not None:
            residual[response.rows] -= response.amounts
            rows[oracle.block_name(block)] = oracle.assignments(block, response)
    return OasisSolution.from_assignments(instance, rows, formulation)


def _has_twins(instance: Instance) -> bool:
    """Whether any servers are identical, so that the aggregated program is another program."""
    instance = cast(OasisInstance, instance)
    return any(
        len({row.tobytes() for row in capacity}) < capacity.shape[0]
        for capacity in (instance.worker_capacity, instance.ps_capacity)
    )


METHODS: dict[str, Method] = {
    **generic_methods(insert_by_density),
    "auto": auto,
    "milp": milp,
}
