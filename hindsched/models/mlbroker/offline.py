"""mlbroker's integer program (8) in Pyomo: blocks and linking rows.

``tight`` (the default) equals the realised cost: the two-tier price is a fee e that buys the lower
price for everyone, so the resources are an uncapacitated facility location,

    min sum_i [a h_i - (a - b) w_i] + e u,  w_i <= h_i,  w_i <= H_i u,  u binary

(disaggregated: one row a job). Linking rows are ``eq_2_tier`` (w_i <= H_i u) and ``eq_8h``.
``paper`` is (8) as printed, another problem with another optimum: one named constraint per equation
number, with M of `sets.big_m`.

The convex program (10) of one slot is in ``convex.py`` and, as printed, in ``printed.py``; the dual
(11) of ``paper`` relaxed, which is P_f (9), in ``dual.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.mlbroker.block import add_job
from hindsched.models.mlbroker.sets import (
    Bills,
    JobSets,
    big_m,
    bills,
    decided,
    fee_share,
    job_sets,
    most_rented,
)
from hindsched.models.mlbroker.subproblem import build_subproblem
from hindsched.models.mlbroker.symbols import SYMBOLS, MlbrokerNames
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, arc_prices
from hindsched.solutions.mlbroker.transport import ship

__all__ = ["FORMS", "MlbrokerProgram", "build_offline", "build_subproblem"]

FORMS = {"tight": ("disaggregated",), "paper": ("printed",)}

JOBS_SHARE_COSTS = True
"""A tier's fee of a slot is paid once for all jobs."""


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerProgram(MlbrokerNames, OfflineProgram[MlbrokerSolution]):
    """The offline program (8), as printed or tight."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "USD"

    instance: MlbrokerInstance

    def extract(self) -> MlbrokerSolution:
        """The solution at the variables' values."""
        instance = self.instance
        shape = (len(instance.jobs), instance.horizon, len(instance.datacenters))
        workers, server = np.zeros(shape), np.zeros(shape)
        for job, block in self.model.job.items():
            for (t, r), variable in block.workers.items():
                workers[job, t - 1, r] = variable.value
                server[job, t - 1, r] = block.server[t, r].value
        ps = np.where(instance.alive, np.argmax(server, axis=2), -1).astype(np.int64)
        placed = np.rint(workers).astype(np.int64)
        return MlbrokerSolution(instance, placed, ps, self.formulation)

    def load(self, solution: MlbrokerSolution) -> None:
        """Set the variables from a feasible solution."""
        instance, m = self.instance, self.model
        used = solution.costs.used
        bought = instance.discounted_price * used + instance.tier_fee < instance.unit_price * used
        for job in m.job:
            self._load_job(job, solution, bought)
        if self.formulation == "tight":
            for t, r, k in m.tier:
                m.tier[t, r, k].set_value(int(bought[t - 1, r, k]))
            return
        for t, r, k in m.bill:
            beyond = bool(bought[t - 1, r, k])
            m.below[t, r, k].set_value(int(beyond))
            m.beyond[t, r, k].set_value(int(not beyond))
            bill = instance.weights[1] * solution.costs.resource[t - 1, r, k]
            m.bill[t, r, k].set_value(float(bill))

    def _load_job(self, job: int, solution: MlbrokerSolution, bought: NDArray[np.bool_]) -> None:
        """Set a block's variables; `bought` of shape (T, R, K) says which tiers are."""
        instance, b, paper = self.instance, self.model.job[job], self.formulation == "paper"
        centers = range(len(instance.datacenters))
        held = np.zeros(len(centers), dtype=bool)
        arc = arc_prices(instance, job)
        for t in range(instance.jobs[job].arrival, instance.jobs[job].departure + 1):
            placed, center = solution.workers[job, t - 1], int(solution.ps[job, t - 1])
            room = instance.capacity[job] * placed.astype(float)
            _, _, flow = ship(instance.data[job, t - 1], room, arc, np.inf)
            present = (placed > 0) | (np.arange(len(centers)) == center) | (held & paper)
            # as printed, workers beyond N may connect to a PS that is not there, for nothing
            free = int(placed.sum() - instance.workers_needed[job, t - 1]) if paper else 0
            for r in np.argsort(-instance.transfer_price[:, center]).tolist():
                apart = min(free, int(placed[r])) if r != center else 0
                free -= apart
                for q in centers:
                    count = (int(placed[r]) - apart) * (q == center) + apart * (q == r)
                    b.link[t, r, q].set_value(count)
            for r in centers:
                b.workers[t, r].set_value(int(placed[r]))
                b.server[t, r].set_value(int(r == center))
                b.present[t, r].set_value(int(present[r]))
                b.launched[t, r].set_value(int(present[r] and not held[r]))
                for q in (q for q in centers if (t, r, q) in b.flow):
                    b.flow[t, r, q].set_value(float(flow[r, q]))
                for k in range(len(instance.resources) if not paper else 0):
                    units = pyo.value(b.used[t, r, k]) * bool(bought[t - 1, r, k])
                    b.discounted[t, r, k].set_value(units)
            held = present

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


