"""Gangs of edge workers, suspended and resumed as a whole: what SRTF and Tiresias-L share.

A job asks for ``min(chunks, requested workers)`` workers of its type (fewer only if the edge has
fewer) and runs on all of them or not at all; its work is spread over them evenly. At every event -
an arrival, an upload that ends, a completion - the jobs are served again in order of priority. A
job that runs keeps its workers if they are not given to a job before it; one that resumes takes
the first free ones whose server has its data, so that its work may move, which problem (2) without
migration forbids. Moving costs no second upload: this favours these baselines.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

from hindsched.errors import InputError, Refused
from hindsched.instances.edgecloud import EdgecloudInstance, EdgecloudJob
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm
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
    ps : int or None
        Server whose PS it holds; the number of servers means the cloud.
    """

    job: EdgecloudJob
    size: int
    left: int
    workers: list[int] = field(default_factory=list)
    attained: int = 0
    waited: int = 0
    ps: int | None = None

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
    """

    feasible_set = False

    def __init__(self, cloud: bool = False) -> None:
        self.cloud = cloud

    @abstractmethod
    def priority(self, gang: Gang) -> tuple[float, ...]:
        """Smaller goes first; ties go by arrival."""

    def next_change(self, gang: Gang) -> int | None:
        """Slots of running after which the gang's priority class changes, or None."""
        return None

    def start(self, environment: Environment) -> None:
        """Begin with an idle edge."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self.cluster = cluster
        self.gangs: dict[str, Gang] = {}
        self._since = 0
        self._events: set[int] = set()
        self._free_ps = dict(cluster.ps_counts)
        self.suspensions = 0

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """Account for what ran; at an event serve the jobs again."""
        rows: dict[str, list[Assignment]] = {}
        for job in arrivals:
            self._arrive(slot, job, rows)
        if not arrivals and slot not in self._events:
            return NOTHING
        self._events.discard(slot)
        self._account(slot, rows)
        self._serve(slot, rows)
        return Decision(rows, tuple(job.name for job in arrivals))

    def _arrive(self, slot: int, job: EdgecloudJob, rows: dict[str, list[Assignment]]) -> None:
        qualified = self.cluster.workers_by_type.get(job.worker_type, ())
        if not qualified:
            rows[job.name] = self.to_cloud(slot, job)
            return
        size = min(job.chunks, job.requested_workers or job.chunks, len(qualified))
        work = job.chunks * job.chunk_slots(self.cluster.slot_seconds, in_cloud=False)
        self.gangs[job.name] = Gang(job, size, work)
        for w in qualified:
            server = self.cluster.servers[self.cluster.worker_list[w][0]]
            self._events.add(slot + job.upload_slots[server.name])

    def to_cloud(self, slot: int, job: EdgecloudJob) -> list[Assignment]:
        """The whole job to the cloud at once."""
        return all_cloud_rows(self.cluster, job, slot)

    def _account(self, slot: int, rows: dict[str, list[Assignment]]) -> None:
        """Take off what has been done since the last event; end what is done."""
        passed = slot - self._since
        self._since = slot
        for name, gang in list(self.gangs.items()):
            if gang.workers:
                gang.left -= passed * gang.size
                gang.attained += passed * gang.size
                gang.waited = 0
                if gang.left <= 0:
                    self._stop(slot, gang, rows)
                    del self.gangs[name]
            else:
                gang.waited += passed

    def _stop(self, slot: int, gang: Gang, rows: dict[str, list[Assignment]]) -> None:
        given = rows.setdefault(gang.job.name, [])
        given += [{"chunk": n, "to": slot - 1} for n in range(1, len(gang.workers) + 1)]
        gang.workers = []
        if gang.ps is not None and gang.ps < len(self.cluster.servers):
            self._free_ps[gang.ps, gang.job.ps_type] += 1
        gang.ps = None

    def _serve(self, slot: int, rows: dict[str, list[Assignment]]) -> None:
        order = sorted(self.gangs.values(), key=lambda g: (*self.priority(g), g.job.arrival))
        taken: set[int] = set()
        chosen: list[tuple[Gang, list[int]]] = []
        for gang in order:
            workers = gang.workers
            if not workers or not taken.isdisjoint(workers):
                ready = [w for w in self._ready(slot, gang.job) if w not in taken]
                workers = ready[: gang.size] if len(ready) >= gang.size else []
            taken.update(workers)
            chosen.append((gang, workers))
        for gang, workers in chosen:
            if gang.workers and workers != gang.workers:
                self.suspensions += 1
                self._stop(slot, gang, rows)
        for gang, workers in chosen:
            if workers and not gang.workers:
                self._begin(slot, gang, workers, rows)
            if not workers and self.cloud and not gang.attained and self._all_ready(slot, gang.job):
                rows.setdefault(gang.job.name, []).extend(self.to_cloud(slot, gang.job))
                del self.gangs[gang.job.name]
            elif gang.workers:
                self._events.add(slot + gang.remaining_slots)
                change = self.next_change(gang)
                if change is not None:
                    self._events.add(slot + change)

    def _ready(self, slot: int, job: EdgecloudJob) -> list[int]:
        """Qualified workers whose server has the job's data."""
        found: list[int] = []
        for w in self.cluster.workers_by_type.get(job.worker_type, ()):
            server = self.cluster.servers[self.cluster.worker_list[w][0]]
            if job.arrival + job.upload_slots[server.name] <= slot:
                found.append(w)
        return found

    def _all_ready(self, slot: int, job: EdgecloudJob) -> bool:
        found = self._ready(slot, job)
        return len(found) == len(self.cluster.workers_by_type[job.worker_type])

    def _begin(
        self, slot: int, gang: Gang, workers: list[int], rows: dict[str, list[Assignment]]
    ) -> None:
        given = rows.setdefault(gang.job.name, [])
        gang.workers = list(workers)
        for number, w in enumerate(workers, 1):
            s, position, _ = self.cluster.worker_list[w]
            name = self.cluster.servers[s].name
            given.append({"chunk": number, "server": name, "worker": position, "from": slot})
        gang.ps = self._take_ps(slot, gang.job)
        name = self.cluster.cloud.name
        if gang.ps < len(self.cluster.servers):
            name = self.cluster.servers[gang.ps].name
        given.append({"ps": name, "from": slot})

    def _take_ps(self, slot: int, job: EdgecloudJob) -> int:
        """The first free PS at the edge, else the cloud's."""
        for (s, kind), count in self._free_ps.items():
            if kind == job.ps_type and count:
                self._free_ps[s, kind] -= 1
                return s
        if self.cluster.cloud_ps(job.ps_type) is not None:
            raise Refused("(2e)", f"job {job.name}, slot {slot}", "no PS at the edge is free")
        return len(self.cluster.servers)

    def report(self) -> dict[str, Any]:
        """How often a whole gang was suspended or moved."""
        return {"suspensions": self.suspensions}


def all_cloud_rows(cluster: EdgecloudInstance, job: EdgecloudJob, slot: int) -> list[Assignment]:
    """Rows of a job that goes to an unlimited cloud as a whole, from `slot` on.

    Raises
    ------
    InputError
        If the cloud's workers or PSs of the job's types are not unlimited.
    """
    limits = (cluster.cloud_workers(job.worker_type), cluster.cloud_ps(job.ps_type))
    if limits != (None, None):
        rule = "must be unlimited for an algorithm that sends whole jobs there"
        raise InputError("cloud", cluster.cloud.name, rule)
    cloud = cluster.cloud.name
    first = max(slot, job.arrival + job.upload_slots[cloud])
    last = first + job.chunk_slots(cluster.slot_seconds, in_cloud=True) - 1
    span = {"from": first, "to": last}
    rows: list[Assignment] = [
        {"chunk": chunk, "server": cloud, **span} for chunk in range(1, job.chunks + 1)
    ]
    return [*rows, {"ps": cloud, **span}]
