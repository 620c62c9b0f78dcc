"""One job of the tight mlbroker program as a Pyomo block.

To (8) as `printed.py` has it, it adds: at most N workers a centre, N to N + R - 1 in all (a worker
in each other centre may only hold the deployment), y <= N v, s <= v, v <= y + s, and g binds every
worker to the PS. ``cost`` is the job's own part of the objective, ``used[t, r, k]`` are the units
that it rents.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain
from hindsched.models.mlbroker import printed
from hindsched.models.mlbroker.printed import EACH_BILL, EACH_PLACE, EACH_SLOT
from hindsched.models.mlbroker.sets import Bills, MlbrokerJobSets

TIGHT = {
    "y": "workers", "s": "server", "v": "present", "z": "launched", "g": "link", "q": "flow",
}  # fmt: skip
"""Names of the printed program's variables in the tight one."""
NOTATION = {
    key: (TIGHT.get(here, here), what) for key, (here, what) in printed.NOTATION.items()
    if here not in ("x", "u1", "u2", "big_m", "N + 1")
} | {
    r"\bar h_{i,k}^r(t)": ("discounted", "units of the job that are bought at the lower price"),
    r"\bar u_k^r(t)": ("tier", "1 if the fee of the lower price is paid"),
    r"\bar N_i(t)": ("most", "most workers in one centre, N_i(t) or 1"),
    r"\bar H_{i,k}(t)": ("most_rented", "most units of the job in one centre"),
}  # fmt: skip
UNITS = r"n_{i,k} y_i^r(t) + m_{i,k} s_i^r(t)"
EQUATIONS = {name: printed.EQUATIONS[f"eq_8{name[-1]}"] for name in (
    "eq_8a", "eq_8b", "eq_8f", "eq_8h", "eq_8i")} | {
    "eq_8": r"\min \sum_{t \in [T]} \Bigl( \sum_{i \in I_t} \sum_{r, r' \in [R]} d^{rr'}"
    r" \bigl( q_i^{rr'}(t) + B_i g_i^{rr'}(t) \bigr) + \sum_{i \in I_t} \sum_{r \in [R]}"
    r" c_i z_i^r(t) + \sum_{r \in [R]} \sum_{k \in [K]} \bigl( e_k^r \bar u_k^r(t)"
    rf" + \sum_{{i \in I_t}} ( a_k^r ({UNITS})"
    r" - (a_k^r - b_k^r) \bar h_{i,k}^r(t) ) \bigr) \Bigr)",
    "eq_8g": rf"y_i^r(t) \le \bar N_i(t) v_i^r(t), {EACH_PLACE}",
    "eq_8g_ps": rf"s_i^r(t) \le v_i^r(t), {EACH_PLACE}",
    "eq_8g_empty": rf"v_i^r(t) \le y_i^r(t) + s_i^r(t), {EACH_PLACE}",
    "eq_8j": rf"\sum_{{r' \in [R]}} g_i^{{r'r}}(t) \le (N_i(t) + R - 1) s_i^r(t), {EACH_PLACE}",
    "eq_8j_needed": printed.EQUATIONS["eq_8j"],
    "workers_needed": rf"N_i(t) \le \sum_{{r \in [R]}} y_i^r(t) \le N_i(t) + R - 1, {EACH_SLOT}",
    "eq_2_rented": rf"\bar h_{{i,k}}^r(t) \le {UNITS}, {EACH_BILL}, i \in I_t",
    "eq_2_tier": r"\bar h_{i,k}^r(t) \le \bar H_{i,k}(t) \bar u_k^r(t),"
    rf" {EACH_BILL}, i \in I_t",
}  # fmt: skip


