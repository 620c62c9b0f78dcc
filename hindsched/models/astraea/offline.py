"""The programs of astraea in Pyomo: (3) and the subproblem (9).

The round problem (4) is (3) with all jobs there at time 0.

``modes`` consists of the blocks of `windows/block.py`; ``printed`` is the printed program
(`printed.py`). Both have the same optimum. Worker and PS counts are the resources of the block's
cluster: a worker of type w takes one unit of resource w.

========================  =====================================================================
``eq_3``                  objective: revenue of all tenants
``eq_3c``, ``eq_3d``      workers and PSs of a server; summed they imply (3a) and (3b), which the
                          printed program has: quotas add up to what there is
``eq_4a``                 an optional job runs at most once: o_j; a must-complete one once
``eq_9``, ``eq_9a``       objective of the subproblem, what is left of a server
``eq_3a``                 in the subproblem: what the job's tenant may use in all, also (3b)
========================  =====================================================================

The other constraints of (3) hold by the choice of columns or stand inside the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.models.algebra import Expr, Model, RowKey, grouped, set_equations
from hindsched.models.astraea.printed import SYMBOLS as PRINTED_SYMBOLS
from hindsched.models.astraea.printed import printed_program, read_job, write_job
from hindsched.models.base import PRINTED, Commitments, FamilyModels, Prices, ScenarioPolicy
from hindsched.models.declared import symbols
from hindsched.models.windows import program
from hindsched.models.windows.block import CapacityRows, Family, PrintedJob, ProgramJob
from hindsched.models.windows.equations import (
    EACH_JOB,
    NOTATION,
    block_equations,
    worth_of_end,
)
from hindsched.models.windows.sets import fixed_rows, left_by, num_columns, sets_by_job
from hindsched.solutions.astraea.solution import AstraeaSolution

FORMS: dict[str, tuple[str, ...]] = {
    f"{obligation},{writing}": forms
    for obligation in ("optional", "must-complete")
    for writing, forms in (("modes", ("modes", PRINTED)), ("literal", (PRINTED,)))
}  # fmt: skip
"""``literal`` is an older word for the printed form of the same problem."""
SYMBOLS = symbols(
    {
        ("job |", "revenue"): "eq_4a",
        ("server, worker type, slot", "revenue a worker"): "eq_3c",
        ("server, PS type, slot", "revenue a PS"): "eq_3d",
        ("mode, slot, host, on host", "jobs"): "u",
        ("worker type, duration, slot", "revenue a worker"): "eq_3i",
        ("worker type, duration, slot, server", "revenue a worker"): "eq_3l",
        ("worker type, duration, slot, server", "workers"): "y",
    }
)
WITH_QUOTA = SYMBOLS | symbols(
    {
        ("worker or PS type, slot", "revenue a worker or PS"): "eq_3a",
        ("server, worker or PS type, slot", "revenue a worker or PS"): "eq_9a",
    }
)
SLOTS_AT_ONCE = 4096  # of a search from the horizon back
BYTES_A_COLUMN, BYTES_A_ROW = 1_000, 40
"""A column of Pyomo and its part in the rows; of a server and slot, what is free there."""


def astraea_rules(instance: AstraeaInstance) -> Family:
    """What differs from the other family of jobs in one window."""
    workers, ps = instance.worker_types, instance.ps_types
    split = len(workers)
    return Family(
        instance,
        (
            CapacityRows("worker_capacity", "3c", "workers of a server", range(split)),
            CapacityRows("ps_capacity", "3d", "PSs of a server", range(split, split + len(ps))),
        ),
        {
            "server": [server.name for server in instance.servers],
            "tenant": [tenant.name for tenant in instance.tenants],
            "worker type": workers,
            "PS type": ps,
            "worker or PS type": [*workers, *ps],
        },
        AstraeaSolution,
        within="3l", split="3i",
    )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaProgram(program.WindowProgram[AstraeaSolution]):
    """The offline program (3)."""

    SYMBOLS = SYMBOLS
    PRINTED_SYMBOLS = PRINTED_SYMBOLS
    OBJECTIVE_UNIT = "revenue"


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaSubproblem(program.WindowSubproblem):
    """Subproblem (9): the job's block with mutable prices, residuals and quotas."""

    SYMBOLS = WITH_QUOTA
    OBJECTIVE_UNIT = "revenue"

    def set(self, prices: Prices, room: Prices | None = None, quota: Floats | None = None) -> None:
        """As of the base; `quota`, (T, W + P), is what the tenant may use in all (None: all)."""
        if room is not None:
            room = {name: np.floor(left + 1e-6) for name, left in room.items()}
        super().set(prices, room)
        in_all = self.family.cluster.server_capacity.sum(axis=0)
        for r, t in self.model.quota:
            self.model.quota[r, t].set_value(float(in_all[r] if quota is None else quota[t - 1, r]))


