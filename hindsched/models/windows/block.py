"""The block of one job in its default form, written once for batchsched and astraea.

================================  ==============================================================
``u[k, t, n, g]``                 mode k starts in slot t; PS host n holds g of its workers. On
                                  one server g = N; without PSs over several servers n = -1
``y[m, L, t, h]``                 workers of type m on server h that stand beside no PS, in the
                                  window of L slots from t
================================  ==============================================================

A job takes one window with one unchanging placement. One PS host and the least sufficient number of
PSs are no loss of generality, so that the constraints on types, PSs and bandwidth ((2b)-(2e), (2g),
(2i) of batchsched; (3e)-(3j) of astraea) hold by the choice of columns, and "all on one server"
needs no binary: a column over several servers is never better on one. The block is exact; its
relaxation is much tighter than the printed one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.models.algebra import Expr, Model, Use, binary_domain, integer_domain
from hindsched.models.windows.sets import (
    Column,
    WindowJobSets,
    host_use,
    num_ps,
    window_row,
)
from hindsched.solutions.window_solution import WindowRow


class CapacityRows(NamedTuple):
    """CapacityRows rows (server, resource, slot), which link the jobs."""

    name: str  # the oracle's
    number: str  # the paper's
    doc: str
    kinds: range  # which of the cluster's resources they are about


@dataclass(frozen=True)
class Family:
    """What a family says of one of its instances."""

    cluster: Any  # the servers as the rules see them: a `WindowInstance`
    capacities: tuple[CapacityRows, ...]  # rows that link the jobs
    names: Mapping[str, Sequence[str]]  # by index
    solution: Callable[..., Any]  # of an instance, rows by job and a formulation
    within: str  # number of the block's rows "no worker of a window that is not chosen"
    split: str  # number of its rows "the chosen mode's workers beside no PS"

    def by_name(self, values: Floats) -> dict[str, Floats]:
        """Values by server, resource and slot, by the capacities' names."""
        return {part.name: values[:, list(part.kinds)] for part in self.capacities}

    def solution_of(
        self, instance: Any, rows: Mapping[int, Sequence[WindowRow]], formulation: str,
        fixed: Mapping[str, Sequence[WindowRow]] | None = None,
    ) -> Any:  # fmt: skip
        """A solution of rows by job, and of what is fixed."""
        scheduled = {
            instance.jobs[j].name: window_rows for j, window_rows in rows.items() if window_rows
        }
        return self.solution(instance, {**(fixed or {}), **scheduled}, formulation)


def equation(
    model: Model, number: str, sentence: str, *index: Any
) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    """Make a rule a constraint under a paper's number."""

    def add(rule: Callable[..., Expr]) -> Callable[..., Expr]:
        rows = pyo.Constraint(*index, rule=rule, doc=f"({number}) {sentence}")
        model.add_component(f"eq_{number}", rows)
        return rule

    return add


class ProgramJob(Protocol):
    """A job in a program of any form: the way to and from schedules."""

    def read(self) -> list[WindowRow]:
        """Rows at the variables' values, by time; none if the job is not scheduled."""

    def write(self, rows: Sequence[WindowRow]) -> None:
        """Set the variables to rows."""


@dataclass(frozen=True)
class PrintedJob:
    """A job in a printed program, whose variables have it as their first index."""

    model: Model
    job: int
    read_job: Callable[[Model, int], list[WindowRow]]
    write_job: Callable[[Model, int, WindowRow], None]

    def read(self) -> list[WindowRow]:
        """The row at the variables' values, if the job is scheduled."""
        return self.read_job(self.model, self.job)

    def write(self, rows: Sequence[WindowRow]) -> None:
        """Set the variables to rows, all others to 0."""
        for variable in self.model.component_objects(pyo.Var):
            for key, item in variable.items():
                if (key[0] if isinstance(key, tuple) else key) == self.job:
                    item.set_value(0, skip_validation=True)
        for row in rows:
            self.write_job(self.model, self.job, row)


