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
from hindsched.solvers.certificate import certify
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.kept import keep
from hindsched.solvers.methods.base import (
    better,
    closer,
    infeasible,
    joined,
    keep_solution,
    serve_nobody,
    solve_milp,
)
from hindsched.solvers.neighbourhood_search import NeighbourhoodSearch
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import build_oracle, row_layouts
from hindsched.solvers.program import within_gap
from hindsched.solvers.result import Result, status_of
from hindsched.solvers.status import StoppedBy

DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
SMALL_SIZE = 50_000
"""Jobs x linking rows up to which the offline program is solved."""
SHARE_BEFORE_PROGRAM, MOST_BEFORE_PROGRAM = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the program."""
ROUNDS = 15
"""Turns that bound and search take when there is no program."""
METHOD = "prices+search"
"""The route without a program."""
ENDED = (StoppedBy.GAP, StoppedBy.INTERRUPTED, StoppedBy.INFEASIBLE)
"""Why prices and search stop for good."""
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
    with catch_interrupt() as interrupted:
        duel = Duel(instance, formulation, options, interrupted, on_progress, incumbent)
        size = duel.oracle.num_blocks * duel.oracle.rows.size
        small = size <= SMALL_SIZE
        before = min(MOST_BEFORE_PROGRAM, SHARE_BEFORE_PROGRAM * duel.limit)
        result = keep(duel.run(before if small else duel.limit))
        if small and result.stopped_by not in ENDED:
            options = options.with_time(duel.seconds_left())
            result = _with_program(result, duel, options, program)
        relation = "at most" if small else "above"
        why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
        return replace(result, details={"why": why, **result.details})


class Duel:
    """Bound and search in turns, each helping the other.

    Parameters
    ----------
    instance, formulation, options
        As for every method; gap, seed and time limit are used.
    interrupted : Event
        Set by Ctrl-C.
    on_progress : callable, optional
        Listener.
    incumbent : Solution, optional
        A feasible solution to begin from.

    Attributes
    ----------
    oracle : BlockOracle
        Oracle in the family's default layout.
    limit : float
        Seconds that the whole method may take, from which the length of a turn follows.
    """

    def __init__(
        self,
        instance: Instance,
        formulation: str,
        options: SolveOptions,
        interrupted: Event,
        on_progress: Progress | None = None,
        incumbent: Solution | None = None,
    ) -> None:
        self.begin = time.perf_counter()
        keep_solution(incumbent, METHOD)
        self.limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
        self.oracle = build_oracle(instance, formulation)
        self.options, self.on_progress = options, on_progress
        self._interrupted = interrupted
        self._incumbent = better(serve_nobody(instance, formulation), incumbent)
        self._incumbent_objective = None if self._incumbent is None else self._incumbent.objective()
        self.bounding = Subgradient(self.oracle)
        self.search: NeighbourhoodSearch | None = None
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._last_report = -1.0

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known."""
        found = None if self.search is None else self.search.objective
        return self._incumbent_objective if found is None else found

    def seconds_left(self) -> float:
        """What is left of the method's limit."""
        return max(0.0, self.limit - (time.perf_counter() - self.begin))

    def run(self, seconds: float) -> Result:
        """Take turns for `seconds`, until a closed gap or an interrupt, and say what is known.

        Building the oracles and the first solution (and compiling their kernels in a fresh
        process) does not count, but the method's limit always holds.
        """
        if self.bounding.is_infeasible:
            return infeasible(self.oracle.instance, self.oracle.formulation, METHOD)
        last = self.begin + self.limit
        deadline = min(last, time.perf_counter() + seconds)
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
        return self._result()

    def _result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        certificate = certify(self.oracle, self.bounding.best.prices)
        solution = None if self.search is None else self.search.solution()
        solution = better(solution, self._incumbent)
        neighbourhoods = 0 if self.search is None else self.search.iterations
        return Result(
            instance=self.oracle.instance,
            formulation=self.oracle.formulation,
            method=METHOD,
            status=status_of(solution),
            stopped_by=self.stopped_by,
            solution=solution,
            bound=certificate.bound,
            certificate=certificate,
            backend="subgradient, neighbourhood search",
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
        if self.on_progress is None:
            return
        seconds = time.perf_counter() - self.begin
        if force or seconds - self._last_report >= 0.2:
            self._last_report = seconds
            tried = 0 if self.search is None else self.search.iterations
            text = f"{self.bounding.iterations} bounds, {tried} neighbourhoods"
            self.on_progress(self.bounding.best.bound, self.objective, seconds, text)


def _with_program(
    known: Result, duel: Duel, options: SolveOptions, program: Callable[..., Result]
) -> Result:
    """Solve the offline program from what is known and keep the better of everything."""
    details = dict(known.details)
    try:
        solved = program(
            known.instance,
            known.formulation,
            options,
            None if duel.on_progress is None else _shifted(duel.on_progress, known, duel.begin),
            incumbent=known.solution,
        )
    except SolveFailed as error:
        return replace(known, details={**details, "program_failed": str(error)})
    details |= {f"program_{key}": value for key, value in solved.details.items()}
    details["certified_bound"] = known.bound
    return replace(joined(known, solved), method=f"{METHOD}+milp", details=details)


def _shifted(on_progress: Progress, known: Result, begin: float) -> Progress:
    """Listener of the program that knows what was known before it began."""
    sense, objective, before = known.instance.sense, known.objective, time.perf_counter() - begin

    def report(bound: float | None, found: float | None, seconds: float, text: str) -> None:
        best = objective if found is None else found
        on_progress(closer(sense, known.bound, bound), best, before + seconds, text)

    return report
