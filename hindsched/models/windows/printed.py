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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Ints
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import Expr, Window
from hindsched.solutions.window_row import WindowRow

Pace = tuple[int, int, int, int, int]
"""Job, worker type, PS type, whether on one server, number of workers."""


class Paper(NamedTuple):
    """Letters and equation numbers of a paper.

    Parameters
    ----------
    ps, together : str
        Letters of the PSs and of "on one server".
    counts, hosting, standing, pace : str
        Numbers of what says: counts are whole; a host's PSs have bandwidth for the workers
        elsewhere; what "on one server" means; how fast a job is.
    """

    ps: str
    together: str
    counts: str
    hosting: str
    standing: str
    pace: str


@dataclass(frozen=True)
class PrintedSets:
    """Index sets and largest values of a printed program.

    Parameters
    ----------
    jobs : list of int
        The open jobs.
    H, M, P, T : range
        Servers, worker types, PS types, slots.
    chunks, most_workers : dict
        Most workers of a job by its data, and as the cluster allows them.
    most_y, most_ps : dict
        Most workers and PSs of a type on a server, by job, server and type.
    length : dict
        Duration by pace.
    mbps, ps_mbps : list of float
        Bandwidth of a worker and of a PS by type.
    by_slot : bool
        Whether counts have a slot.
    """

    jobs: list[int]
    H: range
    M: range
    P: range
    T: range
    chunks: dict[int, int]
    most_workers: dict[int, int]
    most_y: dict[tuple[int, int, int], int]
    most_ps: dict[tuple[int, int, int], int]
    length: dict[Pace, int]
    mbps: list[float]
    ps_mbps: list[float]
    by_slot: bool

    @classmethod
    def of(
        cls,
        instance: Any,
        jobs: list[int],
        slots: int,
        room: Ints,
        ps_room: Ints,
        durations: Callable[[Any, Any], Ints],
        most_workers: Callable[[Any, Any], int],
        by_slot: bool,
    ) -> PrintedSets:
        """Read them from an instance; `room` and `ps_room` are those of an empty server by type."""
        H, M, P = range(room.shape[0]), range(room.shape[1]), range(ps_room.shape[1])
        chunks = {j: instance.jobs[j].chunks for j in jobs}
        length = {
            (j, m, p, q, n + 1): int(table[m, p, q, n])
            for j in jobs
            for table in [durations(instance, instance.jobs[j])]
            for m, p, q, n in np.argwhere(table <= slots).tolist()
        }
        return cls(
            jobs, H, M, P, range(1, slots + 1), chunks,
            {j: most_workers(instance, instance.jobs[j]) for j in jobs},
            {(j, h, m): min(chunks[j], int(room[h, m])) for j in jobs for h in H for m in M},
            {(j, h, p): int(ps_room[h, p]) for j in jobs for h in H for p in P},
            length, instance.worker_bandwidth.tolist(), instance.ps_bandwidth.tolist(), by_slot,
        )  # fmt: skip

    @property
    def over_slots(self) -> list[range]:
        """What the counts' index sets have behind server and type."""
        return [self.T] if self.by_slot else []

    @property
    def times(self) -> list[tuple[int, ...]]:
        """The values of ``*t``."""
        return [(t,) for t in self.T] if self.by_slot else [()]

    def paces(self, j: int, **given: int) -> list[Pace]:
        """The paces of a job with given types ``m``, ``p`` or ``q``."""
        place = {"m": 1, "p": 2, "q": 3}
        return [
            pace
            for pace in self.length
            if pace[0] == j and all(pace[place[name]] == value for name, value in given.items())
        ]


def numbered(
    model: Any, number: str, suffix: str, index: list[Any], rule: Callable[..., Expr], doc: str
) -> None:
    """Add a constraint under a paper's number, and a suffix where several rows say one sentence."""
    rows = pyo.Constraint(*index, rule=rule, doc=f"({number}) {doc}")
    model.add_component(f"eq_{number}{suffix}", rows)


def workers(m: Any, sets: PrintedSets, j: int, *t: int) -> Expr:
    """All workers of a job."""
    return pyo.quicksum(m.y[j, h, k, *t] for h in sets.H for k in sets.M)


