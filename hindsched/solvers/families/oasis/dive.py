"""Schedules at scale: dive through the slots, fluid behind and real servers in front.

Insertion takes one job after the other and leaves several points to the bound, for who is admitted
and what shares a server is decided job by job. The dive decides both together. Slot by slot in the
order of time

1. the fluid program (`fluid.py`) says which jobs to admit and how much of each to do now; a job
   that would begin now and is admitted by a fraction is admitted or refused;
2. an integer program (`slot_packing.py`) finds what the servers can do of it, at the worth that the
   fluid program gives a worker of each job; who must run now to end in time is told apart;
3. what they do is fixed.

The margin of capacity that open slots lack is what real servers are expected to waste. Too little
of it and promises are broken late, where nothing mends them; too much and jobs are refused that
would have fitted. Several margins are tried, one dive each.
"""

from __future__ import annotations

from threading import Event
from typing import cast

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.fluid import FluidProgram, Progress, most_columns
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.slot_packing import Wish, pack_slot
from hindsched.solvers.oracles.base import BlockOracle

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
        self, oracle: BlockOracle, prices: Floats, least: float, number: int, interrupted: Event
    ) -> None:
        self.oracle, self._interrupted = cast(OasisOracle, oracle), interrupted
        self._prices, self._least = prices, least
        self._margin = MARGINS[number % len(MARGINS)]
        self._fluid: FluidProgram | None = None
        self._seconds = 0.0
        jobs = oracle.num_blocks
        self._progress = Progress(np.zeros(jobs, dtype=np.int64), set(range(jobs)))
        self._horizon = self._fine = oracle.instance.horizon
        if most_columns(self.oracle, self._fine) > MOST_WHOLE:
            self._fine = min(self._fine, FINES[number % len(FINES)])
        self._placed: dict[int, dict[int, tuple[Ints, Ints]]] = {}
        self.failed = most_columns(self.oracle, self._fine) > MOST_COLUMNS

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
        begin = now()
        if self._fluid is None or self._progress.slot > self._fluid.closed_until:
            self._fluid = FluidProgram(
                self.oracle, self._prices, self._least, self._margin, self._interrupted,
                self._progress, self._fine,
            )  # fmt: skip
            self._progress.alive &= set(self._fluid.ends)
            self.failed = not self._progress.latest
        else:
            self._do_slot(self._fluid, seconds)
        self._seconds += now() - begin

    def _do_slot(self, fluid: FluidProgram, seconds: float) -> None:
        slot = self._progress.slot
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
        while fluid.solve(seconds):
            torn = []
            for job in sorted(self._progress.alive - self._progress.begun):
                column = fluid.workers.get((job, slot))
                if column is not None and fluid.values[column] > TOUCHED:
                    share = fluid.admitted(job)
                    torn += [(share, job)] if TOUCHED < share < 1 - TOUCHED else []
            if not torn:
                return True
            share, job = min(torn)
            if share < ADMITTED:
                fluid.drop(job)
                self._progress.alive.discard(job)
            else:
                _, job = max(torn)
                fluid.require(job)
                self._progress.begun.add(job)
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
        shapes = [
            (self._horizon, len(servers))
            for servers in (instance.worker_servers, instance.ps_servers)
        ]
        deployed: tuple[dict[str, Ints], dict[str, Ints]] = ({}, {})
        for number, job in enumerate(instance.jobs):
            counts = [np.zeros(shape, dtype=np.int64) for shape in shapes]
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
