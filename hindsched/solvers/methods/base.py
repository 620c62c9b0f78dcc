"""What all methods share: a solve under way, the offline program, bounds by prices.

A method takes an instance, a formulation, options and a listener, and returns a `Result` that
`door.api.solve` checks before anybody sees it. The method says why it has no solution, if it has
none; the door says what a solution is worth, and sets time and options.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.models.base import family_models, offline_program
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solution_at, solve_program, within_gap
from hindsched.solvers.door.result import (
    ProgramResult,
    Progress,
    Reports,
    Result,
    Status,
    StoppedBy,
    status_of,
)
from hindsched.solvers.door.work import Clock, NotBuilt, stopping_at_once
from hindsched.solvers.oracles.base import PricingOracle

DEFAULT_SECONDS = 60.0  # time limit of anytime methods when the options give none
FindIncumbent = Callable[[Instance, str], Solution | None]
"""A cheap feasible solution to begin from, or None."""
FirstPrices = Callable[[Instance, str, SolveOptions], tuple[PricingOracle, Floats | None]]
"""The oracle whose prices are searched, and those to begin from, or None."""


class Run:
    """A solve under way: what is known, what is left of the time, and whom to tell.

    The clock ends with the time limit, or after `DEFAULT_SECONDS`, and with the event `stop`.
    """

    def __init__(
        self, instance: Instance, formulation: str, options: SolveOptions,
        on_progress: Progress | None, stop: Event, method: str,
    ) -> None:  # fmt: skip
        self.options, self.on_progress = options, on_progress
        limit = options.time_limit
        self.clock = Clock(DEFAULT_SECONDS if limit is None else limit, stop)
        self.known = Result(instance, formulation, method, Status.NO_SOLUTION, StoppedBy.TIME_LIMIT)
        self.offer(options.start)

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known."""
        return self.known.objective

    @property
    def is_closed(self) -> bool:
        """Whether solution and bound meet."""
        return within_gap(self.objective, self.known.bound, self.options.gap)

    def take(self, result: Result) -> None:
        """Join what is known with what a step found."""
        self.known = joined(self.known, result)
        self.tell_certain()

    def offer(self, solution: Solution | None) -> None:
        """Take a feasible solution if it is the best so far."""
        best = better(self.known.solution, solution)
        if best is not self.known.solution:
            self.known = replace(self.known, solution=best, status=Status.FEASIBLE)
            self.tell_certain()

    def prove(self, certificate: Certificate) -> None:
        """Take a certificate if it is the best so far."""
        if certificate.is_better_than(self.known.certificate):
            bound = closer(certificate.sense, self.known.bound, certificate.bound)
            self.known = replace(self.known, certificate=certificate, bound=bound)
            self.tell_certain()

    def tell(self, message: str) -> None:
        """Report what is known."""
        if self.on_progress is not None:
            self.on_progress(self.known.bound, self.objective, self.clock.gone, message)

    def tell_certain(self) -> None:
        """Hand on what is checked and proven."""
        if isinstance(self.on_progress, Reports):
            self.on_progress.tell(self.known)

    def solve_program(self, program: Callable[..., Result] | None = None) -> None:
        """Solve the offline program from the best solution, in the time that is left."""
        threads = self.options.threads
        options = self.options.with_time(self.clock.seconds_left)
        if threads is not None and threads > 1:  # the others work beside
            options = replace(options, threads=threads - 1)
        known, solve = self.known, program or solve_milp
        try:
            solved = solve(
                known.instance, known.formulation, options, self.on_progress,
                incumbent=known.solution,
            )  # fmt: skip
        except (SolveFailed, MemoryError) as error:
            why = str(error) or "too little memory"
            details = {**known.details, "program_failed": why}
            self.known = replace(known, details=details)
            return
        details = {f"program_{key}": value for key, value in solved.details.items()}
        self.take(replace(solved, details=details))
        self.known = replace(self.known, method=f"{known.method}+milp")

    def result(self, backend: str | None = None, **details: object) -> Result:
        """What is known, and why it ends here."""
        if self.is_closed:
            stopped_by = StoppedBy.GAP
        elif self.clock.stop.is_set():
            stopped_by = StoppedBy.INTERRUPTED
        else:
            stopped_by = StoppedBy.TIME_LIMIT if self.clock.is_over else StoppedBy.CONVERGED
        known, details = self.known, {**self.known.details, **details}
        return replace(
            known, stopped_by=stopped_by, backend=backend or known.backend, details=details
        )


def serve_nobody(instance: Instance, formulation: str) -> Solution | None:
    """The solution without any assignment, if it is feasible."""
    solution = build_solution(instance, {}, formulation)
    return solution if solution.is_feasible() else None


def certain(instance: Instance, formulation: str, method: str) -> Result:
    """What is known of every instance at once: that nobody may be served, and a bound."""
    solution = serve_nobody(instance, formulation) if instance.sense == "max" else None
    return Result(
        instance, formulation, method, status_of(solution), StoppedBy.TIME_LIMIT, solution,
        instance.certain_bound(), backend="answered without a solver",
    )  # fmt: skip


