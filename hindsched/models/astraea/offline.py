"""The programs of astraea in Pyomo: (3) and the round problem (4).

``modes`` consists of the blocks of `windows/block.py`; ``printed`` is the printed program
(`printed.py`). Both have the same optimum. ``slots`` is the problem ``preemptive``. Worker and PS
counts are the resources of the block's cluster: a worker of type w takes one unit of resource w.

========================  =====================================================================
``eq_3``                  objective: revenue of all tenants
``eq_3c``, ``eq_3d``      workers and PSs of a server; summed they imply (3a) and (3b)
``eq_3k``                 a must-complete job runs once
``eq_4a``                 an optional job runs at most once: o_j
``eq_9``                  objective of the subproblem (`subproblem.py`)
========================  =====================================================================

The other constraints of (3) hold by the choice of columns or stand inside the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes, slot_modes
from hindsched.instances.modes import PREEMPTIVE
from hindsched.models.astraea.cluster import (
    BLOCK,
    SYMBOLS,
    AstraeaNames,
    UnitCluster,
    last_worthwhile_slot,
    revenue_by_slot,
)
from hindsched.models.astraea.printed import (
    PAPER,
    REVENUE,
    add_printed,
    printed_sets,
    read_span,
    write_own,
)
from hindsched.models.astraea.subproblem import build_subproblem
from hindsched.models.base import PRINTED, Commitments, Duals, choose_form
from hindsched.models.windows.block import JobBlock, add_job, add_job_in_pieces, use_by_cell
from hindsched.models.windows.offline import SLOTS, Printed, WindowProgram, prices_of
from hindsched.models.windows.sets import EmptyCluster, Starts, fixed_rows, job_sets, left_by
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution, read_row
from hindsched.solutions.capacity_timeline import Room

__all__ = ["FORMS", "AstraeaProgram", "build_offline", "build_round", "build_subproblem"]

FORMS: dict[str, tuple[str, ...]] = {
    f"{obligation},{writing}": forms
    for obligation in ("optional", "must-complete")
    for writing, forms in (
        ("modes", ("modes", PRINTED)), ("literal", (PRINTED,)), (PREEMPTIVE, (SLOTS,))
    )
}  # fmt: skip
"""``literal`` is an older word for the printed form of the same problem."""


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaProgram(AstraeaNames, WindowProgram[AstraeaSolution]):
    """The offline program (3), or a round's (4)."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = REVENUE
    SOLUTION = AstraeaSolution
    ROW = AstraeaRow

    instance: AstraeaInstance

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (3c) and (3d): ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T).

        Of ``slots`` their means over the servers: its bounds merge the servers.
        """
        found = {}
        for name, count, rows in (
            ("worker_capacity", self.instance.worker_count, self.model.eq_3c),
            ("ps_capacity", self.instance.ps_count, self.model.eq_3d),
        ):
            prices = prices_of(rows, duals, (*count.shape, self.instance.horizon), sign=1)
            found[name] = prices.mean(axis=0) if self.form == SLOTS else prices
        return found


def build_offline(
    instance: AstraeaInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: AstraeaSolution | None = None,
) -> AstraeaProgram:
    """Build the offline program (3).

    Parameters
    ----------
    instance : AstraeaInstance
        The instance.
    formulation : str, optional
        ``optional`` or ``must-complete``, with ``modes`` or ``literal``, an older word for the
        printed form, or with ``preemptive``.
    form : str, optional
        ``modes`` (default) or ``printed``; of ``preemptive`` ``slots``.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed: a job with a row that begins before `now`, or a locked one,
        keeps its rows; rejected jobs get none; the others start from `now` on.
    incumbent : AstraeaSolution, optional
        Not used: the horizon is hard.

    Notes
    -----
    An optional job has no columns that earn nothing or less.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = build_offline(hs.generate("astraea", jobs=2), form="printed")
    >>> program.formulation, program.form
    ('optional,modes', 'printed')
    """
    known = None if formulation is None else instance.check_formulation(formulation)
    formulation, form = choose_form(FORMS, known, form)
    form = form or FORMS[formulation][0]
    again = partial(
        build_offline, instance, formulation, form=form, relax=relax, commitments=commitments
    )
    commitments = commitments or Commitments()
    cluster, fixed = UnitCluster.of(instance), fixed_rows(instance, commitments, read_row)
    free = left_by(cluster, fixed)
    jobs = [
        j
        for j, job in enumerate(instance.jobs)
        if job.name not in fixed and job.name not in commitments.rejected
    ]
    must = formulation.startswith("must-complete")
    model = pyo.ConcreteModel(name=instance.name)
    blocks: dict[int, JobBlock] = {}
    printed = None
    if form == PRINTED:
        sets = printed_sets(instance, jobs)
        printed = Printed(sets, PAPER, read_span, write_own)
        revenue = add_printed(model, instance, sets, commitments.now, free, must, relax)
    else:
        empty = EmptyCluster(cluster)
        model.job = pyo.Block(jobs)
        for j in jobs:
            job = instance.jobs[j]
            first = max(job.arrival + 1, commitments.now)
            last = instance.horizon if must else last_worthwhile_slot(instance, job)
            if form == SLOTS:
                table, rates = slot_modes(instance, job)
                own = job_sets(Starts.of(empty, table, first, last), rates=rates)
                work = job.total_minibatches
                blocks[j] = add_job_in_pieces(model.job[j], own, work, BLOCK, relax)
            else:
                own = job_sets(Starts.of(empty, modes(instance, job), first, last))
                blocks[j] = add_job(model.job[j], own, BLOCK, relax)
        revenue = _link(model, instance, cluster, blocks, free, must)
    settled = AstraeaSolution(instance, dict(fixed), formulation).objective()
    model.eq_3 = pyo.Objective(
        expr=revenue + settled, sense=pyo.maximize, doc="(3) revenue of all tenants"
    )
    return AstraeaProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, cluster=cluster, fixed=fixed, blocks=blocks, printed=printed,
    )  # fmt: skip


def _link(
    model: Any,
    instance: AstraeaInstance,
    cluster: UnitCluster,
    blocks: Mapping[int, JobBlock],
    free: Room[Floats],
    must: bool,
) -> Any:
    """Add how often a job runs, (3c) and (3d); return the revenue of the open jobs."""

    @model.Constraint(list(blocks) if must else [], doc="(3k) every job runs once")
    def eq_3k(_: Any, j: int) -> Any:
        return blocks[j].chosen == 1 if blocks[j].job.columns else pyo.Constraint.Infeasible

    possible = [] if must else [j for j, block in blocks.items() if block.job.columns]

    @model.Constraint(possible, doc="(4a) a job runs at most once")
    def eq_4a(_: Any, j: int) -> Any:
        return blocks[j].chosen <= 1

    split = len(instance.worker_types)
    used = use_by_cell(cluster, blocks)
    of_workers = [(s, w, t) for s, w, t in used if w < split]
    of_ps = [(s, r - split, t) for s, r, t in used if r >= split]

    @model.Constraint(of_workers, doc="(3c) workers of a server")
    def eq_3c(_: Any, s: int, w: int, t: int) -> Any:
        return pyo.quicksum(used[s, w, t]) <= float(free.at(t)[s, w])

    @model.Constraint(of_ps, doc="(3d) PSs of a server")
    def eq_3d(_: Any, s: int, p: int, t: int) -> Any:
        return pyo.quicksum(used[s, split + p, t]) <= float(free.at(t)[s, split + p])

    return pyo.quicksum(
        block.worth(revenue_by_slot(instance, instance.jobs[j])) for j, block in blocks.items()
    )


def round_instance(instance: AstraeaInstance, slots: int) -> AstraeaInstance:
    """The round problem's instance: all jobs available at time 0, `slots` slots.

    Utilities count from the round's start, so the instance is one of (3) with arrivals 0.
    """
    jobs = tuple(job.model_copy(update={"arrival": 0}) for job in instance.jobs)
    return instance.with_fields(horizon=slots, utility_origin="absolute", jobs=jobs)


def build_round(
    instance: AstraeaInstance, slots: int, form: str = "modes", *, relax: bool = False
) -> AstraeaProgram:
    """Build the round problem (4): the best schedules of all jobs on an empty cluster.

    Parameters
    ----------
    instance : AstraeaInstance
        The batch; arrivals do not matter.
    slots : int
        tau_l.
    form : str
        ``modes`` or ``printed``.
    relax : bool
        The linear relaxation.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_round(hs.generate("astraea", jobs=2), 4).instance.horizon
    4
    """
    return build_offline(round_instance(instance, slots), "optional,modes", form=form, relax=relax)
