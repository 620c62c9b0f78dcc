"""The schedulers in use, asked one event at a time.

Each keeps its state in the kernels that also replay whole traces, and decides the same; here it
learns of arrivals and ends as they happen and of durations only if its card says so. A moment of
the kernels is the number of slots that are over: slot t begins at moment t - 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import JobRecord
from hindsched.instances.gang.instance import KINDS, GangInstance, slots_of
from hindsched.online.protocol import Capabilities, Decision, Environment, OnlineAlgorithm
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.gang.replay import (
    POLICIES,
    THRESHOLD_GPU_SECONDS,
    Policy,
    expected_slots,
    policy_settings,
    threshold_slots,
)
from hindsched.solvers.kernels.gang import preemption, queueing, reservations
from hindsched.solvers.kernels.gang.orders import FOREVER
from hindsched.solvers.kernels.gang.queueing import Cluster, cluster_sizes, most_places

FIRST_JOBS = 256  # for which there is room; it doubles
NO_JOBS = np.zeros(0, dtype=np.int64)
Rows = dict[str, list[Assignment]]


class ReplayedPolicy(OnlineAlgorithm):
    """A policy whose state stands in a kernel."""

    name: ClassVar[str]  # among `POLICIES`; absent for one of another kind
    policy: ClassVar[Policy]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "name"):
            cls.policy = POLICIES[cls.name]
            cls.card = Capabilities(knows_durations=cls.policy.clairvoyant)

    def start(self, environment: Environment) -> None:
        """Begin with a free cluster and no jobs."""
        cluster: GangInstance = environment.cluster
        self._instance = cluster
        self._names: list[str] = []
        self._position: dict[str, int] = {}
        self._ended: list[int] = []
        self._wake: int | None = None
        self._sizes = cluster_sizes(cluster)
        self._begin(np.zeros(FIRST_JOBS, dtype=np.int64))
        self._pass(1, NO_JOBS, NO_JOBS)  # the kernel compiles before a decision is timed

    def completed(self, slot: int, jobs: tuple[str, ...]) -> None:
        """Keep which jobs ended until the step."""
        self._ended = [self._position[name] for name in jobs]

    def wake_up(self) -> int | None:
        """The slot of what the kernel expects next."""
        return self._wake

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Pass the event to the kernel and give its decisions out as rows."""
        arrived = NO_JOBS
        if arrivals:
            arrived = np.arange(len(self._names), len(self._names) + len(arrivals))
            for index, job in zip(arrived.tolist(), arrivals, strict=True):
                self._position[job.name] = index
                self._names.append(job.name)
            gpus = np.array([job.gpus for job in arrivals])
            weights = np.array([job.weight for job in arrivals], dtype=float)
            self._make_room(len(self._names), gpus)
            durations = np.zeros(len(arrivals), dtype=np.int64)
            if self.card.knows_durations:
                seconds = self._instance.slot_seconds
                durations[:] = [int(slots_of(job.duration, seconds)) for job in arrivals]
            self._learn(arrived, gpus, durations, weights)
        ended = np.array(self._ended, dtype=np.int64) if self._ended else NO_JOBS
        self._ended = []
        return Decision(self._pass(slot, ended, arrived))

    @abstractmethod
    def _begin(self, empty: Ints) -> None:
        """Make the state, with room for as many jobs as `empty` is long."""

    @abstractmethod
    def _make_room(self, jobs: int, gpus: Ints) -> None:
        """Enlarge the state where the present event could need more, new gangs of `gpus`."""

    @abstractmethod
    def _learn(self, arrived: Ints, gpus: Ints, durations: Ints, weights: Floats) -> None:
        """Write down what arriving jobs ask for; durations not known are 0."""

    @abstractmethod
    def _pass(self, slot: int, ended: Ints, arrived: Ints) -> Rows:
        """Let the event happen; rows of what starts and ends."""

    def _started(self, slot: int, cluster: Cluster, gpus: Ints, jobs: Sequence[int]) -> Rows:
        """Open rows of jobs that the kernel has placed."""
        return {
            self._names[job]: [{"from": slot, **held(self._instance, cluster, job, gpus[job])}]
            for job in jobs
        }


def held(instance: GangInstance, cluster: Cluster | None, job: int, gpus: int) -> Assignment:
    """What a job that stands somewhere holds: its GPUs, by server where jobs have some."""
    if cluster is None or not instance.is_consolidated:
        return {"gpus": int(gpus)}
    at = range(cluster.offset[job], cluster.offset[job] + cluster.number[job])
    servers = instance.servers or ()
    names = [servers[cluster.server[place]].name for place in at]
    return {"servers": {n: int(cluster.held[place]) for n, place in zip(names, at, strict=True)}}


class QueuePolicy(ReplayedPolicy):
    """One queue, by the policy's key."""

    estimates = 1.0

    def _begin(self, empty: Ints) -> None:
        self._queue = queueing.empty_queue(self._sizes, empty.astype(float), empty, empty.copy())

    def _make_room(self, jobs: int, gpus: Ints) -> None:
        queue = self._queue
        size, places = queue.gpus.size, queue.cluster.server.size
        most = 2 * int(self._sizes.sum()) + self._sizes.size  # what one event can write down
        if jobs > size or int(queue.cluster.used[0]) + most > places:
            self._queue = queueing.enlarged_queue(queue, max(jobs, 2 * size), 2 * places + most)

    def _learn(self, arrived: Ints, gpus: Ints, durations: Ints, weights: Floats) -> None:
        self._queue.gpus[arrived] = gpus
        self._queue.key[arrived] = self.policy.key(durations, gpus, weights)
        self._queue.expected[arrived] = expected_slots(durations, self.estimates)

    def _pass(self, slot: int, ended: Ints, arrived: Ints) -> Rows:
        self._make_room(len(self._names), NO_JOBS)
        queue = self._queue
        number = queueing.pass_event(queue, slot - 1, self.policy.way, ended, arrived)
        return self._started(slot, queue.cluster, queue.gpus, queue.started[:number].tolist())


