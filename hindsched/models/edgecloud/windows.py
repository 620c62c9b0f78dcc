"""How far the edgecloud family's programs must look: what is fixed, and each job's last slot.

Every job must finish, so the programs have no horizon of their own. With a feasible schedule of
objective UB and lower bounds LB_j on each job's time, an optimal schedule gives job j at most
``LB_j + UB - sum_i LB_i``; with an unlimited cloud never more than an all-cloud job takes, because
moving a job that would end later to the cloud only helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.edgecloud.frozen_schedule import Past
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule
from hindsched.solutions.edgecloud.solution import EdgecloudSolution


def lone_time(instance: EdgecloudInstance, j: int, formulation: str) -> int:
    """Shortest time of a job that has everything to itself, in slots: a lower bound."""
    job = instance.jobs[j]
    edge, all_cloud = int(instance.edge_slots[j]), int(instance.cloud_slots[j])
    limit = instance.cloud_workers(job.worker_type)
    from_cloud = int(instance.cloud_upload[j])
    upload = instance.upload[j].tolist()
    workers: dict[int, int] = {}  # by upload
    for s, members in instance.places(job):
        workers[upload[s]] = workers.get(upload[s], 0) + len(members)
    at_once = job.chunks if limit is None else min(limit, job.chunks)
    delays = tuple(sorted(workers.items()))
    return _lone_time(
        formulation == "literal", job.chunks, edge, all_cloud, from_cloud, at_once, delays
    )


@lru_cache(maxsize=65_536)
def _lone_time(
    literal: bool,
    chunks: int,
    edge: int,
    all_cloud: int,
    from_cloud: int,
    cloud_workers: int,
    edge_workers: tuple[tuple[int, int], ...],
) -> int:
    """The same of numbers: workers that can be used, those at the edge by their upload."""
    longest = max([from_cloud, *(delay for delay, _ in edge_workers)])
    workers = Counter(dict(edge_workers))
    if cloud_workers:
        workers[from_cloud] += cloud_workers
    delays = sorted(workers.items())

    def done_in(time: int) -> int:
        """Whole chunks trained within `time`, in ``literal`` chunk-slots."""
        if not literal:
            return sum(count * (max(0, time - delay) // edge) for delay, count in delays)
        total, at_once = 0, 0
        for (delay, count), until in zip(delays, [d for d, _ in delays[1:]] + [time], strict=True):
            at_once = min(chunks, at_once + count)
            total += at_once * max(0, min(until, time) - delay)
        return total

    times: list[int] = []
    if cloud_workers:
        work = chunks * all_cloud
        waves = -(-chunks // cloud_workers) * all_cloud
        times.append(from_cloud + (-(-work // cloud_workers) if literal else waves))
    if delays:
        need = chunks * (edge if literal else 1)
        most = longest + edge * chunks
        times.append(_smallest(lambda time: done_in(time) >= need, 1, most))
    return min(times)


def _smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def last_slots(
    instance: EdgecloudInstance,
    formulation: str,
    past: Past,
    incumbent: EdgecloudSolution | None = None,
    *,
    edge_ps_only: bool = False,
) -> dict[int, int]:
    """Last slot in which each open job may have to run.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str
        Which problem.
    past : Past
        What is fixed.
    incumbent : EdgecloudSolution, optional
        A feasible solution of the whole instance; its objective is used when nothing is fixed.
    edge_ps_only : bool
        Jobs with edge workers need an edge PS, which the list schedule does not look at.
    """
    jobs = past.open_jobs
    arrival = {j: int(instance.arrivals[j]) for j in jobs}
    least = {
        j: max(lone_time(instance, j, formulation), past.now - arrival[j] if past.started else 1)
        for j in jobs
    }
    limits: dict[int, int] = {}
    plan = GreedySchedule(instance, past).completion
    enough_ps = all(instance.cloud_ps(instance.jobs[j].ps_type) is None for j in jobs)
    if plan is not None and enough_ps and not edge_ps_only:
        upper = float(sum(plan[j] - arrival[j] + 1 for j in jobs))
    elif incumbent is not None and not past.rows and past.now == 1:
        upper = incumbent.objective()
    else:
        upper = float("inf")
    if upper == float("inf"):
        total = sum(int(instance.chunks[j] * instance.edge_slots[j]) for j in jobs)
        ready = [
            arrival[j] + int(max([0, *instance.upload[j], instance.cloud_upload[j]])) for j in jobs
        ]
        taken = [t for slots in past.busy.values() for t in slots]
        taken += [last for *_, last in (*past.cloud_busy, *past.ps_busy)]
        limits = dict.fromkeys(jobs, max([past.now, *ready, *taken]) + total)
    else:
        if incumbent is not None and not past.rows and past.now == 1:
            upper = min(upper, incumbent.objective())
        spare = int(upper + 1e-6) - sum(least.values())
        limits = {j: max(arrival[j] + least[j] + spare - 1, past.now) for j in jobs}
    for j in jobs:
        job = instance.jobs[j]
        fresh = all(i != j for i, _ in past.started)
        free = instance.cloud_workers(job.worker_type) is None
        if fresh and free and instance.cloud_ps(job.ps_type) is None:
            ready_at = max(past.now, arrival[j] + int(instance.cloud_upload[j]))
            limits[j] = min(limits[j], ready_at + int(instance.cloud_slots[j]) - 1)
    return limits
