"""The frame of baselines over a `BaselineCluster`, and ``fifo`` and ``drf``."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.online.base import family_online
from hindsched.online.baselines.cluster import Gangs, Placement, ServerCluster
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm


class Baseline(OnlineAlgorithm):
    """A baseline that decides anew at every arrival and completion and holds in between.

    Subclasses say in `reallocate` who holds what; this class keeps progress, gives out one row a
    job and slot, and drops finished jobs. Jobs are kept in the order of arrival.
    """

    gangs: Gangs = "ideal"
    every_slot: bool = False  # decide anew in every slot
    restore_slots: int = 0  # that a job which has run before holds in vain as it resumes or moves

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        family = environment.cluster.family
        build_cluster = family_online(family).build_cluster
        if build_cluster is None:
            raise InputError("family", family, "must be one with a cluster for baselines")
        self.environment, self.cluster = environment, build_cluster(environment)
        self.cluster.gangs = self.gangs
        self.jobs: dict[str, JobRecord] = {}
        self.remaining: dict[str, Fraction] = {}
        self.held: dict[str, Placement] = {}
        self.slot = 0
        self._event = True
        self._restoring: dict[str, int] = {}

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Reallocate if something arrived or finished, then run every holder for one slot."""
        self.slot = slot
        opened = self.cluster.turn(slot, arrivals)
        rejected = []
        for job in arrivals:
            if self.admit(job):
                self.jobs[job.name] = job
                self.remaining[job.name] = self.cluster.work(job)
            else:
                rejected.append(job.name)
        if arrivals or self._event or opened or self.every_slot:
            self.reallocate()
            self._event = False
            for name in self.cluster.leaving(self.jobs, self.held, self.remaining):
                self._drop(name)
        running = {
            name: (self.jobs[name], held) for name, held in self.held.items() if self.runs(name)
        }
        rows = self.cluster.rows(slot, running)
        for name, (job, placement) in running.items():
            self.remaining[name] -= self.cluster.progress(job, placement)
            if self.remaining[name] <= 0:
                self.cluster.finished(job, slot)
                self._drop(name)
        admitted = tuple(job.name for job in arrivals if job.name not in rejected)
        return Decision(rows, admitted, tuple(rejected))

    def _drop(self, name: str) -> None:
        """Forget a job that is over for the baseline."""
        if name in self.held:
            self.cluster.release(self.jobs[name], self.held.pop(name))
        del self.jobs[name], self.remaining[name]
        self._event = True

    def admit(self, job: JobRecord) -> bool:
        """Whether to take an arriving job; every job that the empty cluster can run at all."""
        return self.cluster.can_run(job)

    def runs(self, name: str) -> bool:
        """Whether a job that holds a placement runs in this slot; not while it is restored."""
        left = self._restoring.get(name, 0)
        self._restoring[name] = max(0, left - 1)
        return left == 0

    def placed_anew(self, name: str) -> None:
        """Restore a job that has run before on the placement that it was given now."""
        has_run = self.remaining[name] < self.cluster.work(self.jobs[name])
        self._restoring[name] = self.restore_slots if has_run else 0

    @abstractmethod
    def reallocate(self) -> None:
        """Set `held` through the cluster, or by `release_all`, `resume` and `hold`."""

    def release_all(self) -> dict[str, Placement]:
        """Give everything back; what was held."""
        before = self.held
        for name, placement in before.items():
            self.cluster.release(self.jobs[name], placement)
        self.held = {}
        return before

    def resume(self, name: str, before: dict[str, Placement], width: int | None = None) -> bool:
        """Whether a job holds its former placement again: it is free, and of `width` if given."""
        former = before.get(name)
        if former is None or (width is not None and former.num_workers != width):
            return False
        if not self.cluster.fits(self.jobs[name], former):
            return False
        self.cluster.book(self.jobs[name], former)
        self.held[name] = former
        return True

    def hold(self, name: str, width: int, *, fewer: bool = False) -> bool:
        """Whether a job holds a new placement of so many workers; or else of `fewer`, that fit."""
        place = self.cluster.place_most if fewer else self.cluster.place
        placement = place(self.jobs[name], width) if width else None
        if placement is not None:
            self.held[name] = placement
        return placement is not None


class FixedWidth(Baseline):
    """A baseline whose gangs have as many workers as a setting says."""

    def __init__(self, gangs: Gangs = "ideal") -> None:
        self.gangs = gangs
        # whether the seed can change a decision
        self.randomised = gangs == "drawn"  # type: ignore[misc]


class Fifo(FixedWidth):
    """First in, first out.

    A job has a fixed number of workers, starts when every earlier job has started and its workers
    fit, and runs without pause until its work is done. Nobody overtakes the head of the queue. The
    papers fix the number in a range, as [1, 30] (``gangs="drawn"``). Left out: queues by user or
    partition, and priorities, as cluster managers have them.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    def reallocate(self) -> None:
        """Start waiting jobs in the order of arrival until the head of the queue does not fit."""
        for name, job in self.jobs.items():
            if name not in self.held and not self.hold(name, self.cluster.fixed_workers(job)):
                break


class Drf(Baseline):
    """Dominant resource fairness by progressive filling (Ghodsi et al., NSDI 2011).

    Every job is admitted. At every arrival and completion the allocation is made anew by
    progressive filling: one more worker, with the parameter servers it then needs, goes to the
    unfinished job with the smallest dominant share among those for which one more still fits and
    that have fewer workers than they can use. Ties go to the earlier arrival. Reallocation is
    free.

    Parameters
    ----------
    static : bool
        Fill only what is free, among the jobs that hold nothing: a job that has started keeps its
        placement to its end, so that nothing is paused or resized.
    """

    cluster: ServerCluster

    def __init__(self, static: bool = False) -> None:
        self.static = static
        self.relaxes_constraints = not static and type(self).relaxes_constraints  # type: ignore[misc]

    def reallocate(self) -> None:
        """Fill progressively from nothing, or what is free."""
        if not self.static:
            self.release_all()
        waiting = {name: job for name, job in self.jobs.items() if name not in self.held}
        self.held = {**self.held, **progressive_filling(self.cluster, waiting)}


def progressive_filling(cluster: ServerCluster, jobs: dict[str, JobRecord]) -> dict[str, Placement]:
    """Book workers one by one, always for the smallest dominant share that can still grow.

    What each of `jobs`, which are in the order of arrival, then holds, if anything.
    """
    held: dict[str, Placement] = {}
    share = dict.fromkeys(jobs, 0.0)
    growing = list(jobs)
    while growing:
        name = min(growing, key=share.__getitem__)
        job, present = jobs[name], held.get(name)
        workers = present.num_workers if present else 0
        extended = cluster.extend(job, present) if workers < cluster.max_workers(job) else None
        if extended is None:
            growing.remove(name)  # for good: capacity only shrinks here
            continue
        held[name] = extended
        share[name] = cluster.dominant_share(job, extended.num_workers)
    return held
