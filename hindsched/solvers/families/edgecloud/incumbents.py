"""Feasible solutions of the edgecloud family from which the exact and bounding methods begin."""

from __future__ import annotations

import heapq

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.frozen_schedule import read_past
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule
from hindsched.solutions.edgecloud.ps import place_parameter_servers
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.kernels.edgecloud.preemptive_queue import QueueState, serve
from hindsched.solvers.methods.base import better


def list_schedule(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """Jobs in order of arrival, each chunk where it ends first, never preempted; or None."""
    schedule = GreedySchedule(instance, read_past(instance, None))
    if schedule.completion is None:
        return None
    return checked(instance, Runs.of(schedule.rows), formulation)


def priority_schedule(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """Preemptive: workers serve the shortest job first, and chunks go where they end first.

    A job whose last chunk would end later at the edge than in an unlimited cloud goes there as a
    whole. None if a job can go nowhere, or storage or PSs do not suffice.
    """
    queues = QueueState(len(instance.worker_list))
    cloud = len(instance.worker_list)
    rows: list[ChunkRun] = []
    served: list[tuple[int, float, float, float, int, int]] = []
    for j in sorted(range(len(instance.jobs)), key=lambda j: (instance.arrivals[j], j)):
        job = instance.jobs[j]
        queues.advance(float(job.arrival))
        work, chunks = float(instance.edge_slots[j]), job.chunks
        workers = [w for _, members in instance.places(job) for w in members]
        servers = [instance.worker_list[w][0] for w in workers]
        ready = instance.arrivals[j] + instance.upload[j, servers].astype(float)
        key = chunks * work
        ahead = queues.outlook(np.array(workers, dtype=np.int64), ready, key)[:, 0]
        heap = [(float(end), i) for i, end in enumerate(ready + ahead + work)]
        heapq.heapify(heap)
        chosen: list[int] = []
        last = np.inf
        for _ in range(chunks if heap else 0):
            last, i = heap[0]
            chosen.append(i)
            heapq.heapreplace(heap, (last + work, i))
        in_cloud = np.inf
        if instance.cloud_workers(job.worker_type) is None:
            in_cloud = float(job.arrival + instance.cloud_upload[j] + instance.cloud_slots[j])
        if in_cloud <= last:
            if in_cloud == np.inf:
                return None
            first = job.arrival + int(instance.cloud_upload[j])
            end = int(in_cloud) - 1
            rows += [ChunkRun(j, c, cloud, first, end) for c in range(1, chunks + 1)]
            continue
        for i in sorted(set(chosen)):
            queues.insert(workers[i], j, chosen.count(i), key, float(ready[i]), work, 1.0 / chunks)
        for number, i in enumerate(chosen, 1):
            served.append((workers[i], float(ready[i]), key, work, j, number))
    if served:
        table = np.array(served)
        entry, span = serve(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3])
        found = np.column_stack((table[entry][:, [4, 5, 0]], span[:, 0], span[:, 1] - 1))
        rows += [ChunkRun(*row) for row in found.astype(np.int64).tolist()]
    return checked(instance, Runs.of(rows), formulation)


def best_incumbent(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """The better of the two schedules."""
    return better(list_schedule(instance, formulation), priority_schedule(instance, formulation))


def checked(instance: EdgecloudInstance, runs: Runs, formulation: str) -> Solution | None:
    """A solution of these runs with PSs found for them; None if there are none or storage lacks."""
    holds = place_parameter_servers(instance, runs)
    solution = EdgecloudSolution(instance, runs, holds, formulation)
    return solution if solution.is_feasible() else None
