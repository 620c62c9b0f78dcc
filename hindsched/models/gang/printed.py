"""Problem (0)-(6) of the page on gang as that states it, over what is left of the jobs.

Time has no end there: a job has the slots T_j, from its submission on, (2), to the last one that an
optimal schedule needs (`sets.py`). A rigid job has units of work of one slot on all its GPUs, an
elastic one of one slot on one GPU. (1) reads, with a binary for each slot: once the job is complete
it has done its work, it stays complete, and is so in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.gang.instance import KINDS, OBJECTIVES, GangInstance
from hindsched.models.algebra import (
    Expr,
    Model,
    binary_domain,
    grouped,
    integer_domain,
    set_equations,
)
from hindsched.models.gang.sets import GangTask

NON_PREEMPTIVE, _, ELASTIC = KINDS
COMPLETION, MAKESPAN, DEADLINES = OBJECTIVES
COST_DOCS = {
    COMPLETION: "(0) weighted seconds from submission to completion",
    MAKESPAN: "(0) the makespan",
    DEADLINES: "(0) weight of the deadlines that are missed",
}
NOTATION = {
    "j": ("job", "job, of [J]"),
    r"t \in \mathcal{T}_j": ("slot", "slot that the job may use, (2)"),
    "h": ("server", "server, of [H]"),
    "y_j(t)": ("y", "1 if the job holds its GPUs in slot t; elastic: how many it holds"),
    "d_j(t)": ("done", "1 if the job is complete in slot t"),
    "b_j(t)": ("begins", "1 if the job begins in slot t"),
    r"\bar y_{jh}(t)": ("held", "GPUs of a server that the job holds"),
    r"\omega_{jh}(t)": ("whole", "1 if these are all of the server"),
    r"\pi_{jh}(t)": ("part", "1 if these are some of the server"),
    r"\lambda_j(t)": ("wide", "1 if the job is wider than the largest server; elastic: then"),
    r"\sigma_{jh}": ("stays", "GPUs of a server on which a job in one piece stands"),
    r"\hat C": ("span", "last completion, in seconds"),
    "w_j": ("weight", "weight"),
    "s_j": ("submit", "slot of the submission"),
    r"\delta_j": ("deadline", "slot of the deadline"),
    r"\tau": ("slot_seconds", "seconds of a slot"),
    "W_j": ("work", "units of work, p_j; elastic: p_j g_j"),
    "m_j": ("width", "most units a slot, 1; elastic: most_gpus"),
    "g_j": ("gpus", "GPUs of a unit, those of the job; elastic: 1"),
    "M": ("gpus", "GPUs of the pool"),
    "c_h": ("server_gpus", "GPUs of a server"),
    r"\hat c": ("server_gpus", "GPUs of the largest server"),
}
EACH_JOB, EACH_SLOT = (rf"\quad \forall j \in [J]{more}" for more in ("", r", t \in \mathcal{T}_j"))
ENDS = r"\bigl( d_j(t) - d_j(t - 1) \bigr)"


def link_equations(
    goal: str, consolidated: bool, held: str, end: str, ends: str
) -> dict[str, str]:  # fmt: skip
    """(0), (5) and (6) of a form: the units that are `held` in slot t, and by `end` what `ends`."""
    costs = {
        COMPLETION: rf"\min \sum_{{j \in [J]}} w_j \tau \sum_{end} ({end} - s_j) {ends}",
        MAKESPAN: r"\min \hat C",
        DEADLINES: rf"\min \sum_{{j \in [J]}} w_j \sum_{{{end} > \delta_j}} {ends}",
    }
    cell = rf"{EACH_SLOT}, h \in [H]"
    pool = rf"\sum_{{j \in [J]}} g_j {held} \le M, \quad \forall t"
    by_server = r"\sum_{j \in [J]} \bar y_{jh}(t) \le c_h, \quad \forall t, h \in [H]"
    return {
        "eq_0": costs[goal],
        "eq_0_span": rf"\hat C \ge \tau \sum_{end} {end} {ends}, {EACH_JOB}",
        "eq_4_stays": rf"\bar y_{{jh}}(t) \le \sigma_{{jh}}, {cell}",
        "eq_4_place": rf"\sum_{{h \in [H]}} \sigma_{{jh}} = g_j, {EACH_JOB}",
        "eq_5": by_server if consolidated else pool,
        "eq_6": rf"\sum_{{h \in [H]}} \bar y_{{jh}}(t) = g_j {held}, {EACH_SLOT}",
        "eq_6_most": rf"\bar y_{{jh}}(t) \le c_h (\omega_{{jh}}(t) + \pi_{{jh}}(t)), {cell}",
        "eq_6_whole": rf"\bar y_{{jh}}(t) \ge c_h \omega_{{jh}}(t), {cell}",
        "eq_6_part": rf"\sum_{{h \in [H]}} \pi_{{jh}}(t) \le 1, {EACH_SLOT}",
        "eq_6_wide": rf"g_j {held} \ge (\hat c + 1) \lambda_j(t), {EACH_SLOT}",
        "eq_6_spread": r"\sum_{h \in [H]} (\omega_{jh}(t) + \pi_{jh}(t))"
        rf" \le 1 + (H - 1) \lambda_j(t), {EACH_SLOT}",
    }


EQUATIONS = link_equations(COMPLETION, True, "y_j(t)", "t", ENDS) | {
    "eq_1": rf"\sum_{{t' \le t}} y_j(t') \ge W_j d_j(t), {EACH_SLOT}",
    "eq_1_kept": rf"d_j(t) \ge d_j(t - 1), {EACH_SLOT}",
    "eq_1_last": rf"d_j(\max \mathcal{{T}}_j) = 1, {EACH_JOB}",
    "eq_3": rf"y_j(t) \le m_j (1 - d_j(t - 1)), {EACH_SLOT}",
    "eq_4": rf"b_j(t) \ge y_j(t) - y_j(t - 1), {EACH_SLOT}",
    "eq_4_once": rf"\sum_{{t \in \mathcal{{T}}_j}} b_j(t) = 1, {EACH_JOB}",
}


def printed_program(
    instance: GangInstance, kind: str, goal: str, tasks: Sequence[GangTask],
    free: Callable[[int, int], int], relax: bool = False,
) -> Model:  # fmt: skip
    """Problem (0)-(6) of what is left of the jobs; `free` GPUs by slot and server are left."""
    m = pyo.ConcreteModel(name=instance.name)
    m.job = pyo.Block([task.job for task in tasks])
    for task in tasks:
        printed_job(m.job[task.job], task, kind, relax)
    link_jobs(m, instance, kind, goal, tasks, free, relax)
    links = link_equations(goal, instance.is_consolidated, "y_j(t)", "t", ENDS)
    set_equations(m, EQUATIONS | links, NOTATION)
    return m


def link_jobs(
    m: Model, instance: GangInstance, kind: str, goal: str, tasks: Sequence[GangTask],
    free: Callable[[int, int], int], relax: bool,
) -> None:  # fmt: skip
    """(0), (5) and (6) over the jobs' blocks in any form."""
    if instance.is_consolidated:
        for task in tasks:
            places(m.job[task.job], instance.server_gpus.tolist(), task, kind, relax)
    blocks = ((b.held if instance.is_consolidated else b.uses) for b in m.job.values())
    holders = grouped(pair for held in blocks for pair in held.items())

    @m.Constraint(sorted(holders), doc="(5) what is held is there")
    def eq_5(m: Model, t: int, h: int | None = None) -> Expr:
        return total(holders[t if h is None else (t, h)]) <= free(t, h or 0)

    seconds = float(instance.slot_seconds)
    if goal == MAKESPAN:
        m.span = pyo.Var(bounds=(0, None), doc="(0) the last completion")

        @m.Constraint(list(m.job), doc="(0) no job completes later")
        def eq_0_span(m: Model, j: int) -> Expr:
            return m.span >= seconds * total(end * x for end, x in m.job[j].ends.items())

    @m.Objective(doc=COST_DOCS[goal])
    def eq_0(m: Model) -> Expr:
        if goal == MAKESPAN:
            return m.span
        return total(open_cost(instance, j, goal, b.ends) for j, b in m.job.items())


