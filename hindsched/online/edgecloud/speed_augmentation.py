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

    Of each job the alpha of its chunks and the processing time of one at the edge; of each edge
    chunk the worker, its job and when it ended, in slots since the beginning of slot 0; of each
    chunk in the cloud its job and when it ended.
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
        jobs = np.concatenate([self.job, self.in_cloud])
        flow = np.concatenate([self.end, self.cloud_end]) - instance.arrivals[jobs]
        return float((flow / instance.chunks[jobs]).sum())


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
        ``sum alpha - sum beta / (1 + epsilon)``, Theorem 3's dual objective (11): a lower bound on
        (2) for epsilon > 0 if the slack is not negative.
    slack : float
        Smallest slack of (6a): the point is feasible if it is not negative.
    average_flow : float
        Sum of ``(c_jd - r_j) / D_j``, what A_greedy minimises.
    fractional_flow : float
        What ILP (4) minimises, of this run: ``(t - r_j) / (D_j p_j)`` summed over the time t in
        which chunks are served, p at the run's speed; a stretch counts with its middle.
    """

    epsilon: float
    times: Floats
    dispatches: tuple[Dispatch, ...]
    point: RunDual
    bound: float
    slack: float
    average_flow: float
    fractional_flow: float

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
    dispatcher = Dispatcher(instance.with_jobs(()), increment, escape, use_cloud)
    edge, cloud = instance.edge_slots.astype(float), instance.cloud_slots.astype(float)
    if not whole_slots:
        edge, cloud = (
            np.array(
                [j.exact_chunk_slots(instance.slot_seconds, in_cloud=c) for j in instance.jobs]
            )
            for c in (False, True)
        )
    edge, cloud = edge / (1.0 + epsilon), cloud / (1.0 + epsilon)
    dispatches: dict[int, Dispatch] = {}
    for j in sorted(range(len(instance.jobs)), key=lambda j: (instance.jobs[j].arrival, j)):
        job = instance.jobs[j]
        dispatcher.queues.advance(float(job.arrival))
        dispatches[j] = dispatcher.place(j, job, float(edge[j]), float(cloud[j]))
    point, fractional = _dual_point(instance, dispatches, edge)
    jobs = np.concatenate([point.job, point.in_cloud])
    ends = np.concatenate([point.end, point.cloud_end])
    times = np.zeros(len(instance.jobs))
    np.maximum.at(times, jobs, ends - instance.arrivals[jobs])
    flow = point.sum_beta(instance)
    bound = float((point.alpha * instance.chunks).sum()) - flow / (1.0 + epsilon)
    found = tuple(dispatches[j] for j in range(len(instance.jobs)))
    slack = worst_slack(instance, point)
    return SpeedRun(epsilon, times, found, point, bound, slack, flow, fractional)


def _dual_point(
    instance: EdgecloudInstance, dispatches: dict[int, Dispatch], edge: Floats
) -> tuple[RunDual, float]:
    """Carry the dispatches out, keep what the dual needs, and add up the fractional flow."""
    rows: list[tuple[int, float, float, float, int]] = []
    in_cloud: list[tuple[int, float]] = []
    fractional = 0.0
    for j, dispatch in dispatches.items():
        job = instance.jobs[j]
        for _, worker in dispatch.workers:
            ready = float(job.arrival + instance.upload[j, instance.worker_list[worker][0]])
            rows.append((worker, ready, job.chunks * edge[j], edge[j], j))
        in_cloud += [(j, end) for _, _, end in dispatch.cloud]
        middles = [(begin + end) / 2 for _, begin, end in dispatch.cloud]
        fractional += sum(middle - job.arrival for middle in middles) / job.chunks
    table = np.array(rows, dtype=float).reshape(-1, 5)
    workers, owner = table[:, 0].astype(np.int64), table[:, 4].astype(np.int64)
    entry, span = serve(workers, table[:, 1], table[:, 2], table[:, 3])
    end = np.zeros(len(rows))
    np.maximum.at(end, entry, span[:, 1])
    served = owner[entry]
    late = (span[:, 0] + span[:, 1]) / 2 - instance.arrivals[served]
    share = (span[:, 1] - span[:, 0]) / (edge[served] * instance.chunks[served])
    fractional += float((late * share).sum())
    alpha = np.array([dispatches[j].corrected_alpha for j in range(len(instance.jobs))])
    jobs = np.array([j for j, _ in in_cloud], dtype=np.int64)
    ends = np.array([when for _, when in in_cloud], dtype=float)
    return RunDual(alpha, edge, workers, owner, end, jobs, ends), fractional
