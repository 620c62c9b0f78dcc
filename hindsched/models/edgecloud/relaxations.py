"""Relaxations of (2): the average fractional flow time problems (4) and (8), and the stronger (4)+.

``y[j,g,t]``  workers of group g that train chunks of job j in slot t
``k[j,t]``    cloud workers that train them

Chunks and workers that are identical are counted, which loses nothing: in the linear programs a
solution spreads evenly, and in the integer one a schedule of counts with at most D_j units a slot
is dealt out to the chunks in turn. A unit in slot t costs ``(t - r) / (D p)`` in (4), where t and
r are the paper's 0-based slots; (4)+ charges ``(t + 1/2 - r) / (D p) + 1 / (2 D)``, the mean busy
time plus half the processing time, and is still a lower bound on (2) because a chunk gets at most
1/p of its work in a slot. p is p(zeta = 0) at the edge and p(zeta = 1) in the cloud, which is
tighter than zeta = 1 everywhere, the paper's own simplification in Figures 12-13 (`build_ilp_4`).
(4e) is kept: the paper's claim that it becomes redundant is wrong. (4c) and (4d) never bind while
the cloud's PSs are unlimited.

The duals (6) of LP (4) and (9) of LP (8) have, for identical chunks and workers alike,

``alpha[j]``   dual of (4a)
``beta[g,t]``  dual of (4b)
``pi[j,t]``    dual of (4e), which the paper drops
``eta[s,t]``   dual of (7b)

(6a) is asked from ``t >= r_j + Delta_js`` on, where y exists, not from r_j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.limits import check_memory
from hindsched.models.algebra import Expr, Model, ModelComponent, grouped
from hindsched.models.base import DualProgram, Duals
from hindsched.models.declared import PyomoProgram, Symbol
from hindsched.models.edgecloud.sets import (
    BYTES_A_CELL,
    EdgecloudNames,
    flow_time_last_slots,
    places_of,
    relaxation_last_slots,
)


class FlowSets(NamedTuple):
    """Index sets of (4): what may run where and when, and what shares it."""

    groups: list[tuple[int, ...]]  # workers that are counted together
    edge: list[tuple[int, int, int]]  # (job, group, slot) of y
    cloud: list[tuple[int, int]]  # (job, slot) of k
    by_job: dict[tuple[int, int], list[int]]  # groups by (job, slot)
    by_group: dict[tuple[int, int], list[int]]  # jobs by (group, slot)
    by_kind: dict[tuple[str, int], list[int]]  # jobs by (type, slot) in a limited cloud
    by_server: dict[tuple[int, int], list[tuple[int, int]]]  # (job, group), limited storage (7b)


def flow_sets(instance: EdgecloudInstance, last: Mapping[int, int], layout: str) -> FlowSets:
    """The index sets of all jobs up to their last slots; `layout` as in `build_fractional`."""
    groups = list(places_of(instance, layout).values())
    sets = FlowSets(groups, [], [], {}, {}, {}, {})
    for j, job in enumerate(instance.jobs):
        for g, workers in enumerate(groups):
            s, _, kind = instance.worker_list[workers[0]]
            if kind != job.worker_type:
                continue
            uploads = instance.upload[j, [instance.worker_list[w][0] for w in workers]]
            first = job.arrival + int(uploads.min())
            stored = layout == "groups" and np.isfinite(instance.storage_gb[s]) and job.chunk_gb
            for t in range(first, last[j] + 1):
                sets.edge.append((j, g, t))
                sets.by_job.setdefault((j, t), []).append(g)
                sets.by_group.setdefault((g, t), []).append(j)
                if stored:
                    sets.by_server.setdefault((s, t), []).append((j, g))
        if instance.has_cloud(job):
            for t in range(job.arrival + int(instance.cloud_upload[j]), last[j] + 1):
                sets.cloud.append((j, t))
                sets.by_job.setdefault((j, t), [])
                if instance.cloud_workers(job.worker_type) is not None:
                    sets.by_kind.setdefault((job.worker_type, t), []).append(j)
    return sets


@dataclass(kw_only=True, eq=False, repr=False)
class FlowTimeRelaxation(EdgecloudNames, PyomoProgram):
    """LP (4), LP (4)+, LP (8) or ILP (4) with its index sets, in a layout of `build_fractional`."""

    SYMBOLS = EdgecloudNames.SYMBOLS | {"y": Symbol("job, group, slot", "workers")}

    layout: str
    sets: FlowSets

    @property
    def title(self) -> str:
        """Family, instance, and what is relaxed."""
        by_type = self.layout == "types"
        added = "workers of a type added up" if by_type else "identical workers counted"
        return f"{self.instance.family}: relaxation (4) of {self.instance.name}, {added}"

    def prices(self, duals: Duals, last: int) -> dict[str, Floats]:
        """Duals of (4b), (7b) as prices of the oracle's layout of this name, up to slot `last`.

        ``group_capacity`` or ``type_capacity`` (groups, last); ``cloud_capacity`` and ``storage``
        where the oracle has such rows.
        """
        instance, m = self.instance, self.model
        kinds = [kind for kind, count in (instance.cloud.workers or {}).items() if count]
        limited = np.flatnonzero(np.isfinite(instance.storage_gb)).tolist()

        def table(row: ModelComponent, places: Sequence[object]) -> Floats:
            array = np.zeros((len(places), last))
            for (place, t), row_data in row.items():
                if t <= last and place in places:
                    array[places.index(place), t - 1] = max(0.0, -duals.get(row_data, 0.0))
            return array

        name = "type_capacity" if self.layout == "types" else "group_capacity"
        prices = {name: table(m.eq_4b, range(len(self.sets.groups)))}
        if kinds:
            prices["cloud_capacity"] = table(m.eq_4b_cloud, kinds)
        if limited and self.layout != "types":
            prices["storage"] = table(m.eq_7b, limited)
        return prices


def build_ilp_4(
    instance: EdgecloudInstance, *, layout: str = "groups", relax: bool = False
) -> FlowTimeRelaxation:
    """Build ILP (4) with p(zeta = 1) everywhere, as the paper's Figures 12-13 take it.

    With limited storage it has the rows of (8). `relax` drops integrality (4h); `layout` as in
    `build_fractional`.
    """
    slots, last = instance.cloud_slots.tolist(), flow_time_last_slots(instance)
    return build_fractional(
        instance, plus=False, layout=layout, last=last, edge=slots, integral=not relax
    )


def build_fractional(
    instance: EdgecloudInstance, *, plus: bool = True, layout: str = "groups",
    at_once: bool = True, last: Mapping[int, int] | None = None, edge: list[int] | None = None,
    integral: bool = False,
) -> FlowTimeRelaxation:  # fmt: skip
    """Build LP (4)+, or LP (4) without `plus`; with limited storage (8), (7b) in the form of (9).

    In the layout ``groups`` it is exact; ``types`` adds up all workers of a type, at a job's
    shortest upload, and leaves storage out: a relaxation for large instances. (4e) is there if
    `at_once`. `last` are last slots by job, in place of `relaxation_last_slots`, `edge` slots of a
    chunk at the edge in place of the instance's. `integral` keeps integrality (4h).
    """
    jobs = range(len(instance.jobs))
    last = relaxation_last_slots(instance) if last is None else last
    edge = instance.edge_slots.tolist() if edge is None else edge
    half = 0.5 if plus else 0.0
    sets = flow_sets(instance, last, layout)
    # two rows a column: (4b) and (4e)
    needed = 2.0 * BYTES_A_CELL * (len(sets.edge) + len(sets.cloud))
    check_memory(f"the relaxation of {instance.name}", needed)
    D, r = instance.chunks.tolist(), instance.arrivals.tolist()
    cloud = instance.cloud_slots.tolist()
    slots = grouped(sets.by_job)
    domain = pyo.NonNegativeIntegers if integral else pyo.NonNegativeReals
    m = pyo.ConcreteModel("edgecloud_relaxation_4")
    m.y = pyo.Var(sets.edge, domain=domain, doc="(4) workers of a group that train the job")
    m.k = pyo.Var(sets.cloud, domain=domain, doc="(4) cloud workers that train it")

    @m.Constraint(jobs, doc="(4a) all chunks are trained")
    def eq_4a(m: Model, j: int) -> Expr:
        at_edge = total(1 / edge[j] * m.y[j, g, t] for t in slots[j] for g in sets.by_job[j, t])
        at_cloud = total(m.k[j, t] for t in slots[j] if (j, t) in m.k)
        return at_edge + 1 / cloud[j] * at_cloud >= float(D[j])

    @m.Constraint(list(sets.by_group), doc="(4b) a worker trains one chunk at a time")
    def eq_4b(m: Model, g: int, t: int) -> Expr:
        return total(m.y[j, g, t] for j in sets.by_group[g, t]) <= len(sets.groups[g])

    @m.Constraint(list(sets.by_kind), doc="(4b) the cloud's workers of a type")
    def eq_4b_cloud(m: Model, kind: str, t: int) -> Expr:
        return total(m.k[j, t] for j in sets.by_kind[kind, t]) <= instance.cloud_workers(kind)

    @m.Constraint(list(sets.by_job) if at_once else [], doc="(4e) one worker a chunk at most")
    def eq_4e(m: Model, j: int, t: int) -> Expr:
        at_edge = total(m.y[j, g, t] for g in sets.by_job[j, t])
        return at_edge + (m.k[j, t] if (j, t) in m.k else 0.0) <= float(D[j])

    @m.Constraint(list(sets.by_server), doc="(7b) what runs on a server fits its storage")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        stored = (float(instance.chunk_gb[j]) * m.y[j, g, t] for j, g in sets.by_server[s, t])
        return total(stored) <= float(instance.storage_gb[s])

    costs = [  # of a worker's slot: its share of the flow time of the job's chunks
        ((t + half - r[j]) / work[j] + half) / D[j] * unit
        for work, units in ((edge, m.y), (cloud, m.k))
        for (j, *_, t), unit in units.items()
    ]
    m.objective = pyo.Objective(
        expr=total(costs), doc="(4) average fractional flow time, a lower bound on (2)"
    )
    formulation = instance.formulations[0]
    return FlowTimeRelaxation(
        instance=instance, formulation=formulation, model=m, layout=layout, sets=sets
    )


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudDual(EdgecloudNames, DualProgram):
    """The dual (6) of LP (4), or (9) of LP (8): it bounds the average fractional flow time."""

    sets: FlowSets

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity``: beta of each worker, shape (W, T)."""
        array = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (g, t), beta in self.model.beta.items():
            if t <= self.instance.horizon:
                array[list(self.sets.groups[g]), t - 1] = max(0.0, beta.value or 0.0)
        return {"worker_capacity": array}

    def payoffs(self) -> Floats:
        """Alpha of all chunks of each job."""
        alpha = [max(0.0, alpha.value or 0.0) for alpha in self.model.alpha.values()]
        return np.array(alpha, dtype=float) * self.instance.chunks


