"""Problem (5) over schedules and its dual (6) of astraea, for instances small enough to list them.

A schedule of job j is one window with one placement that satisfies (3) but for the capacities. The
linear relaxation of (5) and the dual (6) have the same value; any eta >= 0 with the mu of (7) is
feasible in (6), which is how certificates work: they need no list.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes
from hindsched.instances.decimals import loosened
from hindsched.models.algebra import Expr, Model
from hindsched.models.astraea.cluster import AstraeaNames, UnitCluster
from hindsched.models.astraea.printed import REVENUE
from hindsched.models.base import Best, DualProgram
from hindsched.models.declared import Symbol
from hindsched.models.slots import refuse_in_pieces
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation
from hindsched.solutions.window_placing import hosts, num_ps


def schedules(instance: AstraeaInstance, job: AstraeaJob) -> Iterator[AstraeaRow]:
    """Every schedule with one PS host, the least PSs and a mode worth considering."""
    cluster = UnitCluster.of(instance)
    for w, p, zeta, count, length in modes(instance, job).tuples():
        free = loosened(cluster.server_capacity, cluster.server_capacity)
        for host, on_host in hosts(cluster, free, w, p, zeta, count):
            ps = np.zeros(len(instance.servers), dtype=np.int64)
            ps[host] = num_ps(cluster, w, p, count - on_host)
            for beside in _splits(count - on_host, instance.worker_count[:, w], host):
                workers = beside.copy()
                workers[host] = on_host
                for first in range(job.arrival + 1, instance.horizon - length + 2):
                    yield AstraeaRow(first, first + length - 1, w, p, workers, ps)


def _splits(count: int, room: Ints, host: int) -> Iterator[Ints]:
    """Ways to put `count` workers on servers other than the host."""
    ranges = [range(min(count, int(n)) + 1) if s != host else (0,) for s, n in enumerate(room)]
    for split in itertools.product(*ranges):
        if sum(split) == count:
            yield np.array(split, dtype=np.int64)


def build_primal(instance: AstraeaInstance) -> pyo.ConcreteModel:
    """Build the linear relaxation of (5) over all schedules."""
    model = pyo.ConcreteModel()
    lists = [list(schedules(instance, job)) for job in instance.jobs]
    model.o = pyo.Var(
        [(j, k) for j, found in enumerate(lists) for k in range(len(found))],
        domain=pyo.NonNegativeReals,
    )
    use: dict[tuple[str, int, int, int], list[Expr]] = {}
    for (j, k), variable in model.o.items():
        for key, amount in _use(lists[j][k]):
            use.setdefault(key, []).append(amount * variable)
    model.eq_5a = pyo.Constraint(pyo.Any)
    model.eq_5b = pyo.Constraint(pyo.Any)
    for (role, s, kind, t), terms in use.items():
        rows = model.eq_5a if role == "w" else model.eq_5b
        count = instance.worker_count if role == "w" else instance.ps_count
        rows[s, kind, t] = pyo.quicksum(terms) <= int(count[s, kind])
    model.eq_5c = pyo.Constraint(pyo.Any)
    for j, found in enumerate(lists):
        if found:
            model.eq_5c[j] = pyo.quicksum(model.o[j, k] for k in range(len(found))) <= 1
    model.eq_5 = pyo.Objective(
        expr=pyo.quicksum(
            instance.revenue(instance.jobs[j], lists[j][k].last) * variable
            for (j, k), variable in model.o.items()
        ),
        sense=pyo.maximize,
    )
    return model


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaDual(AstraeaNames, DualProgram):
    """The dual (6), one row (6a) a schedule."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        "mu": Symbol("job", REVENUE),
        "eta_w": Symbol("server, worker type, slot", f"{REVENUE} a worker"),
        "eta_p": Symbol("server, PS type, slot", f"{REVENUE} a PS"),
        "eq_6a": Symbol("job, schedule", "share of the schedule"),
    }
    OBJECTIVE_UNIT = REVENUE

    instance: AstraeaInstance

    def prices(self) -> dict[str, Floats]:
        """Eta: ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T)."""
        instance = self.instance
        return {
            name: np.array([max(0.0, eta.value or 0.0) for eta in variable.values()]).reshape(
                *count.shape, instance.horizon
            )
            for name, variable, count in (
                ("worker_capacity", self.model.eta_w, instance.worker_count),
                ("ps_capacity", self.model.eta_p, instance.ps_count),
            )
        }

    def payoffs(self) -> Floats:
        """Mu at the variables' values."""
        return np.array([max(0.0, mu.value or 0.0) for mu in self.model.mu.values()], dtype=float)

    def violations(self, best: Best | None = None) -> list[Violation]:
        """The worst breach of (6a) over all schedules by the present point; `best` is not used."""
        names = [job.name for job in self.instance.jobs]
        payoffs = dict(zip(names, self.payoffs().tolist(), strict=True))
        worst = dual_violation(self.instance, self.prices(), payoffs)
        scale = max([1.0, *payoffs.values()])
        if worst <= FEASIBILITY_TOLERANCE * scale:
            return []
        return [Violation("(6a)", "the worst schedule", worst)]


