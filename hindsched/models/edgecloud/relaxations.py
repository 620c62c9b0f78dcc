"""The average fractional flow time problems (4) and (8), and the stronger (4)+.

===============  ===============================================================================
``y[j,g,t]``     workers of group g that train chunks of job j in slot t
``k[j,t]``       cloud workers that train them
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
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.memory import check_memory
from hindsched.models.algebra import Expr, Model, Row
from hindsched.models.base import Duals
from hindsched.models.declared import Declared, Symbol
from hindsched.models.edgecloud.size import BYTES_A_CELL
from hindsched.models.edgecloud.symbols import JOB_SLOTS, PER_WORKER, SYMBOLS, EdgecloudNames

Group = tuple[str, tuple[int, ...], tuple[int, ...]]
"""Worker type, servers, workers."""
FRACTIONAL_SYMBOLS = {
    "eq_4a": Symbol("job", f"{JOB_SLOTS} a chunk"),
    "eq_4a_mixed": Symbol("job", f"{JOB_SLOTS} a chunk"),
    "eq_4a_cloud": Symbol("job", f"{JOB_SLOTS} a chunk"),
    "eq_4b": Symbol("place, slot", PER_WORKER),
    "eq_4b_cloud": Symbol("worker type, slot", PER_WORKER),
    "eq_4b_mixed": Symbol("worker type, slot", PER_WORKER),
    "eq_4e": Symbol("job, slot", PER_WORKER),
    "eq_4f": Symbol("job, slot", PER_WORKER),
    "eq_4g": Symbol("job, slot", PER_WORKER),
}


@dataclass(kw_only=True, eq=False, repr=False)
class FractionalProgram(EdgecloudNames, Declared):
    """LP (4), LP (4)+, LP (8) or ILP (4).

    Parameters
    ----------
    layout : str
        ``groups`` or ``types``.
    groups : list of Group
        Workers that are counted together.
    y_keys, k_keys : list of tuple
        Indices (job, group, slot) and (job, slot) of the variables.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {**SYMBOLS, **FRACTIONAL_SYMBOLS}
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    layout: str
    groups: list[Group]
    y_keys: list[tuple[int, int, int]]
    k_keys: list[tuple[int, int]]

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
        instance, model = self.instance, self.model

        def price(row: Row) -> float:
            return max(0.0, -duals.get(row, 0.0))

        prices = np.zeros((len(self.groups), last))
        for (g, t), row in model.eq_4b.items():
            if t <= last:
                prices[g, t - 1] = price(row)
        found = {"type_capacity" if self.layout == "types" else "group_capacity": prices}
        kinds = [kind for kind, count in (instance.cloud.workers or {}).items() if count]
        if kinds:
            found["cloud_capacity"] = np.zeros((len(kinds), last))
            for (kind, t), row in model.eq_4b_cloud.items():
                if t <= last and kind in kinds:
                    found["cloud_capacity"][kinds.index(kind), t - 1] = price(row)
        limited = np.flatnonzero(np.isfinite(instance.storage_gb)).tolist()
        if limited and self.layout != "types":
            found["storage"] = np.zeros((len(limited), last))
            for (s, t), row in model.eq_7b.items():
                if t <= last:
                    found["storage"][limited.index(s), t - 1] = price(row)
        return found


def relaxation_groups(instance: EdgecloudInstance, layout: str) -> list[Group]:
    """Workers that are counted together: by (server, type), or by type alone (``types``)."""
    if layout == "types":
        found = instance.workers_by_type
        return [
            (kind, tuple(sorted({instance.worker_list[w][0] for w in workers})), workers)
            for kind, workers in found.items()
        ]
    return [(kind, (s,), workers) for (s, kind), workers in instance.groups.items()]