class Fifo(QueuePolicy):
    """Strict first in, first out: a head that does not fit blocks the queue."""

    name = "fifo"


class FifoSkip(QueuePolicy):
    """First fit: in order of submission, whoever fits starts."""

    name = "fifo-skip"


class Sjf(QueuePolicy):
    """Shortest job first, by duration; whoever fits starts."""

    name = "sjf"


class SmallestFirst(QueuePolicy):
    """Smallest GPU-seconds first; whoever fits starts."""

    name = "smallest-first"


class Wspt(QueuePolicy):
    """Smallest GPU-seconds over weight first (Smith 1956); whoever fits starts."""

    name = "wspt"


class Easy(QueuePolicy):
    """EASY backfilling: later jobs start if they do not delay the head (Lifka 1995).

    Parameters
    ----------
    estimates : float
        The policy expects durations times this factor, at least 1.
    """

    name = "easy"

    def __init__(self, estimates: float = 1.0) -> None:
        self.estimates = policy_settings(self.name, {"estimates": estimates})["estimates"]


class Conservative(ReplayedPolicy):
    """Conservative backfilling: nobody delays whoever came before (Mu'alem & Feitelson 2001).

    Parameters
    ----------
    estimates : float
        The policy expects durations times this factor, at least 1.
    """

    name = "conservative"

    def __init__(self, estimates: float = 1.0) -> None:
        self.estimates = policy_settings(self.name, {"estimates": estimates})["estimates"]

    def _begin(self, empty: Ints) -> None:
        self._plan = reservations.empty_plan(self._sizes, empty, empty.copy())

    def _make_room(self, jobs: int, gpus: Ints) -> None:
        plan = self._plan
        size, places = plan.gpus.size, plan.cluster.server.size
        used = int(plan.cluster.used[0]) + int(most_places(self._sizes, gpus).sum())
        if jobs > size or used + self._sizes.size > places:
            self._plan = reservations.enlarged_plan(
                plan, max(jobs, 2 * size), 2 * max(places, used + self._sizes.size)
            )

    def _learn(self, arrived: Ints, gpus: Ints, durations: Ints, weights: Floats) -> None:
        self._plan.gpus[arrived] = gpus
        self._plan.expected[arrived] = expected_slots(durations, self.estimates)

    def _pass(self, slot: int, ended: Ints, arrived: Ints) -> Rows:
        plan = self._plan
        number, following = reservations.pass_event(plan, slot - 1, ended, arrived)
        self._wake = None if following == FOREVER else int(following) + 1
        return self._started(slot, plan.cluster, plan.gpus, plan.started[:number].tolist())


class RankingPolicy(ReplayedPolicy):
    """All jobs ranked anew at every event; whoever has no room any more is paused."""

    relaxes_constraints = True
    threshold_gpu_seconds = 0.0

    def relaxes(self, formulation: str) -> bool:
        """Whether jobs may not pause."""
        return formulation.startswith(KINDS[0])

    def start(self, environment: Environment) -> None:
        """Begin with a free cluster."""
        seconds = environment.cluster.slot_seconds
        self._threshold = threshold_slots(self.threshold_gpu_seconds, seconds)
        super().start(environment)

    def _begin(self, empty: Ints) -> None:
        self._ranks = preemption.empty_ranks(self._sizes, empty, empty.copy())

    def _make_room(self, jobs: int, gpus: Ints) -> None:
        if jobs > self._ranks.gpus.size:
            size = max(jobs, 2 * self._ranks.gpus.size)
            self._ranks = preemption.enlarged_ranks(self._ranks, size)

    def _learn(self, arrived: Ints, gpus: Ints, durations: Ints, weights: Floats) -> None:
        self._ranks.gpus[arrived] = gpus
        self._ranks.duration[arrived] = durations

    def _pass(self, slot: int, ended: Ints, arrived: Ints) -> Rows:
        ranks, way = self._ranks, self.policy.way
        crossing = preemption.pass_event(ranks, slot - 1, way, self._threshold, ended, arrived)
        self._wake = None if crossing == FOREVER else crossing + 1
        stopped, started = ranks.sizes[1:3].tolist()
        rows: Rows = {
            self._names[job]: [{"to": slot - 1}] for job in ranks.stopped[:stopped].tolist()
        }
        begun = self._started(slot, ranks.cluster, ranks.gpus, ranks.started[:started].tolist())
        for name, given in begun.items():
            rows.setdefault(name, []).extend(given)
        return rows


class Srtf(RankingPolicy):
    """Shortest remaining time first: pauses and moves jobs, knows durations."""

    name = "srtf"


class Las(RankingPolicy):
    """Least attained service in two queues (Tiresias, NSDI 2019): pauses and moves jobs.

    Parameters
    ----------
    threshold_gpu_seconds : float
        Attained service at which a job leaves the first queue.
    """

    name = "las"

    def __init__(self, threshold_gpu_seconds: float = THRESHOLD_GPU_SECONDS) -> None:
        given = {"threshold_gpu_seconds": threshold_gpu_seconds}
        self.threshold_gpu_seconds = policy_settings(self.name, given)["threshold_gpu_seconds"]


KNOWN_POLICIES = {
    policy.name: policy
    for policy in (Fifo, FifoSkip, Sjf, SmallestFirst, Wspt, Easy, Conservative, Srtf, Las)
}
"""All of them by name."""
