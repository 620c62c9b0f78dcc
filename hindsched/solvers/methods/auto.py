"""``--method auto``: a certified bound and a checked solution for any size of instance.

The route, which the result names:

- ``prices+search``: the subgradient method and the neighbourhood search in turns. The bound's
  prices guide the search, the search's objective sets the bound's step. Both are anytime, so the
  answer is always an interval.
- ``prices+search+milp``: small instances spend most of the time on the offline program, begun from
  the search's solution; the better of the two bounds counts, and the certificate stays.

Without a time limit the method stops after `DEFAULT_SECONDS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution
from hindsched.solvers.answer import Progress
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificate import Certificate, certify
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.methods.base import better, serve_nobody, solve_milp
from hindsched.solvers.neighbourhood_search import NeighbourhoodSearch
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle, build_oracle, row_layouts
from hindsched.solvers.program import within_gap
from hindsched.solvers.result import Result
from hindsched.solvers.status import Status, StoppedBy

DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
SMALL_SIZE = 50_000
"""Jobs x linking rows up to which the offline program is solved."""
SHARE_BEFORE_PROGRAM, MOST_BEFORE_PROGRAM = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the program."""
ROUNDS = 15
"""Turns that bound and search take when there is no program."""
SLOW_BOUND = 2e-4
"""Relative gain of the bound in a turn below which the search gets most of the time."""


def solve_auto(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    program: Callable[..., Result] = solve_milp,
) -> Result:
    """Solve or bound an instance by the route that its size suggests.

    Parameters
    ----------
    instance, formulation, options, on_progress
        As for every method.
    incumbent : Solution, optional
        A feasible solution that the family knows, to begin from.
    program : callable
        How the family solves its offline program from an incumbent: called like `solve_milp`.

    Returns
    -------
    Result
        Its ``method`` is the route, ``details["why"]`` says why; ``details["certified_bound"]`` is
        the bound that the certificate proves, where the solver's own bound is better.
    """
    begin = time.perf_counter()
    oracle = build_oracle(instance, formulation)
    size = oracle.num_blocks * oracle.rows.size
    small = size <= SMALL_SIZE
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    with catch_interrupt() as interrupted:
        duel = Duel(oracle, options, limit, begin, interrupted, on_progress, incumbent)
        if duel.bounding.is_infeasible:
            return infeasible(instance, formulation, options, begin)
        before = min(MOST_BEFORE_PROGRAM, SHARE_BEFORE_PROGRAM * limit)
        duel.run(before if small else limit)
        result = duel.result()
        if not small or result.stopped_by in (StoppedBy.GAP, StoppedBy.INTERRUPTED):
            return _explain_route(result, size, small)
        left = max(0.0, limit - (time.perf_counter() - begin))
        options = options.with_time(left)
        return _explain_route(_with_program(result, options, on_progress, program), size, small)


