"""Methods of ``solve`` for gang.

``auto``
    Replayed policies, prices (`climb_prices`) whose expected starts suggest orders, and the search
    for the rest of the time: a certified interval for any size. Small instances spend most of the
    time on the program instead.
``tree``
    Jobs in one piece: branch and bound on prices (`tree.method`).
``bound``
    Prices only.
``milp``, ``relaxation``
    The program of ``models/gang/offline.py``, for small instances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from threading import Event

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.models.gang.offline import columns_needed
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, keep
from hindsched.solvers.door.status import Progress, Status, StoppedBy
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.families.gang.prices import Clock, certify_without_prices, climb_prices
from hindsched.solvers.families.gang.replay import in_order, incumbents
from hindsched.solvers.families.gang.search import Search, can_move
from hindsched.solvers.methods.base import Method, joined, relaxation, solve_milp
from hindsched.solvers.tree.method import certifying, solve_tree

DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
BOUND_SHARE = 0.3
"""Share of the time for the prices of jobs in one piece; the search has the rest."""
SMALL_COLUMNS = 30_000
"""Variables up to which `auto` also solves the program."""
SHARE_BEFORE_PROGRAM, LEAST_BEFORE_PROGRAM, MOST_BEFORE_PROGRAM = 0.1, 0.1, 0.5
"""Share of the time that prices and search get before the program, and seconds at most: between
the two last, the more the larger the program is."""
SWAPS = 0.05
"""Share of the jobs that move when an order is perturbed."""


@dataclass
class GangSolve:
    """One run: the best schedule and the best prices so far.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    formulation : str
        Kind and objective.
    options : SolveOptions
        Time limit, gap and seed.
    on_progress : callable, optional
        Told of bound and objective.
    stop : Event
        Set by Ctrl-C.
    """

    instance: GangInstance
    formulation: str
    options: SolveOptions
    on_progress: Progress | None
    stop: Event
    best: GangSolution | None = None
    objective: float = math.inf
    certificate: Certificate | None = None
    details: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kind, self.goal = split_formulation(self.formulation)
        limit = self.options.time_limit
        self.clock = Clock(DEFAULT_SECONDS if limit is None else limit, self.stop)

    def offer(self, solution: GangSolution) -> None:
        """Keep a feasible schedule if it is the best so far."""
        value = solution.objective()
        if value < self.objective:
            self.best, self.objective = solution, value
            self.tell("schedule")

    def tell(self, message: str) -> None:
        """Report progress."""
        if self.on_progress is not None:
            bound = None if self.certificate is None else self.certificate.bound
            found = self.objective if self.best is not None else None
            self.on_progress(bound, found, now() - self.clock.begin, message)

    def begin(self) -> None:
        """Price nothing, then replay policies: there is a schedule whatever the time limit."""
        self.certificate = certify_without_prices(self.instance, self.formulation)
        keep(self.result("no prices"))
        for solution in incumbents(self.instance, self.formulation):
            self.offer(solution)
            if self.clock.is_over:
                break
        keep(self.result("replayed policies"))

    def prove(self, clock: Clock, search: Search | None = None) -> None:
        """Find prices; their expected starts go to the search."""
        if self.goal == "makespan":
            return
        assert self.best is not None
        assert self.certificate is not None
        suggest = None if search is None else search.try_expected
        end = int(self.best.completions.max())
        climb = climb_prices(
            self.instance, self.formulation, end, self.objective, clock, on_expected=suggest
        )
        found = certify(*climb.result())
        if found.bound > self.certificate.bound:
            self.certificate = found
        self.details["evaluations"] = climb.evaluations
        self.details["intervals"] = self.certificate.rows.size
        self.tell("prices")
        keep(self.result("prices"))

    def search(self) -> None:
        """Find prices, then improve the schedule for the rest of the time."""
        for_prices = self.clock.first(BOUND_SHARE * self.clock.seconds_left)
        in_one_piece = self.kind == "non-preemptive" and self.goal != "makespan"
        movable = can_move(len(self.instance.jobs), self.instance.total_gpus)
        if not in_one_piece or self.instance.is_consolidated:
            self.prove(for_prices)
            self._perturb()
            return
        search = Search(self.instance, self.formulation, self.options.seed)
        assert self.best is not None
        search.try_starts(self.best.starts)
        self.prove(for_prices, search)
        self.offer(search.solution())

        def is_done() -> bool:
            if search.cost < self.objective:
                self.offer(search.solution())
            return self.is_closed

        if movable:
            search.anneal(self.clock, is_done)
            self.offer(search.solution())
        else:
            self._perturb()
        self.details["moves"] = search.moves

    def _perturb(self) -> None:
        """Start jobs by perturbed orders of the best schedule while there is time."""
        assert self.best is not None
        jobs = len(self.instance.jobs)
        generator = np.random.Generator(np.random.PCG64(self.options.seed))
        tries = 0
        while not self.clock.is_over and not self.is_closed:
            place = np.argsort(np.argsort(self.best.starts, kind="stable")).astype(float)
            moved = generator.random(jobs) < max(SWAPS, 2 / jobs)
            place[moved] += generator.normal(scale=max(2.0, 0.05 * jobs), size=int(moved.sum()))
            self.offer(in_order(self.instance, place, self.formulation))
            tries += 1
            spend()
        self.details["perturbed"] = tries

    @property
    def is_closed(self) -> bool:
        """Whether schedule and bound meet."""
        if self.certificate is None or self.best is None:
            return False
        return within_gap(self.objective, self.certificate.bound, self.options.gap)

    def result(self, method: str) -> Result:
        """What was found."""
        if self.is_closed:
            stopped = StoppedBy.GAP
        elif self.stop.is_set():
            stopped = StoppedBy.INTERRUPTED
        else:
            stopped = StoppedBy.TIME_LIMIT if self.clock.is_over else StoppedBy.CONVERGED
        return Result(
            instance=self.instance,
            formulation=self.formulation,
            method=method,
            status=Status.NO_SOLUTION if self.best is None else Status.FEASIBLE,
            stopped_by=stopped,
            solution=self.best,
            bound=None if self.certificate is None else self.certificate.bound,
            certificate=self.certificate,
            backend="prices and moves",
            details=self.details,
        )


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Close the gap from both sides: replayed policies, prices, search; the program if small."""
    assert isinstance(instance, GangInstance)
    with catch_interrupt() as stop:
        run = GangSolve(instance, formulation, options, on_progress, stop)
        run.begin()
        size = columns_needed(instance, formulation, run.best) / SMALL_COLUMNS
        small, whole = size <= 1, run.clock
        if small:
            most = max(LEAST_BEFORE_PROGRAM, size * MOST_BEFORE_PROGRAM)
            run.clock = whole.first(min(most, SHARE_BEFORE_PROGRAM * whole.seconds))
        run.search()
        known = run.result("prices+search")
        if not small or run.is_closed or stop.is_set() or whole.is_over:
            return known
        left = options.with_time(whole.seconds_left)
        found = solve_milp(instance, formulation, left, on_progress, incumbent=run.best)
        return replace(joined(known, found), method="prices+search+milp")


def milp(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Solve the program by a mixed-integer solver, begun from the best replayed policy."""
    assert isinstance(instance, GangInstance)
    best = min(incumbents(instance, formulation), key=lambda solution: solution.exact_objective)
    return solve_milp(instance, formulation, options, on_progress, incumbent=best)


def bound(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Certified bound by prices; no solution."""
    assert isinstance(instance, GangInstance)
    with catch_interrupt() as stop:
        run = GangSolve(instance, formulation, options, on_progress, stop)
        run.begin()
        run.prove(run.clock)
        run.best = None
        return run.result("bound")


def tree(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Prove an optimum of jobs in one piece by branch and bound on prices."""
    assert isinstance(instance, GangInstance)
    best = min(incumbents(instance, formulation), key=lambda solution: solution.exact_objective)
    return solve_tree(instance, formulation, options, on_progress, incumbent=best)


METHODS: dict[str, Method] = {
    "auto": certifying(auto),
    "tree": tree,
    "bound": bound,
    "milp": milp,
    "relaxation": relaxation,
}
