"""Methods of the oasis family: the generic ones, with a program of ends and conflict cuts.

Who is admitted and when each job ends is decided by a program whose other variables are fractional
but lie in the hull of what servers can hold (`models.oasis.ends`). Whether its promises can be kept
is decided on the servers as they are; what cannot be kept is cut off (`promises.py`). If promises
stay undecided, the printed program takes over with what is left of the time; the smaller bound
stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hindsched.instances.base import Instance
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_ends
from hindsched.solutions.base import Solution, build_solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program, within_gap
from hindsched.solvers.door.result import Progress, Result, Status, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.promises import Promises, find_patterns
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import Method, better, closer, joined, keep_solution, solve_milp
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search import NeighbourhoodSearch

SHARE_OF_ENDS = 0.7
"""Share of the time left that the program of the ends may use before its promises are tried."""
SHARE_OF_PROMISES = 0.6
"""Share of the time left that deciding its promises may use."""
LEAST_SHRINKING = 0.5
"""Seconds for making conflicts smaller, if the program of the ends and its promises took less."""


def milp(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, *, incumbent: Solution | None = None,
) -> Result:  # fmt: skip
    """Solve the program of the ends, cutting off what cannot be kept until its best can be."""
    started = now()
    instance = cast(OasisInstance, instance)

    def left(share: float = 1.0) -> float | None:
        limit = options.time_limit
        return None if limit is None else share * max(0.0, limit - (now() - started))

    best = incumbent or _inserted(instance, formulation)
    ends, promises = build_ends(instance, find_patterns), Promises(instance, options)
    of_ends = options
    if options.solver == "highs":  # to begin again costs it a fifth of the time
        restarts = {"mip_allow_restart": False, **options.solver_options}
        of_ends = replace(options, solver_options=restarts)

    def report(bound: float | None, _: float | None, seconds: float, text: str) -> None:
        """Tell of schedules only: the ends' points may fit on no real servers."""
        if on_progress is not None:
            on_progress(bound, best.objective(), seconds, text)

    bound: float | None = None
    cuts = 0
    while True:
        ends.load(cast(OasisSolution, best))
        within = of_ends.with_time(left(SHARE_OF_ENDS))
        program = solve_program(ends.model, within, start=True, on_progress=report)
        bound = closer("max", bound, program.bound)
        if not program.has_point or within_gap(best.objective(), bound, options.gap):
            break
        promised = ends.promised()
        decided = promises.decide(promised, left(SHARE_OF_PROMISES))
        interrupted = StoppedBy.INTERRUPTED in (program.stopped_by, decided.stopped_by)
        cannot_be_kept = decided.status == Status.INFEASIBLE and not interrupted and left() != 0.0
        if cannot_be_kept:
            until = now() + max(LEAST_SHRINKING, program.seconds + decided.seconds)

            def late(until: float = until) -> bool:
                return left() == 0.0 or now() > until

            for conflict in promises.conflicts(promised, ends.last(), late):
                ends.forbid(conflict)
                cuts += 1
        found = better(best, promises.best)
        if found is not None and found is not best:
            best = found
            keep_solution(best, "milp")
        if not cannot_be_kept or left() == 0.0:
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
    printed = solve_milp(
        instance, formulation, options.with_time(left()), on_progress, incumbent=best,
        form="printed",
    )  # fmt: skip
    details = {**printed.details, "ends": {**result.details, "bound": bound}}
    return replace(joined(result, printed), backend=printed.backend, details=details)


def _inserted(instance: OasisInstance, formulation: str) -> Solution:
    """A schedule by insertion of one job after the other."""
    search = NeighbourhoodSearch(build_oracle(instance, formulation, rows="servers"))
    search.construct()
    return search.solution() or build_solution(instance, {}, formulation)


METHODS: dict[str, Method] = {**generic_methods(program=milp), "milp": milp}
