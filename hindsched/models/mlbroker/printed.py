"""Problem (8) of mlbroker as the paper prints it; relaxed it is P_f (9).

It is another problem than the realised cost, which the tight program has: v costs nothing to keep,
and (8j) lets workers beyond N connect to a PS that is not there. Costs are weighted USD; M is the
least that is valid in both of its rows (`big_m`), U is N + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.algebra import Expr, Model, set_equations
from hindsched.models.declared import symbols
from hindsched.models.mlbroker.sets import MlbrokerJobSets, big_m, bills, job_sets

NOTATION = {
    "i": ("job", "job; I_t are those that live in slot t"),
    "t": ("slot", "slot, of [T]"),
    "r": ("datacenter", "data centre, of [R], as r'"),
    "k": ("resource", "resource, of [K]"),
    "y_i^r(t)": ("y", "workers of the job in a data centre"),
    "s_i^r(t)": ("s", "1 if the PS of the job stands there"),
    "q_i^{rr'}(t)": ("q", "GB sent from r to r'"),
    "g_i^{rr'}(t)": ("g", "connections from workers in r to the PS in r'"),
    "v_i^r(t)": ("v", "1 if the job is deployed there"),
    "z_i^r(t)": ("z", "1 if it is launched there in this slot"),
    "x_k^r(t)": ("x", "what a resource costs"),
    "u^1_{k,r}(t)": ("u1", "1 if (8c) is off"),
    "u^2_{k,r}(t)": ("u2", "1 if (8d) is off"),
    "I_t": ("alive", "jobs that live in slot t"),
    "D_i^r(t)": ("data_gb", "GB that come up in a data centre"),
    "P_i": ("capacity_gb", "GB that a worker trains in a slot"),
    "N_i(t)": ("workers_needed", "workers that the data of a slot needs, rounded up"),
    "U": ("N + 1", "largest y + s"),
    "M": ("big_m", "largest difference of (8c) and (8d)"),
    "n_{i,k}": ("worker", "units that a worker rents"),
    "m_{i,k}": ("ps", "units that the PS rents"),
    "d^{rr'}": ("transfer_usd_per_gb", "price of a GB from r to r'"),
    "B_i": ("exchange_gb", "GB between a worker and the PS in a slot"),
    "c_i": ("deployment_usd", "price of a launch"),
    "a_k^r": ("unit_usd", "price of a unit"),
    "b_k^r": ("discounted_usd", "price of a unit with the discount"),
    "e_k^r": ("tier_fee", "(a - b) l: what the discount costs"),
}
RENTED = r"\sum_{i \in I_t} \bigl( n_{i,k} y_i^r(t) + m_{i,k} s_i^r(t) \bigr)"
EACH_PLACE, EACH_BILL = (
    rf"\quad \forall {which}, r \in [R], t \in [T]" for which in (r"i \in I_t", r"k \in [K]")
)
EACH_SLOT = r"\quad \forall i \in I_t, t \in [T]"
EQUATIONS = {
    "eq_8": r"\min \sum_{t \in [T]} \Bigl( \sum_{i \in I_t} \sum_{r, r' \in [R]} d^{rr'}"
    r" \bigl( q_i^{rr'}(t) + B_i g_i^{rr'}(t) \bigr) + \sum_{i \in I_t} \sum_{r \in [R]}"
    r" c_i z_i^r(t) + \sum_{r \in [R]} \sum_{k \in [K]} x_k^r(t) \Bigr)",
    "eq_8a": rf"P_i y_i^r(t) \ge \sum_{{r' \in [R]}} q_i^{{r'r}}(t), {EACH_PLACE}",
    "eq_8b": rf"\sum_{{r' \in [R]}} q_i^{{rr'}}(t) = D_i^r(t), {EACH_PLACE}",
    "eq_8c": rf"x_k^r(t) \ge a_k^r {RENTED} - M u^1_{{k,r}}(t), {EACH_BILL}",
    "eq_8d": rf"x_k^r(t) \ge b_k^r {RENTED} + e_k^r - M u^2_{{k,r}}(t), {EACH_BILL}",
    "eq_8e": rf"u^1_{{k,r}}(t) + u^2_{{k,r}}(t) = 1, {EACH_BILL}",
    "eq_8f": rf"\sum_{{r \in [R]}} s_i^r(t) = 1, {EACH_SLOT}",
    "eq_8g": rf"U v_i^r(t) \ge y_i^r(t) + s_i^r(t), {EACH_PLACE}",
    "eq_8h": rf"z_i^r(t) \ge v_i^r(t) - v_i^r(t - 1), {EACH_PLACE}",
    "eq_8i": rf"\sum_{{r' \in [R]}} g_i^{{rr'}}(t) = y_i^r(t), {EACH_PLACE}",
    "eq_8j": rf"\sum_{{r' \in [R]}} g_i^{{r'r}}(t) \ge N_i(t) s_i^r(t), {EACH_PLACE}",
}
SYMBOLS = symbols(
    {
        ("job, slot, datacenter", "workers"): "y",
        ("job, slot, datacenter", "PSs"): "s",
        ("job, slot, datacenter", "deployments"): "v",
        ("job, slot, datacenter", "launches"): "z",
        ("job, slot, from, to", "GB"): "q",
        ("job, slot, from, to", "connections"): "g",
        ("slot, datacenter, resource", "USD"): "x",
        ("slot, datacenter, resource", "tiers"): "u1 u2",
        ("job, slot, datacenter", "USD a GB"): "eq_8a eq_8b",
        ("slot, datacenter, resource", "USD a USD"): "eq_8c eq_8d",
        ("slot, datacenter, resource", ""): "eq_8e",
        ("job, slot", ""): "eq_8f",
        ("job, slot, datacenter", "USD a deployment"): "eq_8g",
        ("job, slot, datacenter", "USD a launch"): "eq_8h",
        ("job, slot, datacenter", "USD a connection"): "eq_8i eq_8j",
    }
)


def printed_program(instance: MlbrokerInstance, relax: bool = False, factor: float = 1.0) -> Model:
    """Problem (8), relaxed P_f (9); M is `factor` times the least."""
    m = pyo.ConcreteModel(name=f"{instance.name} paper")
    sets = {i: job_sets(instance, i) for i in range(len(instance.jobs))}
    declare_jobs(m, sets, relax)
    prices, binary = bills(instance), pyo.NonNegativeReals if relax else pyo.Binary
    a, b, e = prices.unit, prices.lower, prices.fee
    M = {t: big_m(SlotData.at(instance, t), factor).tolist() for t in prices.live}
    m.x = pyo.Var(prices.keys, domain=pyo.NonNegativeReals, doc="(8k) what a resource costs")
    m.u1 = pyo.Var(prices.keys, domain=binary, doc="(8k) (8c) is off")
    m.u2 = pyo.Var(prices.keys, domain=binary, doc="(8k) (8d) is off")

    def rented(m: Model, t: int, r: int, k: int) -> Expr:
        return total(units_rented(m, sets[i], i, t, r, k) for i in prices.live[t])

    @m.Objective(doc="(8) transfer, resources, deployment and communication")
    def eq_8(m: Model) -> Expr:
        return total(own_cost(m, sets[i], i) for i in sets) + total(m.x.values())

    @m.Constraint(prices.keys, doc="(8c) the full price")
    def eq_8c(m: Model, t: int, r: int, k: int) -> Expr:
        return m.x[t, r, k] >= a[r][k] * rented(m, t, r, k) - M[t][r][k] * m.u1[t, r, k]

    @m.Constraint(prices.keys, doc="(8d) the discounted price")
    def eq_8d(m: Model, t: int, r: int, k: int) -> Expr:
        discounted = b[r][k] * rented(m, t, r, k) + e[r][k]
        return m.x[t, r, k] >= discounted - M[t][r][k] * m.u2[t, r, k]

    @m.Constraint(prices.keys, doc="(8e) one of the two")
    def eq_8e(m: Model, t: int, r: int, k: int) -> Expr:
        return m.u1[t, r, k] + m.u2[t, r, k] == 1

    set_equations(m, EQUATIONS, NOTATION)
    return m


def units_rented(m: Model, of: MlbrokerJobSets, i: int, t: int, r: int, k: int) -> Expr:
    """What a job rents of a resource, (2)."""
    return of.worker[k] * m.y[i, t, r] + of.server[k] * m.s[i, t, r]


def own_cost(m: Model, of: MlbrokerJobSets, i: int) -> Expr:
    """A job's C1, C4 and C3."""
    costs: Iterable[tuple[Mapping[tuple[int, int], float], Expr]] = ((of.arc, m.q), (of.talk, m.g))
    sent = [
        price * amount[i, t, r, q]
        for prices, amount in costs for t in of.slots for (r, q), price in prices.items() if price
    ]  # fmt: skip
    return total(sent) + total(of.launch * m.z[i, t, r] for t, r in of.places)


