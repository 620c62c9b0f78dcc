"""The printed programs (2)/(15) of batchsched and (3) of astraea, as far as they say the same.

In batchsched's program a count of workers or PSs holds for the whole run of a job, in astraea's it
has a slot: ``*t`` stands for no index in the one and for the slot in the other. Letters and numbers
are each paper's own (`Paper`); what it writes with "|{...}|", "if and only if" and products is
linearised exactly:

========================  ======================================================================
``y[j, h, m, *t]``        workers of type m on server h      ``s`` or ``z[j, h, p, *t]``  PSs
``q`` or ``zeta[j]``      1 iff everything stands on one server
``on, hosts[j, h]``       1 iff server h holds anything of the job, a PS of the job
``pace[j, m, p, q, N]``   selects types, q and N workers, so that the work becomes a duration of
                          at least ``ceil(E D K / (N rho))`` slots
========================  ======================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.modes import durations, units
from hindsched.models.algebra import Expr, Model, binary, whole
from hindsched.models.windows.block import Paper, equation
from hindsched.solutions.window_solution import WindowRow

Pace = tuple[int, int, int, int, int]
"""Job, worker type, PS type, whether on one server, number of workers."""
PLACE = {"m": 1, "p": 2, "q": 3}


class Printed(ABC):
    """A printed program in the making: its index sets and facts, and the rules of both papers."""

    BY_SLOT: ClassVar[bool]
    """Whether counts have a slot."""

    def __init__(
        self, model: Model, instance: Any, paper: Paper, jobs: list[int], slots: int, relax: bool
    ) -> None:
        self.model, self.instance, self.paper, self.jobs = model, instance, paper, jobs
        self.binary, self.whole = binary(relax), whole(relax)
        room, ps = instance.worker_room.tolist(), instance.ps_demand  # without PSs no types of them
        ps_room = units(instance.server_capacity, ps).tolist()
        self.H, self.M, self.P = range(len(room)), range(len(room[0])), range(len(ps))
        self.T = range(1, slots + 1)
        self.over = [self.T] if self.BY_SLOT else []  # what counts have behind server and type
        self.times = [(t,) for t in self.T] if self.BY_SLOT else [()]
        self.chunks = {j: instance.jobs[j].chunks for j in jobs}
        self.most_y = {
            (j, h, m): min(self.chunks[j], room[h][m]) for j in jobs for h in self.H for m in self.M
        }
        self.most_ps = {(j, h, p): ps_room[h][p] for j in jobs for h in self.H for p in self.P}
        self.length: dict[Pace, int] = {}
        self._paces = {j: list[Pace]() for j in jobs}
        for j in jobs:
            table = durations(instance, instance.jobs[j])
            for m, p, q, n in np.argwhere(table <= slots).tolist():
                self._paces[j].append((j, m, p, q, n + 1))
                self.length[j, m, p, q, n + 1] = int(table[m, p, q, n])

    def paces(self, j: int, **given: int) -> list[Pace]:
        """The paces of a job with given types ``m``, ``p`` or ``q``."""
        return [
            pace for pace in self._paces[j]
            if all(pace[PLACE[name]] == value for name, value in given.items())
        ]  # fmt: skip

    def chosen(self, j: int, **given: int) -> Expr:
        """1 if the job's pace is one of these."""
        return total(self.model.pace[pace] for pace in self.paces(j, **given))

    def workers(self, j: int, *t: int) -> Expr:
        """All workers of a job."""
        return total(self.model.y[j, h, m, *t] for h in self.H for m in self.M)

    @abstractmethod
    def most_workers(self, j: int) -> int:
        """Most workers of a job."""

    @abstractmethod
    def scheduled(self, j: int) -> Expr:
        """1 if the job is scheduled."""

    @property
    def ps(self) -> Any:
        """The variables of the PSs."""
        return self.model.component(self.paper.ps)

    @property
    def together(self) -> Any:
        """The variables that say "on one server"."""
        return self.model.component(self.paper.together)

    def add_variables(self) -> None:
        """Counts, hosts, and what is selected."""
        model, paper, jobs, H = self.model, self.paper, self.jobs, self.H
        model.y = pyo.Var(
            jobs, H, self.M, *self.over, domain=self.whole,
            bounds=lambda _, *i: (0, self.most_y[i[:3]]),
            doc=f"({paper.counts}) workers of a type on a server",
        )  # fmt: skip
        together = f"({paper.standing}) all stands on one server"
        model.add_component(paper.together, pyo.Var(jobs, domain=self.binary, doc=together))
        on = f"({paper.standing}) the server holds anything of the job"
        model.on = pyo.Var(jobs, H, domain=self.binary, doc=on)
        pace = f"({paper.pace}) types, number of workers, where"
        model.pace = pyo.Var(list(self.length), domain=self.binary, doc=pace)
        if self.P:
            ps = pyo.Var(
                jobs, H, self.P, *self.over, domain=self.whole,
                bounds=lambda _, *i: (0, self.most_ps[i[:3]]),
                doc=f"({paper.counts}) PSs of a type on a server",
            )  # fmt: skip
            model.add_component(paper.ps, ps)
            hosts = f"({paper.hosting}) the server holds a PS of the job"
            model.hosts = pyo.Var(jobs, H, domain=self.binary, doc=hosts)

    def add_hosting(self) -> None:
        """(2i)/(3i), for the servers that hold a PS: as printed every server would need PSs."""
        model, number, jobs, H, P, over = (
            self.model, self.paper.hosting, self.jobs, self.H, self.P, self.over,
        )  # fmt: skip
        mbps = self.instance.worker_bandwidth.tolist()
        ps_mbps = self.instance.ps_bandwidth.tolist()

        @equation(
            model, number, "which servers hold a PS", jobs, H, P, *over, suffix=f"_{self.paper.ps}"
        )
        def holds(m: Model, j: int, h: int, p: int, *t: int) -> Expr:
            return self.ps[j, h, p, *t] <= self.most_ps[j, h, p] * m.hosts[j, h]

        @equation(
            model, number, "a host's PSs have bandwidth for the workers elsewhere", jobs, H, *over
        )
        def bandwidth(m: Model, j: int, h: int, *t: int) -> Expr:
            sent = total(mbps[k] * m.y[j, o, k, *t] for o in H if o != h for k in self.M)
            received = total(ps_mbps[p] * self.ps[j, h, p, *t] for p in P)
            return sent <= received + self.most_workers(j) * max(mbps) * (1 - m.hosts[j, h])

    def add_standing(self) -> None:
        """(2d), (15a)/(3j): q = 1 iff one server holds everything."""
        model, number, jobs, H = self.model, self.paper.standing, self.jobs, self.H
        q, over = self.together, self.over

        @equation(model, number, "a worker's server is used", jobs, H, self.M, *over, suffix="_y")
        def workers_on(m: Model, j: int, h: int, k: int, *t: int) -> Expr:
            return m.y[j, h, k, *t] <= self.most_y[j, h, k] * m.on[j, h]

        if self.P:
            letter = f"_{self.paper.ps}"

            @equation(model, number, "a PS's server is used", jobs, H, self.P, *over, suffix=letter)
            def ps_on(m: Model, j: int, h: int, p: int, *t: int) -> Expr:
                return self.ps[j, h, p, *t] <= self.most_ps[j, h, p] * m.on[j, h]

        @equation(model, number, "a used server holds something", jobs, H, suffix="_on")
        def something_on(m: Model, j: int, h: int) -> Expr:
            workers = [m.y[j, h, k, *t] for k in self.M for t in self.times]
            ps = [self.ps[j, h, p, *t] for p in self.P for t in self.times]
            return m.on[j, h] <= total(workers + ps)

        @equation(model, number, "on one server: at most one is used", jobs)
        def one(m: Model, j: int) -> Expr:
            return total(m.on[j, h] for h in H) <= 1 + (len(H) - 1) * (1 - q[j])

        @equation(model, number, "otherwise several servers are used", jobs, suffix="_several")
        def several(m: Model, j: int) -> Expr:
            return total(m.on[j, h] for h in H) >= 2 * self.scheduled(j) - q[j]

    def add_pace(self) -> None:
        """(2f)/(3k): a scheduled job has one pace, on one server or on several."""
        model, number, letter = self.model, self.paper.pace, f"_{self.paper.together}"

        @equation(model, number, "a scheduled job has one pace", self.jobs, suffix="_one")
        def one(_: Model, j: int) -> Expr:
            return self.chosen(j) == self.scheduled(j)

        sentence = "the pace is that of one server, or of several"

        @equation(model, number, sentence, self.jobs, suffix=letter)
        def where(_: Model, j: int) -> Expr:
            return self.chosen(j, q=1) == self.together[j]

    @abstractmethod
    def span(self, j: int) -> tuple[int, int] | None:
        """First and last slot of a job at the variables' values; None if it is not scheduled."""

    @abstractmethod
    def write_own(self, j: int, row: WindowRow) -> None:
        """Set the variables of a job that only this program has."""

    def read(self, j: int) -> list[WindowRow]:
        """A job's row at the variables' values; none if it is not scheduled."""
        span = self.span(j)
        if span is None:
            return []
        _, pace = max((self.model.pace[pace].value or 0.0, pace) for pace in self.paces(j))
        m, p, at = pace[1], pace[2], span[:1] if self.BY_SLOT else ()
        counts = np.array([round(self.model.y[j, h, m, *at].value) for h in self.H])
        ps = np.zeros_like(counts)
        if self.P:
            ps = np.array([round(self.ps[j, h, p, *at].value) for h in self.H])
        return [WindowRow(*span, m, p if self.P else -1, counts, ps)]

    def write(self, j: int, rows: Sequence[WindowRow]) -> None:
        """Set a job's variables, which are 0, to its row."""
        if not rows:
            return
        (row,), model = rows, self.model
        m, p, q = row.worker_type, max(0, row.ps_type), int(row.one_server)
        self.together[j].value = q
        if (pace := (j, m, p, q, row.num_workers)) in model.pace:
            model.pace[pace].value = 1
        times = [(t,) for t in range(row.first, row.last + 1)] if self.BY_SLOT else [()]
        for h, (count, ps) in enumerate(zip(row.workers.tolist(), row.ps.tolist(), strict=True)):
            model.on[j, h].value = int(count > 0 or ps > 0)
            for t in times:
                model.y[j, h, m, *t].value = count
            if self.P:
                model.hosts[j, h].value = int(ps > 0)
                for t in times:
                    self.ps[j, h, p, *t].value = ps
        self.write_own(j, row)
