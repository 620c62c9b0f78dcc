"""``--method auto``: a certified bound and a checked solution for any size of instance.

The route, which the result names:

- ``prices+search``: the subgradient method and the neighbourhood search take turns, so the answer
  is always an interval. Further cores search with other draws.
- ``prices+search+tree``: small instances of a family that can be branched on try a tree for a short
  time: where it closes it is the quickest proof, and one that needs no trust.
- ``prices+search+milp``: else small instances spend most of the time on the offline program, begun
  from the best solution; the better of the two bounds counts, and the certificate stays. With more
  than one core the tree grows beside the program from the start, and what ends first ends both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event

from hindsched.instances.base import Instance
from hindsched.limits import OutOfTime, check_time, uncounted
from hindsched.solutions.base import Solution
from hindsched.solvers.base import Method, family_solvers, placing_oracle, row_layouts
from hindsched.solvers.bounds.lagrangian import PricePoint, Subgradient
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Progress, Reports, Result, StoppedBy
from hindsched.solvers.door.work import Clock, catch_interrupt
from hindsched.solvers.methods import base
from hindsched.solvers.parallel import SideBySide, threads_of
from hindsched.solvers.search import NeighbourhoodSearch
from hindsched.solvers.tree import method as tree
from hindsched.solvers.tree.branch_and_bound import NodeSolutions

SHARE_OF_FIRST_PRICES = 0.1  # share of the time after which no more uniform prices are tried
SHARE_OF_PROGRAM_OF_PRICES = 0.5  # share of the time for a program whose duals are the first prices
SHARE_OF_HELPERS = 0.97  # share of the time after which those who search beside say what they found
ROUNDS = 15  # turns that bound and search take
METHOD = "prices+search"
ENDED = (StoppedBy.GAP, StoppedBy.INTERRUPTED, StoppedBy.INFEASIBLE)
"""Why prices and search stop for good."""
SLOW_BOUND = 2e-4
"""Relative gain of the bound in a turn below which the search gets most of the time."""
SEED_STEP = 1_000_003  # between the seeds of those who search side by side
LEAST_SECONDS = 0.2  # between two reports
SMALL_SIZE = 50_000  # jobs x linking rows up to which the offline program is solved
SHARE_ALONE, SHARE_BESIDE = (0.1, 1.0), (0.02, 0.15)
"""Share of the time, and seconds at most, that prices and search get before the program, and where
they go on beside it."""
SHARE_OF_TREE, MOST_OF_TREE = 0.15, 6.0
"""Share of the time, and seconds at most, that a tree gets before the program on one core."""
SHARE_BESIDE_PROGRAM = 0.95
"""Share of the time left after which what works beside the program says what it has."""
Program = Callable[..., Result]
"""How a family solves its offline program from an incumbent: called like `solve_milp`."""


class BoundAndSearch(base.Run):
    """Bound and search in turns, resumable: prices guide the search, its objective the bound.

    Where there are further cores, others search meanwhile with draws of their own, from where the
    bound has become slow; the best of all counts.
    """

    def __init__(
        self, instance: Instance, formulation: str, options: SolveOptions, stop: Event,
        on_progress: Progress | None = None, incumbent: Solution | None = None,
        first_prices: base.FirstPrices = base.without_prices,
    ) -> None:  # fmt: skip
        super().__init__(instance, formulation, options, on_progress, stop, METHOD)
        self.search: NeighbourhoodSearch | None = None
        self.offer(incumbent or base.serve_nobody(instance, formulation))
        self._given = self.known.solution
        self._worth = self.known.objective
        within = options.with_time(SHARE_OF_PROGRAM_OF_PRICES * self.clock.seconds_left)
        self.oracle, start = first_prices(instance, formulation, within)
        share = SHARE_OF_FIRST_PRICES * self.clock.seconds
        self.bounding = Subgradient(self.oracle, start, stop=lambda: self.clock.gone > share)
        self._certified: PricePoint | None = None
        self._last_report = -1.0
        self._guiding = 0.0  # the bound whose prices the search follows
        self._built: Solution | None = None
        self._built_at: float | None = None  # the search's objective then
        self._certify()

    @property
    def objective(self) -> float | None:
        """Objective of the best solution known, perhaps not checked yet."""
        objective = None if self.search is None else self.search.objective
        return self._worth if objective is None else objective

    def run(self, seconds: float, helpers: int = 0) -> Result:
        """Work for `seconds`, until a closed gap or an interrupt, and say what is known.

        So many `helpers`, processes, search meanwhile. Building the oracles and the first solution
        (and compiling their kernels in a fresh process) does not count, but the method's limit
        always holds. A further run goes on.
        """
        if self.bounding.is_infeasible:
            self.known = base.infeasible(self.known.instance, self.known.formulation, METHOD)
            return self.known
        turn = self.clock.first(seconds).seconds / ROUNDS
        self._bound_for(self.clock.first(turn))
        if self.search is None:
            self._start_search()
        clock = self.clock.first(seconds)
        helpers = 0 if self.search is None else helpers
        if helpers:  # which follow the prices that they begin with
            self._bound_for(clock.first(2 * turn))
            self._guide_search()
        until = clock.first(SHARE_OF_HELPERS * clock.seconds_left)
        works = [partial(self._search_beside, number + 1, until) for number in range(helpers)]
        with SideBySide(works) as beside:
            self._take_turns(clock, turn, beside)
            if self.known.stopped_by is StoppedBy.INTERRUPTED:
                beside.stop()
            elif self.known.stopped_by not in ENDED:
                beside.wait(lambda: clock.seconds_left)
            self._adopt(beside)
        self.known = replace(self.known, details={**self.known.details, **beside.facts()})
        self._report(force=True)
        return self._result()

    def _search_beside(self, number: int, clock: Clock) -> Solution | None:
        """Search with other draws, and return the best schedules."""
        assert self.search is not None
        self.on_progress = None
        seed, start = self.options.seed + SEED_STEP * number, self._searched()
        with uncounted():  # who is late is ended
            self.search = self._new_search(seed, start)
        self.search.improve(lambda: self._ends(clock))
        return self._searched()

    def _searched(self) -> Solution | None:
        """The search's best solution, built and judged once for as long as it is the best."""
        if self.search is None:
            return None
        if self._built is None or self._built_at != self.search.objective:
            self._built = self.search.solution()
            self._built_at = self.search.objective
        return self._built

    def _adopt(self, beside: SideBySide) -> None:
        """Take the best of what others found."""
        while self.search is not None and beside.look():
            solution = beside.results.pop()
            if solution is not None:
                self.search.adopt(solution)

    def _take_turns(self, clock: Clock, turn: float, beside: SideBySide) -> None:
        """Bound and search in turns."""
        share = 0.5
        while not self._ends(clock) and not (self.search is None and self.bounding.converged):
            self._settle()
            before = self.bounding.best.bound
            if not self.bounding.converged:
                self._bound_for(clock.first(2 * share * turn))
                gain = abs(self.bounding.best.bound - before) / max(abs(before), 1e-12)
                share = 0.5 if gain > SLOW_BOUND else 0.1
            else:
                share = 0.0
            if self.search is None:
                continue
            self._adopt(beside)
            self._guide_search()
            searching = clock.first(2 * (1 - share) * turn)
            self.search.improve(partial(self._ends, searching))
            if not self.search.is_complete:
                self.search.construct(lambda: self._ends(clock))
                if not self.search.is_complete and self.bounding.converged:
                    break

    def _settle(self) -> None:
        """Check and certify what is known, where somebody listens to that."""
        if isinstance(self.on_progress, Reports):
            self._certify()
            self.offer(self._searched())

    def _guide_search(self) -> None:
        """Let the search follow the best prices."""
        if self.search is not None and self.bounding.best.bound != self._guiding:
            self._guiding = self.bounding.best.bound
            with suppress(OutOfTime):
                prices = self.oracle.prices_on_servers(self.bounding.best.prices)
                self.search.set_prices(prices, check_time)

    def _result(self) -> Result:
        """What is known now, solution checked and bound certified."""
        self._certify()
        self.offer(self._searched())
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
        if not self.bounding.is_infeasible and self.bounding.best is not self._certified:
            self._certified = self.bounding.best
            self.prove(certify(self.oracle, self.bounding.best.prices))

    def _start_search(self) -> None:
        """Build the primal search and its first solutions, where the family can place jobs.

        Once the time is over, a schedule that is known must do.
        """
        if "servers" not in row_layouts(self.oracle.instance.family):
            return
        self._certify()
        start = self._given if self._given is not None and self._given.assignments() else None
        with uncounted() if start is None else suppress(OutOfTime):
            search = self._new_search(self.options.seed, start)
            search.construct(lambda: self._ends(self.clock))
            self.search, self._guiding = search, self.bounding.best.bound

    def _new_search(self, seed: int, start: Solution | None) -> NeighbourhoodSearch:
        servers = placing_oracle(self.oracle.instance, self.oracle.formulation)
        prices = self.oracle.prices_on_servers(self.bounding.best.prices)
        return NeighbourhoodSearch(servers, prices, seed=seed, start=start, check=check_time)

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
        self._searched()  # leaves out what only rounding let in
        return within_gap(self.objective, self.bounding.best.bound, self.options.gap)

    def _report(self, *, force: bool = False) -> None:
        seconds = self.clock.gone
        if self.on_progress is None or not (force or seconds - self._last_report >= LEAST_SECONDS):
            return
        self._last_report = seconds
        tried = 0 if self.search is None else self.search.iterations
        text = f"{self.bounding.iterations} bounds, {tried} neighbourhoods"
        self.on_progress(self.bounding.best.bound, self.objective, seconds, text)