def tight_job(b: Model, f: MlbrokerJobSets, prices: Bills, relax: bool = False) -> None:
    """Fill a block with (8) as it is meant; its cost has the units at their price, no fees."""
    _add_variables(b, f, relax)
    _add_common_rules(b, f)
    b.discounted = pyo.Var(
        f.tiers, domain=pyo.NonNegativeReals, doc="(ours) units bought at the lower price"
    )

    @b.Constraint(f.places, doc="(8g) workers only where the job is present")
    def eq_8g(b: Model, t: int, r: int) -> Expr:
        return b.workers[t, r] <= f.most[t] * b.present[t, r]

    @b.Constraint(f.places, doc="(8g) the PS only where the job is present")
    def eq_8g_ps(b: Model, t: int, r: int) -> Expr:
        return b.server[t, r] <= b.present[t, r]

    @b.Constraint(f.places, doc="(ours) present only with a worker or the PS")
    def eq_8g_empty(b: Model, t: int, r: int) -> Expr:
        return b.present[t, r] <= b.workers[t, r] + b.server[t, r]

    @b.Constraint(f.places, doc="(8j) all connections end at the PS")
    def eq_8j(b: Model, t: int, r: int) -> Expr:
        return total(b.link[t, q, r] for q in f.centers) <= f.in_all[t] * b.server[t, r]

    @b.Constraint(f.places, doc="(8j) the PS has N connections at least")
    def eq_8j_needed(b: Model, t: int, r: int) -> Expr:
        return total(b.link[t, q, r] for q in f.centers) >= f.needed[t] * b.server[t, r]

    @b.Constraint(f.slots, doc="(ours) workers in all, a cut")
    def workers_needed(b: Model, t: int) -> Expr:
        return pyo.inequality(f.needed[t], total(b.workers[t, r] for r in f.centers), f.in_all[t])

    @b.Constraint(f.tiers, doc="(ours) discounted units are rented units")
    def eq_2_rented(b: Model, t: int, r: int, k: int) -> Expr:
        return b.discounted[t, r, k] <= b.used[t, r, k]

    unit, lower = prices.unit, prices.lower
    rent = total(
        unit[r][k] * b.used[t, r, k] - (unit[r][k] - lower[r][k]) * b.discounted[t, r, k]
        for t, r, k in f.tiers
    )
    b.cost = pyo.Expression(expr=_own_cost(b, f) + rent)


def _add_variables(b: Model, f: MlbrokerJobSets, relax: bool) -> None:
    """(8k)."""
    integer, binary = integer_domain(relax), binary_domain(relax)
    b.workers = pyo.Var(f.places, domain=integer, doc="(8k) y, workers")
    if not relax:  # whole workers for data that may not leave: exact, where (8a) has tolerances
        for place in f.places:
            b.workers[place].setlb(f.pinned[place])
    b.server = pyo.Var(f.places, domain=binary, doc="(8k) s, the PS stands here")
    b.present = pyo.Var(f.places, domain=binary, doc="(8k) v, the job is deployed here")
    b.launched = pyo.Var(f.places, bounds=(0.0, 1.0), doc="(8k) z, the job is launched here")
    b.flow = pyo.Var(
        [(t, r, q) for t in f.slots for r, q in f.arc], domain=pyo.NonNegativeReals,
        doc="(8k) q, data sent",
    )  # fmt: skip
    b.link = pyo.Var(
        [(t, r, q) for t in f.slots for r, q in f.talk], domain=pyo.NonNegativeReals,
        doc="(8k) g, connections from workers to the PS",
    )  # fmt: skip


def _add_common_rules(b: Model, f: MlbrokerJobSets) -> None:
    """The rules that are as printed."""

    @b.Constraint(f.places, doc="(8a) workers train what comes in")
    def eq_8a(b: Model, t: int, r: int) -> Expr:
        coming = total(b.flow[t, q, r] for q in f.centers if (q, r) in f.arc)
        return f.capacity * b.workers[t, r] >= coming

    @b.Constraint(f.places, doc="(8b) all data is sent somewhere")
    def eq_8b(b: Model, t: int, r: int) -> Expr:
        return total(b.flow[t, r, q] for q in f.centers if (r, q) in f.arc) == f.data[t, r]

    @b.Constraint(f.slots, doc="(8f) one PS")
    def eq_8f(b: Model, t: int) -> Expr:
        return total(b.server[t, r] for r in f.centers) == 1

    @b.Constraint(f.places, doc="(8i) every worker has a connection")
    def eq_8i(b: Model, t: int, r: int) -> Expr:
        return total(b.link[t, r, q] for q in f.centers) == b.workers[t, r]

    @b.Expression(f.tiers, doc="(2) units rented")
    def used(b: Model, t: int, r: int, k: int) -> Expr:
        return f.worker[k] * b.workers[t, r] + f.server[k] * b.server[t, r]


def _own_cost(b: Model, f: MlbrokerJobSets) -> Expr:
    """C1, C4 and C3."""
    sent = [price * b.flow[t, r, q] for t in f.slots for (r, q), price in f.arc.items() if price]
    sent += [price * b.link[t, r, q] for t in f.slots for (r, q), price in f.talk.items() if price]
    return total(sent) + total(f.launch * b.launched[place] for place in f.places)
