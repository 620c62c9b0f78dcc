"""Problem (3) of astraea as printed, one rule a sentence, numbered, and linearised exactly.

What it shares with batchsched's (2) stands in `windows/printed.py`; beside it

======================  ========================================================================
``o[j]``                1 iff the job is scheduled (4a); 1 where every job must complete
``begin, end[j, t]``    1 iff t is t- (3n) or t+ (3m)
``run[j, t]``           1 iff t- <= t <= t+: begins up to t minus ends before t
======================  ========================================================================

Repair: (3f) and (3h) hold for t up to t+ - 1 only (as printed no job ends).
"""

from __future__ import annotations

from typing import ClassVar

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.modes import most_workers
from hindsched.models.algebra import Expr, Model
from hindsched.models.windows.printed import Printed
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.window_solution import WindowRow


class AstraeaPrinted(Printed):
    """The printed program but for its objective."""

    BY_SLOT: ClassVar[bool] = True

    def most_workers(self, j: int) -> int:
        """The job's chunks, as far as one type's workers go."""
        return most_workers(self.instance, self.instance.jobs[j])

    def scheduled(self, j: int) -> Expr:
        """(4a)."""
        return self.model.o[j]

    def add(self, now: int, free: CapacityTimeline[Floats], must: bool) -> Expr:
        """Add the rules, return the revenue; `must`: all jobs complete, as (3k) reads literally."""
        m, binary = self.model, self.binary
        m.o = pyo.Var(self.jobs, domain=binary, doc="(4a) the job is scheduled")
        self.add_variables()
        m.begin = pyo.Var(self.jobs, self.T, domain=binary, doc="(3n) the job begins in this slot")
        m.end = pyo.Var(self.jobs, self.T, domain=binary, doc="(3m) the job ends in this slot")
        m.run = pyo.Var(self.jobs, self.T, domain=binary, doc="(3) the job runs in this slot")
        self._add_window(now, must)
        self._add_counts()
        self.add_hosting()
        self.add_standing()
        self.add_pace()
        self._add_work()
        self._add_capacities(free)
        instance = self.instance
        return total(
            instance.revenue(instance.jobs[j], t) * m.end[j, t]
            for j in self.jobs for t in self.T if t > instance.jobs[j].arrival
        )  # fmt: skip

    def _add_window(self, now: int, must: bool) -> None:
        """(3m), (3n), and run; nothing before the arrival (3l); o (4a)."""
        model, jobs, T = self.model, self.jobs, self.T
        early = [(j, t) for j in jobs for t in T if t < max(self.instance.jobs[j].arrival + 1, now)]

        @model.Constraint(jobs if must else [], doc="(4a) every job is scheduled")
        def eq_4a(m: Model, j: int) -> Expr:
            return m.o[j] == 1

        @model.Constraint(jobs, doc="(3j) only a scheduled job stands anywhere")
        def eq_3j_o(m: Model, j: int) -> Expr:
            return m.zeta[j] <= m.o[j]

        @model.Constraint(jobs, doc="(3n) a scheduled job begins once")
        def eq_3n(m: Model, j: int) -> Expr:
            return total(m.begin[j, t] for t in T) == m.o[j]

        @model.Constraint(jobs, doc="(3m) a scheduled job ends once")
        def eq_3m(m: Model, j: int) -> Expr:
            return total(m.end[j, t] for t in T) == m.o[j]

        @model.Constraint(jobs, T, doc="(3m) it runs from its begin to its end")
        def eq_3m_run(m: Model, j: int, t: int) -> Expr:
            begun = total(m.begin[j, u] for u in range(1, t + 1))
            return m.run[j, t] == begun - total(m.end[j, u] for u in range(1, t))

        @model.Constraint(early, doc="(3l) no begin before the arrival")
        def eq_3l(m: Model, j: int, t: int) -> Expr:
            return m.begin[j, t] == 0

    def _add_counts(self) -> None:
        """(3e)-(3h), (3l): how many workers and PSs run, unchanged from begin to end."""
        model, jobs, S, W, P, T = self.model, self.jobs, self.H, self.M, self.P, self.T
        most_y, most_z, sides = self.most_y, self.most_ps, (1, -1)

        @model.Constraint(jobs, T, doc="(3e) no more workers than chunks")
        def eq_3e(_: Model, j: int, t: int) -> Expr:
            return self.workers(j, t) <= self.chunks[j]

        @model.Constraint(jobs, T, doc="(3g) a running job has a PS")
        def eq_3g(m: Model, j: int, t: int) -> Expr:
            return total(m.z[j, s, p, t] for s in S for p in P) >= m.run[j, t]

        @model.Constraint(jobs, S, W, T, doc="(3l) workers only while the job runs")
        def eq_3l_y(m: Model, j: int, s: int, w: int, t: int) -> Expr:
            return m.y[j, s, w, t] <= most_y[j, s, w] * m.run[j, t]

        @model.Constraint(jobs, S, P, T, doc="(3l) PSs only while the job runs")
        def eq_3l_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
            return m.z[j, s, p, t] <= most_z[j, s, p] * m.run[j, t]

        def still(m: Model, j: int, t: int) -> Expr:
            return 2 - m.run[j, t] - m.run[j, t + 1]

        @model.Constraint(jobs, S, W, T[:-1], sides, doc="(3f) workers do not change on the way")
        def eq_3f(m: Model, j: int, s: int, w: int, t: int, side: int) -> Expr:
            change = m.y[j, s, w, t] - m.y[j, s, w, t + 1]
            return side * change <= most_y[j, s, w] * still(m, j, t)

        @model.Constraint(jobs, S, P, T[:-1], sides, doc="(3h) PSs do not change on the way")
        def eq_3h(m: Model, j: int, s: int, p: int, t: int, side: int) -> Expr:
            change = m.z[j, s, p, t] - m.z[j, s, p, t + 1]
            return side * change <= most_z[j, s, p] * still(m, j, t)

    def _add_work(self) -> None:
        """(3k): the types and the number of the pace are those of y and z; its duration passes."""
        model, jobs, S, W, P, T = self.model, self.jobs, self.H, self.M, self.P, self.T
        total_ps = self.instance.ps_count.sum(axis=0).tolist()
        count = {
            (j, w): total(pace[4] * model.pace[pace] for pace in self.paces(j, m=w))
            for j in jobs for w in W
        }  # fmt: skip

        @model.Constraint(jobs, doc="(3k) the job runs as long as its pace asks for")
        def eq_3k(m: Model, j: int) -> Expr:
            least = total(self.length[pace] * m.pace[pace] for pace in self.paces(j))
            return total(m.run[j, t] for t in T) >= least

        @model.Constraint(jobs, W, T, doc="(3k) no more workers than the pace has")
        def eq_3k_y(m: Model, j: int, w: int, t: int) -> Expr:
            return total(m.y[j, s, w, t] for s in S) <= count[j, w]

        @model.Constraint(jobs, W, T, doc="(3k) all workers of the pace while the job runs")
        def eq_3k_all(m: Model, j: int, w: int, t: int) -> Expr:
            idle = self.most_workers(j) * (1 - m.run[j, t])
            return total(m.y[j, s, w, t] for s in S) >= count[j, w] - idle

        @model.Constraint(jobs, P, T, doc="(3k) PSs of the pace's type only")
        def eq_3k_z(m: Model, j: int, p: int, t: int) -> Expr:
            return total(m.z[j, s, p, t] for s in S) <= int(total_ps[p]) * self.chosen(j, p=p)

    def _add_capacities(self, free: CapacityTimeline[Floats]) -> None:
        """(3a)-(3d), with what fixed rows take off the right sides.

        In (3a), (3b) the others' use is moved to the left: every tenant then has the same row.
        """
        model, jobs, S, W, P = self.model, self.jobs, self.H, self.M, self.P
        T, split = self.T if jobs else range(0), len(W)
        instance = self.instance
        quota = [*instance.worker_quota.sum(axis=0), *instance.ps_quota.sum(axis=0)]

        def shared(t: int, kind: int) -> float:
            taken = (free.capacity[:, kind] - free.at(t)[:, kind]).sum()
            return float(quota[kind] - taken)

        @model.Constraint(W, T, doc="(3a) workers within the quotas of all tenants")
        def eq_3a(m: Model, w: int, t: int) -> Expr:
            return total(m.y[j, s, w, t] for j in jobs for s in S) <= shared(t, w)

        @model.Constraint(P, T, doc="(3b) PSs within the quotas of all tenants")
        def eq_3b(m: Model, p: int, t: int) -> Expr:
            return total(m.z[j, s, p, t] for j in jobs for s in S) <= shared(t, split + p)

        @model.Constraint(S, W, T, doc="(3c) workers of a server")
        def eq_3c(m: Model, s: int, w: int, t: int) -> Expr:
            return total(m.y[j, s, w, t] for j in jobs) <= float(free.at(t)[s, w])

        @model.Constraint(S, P, T, doc="(3d) PSs of a server")
        def eq_3d(m: Model, s: int, p: int, t: int) -> Expr:
            return total(m.z[j, s, p, t] for j in jobs) <= float(free.at(t)[s, split + p])

    def span(self, j: int) -> tuple[int, int] | None:
        slots = [t for t in self.T if (self.model.run[j, t].value or 0.0) > 0.5]
        return (slots[0], slots[-1]) if slots else None

    def write_own(self, j: int, row: WindowRow) -> None:
        m = self.model
        m.o[j].value = m.begin[j, row.first].value = m.end[j, row.last].value = 1
        for t in range(row.first, row.last + 1):
            m.run[j, t].value = 1
