"""One job of the mlbroker integer program as a Pyomo block, in both formulations.

==================  ================  ======================================================
paper               here              index, domain
==================  ================  ======================================================
``y_i^r(t)``        ``workers``       (t, r), integer
``s_i^r(t)``        ``server``        (t, r), binary
``q_i^{rr'}(t)``    ``flow``          (t, r, r'), GB
``g_i^{rr'}(t)``    ``link``          (t, r, r'), integer (continuous in ``tight``: implied)
``v_i^r(t)``        ``present``       (t, r), binary
``z_i^r(t)``        ``launched``      (t, r), in [0, 1]
(ours)              ``discounted``    (t, r, k): units bought at the lower price, ``tight`` only
==================  ================  ======================================================

``paper`` is (8) as printed. ``tight`` adds to it: at most N workers a centre, N to N + R - 1 in all
(a worker in each other centre may only hold the deployment), y <= N v, s <= v, v <= y + s, and g
binds every worker to the PS.
"""

from __future__ import annotations

import pyomo.environ as pyo

from hindsched.models.algebra import Expr, Model
from hindsched.models.mlbroker.sets import Bills, JobSets

total = pyo.quicksum


def add_job(block: Model, f: JobSets, prices: Bills, formulation: str, relax: bool = False) -> None:
    """Fill a Pyomo block with a job's own variables, constraints and costs.

    Parameters
    ----------
    block : pyomo Block
        Receives the components. ``block.cost`` is the job's own part of the objective: C1, C3, C4
        and, in ``tight``, its units at full price less its discount. ``block.used[t, r, k]`` are
        the units it rents.
    f : JobSets
        The job.
    prices : Bills
        What a unit costs.
    formulation : {"tight", "paper"}
        Which program.
    relax : bool
        Whether integrality is dropped. In ``paper`` the upper bounds of v and z go with it, (9k).
    """
    _add_printed_variables(block, f, formulation == "tight", relax)
    _add_printed_rules(block, f)
    cost = [
        price * block.flow[t, r, q] for t in f.slots for (r, q), price in f.arc.items() if price
    ]
    cost += [
        price * block.link[t, r, q] for t in f.slots for (r, q), price in f.talk.items() if price
    ]
    cost += [f.launch * block.launched[place] for place in f.places]
    if formulation == "tight":
        _add_tight_rules(block, f)
        cost += _add_discounts(block, f, prices)
    else:
        _add_paper_rules(block, f)
    block.cost = pyo.Expression(expr=total(cost))


def _add_printed_variables(block: Model, f: JobSets, tight: bool, relax: bool) -> None:
    """(8k), (9k)."""
    whole, binary = pyo.NonNegativeIntegers, pyo.Binary
    if relax:
        whole, binary = pyo.NonNegativeReals, pyo.UnitInterval if tight else pyo.NonNegativeReals
    block.workers = pyo.Var(f.places, domain=whole, doc="(8k) y, workers")
    if not relax:  # whole workers for data that may not leave: exact, where (8a) has tolerances
        for place in f.places:
            block.workers[place].setlb(f.pinned[place])
    block.server = pyo.Var(f.places, domain=binary, doc="(8k) s, the PS stands here")
    block.present = pyo.Var(f.places, domain=binary, doc="(8k) v, the job is deployed here")
    block.launched = pyo.Var(
        f.places, bounds=(0.0, 1.0 if tight else None), doc="(8k) z, the job is launched here"
    )
    flows = [(t, r, q) for t in f.slots for r, q in f.arc]
    block.flow = pyo.Var(flows, domain=pyo.NonNegativeReals, doc="(8k) q, data sent")
    links = [(t, r, q) for t in f.slots for r, q in f.talk]
    block.link = pyo.Var(
        links,
        domain=pyo.NonNegativeReals if tight else whole,
        doc="(8k) g, connections from workers to the PS",
    )


