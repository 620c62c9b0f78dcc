"""Relaxations of (2): the average fractional flow time problems (4) and (8), and the stronger (4)+.

===============  ===============================================================================
``y[j,g,t]``     workers of group g that train chunks of job j in slot t
``k[j,t]``       cloud workers that train them
``k0[j,t]``      in the integer program (4), the same at the rate of the edge (zeta = 0)
``zeta[j]``      1 if the whole job is in the cloud; only in the integer program (4)
===============  ===============================================================================

Chunks and workers that are identical are counted, which loses nothing: in the linear programs a
solution spreads evenly, and in the integer one a schedule of counts with at most D_j units a slot
is dealt out to the chunks in turn. A unit in slot t costs ``(t - r) / (D p)`` in (4), where t and
r are the paper's 0-based slots; (4)+ charges ``(t + 1/2 - r) / (D p) + 1 / (2 D)``, the mean busy
time plus half the processing time, and is still a lower bound on (2) because a chunk gets at most
1/p of its work in a slot. p is p(zeta = 0) at the edge and p(zeta = 1) in the cloud, which is
tighter than zeta = 1 everywhere (`zeta_one`, the paper's own simplification in Figures 12-13).
(4e) is kept: the paper's claim that it becomes redundant is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.memory import check_memory
from hindsched.models.algebra import Expr, Model, Row
from hindsched.models.base import Duals
from hindsched.models.declared import Declared, Symbol
from hindsched.models.edgecloud.sets import relaxation_last_slots
from hindsched.models.edgecloud.size import BYTES_A_CELL
from hindsched.models.edgecloud.symbols import JOB_SLOTS, PER_WORKER, SYMBOLS, EdgecloudNames

Group = tuple[str, tuple[int, ...], tuple[int, ...]]
"""Worker type, servers, workers."""
PER_CHUNK = f"{JOB_SLOTS} a chunk"
FRACTIONAL_SYMBOLS = {
    "eq_4a": Symbol("job", PER_CHUNK),
    "eq_4a_cloud": Symbol("job", PER_CHUNK),
    "eq_4b": Symbol("group, slot", PER_WORKER),
    "eq_4b_cloud": Symbol("worker type, slot", PER_WORKER),
    "eq_4e": Symbol("job, slot", PER_WORKER),
    "eq_4f": Symbol("job, slot", PER_WORKER),
    "y": Symbol("job, group, slot", "workers"),
}


class FlowCells(NamedTuple):
    """Index sets of (4): what may run where and when, and what shares it.

    Parameters
    ----------
    groups : list of Group
        Workers that are counted together.
    edge : list of (job, group, slot)
        Index set of y.
    cloud : list of (job, slot)
        Index set of k.
    by_job : dict
        The groups' (group, slot) by job.
    by_group : dict
        Jobs by (group, slot).
    by_kind : dict
        Jobs by (worker type, slot), where the cloud's workers are limited.
    by_server : dict
        (job, group) by (server, slot), where storage is limited (7b).
    """

    groups: list[Group]
    edge: list[tuple[int, int, int]]
    cloud: list[tuple[int, int]]
    by_job: dict[tuple[int, int], list[int]]
    by_group: dict[tuple[int, int], list[int]]
    by_kind: dict[tuple[str, int], list[int]]
    by_server: dict[tuple[int, int], list[tuple[int, int]]]


def flow_cells(
    instance: EdgecloudInstance, jobs: Sequence[int], last: Mapping[int, int], layout: str
) -> FlowCells:
    """The index sets of some jobs up to their last slots, (job, slot) -> groups in `by_job`."""
    found = FlowCells(relaxation_groups(instance, layout), [], [], {}, {}, {}, {})
    for j in jobs:
        job = instance.jobs[j]
        for g, (kind, servers, _) in enumerate(found.groups):
            if kind != job.worker_type:
                continue
            s, first = servers[0], job.arrival + min(int(instance.upload[j, s]) for s in servers)
            stored = layout == "groups" and np.isfinite(instance.storage_gb[s]) and job.chunk_gb
            for t in range(first, last[j] + 1):
                found.edge.append((j, g, t))
                found.by_job.setdefault((j, t), []).append(g)
                found.by_group.setdefault((g, t), []).append(j)
                if stored:
                    found.by_server.setdefault((s, t), []).append((j, g))
        if instance.has_cloud(job):
            for t in range(job.arrival + int(instance.cloud_upload[j]), last[j] + 1):
                found.cloud.append((j, t))
                found.by_job.setdefault((j, t), [])
                if instance.cloud_workers(job.worker_type) is not None:
                    found.by_kind.setdefault((job.worker_type, t), []).append(j)
    return found


def relaxation_groups(instance: EdgecloudInstance, layout: str) -> list[Group]:
    """Workers that are counted together: by (server, type), or by type alone (``types``)."""
    if layout == "types":
        servers = {
            kind: tuple(sorted({instance.worker_list[w][0] for w in workers}))
            for kind, workers in instance.workers_by_type.items()
        }
        return [(k, servers[k], workers) for k, workers in instance.workers_by_type.items()]
    return [(kind, (s,), workers) for (s, kind), workers in instance.groups.items()]


@dataclass(kw_only=True, eq=False, repr=False)
class FlowTimeRelaxation(EdgecloudNames, Declared):
    """LP (4), LP (4)+, LP (8) or ILP (4): relaxations of (2).

    Parameters
    ----------
    layout : str
        ``groups`` or ``types``.
    cells : FlowCells
        Its index sets.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {**SYMBOLS, **FRACTIONAL_SYMBOLS}
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    layout: str
    cells: FlowCells

    @property
    def title(self) -> str:
        """Family, instance, and what is relaxed."""
        added = (
            "workers of a type added up" if self.layout == "types" else "identical workers counted"
        )
        return f"{self.instance.family}: relaxation (4) of {self.instance.name}, {added}"

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; a group of ``types`` is called by its type."""
        if index == "group" and self.layout == "types":
            return self.cells.groups[place][0]
        return super().name_of(index, place)

    def prices(self, duals: Duals, last: int) -> dict[str, Floats]:
        """Duals of (4b) and (7b) as prices of the oracle's layout of the same name.

        Parameters
        ----------
        duals : mapping
            Shadow price by constraint.
        last : int
            Last slot of the oracle's rows.

        Returns
        -------
        dict
            ``group_capacity`` or ``type_capacity``, shape (groups, last); ``cloud_capacity`` and
            ``storage`` where the oracle has such rows.
        """
        instance, m = self.instance, self.model
        kinds = [kind for kind, count in (instance.cloud.workers or {}).items() if count]
        limited = np.flatnonzero(np.isfinite(instance.storage_gb)).tolist()

        def table(row: Row, places: Sequence[object]) -> Floats:
            found = np.zeros((len(places), last))
            for (place, t), each in row.items():
                if t <= last and place in places:
                    found[places.index(place), t - 1] = max(0.0, -duals.get(each, 0.0))
            return found

        own = "type_capacity" if self.layout == "types" else "group_capacity"
        prices = {own: table(m.eq_4b, range(len(self.cells.groups)))}
        if kinds:
            prices["cloud_capacity"] = table(m.eq_4b_cloud, kinds)
        if limited and self.layout != "types":
            prices["storage"] = table(m.eq_7b, limited)
        return prices


def build_fractional(
    instance: EdgecloudInstance,
    *,
    plus: bool = True,
    layout: str = "groups",
    at_once: bool = True,
    zeta_one: bool = False,
    worker_type: str | None = None,
    last: Mapping[int, int] | None = None,
) -> FlowTimeRelaxation:
    """Build LP (4), or LP (4)+ by default; with limited storage (8), (7b) in the form of (9).

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    plus : bool
        The cost of (4)+ in place of that of (4).
    layout : str
        ``groups`` (exact) or ``types``: all workers of a type together and a job's shortest
        upload, a relaxation for large instances; it leaves storage out.
    at_once : bool
        Keep (4e).
    zeta_one : bool
        p(zeta = 1) everywhere, as in the paper's Figures 12-13.
    worker_type : str, optional
        Only the jobs of one type: without storage the program falls apart by type.
    last : mapping, optional
        Last slot by job, in place of `relaxation_last_slots`.
    """
    jobs = [j for j, job in enumerate(instance.jobs) if worker_type in (None, job.worker_type)]
    last = relaxation_last_slots(instance, jobs) if last is None else last
    return _build(instance, jobs, last, layout, plus, at_once, zeta_one, zeta=False, relax=True)


def build_ilp_4(
    instance: EdgecloudInstance, *, zeta: str = "decide", relax: bool = False
) -> FlowTimeRelaxation:
    """Build ILP (4), with the storage rows of (8) where storage is limited.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    zeta : {"decide", "one"}
        Decide (4f), (4g) in the program, or take p(zeta = 1) everywhere as the paper's Figures
        12-13 do. (4c) and (4d) are left out: they never bind while the cloud's PSs are unlimited.
    relax : bool
        Drop integrality (4h).
    """
    jobs = range(len(instance.jobs))
    last, decide = relaxation_last_slots(instance, jobs), zeta == "decide"
    return _build(instance, jobs, last, "groups", False, True, not decide, zeta=decide, relax=relax)


def _build(
    instance: EdgecloudInstance, jobs: Sequence[int], last: Mapping[int, int], layout: str,
    plus: bool, at_once: bool, zeta_one: bool, *, zeta: bool, relax: bool,
) -> FlowTimeRelaxation:  # fmt: skip
    cells = flow_cells(instance, jobs, last, layout)
    # two rows a column: (4b) and (4e)
    needed = 2.0 * BYTES_A_CELL * (len(cells.edge) + len(cells.cloud))
    check_memory(f"the relaxation of {instance.name}", needed)
    D, r, in_cloud = (
        array.tolist() for array in (instance.chunks, instance.arrivals, instance.cloud_slots)
    )
    edge = in_cloud if zeta_one else instance.edge_slots.tolist()
    domain = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    m = pyo.ConcreteModel("edgecloud_relaxation_4")
    m.y = pyo.Var(cells.edge, domain=domain, doc="(4) workers of a group that train the job")
    m.k = pyo.Var(cells.cloud, domain=domain, doc="(4) cloud workers that train it")
    m.k0 = pyo.Var(
        cells.cloud if zeta else [], domain=domain, doc="(4) cloud workers at the rate of the edge"
    )
    m.zeta = pyo.Var(
        jobs if zeta else [], domain=pyo.UnitInterval if relax else pyo.Binary,
        doc="(4f) the whole job is in the cloud",
    )  # fmt: skip
    mixed, rate = (m.k0, edge) if zeta else (m.k, in_cloud)  # beside what runs at the edge
    slots: dict[int, list[int]] = {j: [] for j in jobs}
    for j, t in cells.by_job:
        slots[j].append(t)

    def apart(j: int) -> Expr:
        """Chunks of a job that is not wholly in the cloud."""
        return D[j] * (1 - m.zeta[j]) if zeta else float(D[j])

    def at_edge(j: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, g, t] for g in cells.by_job[j, t])

    def at_cloud(k: Expr, j: int) -> Expr:
        return pyo.quicksum(k[j, t] for t in slots[j] if (j, t) in k)

    @m.Constraint(jobs, doc="(4a) all chunks are trained, but for a job wholly in the cloud")
    def eq_4a(m: Model, j: int) -> Expr:
        trained = pyo.quicksum(
            1 / edge[j] * m.y[j, g, t] for t in slots[j] for g in cells.by_job[j, t]
        )
        return trained + 1 / rate[j] * at_cloud(mixed, j) >= apart(j)

    @m.Constraint(jobs if zeta else [], doc="(4a) and there")
    def eq_4a_cloud(m: Model, j: int) -> Expr:
        return at_cloud(m.k, j) >= in_cloud[j] * D[j] * m.zeta[j]

    @m.Constraint(list(cells.by_group), doc="(4b) a worker trains one chunk at a time")
    def eq_4b(m: Model, g: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, g, t] for j in cells.by_group[g, t]) <= len(cells.groups[g][2])

    @m.Constraint(list(cells.by_kind), doc="(4b) the cloud's workers of a type")
    def eq_4b_cloud(m: Model, kind: str, t: int) -> Expr:
        users = (k[j, t] for j in cells.by_kind[kind, t] for k in ((m.k, m.k0) if zeta else (m.k,)))
        return pyo.quicksum(users) <= instance.cloud_workers(kind)

    @m.Constraint(
        list(cells.by_job) if at_once else [], doc="(4e), (4g) one worker a chunk at most"
    )
    def eq_4e(m: Model, j: int, t: int) -> Expr:
        there = (j, t) in mixed
        return at_edge(j, t) + (mixed[j, t] if there else 0.0) <= apart(j)

    @m.Constraint(cells.cloud if zeta else [], doc="(4f) and of a job wholly in the cloud")
    def eq_4f(m: Model, j: int, t: int) -> Expr:
        return m.k[j, t] <= D[j] * m.zeta[j]

    @m.Constraint(list(cells.by_server), doc="(7b) what runs on a server fits its storage")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        stored = (float(instance.chunk_gb[j]) * m.y[j, g, t] for j, g in cells.by_server[s, t])
        return pyo.quicksum(stored) <= float(instance.storage_gb[s])

    middle = 0.5 if plus else 0.0

    def cost(j: int, t: int, work: int) -> float:
        """Of a worker's slot: its share of the flow time of the job's chunks."""
        return ((t + middle - r[j]) / work + middle) / D[j]

    costs = [cost(j, t, edge[j]) * y for (j, _, t), y in m.y.items()]
    costs += [cost(j, t, in_cloud[j]) * k for (j, t), k in m.k.items()]
    costs += [cost(j, t, edge[j]) * k for (j, t), k in m.k0.items()]
    m.objective = pyo.Objective(
        expr=pyo.quicksum(costs), doc="(4) average fractional flow time, a lower bound on (2)"
    )
    return FlowTimeRelaxation(
        instance=instance, formulation=instance.formulations[0], model=m, layout=layout,
        cells=cells,
    )  # fmt: skip