class Duel:
    """Bound and search in turns, each helping the other.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle in the family's default layout.
    options : SolveOptions
        Gap and seed are used.
    limit : float
        Seconds that the whole method may take, from which the length of a turn follows.
    begin : float
        When the method began, by ``time.perf_counter``.
    interrupted : Event
        Set by Ctrl-C.
    on_progress : callable, optional
        Listener.
    incumbent : Solution, optional
        A feasible solution to begin from.
    """

    def __init__(
        self,
        oracle: BlockOracle,
        options: SolveOptions,
        limit: float,
        begin: float,
        interrupted: Event,
        on_progress: Progress | None,
        incumbent: Solution | None,
    ) -> None:
        self.oracle, self.options, self.limit, self.begin = oracle, options, limit, begin
        self._interrupted, self._on_progress = interrupted, on_progress
        self._incumbent = better(serve_nobody(oracle.instance, oracle.formulation), incumbent)
        self.bounding = Subgradient(oracle)
        self.search: NeighbourhoodSearch | None = None
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._last_report = -1.0

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known."""
        found = None if self.search is None else self.search.objective
        return self._incumbent_objective if found is None else found

    def run(self, seconds: float) -> None:
        """Take turns for `seconds`, until a closed gap or an interrupt.

        Building the oracles and the first solution (and compiling their kernels in a fresh
        process) does not count, but the method's limit always holds.
        """
        last = self.begin + self.limit
        deadline = min(last, time.perf_counter() + seconds)
        self._incumbent_objective = None if self._incumbent is None else self._incumbent.objective()
        turn = (deadline - time.perf_counter()) / ROUNDS
        self._bound_until(min(deadline, time.perf_counter() + turn))
        self._start_search(last)
        deadline = min(last, time.perf_counter() + seconds)
        share = 0.5
        while not self._stop(deadline) and not (self.search is None and self.bounding.converged):
            before = self.bounding.best.bound
            if not self.bounding.converged:
                self._bound_until(min(deadline, time.perf_counter() + 2 * share * turn))
                gain = abs(self.bounding.best.bound - before) / max(abs(before), 1e-12)
                share = 0.5 if gain > SLOW_BOUND else 0.1
            else:
                share = 0.0
            if self.search is None:
                continue
            if self.bounding.best.bound != before:
                self.search.set_prices(self.oracle.prices_on_servers(self.bounding.best.prices))
            self._search_until(min(deadline, time.perf_counter() + 2 * (1 - share) * turn))
            if not self.search.is_complete:
                self.search.construct(lambda: self._stop(deadline))
                if not self.search.is_complete and self.bounding.converged:
                    break
        self._report(force=True)

    def result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        certificate = certify(self.oracle, self.bounding.best.prices)
        solution = None if self.search is None else self.search.solution()
        solution = better(solution, self._incumbent)
        neighbourhoods = 0 if self.search is None else self.search.iterations
        return Result(
            instance=self.oracle.instance,
            formulation=self.oracle.formulation,
            method="prices+search",
            status=Status.NO_SOLUTION if solution is None else Status.FEASIBLE,
            stopped_by=self.stopped_by,
            solution=solution,
            bound=certificate.bound,
            certificate=certificate,
            seconds=time.perf_counter() - self.begin,
            backend="subgradient, neighbourhood search",
            options=self.options.to_dict(),
            details={
                "bound_iterations": self.bounding.iterations,
                "neighbourhoods": neighbourhoods,
                "seconds_limit": self.limit,
            },
        )

    def _start_search(self, last: float) -> None:
        """Build the primal search and its first solutions, where the family can place jobs."""
        family = self.oracle.instance.family
        if "servers" not in row_layouts(family):
            return
        servers = build_oracle(self.oracle.instance, self.oracle.formulation, rows="servers")
        prices = self.oracle.prices_on_servers(self.bounding.best.prices)
        search = NeighbourhoodSearch(servers, prices, seed=self.options.seed)
        search.construct(lambda: self._stop(last))
        served = None if search.objective is None else search.solution()
        given = self._incumbent
        if given is not None and better(served, given) is given and given.assignments():
            search = NeighbourhoodSearch(servers, prices, seed=self.options.seed, start=given)
        self.search = search

    def _bound_until(self, deadline: float) -> None:
        while not self._stop(deadline) and not self.bounding.converged:
            self.bounding.step(self.objective)
            self._report()

    def _search_until(self, deadline: float) -> None:
        assert self.search is not None
        self.search.improve(lambda: self._stop(deadline))

    def _stop(self, deadline: float) -> bool:
        """Whether to end the turn; an interrupt or a closed gap end the method."""
        self._report()
        if self._interrupted.is_set():
            self.stopped_by = StoppedBy.INTERRUPTED
        elif within_gap(self.objective, self.bounding.best.bound, self.options.gap):
            self.stopped_by = StoppedBy.GAP
        else:
            return time.perf_counter() >= deadline
        return True

    def _report(self, *, force: bool = False) -> None:
        if self._on_progress is None:
            return
        seconds = time.perf_counter() - self.begin
        if force or seconds - self._last_report >= 0.2:
            self._last_report = seconds
            tried = 0 if self.search is None else self.search.iterations
            text = f"{self.bounding.iterations} bounds, {tried} neighbourhoods"
            self._on_progress(self.bounding.best.bound, self.objective, seconds, text)


def _with_program(
    known: Result,
    options: SolveOptions,
    on_progress: Progress | None,
    program: Callable[..., Result],
) -> Result:
    """Solve the offline program from what is known and keep the better of everything."""
    begin = time.perf_counter()
    assert known.certificate is not None
    report = None if on_progress is None else _shifted(on_progress, known)
    details = dict(known.details)
    try:
        solved = program(
            known.instance, known.formulation, options, report, incumbent=known.solution
        )
    except SolveFailed as error:
        return replace(known, details={**details, "program_failed": str(error)})
    details |= {f"program_{key}": value for key, value in solved.details.items()}
    details["certified_bound"] = known.bound
    bound = _closer(known.certificate, solved.bound)
    solution = better(solved.solution, known.solution)
    closed = solution is not None and within_gap(solution.objective(), bound, options.gap)
    return replace(
        known,
        method="prices+search+milp",
        status=_status(solved, solution, closed),
        stopped_by=StoppedBy.GAP if closed else solved.stopped_by,
        solution=solution,
        bound=bound,
        seconds=known.seconds + time.perf_counter() - begin,
        backend=f"{known.backend}, {solved.backend}",
        details=details,
    )


def _status(solved: Result, solution: Solution | None, closed: bool) -> Status:
    if solution is None:
        return solved.status
    return Status.OPTIMAL if closed else Status.FEASIBLE


def _closer(certificate: Certificate, bound: float | None) -> float:
    """The bound nearer to the optimum; a program's bound may be absent."""
    if bound is None:
        return certificate.bound
    pick = min if certificate.sense == "max" else max
    return pick(certificate.bound, bound)


def _shifted(on_progress: Progress, known: Result) -> Callable[..., None]:
    """Listener of the program that knows what was known before it began."""
    certificate, objective = known.certificate, known.objective
    assert certificate is not None

    def report(bound: float | None, found: float | None, seconds: float, text: str) -> None:
        best = objective if found is None else found
        on_progress(_closer(certificate, bound), best, known.seconds + seconds, text)

    return report


def _explain_route(result: Result, size: int, small: bool) -> Result:
    relation = "at most" if small else "above"
    why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
    return replace(result, details={**result.details, "why": why})


def infeasible(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    begin: float,
    method: str = "prices+search",
) -> Result:
    """Result for an instance in which a job that must be served has no schedule at all."""
    return Result(
        instance=instance,
        formulation=formulation,
        method=method,
        status=Status.INFEASIBLE,
        stopped_by=StoppedBy.INFEASIBLE,
        seconds=time.perf_counter() - begin,
        backend="pricing oracle",
        options=options.to_dict(),
        details={"why": "a job that must be served has no schedule"},
    )
