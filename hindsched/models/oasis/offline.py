"""The oasis family's offline program (1)-(13) in Pyomo.

==================  =====================================================  ======================
paper               here                                                   indices
==================  =====================================================  ======================
``x_i``             ``job[i].x`` (printed), ``job[i].admitted``            job
``y_ih(t)``         ``job[i].y``                                           server, slot
``z_ik(t)``         ``job[i].z``                                           server, slot
``t_i``             ``job[i].u``: 1 at the completion                      slot
(1)                 ``eq_1``                                               the objective
(2), (3), (6)-(10)  ``job[i].eq_2``, ..., ``job[i].eq_10``                 `block.py`, `printed.py`
(4), (5)            ``eq_4``, ``eq_5``, scaled by the server's capacity    server, resource, slot
(11)-(13)           the variables' domains
==================  =====================================================  ======================

All forms have the same optimum. With identical servers added up (``aggregate=True``) the program is
a relaxation, `OasisRelaxation`: far smaller, its linear relaxation has the same optimum, but its
integer one may be above it, since counts that fit in a sum need not fit server by server.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import (
    RUN,
    Commitments,
    Duals,
    Hedge,
    OfflineProgram,
    choose_form,
    row_prices,
)
from hindsched.models.oasis.block import RELAXED, Domains, add_job
from hindsched.models.oasis.printed import add_printed_job
from hindsched.models.oasis.reading import Counts, counts_of, load_job, read_job
from hindsched.models.oasis.sets import Plan
from hindsched.models.oasis.subproblem import build_subproblem
from hindsched.models.oasis.symbols import SYMBOLS, OasisNames
from hindsched.solutions.oasis.solution import OasisSolution

__all__ = ["AGGREGATED", "FORMS", "OasisProgram", "OasisRelaxation", "build_offline",
           "build_subproblem"]  # fmt: skip

FORMS = {"standard": ("strong", "cumulative", "printed")}
AGGREGATED = {"aggregate": True}
DECISIONS = {"strong": {"y": 1, "z": 1}}
"""By form the variables that are decided, and where their slot stands; see `models.futures`."""

STRONG_SIZE, RELAXED_STRONG_SIZE = 60_000, 6_000
"""Triples (job, end, slot) up to which the strong form is the default, and in a relaxation: its
program takes the simplex method far longer than the cumulative one, whose bound is nearly as good.
"""


@dataclass(kw_only=True, eq=False, repr=False)
class OasisProgram(OasisNames, OfflineProgram[OasisSolution]):
    """The offline program (1)-(13), server by server."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "utility"

    instance: OasisInstance
    plan: Plan  # jobs and servers
    may_give_up: bool = False  # a job may be begun and dropped: its rows count as use alone

    def load(self, solution: OasisSolution) -> None:
        """Set the variables from a feasible solution that keeps the program's commitments."""
        rows = solution.given_up
        begun = OasisSolution.from_assignments(self.instance, rows, self.formulation)
        for i, sets in self.plan.jobs.items():
            job = self.instance.jobs[i]
            given_up = self.may_give_up and job.name in rows
            shown = begun if given_up else solution
            load_job(self.model.job[i], job, sets, shown, self.plan, self.form, given_up)

    def extract(self) -> OasisSolution | None:
        """Read the solution at the variables' values; jobs whose ``admitted`` is 0 are left out."""
        plan, workers, ps = self.plan, {}, {}
        dropped: dict[str, Counts] = {}
        for i, job in enumerate(self.instance.jobs):
            ran = counts_of(plan.fixed, job)
            if i in plan.jobs:
                block = self.model.job[i]
                admitted = round(pyo.value(block.admitted, exception=False) or 0) == 1
                if not admitted and not self.may_give_up:
                    continue
                for own, more in zip(ran, read_job(block, self.instance, job), strict=True):
                    own += more
                done = int(np.searchsorted(ran[0].sum(axis=1).cumsum(), self.instance.work_of(job)))
                ran[0][done + 1 :] = ran[1][done + 1 :] = 0
                if not admitted and done == self.instance.horizon:
                    dropped[job.name] = ran
                    continue
            if i in plan.jobs or plan.fixed.completion(job.name) is not None:
                workers[job.name], ps[job.name] = ran
        found = OasisSolution(self.instance, workers, ps, formulation=self.formulation)
        begun = {name: counts for name, counts in dropped.items() if counts[0].any()}
        given_up = OasisSolution(
            self.instance, {name: rows for name, (rows, _) in begun.items()},
            {name: rows for name, (_, rows) in begun.items()}, formulation=self.formulation,
        )  # fmt: skip
        found.given_up = given_up.assignments()
        return found

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (4) and (5): ``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        prices, horizon = dict[str, Floats](), self.instance.horizon
        for name, rows, servers in (
            ("worker_capacity", self.model.eq_4, self.plan.workers),
            ("ps_capacity", self.model.eq_5, self.plan.ps),
        ):
            shape = (servers.size.sum(), servers.capacity.shape[1], horizon)
            array = prices[name] = np.zeros(shape)
            for (server, r, t), price in row_prices(rows, duals).items():
                array[servers.members[server], r, t - 1] = price / servers.capacity[server, r]
        return prices


