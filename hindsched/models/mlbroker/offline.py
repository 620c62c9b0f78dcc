"""mlbroker's integer program (8) in Pyomo: blocks and linking rows.

``tight`` (the default) equals the realised cost: the two-tier price is a fee e that buys the lower
price for everyone, so the resources are an uncapacitated facility location,

    min sum_i [a h_i - (a - b) w_i] + e u,  w_i <= h_i,  w_i <= H_i u,  u binary

(disaggregated: one row a job). Linking rows are ``eq_2_tier`` (w_i <= H_i u) and ``eq_8h``.
``paper`` is (8) as printed, one named constraint per equation number, with M of `big_m`.

The convex programs of the paper, P_f (9) and (10), are in ``models/mlbroker/convex.py``, its dual
(11) in ``models/mlbroker/dual.py``.
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
from hindsched.models.mlbroker.big_m import big_m
from hindsched.models.mlbroker.block import add_job
from hindsched.models.mlbroker.subproblem import build_subproblem
from hindsched.models.mlbroker.symbols import SYMBOLS, MlbrokerNames
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, arc_prices, parse_rows
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
                workers[job, t - 1, r] = pyo.value(variable)
                server[job, t - 1, r] = pyo.value(block.server[t, r])
        ps = np.where(instance.alive, np.argmax(server, axis=2), -1)
        return MlbrokerSolution(
            instance, np.rint(workers).astype(np.int64), ps.astype(np.int64), self.formulation
        )

    def load(self, solution: MlbrokerSolution) -> None:
        """Set the variables from a feasible solution."""
        instance, model, paper = self.instance, self.model, self.formulation == "paper"
        used = solution.costs.used
        bought = instance.discounted_price * used + instance.tier_fee < instance.unit_price * used
        for job in model.job:
            self._load_job(job, solution, bought)
        for t, r, k in model.eq_8e if paper else model.tier:
            beyond = bool(bought[t - 1, r, k])
            if paper:
                model.below[t, r, k].set_value(int(beyond))
                model.beyond[t, r, k].set_value(int(not beyond))
                bill = instance.weights[1] * solution.costs.resource[t - 1, r, k]
                model.bill[t, r, k].set_value(float(bill))
            else:
                model.tier[t, r, k].set_value(int(beyond))

    def _load_job(self, job: int, solution: MlbrokerSolution, bought: NDArray[np.bool_]) -> None:
        """Set a block's variables; `bought` of shape (T, R, K) says which tiers are."""
        instance, block, paper = self.instance, self.model.job[job], self.formulation == "paper"
        centers = range(len(instance.datacenters))
        held = np.zeros(len(centers), dtype=bool)
        arc = arc_prices(instance, job)
        for t in range(instance.jobs[job].arrival, instance.jobs[job].departure + 1):
            placed, center = solution.workers[job, t - 1], int(solution.ps[job, t - 1])
            room = instance.capacity[job] * placed.astype(float)
            _, _, flow = ship(instance.data[job, t - 1], room, arc, np.inf)
            present = placed > 0
            present[center] = True
            if paper:
                present |= held
            # as printed, workers beyond N may connect to a PS that is not there, for nothing
            free = int(placed.sum() - instance.workers_needed[job, t - 1]) if paper else 0
            for r in np.argsort(-instance.transfer_price[:, center]).tolist():
                apart = min(free, int(placed[r])) if r != center else 0
                free -= apart
                for q in centers:
                    count = (int(placed[r]) - apart) * (q == center) + apart * (q == r)
                    block.link[t, r, q].set_value(count)
            for r in centers:
                block.workers[t, r].set_value(int(placed[r]))
                block.server[t, r].set_value(int(r == center))
                block.present[t, r].set_value(int(present[r]))
                block.launched[t, r].set_value(int(present[r] and not held[r]))
                for q in centers:
                    if (t, r, q) in block.flow:
                        block.flow[t, r, q].set_value(float(flow[r, q]))
                for k in range(len(instance.resources) if not paper else 0):
                    units = pyo.value(block.used[t, r, k]) * bool(bought[t - 1, r, k])
                    block.discounted[t, r, k].set_value(units)
            held = present

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """``discount`` (R, K, J, T) and ``deployment`` (R, J, T) from the relaxation's duals.

        As printed, a unit's price is a theta + b rho by the duals of (8c) and (8d); what it is
        above b stands for the share of the fee.
        """
        instance, model = self.instance, self.model
        jobs, centers = len(instance.jobs), len(instance.datacenters)
        discount = np.zeros((centers, len(instance.resources), jobs, instance.horizon))
        deployment = np.zeros((centers, jobs, instance.horizon))
        for (job, t, r), row in model.eq_8h.items():
            deployment[r, job, t - 1] = abs(duals.get(row, 0.0))
        if self.formulation == "tight":
            for (t, r, k, job), row in model.eq_2_tier.items():
                discount[r, k, job, t - 1] = abs(duals.get(row, 0.0))
        else:
            for t, r, k in model.eq_8e:
                theta = abs(duals.get(model.eq_8c[t, r, k], 0.0))
                rho = abs(duals.get(model.eq_8d[t, r, k], 0.0))
                discount[r, k, :, t - 1] = fee_share(instance, r, k, theta, rho)
        return {"discount": discount, "deployment": deployment}