def build_offline(
    instance: MlbrokerInstance,
    formulation: str | None = None,
    *,
    form: str | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: MlbrokerSolution | None = None,
    kind: str = "symmetric",
    factor: float = 1.0,
) -> MlbrokerProgram:
    """Build the offline program.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    formulation : {"tight", "paper"}, optional
        Which program.
    form : {"disaggregated", "printed"}, optional
        Each formulation has one.
    relax : bool
        Whether integrality is dropped: the disaggregated LP (``tight``) or P_f (9) (``paper``).
    commitments : Commitments, optional
        Placements before ``commitments.now`` and of locked jobs are fixed.
    incumbent : MlbrokerSolution, optional
        Not needed: the horizon is hard.
    kind, factor
        M of the paper's form, see `big_m`.

    Returns
    -------
    MlbrokerProgram
        Blocks ``job[i]``, linking rows ``eq_8h`` and, in ``tight``, ``eq_2_tier``, in ``paper``
        ``eq_8c`` to ``eq_8e``; objective ``eq_8``.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = build_offline(hs.generate("mlbroker", preset="small"), "paper")
    >>> [part.name for part in program.components("constraint")][:4]
    ['eq_8h', 'eq_8c', 'eq_8d', 'eq_8e']
    """
    formulation, _ = choose_form(FORMS, instance.check_formulation(formulation), form)
    workers, server = decided(instance, commitments)
    jobs, prices = range(len(instance.jobs)), bills(instance)
    facts = {j: job_sets(instance, j, workers[j]) for j in jobs}
    m = pyo.ConcreteModel(name=f"{instance.name} {formulation}")
    m.job = pyo.Block(
        jobs, rule=lambda block, j: add_job(block, facts[j], prices, formulation, relax)
    )
    _add_launches(m, facts)
    if formulation == "tight":
        broker = _add_tiers(m, instance, prices, relax, workers)
    else:
        broker = _add_bills(m, instance, prices, relax, kind, factor)
    m.eq_8 = pyo.Objective(
        expr=pyo.quicksum(m.job[j].cost for j in jobs) + broker,
        doc="(8) transfer, resources, deployment and communication",
    )
    for j, t in np.argwhere(server >= 0).tolist():
        for r in facts[j].centers:
            m.job[j].workers[t + 1, r].fix(int(workers[j, t, r]))
            m.job[j].server[t + 1, r].fix(int(r == server[j, t]))
    return MlbrokerProgram(
        instance=instance, formulation=formulation, form=FORMS[formulation][0], relaxed=relax,
        model=m,
        again=partial(
            build_offline, instance, formulation, relax=relax, commitments=commitments, kind=kind,
            factor=factor,
        ),
    )  # fmt: skip


def build_chord(instance: MlbrokerInstance, j: int) -> Model:
    """One job's part of P_f (9) with the envelope of the concave price, at which the jobs part.

    The envelope is the chord F(hmax) / hmax of each bill: what the relaxed (8c)-(8e) say with M of
    each row's own, (a - b) hmax - e and e.
    """
    facts = {j: job_sets(instance, j)}
    m = pyo.ConcreteModel(name=f"{instance.name} chord")
    m.job = pyo.Block([j], rule=lambda b, j: add_job(b, facts[j], bills(instance), "paper", True))
    _add_launches(m, facts)
    chord = {t: SlotData.at(instance, t).chord.tolist() for t in facts[j].slots}
    rent = (chord[t][r][k] * units for (t, r, k), units in m.job[j].used.items())
    m.eq_9 = pyo.Objective(
        expr=m.job[j].cost + pyo.quicksum(rent), doc="(9) the job's cost, resources by the chord"
    )
    return m


def _add_launches(m: Model, facts: dict[int, JobSets]) -> None:
    own = [(j, t, r) for j, f in facts.items() for t, r in f.places]

    @m.Constraint(own, doc="(8h) a launch where the job was not deployed")
    def eq_8h(m: Model, j: int, t: int, r: int) -> Expr:
        b = m.job[j]
        before = b.present[t - 1, r] if t > facts[j].slots[0] else 0.0
        return b.launched[t, r] >= b.present[t, r] - before


def _add_tiers(
    m: Model, instance: MlbrokerInstance, prices: Bills, relax: bool, placed: Ints
) -> Expr:
    """Tiers with a fee, and the rows by which jobs take part in them; returns the fees."""
    m.tier = pyo.Var(
        prices.keys, domain=pyo.UnitInterval if relax else pyo.Binary,
        doc="(ours) u, the tier's fee is paid",
    )  # fmt: skip
    most = most_rented(instance, placed).tolist()
    rows = [(t, r, k, j) for t, r, k in prices.keys for j in prices.live[t]]

    @m.Constraint(rows, doc="(ours) the lower price only where its fee is paid")
    def eq_2_tier(m: Model, t: int, r: int, k: int, j: int) -> Expr:
        return m.job[j].discounted[t, r, k] <= most[j][t - 1][k] * m.tier[t, r, k]

    return pyo.quicksum(prices.fee[r][k] * m.tier[t, r, k] for t, r, k in prices.keys)


def _add_bills(
    m: Model, instance: MlbrokerInstance, prices: Bills, relax: bool, kind: str, factor: float
) -> Expr:
    """The bill by (8c)-(8e) as printed; returns its sum."""
    keys, binary = prices.keys, pyo.NonNegativeReals if relax else pyo.Binary
    m.bill = pyo.Var(keys, domain=pyo.NonNegativeReals, doc="(8k) x, what a resource costs")
    m.below = pyo.Var(keys, domain=binary, doc="(8k) u1, (8c) is off")
    m.beyond = pyo.Var(keys, domain=binary, doc="(8k) u2, (8d) is off")
    big = {t: big_m(SlotData.at(instance, t), kind, factor).tolist() for t in prices.live}

    def used(m: Model, t: int, r: int, k: int) -> Expr:
        return pyo.quicksum(m.job[j].used[t, r, k] for j in prices.live[t])

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

    return pyo.quicksum(m.bill[key] for key in keys)
