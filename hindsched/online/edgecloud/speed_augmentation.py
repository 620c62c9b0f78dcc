"""A_online with (1 + epsilon) speed, event-driven and in continuous time.

An analysis device (Definition 1), no schedule of the instance. Rounding up to whole slots would
destroy it, so a chunk takes ``E B / (n_j (1 + epsilon))`` exactly; uploads are not faster. A PS is
taken to be free, and storage to be unlimited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.online.edgecloud.dispatch import Dispatch, Dispatcher, Increment
from hindsched.solvers.kernels.edgecloud.preemptive_queue import TINY, run_queue


@dataclass(frozen=True)
class SpeedRun:
    """A run with extra speed.

    `bound` is ``sum alpha'' - sum beta / (1 + epsilon)``, Theorem 3's dual objective (11), a lower
    bound on (2) for epsilon > 0 if the smallest `slack` of (6a) is not negative; the sum of beta
    over workers, the cloud and time is the average flow time. `fractional_flow` is what ILP (4)
    minimises, of this run: ``(t - r_j) / (D_j p_j)`` summed over the time t in which chunks are
    served, p at the run's speed; a stretch counts with its middle.
    """

    epsilon: float
    times: Floats  # completion minus arrival of each job, slots (real), (J,)
    dispatches: tuple[Dispatch, ...]
    bound: float
    slack: float
    average_flow: float  # sum of (c_jd - r_j) / D_j, what A_greedy minimises
    fractional_flow: float

    @property
    def total(self) -> float:
        """Total job completion time, slots."""
        return float(self.times.sum())


def run_with_speed(
    instance: EdgecloudInstance, epsilon: float, *, increment: Increment = "printed"
) -> SpeedRun:
    """Run A_online, by either increment of `Dispatcher`, with (1 + epsilon) speed.

    `SolveFailed` if no workers of that speed can end the chunks so.
    """
    if not 0 <= epsilon < math.inf:
        raise InputError("epsilon", epsilon, "must be at least 0")
    arrival, chunks = instance.arrivals.astype(float), instance.chunks
    works = (
        [job.exact_chunk_slots(instance.slot_seconds, in_cloud=where) for job in instance.jobs]
        for where in (False, True)
    )
    edge, cloud = (np.array(work, dtype=float) / (1.0 + epsilon) for work in works)
    dispatcher = Dispatcher(instance.with_jobs(()), increment)
    dispatched: dict[int, Dispatch] = {}
    for j in np.argsort(arrival, kind="stable").tolist():
        dispatcher.queues.advance(arrival[j])
        dispatched[j] = dispatcher.place(j, instance.jobs[j], float(edge[j]), float(cloud[j]))

    # carry the dispatches out
    at_edge = [(worker, j) for j, dispatch in dispatched.items() for _, worker in dispatch.workers]
    worker, job = np.array(at_edge, dtype=np.int64).reshape(-1, 2).T
    server = np.array([s for s, _, _ in instance.worker_list], dtype=np.int64)
    ready: Floats = arrival[job] + instance.upload[job, server[worker]].astype(float)
    end, middle = np.zeros(len(worker)), np.zeros(len(worker))  # of the service of a chunk
    for w in np.unique(worker):
        local = np.flatnonzero(worker == w)
        local = local[np.lexsort((ready[local], (chunks * edge)[job[local]]))]
        p, D = edge[job[local]], chunks[job[local]]
        queue = np.column_stack((D * p, ready[local], p, p, 1.0 / D, job[local].astype(float)))
        served = np.zeros((len(local), 2))
        run_queue(queue, 0.0, np.inf, served)
        _check_ends(ready[local], p, served[:, 0])
        end[local], middle[local] = served[:, 0], served[:, 1] / p
    away = [(j, *times) for j, dispatch in dispatched.items() for _, *times in dispatch.cloud]
    in_cloud, begun, ended = np.array(away, dtype=float).reshape(-1, 3).T
    jobs = np.concatenate([job, in_cloud.astype(np.int64)])
    late = np.concatenate([end, ended]) - arrival[jobs]
    times = np.zeros(len(instance.jobs))
    np.maximum.at(times, jobs, late)
    flow = float((late / chunks[jobs]).sum())
    middles = np.concatenate([middle, (begun + ended) / 2]) - arrival[jobs]
    fractional = float((middles / chunks[jobs]).sum())
    dispatches = tuple(dispatched[j] for j in range(len(instance.jobs)))
    alpha = np.array([dispatch.corrected_alpha for dispatch in dispatches])
    bound = float((alpha * chunks).sum()) - flow / (1.0 + epsilon)
    slack = _worst_slack(instance, alpha, edge, (worker, job, end))
    return SpeedRun(epsilon, times, dispatches, bound, slack, flow, fractional)


def _check_ends(ready: Floats, work: Floats, ends: Floats) -> None:
    """Refuse chunks of one worker that cannot all end so, each ready at a time, with so much work.

    A worker that preempts can do it iff between any two times it has no more work than they are
    apart, of chunks that are ready and end between them.
    """
    order = np.argsort(ends)
    for begin in np.unique(ready):
        between = order[ready[order] >= begin]
        late = begin + np.cumsum(work[between]) - ends[between]
        if late.max() > TINY * (len(ends) + ends.max()):
            raise SolveFailed(f"A_online at this speed lacks {late.max():.3g} slots of work")


def _worst_slack(
    instance: EdgecloudInstance, alpha: Floats, work: Floats, served: tuple[Ints, Ints, Floats]
) -> float:
    """Smallest ``(t - r) / D + p beta_w(t) - alpha`` over (6a): below 0 the point is infeasible.

    beta of a worker sums 1 / D over the chunks that it has not ended, of jobs that have arrived;
    `served` are the chunks at the edge: their worker, job and end. Between ends and arrivals beta
    is constant and the right side rises: only the beginnings of those intervals matter.
    """
    worst = np.inf
    arrival, weight = instance.arrivals.astype(float), 1.0 / instance.chunks
    for w, (s, _, kind) in enumerate(instance.worker_list):
        here = served[0] == w
        jobs, end = served[1][here], served[2][here]
        for j, job in enumerate(instance.jobs):
            if job.worker_type == kind:
                ready = arrival[j] + float(instance.upload[j, s])
                times = np.concatenate(([ready], end[end > ready]))
                open_ = (arrival[jobs] <= times[:, None]) & (times[:, None] < end)
                beta = open_ @ weight[jobs]
                slack = (times - arrival[j]) * weight[j] + work[j] * beta - alpha[j]
                worst = min(worst, float(slack.min()))
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            worst = min(worst, float(instance.cloud_upload[j]) * weight[j] - alpha[j])
    return worst
