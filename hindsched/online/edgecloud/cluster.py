"""The edge as slot-by-slot baselines see it: workers by type, parameter servers (PSs), the cloud.

A job's work is counted in chunk-slots and spread over any workers whose servers have its data: it
may move, which problem (2) without migration forbids, and moving costs no second upload.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.baselines.ranked import Ranked, ShortestRemaining, TiresiasL
from hindsched.online.dynamics import Cluster, Gangs, Placement, gang_width
from hindsched.online.edgecloud.resources import (
    CloudSite,
    ParameterServers,
    Running,
    StorageLedger,
    no_room,
    run_changes,
    whole_job_rows,
)
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import place_name

Offload = Literal["narrow", "waiting", "never"]


class EdgecloudCluster(Cluster[EdgecloudJob]):
    """First free workers in the order of the servers, and any free PS.

    To the cloud go jobs that no edge worker can serve, and by `offload` ``narrow``: a job that
    holds fewer workers than it can use, once its data is there; as a whole, at the rate of zeta =
    1, if it has not begun; else with what it has left, at the rate of zeta = 0, if the cloud is
    unlimited. ``waiting``: a job that finds no workers when all its data is at the edge.
    """

    offload: Offload = "narrow"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.instance: EdgecloudInstance = environment.cluster
        self._free = [True] * len(self.instance.worker_list)
        self._kinds = list(self.instance.workers_by_type)
        self._ps_kinds = sorted({kind for _, kind in self.instance.ps_counts})
        self._ps = ParameterServers(self.instance)
        self._ps_totals = {kind: self._ps.count(kind) for kind in self._ps_kinds}
        self._ps_booked: Counter[str] = Counter()  # jobs with workers, whether they have a PS yet
        self._site = CloudSite(self.instance, self._ps)
        self._storage = StorageLedger(self.instance)
        self._most: dict[str, int] = {}
        self._reserved: dict[str, dict[int, int]] = {}
        self._chunks: dict[str, dict[int, int]] = {}  # of running jobs: worker -> chunk
        self._current: Running = {}
        self._opens: set[int] = set()
        self._rows: dict[str, list[Assignment]] = {}
        self._slot = 0

    # Time

    def turn(self, slot: int, arrivals: Sequence[EdgecloudJob]) -> bool:
        """Begin a slot: uploads that end and what changes in the cloud open room."""
        self._slot, self._rows = slot, {}
        for job in arrivals:
            self._arrive(job)
        opened = slot in self._opens or slot in self._site.events
        self._site.release(slot)
        return opened

    def _arrive(self, job: EdgecloudJob) -> None:
        qualified = len(self.instance.workers_by_type.get(job.worker_type, ()))
        most = min(job.chunks, qualified)
        most = gang_width(self.gangs, lambda: self.drawn_workers(job), most)
        most, self._reserved[job.name] = self._storage.reserve(job, self._slot, most)
        if not most and not self.instance.has_cloud(job):
            raise no_room(job)
        self._most[job.name] = most
        self._opens.update(job.arrival + slots for slots in job.upload_slots.values())

    def leaving(
        self,
        jobs: Mapping[str, EdgecloudJob], held: Mapping[str, Placement],
        left: Mapping[str, Fraction],
    ) -> Collection[str]:  # fmt: skip
        """Jobs that the cloud serves from now on."""
        gone = []
        for name, job in jobs.items():
            width = held[name].num_workers if name in held else 0
            begun = left[name] < self.work(job)
            endless = self.instance.cloud_workers(job.worker_type) is None
            endless = endless and self.instance.cloud_ps(job.ps_type) is None
            if not self._may_leave(job, width, begun):
                continue
            if not begun and (endless or not width):
                self._site.add(self._slot, job)
            elif endless:
                last = self._slot + math.ceil(left[name] / job.chunks) - 1
                spans = [(self._slot, last)] * job.chunks
                self._rows[name] = whole_job_rows(self.instance, spans, self._ps.cloud)
            else:
                continue
            self._storage.end(name, self._slot - 1 if begun else 0)
            gone.append(name)
        return gone

    def _may_leave(self, job: EdgecloudJob, width: int, begun: bool) -> bool:
        most, cloud = self._most[job.name], self.instance.cloud.name
        if (width and width >= most) or not self.instance.has_cloud(job):
            return False
        if not most:
            return True
        if self.offload == "narrow":
            return self._is_ready(job, cloud)
        servers = (self.instance.servers[s].name for s, _ in self.instance.places(job))
        waits = not width and not begun and all(self._is_ready(job, name) for name in servers)
        return self.offload == "waiting" and waits

    def _is_ready(self, job: EdgecloudJob, server: str) -> bool:
        """Whether a server has the job's data."""
        return job.arrival + job.upload_slots[server] <= self._slot

    def finished(self, job: EdgecloudJob, slot: int) -> None:
        """The job's storage is free after `slot`."""
        self._storage.end(job.name, slot)

    # Places: PSs are counted by type here, and bound when `rows` says who runs

    def place(self, job: EdgecloudJob, workers: int) -> Placement | None:
        """Book the first free workers whose server has the job's data, and a PS."""
        found = self._pick(job, [], workers)
        if len(found) < workers or not self._has_ps(job):
            return None
        placement = self._placement(found)
        self.book(job, placement)
        return placement

    def extend(self, job: EdgecloudJob, placement: Placement | None) -> Placement | None:
        """Book one more worker, and a PS for the first."""
        if placement is None:
            return self.place(job, 1)
        held = placement.facts["workers"]
        found = self._pick(job, held, 1)
        if not found:
            return None
        self._free[found[0]] = False
        return self._placement(sorted([*held, *found]))

    def _placement(self, workers: list[int]) -> Placement:
        places = (self.instance.worker_list[worker][0] for worker in workers)
        counts = Counter(self.instance.servers[s].name for s in places)
        return Placement(dict(counts), facts={"workers": workers})

    def _has_ps(self, job: EdgecloudJob) -> bool:
        kind = job.ps_type
        bound = sum(self._ps.held[name][0] == kind for name in self._chunks)
        return self._ps.count(kind) > self._ps_booked[kind] - bound

    def _pick(self, job: EdgecloudJob, held: list[int], more: int) -> list[int]:
        found: list[int] = []
        servers = [self.instance.worker_list[worker][0] for worker in held]
        for s, members in self.instance.places(job):
            if not self._is_ready(job, self.instance.servers[s].name):
                continue
            free = [worker for worker in members if self._free[worker]]
            limit = self._reserved[job.name].get(s)
            found += free if limit is None else free[: limit - servers.count(s)]
            if len(found) >= more:
                break
        return found[:more]

    def book(self, job: EdgecloudJob, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        self._ps_booked[job.ps_type] += 1
        for worker in placement.facts["workers"]:
            self._free[worker] = False

    def release(self, job: EdgecloudJob, placement: Placement) -> None:
        """Give a placement back."""
        self._ps_booked[job.ps_type] -= 1
        for worker in placement.facts["workers"]:
            self._free[worker] = True

    def fits(self, job: EdgecloudJob, placement: Placement) -> bool:
        """Whether a placement fits what is free now."""
        return self._has_ps(job) and all(self._free[w] for w in placement.facts["workers"])

    # Facts

    def work(self, job: EdgecloudJob) -> Fraction:
        """Chunk-slots on workers of the edge."""
        return Fraction(job.chunks * job.chunk_slots(self.instance.slot_seconds, in_cloud=False))

    def progress(self, job: EdgecloudJob, placement: Placement) -> Fraction:
        """A worker does one chunk-slot a slot."""
        return Fraction(placement.num_workers)

    def speed(self, job: EdgecloudJob, workers: int) -> float:
        """A worker does one chunk-slot a slot."""
        return float(workers)

    def max_workers(self, job: EdgecloudJob) -> int:
        """Workers of the job's type at the edge, by `gangs` and at most what storage allows."""
        return self._most[job.name]

    fixed_workers = max_workers

    def can_run(self, job: EdgecloudJob) -> bool:
        """Every job can: where the edge has nothing for it the cloud does."""
        return True

    def drawn_workers(self, job: EdgecloudJob) -> int:
        """Requested in the file, else one a chunk."""
        return job.requested_workers or job.chunks

    def shares(self, job: EdgecloudJob, workers: int) -> Floats:
        """Share of the edge's workers of each type, then of its PSs of each type."""
        found = np.zeros(len(self._kinds) + len(self._ps_kinds))
        if job.worker_type in self._kinds:
            qualified = len(self.instance.workers_by_type[job.worker_type])
            found[self._kinds.index(job.worker_type)] = workers / qualified
        total = self._ps_totals.get(job.ps_type, 0.0)
        if workers and job.ps_type in self._ps_kinds and total:
            found[len(self._kinds) + self._ps_kinds.index(job.ps_type)] = 1 / total
        return found

    # Rows

    def row(self, job: EdgecloudJob, placement: Placement, first: int, last: int) -> Assignment:
        """Not one row but several, see `rows`."""
        raise TypeError("a placement at the edge is several rows")

    def rows(
        self, slot: int, running: Mapping[str, tuple[EdgecloudJob, Placement]]
    ) -> dict[str, list[Assignment]]:
        """Runs that end and begin, PSs, and what begins in the cloud."""
        for name in [name for name in self._chunks if name not in running]:
            del self._chunks[name]
            self._ps.give_back(name)
        for name, (job, placement) in running.items():
            held = self._chunks.get(name, {})
            kept = {worker: held[worker] for worker in placement.facts["workers"] if worker in held}
            unused = iter(sorted(set(range(1, job.chunks + 1)) - set(kept.values())))
            self._chunks[name] = {
                worker: kept[worker] if worker in kept else next(unused)
                for worker in placement.facts["workers"]
            }
        now = {
            worker: (name, chunk)
            for name, chunks in self._chunks.items() for worker, chunk in chunks.items()
        }  # fmt: skip
        parts = [self._rows, run_changes(self.instance, slot, self._current, now)]
        self._current = now
        for name, (job, _) in running.items():
            if name not in self._ps.held:
                place = self._ps.take(name, job, slot)
                assert place is not None, "a PS was counted for it"
                parts.append({name: [{"ps": place_name(self.instance, place), "from": slot}]})
        self._site.events.discard(slot)
        parts.append(self._site.start(slot))
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: [row for part in parts for row in part.get(name, ())] for name in names}


