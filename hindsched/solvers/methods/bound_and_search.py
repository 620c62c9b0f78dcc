"""Bound and search, each helping the other: the subgradient method and the neighbourhood search.

The bound's prices guide the search, the search's objective sets the bound's step. Both are anytime
and take turns, so the answer is always an interval. Where there are further cores, others search
meanwhile with draws of their own, from where the bound has become slow; the best of all counts.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from threading import Event

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, status_of
from hindsched.solvers.door.status import Progress, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.methods.base import (
    better,
    infeasible,
    keep_bound,
    keep_solution,
    serve_nobody,
)
from hindsched.solvers.oracles.base import build_oracle, row_layouts
from hindsched.solvers.parallel import SideBySide
from hindsched.solvers.search import Search, search_of

SHARE_OF_FIRST_PRICES = 0.1
"""Share of the time after which no more uniform prices are tried."""
SHARE_BEFORE_HELPERS = 0.2
"""Share of the time that prices get at most before others search beside them."""
SHARE_OF_HELPERS = 0.97
"""Share of the time after which those who search beside say what they found."""
DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
ROUNDS = 15
"""Turns that bound and search take."""
METHOD = "prices+search"
ENDED = (StoppedBy.GAP, StoppedBy.INTERRUPTED, StoppedBy.INFEASIBLE)
"""Why prices and search stop for good."""
SLOW_BOUND = 2e-4
"""Relative gain of the bound in a turn below which the search gets most of the time."""
SEED_STEP = 1_000_003
"""Between the seeds of those who search side by side."""


class BoundAndSearch:
    """Bound and search in turns, resumable.

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
        self.begin = now()
        keep_solution(incumbent, METHOD)
        self.limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
        self.oracle = build_oracle(instance, formulation)
        self.options, self.on_progress = options, on_progress
        self._interrupted = interrupted
        self._incumbent = better(serve_nobody(instance, formulation), incumbent)
        self._known = None if self._incumbent is None else self._incumbent.objective()
        self.bounding = Subgradient(
            self.oracle, stop=lambda: now() - self.begin > SHARE_OF_FIRST_PRICES * self.limit
        )
        self.search: Search | None = None
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._last_report = -1.0
        self._guiding = 0.0  # the bound whose prices the search follows
        self._details: dict[str, object] = {}
        self._keep_bound()

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known."""
        found = None if self.search is None else self.search.objective
        return self._known if found is None else found

    def seconds_left(self) -> float:
        """What is left of the method's limit."""
        return max(0.0, self.limit - (now() - self.begin))

    def run(self, seconds: float, helpers: int = 0) -> Result:
        """Work for `seconds`, until a closed gap or an interrupt, and say what is known.

        Building the oracles and the first solution (and compiling their kernels in a fresh
        process) does not count, but the method's limit always holds. A further run goes on.

        Parameters
        ----------
        seconds : float
            Time.
        helpers : int
            Processes that search meanwhile.
        """
        if self.bounding.is_infeasible:
            return infeasible(self.oracle.instance, self.oracle.formulation, METHOD)
        last = self.begin + self.limit
        deadline = min(last, now() + seconds)
        turn = (deadline - now()) / ROUNDS
        self._bound_until(min(deadline, now() + turn))
        if self.search is None:
            self._start_search(last)
        deadline = min(last, now() + seconds)
        try:
            if helpers and self.search is not None and not self._stop(deadline):
                self._search_side_by_side(deadline, turn, helpers)
            else:
                self._take_turns(deadline, turn)
            self._report(force=True)
            return self._result()
        except BaseException:  # a limit stops it in the middle of a step: keep what is known
            with suppress(SolveFailed):  # half a step of the search
                keep_solution(None if self.search is None else self.search.solution(), METHOD)
            self._keep_bound()
            raise

    def _search_side_by_side(self, deadline: float, turn: float, helpers: int) -> None:
        """Bound while it pays, then take turns while others search with draws of their own."""
        assert self.search is not None
        first = min(deadline, now() + SHARE_BEFORE_HELPERS * (deadline - now()))
        while not self._stop(first) and not self.bounding.converged:
            before = self.bounding.best.bound
            self._bound_until(min(first, now() + turn / 2))
            if abs(self.bounding.best.bound - before) <= SLOW_BOUND * abs(before):
                break
        self._guide_search()
        until = now() + SHARE_OF_HELPERS * (deadline - now())
        works = [partial(self._search_beside, number + 1, until) for number in range(helpers)]
        with SideBySide(works) as beside:
            self._take_turns(deadline, turn, beside)
            if self.stopped_by not in ENDED:
                beside.wait(lambda: deadline - now())
            self._adopt(beside)
        self._details = {"parts": 1 + helpers}
        if beside.errors:
            self._details["part_failed"] = "; ".join(beside.errors)

    def _search_beside(self, number: int, until: float) -> JsonObject | None:
        """Search with other draws, and return the best schedules by job."""
        assert self.search is not None
        self.on_progress = None
        seed, start = self.options.seed + SEED_STEP * number, self.search.solution()
        self.search = self._new_search(seed, start, until)
        self.search.improve(lambda: self._stop(until))
        found = self.search.solution()
        return None if found is None else dict(found.assignments())

    def _adopt(self, beside: SideBySide) -> None:
        """Take the best of what others found."""
        assert self.search is not None
        while beside.look():
            rows = beside.found.pop()
            if rows is not None:
                instance, formulation = self.oracle.instance, self.oracle.formulation
                self.search.adopt(build_solution(instance, rows, formulation))

    def _take_turns(self, deadline: float, turn: float, beside: SideBySide | None = None) -> None:
        """Bound and search in turns."""
        share = 0.5
        while not self._stop(deadline) and not (self.search is None and self.bounding.converged):
            before = self.bounding.best.bound
            if not self.bounding.converged:
                self._bound_until(min(deadline, now() + 2 * share * turn))
                gain = abs(self.bounding.best.bound - before) / max(abs(before), 1e-12)
                share = 0.5 if gain > SLOW_BOUND else 0.1
            else:
                share = 0.0
            if self.search is None:
                continue
            if beside is not None:
                self._adopt(beside)
            self._guide_search()
            until = min(deadline, now() + 2 * (1 - share) * turn)
            self.search.improve(partial(self._stop, until))
            if not self.search.is_complete:
                self.search.construct(lambda: self._stop(deadline))
                if not self.search.is_complete and self.bounding.converged:
                    break

    def _guide_search(self) -> None:
        """Let the search follow the best prices."""
        if self.search is not None and self.bounding.best.bound != self._guiding:
            self._guiding = self.bounding.best.bound
            self.search.set_prices(self.oracle.prices_on_servers(self.bounding.best.prices))

    def _result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        certificate = certify(self.oracle, self.bounding.best.prices)
        solution = None if self.search is None else self.search.solution()
        solution = better(solution, self._incumbent)
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
                "neighbourhoods": 0 if self.search is None else self.search.iterations,
                "seconds_limit": self.limit,
                **self._details,
            },
        )

    def _keep_bound(self) -> None:
        """Certify the best prices before something that a limit may stop in the middle."""
        if not self.bounding.is_infeasible:
            certificate = certify(self.oracle, self.bounding.best.prices)
            keep_bound(self.oracle.instance, certificate, "subgradient", METHOD)

    def _start_search(self, last: float) -> None:
        """Build the primal search and its first solutions, where the family can place jobs."""
        if "servers" not in row_layouts(self.oracle.instance.family):
            return
        self._keep_bound()
        search = self._new_search(self.options.seed, None, last)
        search.construct(lambda: self._stop(last))
        served = None if search.objective is None else search.solution()
        given = self._incumbent
        if given is not None and better(served, given) is given and given.assignments():
            search = self._new_search(self.options.seed, given, last)
        self.search, self._guiding = search, self.bounding.best.bound

    def _new_search(self, seed: int, start: Solution | None, last: float) -> Search:
        servers = build_oracle(self.oracle.instance, self.oracle.formulation, rows="servers")
        prices = self.oracle.prices_on_servers(self.bounding.best.prices)
        return search_of(
            servers, prices, seed=seed, start=start, seconds_left=lambda: max(0.0, last - now())
        )

    def _bound_until(self, deadline: float) -> None:
        while not self._stop(deadline) and not self.bounding.converged:
            self.bounding.step(self.objective)
            self._report()

    def _stop(self, deadline: float) -> bool:
        """Whether to end the turn; an interrupt or a closed gap end the method."""
        self._report()
        if self._interrupted.is_set():
            self.stopped_by = StoppedBy.INTERRUPTED
        elif self._is_closed():
            self.stopped_by = StoppedBy.GAP
        else:
            return now() >= deadline
        return True

    def _is_closed(self) -> bool:
        """Whether the best solution closes the gap, and does so once it is checked."""
        if not within_gap(self.objective, self.bounding.best.bound, self.options.gap):
            return False
        if self.search is not None:
            self.search.solution()  # leaves out what only rounding let in
        return within_gap(self.objective, self.bounding.best.bound, self.options.gap)

    def _report(self, *, force: bool = False) -> None:
        if self.on_progress is None:
            return
        seconds = now() - self.begin
        if force or seconds - self._last_report >= 0.2:
            self._last_report = seconds
            tried = 0 if self.search is None else self.search.iterations
            text = f"{self.bounding.iterations} bounds, {tried} neighbourhoods"
            self.on_progress(self.bounding.best.bound, self.objective, seconds, text)
