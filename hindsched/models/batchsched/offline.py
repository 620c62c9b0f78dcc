"""The programs of batchsched in Pyomo: (2)/(15) and the round problem (7)/(16).

``modes`` consists of the blocks of `windows.py`; ``printed`` is the printed program (`printed.py`).
Both have the same optimum. ``slots`` is the problem ``preemptive``: the blocks of `slots.py`. The
slots that a program spans follow from a feasible schedule (the incumbent): in an optimal schedule
no job completes later than ``cmin_j + (UB - sum w cmin) / w_j``.

=======================  =====================================================================
``objective``            (2)/(15): total weighted completion time; (7)/(16): total weight
``eq_2a``, ``eq_7a``     every job runs once; in a round at most once
``eq_2h``, ``eq_15b``    what all jobs use of a server's resource in a slot
``job[j].eq_2k``, ``eq_13c``  the block
=======================  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes, slot_modes
from hindsched.instances.decimals import exactly
from hindsched.instances.modes import PREEMPTIVE, Modes
from hindsched.limits import check_count
from hindsched.memory import check_large
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import PRINTED, Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.batchsched.printed import (
    Ranges,
    add_printed,
    load_printed,
    read_printed,
)
from hindsched.models.batchsched.subproblem import BLOCK, build_subproblem
from hindsched.models.batchsched.symbols import SYMBOLS, BatchschedNames
from hindsched.models.slots import SlotBlock, add_slots, windows_of
from hindsched.models.sums import gather, row_prices, sum_rows
from hindsched.models.windows import Keep, Starts, WindowBlock, add_job, job_columns
from hindsched.solutions.batchsched.plan import plan_rest
from hindsched.solutions.batchsched.solution import (
    BatchschedRow,
    BatchschedSolution,
    read_row,
    row_use,
)
from hindsched.solutions.capacity_timeline import Room
from hindsched.solutions.window_placing import fixed_rows

__all__ = ["FORMS", "BatchschedProgram", "build_max_weight", "build_offline", "build_subproblem"]

SLOTS = "slots"
BYTES_A_COLUMN = 1_000
"""A column of Pyomo, and its part in the rows."""
MOST_COLUMNS = 20_000_000
"""Each is looked at, also if it then is left out: minutes, where no limit is given."""
FORMS: dict[str, tuple[str, ...]] = {
    "modes": ("modes", PRINTED), "literal": (PRINTED,), PREEMPTIVE: (SLOTS,),
}  # fmt: skip
"""``literal`` is an older word for the printed form of the same problem."""


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedProgram(BatchschedNames, OfflineProgram[BatchschedSolution]):
    """The offline program (2)/(15), or a round's (7)/(16).

    Parameters
    ----------
    fixed : dict
        Rows of the jobs that can no longer change.
    slots : int
        Last slot of the program.
    jobs : list of int
        Positions of the open jobs.
    blocks : dict
        Blocks of the open jobs by position, in the forms ``modes`` and ``slots``.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"

    instance: BatchschedInstance
    fixed: dict[str, tuple[BatchschedRow, ...]]
    slots: int
    jobs: list[int]
    blocks: dict[int, WindowBlock | SlotBlock] = field(
        default_factory=lambda: dict[int, WindowBlock | SlotBlock]()
    )

    def extract(self) -> BatchschedSolution:
        """Solution at the variables' present values."""
        rows: dict[str, Sequence[BatchschedRow]] = {**self.fixed}
        if self.form == PRINTED:
            found = read_printed(self.model, self.instance, self.jobs, self.slots)
            rows |= {name: (row,) for name, row in found.items()}
        for j, block in self.blocks.items():
            found_rows = [BatchschedRow(*window) for window in windows_of(block, self.instance)]
            if found_rows:
                rows[self.instance.jobs[j].name] = found_rows
        return BatchschedSolution(self.instance, rows, self.formulation)

    def load(self, solution: BatchschedSolution) -> None:
        """Set the variables from a solution: a start for the solver."""
        if self.form == PRINTED:
            load_printed(self.model, self.jobs, solution)
        for j, block in self.blocks.items():
            rows = solution.rows.get(self.instance.jobs[j].name, ())
            if isinstance(block, SlotBlock):
                block.write(self.instance, rows)
            else:
                block.write(self.instance, rows[0] if len(rows) == 1 else None)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2h)/(15b) as prices ``capacity``, shape (H, R, slots of the program).

        Of ``slots`` their mean over the servers, (R, slots): its bounds merge the servers.
        """
        array = np.zeros((*self.instance.server_capacity.shape, self.slots))
        rows = self.model.eq_2h if self.instance.has_ps else self.model.eq_15b
        (h, r, t), prices = row_prices(rows, duals, sign=-1)
        array[h, r, t - 1] = prices
        return {"capacity": array.mean(axis=0) if self.form == SLOTS else array}


def build_offline(
    instance: BatchschedInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: BatchschedSolution | None = None,
    keep: Mapping[int, Keep] | None = None,
) -> BatchschedProgram:
    """Build the offline program.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    formulation : str, optional
        ``modes``, or ``literal``, an older word for its printed form; or ``preemptive``.
    form : str, optional
        ``modes`` (default) or ``printed``; of ``preemptive`` ``slots``.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed: a job with a row that begins before `now`, or a locked one,
        keeps its rows; the others start from `now` on.
    incumbent : BatchschedSolution, optional
        A feasible solution, from which the time limit follows; by default a list schedule.
    keep : mapping, optional
        By job, which columns of the ``modes`` form are worth having: the others are left out
        because no schedule better than the incumbent contains them. The program's bound is then
        one on the optimum only up to the incumbent's objective, which the incumbent itself attains.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = build_offline(hs.generate("batchsched", jobs=2), form="printed")
    >>> program.formulation, program.form
    ('modes', 'printed')
    """
    known = None if formulation is None else instance.check_formulation(formulation)
    formulation, form = choose_form(FORMS, known, form)
    form = form or FORMS[formulation][0]
    again = partial(
        build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
        incumbent=incumbent, keep=keep,
    )  # fmt: skip
    commitments = commitments or Commitments()
    fixed = fixed_rows(instance, commitments, read_row)
    tables = {job.name: modes(instance, job) for job in instance.jobs if job.name not in fixed}
    if incumbent is None:
        incumbent = plan_rest(instance, commitments, tables, fixed)
        ends: dict[str, int | None] = {name: incumbent.rows[name][-1].last for name in tables}
    else:
        ends = {name: incumbent.completion(name) for name in tables}
    ways = {}
    if form == SLOTS:
        ways = {
            name: slot_modes(instance, instance.jobs[instance.job_index(name)]) for name in tables
        }
    latest = _latest_completions(instance, fixed, commitments.now, ends, tables, ways)
    slots = max(
        [row.last for rows in fixed.values() for row in rows]
        + [latest[job.name] - 1 for job in instance.jobs if job.name in latest],
        default=1,
    )
    jobs = [j for j, job in enumerate(instance.jobs) if job.name not in fixed]
    starts = {}
    if form == FORMS["modes"][0]:
        for j in jobs:
            job = instance.jobs[j]
            earliest = max(job.arrival, commitments.now)
            starts[j] = Starts.of(instance, tables[job.name], earliest, slots, latest[job.name])
        most = sum(found.num_columns for found in starts.values())
        _check_size(instance, most, all_stay=keep is None)
    free = _free(instance, fixed)
    model = pyo.ConcreteModel(name=instance.name)
    blocks: dict[int, WindowBlock | SlotBlock] = {}
    decided = sum(
        float(job.weight) * (fixed[job.name][-1].last + 1)
        for job in instance.jobs
        if job.name in fixed
    )
    if form == PRINTED:
        sets = Ranges.of(instance, jobs, slots)
        cost = add_printed(model, instance, sets, commitments.now, free, relax)
    else:
        model.job = pyo.Block(jobs)
        for j in jobs:
            job = instance.jobs[j]
            earliest = max(job.arrival, commitments.now)
            if form == SLOTS:
                span = (earliest, latest[job.name] - 1)
                blocks[j] = add_slots(
                    model.job[j],
                    instance,
                    ways[job.name],
                    span,
                    job.total_minibatches,
                    relax,
                    BLOCK,
                )
                continue
            columns = job_columns(starts[j], None if keep is None else keep[j])
            blocks[j] = add_job(model.job[j], instance, columns, relax, BLOCK)
        cost = _link(model, instance, blocks, free)
    model.objective = pyo.Objective(
        expr=cost + decided,
        sense=pyo.minimize,
        doc=f"({2 if instance.has_ps else 15}) total weighted completion time",
    )
    return BatchschedProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, fixed=fixed, slots=slots, jobs=jobs, blocks=blocks, incumbent=incumbent,
    )  # fmt: skip


def check_listed(instance: BatchschedInstance, listed: BatchschedSolution) -> None:
    """Refuse, before a better schedule is searched, a program that stays too large with it.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    listed : BatchschedSolution
        A schedule that is cheap to make. Half the columns that it leaves count.

    Raises
    ------
    InputError
        Where no limit is given, if those are more than can be gone through.
    """
    tables = {job.name: modes(instance, job) for job in instance.jobs}
    ends = {name: listed.completion(name) for name in tables}
    latest = _latest_completions(instance, {}, 0, ends, tables, {})
    columns = sum(
        Starts.of(instance, tables[job.name], job.arrival, latest[job.name] - 1).num_columns
        for job in instance.jobs
    )
    _check_size(instance, columns // 2, all_stay=False)


def _check_size(instance: BatchschedInstance, columns: int, all_stay: bool) -> None:
    """Refuse a program of more columns than can be gone through, or than fit."""
    what = f"the program of {instance.name}"
    if all_stay:
        check_large(what, float(BYTES_A_COLUMN * columns))
    check_count(what, columns, "columns", MOST_COLUMNS)


def _link(
    model: Model,
    instance: BatchschedInstance,
    blocks: Mapping[int, WindowBlock | SlotBlock],
    free: Room[Floats],
) -> Expr:
    """Add (2a) and the capacities; return the weighted completion times of the open jobs."""

    @model.Constraint(list(blocks), doc="(2a) every job runs once")
    def eq_2a(_: Model, j: int) -> Expr:
        return blocks[j].chosen == 1

    _add_capacity(model, instance, blocks, free)
    return pyo.quicksum(
        float(instance.jobs[j].weight) * block.completion for j, block in blocks.items()
    )


def build_max_weight(
    instance: BatchschedInstance, last: int, *, relax: bool = False
) -> BatchschedProgram:
    """Build the maximum weighted schedule problem (7)/(16) on an empty cluster.

    Parameters
    ----------
    instance : BatchschedInstance
        The batch; arrivals do not matter, every job may start in slot 1.
    last : int
        Last slot that may be used: tau - 1 for (7b) as printed, tau with tight slots.
    relax : bool
        The linear relaxation; that of (8), over whole schedules, is tighter (`dual.py`).

    Examples
    --------
    >>> import hindsched as hs
    >>> build_max_weight(hs.generate("batchsched", jobs=2), 5).slots
    5
    """
    jobs = list(range(len(instance.jobs)))
    model = pyo.ConcreteModel(name=f"round of {instance.name}")
    model.job = pyo.Block(jobs)
    blocks: dict[int, WindowBlock | SlotBlock] = {}
    for j in jobs:
        columns = job_columns(Starts.of(instance, modes(instance, instance.jobs[j]), 1, last))
        blocks[j] = add_job(model.job[j], instance, columns, relax, BLOCK)
    possible = [j for j in jobs if blocks[j].columns.u]

    @model.Constraint(possible, doc="(7a) a job runs at most once")
    def eq_7a(_: Model, j: int) -> Expr:
        return blocks[j].chosen <= 1

    _add_capacity(model, instance, blocks, _free(instance, {}))
    model.objective = pyo.Objective(
        expr=pyo.quicksum(float(instance.jobs[j].weight) * blocks[j].chosen for j in possible),
        sense=pyo.maximize,
        doc=f"({7 if instance.has_ps else 16}) total weight of the jobs that end in time",
    )
    return BatchschedProgram(
        instance=instance, formulation=instance.formulations[0], form="modes", relaxed=relax,
        model=model, again=partial(build_max_weight, instance, last), fixed={}, slots=last,
        jobs=jobs, blocks=blocks,
    )  # fmt: skip


def _add_capacity(
    model: Model,
    instance: BatchschedInstance,
    blocks: Mapping[int, WindowBlock | SlotBlock],
    free: Room[Floats],
) -> None:
    """(2h)/(15b): what all jobs use of a server's resource in a slot."""
    keys, terms = gather([use for block in blocks.values() for use in block.uses])
    number = "2h" if instance.has_ps else "15b"
    sides = free.of(keys[:, 2], keys[:, 0], keys[:, 1])
    doc = f"({number}) what runs fits on its server"
    model.add_component(f"eq_{number}", sum_rows(keys, terms, "<=", sides, doc))


