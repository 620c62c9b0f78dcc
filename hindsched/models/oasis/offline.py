"""The oasis family's offline program (1)-(13), its subproblem (27) and its dual (19) in Pyomo.

As the paper prints it, it stands in `printed.py`; in the forms of `block.py` it is tighter:

==================  =====================================================  ======================
paper               here                                                   indices
==================  =====================================================  ======================
``x_i``             ``job[i].admitted``                                    job
``y_ih(t)``         ``job[i].y``                                           server, slot
``z_ik(t)``         ``job[i].z``                                           server, slot
``t_i``             ``job[i].u``: 1 at the completion                      slot
(1), (27)           ``eq_1``, ``eq_27``                                    the objectives
(2), (3), (6)-(10)  ``job[i].eq_2``, ..., ``job[i].eq_10``                 `block.py`
(4), (5)            ``eq_4``, ``eq_5``, scaled by the server's capacity    server, resource, slot
(11)-(13)           the variables' domains
``p_h^r(t)``        ``worker_price``: of all that a worker takes           server, slot
``q_k^r(t)``        ``ps_price``: of all that a PS takes                   server, slot
(30), (31)          ``worker_room``, ``ps_room``: how many fit             server, slot
(19), (20)          ``eq_19``, ``eq_20``; ``mu``: payoff of a job          job, schedule; job
``p_h^r(t)``        ``p``: in (19), of all that a worker server has        server, resource, slot
``q_k^r(t)``        ``q``: in (19), of all that a PS server has            server, resource, slot
==================  =====================================================  ======================

All forms have the same optimum. With identical servers added up (``aggregate=True``) the program is
a relaxation, `OasisRelaxation`: far smaller, its linear relaxation has the same optimum, but its
integer one may be above it, since counts that fit in a sum need not fit server by server.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models import base
from hindsched.models.algebra import (
    Expr,
    Model,
    RowKey,
    grouped,
    set_equations,
    use_by_cell,
)
from hindsched.models.declared import DeclarativeProgram, symbols
from hindsched.models.oasis import block as blocks
from hindsched.models.oasis.printed import SYMBOLS as PRINTED_SYMBOLS
from hindsched.models.oasis.printed import printed_program
from hindsched.models.oasis.sets import Cell, OasisSets, Servers
from hindsched.models.schedule_dual import Priced, ScheduleDual, schedule_dual
from hindsched.solutions.oasis.solution import OasisSolution

FORMS = {"standard": ("cumulative", base.PRINTED)}
BYTES_A_SLOT = 1_000  # of a job: a few columns and rows of Pyomo


@dataclass(kw_only=True, eq=False, repr=False)
class OasisNames(DeclarativeProgram):
    """Resources and servers read by name; a group by its first and how many are like it."""

    SYMBOLS = symbols(
        {
            ("", "utility a worker-slot"): "eq_2_all",
            ("", "utility a job"): "eq_11",
            ("slot", "worker-slots"): "done",
            ("slot", "jobs"): "ended",
            ("slot", "utility a worker-slot"): "eq_2 eq_2_sum",
            ("slot", ""): "eq_6 eq_8_sum",
            ("slot", "utility a PS"): "eq_7",
            ("end", "jobs"): "u",
            ("slot", "utility a worker"): "eq_3",
            ("worker server, slot", "workers"): "y",
            ("worker server, slot", "utility a worker"): "eq_30",
            ("PS server, slot", "PSs"): "z",
            ("PS server, slot", "utility a PS"): "eq_31",
            ("worker server, resource, slot", "utility a server's whole capacity"): "eq_4",
            ("PS server, resource, slot", "utility a server's whole capacity"): "eq_5",
        }
    )
    OBJECTIVE_UNIT = "utility"

    instance: OasisInstance
    plan: OasisSets

    def name_of(self, index: str, place: int) -> str | None:
        if index == "resource":
            return self.instance.resources[place]
        for role, groups, servers in (
            ("worker server", self.plan.workers, self.instance.worker_servers),
            ("PS server", self.plan.ps, self.instance.ps_servers),
        ):
            if index == role:
                first, *others = groups.members[place]
                more = f" and {len(others)} like it" if others else ""
                return servers[first].name + more
        return None


@dataclass(kw_only=True, eq=False, repr=False)
class OasisProgram(OasisNames, base.OfflineProgram[OasisSolution]):
    """The offline program (1)-(13), server by server."""

    PRINTED_SYMBOLS = PRINTED_SYMBOLS

    may_give_up: bool = False  # a job may be begun and dropped: its rows count as use alone

    def load(self, solution: OasisSolution) -> None:
        rows = solution.given_up
        begun = OasisSolution.from_assignments(self.instance, rows, self.formulation)
        for i, sets in self.plan.jobs.items():
            job = self.instance.jobs[i]
            given_up = self.may_give_up and job.name in rows
            counts = blocks.planned(sets, begun if given_up else solution, job, given_up)
            if self.form == base.PRINTED:
                load_printed(self.model, i, *counts)
            else:
                blocks.load_job(self.model.job[i], *counts, self.plan)

    def extract(self) -> OasisSolution | None:
        """Read the solution at the variables' values; jobs whose ``admitted`` is 0 are left out."""
        plan, completed, begun = self.plan, dict[str, blocks.Counts](), dict[str, blocks.Counts]()
        for i, job in enumerate(self.instance.jobs):
            ran = blocks.counts_of(plan.fixed, job)
            if i in plan.jobs:
                chosen, y, z = self._job(i)
                admitted = round(pyo.value(chosen, exception=False) or 0) == 1
                if not admitted and not self.may_give_up:
                    continue
                planned = blocks.counts_at(self.instance, job, y, z)
                for counts, more in zip(ran, planned, strict=True):
                    counts += more
                done = int(np.searchsorted(ran[0].sum(axis=1).cumsum(), self.instance.work_of(job)))
                ran[0][done + 1 :] = ran[1][done + 1 :] = 0
                if admitted or done < self.instance.horizon:
                    completed[job.name] = ran
                elif ran[0].any():
                    begun[job.name] = ran
            elif plan.fixed.completion(job.name) is not None:
                completed[job.name] = ran
        solution = self._solution(completed)
        solution.given_up = self._solution(begun).assignments()
        return solution

    def _job(self, i: int) -> tuple[Expr, Mapping[Cell, Expr], Mapping[Cell, Expr]]:
        """Whether a job is admitted, and its workers and PSs."""
        if self.form != base.PRINTED:
            block = self.model.job[i]
            return block.admitted, block.y, block.z
        m = self.model
        return m.x[i], *({k[1:]: v for k, v in n.items() if k[0] == i} for n in (m.y, m.z))

    def _solution(self, ran: Mapping[str, blocks.Counts]) -> OasisSolution:
        workers, ps = ({name: counts[side] for name, counts in ran.items()} for side in (0, 1))
        return OasisSolution(self.instance, workers, ps, formulation=self.formulation)

    def capacity_prices(self, duals: base.Duals) -> dict[str, Floats]:
        """Duals of (4) and (5): ``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        prices, plan = dict[str, Floats](), self.plan
        for rows, servers in ((self.model.eq_4, plan.workers), (self.model.eq_5, plan.ps)):
            shape = servers.size.sum(), servers.capacity.shape[1], self.instance.horizon
            array, printed = np.zeros(shape), self.form == base.PRINTED
            for (server, r, t), price in base.row_prices(rows, duals).items():
                whole = 1.0 if printed else servers.capacity[server, r]  # that a price is of
                array[servers.members[server], r, t - 1] = price / whole
            prices[servers.name] = array
        return prices


class OasisRelaxation(OasisProgram):
    """The offline program with identical servers added up: its optimum is an upper bound."""

    @property
    def title(self) -> str:
        """As of the program, and that it is a relaxation."""
        return f"{super().title}: a relaxation that adds up identical servers"

    def extract(self) -> None:
        """Nothing: counts that fit in a sum need not fit server by server."""


def program_bytes(instance: OasisInstance, jobs: Iterable[int]) -> float:
    """Bytes of a program about some jobs, from below: columns in every slot until the end."""
    slots = sum(max(0, instance.horizon - instance.jobs[i].arrival + 1) for i in jobs)
    return float(BYTES_A_SLOT * slots)


def build_offline(
    instance: OasisInstance, formulation: str, *, form: str | None = None, relax: bool = False,
    commitments: base.Commitments | None = None, incumbent: OasisSolution | None = None,
    aggregate: bool = False, policy: base.ScenarioPolicy | None = None,
) -> OasisProgram:  # fmt: skip
    """Build (1)-(13), with blocks ``job[i]``; `incumbent` is not used, as the horizon is hard.

    `aggregate` adds up identical servers, which makes it an `OasisRelaxation`; the printed form has
    them apart. A job that is neither locked nor rejected keeps what ran before ``commitments.now``
    if it is admitted, and may still be given up; so may all by a policy that decides as it runs.
    """
    aggregate = aggregate and form != base.PRINTED
    plan = OasisSets.of(instance, commitments, grouped=aggregate)
    form = form or FORMS[formulation][0]
    give_up = policy is not None and policy.kind == base.RUN
    if form == base.PRINTED:
        model = printed_program(instance, plan, relax)
        fix_history(model, instance, plan)
    else:
        domains = blocks.RELAXED if relax else blocks.Domains()
        model = write_rules(instance, plan, domains, may_give_up=give_up)
    made = OasisRelaxation if aggregate else OasisProgram
    return made(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        plan=plan, may_give_up=give_up,
    )  # fmt: skip


def fix_history(m: Model, instance: OasisInstance, plan: OasisSets) -> None:
    """Fix what ran of the open jobs, whose work is less by it, and add what the others earn."""
    for counts in (m.y, m.z):
        for (i, _, t), count in counts.items():
            if instance.jobs[i].arrival <= t < plan.jobs[i].first:
                count.fix(0)
    m.eq_1.expr += sum(plan.decided.values())


def load_printed(m: Model, i: int, workers: Ints, ps: Ints, last: int | None) -> None:
    """Set a job's variables of the printed program from what is planned."""
    m.x[i].set_value(int(last is not None))
    for variable, counts in ((m.y, workers), (m.z, ps)):
        for t, server in np.ndindex(*counts.shape):
            if not variable[i, server, t + 1].fixed:
                variable[i, server, t + 1].set_value(int(counts[t, server]))
    for t in range(1, len(workers) + 1):
        if (i, t) in m.u:
            m.u[i, t].set_value(int(t == last))


