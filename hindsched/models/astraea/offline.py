"""The programs of astraea in Pyomo: (3) and the round problem (4).

``modes`` consists of the blocks of `windows.py`; ``printed`` is the printed program (`printed.py`).
Both have the same optimum. ``slots`` is the problem ``preemptive``: the blocks of `slots.py`.
Worker and PS counts are the resources of the block's cluster: a worker of type w takes one unit of
resource w.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes, slot_modes
from hindsched.instances.modes import PREEMPTIVE
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.astraea.cluster import (
    BLOCK,
    SYMBOLS,
    AstraeaNames,
    UnitCluster,
    last_worthwhile_slot,
    revenue_of,
)
from hindsched.models.astraea.printed import (
    REVENUE,
    Ranges,
    add_printed,
    load_printed,
    read_printed,
)
from hindsched.models.astraea.subproblem import build_subproblem
from hindsched.models.base import PRINTED, Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.slots import SlotBlock, add_slots, windows_of
from hindsched.models.sums import gather, restrict, row_prices, sum_rows
from hindsched.models.windows import Starts, WindowBlock, add_job, job_columns
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution, read_row
from hindsched.solutions.capacity_timeline import Room
from hindsched.solutions.window_placing import fixed_rows

__all__ = ["FORMS", "AstraeaProgram", "build_offline", "build_round", "build_subproblem"]

Rows = dict[str, tuple[AstraeaRow, ...]]
SLOTS = "slots"
FORMS: dict[str, tuple[str, ...]] = {
    "optional,modes": ("modes", PRINTED),
    "optional,literal": (PRINTED,),
    "must-complete,modes": ("modes", PRINTED),
    "must-complete,literal": (PRINTED,),
    f"optional,{PREEMPTIVE}": (SLOTS,),
    f"must-complete,{PREEMPTIVE}": (SLOTS,),
}
"""``literal`` is an older word for the printed form of the same problem."""


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaProgram(AstraeaNames, OfflineProgram[AstraeaSolution]):
    """The offline program (3), or a round's (4).

    Parameters
    ----------
    fixed : dict
        Rows of the jobs that can no longer change.
    blocks : dict
        Blocks of the open jobs by position, in the forms ``modes`` and ``slots``.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = REVENUE

    instance: AstraeaInstance
    fixed: Rows
    blocks: dict[int, WindowBlock | SlotBlock] = field(
        default_factory=lambda: dict[int, WindowBlock | SlotBlock]()
    )

    def extract(self) -> AstraeaSolution:
        """Solution at the variables' present values."""
        rows: dict[str, Sequence[AstraeaRow]] = {**self.fixed}
        if self.form == PRINTED:
            found = read_printed(self.model, self.instance)
            rows |= {name: (row,) for name, row in found.items()}
        cluster = UnitCluster.of(self.instance)
        for j, block in self.blocks.items():
            found_rows = [AstraeaRow(*window) for window in windows_of(block, cluster)]
            if found_rows:
                rows[self.instance.jobs[j].name] = found_rows
        return AstraeaSolution(self.instance, rows, self.formulation)

    def load(self, solution: AstraeaSolution) -> None:
        """Set the variables from a solution whose jobs run in one window each: a start."""
        if self.form == PRINTED:
            load_printed(self.model, solution)
        cluster = UnitCluster.of(self.instance)
        for j, block in self.blocks.items():
            name = self.instance.jobs[j].name
            if isinstance(block, SlotBlock):
                done = solution.completion(name) is not None
                block.write(cluster, solution.rows[name] if done else ())
            else:
                block.write(cluster, whole_window(solution, name))

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (3c) and (3d): ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T).

        Of ``slots`` their means over the servers: its bounds merge the servers.
        """
        instance = self.instance
        workers = np.zeros((*instance.worker_count.shape, instance.horizon))
        ps = np.zeros((*instance.ps_count.shape, instance.horizon))
        for array, rows in ((workers, self.model.eq_3c), (ps, self.model.eq_3d)):
            (s, kind, t), prices = row_prices(rows, duals)
            array[s, kind, t - 1] = prices
        if self.form == SLOTS:
            workers, ps = workers.mean(axis=0), ps.mean(axis=0)
        return {"worker_capacity": workers, "ps_capacity": ps}


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
    fixed = fixed_rows(instance, commitments, read_row)
    free = _free(instance, fixed)
    jobs = [
        j
        for j, job in enumerate(instance.jobs)
        if job.name not in fixed and job.name not in commitments.rejected
    ]
    must = formulation.startswith("must-complete")
    settled = AstraeaSolution(instance, dict(fixed), formulation).objective()
    model = pyo.ConcreteModel(name=instance.name)
    blocks: dict[int, WindowBlock | SlotBlock] = {}
    if form == PRINTED:
        sets = Ranges.of(instance, jobs)
        revenue = add_printed(model, instance, sets, commitments.now, free, must, relax)
    else:
        cluster = UnitCluster.of(instance)
        model.job = pyo.Block(jobs)
        for j in jobs:
            job = instance.jobs[j]
            earliest = max(job.arrival + 1, commitments.now)
            last = instance.horizon if must else last_worthwhile_slot(instance, job)
            if form == SLOTS:
                blocks[j] = add_slots(
                    model.job[j], cluster, slot_modes(instance, job), (earliest, last),
                    job.total_minibatches, relax, BLOCK,
                )  # fmt: skip
                continue
            columns = job_columns(Starts.of(cluster, modes(instance, job), earliest, last))
            blocks[j] = add_job(model.job[j], cluster, columns, relax, BLOCK)
        _link(model, instance, blocks, free, must)
        revenue = pyo.quicksum(
            revenue_of(block, instance, instance.jobs[j]) for j, block in blocks.items()
        )
    model.eq_3 = pyo.Objective(
        expr=revenue + settled, sense=pyo.maximize, doc="(3) revenue of all tenants"
    )
    return AstraeaProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, fixed=fixed, blocks=blocks,
    )  # fmt: skip


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


def whole_window(solution: AstraeaSolution, name: str) -> AstraeaRow | None:
    """A completed job's single window, joined over changes of payment, or None."""
    rows = solution.rows.get(name, ())
    if solution.completion(name) is None:
        return None
    first, last = rows[0], rows[-1]
    for row in rows:
        if not row.same_placement(first):
            raise InputError("incumbent", name, "must keep its placement")
    return AstraeaRow(
        first.first, last.last, first.worker_type, first.ps_type, first.workers, first.ps
    )


