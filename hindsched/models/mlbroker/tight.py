"""Problem (8) of mlbroker as it is meant: the realised cost, and tighter than printed.

The two-tier price is a fee e that buys the lower price for everyone, so the resources are an
uncapacitated facility location,

    min sum_i [a h_i - (a - b) w_i] + e u,  w_i <= h_i,  w_i <= H_i u,  u binary

(disaggregated: one row a job). To the rules of jobs as `printed.py` has them it adds: at most N
workers a centre, N to N + R - 1 in all (a worker in each other centre may only hold the
deployment), v <= y + s, and g binds every worker to the PS. In place of (8g) stand y <= N v and
s <= v.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.algebra import Expr, Model, binary_domain, set_equations
from hindsched.models.declared import symbols
from hindsched.models.mlbroker import printed
from hindsched.models.mlbroker.printed import EACH_BILL, EACH_PLACE, EACH_SLOT
from hindsched.models.mlbroker.sets import Bills, MlbrokerJobSets, bills, job_sets, most_rented

NOTATION = {
    key: (here, what) for key, (here, what) in printed.NOTATION.items()
    if here not in ("x", "u1", "u2", "big_m", "N + 1")
} | {
    r"\bar h_{i,k}^r(t)": ("discounted", "units of the job that are bought at the lower price"),
    r"\bar u_k^r(t)": ("tier", "1 if the fee of the lower price is paid"),
    r"\bar N_i(t)": ("most", "most workers in one centre, N_i(t) or 1"),
    r"\bar H_{i,k}(t)": ("most_rented", "most units of the job in one centre"),
}  # fmt: skip
UNITS = r"n_{i,k} y_i^r(t) + m_{i,k} s_i^r(t)"
EQUATIONS = {name: printed.EQUATIONS[name] for name in (
    "eq_8a", "eq_8b", "eq_8f", "eq_8h", "eq_8i", "eq_8j")} | {
    "eq_8": r"\min \sum_{t \in [T]} \Bigl( \sum_{i \in I_t} \sum_{r, r' \in [R]} d^{rr'}"
    r" \bigl( q_i^{rr'}(t) + B_i g_i^{rr'}(t) \bigr) + \sum_{i \in I_t} \sum_{r \in [R]}"
    r" c_i z_i^r(t) + \sum_{r \in [R]} \sum_{k \in [K]} \bigl( e_k^r \bar u_k^r(t)"
    rf" + \sum_{{i \in I_t}} ( a_k^r ({UNITS})"
    r" - (a_k^r - b_k^r) \bar h_{i,k}^r(t) ) \bigr) \Bigr)",
    "eq_8g": rf"y_i^r(t) \le \bar N_i(t) v_i^r(t), {EACH_PLACE}",
    "eq_8g_ps": rf"s_i^r(t) \le v_i^r(t), {EACH_PLACE}",
    "eq_8g_empty": rf"v_i^r(t) \le y_i^r(t) + s_i^r(t), {EACH_PLACE}",
    "eq_8j_most": rf"\sum_{{r' \in [R]}} g_i^{{r'r}}(t) \le (N_i(t) + R - 1) s_i^r(t),"
    rf" {EACH_PLACE}",
    "workers_needed": rf"N_i(t) \le \sum_{{r \in [R]}} y_i^r(t) \le N_i(t) + R - 1, {EACH_SLOT}",
    "eq_2_rented": rf"\bar h_{{i,k}}^r(t) \le {UNITS}, {EACH_BILL}, i \in I_t",
    "eq_2_tier": r"\bar h_{i,k}^r(t) \le \bar H_{i,k}(t) \bar u_k^r(t),"
    rf" {EACH_BILL}, i \in I_t",
}  # fmt: skip
SYMBOLS = printed.SYMBOLS | symbols(
    {
        ("job, slot", "USD a worker"): "workers_needed",
        ("job, slot, datacenter", "USD a deployment"): "eq_8g_ps eq_8g_empty",
        ("job, slot, datacenter", "USD a connection"): "eq_8j_most",
        ("job, slot, datacenter, resource", "units"): "discounted",
        ("slot, datacenter, resource", "tiers"): "tier",
        ("job, slot, datacenter, resource", "USD a unit"): "eq_2_rented",
        ("slot, datacenter, resource, job", "USD a unit"): "eq_2_tier",
    }
)


def tight_program(instance: MlbrokerInstance, workers: Ints, relax: bool) -> Model:
    """(8) as it is meant; `workers` are those that are decided, at times more than N."""
    sets = {i: job_sets(instance, i, workers[i]) for i in range(len(instance.jobs))}
    prices, m = bills(instance), pyo.ConcreteModel(name=f"{instance.name} tight")
    declare_tight_jobs(m, sets, relax)
    most = most_rented(instance, workers).tolist()
    m.tier = pyo.Var(
        prices.keys, domain=binary_domain(relax), doc="(ours) u, the tier's fee is paid"
    )
    rows = [(t, r, k, i) for t, r, k in prices.keys for i in prices.live[t]]

    @m.Constraint(rows, doc="(ours) the lower price only where its fee is paid")
    def eq_2_tier(m: Model, t: int, r: int, k: int, i: int) -> Expr:
        return m.discounted[i, t, r, k] <= most[i][t - 1][k] * m.tier[t, r, k]

    fees = total(prices.fee[r][k] * m.tier[t, r, k] for t, r, k in prices.keys)
    m.eq_8 = pyo.Objective(
        expr=total(tight_cost(m, sets[i], prices, i) for i in sets) + fees,
        doc="(8) transfer, resources, deployment and communication",
    )
    set_equations(m, EQUATIONS, NOTATION)
    return m


def declare_tight_jobs(m: Model, sets: Mapping[int, MlbrokerJobSets], relax: bool = False) -> None:
    """The rules of jobs, with the units that they buy at the lower price."""
    printed.declare_jobs(m, sets, relax)
    m.del_component(m.eq_8g)
    m.v.setub(1)
    m.z.setub(1)
    m.g.domain = pyo.NonNegativeReals  # whole where y is
    I_t = [(i, t) for i, of in sets.items() for t in of.slots]
    places, tiers = list(m.y), [(i, *tier) for i, of in sets.items() for tier in of.tiers]
    m.discounted = pyo.Var(
        tiers, domain=pyo.NonNegativeReals, doc="(ours) units bought at the lower price"
    )

    @m.Constraint(places, doc="(8g) workers only where the job is deployed")
    def eq_8g(m: Model, i: int, t: int, r: int) -> Expr:
        return m.y[i, t, r] <= sets[i].most[t] * m.v[i, t, r]

    @m.Constraint(places, doc="(8g) the PS only where the job is deployed")
    def eq_8g_ps(m: Model, i: int, t: int, r: int) -> Expr:
        return m.s[i, t, r] <= m.v[i, t, r]

    @m.Constraint(places, doc="(ours) deployed only with a worker or the PS")
    def eq_8g_empty(m: Model, i: int, t: int, r: int) -> Expr:
        return m.v[i, t, r] <= m.y[i, t, r] + m.s[i, t, r]

    @m.Constraint(places, doc="(8j) all connections end at the PS")
    def eq_8j_most(m: Model, i: int, t: int, r: int) -> Expr:
        ending = total(m.g[i, t, q, r] for q in sets[i].centers)
        return ending <= sets[i].in_all[t] * m.s[i, t, r]

    @m.Constraint(I_t, doc="(ours) workers in all, a cut")
    def workers_needed(m: Model, i: int, t: int) -> Expr:
        running = total(m.y[i, t, r] for r in sets[i].centers)
        return pyo.inequality(sets[i].needed[t], running, sets[i].in_all[t])

    @m.Constraint(tiers, doc="(ours) discounted units are rented units")
    def eq_2_rented(m: Model, i: int, t: int, r: int, k: int) -> Expr:
        return m.discounted[i, t, r, k] <= printed.units_rented(m, sets[i], i, t, r, k)


def tight_cost(m: Model, of: MlbrokerJobSets, prices: Bills, i: int) -> Expr:
    """A job's own cost and its rent, without the fees."""
    unit, lower = prices.unit, prices.lower
    rent = total(
        unit[r][k] * printed.units_rented(m, of, i, t, r, k)
        - (unit[r][k] - lower[r][k]) * m.discounted[i, t, r, k]
        for t, r, k in of.tiers
    )
    return printed.own_cost(m, of, i) + rent