def solve_auto(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, *, incumbent: Solution | None = None,
    program: Program = base.solve_milp, first_prices: base.FirstPrices = base.without_prices,
) -> Result:  # fmt: skip
    """Solve or bound an instance by the route that its size suggests, from a known solution.

    `program` is how the family solves its offline program: called like `solve_milp`. The result's
    ``method`` is the route, ``details["why"]`` says why.
    """
    with catch_interrupt() as stop:
        both = BoundAndSearch(
            instance, formulation, options, stop, on_progress, incumbent, first_prices
        )
        size = both.oracle.num_blocks * both.oracle.rows.size
        small = size <= SMALL_SIZE
        threads = threads_of(options)
        if not small:
            both.run(both.clock.seconds, helpers=threads - 1)
        else:
            has_tree = bool(family_solvers(instance.family).tree_layouts(instance, formulation))
            share, most = SHARE_BESIDE if has_tree or threads > 1 else SHARE_ALONE
            both.run(min(most, share * both.clock.seconds))
            if both.known.stopped_by not in ENDED:
                prove = _in_turn if threads == 1 else _side_by_side
                both.known = prove(both, program, has_tree)
        relation = "at most" if small else "above"
        why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
        return replace(both.known, details={"why": why, **both.known.details})


def _in_turn(both: BoundAndSearch, program: Program, has_tree: bool) -> Result:
    """A tree for a short time, then the program."""
    if has_tree:
        clock = both.clock.first(min(MOST_OF_TREE, SHARE_OF_TREE * both.clock.seconds))
        grown = _grow(both, clock)
        if _is_closed(both, grown):
            return replace(grown, method=f"{METHOD}+tree", stopped_by=StoppedBy.GAP)
        if both.clock.stop.is_set():
            return grown
        both.known = replace(grown, stopped_by=both.known.stopped_by)
    both.solve_program(program)
    if "program_failed" in both.known.details:
        return _grow(both, both.clock) if has_tree else both.run(both.clock.seconds_left)
    return both.known