def fee_share(instance: MlbrokerInstance, r: int, k: int, theta: float, rho: float) -> float:
    """What a unit pays above the lower price at the duals of (8c) and (8d), in [0, a - b]."""
    unit = float(instance.weights[1] * instance.unit_price[r, k])
    lower = float(instance.weights[1] * instance.discounted_price[r, k])
    return min(max(unit * theta + lower * rho - lower, 0.0), unit - lower)


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
        ``printed`` is ``paper``; each formulation has one form.
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
    >>> program = build_offline(hs.generate("mlbroker", preset="small"), form="printed")
    >>> [part.name for part in program.components("constraint")][:4]
    ['eq_8h', 'eq_8c', 'eq_8d', 'eq_8e']
    """
    if formulation is not None:
        instance.check_formulation(formulation)
    formulation, _ = choose_form(FORMS, formulation, form)
    again = partial(
        build_offline, instance, formulation, relax=relax, commitments=commitments, kind=kind,
        factor=factor,
    )  # fmt: skip
    model = pyo.ConcreteModel(name=f"{instance.name} {formulation}")
    jobs = list(range(len(instance.jobs)))
    decided = _Decided.of(instance, commitments)

    def rule(block: Model, job: int) -> None:
        add_job(block, instance, job, formulation, relax, decided.workers[job])

    model.job = pyo.Block(jobs, rule=rule)
    own = [(job, t, r) for job in jobs for t, r in model.job[job].present]

    @model.Constraint(own, doc="(8h) a launch where the job was not deployed")
    def eq_8h(m: Model, job: int, t: int, r: int) -> Expr:
        block = m.job[job]
        earlier = block.present[t - 1, r] if t > instance.jobs[job].arrival else 0.0
        return block.launched[t, r] >= block.present[t, r] - earlier

    if formulation == "tight":
        broker = _disaggregated_tiers(model, instance, relax, decided.workers)
    else:
        broker = _big_m_tiers(model, instance, relax, kind, factor)
    model.eq_8 = pyo.Objective(
        expr=pyo.quicksum([model.job[job].cost for job in jobs]) + broker,
        sense=pyo.minimize,
        doc="(8) transfer, resources, deployment and communication",
    )
    decided.fix(model)
    return MlbrokerProgram(
        instance=instance, formulation=formulation, form=FORMS[formulation][0], relaxed=relax,
        model=model, again=again,
    )  # fmt: skip


def _tiers(instance: MlbrokerInstance) -> list[tuple[int, int, int]]:
    """(slot, data centre, resource) with live jobs."""
    return [
        (slot + 1, r, k)
        for slot in np.flatnonzero(instance.alive.any(axis=0)).tolist()
        for r in range(len(instance.datacenters))
        for k in range(len(instance.resources))
    ]


def _disaggregated_tiers(
    model: Model, instance: MlbrokerInstance, relax: bool, placed: Ints
) -> Expr:
    """Tiers with a fee, and the rows by which jobs take part in them."""
    tiers = _tiers(instance)
    domain = pyo.UnitInterval if relax else pyo.Binary
    model.tier = pyo.Var(tiers, domain=domain, doc="(ours) u, the tier's fee is paid")
    most = most_rented(instance, placed).tolist()
    live = {t: np.flatnonzero(instance.alive[:, t - 1]).tolist() for t, _, _ in tiers}
    rows = [(t, r, k, j) for t, r, k in tiers for j in live[t]]

    @model.Constraint(rows, doc="(ours) the lower price only where its fee is paid")
    def eq_2_tier(m: Model, t: int, r: int, k: int, j: int) -> Expr:
        return m.job[j].discounted[t, r, k] <= most[j][t - 1][k] * m.tier[t, r, k]

    fee = (instance.weights[1] * instance.tier_fee).tolist()
    return pyo.quicksum(fee[r][k] * model.tier[t, r, k] for t, r, k in tiers)


def most_rented(instance: MlbrokerInstance, placed: Ints) -> Floats:
    """H: most units of a resource that a job uses in one centre, n max(N, 1) + m, (J, T, K).

    N is the number `placed` there, (J, T, R), where that is larger.
    """
    workers = np.maximum(np.maximum(instance.workers_needed, 1), placed.max(axis=2))[:, :, None]
    most: Floats = workers * instance.worker_demand[:, None] + instance.ps_demand[:, None]
    return most


def _big_m_tiers(
    model: Model, instance: MlbrokerInstance, relax: bool, kind: str, factor: float
) -> Expr:
    """The bill by (8c)-(8e) as printed."""
    tiers = _tiers(instance)
    binary = pyo.NonNegativeReals if relax else pyo.Binary
    model.bill = pyo.Var(tiers, domain=pyo.NonNegativeReals, doc="(8k) x, what a resource costs")
    model.below = pyo.Var(tiers, domain=binary, doc="(8k) u1, (8c) is off")
    model.beyond = pyo.Var(tiers, domain=binary, doc="(8k) u2, (8d) is off")
    weight = float(instance.weights[1])
    unit = (weight * instance.unit_price).tolist()
    lower = (weight * instance.discounted_price).tolist()
    fee = (weight * instance.tier_fee).tolist()
    live = {t: np.flatnonzero(instance.alive[:, t - 1]).tolist() for t, _, _ in tiers}
    big = {t: big_m(SlotData.at(instance, t), kind, factor).tolist() for t in live}

    def used(m: Model, t: int, r: int, k: int) -> Expr:
        return pyo.quicksum(m.job[j].used[t, r, k] for j in live[t])

    @model.Constraint(tiers, doc="(8c) the full price")
    def eq_8c(m: Model, t: int, r: int, k: int) -> Expr:
        price = unit[r][k] * used(m, t, r, k)
        return m.bill[t, r, k] >= price - big[t][r][k] * m.below[t, r, k]

    @model.Constraint(tiers, doc="(8d) the discounted price")
    def eq_8d(m: Model, t: int, r: int, k: int) -> Expr:
        price = lower[r][k] * used(m, t, r, k) + fee[r][k]
        return m.bill[t, r, k] >= price - big[t][r][k] * m.beyond[t, r, k]

    @model.Constraint(tiers, doc="(8e) one of the two")
    def eq_8e(m: Model, t: int, r: int, k: int) -> Expr:
        return m.below[t, r, k] + m.beyond[t, r, k] == 1

    return pyo.quicksum(model.bill[triple] for triple in tiers)


@dataclass(frozen=True)
class _Decided:
    """What ran before ``now``, and locked jobs.

    Parameters
    ----------
    workers : ndarray, shape (J, T, R)
        Workers, 0 where nothing is decided.
    server : ndarray, shape (J, T)
        Centre of the PS, -1 where nothing is decided.
    """

    workers: Ints
    server: Ints

    @classmethod
    def of(cls, instance: MlbrokerInstance, commitments: Commitments | None) -> _Decided:
        """Read commitments."""
        shape = len(instance.jobs), instance.horizon, len(instance.datacenters)
        workers, server = np.zeros(shape, dtype=np.int64), np.full(shape[:2], -1)
        for job, record in enumerate(instance.jobs if commitments is not None else ()):
            assert commitments is not None
            rows = commitments.assignments.get(record.name, ())
            last = instance.horizon if record.name in commitments.locked else commitments.now - 1
            for span, placed, center in parse_rows(instance, record, rows):
                slots = slice(span.start, min(span.stop, last))
                workers[job, slots], server[job, slots] = placed, center
        return cls(workers, server)

    def fix(self, model: Model) -> None:
        """Fix the program's workers and PSs."""
        for job, slot in np.argwhere(self.server >= 0).tolist():
            block = model.job[job]
            for r, placed in enumerate(self.workers[job, slot].tolist()):
                block.workers[slot + 1, r].fix(placed)
                block.server[slot + 1, r].fix(int(r == self.server[job, slot]))
