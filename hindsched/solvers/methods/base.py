"""Methods that every family with blocks and linking rows has: milp, relaxation, bound, auto.

A method takes an instance, a formulation, options and a listener, and returns a `Result` that
`solvers.api.solve` checks before anybody sees it. The method says why it has no solution, if it has
none; the door says what a solution is worth, and sets time and options. A family starts from
`generic_methods` and replaces or adds what differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.modes import PREEMPTIVE
from hindsched.models.base import aggregated, offline_program
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solution_at, solve_program
from hindsched.solvers.door.result import Result, keep, status_of
from hindsched.solvers.door.status import ProgramResult, Progress, Status, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.oracles.base import build_oracle

if TYPE_CHECKING:
    from hindsched.solvers.bounds.lagrangian import BoundResult

Method = Callable[[Instance, str, SolveOptions, Progress | None], Result]
"""``method(instance, formulation, options, on_progress) -> Result``."""
FindIncumbent = Callable[[Instance, str], Solution | None]
"""A cheap feasible solution to begin from, or None."""


def serve_nobody(instance: Instance, formulation: str) -> Solution | None:
    """The solution without any assignment, if it is feasible."""
    nothing = build_solution(instance, {}, formulation)
    return nothing if nothing.is_feasible() else None


def certain(instance: Instance, formulation: str, method: str) -> Result:
    """What is known of every instance at once: that nobody may be served, and a bound.

    Parameters
    ----------
    instance, formulation, method
        As in the result.
    """
    solution = serve_nobody(instance, formulation) if instance.sense == "max" else None
    return Result(
        instance=instance,
        formulation=formulation,
        method=method,
        status=status_of(solution),
        stopped_by=StoppedBy.TIME_LIMIT,
        solution=solution,
        bound=instance.certain_bound(),
        backend="answered without a solver",
    )


def bound(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Certified bound by prices on the linking rows (subgradient method); no solution."""
    from hindsched.solvers.bounds.lagrangian import subgradient_bound

    return _bound_by("bound", "subgradient", subgradient_bound, instance, formulation, options,
                     on_progress)  # fmt: skip


