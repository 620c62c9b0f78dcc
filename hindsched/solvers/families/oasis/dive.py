"""Schedules at scale: dive through the slots, fluid behind and real servers in front.

The list search inserts one job after the other where it fits best; at the paper's size it leaves
several points to the bound, for who is admitted and what shares a server is decided job by job. The
dive decides both together. Slot by slot in the order of time

1. the fluid program (`fluid.py`) says which jobs to admit and how much of each to do now; a job
   that would begin now and is admitted by a fraction is admitted or refused, and an end that it
   meets by a fraction, though it would need more workers now to meet it, is promised or given up,
   whichever the program is worth more with;
2. an integer program (`slot_packing.py`) finds what the servers can do of it, at the worth that the
   fluid program gives a worker of each job; who must run now to end in time is told apart;
3. what they do is fixed.

The margin of capacity that open slots lack is what real servers are expected to waste. Too little
of it and promises are broken late, where nothing mends them; too much and jobs are refused that
would have fitted. Several margins are tried, one dive each.
"""

from __future__ import annotations

import itertools
from threading import Event
from typing import cast

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.fluid import (
    TOUCHED,
    FluidProgram,
    most_columns,
)
from hindsched.solvers.families.oasis.packing_inequalities import PackingInequalities
from hindsched.solvers.families.oasis.progress import Placed, Progress, with_slots
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.slot_packing import Wish, pack_slot
from hindsched.solvers.oracles.base import BlockOracle

