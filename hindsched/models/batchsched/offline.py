"""The programs of batchsched in Pyomo: (2)/(15), the subproblem (12)/(20), the dual (9)/(18).

``modes`` consists of the blocks of `windows/block.py`; ``printed`` is the printed program
(`printed.py`). Both have the same optimum. The slots that a program spans follow from a feasible
schedule (the incumbent): in an optimal schedule no job completes later than
``cmin_j + (UB - sum w cmin) / w_j``.

=======================  =====================================================================
``objective``            (2)/(15): total weighted completion time;
                         (12)/(20): weighted completion time and what the use costs
``eq_2a``                every job runs once
``eq_2h``, ``eq_15b``    what all jobs use of a server's resource in a slot
``job[j].eq_2k``, ``eq_13c``  the block
=======================  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.decimals import exactly
from hindsched.instances.modes import modes
from hindsched.limits import check_count, check_memory
from hindsched.models.algebra import Expr, Model, set_equations
from hindsched.models.base import PRINTED, Commitments, FamilyModels, Prices, ScenarioPolicy
from hindsched.models.batchsched.list_schedule import wspt_schedule
from hindsched.models.batchsched.printed import SYMBOLS as PRINTED_SYMBOLS
from hindsched.models.batchsched.printed import printed_program, read_job, write_job
from hindsched.models.declared import symbols
from hindsched.models.windows import program
from hindsched.models.windows import sets as windows
from hindsched.models.windows.block import CapacityRows, Family, PrintedJob, ProgramJob
from hindsched.models.windows.equations import (
    EACH_JOB,
    NOTATION,
    block_equations,
    worth_of_end,
)
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow

FixedRows = dict[str, tuple[WindowRow, ...]]
BYTES_A_COLUMN = 1_000  # of Pyomo, and its part in the rows
MOST_COLUMNS = 20_000_000  # minutes: each is looked at, also if it then is left out
MOST_IN_SUBPROBLEM = 300_000  # columns of one job, whose program is solved for every decision
FORMS: dict[str, tuple[str, ...]] = {"modes": ("modes", PRINTED), "literal": (PRINTED,)}
"""``literal`` is an older word for the printed form of the same problem."""
SYMBOLS = symbols(
    {
        ("", "weighted slots"): "eq_12a eq_20a",
        ("job", "weighted slots"): "eq_2a",
        ("server, resource, slot", "weighted slots a unit"): "eq_2h eq_15b",
        ("mode, slot, host, on host", "jobs"): "u",
        ("worker type, duration, slot", "weighted slots a worker"): "eq_13c",
        ("worker type, duration, slot, server", "weighted slots a worker"): "eq_2k",
        ("worker type, duration, slot, server", "workers"): "y",
    }
)


def batchsched_rules(instance: BatchschedInstance) -> Family:
    """What differs from the other family of jobs in one window."""
    has_ps = instance.has_ps
    number, kinds = "2h" if has_ps else "15b", range(len(instance.resources))
    return Family(
        instance,
        (CapacityRows("capacity", number, "what runs fits on its server", kinds),),
        {
            "server": [server.name for server in instance.servers],
            "resource": instance.resources,
            "worker type": [kind.name for kind in instance.worker_types],
            "PS type": [kind.name for kind in instance.ps_types or ()],
        },
        BatchschedSolution,
        within="2k", split="13c",
    )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedProgram(program.WindowProgram[BatchschedSolution]):
    """The offline program (2)/(15)."""

    SYMBOLS = SYMBOLS
    PRINTED_SYMBOLS = PRINTED_SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedSubproblem(program.WindowSubproblem):
    """Subproblem (12)/(20): the job's block with mutable prices and what is left."""

    instance: BatchschedInstance

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "weighted slots"

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """As of the base, shape (H, R, slots); other slots make another program, built anew."""
        slots = prices["capacity"].shape[2]
        if slots != self.slots:
            fresh = build_subproblem(self.instance, self.position, self.formulation, slots=slots)
            self.model, self.slots, self.block = fresh.model, fresh.slots, fresh.block
        super().set(prices, room)

    def rank_of(self, mode: int) -> int:
        """As Algorithm 3 does: in the order of modes."""
        return mode


