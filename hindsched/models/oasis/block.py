"""The oasis family's job block, written once for the offline program and the subproblem.

=============  ================================================  ===========
symbol         meaning                                           indices
=============  ================================================  ===========
``y``          workers of the job                                pool, slot
``z``          parameter servers of the job                      pool, slot
``u``          the job ends in this slot (or by it, ``strong``)  slot
``n``          workers, if the job ends by this slot             end, slot
``x``          the job is admitted (``strong``: the sum of u)
=============  ================================================  ===========

A pool is a server or a group of identical servers. Both forms share y, z, (6) and (7); they link
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
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.oasis.instance import OasisInstance, OasisJob

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
    bandwidth : tuple of float
        b and B.
    utilities : ndarray, shape (T + 1,)
        Utility by completion slot.
    worker_room, ps_room : ndarray of int, shape (pools, T + 1)
        How many fit in each pool, by slot.
    """

    first: int
    work: int
    chunks: int
    most: NDArray[np.int64]
    bandwidth: tuple[float, float]
    utilities: NDArray[np.float64]
    worker_room: NDArray[np.int64]
    ps_room: NDArray[np.int64]

    @property
    def horizon(self) -> int:
        """T."""
        return self.utilities.size - 1

    @property
    def size(self) -> int:
        """Number of (end, slot) pairs of the strong form."""
        return sum(end - self.first + 1 for end, _ in self.ends())

    def ends(self) -> list[tuple[int, float]]:
        """End slots and utilities that the strong form needs: what is reachable, in merged runs."""
        reach = np.cumsum(self.most)
        kept: list[tuple[int, float]] = []
        for end in range(self.first, self.horizon + 1):
            if reach[end] < self.work:
                continue
            utility = float(self.utilities[end])
            if kept and kept[-1][1] - utility <= MERGE_TOLERANCE * abs(kept[0][1]):
                kept[-1] = (end, kept[-1][1])
            else:
                kept.append((end, utility))
        return kept