def build_dual(
    instance: EdgecloudInstance, formulation: str, *, at_once: bool = True
) -> EdgecloudDual:
    """Build (6), or (9) where storage is limited; the paper's is without `at_once`, (4e)."""
    jobs = range(len(instance.jobs))
    sets = flow_sets(instance, relaxation_last_slots(instance), "groups")
    D, r = instance.chunks.tolist(), instance.arrivals.tolist()
    edge, cloud = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
    positive = {"domain": pyo.NonNegativeReals}
    m = pyo.ConcreteModel("edgecloud_dual_6")
    m.alpha = pyo.Var(jobs, **positive, doc="(6) dual of (4a): worth of a chunk")
    m.beta = pyo.Var(list(sets.by_group), **positive, doc="(6) dual of (4b): a worker's price")
    m.beta_cloud = pyo.Var(list(sets.by_kind), **positive, doc="(6) the same in the cloud")
    m.pi = pyo.Var(
        list(sets.by_job) if at_once else [], **positive, doc="(ours) dual of (4e), dropped there"
    )
    m.eta = pyo.Var(list(sets.by_server), **positive, doc="(9) dual of (7b): storage's price")

    def flow(j: int, t: int, p: int) -> Expr:
        """What a unit adds to the flow time, and the price of running at once."""
        return (t - r[j]) / (p * D[j]) + (m.pi[j, t] if at_once else 0.0)

    @m.Constraint(sets.edge, doc="(6a) a unit of work costs no less than it is worth")
    def eq_6a(m: Model, j: int, g: int, t: int) -> Expr:
        s = instance.worker_list[sets.groups[g][0]][0]
        stored = (s, t) in m.eta and instance.chunk_gb[j] > 0
        eta = float(instance.chunk_gb[j]) * m.eta[s, t] if stored else 0.0
        return m.alpha[j] / edge[j] <= flow(j, t, edge[j]) + m.beta[g, t] + eta

    @m.Constraint(sets.cloud, doc="(6a) the same in the cloud")
    def eq_6a_cloud(m: Model, j: int, t: int) -> Expr:
        kind = instance.jobs[j].worker_type
        price = m.beta_cloud[kind, t] if (kind, t) in m.beta_cloud else 0.0
        return m.alpha[j] / cloud[j] <= flow(j, t, cloud[j]) + price

    m.objective = pyo.Objective(
        expr=total(D[j] * m.alpha[j] for j in jobs)
        - total(len(sets.groups[g]) * b for (g, _), b in m.beta.items())
        - total(instance.cloud_workers(k) * b for (k, _), b in m.beta_cloud.items())
        - total(D[j] * p for (j, _), p in m.pi.items())
        - total(float(instance.storage_gb[s]) * e for (s, _), e in m.eta.items()),
        sense=pyo.maximize,
        doc="(6) worth of all chunks less the worth of all capacity",
    )
    whose = "dual (9) of LP (8)" if sets.by_server else "dual (6) of LP (4)"
    return EdgecloudDual(
        instance=instance, formulation=formulation, model=m, sets=sets, whose=whose
    )
