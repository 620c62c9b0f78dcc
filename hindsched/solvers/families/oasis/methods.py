"""Methods of the oasis family: the generic ones, with a program of ends and conflict cuts.

Who is admitted and when each job ends is decided by a program whose other variables are fractional
but lie in the hull of what servers can hold (`models.oasis.ends`). Whether its promises can be kept
is a packing problem on the servers as they are (`build_packing`). If nothing fits, the promises E
of a set S of jobs give a cut that every solution satisfies,

    sum over jobs i of S, ends e <= E_i of u_ie <= |S| - 1,

and the program of the ends goes on with it. If promises stay undecided, the printed program takes
over with what is left of the time; the smaller bound stands.

What is open in a slot is a problem of its own (`rest_of`): the servers are empty, and a job has
``arrival' = max(arrival, slot)`` and the rest of its work before itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hindsched.instances.base import Instance, LinearUtility
from hindsched.instances.oasis.instance import OasisInstance, OasisJob, OasisUtility
from hindsched.models.base import Commitments
from hindsched.models.oasis.ends import Ends, build_ends, build_packing
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.base import Method, placing_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program, within_gap
from hindsched.solvers.door.result import ProgramResult, Progress, Result, Status, StoppedBy
from hindsched.solvers.door.work import (
    UNIT_SECONDS,
    catch_interrupt,
    count_work,
    counting,
    now,
    units_of,
)
from hindsched.solvers.families.oasis.packing import find_patterns
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import better, closer, joined, solve_milp
from hindsched.solvers.search import NeighbourhoodSearch

SHARE_OF_ENDS = 0.7
"""Share of the time left that the program of the ends may use before its promises are tried."""
SHARE_OF_PROMISES = 0.6
"""Share of the time left that deciding its promises may use."""


def schedule_within(
    instance: OasisInstance, ends: Ends, options: SolveOptions
) -> tuple[ProgramResult, OasisSolution | None]:
    """Look for a schedule of these jobs and no others, each finished by its end."""
    leaf = build_packing(instance, ends, find_patterns)
    result = solve_program(leaf.model, options)
    solution = leaf.extract() if result.has_point else None
    return result, solution if solution is not None and solution.is_feasible() else None


def solve_by_ends(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, *, incumbent: Solution | None = None,
) -> Result:  # fmt: skip
    """Solve the program of the ends, cutting off what cannot be kept until its best can be."""
    started = now()
    instance = cast(OasisInstance, instance)

    def left(share: float = 1.0) -> float | None:
        limit = options.time_limit
        return None if limit is None else share * max(0.0, limit - (now() - started))

    if incumbent is None:
        incumbent = options.start
    if incumbent is None:
        search = NeighbourhoodSearch(placing_oracle(instance, formulation))
        search.construct()
        incumbent = search.solution() or build_solution(instance, {}, formulation)
    best = incumbent
    ends, of_ends = build_ends(instance, find_patterns), options
    of_promises = SolveOptions(solver=options.solver, threads=options.threads, seed=options.seed)
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
        within = of_promises.with_time(left(SHARE_OF_PROMISES))
        decided, schedule = schedule_within(instance, promised, within)
        best = better(best, schedule) or best
        interrupted = StoppedBy.INTERRUPTED in (program.stopped_by, decided.stopped_by)
        cannot_be_kept = decided.status == Status.INFEASIBLE and not interrupted and left() != 0.0
        if cannot_be_kept:
            ends.forbid(promised)
            cuts += 1
        if not cannot_be_kept or left() == 0.0:
            break
    closed = within_gap(best.objective(), bound, options.gap)
    ended = closed or program.stopped_by != StoppedBy.GAP  # the program's gap is not the problem's
    stopped_by = program.stopped_by if ended else StoppedBy.TIME_LIMIT
    result = Result(
        instance, formulation, "milp", Status.FEASIBLE, stopped_by, best, bound,
        backend=program.backend,
        details={**program.details, "conflict_cuts": cuts},
    )  # fmt: skip
    if closed or program.stopped_by == StoppedBy.INTERRUPTED or left() == 0.0:
        return result
    printed = solve_milp(
        instance, formulation, options.with_time(left()), on_progress, incumbent=best,
        form="printed",
    )  # fmt: skip
    details = {**printed.details, "ends": {**result.details, "bound": bound}}
    return replace(joined(result, printed), backend=printed.backend, details=details)


def rest_of(instance: OasisInstance, commitments: Commitments) -> OasisInstance:
    """The instance of what is open from slot ``commitments.now`` on; slots count as before.

    Jobs that are done or rejected are left out; nobody is locked, as workers are given by slot.
    """
    assert not commitments.locked
    jobs = []
    for job in instance.jobs:
        left = instance.work_of(job)
        for row in commitments.assignments.get(job.name, ()):
            left -= (row["to"] - row["from"] + 1) * sum(row.get("workers", {}).values())
        if left > 0 and job.name not in commitments.rejected:
            jobs.append(_shorter(job, left, max(job.arrival, commitments.now)))
    return instance.with_jobs(tuple(jobs))


def _shorter(job: OasisJob, work: int, arrival: int) -> OasisJob:
    """The job with so many worker-slots to do, which it may begin at `arrival`."""
    later = arrival - job.arrival
    utility: OasisUtility = job.utility
    if isinstance(utility, LinearUtility):
        moved: object = utility.intercept + later * utility.slope
        utility = utility.model_copy(update={"intercept": moved})
    else:
        utility = utility.model_copy(update={"target": utility.target - later})
    facts = {
        "arrival": arrival, "utility": utility, "gradient_mb": 0, "epochs": 1, "minibatches": 1,
        "minibatch_slots": (work - 0.5) / job.chunks,  # work is rounded up
    }  # fmt: skip
    return job.model_copy(update=facts)


def rows_from(rows: list[Assignment], slot: int) -> list[Assignment]:
    """The part of a job's rows that lies in `slot` or later."""
    return [{**row, "from": max(slot, row["from"])} for row in rows if row["to"] >= slot]


def solve_rest(rest: OasisInstance, start: Solution, options: SolveOptions, work: int) -> Result:
    """The best plan from a start, within units of work: it does not depend on the machine."""
    with catch_interrupt(), counting():  # one event for all solves
        within = options.with_time(work * UNIT_SECONDS)
        result = solve_by_ends(rest, start.formulation, within, incumbent=start)
        done = units_of(now())
    count_work(done)
    return result


METHODS: dict[str, Method] = {**generic_methods(program=solve_by_ends), "milp": solve_by_ends}