def preemptive(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Certified bound for whoever may pause, move and resize jobs as well; no solution.

    The blocks without contiguity, by the layout ``preemptive``; it bounds the problem itself too.
    """
    from hindsched.solvers.bounds.lagrangian import subgradient_bound

    return _bound_by("preemptive", "subgradient", subgradient_bound, instance, formulation, options,
                     on_progress, PREEMPTIVE)  # fmt: skip


def column_generation(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Certified bound by stabilised column generation over the jobs' schedules; no solution."""
    from hindsched.solvers.bounds.column_generation import column_generation_bound

    return _bound_by("column-generation", "column generation, highs", column_generation_bound,
                     instance, formulation, options, on_progress)  # fmt: skip


def _bound_by(
    method: str,
    backend: str,
    engine: Callable[..., BoundResult],
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None,
    rows: str | None = None,
) -> Result:
    from hindsched.solvers.bounds.distributed import divided

    oracle = divided(build_oracle(instance, formulation, rows=rows))
    if math.isinf(oracle.bound(np.zeros(oracle.rows.size))):
        return infeasible(instance, formulation, method)
    found = engine(oracle, options, on_progress=on_progress)
    return Result(
        instance=instance,
        formulation=formulation,
        method=method,
        status=Status.NO_SOLUTION,
        stopped_by=found.stopped_by,
        bound=found.bound,
        certificate=found.certificate,
        backend=backend,
        details={**found.details, "iterations": found.iterations},
    )


def solve_milp(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    method: str = "milp",
    **build: object,
) -> Result:
    """Solve the offline program from an incumbent; keep the better of the two solutions.

    An aggregated optimum that cannot be placed on real servers is a bound and no solution; the
    result says so in ``details["unplaced"]``.

    Parameters
    ----------
    instance, formulation, options, on_progress
        As for every method; building counts towards the time limit.
    incumbent : Solution, optional
        Feasible solution to begin from.
    method : str
        Name of the method in the result.
    **build
        Further settings of the family's ``build_offline``.
    """
    started = now()
    keep_solution(incumbent, method)
    declared = offline_program(instance, formulation, incumbent=incumbent, **build)
    if incumbent is not None:
        declared.load(incumbent)
    left = _time_left(options, started)
    program = solve_program(
        declared.model,
        options.with_time(left),
        start=incumbent is not None,
        on_progress=on_progress,
    )
    solution, details = solution_at(declared, program)
    solution = better(solution, incumbent)
    return Result(
        instance=instance,
        formulation=formulation,
        method=method,
        status=status_of(solution, _status_without_solution(program)),
        stopped_by=program.stopped_by,
        solution=solution,
        bound=program.bound,
        backend=program.backend,
        details=details,
    )


def relaxation(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Linear relaxation of the offline program: the fractional solution, its duals, their bound.

    The duals as prices prove a bound by best responses, often a better one than the relaxation's
    own value (``details["linear_bound"]``); the better of the two is the result's.
    """
    from hindsched.solvers.model import solve_declared

    started = now()
    small = aggregated(instance.family)
    declared = offline_program(instance, formulation, relax=True, **small)
    left = _time_left(options, started)
    found = solve_declared(declared, options.with_time(left), on_progress=on_progress)
    program = found.program
    certificate = None if program.duals is None else found.certificate()
    bound = program.bound
    if certificate is not None:
        sides = [certificate.bound] if bound is None else [certificate.bound, bound]
        bound = min(sides) if instance.sense == "max" else max(sides)
    return Result(
        instance=instance,
        formulation=formulation,
        method="relaxation",
        status=_status_without_solution(program),
        stopped_by=program.stopped_by,
        bound=bound,
        certificate=certificate,
        seconds=now() - started,
        backend=program.backend,
        options=options.to_dict(),
        details={**program.details, "linear_bound": program.bound},
        relaxation=found,
    )


def keep_solution(solution: Solution | None, method: str) -> None:
    """Keep a solution, if there is one, in case that the method is stopped while it goes on."""
    if solution is not None:
        keep(
            Result(
                instance=solution.instance,
                formulation=solution.formulation,
                method=method,
                status=Status.FEASIBLE,
                stopped_by=StoppedBy.TIME_LIMIT,
                solution=solution,
            )
        )


def keep_bound(instance: Instance, certificate: Certificate, backend: str, method: str) -> None:
    """Keep what prices prove, before something that a limit may stop in the middle."""
    keep(
        Result(
            instance=instance,
            formulation=certificate.formulation,
            method=method,
            status=Status.NO_SOLUTION,
            stopped_by=StoppedBy.TIME_LIMIT,
            bound=certificate.bound,
            certificate=certificate,
            backend=backend,
        )
    )


def better(one: Solution | None, other: Solution | None) -> Solution | None:
    """The solution with the better objective; the first if they are equal."""
    if one is None or other is None:
        return other if one is None else one
    sign = 1.0 if one.instance.sense == "max" else -1.0
    return other if sign * other.objective() > sign * one.objective() else one


def closer(sense: str, one: float | None, other: float | None) -> float | None:
    """The bound nearer to the optimum, of two that may be absent."""
    pick = min if sense == "max" else max
    return pick((bound for bound in (one, other) if bound is not None), default=None)


def joined(known: Result, found: Result) -> Result:
    """What two results of one problem say together.

    Better solution, closer bound and better certificate stand; why it stopped is the later's.
    """
    solution = better(found.solution, known.solution)
    certificate = known.certificate
    if found.certificate is not None and found.certificate.is_better_than(certificate):
        certificate = found.certificate
    return replace(
        known,
        status=status_of(solution, found.status),
        stopped_by=found.stopped_by,
        solution=solution,
        bound=closer(known.instance.sense, known.bound, found.bound),
        certificate=certificate,
        backend=f"{known.backend}, {found.backend}",
    )


def infeasible(instance: Instance, formulation: str, method: str) -> Result:
    """Result for an instance in which a job that must be served has no schedule at all."""
    return Result(
        instance=instance,
        formulation=formulation,
        method=method,
        status=Status.INFEASIBLE,
        stopped_by=StoppedBy.INFEASIBLE,
        backend="pricing oracle",
        details={"why": "a job that must be served has no schedule"},
    )


def _status_without_solution(program: ProgramResult) -> Status:
    kept = (Status.INFEASIBLE, Status.UNBOUNDED, Status.FAILED)
    return program.status if program.status in kept else Status.NO_SOLUTION


def _time_left(options: SolveOptions, started: float) -> float | None:
    if options.time_limit is None:
        return None
    return max(0.0, options.time_limit - (now() - started))
