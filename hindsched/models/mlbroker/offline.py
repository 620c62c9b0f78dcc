"""mlbroker's integer program (8) in Pyomo: blocks, linking rows and the subproblem.

``tight`` (the default) equals the realised cost: the two-tier price is a fee e that buys the lower
price for everyone, so the resources are an uncapacitated facility location,

    min sum_i [a h_i - (a - b) w_i] + e u,  w_i <= h_i,  w_i <= H_i u,  u binary

(disaggregated: one row a job). Linking rows are ``eq_2_tier`` (w_i <= H_i u) and ``eq_8h``.
``paper`` is (8) as printed, one named constraint per equation number, with M of `big_m`.

The convex programs of the paper are in ``models/mlbroker/convex.py``, its dual (11) in
``models/mlbroker/dual.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.instances.mlbroker.instance import Floats, MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.base import Commitments
from hindsched.models.mlbroker.block import job_block
from hindsched.models.mlbroker.convex import big_m
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, arc_prices, parse_rows
from hindsched.solutions.mlbroker.transport import ship


def build_offline(
    instance: MlbrokerInstance,
    formulation: str | None = None,
    *,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: MlbrokerSolution | None = None,
    kind: str = "symmetric",
    factor: float = 1.0,
) -> pyo.ConcreteModel:
    """Build the offline program.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    formulation : {"tight", "paper"}, optional
        Which program.
    relax : bool
        Whether integrality is dropped: the disaggregated LP (``tight``) or P_f (9) (``paper``).
    commitments : Commitments, optional
        Placements before ``commitments.now`` and of locked jobs are fixed.
    incumbent : MlbrokerSolution, optional
        Not needed: the horizon is hard.
    kind, factor
        M of the paper's form, see `big_m`.
    """
    formulation = instance.check_formulation(formulation)
    model = pyo.ConcreteModel(name=f"{instance.name} {formulation}")
    model.formulation = formulation
    jobs = list(range(len(instance.jobs)))

    def rule(block: Any, job: int) -> None:
        job_block(block, instance, job, formulation, relax)

    model.job = pyo.Block(jobs, rule=rule)
    model.eq_8h = pyo.ConstraintList(doc="(8h) a launch where the job was not present")
    for job in jobs:
        block = model.job[job]
        for t in block.slots:
            for r in block.centers:
                earlier = block.present[t - 1, r] if t > block.slots[0] else 0.0
                model.eq_8h.add(block.launched[t, r] >= block.present[t, r] - earlier)
    cost = [model.job[job].cost for job in jobs]
    if formulation == "tight":
        cost.append(_disaggregated_tiers(model, instance, relax))
    else:
        cost.append(_big_m_tiers(model, instance, relax, kind, factor))
    model.objective = pyo.Objective(expr=pyo.quicksum(cost), sense=pyo.minimize)
    if commitments is not None:
        _fix(model, instance, commitments)
    return model


def _live(instance: MlbrokerInstance) -> dict[int, list[int]]:
    """Positions of the live jobs by slot."""
    return {
        slot + 1: np.flatnonzero(instance.alive[:, slot]).tolist()
        for slot in range(instance.horizon)
        if instance.alive[:, slot].any()
    }


def _triples(instance: MlbrokerInstance) -> list[tuple[int, int, int]]:
    return [
        (t, r, k)
        for t in _live(instance)
        for r in range(len(instance.datacenters))
        for k in range(len(instance.resources))
    ]


def _disaggregated_tiers(model: pyo.ConcreteModel, instance: MlbrokerInstance, relax: bool) -> Any:
    triples = _triples(instance)
    model.tier = pyo.Var(triples, domain=pyo.UnitInterval if relax else pyo.Binary)
    live = _live(instance)
    most = largest_use(instance).tolist()
    rows = [(t, r, k, j) for t, r, k in triples for j in live[t]]

    @model.Constraint(rows, doc="(ours) the lower price only where its fee is paid")
    def eq_2_tier(m: Any, t: int, r: int, k: int, j: int) -> Any:
        return m.job[j].discounted[t, r, k] <= most[j][t - 1][k] * m.tier[t, r, k]

    fee = (instance.weights[1] * instance.tier_fee).tolist()
    return pyo.quicksum(fee[r][k] * model.tier[t, r, k] for t, r, k in triples)


def largest_use(instance: MlbrokerInstance) -> Floats:
    """H: most units of a resource that a job uses in one centre, n max(N, 1) + m, (J, T, K)."""
    workers = np.maximum(instance.workers_needed, 1)[:, :, None]
    most: Floats = workers * instance.worker_demand[:, None] + instance.ps_demand[:, None]
    return most


def _big_m_tiers(
    model: pyo.ConcreteModel, instance: MlbrokerInstance, relax: bool, kind: str, factor: float
) -> Any:
    triples = _triples(instance)
    live = _live(instance)
    binary = pyo.NonNegativeReals if relax else pyo.Binary
    model.bill = pyo.Var(triples, domain=pyo.NonNegativeReals)
    model.below = pyo.Var(triples, domain=binary)
    model.beyond = pyo.Var(triples, domain=binary)
    weight = float(instance.weights[1])
    unit = (weight * instance.unit_price).tolist()
    lower = (weight * instance.discounted_price).tolist()
    fee = (weight * instance.tier_fee).tolist()
    big = {t: big_m(SlotData.at(instance, t), kind, factor).tolist() for t in live}

    def used(m: Any, t: int, r: int, k: int) -> Any:
        return pyo.quicksum(m.job[j].used[t, r, k] for j in live[t])

    @model.Constraint(triples, doc="(8c) the full price")
    def eq_8c(m: Any, t: int, r: int, k: int) -> Any:
        price = unit[r][k] * used(m, t, r, k)
        return m.bill[t, r, k] >= price - big[t][r][k] * m.below[t, r, k]

    @model.Constraint(triples, doc="(8d) the discounted price")
    def eq_8d(m: Any, t: int, r: int, k: int) -> Any:
        price = lower[r][k] * used(m, t, r, k) + fee[r][k]
        return m.bill[t, r, k] >= price - big[t][r][k] * m.beyond[t, r, k]

    @model.Constraint(triples, doc="(8e) one of the two")
    def eq_8e(m: Any, t: int, r: int, k: int) -> Any:
        return m.below[t, r, k] + m.beyond[t, r, k] == 1

    return pyo.quicksum(model.bill[triple] for triple in triples)


def _fix(model: pyo.ConcreteModel, instance: MlbrokerInstance, commitments: Commitments) -> None:
    """Fix workers and PS of what ran before ``now`` and of locked jobs."""
    for job, record in enumerate(instance.jobs):
        rows = commitments.assignments.get(record.name, ())
        block = model.job[job]
        for span, placed, center in parse_rows(instance, record, rows):
            for t in range(span.start + 1, span.stop + 1):
                if t >= commitments.now and record.name not in commitments.locked:
                    continue
                for r in block.centers:
                    block.workers[t, r].fix(int(placed[r]))
                    block.server[t, r].fix(int(r == center))


def build_subproblem(
    instance: MlbrokerInstance, job: int, formulation: str | None = None
) -> pyo.ConcreteModel:
    """Build one block with mutable prices on the linking rows (``tight`` only in the oracle).

    Parameters
    ----------
    job : int
        Position of the job, or the number of jobs for the broker's block, the tiers u.
    """
    formulation = instance.check_formulation(formulation)
    model = pyo.ConcreteModel(name=f"{instance.name} block {job}")
    model.formulation = formulation
    model.block_index = job
    kinds = range(len(instance.resources))
    centers = range(len(instance.datacenters))
    if job == len(instance.jobs):
        triples = _triples(instance)
        live, most = _live(instance), largest_use(instance).tolist()
        fee = (instance.weights[1] * instance.tier_fee).tolist()
        rows = [(r, k, j, t) for t, r, k in triples for j in live[t]]
        model.discount_price = pyo.Param(rows, mutable=True, default=0.0)
        model.tier = pyo.Var(triples, domain=pyo.Binary)
        paid = [fee[r][k] * model.tier[t, r, k] for t, r, k in triples]
        earned = [
            model.discount_price[r, k, j, t] * most[j][t - 1][k] * model.tier[t, r, k]
            for r, k, j, t in rows
        ]
        expression = pyo.quicksum(paid) - pyo.quicksum(earned)
        model.objective = pyo.Objective(expr=expression, sense=pyo.minimize)
        return model
    model.job = pyo.Block([job])
    block = job_block(model.job[job], instance, job, "tight")
    rows = [(r, k, job, t) for t in block.slots for r in centers for k in kinds]
    model.discount_price = pyo.Param(rows, mutable=True, default=0.0)
    launches = [(r, job, t) for t in block.slots for r in centers]
    model.deployment_price = pyo.Param(launches, mutable=True, default=0.0)
    priced = [model.discount_price[r, k, j, t] * block.discounted[t, r, k] for r, k, j, t in rows]
    for r, j, t in launches:
        earlier = block.present[t - 1, r] if t > block.slots[0] else 0.0
        row = block.present[t, r] - earlier - block.launched[t, r]
        priced.append(model.deployment_price[r, j, t] * row)
    expression = block.cost + pyo.quicksum(priced)
    model.objective = pyo.Objective(expr=expression, sense=pyo.minimize)
    return model


def set_subproblem(
    model: pyo.ConcreteModel, prices: Mapping[str, Floats], residual: Any = None
) -> None:
    """Give the prices of the linking rows; there are no capacities to leave a residual of."""
    for name, param in (("discount", "discount_price"), ("deployment", "deployment_price")):
        component = model.component(param)
        if component is not None:
            for index in component:
                axes = (*index[:-1], index[-1] - 1)
                component[index] = float(prices[name][axes]) if name in prices else 0.0


def extract(
    model: pyo.ConcreteModel, instance: MlbrokerInstance, formulation: str | None = None
) -> MlbrokerSolution:
    """Read the solution at the variables' present values."""
    shape = (len(instance.jobs), instance.horizon, len(instance.datacenters))
    workers = np.zeros(shape, dtype=np.int64)
    ps = np.full(shape[:2], -1, dtype=np.int64)
    for job in model.job:
        block = model.job[job]
        for t in block.slots:
            workers[job, t - 1] = [round(pyo.value(block.workers[t, r])) for r in block.centers]
            ps[job, t - 1] = int(np.argmax([pyo.value(block.server[t, r]) for r in block.centers]))
    return MlbrokerSolution(instance, workers, ps, formulation)