def write_rules(
    instance: OasisInstance, plan: OasisSets, domains: blocks.Domains, *,
    may_give_up: bool = False,
) -> Model:  # fmt: skip
    """All blocks, what they share (4) (5), and the utility (1)."""
    jobs = plan.jobs

    def job_rules(b: Model, i: int) -> None:
        blocks.add_job(b, jobs[i], domains, may_give_up=may_give_up)

    m = pyo.ConcreteModel(name=instance.name)
    m.job = pyo.Block(list(jobs), rule=job_rules)
    m.eq_1 = pyo.Objective(
        expr=total(m.job[i].utility for i in jobs) + sum(plan.decided.values()),
        sense=pyo.maximize,
        doc="(1) utility of the admitted jobs",
    )
    workers, ps = _use(m, "y", plan.workers), _use(m, "z", plan.ps)
    worker_side, ps_side = plan.workers.sides, plan.ps.sides

    @m.Constraint(list(workers), doc="(4) workers within what their servers have")
    def eq_4(_: Model, h: int, r: int, t: int) -> Expr:
        return total(workers[h, r, t]) <= float(worker_side[h, t, r])

    @m.Constraint(list(ps), doc="(5) PSs within what their servers have")
    def eq_5(_: Model, k: int, r: int, t: int) -> Expr:
        return total(ps[k, r, t]) <= float(ps_side[k, t, r])

    if not may_give_up:
        set_equations(m, blocks.EQUATIONS, blocks.NOTATION)
    return m