def build_offline(
    instance: BatchschedInstance, formulation: str, *, form: str | None = None,
    relax: bool = False, commitments: Commitments | None = None,
    incumbent: BatchschedSolution | None = None, policy: ScenarioPolicy | None = None,
) -> BatchschedProgram:  # fmt: skip
    """Build (2)/(15); its last slot follows from `incumbent`, or a list schedule.

    A job with a row that begins before ``commitments.now``, or a locked one, keeps its rows; the
    others start from then on.
    """
    form = form or FORMS[formulation][0]
    commitments = commitments or Commitments()
    now, family = commitments.now, batchsched_rules(instance)
    fixed = windows.fixed_rows(instance, commitments, BatchschedSolution.read_row)
    jobs = [j for j, job in enumerate(instance.jobs) if job.name not in fixed]
    if incumbent is None:
        incumbent = wspt_schedule(instance, commitments)
    latest = _latest_completions(instance, fixed, now, incumbent, jobs, policy)
    ends = [row.last for rows in fixed.values() for row in rows]
    slots = max([*ends, *(completion - 1 for completion in latest.values())], default=1)
    free, blocks = windows.left_by(instance, fixed), dict[int, ProgramJob]()
    if form == PRINTED:
        model = printed_program(instance, jobs, slots, relax, free.at)
        fix_before(model, now)
        blocks.update({j: PrintedJob(model, j, read_job, write_job) for j in jobs})
    else:
        spans = {j: (max(instance.jobs[j].arrival, now), latest[j] - 1) for j in jobs}
        columns = windows.num_columns(instance, spans)
        _check_columns(f"the program of {instance.name}", columns, MOST_COLUMNS)
        sets = windows.sets_by_job(instance, spans)
        model = pyo.ConcreteModel(name=instance.name)
        made = program.add_blocks(model, family, sets, relax)
        blocks.update(made)

        @model.Constraint(jobs, doc="(2a) every job runs once")
        def eq_2a(_: Model, j: int) -> Expr:
            return made[j].once()

        program.add_capacity_rows(model, family, made, free)
        model.objective = pyo.Objective(
            expr=total(float(instance.jobs[j].weight) * made[j].completion for j in jobs),
            doc=f"({2 if instance.has_ps else 15}) total weighted completion time",
        )
        own = {
            "objective": rf"\min \sum_{{j \in [J]}} w_j {worth_of_end('({last} + 1)')}",
            "eq_2a": rf"{worth_of_end('')} = 1, {EACH_JOB}",
        }
        set_equations(model, block_equations(family) | own, NOTATION)
    model.objective.expr += sum(
        float(job.weight) * (fixed[job.name][-1].last + 1)
        for job in instance.jobs if job.name in fixed
    )  # fmt: skip
    return BatchschedProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        family=family, fixed=fixed, slots=slots, blocks=blocks, incumbent=incumbent,
    )  # fmt: skip


def fix_before(m: Model, now: int) -> None:
    """No open job starts before `now`."""
    for (_, t), start in m.x.items():
        if t < now:
            start.fix(0)


def build_subproblem(
    instance: BatchschedInstance, position: int, formulation: str, *, slots: int | None = None
) -> BatchschedSubproblem:
    """Build subproblem (12)/(20), with prices 0 and everything free, up to slot `slots`.

    By default that by which the job is done if it waits for the last arrival and takes its longest.
    """
    family, record = batchsched_rules(instance), instance.jobs[position]
    if slots is None:
        longest = int(modes(instance, record).duration.max())
        slots = max(j.arrival for j in instance.jobs) + longest
    if slots < 1:
        raise InputError("slots", slots, "must be at least 1")
    span = {position: (record.arrival, slots)}
    columns = windows.num_columns(instance, span)
    _check_columns(f"the subproblem of {record.name}", columns, MOST_IN_SUBPROBLEM)
    sets = windows.sets_by_job(instance, span)[position]
    once = "12a" if instance.has_ps else "20a"
    model, block, _, paid = program.subproblem_model(
        position, family, sets, once, family.capacities[0].number
    )
    model.objective = pyo.Objective(
        expr=float(record.weight) * block.completion + paid,
        sense=pyo.minimize, doc=f"({once[:2]}) weighted completion time and what the use costs",
    )  # fmt: skip
    return BatchschedSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, slots=slots,
        family=family, block=block,
    )  # fmt: skip