def relaxation_last_slots(instance: EdgecloudInstance, jobs: Sequence[int]) -> dict[int, int]:
    """Last slot that an optimal solution of the linear programs can use, by job.

    With an unlimited cloud a unit at the edge behind the cloud's window is never cheaper than one
    in the window. Without one, once all chunks are uploaded a job that waits either runs with all
    its chunks or finds the group full, which bounds how long it can wait.
    """
    last: dict[int, int] = {}
    for j in jobs:
        job = instance.jobs[j]
        if instance.cloud_workers(job.worker_type) is None:
            ready = job.arrival + int(instance.cloud_upload[j])
            last[j] = ready + int(instance.cloud_slots[j]) - 1
            continue
        same = [
            i for i in range(len(instance.jobs)) if instance.jobs[i].worker_type == job.worker_type
        ]
        sizes = [len(ws) for (_, kind), ws in instance.groups.items() if kind == job.worker_type]
        cloud = instance.cloud_workers(job.worker_type)
        smallest = min([*sizes, *([cloud] if cloud else [])])
        work = sum(int(instance.chunks[i] * instance.edge_slots[i]) for i in same)
        ready = max(
            instance.jobs[i].arrival + max(instance.jobs[i].upload_slots.values()) for i in same
        )
        longest = max(int(instance.edge_slots[i]) for i in same)
        last[j] = ready + longest + -(-work // smallest)
    return last


def build_fractional(
    instance: EdgecloudInstance,
    *,
    plus: bool = True,
    layout: str = "groups",
    at_once: bool = True,
    zeta_one: bool = False,
    storage: bool = True,
    worker_type: str | None = None,
    last: Mapping[int, int] | None = None,
) -> FractionalProgram:
    """Build LP (4), or LP (4)+ by default; with limited storage (8).

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    plus : bool
        The cost of (4)+ in place of that of (4).
    layout : str
        ``groups`` (exact) or ``types``: all workers of a type together and a job's shortest
        upload, a relaxation for large instances.
    at_once : bool
        Keep (4e).
    zeta_one : bool
        p(zeta = 1) everywhere, as in the paper's Figures 12-13.
    storage : bool
        Keep (7b) in the form of (9): what runs on a server fits its storage. Not in ``types``.
    worker_type : str, optional
        Only the jobs of one type: without storage the program falls apart by type.
    last : mapping, optional
        Last slot by job, in place of `relaxation_last_slots`.
    """
    m = pyo.ConcreteModel("edgecloud_lp_4_plus" if plus else "edgecloud_lp_4")
    jobs = [j for j, job in enumerate(instance.jobs) if worker_type in (None, job.worker_type)]
    last = relaxation_last_slots(instance, jobs) if last is None else last
    groups = relaxation_groups(instance, layout)
    cells = sum(
        max(0, last[j] + 1 - instance.jobs[j].arrival)
        * (1 + sum(kind == instance.jobs[j].worker_type for kind, *_ in groups))
        for j in jobs
    )
    needed = 2.0 * BYTES_A_CELL * cells  # two rows a column: (4b) and (4e)
    check_memory(f"the relaxation of {instance.name}", needed)
    y_keys, k_keys = _index_sets(instance, jobs, groups, last)
    cost = _costs(instance, y_keys, k_keys, plus, zeta_one)
    m.y = pyo.Var(
        y_keys, domain=pyo.NonNegativeReals, doc="(4) workers of a group that train the job"
    )
    m.k = pyo.Var(k_keys, domain=pyo.NonNegativeReals, doc="(4) cloud workers that train it")
    work = _rates(instance, zeta_one)
    by_job: dict[int, list[Expr]] = {j: [] for j in jobs}
    by_slot: dict[tuple[int, int], list[Expr]] = {}
    for (j, _, t), variable in m.y.items():
        by_job[j].append(work[j][0] * variable)
        by_slot.setdefault((j, t), []).append(variable)
    for (j, t), variable in m.k.items():
        by_job[j].append(work[j][1] * variable)
        by_slot.setdefault((j, t), []).append(variable)
    m.eq_4a = pyo.Constraint(
        jobs,
        rule=lambda m, j: pyo.quicksum(by_job[j]) >= float(instance.chunks[j]),
        doc="(4a) all chunks are trained",
    )
    _capacities(m, instance, groups, layout, storage)
    if at_once:
        m.eq_4e = pyo.Constraint(
            list(by_slot),
            rule=lambda m, j, t: pyo.quicksum(by_slot[j, t]) <= float(instance.chunks[j]),
            doc="(4e) one worker a chunk at most",
        )
    m.objective = pyo.Objective(
        expr=pyo.quicksum(c * variable for c, variable in zip(cost[0], m.y.values(), strict=True))
        + pyo.quicksum(c * variable for c, variable in zip(cost[1], m.k.values(), strict=True)),
        doc="(4) average fractional flow time",
    )
    return FractionalProgram(
        instance=instance, formulation=instance.formulations[0], model=m, layout=layout,
        groups=groups, y_keys=y_keys, k_keys=k_keys,
    )  # fmt: skip


def _index_sets(
    instance: EdgecloudInstance,
    jobs: Sequence[int],
    groups: Sequence[Group],
    last: Mapping[int, int],
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """Indices of y and k."""
    y_keys: list[tuple[int, int, int]] = []
    k_keys: list[tuple[int, int]] = []
    for j in jobs:
        job = instance.jobs[j]
        for g, (kind, servers, _) in enumerate(groups):
            if kind == job.worker_type:
                first = job.arrival + min(int(instance.upload[j, s]) for s in servers)
                y_keys += [(j, g, t) for t in range(first, last[j] + 1)]
        if instance.has_cloud(job):
            first = job.arrival + int(instance.cloud_upload[j])
            k_keys += [(j, t) for t in range(first, last[j] + 1)]
    return y_keys, k_keys


def _rates(instance: EdgecloudInstance, zeta_one: bool) -> list[tuple[float, float]]:
    """1 / p at the edge and in the cloud."""
    cloud = instance.cloud_slots.tolist()
    edge = cloud if zeta_one else instance.edge_slots.tolist()
    return [(1.0 / e, 1.0 / c) for e, c in zip(edge, cloud, strict=True)]


def _costs(
    instance: EdgecloudInstance,
    y_keys: Sequence[tuple[int, int, int]],
    k_keys: Sequence[tuple[int, int]],
    plus: bool,
    zeta_one: bool,
) -> tuple[list[float], list[float]]:
    """Cost of a unit of each variable."""
    rates = _rates(instance, zeta_one)
    chunks = instance.chunks.tolist()
    arrival = instance.arrivals.tolist()
    middle, half = (0.5, 0.5) if plus else (0.0, 0.0)

    def cost(j: int, t: int, rate: float) -> float:
        return ((t + middle - arrival[j]) * rate + half) / chunks[j]

    return (
        [cost(j, t, rates[j][0]) for j, _, t in y_keys],
        [cost(j, t, rates[j][1]) for j, t in k_keys],
    )


def _capacities(
    m: Model,
    instance: EdgecloudInstance,
    groups: Sequence[Group],
    layout: str,
    storage: bool,
) -> None:
    """A worker trains one chunk at a time (4b); what runs on a server fits its storage (7b)."""
    users: dict[tuple[int, int], list[Expr]] = {}
    for (_, g, t), variable in m.y.items():
        users.setdefault((g, t), []).append(variable)
    m.eq_4b = pyo.Constraint(
        list(users),
        rule=lambda m, g, t: pyo.quicksum(users[g, t]) <= float(len(groups[g][2])),
        doc="(4b) a worker trains one chunk at a time",
    )
    at_cloud: dict[tuple[str, int], list[Expr]] = {}
    for (j, t), variable in m.k.items():
        kind = instance.jobs[j].worker_type
        if instance.cloud_workers(kind) is not None:
            at_cloud.setdefault((kind, t), []).append(variable)
    m.eq_4b_cloud = pyo.Constraint(
        list(at_cloud),
        rule=lambda m, kind, t: (
            pyo.quicksum(at_cloud[kind, t]) <= float(instance.cloud_workers(kind) or 0)
        ),
        doc="(4b) the cloud's workers of a type",
    )
    stored: dict[tuple[int, int], list[Expr]] = {}
    if storage and layout != "types":
        for (j, g, t), variable in m.y.items():
            s = groups[g][1][0]
            if np.isfinite(instance.storage_gb[s]) and instance.chunk_gb[j] > 0:
                stored.setdefault((s, t), []).append(float(instance.chunk_gb[j]) * variable)
    m.eq_7b = pyo.Constraint(
        list(stored),
        rule=lambda m, s, t: pyo.quicksum(stored[s, t]) <= float(instance.storage_gb[s]),
        doc="(7b) what runs on a server fits its storage",
    )


def build_ilp_4(
    instance: EdgecloudInstance, *, zeta: str = "decide", relax: bool = False
) -> FractionalProgram:
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
    one = zeta == "one"
    program = build_fractional(instance, plus=False, zeta_one=one)
    m, k_keys = program.model, program.k_keys
    if not relax:
        for variable in (*m.y.values(), *m.k.values()):
            variable.domain = pyo.NonNegativeIntegers
    if one:
        return program
    # With zeta = 0 the cloud works at the rate of the edge, so k is split in two.
    jobs = list(m.eq_4a)
    m.k0 = pyo.Var(
        k_keys,
        domain=pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers,
        doc="(4) cloud workers at the rate of the edge",
    )
    m.zeta = pyo.Var(
        jobs,
        domain=pyo.UnitInterval if relax else pyo.Binary,
        doc="(4f) the whole job is in the cloud",
    )
    rates = _rates(instance, False)
    chunks = instance.chunks.tolist()
    slots: dict[tuple[int, int], list[Expr]] = {}
    parts: dict[int, list[Expr]] = {j: [] for j in jobs}
    for (j, _, t), variable in m.y.items():
        slots.setdefault((j, t), []).append(variable)
        parts[j].append(variable)
    for (j, t), variable in m.k0.items():
        slots.setdefault((j, t), []).append(variable)
        parts[j].append(variable)
    together: dict[int, list[Expr]] = {j: [] for j in jobs}
    for (j, _), variable in m.k.items():
        together[j].append(variable)
    for constraint in (m.eq_4a, m.eq_4e):
        constraint.deactivate()
    m.eq_4a_mixed = pyo.Constraint(
        jobs,
        rule=lambda m, j: rates[j][0] * pyo.quicksum(parts[j]) >= chunks[j] * (1 - m.zeta[j]),
        doc="(4a) all chunks are trained, unless everything is in the cloud",
    )
    m.eq_4a_cloud = pyo.Constraint(
        jobs,
        rule=lambda m, j: rates[j][1] * pyo.quicksum(together[j]) >= chunks[j] * m.zeta[j],
        doc="(4a) all chunks are trained, where everything is in the cloud",
    )
    m.eq_4g = pyo.Constraint(
        list(slots),
        rule=lambda m, j, t: pyo.quicksum(slots[j, t]) <= chunks[j] * (1 - m.zeta[j]),
        doc="(4g) nothing at the edge while everything is in the cloud",
    )
    m.eq_4f = pyo.Constraint(
        k_keys,
        rule=lambda m, j, t: m.k[j, t] <= chunks[j] * m.zeta[j],
        doc="(4f) nothing of the kind unless everything is in the cloud",
    )
    m.eq_4b_cloud.deactivate()
    limits: dict[tuple[str, int], list[Expr]] = {}
    for (j, t), variable in m.k.items():
        kind = instance.jobs[j].worker_type
        if instance.cloud_workers(kind) is not None:
            limits.setdefault((kind, t), []).extend((variable, m.k0[j, t]))
    m.eq_4b_mixed = pyo.Constraint(
        list(limits),
        rule=lambda m, kind, t: (
            pyo.quicksum(limits[kind, t]) <= float(instance.cloud_workers(kind) or 0)
        ),
        doc="(4b) the cloud's workers of a type",
    )
    arrival = instance.arrivals.tolist()
    m.objective.expr = m.objective.expr + pyo.quicksum(
        ((t - arrival[j]) * rates[j][0] / chunks[j]) * variable for (j, t), variable in m.k0.items()
    )
    return program