def job_cost(instance: GangInstance, job: int, goal: str, end: int) -> float:
    """What a job adds to (0) if it completes in a slot; the makespan is no sum over jobs."""
    weight, due = instance.jobs[job].weight, int(instance.deadlines[job])
    if goal == DEADLINES:
        return weight * (0 <= due < end)
    return weight * float(instance.slot_seconds) * (end - int(instance.submits[job]))


def open_cost(instance: GangInstance, j: int, goal: str, ends: Mapping[int, Expr]) -> Expr:
    """What an open job adds to (0)."""
    return total(job_cost(instance, j, goal, end) * share for end, share in ends.items())


def printed_job(b: Model, task: GangTask, kind: str, relax: bool) -> None:
    """(1), (3), (4): the block of a job of any kind, by what it holds in each slot."""
    slots, ends = task.slots, task.ends
    whole = integer_domain(relax) if kind == ELASTIC else binary_domain(relax)
    b.y = pyo.Var(
        slots, domain=whole, bounds=(0, task.width), doc="(3) GPUs, or units, held in a slot"
    )
    b.done = pyo.Var(ends, domain=binary_domain(relax), doc="(1) the job is complete in a slot")

    @b.Constraint(ends, doc="(1) complete once its work is done")
    def eq_1(b: Model, t: int) -> Expr:
        return total(b.y[s] for s in range(task.first, t + 1)) >= task.work * b.done[t]

    @b.Constraint(ends[1:], doc="(1) complete is for good")
    def eq_1_kept(b: Model, t: int) -> Expr:
        return b.done[t] >= b.done[t - 1]

    @b.Constraint(doc="(1) it is complete in the end")
    def eq_1_last(b: Model) -> Expr:
        return b.done[ends[-1]] == 1

    @b.Constraint(ends[1:], doc="(3) it holds nothing once it is complete")
    def eq_3(b: Model, t: int) -> Expr:
        return b.y[t] <= task.width * (1 - b.done[t - 1])

    if kind == NON_PREEMPTIVE:
        b.begins = pyo.Var(slots, domain=binary_domain(relax), doc="(4) the job begins in a slot")

        @b.Constraint(slots, doc="(4) who runs has begun or ran before")
        def eq_4(b: Model, t: int) -> Expr:
            return b.begins[t] >= b.y[t] - (b.y[t - 1] if t > task.first else 0)

        @b.Constraint(doc="(4) it begins once")
        def eq_4_once(b: Model) -> Expr:
            return total(b.begins[t] for t in slots) == 1

    b.uses = pyo.Expression(slots, rule=lambda b, t: task.gpus * b.y[t])

    b.ends = pyo.Expression(
        ends, rule=lambda b, t: b.done[t] - (b.done[t - 1] if t > ends[0] else 0)
    )


