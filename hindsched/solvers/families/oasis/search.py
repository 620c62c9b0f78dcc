"""The search of oasis: dives through the slots, as many as the time is enough for, then the others.

Insertion takes one job after the other and leaves several points to the bound, for who is admitted
and what shares a server is decided job by job. A dive decides both together. Slot by slot in the
order of time

1. the fluid program (`fluid.py`) says which jobs to admit and how much of each to do now; a job
   that would begin now and is admitted by a fraction is admitted or refused;
2. an integer program (`slot_packing.py`) finds what the servers can do of it, at the worth that the
   fluid program gives a worker of each job; who must run now to end in time is told apart;
3. what they do is fixed.

The margin of capacity that open slots lack is what real servers are expected to waste. Too little
of it and promises are broken late, where nothing mends them; too much and jobs are refused that
would have fitted. Several margins are tried, one dive each; neighbourhoods make the best better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from threading import Event
from typing import cast

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.fluid import FluidProgram, Progress, most_columns
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.slot_packing import Wish, pack_slot
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.search.base import Search
from hindsched.solvers.search.neighbourhood import NeighbourhoodSearch

MARGINS = (0.05, 0.08, 0.03, 0.06, 0.1, 0.04, 0.12, 0.07)
"""Margins in the order in which they are tried."""
ADMITTED = 0.6
"""Share from which on a job that would begin now is admitted."""
TOUCHED = 1e-6
"""Values above it are not 0."""
MOST_WHOLE, MOST_COLUMNS = 15_000, 40_000
"""Columns of the fluid program above which late slots are added up in stretches, and above which it
is not built: it would take too long."""
FINES = (64, 32)
"""Slots that are not, from the first open one on, of dives by turns: half of them are closed before
the program is built anew. The more there are, the better and the longer a dive."""
SHARE_TO_JUDGE = 0.05
"""Share of the slots from which on they say how long the others take."""
SMALL_WORTH = 1e-3
"""Least worth of a worker, relative to the job's utility over its work."""
LEAST_TO_DIVE = 1_000
"""Jobs x slots below which inserting jobs finds as good schedules as a dive, and sooner."""
SHARE_OF_PIECE = 0.3
"""Share of the time left that one piece of a dive may take."""
SHARE_OF_NEXT = 0.8
"""A further dive begins where the longest one took less than this share of the time left."""
SHARE_OF_POLISH = 0.1
"""How long neighbourhoods go on after a dive, relative to the dive."""