def without_prices(instance: Instance, formulation: str, _: SolveOptions) -> tuple[Any, None]:
    """The family's oracle, whose search for prices begins from none."""
    return build_oracle(instance, formulation), None


def bound_by_prices(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None,
    *, first_prices: FirstPrices = without_prices,
) -> Result:  # fmt: skip
    """Certified bound by prices on the linking rows; no solution."""
    clock = Clock(math.inf)
    oracle, start = first_prices(instance, formulation, options)
    if math.isinf(oracle.bound(np.zeros(oracle.rows.size))):
        return infeasible(instance, formulation, "bound")
    within = options.without(clock.gone)
    found = subgradient_bound(oracle, within, start_prices=start, on_progress=on_progress)
    return Result(
        instance, formulation, "bound", Status.NO_SOLUTION, found.stopped_by,
        bound=found.bound, certificate=found.certificate, backend="subgradient",
        details={"iterations": found.iterations},
    )  # fmt: skip


def solve_milp(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, *, incumbent: Solution | None = None, method: str = "milp",
    **build: Any,
) -> Result:  # fmt: skip
    """Solve the offline program from an incumbent; keep the better of the two solutions.

    Building counts towards the time limit; `build` are settings of the family's ``build_offline``.
    An aggregated optimum that cannot be placed on real servers is a bound and no solution; the
    result says so in ``details["unplaced"]``.
    """
    clock = Clock(math.inf)
    try:
        with stopping_at_once():
            declared = offline_program(instance, formulation, incumbent=incumbent, **build)
    except NotBuilt as error:
        return Result(
            instance, formulation, method, status_of(incumbent), StoppedBy.INTERRUPTED, incumbent,
            details={"program": str(error)},
        )  # fmt: skip
    if incumbent is not None:
        declared.load(incumbent)
    within, start = options.without(clock.gone), incumbent is not None
    program = solve_program(declared.model, within, start=start, on_progress=on_progress)
    solution, details = solution_at(declared, program)
    solution = better(solution, incumbent)
    status = status_of(solution, _status_without_solution(program))
    return Result(
        instance, formulation, method, status, program.stopped_by, solution, program.bound,
        backend=program.backend, details=details,
    )  # fmt: skip


def relaxation(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Linear relaxation of the offline program: the fractional solution, its duals, their bound.

    The duals as prices prove a bound by best responses, often a better one than the relaxation's
    own value (``details["linear_bound"]``); the better of the two is the result's.
    """
    from hindsched.solvers.model import solve_declared

    clock = Clock(math.inf)
    declared = offline_program(
        instance, formulation, relax=True, **family_models(instance.family).aggregated
    )
    result = solve_declared(declared, options.without(clock.gone), on_progress=on_progress)
    program = result.program
    certificate = None if program.duals is None else result.certificate()
    proven = None if certificate is None else certificate.bound
    status = _status_without_solution(program)
    return Result(
        instance, formulation, "relaxation", status, program.stopped_by,
        bound=closer(instance.sense, proven, program.bound), certificate=certificate,
        backend=program.backend, details={**program.details, "linear_bound": program.bound},
        relaxation=result,
    )  # fmt: skip


def better(first: Solution | None, other: Solution | None) -> Solution | None:
    """The solution with the better objective; the first if they are equal."""
    if first is None or other is None:
        return other if first is None else first
    sign = 1.0 if first.instance.sense == "max" else -1.0
    return other if sign * other.objective() > sign * first.objective() else first


def closer(sense: str, first: float | None, other: float | None) -> float | None:
    """The bound nearer to the optimum, of two that may be absent."""
    pick = min if sense == "max" else max
    return pick((bound for bound in (first, other) if bound is not None), default=None)


def joined(known: Result, other: Result) -> Result:
    """What two results of one problem say together.

    Better solution, closer bound and better certificate stand; why it stopped is the later's.
    """
    solution = better(other.solution, known.solution)
    certificate = known.certificate
    if other.certificate is not None and other.certificate.is_better_than(certificate):
        certificate = other.certificate
    backends = dict.fromkeys(each.backend for each in (known, other) if each.backend)
    status = known.status if known.status is Status.INFEASIBLE else other.status
    return replace(
        known, status=status_of(solution, status), stopped_by=other.stopped_by,
        solution=solution, bound=closer(known.instance.sense, known.bound, other.bound),
        certificate=certificate, backend=", ".join(backends),
        details={**known.details, **other.details},
    )  # fmt: skip


def infeasible(instance: Instance, formulation: str, method: str) -> Result:
    """Result for an instance in which a job that must be served has no schedule at all."""
    return Result(
        instance, formulation, method, Status.INFEASIBLE, StoppedBy.INFEASIBLE,
        backend="pricing oracle", details={"why": "a job that must be served has no schedule"},
    )  # fmt: skip


def _status_without_solution(program: ProgramResult) -> Status:
    kept = (Status.INFEASIBLE, Status.UNBOUNDED, Status.FAILED)
    return program.status if program.status in kept else Status.NO_SOLUTION
