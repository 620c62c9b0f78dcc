"""One oasis job as a Pyomo block, written once for the offline program and the subproblem.

=============  ================================================  ===========
symbol         meaning                                           indices
=============  ================================================  ===========
``y``          workers of the job                                pool, slot
``z``          parameter servers (PSs) of the job                pool, slot
``u``          the job ends in this slot (or by it, ``strong``)  end
``n``          workers, if the job ends by this end              end, slot
``x``          the job is admitted (elsewhere: the sum of u)
``done``       workers up to and with this slot                  slot
``ended``      share of the job that has ended by this slot      slot
=============  ================================================  ===========

A pool is a server or a group of identical servers. All forms share y, z, (6) and (7); they link
the deployment to the completion differently:

``printed``
    (2), (3), (9), (10) as printed; (8) by completion-slot binaries: exactly one u if admitted, no
    worker after it, a worker in it.
``strong``
    Per end slot: exactly the work is done by it, and no more workers than can run if the job ends
    by it. Ends of equal utility are merged into their last. Asking for exactly the work loses
    nothing: dropping a worker keeps a schedule feasible and never delays it.
``cumulative``
    As strong, but the work done and the share that has ended are accumulated over the slots: as
    many rows as slots instead of their square, and nearly as tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Domain, Expr, Model, Variable
from hindsched.models.sums import Terms, ragged, sum_rows, variable

Form = Literal["strong", "cumulative", "printed"]
FORMS: tuple[Form, ...] = ("strong", "cumulative", "printed")

MERGE_TOLERANCE = 1e-12
"""Ends whose utilities differ by less, relative to the job's best, are merged: the last slot, the
largest utility, so that a bound stays a bound."""


@dataclass(frozen=True)
class JobFacts:
    """What a block is built from.

    Parameters
    ----------
    first : int
        First slot in which the job may still run.
    work : int
        Worker-slots still to do.
    chunks : int
        N: most workers at once.
    most : ndarray of int, shape (T + 1,)
        Most workers that fit at once, by slot; 0 before `first`.
    ps_per_worker : float
        b / B.
    utilities : ndarray, shape (T + 1,)
        Utility by completion slot.
    worker_room, ps_room : ndarray of int, shape (pools, T + 1)
        How many fit in each pool, by slot.
    """

    first: int
    work: int
    chunks: int
    most: Ints
    ps_per_worker: float
    utilities: Floats
    worker_room: Ints
    ps_room: Ints

    @property
    def horizon(self) -> int:
        """T."""
        return self.utilities.size - 1

    @property
    def size(self) -> int:
        """Number of (end, slot) pairs of the strong form."""
        return sum(end - self.first + 1 for end, _ in self.ends)

    @cached_property
    def ends(self) -> list[tuple[int, float]]:
        """End slots and utilities that the strong form needs: what is reachable, in merged runs."""
        begin = int(np.cumsum(self.most).searchsorted(self.work))  # by then it can be done
        begin = max(begin, self.first)
        kept: list[tuple[int, float]] = []
        for end, utility in enumerate(self.utilities[begin:].tolist(), begin):
            if kept and kept[-1][1] - utility <= MERGE_TOLERANCE * abs(kept[0][1]):
                kept[-1] = (end, kept[-1][1])
            else:
                kept.append((end, utility))
        return kept


def most_workers(
    instance: OasisInstance,
    job: OasisJob,
    worker_room: Ints,
    ps_room: Ints,
) -> Ints:
    """Most workers at once under (3), (6), (7) and what fits, by slot, shape (T + 1,)."""
    needed = instance.ps_needed_up_to(job, job.chunks)
    served = np.where(needed <= np.arange(needed.size), needed, np.iinfo(np.int64).max)
    workers = np.minimum(worker_room.sum(axis=0), job.chunks)
    by_ps = np.searchsorted(served, ps_room.sum(axis=0), side="right") - 1
    most: Ints = np.minimum(workers, by_ps)
    most[: job.arrival] = 0
    return most


@dataclass(frozen=True)
class Domains:
    """Which variables must be whole, (11)-(13).

    Parameters
    ----------
    counts, ends : bool
        Whether workers and PSs, and admissions and ends, are integer.
    """

    counts: bool = True
    ends: bool = True

    @property
    def count(self) -> Domain:
        """Domain of workers and PSs."""
        return pyo.NonNegativeIntegers if self.counts else pyo.NonNegativeReals

    @property
    def choice(self) -> Domain:
        """Domain of admissions and ends."""
        return pyo.Binary if self.ends else pyo.UnitInterval


class _Slots:
    """Some slots, in order, whose rows add up over the pools."""

    def __init__(self, slots: Ints, horizon: int) -> None:
        self.slots = slots
        self._row = np.full(horizon + 1, -1)
        self._row[slots] = np.arange(len(slots))

    def sums(self, variable: Variable, slot_of: Ints, factor: float) -> Terms:
        """In the row of each slot, a factor times what a variable has there."""
        row = self._row[slot_of]
        inside = np.flatnonzero(row >= 0)
        return Terms(variable, row[inside], inside, np.full(len(inside), factor))


@dataclass(frozen=True)
class Deployment:
    """Workers and PSs of a job in all pools.

    Parameters
    ----------
    y, z : Var
        Of the block.
    cells_of_y, cells_of_z : ndarray of int, shape (elements, 2)
        Pool and slot of each of their elements.
    used : _Slots
        Slots in which a worker may run.
    horizon : int
        T.
    """

    y: Variable
    z: Variable
    cells_of_y: Ints
    cells_of_z: Ints
    used: _Slots
    horizon: int

    @cached_property
    def workers(self) -> dict[int, Expr]:
        """Workers in all pools, by slot: expressions."""
        found: dict[int, list[Expr]] = {t: [] for t in range(1, self.horizon + 1)}
        for t, one in zip(self.cells_of_y[:, 1].tolist(), self.y.values(), strict=True):
            found[t].append(one)
        return {t: pyo.quicksum(own) for t, own in found.items()}


def add_job(
    block: Model, facts: JobFacts, form: Form, domains: Domains, *, must_run: bool
) -> Deployment:
    """Add a job's variables and constraints to a Pyomo block.

    Parameters
    ----------
    block : pyomo Block
        Receives ``y``, ``z``, ``u``, ``utility``, ``admitted`` and the constraints by number.
    facts : JobFacts
        The job.
    form : {"strong", "cumulative", "printed"}
        How the completion is linked.
    domains : Domains
        Which variables are integer.
    must_run : bool
        Whether the job has to be admitted, as in the subproblem.
    """
    deployment = _deploy(block, facts, form, domains)
    if form == "strong":
        _end_by_exact_work(block, facts, deployment, domains)
        _admit(block, facts, must_run)
    elif form == "cumulative":
        _end_by_sums(block, facts, deployment, domains)
        _admit(block, facts, must_run)
    else:
        _end_as_printed(block, facts, deployment, domains)
        if must_run:
            block.x.fix(1)
    return deployment


def _deploy(block: Model, facts: JobFacts, form: Form, domains: Domains) -> Deployment:
    """Workers and PSs with (6) and (7); the printed form leaves in what never fits."""
    first = facts.first if form != "printed" else 1
    cells_of_y, most_of_y = _cells(facts.worker_room, first, form != "printed")
    cells_of_z, most_of_z = _cells(facts.ps_room, first, form != "printed")
    block.y = variable(cells_of_y, domains.count, "(12) workers of a job", most_of_y)
    block.z = variable(cells_of_z, domains.count, "(13) parameter servers of a job", most_of_z)
    of_y, of_z = cells_of_y[:, 1], cells_of_z[:, 1]
    used = _Slots(_each_once(of_y), facts.horizon)
    hosting = _Slots(_each_once(of_z), facts.horizon)
    bandwidth = [used.sums(block.y, of_y, facts.ps_per_worker), used.sums(block.z, of_z, -1.0)]
    block.eq_6 = sum_rows(
        used.slots, bandwidth, "<=", 0.0, "(6) the PSs have bandwidth for all workers"
    )
    at_most = [hosting.sums(block.z, of_z, 1.0), hosting.sums(block.y, of_y, -1.0)]
    block.eq_7 = sum_rows(hosting.slots, at_most, "<=", 0.0, "(7) no more PSs than workers")
    return Deployment(block.y, block.z, cells_of_y, cells_of_z, used, facts.horizon)


def _cells(room: Ints, first: int, bounded: bool) -> tuple[Ints, Floats | None]:
    """(pool, slot) from a slot on in which something fits, and how much; all if not bounded."""
    open_cells = room[:, first:].T > 0 if bounded else np.ones_like(room[:, first:].T)
    slot, pool = np.nonzero(open_cells)
    slot += first
    return np.stack([pool, slot], axis=1), room[pool, slot].astype(float) if bounded else None


def _each_once(slots: Ints) -> Ints:
    """Slots that are in order, each once."""
    new = np.ones(len(slots), dtype=bool)
    np.not_equal(slots[1:], slots[:-1], out=new[1:])
    return slots[new]


def _end_by_exact_work(
    block: Model, facts: JobFacts, deployment: Deployment, domains: Domains
) -> None:
    """Strong form: the workers of a slot are split over the ends by which the job may end."""
    ends = np.array([end for end, _ in facts.ends], dtype=np.int64)
    busy = deployment.used.slots[facts.most[deployment.used.slots] > 0]
    end_of, place = ragged(np.searchsorted(busy, ends, side="right"))  # of every n its u
    slot_of = busy[place]
    pairs = np.stack([ends[end_of], slot_of], axis=1)
    block.u = variable(ends.tolist(), domains.choice, "(11) the job ends by this slot")
    block.n = variable(pairs, pyo.NonNegativeReals, "(ours) workers, if the job ends by this slot")
    own, each = np.arange(len(ends)), np.arange(len(pairs))  # positions of u and of n
    ones, most_then = np.ones(len(pairs)), facts.most[slot_of].astype(float)
    done = [  # sum over t <= end of n[end, t] == work u[end]
        Terms(block.n, end_of, each, ones),
        Terms(block.u, own, own, np.full(len(ends), -float(facts.work))),
    ]
    at_once = [  # n[end, t] <= most[t] u[end]
        Terms(block.n, each, each, ones),
        Terms(block.u, each, end_of, -most_then),
    ]
    block.eq_2 = sum_rows(ends, done, "==", 0.0, "(2) exactly the work is done by the end")
    block.eq_3 = sum_rows(
        pairs, at_once, "<=", 0.0, "(3) no more workers at once than chunks, none after the end"
    )
    used = deployment.used
    split = [  # sum over pools of y[pool, t] == sum over end of n[end, t]
        used.sums(block.y, deployment.cells_of_y[:, 1], 1.0), used.sums(block.n, slot_of, -1.0)
    ]  # fmt: skip
    block.eq_8 = sum_rows(
        used.slots, split, "==", 0.0, "(8) the workers of a slot, whatever the end"
    )


def _end_by_sums(block: Model, facts: JobFacts, deployment: Deployment, domains: Domains) -> None:
    """Cumulative form: the work done keeps ahead of the share of the job that has ended."""
    ends = [end for end, _ in facts.ends]
    most = facts.most.tolist()
    work = facts.work
    slots = [t for t in deployment.used.slots.tolist() if t <= max(ends, default=0)]
    before = dict(zip(slots[1:], slots, strict=False))
    between = {t: [end for end in ends if before.get(t, 0) < end <= t] for t in slots}
    block.u = pyo.Var(ends, domain=domains.choice, doc="(11) the job ends in this slot")
    block.done = pyo.Var(slots, bounds=(0, work), doc="(ours) workers up to and with this slot")
    block.ended = pyo.Var(slots, bounds=(0, 1), doc="(ours) share that has ended by this slot")
    admitted = pyo.quicksum(block.u[end] for end in ends)

    def done_before(b: Model, t: int) -> Expr:
        return b.done[before[t]] if t in before else 0

    def ended_before(b: Model, t: int) -> Expr:
        return b.ended[before[t]] if t in before else 0

    @block.Constraint(slots, doc="(2) the work done, slot by slot")
    def eq_2_sum(b: Model, t: int) -> Expr:
        return b.done[t] == done_before(b, t) + deployment.workers[t]

    @block.Constraint(slots, doc="(8) the share that has ended, slot by slot")
    def eq_8_sum(b: Model, t: int) -> Expr:
        return b.ended[t] == ended_before(b, t) + pyo.quicksum(b.u[end] for end in between[t])

    @block.Constraint(slots, doc="(2) what has ended has done its work")
    def eq_2(b: Model, t: int) -> Expr:
        return b.done[t] >= work * b.ended[t]

    @block.Constraint(slots, doc="(3) no more workers at once than chunks, none after the end")
    def eq_3(b: Model, t: int) -> Expr:
        return deployment.workers[t] <= most[t] * (admitted - ended_before(b, t))

    if slots:
        block.eq_2_all = pyo.Constraint(
            expr=block.done[slots[-1]] >= work * admitted, doc="(2) an admitted job does its work"
        )


def _admit(block: Model, facts: JobFacts, must_run: bool) -> None:
    """(11) and the utility of the forms whose end binaries stand for x."""
    utilities = dict(facts.ends)
    block.admitted = pyo.Expression(expr=pyo.quicksum(block.u[end] for end in utilities))
    if must_run and not utilities:
        block.eq_11 = pyo.Constraint(
            expr=pyo.Constraint.Infeasible, doc="(11) the job runs, which it cannot"
        )
    elif must_run:
        block.eq_11 = pyo.Constraint(expr=block.admitted == 1, doc="(11) the job runs")
    elif utilities:
        block.eq_11 = pyo.Constraint(expr=block.admitted <= 1, doc="(11) the job runs at most once")
    block.utility = pyo.Expression(
        expr=pyo.quicksum(utility * block.u[end] for end, utility in utilities.items())
    )


def _end_as_printed(
    block: Model, facts: JobFacts, deployment: Deployment, domains: Domains
) -> None:
    """(2), (3), (8)-(10) as printed, (8) by one binary a completion slot."""
    first, horizon = facts.first, facts.horizon
    workers, most = deployment.workers, facts.chunks
    before, after = range(1, first), range(first, horizon + 1)
    worker_pools, ps_pools = range(facts.worker_room.shape[0]), range(facts.ps_room.shape[0])
    block.x = pyo.Var(domain=domains.choice, doc="(11) the job is admitted")
    block.u = pyo.Var(after, domain=domains.choice, doc="(8) the job ends in this slot")
    block.admitted = pyo.Expression(expr=block.x)
    block.eq_2 = pyo.Constraint(
        expr=pyo.quicksum(workers.values()) >= facts.work * block.x,
        doc="(2) an admitted job does its work",
    )

    @block.Constraint(after, doc="(3) no more workers at once than chunks")
    def eq_3(b: Model, t: int) -> Expr:
        return workers[t] <= most * b.x

    block.eq_8_one = pyo.Constraint(
        expr=pyo.quicksum(block.u[end] for end in after) == block.x,
        doc="(8) an admitted job has one completion slot",
    )

    @block.Constraint(after, doc="(8) no worker after the completion slot")
    def eq_8_none_after(b: Model, t: int) -> Expr:
        return workers[t] <= most * pyo.quicksum(b.u[end] for end in range(t, horizon + 1))

    @block.Constraint(after, doc="(8) a worker in the completion slot")
    def eq_8_busy(b: Model, end: int) -> Expr:
        return b.u[end] <= workers[end]

    @block.Constraint(worker_pools, before, doc="(9) no worker before the arrival")
    def eq_9(b: Model, pool: int, t: int) -> Expr:
        return b.y[pool, t] == 0

    @block.Constraint(ps_pools, before, doc="(10) no PS before the arrival")
    def eq_10(b: Model, pool: int, t: int) -> Expr:
        return b.z[pool, t] == 0

    utilities = facts.utilities.tolist()
    block.utility = pyo.Expression(
        expr=pyo.quicksum(utilities[end] * block.u[end] for end in after)
    )