class OasisRelaxation(OasisProgram):
    """The offline program with identical servers added up: its optimum is an upper bound."""

    @property
    def title(self) -> str:
        """As of the program, and that it is a relaxation."""
        return f"{super().title}: a relaxation that adds up identical servers"

    def extract(self) -> None:
        """Nothing: counts that fit in a sum need not fit server by server."""


def build_offline(
    instance: OasisInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: OasisSolution | None = None,
    aggregate: bool = False,
    hedge: Hedge | None = None,
) -> OasisProgram:
    """Build (1)-(13), with blocks ``job[i]``; `incumbent` is not used, as the horizon is hard.

    By default in the strong form, or in the cumulative one where the strong one would have more
    (job, end, slot) triples than `STRONG_SIZE`, or `RELAXED_STRONG_SIZE` in a relaxation.
    `aggregate` adds up identical servers, which makes it an `OasisRelaxation`; the printed form has
    them apart. A job that is neither locked nor rejected keeps what ran before ``commitments.now``
    if it is admitted, and may still be given up; so may all by a policy that decides as it runs.
    """
    formulation, _ = choose_form(FORMS, instance.check_formulation(formulation), form)
    again = partial(
        build_offline, instance, formulation, form=form, relax=relax, commitments=commitments,
        aggregate=aggregate, hedge=hedge,
    )  # fmt: skip
    aggregate = aggregate and form != "printed"
    plan = Plan.of(instance, commitments, grouped=aggregate)
    if form is None:
        size = sum(sets.size for sets in plan.jobs.values())
        form = "strong" if size <= (RELAXED_STRONG_SIZE if relax else STRONG_SIZE) else "cumulative"
    give_up = hedge is not None and hedge.policies == RUN
    model = write_rules(instance, plan, form, RELAXED if relax else Domains(), give_up)
    made = OasisRelaxation if aggregate else OasisProgram
    return made(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, plan=plan, may_give_up=give_up,
    )  # fmt: skip


def write_rules(
    instance: OasisInstance, plan: Plan, form: str, domains: Domains, may_give_up: bool = False
) -> Model:
    """All blocks, what they share (4) (5), and the utility (1)."""
    jobs, H, K = plan.jobs, range(len(plan.workers.members)), range(len(plan.ps.members))

    def job_rules(b: Model, i: int) -> None:
        if form == "printed":
            add_printed_job(b, jobs[i], H, K, domains)
        else:
            add_job(b, jobs[i], form, domains, may_give_up=may_give_up)

    m = pyo.ConcreteModel(name=instance.name)
    m.job = pyo.Block(list(jobs), rule=job_rules)
    m.eq_1 = pyo.Objective(
        expr=total(m.job[i].utility for i in jobs) + sum(plan.decided.values()),
        sense=pyo.maximize,
        doc="(1) utility of the admitted jobs",
    )
    workers = plan.workers.rows((i, list(m.job[i].y), instance.worker_demand[i]) for i in jobs)
    servers = plan.ps.rows((i, list(m.job[i].z), instance.ps_demand[i]) for i in jobs)
    worker_side, ps_side = plan.workers.sides(), plan.ps.sides()

    @m.Constraint(list(workers), doc="(4) workers within what their servers have")
    def eq_4(m: Model, h: int, r: int, t: int) -> Expr:
        return total(a * m.job[i].y[h, t] for i, a in workers[h, r, t]) <= worker_side[h][t][r]

    @m.Constraint(list(servers), doc="(5) PSs within what their servers have")
    def eq_5(m: Model, k: int, r: int, t: int) -> Expr:
        return total(a * m.job[i].z[k, t] for i, a in servers[k, r, t]) <= ps_side[k][t][r]

    return m
