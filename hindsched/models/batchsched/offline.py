"""The programs of batchsched in Pyomo: (2)/(15) and the round problem (7)/(16).

``modes`` consists of the blocks of `windows/block.py`; ``printed`` is the printed program
(`printed.py`). Both have the same optimum. ``slots`` is the problem ``preemptive``. The slots that
a program spans follow from a feasible schedule (the incumbent): in an optimal schedule no job
completes later than ``cmin_j + (UB - sum w cmin) / w_j``.

=======================  =====================================================================
``objective``            (2)/(15): total weighted completion time; (7)/(16): total weight
``eq_2a``, ``eq_7a``     every job runs once; in a round at most once
``eq_2h``, ``eq_15b``    what all jobs use of a server's resource in a slot
``job[j].eq_2k``, ``eq_13c``  the block
=======================  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes, slot_modes
from hindsched.instances.decimals import exactly
from hindsched.instances.modes import PREEMPTIVE, Modes
from hindsched.limits import check_count
from hindsched.memory import check_memory
from hindsched.models.base import PRINTED, Commitments, Duals, choose_form
from hindsched.models.batchsched.plan import plan_rest
from hindsched.models.batchsched.printed import (
    add_printed,
    paper_of,
    printed_sets,
    read_span,
    write_own,
)
from hindsched.models.batchsched.subproblem import build_subproblem
from hindsched.models.batchsched.symbols import BLOCK, SYMBOLS, BatchschedNames
from hindsched.models.windows.block import JobBlock, add_job, add_job_in_pieces, use_by_cell
from hindsched.models.windows.offline import SLOTS, Printed, WindowProgram, prices_of
from hindsched.models.windows.sets import (
    EmptyCluster,
    Keep,
    Starts,
    fixed_rows,
    job_sets,
    left_by,
)
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution, read_row
from hindsched.solutions.capacity_timeline import Room

__all__ = ["FORMS", "BatchschedProgram", "build_max_weight", "build_offline", "build_subproblem"]

Rows = Mapping[str, tuple[BatchschedRow, ...]]
BYTES_A_COLUMN = 1_000
"""A column of Pyomo, and its part in the rows."""
MOST_COLUMNS = 20_000_000
"""Each is looked at, also if it then is left out: minutes, where no limit is given."""
FORMS: dict[str, tuple[str, ...]] = {
    "modes": ("modes", PRINTED), "literal": (PRINTED,), PREEMPTIVE: (SLOTS,),
}  # fmt: skip
"""``literal`` is an older word for the printed form of the same problem."""


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedProgram(BatchschedNames, WindowProgram[BatchschedSolution]):
    """The offline program (2)/(15), or a round's (7)/(16).

    Parameters
    ----------
    slots : int
        Last slot of the program.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"
    SOLUTION = BatchschedSolution
    ROW = BatchschedRow

    instance: BatchschedInstance
    slots: int

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (2h)/(15b) as prices ``capacity``, shape (H, R, slots of the program).

        Of ``slots`` their mean over the servers, (R, slots): its bounds merge the servers.
        """
        rows = self.model.eq_2h if self.instance.has_ps else self.model.eq_15b
        shape = (*self.instance.server_capacity.shape, self.slots)
        prices = prices_of(rows, duals, shape, sign=-1)
        return {"capacity": prices.mean(axis=0) if self.form == SLOTS else prices}


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
    jobs = [j for j, job in enumerate(instance.jobs) if job.name not in fixed]
    tables = {j: modes(instance, instance.jobs[j]) for j in jobs}
    if incumbent is None:
        named = {instance.jobs[j].name: table for j, table in tables.items()}
        incumbent = plan_rest(instance, commitments, named, fixed)
    ways = {j: slot_modes(instance, instance.jobs[j]) for j in jobs} if form == SLOTS else {}
    latest = _latest_completions(instance, fixed, commitments.now, incumbent, tables, ways)
    ends = [row.last for rows in fixed.values() for row in rows]
    slots = max([*ends, *(completion - 1 for completion in latest.values())], default=1)
    free = left_by(instance, fixed)
    model = pyo.ConcreteModel(name=instance.name)
    blocks: dict[int, JobBlock] = {}
    printed = None
    if form == PRINTED:
        sets = printed_sets(instance, jobs, slots)
        printed = Printed(sets, paper_of(instance), read_span, write_own)
        cost = add_printed(model, instance, sets, commitments.now, free, relax)
    else:
        empty = EmptyCluster(instance)
        starts = {}
        for j in jobs:
            first = max(instance.jobs[j].arrival, commitments.now)
            table = ways[j][0] if form == SLOTS else tables[j]
            starts[j] = Starts.of(empty, table, first, latest[j] - 1)
        _check_size(instance, starts, all_stay=keep is None)
        model.job = pyo.Block(jobs)
        for j in jobs:
            if form == SLOTS:
                work, own = (
                    instance.jobs[j].total_minibatches,
                    job_sets(starts[j], rates=ways[j][1]),
                )
                blocks[j] = add_job_in_pieces(model.job[j], own, work, BLOCK, relax)
            else:
                own = job_sets(starts[j], None if keep is None else keep[j])
                blocks[j] = add_job(model.job[j], own, BLOCK, relax)
        cost = _link(model, instance, blocks, free)
    decided = sum(
        float(job.weight) * (fixed[job.name][-1].last + 1)
        for job in instance.jobs if job.name in fixed
    )  # fmt: skip
    model.objective = pyo.Objective(
        expr=cost + decided, sense=pyo.minimize,
        doc=f"({2 if instance.has_ps else 15}) total weighted completion time",
    )  # fmt: skip
    return BatchschedProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, cluster=instance, fixed=fixed, slots=slots, blocks=blocks, printed=printed,
        incumbent=incumbent,
    )  # fmt: skip


def _check_size(instance: BatchschedInstance, starts: Mapping[int, Starts], all_stay: bool) -> None:
    """Refuse a program of more columns than can be gone through, or than fit."""
    what, columns = f"the program of {instance.name}", sum(s.num_columns for s in starts.values())
    if all_stay:
        check_memory(what, float(BYTES_A_COLUMN * columns))
    check_count(what, columns, "columns", MOST_COLUMNS)


def _link(
    model: Any,
    instance: BatchschedInstance,
    blocks: Mapping[int, JobBlock],
    free: Room[Floats],
) -> Any:
    """Add (2a) and the capacities; return the weighted completion times of the open jobs."""

    @model.Constraint(list(blocks), doc="(2a) every job runs once")
    def eq_2a(_: Any, j: int) -> Any:
        return blocks[j].chosen == 1

    _add_capacity(model, instance, blocks, free)
    return pyo.quicksum(
        float(instance.jobs[j].weight) * block.worth(lambda last: last + 1.0)
        for j, block in blocks.items()
    )


def _add_capacity(
    model: Any, instance: BatchschedInstance, blocks: Mapping[int, JobBlock], free: Room[Floats]
) -> None:
    """(2h)/(15b): what all jobs use of a server's resource in a slot."""
    used = use_by_cell(instance, blocks)

    def fits(_: Any, h: int, r: int, t: int) -> Any:
        return pyo.quicksum(used[h, r, t]) <= float(free.at(t)[h, r])

    number = "2h" if instance.has_ps else "15b"
    rows = pyo.Constraint(list(used), rule=fits, doc=f"({number}) what runs fits on its server")
    model.add_component(f"eq_{number}", rows)


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
    jobs, empty = list(range(len(instance.jobs))), EmptyCluster(instance)
    model = pyo.ConcreteModel(name=f"round of {instance.name}")
    model.job = pyo.Block(jobs)
    blocks: dict[int, JobBlock] = {}
    for j in jobs:
        sets = job_sets(Starts.of(empty, modes(instance, instance.jobs[j]), 1, last))
        blocks[j] = add_job(model.job[j], sets, BLOCK, relax)
    possible = [j for j in jobs if blocks[j].job.columns]

    @model.Constraint(possible, doc="(7a) a job runs at most once")
    def eq_7a(_: Any, j: int) -> Any:
        return blocks[j].chosen <= 1

    _add_capacity(model, instance, blocks, Room(instance.server_capacity))
    model.objective = pyo.Objective(
        expr=pyo.quicksum(float(instance.jobs[j].weight) * blocks[j].chosen for j in possible),
        sense=pyo.maximize,
        doc=f"({7 if instance.has_ps else 16}) total weight of the jobs that end in time",
    )
    return BatchschedProgram(
        instance=instance, formulation=instance.formulations[0], form="modes", relaxed=relax,
        model=model, again=partial(build_max_weight, instance, last), cluster=instance, fixed={},
        slots=last, blocks=blocks,
    )  # fmt: skip


