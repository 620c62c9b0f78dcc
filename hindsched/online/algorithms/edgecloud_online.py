"""A_online (Algorithm 1): A_greedy dispatches each job on arrival, A_ps gives running jobs a PS."""

from __future__ import annotations

from typing import Any, ClassVar

from hindsched.instances.edgecloud import EdgecloudInstance, EdgecloudJob
from hindsched.online.algorithms.edgecloud_dispatch import Dispatch, Dispatcher, Increment
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm, draws
from hindsched.solutions.base import Assignment


class Edgecloud(OnlineAlgorithm):
    """Dispatch by smallest Q, serve highest rate first, preempt single workers.

    A_ps (Algorithm 5, with the free PSs that it forgets): a job keeps its PS while it runs; one
    that starts to run gets a random free PS of its type at the edge, else one in the cloud.
    """

    randomised = True
    increment: ClassVar[Increment] = "printed"
    escape: ClassVar[bool] = False
    use_cloud: ClassVar[bool] = True

    def start(self, environment: Environment) -> None:
        """Begin with empty queues and all PSs free."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self._seed = environment.seed
        self.cluster = cluster
        self.dispatcher = self.make_dispatcher(cluster)
        self.dispatches: dict[str, Dispatch] = {}
        self._jobs: list[EdgecloudJob] = []
        self._ps = ParameterServers(cluster)
        self._running: bytes = b""
        self._cloud_spans: dict[int, tuple[int, int]] = {}
        self._stored: list[tuple[int, int, float]] = []  # (server, job, GB)
        self._limited = any(server.storage_gb is not None for server in cluster.servers)

    def make_dispatcher(self, cluster: EdgecloudInstance) -> Dispatcher:
        """The variant's dispatcher."""
        return Dispatcher(cluster, self.increment, self.escape, self.use_cloud)

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """Dispatch what arrived, then give PSs to the jobs that start to run."""
        self.dispatcher.queues.advance(slot)
        rows: dict[str, list[Assignment]] = {}
        for job in arrivals:
            rows[job.name] = self._dispatch(slot, job)
        for index, place in self._assign_ps(slot):
            name = self.cluster.cloud.name
            if place < len(self.cluster.servers):
                name = self.cluster.servers[place].name
            rows.setdefault(self._jobs[index].name, []).append({"ps": name, "from": slot})
        return Decision(rows, tuple(job.name for job in arrivals)) if rows else NOTHING

    def _dispatch(self, slot: int, job: EdgecloudJob) -> list[Assignment]:
        cluster = self.cluster
        seconds = cluster.slot_seconds
        edge = job.chunk_slots(seconds, in_cloud=False)
        cloud = job.chunk_slots(seconds, in_cloud=True)
        index = len(self._jobs)
        self._jobs.append(job)
        room = self._room(job) if self._limited and job.chunk_gb else None
        may_be_together = self._ps.cloud_is_free(job.ps_type, slot)
        found = self.dispatcher.place(index, job, float(edge), float(cloud), room, may_be_together)
        self.dispatches[job.name] = found
        rows: list[Assignment] = []
        for chunk, worker in found.workers:
            s, number, _ = cluster.worker_list[worker]
            rows.append(
                {
                    "chunk": chunk,
                    "server": cluster.servers[s].name,
                    "worker": number,
                    "priority": job.chunks * edge,
                }
            )
            if self._limited and job.chunk_gb:
                self._stored.append((s, index, job.chunk_gb))
        for chunk, begin, end in found.cloud:
            row = {"chunk": chunk, "server": cluster.cloud.name, "from": int(begin)}
            rows.append({**row, "to": int(end) - 1})
        if found.cloud:
            first = int(min(begin for _, begin, _ in found.cloud))
            last = int(max(end for _, _, end in found.cloud)) - 1
            if found.together:
                self._ps.reserve_cloud(job.ps_type, last)
                rows.append({"ps": cluster.cloud.name, "from": first, "to": last})
            else:
                self._cloud_spans[index] = (first, last)
        return rows

    def _room(self, job: EdgecloudJob) -> list[float]:
        """Chunks that each server can still store, counting jobs that are not done."""
        queues = self.dispatcher.queues
        unfinished = {
            int(queues.job[w, c]) for w in range(len(queues.size)) for c in range(queues.size[w])
        }
        unfinished |= {i for i, (_, last) in self._cloud_spans.items() if last >= job.arrival}
        left = [
            float("inf") if s.storage_gb is None else float(s.storage_gb)
            for s in self.cluster.servers
        ]
        for s, index, gb in self._stored:
            if index in unfinished:
                left[s] -= gb
        assert job.chunk_gb
        return [amount / job.chunk_gb + 1e-9 for amount in left]

    def _assign_ps(self, slot: int) -> list[tuple[int, int]]:
        """A_ps: (job, server) of the jobs that start to run in this slot."""
        running = self.dispatcher.queues.running()
        key = running.tobytes()
        spans = {i for i, (first, last) in self._cloud_spans.items() if first <= slot <= last}
        if key == self._running and not spans and not self._cloud_spans:
            return []
        self._running = key
        for i in [i for i, (_, last) in self._cloud_spans.items() if last < slot]:
            del self._cloud_spans[i]
        active = {int(j) for j in set(running.tolist())} - {-1} | spans
        self._ps.release(active)
        found: list[tuple[int, int]] = []
        for index in sorted(active - self._ps.held.keys()):
            job = self._jobs[index]
            place = self._ps.take(index, job, self._seed, slot)
            if place is not None:
                found.append((index, place))
        return found

    def report(self) -> dict[str, Any]:
        """Sums of alpha (the printed dual) and of the corrected alpha'', and the cloud's share."""
        chunks = sum(job.chunks for job in self._jobs)
        in_cloud = sum(len(d.cloud) for d in self.dispatches.values())
        corrected = (job.chunks * self.dispatches[job.name].corrected_alpha for job in self._jobs)
        return {
            "chunks": chunks,
            "chunks_in_cloud": in_cloud,
            "jobs_in_cloud": sum(d.together for d in self.dispatches.values()),
            "sum_alpha": sum(sum(d.alphas) for d in self.dispatches.values()),
            "sum_corrected_alpha": sum(corrected),
        }


