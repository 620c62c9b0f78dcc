"""A job in problem (2) and its Ring-AllReduce form (15) as printed, one component a number.

What they share with astraea's (3) stands in `windows/printed.py`; beside it

====================  ==========================================================================
``x[t]``              the job starts in slot t                 ``d``  its duration
``is_m, is_p``        which types are used: the sets of (2b), (2c) have one element
``end[t]``            1 iff t = start + d
``run[t]``            the job runs in slot t iff starts - ends up to t
``run_y, run_s``      y and s in the slots in which the job runs, for the product in (2h)/(15b)
====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model
from hindsched.models.windows.block import Family, equation
from hindsched.models.windows.printed import PrintedJob
from hindsched.solutions.window_solution import WindowRow


class BatchschedPrinted(PrintedJob):
    """The printed block; the job starts in slot `first` at the soonest."""

    BY_SLOT = False
    RUNNING = ("run_y", "run_s")

    def __init__(
        self, block: Model, family: Family, job: Any, slots: int, relax: bool, first: int
    ) -> None:
        super().__init__(block, family, job, slots, relax)
        self._add_own_variables()
        self._add_starts(first)
        self._add_types()
        if self.P:
            self._add_ps_types()
        self._add_running()

    @property
    def chosen(self) -> Expr:
        return total(self.block.x.values())

    @property
    def completion(self) -> Expr:
        return total(t * x for t, x in self.block.x.items()) + self.block.d

    def worth(self, value: Callable[[int], float]) -> Expr:
        return total(value(t - 1) * end for t, end in self.block.end.items())

    def _add_own_variables(self) -> None:
        b, H, T, binary, real = self.block, self.H, self.T, self.binary, pyo.NonNegativeReals
        b.x = pyo.Var(T, domain=binary, doc="(2a) the job starts in this slot")
        b.end = pyo.Var(range(2, len(T) + 2), domain=binary, doc="(2h) the job has just ended")
        b.d = pyo.Var(domain=self.whole, bounds=(1, len(T)), doc="(2f) duration")
        b.is_m = pyo.Var(self.M, domain=binary, doc="(2b) the job's worker type")
        b.run_y = pyo.Var(H, self.M, T, domain=real, doc="(2h) workers that run in a slot")
        if self.P:
            b.is_p = pyo.Var(self.P, domain=binary, doc="(2c) the job's PS type")
            b.run_s = pyo.Var(H, self.P, T, domain=real, doc="(2h) PSs that run in a slot")

        @b.Expression(T)
        def run(b: Model, t: int) -> Expr:
            return total(b.x[u] for u in T if u <= t) - total(b.end[u] for u in b.end if u <= t)

    def _add_starts(self, first: int) -> None:
        """(2g), (2j); (2a) stands beside the blocks."""
        b = self.block

        @b.Constraint(doc="(2g) no more workers than chunks")
        def eq_2g(_: Model) -> Expr:
            return self.workers() <= self.chunks

        @b.Constraint([t for t in self.T if t < first], doc="(2j) no start before the arrival")
        def eq_2j(b: Model, t: int) -> Expr:
            return b.x[t] == 0

    def _add_types(self) -> None:
        """(2b): one worker type with a worker; (2f): its pace, number and duration.

        The selected pace fixes rho; d N rho >= E D K for integers is d >= its ceiling.
        """
        b, H, M, paces = self.block, self.H, self.M, self.length

        @b.Constraint(doc="(2b) one worker type")
        def eq_2b_one(b: Model) -> Expr:
            return total(b.is_m.values()) == 1

        @b.Constraint(doc="(2b) at least one worker")
        def eq_2b_some(_: Model) -> Expr:
            return self.workers() >= 1

        @b.Constraint(H, M, doc="(2b) workers of the job's type only")
        def eq_2b(b: Model, h: int, m: int) -> Expr:
            return b.y[h, m] <= self.most_y[h, m] * b.is_m[m]

        @b.Constraint(M, doc="(2f) the pace is that of the worker type")
        def eq_2f_m(b: Model, m: int) -> Expr:
            return total(b.pace[k] for k in paces if k[0] == m) == b.is_m[m]

        @b.Constraint(doc="(2f) the pace is that of the number of workers")
        def eq_2f_count(b: Model) -> Expr:
            return total(k[3] * b.pace[k] for k in paces) == self.workers()

        @b.Constraint(doc="(2f) the job runs as long as its pace asks for")
        def eq_2f(b: Model) -> Expr:
            return b.d >= total(length * b.pace[k] for k, length in paces.items())

    def _add_ps_types(self) -> None:
        """(2c), (2e): one PS type with a PS, which is that of the pace (2f)."""
        b = self.block

        @b.Constraint(doc="(2c) one PS type")
        def eq_2c_one(b: Model) -> Expr:
            return total(b.is_p.values()) == 1

        @b.Constraint(self.H, self.P, doc="(2c) PSs of the job's type only")
        def eq_2c(b: Model, h: int, p: int) -> Expr:
            return b.s[h, p] <= self.most_ps[h, p] * b.is_p[p]

        @b.Constraint(doc="(2e) at least one PS")
        def eq_2e(b: Model) -> Expr:
            return total(b.s.values()) >= 1

        @b.Constraint(self.P, doc="(2f) the pace is that of the PS type")
        def eq_2f_p(b: Model, p: int) -> Expr:
            return total(b.pace[k] for k in self.length if k[1] == p) == b.is_p[p]

    def _add_running(self) -> None:
        """The product in (2h)/(15b): what of the job runs in a slot."""
        b, H, T, number = self.block, self.H, self.T, self.family.capacities[0].number

        @equation(b, number, "every job ends once", suffix="_end")
        def one_end(b: Model) -> Expr:
            return total(b.end.values()) == 1

        @equation(b, number, "it ends its duration after the start", suffix="_last")
        def last(b: Model) -> Expr:
            return total(t * end for t, end in b.end.items()) == self.completion

        @equation(b, number, "workers of a running job", H, self.M, T, suffix="_y")
        def workers_run(b: Model, h: int, m: int, t: int) -> Expr:
            return b.run_y[h, m, t] >= b.y[h, m] - self.most_y[h, m] * (1 - b.run[t])

        if self.P:

            @equation(b, number, "PSs of a running job", H, self.P, T, suffix="_s")
            def ps_run(b: Model, h: int, p: int, t: int) -> Expr:
                return b.run_s[h, p, t] >= b.s[h, p] - self.most_ps[h, p] * (1 - b.run[t])

    def write_own(self, row: WindowRow) -> None:
        b = self.block
        b.x[row.first].value = b.end[row.last + 1].value = 1
        b.d.value = row.slots
        b.is_m[row.worker_type].value = 1
        if self.P:
            b.is_p[row.ps_type].value = 1
        for h in self.H:
            for t in range(row.first, row.last + 1):
                b.run_y[h, row.worker_type, t].value = int(row.workers[h])
                if self.P:
                    b.run_s[h, row.ps_type, t].value = int(row.ps[h])