def places(b: Model, sizes: list[int], task: GangTask, kind: str, relax: bool) -> None:
    """Place a job's GPUs on one server or, if wider than the largest, on whole ones and one more.

    `sizes` are the servers' GPUs (6).
    """
    slots, servers, largest = task.slots, range(len(sizes)), max(sizes)
    cells, most = [(t, h) for t in slots for h in servers], task.width * task.gpus
    b.held = pyo.Var(
        cells, domain=integer_domain(relax), bounds=lambda _, t, h: (0, min(sizes[h], most)),
        doc="(6) GPUs held on a server",
    )  # fmt: skip
    b.whole = pyo.Var(cells, domain=binary_domain(relax), doc="(6) all GPUs of a server are held")
    b.part = pyo.Var(cells, domain=binary_domain(relax), doc="(6) some GPUs of a server are held")

    @b.Constraint(slots, doc="(6) all GPUs stand on servers")
    def eq_6(b: Model, t: int) -> Expr:
        return total(b.held[t, h] for h in servers) == b.uses[t]

    @b.Constraint(cells, doc="(6) a server that is used is used whole or in part")
    def eq_6_most(b: Model, t: int, h: int) -> Expr:
        return b.held[t, h] <= sizes[h] * (b.whole[t, h] + b.part[t, h])

    @b.Constraint(cells, doc="(6) whole is all of it")
    def eq_6_whole(b: Model, t: int, h: int) -> Expr:
        return b.held[t, h] >= sizes[h] * b.whole[t, h]

    @b.Constraint(slots, doc="(6) at most one is used in part")
    def eq_6_part(b: Model, t: int) -> Expr:
        return total(b.part[t, h] for h in servers) <= 1

    may_widen = kind == ELASTIC and most > largest
    if may_widen:
        b.wide = pyo.Var(
            slots, domain=binary_domain(relax), doc="(6) wider than the largest server"
        )

        @b.Constraint(slots, doc="(6) only what is wider may stand on several")
        def eq_6_wide(b: Model, t: int) -> Expr:
            return b.uses[t] >= (largest + 1) * b.wide[t]

    @b.Constraint(slots, doc="(6) one server, unless the job is wider than the largest")
    def eq_6_spread(b: Model, t: int) -> Expr:
        wide = b.wide[t] if may_widen else float(most > largest)
        used = total(b.whole[t, h] + b.part[t, h] for h in servers)
        return used <= 1 + (len(sizes) - 1) * wide

    if kind == NON_PREEMPTIVE:
        b.stays = pyo.Var(servers, domain=integer_domain(relax), doc="(4) where the job stands")

        @b.Constraint(cells, doc="(4) it does not move")
        def eq_4_stays(b: Model, t: int, h: int) -> Expr:
            return b.held[t, h] <= b.stays[h]

        @b.Constraint(doc="(4) it stands in one place")
        def eq_4_place(b: Model) -> Expr:
            return total(b.stays[h] for h in servers) == task.gpus
