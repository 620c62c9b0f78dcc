"""A job as the papers print it: what (2)/(15) of batchsched and (3) of astraea say alike.

In batchsched's program a count of workers or PSs holds for the whole run of a job, in astraea's it
has a slot: ``*t`` stands for no index in the one and for the slot in the other. Letters and numbers
are each paper's own (`Paper`); what it writes with "|{...}|", "if and only if" and products is
linearised exactly:

========================  ======================================================================
``y[h, m, *t]``           workers of type m on server h         ``s`` or ``z[h, p, *t]``  PSs
``q`` or ``zeta``         1 iff everything stands on one server
``on, hosts[h]``          1 iff server h holds anything of the job, a PS of the job
``run[t]``                1 iff the job runs in slot t, which each paper says in its own way
``pace[m, p, q, N]``      selects types, q and N workers, so that the work becomes a duration of
                          at least ``ceil(E D K / (N rho))`` slots
========================  ======================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.modes import durations, most_workers, units
from hindsched.models.algebra import Expr, Model, Use, binary, integer
from hindsched.models.windows.block import Family, JobBlock, equation
from hindsched.solutions.window_solution import WindowRow


class PrintedJob(JobBlock):
    """A job's block with the variables and rules of both papers; a family's own adds the others."""

    BY_SLOT: ClassVar[bool]
    """Whether counts have a slot."""
    RUNNING: ClassVar[tuple[str, str]]
    """Variables of the workers and PSs that run, by server, type and slot."""
    scheduled: Expr = 1
    """1 if the job is scheduled."""

    def __init__(self, block: Model, family: Family, job: Any, slots: int, relax: bool) -> None:
        self.block, self.family, self.cluster = block, family, family.cluster
        room, ps = self.cluster.worker_room.tolist(), self.cluster.ps_demand  # of no types for Ring
        ps_room = units(self.cluster.server_capacity, ps).tolist()
        self.H, self.M, self.P = range(len(room)), range(len(room[0])), range(len(ps))
        self.T = range(1, slots + 1)
        self.chunks, self.most = job.chunks, most_workers(self.cluster, job)
        self.most_y = {(h, m): min(job.chunks, room[h][m]) for h in self.H for m in self.M}
        self.most_ps = {(h, p): ps_room[h][p] for h in self.H for p in self.P}
        length = durations(self.cluster, job)
        self.length = {
            (m, p, q, n + 1): int(length[m, p, q, n])
            for m, p, q, n in np.argwhere(length <= slots).tolist()
        }  # by pace
        self.binary, self.whole = binary(relax), integer(relax)
        self._add_variables()
        if self.P:
            self._add_hosting()
        self._add_standing()
        self._add_pace()

    def _add_variables(self) -> None:
        """Counts, hosts, and what is selected."""
        b, paper, H = self.block, self.family.paper, self.H
        over = [self.T] if self.BY_SLOT else []

        def counts(kinds: range, most: Mapping[tuple[int, int], int], what: str) -> Expr:
            return pyo.Var(
                H, kinds, *over, domain=self.whole, bounds=lambda _, *i: (0, most[i[:2]]),
                doc=f"({paper.counts}) {what} of a type on a server",
            )  # fmt: skip

        def choice(number: str, what: str, *index: Any) -> Expr:
            return pyo.Var(*index, domain=self.binary, doc=f"({number}) {what}")

        b.y = counts(self.M, self.most_y, "workers")
        b.add_component(paper.together, choice(paper.standing, "all stands on one server"))
        b.on = choice(paper.standing, "the server holds anything of the job", H)
        b.pace = choice(paper.pace, "types, number of workers, where", list(self.length))
        if self.P:
            b.add_component(paper.ps, counts(self.P, self.most_ps, "PSs"))
            b.hosts = choice(paper.hosting, "the server holds a PS of the job", H)
        self.over, self.q, self.ps = over, b.component(paper.together), b.component(paper.ps)

    def workers(self, *t: int) -> Expr:
        """All workers of the job."""
        return total(self.block.y[h, m, *t] for h in self.H for m in self.M)

    def _add_hosting(self) -> None:
        """(2i)/(3i), for the servers that hold a PS: as printed every server would need PSs."""
        b, number, H, P, over = self.block, self.family.paper.hosting, self.H, self.P, self.over
        mbps = self.cluster.worker_bandwidth.tolist()
        ps_mbps = self.cluster.ps_bandwidth.tolist()
        letter = f"_{self.family.paper.ps}"

        @equation(b, number, "which servers hold a PS", H, P, *over, suffix=letter)
        def holds(b: Model, h: int, p: int, *t: int) -> Expr:
            return self.ps[h, p, *t] <= self.most_ps[h, p] * b.hosts[h]

        @equation(b, number, "a host's PSs have bandwidth for the workers elsewhere", H, *over)
        def bandwidth(b: Model, h: int, *t: int) -> Expr:
            sent = total(mbps[m] * b.y[o, m, *t] for o in H if o != h for m in self.M)
            received = total(ps_mbps[p] * self.ps[h, p, *t] for p in P)
            return sent <= received + self.most * max(mbps) * (1 - b.hosts[h])

    def _add_standing(self) -> None:
        """(2d), (15a)/(3j): q = 1 iff one server holds everything."""
        b, number, H, q = self.block, self.family.paper.standing, self.H, self.q

        @equation(b, number, "a worker's server is used", H, self.M, *self.over, suffix="_y")
        def workers_on(b: Model, h: int, m: int, *t: int) -> Expr:
            return b.y[h, m, *t] <= self.most_y[h, m] * b.on[h]

        if self.P:
            letter = f"_{self.family.paper.ps}"

            @equation(b, number, "a PS's server is used", H, self.P, *self.over, suffix=letter)
            def ps_on(b: Model, h: int, p: int, *t: int) -> Expr:
                return self.ps[h, p, *t] <= self.most_ps[h, p] * b.on[h]

        @equation(b, number, "a used server holds something", H, suffix="_on")
        def something_on(b: Model, h: int) -> Expr:
            counts = [b.y, self.ps] if self.P else [b.y]
            return b.on[h] <= total(
                n for own in counts for place, n in own.items() if place[0] == h
            )

        @equation(b, number, "on one server: at most one is used")
        def one(b: Model) -> Expr:
            return total(b.on.values()) <= 1 + (len(H) - 1) * (1 - q)

        @equation(b, number, "otherwise several servers are used", suffix="_several")
        def several(b: Model) -> Expr:
            return total(b.on.values()) >= 2 * self.scheduled - q

    def _add_pace(self) -> None:
        """(2f)/(3k): a scheduled job has one pace, on one server or on several."""
        b, paper = self.block, self.family.paper

        @equation(b, paper.pace, "a scheduled job has one pace", suffix="_one")
        def one(b: Model) -> Expr:
            return total(b.pace.values()) == self.scheduled

        sentence = "the pace is that of one server, or of several"

        @equation(b, paper.pace, sentence, suffix=f"_{paper.together}")
        def where(b: Model) -> Expr:
            return total(b.pace[k] for k in self.length if k[2] == 1) == self.q

    def uses(self) -> Iterator[Use]:
        demands = self.cluster.worker_demand, self.cluster.ps_demand
        for name, demand in zip(self.RUNNING, demands, strict=True):
            for (h, kind, t), count in (self.block.component(name) or {}).items():
                yield count, h, range(t, t + 1), demand[kind]

    def read(self) -> list[WindowRow]:
        b = self.block
        slots = [t for t in self.T if (pyo.value(b.run[t], exception=False) or 0.0) > 0.5]
        if not slots:
            return []
        _, (m, p, _, _) = max((variable.value or 0.0, pace) for pace, variable in b.pace.items())
        at = slots[:1] if self.BY_SLOT else []
        workers = np.array([round(b.y[h, m, *at].value) for h in self.H])
        ps = np.array([round(self.ps[h, p, *at].value) if self.P else 0 for h in self.H])
        return [WindowRow(slots[0], slots[-1], m, p if self.P else -1, workers, ps)]

    def write(self, rows: Sequence[WindowRow]) -> None:
        b = self.block
        for variable in b.component_data_objects(pyo.Var):
            variable.set_value(0, skip_validation=True)
        for row in rows:
            m, p, q = row.worker_type, max(0, row.ps_type), int(row.one_server)
            self.q.value = q
            if (pace := (m, p, q, row.num_workers)) in b.pace:
                b.pace[pace].value = 1
            times = [(t,) for t in range(row.first, row.last + 1)] if self.BY_SLOT else [()]
            both = zip(row.workers.tolist(), row.ps.tolist(), strict=True)
            for h, (count, ps) in enumerate(both):
                b.on[h].value = int(count > 0 or ps > 0)
                for t in times:
                    b.y[h, m, *t].value = count
                if self.P:
                    b.hosts[h].value = int(ps > 0)
                    for t in times:
                        self.ps[h, p, *t].value = ps
            self.write_own(row)

    @abstractmethod
    def write_own(self, row: WindowRow) -> None:
        """Set the variables that only this program has."""