class BatchschedDual(program.WindowDual):
    """(9)/(18): it bounds the round problem (7)/(16) up to a slot, not the offline one."""

    SYMBOLS = symbols(
        {
            ("job", "weight"): "payoff",
            ("server, resource, slot", "weight a unit"): "price",
            ("job, schedule", "share of the schedule"): "eq_9a eq_18a",
        }
    )
    OBJECTIVE_UNIT = "weight"


def build_dual(
    instance: BatchschedInstance, formulation: str, *, last: int | None = None
) -> BatchschedDual:
    """Build (9)/(18), one row a schedule that ends by slot `last`; arrivals do not matter."""
    last = instance.horizon if last is None else last
    spans = dict.fromkeys(range(len(instance.jobs)), (1, last))
    primal, row = ("(8)", "9a") if instance.has_ps else ("(17)", "18a")
    dual: BatchschedDual = program.build_schedule_dual(
        BatchschedDual, batchsched_rules(instance), formulation, row, spans,
        lambda j, _: float(instance.jobs[j].weight), last,
        f"dual ({row[:-1]}) of {primal}, all jobs in slots 1 to {last},",
    )  # fmt: skip
    return dual


def _check_columns(what: str, columns: int, most: int) -> None:
    check_memory(what, float(BYTES_A_COLUMN * columns))
    check_count(what, columns, "columns", most)


def _latest_completions(
    instance: BatchschedInstance, fixed: FixedRows, now: int, incumbent: BatchschedSolution,
    open_jobs: list[int], policy: ScenarioPolicy | None,
) -> dict[int, int]:  # fmt: skip
    """Latest completion t + L of every open job in a schedule no worse than the incumbent.

    Some optimal schedule has no empty slot once all jobs are there and all fixed rows have ended:
    what starts after an empty slot could start one slot earlier. Hence no job need end later than
    in the incumbent, or than if all then ran one after another, however small its weight.
    """
    jobs = {j: instance.jobs[j] for j in open_jobs}
    lengths = {j: modes(instance, job).duration for j, job in jobs.items()}
    least = {j: max(job.arrival, now) + int(lengths[j].min()) for j, job in jobs.items()}
    longest = sum(int(table.max()) for table in lengths.values())
    ends = [row.last + 1 for rows in fixed.values() for row in rows]
    last = max([now, *ends, *(job.arrival for job in jobs.values())]) + longest
    # exact: what is left of large weights would be divided by the smallest
    weight = {j: exactly(job.weight) for j, job in jobs.items()}
    cost = Fraction()
    for j, job in jobs.items():
        completion = incumbent.completion(job.name)
        if completion is None:
            raise InputError("incumbent", job.name, "must complete every job")
        cost += weight[j] * (completion + 1)
        last = max(last, completion + 1)
    if policy is not None:
        last = max(last, policy.last_arrival + longest)
        if policy.worst_cost is None:
            return dict.fromkeys(jobs, last)
        cost = exactly(policy.worst_cost)
    spare = max(cost - sum(weight[j] * done for j, done in least.items()), Fraction())
    return {j: min(last, done + int(spare / weight[j])) for j, done in least.items()}


MODELS = FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    build_dual=build_dual,
    decisions={"modes": {"u": 1, "y": 2}},
    linking=frozenset({"eq_2h", "eq_15b"}),
)
