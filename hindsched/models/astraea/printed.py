"""A job in problem (3) of astraea as printed, one rule a sentence, numbered, linearised exactly.

What it shares with batchsched's (2) stands in `windows/printed.py`; beside it

======================  ========================================================================
``o``                   1 iff the job is scheduled (4a)
``begin, end[t]``       1 iff t is t- (3n) or t+ (3m)
``run[t]``              1 iff t- <= t <= t+: begins up to t minus ends before t
======================  ========================================================================

Repair: (3f) and (3h) hold for t up to t+ - 1 only (as printed no job ends).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model, binary_domain
from hindsched.models.windows.block import Family
from hindsched.models.windows.printed import PrintedJob
from hindsched.solutions.window_solution import WindowRow


class AstraeaPrinted(PrintedJob):
    """The printed block; the job begins in slot `first` at the soonest."""

    BY_SLOT = True
    RUNNING = ("y", "z")

    def __init__(
        self, block: Model, family: Family, job: Any, slots: int, relax: bool, first: int
    ) -> None:
        block.o = pyo.Var(domain=binary_domain(relax), doc="(4a) the job is scheduled")
        self.scheduled, self.arrival = block.o, job.arrival
        super().__init__(block, family, job, slots, relax)
        self._add_placement()
        self._add_hosts()
        self._add_servers()
        self._add_pace()
        self._add_window(first)
        self._add_counts()
        self._add_work()

    @property
    def chosen(self) -> Expr:
        return self.block.o

    @property
    def together(self) -> Expr:
        return self.block.zeta

    @property
    def ps(self) -> Expr:
        return self.block.z

    def worth(self, value: Callable[[int], float]) -> Expr:
        return total(value(t) * end for t, end in self.block.end.items() if t > self.arrival)

    def _add_placement(self) -> None:
        """What stands where, whether on one server, and the pace."""
        b, H = self.block, self.H
        b.y = self.counts(self.M, self.most_y, "(3) workers of a type on a server")
        b.zeta = self.choice("(3j) all stands on one server")
        b.on = self.choice("(3j) the server holds anything of the job", H)
        b.pace = self.choice("(3k) types, number of workers, where", list(self.length))
        b.z = self.counts(self.P, self.most_ps, "(3) PSs of a type on a server")
        b.hosts = self.choice("(3i) the server holds a PS of the job", H)

    def _add_hosts(self) -> None:
        """(3i), for the servers that hold a PS."""
        b, H, T = self.block, self.H, self.T
        b.eq_3i_z = pyo.Constraint(
            H, self.P, T, rule=self.host_with_ps, doc="(3i) which servers hold a PS"
        )
        b.eq_3i = pyo.Constraint(
            H, T, rule=self.host_bandwidth,
            doc="(3i) a host's PSs have bandwidth for the workers elsewhere",
        )  # fmt: skip

    def _add_servers(self) -> None:
        """(3j): zeta = 1 iff one server holds everything."""
        b, H, T = self.block, self.H, self.T
        b.eq_3j_y = pyo.Constraint(
            H, self.M, T, rule=self.server_of_worker, doc="(3j) a worker's server is used"
        )
        b.eq_3j_z = pyo.Constraint(
            H, self.P, T, rule=self.server_of_ps, doc="(3j) a PS's server is used"
        )
        b.eq_3j_on = pyo.Constraint(
            H, rule=self.used_server, doc="(3j) a used server holds something"
        )
        b.eq_3j = pyo.Constraint(
            rule=self.one_server, doc="(3j) on one server: at most one is used"
        )
        b.eq_3j_several = pyo.Constraint(
            rule=self.several_servers, doc="(3j) otherwise several servers are used"
        )

    def _add_pace(self) -> None:
        """(3k): one pace, on one server or on several."""
        b = self.block
        b.eq_3k_one = pyo.Constraint(rule=self.one_pace, doc="(3k) a scheduled job has one pace")
        b.eq_3k_zeta = pyo.Constraint(
            rule=self.pace_together, doc="(3k) the pace is that of one server, or of several"
        )

    def _add_window(self, first: int) -> None:
        """(3m), (3n), and run; nothing before the arrival (3l)."""
        b, T = self.block, self.T
        b.begin = pyo.Var(T, domain=self.binary, doc="(3n) the job begins in this slot")
        b.end = pyo.Var(T, domain=self.binary, doc="(3m) the job ends in this slot")
        b.run = pyo.Var(T, domain=self.binary, doc="(3) the job runs in this slot")

        @b.Constraint(doc="(3j) only a scheduled job stands anywhere")
        def eq_3j_o(b: Model) -> Expr:
            return b.zeta <= b.o

        @b.Constraint(doc="(3n) a scheduled job begins once")
        def eq_3n(b: Model) -> Expr:
            return total(b.begin.values()) == b.o

        @b.Constraint(doc="(3m) a scheduled job ends once")
        def eq_3m(b: Model) -> Expr:
            return total(b.end.values()) == b.o

        @b.Constraint(T, doc="(3m) it runs from its begin to its end")
        def eq_3m_run(b: Model, t: int) -> Expr:
            begun = total(b.begin[u] for u in range(1, t + 1))
            return b.run[t] == begun - total(b.end[u] for u in range(1, t))

        @b.Constraint([t for t in T if t < first], doc="(3l) no begin before the arrival")
        def eq_3l(b: Model, t: int) -> Expr:
            return b.begin[t] == 0

    def _add_counts(self) -> None:
        """(3e)-(3h), (3l): how many workers and PSs run, unchanged from begin to end."""
        b, S, W, P, T, sides = self.block, self.H, self.M, self.P, self.T, (1, -1)
        most_y, most_z = self.most_y, self.most_ps

        @b.Constraint(T, doc="(3e) no more workers than chunks")
        def eq_3e(_: Model, t: int) -> Expr:
            return self.workers(t) <= self.chunks

        @b.Constraint(T, doc="(3g) a running job has a PS")
        def eq_3g(b: Model, t: int) -> Expr:
            return total(b.z[s, p, t] for s in S for p in P) >= b.run[t]

        @b.Constraint(S, W, T, doc="(3l) workers only while the job runs")
        def eq_3l_y(b: Model, s: int, w: int, t: int) -> Expr:
            return b.y[s, w, t] <= most_y[s, w] * b.run[t]

        @b.Constraint(S, P, T, doc="(3l) PSs only while the job runs")
        def eq_3l_z(b: Model, s: int, p: int, t: int) -> Expr:
            return b.z[s, p, t] <= most_z[s, p] * b.run[t]

        def still(b: Model, t: int) -> Expr:
            return 2 - b.run[t] - b.run[t + 1]

        @b.Constraint(S, W, T[:-1], sides, doc="(3f) workers do not change on the way")
        def eq_3f(b: Model, s: int, w: int, t: int, side: int) -> Expr:
            return side * (b.y[s, w, t] - b.y[s, w, t + 1]) <= most_y[s, w] * still(b, t)

        @b.Constraint(S, P, T[:-1], sides, doc="(3h) PSs do not change on the way")
        def eq_3h(b: Model, s: int, p: int, t: int, side: int) -> Expr:
            return side * (b.z[s, p, t] - b.z[s, p, t + 1]) <= most_z[s, p] * still(b, t)

    def _add_work(self) -> None:
        """(3k): the types and the number of the pace are those of y and z; its duration passes."""
        b, S, W, P, T, paces = self.block, self.H, self.M, self.P, self.T, self.length
        total_ps = self.cluster.ps_count.sum(axis=0).tolist()
        count = {w: total(k[3] * b.pace[k] for k in paces if k[0] == w) for w in W}

        @b.Constraint(doc="(3k) the job runs as long as its pace asks for")
        def eq_3k(b: Model) -> Expr:
            return total(b.run.values()) >= total(length * b.pace[k] for k, length in paces.items())

        @b.Constraint(W, T, doc="(3k) no more workers than the pace has")
        def eq_3k_y(b: Model, w: int, t: int) -> Expr:
            return total(b.y[s, w, t] for s in S) <= count[w]

        @b.Constraint(W, T, doc="(3k) all workers of the pace while the job runs")
        def eq_3k_all(b: Model, w: int, t: int) -> Expr:
            return total(b.y[s, w, t] for s in S) >= count[w] - self.most * (1 - b.run[t])

        @b.Constraint(P, T, doc="(3k) PSs of the pace's type only")
        def eq_3k_z(b: Model, p: int, t: int) -> Expr:
            most = int(total_ps[p]) * total(b.pace[k] for k in paces if k[1] == p)
            return total(b.z[s, p, t] for s in S) <= most

    def write_row(self, row: WindowRow) -> None:
        b = self.block
        b.o.value = b.begin[row.first].value = b.end[row.last].value = 1
        for t in range(row.first, row.last + 1):
            b.run[t].value = 1