class ModesJob:
    """A job by its modes: the variables ``u`` and ``y``."""

    def __init__(self, block: Model, family: Family, job: WindowJobSets, relax: bool) -> None:
        self.block, self.cluster, self.job = block, family.cluster, job
        b, modes = block, job.modes
        b.u = pyo.Var(
            job.columns, domain=binary_domain(relax),
            doc="(ours) a mode starts in a slot on a PS host that holds so many of its workers",
        )  # fmt: skip
        b.y = pyo.Var(
            list(job.most_beside), domain=integer_domain(relax),
            bounds=lambda _, *cell: (0, job.most_beside[cell]),
            doc="(ours) workers on a server beside no PS, in a window",
        )  # fmt: skip

        @equation(
            b, family.within, "no worker of a window that is not chosen", list(job.most_beside)
        )
        def within(b: Model, m: int, L: int, t: int, h: int) -> Expr:
            most = job.most_beside[m, L, t, h]
            chosen = job.columns_of[m, L, t]
            return b.y[m, L, t, h] <= total(min(most, modes[c[0]].workers) * b.u[c] for c in chosen)

        @equation(b, family.split, "the chosen mode's workers beside no PS", list(job.columns_of))
        def split(b: Model, m: int, L: int, t: int) -> Expr:
            placed = total(b.y[m, L, t, h] for h in job.servers_of[m, L, t])
            return placed == total(job.beside(c) * b.u[c] for c in job.columns_of[m, L, t])

    @property
    def chosen(self) -> Expr:
        """1 if the job runs."""
        return total(self.block.u.values())

    def once(self) -> Expr:
        """The row by which the job runs."""
        chosen = self.chosen
        return pyo.Constraint.Infeasible if isinstance(chosen, int) else chosen == 1

    @property
    def completion(self) -> Expr:
        """The slot after the last one in which the job runs."""
        return self.worth(lambda last: last + 1.0)

    def worth(self, value: Callable[[int], float]) -> Expr:
        """The value of the last slot in which the job runs."""
        last = self.job.last_slot
        return total(value(last(column)) * chosen for column, chosen in self.block.u.items())

    def uses(self) -> Iterator[Use]:
        """What the variables use of servers in slots."""
        for (k, t, n, g), chosen in self.block.u.items():
            mode = self.job.modes[k]
            if n >= 0:
                yield chosen, n, range(t, t + mode.duration), host_use(self.cluster, mode, g)
        for (m, length, t, h), beside in self.block.y.items():
            yield beside, h, range(t, t + length), self.cluster.worker_demand[m]

    def read(self) -> list[WindowRow]:
        """Rows at the variables' values, by time."""
        chosen = [c for c in self.job.columns if (self.block.u[c].value or 0.0) >= 0.5]
        rows = []
        for k, t, n, g in sorted(chosen, key=lambda column: column[1]):
            mode, servers = self.job.modes[k], len(self.cluster.server_capacity)
            beside, span = np.zeros(servers, dtype=np.int64), (mode.worker_type, mode.duration, t)
            for h in () if mode.one_server else self.job.servers_of[span]:
                beside[h] = round(self.block.y[*span, h].value or 0.0)
            rows.append(window_row(self.cluster, mode, t, n, g, beside))
        return rows

    def write(self, rows: Sequence[WindowRow]) -> None:
        """As far as the columns can express them.

        A row whose host has spare PSs, or more workers than its duration needs, is expressed by a
        column that uses no more; without such a column those that start there get no values.
        """
        block = self.block
        for element in (*block.u.values(), *block.y.values()):
            element.value = 0
        for row in rows:
            starting = [column for column in self.job.columns if column[1] == row.first]
            for column in starting:
                beside = self._beside(column, row)
                if beside is not None:
                    m, _, _, _, length = self.job.modes[column[0]]
                    block.u[column].value = 1
                    for h in np.flatnonzero(beside).tolist():
                        block.y[m, length, row.first, h].value = int(beside[h])
                    break
            else:
                for column in starting:
                    block.u[column].value = None

    def _beside(self, column: Column, row: WindowRow) -> Ints | None:
        """Workers beside no PS by server with which a column uses no more than a row, if it can."""
        k, t, n, g = column
        m, p, q, count, length = self.job.modes[k]
        has_ps, left = self.cluster.has_ps, row.workers.copy()
        if length > row.slots or m != row.worker_type or (has_ps and p != row.ps_type):
            return None
        if n >= 0:
            left[n] -= g
            if left[n] < 0 or (has_ps and row.ps[n] < num_ps(self.cluster, m, p, count - g)):
                return None
        needed = 0 if q else count - g
        most = [self.job.most_beside.get((m, length, t, h), 0) for h in range(len(left))]
        beside = np.minimum(np.minimum(left, most), needed)
        if beside.sum() < needed:
            return None
        before = np.cumsum(beside) - beside
        return np.clip(needed - before, 0, beside)
