"""Bound and search, each helping the other: the subgradient method and the neighbourhood search.

The bound's prices guide the search, the search's objective sets the bound's step. Both are anytime
and take turns, so the answer is always an interval. Where there are further cores, others search
meanwhile with draws of their own, from where the bound has become slow; the best of all counts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Progress, StoppedBy
from hindsched.solvers.door.work import Clock
from hindsched.solvers.methods.base import Run, better, infeasible, serve_nobody
from hindsched.solvers.oracles.base import build_oracle, row_layouts
from hindsched.solvers.parallel import SideBySide
from hindsched.solvers.search import Search, search_of

SHARE_OF_FIRST_PRICES = 0.1
"""Share of the time after which no more uniform prices are tried."""
SHARE_BEFORE_HELPERS = 0.2
"""Share of the time that prices get at most before others search beside them."""
SHARE_OF_HELPERS = 0.97
"""Share of the time after which those who search beside say what they found."""
ROUNDS = 15
"""Turns that bound and search take."""
METHOD = "prices+search"
ENDED = (StoppedBy.GAP, StoppedBy.INTERRUPTED, StoppedBy.INFEASIBLE)
"""Why prices and search stop for good."""
SLOW_BOUND = 2e-4
"""Relative gain of the bound in a turn below which the search gets most of the time."""
SEED_STEP = 1_000_003
"""Between the seeds of those who search side by side."""
LEAST_SECONDS = 0.2
"""Between two reports."""


class BoundAndSearch(Run):
    """Bound and search in turns, resumable.

    Parameters
    ----------
    instance, formulation, options
        As for every method; gap, seed and time limit are used.
    stop : Event
        Set by Ctrl-C.
    on_progress : callable, optional
        Listener.
    incumbent : Solution, optional
        A feasible solution to begin from.

    Attributes
    ----------
    oracle : BlockOracle
        Oracle in the family's default layout.
    bounding : Subgradient
        The search for prices.
    search : Search, optional
        The search for schedules, where the family can place jobs.
    """

    def __init__(
        self,
        instance: Instance,
        formulation: str,
        options: SolveOptions,
        stop: Event,
        on_progress: Progress | None = None,
        incumbent: Solution | None = None,
    ) -> None:
        super().__init__(instance, formulation, options, on_progress, stop, METHOD)
        self.search: Search | None = None
        self.offer(incumbent)
        self.offer(serve_nobody(instance, formulation))
        self._given = self.known.solution
        self._worth = self.known.objective
        self.oracle = build_oracle(instance, formulation)
        share = SHARE_OF_FIRST_PRICES * self.clock.seconds
        self.bounding = Subgradient(self.oracle, stop=lambda: self.clock.gone > share)
        self._last_report = -1.0
        self._guiding = 0.0  # the bound whose prices the search follows
        self._certify()

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known, perhaps not checked yet."""
        found = None if self.search is None else self.search.objective
        return self._worth if found is None else found

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
            self.known = infeasible(self.known.instance, self.known.formulation, METHOD)
            return self.known
        own = self.clock.first(seconds)
        turn = own.seconds / ROUNDS
        self._bound_for(own.first(turn))
        if self.search is None:
            self._start_search()
        own = self.clock.first(seconds)
        try:
            if helpers and self.search is not None and not self._ends(own):
                self._search_side_by_side(own, turn, helpers)
            else:
                self._take_turns(own, turn)
            self._report(force=True)
            return self._result()
        except BaseException:  # a limit stops it in the middle of a step: keep what is known
            with suppress(SolveFailed):  # half a step of the search
                self.offer(None if self.search is None else self.search.solution())
            self._certify()
            raise

    def _search_side_by_side(self, clock: Clock, turn: float, helpers: int) -> None:
        """Bound while it pays, then take turns while others search with draws of their own."""
        first = clock.first(SHARE_BEFORE_HELPERS * clock.seconds_left)
        while not self._ends(first) and not self.bounding.converged:
            before = self.bounding.best.bound
            self._bound_for(first.first(turn / 2))
            if abs(self.bounding.best.bound - before) <= SLOW_BOUND * abs(before):
                break
        self._guide_search()
        own = clock.first(SHARE_OF_HELPERS * clock.seconds_left)
        works = [partial(self._search_beside, number + 1, own) for number in range(helpers)]
        with SideBySide(works) as beside:
            self._take_turns(clock, turn, beside)
            if self.known.stopped_by not in ENDED:
                beside.wait(lambda: clock.seconds_left)
            self._adopt(beside)
        self.known = replace(self.known, details={**self.known.details, **beside.facts()})

    def _search_beside(self, number: int, clock: Clock) -> Solution | None:
        """Search with other draws, and return the best schedules."""
        assert self.search is not None
        self.on_progress = None
        seed, start = self.options.seed + SEED_STEP * number, self.search.solution()
        self.search = self._new_search(seed, start)
        self.search.improve(lambda: self._ends(clock))
        return self.search.solution()

    def _adopt(self, beside: SideBySide) -> None:
        """Take the best of what others found."""
        assert self.search is not None
        while beside.look():
            found = beside.found.pop()
            if found is not None:
                self.search.adopt(found)

    def _take_turns(self, clock: Clock, turn: float, beside: SideBySide | None = None) -> None:
        """Bound and search in turns."""
        share = 0.5
        while not self._ends(clock) and not (self.search is None and self.bounding.converged):
            before = self.bounding.best.bound
            if not self.bounding.converged:
                self._bound_for(clock.first(2 * share * turn))
                gain = abs(self.bounding.best.bound - before) / max(abs(before), 1e-12)
                share = 0.5 if gain > SLOW_BOUND else 0.1
            else:
                share = 0.0
            if self.search is None:
                continue
            if beside is not None:
                self._adopt(beside)
            self._guide_search()
            own = clock.first(2 * (1 - share) * turn)
            self.search.improve(partial(self._ends, own))
            if not self.search.is_complete:
                self.search.construct(lambda: self._ends(clock))
                if not self.search.is_complete and self.bounding.converged:
                    break

    def _guide_search(self) -> None:
        """Let the search follow the best prices."""
        if self.search is not None and self.bounding.best.bound != self._guiding:
            self._guiding = self.bounding.best.bound
            self.search.set_prices(self.oracle.prices_on_servers(self.bounding.best.prices))

    def _result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        self._certify()
        self.offer(None if self.search is None else self.search.solution())
        details = {
            **self.known.details,
            "bound_iterations": self.bounding.iterations,
            "neighbourhoods": 0 if self.search is None else self.search.iterations,
            "seconds_limit": self.clock.seconds,
        }
        self.known = replace(
            self.known, backend="subgradient, neighbourhood search", details=details
        )
        return self.known

    def _certify(self) -> None:
        if not self.bounding.is_infeasible:
            self.prove(certify(self.oracle, self.bounding.best.prices))

    def _start_search(self) -> None:
        """Build the primal search and its first solutions, where the family can place jobs."""
        if "servers" not in row_layouts(self.oracle.instance.family):
            return
        self._certify()
        search = self._new_search(self.options.seed, None)
        search.construct(lambda: self._ends(self.clock))
        served = None if search.objective is None else search.solution()
        given = self._given
        if given is not None and better(served, given) is given and given.assignments():
            search = self._new_search(self.options.seed, given)
        self.search, self._guiding = search, self.bounding.best.bound

    def _new_search(self, seed: int, start: Solution | None) -> Search:
        servers = build_oracle(self.oracle.instance, self.oracle.formulation, rows="servers")
        prices = self.oracle.prices_on_servers(self.bounding.best.prices)
        left = lambda: self.clock.seconds_left  # noqa: E731
        return search_of(servers, prices, seed=seed, start=start, seconds_left=left)

    def _bound_for(self, clock: Clock) -> None:
        while not self._ends(clock) and not self.bounding.converged:
            self.bounding.step(self.objective)
            self._report()

    def _ends(self, clock: Clock) -> bool:
        """Whether to end the turn; an interrupt or a closed gap end the method."""
        self._report()
        if clock.stop.is_set():
            stopped_by = StoppedBy.INTERRUPTED
        elif self._meets():
            stopped_by = StoppedBy.GAP
        else:
            return clock.is_over
        self.known = replace(self.known, stopped_by=stopped_by)
        return True

    def _meets(self) -> bool:
        """Whether the best solution closes the gap, and does so once it is checked."""
        if not within_gap(self.objective, self.bounding.best.bound, self.options.gap):
            return False
        if self.search is not None:
            self.search.solution()  # leaves out what only rounding let in
        return within_gap(self.objective, self.bounding.best.bound, self.options.gap)

    def _report(self, *, force: bool = False) -> None:
        seconds = self.clock.gone
        if self.on_progress is None or not (force or seconds - self._last_report >= LEAST_SECONDS):
            return
        self._last_report = seconds
        tried = 0 if self.search is None else self.search.iterations
        text = f"{self.bounding.iterations} bounds, {tried} neighbourhoods"
        self.on_progress(self.bounding.best.bound, self.objective, seconds, text)
