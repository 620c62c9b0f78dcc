"""mlbroker's integer program (8) in Pyomo: the rules of jobs and what links them.

``tight`` (the default, `tight.py`) equals the realised cost. Linking rows are ``eq_2_tier``
(w_i <= H_i u) and ``eq_8h``. ``paper`` is (8) as printed (`printed.py`), another problem with
another optimum.

The convex program (10) of one slot is in ``slot_program.py``. The dual (11) of ``paper`` relaxed,
which is P_f (9), is here as printed, which is no dual, and corrected:

==============  =====================  ==================================================
paper           index                  constraint of P_f that it prices
==============  =====================  ==================================================
``alpha``       [j, t, r]              (8a), >= 0
``beta``        [j, t, r]              (8b), free
``theta, rho``  [t, r, k]              (8c), (8d), >= 0
``xi``          [t, r, k]              (8e), free
``gamma``       [j, t]                 (8f), free
``phi, mu``     [j, t, r]              (8g), (8h), >= 0
``psi``         [j, t, r]              (8i), free
``eta``         [j, t, r]              (8j), >= 0
==============  =====================  ==================================================

Printed and wrong: the objective lacks the sum of xi, the right side 1 of (8e), although (11h) and
(11i) force xi <= -M max(theta, rho); (11c) and (11d) hold "for all k" where the sum over k belongs.
The printed program's maximum therefore passes P_f's minimum: weak duality fails, and with it the
proof of Theorem 3. Costs are weighted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.instances.mlbroker.transport import min_cost_flow
from hindsched.models import base
from hindsched.models.algebra import Expr, Model
from hindsched.models.declared import IndexValue, symbols
from hindsched.models.mlbroker import sets
from hindsched.models.mlbroker.printed import (
    declare_jobs,
    own_cost,
    printed_program,
    units_rented,
)
from hindsched.models.mlbroker.tight import (
    SYMBOLS,
    declare_tight_jobs,
    tight_cost,
    tight_program,
)
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, empty_placements

FORMS = {"tight": ("disaggregated",), "paper": (base.PRINTED,)}


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerProgram(sets.MlbrokerNames, base.OfflineProgram[MlbrokerSolution]):
    """The offline program (8), as printed or tight."""

    SYMBOLS = SYMBOLS

    def extract(self) -> MlbrokerSolution:
        return MlbrokerSolution(
            self.instance, *_placements(self.instance, self.model), self.formulation
        )

    def load(self, solution: MlbrokerSolution) -> None:
        instance, m, costs = self.instance, self.model, solution.costs
        tier = instance.discounted_price * costs.used + instance.tier_fee
        bought = tier < instance.unit_price * costs.used
        for i in range(len(instance.jobs)):
            for letter, index, value in _letter_values(solution, i):
                variable = m.component(letter)
                if (i, *index) in variable:
                    variable[i, *index].set_value(value)
        if self.formulation == "paper":
            for t, r, k in m.x:
                m.u1[t, r, k].set_value(int(bought[t - 1, r, k]))
                m.u2[t, r, k].set_value(int(not bought[t - 1, r, k]))
                m.x[t, r, k].set_value(float(instance.weights[1] * costs.resource[t - 1, r, k]))
            return
        for i, t, r, k in m.discounted:
            worker, ps = instance.worker_demand[i, k], instance.ps_demand[i, k]
            units = float(worker * m.y[i, t, r].value + ps * m.s[i, t, r].value)
            m.discounted[i, t, r, k] = units * bool(bought[t - 1, r, k])
        for t, r, k in m.tier:
            m.tier[t, r, k] = int(bought[t - 1, r, k])

    def capacity_prices(self, duals: base.Duals) -> dict[str, Floats]:
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
            for t, r, k in m.x:
                theta, rho = (abs(duals.get(row[t, r, k], 0.0)) for row in (m.eq_8c, m.eq_8d))
                discount[r, k, :, t - 1] = sets.fee_share(instance, r, k, theta, rho)
        return {"discount": discount, "deployment": deployment}


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerSubproblem(sets.MlbrokerNames, base.Subproblem):
    """A job's placements over its life, in every slot at the prices given.

    A job pays ``discount`` for every unit that it buys at the lower price, and ``deployment`` for
    being deployed where it was not the slot before, less its launch.
    """

    SYMBOLS = SYMBOLS

    def set(self, prices: base.Prices, room: base.Prices | None = None) -> None:
        """Set ``discount`` (R, K, J, T) and ``deployment`` (R, J, T); nothing has a capacity."""
        m, job = self.model, self.position
        for t, r, k in m.discount_price:
            m.discount_price[t, r, k] = float(prices["discount"][r, k, job, t - 1])
        for t, r in m.deployment_price:
            m.deployment_price[t, r] = float(prices["deployment"][r, job, t - 1])

    def extract(self) -> MlbrokerSolution:
        """The job's placements at the variables' values, of the instance with this job alone."""
        alone, job = self.instance.with_jobs((self.instance.jobs[self.position],)), self.position
        workers, ps = _placements(self.instance, self.model)
        return MlbrokerSolution(alone, workers[[job]], ps[[job]], self.formulation)


def build_offline(
    instance: MlbrokerInstance, formulation: str, *, form: str | None = None,
    relax: bool = False, commitments: base.Commitments | None = None,
    incumbent: MlbrokerSolution | None = None, policy: base.ScenarioPolicy | None = None,
    factor: float = 1.0,
) -> MlbrokerProgram:  # fmt: skip
    """Build (8), relaxed the disaggregated LP (``tight``) or P_f (9) (``paper``, M by `big_m`).

    Placements before ``commitments.now`` and of locked jobs are fixed; all slots are there whatever
    `incumbent` and `policy` say.
    """
    workers, server = sets.decided(instance, commitments)
    if formulation == "paper":
        m = printed_program(instance, relax, factor)
    else:
        m = tight_program(instance, workers, relax)
    if not relax:
        pin_workers(m, instance)
    for (i, t, r), placed in m.y.items():
        if server[i, t - 1] >= 0:
            placed.fix(int(workers[i, t - 1, r]))
            m.s[i, t, r].fix(int(r == server[i, t - 1]))
    return MlbrokerProgram(
        instance=instance, formulation=formulation, form=FORMS[formulation][0], relaxed=relax,
        model=m,
    )  # fmt: skip


def pin_workers(m: Model, instance: MlbrokerInstance) -> None:
    """Whole workers for data that may not leave: exact, where (8a) has tolerances."""
    for (i, t, r), placed in m.y.items():
        placed.setlb(int(instance.workers_pinned[i, t - 1, r]))


def build_chord(instance: MlbrokerInstance, j: int) -> Model:
    """One job's part of P_f (9) with the envelope of the concave price, at which the jobs part.

    The envelope is the chord F(hmax) / hmax of each bill: what the relaxed (8c)-(8e) say with M of
    each row's own, (a - b) hmax - e and e.
    """
    of = sets.job_sets(instance, j)
    m = pyo.ConcreteModel(name=f"{instance.name} chord")
    declare_jobs(m, {j: of}, relax=True)
    chord = {t: SlotData.at(instance, t).chord.tolist() for t in of.slots}
    rent = total(chord[t][r][k] * units_rented(m, of, j, t, r, k) for t, r, k in of.tiers)
    m.eq_9 = pyo.Objective(
        expr=own_cost(m, of, j) + rent, doc="(9) the job's cost, resources by the chord"
    )
    return m


def build_subproblem(
    instance: MlbrokerInstance, position: int, formulation: str
) -> MlbrokerSubproblem:
    """Build the subproblem of one job, with prices 0; only ``tight`` falls apart into jobs."""
    if formulation != "tight":
        raise InputError("formulation", formulation, "must be tight for a subproblem")
    j, of, prices = position, sets.job_sets(instance, position), sets.bills(instance)
    m = pyo.ConcreteModel(name=f"{instance.name} {instance.jobs[j].name}")
    declare_tight_jobs(m, {j: of})
    m.del_component(m.eq_8h)  # which has a price here
    pin_workers(m, instance)
    m.discount_price = pyo.Param(of.tiers, mutable=True, initialize=0.0, domain=pyo.Reals)
    m.deployment_price = pyo.Param(of.places, mutable=True, initialize=0.0, domain=pyo.Reals)
    before = {(t, r): m.v[j, t - 1, r] if t > of.slots[0] else 0.0 for t, r in of.places}
    paid = total(m.discount_price[tier] * m.discounted[j, *tier] for tier in of.tiers) + total(
        m.deployment_price[place] * (m.v[j, *place] - before[place] - m.z[j, *place])
        for place in of.places
    )
    m.eq_8 = pyo.Objective(
        expr=tight_cost(m, of, prices, j) + paid,
        doc="(8) the job's own cost and what it pays for the linking rows",
    )
    return MlbrokerSubproblem(instance=instance, formulation=formulation, model=m, position=j)


def _placements(instance: MlbrokerInstance, m: Model) -> tuple[Ints, Ints]:
    """Workers (J, T, R) and places of the PS (J, T) at the variables' values."""
    workers, ps = empty_placements(instance)
    for i, t, r in m.y:
        workers[i, t - 1, r] = round(m.y[i, t, r].value)
        if m.s[i, t, r].value > 0.5:
            ps[i, t - 1] = r
    return workers, ps