def program_bytes(instance: AstraeaInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below: room in every slot, columns by start."""
    must = instance.check_formulation(None).startswith("must-complete")
    columns = num_columns(instance, spans(instance, jobs, must=must))
    rows = instance.horizon * instance.server_capacity.size
    return float(BYTES_A_COLUMN * columns + BYTES_A_ROW * rows)


def spans(
    instance: AstraeaInstance, jobs: Iterable[int], *, must: bool, now: int = 1
) -> dict[int, tuple[int, int]]:
    """First and last slot of the jobs: an optional one has no columns that earn nothing."""
    by_job = {}
    for j in jobs:
        job = instance.jobs[j]
        last = instance.horizon if must else last_worthwhile_slot(instance, job)
        by_job[j] = max(job.arrival + 1, now), last
    return by_job


def last_worthwhile_slot(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Last slot at which completing the job earns something; 0 if none."""
    for end in range(instance.horizon, job.arrival, -SLOTS_AT_ONCE):
        slots = np.arange(max(job.arrival, end - SLOTS_AT_ONCE) + 1, end + 1)
        worth = np.flatnonzero(instance.revenues(job, slots.astype(float)) > 0)
        if worth.size:
            return int(slots[worth[-1]])
    return 0


def build_offline(
    instance: AstraeaInstance, formulation: str, *, form: str | None = None, relax: bool = False,
    commitments: Commitments | None = None, incumbent: AstraeaSolution | None = None,
    policy: ScenarioPolicy | None = None,
) -> AstraeaProgram:  # fmt: skip
    """Build (3); an optional job has no columns that earn nothing or less.

    A job with a row that begins before ``commitments.now``, or a locked one, keeps its rows;
    rejected jobs get none. `incumbent` and `policy` are not used, as the horizon is hard.
    """
    form = form or FORMS[formulation][0]
    commitments = commitments or Commitments()
    family, fixed = (
        astraea_rules(instance),
        fixed_rows(instance, commitments, AstraeaSolution.read_row),
    )
    free, now = left_by(family.cluster, fixed), commitments.now
    closed, must = fixed.keys() | commitments.rejected, formulation.startswith("must-complete")
    jobs = [j for j, job in enumerate(instance.jobs) if job.name not in closed]
    if form == PRINTED:
        model = printed_program(instance, jobs, relax, must=must, left=free.at)
        for (_, t), begin in model.begin.items():
            if t < now:
                begin.fix(0)
        blocks: dict[int, ProgramJob] = {j: PrintedJob(model, j, read_job, write_job) for j in jobs}
    else:
        spanned = spans(instance, jobs, must=must, now=now)
        sets = sets_by_job(instance, spanned)
        model = pyo.ConcreteModel(name=instance.name)
        made = program.add_blocks(model, family, sets, relax)
        blocks = {**made}
        several = [j for j in jobs if must or sets[j].columns]

        @model.Constraint(
            several, doc="(4a) every job runs once" if must else "(4a) a job runs at most once"
        )
        def eq_4a(_: Model, j: int) -> Expr:
            return made[j].once() if must else made[j].chosen <= 1

        program.add_capacity_rows(model, family, made, free)
        model.eq_3 = pyo.Objective(
            expr=total(
                block.worth(cache(partial(instance.revenue, instance.jobs[j])))
                for j, block in made.items()
            ),
            sense=pyo.maximize, doc="(3) revenue of all tenants",
        )  # fmt: skip
        once = "=" if must else r"\le"
        own = {
            "eq_3": rf"\max \sum_{{j \in [J]}} {worth_of_end('f_j({last})')}",
            "eq_4a": rf"{worth_of_end('')} {once} 1, {EACH_JOB}",
        }
        set_equations(model, block_equations(family) | own, NOTATION)
    model.eq_3.expr += AstraeaSolution(instance, dict(fixed), formulation).objective()
    return AstraeaProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        family=family, fixed=fixed, slots=instance.horizon, blocks=blocks,
    )  # fmt: skip