def _add_printed_rules(block: Model, f: JobSets) -> None:
    """The rules that both formulations have."""

    @block.Constraint(f.places, doc="(8a) workers train what comes in")
    def eq_8a(b: Model, t: int, r: int) -> Expr:
        coming = total(b.flow[t, q, r] for q in f.centers if (q, r) in f.arc)
        return f.capacity * b.workers[t, r] >= coming

    @block.Constraint(f.places, doc="(8b) all data is sent somewhere")
    def eq_8b(b: Model, t: int, r: int) -> Expr:
        return total(b.flow[t, r, q] for q in f.centers if (r, q) in f.arc) == f.data[t, r]

    @block.Constraint(f.slots, doc="(8f) one PS")
    def eq_8f(b: Model, t: int) -> Expr:
        return total(b.server[t, r] for r in f.centers) == 1

    @block.Constraint(f.places, doc="(8i) every worker has a connection")
    def eq_8i(b: Model, t: int, r: int) -> Expr:
        return total(b.link[t, r, q] for q in f.centers) == b.workers[t, r]

    tiers = [(t, r, k) for t, r in f.places for k in f.kinds]

    @block.Expression(tiers, doc="units rented")
    def used(b: Model, t: int, r: int, k: int) -> Expr:
        return f.worker[k] * b.workers[t, r] + f.server[k] * b.server[t, r]


def _connections(b: Model, f: JobSets, t: int, r: int) -> Expr:
    """Connections that end in a centre."""
    return total(b.link[t, q, r] for q in f.centers)


def _add_paper_rules(block: Model, f: JobSets) -> None:
    """(8g) and (8j) as printed."""

    @block.Constraint(f.places, doc="(8g) U v >= y + s with U = N + 1")
    def eq_8g(b: Model, t: int, r: int) -> Expr:
        return (f.needed[t] + 1) * b.present[t, r] >= b.workers[t, r] + b.server[t, r]

    @block.Constraint(f.places, doc="(8j) the PS has N connections")
    def eq_8j(b: Model, t: int, r: int) -> Expr:
        return _connections(b, f, t, r) >= f.needed[t] * b.server[t, r]


def _add_tight_rules(block: Model, f: JobSets) -> None:
    """(8g) and (8j) as they are meant, and a cut."""

    @block.Constraint(f.places, doc="(8g) workers only where the job is present")
    def eq_8g(b: Model, t: int, r: int) -> Expr:
        return b.workers[t, r] <= f.most[t] * b.present[t, r]

    @block.Constraint(f.places, doc="(8g) the PS only where the job is present")
    def eq_8g_ps(b: Model, t: int, r: int) -> Expr:
        return b.server[t, r] <= b.present[t, r]

    @block.Constraint(f.places, doc="(ours) present only with a worker or the PS")
    def eq_8g_empty(b: Model, t: int, r: int) -> Expr:
        return b.present[t, r] <= b.workers[t, r] + b.server[t, r]

    @block.Constraint(f.places, doc="(8j) all connections end at the PS")
    def eq_8j(b: Model, t: int, r: int) -> Expr:
        return _connections(b, f, t, r) <= f.in_all[t] * b.server[t, r]

    @block.Constraint(f.places, doc="(8j) the PS has N connections at least")
    def eq_8j_needed(b: Model, t: int, r: int) -> Expr:
        return _connections(b, f, t, r) >= f.needed[t] * b.server[t, r]

    @block.Constraint(f.slots, doc="(ours) workers in all, a cut")
    def workers_needed(b: Model, t: int) -> Expr:
        return pyo.inequality(f.needed[t], total(b.workers[t, r] for r in f.centers), f.in_all[t])


def _add_discounts(block: Model, f: JobSets, prices: Bills) -> list[Expr]:
    """Units at the lower price, and what all units cost the job; the fee is the broker's."""
    unit, lower = prices.unit, prices.lower
    block.discounted = pyo.Var(
        list(block.used), domain=pyo.NonNegativeReals, doc="(ours) units bought at the lower price"
    )

    @block.Constraint(list(block.used), doc="(ours) discounted units are rented units")
    def eq_2_rented(b: Model, t: int, r: int, k: int) -> Expr:
        return b.discounted[t, r, k] <= b.used[t, r, k]

    return [
        unit[r][k] * block.used[t, r, k] - (unit[r][k] - lower[r][k]) * block.discounted[t, r, k]
        for t, r, k in block.used
    ]