def _free(
    instance: BatchschedInstance, fixed: Mapping[str, tuple[BatchschedRow, ...]]
) -> Room[Floats]:
    free = Room(instance.server_capacity)
    for rows in fixed.values():
        for row in rows:
            free.book(row.first, row.last, row_use(instance, row))
    return free


def _latest_completions(
    instance: BatchschedInstance,
    fixed: Mapping[str, tuple[BatchschedRow, ...]],
    now: int,
    ends_there: Mapping[str, int | None],
    tables: Mapping[str, Modes],
    ways: Mapping[str, tuple[Modes, list[Fraction]]],
) -> dict[str, int]:
    """Latest completion t + L of every open job in a schedule no worse than the incumbent.

    `ends_there` are the last slots of the open jobs in the incumbent.

    Some optimal schedule has no empty slot once all jobs are there and all fixed rows have ended:
    what starts after an empty slot could start one slot earlier. Hence no job need end later than
    in the incumbent, or than if all then ran one after another, however small its weight; in pieces
    each in its slowest way.
    """
    open_jobs = [job for job in instance.jobs if job.name not in fixed]
    durations = {name: table.duration for name, table in tables.items()}
    least = {job.name: max(job.arrival, now) + int(durations[job.name].min()) for job in open_jobs}
    ends = [row.last + 1 for rows in fixed.values() for row in rows]
    ready = max([now, *ends, *(job.arrival for job in open_jobs)])
    last = ready + sum(int(duration.max()) for duration in durations.values())
    if ways:
        work = {job.name: job.total_minibatches for job in open_jobs}
        last = ready + sum(math.ceil(work[name] / min(way[1])) for name, way in ways.items())
    # exact: what is left of large weights would be divided by the smallest
    weight = {job.name: exactly(job.weight) for job in open_jobs}
    spare = -sum((weight[name] * done for name, done in least.items()), Fraction())
    for name in least:
        completion = ends_there[name]
        if completion is None:
            raise InputError("incumbent", name, "must complete every job")
        spare += weight[name] * (completion + 1)
        last = max(last, completion + 1)
    return {
        name: min(last, completion + int(max(spare, Fraction()) / weight[name]))
        for name, completion in least.items()
    }
