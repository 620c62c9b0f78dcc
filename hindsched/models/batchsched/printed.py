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
from hindsched.models.windows.block import Family
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
        self._add_placement()
        if self.P:
            self._add_hosts()
        self._add_servers()
        self._add_pace()
        self._add_run_variables()
        self._add_starts(first)
        self._add_types()
        if self.P:
            self._add_ps_types()
        self._add_running()

    @property
    def chosen(self) -> Expr:
        return total(self.block.x.values())

    @property
    def together(self) -> Expr:
        return self.block.q

    @property
    def ps(self) -> Expr:
        return self.block.component("s")

    @property
    def completion(self) -> Expr:
        return total(t * x for t, x in self.block.x.items()) + self.block.d

    def worth(self, value: Callable[[int], float]) -> Expr:
        return total(value(t - 1) * end for t, end in self.block.end.items())

    def _add_placement(self) -> None:
        """What stands where, whether on one server, and the pace."""
        b, H = self.block, self.H
        where = "2d" if self.P else "15a"
        b.y = self.counts(self.M, self.most_y, "(2k) workers of a type on a server")
        b.q = self.choice(f"({where}) all stands on one server")
        b.on = self.choice(f"({where}) the server holds anything of the job", H)
        b.pace = self.choice("(2f) types, number of workers, where", list(self.length))
        if self.P:
            b.s = self.counts(self.P, self.most_ps, "(2k) PSs of a type on a server")
            b.hosts = self.choice("(2i) the server holds a PS of the job", H)

    def _add_hosts(self) -> None:
        """(2i), for the servers that hold a PS."""
        b, H, P = self.block, self.H, self.P
        b.eq_2i_s = pyo.Constraint(H, P, rule=self.host_with_ps, doc="(2i) which servers hold a PS")
        b.eq_2i = pyo.Constraint(
            H, rule=self.host_bandwidth,
            doc="(2i) a host's PSs have bandwidth for the workers elsewhere",
        )  # fmt: skip

    def _add_servers(self) -> None:
        """(2d), without PSs (15a): q = 1 iff one server holds everything."""
        b, H, M, P = self.block, self.H, self.M, self.P
        number = "2d" if P else "15a"
        worker = pyo.Constraint(
            H, M, rule=self.server_of_worker, doc=f"({number}) a worker's server is used"
        )
        used = pyo.Constraint(
            H, rule=self.used_server, doc=f"({number}) a used server holds something"
        )
        at_most_one = pyo.Constraint(
            rule=self.one_server, doc=f"({number}) on one server: at most one is used"
        )
        several = pyo.Constraint(
            rule=self.several_servers, doc=f"({number}) otherwise several servers are used"
        )
        if P:
            b.eq_2d_y = worker
            b.eq_2d_s = pyo.Constraint(
                H, P, rule=self.server_of_ps, doc="(2d) a PS's server is used"
            )
            b.eq_2d_on, b.eq_2d, b.eq_2d_several = used, at_most_one, several
        else:
            b.eq_15a_y, b.eq_15a_on, b.eq_15a, b.eq_15a_several = worker, used, at_most_one, several

    def _add_pace(self) -> None:
        """(2f): one pace, on one server or on several."""
        b = self.block
        b.eq_2f_one = pyo.Constraint(rule=self.one_pace, doc="(2f) a scheduled job has one pace")
        b.eq_2f_q = pyo.Constraint(
            rule=self.pace_together, doc="(2f) the pace is that of one server, or of several"
        )

    def _add_run_variables(self) -> None:
        b, H, T, binary, real = self.block, self.H, self.T, self.binary, pyo.NonNegativeReals
        b.x = pyo.Var(T, domain=binary, doc="(2a) the job starts in this slot")
        b.end = pyo.Var(range(2, len(T) + 2), domain=binary, doc="(2h) the job has just ended")
        b.d = pyo.Var(domain=self.integer, bounds=(1, len(T)), doc="(2f) duration")
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
        """The product in (2h), without PSs (15b): what of the job runs in a slot."""
        b, H, T, number = self.block, self.H, self.T, "2h" if self.P else "15b"

        def workers_run(b: Model, h: int, m: int, t: int) -> Expr:
            return b.run_y[h, m, t] >= b.y[h, m] - self.most_y[h, m] * (1 - b.run[t])

        def ps_run(b: Model, h: int, p: int, t: int) -> Expr:
            return b.run_s[h, p, t] >= b.s[h, p] - self.most_ps[h, p] * (1 - b.run[t])

        one_end = pyo.Constraint(
            expr=total(b.end.values()) == 1, doc=f"({number}) every job ends once"
        )
        last = pyo.Constraint(
            expr=total(t * end for t, end in b.end.items()) == self.completion,
            doc=f"({number}) it ends its duration after the start",
        )
        running = pyo.Constraint(
            H, self.M, T, rule=workers_run, doc=f"({number}) workers of a running job"
        )
        if self.P:
            b.eq_2h_end, b.eq_2h_last, b.eq_2h_y = one_end, last, running
            b.eq_2h_s = pyo.Constraint(H, self.P, T, rule=ps_run, doc="(2h) PSs of a running job")
        else:
            b.eq_15b_end, b.eq_15b_last, b.eq_15b_y = one_end, last, running

    def write_row(self, row: WindowRow) -> None:
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
