"""``drf``, ``antman`` and ``wspt``: what batchsched's baselines have of their own."""

from __future__ import annotations

from statistics import median
from typing import Literal

from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.modes import Modes, modes
from hindsched.online import protocol
from hindsched.online.baselines.baseline import Baseline, Drf
from hindsched.online.baselines.cluster import Gangs
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.families.batchsched.list_schedule import list_jobs


class BatchschedDrf(Drf):
    """`Drf`, which resizes and moves jobs that may not."""

    relaxes_constraints = True


class AntMan(Baseline):
    """Resource-guarantee jobs run as gangs in order of arrival; opportunistic jobs fill up.

    After the description in batchsched's paper and general knowledge; the full text (Xiao et al.,
    OSDI 2020) was not at hand. Left out: that an opportunistic job shares the GPU of a guaranteed
    one, on memory and kernels that it leaves idle; here a worker is one job's at a time.

    A job is guaranteed if the file says so (``resource_guarantee``), else by the chosen rule.
    Guaranteed jobs start in the order of arrival with their fixed number of workers, never
    pause and never wait for an opportunistic job: opportunistic jobs are shrunk or suspended
    (keeping their progress) before a guaranteed job is placed. An opportunistic job takes as many
    workers as fit now, up to its own maximum, in the order of arrival, at every event. A guaranteed
    job that has waited longer than `patience` slots becomes opportunistic for good.

    Parameters
    ----------
    rule : {"draw", "weight"}
        A draw from (seed, job name), or the job's weight: guaranteed from the median of the jobs
        seen so far on.
    guaranteed : float
        Share of guaranteed jobs among those that are drawn.
    patience : int
        Slots that a guaranteed job waits in the queue.
    restore_slots : int
        Slots that a suspended job holds its workers in vain when it resumes; 0 for free
        preemption. Shrinking and growing cost nothing.
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    relaxes_constraints = True
    randomised = True

    def __init__(
        self, guaranteed: protocol.Share = 0.5, patience: protocol.Natural = 10,
        rule: Literal["draw", "weight"] = "draw", restore_slots: protocol.Natural = 0,
        gangs: Gangs = "ideal",
    ) -> None:  # fmt: skip
        self.gangs, self.restore_slots = gangs, restore_slots
        self.guaranteed, self.patience, self.rule = guaranteed, patience, rule

    def start(self, environment: protocol.Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._class: dict[str, bool] = {}
        self._weights: list[float] = []

    def is_guaranteed(self, name: str) -> bool:
        """Whether a job is in the guaranteed class now."""
        if name not in self._class:
            guaranteed = self.jobs[name].resource_guarantee
            if guaranteed is None and self.rule == "weight":
                guaranteed = self.jobs[name].weight >= median(self._weights)
            elif guaranteed is None:
                draw = protocol.draws(self.environment.seed, name, "guarantee").random()
                guaranteed = draw < self.guaranteed
            self._class[name] = bool(guaranteed)
        return self._class[name]

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> protocol.Decision:
        """Rank anew also when a guaranteed job's patience ends."""
        self._weights += [float(job.weight) for job in arrivals]
        for name, job in self.jobs.items():
            waited = slot - job.arrival
            if name not in self.held and self.is_guaranteed(name) and waited > self.patience:
                self._class[name] = False
                self._event = True
        return super().step(slot, arrivals)

    def reallocate(self) -> None:
        """Guaranteed jobs in the order of arrival, then the others on what is left."""
        before = set(self.held)
        guaranteed = {name for name in self.jobs if self.is_guaranteed(name)}
        for name in before - guaranteed:
            self.cluster.release(self.jobs[name], self.held.pop(name))
        for name, job in self.jobs.items():
            waits = name in guaranteed and name not in self.held
            if waits and not self.hold(name, self.cluster.fixed_workers(job)):
                break
        for name, job in self.jobs.items():
            if name not in guaranteed:
                self.hold(name, self.cluster.max_workers(job), fewer=True)
        for name in self.held.keys() - before:
            self.placed_anew(name)


class Wspt(protocol.OnlineAlgorithm):
    """Weighted shortest processing time first, non-preemptive, worker counts chosen.

    At each arrival all jobs that have not started are planned anew in descending order of weight
    over shortest duration (ties: order of arrival), each at its earliest completion on what is
    left; a job starts when its plan says so and then keeps its window and placement. The plan is
    a list schedule, so no job waits while it could complete no later without moving one that is
    denser.
    """

    def start(self, environment: protocol.Environment) -> None:
        """Begin with an empty cluster."""
        self.cluster: BatchschedInstance = environment.cluster
        self._running: list[WindowRow] = []
        self._waiting: list[JobRecord] = []
        self._modes: dict[str, Modes] = {}
        self._plan: dict[str, WindowRow] = {}

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> protocol.Decision:
        """Plan again if jobs arrived; start what is planned to start now."""
        for job in arrivals:
            self._modes[job.name] = modes(self.cluster, job)
        if arrivals:
            self._waiting += arrivals
            self._running = [row for row in self._running if row.last >= slot]
            self._waiting.sort(key=self._density, reverse=True)  # ties: by arrival
            self._plan = list_jobs(self.cluster, self._waiting, self._modes, self._running, slot)
        rows = {}
        for job in list(self._waiting):
            if self._plan[job.name].first == slot:
                row = self._plan.pop(job.name)
                rows[job.name] = [BatchschedSolution.write_row(self.cluster, row)]
                self._running.append(row)
                self._waiting.remove(job)
        return protocol.Decision(rows, tuple(rows)) if rows else protocol.NOTHING

    def _density(self, job: BatchschedJob) -> float:
        return float(job.weight) / int(self._modes[job.name].duration.min())