class Dive:
    """One dive, resumable piece by piece.

    Parameters
    ----------
    oracle : OasisOracle
        In the layout of groups.
    prices : ndarray
        Prices of a bound.
    least : float
        Objective of a known solution.
    number : int
        Which one of several: chooses the margin.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(
        self, oracle: OasisOracle, prices: Floats, least: float, number: int, interrupted: Event
    ) -> None:
        self.oracle, self._interrupted = oracle, interrupted
        self._prices, self._least = prices, least
        self._margin = MARGINS[number % len(MARGINS)]
        self._fluid: FluidProgram | None = None
        self._seconds = 0.0
        jobs = oracle.num_blocks
        self._progress = Progress(np.zeros(jobs, dtype=np.int64), set(range(jobs)))
        self._horizon = self._fine = oracle.instance.horizon
        if most_columns(oracle, self._fine) > MOST_WHOLE:
            self._fine = min(self._fine, FINES[number % len(FINES)])
        self._placed: dict[int, dict[int, tuple[Ints, Ints]]] = {}
        self.failed = most_columns(oracle, self._fine) > MOST_COLUMNS

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.failed or self._progress.slot > self._horizon

    def seconds_to_go(self) -> float:
        """Estimate of what the rest of the dive takes, once some slots are closed; else 0.

        A slot takes as long as many are open behind it, or by the root of how many where late ones
        are added up.
        """
        done = self._progress.slot - 1
        if self.is_over or done < SHARE_TO_JUDGE * self._horizon:
            return 0.0
        rest = (1 - done / self._horizon) ** (2.0 if self._fine >= self._horizon else 1.5)
        return self._seconds * rest / (1.0 - rest)

    def step(self, seconds: float) -> None:
        """Do one piece: build the fluid program, or one slot.

        Parameters
        ----------
        seconds : float
            Limit of the programs that are solved; one that takes longer ends the dive.
        """
        if self.is_over:
            return
        begin, progress = now(), self._progress
        if self._fluid is None or progress.slot > self._fluid.closed_until:
            self._fluid = FluidProgram(
                self.oracle, self._prices, self._least, self._margin, self._interrupted, progress,
                self._fine,
            )  # fmt: skip
            progress.alive &= set(self._fluid.ends)
            self.failed = not progress.latest
        else:
            self._do_slot(self._fluid, progress.slot, seconds)
        self._seconds += now() - begin

    def _do_slot(self, fluid: FluidProgram, slot: int, seconds: float) -> None:
        fluid.open_fully(slot)
        if not self._settle(fluid, slot, seconds):
            self.failed = True
            return
        alive = sorted(self._progress.alive)
        wishes = [wish for job in alive if (wish := self._wish(fluid, job, slot))]
        placed = pack_slot(self.oracle, wishes, seconds, self._interrupted) if wishes else {}
        self._placed[slot] = placed
        self._progress.begun |= set(placed)
        fluid.close(slot, {job: int(workers.sum()) for job, (workers, _) in placed.items()})
        self._progress.slot += 1

    def _settle(self, fluid: FluidProgram, slot: int, seconds: float) -> bool:
        """Admit or refuse the jobs that would begin now by a fraction; False without a point."""
        progress = self._progress
        while fluid.solve(seconds):
            torn = []
            for job in sorted(progress.alive - progress.begun):
                column = fluid.workers.get((job, slot))
                if column is not None and fluid.values[column] > TOUCHED:
                    share = fluid.admitted(job)
                    torn += [(share, job)] if TOUCHED < share < 1 - TOUCHED else []
            if not torn:
                return True
            share, job = min(torn)
            if share < ADMITTED:
                fluid.drop(job)
                progress.alive.discard(job)
            else:
                _, job = max(torn)
                fluid.require(job)
                progress.begun.add(job)
        return False

    def _wish(self, fluid: FluidProgram, job: int, slot: int) -> Wish | None:
        column = fluid.workers.get((job, slot))
        task, left = self.oracle.block(job).task, fluid.left(job)
        if column is None or left <= 0 or fluid.admitted(job) < 0.5:
            return None
        most = task.needed.size - 1
        ends = [end for end in fluid.ends[job] if end.last >= slot]
        chosen = max(ends, key=lambda end: float(fluid.values[end.column]))
        later = max((end.utility for end in ends[ends.index(chosen) + 1 :]), default=0.0)
        least = SMALL_WORTH * fluid.ends[job][0].utility / task.total
        return Wish(
            job=job,
            workers=float(fluid.values[column]),
            most=min(most, left),
            worth=fluid.worth(job) + least,
            due=left - most * (chosen.last - slot),
            due_worth=chosen.utility - later,
        )

    def solution(self) -> OasisSolution | None:
        """The schedules of all jobs that were finished; None before the dive is over."""
        if not self.is_over or self.failed:
            return None
        instance = self.oracle.instance
        servers = len(instance.worker_servers), len(instance.ps_servers)
        deployed: tuple[dict[str, Ints], dict[str, Ints]] = {}, {}
        for number, job in enumerate(instance.jobs):
            counts = [np.zeros((self._horizon, many), dtype=np.int64) for many in servers]
            for slot, placed in self._placed.items():
                for own, units in zip(counts, placed.get(number, ()), strict=False):
                    own[slot - 1] = units
            done = np.cumsum(counts[0].sum(axis=1))
            ended = np.flatnonzero(done >= self.oracle.block(number).task.total)
            if ended.size:
                for given, own in zip(deployed, counts, strict=True):
                    own[ended[0] + 1 :] = 0
                    given[job.name] = own
        return OasisSolution(instance, *deployed, formulation=self.oracle.formulation)


class DivingSearch(NeighbourhoodSearch):
    """A neighbourhood search that begins by dives.

    Parameters
    ----------
    oracle, prices, seed, start
        As for `NeighbourhoodSearch`; the seed also says which dives come first.
    seconds_left : callable
        What is left of the time for everything.
    """

    def __init__(
        self, oracle: BlockOracle, prices: Floats, *, seed: int = 0, start: Solution | None = None,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:  # fmt: skip
        super().__init__(oracle, prices, seed=seed, start=start)
        self._groups = OasisOracle(cast(OasisInstance, oracle.instance), oracle.formulation)
        self._left, self._numbers = seconds_left, count(seed)
        self._dive: Dive | None = None
        self._longest, self._begun, self._has_dived = 0.0, 0.0, False

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Go on with dives, then try neighbourhoods; whether the best became better."""
        before = self.objective
        while not self._has_dived and not stop():
            self._work_on_dive()
        super().improve(stop)
        return self.objective != before

    def _work_on_dive(self) -> None:
        """Do a piece of a dive; once it is over, take its schedule and polish it."""
        left = self._left()
        if self._dive is None:
            if self._longest > SHARE_OF_NEXT * left:
                self._has_dived = True
                return
            with catch_interrupt() as interrupted:
                prices = self._groups.prices_of_servers(self._prices)
                number, least = next(self._numbers), self.objective or 0.0
                self._dive = Dive(self._groups, prices, least, number, interrupted)
            self._begun = now()
        dive = self._dive
        dive.step(SHARE_OF_PIECE * left)
        seconds = now() - self._begun
        if not dive.is_over and dive.seconds_to_go() <= left:
            return
        self._longest = max(self._longest, seconds + dive.seconds_to_go())
        self._dive, self._has_dived = None, dive.failed or not dive.is_over
        found = dive.solution()
        if found is not None and found.is_feasible() and self.adopt(found):
            end = now() + SHARE_OF_POLISH * seconds
            super().improve(lambda: now() >= end)


def search_of(
    oracle: BlockOracle, prices: Floats, *, seed: int = 0, start: Solution | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> Search | None:  # fmt: skip
    """Return a search that dives, where instances are large enough for that to pay."""
    if oracle.num_blocks * oracle.instance.horizon < LEAST_TO_DIVE:
        return None
    return DivingSearch(oracle, prices, seed=seed, start=start, seconds_left=seconds_left)
