"""Leaves decided by loads: which load every slot takes.

    sum over slots t and loads l of l_i x_tl >= W_i,    sum_l x_tl <= 1,    x whole.

Slots with the same jobs are one, which takes several loads. The linear program, which maximises the
share s of all work that is done, already finds nearly every set of ends impossible that is: then
its duals are weights of the jobs by which their work is more than all slots can do. Where there are
too many loads to list them it asks for those that it lacks, until the weights refute or the loads
known by then make a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event

import numpy as np

from hindsched.errors import SolveFailed
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.program import ProgramResult
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.families.oasis.loads import Loads
from hindsched.solvers.families.oasis.priced_loads import PricedLoads
from hindsched.solvers.families.oasis.taken_loads import (
    Goal,
    Spans,
    mend,
    program_of_loads,
    schedule,
    taken_at,
)

MISSING = 1e-6
"""Share of the work that must be missing at the linear optimum of impossible ends."""
FEW_COLUMNS, MOST_COLUMNS = 500, 30_000
"""Columns of a leaf up to which it is decided about as soon as refuted, and above which loads are
not listed."""
SHARE_OF_PRICING, KNOWN_SECONDS = 0.5, 0.5
"""Share of the time of a leaf in which loads are asked for, where they are not listed, and seconds
in which those that are known are put together."""
MOST_MENDED = 5
"""How often that is done one time after the other, with the loads that mending found."""
SLOT_SECONDS = 1.0
"""Seconds for the most that one slot can do while a refutation is made to say more."""
Ends = Mapping[int, int]
"""Latest end slot by the position of each admitted job."""


@dataclass(frozen=True)
class Refutation:
    """Why no schedule keeps some ends: weighted, the jobs' work is more than all slots can do.

    Parameters
    ----------
    ends : dict
        Latest end slots by job.
    weights : dict
        Worth of a worker by job.
    most : float
        What all slots are worth at most in which the jobs may run.
    """

    ends: dict[int, int]
    weights: dict[int, float]
    most: float


class Worth:
    """What slots are worth at most, a worker of each job being worth its weight.

    Slots are asked as little as can be, for that takes long: bounds on what they do, which are
    quickly known, may refute, and loads that are known may show that nothing will.

    Parameters
    ----------
    weights : dict
        Worth of a worker by job.
    """

    def __init__(self, weights: dict[int, float]) -> None:
        self._weights = weights
        self._at_most: dict[tuple[int, ...], float] = {}
        self._asked: set[tuple[int, ...]] = set()

    def most(
        self,
        spans: Spans,
        loads: Loads | PricedLoads,
        enough: float,
        seconds_left: Callable[[], float],
    ) -> float:
        """What all slots are worth at most; not below `enough` where that is not to be shown.

        Parameters
        ----------
        spans : dict
            The slots.
        loads : Loads or PricedLoads
            What they may do.
        enough : float
            What the most is wanted to be below.
        seconds_left : callable
            Seconds for the next slot.
        """
        worth = {jobs: np.array([self._weights[job] for job in jobs]) for jobs in spans}
        number = {jobs: len(slots) for jobs, slots in spans.items()}
        for jobs, each in worth.items():
            if jobs not in self._at_most:
                self._at_most[jobs] = loads.at_most(jobs, each)
        while True:
            most = {jobs: n * self._at_most[jobs] for jobs, n in number.items()}
            least = {
                jobs: n * float((loads.known(jobs) @ worth[jobs]).max(initial=0.0))
                for jobs, n in number.items()
            }
            upper, lower = sum(most.values()), sum(least.values())
            waiting = [jobs for jobs in spans if jobs not in self._asked]
            left = seconds_left()
            if upper < enough or lower >= enough or not waiting or left <= 0:
                return upper
            with catch_interrupt() as interrupted:
                if interrupted.is_set():
                    return upper
            jobs = max(waiting, key=lambda jobs: most[jobs] - least[jobs])
            shown = (
                (enough - (upper - most[jobs])) / number[jobs],
                (enough - (lower - least[jobs])) / number[jobs],
            )
            found = loads.most(jobs, worth[jobs], left, shown)
            self._at_most[jobs] = min(self._at_most[jobs], found)
            self._asked.add(jobs)


class LeafOfLoads:
    """Decides whether jobs can all be finished by given ends, by what servers do in a slot.

    Parameters
    ----------
    instance : OasisInstance
        The instance.

    Attributes
    ----------
    solution : OasisSolution, optional
        Schedule of the last leaf that was decided, if it has one.
    refutation : Refutation, optional
        Why the last ends that were refuted cannot be kept.
    """

    def __init__(self, instance: OasisInstance) -> None:
        self.instance = instance
        self._listed = Loads(instance)
        self._priced = PricedLoads(instance, self._listed.needed)
        self.solution: OasisSolution | None = None
        self.refutation: Refutation | None = None

    def refutes(self, ends: Ends, seconds: float = math.inf) -> bool | None:
        """Whether the linear program says that no schedule keeps the ends; None without loads.

        Also False where it does not say so in time.
        """
        spans = self._spans(ends)
        loads = self._loads_of(spans)
        if loads is None:
            return None
        until, refuted = now() + seconds, None
        while refuted is None:
            share, weights = self._done(ends, spans, loads)
            refuted = False if share >= 1 else self._refuted(ends, spans, loads, weights, until)
        return refuted

    def decide(self, ends: Ends, seconds: float | None) -> ProgramResult | None:
        """Decide within seconds; None where loads cannot. A schedule is `solution`."""
        self.solution, self.refutation = None, None
        spans = self._spans(ends)
        loads = self._loads_of(spans)
        if loads is None:
            return None
        left = math.inf if seconds is None else seconds
        until = now() + (left if loads is self._listed else SHARE_OF_PRICING * left)
        refuted: bool | None = None
        while refuted is None:
            share, weights = self._done(ends, spans, loads)
            if share >= 1 and loads is self._listed:
                return self._by_listed(ends, spans, left)
            if share >= 1 and self._by_known(ends, spans, until):
                return ProgramResult(Status.OPTIMAL, StoppedBy.GAP, has_point=True)
            refuted = self._refuted(ends, spans, loads, weights, until)
        return ProgramResult(Status.INFEASIBLE, StoppedBy.INFEASIBLE) if refuted else None

    def _work(self, ends: Ends) -> dict[int, int]:
        return {job: int(self.instance.work[job]) for job in ends}

    def _done(
        self, ends: Ends, spans: Spans, loads: Loads | PricedLoads
    ) -> tuple[float, dict[int, float]]:
        """Share of the work that known loads do, loads being divisible, and the jobs' weights."""
        spend()
        program = program_of_loads(self._work(ends), spans, loads, Goal.SHARE, Event())
        if not (program.solve(math.inf) and program.is_optimal):
            raise SolveFailed("the linear program of the loads of a leaf has no optimum")
        duals = np.maximum(program.duals()[len(spans) :], 0.0)
        return -program.objective + MISSING, dict(zip(ends, duals.tolist(), strict=True))

    def _refuted(
        self,
        ends: Ends,
        spans: Spans,
        loads: Loads | PricedLoads,
        weights: dict[int, float],
        until: float,
    ) -> bool | None:
        """Whether weights say that slots cannot do the work; None where new loads are known now.

        Also False where no new ones are, or it takes too long.
        """
        known, needed = len(self._priced), self._needed(weights)
        most = Worth(weights).most(spans, loads, needed, lambda: until - now())
        if most < needed:
            weights = {job: each for job, each in weights.items() if each > 0}
            self.refutation = Refutation({job: ends[job] for job in weights}, weights, most)
            return True
        return None if len(self._priced) > known else False

    def _needed(self, weights: dict[int, float]) -> float:
        """What slots must be worth at least if nothing but rounding is missing."""
        work = self.instance.work
        return (1 - MISSING) * sum(each * float(work[job]) for job, each in weights.items())

    def _by_listed(self, ends: Ends, spans: Spans, seconds: float) -> ProgramResult | None:
        """What all loads say; None where rounding let in what servers do not hold."""
        with catch_interrupt() as interrupted:
            work = self._work(ends)
            program = program_of_loads(work, spans, self._listed, Goal.ALL, interrupted)
            found = program.solve(seconds)
            spend(1 + program.nodes)
            if program.is_infeasible:
                return ProgramResult(Status.INFEASIBLE, StoppedBy.INFEASIBLE)
            if not found:
                ended = StoppedBy.INTERRUPTED if interrupted.is_set() else StoppedBy.TIME_LIMIT
                return ProgramResult(Status.NO_SOLUTION, ended)
        taken = taken_at(spans, self._listed, program.values())
        if not self._take(schedule(self.instance, work, taken, self._listed)):
            return None
        return ProgramResult(Status.OPTIMAL, StoppedBy.GAP, has_point=True)

    def _by_known(self, ends: Ends, spans: Spans, until: float) -> bool:
        """Look for a schedule by loads that are known, and by others in single slots."""
        work = self._work(ends)
        with catch_interrupt() as interrupted:
            for _ in range(MOST_MENDED):
                known = len(self._priced)
                program = program_of_loads(work, spans, self._priced, Goal.MISSING, interrupted)
                found = program.solve(max(0.0, min(KNOWN_SECONDS, until - now())))
                spend(1 + program.nodes)
                if not found or interrupted.is_set():
                    return False
                taken = taken_at(spans, self._priced, program.values())
                if mend(work, taken, self._priced, lambda: until - now()):
                    return self._take(schedule(self.instance, work, taken, self._priced))
                if len(self._priced) == known:
                    break
        return False

    def _take(self, found: OasisSolution | None) -> bool:
        """Keep a schedule that is one: rounding may have let in what servers do not hold."""
        if found is None or not found.is_feasible():
            return False
        self.solution = found
        return True

    def weakened(
        self, refutation: Refutation, last: Ends, out_of_time: Callable[[], bool]
    ) -> Refutation:
        """The same weights for later ends, as far as they refute these, least weight first.

        Parameters
        ----------
        refutation : Refutation
            What is made to say more.
        last : mapping
            The last end that is worth anything, by job.
        out_of_time : callable
            Whether to stop with what is known.
        """
        weights, worth = refutation.weights, Worth(refutation.weights)
        needed = self._needed(weights)

        def most_up_to(ends: Ends) -> float:
            spans = self._spans(ends)
            loads = self._loads_of(spans)
            if loads is None:
                return math.inf
            return worth.most(spans, loads, needed, lambda: 0.0 if out_of_time() else SLOT_SECONDS)

        best = refutation
        for job in sorted(weights, key=lambda job: weights[job] * float(self.instance.work[job])):
            refuted, not_refuted = best.ends[job], last[job] + 1
            while not_refuted - refuted > 1:  # the last end, then by bisection
                first = refuted == best.ends[job] and not_refuted > last[job]
                end = last[job] if first else (refuted + not_refuted) // 2
                ends = {**best.ends, job: end}
                most = most_up_to(ends)
                if most < needed:
                    best, refuted = Refutation(ends, weights, most), end
                else:
                    not_refuted = end
        return best

    def are_listed(self, ends: Ends) -> bool:
        """Whether all loads of all slots are known."""
        return self._loads_of(self._spans(ends)) is self._listed

    def is_large(self, ends: Ends) -> bool:
        """Whether deciding takes much longer than the linear program, which is nearly as good."""
        spans = self._spans(ends)
        loads = self._loads_of(spans)
        if loads is not self._listed:
            return loads is not None
        return self._number(spans) > FEW_COLUMNS

    def _spans(self, ends: Ends) -> Spans:
        """Slots by the jobs that may run in them."""
        spans: Spans = {}
        arrival = [job.arrival for job in self.instance.jobs]
        for slot in range(1, self.instance.horizon + 1):
            if jobs := tuple(i for i in sorted(ends) if arrival[i] <= slot <= ends[i]):
                spans.setdefault(jobs, []).append(slot)
        return spans

    def _loads_of(self, spans: Spans) -> Loads | PricedLoads | None:
        """Where loads of some spans come from: listed if they can be."""
        if self._number(spans) <= MOST_COLUMNS:
            return self._listed
        return None if self._priced.are_too_many else self._priced

    def _number(self, spans: Spans) -> float:
        """How many loads spans have, infinite if there are too many to list."""
        number = 0.0
        for jobs in sorted(spans, key=len, reverse=True):  # the first to have too many
            loads = self._listed.of(jobs)
            if loads is None:
                return math.inf
            number += len(loads)
        return number