def _use(m: Model, name: str, servers: Servers) -> dict[RowKey, list[Expr]]:
    """Shares of a server's resources that the jobs' workers ``y`` or PSs ``z`` take by slot."""
    shares = (servers.demand[:, None, :] / servers.scale).tolist()
    return use_by_cell(
        (count, server, (slot,), shares[i][server])
        for i, block in m.job.items() for (server, slot), count in block.component(name).items()
    )  # fmt: skip


MOST_WEIGHT = 10**5
"""Of the slots whose workers a solver minimises at once, the last first."""


@dataclass(kw_only=True, eq=False, repr=False)
class OasisSubproblem(OasisNames, base.Subproblem):
    """Subproblem (27) with the limits (30) and (31) on what fits."""

    def set(self, prices: base.Prices, room: base.Prices | None = None) -> None:
        """As of the base: ``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        instance, job, m = self.instance, self.instance.jobs[self.position], self.model
        worker, ps = instance.demand_of(job)
        most_ps = max(1, instance.ps_needed(job, job.chunks))
        for servers, price, fits, demand, most in (
            (self.plan.workers, m.worker_price, m.worker_room, worker, job.chunks),
            (self.plan.ps, m.ps_price, m.ps_room, ps, most_ps),
        ):
            unit = np.einsum("hrt,r->ht", prices[servers.name], demand).tolist()
            whole = np.repeat(servers.capacity[:, :, None], instance.horizon, axis=2)
            left = loosened(whole if room is None else room[servers.name], whole)
            count = how_many_left(left.transpose(0, 2, 1), demand, most).tolist()
            for server, slot in price:
                price[server, slot].set_value(unit[server][slot - 1])
                fits[server, slot].set_value(count[server][slot - 1])

    def ties(self) -> Iterator[base.Terms]:
        """The end; workers in the last slots, then in those before; the first servers."""
        block = self.model.job[self.position]
        yield [(ends, slot) for slot, ends in block.u.items()]
        base = self.instance.jobs[self.position].chunks + 1
        together = max(1, int(math.log(MOST_WEIGHT, base)))  # slots, the last one weighs most
        yield from reversed(grouped(
            (slot // together, (units, base ** (slot % together)))
            for (_, slot), units in sorted(block.y.items(), key=lambda item: item[0][1])
        ).values())  # fmt: skip
        for use in (block.y, block.z):
            yield [(units, server) for (server, _), units in use.items()]

    def extract(self) -> OasisSolution:
        job = self.instance.jobs[self.position]
        block = self.model.job[self.position]
        workers, ps = blocks.counts_at(self.instance, job, block.y, block.z)
        deployed = {job.name: workers}, {job.name: ps}
        return OasisSolution(self.instance, *deployed, formulation=self.formulation)


def build_subproblem(instance: OasisInstance, position: int, formulation: str) -> OasisSubproblem:
    """Build (27) over the block ``job[i]``, with prices 0 and everything free."""
    plan = OasisSets.of(instance.with_jobs((instance.jobs[position],)))
    sets = plan.jobs[0]
    m = pyo.ConcreteModel(name=instance.jobs[position].name)
    m.job = pyo.Block(
        [position],
        rule=lambda b, _: blocks.add_job(b, sets, blocks.Domains(), must_run=True),
    )
    block = m.job[position]
    for name, room in (("worker", sets.worker_room), ("ps", sets.ps_room)):
        price = pyo.Param(list(room), initialize=0.0, mutable=True, domain=pyo.Reals)
        fits = pyo.Param(list(room), initialize=room, mutable=True, domain=pyo.NonNegativeIntegers)
        m.add_component(f"{name}_price", price)
        m.add_component(f"{name}_room", fits)

    @m.Constraint(list(sets.worker_room), doc="(30) workers that fit in what is left of a server")
    def eq_30(m: Model, h: int, t: int) -> Expr:
        return block.y[h, t] <= m.worker_room[h, t]

    @m.Constraint(list(sets.ps_room), doc="(31) PSs that fit in what is left of a server")
    def eq_31(m: Model, k: int, t: int) -> Expr:
        return block.z[k, t] <= m.ps_room[k, t]

    @m.Objective(sense=pyo.maximize, doc="(27) utility less what the use costs")
    def eq_27(m: Model) -> Expr:
        workers = total(m.worker_price[cell] * block.y[cell] for cell in sets.worker_room)
        servers = total(m.ps_price[cell] * block.z[cell] for cell in sets.ps_room)
        return block.utility - workers - servers

    return OasisSubproblem(
        instance=instance, formulation=formulation, model=m, position=position, plan=plan
    )


@dataclass(kw_only=True, eq=False, repr=False)
class OasisDual(ScheduleDual):
    """The dual (19) of the choice of schedules (14), with the rows (20) of those known so far.

    Rows are added as best responses break them (row generation). With the rows of all schedules of
    all jobs the optimum is that of the linear relaxation of (14); with fewer it is a lower bound.
    """

    SYMBOLS = symbols(
        {
            ("job", "utility"): "mu",
            ("worker server, resource, slot", "utility a server's whole capacity"): "p",
            ("PS server, resource, slot", "utility a server's whole capacity"): "q",
            ("job, schedule", "share of the schedule"): "eq_20",
        }
    )

    instance: OasisInstance
    grows: bool = True

    def name_of(self, index: str, place: int) -> str | None:
        instance = self.instance
        if index == "resource":
            return instance.resources[place]
        if index == "worker server":
            return instance.worker_servers[place].name
        return instance.ps_servers[place].name if index == "PS server" else None


def build_dual(instance: OasisInstance, formulation: str) -> OasisDual:
    """Build (19), without a row of (20); a price is of all that a server has."""
    workers, ps = instance.worker_capacity, instance.ps_capacity
    priced = {
        "worker_capacity": Priced("p", "a worker server's resource", workers, workers),
        "ps_capacity": Priced("q", "a PS server's resource", ps, ps),
    }
    made: OasisDual = schedule_dual(
        OasisDual, instance, "19", "20", "mu", priced, instance.horizon,
        formulation=formulation, whose="dual (19) of (14), the choice of schedules,",
    )  # fmt: skip
    return made


MODELS = base.FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    build_dual=build_dual,
    aggregated={"aggregate": True},
    program_bytes=program_bytes,
    decisions={"cumulative": {"y": 1, "z": 1}},
    linking=frozenset({"eq_4", "eq_5"}),
)