def declare_jobs(m: Model, sets: Mapping[int, MlbrokerJobSets], relax: bool) -> None:
    """The rules of jobs, in which no bill is; relaxed, v and z have no upper bound, (9k)."""
    integer, binary = pyo.NonNegativeIntegers, pyo.Binary
    if relax:
        integer = binary = pyo.NonNegativeReals
    I_t = [(i, t) for i, of in sets.items() for t in of.slots]
    places = [(i, t, r) for i, of in sets.items() for t, r in of.places]
    R = next(iter(sets.values())).centers if sets else range(0)
    m.y = pyo.Var(places, domain=integer, doc="(8k) workers")
    m.s = pyo.Var(places, domain=binary, doc="(8k) the PS stands here")
    m.v = pyo.Var(places, domain=binary, doc="(8k) the job is deployed here")
    m.z = pyo.Var(places, domain=pyo.NonNegativeReals, doc="(8k) the job is launched here")
    m.q = pyo.Var(
        [(i, t, r, q) for i, t in I_t for r, q in sets[i].arc],
        domain=pyo.NonNegativeReals, doc="(8k) GB sent",
    )  # fmt: skip
    m.g = pyo.Var(
        [(i, t, r, q) for i, t in I_t for r, q in sets[i].talk],
        domain=integer, doc="(8k) connections from workers to the PS",
    )  # fmt: skip

    @m.Constraint(places, doc="(8a) workers train what comes in")
    def eq_8a(m: Model, i: int, t: int, r: int) -> Expr:
        coming = total(m.q[i, t, q, r] for q in R if (q, r) in sets[i].arc)
        return sets[i].capacity * m.y[i, t, r] >= coming

    @m.Constraint(places, doc="(8b) all data is sent somewhere")
    def eq_8b(m: Model, i: int, t: int, r: int) -> Expr:
        return total(m.q[i, t, r, q] for q in R if (r, q) in sets[i].arc) == sets[i].data[t, r]

    @m.Constraint(I_t, doc="(8f) one PS")
    def eq_8f(m: Model, i: int, t: int) -> Expr:
        return total(m.s[i, t, r] for r in R) == 1

    @m.Constraint(places, doc="(8g) U v >= y + s with U = N + 1")
    def eq_8g(m: Model, i: int, t: int, r: int) -> Expr:
        return (sets[i].needed[t] + 1) * m.v[i, t, r] >= m.y[i, t, r] + m.s[i, t, r]

    @m.Constraint(places, doc="(8h) a launch where the job was not deployed")
    def eq_8h(m: Model, i: int, t: int, r: int) -> Expr:
        before = m.v[i, t - 1, r] if t > sets[i].slots[0] else 0.0
        return m.z[i, t, r] >= m.v[i, t, r] - before

    @m.Constraint(places, doc="(8i) every worker has a connection")
    def eq_8i(m: Model, i: int, t: int, r: int) -> Expr:
        return total(m.g[i, t, r, q] for q in R) == m.y[i, t, r]

    @m.Constraint(places, doc="(8j) the PS has N connections")
    def eq_8j(m: Model, i: int, t: int, r: int) -> Expr:
        return total(m.g[i, t, q, r] for q in R) >= sets[i].needed[t] * m.s[i, t, r]