def _free(instance: AstraeaInstance, fixed: Rows) -> Room[Floats]:
    """Capacity that fixed rows leave, shape (S, W + P)."""
    split = len(instance.worker_types)
    free = Room(UnitCluster.of(instance).server_capacity)
    for rows in fixed.values():
        for row in rows:
            free.book(row.first, row.last, row.workers, slice(None), row.worker_type)
            free.book(row.first, row.last, row.ps, slice(None), split + row.ps_type)
    return free


def _link(
    model: Model,
    instance: AstraeaInstance,
    blocks: Mapping[int, WindowBlock | SlotBlock],
    free: Room[Floats],
    must: bool,
) -> None:
    """Add (3c), (3d), and how often a job runs."""

    @model.Constraint(list(blocks) if must else [], doc="(3k) every job runs once")
    def eq_3k(_: Model, j: int) -> Expr:
        return blocks[j].chosen == 1 if blocks[j].columns.u else pyo.Constraint.Infeasible

    possible = [] if must else [j for j, block in blocks.items() if block.columns.u]

    @model.Constraint(possible, doc="(4a) a job runs at most once")
    def eq_4a(_: Model, j: int) -> Expr:
        return blocks[j].chosen <= 1

    split = len(instance.worker_types)
    keys, terms = gather([use for block in blocks.values() for use in block.uses])
    sides = free.of(keys[:, 2], keys[:, 0], keys[:, 1])
    for name, mine, doc in (
        ("eq_3c", keys[:, 1] < split, "(3c) workers of a server"),
        ("eq_3d", keys[:, 1] >= split, "(3d) PSs of a server"),
    ):
        kinds = keys[mine] - (0, split if name == "eq_3d" else 0, 0)
        rows = sum_rows(kinds, restrict(terms, mine), "<=", sides[mine], doc)
        model.add_component(name, rows)
