"""The dual of P_f (9), ``paper`` relaxed: (11) as printed, which is no dual, and corrected.

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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import DualProgram
from hindsched.models.declared import IndexValue, Symbol, symbols
from hindsched.models.mlbroker.sets import MlbrokerNames, big_m, bills, fee_share, job_sets


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerDual(MlbrokerNames, DualProgram):
    """The dual (11) of P_f, corrected, or as `printed`, whose points prove nothing."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = symbols(
        """
        job, slot: gamma; job, slot, datacenter: alpha beta phi mu psi eta eq_11f eq_11g;
        job, slot, datacenter, resource: eq_11c eq_11d; job, slot, from, to: eq_11b eq_11e;
        slot, datacenter, resource: theta rho xi eq_11a eq_11h eq_11i
        """,
        """
        USD: xi gamma; USD a USD: theta rho; USD a GB: alpha beta; USD a launch: mu;
        USD a deployment: phi; USD a connection: psi eta; bills: eq_11a; GB: eq_11b;
        workers: eq_11c; PSs: eq_11d; connections: eq_11e; deployments: eq_11f; launches: eq_11g;
        tiers: eq_11h eq_11i
        """,
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
            discount[r, k, :, t - 1] = fee_share(instance, r, k, theta.value or 0.0, rho)
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
    facts = [job_sets(instance, j) for j in range(len(instance.jobs))]
    p = bills(instance)
    big = {t: big_m(SlotData.at(instance, t)).tolist() for t in p.live}
    times = [(j, t) for j, f in enumerate(facts) for t in f.slots]
    own = [(j, t, r) for j, f in enumerate(facts) for t, r in f.places]
    flows = [(j, t, r, q) for j, t in times for r, q in facts[j].arc]
    links = [(j, t, r, q) for j, t in times for r, q in facts[j].talk]
    m = pyo.ConcreteModel(name=f"{instance.name} dual")
    positive, free = pyo.NonNegativeReals, pyo.Reals
    for name, index, domain, primal in (
        ("alpha", own, positive, "8a"), ("beta", own, free, "8b"),
        ("theta", p.keys, positive, "8c"), ("rho", p.keys, positive, "8d"),
        ("xi", p.keys, free, "8e"), ("gamma", times, free, "8f"), ("phi", own, positive, "8g"),
        ("mu", own, positive, "8h"), ("psi", own, free, "8i"), ("eta", own, positive, "8j"),
    ):  # fmt: skip
        m.add_component(name, pyo.Var(index, domain=domain, doc=f"(11) price of ({primal})"))

    # printed, (11c) and (11d) hold for every resource; the dual has one row with their sum
    kinds = list(range(len(instance.resources)))
    sums: dict[IndexValue, list[int]] = {k: [k] for k in kinds} if printed else {"all": kinds}
    priced = [(*key, over) for key in own for over in sums]

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

    @m.Constraint(own, doc="(11f) a deployment is worth at most what keeping it is")
    def eq_11f(m: Model, j: int, t: int, r: int) -> Expr:
        later = m.mu[j, t + 1, r] if t + 1 in facts[j].slots else 0.0
        return (facts[j].needed[t] + 1) * m.phi[j, t, r] - m.mu[j, t, r] + later <= 0

    @m.Constraint(own, doc="(11g) a launch is worth at most what it costs")
    def eq_11g(m: Model, j: int, t: int, r: int) -> Expr:
        return m.mu[j, t, r] <= facts[j].launch

    @m.Constraint(p.keys, doc="(11h) turning off (8c) is worth nothing")
    def eq_11h(m: Model, t: int, r: int, k: int) -> Expr:
        return big[t][r][k] * m.theta[t, r, k] + m.xi[t, r, k] <= 0

    @m.Constraint(p.keys, doc="(11i) turning off (8d) is worth nothing")
    def eq_11i(m: Model, t: int, r: int, k: int) -> Expr:
        return big[t][r][k] * m.rho[t, r, k] + m.xi[t, r, k] <= 0

    terms = [facts[j].data[t, r] * m.beta[j, t, r] for j, t, r in own]
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
