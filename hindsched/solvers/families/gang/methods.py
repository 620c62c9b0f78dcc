"""Methods of ``solve`` for gang.

``auto`` replays policies. Few jobs in one piece are solved by the order of their starts
(`enumeration`), whatever the length of a slot. Otherwise it finds prices (`ascend_prices`) whose
expected starts suggest orders, and searches for the rest of the time: a certified interval for any
size. Small instances spend most of the time on the program instead, which ``milp`` and
``relaxation`` solve. ``tree`` is branch and bound on prices for jobs in one piece (`tree.method`),
``bound`` prices only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from threading import Event

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.models.gang.offline import MOST_TERMS, program_size
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.base import Method
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, Result, Status
from hindsched.solvers.door.work import Clock, catch_interrupt, count_work
from hindsched.solvers.families.gang.enumeration import (
    Enumeration,
    can_enumerate,
    prove_by_enumeration,
)
from hindsched.solvers.families.gang.prices import ascend_prices, certify_without_prices
from hindsched.solvers.families.gang.replay import incumbents, replay_by_key
from hindsched.solvers.families.gang.search import SequenceSearch, can_move, well_annealed
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import Run
from hindsched.solvers.tree.method import certifying

BOUND_SHARE = 0.3
"""Share of the time for the prices of jobs in one piece; the search has the rest. Of few jobs it
is the share that moves have at most before they are enumerated."""
SMALL_COLUMNS = 30_000
"""Variables up to which `auto` also solves the program."""
TERMS_PER_SECOND = 200_000
"""Terms of a program that are built and passed on in a second, at least."""
SHARE_BEFORE_PROGRAM, LEAST_BEFORE_PROGRAM, MOST_BEFORE_PROGRAM = 0.1, 0.1, 0.5
"""Share of the time that prices and search get before the program, and seconds at most: between
the two last, the more the larger the program is."""
SWAPS = 0.05
"""Share of the jobs that move when an order is perturbed."""


class GangRun(Run):
    """Prices nothing, then replays policies: there is a schedule whatever the time limit."""

    def __init__(
        self, instance: Instance, formulation: str, options: SolveOptions,
        on_progress: Progress | None, stop: Event,
    ) -> None:  # fmt: skip
        super().__init__(instance, formulation, options, on_progress, stop, "prices+search")
        assert isinstance(instance, GangInstance)
        self.instance, self.formulation = instance, formulation
        self.prove(certify_without_prices(instance, formulation))
        for solution in incumbents(instance, formulation):
            self.offer(solution)
            if self.clock.is_over:
                break
        self.tell("schedule")

    @property
    def best(self) -> GangSolution:
        """The best schedule."""
        assert isinstance(self.known.solution, GangSolution)
        return self.known.solution

    def enumerate(self) -> None:
        """Improve the schedule by so many moves, and enumerate what could be better."""
        enumeration = Enumeration(self.instance)
        clock = self.clock
        if not enumeration.is_small:
            return
        if enumeration.has_few_sequences:
            clock = Clock(math.inf, clock.stop)
        elif clock.is_over:
            return
        elif not self.instance.names_places:
            first = clock.first(BOUND_SHARE * clock.seconds_left)
            self.offer(well_annealed(self.best, first))
        prove_by_enumeration(enumeration, self, self.best, clock)
        self.tell("sequences")

    def find_prices(self, clock: Clock, search: SequenceSearch | None = None) -> None:
        """Find prices; their expected starts go to the search."""
        if split_formulation(self.formulation)[1] == "makespan":
            return
        suggest = None if search is None else search.try_expected
        end, cost = int(self.best.completions.max()), self.best.objective()
        ascent = ascend_prices(self.instance, self.formulation, end, cost, clock, suggest)
        self.prove(certify(*ascent.result()))
        self.tell("prices")

    def search(self) -> None:
        """Find prices, then improve the schedule for the rest of the time."""
        for_prices = self.clock.first(BOUND_SHARE * self.clock.seconds_left)
        kind, goal = split_formulation(self.formulation)
        can_sequence = kind == "non-preemptive" and goal != "makespan"
        if not can_sequence or self.instance.names_places:
            self.find_prices(for_prices)
            self._perturb()
            return
        search = SequenceSearch(self.instance, self.formulation, self.options.seed)
        search.try_starts(self.best.starts)
        self.find_prices(for_prices, search)

        def is_done() -> bool:
            self.offer(search.solution())
            return self.is_closed

        if can_move(len(self.instance.jobs), self.instance.total_gpus):
            search.anneal(self.clock, is_done)
            self.offer(search.solution())
            self.tell("moves")
        elif not is_done():
            self._perturb()

    def _perturb(self) -> None:
        """Start jobs by perturbed orders of the best schedule while there is time."""
        jobs = len(self.instance.jobs)
        generator = np.random.Generator(np.random.PCG64(self.options.seed))
        while not self.clock.is_over and not self.is_closed:
            place = np.argsort(np.argsort(self.best.starts, kind="stable")).astype(float)
            moved = generator.random(jobs) < max(SWAPS, 2 / jobs)
            place[moved] += generator.normal(scale=max(2.0, 0.05 * jobs), size=int(moved.sum()))
            self.offer(replay_by_key(self.instance, place, self.formulation))
            count_work()


def auto_gang(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Close the gap from both sides: replayed policies, prices, search; the program if small."""
    with catch_interrupt() as stop:
        run = GangRun(instance, formulation, options, on_progress, stop)
        if can_enumerate(run.instance, formulation):
            run.enumerate()
            if run.is_closed or run.clock.is_over:
                return replace(run.result("sequences of starts"), method="sequences")
        size = math.inf
        if not run.instance.has_kinds:
            columns, terms = program_size(run.instance, formulation, run.best)
            most = TERMS_PER_SECOND * run.clock.seconds_left / 2  # that half of the time builds
            if terms <= min(MOST_TERMS, most):
                size = columns / SMALL_COLUMNS
        small, whole = size <= 1, run.clock
        if small:
            most = max(LEAST_BEFORE_PROGRAM, size * MOST_BEFORE_PROGRAM)
            run.clock = whole.first(min(most, SHARE_BEFORE_PROGRAM * whole.seconds))
        run.search()
        run.known, run.clock = run.result("prices and moves"), whole
        if small and not run.is_closed and not whole.is_over:
            run.solve_program()
        return run.known


def bound_gang(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Certified bound by prices; no solution."""
    with catch_interrupt() as stop:
        run = GangRun(instance, formulation, options, on_progress, stop)
        run.find_prices(run.clock)
        run.known = replace(run.known, method="bound", status=Status.NO_SOLUTION, solution=None)
        return run.result("prices")


def _best_replayed(instance: Instance, formulation: str) -> GangSolution:
    """The best replayed policy: a program or a tree begins from it."""
    assert isinstance(instance, GangInstance)
    return min(incumbents(instance, formulation), key=lambda solution: solution.objective())


GENERIC = generic_methods(_best_replayed)
METHODS: dict[str, Method] = {
    "auto": certifying(auto_gang),
    "tree": GENERIC["tree"],
    "bound": bound_gang,
    "milp": GENERIC["milp"],
    "relaxation": GENERIC["relaxation"],
}