def _side_by_side(both: BoundAndSearch, program: Program, has_tree: bool) -> Result:
    """Prices, search and tree, and the program in another process; what ends first ends both."""
    known, clock = both.known, both.clock

    def closes() -> bool:
        """Whether what the other process found closes the gap."""
        return any(_is_closed(both, base.joined(known, other)) for other in beside.look())

    program_clock = clock.first(SHARE_BESIDE_PROGRAM * clock.seconds_left)
    with SideBySide([partial(_solve_program, both, program, program_clock)]) as beside:
        both.clock = replace(clock, asked=closes)
        result = _run_beside_program(both, has_tree)
        if clock.stop.is_set():
            beside.stop()
        elif not _is_closed(both, result):
            beside.wait(lambda: clock.seconds_left)
        for other in beside.look():
            result = replace(base.joined(other, result), stopped_by=other.stopped_by)
    if _is_closed(both, result):
        result = replace(result, stopped_by=StoppedBy.GAP)
    elif clock.stop.is_set():
        result = replace(result, stopped_by=StoppedBy.INTERRUPTED)
    return replace(result, details={**result.details, **beside.facts()})


def _is_closed(both: BoundAndSearch, result: Result) -> bool:
    return within_gap(result.objective, result.bound, both.options.gap)


def _solve_program(both: BoundAndSearch, program: Program, clock: Clock) -> Result:
    """What the program finds in a process of its own."""
    both.clock, both.on_progress = clock, None
    both.solve_program(program)
    return both.known