build_cluster = EdgecloudCluster


class _AtTheEdge(Ranked):
    """Gangs that run at the edge all together or not, and may leave for the cloud."""

    cloud: bool

    def start(self, environment: Environment) -> None:
        """Begin with an idle edge."""
        super().start(environment)
        self.cluster.offload = "waiting" if self.cloud else "never"  # type: ignore[attr-defined]


class Srtf(_AtTheEdge, ShortestRemaining):
    """Shortest remaining time first, over gangs of edge workers that run all together or not.

    Parameters
    ----------
    cloud : bool
        Send a job that finds no free gang when its data arrives to the cloud as a whole. Without,
        only jobs whose type has no edge worker go there.
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True

    def __init__(self, cloud: bool = True, gangs: Gangs = "ideal") -> None:
        super().__init__(elastic=False, gangs=gangs)
        self.cloud = cloud


class EdgeTiresiasL(_AtTheEdge, TiresiasL):
    """Least attained service in queues, over gangs of edge workers.

    Parameters
    ----------
    limits, promotion
        As in `TiresiasL`; the limit is the authors' 3250 worker-seconds.
    cloud, gangs
        As in `Srtf`.
    """

    def __init__(
        self,
        limits: Sequence[float] = (3250 / 3600,),
        promotion: float = 0.0,
        cloud: bool = True,
        gangs: Gangs = "ideal",
    ) -> None:
        TiresiasL.__init__(self, limits, promotion, 0, gangs)
        self.cloud = cloud