def load(model: pyo.ConcreteModel, solution: MlbrokerSolution) -> None:
    """Set the variables' values from a solution."""
    instance, paper = solution.instance, model.formulation == "paper"
    used = solution.costs.used
    bought = instance.discounted_price * used + instance.tier_fee < instance.unit_price * used
    held = np.zeros((len(instance.jobs), len(instance.datacenters)), dtype=bool)
    for job in model.job:
        block = model.job[job]
        for t in block.slots:
            placed, center = solution.workers[job, t - 1], int(solution.ps[job, t - 1])
            room = instance.capacity[job] * placed.astype(float)
            _, _, flow = ship(instance.data[job, t - 1], room, arc_prices(instance, job))
            present = placed > 0
            present[center] = True
            if paper:
                present |= held[job]
            free = int(placed.sum() - instance.workers_needed[job, t - 1]) if paper else 0
            distance = instance.transfer_price[:, center]
            for r in np.argsort(-distance).tolist():
                apart = min(free, int(placed[r])) if r != center else 0
                free -= apart
                for q in block.centers:
                    count = (int(placed[r]) - apart) * (q == center) + apart * (q == r)
                    block.link[t, r, q].set_value(count)
            for r in block.centers:
                block.workers[t, r].set_value(int(placed[r]))
                block.server[t, r].set_value(int(r == center))
                block.present[t, r].set_value(int(present[r]))
                block.launched[t, r].set_value(int(present[r] and not held[job, r]))
                for q in block.centers:
                    if (t, r, q) in block.flow:
                        block.flow[t, r, q].set_value(float(flow[r, q]))
                if not paper:
                    for k in block.kinds:
                        units = pyo.value(block.used[t, r, k]) * bool(bought[t - 1, r, k])
                        block.discounted[t, r, k].set_value(units)
            held[job] = present
    for t, r, k in _triples(instance):
        beyond = bool(bought[t - 1, r, k])
        if paper:
            model.below[t, r, k].set_value(int(beyond))
            model.beyond[t, r, k].set_value(int(not beyond))
            bill = instance.weights[1] * solution.costs.resource[t - 1, r, k]
            model.bill[t, r, k].set_value(float(bill))
        else:
            model.tier[t, r, k].set_value(int(beyond))


def capacity_prices(model: pyo.ConcreteModel, duals: Mapping[Any, float]) -> dict[str, Floats]:
    """Prices of the linking rows from the duals of the relaxed ``tight`` program.

    Returns
    -------
    dict
        ``discount`` of shape (R, K, J, T) and ``deployment`` of shape (R, J, T), non-negative.
    """
    rows = list(model.eq_2_tier)
    size = [1 + max((row[i] for row in rows), default=0) for i in range(4)]
    discount = np.zeros((size[1], size[2], len(model.job), size[0] - 1))
    for t, r, k, j in rows:
        discount[r, k, j, t - 1] = abs(duals.get(model.eq_2_tier[t, r, k, j], 0.0))
    deployment = np.zeros((size[1], len(model.job), size[0] - 1))
    number = 0
    for job in model.job:
        block = model.job[job]
        for t in block.slots:
            for r in block.centers:
                number += 1
                deployment[r, job, t - 1] = abs(duals.get(model.eq_8h[number], 0.0))
    return {"discount": discount, "deployment": deployment}
