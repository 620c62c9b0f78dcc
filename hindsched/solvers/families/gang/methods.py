"""Methods of ``solve`` for gang.

``auto``
    Replayed policies, prices (`climb_prices`) whose expected starts suggest orders, and the search
    for the rest of the time: a certified interval for any size. Small instances spend most of the
    time on the program instead.
``tree``
    Jobs in one piece: prices, search, and branch and bound on prices (`methods.tree`).
``bound``
    Prices only.
``milp``, ``relaxation``
    The program of ``models/gang/offline.py``, for small instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance, gang_data, split_formulation
from hindsched.json_types import JsonObject
from hindsched.models.gang.offline import columns_needed
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.interrupt import catch_interrupt, stoppable
from hindsched.solvers.door.kept import keep
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import aside, spend
from hindsched.solvers.families.gang.clock import Clock
from hindsched.solvers.families.gang.incumbents import in_order, incumbents
from hindsched.solvers.families.gang.orders import best_starts, orders
from hindsched.solvers.families.gang.pool import GangOracle
from hindsched.solvers.families.gang.prices import certify_without_prices, climb_prices
from hindsched.solvers.families.gang.replay import replay_many
from hindsched.solvers.families.gang.search import Search
from hindsched.solvers.kernels.gang.trace_queue import MANY_JOBS
from hindsched.solvers.methods.base import Method, joined, relaxation, solve_milp
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER
from hindsched.solvers.team import JobUpdates, Member, Part, Team, threads_of
from hindsched.solvers.tree.branching import Share
from hindsched.solvers.tree.method import Growing, certifying, check_has_tree

DEFAULT_SECONDS = 60.0
"""Time limit when the options give none."""
BOUND_SHARE = 0.3
"""Share of the time for the prices of jobs in one piece; the search has the rest."""
SMALL_COLUMNS = 30_000
"""Variables up to which `auto` also solves the program."""
SHARE_BEFORE_PROGRAM, LEAST_BEFORE_PROGRAM, MOST_BEFORE_PROGRAM = 0.1, 0.1, 0.5
"""Share of the time that prices and search get before the program, and seconds at most: between
the two last, the more the larger the program is."""
LEAST_TEAM_SECONDS = 1.0
"""A search that is shorter needs no others beside it."""
SEED_STEP = 1_000_003
"""Between the seeds of those who search side by side."""
SWAPS = 0.05
"""Share of the jobs that move when an order is perturbed."""


TINY: JsonObject = gang_data(
    "tiny", [{"name": f"j{k}", "submit": 0, "duration": 1 + k, "gpus": 1} for k in range(3)], gpus=1
)
"""What `load_kernels` runs on."""


def compile_too(instance: GangInstance) -> None:
    """Run what `solvers.api.compile_solve` runs besides a solve: orders of few jobs."""
    for formulation in ("non-preemptive", "non-preemptive,makespan"):
        for small in (instance, GangInstance.parse(TINY)):
            best_starts(small, formulation)


@cache
def load_kernels(formulation: str, many: bool) -> None:
    """Run every compiled kernel once on a tiny instance: no time limit pays for the compiler.

    What was compiled stays on disk, so only the first process of an installation waits for long.
    `many` is whether policies replay more jobs than a plain queue holds.
    """
    tiny = GangInstance.parse(TINY)
    with aside():
        known = min(incumbents(tiny, formulation), key=lambda solution: solution.exact_objective)
        end = int(known.completions.max())
        if split_formulation(formulation)[1] != "makespan":
            climb_prices(tiny, formulation, end, known.objective(), Clock(0.1))
        if many:
            replay_many(tiny)
        search = Search(tiny, formulation)
        search.try_starts(known.starts)
        search.try_expected(known.starts.astype(float))
        search.move(np.argsort(known.starts), 2, 1.0, 1)
        search.exchange(known.starts.copy(), 2, 2, 1.0, 1)


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
        load_kernels(self.formulation, len(self.instance.jobs) > MANY_JOBS)
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
            self.on_progress(bound, found, self.clock.gone, message)

    def begin(self) -> None:
        """Price nothing, then replay policies: there is a schedule whatever the time limit.

        What stops this in the middle finds the certificate of no prices kept, at least.
        """
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
        end = int(self.best.completions.max())

        def suggest(_: float, expected: Floats) -> None:
            if search is not None:
                search.try_expected(expected)

        climb = climb_prices(
            self.instance, self.formulation, end, self.objective, clock, on_better=suggest
        )
        found = certify(*climb.result())
        if found.bound > self.certificate.bound:
            self.certificate = found
        self.details["evaluations"] = climb.evaluations
        self.details["intervals"] = self.certificate.rows.size
        self.tell("prices")
        keep(self.result("prices"))

    def search(self) -> None:
        """Improve the schedule for the rest of the time, others beside it with other draws."""
        helpers = threads_of(self.options) - 1
        in_one_piece = self.kind == "non-preemptive" and self.goal != "makespan"
        if not in_one_piece or self.instance.is_consolidated:
            with self._team([self._perturb_along] * helpers) as team:
                self.prove(self.clock.first(BOUND_SHARE * self.clock.seconds_left))
                if not self.is_closed:
                    self._perturb(team)
                self.offer_told(team)
            return
        search = Search(self.instance, self.formulation, self.options.seed)
        assert self.best is not None
        search.try_starts(self.best.starts)

        def anneal_along(member: Member) -> None:
            _anneal_along(search, member, self.clock.seconds)

        self.prove(self.clock.first(BOUND_SHARE * self.clock.seconds_left), search)
        self.offer(search.solution())
        with self._team([anneal_along] * helpers, search.solution) as team:
            self._anneal(search, team)
            self.offer_told(team)
        self.offer(search.solution())
        self.details["orders"] = search.orders
        self.details["moves"] = search.moves
        self.details["exchanges"] = search.exchanges

    def _team(
        self, parts: Sequence[Part], build: Callable[[Any], GangSolution] | None = None
    ) -> Team:
        if self.clock.seconds_left < LEAST_TEAM_SECONDS:
            parts = ()
        return Team(self.instance, self.formulation, self.options.gap, parts, Event(), build)

    def offer_told(self, team: Team) -> GangSolution | None:
        """Keep the best schedule that others told, if it is the best so far; say which."""
        if team.objective is None or team.objective >= self.objective:
            return None
        told = team.solution()
        if not isinstance(told, GangSolution):
            return None
        self.offer(told)
        return told

    def _anneal(self, search: Search, team: Team) -> None:
        """Exchange jobs until the time is over or the gap is closed."""

        def look() -> None:
            told = self.offer_told(team)
            if told is not None:
                search.try_starts(told.starts)
            elif search.cost < self.objective:
                self.offer(search.solution())
                team.offer(self.best, search.start)
            team.exchange(None)
            if self.is_closed:
                self.stop.set()

        if not self.is_closed:
            search.on_look = look if team.size > 1 else None
            search.anneal(self.clock, look)

    def _perturb_along(self, member: Member) -> None:
        """Perturb the best schedule with other draws until killed."""
        self.on_progress, self.clock = None, Clock(math.inf)
        self.options = replace(self.options, seed=self.options.seed + SEED_STEP * member.number)
        self._perturb(None, member)

    def _perturb(self, team: Team | None, member: Member | None = None) -> None:
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
            if team is not None:
                self.offer_told(team)
            if member is not None:
                member.tell(self.best)
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
            backend="prices and exchanges",
            details=self.details,
        )


def auto(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
) -> Result:
    """Close the gap from both sides: replayed policies, prices, search; the program if small."""
    assert isinstance(instance, GangInstance)
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    with stoppable() as stop:
        run = GangSolve(instance, formulation, options, on_progress, stop)
        run.begin()
        size = columns_needed(instance, formulation, run.best) / SMALL_COLUMNS
        small, whole = size <= 1, run.clock
        if small:
            most = max(LEAST_BEFORE_PROGRAM, size * MOST_BEFORE_PROGRAM)
            run.clock = whole.first(min(most, SHARE_BEFORE_PROGRAM * limit))
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
    found = incumbents(instance, formulation)
    best = min(found, key=lambda solution: solution.exact_objective)
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
    check_has_tree(instance, formulation)
    with catch_interrupt() as stop:
        run = GangSolve(instance, formulation, options, on_progress, stop)
        run.begin()
        whole = run.clock
        run.clock = whole.first(min(MOST_BEFORE_PROGRAM, SHARE_BEFORE_PROGRAM * whole.seconds_left))
        run.search()
        known = run.result("tree")
        if run.is_closed or stop.is_set() or run.certificate is None:
            return known
        oracle = GangOracle(instance, formulation)
        certificate = run.certificate
        prices = oracle.prices_from(certificate.layout, certificate.rows, certificate.prices)
        assert prices is not None
        near = partial(_near_node, instance, formulation)
        growing = Growing(known, prices, options.gap, stop, on_progress, lambda _: near)
        return growing.run(lambda: whole.seconds_left)


def _near_node(
    instance: GangInstance, formulation: str, _: Floats, shares: Sequence[Share]
) -> GangSolution:
    """Start jobs in the order in which a node's program expects them to end."""
    ends = np.zeros(len(instance.jobs))
    for share in shares:
        known = share.features
        ends[share.block] += share.share * (NEVER if known is None else known[COMPLETES])
    return in_order(instance, ends - instance.durations, formulation)


def _anneal_along(search: Search, member: Member, seconds: float) -> None:
    """Exchange jobs with other draws until killed; `seconds` is how long that will be at most."""
    search.reseed(search.seed + SEED_STEP * member.number)
    told = search.cost

    def look() -> None:
        nonlocal told
        if search.cost < told:
            told = search.cost
            member.say(JobUpdates(search.solution().objective(), search.start))
        for _, start in member.heard():
            if start is not None:
                search.try_starts(start)

    search.on_look = look
    while True:
        search.anneal(Clock(seconds))


METHODS: dict[str, Method] = {
    "auto": certifying(auto),
    "tree": tree,
    "bound": bound,
    "milp": milp,
    "orders": orders,
    "relaxation": relaxation,
}