def _latest_completions(
    instance: BatchschedInstance,
    fixed: Rows,
    now: int,
    incumbent: BatchschedSolution,
    tables: Mapping[int, Modes],
    ways: Mapping[int, tuple[Modes, list[Fraction]]],
) -> dict[int, int]:
    """Latest completion t + L of every open job in a schedule no worse than the incumbent.

    Some optimal schedule has no empty slot once all jobs are there and all fixed rows have ended:
    what starts after an empty slot could start one slot earlier. Hence no job need end later than
    in the incumbent, or than if all then ran one after another, however small its weight; in pieces
    each in its slowest way.
    """
    jobs = {j: instance.jobs[j] for j in tables}
    least = {j: max(job.arrival, now) + int(tables[j].duration.min()) for j, job in jobs.items()}
    ends = [row.last + 1 for rows in fixed.values() for row in rows]
    ready = max([now, *ends, *(job.arrival for job in jobs.values())])
    if ways:
        last = ready + sum(
            math.ceil(job.total_minibatches / min(ways[j][1])) for j, job in jobs.items()
        )
    else:
        last = ready + sum(int(table.duration.max()) for table in tables.values())
    # exact: what is left of large weights would be divided by the smallest
    weight = {j: exactly(job.weight) for j, job in jobs.items()}
    spare = -sum((weight[j] * done for j, done in least.items()), Fraction())
    for j, job in jobs.items():
        completion = incumbent.completion(job.name)
        if completion is None:
            raise InputError("incumbent", job.name, "must complete every job")
        spare += weight[j] * (completion + 1)
        last = max(last, completion + 1)
    return {
        j: min(last, completion + int(max(spare, Fraction()) / weight[j]))
        for j, completion in least.items()
    }
