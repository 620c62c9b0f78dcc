"""A_online (Algorithm 1): A_greedy dispatches each job on arrival, A_ps gives running jobs a PS."""

from __future__ import annotations

from typing import ClassVar

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.dispatch import Dispatch, Dispatcher, Increment
from hindsched.online.edgecloud.serving import PromptServing, QueuedService, Serving
from hindsched.online.edgecloud.storage import StorageLedger
from hindsched.online.protocol import (
    NOTHING,
    Capabilities,
    Decision,
    Environment,
    OnlineAlgorithm,
    Report,
)


class Edgecloud(OnlineAlgorithm):
    """Dispatch by smallest Q, serve highest rate first, preempt single workers.

    A_ps (Algorithm 5, with the free PSs that it forgets): a job keeps its PS while it runs; one
    that starts to run gets a random free PS of its type at the edge, else one in the cloud. Where
    the cloud's PSs are numbered a job that finds none free waits. Section VI: servers without room
    for a chunk are not asked.
    """

    card = Capabilities(commits_at_arrival=True)

    randomised = True
    increment: ClassVar[Increment] = "printed"
    escape: ClassVar[bool] = False
    use_cloud: ClassVar[bool] = True

    def start(self, environment: Environment) -> None:
        """Begin with empty queues and all PSs free."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self.cluster = cluster
        self.dispatcher = self.make_dispatcher(cluster)
        self.dispatches: dict[str, Dispatch] = {}
        self._jobs: list[EdgecloudJob] = []
        serving = QueuedService if cluster.cloud.ps else PromptServing
        self.serving: Serving = serving(cluster, self.dispatcher.queues, environment.seed)
        self._storage = StorageLedger(cluster)
        self._storing: set[int] = set()

    def make_dispatcher(self, cluster: EdgecloudInstance) -> Dispatcher:
        """The variant's dispatcher."""
        return Dispatcher(cluster, self.increment, self.escape, self.use_cloud)

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> Decision:
        """Dispatch what arrived, then let the chunks be served."""
        self.dispatcher.queues.advance(slot)
        if arrivals:
            self._clear_storage(slot)
        for job in arrivals:
            self._dispatch(slot, job)
        rows = {self._jobs[index].name: new for index, new in self.serving.step(slot).items()}
        return Decision(rows, tuple(job.name for job in arrivals)) if rows else NOTHING

    def _dispatch(self, slot: int, job: EdgecloudJob) -> None:
        seconds = self.cluster.slot_seconds
        edge = job.chunk_slots(seconds, in_cloud=False)
        cloud = job.chunk_slots(seconds, in_cloud=True)
        index = len(self._jobs)
        self._jobs.append(job)
        room = self._storage.room(job, slot) if self._storage.limited and job.chunk_gb else None
        together = self.serving.may_be_together(job)
        found = self.dispatcher.place(index, job, float(edge), float(cloud), room, together)
        self.dispatches[job.name] = found
        self.serving.add(index, job, found, (edge, cloud))
        if room is not None:
            for _, worker in found.workers:
                self._storage.store(job, self.cluster.worker_list[worker][0])
            self._storing.add(index)

    def _clear_storage(self, slot: int) -> None:
        """Let go what jobs stored that have ended."""
        if not self._storing:
            return
        unfinished = self.dispatcher.queues.unfinished() | self.serving.in_cloud(slot)
        for index in self._storing - unfinished:
            self._storage.end(self._jobs[index].name, slot - 1)
        self._storing &= unfinished
        self._storage.forget_before(slot)

    def report(self) -> Report:
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


class EdgecloudMarginal(Edgecloud):
    """Q replaced by the exact increase of the planned sum of weighted completions."""

    increment = "marginal"


class EdgecloudEscape(Edgecloud):
    """A job whose planned last chunk would end later than in the cloud goes there as a whole."""

    escape = True


class EdgecloudEdgeOnly(Edgecloud):
    """A_online-E: no cloud where the edge has room."""

    use_cloud = False
