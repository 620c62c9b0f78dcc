"""mlbroker's integer program (8) in Pyomo: blocks and linking rows.

``tight`` (the default) equals the realised cost: the two-tier price is a fee e that buys the lower
price for everyone, so the resources are an uncapacitated facility location,

    min sum_i [a h_i - (a - b) w_i] + e u,  w_i <= h_i,  w_i <= H_i u,  u binary

(disaggregated: one row a job). Linking rows are ``eq_2_tier`` (w_i <= H_i u) and ``eq_8h``.
``paper`` is (8) as printed, another problem with another optimum: one named constraint per equation
number, with M of `sets.big_m`.

The convex program (10) of one slot is in ``slot_program.py``; the dual (11) of ``paper`` relaxed,
which is P_f (9), in ``dual.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.algebra import Expr, Model, binary
from hindsched.models.base import Commitments, Duals, OfflineProgram, Prices, Subproblem
from hindsched.models.mlbroker.block import paper_job, tight_job
from hindsched.models.mlbroker.sets import (
    Bills,
    JobSets,
    MlbrokerNames,
    big_m,
    bills,
    decided,
    fee_share,
    job_sets,
    most_rented,
)
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, nobody
from hindsched.solutions.mlbroker.transport import ship

FORMS = {"tight": ("disaggregated",), "paper": ("printed",)}

DECISIONS = {"disaggregated": {"workers": 0, "server": 0}, "printed": {"workers": 0, "server": 0}}
"""By form the variables that are decided, and where their slot stands; see `models.futures`."""
JOBS_SHARE_COSTS = True
"""A tier's fee of a slot is paid once for all jobs."""


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerProgram(MlbrokerNames, OfflineProgram[MlbrokerSolution]):
    """The offline program (8), as printed or tight."""

    def extract(self) -> MlbrokerSolution:
        workers, ps = nobody(self.instance)
        for job, block in self.model.job.items():
            workers[job], ps[job] = _placements(self.instance, block)
        return MlbrokerSolution(self.instance, workers, ps, self.formulation)

    def load(self, solution: MlbrokerSolution) -> None:
        instance, m, costs = self.instance, self.model, solution.costs
        tier = instance.discounted_price * costs.used + instance.tier_fee
        bought = tier < instance.unit_price * costs.used
        for job, block in m.job.items():
            _load_job(block, job, solution, bought)
        if self.formulation == "tight":
            for t, r, k in m.tier:
                m.tier[t, r, k] = int(bought[t - 1, r, k])
            return
        for t, r, k in m.bill:
            m.below[t, r, k] = int(bought[t - 1, r, k])
            m.beyond[t, r, k] = int(not bought[t - 1, r, k])
            m.bill[t, r, k] = float(instance.weights[1] * costs.resource[t - 1, r, k])

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """``discount`` (R, K, J, T) and ``deployment`` (R, J, T) from the relaxation's duals.

        As printed, a unit's price is a theta + b rho by the duals of (8c) and (8d); what it is
        above b stands for the share of the fee.
        """
        instance, m = self.instance, self.model
        jobs, centers = len(instance.jobs), len(instance.datacenters)
        discount = np.zeros((centers, len(instance.resources), jobs, instance.horizon))
        deployment = np.zeros((centers, jobs, instance.horizon))
        for (job, t, r), row in m.eq_8h.items():
            deployment[r, job, t - 1] = abs(duals.get(row, 0.0))
        if self.formulation == "tight":
            for (t, r, k, job), row in m.eq_2_tier.items():
                discount[r, k, job, t - 1] = abs(duals.get(row, 0.0))
        else:
            for t, r, k in m.bill:
                theta, rho = (abs(duals.get(row[t, r, k], 0.0)) for row in (m.eq_8c, m.eq_8d))
                discount[r, k, :, t - 1] = fee_share(instance, r, k, theta, rho)
        return {"discount": discount, "deployment": deployment}


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerSubproblem(MlbrokerNames, Subproblem):
    """A job's placements over its life, in every slot at the prices given.

    A job pays ``discount`` for every unit that it buys at the lower price, and ``deployment`` for
    being deployed where it was not the slot before, less its launch.
    """

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set ``discount`` (R, K, J, T) and ``deployment`` (R, J, T); nothing has a capacity."""
        m, job = self.model, self.position
        for t, r, k in m.discount_price:
            m.discount_price[t, r, k] = float(prices["discount"][r, k, job, t - 1])
        for t, r in m.deployment_price:
            m.deployment_price[t, r] = float(prices["deployment"][r, job, t - 1])

    def extract(self) -> MlbrokerSolution:
        """The job's placements at the variables' values, of the instance with this job alone."""
        alone = self.instance.with_jobs((self.instance.jobs[self.position],))
        workers, ps = _placements(alone, self.model.job[self.position])
        return MlbrokerSolution(alone, workers[None], ps[None], self.formulation)


def build_offline(
    instance: MlbrokerInstance, formulation: str, *, form: str | None = None,
    relax: bool = False, commitments: Commitments | None = None,
    incumbent: MlbrokerSolution | None = None, factor: float = 1.0,
) -> MlbrokerProgram:  # fmt: skip
    """Build (8), relaxed the disaggregated LP (``tight``) or P_f (9) (``paper``, M by `big_m`).

    Placements before ``commitments.now`` and of locked jobs are fixed; `incumbent` is not used.
    """
    workers, server = decided(instance, commitments)
    prices = bills(instance)
    facts = {j: job_sets(instance, j, workers[j]) for j in range(len(instance.jobs))}
    m = pyo.ConcreteModel(name=f"{instance.name} {formulation}")
    if formulation == "tight":
        m.job = pyo.Block(list(facts), rule=lambda b, j: tight_job(b, facts[j], prices, relax))
        _add_launches(m, facts)
        broker = _add_tiers(m, prices, most_rented(instance, workers).tolist(), relax)
    else:
        m.job = pyo.Block(list(facts), rule=lambda b, j: paper_job(b, facts[j], relax))
        _add_launches(m, facts)
        big = {t: big_m(SlotData.at(instance, t), factor).tolist() for t in prices.live}
        broker = _add_bills(m, prices, big, relax)
    m.eq_8 = pyo.Objective(
        expr=total(m.job[j].cost for j in facts) + broker,
        doc="(8) transfer, resources, deployment and communication",
    )
    for j, t in np.argwhere(server >= 0).tolist():
        for r in facts[j].centers:
            m.job[j].workers[t + 1, r].fix(int(workers[j, t, r]))
            m.job[j].server[t + 1, r].fix(int(r == server[j, t]))
    return MlbrokerProgram(
        instance=instance, formulation=formulation, form=FORMS[formulation][0], relaxed=relax,
        model=m,
    )  # fmt: skip


def build_chord(instance: MlbrokerInstance, j: int) -> Model:
    """One job's part of P_f (9) with the envelope of the concave price, at which the jobs part.

    The envelope is the chord F(hmax) / hmax of each bill: what the relaxed (8c)-(8e) say with M of
    each row's own, (a - b) hmax - e and e.
    """
    facts = {j: job_sets(instance, j)}
    m = pyo.ConcreteModel(name=f"{instance.name} chord")
    m.job = pyo.Block([j], rule=lambda b, j: paper_job(b, facts[j], relax=True))
    _add_launches(m, facts)
    chord = {t: SlotData.at(instance, t).chord.tolist() for t in facts[j].slots}
    rent = total(chord[t][r][k] * units for (t, r, k), units in m.job[j].used.items())
    m.eq_9 = pyo.Objective(
        expr=m.job[j].cost + rent, doc="(9) the job's cost, resources by the chord"
    )
    return m


def build_subproblem(
    instance: MlbrokerInstance, position: int, formulation: str
) -> MlbrokerSubproblem:
    """Build the subproblem of one job, with prices 0; only ``tight`` falls apart into jobs."""
    if formulation != "tight":
        raise InputError("formulation", formulation, "must be tight for a subproblem")
    j = position
    f = job_sets(instance, j)
    m = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[j].name}")
    m.job = pyo.Block([j], rule=lambda b, j: tight_job(b, f, bills(instance)))
    m.discount_price = pyo.Param(f.tiers, mutable=True, initialize=0.0, domain=pyo.Reals)
    m.deployment_price = pyo.Param(f.places, mutable=True, initialize=0.0, domain=pyo.Reals)
    b = m.job[j]
    before = {(t, r): b.present[t - 1, r] if t > f.slots[0] else 0.0 for t, r in f.places}
    paid = total(m.discount_price[key] * units for key, units in b.discounted.items()) + total(
        m.deployment_price[key] * (b.present[key] - before[key] - b.launched[key])
        for key in f.places
    )
    m.eq_8 = pyo.Objective(
        expr=b.cost + paid, doc="(8) the job's own cost and what it pays for the linking rows"
    )
    return MlbrokerSubproblem(instance=instance, formulation=formulation, model=m, position=j)


def _add_launches(m: Model, facts: dict[int, JobSets]) -> None:
    own = [(j, t, r) for j, f in facts.items() for t, r in f.places]

    @m.Constraint(own, doc="(8h) a launch where the job was not deployed")
    def eq_8h(m: Model, j: int, t: int, r: int) -> Expr:
        b = m.job[j]
        before = b.present[t - 1, r] if t > facts[j].slots[0] else 0.0
        return b.launched[t, r] >= b.present[t, r] - before


def _add_tiers(m: Model, prices: Bills, most: list[list[list[float]]], relax: bool) -> Expr:
    """Tiers with a fee, and the rows by which jobs take part in them; returns the fees."""
    m.tier = pyo.Var(
        prices.keys, domain=binary(relax),
        doc="(ours) u, the tier's fee is paid",
    )  # fmt: skip
    rows = [(t, r, k, j) for t, r, k in prices.keys for j in prices.live[t]]

    @m.Constraint(rows, doc="(ours) the lower price only where its fee is paid")
    def eq_2_tier(m: Model, t: int, r: int, k: int, j: int) -> Expr:
        return m.job[j].discounted[t, r, k] <= most[j][t - 1][k] * m.tier[t, r, k]

    return total(prices.fee[r][k] * m.tier[t, r, k] for t, r, k in prices.keys)


def _add_bills(m: Model, prices: Bills, big: dict[int, list[list[float]]], relax: bool) -> Expr:
    """The bill by (8c)-(8e) as printed; returns its sum."""
    keys, binary = prices.keys, pyo.NonNegativeReals if relax else pyo.Binary
    m.bill = pyo.Var(keys, domain=pyo.NonNegativeReals, doc="(8k) x, what a resource costs")
    m.below = pyo.Var(keys, domain=binary, doc="(8k) u1, (8c) is off")
    m.beyond = pyo.Var(keys, domain=binary, doc="(8k) u2, (8d) is off")

    def used(m: Model, t: int, r: int, k: int) -> Expr:
        return total(m.job[j].used[t, r, k] for j in prices.live[t])

    @m.Constraint(keys, doc="(8c) the full price")
    def eq_8c(m: Model, t: int, r: int, k: int) -> Expr:
        price = prices.unit[r][k] * used(m, t, r, k)
        return m.bill[t, r, k] >= price - big[t][r][k] * m.below[t, r, k]

    @m.Constraint(keys, doc="(8d) the discounted price")
    def eq_8d(m: Model, t: int, r: int, k: int) -> Expr:
        price = prices.lower[r][k] * used(m, t, r, k) + prices.fee[r][k]
        return m.bill[t, r, k] >= price - big[t][r][k] * m.beyond[t, r, k]

    @m.Constraint(keys, doc="(8e) one of the two")
    def eq_8e(m: Model, t: int, r: int, k: int) -> Expr:
        return m.below[t, r, k] + m.beyond[t, r, k] == 1

    return total(m.bill[key] for key in keys)


def _placements(instance: MlbrokerInstance, block: Model) -> tuple[Ints, Ints]:
    """Workers (T, R) and places of the PS (T,) at the values of a job's block."""
    shape = (instance.horizon, len(instance.datacenters))
    workers, server = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for (t, r), variable in block.workers.items():
        workers[t - 1, r], server[t - 1, r] = round(variable.value), block.server[t, r].value
    return workers, np.where(server.any(axis=1), server.argmax(axis=1), -1)