class ParameterServers:
    """Free PSs by type and place.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    """

    def __init__(self, cluster: EdgecloudInstance) -> None:
        self.cluster = cluster
        self.cloud = len(cluster.servers)
        self.held: dict[int, tuple[str, int]] = {}
        self._free: dict[str, list[int]] = {}
        for s, server in enumerate(cluster.servers):
            for kind in server.ps:
                self._free.setdefault(kind, []).append(s)
        self._in_cloud: dict[str, int] = {}
        self._reserved: dict[str, list[int]] = {}

    def cloud_is_free(self, kind: str, slot: int) -> bool:
        """Whether a PS of the cloud is free from now on, whatever holds one now keeping it."""
        limit = self.cluster.cloud_ps(kind)
        return limit is None or self._in_cloud.get(kind, 0) + self._booked(kind, slot) < limit

    def _booked(self, kind: str, slot: int) -> int:
        """PSs of the cloud that jobs wholly there have booked and not yet given back."""
        self._reserved[kind] = [last for last in self._reserved.get(kind, ()) if last >= slot]
        return len(self._reserved[kind])

    def reserve_cloud(self, kind: str, last: int) -> None:
        """Book a PS of the cloud for a job that is there as a whole."""
        self._reserved.setdefault(kind, []).append(last)

    def release(self, active: set[int]) -> None:
        """Free the PSs of jobs that no longer run."""
        for index in [index for index in self.held if index not in active]:
            kind, place = self.held.pop(index)
            if place == self.cloud:
                self._in_cloud[kind] -= 1
            else:
                self._free[kind].append(place)

    def take(self, index: int, job: EdgecloudJob, seed: int, slot: int) -> int | None:
        """A random free PS at the edge, else one in the cloud, else None."""
        kind = job.ps_type
        free = self._free.get(kind)
        if free:
            chosen = int(draws(seed, job.name, f"ps {slot}").integers(len(free)))
            free[chosen], free[-1] = free[-1], free[chosen]
            place = free.pop()
        else:
            limit = self.cluster.cloud_ps(kind)
            taken = self._in_cloud.get(kind, 0) + self._booked(kind, slot)
            if limit is not None and taken >= limit:
                return None
            self._in_cloud[kind] = self._in_cloud.get(kind, 0) + 1
            place = self.cloud
        self.held[index] = (kind, place)
        return place


class EdgecloudMarginal(Edgecloud):
    """Q replaced by the exact increase of the planned sum of weighted completions."""

    increment = "marginal"


class EdgecloudEscape(Edgecloud):
    """A job whose planned last chunk would end later than in the cloud goes there as a whole."""

    escape = True


class EdgecloudEdgeOnly(Edgecloud):
    """A_online-E: no cloud where the edge has room."""

    use_cloud = False
