"""Problem (2) and its Ring-AllReduce form (15) as printed, one constraint component a number.

What they share with astraea's (3) stands in `windows/printed.py`; beside it

====================  ==========================================================================
``x[j, t]``           job j starts in slot t                   ``d[j]``  its duration
``is_m, is_p``        which types are used: the sets of (2b), (2c) have one element
``end[j, t]``         1 iff t = start + d, so that job j runs in slot t iff starts - ends up to t
``run_y, run_s``      y and s in the slots in which the job runs, for the product in (2h)/(15b)
====================  ==========================================================================
"""

from __future__ import annotations

from typing import ClassVar

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.models.algebra import Expr, Model
from hindsched.models.windows.block import equation
from hindsched.models.windows.printed import Printed
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.window_solution import WindowRow


class BatchschedPrinted(Printed):
    """The printed program but for its objective."""

    BY_SLOT: ClassVar[bool] = False

    def most_workers(self, j: int) -> int:
        """The job's chunks."""
        return self.chunks[j]

    def scheduled(self, j: int) -> Expr:
        """Every job is."""
        return 1

    def add(self, now: int, free: CapacityTimeline[Floats], number: str) -> Expr:
        """Add the rules, (2h)/(15b) under its `number`; return the weighted completion times."""
        self.add_variables()
        self._add_own_variables()
        self._add_starts(now)
        self._add_types()
        if self.P:
            self._add_ps_types()
            self.add_hosting()
        self.add_standing()
        self.add_pace()
        self._add_running(number)
        self._add_capacity(number, free)
        m = self.model
        return total(
            float(self.instance.jobs[j].weight) * (total(t * m.x[j, t] for t in self.T) + m.d[j])
            for j in self.jobs
        )

    def _add_own_variables(self) -> None:
        m, jobs, H, T, binary = self.model, self.jobs, self.H, self.T, self.binary
        self.ends = range(2, len(T) + 2)
        running = pyo.NonNegativeReals
        m.x = pyo.Var(jobs, T, domain=binary, doc="(2a) the job starts in this slot")
        m.end = pyo.Var(jobs, self.ends, domain=binary, doc="(2h) the job has just ended")
        m.d = pyo.Var(jobs, domain=self.whole, bounds=(1, len(T)), doc="(2f) duration")
        m.is_m = pyo.Var(jobs, self.M, domain=binary, doc="(2b) the job's worker type")
        m.run_y = pyo.Var(jobs, H, self.M, T, domain=running, doc="(2h) workers that run in a slot")
        if self.P:
            m.is_p = pyo.Var(jobs, self.P, domain=binary, doc="(2c) the job's PS type")
            m.run_s = pyo.Var(jobs, H, self.P, T, domain=running, doc="(2h) PSs that run in a slot")

    def _add_starts(self, now: int) -> None:
        """(2a), (2g), (2j)."""
        model, jobs, T = self.model, self.jobs, self.T
        early = [(j, t) for j in jobs for t in T if t < max(self.instance.jobs[j].arrival, now)]

        @model.Constraint(jobs, doc="(2a) every job starts once")
        def eq_2a(m: Model, j: int) -> Expr:
            return total(m.x[j, t] for t in T) == 1

        @model.Constraint(jobs, doc="(2g) no more workers than chunks")
        def eq_2g(_: Model, j: int) -> Expr:
            return self.workers(j) <= self.chunks[j]

        @model.Constraint(early, doc="(2j) no start before the arrival")
        def eq_2j(m: Model, j: int, t: int) -> Expr:
            return m.x[j, t] == 0

    def _add_types(self) -> None:
        """(2b): one worker type with a worker; (2f): its pace, number and duration.

        The selected pace fixes rho; d N rho >= E D K for integers is d >= its ceiling.
        """
        model, jobs, H, M = self.model, self.jobs, self.H, self.M

        @model.Constraint(jobs, doc="(2b) one worker type")
        def eq_2b_one(m: Model, j: int) -> Expr:
            return total(m.is_m[j, k] for k in M) == 1

        @model.Constraint(jobs, doc="(2b) at least one worker")
        def eq_2b_some(_: Model, j: int) -> Expr:
            return self.workers(j) >= 1

        @model.Constraint(jobs, H, M, doc="(2b) workers of the job's type only")
        def eq_2b(m: Model, j: int, h: int, k: int) -> Expr:
            return m.y[j, h, k] <= self.most_y[j, h, k] * m.is_m[j, k]

        @model.Constraint(jobs, M, doc="(2f) the pace is that of the worker type")
        def eq_2f_m(m: Model, j: int, k: int) -> Expr:
            return self.chosen(j, m=k) == m.is_m[j, k]

        @model.Constraint(jobs, doc="(2f) the pace is that of the number of workers")
        def eq_2f_count(m: Model, j: int) -> Expr:
            return total(p[4] * m.pace[p] for p in self.paces(j)) == self.workers(j)

        @model.Constraint(jobs, doc="(2f) the job runs as long as its pace asks for")
        def eq_2f(m: Model, j: int) -> Expr:
            return m.d[j] >= total(self.length[p] * m.pace[p] for p in self.paces(j))

    def _add_ps_types(self) -> None:
        """(2c), (2e): one PS type with a PS, which is that of the pace (2f)."""
        model, jobs, H, P = self.model, self.jobs, self.H, self.P

        @model.Constraint(jobs, doc="(2c) one PS type")
        def eq_2c_one(m: Model, j: int) -> Expr:
            return total(m.is_p[j, p] for p in P) == 1

        @model.Constraint(jobs, H, P, doc="(2c) PSs of the job's type only")
        def eq_2c(m: Model, j: int, h: int, p: int) -> Expr:
            return m.s[j, h, p] <= self.most_ps[j, h, p] * m.is_p[j, p]

        @model.Constraint(jobs, doc="(2e) at least one PS")
        def eq_2e(m: Model, j: int) -> Expr:
            return total(m.s[j, h, p] for h in H for p in P) >= 1

        @model.Constraint(jobs, P, doc="(2f) the pace is that of the PS type")
        def eq_2f_p(m: Model, j: int, p: int) -> Expr:
            return self.chosen(j, p=p) == m.is_p[j, p]

    def _runs(self, j: int, t: int) -> Expr:
        """1 if the job has started and not ended by then."""
        begun = total(self.model.x[j, u] for u in range(1, t + 1))
        return begun - total(self.model.end[j, u] for u in range(2, t + 1))

    def _add_running(self, number: str) -> None:
        """The product in (2h)/(15b): what of a job runs in a slot."""
        model, jobs, H, T = self.model, self.jobs, self.H, self.T

        @equation(model, number, "every job ends once", jobs, suffix="_end")
        def one_end(m: Model, j: int) -> Expr:
            return total(m.end[j, t] for t in self.ends) == 1

        @equation(model, number, "it ends its duration after the start", jobs, suffix="_last")
        def last(m: Model, j: int) -> Expr:
            start = total(t * m.x[j, t] for t in T)
            return total(t * m.end[j, t] for t in self.ends) == start + m.d[j]

        @equation(model, number, "workers of a running job", jobs, H, self.M, T, suffix="_y")
        def workers_run(m: Model, j: int, h: int, k: int, t: int) -> Expr:
            idle = self.most_y[j, h, k] * (1 - self._runs(j, t))
            return m.run_y[j, h, k, t] >= m.y[j, h, k] - idle

        if self.P:

            @equation(model, number, "PSs of a running job", jobs, H, self.P, T, suffix="_s")
            def ps_run(m: Model, j: int, h: int, p: int, t: int) -> Expr:
                idle = self.most_ps[j, h, p] * (1 - self._runs(j, t))
                return m.run_s[j, h, p, t] >= m.s[j, h, p] - idle

    def _add_capacity(self, number: str, free: CapacityTimeline[Floats]) -> None:
        """(2h)/(15b): what runs on a server in a slot."""
        jobs, M, P = self.jobs, self.M, self.P
        worker, ps = self.instance.worker_demand.tolist(), self.instance.ps_demand.tolist()
        needed = [
            r for r in range(len(self.instance.resources))
            if any(worker[k][r] for k in M) or any(ps[p][r] for p in P)
        ]  # fmt: skip

        @equation(
            self.model, number, "what runs fits on its server",
            self.H, needed, self.T if jobs else [],
        )  # fmt: skip
        def fits(m: Model, h: int, r: int, t: int) -> Expr:
            workers = [worker[k][r] * m.run_y[j, h, k, t] for j in jobs for k in M if worker[k][r]]
            servers = [ps[p][r] * m.run_s[j, h, p, t] for j in jobs for p in P if ps[p][r]]
            return total(workers + servers) <= float(free.at(t)[h, r])

    def span(self, j: int) -> tuple[int, int]:
        start = round(sum(t * (self.model.x[j, t].value or 0.0) for t in self.T))
        return start, start + round(self.model.d[j].value) - 1

    def write_own(self, j: int, row: WindowRow) -> None:
        m = self.model
        m.x[j, row.first].value = m.end[j, row.last + 1].value = 1
        m.d[j].value = row.slots
        m.is_m[j, row.worker_type].value = 1
        if self.P:
            m.is_p[j, row.ps_type].value = 1
        for h in self.H:
            for t in range(row.first, row.last + 1):
                m.run_y[j, h, row.worker_type, t].value = int(row.workers[h])
                if self.P:
                    m.run_s[j, h, row.ps_type, t].value = int(row.ps[h])