def _letter_values(
    solution: MlbrokerSolution, job: int
) -> Iterator[tuple[str, tuple[int, ...], float]]:
    """A job's variables, by their letters: index from the slot on, and value."""
    instance, paper = solution.instance, solution.formulation == "paper"
    centers = np.arange(len(instance.datacenters))
    held, arc = np.zeros(centers.size, dtype=bool), instance.arc_prices()[job]
    for t in range(instance.jobs[job].arrival, instance.jobs[job].departure + 1):
        placed, center = solution.workers[job, t - 1], int(solution.ps[job, t - 1])
        room = instance.capacity[job] * placed.astype(float)
        _, _, flow = min_cost_flow(instance.data[job, t - 1], room, arc, np.inf)
        present = (placed > 0) | (centers == center) | (held & paper)
        link = np.outer(placed, centers == center)
        # as printed, workers beyond N may connect to a PS that is not there, for nothing
        free = int(placed.sum() - instance.workers_needed[job, t - 1]) if paper else 0
        for r in np.argsort(-instance.transfer_price[:, center]).tolist():
            apart = min(free, int(placed[r])) if r != center else 0
            free -= apart
            link[r, [center, r]] += -apart, apart
        for r in centers.tolist():
            yield "y", (t, r), int(placed[r])
            yield "s", (t, r), int(r == center)
            yield "v", (t, r), int(present[r])
            yield "z", (t, r), int(present[r] and not held[r])
            for q in centers.tolist():
                yield "g", (t, r, q), int(link[r, q])
                yield "q", (t, r, q), float(flow[r, q])
        held = present


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerDual(sets.MlbrokerNames, base.DualProgram):
    """The dual (11) of P_f, corrected, or as `printed`, whose points prove nothing."""

    SYMBOLS = symbols(
        {
            ("job, slot", "USD"): "gamma",
            ("job, slot, datacenter", "USD a GB"): "alpha beta",
            ("job, slot, datacenter", "USD a deployment"): "phi",
            ("job, slot, datacenter", "USD a launch"): "mu",
            ("job, slot, datacenter", "USD a connection"): "psi eta",
            ("job, slot, datacenter", "deployments"): "eq_11f",
            ("job, slot, datacenter", "launches"): "eq_11g",
            ("job, slot, datacenter, resource", "workers"): "eq_11c",
            ("job, slot, datacenter, resource", "PSs"): "eq_11d",
            ("job, slot, from, to", "GB"): "eq_11b",
            ("job, slot, from, to", "connections"): "eq_11e",
            ("slot, datacenter, resource", "USD a USD"): "theta rho",
            ("slot, datacenter, resource", "USD"): "xi",
            ("slot, datacenter, resource", "bills"): "eq_11a",
            ("slot, datacenter, resource", "tiers"): "eq_11h eq_11i",
        }
    )

    def prices(self) -> dict[str, Floats]:
        """``discount`` (R, K, J, T) and ``deployment`` (R, J, T): prices that bound the optimum.

        A unit's price is a theta + b rho; what it is above b stands for the share of the fee.
        """
        instance, m = self.instance, self.model
        jobs, centers = len(instance.jobs), len(instance.datacenters)
        discount = np.zeros((centers, len(instance.resources), jobs, instance.horizon))
        deployment = np.zeros((centers, jobs, instance.horizon))
        for (t, r, k), theta in m.theta.items():
            rho = m.rho[t, r, k].value or 0.0
            discount[r, k, :, t - 1] = sets.fee_share(instance, r, k, theta.value or 0.0, rho)
        for (j, t, r), price in m.mu.items():
            deployment[r, j, t - 1] = max(0.0, price.value or 0.0)
        return {"discount": discount, "deployment": deployment}

    def payoffs(self) -> Floats:
        """What each job adds to (11): the worth of its data and of its PS."""
        worth = np.zeros(len(self.instance.jobs))
        for (j, _), gamma in self.model.gamma.items():
            worth[j] += gamma.value or 0.0
        for (j, t, r), beta in self.model.beta.items():
            worth[j] += self.instance.data[j, t - 1, r] * (beta.value or 0.0)
        return worth


