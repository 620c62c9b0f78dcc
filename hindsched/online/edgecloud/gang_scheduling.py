"""Gangs of edge workers, suspended and resumed as a whole: what SRTF and Tiresias-L share.

A job has as many workers of its type as it can use (or half of them, or the number requested), and
runs on all of them or not at all; its work is spread over them evenly. At every event -
an arrival, an upload that ends, a completion - the jobs are served again in order of priority. A
job that runs keeps its workers if they are not given to a job before it; one that resumes takes
the first free ones whose server has its data, so that its work may move, which problem (2) without
migration forbids. Moving costs no second upload: this favours these baselines. A gang also needs a
parameter server (PS) and waits where none is left.

Where storage is limited a job reserves it on arrival, see `hindsched.online.edgecloud.storage`; a
job without any room goes to the cloud.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from hindsched.errors import Refused
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.dynamics import Gangs, gang_width
from hindsched.online.edgecloud.cloud_site import CloudSite
from hindsched.online.edgecloud.ps import ParameterServers, place_name
from hindsched.online.edgecloud.storage import StorageLedger
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.base import Assignment


@dataclass
class Gang:
    """A job and its workers.

    Parameters
    ----------
    job : EdgecloudJob
        The job.
    size : int
        Workers that it runs on.
    left : int
        Chunk-slots of work that are left.
    workers : list of int
        Workers that it holds, by position; empty while it is suspended.
    attained : int
        Worker-slots that it has had.
    waited : int
        Slots that it has waited since it last ran.
    forgotten : int
        Part of `attained` that no longer counts as service.
    reserved : dict of int to int
        Workers that it may use of a server whose storage is limited; no entry means any number.
    """

    job: EdgecloudJob
    size: int
    left: int
    workers: list[int] = field(default_factory=list)
    attained: int = 0
    waited: int = 0
    forgotten: int = 0
    reserved: dict[int, int] = field(default_factory=dict)

    @property
    def service(self) -> int:
        """Worker-slots that count for its priority."""
        return self.attained - self.forgotten

    @property
    def remaining_slots(self) -> int:
        """Slots until the job is done if it runs on."""
        return -(-self.left // self.size)


class GangScheduler(OnlineAlgorithm):
    """Serves gangs in order of priority.

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
        self.cloud, self.gangs = cloud, gangs

    @abstractmethod
    def priority(self, gang: Gang) -> tuple[float, ...]:
        """Smaller goes first; ties go by arrival."""

    def next_change(self, gang: Gang) -> int | None:
        """Slots of running, or of waiting, until the gang's priority changes, or None."""
        return None

    def start(self, environment: Environment) -> None:
        """Begin with an idle edge."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self.cluster = cluster
        self.present: dict[str, Gang] = {}
        self._since = 0
        self._events: set[int] = set()
        self._ps: ParameterServers[str] = ParameterServers(cluster)
        self._site = CloudSite(cluster, self._ps)
        self._storage = StorageLedger(cluster)
        self.suspensions = 0

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> Decision:
        """Account for what ran; at an event serve the jobs again."""
        rows: dict[str, list[Assignment]] = {}
        for job in arrivals:
            self._arrive(slot, job)
        if not arrivals and slot not in self._events | self._site.events:
            return NOTHING
        self._events.discard(slot)
        self._site.events.discard(slot)
        self._site.release(slot)
        self._account(slot, rows)
        self._serve(slot, rows)
        for name, given in self._site.start(slot).items():
            rows.setdefault(name, []).extend(given)
        return Decision(rows, tuple(job.name for job in arrivals))

    def _arrive(self, slot: int, job: EdgecloudJob) -> None:
        """Make a gang of a job, or send it to the cloud if the edge has nothing for it."""
        qualified = self.cluster.workers_by_type.get(job.worker_type, ())
        most = min(job.chunks, len(qualified))
        size = gang_width(self.gangs, lambda: job.requested_workers or job.chunks, most)
        gang = Gang(job, size, 0)
        if self._storage.limited and job.chunk_gb:
            self._storage.forget_before(slot)
            gang.size, gang.reserved = self._storage.reserve(job, slot, size)
        if not gang.size:
            if qualified and not self.cluster.has_cloud(job):
                detail = "no server has room, and the cloud has no worker for it"
                raise Refused("(7b)", f"job {job.name}", detail)
            self._site.add(slot, job)
            return
        gang.left = job.chunks * job.chunk_slots(self.cluster.slot_seconds, in_cloud=False)
        self.present[job.name] = gang
        for w in qualified:
            server = self.cluster.servers[self.cluster.worker_list[w][0]]
            self._events.add(slot + job.upload_slots[server.name])

    def _account(self, slot: int, rows: dict[str, list[Assignment]]) -> None:
        """Take off what has been done since the last event; end what is done."""
        passed = slot - self._since
        self._since = slot
        for name, gang in list(self.present.items()):
            if gang.workers:
                gang.left -= passed * gang.size
                gang.attained += passed * gang.size
                gang.waited = 0
                if gang.left <= 0:
                    self._stop(slot, gang, rows)
                    self._storage.end(name, slot - 1)
                    del self.present[name]
            else:
                gang.waited += passed

    def _stop(self, slot: int, gang: Gang, rows: dict[str, list[Assignment]]) -> None:
        given = rows.setdefault(gang.job.name, [])
        given += [{"chunk": n, "to": slot - 1} for n in range(1, len(gang.workers) + 1)]
        gang.workers = []
        self._ps.give_back(gang.job.name)

    def _serve(self, slot: int, rows: dict[str, list[Assignment]]) -> None:
        order = sorted(self.present.values(), key=lambda g: (*self.priority(g), g.job.arrival))
        taken: set[int] = set()
        chosen: list[tuple[Gang, list[int]]] = []
        in_cloud = [kind for name, (kind, _) in self._ps.held.items() if name not in self.present]
        servers = {
            kind: self._ps.count(kind) - in_cloud.count(kind)
            for kind in {gang.job.ps_type for gang in order}
        }
        for gang in order:
            workers = gang.workers
            if not workers or not taken.isdisjoint(workers):
                workers = self._pick(slot, gang, taken)
            if servers[gang.job.ps_type] < 1:
                workers = []
            servers[gang.job.ps_type] -= bool(workers)
            taken.update(workers)
            chosen.append((gang, workers))
        for gang, workers in chosen:
            if gang.workers and workers != gang.workers:
                self.suspensions += 1
                self._stop(slot, gang, rows)
        for gang, workers in chosen:
            if workers and not gang.workers:
                self._begin(slot, gang, workers, rows)
            if not workers and self._may_leave(slot, gang):
                self._site.add(slot, gang.job)
                self._storage.end(gang.job.name, 0)
                del self.present[gang.job.name]
                continue
            if gang.workers:
                self._events.add(slot + gang.remaining_slots)
            change = self.next_change(gang)
            if change is not None:
                self._events.add(slot + change)

    def _may_leave(self, slot: int, gang: Gang) -> bool:
        """Whether a job that found no gang goes to the cloud: its data is all there, unused."""
        if not self.cloud or gang.attained or not self.cluster.has_cloud(gang.job):
            return False
        return all(self._is_ready(slot, gang, s) for s, _ in self.cluster.places(gang.job))

    def _is_ready(self, slot: int, gang: Gang, server: int) -> bool:
        """Whether a server has the job's data."""
        name = self.cluster.servers[server].name
        return gang.job.arrival + gang.job.upload_slots[name] <= slot

    def _pick(self, slot: int, gang: Gang, taken: set[int]) -> list[int]:
        """The first free workers whose server has the job's data; none if they are too few."""
        found: list[int] = []
        for s, members in self.cluster.places(gang.job):
            if self._is_ready(slot, gang, s):
                free = [w for w in members if w not in taken]
                found += free[: gang.reserved.get(s, len(free))]
        return found[: gang.size] if len(found) >= gang.size else []

    def _begin(
        self, slot: int, gang: Gang, workers: list[int], rows: dict[str, list[Assignment]]
    ) -> None:
        given = rows.setdefault(gang.job.name, [])
        gang.workers = list(workers)
        for number, w in enumerate(workers, 1):
            s, position, _ = self.cluster.worker_list[w]
            name = self.cluster.servers[s].name
            given.append({"chunk": number, "server": name, "worker": position, "from": slot})
        place = self._ps.take(gang.job.name, gang.job, slot)
        assert place is not None
        given.append({"ps": place_name(self.cluster, place), "from": slot})

    def report(self) -> Report:
        """How often a whole gang was suspended or moved."""
        return {"suspensions": self.suspensions}
