"""The fluid program: when jobs end and how many workers run in which slot, all fractional.

Servers are added up in groups, workers and PSs are fractional, and so are admissions and ends; but
few are torn in its optimum, because a job that is admitted may run in any slot until its end. Slots
are closed one after the other (`dive.py`): what real servers did in one becomes a constant, and the
program says what that leaves for the others. Slots that are still open lack a margin of their
capacity, for real servers waste some of it.

Inequalities of the packing on one server are added where its point breaks them: they know that two
large PSs do not share a server, which sums over a group do not.

A job that is admitted by a share runs on a group of servers by that share at most. These rows are a
third of the program and hardly any of them binds, so over a long horizon they are left out.

Over a long horizon the slots that come late are added up in stretches, the longer the later they
come: a stretch has the capacity of its slots, and a job that ends in it has the utility of its
middle. The program is then built anew from time to time, from what was closed on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.door.work import is_counted, spend, units_of
from hindsched.solvers.families.oasis.packing_inequalities import PackingInequalities
from hindsched.solvers.families.oasis.progress import Progress, is_long
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.sparse_program import SparseProgram
from hindsched.solvers.oracles.decisions import COMPLETES

SMALL = 1e-5
"""Differences in utility, relative to the bound, that the program does not see."""
TOUCHED = 1e-6
"""Values above it are not 0."""
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

    def since(self, slot: int) -> int:
        """How many from a slot on."""
        return max(0, self.last - max(self.first, slot) + 1)


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


@dataclass(frozen=True)
class Ends:
    """Completion slots of a job with nearly the same utility.

    Parameters
    ----------
    first, last : int
        The slots.
    utility : float
        That of the first one; of a stretch that of its middle.
    column : int
        The column that says that the job ends in one of them.
    later : int
        Worker-slots that are done behind the last slot that is decided, if it ends there.
    """

    first: int
    last: int
    utility: float
    column: int
    later: int = 0


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
    inequalities : PackingInequalities
        Where those of the packing come from.
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
        inequalities: PackingInequalities,
    ) -> None:
        self.oracle, self.margin, self._interrupted = oracle, margin, interrupted
        self._inequalities = inequalities
        self._opened: Stretch | None = None
        self._progress = progress
        self._grid = stretches(progress.slot, progress.until, fine)
        single = [each.last for each in self._grid if each.size == 1]
        whole = len(single) == len(self._grid)
        self.closed_until = single[-1 if whole else len(single) // 2]
        """Last slot that this program is good for."""
        self.ends: dict[int, list[Ends]] = {}
        self.workers: dict[tuple[int, int], int] = {}
        self._admission: dict[int, int] = {}
        self._work: dict[int, list[int]] = {}
        self._surrender: dict[int, int] = {}
        self._promised: dict[int, int] = {}
        self._held: dict[tuple[int, int, Stretch], list[tuple[int, int]]] = {}
        self._limits: dict[Stretch, list[tuple[int, float]]] = {}
        self._build(prices, least)
        self.num_columns = len(self._program.value)
        self.values = np.zeros(self.num_columns)
        self._duals = np.zeros(len(self._program.low))
        self.objective = math.nan

    def _build(self, prices: Floats, least: float) -> None:
        program, oracle = SparseProgram(), self.oracle
        self._program = program
        bound = oracle.bound(prices)
        values, _ = oracle.block_values(prices)
        used: dict[tuple[int, int, int, Stretch], list[tuple[int, float]]] = {}
        for job in sorted(self._progress.alive):
            if self._left(job) <= 0:
                continue
            spare = bound - float(values[job]) - least
            classes = list(self._ends_of(job, prices, spare, SMALL * bound))
            if classes:
                self._progress.latest[job] = classes[-1][1]
            if classes or job in self._progress.later:
                self._add_job(job, classes, used)
        capacity = self._capacity()
        for (side, group, resource, stretch), terms in used.items():
            total = capacity[side][group, resource]
            scaled = [(column, amount / total) for column, amount in terms]
            row = program.row(scaled, -math.inf, stretch.size * (1.0 - self.margin))
            self._limits.setdefault(stretch, []).append((row, float(stretch.size)))
        self._loaded = program.load(self._interrupted, solver="simplex")
        self._highs = self._loaded.highs

    def _capacity(self) -> tuple[Floats, Floats]:
        instance, oracle = self.oracle.instance, self.oracle
        return (
            instance.worker_capacity[oracle.worker_groups.first]
            * oracle.worker_groups.size[:, None],
            instance.ps_capacity[oracle.ps_groups.first] * oracle.ps_groups.size[:, None],
        )

    def _ends_of(
        self, job: int, prices: Floats, spare: float, small: float
    ) -> Iterator[tuple[int, int, float]]:
        """First and last slot and utility of the classes of ends that are not ruled out."""
        task = self.oracle.block(job).task
        most, known = task.needed.size - 1, self._progress.latest.get(job)
        if not most:
            return
        begin = max(task.arrival, self._progress.slot)
        soonest = begin - (-self._left(job) // most) - 1
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

    def _most(self, job: int) -> int:
        """Workers of a job in one slot at most."""
        return int(self.oracle.block(job).task.needed.size - 1)

    def _left(self, job: int) -> int:
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
        ends = [Ends(*each, program.column(each[2], 1.0)) for each in classes]
        if (later := self._progress.later.get(job)) is not None:
            column, until = program.column(later.utility, 1.0), self._progress.until
            ends.append(Ends(until, until, later.utility, column, later.work))
        self.ends[job] = ends
        admitted = [(end.column, 1.0) for end in ends]
        begun = job in self._progress.begun
        surrender = program.column(-(TORN_AGAIN - 1) * ends[0].utility, float(begun))
        self._surrender[job] = surrender
        low = 1.0 if begun else -math.inf
        self._admission[job] = program.row([*admitted, (surrender, 1.0)], low, 1.0)
        sides = (
            (block.worker_room, block.worker_demand),
            (block.ps_room, block.ps_demand),
        )
        open_stretches = [
            stretch for stretch in self._grid
            if stretch.since(task.arrival) and stretch.first <= ends[-1].last
        ]  # fmt: skip
        for stretch in open_stretches:
            slots = float(stretch.since(task.arrival))
            running = [end.column for end in ends if end.last >= stretch.first]
            workers = program.column(0.0, most * slots)
            self.workers[job, stretch.first] = workers
            at_once = [(workers, 1.0), *((c, -most * slots) for c in running)]
            program.row(at_once, -math.inf, 0.0)
            held: list[list[int]] = []
            for side, (room, demand) in enumerate(sides):
                held.append([])
                for group in np.flatnonzero(room).tolist():
                    column = program.column(0.0, float(room[group]) * slots)
                    held[side].append(column)
                    self._held.setdefault((side, group, stretch), []).append((job, column))
                    if side == 0 and room[group] < most and not is_long(self.oracle):
                        limit = [(c, -float(room[group]) * slots) for c in running]
                        program.row([(column, 1.0), *limit], -math.inf, 0.0)
                    for resource in np.flatnonzero(demand).tolist():
                        entry = (column, float(demand[resource]))
                        used.setdefault((side, group, resource, stretch), []).append(entry)
            program.row([(workers, 1.0), *((c, -1.0) for c in held[0])], 0.0, 0.0)
            if ps_each:
                terms = [(workers, -ps_each), *((c, 1.0) for c in held[1])]
                program.row(terms, 0.0, math.inf)
        self._work[job] = []
        for number, end in enumerate(ends):
            done = [
                (self.workers[job, stretch.first], 1.0)
                for stretch in open_stretches if stretch.first <= end.last
            ]  # fmt: skip
            due = [(each.column, -self._owed(job, each)) for each in ends[: number + 1]]
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

    def done(self, job: int) -> int:
        """Worker-slots of a job that were done in closed slots."""
        return int(self._progress.done[job])

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
        self._opened = Stretch(slot, slot)
        for row, total in self._limits.get(self._opened, ()):
            self._highs.changeRowBounds(row, -math.inf, total)

    def close(self, slot: int, done: dict[int, int]) -> None:
        """Fix a slot: what each job has done in it; ends until then are over for the others."""
        for job, ends in self.ends.items():
            column = self.workers.get((job, slot))
            if column is None:
                continue
            self._highs.changeColBounds(column, 0.0, 0.0)
            if job in done:
                self._progress.done[job] += done[job]
                self._owe(job)
            if self._left(job) > 0:
                self._rule_out_missed(job, ends, slot)

    def _rule_out_missed(self, job: int, ends: list[Ends], slot: int) -> None:
        """Rule out ends that are met no more; those behind a promised one are open then."""
        most = self._most(job)
        met = [end.last >= slot - (-self._left(job) + end.later) // most for end in ends]
        promised = self._promised.get(job)
        missed = promised is not None and not met[promised]
        if missed:
            del self._promised[job]
        for end, is_met in zip(ends, met, strict=True):
            if not is_met or missed:
                self._highs.changeColBounds(end.column, 0.0, float(is_met))

    def _owe(self, job: int) -> None:
        """Ask open slots for what is left of a job, however small the share that ends in them."""
        for number, row in enumerate(self._work[job]):
            for end in self.ends[job][: number + 1]:
                self._highs.changeCoeff(row, end.column, -self._owed(job, end))

    def _owed(self, job: int, end: Ends) -> float:
        return max(0.0, float(self._left(job) - end.later))

    def decide_end(self, job: int, number: int, seconds: float) -> bool:
        """Let a job end by one of its ends or later, whichever is worth more; False without one."""
        ends, worth = self.ends[job], list[float]()
        sides = (ends[number + 1 :], ends[: number + 1])
        for side in sides:
            with self._without(side):
                worth.append(self.objective if self.solve(seconds) else -math.inf)
        if max(worth) == -math.inf:
            return False
        for end in sides[int(np.argmax(worth))]:
            self._highs.changeColBounds(end.column, 0.0, 0.0)
        if worth[0] >= worth[1]:
            self._promised[job] = number
        return True

    @contextmanager
    def _without(self, ends: list[Ends]) -> Iterator[None]:
        """Rule ends out for a while."""
        columns = [end.column for end in ends]
        before = [self._highs.getCol(column)[3] for column in columns]
        for column in columns:
            self._highs.changeColBounds(column, 0.0, 0.0)
        yield
        for column, most in zip(columns, before, strict=True):
            self._highs.changeColBounds(column, 0.0, most)

    def add_packing_inequalities(self) -> int:
        """Cut off what one server of a group cannot hold; return how many rows were added."""
        groups, added = (self.oracle.worker_groups, self.oracle.ps_groups), 0
        for (side, group, stretch), held in self._held.items():
            if stretch.first < self._progress.slot:
                continue
            size = float(groups[side].size[group]) * stretch.size
            values = self.values[[column for _, column in held]] / size
            units = {
                job: float(value)
                for (job, _), value in zip(held, values, strict=True)
                if value > TOUCHED
            }
            weights = self._inequalities.violated(side, group, units)
            if weights is None:
                continue
            columns = [(column, weights[job]) for job, column in held if job in weights]
            row = self._highs.getNumRow()
            share = 1.0 if stretch == self._opened else 1.0 - self.margin
            self._highs.addRow(
                -math.inf, size * share, len(columns),
                np.array([column for column, _ in columns], dtype=np.int32),
                np.array([weight for _, weight in columns]),
            )  # fmt: skip
            self._limits.setdefault(stretch, []).append((row, size))
            added += 1
        spend(1 + added // 20)
        return added


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
