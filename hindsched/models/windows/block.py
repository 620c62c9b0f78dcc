"""The block of one job, written once for batchsched and astraea, and the capacities that link them.

================================  ==============================================================
``u[k, t, n, g]``                 mode k starts in slot t; PS host n holds g of its workers. On
                                  one server g = N; without PSs over several servers n = -1
``y[m, L, t, h]``                 workers of type m on server h that stand beside no PS, in the
                                  window of L slots from t
``e[t]``                          the job's last slot is t: only where slots need not touch
================================  ==============================================================

A job takes one window with one unchanging placement. One PS host and the least sufficient number of
PSs are no loss of generality, so that the constraints on types, PSs and bandwidth ((2b)-(2e), (2g),
(2i) of batchsched; (3e)-(3j) of astraea) hold by the choice of columns, and "all on one server"
needs no binary: a column over several servers is never better on one. The block is exact; its
relaxation is much tighter than the printed one's.

Where slots need not touch, a job has in every slot any placement that the rules of a slot allow, or
none: the same columns with windows of one slot. What links them is the work that they do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.modes import in_pieces
from hindsched.models.declared import Symbol
from hindsched.models.windows.sets import Cell, Column, JobSets, WindowCluster, num_ps, uses
from hindsched.solutions.window_row import WindowRow

Expr = Any
MOST_WHOLE = 10**6
"""Coefficients of the work's row are whole numbers where none has to be larger."""


class Rule(NamedTuple):
    """How a family's paper numbers a constraint, and its sentence."""

    name: str
    doc: str


class BlockRules(NamedTuple):
    """The two constraints of a block: no worker outside the chosen window; those beside no PS."""

    within: Rule
    split: Rule


class Window(NamedTuple):
    """A schedule: slots (both inclusive), types (PS type -1 without PSs), counts by server."""

    first: int
    last: int
    worker_type: int
    ps_type: int
    workers: Ints
    ps: Ints


def block_symbols(unit: str) -> dict[str, Symbol]:
    """Indices and units of the block's components that both families name alike."""
    return {
        "u": Symbol("mode, slot, host, on host", "jobs"),
        "e": Symbol("slot", "jobs"),
        "eq_work": Symbol("", unit),
        "eq_slot": Symbol("slot", unit),
        "eq_end": Symbol("slot", unit),
    }


def add_rule(block: Any, rule: Rule, index: Any, written: Callable[..., Expr]) -> None:
    """Add a constraint under the number that the family's paper has for it."""
    block.add_component(rule.name, pyo.Constraint(index, rule=written, doc=rule.doc))


def add_job(b: Any, job: JobSets, rules: BlockRules, relax: bool) -> JobBlock:
    """Fill a Pyomo block with a job's variables and constraints.

    Parameters
    ----------
    b : pyomo Block
        Receives them.
    job : JobSets
        What may be chosen; with rates the slots need not touch.
    rules : BlockRules
        The family's names of two constraints.
    relax : bool
        Drop integrality.
    """
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    b.u = pyo.Var(
        job.columns, domain=binary,
        doc="(ours) a mode starts in a slot on a PS host that holds so many of its workers",
    )  # fmt: skip
    b.y = pyo.Var(
        list(job.most_beside), domain=whole, bounds=lambda _, *i: (0, job.most_beside[i]),
        doc="(ours) workers on a server beside no PS, in a window",
    )  # fmt: skip
    servers_of = defaultdict(list)
    for m, L, t, h in job.most_beside:
        servers_of[m, L, t].append(h)

    def within(b: Any, m: int, L: int, t: int, h: int) -> Expr:
        most = job.most_beside[m, L, t, h]
        return b.y[m, L, t, h] <= pyo.quicksum(
            min(most, job.modes[column[0]].workers) * b.u[column]
            for column in job.columns_of[m, L, t]
        )

    def split(b: Any, m: int, L: int, t: int) -> Expr:
        chosen = pyo.quicksum(job.beside(c) * b.u[c] for c in job.columns_of[m, L, t])
        return pyo.quicksum(b.y[m, L, t, h] for h in servers_of[m, L, t]) == chosen

    add_rule(b, rules.within, list(job.most_beside), within)
    add_rule(b, rules.split, list(job.columns_of), split)
    return JobBlock(b, job)


def add_job_in_pieces(b: Any, job: JobSets, work: int, rules: BlockRules, relax: bool) -> JobBlock:
    """Fill a Pyomo block with a job's placements by slot, its work and its end."""
    made = add_job(b, job, rules, relax)
    placed: dict[int, list[Column]] = defaultdict(list)
    for column in job.columns:
        placed[column[1]].append(column)
    slots = sorted(placed)
    amounts, needed = _amounts(job.rates or (), work)
    binary = pyo.UnitInterval if relax else pyo.Binary
    b.e = pyo.Var(slots, domain=binary, doc="(ours) the job's last slot")

    def eq_work(b: Any) -> Expr:
        done = pyo.quicksum(amounts[column[0]] * b.u[column] for column in job.columns)
        return done >= needed * pyo.quicksum(b.e.values())

    if slots:
        b.eq_work = pyo.Constraint(rule=eq_work, doc="(ours) a job that runs does its work")

    @b.Constraint(slots, doc="(ours) one placement in a slot")
    def eq_slot(b: Any, t: int) -> Expr:
        return pyo.quicksum(b.u[column] for column in placed[t]) <= 1

    @b.Constraint(slots, doc="(ours) nothing runs after the last slot")
    def eq_end(b: Any, t: int) -> Expr:
        runs = pyo.quicksum(b.u[column] for column in placed[t])
        return runs <= pyo.quicksum(b.e[s] for s in slots if s >= t)

    return made


