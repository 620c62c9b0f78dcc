"""The dual of P_f: (11) as printed, which is no dual, and corrected.

==============  ==================  =====================================================
paper           here                constraint of P_f that it prices
==============  ==================  =====================================================
``alpha``       ``alpha[j, t, r]``  (8a), >= 0
``beta``        ``beta[j, t, r]``   (8b), free
``theta, rho``  ``theta, rho``      (8c), (8d), [t, r, k], >= 0
``xi``          ``xi[t, r, k]``     (8e), free
``gamma``       ``gamma[j, t]``     (8f), free
``phi``         ``phi[j, t, r]``    (8g), >= 0
``mu``          ``mu[j, t, r]``     (8h), >= 0
``psi``         ``psi[j, t, r]``    (8i), free
``eta``         ``eta[j, t, r]``    (8j), >= 0
==============  ==================  =====================================================

Printed and wrong: the objective lacks the sum of xi, the right side 1 of (8e), although (11h) and
(11i) force xi <= -M max(theta, rho); (11c) and (11d) hold "for all k" where the sum over k belongs.
The printed program's maximum therefore passes P_f's minimum: weak duality fails, and with it the
proof of Theorem 3. Costs are weighted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.convex import big_m
from hindsched.solutions.mlbroker.solution import arc_prices


def build_dual(
    instance: MlbrokerInstance,
    *,
    printed: bool = False,
    kind: str = "symmetric",
    factor: float = 1.0,
) -> pyo.ConcreteModel:
    """Build the dual of P_f (9).

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    printed : bool
        (11) as printed in place of the corrected dual.
    kind, factor
        M, see `big_m`.
    """
    model = pyo.ConcreteModel(name=f"{instance.name} dual")
    centers, kinds = range(len(instance.datacenters)), range(len(instance.resources))
    jobs = list(enumerate(instance.jobs))
    times = [(j, t) for j, job in jobs for t in range(job.arrival, job.departure + 1)]
    own = [(j, t, r) for j, t in times for r in centers]
    slots = sorted({t for _, t in times})
    tiers = [(t, r, k) for t in slots for r in centers for k in kinds]
    positive, free = pyo.NonNegativeReals, pyo.Reals
    for name, domain in (
        ("alpha", positive), ("beta", free), ("phi", positive), ("mu", positive), ("psi", free),
        ("eta", positive),
    ):  # fmt: skip
        model.add_component(name, pyo.Var(own, domain=domain))
    model.gamma = pyo.Var(times, domain=free)
    model.theta = pyo.Var(tiers, domain=positive)
    model.rho = pyo.Var(tiers, domain=positive)
    model.xi = pyo.Var(tiers, domain=free)

    weights = instance.weights.tolist()
    unit = (weights[1] * instance.unit_price).tolist()
    lower = (weights[1] * instance.discounted_price).tolist()
    fee = (weights[1] * instance.tier_fee).tolist()
    worker, server = instance.worker_demand.tolist(), instance.ps_demand.tolist()
    capacity = instance.capacity.tolist()
    needed = instance.workers_needed.tolist()
    launch = (weights[2] * instance.deployment).tolist()
    own_keys = set(own)
    arcs = [arc_prices(instance, j, weights[0]).tolist() for j, _ in jobs]
    talk = [(weights[3] * e * instance.transfer_price).tolist() for e in instance.exchange]
    big = {t: big_m(SlotData.at(instance, t), kind, factor).tolist() for t in slots}

    def tier(m: Any, t: int, r: int, k: int) -> Any:
        return unit[r][k] * m.theta[t, r, k] + lower[r][k] * m.rho[t, r, k]

    @model.Constraint(tiers)
    def eq_11a(m: Any, t: int, r: int, k: int) -> Any:
        return m.theta[t, r, k] + m.rho[t, r, k] <= 1

    flows = [(j, t, r, q) for j, t, r in own for q in centers]
    open_flows = [(j, t, r, q) for j, t, r, q in flows if np.isfinite(arcs[j][r][q])]

    @model.Constraint(open_flows)
    def eq_11b(m: Any, j: int, t: int, r: int, q: int) -> Any:
        return m.beta[j, t, r] - m.alpha[j, t, q] <= arcs[j][r][q]

    def worker_row(m: Any, j: int, t: int, r: int, over: Any) -> Any:
        rent = pyo.quicksum(worker[j][k] * tier(m, t, r, k) for k in over)
        return capacity[j] * m.alpha[j, t, r] - rent - m.phi[j, t, r] - m.psi[j, t, r] <= 0

    def server_row(m: Any, j: int, t: int, r: int, over: Any) -> Any:
        rent = pyo.quicksum(server[j][k] * tier(m, t, r, k) for k in over)
        own_part = m.gamma[j, t] - m.phi[j, t, r] - needed[j][t - 1] * m.eta[j, t, r]
        return own_part - rent <= 0

    if printed:
        each = [(j, t, r, k) for j, t, r in own for k in kinds]
        model.eq_11c = pyo.Constraint(each, rule=lambda m, j, t, r, k: worker_row(m, j, t, r, [k]))
        model.eq_11d = pyo.Constraint(each, rule=lambda m, j, t, r, k: server_row(m, j, t, r, [k]))
    else:
        model.eq_11c = pyo.Constraint(own, rule=lambda m, j, t, r: worker_row(m, j, t, r, kinds))
        model.eq_11d = pyo.Constraint(own, rule=lambda m, j, t, r: server_row(m, j, t, r, kinds))

    @model.Constraint(flows)
    def eq_11e(m: Any, j: int, t: int, r: int, q: int) -> Any:
        return m.psi[j, t, r] + m.eta[j, t, q] <= talk[j][r][q]

    @model.Constraint(own)
    def eq_11f(m: Any, j: int, t: int, r: int) -> Any:
        lives_on = (j, t + 1, r) in own_keys
        later = m.mu[j, t + 1, r] if lives_on else 0.0
        return (needed[j][t - 1] + 1) * m.phi[j, t, r] - m.mu[j, t, r] + later <= 0

    @model.Constraint(own)
    def eq_11g(m: Any, j: int, t: int, r: int) -> Any:
        return m.mu[j, t, r] <= launch[j]

    @model.Constraint(tiers)
    def eq_11h(m: Any, t: int, r: int, k: int) -> Any:
        return big[t][r][k] * m.theta[t, r, k] + m.xi[t, r, k] <= 0

    @model.Constraint(tiers)
    def eq_11i(m: Any, t: int, r: int, k: int) -> Any:
        return big[t][r][k] * m.rho[t, r, k] + m.xi[t, r, k] <= 0

    data = instance.data.tolist()
    terms = [data[j][t - 1][r] * model.beta[j, t, r] for j, t, r in own]
    terms += [fee[r][k] * model.rho[t, r, k] for t, r, k in tiers]
    terms += [model.gamma[j, t] for j, t in times]
    model.printed_objective = pyo.Expression(expr=pyo.quicksum(terms))
    full = model.printed_objective + pyo.quicksum(model.xi[index] for index in tiers)
    model.objective = pyo.Objective(
        expr=model.printed_objective if printed else full, sense=pyo.maximize
    )
    return model
