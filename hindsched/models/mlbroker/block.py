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

``tight`` adds to (8): at most N workers a centre, N to N + R - 1 in all (a worker in each other
centre may only hold the deployment), y <= N v, s <= v, v <= y + s, and g binds every worker to the
PS. ``paper`` is (8) as printed.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.algebra import Expr, Model
from hindsched.solutions.mlbroker.solution import arc_prices


def add_job(
    block: Model,
    instance: MlbrokerInstance,
    job: int,
    formulation: str,
    relax: bool = False,
    placed: Ints | None = None,
) -> None:
    """Fill a Pyomo block with a job's own variables, constraints and costs.

    Parameters
    ----------
    block : pyomo Block
        Receives the components. ``block.cost`` is the job's own part of the objective: C1, C3, C4
        and, in ``tight``, its units at full price less its discount. ``block.used[t, r, k]`` are
        the units it rents.
    instance : MlbrokerInstance
        The instance.
    job : int
        Position of the job.
    formulation : {"tight", "paper"}
        Which program.
    relax : bool
        Whether integrality is dropped. In ``paper`` the upper bounds of v and z go with it, (9k).
    placed : ndarray, shape (T, R), optional
        Workers that are decided: they may be more than a plan ever needs.
    """
    tight = formulation == "tight"
    record = instance.jobs[job]
    slots = list(range(record.arrival, record.departure + 1))
    centers = list(range(len(instance.datacenters)))
    kinds = list(range(len(instance.resources)))
    weights = instance.weights.tolist()
    arc = arc_prices(instance, job, weights[0]).tolist()
    talk = (weights[3] * instance.exchange[job] * instance.transfer_price).tolist()
    launch = float(weights[2] * instance.deployment[job])
    worker, server = instance.worker_demand[job].tolist(), instance.ps_demand[job].tolist()
    capacity = float(instance.capacity[job])
    data = instance.data[job].tolist()
    needed = {t: int(instance.workers_needed[job, t - 1]) for t in slots}
    if placed is None:
        placed = np.zeros((instance.horizon, len(centers)), dtype=np.int64)
    in_all = {t: max(needed[t] + len(centers) - 1, int(placed[t - 1].sum())) for t in slots}

    whole, binary = pyo.NonNegativeIntegers, pyo.Binary
    if relax:
        whole = pyo.NonNegativeReals
        binary = pyo.UnitInterval if tight else pyo.NonNegativeReals
    pairs = [(t, r) for t in slots for r in centers]
    arcs = [(t, r, q) for t, r in pairs for q in centers if arc[r][q] < float("inf")]
    links = [(t, r, q) for t, r in pairs for q in centers]
    block.workers = pyo.Var(pairs, domain=whole, doc="(8k) y, workers")
    if not relax:  # whole workers for data that may not leave: exact, where (8a) has tolerances
        for t, r in pairs:
            block.workers[t, r].setlb(int(instance.workers_pinned[job, t - 1, r]))
    block.server = pyo.Var(pairs, domain=binary, doc="(8k) s, the PS stands here")
    block.present = pyo.Var(pairs, domain=binary, doc="(8k) v, the job is deployed here")
    block.launched = pyo.Var(
        pairs, bounds=(0.0, 1.0 if tight else None), doc="(8k) z, the job is launched here"
    )
    block.flow = pyo.Var(arcs, domain=pyo.NonNegativeReals, doc="(8k) q, data sent")
    block.link = pyo.Var(
        links,
        domain=pyo.NonNegativeReals if tight else whole,
        doc="(8k) g, connections from workers to the PS",
    )

    into: dict[tuple[int, int], list[Expr]] = {pair: [] for pair in pairs}
    out: dict[tuple[int, int], list[Expr]] = {pair: [] for pair in pairs}
    for t, r, q in arcs:
        into[t, q].append(block.flow[t, r, q])
        out[t, r].append(block.flow[t, r, q])

    @block.Constraint(pairs, doc="(8a) workers train what comes in")
    def eq_8a(b: Model, t: int, r: int) -> Expr:
        return capacity * b.workers[t, r] >= pyo.quicksum(into[t, r])

    @block.Constraint(pairs, doc="(8b) all data is sent somewhere")
    def eq_8b(b: Model, t: int, r: int) -> Expr:
        return pyo.quicksum(out[t, r]) == data[t - 1][r]

    @block.Constraint(slots, doc="(8f) one PS")
    def eq_8f(b: Model, t: int) -> Expr:
        return pyo.quicksum(b.server[t, r] for r in centers) == 1

    @block.Constraint(pairs, doc="(8i) every worker has a connection")
    def eq_8i(b: Model, t: int, r: int) -> Expr:
        return pyo.quicksum(b.link[t, r, q] for q in centers) == b.workers[t, r]

    if tight:
        most = {t: max(1, needed[t], int(placed[t - 1].max())) for t in slots}

        @block.Constraint(pairs, doc="(8g) workers only where the job is present")
        def eq_8g(b: Model, t: int, r: int) -> Expr:
            return b.workers[t, r] <= most[t] * b.present[t, r]

        @block.Constraint(pairs, doc="(8g) the PS only where the job is present")
        def eq_8g_ps(b: Model, t: int, r: int) -> Expr:
            return b.server[t, r] <= b.present[t, r]

        @block.Constraint(pairs, doc="(ours) present only with a worker or the PS")
        def eq_8g_empty(b: Model, t: int, r: int) -> Expr:
            return b.present[t, r] <= b.workers[t, r] + b.server[t, r]

        @block.Constraint(pairs, doc="(8j) all connections end at the PS")
        def eq_8j(b: Model, t: int, r: int) -> Expr:
            ending = pyo.quicksum(b.link[t, q, r] for q in centers)
            return ending <= in_all[t] * b.server[t, r]

        @block.Constraint(pairs, doc="(8j) the PS has N connections at least")
        def eq_8j_needed(b: Model, t: int, r: int) -> Expr:
            ending = pyo.quicksum(b.link[t, q, r] for q in centers)
            return ending >= needed[t] * b.server[t, r]

        @block.Constraint(slots, doc="(ours) workers in all, a cut")
        def workers_needed(b: Model, t: int) -> Expr:
            total = pyo.quicksum(b.workers[t, r] for r in centers)
            return pyo.inequality(needed[t], total, in_all[t])
    else:

        @block.Constraint(pairs, doc="(8g) U v >= y + s with U = N + 1")
        def eq_8g(b: Model, t: int, r: int) -> Expr:
            return (needed[t] + 1) * b.present[t, r] >= b.workers[t, r] + b.server[t, r]

        @block.Constraint(pairs, doc="(8j) the PS has N connections")
        def eq_8j(b: Model, t: int, r: int) -> Expr:
            ending = pyo.quicksum(b.link[t, q, r] for q in centers)
            return ending >= needed[t] * b.server[t, r]

    triples = [(t, r, k) for t, r in pairs for k in kinds]

    @block.Expression(triples, doc="units rented")
    def used(b: Model, t: int, r: int, k: int) -> Expr:
        return worker[k] * b.workers[t, r] + server[k] * b.server[t, r]

    cost = [arc[r][q] * block.flow[t, r, q] for t, r, q in arcs if arc[r][q] > 0]
    cost += [talk[r][q] * block.link[t, r, q] for t, r, q in links if talk[r][q] > 0]
    cost += [launch * block.launched[pair] for pair in pairs]
    if tight:
        unit = (weights[1] * instance.unit_price).tolist()
        lower = (weights[1] * instance.discounted_price).tolist()
        block.discounted = pyo.Var(
            triples, domain=pyo.NonNegativeReals, doc="(ours) units bought at the lower price"
        )

        @block.Constraint(triples, doc="(ours) discounted units are rented units")
        def eq_2_rented(b: Model, t: int, r: int, k: int) -> Expr:
            return b.discounted[t, r, k] <= b.used[t, r, k]

        cost += [
            unit[r][k] * block.used[t, r, k]
            - (unit[r][k] - lower[r][k]) * block.discounted[t, r, k]
            for t, r, k in triples
        ]
    block.cost = pyo.Expression(expr=pyo.quicksum(cost))
