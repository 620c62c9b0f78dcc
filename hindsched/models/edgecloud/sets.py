"""What the edgecloud programs ask of an instance: the open jobs' sizes, slots and ends, as dicts.

Every job must finish, so the programs have no horizon of their own. With a feasible schedule of
objective UB and lower bounds LB_j on each job's time, an optimal schedule gives job j at most
``LB_j + UB - sum_i LB_i``; with an unlimited cloud never more than an all-cloud job takes, because
moving a job that would end later to the cloud only helps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hindsched.instances.decimals import common_step, exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.base import ALONE, ScenarioPolicy
from hindsched.models.declared import DeclarativeProgram, symbols
from hindsched.solutions.edgecloud.list_schedule import Past, list_schedule
from hindsched.solutions.edgecloud.runs import Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution

MOST_STEPS = 10_000  # largest whole coefficient of a row: tolerances are far below 1 there
BYTES_A_CELL = 1_000  # of a job, a place and a slot: a column and a row of Pyomo


@dataclass(frozen=True)
class EdgecloudSets:
    """Facts of the open jobs of a past, by job."""

    instance: EdgecloudInstance
    past: Past
    jobs: list[int]
    arrival: dict[int, int]  # r
    chunks: dict[int, int]  # D
    edge_slots: dict[int, int]  # of a chunk where zeta = 0
    cloud_slots: dict[int, int]  # of a chunk where zeta = 1
    has_cloud: dict[int, bool]  # whether the cloud has a worker for it
    from_cloud: dict[int, int]  # first slot in which the cloud may train (2i)
    waits: dict[int, bool]  # whether chunks may have to wait in the cloud, for a worker or a PS
    # last slot in which the job is unfinished whatever is done, where no chunk moves
    known: dict[int, int]
    last: dict[int, int]  # last slot that it may need
    done: dict[int, dict[int, list[int]]]  # slots done by each started chunk, by worker
    places: dict[int, list[int]]  # workers of the job's type
    server: list[int]  # where a worker is
    slots: dict[tuple[int, int], list[int]]  # in which (job, worker) is open (2i)
    stored: dict[tuple[int, int], int]  # chunks that all jobs have on servers so far

    @property
    def cells(self) -> list[tuple[int, int, int]]:
        """All (job, worker, slot)."""
        return [(j, w, t) for (j, w), slots in self.slots.items() for t in slots]

    @property
    def limited_storage(self) -> list[tuple[int, int]]:
        """(job, server) for whose chunks the room is limited."""
        instance = self.instance
        return [
            (j, s)
            for j in self.jobs
            for s, _ in instance.places(instance.jobs[j])
            if instance.storage_gb[s] < float("inf") and instance.chunk_gb[j] > 0
        ]

    def starts(self, j: int, work: int) -> range:
        """Slots in which a chunk of so many slots may start in the cloud: at once if none waits."""
        latest = self.last[j] - work + 1 if self.has_cloud[j] else 0
        latest = latest if self.waits[j] else min(latest, self.from_cloud[j])
        return range(self.from_cloud[j], latest + 1)

    def begun_in_cloud(self, j: int) -> list[int]:
        """Slots done by each chunk of a job that has started in the cloud."""
        return self.done[j].get(len(self.instance.worker_list), [])


def read_sets(
    instance: EdgecloudInstance, formulation: str, past: Past, last: dict[int, int]
) -> EdgecloudSets:
    """The facts of a past's open jobs; `last` as from `last_slots`."""
    jobs, r = past.open_jobs, instance.arrivals.tolist()
    server = [s for s, _, _ in instance.worker_list]
    places = {
        j: [w for _, workers in instance.places(instance.jobs[j]) for w in workers] for j in jobs
    }
    slots: dict[tuple[int, int], list[int]] = {}
    for j, w in [(j, w) for j, workers in places.items() for w in workers]:
        first, busy = max(past.now, r[j] + int(instance.upload[j, server[w]])), past.busy.get(w, ())
        slots[j, w] = [t for t in range(first, last[j] + 1) if t not in busy]
    from_cloud = {j: max(past.now, r[j] + int(instance.cloud_upload[j])) for j in jobs}
    known = {}
    for j in jobs:
        if past.done_on(j):
            known[j] = max(run.last for run in past.rows if run.job == j)
            continue
        known[j] = r[j] + lone_time(instance, j, formulation) - 1
        ends = [  # a chunk is trained in one place, from now on
            max(past.now, r[j] + int(instance.upload[j, s])) + int(instance.edge_slots[j])
            for s, _ in instance.places(instance.jobs[j])
        ]
        if instance.has_cloud(instance.jobs[j]):
            ends.append(from_cloud[j] + int(instance.cloud_slots[j]))
        known[j] = max(known[j], min(ends) - 1)
    before = EdgecloudSolution(instance, Runs.of(past.rows), Runs.of([]), formulation)
    return EdgecloudSets(
        instance, past, jobs,
        arrival={j: r[j] for j in jobs},
        chunks={j: int(instance.chunks[j]) for j in jobs},
        edge_slots={j: int(instance.edge_slots[j]) for j in jobs},
        cloud_slots={j: int(instance.cloud_slots[j]) for j in jobs},
        has_cloud={j: instance.has_cloud(instance.jobs[j]) for j in jobs},
        from_cloud=from_cloud, waits={j: may_wait_in_cloud(instance, j) for j in jobs},
        known=known, last=last, done={j: past.done_on(j) for j in jobs},
        places=places, server=server, slots=slots, stored=before.stored_chunks(),
    )  # fmt: skip