def add_variables(model: Any, sets: PrintedSets, paper: Paper, relax: bool) -> None:
    """Counts, hosts, and what is selected."""
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    jobs, H, over = sets.jobs, sets.H, sets.over_slots
    model.y = pyo.Var(
        jobs, H, sets.M, *over, domain=whole, bounds=lambda _, *i: (0, sets.most_y[i[:3]]),
        doc=f"({paper.counts}) workers of a type on a server",
    )  # fmt: skip
    together = pyo.Var(jobs, domain=binary, doc=f"({paper.standing}) all stands on one server")
    model.add_component(paper.together, together)
    model.on = pyo.Var(
        jobs, H, domain=binary, doc=f"({paper.standing}) the server holds anything of the job"
    )
    model.pace = pyo.Var(
        list(sets.length), domain=binary, doc=f"({paper.pace}) types, number of workers, where"
    )
    if sets.P:
        ps = pyo.Var(
            jobs, H, sets.P, *over, domain=whole, bounds=lambda _, *i: (0, sets.most_ps[i[:3]]),
            doc=f"({paper.counts}) PSs of a type on a server",
        )  # fmt: skip
        model.add_component(paper.ps, ps)
        model.hosts = pyo.Var(
            jobs, H, domain=binary, doc=f"({paper.hosting}) the server holds a PS of the job"
        )


def add_hosting(model: Any, sets: PrintedSets, paper: Paper) -> None:
    """(2i)/(3i), for the servers that hold a PS: as printed every server would need PSs."""
    ps = model.component(paper.ps)

    def holds(m: Any, j: int, h: int, p: int, *t: int) -> Expr:
        return ps[j, h, p, *t] <= sets.most_ps[j, h, p] * m.hosts[j, h]

    def bandwidth(m: Any, j: int, h: int, *t: int) -> Expr:
        sent = pyo.quicksum(
            sets.mbps[k] * m.y[j, o, k, *t] for o in sets.H if o != h for k in sets.M
        )
        received = pyo.quicksum(sets.ps_mbps[p] * ps[j, h, p, *t] for p in sets.P)
        most = sets.most_workers[j] * max(sets.mbps)
        return sent <= received + most * (1 - m.hosts[j, h])

    where = [sets.jobs, sets.H]
    numbered(
        model, paper.hosting, f"_{paper.ps}", [*where, sets.P, *sets.over_slots], holds,
        "which servers hold a PS",
    )  # fmt: skip
    numbered(
        model, paper.hosting, "", [*where, *sets.over_slots], bandwidth,
        "a host's PSs have bandwidth for the workers elsewhere",
    )  # fmt: skip


def add_standing(
    model: Any, sets: PrintedSets, paper: Paper, scheduled: Callable[[int], Expr]
) -> None:
    """(2d), (15a)/(3j): q = 1 iff one server holds everything."""
    jobs, H, M, P = sets.jobs, sets.H, sets.M, sets.P
    q, ps = model.component(paper.together), model.component(paper.ps)

    def workers_on(m: Any, j: int, h: int, k: int, *t: int) -> Expr:
        return m.y[j, h, k, *t] <= sets.most_y[j, h, k] * m.on[j, h]

    def ps_on(m: Any, j: int, h: int, p: int, *t: int) -> Expr:
        return ps[j, h, p, *t] <= sets.most_ps[j, h, p] * m.on[j, h]

    def something_on(m: Any, j: int, h: int) -> Expr:
        held = [m.y[j, h, k, *t] for k in M for t in sets.times]
        held += [ps[j, h, p, *t] for p in P for t in sets.times]
        return m.on[j, h] <= pyo.quicksum(held)

    def one(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.on[j, h] for h in H) <= 1 + (len(H) - 1) * (1 - q[j])

    def several(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.on[j, h] for h in H) >= 2 * scheduled(j) - q[j]

    over, number = sets.over_slots, paper.standing
    numbered(model, number, "_y", [jobs, H, M, *over], workers_on, "a worker's server is used")
    if P:
        numbered(model, number, f"_{paper.ps}", [jobs, H, P, *over], ps_on, "a PS's server is used")
    numbered(model, number, "_on", [jobs, H], something_on, "a used server holds something")
    numbered(model, number, "", [jobs], one, "on one server: at most one is used")
    numbered(model, number, "_several", [jobs], several, "otherwise several servers are used")