def most_workers(
    instance: OasisInstance,
    job: OasisJob,
    worker_room: NDArray[np.int64],
    ps_room: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Most workers at once under (3), (6), (7) and what fits, by slot, shape (T + 1,)."""
    needed = instance.ps_needed_up_to(job, job.chunks)
    served = np.where(needed <= np.arange(needed.size), needed, np.iinfo(np.int64).max)
    workers = np.minimum(worker_room.sum(axis=0), job.chunks)
    by_ps = np.searchsorted(served, ps_room.sum(axis=0), side="right") - 1
    most: NDArray[np.int64] = np.minimum(workers, by_ps)
    most[: job.arrival] = 0
    return most


def add_job(block: Any, facts: JobFacts, form: Form, *, relax: bool, must_run: bool) -> None:
    """Add a job's variables and constraints to a Pyomo block.

    Parameters
    ----------
    block : pyomo Block
        Receives ``y``, ``z``, ``u``, ``utility``, ``admitted`` and the constraints by number.
    facts : JobFacts
        The job.
    form : {"strong", "printed"}
        How the completion is linked.
    relax : bool
        Drop integrality (11)-(13).
    must_run : bool
        Whether the job has to be admitted, as in the subproblem.
    """
    integers = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    bounded = form != "printed"
    slots = range(facts.first if bounded else 1, facts.horizon + 1)
    _add_deployment(block, "y", facts.worker_room, slots, integers, bounded)
    _add_deployment(block, "z", facts.ps_room, slots, integers, bounded)
    y = {t: pyo.quicksum(block.y[h, t] for h in block.y_pools[t]) for t in slots}
    z = {t: pyo.quicksum(block.z[k, t] for k in block.z_pools[t]) for t in slots}
    b, big_b = facts.bandwidth
    scale = max(b, big_b, 1.0)
    used = [t for t in slots if block.y_pools[t]]
    block.eq_6 = pyo.Constraint(
        used, rule=lambda _, t: (b / scale) * y[t] <= (big_b / scale) * z[t]
    )
    both = [t for t in slots if block.z_pools[t]]
    block.eq_7 = pyo.Constraint(both, rule=lambda _, t: z[t] <= y[t])
    if form == "strong":
        _link_strong(block, facts, y, used, relax, must_run)
    elif form == "cumulative":
        _link_cumulative(block, facts, y, used, relax, must_run)
    else:
        _link_printed(block, facts, y, relax, must_run)


def _add_deployment(
    block: Any,
    name: str,
    room: NDArray[np.int64],
    slots: range,
    domain: Any,
    bounded: bool,
) -> None:
    """Add counts by (pool, slot); the strong form bounds them and leaves out what never fits."""
    pools = range(room.shape[0])
    room_of = room.tolist()
    open_pools = {t: [pool for pool in pools if not bounded or room_of[pool][t] > 0] for t in slots}
    index = [(pool, t) for t in slots for pool in open_pools[t]]
    bounds = (lambda _, pool, t: (0, room_of[pool][t])) if bounded else (0, None)
    setattr(block, name, pyo.Var(index, domain=domain, bounds=bounds))
    setattr(block, f"{name}_pools", open_pools)


def _link_strong(
    block: Any, facts: JobFacts, y: dict[int, Any], used: list[int], relax: bool, must_run: bool
) -> None:
    utilities = dict(facts.ends())
    ends = list(utilities)
    most = facts.most.tolist()
    spans = {e: [t for t in used if t <= e and most[t] > 0] for e in ends}
    block.u = pyo.Var(ends, domain=pyo.UnitInterval if relax else pyo.Binary)
    block.n = pyo.Var([(e, t) for e in ends for t in spans[e]], domain=pyo.NonNegativeReals)
    block.admitted = pyo.Expression(expr=pyo.quicksum(block.u[e] for e in ends))
    work = facts.work
    block.eq_2 = pyo.Constraint(
        ends, rule=lambda b, e: pyo.quicksum(b.n[e, t] for t in spans[e]) == work * b.u[e]
    )
    block.eq_3 = pyo.Constraint(
        [(e, t) for e in ends for t in spans[e]],
        rule=lambda b, e, t: b.n[e, t] <= most[t] * b.u[e],
    )
    block.eq_8 = pyo.Constraint(
        used,
        rule=lambda b, t: y[t] == pyo.quicksum(b.n[e, t] for e in ends if t <= e and most[t] > 0),
    )
    _admit(block, utilities, must_run)


def _admit(block: Any, utilities: dict[int, float], must_run: bool) -> None:
    """(11) and the utility of the forms whose end binaries stand for x."""
    if must_run and not utilities:
        block.eq_11 = pyo.Constraint(expr=pyo.Constraint.Infeasible)
    elif must_run:
        block.eq_11 = pyo.Constraint(expr=block.admitted == 1)
    elif utilities:
        block.eq_11 = pyo.Constraint(expr=block.admitted <= 1)
    gains = (utility * block.u[end] for end, utility in utilities.items())
    block.utility = pyo.Expression(expr=pyo.quicksum(gains))


def _link_cumulative(
    block: Any, facts: JobFacts, y: dict[int, Any], used: list[int], relax: bool, must_run: bool
) -> None:
    utilities = dict(facts.ends())
    most = facts.most.tolist()
    work = facts.work
    block.u = pyo.Var(list(utilities), domain=pyo.UnitInterval if relax else pyo.Binary)
    block.admitted = pyo.Expression(expr=pyo.quicksum(block.u.values()))
    slots = [t for t in used if t <= max(utilities, default=0)]
    block.done = pyo.Var(slots, bounds=(0, work))
    block.ended = pyo.Var(slots, bounds=(0, 1))
    before = dict(zip(slots[1:], slots, strict=False))
    between = {t: [e for e in utilities if before.get(t, 0) < e <= t] for t in slots}

    def done_before(b: Any, t: int) -> Any:
        return b.done[before[t]] if t in before else 0

    def ended_before(b: Any, t: int) -> Any:
        return b.ended[before[t]] if t in before else 0

    block.eq_2_sum = pyo.Constraint(slots, rule=lambda b, t: b.done[t] == done_before(b, t) + y[t])
    block.eq_8_sum = pyo.Constraint(
        slots,
        rule=lambda b, t: (
            b.ended[t] == ended_before(b, t) + pyo.quicksum(b.u[e] for e in between[t])
        ),
    )
    block.eq_2 = pyo.Constraint(slots, rule=lambda b, t: b.done[t] >= work * b.ended[t])
    block.eq_3 = pyo.Constraint(
        slots, rule=lambda b, t: y[t] <= most[t] * (b.admitted - ended_before(b, t))
    )
    if slots:
        block.eq_2_all = pyo.Constraint(expr=block.done[slots[-1]] >= work * block.admitted)
    _admit(block, utilities, must_run)


def _link_printed(
    block: Any, facts: JobFacts, y: dict[int, Any], relax: bool, must_run: bool
) -> None:
    first, horizon = facts.first, facts.horizon
    binary = pyo.UnitInterval if relax else pyo.Binary
    most = facts.chunks
    after = range(first, horizon + 1)
    block.x = pyo.Var(domain=binary)
    block.u = pyo.Var(after, domain=binary)
    block.admitted = pyo.Expression(expr=block.x)
    work = facts.work
    block.eq_2 = pyo.Constraint(expr=pyo.quicksum(y[t] for t in y) >= work * block.x)
    block.eq_3 = pyo.Constraint(after, rule=lambda b, t: y[t] <= most * b.x)
    block.eq_8_one = pyo.Constraint(expr=pyo.quicksum(block.u[e] for e in after) == block.x)
    block.eq_8_none_after = pyo.Constraint(
        after, rule=lambda b, t: y[t] <= most * pyo.quicksum(b.u[e] for e in range(t, horizon + 1))
    )
    block.eq_8_busy = pyo.Constraint(after, rule=lambda b, e: b.u[e] <= y[e])
    before = range(1, first)
    workers, servers = range(facts.worker_room.shape[0]), range(facts.ps_room.shape[0])
    block.eq_9 = pyo.Constraint(workers, before, rule=lambda b, h, t: b.y[h, t] == 0)
    block.eq_10 = pyo.Constraint(servers, before, rule=lambda b, k, t: b.z[k, t] == 0)
    if must_run:
        block.x.fix(1)
    utilities = facts.utilities.tolist()
    block.utility = pyo.Expression(expr=pyo.quicksum(utilities[e] * block.u[e] for e in after))