def _amounts(rates: Sequence[Fraction], work: int) -> tuple[list[float], float]:
    """Coefficients of the work's row and its right side, whole where they are small enough."""
    units = lcm(*(rate.denominator for rate in rates))
    whole = [int(rate * units) for rate in rates]
    step = gcd(*whole, work * units) or 1
    numbers = [value // step for value in (*whole, work * units)]
    if max(numbers) > MOST_WHOLE:
        return [float(rate / work) for rate in rates], 1.0
    return [float(value) for value in numbers[:-1]], float(numbers[-1])


def use_by_cell(cluster: WindowCluster, blocks: Mapping[int, JobBlock]) -> dict[Cell, list[Expr]]:
    """What the jobs use of every (server, resource, slot), sorted: left sides of capacities."""
    used: dict[Cell, list[Expr]] = defaultdict(list)
    for made in blocks.values():
        letters = {"u": made.block.u, "y": made.block.y}
        for letter, index, server, slots, amounts in uses(cluster, made.job):
            element = letters[letter][index]
            for r in np.flatnonzero(amounts).tolist():
                taken = float(amounts[r]) * element
                for t in slots:
                    used[server, r, t].append(taken)
    return {cell: used[cell] for cell in sorted(used)}


@dataclass(frozen=True)
class JobBlock:
    """A job's Pyomo block: its part of an objective, and the way to and from schedules.

    Parameters
    ----------
    block : pyomo Block
        With variables ``u``, ``y`` and, in pieces, ``e``.
    job : JobSets
        What they stand for.
    """

    block: Any
    job: JobSets

    @property
    def chosen(self) -> Expr:
        """1 if the job runs."""
        return pyo.quicksum((self.block.u if self.job.rates is None else self.block.e).values())

    def worth(self, value: Callable[[int], float]) -> Expr:
        """The value of the last slot in which the job runs."""
        if self.job.rates is not None:
            return pyo.quicksum(value(t) * end for t, end in self.block.e.items())
        last = self.job.last_slot
        return pyo.quicksum(
            value(last(column)) * self.block.u[column] for column in self.job.columns
        )

    def read(self, cluster: WindowCluster) -> list[Window]:
        """Windows at the variables' values, by time; none if the job is not scheduled."""
        chosen = [c for c in self.job.columns if (self.block.u[c].value or 0.0) >= 0.5]
        return [self._window(cluster, c) for c in sorted(chosen, key=lambda column: column[1])]

    def _window(self, cluster: WindowCluster, column: Column) -> Window:
        k, t, n, g = column
        m, p, q, count, length = self.job.modes[k]
        workers = np.zeros(len(cluster.server_capacity), dtype=np.int64)
        ps = np.zeros_like(workers)
        for h in range(len(workers)):
            if not q and (m, length, t, h) in self.job.most_beside:
                workers[h] = round(self.block.y[m, length, t, h].value or 0.0)
        if n >= 0:
            workers[n] += g
            ps[n] = num_ps(cluster, m, p, count - g) if cluster.has_ps else 0
        return Window(t, t + length - 1, m, p if cluster.has_ps else -1, workers, ps)

    def write(self, cluster: WindowCluster, rows: Sequence[WindowRow]) -> None:
        """Set the variables to rows, as far as the columns can express them.

        A row whose host has spare PSs, or more workers than its duration needs, is expressed by a
        column that uses no more; without such a column those that start there get no values.
        """
        for element in (*self.block.u.values(), *self.block.y.values()):
            element.value = 0
        if self.job.rates is not None:
            last = max((row.last for row in rows), default=0)
            for t, end in self.block.e.items():
                end.value = int(t == last)
            rows = [
                replace(row, first=t, last=t)
                for row in rows for t in range(row.first, row.last + 1)
            ]  # fmt: skip
        for row in rows:
            self._write_window(cluster, row)

    def _write_window(self, cluster: WindowCluster, row: WindowRow) -> None:
        starting = [column for column in self.job.columns if column[1] == row.first]
        if (rates := self.job.rates) is not None:
            starting.sort(key=lambda column: -rates[column[0]])
        for column, beside in self._matches(cluster, starting, row):
            m, _, _, _, length = self.job.modes[column[0]]
            self.block.u[column].value = 1
            for h in np.flatnonzero(beside).tolist():
                self.block.y[m, length, row.first, h].value = int(beside[h])
            return
        for column in starting:
            self.block.u[column].value = None

    def _matches(
        self, cluster: WindowCluster, columns: Sequence[Column], row: WindowRow
    ) -> Iterator[tuple[Column, Ints]]:
        """Columns that use no more than a row, with their workers beside no PS."""
        for column in columns:
            k, t, n, g = column
            m, p, q, count, length = self.job.modes[k]
            if length > row.slots or m != row.worker_type:
                continue
            if cluster.has_ps and p != row.ps_type:
                continue
            left = row.workers.copy()
            if n >= 0:
                left[n] -= g
                needed_ps = num_ps(cluster, m, p, count - g) if cluster.has_ps else 0
                if left[n] < 0 or row.ps[n] < needed_ps:
                    continue
            most = [self.job.most_beside.get((m, length, t, h), 0) for h in range(len(left))]
            needed = 0 if q else count - g
            beside = np.minimum(np.minimum(left, most), needed)
            if beside.sum() >= needed:
                before = np.cumsum(beside) - beside
                yield column, np.clip(needed - before, 0, beside)


def refuse_in_pieces(formulation: str) -> None:
    """Refuse what only jobs in one window have: the papers' subproblem and dual."""
    if in_pieces(formulation):
        raise InputError("formulation", formulation, "must be one of jobs in one window")