def build_dual(
    instance: MlbrokerInstance, formulation: str, *, printed: bool = False
) -> MlbrokerDual:
    """Build the dual of P_f (9), corrected or, to see what is wrong with it, as `printed`."""
    facts = [sets.job_sets(instance, j) for j in range(len(instance.jobs))]
    p = sets.bills(instance)
    big = {t: sets.big_m(SlotData.at(instance, t)).tolist() for t in p.live}
    times = [(j, t) for j, f in enumerate(facts) for t in f.slots]
    sites = [(j, t, r) for j, f in enumerate(facts) for t, r in f.places]
    flows = [(j, t, r, q) for j, t in times for r, q in facts[j].arc]
    links = [(j, t, r, q) for j, t in times for r, q in facts[j].talk]
    m = pyo.ConcreteModel(name=f"{instance.name} dual")
    positive, free = pyo.NonNegativeReals, pyo.Reals
    for name, index, domain, primal in (
        ("alpha", sites, positive, "8a"), ("beta", sites, free, "8b"),
        ("theta", p.keys, positive, "8c"), ("rho", p.keys, positive, "8d"),
        ("xi", p.keys, free, "8e"), ("gamma", times, free, "8f"), ("phi", sites, positive, "8g"),
        ("mu", sites, positive, "8h"), ("psi", sites, free, "8i"), ("eta", sites, positive, "8j"),
    ):  # fmt: skip
        m.add_component(name, pyo.Var(index, domain=domain, doc=f"(11) price of ({primal})"))

    # printed, (11c) and (11d) hold for every resource; the dual has one row with their sum
    kinds = list(range(len(instance.resources)))
    sums: dict[IndexValue, list[int]] = {k: [k] for k in kinds} if printed else {"all": kinds}
    priced = [(*key, over) for key in sites for over in sums]

    def rent(units: list[int], t: int, r: int, over: IndexValue) -> Expr:
        """What units of some resources cost at the prices of the two rows of their bills."""
        return total(
            units[k] * (p.unit[r][k] * m.theta[t, r, k] + p.lower[r][k] * m.rho[t, r, k])
            for k in sums[over]
        )

    @m.Constraint(p.keys, doc="(11a) the two rows of a bill share its price")
    def eq_11a(m: Model, t: int, r: int, k: int) -> Expr:
        return m.theta[t, r, k] + m.rho[t, r, k] <= 1

    @m.Constraint(flows, doc="(11b) data is worth at most its transfer")
    def eq_11b(m: Model, j: int, t: int, r: int, q: int) -> Expr:
        return m.beta[j, t, r] - m.alpha[j, t, q] <= facts[j].arc[r, q]

    @m.Constraint(priced, doc="(11c) a worker is worth at most its price")
    def eq_11c(m: Model, j: int, t: int, r: int, over: IndexValue) -> Expr:
        paid = rent(facts[j].worker, t, r, over) + m.phi[j, t, r] + m.psi[j, t, r]
        return facts[j].capacity * m.alpha[j, t, r] - paid <= 0

    @m.Constraint(priced, doc="(11d) the PS is worth at most its price")
    def eq_11d(m: Model, j: int, t: int, r: int, over: IndexValue) -> Expr:
        worth = m.gamma[j, t] - m.phi[j, t, r] - facts[j].needed[t] * m.eta[j, t, r]
        return worth - rent(facts[j].server, t, r, over) <= 0

    @m.Constraint(links, doc="(11e) a connection is worth at most its talk")
    def eq_11e(m: Model, j: int, t: int, r: int, q: int) -> Expr:
        return m.psi[j, t, r] + m.eta[j, t, q] <= facts[j].talk[r, q]

    @m.Constraint(sites, doc="(11f) a deployment is worth at most what keeping it is")
    def eq_11f(m: Model, j: int, t: int, r: int) -> Expr:
        later = m.mu[j, t + 1, r] if t + 1 in facts[j].slots else 0.0
        return (facts[j].needed[t] + 1) * m.phi[j, t, r] - m.mu[j, t, r] + later <= 0

    @m.Constraint(sites, doc="(11g) a launch is worth at most what it costs")
    def eq_11g(m: Model, j: int, t: int, r: int) -> Expr:
        return m.mu[j, t, r] <= facts[j].launch

    @m.Constraint(p.keys, doc="(11h) turning off (8c) is worth nothing")
    def eq_11h(m: Model, t: int, r: int, k: int) -> Expr:
        return big[t][r][k] * m.theta[t, r, k] + m.xi[t, r, k] <= 0

    @m.Constraint(p.keys, doc="(11i) turning off (8d) is worth nothing")
    def eq_11i(m: Model, t: int, r: int, k: int) -> Expr:
        return big[t][r][k] * m.rho[t, r, k] + m.xi[t, r, k] <= 0

    terms = [facts[j].data[t, r] * m.beta[j, t, r] for j, t, r in sites]
    terms += [p.fee[r][k] * m.rho[t, r, k] for t, r, k in p.keys]
    terms += [m.gamma[j, t] for j, t in times]
    terms += [] if printed else [m.xi[key] for key in p.keys]
    m.eq_11 = pyo.Objective(
        expr=total(terms), sense=pyo.maximize,
        doc="(11) worth of the data, the PSs and the tiers",
    )  # fmt: skip
    kind = "printed" if printed else "corrected"
    return MlbrokerDual(
        instance=instance, formulation="paper", model=m, whose=f"{kind} dual (11) of P_f (9)"
    )


def _build_slot(instance: MlbrokerInstance, slot: int, **build: Any) -> Any:
    """(10) of a slot; CVXPY is not loaded before."""
    from hindsched.models.mlbroker.slot_program import build_slot

    return build_slot(instance, slot, **build)


MODELS = base.FamilyModels(
    forms=FORMS,
    build_offline=build_offline,
    build_subproblem=build_subproblem,
    build_dual=build_dual,
    build_slot=_build_slot,
    jobs_share_costs=True,  # a tier's fee of a slot is paid once for all
    decisions={"disaggregated": {"y": 1, "s": 1}, base.PRINTED: {"y": 1, "s": 1}},
    shared=frozenset({"tier"}),
)
