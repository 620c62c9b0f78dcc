"""A_online with (1 + epsilon) speed, event-driven and in continuous time.

Speed augmentation is an analysis device (Definition 1): the algorithm's workers run (1 + epsilon)
times as fast as the optimum's. Rounding processing times up to whole slots would destroy it, so a
chunk takes ``E B / (n_j (1 + epsilon))`` exactly; uploads are not faster. What such a run achieves
is reported, and is no ratio's numerator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.online.edgecloud.dispatch import Dispatch, Dispatcher, Increment
from hindsched.solvers.kernels.edgecloud.preemptive_queue import serve


@dataclass(frozen=True)
class RunDual:
    """A dual point built from a run: alpha a job, and beta from its unfinished chunks.

    Parameters
    ----------
    alpha : ndarray, shape (J,)
        Alpha of each chunk of a job.
    work : ndarray, shape (J,)
        Processing time of a chunk at the edge, in the run.
    worker, job : ndarray of int, shape (n,)
        Where the edge chunks ran and whose they are.
    end : ndarray, shape (n,)
        When they ended, in slots since the beginning of slot 0.
    in_cloud : ndarray of int, shape (m,)
        Jobs of the chunks in the cloud, and their ends.
    cloud_end : ndarray, shape (m,)
        When those ended.
    """

    alpha: Floats
    work: Floats
    worker: Ints
    job: Ints
    end: Floats
    in_cloud: Ints
    cloud_end: Floats

    def sum_beta(self, instance: EdgecloudInstance) -> float:
        """Sum of beta over workers, the cloud and time: the average flow time of the run."""
        arrival, chunks = instance.arrivals, instance.chunks
        at_edge = (self.end - arrival[self.job]) / chunks[self.job]
        at_cloud = (self.cloud_end - arrival[self.in_cloud]) / chunks[self.in_cloud]
        return float(at_edge.sum() + at_cloud.sum())


def worst_slack(instance: EdgecloudInstance, point: RunDual) -> float:
    """Smallest ``(t - r) / D + p beta_w(t) - alpha`` over (6a): below 0 the point is infeasible.

    Between the ends of chunks and the arrivals of jobs beta is constant and the right side rises,
    so that only the beginnings of those intervals and the first slots matter.
    """
    worst = np.inf
    arrival = instance.arrivals.astype(float)
    weight = 1.0 / instance.chunks
    for w, (s, _, kind) in enumerate(instance.worker_list):
        mine = point.worker == w
        jobs = point.job[mine]
        begin, end = arrival[jobs], point.end[mine]
        for j, job in enumerate(instance.jobs):
            if job.worker_type != kind:
                continue
            ready = arrival[j] + float(instance.upload[j, s])
            times = np.concatenate(([ready], end[end > ready]))
            open_ = (begin[None, :] <= times[:, None]) & (times[:, None] < end[None, :])
            beta = open_ @ weight[jobs]
            slack = (times - arrival[j]) * weight[j] + point.work[j] * beta - point.alpha[j]
            worst = min(worst, float(slack.min()))
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            worst = min(worst, float(instance.cloud_upload[j]) * weight[j] - point.alpha[j])
    return worst


def dual_bound(instance: EdgecloudInstance, point: RunDual, epsilon: float) -> float:
    """``sum alpha - sum beta / (1 + epsilon)``: Theorem 3's dual objective (11).

    A lower bound on (2) if the point came from a run with (1 + epsilon) speed and `worst_slack` is
    not negative.
    """
    total = float((point.alpha * instance.chunks).sum())
    return total - point.sum_beta(instance) / (1.0 + epsilon)


@dataclass(frozen=True)
class SpeedRun:
    """A run with extra speed.

    Parameters
    ----------
    epsilon : float
        Workers run (1 + epsilon) times as fast.
    times : ndarray, shape (J,)
        Completion minus arrival of each job, slots (real).
    dispatches : tuple of Dispatch
        Where each job's chunks went.
    point : RunDual
        The dual point with the corrected alpha''.
    bound : float
        Lower bound on (2) that the point proves; meaningful for epsilon > 0.
    slack : float
        Smallest slack of (6a): the point is feasible if it is not negative.
    average_flow : float
        Sum of ``(c_jd - r_j) / D_j``, what A_greedy minimises.
    """

    epsilon: float
    times: Floats
    dispatches: tuple[Dispatch, ...]
    point: RunDual
    bound: float
    slack: float
    average_flow: float

    @property
    def total(self) -> float:
        """Total job completion time, slots."""
        return float(self.times.sum())


def run_with_speed(
    instance: EdgecloudInstance,
    epsilon: float,
    *,
    increment: Increment = "printed",
    escape: bool = False,
    use_cloud: bool = True,
    whole_slots: bool = False,
) -> SpeedRun:
    """Run A_online (or a variant) with (1 + epsilon) speed.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    epsilon : float
        Extra speed, at least 0.
    increment, escape, use_cloud
        The variant, see `Dispatcher`.
    whole_slots : bool
        Take the rounded processing times of the slotted model before dividing by the speed.

    Raises
    ------
    InputError
        For a negative epsilon.
    """
    if not 0 <= epsilon < math.inf:
        raise InputError("epsilon", epsilon, "must be at least 0")
    speed = 1.0 + epsilon
    dispatcher = Dispatcher(instance.with_jobs(()), increment, escape, use_cloud)
    edge, cloud = _work(instance, whole_slots)
    edge, cloud = edge / speed, cloud / speed
    dispatches: dict[int, Dispatch] = {}
    for j in sorted(range(len(instance.jobs)), key=lambda j: (instance.jobs[j].arrival, j)):
        job = instance.jobs[j]
        dispatcher.queues.advance(float(job.arrival))
        dispatches[j] = dispatcher.place(j, job, float(edge[j]), float(cloud[j]))
    found = tuple(dispatches[j] for j in range(len(instance.jobs)))
    point = _dual_point(instance, dispatches, edge)
    times = np.zeros(len(instance.jobs))
    np.maximum.at(times, point.job, point.end - instance.arrivals[point.job])
    np.maximum.at(times, point.in_cloud, point.cloud_end - instance.arrivals[point.in_cloud])
    bound = dual_bound(instance, point, epsilon)
    slack = worst_slack(instance, point)
    return SpeedRun(epsilon, times, found, point, bound, slack, point.sum_beta(instance))


def _work(instance: EdgecloudInstance, whole_slots: bool) -> tuple[Floats, Floats]:
    if whole_slots:
        return instance.edge_slots.astype(float), instance.cloud_slots.astype(float)
    seconds = instance.slot_seconds
    return (
        np.array([job.exact_chunk_slots(seconds, in_cloud=False) for job in instance.jobs]),
        np.array([job.exact_chunk_slots(seconds, in_cloud=True) for job in instance.jobs]),
    )


def _dual_point(
    instance: EdgecloudInstance, dispatches: dict[int, Dispatch], edge: Floats
) -> RunDual:
    """Carry the dispatches out and keep what the dual needs; in order of dispatch."""
    rows: list[tuple[int, float, float, float, int]] = []
    in_cloud: list[tuple[int, float]] = []
    for j, dispatch in dispatches.items():
        job = instance.jobs[j]
        for _, worker in dispatch.workers:
            ready = float(job.arrival + instance.upload[j, instance.worker_list[worker][0]])
            rows.append((worker, ready, job.chunks * edge[j], edge[j], j))
        in_cloud += [(j, end) for _, _, end in dispatch.cloud]
    table = np.array(rows, dtype=float).reshape(-1, 5)
    workers, owner = table[:, 0].astype(np.int64), table[:, 4].astype(np.int64)
    entry, span = serve(workers, table[:, 1], table[:, 2], table[:, 3])
    end = np.zeros(len(rows))
    np.maximum.at(end, entry, span[:, 1])
    alpha = np.array([dispatches[j].corrected_alpha for j in range(len(instance.jobs))])
    jobs = np.array([j for j, _ in in_cloud], dtype=np.int64)
    ends = np.array([when for _, when in in_cloud], dtype=float)
    return RunDual(alpha, edge, workers, owner, end, jobs, ends)
