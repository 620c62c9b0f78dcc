"""A job as the papers print it: what (2)/(15) of batchsched and (3) of astraea say alike.

In batchsched's program a count of workers or PSs holds for the whole run of a job, in astraea's it
has a slot: ``*t`` stands for no index in the one and for the slot in the other. Each family's own
file gives the rules here their numbers. What is written with "|{...}|", "if and only if" and
products is linearised exactly:

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
from hindsched.models.algebra import Expr, Model, Use, binary_domain, integer_domain
from hindsched.models.windows.block import Family, WindowJobBlock
from hindsched.solutions.window_solution import WindowRow


class PrintedJob(WindowJobBlock):
    """A job's block with the variables and rules of both papers; a family's own adds the others."""

    BY_SLOT: ClassVar[bool]
    """Whether counts have a slot."""
    RUNNING: ClassVar[tuple[str, str]]
    """Variables of the workers and PSs that run, by server, type and slot."""
    scheduled: Expr = 1
    """1 if the job is scheduled."""

    def __init__(self, block: Model, family: Family, job: Any, slots: int, relax: bool) -> None:
        self.block, self.cluster = block, family.cluster
        room, ps = self.cluster.worker_room.tolist(), self.cluster.ps_demand  # of no types for Ring
        ps_room = units(self.cluster.server_capacity, ps).tolist()
        self.H, self.M, self.P = range(len(room)), range(len(room[0])), range(len(ps))
        self.T = range(1, slots + 1)
        self.over = [self.T] if self.BY_SLOT else []
        self.chunks, self.most = job.chunks, most_workers(self.cluster, job)
        self.most_y = {(h, m): min(job.chunks, room[h][m]) for h in self.H for m in self.M}
        self.most_ps = {(h, p): ps_room[h][p] for h in self.H for p in self.P}
        length = durations(self.cluster, job)
        self.length = {
            (m, p, q, n + 1): int(length[m, p, q, n])
            for m, p, q, n in np.argwhere(length <= slots).tolist()
        }  # by pace
        self.binary, self.integer = binary_domain(relax), integer_domain(relax)

    @property
    @abstractmethod
    def together(self) -> Expr:
        """The variable that is 1 if everything stands on one server."""

    @property
    @abstractmethod
    def ps(self) -> Expr:
        """The PSs by server, type and slot; None without PSs."""

    def counts(self, kinds: range, most: Mapping[tuple[int, int], int], doc: str) -> Expr:
        """Variables: how many of each type stand on each server."""
        return pyo.Var(
            self.H, kinds, *self.over, domain=self.integer,
            bounds=lambda _, *i: (0, most[i[:2]]), doc=doc,
        )  # fmt: skip

    def choice(self, doc: str, *index: Any) -> Expr:
        """Variables: whether something is so."""
        return pyo.Var(*index, domain=self.binary, doc=doc)

    def workers(self, *t: int) -> Expr:
        """All workers of the job."""
        return total(self.block.y[h, m, *t] for h in self.H for m in self.M)

    # Rules that both papers state

    def host_with_ps(self, b: Model, h: int, p: int, *t: int) -> Expr:
        """Which servers hold a PS: as printed every server would need PSs."""
        return self.ps[h, p, *t] <= self.most_ps[h, p] * b.hosts[h]

    def host_bandwidth(self, b: Model, h: int, *t: int) -> Expr:
        """A host's PSs have bandwidth for the workers elsewhere."""
        mbps = self.cluster.worker_bandwidth.tolist()
        ps_mbps = self.cluster.ps_bandwidth.tolist()
        sent = total(mbps[m] * b.y[o, m, *t] for o in self.H if o != h for m in self.M)
        received = total(ps_mbps[p] * self.ps[h, p, *t] for p in self.P)
        return sent <= received + self.most * max(mbps) * (1 - b.hosts[h])

    def server_of_worker(self, b: Model, h: int, m: int, *t: int) -> Expr:
        """A worker's server is used."""
        return b.y[h, m, *t] <= self.most_y[h, m] * b.on[h]

    def server_of_ps(self, b: Model, h: int, p: int, *t: int) -> Expr:
        """A PS's server is used."""
        return self.ps[h, p, *t] <= self.most_ps[h, p] * b.on[h]

    def used_server(self, b: Model, h: int) -> Expr:
        """A used server holds something."""
        counts = [b.y, self.ps] if self.P else [b.y]
        return b.on[h] <= total(
            n for numbers in counts for place, n in numbers.items() if place[0] == h
        )

    def one_server(self, b: Model) -> Expr:
        """On one server: at most one is used."""
        return total(b.on.values()) <= 1 + (len(self.H) - 1) * (1 - self.together)

    def several_servers(self, b: Model) -> Expr:
        """Otherwise several are used."""
        return total(b.on.values()) >= 2 * self.scheduled - self.together

    def one_pace(self, b: Model) -> Expr:
        """A scheduled job has one pace."""
        return total(b.pace.values()) == self.scheduled

    def pace_together(self, b: Model) -> Expr:
        """The pace is that of one server, or of several."""
        return total(b.pace[k] for k in self.length if k[2] == 1) == self.together

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
            self.together.value = q
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
            self.write_row(row)

    @abstractmethod
    def write_row(self, row: WindowRow) -> None:
        """Set the variables that only this program has."""