MARGINS = (0.05, 0.08, 0.03, 0.06, 0.1, 0.04, 0.12, 0.07)
"""Margins in the order in which they are tried."""
ROUNDS_OF_PACKING = 2
"""Rounds of packing inequalities before the first slot that a fluid program closes."""
SLOTS_OF_ROUND = 16
"""Slots from one further round to the next: plans change, and so does who shares a server."""
ADMITTED = 0.6
"""Share from which on a job that would begin now is admitted."""
MOST_WHOLE, MOST_COLUMNS = 15_000, 40_000
"""Columns of the fluid program above which late slots are added up in stretches, and above which it
is not built: it would take too long."""
FINES = (64, 32)
"""Slots that are not, from the first open one on, of dives by turns: half of them are closed before
the program is built anew. The more there are, the better and the longer a dive."""
SHARE_TO_JUDGE = 0.05
"""Share of the slots from which on they say how long the others take."""
STAKE = 2e-4
"""Least loss, relative to the objective, for which a torn end is decided."""
SMALL_WORTH = 1e-3
"""Least worth of a worker, relative to the job's utility over its work."""


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
        self,
        oracle: BlockOracle,
        prices: Floats,
        least: float,
        number: int,
        interrupted: Event,
    ) -> None:
        self.oracle, self._interrupted = cast(OasisOracle, oracle), interrupted
        self._seconds = 0.0
        self._prices, self._least = prices, least
        self._margin = MARGINS[number % len(MARGINS)]
        self._fluid: FluidProgram | None = None
        self._rounds = 0
        self._inequalities = PackingInequalities(self.oracle, interrupted)
        self._fine, self._fits = oracle.instance.horizon, True
        jobs = range(oracle.num_blocks)
        self._progress = Progress(np.zeros(len(jobs), dtype=np.int64), set(jobs), self._fine)
        if most_columns(self.oracle, self._fine) > MOST_WHOLE:
            self._fine = min(self._fine, FINES[number % len(FINES)])
        self._fits = most_columns(self.oracle, self._fine) <= MOST_COLUMNS
        self._first = self._progress.slot
        self._placed: dict[int, Placed] = {}
        self.failed = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.failed or self._progress.slot > self._progress.until

    def seconds_to_go(self) -> float:
        """Estimate of what the rest of the dive takes, once some slots are closed; else 0.

        A slot takes as long as many are open behind it, or by the root of how many where late ones
        are added up.
        """
        done = self._progress.slot - self._first
        left = self._progress.until - self._progress.slot + 1
        if self.is_over or done < SHARE_TO_JUDGE * (done + left):
            return 0.0
        rest = (left / (done + left)) ** (2.0 if self._fine >= self._progress.until else 1.5)
        return self._seconds * rest / (1.0 - rest)

    def step(self, seconds: float) -> None:
        """Do one piece: build the fluid program, a round of inequalities, or one slot.

        Parameters
        ----------
        seconds : float
            Limit of the programs that are solved; one that takes longer ends the dive.
        """
        if self.is_over:
            return
        if not self._fits:
            self.failed = True
        elif self._fluid is None or self._progress.slot > self._fluid.closed_until:
            self._fluid = FluidProgram(
                self.oracle, self._prices, self._least, self._margin, self._interrupted,
                self._progress, self._fine, self._inequalities,
            )  # fmt: skip
            self._rounds = 0
            self._progress.alive &= set(self._fluid.ends)
            self.failed = not self._progress.latest
        elif self._rounds < ROUNDS_OF_PACKING:
            self._rounds += 1
            if not self._fluid.solve(seconds):
                self.failed = True
            elif not self._fluid.add_packing_inequalities():
                self._rounds = ROUNDS_OF_PACKING
        else:
            begin = now()
            self._do_slot(self._fluid, seconds)
            self._seconds += now() - begin

    def _do_slot(self, fluid: FluidProgram, seconds: float) -> None:
        slot = self._progress.slot
        fluid.open_fully(slot)
        settled = self._settle(fluid, slot, seconds)
        if settled and slot % SLOTS_OF_ROUND == 0 and fluid.add_packing_inequalities():
            settled = self._settle(fluid, slot, seconds)
        if not settled:
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
        while fluid.solve(seconds):
            torn = []
            for job in sorted(self._progress.alive - self._progress.begun):
                column = fluid.workers.get((job, slot))
                if column is None or fluid.values[column] <= TOUCHED:
                    continue
                share = fluid.admitted(job)
                if TOUCHED < share < 1 - TOUCHED:
                    torn.append((share, job))
            if not torn:
                tear = self._urgent_tear(fluid, slot)
                if tear is None:
                    return True
                if not fluid.decide_end(*tear, seconds):
                    return False
                continue
            share, job = min(torn)
            if share < ADMITTED:
                fluid.drop(job)
                self._progress.alive.discard(job)
            else:
                _, job = max(torn)
                fluid.require(job)
                self._progress.begun.add(job)
        return False

    def _urgent_tear(self, fluid: FluidProgram, slot: int) -> tuple[int, int] | None:
        """Of ends that are met by a share, for want of workers now, the one with most at stake."""
        found, most_at_stake = None, STAKE * fluid.objective
        for job in sorted(self._progress.alive):
            column = fluid.workers.get((job, slot))
            task = self.oracle.block(job).task
            left = task.total - fluid.done(job)
            if column is None or left <= 0 or fluid.admitted(job) < ADMITTED:
                continue
            most = task.needed.size - 1
            met = [end for end in fluid.ends[job] if fluid.values[end.column] > TOUCHED]
            for end, later in itertools.pairwise(met):
                number = fluid.ends[job].index(end)
                due = left - end.later - most * (end.last - slot)
                stake = end.utility - later.utility
                if due > fluid.values[column] + TOUCHED and stake > most_at_stake:
                    found, most_at_stake = (job, number), stake
        return found

    def _wish(self, fluid: FluidProgram, job: int, slot: int) -> Wish | None:
        column = fluid.workers.get((job, slot))
        task = self.oracle.block(job).task
        left = task.total - fluid.done(job)
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
            due=left - chosen.later - most * (chosen.last - slot),
            due_worth=chosen.utility - later,
        )

    def solution(self) -> Solution | None:
        """The schedules of all jobs that were finished; None before the dive is over."""
        if not self.is_over or self.failed:
            return None
        return with_slots(self.oracle, None, self._placed)
