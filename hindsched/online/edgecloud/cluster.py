"""The edge as slot-by-slot rivals see it: workers by type, parameter servers (PSs), the cloud.

A job's work is counted in chunk-slots and spread over any of its workers: it may move, which
problem (2) without migration forbids, and moving costs no second upload. A worker can serve a job
once its server has the job's data. A job that holds fewer workers than it can use goes to the cloud
as soon as its data is there: as a whole, at the rate of zeta = 1, if it has not begun; with what it
has left, at the rate of zeta = 0, if it has and the cloud is unlimited.

Where storage is limited a job reserves it on arrival, see `hindsched.online.edgecloud.storage`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import Refused
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.dynamics import Cluster, Placement
from hindsched.online.edgecloud.cloud_site import CloudSite, whole_job_rows
from hindsched.online.edgecloud.ps import ParameterServers, place_name
from hindsched.online.edgecloud.storage import StorageLedger
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment


class EdgecloudCluster(Cluster[EdgecloudJob]):
    """First free workers in the order of the servers, and any free PS."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        assert isinstance(environment.cluster, EdgecloudInstance)
        self.instance = environment.cluster
        self._free = [True] * len(self.instance.worker_list)
        self._kinds = list(self.instance.workers_by_type)
        self._ps_kinds = sorted({kind for _, kind in self.instance.ps_counts})
        self._ps: ParameterServers[str] = ParameterServers(self.instance)
        self._site = CloudSite(self.instance, self._ps)
        self._storage = StorageLedger(self.instance)
        self._most: dict[str, int] = {}
        self._reserved: dict[str, dict[int, int]] = {}
        self._running: dict[str, tuple[dict[int, int], tuple[str, int]]] = {}
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
        most, self._reserved[job.name] = min(job.chunks, qualified), {}
        if self._storage.limited and job.chunk_gb:
            self._storage.forget_before(self._slot)
            most, self._reserved[job.name] = self._storage.reserve(job, self._slot, most)
        if not most and not self.instance.has_cloud(job):
            detail = "no server has room, and the cloud has no worker for it"
            raise Refused("(7b)", f"job {job.name}", detail)
        self._most[job.name] = most
        self._opens.update(job.arrival + slots for slots in job.upload_slots.values())

    def leaving(
        self,
        jobs: Mapping[str, EdgecloudJob],
        held: Mapping[str, Placement],
        left: Mapping[str, Fraction],
    ) -> Collection[str]:
        """Jobs that the cloud serves from now on, since they hold fewer workers than they can."""
        gone = []
        for name, job in jobs.items():
            width = held[name].num_workers if name in held else 0
            most, cloud = self._most[name], self.instance.cloud.name
            if (width and width >= most) or not self.instance.has_cloud(job):
                continue
            if most and job.arrival + job.upload_slots[cloud] > self._slot:
                continue
            endless = self.instance.cloud_workers(job.worker_type) is None
            endless = endless and self.instance.cloud_ps(job.ps_type) is None
            if left[name] == self.work(job) and (endless or not width):
                self._site.add(self._slot, job)
            elif endless:
                last = self._slot + math.ceil(left[name] / job.chunks) - 1
                spans = [(self._slot, last)] * job.chunks
                self._rows[name] = whole_job_rows(self.instance, job, spans, self._ps.cloud)
            else:
                continue
            self._storage.end(name, self._slot - 1)
            gone.append(name)
        return gone

    def finished(self, job: EdgecloudJob, slot: int) -> None:
        """The job's storage is free after `slot`."""
        self._storage.end(job.name, slot)

    # Places

    def place(self, job: EdgecloudJob, workers: int) -> Placement | None:
        """Book the first free workers whose server has the job's data, and a PS."""
        return self._grown(job, [], workers)

    def extend(self, job: EdgecloudJob, placement: Placement | None) -> Placement | None:
        """Book one more worker, and a PS for the first."""
        if placement is None:
            return self.place(job, 1)
        return self._grown(job, placement.facts["workers"], 1, placement.facts["ps"])

    def _grown(
        self, job: EdgecloudJob, held: list[int], more: int, ps: tuple[str, int] | None = None
    ) -> Placement | None:
        found = self._pick(job, held, more)
        if len(found) < more:
            return None
        if ps is None:
            place = self._ps.take(job.name, job, self._slot)
            if place is None:
                return None
            ps = (job.ps_type, place)
        for worker in found:
            self._free[worker] = False
        workers = sorted([*held, *found])
        counts: dict[str, int] = {}
        for worker in workers:
            name = self.instance.servers[self.instance.worker_list[worker][0]].name
            counts[name] = counts.get(name, 0) + 1
        return Placement(
            counts, {place_name(self.instance, ps[1]): 1}, {"workers": workers, "ps": ps}
        )

    def _pick(self, job: EdgecloudJob, held: list[int], more: int) -> list[int]:
        found: list[int] = []
        servers = [self.instance.worker_list[worker][0] for worker in held]
        for s, members in self.instance.places(job):
            if job.arrival + job.upload_slots[self.instance.servers[s].name] > self._slot:
                continue
            free = [worker for worker in members if self._free[worker]]
            limit = self._reserved[job.name].get(s)
            found += free if limit is None else free[: limit - servers.count(s)]
            if len(found) >= more:
                break
        return found[:more]

    def book(self, job: EdgecloudJob, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        for worker in placement.facts["workers"]:
            self._free[worker] = False
        self._ps.take_again(job.name, placement.facts["ps"])

    def release(self, job: EdgecloudJob, placement: Placement) -> None:
        """Give a placement back."""
        for worker in placement.facts["workers"]:
            self._free[worker] = True
        self._ps.give_back(job.name)

    def fits(self, job: EdgecloudJob, placement: Placement) -> bool:
        """Whether a placement fits what is free now."""
        free = all(self._free[worker] for worker in placement.facts["workers"])
        return free and self._ps.is_free(placement.facts["ps"])

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
        """Workers of the job's type at the edge, at most one a chunk and what storage allows."""
        return self._most[job.name]

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
        total = self._ps.count(job.ps_type)
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
        rows = {name: list(given) for name, given in self._rows.items()}
        for name, (chunks, _) in list(self._running.items()):
            kept = set(running[name][1].facts["workers"]) if name in running else set()
            for worker in [worker for worker in chunks if worker not in kept]:
                end = {"chunk": chunks.pop(worker), "to": slot - 1}
                rows.setdefault(name, []).insert(0, end)
            if name not in running:
                del self._running[name]
        for job, placement in running.values():
            self._begin(slot, job, placement, rows)
        self._site.events.discard(slot)
        for name, given in self._site.start(slot).items():
            rows.setdefault(name, []).extend(given)
        return rows

    def _begin(
        self, slot: int, job: EdgecloudJob, placement: Placement, rows: dict[str, list[Assignment]]
    ) -> None:
        chunks, ps = self._running.get(job.name, ({}, None))
        unused = iter(sorted(set(range(1, job.chunks + 1)) - set(chunks.values())))
        given: list[Assignment] = []
        for worker in placement.facts["workers"]:
            if worker not in chunks:
                s, number, _ = self.instance.worker_list[worker]
                chunks[worker] = next(unused)
                server = self.instance.servers[s].name
                row = {"chunk": chunks[worker], "server": server, "worker": number, "from": slot}
                given.append(row)
        if ps != placement.facts["ps"]:
            given.append({"ps": place_name(self.instance, placement.facts["ps"][1]), "from": slot})
        self._running[job.name] = (chunks, placement.facts["ps"])
        if given:
            rows.setdefault(job.name, []).extend(given)


def build_cluster(environment: Environment) -> EdgecloudCluster:
    """Return the cluster as baselines see it."""
    return EdgecloudCluster(environment)
