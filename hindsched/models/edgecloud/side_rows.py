"""Rows of the edgecloud family's programs that bind only in some instances: PSs and storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from hindsched.instances.decimals import common_step, exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.solutions.edgecloud.frozen_schedule import Past

Parts = Mapping[int, list[tuple[Expr, float]]]
"""Per slot: expressions that are positive if a job runs then, each with its upper bound."""
MOST_STEPS = 10_000
"""Largest coefficient of a row of whole numbers: solvers' tolerances are far below 1 there."""


def jobs_with_finite_ps(
    instance: EdgecloudInstance, jobs: Iterable[int], edge_ps_only: bool
) -> list[int]:
    """Jobs for whose PS type (2e) and (2f) can bind."""
    return [
        j for j in jobs if edge_ps_only or instance.cloud_ps(instance.jobs[j].ps_type) is not None
    ]


def may_wait_in_cloud(instance: EdgecloudInstance, j: int) -> bool:
    """Whether a job's chunks may have to wait in the cloud, for a worker or a PS."""
    job = instance.jobs[j]
    return (
        instance.cloud_workers(job.worker_type) is not None
        or instance.cloud_ps(job.ps_type) is not None
    )


def add_parameter_servers(
    m: Model,
    instance: EdgecloudInstance,
    past: Past,
    runs: Mapping[int, Parts],
    at_edge: Mapping[tuple[int, int], list[Expr]],
    *,
    relax: bool,
) -> None:
    """Enough PSs for all running jobs, where they are finite (2e), (2f).

    A placement of PSs exists exactly when in each slot the jobs with zeta = 1 find a PS in the
    cloud and all running jobs together a PS somewhere, because (2) lets a PS change between slots.
    Those that locked jobs hold stay where they are.

    Parameters
    ----------
    m : ConcreteModel
        The program, with ``zeta``.
    instance, past : EdgecloudInstance, Past
        The instance and what is fixed.
    runs : mapping
        What tells that a job runs in a slot, for the jobs concerned.
    at_edge : mapping
        Under the option ``edge_ps_only``: per (job, slot) what tells that an edge worker runs it;
        such jobs must have an edge PS. Empty without the option.
    relax : bool
        Whether integrality is dropped.
    """
    if not runs:
        return
    keys = [(j, t) for j, slots in runs.items() for t in sorted(slots)]
    binary = pyo.UnitInterval if relax else pyo.Binary
    m.a = pyo.Var(keys, domain=binary, doc="(2e) the job needs a PS")
    m.a_cloud = pyo.Var(keys, domain=binary, doc="(2e) it needs one in the cloud")
    m.a_edge = pyo.Var(list(at_edge), domain=binary, doc="(ours) it needs one at the edge")
    m.eq_2e = pyo.ConstraintList(doc="(2e) a running job has a PS")
    for j, t in keys:
        for part, most in runs[j][t]:
            m.eq_2e.add(m.a[j, t] >= part / most)
        m.eq_2e.add(m.a_cloud[j, t] >= m.a[j, t] + m.zeta[j] - 1)
        for part in at_edge.get((j, t), ()):
            m.eq_2e.add(m.a_edge[j, t] >= part / float(instance.chunks[j]))
    by_type: dict[tuple[str, int], list[int]] = {}
    for j, t in keys:
        by_type.setdefault((instance.jobs[j].ps_type, t), []).append(j)
    m.eq_2f = pyo.ConstraintList(doc="(2f) no more PSs than there are")
    for (kind, t), jobs in by_type.items():
        held = [
            server == len(instance.servers)
            for j, server, first, last in past.ps_busy
            if first <= t <= last and instance.jobs[j].ps_type == kind
        ]
        on_edge = sum(n for (_, k), n in instance.ps_counts.items() if k == kind)
        on_edge -= held.count(False)
        cloud = instance.cloud_ps(kind)
        if cloud is not None:
            cloud -= held.count(True)
            m.eq_2f.add(pyo.quicksum(m.a[j, t] for j in jobs) <= on_edge + cloud)
            m.eq_2f.add(pyo.quicksum(m.a_cloud[j, t] for j in jobs) <= cloud)
        if at_edge:
            m.eq_2f.add(pyo.quicksum(m.a_edge[j, t] for j in jobs) <= on_edge)


