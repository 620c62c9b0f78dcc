"""Bound and search, each helping the other: the subgradient method and the neighbourhood search.

The bound's prices guide the search, the search's objective sets the bound's step. Both are anytime,
so the answer is always an interval. On one core they take turns. On several, members of a `Team`
search all the time; the parent bounds, and searches as well once the bound hardly moves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event

import numpy as np

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, status_of
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.methods.base import (
    better,
    infeasible,
    keep_bound,
    keep_solution,
    serve_nobody,
)
from hindsched.solvers.oracles.base import build_oracle, row_layouts
from hindsched.solvers.search.base import OnThreads, Search
from hindsched.solvers.search.dives import Dives
from hindsched.solvers.search.registry import search_of
from hindsched.solvers.team import Member, Team

SHARE_OF_FIRST_PRICES = 0.1
"""Share of the time after which no more uniform prices are tried."""
DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
ROUNDS = 15
"""Turns that bound and search take."""
LONGEST_TURN = 0.5
"""Seconds of a turn at most where others search meanwhile: news should not be old."""
METHOD = "prices+search"
LEAST_TO_DIVE = 1_000
"""Jobs x slots below which inserting jobs finds as good schedules as a dive, and sooner."""
ENDED = (StoppedBy.GAP, StoppedBy.INTERRUPTED, StoppedBy.INFEASIBLE)
"""Why prices and search stop for good."""
SHARE_TO_POLISH = 0.05
"""How long the search goes on after a dive, relative to the dive; as long as it where the last such
search gained."""
SLOW_BOUND = 2e-4
"""Relative gain of the bound in a turn below which the search gets most of the time."""


class Duel:
    """Bound and search, in turns or side by side.

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
        self._incumbent_objective = None if self._incumbent is None else self._incumbent.objective()
        self.bounding = Subgradient(
            self.oracle, stop=lambda: now() - self.begin > SHARE_OF_FIRST_PRICES * self.limit
        )
        self.search: Search | None = None
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._last_report = -1.0
        self._team: Team | None = None
        self._dives: Dives | None = None
        self._members = 1
        self._search_gains = False  # the last time that it went on after a dive
        self._guiding = 0.0  # the bound whose prices the search follows
        self._keep_bound()

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known."""
        found = None if self.search is None else self.search.objective
        own = self._incumbent_objective if found is None else found
        told = None if self._team is None else self._team.objective
        if own is None or told is None:
            return told if own is None else own
        return max(own, told) if self.oracle.sense == "max" else min(own, told)

    def seconds_left(self) -> float:
        """What is left of the method's limit."""
        return max(0.0, self.limit - (now() - self.begin))

    def run(self, seconds: float, helpers: int = 0, *, dives: bool = False) -> Result:
        """Work for `seconds`, until a closed gap or an interrupt, and say what is known.

        Building the oracles and the first solution (and compiling their kernels in a fresh
        process) does not count, but the method's limit always holds. A further run goes on.

        Parameters
        ----------
        seconds : float
            Time.
        helpers : int
            Processes that search meanwhile.
        dives : bool
            Whether to search by the family's dives first, if it has them.
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
        if self.search is None or self._stop(deadline):
            helpers = 0
        size = self.oracle.num_blocks * self.oracle.instance.horizon
        if dives and self.search is not None and size >= LEAST_TO_DIVE:
            self._members = helpers + 1
            self._dives = Dives(self.oracle, helpers, self._members, self._interrupted)
        instance, formulation = self.oracle.instance, self.oracle.formulation
        parts = [self.search_along] * helpers
        with Team(instance, formulation, self.options.gap, parts, Event()) as team:
            self._team = team
            try:
                self._take_turns(deadline, turn)
                self._report(force=True)
                return self._result()
            except BaseException:  # a limit stops it in the middle of a step
                self._keep_best()
                raise

    def search_along(self, member: Member) -> None:
        """Search with other draws until killed: what a member does."""
        search = self.search
        assert search is not None
        told = search.objective
        search.random = np.random.Generator(np.random.PCG64([self.options.seed, member.number]))
        if self._dives is not None:
            dives = Dives(self.oracle, member.number - 1, self._members, self._interrupted)

            def never() -> bool:
                member.take_in()
                return False

            while not dives.is_over:
                self._dive(dives, never, never)
                if search.objective != told and (found := search.solution()):
                    told = search.objective
                    member.tell(found)
                self._hear(member, search, dives=not dives.is_over)
        while True:
            if search.is_complete:
                search.improve(member.time_to_listen)
            else:
                search.construct()
            found = None if search.objective == told else search.solution()
            if found is not None:
                told = search.objective
                member.tell(found)
            self._hear(member, search)

    def _hear(self, member: Member, search: Search, *, dives: bool = False) -> None:
        """What a member takes from the parent: the best schedules, and prices unless it dives."""
        for prices, rows in member.heard():
            if not dives:
                search.set_prices(self.oracle.prices_on_servers(prices))
            if rows is not None:
                oracle = self.oracle
                search.adopt(build_solution(oracle.instance, rows, oracle.formulation))

    def _take_turns(self, deadline: float, turn: float) -> None:
        """Bound and search in turns; where others search meanwhile, bound while it pays."""
        assert self._team is not None
        most = 1.0 if self._team.is_running else 0.5
        turn = min(turn, LONGEST_TURN) if self._team.is_running else turn
        share = most
        while not self._stop(deadline) and not (self.search is None and self.bounding.converged):
            before = self.bounding.best.bound
            if not self.bounding.converged:
                self._bound_until(min(deadline, now() + 2 * share * turn))
                gain = abs(self.bounding.best.bound - before) / max(abs(before), 1e-12)
                share = most if gain > SLOW_BOUND else 0.1
            else:
                share = 0.0
            if self.search is None:
                continue
            if self.bounding.best.bound != self._guiding and share < 1.0:
                self._guiding = self.bounding.best.bound
                self.search.set_prices(self.oracle.prices_on_servers(self.bounding.best.prices))
            if share < most and self._search_on_threads():
                most = 0.5
            self._search_until(min(deadline, now() + 2 * (1 - share) * turn))
            if not self.search.is_complete and share < 1.0:
                self.search.construct(lambda: self._stop(deadline))
                if not self.search.is_complete and self.bounding.converged and most < 1.0:
                    break
            self._exchange()

    def _search_on_threads(self) -> bool:
        """End those who search meanwhile where the search goes as fast on threads of its own.

        Return whether it did.
        """
        team, search = self._team, self.search
        assert team is not None
        if not (team.is_running and isinstance(search, OnThreads)):
            return False
        self._exchange()
        team.end()
        search.threads = team.size
        return True

    def _exchange(self) -> None:
        """Take the best solution of those who search meanwhile; tell them prices and the best."""
        team, search = self._team, self.search
        assert team is not None
        assert search is not None
        if not team.is_running:
            return
        told = team.solution()
        if told is not None:
            search.adopt(told)
        if search.objective is not None and search.objective != team.objective:
            team.offer(search.solution())
        team.exchange(self.bounding.best.prices)

    def _result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        certificate = certify(self.oracle, self.bounding.best.prices)
        solution = None if self.search is None else self.search.solution()
        solution = better(solution, self._incumbent)
        details: dict[str, object] = {}
        if self._team is not None:
            solution = better(solution, self._team.solution())
            details = {"parts": self._team.size}
            details |= {"part_failed": "; ".join(self._team.errors)} if self._team.errors else {}
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
                **details,
            },
        )

    def _keep_bound(self) -> None:
        """Certify the best prices before something that a limit may stop in the middle."""
        if self.bounding.is_infeasible:
            return
        certificate = certify(self.oracle, self.bounding.best.prices)
        keep_bound(self.oracle.instance, certificate, "subgradient", METHOD)

    def _keep_best(self) -> None:
        """Keep the best solution and bound, whatever step was broken off."""
        assert self._team is not None
        found = self._team.solution()
        with suppress(SolveFailed):  # half a step of the search
            found = better(None if self.search is None else self.search.solution(), found)
        keep_solution(found, METHOD)
        self._keep_bound()

    def _start_search(self, last: float) -> None:
        """Build the primal search and its first solutions, where the family can place jobs."""
        family = self.oracle.instance.family
        if "servers" not in row_layouts(family):
            return
        self._keep_bound()
        servers = build_oracle(self.oracle.instance, self.oracle.formulation, rows="servers")
        prices = self.oracle.prices_on_servers(self.bounding.best.prices)
        begin = partial(
            search_of, servers, prices, seed=self.options.seed, seconds_left=self.seconds_left
        )
        search = begin()
        search.construct(lambda: self._stop(last))
        served = None if search.objective is None else search.solution()
        given = self._incumbent
        if given is not None and better(served, given) is given and given.assignments():
            search = begin(start=given)
        self.search, self._guiding = search, self.bounding.best.bound

    def _bound_until(self, deadline: float) -> None:
        while not self._stop(deadline) and not self.bounding.converged:
            self.bounding.step(self.objective)
            self._report()

    def _search_until(self, deadline: float) -> None:
        assert self.search is not None
        dives, last = self._dives, self.begin + self.limit
        while dives is not None and not dives.is_over:
            self._dive(dives, lambda: self._stop(deadline), lambda: self._stop(last))
            if not dives.have_windows or self._stop(deadline):
                break
        self.search.improve(lambda: self._stop(deadline))

    def _dive(
        self, dives: Dives, stop: Callable[[], bool], stop_search: Callable[[], bool]
    ) -> None:
        """Go on with a dive; once it is over search on, from its schedule where that is better."""
        assert self.search is not None
        objective = self.objective
        found = dives.work(
            self.bounding.best.prices,
            0.0 if objective is None else objective,
            self.search.solution,
            self.seconds_left,
            stop,
        )
        is_adopted = found is not None and self.search.adopt(found)
        if is_adopted or (dives.have_windows and not dives.is_diving):
            self._polish(dives.seconds, stop_search)

    def _polish(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Search for a while after a dive that took so many seconds."""
        assert self.search is not None
        before = self.search.objective
        seconds *= 1.0 if self._search_gains else SHARE_TO_POLISH
        last = now() + min(seconds, self.seconds_left())
        self.search.improve(lambda: stop() or now() >= last)
        self._search_gains = self.search.objective != before

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
