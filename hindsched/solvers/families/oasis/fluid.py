"""The fluid program: when jobs end and how many workers run in which slot, all fractional.

Servers are added up in groups, workers and PSs are fractional, and so are admissions and ends; but
few are torn in its optimum, because a job that is admitted may run in any slot until its end. Slots
are closed one after the other (`search.py`): what real servers did in one becomes a constant, and
the program says what that leaves for the others. Slots that are still open lack a margin of their
capacity, for real servers waste some of it.

Over a long horizon the slots that come late are added up in stretches, the longer the later they
come: a stretch has the capacity of its slots, and a job that ends in it has the utility of its
middle. The program is then built anew from time to time, from what was closed on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.door.work import is_counted, spend, units_of
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.sparse_program import SparseProgram
from hindsched.solvers.oracles.decisions import COMPLETES

SMALL = 1e-5
"""Differences in utility, relative to the bound, that the program does not see."""
UNIT = 200
"""Iterations of the solver that count as one unit of work."""
TORN_AGAIN = 2.0
"""Price of giving up a job that has begun, as a multiple of its utility."""

Stretch = tuple[int, int]
"""First and last of slots that are one to the program."""


def stretches(first: int, last: int, fine: int) -> list[Stretch]:
    """Single slots, then stretches of 2, 4, ... slots, about `fine` of each two of these lengths.

    >>> [b - a + 1 for a, b in stretches(11, 26, 4)]
    [1, 1, 1, 1, 2, 2, 4, 4]
    """
    found, size = list[Stretch](), 1
    while first <= last:
        for _ in range(fine if size == 1 else max(1, fine // 2)):
            if first <= last:
                found.append((first, min(last, first + size - 1)))
                first += size
        size *= 2
    return found


@dataclass
class Progress:
    """What a dive has decided: the program is built on it.

    Parameters
    ----------
    done : ndarray of int, shape (jobs,)
        Worker-slots of each job in closed slots.
    alive, begun : set of int
        Jobs that are not refused, and those that are admitted.
    slot : int
        First slot that is open.
    latest : dict
        Last slot in which it may be worth to end a job, as far as that is known.
    """

    done: Ints
    alive: set[int]
    begun: set[int] = field(default_factory=set[int])
    slot: int = 1
    latest: dict[int, int] = field(default_factory=dict[int, int])


class End(NamedTuple):
    """Completion slots of a job of nearly the same utility, and the column that says so."""

    first: int
    last: int
    utility: float
    column: int


class FluidProgram:
    """The fluid program of an instance.

    Parameters
    ----------
    oracle : OasisOracle
        In the layout of groups.
    prices : ndarray
        Prices that rule out ends which no solution better than `least` contains.
    least : float
        Objective of a known solution.
    margin : float
        Share of the capacity that open slots lack.
    interrupted : Event
        Set by Ctrl-C.
    progress : Progress
        What is decided; `close` writes down what is done.
    fine : int
        Slots after which others are added up.

    Attributes
    ----------
    closed_until : int
        Last slot that this program is good for.
    ends : dict
        By job.
    workers : dict
        Columns by job and first slot of a stretch.
    values : ndarray
        The last point.
    """

    def __init__(
        self, oracle: OasisOracle, prices: Floats, least: float, margin: float, interrupted: Event,
        progress: Progress, fine: int,
    ) -> None:  # fmt: skip
        self.oracle, self._progress = oracle, progress
        self._grid = stretches(progress.slot, oracle.instance.horizon, fine)
        single = [last for first, last in self._grid if first == last]
        self.closed_until = single[-1 if len(single) == len(self._grid) else len(single) // 2]
        self.ends: dict[int, list[End]] = {}
        self.workers: dict[tuple[int, int], int] = {}
        self._admission: dict[int, tuple[int, int]] = {}  # row, and column that gives the job up
        self._work: dict[int, list[int]] = {}  # rows by end
        self._limits: dict[Stretch, list[int]] = {}
        self._used: dict[tuple[int, int, int, Stretch], list[tuple[int, float]]] = {}
        self._program = SparseProgram()
        bound, (values, _) = oracle.bound(prices), oracle.block_values(prices)
        for job in sorted(progress.alive):
            spare = bound - float(values[job]) - least
            classes = list(self._classes(job, prices, spare, SMALL * bound))
            if classes:
                progress.latest[job] = classes[-1][1]
                self._add_job(job, classes)
        instance = oracle.instance
        for (side, group, resource, stretch), terms in self._used.items():
            servers = (oracle.worker_groups, oracle.ps_groups)[side]
            capacity = (instance.worker_capacity, instance.ps_capacity)[side]
            total = float(servers.size[group] * capacity[servers.first[group], resource])
            slots = (stretch[1] - stretch[0] + 1) * (1.0 - margin)
            row = self._program.row([(c, a / total) for c, a in terms], -math.inf, slots)
            self._limits.setdefault(stretch, []).append(row)
        self._program.load(interrupted, solver="simplex")
        self._highs = self._program.highs
        self.values = np.zeros(len(self._program.most))
        self._duals = np.zeros(0)

    def _most(self, job: int) -> int:
        return self.oracle.block(job).task.needed.size - 1

    def left(self, job: int) -> int:
        """Worker-slots of a job that are still to do."""
        return int(self.oracle.block(job).task.total - self._progress.done[job])

    def _classes(
        self, job: int, prices: Floats, spare: float, small: float
    ) -> Iterator[tuple[int, int, float]]:
        """First and last slot and utility of the classes of ends that are not ruled out."""
        task, most = self.oracle.block(job).task, self._most(job)
        if not most or self.left(job) <= 0:
            return
        known = self._progress.latest.get(job)
        begin = max(task.arrival, self._progress.slot)
        soonest = begin - (-self.left(job) // most) - 1
        runs: list[tuple[int, int, float]] = []
        for first, last in self._grid:
            if last < soonest or first > (known or first):
                continue
            utility = float(task.utilities[max(soonest, (first + last) // 2)])
            if utility <= small:
                break
            if runs and runs[-1][2] - utility < small:
                runs[-1] = (runs[-1][0], last, runs[-1][2])
            else:
                runs.append((max(soonest, first), last, utility))
        for first, last, utility in runs:
            if known is None:
                found = self.oracle.restricted_response(job, prices, {COMPLETES: (first, last)})
                if found is None or spare + found.value < 0:
                    continue
            yield first, last, utility

    def _add_job(self, job: int, classes: list[tuple[int, int, float]]) -> None:
        """Admission, and in each stretch its workers and PSs on groups of servers."""
        program, block, most = self._program, self.oracle.block(job), self._most(job)
        instance = self.oracle.instance
        ps_each = float(instance.ps_per_worker(instance.jobs[job]))
        ends = self.ends[job] = [End(*each, program.column(each[2], 1.0)) for each in classes]
        begun = job in self._progress.begun
        surrender = program.column(-(TORN_AGAIN - 1) * ends[0].utility, float(begun))
        admitted = [(column, 1.0) for column in (*(end.column for end in ends), surrender)]
        row = program.row(admitted, 1.0 if begun else -math.inf, 1.0)
        self._admission[job] = row, surrender
        arrival = block.task.arrival
        open_ = [each for each in self._grid if each[1] >= arrival and each[0] <= ends[-1].last]
        for stretch in open_:
            first, last = stretch
            slots = float(last - max(first, arrival) + 1)
            workers = self.workers[job, first] = program.column(0.0, most * slots)
            running = [(end.column, -most * slots) for end in ends if end.last >= first]
            program.row([(workers, 1.0), *running], -math.inf, 0.0)
            on_side: list[list[tuple[int, float]]] = []
            for side, (room, demand) in enumerate(
                ((block.worker_room, block.worker_demand), (block.ps_room, block.ps_demand))
            ):
                groups = np.flatnonzero(room).tolist()
                held = {group: program.column(0.0, room[group] * slots) for group in groups}
                on_side.append([(column, 1.0) for column in held.values()])
                for resource in np.flatnonzero(demand).tolist():
                    for group, column in held.items():
                        key = side, group, resource, stretch
                        self._used.setdefault(key, []).append((column, float(demand[resource])))
            program.row([(workers, -1.0), *on_side[0]], 0.0, 0.0)
            if ps_each:
                program.row([(workers, -ps_each), *on_side[1]], 0.0, math.inf)
        self._work[job] = []
        for number, end in enumerate(ends):
            done = [(self.workers[job, first], 1.0) for first, _ in open_ if first <= end.last]
            due = [(each.column, -float(self.left(job))) for each in ends[: number + 1]]
            self._work[job].append(program.row([*done, *due], 0.0, math.inf))

    def solve(self, seconds: float) -> bool:
        """Solve; whether an optimum was found in time."""
        if is_counted():
            self._highs.setOptionValue("simplex_iteration_limit", UNIT * units_of(seconds))
        self._program.solve(seconds)
        spend(1 + int(self._highs.getInfo().simplex_iteration_count) // UNIT)
        if self._program.is_optimal:
            self.values, self._duals = self._program.values(), self._program.duals()
        return self._program.is_optimal

    def admitted(self, job: int) -> float:
        """How much of a job the point admits."""
        return float(sum(self.values[end.column] for end in self.ends[job]))

    def worth(self, job: int) -> float:
        """What one more worker in an open slot is worth at the point."""
        return float(sum(max(0.0, self._duals[row]) for row in self._work[job]))

    def drop(self, job: int) -> None:
        """Refuse a job."""
        for end in self.ends[job]:
            self._highs.changeColBounds(end.column, 0.0, 0.0)

    def require(self, job: int) -> None:
        """Admit a job; giving it up later is dear."""
        row, surrender = self._admission[job]
        self._highs.changeColBounds(surrender, 0.0, 1.0)
        self._highs.changeRowBounds(row, 1.0, 1.0)

    def open_fully(self, slot: int) -> None:
        """Give a slot its whole capacity."""
        for row in self._limits.get((slot, slot), ()):
            self._highs.changeRowBounds(row, -math.inf, 1.0)

    def close(self, slot: int, done: dict[int, int]) -> None:
        """Fix a slot: what each job has done in it; ends until then are over for the others."""
        for job, ends in self.ends.items():
            column = self.workers.get((job, slot))
            if column is None:
                continue
            self._highs.changeColBounds(column, 0.0, 0.0)
            self._progress.done[job] += done.get(job, 0)
            left = max(0, self.left(job))
            for number, row in enumerate(self._work[job] if job in done else ()):
                for end in ends[: number + 1]:
                    self._highs.changeCoeff(row, end.column, -float(left))
            for end in ends if left else ():
                if end.last < slot - (-left) // self._most(job):
                    self._highs.changeColBounds(end.column, 0.0, 0.0)


def most_columns(oracle: OasisOracle, fine: int) -> int:
    """Columns of the first program at most, where prices rule out no ends; quickly counted."""
    first, last = np.array(stretches(1, oracle.instance.horizon, fine)).T
    blocks = [oracle.block(job) for job in range(oracle.num_blocks)]
    small = SMALL * sum(float(np.nanmax(block.task.utilities)) for block in blocks)
    return sum(
        int(((block.task.utilities[first] > small) & (last >= block.task.arrival)).sum())
        * (1 + int(np.count_nonzero(block.worker_room)) + int(np.count_nonzero(block.ps_room)))
        for block in blocks
    )