def add_pace(model: Any, sets: PrintedSets, paper: Paper, scheduled: Callable[[int], Expr]) -> None:
    """(2f)/(3k): a scheduled job has one pace, on one server or on several."""
    q = model.component(paper.together)

    def one(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.pace[pace] for pace in sets.paces(j)) == scheduled(j)

    def where(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.pace[pace] for pace in sets.paces(j, q=1)) == q[j]

    numbered(model, paper.pace, "_one", [sets.jobs], one, "a scheduled job has one pace")
    numbered(
        model, paper.pace, f"_{paper.together}", [sets.jobs], where,
        "the pace is that of one server, or of several",
    )  # fmt: skip


def read_window(
    model: Any, sets: PrintedSets, paper: Paper, j: int, first: int, last: int
) -> Window:
    """A job's window at the variables' values."""
    _, pace = max((model.pace[pace].value or 0.0, pace) for pace in sets.paces(j))
    m, p, at = pace[1], pace[2], (first,) if sets.by_slot else ()
    counts = np.array([round(model.y[j, h, m, *at].value) for h in sets.H])
    if not sets.P:
        return Window(first, last, m, -1, counts, np.zeros_like(counts))
    ps = model.component(paper.ps)
    return Window(
        first, last, m, p, counts, np.array([round(ps[j, h, p, *at].value) for h in sets.H])
    )


def write_window(model: Any, sets: PrintedSets, paper: Paper, j: int, row: WindowRow) -> None:
    """Set what both programs have from a job's window; everything else of the job is 0."""
    m, p, q = row.worker_type, max(0, row.ps_type), int(row.one_server)
    model.component(paper.together)[j].value = q
    if (pace := (j, m, p, q, row.num_workers)) in model.pace:
        model.pace[pace].value = 1
    times = [(t,) for t in range(row.first, row.last + 1)] if sets.by_slot else [()]
    for h, (count, ps) in enumerate(zip(row.workers.tolist(), row.ps.tolist(), strict=True)):
        model.on[j, h].value = int(count > 0 or ps > 0)
        for t in times:
            model.y[j, h, m, *t].value = count
        if sets.P:
            model.hosts[j, h].value = int(ps > 0)
            for t in times:
                model.component(paper.ps)[j, h, p, *t].value = ps


def printed_symbols(
    paper: Paper, words: tuple[str, str], slot: str, units: Mapping[str, str]
) -> dict[str, Symbol]:
    """Indices and units of what both programs have.

    Parameters
    ----------
    paper : Paper
        Letters and numbers.
    words : (str, str)
        Index names of a worker's and of a PS's count.
    slot : str
        What they have behind them: nothing or a slot.
    units : mapping
        Unit of a row by the end of its name.
    """
    of_worker, of_ps = (f"job, server, {word}{slot}" for word in words)
    hosting, standing, pace = (f"eq_{n}" for n in (paper.hosting, paper.standing, paper.pace))
    found = {
        "y": (of_worker, "workers"), paper.ps: (of_ps, "PSs"), paper.together: ("job", "jobs"),
        "on": ("job, server", "servers"), "hosts": ("job, server", "servers"),
        "pace": ("job, worker type, PS type, one server, workers", "jobs"),
        hosting: (f"job, server{slot}", ""), f"{hosting}_{paper.ps}": (of_ps, ""),
        standing: ("job", ""), f"{standing}_several": ("job", ""),
        f"{standing}_on": ("job, server", ""), f"{standing}_y": (of_worker, ""),
        f"{standing}_{paper.ps}": (of_ps, ""), f"{pace}_one": ("job", ""),
        f"{pace}_{paper.together}": ("job", ""),
    }  # fmt: skip
    return {name: Symbol(index, units.get(name, unit)) for name, (index, unit) in found.items()}