def _run_beside_program(both: BoundAndSearch, has_tree: bool) -> Result:
    """Go on with prices and search, then grow a tree: what is done beside the program."""
    if not has_tree:
        return both.run(both.clock.seconds_left)
    if not both.bounding.converged:
        share, most = SHARE_ALONE
        both.run(min(most, share * both.clock.seconds))
    if both.known.stopped_by in ENDED:
        return both.known
    both.known = replace(both.known, method=f"{METHOD}+tree")
    return _grow(both, both.clock)


def solve_tree(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, *, incumbent: Solution | None = None,
    first_prices: base.FirstPrices = base.without_prices,
) -> Result:  # fmt: skip
    """``--method tree``: prices and search as in ``auto``, then branch and bound closes the gap."""
    tree.check_has_tree(instance, formulation)
    with catch_interrupt() as stop:
        both = BoundAndSearch(
            instance, formulation, options, stop, on_progress, incumbent, first_prices
        )
        known = both.run(min(tree.MOST_BEFORE_TREE, tree.SHARE_BEFORE_TREE * both.clock.seconds))
        both.known = replace(known, method="tree")
        if known.stopped_by in ENDED:
            return both.known
        return _grow(both, both.clock)


def _grow(both: BoundAndSearch, clock: Clock) -> Result:
    """A tree from the prices of bound and search, whose search goes on near the nodes."""
    search, find = both.search, None
    if search is not None and search.is_complete:
        find = partial(NodeSolutions, search=search)
    return tree.grow(both, clock, find=find)


def generic_methods(
    find_incumbent: base.FindIncumbent | None = None, program: Program = base.solve_milp,
    first_prices: base.FirstPrices = base.without_prices,
) -> dict[str, Method]:  # fmt: skip
    """The methods of a family that has a program and a pricing oracle.

    `find_incumbent` gives a cheap feasible solution from which `milp`, `auto` and `tree` begin; by
    default the one that serves nobody, where that is feasible. `program` is called like
    `solve_milp`. `first_prices` is where bounds begin.
    """
    find = find_incumbent or base.serve_nobody

    def begun(solve: Callable[..., Result]) -> Method:
        def method(
            instance: Instance, formulation: str, options: SolveOptions, report: Progress | None
        ) -> Result:
            clock = Clock(math.inf)
            incumbent = base.better(find(instance, formulation), options.start)
            within = options.without(clock.gone)
            return solve(instance, formulation, within, report, incumbent=incumbent)

        return method

    auto = partial(solve_auto, program=program, first_prices=first_prices)
    return {
        "auto": tree.certifying(begun(auto)),
        "milp": begun(base.solve_milp),
        "tree": begun(partial(solve_tree, first_prices=first_prices)),
        "relaxation": base.relaxation,
        "bound": partial(base.bound_by_prices, first_prices=first_prices),
    }
