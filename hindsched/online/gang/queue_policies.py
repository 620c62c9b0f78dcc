"""The schedulers in use, asked one event at a time.

Each keeps its state in the kernel that also replays whole traces, and decides the same; here it
learns of arrivals and ends as they happen and of durations only if its card says so. A moment of
the kernel is the number of slots that are over: slot t begins at moment t - 1.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.base import JobRecord
from hindsched.instances.gang.instance import KINDS, GangInstance, slots_of
from hindsched.online.protocol import Capabilities, Decision, Environment, OnlineAlgorithm
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import place_names, write_gpus
from hindsched.solvers.families.gang import replay
from hindsched.solvers.kernels.gang import event_queue
from hindsched.solvers.kernels.gang.timeline import FOREVER

FIRST_JOBS = 256  # for which there is room; it doubles


class OnlineQueuePolicy(OnlineAlgorithm):
    """A policy whose state stands in the kernel."""

    name: ClassVar[str]  # among `POLICIES`
    policy: ClassVar[replay.QueuePolicy]
    estimates = 1.0
    threshold_gpu_seconds = 0.0

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        cls.name, cls.policy = name, replay.POLICIES[name]
        cls.card = Capabilities(knows_durations=cls.policy.clairvoyant)
        cls.relaxes_constraints = cls.policy.preemptive

    def relaxes(self, formulation: str) -> bool:
        """Whether it pauses jobs that may not pause."""
        return self.relaxes_constraints and formulation.startswith(KINDS[0])

    def start(self, environment: Environment) -> None:
        """Begin with a free cluster and no jobs."""
        cluster: GangInstance = environment.cluster
        self._instance = cluster
        self._names: list[str] = []
        self._position: dict[str, int] = {}
        self._ended: list[int] = []
        self._threshold = replay.threshold_slots(self.threshold_gpu_seconds, cluster.slot_seconds)
        self._state = event_queue.cluster_state(cluster, FIRST_JOBS, self.policy.discipline)
        self._pass(1, [], [])  # the kernel compiles before a decision is timed

    def completed(self, slot: int, jobs: tuple[str, ...]) -> None:
        """Keep which jobs ended until the step."""
        self._ended = [self._position[name] for name in jobs]

    def wake_up(self) -> int | None:
        """The slot of what the kernel expects next."""
        return None if self._wake == FOREVER else self._wake + 1

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Pass the event to the kernel and give its decisions out as rows."""
        arrived = list(range(len(self._names), len(self._names) + len(arrivals)))
        if arrivals:
            names = [job.name for job in arrivals]
            self._position |= dict(zip(names, arrived, strict=True))
            self._names += names
            self._learn(arrived, arrivals)
        self._pass(slot, self._ended, arrived)
        self._ended = []
        state = self._state
        _, started, stopped = state.counts.tolist()
        rows: dict[str, list[Assignment]] = {
            self._names[job]: [{"to": slot - 1}] for job in state.stopped[:stopped].tolist()
        }
        for job in state.started[:started].tolist():
            place = held(self._instance, state.gpus[job], state.held[job])
            rows.setdefault(self._names[job], []).append({"from": slot, **place})
        return Decision(rows)

    def _learn(self, arrived: list[int], arrivals: tuple[JobRecord, ...]) -> None:
        """Write down what arriving jobs ask for; durations not known are 0."""
        while len(self._names) > self._state.gpus.size:
            self._state = event_queue.enlarged(self._state, self.policy.discipline)
        durations = np.zeros(len(arrivals), dtype=np.int64)
        if self.card.knows_durations:
            seconds = self._instance.slot_seconds
            durations[:] = [int(slots_of(job.duration, seconds)) for job in arrivals]
        gpus = np.array([job.gpus for job in arrivals])
        weights = np.array([job.weight for job in arrivals], dtype=float)
        self._state.gpus[arrived] = gpus
        for position, job in zip(arrived, arrivals, strict=True):
            kinds = self._instance.kinds_of(job)
            self._state.allowed[position] = False
            self._state.allowed[position, kinds] = True
        self._state.key[arrived] = self.policy.key(durations, gpus, weights)
        self._state.expected[arrived] = replay.expected_slots(durations, self.estimates)

    def _pass(self, slot: int, ended: list[int], arrived: list[int]) -> None:
        """Let the event happen; the state says what starts and ends."""
        events = (np.array(jobs, dtype=np.int64) for jobs in (ended, arrived))
        self._wake = event_queue.process_event(
            self._state, slot - 1, self.policy.discipline, self._threshold, *events
        )


def held(instance: GangInstance, gpus: int, by_server: Ints) -> Assignment:
    """What a job holds: its GPUs, by server where jobs stand on some."""
    if not instance.names_places:
        return {"gpus": int(gpus)}
    return write_gpus(instance, place_names(instance), gpus, by_server)


class GangFifo(OnlineQueuePolicy, name="fifo"):
    """Strict first in, first out: a head that does not fit blocks the queue."""


class FifoSkip(OnlineQueuePolicy, name="fifo-skip"):
    """First fit: in order of submission, whoever fits starts."""


class Sjf(OnlineQueuePolicy, name="sjf"):
    """Shortest job first, by duration; whoever fits starts."""


class SmallestFirst(OnlineQueuePolicy, name="smallest-first"):
    """Smallest GPU-seconds first; whoever fits starts."""


class GangWspt(OnlineQueuePolicy, name="wspt"):
    """Smallest GPU-seconds over weight first (Smith 1956); whoever fits starts."""


class Easy(OnlineQueuePolicy, name="easy"):
    """EASY backfilling: later jobs start if they do not delay the head (Lifka 1995).

    Parameters
    ----------
    estimates : float
        The policy expects durations times this factor, at least 1.
    """

    def __init__(self, estimates: float = 1.0) -> None:
        self.estimates = replay.policy_settings(self.name, {"estimates": estimates})["estimates"]


class Conservative(Easy, name="conservative"):
    """Conservative backfilling: nobody delays whoever came before (Mu'alem & Feitelson 2001).

    Parameters
    ----------
    estimates : float
        The policy expects durations times this factor, at least 1.
    """


class GangSrtf(OnlineQueuePolicy, name="srtf"):
    """Shortest remaining time first: pauses and moves jobs, knows durations."""


class Las(OnlineQueuePolicy, name="las"):
    """Least attained service in two queues (Tiresias, NSDI 2019): pauses and moves jobs.

    Parameters
    ----------
    threshold_gpu_seconds : float
        Attained service at which a job leaves the first queue.
    """

    def __init__(self, threshold_gpu_seconds: float = replay.THRESHOLD_GPU_SECONDS) -> None:
        given = {"threshold_gpu_seconds": threshold_gpu_seconds}
        settings = replay.policy_settings(self.name, given)
        self.threshold_gpu_seconds = settings["threshold_gpu_seconds"]


KNOWN_POLICIES = {
    policy.name: policy
    for policy in (
        GangFifo,
        FifoSkip,
        Sjf,
        SmallestFirst,
        GangWspt,
        Easy,
        Conservative,
        GangSrtf,
        Las,
    )
}