def in_steps(
    sizes: Mapping[int, float | Fraction], room: float | Fraction
) -> tuple[dict[int, float], float]:
    """Sizes and room of a row of storage in steps, of which each size is a whole multiple.

    Room that no whole step fills is left out; in GB a tolerance of the solver would let hairs fit.
    """
    exact = {j: exactly(size) for j, size in sizes.items()}
    step, largest = common_step(exact.values()), max(exact.values())
    unit = largest if largest > MOST_STEPS * step else step
    return {j: float(gb / unit) for j, gb in exact.items()}, float(
        exactly(room) // step * step / unit
    )


def may_wait_in_cloud(instance: EdgecloudInstance, j: int) -> bool:
    """Whether a job's chunks may have to wait in the cloud, for a worker or a PS."""
    job = instance.jobs[j]
    workers, ps = instance.cloud_workers(job.worker_type), instance.cloud_ps(job.ps_type)
    return workers is not None or ps is not None


def lone_time(instance: EdgecloudInstance, j: int, formulation: str) -> int:
    """Shortest time of a job that has everything to itself, in slots: a lower bound."""
    job, literal = instance.jobs[j], formulation == "literal"
    edge, from_cloud = int(instance.edge_slots[j]), int(instance.cloud_upload[j])
    limit = instance.cloud_workers(job.worker_type)
    cloud_workers = job.chunks if limit is None else min(limit, job.chunks)
    uploads = [int(instance.upload[j, s]) for s, workers in instance.places(job) for _ in workers]
    soonest = np.sort([*uploads, *[from_cloud] * cloud_workers])[: job.chunks]

    def done_in(time: int) -> int:
        """Chunk-slots trained within `time`; without migration those of whole chunks alone."""
        trained = np.maximum(0, time - soonest)
        return int(trained.sum() if literal else (trained // edge).sum() * edge)

    most = int(soonest[-1]) + edge * job.chunks
    times = [bisect_left(range(most), edge * job.chunks, lo=1, key=done_in)]
    if cloud_workers:
        all_cloud = int(instance.cloud_slots[j])
        waves = -(-job.chunks // cloud_workers) * all_cloud
        work = -(-job.chunks * all_cloud // cloud_workers)
        times.append(from_cloud + (work if literal else waves))
    return min(times)


def last_slots(
    instance: EdgecloudInstance, formulation: str, past: Past,
    incumbent: EdgecloudSolution | None = None, policy: ScenarioPolicy | None = None,
) -> dict[int, int]:  # fmt: skip
    """Last slot in which each open job may have to run.

    `incumbent` is a feasible solution of the whole instance, whose objective counts if nothing is
    fixed. A policy of several futures (`policy`) may wait until the last arrival in any of them,
    and may be worse than the cloud in this one.
    """
    jobs, r = past.open_jobs, instance.arrivals.tolist()
    begun = {i for i, _ in past.started}
    least = {
        j: max(lone_time(instance, j, formulation), past.now - r[j] if begun else 1) for j in jobs
    }
    upper = float("inf")
    limited = (instance.chunk_gb[jobs] > 0).any() and np.isfinite(instance.storage_gb).any()
    limited |= any(instance.cloud_ps(instance.jobs[j].ps_type) is not None for j in jobs)
    if policy is not None:
        upper = float("inf") if policy.worst_cost is None else policy.worst_cost
    elif not limited:
        plan = list_schedule(instance, past)[0]
        upper = float(sum(plan[j] - r[j] + 1 for j in jobs))
    if incumbent is not None and not past.rows and past.now == 1:
        upper = min(upper, incumbent.objective())
    if upper < float("inf"):
        spare = int(upper + 1e-6) - sum(least.values())
        limits = {j: max(r[j] + least[j] + spare - 1, past.now) for j in jobs}
    else:  # one job after another, behind everything that is fixed
        ready = [r[j] + max([0, *instance.upload[j], instance.cloud_upload[j]]) for j in jobs]
        taken = [t for slots in past.busy.values() for t in slots]
        taken += [held.last for held in past.holds]
        work = sum(int(instance.chunks[j] * instance.edge_slots[j]) for j in jobs)
        waits = 0 if policy is None else policy.last_arrival
        limits = dict.fromkeys(jobs, int(max([past.now, waits, *ready, *taken])) + work)
    for j in jobs if policy is None or policy.kind == ALONE else ():
        if j not in begun and not may_wait_in_cloud(instance, j):
            ready_at = max(past.now, r[j] + int(instance.cloud_upload[j]))
            limits[j] = min(limits[j], ready_at + int(instance.cloud_slots[j]) - 1)
    return limits


def relaxation_last_slots(instance: EdgecloudInstance) -> dict[int, int]:
    """Last slot of each job in the relaxations of (2): no optimal schedule of (2) needs more."""
    return last_slots(instance, "literal", Past(open_jobs=list(range(len(instance.jobs)))))


def flow_time_last_slots(instance: EdgecloudInstance) -> dict[int, int]:
    """Last slot that each job needs in problem (4) with p(zeta = 1) everywhere.

    In an unlimited cloud it ends a chunk's slots after its upload. Elsewhere, once all is uploaded,
    it waits only while all workers of its type are busy, or runs with all its chunks.
    """
    if np.isfinite(instance.storage_gb).any() and (instance.chunk_gb > 0).any():
        return relaxation_last_slots(instance)
    kinds = np.array([job.worker_type for job in instance.jobs])
    slots, begin = instance.cloud_slots, instance.arrivals + instance.cloud_upload
    work, uploads = instance.chunks * slots, (*instance.upload.T, instance.cloud_upload)
    ready = instance.arrivals + np.max(uploads, axis=0)
    for kind in np.unique(kinds):
        if (in_cloud := instance.cloud_workers(kind)) is not None:
            workers = in_cloud + len(instance.workers_by_type.get(kind, ()))
            begin[kinds == kind] = ready.max() + work[kinds == kind].sum() // workers
    return dict(enumerate((begin + slots - 1).tolist()))


def places_of(instance: EdgecloudInstance, layout: str) -> dict[str, tuple[int, ...]]:
    """Edge workers that share a row, by label.

    ``servers`` has a row a worker, ``groups`` one a server and worker type, ``types`` one a type.
    """
    names = [server.name for server in instance.servers]
    if layout == "servers":
        numbered = enumerate(instance.worker_list)
        return {f"{names[s]}/{number}": (w,) for w, (s, number, _) in numbered}
    if layout == "groups":
        return {f"{names[s]}/{kind}": workers for (s, kind), workers in instance.groups.items()}
    return dict(instance.workers_by_type)


class EdgecloudNames(DeclarativeProgram):
    """Servers, workers and groups read by their names."""

    SYMBOLS = symbols(
        {
            ("job", "chunks"): "xc",
            ("job", "jobs"): "zeta",
            ("job", "slots of job time a chunk"): "alpha eq_4a",
            ("job", ""): "no_migration eq_2g",
            ("job", "share"): "cut_mean_busy_time",
            ("job, worker | job, server, slot", "chunks"): "x",
            ("job, slot", "jobs"): "C",
            ("job, slot", "workers"): "k y_cloud eq_6a_cloud",
            ("job, slot", "PSs"): "a a_cloud z_cloud",
            ("job, slot", ""): "pi eq_2e eq_2e_cloud eq_2e_one eq_2i_cloud eq_2j_order",
            ("job, slot", "slots of job time a worker-slot"): "eq_4e",
            ("job, worker, slot", "workers"): "y",
            ("job, worker, slot", ""): "eq_2i eq_2h",
            ("job, worker, slot", "slots of job time a worker-slot"): "residual_capacity",
            ("job, PS, slot", "PSs"): "z",
            ("job, PS, slot", ""): "eq_2h_ps",
            ("job, server, slot", "chunks"): "S",
            ("job, server, slot, side", ""): "eq_7c",
            ("job, worker, slot | job, slot", ""): "eq_2j",
            ("job, server, slot", "slots of job time a chunk"): "eq_7a",
            ("job, group, slot", "workers"): "eq_6a",
            ("job, all in cloud, slot", "chunks"): "s",
            ("job, all in cloud, slot", ""): "eq_2j_start",
            ("job, all in cloud, slots done", ""): "eq_2j_running",
            ("job, worker | job", "slots of job time a worker-slot"): "eq_2b",
            ("job, slot | job", "slots of job time a chunk"): "eq_2c",
            ("job, all in cloud | job", ""): "eq_2b_cloud",
            ("worker, slot", "slots of job time a worker-slot"): "eq_2d",
            ("group, slot", "slots of job time a worker-slot"): "beta eq_4b",
            ("worker type, slot", "slots of job time a worker-slot"): (
                "beta_cloud eq_2d_cloud eq_4b_cloud"
            ),
            ("PS type, slot", ""): "eq_2f_cloud",
            ("PS type, slot | PS, slot", ""): "eq_2f",
            ("server, slot", "slots of job time a GB"): "eta eq_7b",
        }
    )
    OBJECTIVE_UNIT = "slots of job time"
    layout = "groups"  # what a group is, see `places_of`
    instance: EdgecloudInstance

    def name_of(self, index: str, place: int) -> str | None:
        instance = self.instance
        if index == "server":
            return instance.servers[place].name
        if index == "PS":
            return f"{instance.servers[instance.ps_list[place][0]].name}/{place}"
        if index == "worker":
            server, number, _ = instance.worker_list[place]
            return f"{instance.servers[server].name}/{number}"
        return list(places_of(instance, self.layout))[place] if index == "group" else None