def has_limited_storage(instance: EdgecloudInstance) -> bool:
    """Whether (7) can bind at all."""
    return bool((instance.storage_gb < float("inf")).any())


def add_storage(
    m: Model,
    instance: EdgecloudInstance,
    past: Past,
    last: Mapping[int, int],
    here: Mapping[tuple[int, int], Expr],
) -> None:
    """What a server stores fits (7b); chunks are stored from arrival to completion (7a), (7c).

    A chunk that is placed later than its job arrived needs its room from the arrival on, too.

    Parameters
    ----------
    m : ConcreteModel
        The program, with ``C[j, t]``.
    instance, past : EdgecloudInstance, Past
        The instance and what is fixed.
    last : mapping
        Last slot of each open job.
    here : mapping
        (job, server) -> expression for the number of chunks of the job that the server stores.
    """
    limited = {s for s, gb in enumerate(instance.storage_gb.tolist()) if gb < float("inf")}
    keys = [
        (j, s, t)
        for j, s in here
        if s in limited and instance.chunk_gb[j] > 0
        for t in range(int(instance.arrivals[j]), last[j] + 1)
    ]
    if not keys:
        return

    def alone(_: Model, j: int, s: int, t: int) -> tuple[float, float]:
        limit = exactly(float(instance.storage_gb[s])) / exactly(float(instance.chunk_gb[j]))
        return 0.0, min(float(instance.chunks[j]), float(limit // 1))

    m.S = pyo.Var(
        keys, domain=pyo.NonNegativeReals, bounds=alone, doc="(7) chunks stored on a server"
    )

    def stored(m: Model, j: int, s: int, t: int) -> Expr:
        over = 1 - m.C[j, t] if (j, t) in m.C else 0.0
        return m.S[j, s, t] >= here[j, s] - float(instance.chunks[j]) * over

    m.eq_7a = pyo.Constraint(
        keys, rule=stored, doc="(7a), (7c) chunks are stored from arrival to completion"
    )
    by_server: dict[tuple[int, int], list[int]] = {}
    for j, s, t in keys:
        by_server.setdefault((s, t), []).append(j)
    locked_gb = _locked_storage(instance, past, last)

    def fits(m: Model, s: int, t: int) -> Expr:
        sizes = {j: exactly(float(instance.chunk_gb[j])) for j in by_server[s, t]}
        room = exactly(float(instance.storage_gb[s])) - locked_gb.get((s, t), 0)
        step = common_step(sizes.values())  # what is stored is a whole multiple of it: no hair fits
        unit = max(sizes.values()) if max(sizes.values()) > MOST_STEPS * step else step
        used = pyo.quicksum(float(gb / unit) * m.S[j, s, t] for j, gb in sizes.items())
        return used <= float(room // step * step / unit)

    m.eq_7b = pyo.Constraint(sorted(by_server), rule=fits, doc="(7b) what a server stores fits")


def _locked_storage(
    instance: EdgecloudInstance, past: Past, last: Mapping[int, int]
) -> dict[tuple[int, int], Fraction]:
    """GB that locked jobs hold, by (server, slot)."""
    homes: dict[int, set[tuple[int, int]]] = {}
    ends: dict[int, int] = {}
    for j, chunk, place, _, end in past.rows:
        if j not in last and place < len(instance.worker_list):
            homes.setdefault(j, set()).add((chunk, instance.worker_list[place][0]))
            ends[j] = max(ends.get(j, 0), end)
    stored: dict[tuple[int, int], Fraction] = {}
    for j, chunks in homes.items():
        gb = exactly(float(instance.chunk_gb[j]))
        for _, s in chunks:
            for t in range(int(instance.arrivals[j]), ends[j] + 1):
                stored[s, t] = stored.get((s, t), Fraction()) + gb
    return stored