def build_dual(instance: AstraeaInstance, formulation: str | None = None) -> AstraeaDual:
    """Build the dual (6), one row (6a) a schedule.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("astraea", jobs=1, horizon=4)).payoffs().shape
    (1,)
    """
    model = pyo.ConcreteModel(name=f"dual of {instance.name}")
    T = range(1, instance.horizon + 1)
    S = range(len(instance.servers))
    W, P = range(len(instance.worker_types)), range(len(instance.ps_types))
    positive = pyo.NonNegativeReals
    model.mu = pyo.Var(range(len(instance.jobs)), domain=positive, doc="(6) payoff of a job")
    model.eta_w = pyo.Var(S, W, T, domain=positive, doc="(6) price of a worker")
    model.eta_p = pyo.Var(S, P, T, domain=positive, doc="(6) price of a PS")
    rows = [(j, row) for j, job in enumerate(instance.jobs) for row in schedules(instance, job)]

    @model.Constraint(
        [(j, number) for number, (j, _) in enumerate(rows)],
        doc="(6a) no schedule earns more than the job's payoff",
    )
    def eq_6a(m: Model, j: int, number: int) -> Expr:
        row = rows[number][1]
        paid = [
            amount * (m.eta_w if role == "w" else m.eta_p)[s, kind, t]
            for (role, s, kind, t), amount in _use(row)
        ]
        return m.mu[j] + pyo.quicksum(paid) >= instance.revenue(instance.jobs[j], row.last)

    price = pyo.quicksum(
        int(instance.worker_count[s, k]) * variable for (s, k, _), variable in model.eta_w.items()
    ) + pyo.quicksum(
        int(instance.ps_count[s, k]) * variable for (s, k, _), variable in model.eta_p.items()
    )
    model.eq_6 = pyo.Objective(
        expr=pyo.quicksum(model.mu.values()) + price,
        sense=pyo.minimize,
        doc="(6) payoffs and the worth of all capacity",
    )
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    return AstraeaDual(instance=instance, formulation=formulation, model=model)


def dual_violation(
    instance: AstraeaInstance, prices: Mapping[str, Floats], payoffs: Mapping[str, float]
) -> float:
    """Most by which (6a) or (6b) is broken; 0 for a feasible point of (6).

    Parameters
    ----------
    instance : AstraeaInstance
        The instance.
    prices : mapping
        eta: ``worker_capacity`` of shape (S, W, T) and ``ps_capacity`` of shape (S, P, T).
    payoffs : mapping
        mu by job name.
    """
    workers, ps = prices["worker_capacity"], prices["ps_capacity"]
    worst = max(0.0, -float(workers.min(initial=0.0)), -float(ps.min(initial=0.0)))
    for job in instance.jobs:
        worst = max(worst, -payoffs[job.name])
        for row in schedules(instance, job):
            span = slice(row.first - 1, row.last)
            cost = float(row.workers @ workers[:, row.worker_type, span].sum(axis=1))
            cost += float(row.ps @ ps[:, row.ps_type, span].sum(axis=1))
            worst = max(worst, instance.revenue(job, row.last) - cost - payoffs[job.name])
    return worst


def dual_objective(
    instance: AstraeaInstance, prices: Mapping[str, Floats], payoffs: Mapping[str, float]
) -> float:
    """(6): payoffs plus prices times capacities."""
    workers = (prices["worker_capacity"] * instance.worker_count[:, :, None]).sum()
    ps = (prices["ps_capacity"] * instance.ps_count[:, :, None]).sum()
    return float(sum(payoffs.values()) + workers + ps)


def _use(row: AstraeaRow) -> Iterator[tuple[tuple[str, int, int, int], int]]:
    """((role, server, type, slot), amount) of a schedule."""
    for role, counts, kind in (("w", row.workers, row.worker_type), ("p", row.ps, row.ps_type)):
        for s in np.flatnonzero(counts):
            for t in range(row.first, row.last + 1):
                yield (role, int(s), kind, t), int(counts[s])
