"""The fluid program: when jobs end and how many workers run in which slot, all fractional.

Servers are added up in groups, workers and PSs are fractional, and so are admissions and ends; but
few are torn in its optimum, because a job that is admitted may run in any slot until its end. Slots
are closed one after the other (`dive.py`): what real servers did in one becomes a constant, and the
program says what that leaves for the others. Slots that are still open lack a margin of their
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


class Stretch(NamedTuple):
    """Slots, both inclusive, that are one to the program."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many."""
        return self.last - self.first + 1


def stretches(first: int, last: int, fine: int) -> list[Stretch]:
    """Single slots, then stretches of 2, 4, ... slots, about `fine` of each two of these lengths.

    >>> [each.size for each in stretches(11, 26, 4)]
    [1, 1, 1, 1, 2, 2, 4, 4]
    """
    found, size = list[Stretch](), 1
    while first <= last:
        for _ in range(fine if size == 1 else max(1, fine // 2)):
            if first <= last:
                found.append(Stretch(first, min(last, first + size - 1)))
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


class Ends(NamedTuple):
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
    """

    def __init__(
        self,
        oracle: OasisOracle,
        prices: Floats,
        least: float,
        margin: float,
        interrupted: Event,
        progress: Progress,
        fine: int,
    ) -> None:
        self.oracle, self._margin, self._progress = oracle, margin, progress
        self._grid = stretches(progress.slot, oracle.instance.horizon, fine)
        single = [each.last for each in self._grid if each.size == 1]
        whole = len(single) == len(self._grid)
        self.closed_until = single[-1 if whole else len(single) // 2]
        """Last slot that this program is good for."""
        self.ends: dict[int, list[Ends]] = {}
        self.workers: dict[tuple[int, int], int] = {}
        self._admission: dict[int, int] = {}
        self._work: dict[int, list[int]] = {}
        self._surrender: dict[int, int] = {}
        self._limits: dict[Stretch, list[int]] = {}
        self._program = SparseProgram()
        self._build(prices, least)
        self._loaded = self._program.load(interrupted, solver="simplex")
        self._highs = self._loaded.highs
        self.values = np.zeros(len(self._program.value))
        self._duals = np.zeros(len(self._program.low))
        self.objective = math.nan

    def _build(self, prices: Floats, least: float) -> None:
        bound = self.oracle.bound(prices)
        values, _ = self.oracle.block_values(prices)
        used: dict[tuple[int, int, int, Stretch], list[tuple[int, float]]] = {}
        for job in sorted(self._progress.alive):
            if self.left(job) <= 0:
                continue
            spare = bound - float(values[job]) - least
            classes = list(self._ends_of(job, prices, spare, SMALL * bound))
            if classes:
                self._progress.latest[job] = classes[-1][1]
                self._add_job(job, classes, used)
        instance, oracle = self.oracle.instance, self.oracle
        capacity = (
            instance.worker_capacity[oracle.worker_groups.first]
            * oracle.worker_groups.size[:, None],
            instance.ps_capacity[oracle.ps_groups.first] * oracle.ps_groups.size[:, None],
        )
        for (side, group, resource, stretch), terms in used.items():
            total = capacity[side][group, resource]
            scaled = [(column, amount / total) for column, amount in terms]
            row = self._program.row(scaled, -math.inf, stretch.size * (1.0 - self._margin))
            self._limits.setdefault(stretch, []).append(row)

    def _ends_of(
        self, job: int, prices: Floats, spare: float, small: float
    ) -> Iterator[tuple[int, int, float]]:
        """First and last slot and utility of the classes of ends that are not ruled out."""
        task = self.oracle.block(job).task
        most, known = task.needed.size - 1, self._progress.latest.get(job)
        if not most:
            return
        begin = max(task.arrival, self._progress.slot)
        soonest = begin - (-self.left(job) // most) - 1
        runs: list[tuple[int, int, float]] = []
        for stretch in self._grid:
            if stretch.last < soonest or stretch.first > (known or stretch.first):
                continue
            middle = max(soonest, (stretch.first + stretch.last) // 2)
            utility = float(task.utilities[middle])
            if utility <= small:
                break
            if runs and runs[-1][2] - utility < small:
                runs[-1] = (runs[-1][0], stretch.last, runs[-1][2])
            else:
                runs.append((max(soonest, stretch.first), stretch.last, utility))
        for first, last, utility in runs:
            if known is None:
                found = self.oracle.restricted_response(job, prices, {COMPLETES: (first, last)})
                if found is None or spare + found.value < 0:
                    continue
            yield first, last, utility

    def left(self, job: int) -> int:
        """Worker-slots of a job that are still to do."""
        return int(self.oracle.block(job).task.total - self._progress.done[job])

    def _add_job(
        self,
        job: int,
        classes: list[tuple[int, int, float]],
        used: dict[tuple[int, int, int, Stretch], list[tuple[int, float]]],
    ) -> None:
        program, block = self._program, self.oracle.block(job)
        task, most = block.task, block.task.needed.size - 1
        instance = self.oracle.instance
        ps_each = float(instance.ps_per_worker(instance.jobs[job]))
        ends = self.ends[job] = [Ends(*each, program.column(each[2], 1.0)) for each in classes]
        begun = job in self._progress.begun
        surrender = program.column(-(TORN_AGAIN - 1) * ends[0].utility, float(begun))
        self._surrender[job] = surrender
        admitted = [(end.column, 1.0) for end in ends]
        low = 1.0 if begun else -math.inf
        self._admission[job] = program.row([*admitted, (surrender, 1.0)], low, 1.0)
        sides = (
            (block.worker_room, block.worker_demand),
            (block.ps_room, block.ps_demand),
        )
        stretches = [
            stretch
            for stretch in self._grid
            if stretch.last >= task.arrival and stretch.first <= ends[-1].last
        ]
        for stretch in stretches:
            slots = float(stretch.last - max(stretch.first, task.arrival) + 1)
            workers = program.column(0.0, most * slots)
            self.workers[job, stretch.first] = workers
            running = [(e.column, -most * slots) for e in ends if e.last >= stretch.first]
            program.row([(workers, 1.0), *running], -math.inf, 0.0)
            held: tuple[list[int], list[int]] = ([], [])
            for side, (room, demand) in enumerate(sides):
                for group in np.flatnonzero(room).tolist():
                    column = program.column(0.0, float(room[group]) * slots)
                    held[side].append(column)
                    for resource in np.flatnonzero(demand).tolist():
                        entry = (column, float(demand[resource]))
                        used.setdefault((side, group, resource, stretch), []).append(entry)
            program.row([(workers, 1.0), *((c, -1.0) for c in held[0])], 0.0, 0.0)
            if ps_each:
                terms = [(workers, -ps_each), *((c, 1.0) for c in held[1])]
                program.row(terms, 0.0, math.inf)
        self._work[job] = []
        for number, end in enumerate(ends):
            done = [(self.workers[job, s.first], 1.0) for s in stretches if s.first <= end.last]
            due = [(each.column, -float(self.left(job))) for each in ends[: number + 1]]
            self._work[job].append(program.row([*done, *due], 0.0, math.inf))

    def solve(self, seconds: float) -> bool:
        """Solve; whether an optimum was found in time."""
        if is_counted():
            most = UNIT * units_of(seconds)
            self._highs.setOptionValue("simplex_iteration_limit", most)
        self._loaded.solve(seconds)
        spend(1 + int(self._highs.getInfo().simplex_iteration_count) // UNIT)
        if not self._loaded.is_optimal:
            return False
        self.values, self._duals = self._loaded.values(), self._loaded.duals()
        self.objective = -self._loaded.objective
        return True

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
        self._highs.changeColBounds(self._surrender[job], 0.0, 1.0)
        self._highs.changeRowBounds(self._admission[job], 1.0, 1.0)

    def open_fully(self, slot: int) -> None:
        """Give a slot its whole capacity."""
        for row in self._limits.get(Stretch(slot, slot), ()):
            self._highs.changeRowBounds(row, -math.inf, 1.0)

    def close(self, slot: int, done: dict[int, int]) -> None:
        """Fix a slot: what each job has done in it; ends until then are over for the others."""
        for job, ends in self.ends.items():
            column = self.workers.get((job, slot))
            if column is None:
                continue
            self._highs.changeColBounds(column, 0.0, 0.0)
            if job in done:
                self._progress.done[job] += done[job]
                left = max(0.0, float(self.left(job)))
                for number, row in enumerate(self._work[job]):
                    for end in ends[: number + 1]:
                        self._highs.changeCoeff(row, end.column, -left)
            if self.left(job) > 0:
                most = self.oracle.block(job).task.needed.size - 1
                for end in ends:
                    if end.last < slot - (-self.left(job)) // most:
                        self._highs.changeColBounds(end.column, 0.0, 0.0)


def most_columns(oracle: OasisOracle, fine: int) -> int:
    """Columns of the first program at most, where prices rule out no ends; quickly counted."""
    first = np.array([each.first for each in stretches(1, oracle.instance.horizon, fine)])
    last = np.append(first[1:] - 1, oracle.instance.horizon)
    blocks = [oracle.block(job) for job in range(oracle.num_blocks)]
    small = SMALL * sum(float(np.nanmax(block.task.utilities)) for block in blocks)
    return sum(
        int(((block.task.utilities[first] > small) & (last >= block.task.arrival)).sum())
        * (1 + int(np.count_nonzero(block.worker_room)) + int(np.count_nonzero(block.ps_room)))
        for block in blocks
    )