def on_all_servers(used: Mapping[RowKey, list[Expr]]) -> dict[tuple[int, int], list[Expr]]:
    """What is used in all, by resource and slot."""
    in_all = grouped(((r, t), term) for (_, r, t), taken in used.items() for term in taken)
    return dict(sorted(in_all.items()))


def build_subproblem(
    instance: AstraeaInstance, position: int, formulation: str, *, values: Floats | None = None
) -> AstraeaSubproblem:
    """Build subproblem (9), prices 0, everything free; with one start and end left it is (10).

    `values`, (horizon + 1,), are by completion slot and stand for the revenue: never rising, -inf
    where the job may not end.
    """
    family, last = astraea_rules(instance), instance.horizon
    record = instance.jobs[position]
    if values is not None:
        last = int(np.flatnonzero(np.isfinite(values)).max(initial=0))
    sets = sets_by_job(instance, {position: (record.arrival + 1, last)})[position]
    model, block, used, paid = program.subproblem_model(position, family, sets, "4a", "9a")
    in_all = on_all_servers(used)
    capacity = {(r, t): float(family.cluster.server_capacity[:, r].sum()) for r, t in in_all}
    model.quota = pyo.Param(list(in_all), mutable=True, initialize=capacity, within=pyo.Reals)

    @model.Constraint(list(in_all), doc="(3a), (3b) what the job's tenant may use in all")
    def eq_3a(m: Model, r: int, t: int) -> Expr:
        return total(in_all[r, t]) <= m.quota[r, t]

    worth: Callable[[int], float] = cache(partial(instance.revenue, record))
    if values is not None:
        worth = values.tolist().__getitem__
    model.eq_9 = pyo.Objective(
        expr=block.worth(worth) - paid,
        sense=pyo.maximize, doc="(9) revenue less what the use costs",
    )  # fmt: skip
    return AstraeaSubproblem(
        instance=instance, formulation=formulation, model=model, position=position, family=family,
        slots=instance.horizon, block=block,
    )  # fmt: skip


class AstraeaDual(program.WindowDual):
    """The dual (6) of (5), one row (6a) a schedule; prices are eta."""

    LETTERS = "worker_price", "ps_price"
    SYMBOLS = symbols(
        {
            ("job", "revenue"): "payoff",
            ("server, worker type, slot", "revenue a worker"): "worker_price",
            ("server, PS type, slot", "revenue a PS"): "ps_price",
            ("job, schedule", "share of the schedule"): "eq_6a",
        }
    )
    OBJECTIVE_UNIT = "revenue"


def build_dual(instance: AstraeaInstance, formulation: str) -> AstraeaDual:
    """Build (6)."""
    last, jobs = instance.horizon, instance.jobs
    dual: AstraeaDual = program.build_schedule_dual(
        AstraeaDual, astraea_rules(instance), formulation, "6a",
        {j: (job.arrival + 1, last) for j, job in enumerate(jobs)},
        lambda j, slot: instance.revenue(jobs[j], slot), last, "dual (6) of (5)",
    )  # fmt: skip
    return dual


MODELS = FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    build_dual=build_dual,
    program_bytes=program_bytes,
    reveal_delay=1,
    decisions={"modes": {"u": 1, "y": 2}},
    linking=frozenset({"eq_3a", "eq_3b", "eq_3c", "eq_3d"}),
)