def _load_job(b: Model, job: int, solution: MlbrokerSolution, bought: Bools) -> None:
    """Set a job's variables; `bought`, (T, R, K), says where the lower price is paid."""
    instance, paper = solution.instance, solution.formulation == "paper"
    centers = np.arange(len(instance.datacenters))
    held, arc = np.zeros(centers.size, dtype=bool), instance.arc_prices()[job]
    for t in range(instance.jobs[job].arrival, instance.jobs[job].departure + 1):
        placed, center = solution.workers[job, t - 1], int(solution.ps[job, t - 1])
        room = instance.capacity[job] * placed.astype(float)
        _, _, flow = ship(instance.data[job, t - 1], room, arc, np.inf)
        present = (placed > 0) | (centers == center) | (held & paper)
        link = np.outer(placed, centers == center)
        # as printed, workers beyond N may connect to a PS that is not there, for nothing
        free = int(placed.sum() - instance.workers_needed[job, t - 1]) if paper else 0
        for r in np.argsort(-instance.transfer_price[:, center]).tolist():
            apart = min(free, int(placed[r])) if r != center else 0
            free -= apart
            link[r, [center, r]] += -apart, apart
        for r in centers.tolist():
            b.workers[t, r] = int(placed[r])
            b.server[t, r] = int(r == center)
            b.present[t, r] = int(present[r])
            b.launched[t, r] = int(present[r] and not held[r])
            for q in centers.tolist():
                b.link[t, r, q] = int(link[r, q])
                if (t, r, q) in b.flow:
                    b.flow[t, r, q] = float(flow[r, q])
        held = present
    for (t, r, k), units in b.used.items() if not paper else ():
        b.discounted[t, r, k] = pyo.value(units) * bool(bought[t - 1, r, k])
