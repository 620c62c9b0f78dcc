"""Methods of the oasis family: the generic ones, with a program of ends and conflict cuts.

Who is admitted and when each job ends is decided by a program whose other variables are fractional
but lie in the hull of what servers can hold (`models.oasis.ends`). Whether its promises can be kept
is decided on the servers as they are; what cannot be kept is cut off (`conflicts.py`). If promises
stay undecided, the printed program takes over with what is left of the time; the smaller bound
stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_ends
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program, within_gap
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.promises import Promises, find_patterns
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.methods.base import Method, better, closer, joined, keep_solution, solve_milp
from hindsched.solvers.methods.generic import generic_methods

SHARE_OF_ENDS = 0.7
"""Share of the time left that the program of the ends may use before its promises are tried."""
SHARE_OF_PROMISES = 0.6
"""Share of the time left that deciding its promises may use."""
LEAST_SHRINKING = 0.5
"""Seconds for making conflicts smaller, if the program of the ends and its promises took less."""


def milp(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
) -> Result:
    """Solve the program of the ends, cutting off what cannot be kept until its best can be."""
    started = now()
    instance = cast(OasisInstance, instance)

    def left(share: float = 1.0) -> float | None:
        limit = options.time_limit
        return None if limit is None else share * max(0.0, limit - (now() - started))

    best = incumbent or insert_by_density(instance, formulation)
    ends, promises = build_ends(instance, find_patterns), Promises(instance, options)
    bound: float | None = None
    cuts = 0
    while True:
        ends.load(cast(OasisSolution, best))
        program = solve_program(
            ends.model,
            _without_restarts(options.with_time(left(SHARE_OF_ENDS))),
            start=True,
            on_progress=_of_schedules(on_progress, best),
        )
        bound = closer("max", bound, program.bound)
        if not program.has_point or within_gap(best.objective(), bound, options.gap):
            break
        promised = ends.promised()
        decided = promises.decide(promised, left(SHARE_OF_PROMISES))
        interrupted = StoppedBy.INTERRUPTED in (program.stopped_by, decided.stopped_by)
        if decided.status == Status.INFEASIBLE and not interrupted and left() != 0.0:
            until = now() + max(LEAST_SHRINKING, program.seconds + decided.seconds)

            def late(until: float = until) -> bool:
                return left() == 0.0 or now() > until

            for conflict in promises.conflicts(promised, ends.last(), late):
                ends.forbid(conflict)
                cuts += 1
        found = better(best, promises.best)
        assert found is not None
        if found is not best:
            keep_solution(found, "milp")
        best = found
        if decided.status != Status.INFEASIBLE or interrupted or left() == 0.0:
            break
    closed = within_gap(best.objective(), bound, options.gap)
    ended = closed or program.stopped_by != StoppedBy.GAP  # the program's gap is not the problem's
    result = Result(
        instance=instance,
        formulation=formulation,
        method="milp",
        status=Status.FEASIBLE,
        stopped_by=program.stopped_by if ended else StoppedBy.TIME_LIMIT,
        solution=best,
        bound=bound,
        backend=program.backend,
        details={**program.details, "conflict_cuts": cuts, "promises": promises.count},
    )
    if closed or program.stopped_by == StoppedBy.INTERRUPTED or left() == 0.0:
        return result
    return _printed(result, options.with_time(left()), on_progress)


def _without_restarts(options: SolveOptions) -> SolveOptions:
    """Options by which HiGHS stays at its root: beginning again costs it a fifth of the time."""
    if options.solver != "highs":
        return options
    return replace(options, solver_options={"mip_allow_restart": False, **options.solver_options})


def _of_schedules(on_progress: Progress | None, best: Solution) -> Progress | None:
    """A listener that hears of schedules only: the ends' points may fit on no real servers."""
    if on_progress is None:
        return None
    return lambda bound, _, seconds, text: on_progress(bound, best.objective(), seconds, text)


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
    details = {**second.details, "ends": {**first.details, "bound": first.bound}}
    return replace(joined(first, second), backend=second.backend, details=details)


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


METHODS: dict[str, Method] = {**generic_methods(program=milp), "milp": milp}
