"""A_online (Algorithm 1), its variants, and every algorithm of the edgecloud paper's evaluation.

A_greedy (`dispatch`) dispatches each job on arrival, A_ps (`serving`) gives running jobs a
parameter server.
"""

from __future__ import annotations

from typing import ClassVar

from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.json_types import JsonObject
from hindsched.online.baselines.infeasible_baselines import relaxing_baselines
from hindsched.online.edgecloud.batchsche import BatchSche
from hindsched.online.edgecloud.cluster import EdgeTiresiasL, Srtf
from hindsched.online.edgecloud.dispatch import Dispatch, Dispatcher, Increment
from hindsched.online.edgecloud.prices import EdgecloudDualPrice
from hindsched.online.edgecloud.resources import CloudSite, ParameterServers, StorageLedger
from hindsched.online.edgecloud.serving import Serving
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.protocol import (
    NOTHING,
    Assumption,
    Capabilities,
    Decision,
    Environment,
    OnlineAlgorithm,
    Report,
    Theorem,
)
from hindsched.online.registry import Factory

EPSILON = 1.0
"""Speed augmentation at which `theorem` states its value; the constants fall as it grows."""


class Edgecloud(OnlineAlgorithm):
    """Dispatch by smallest Q, serve highest rate first, preempt single workers.

    Running jobs are given parameter servers by A_ps (`Serving`). Section VI: servers without room
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
        self.dispatcher = Dispatcher(cluster, self.increment, self.escape, self.use_cloud)
        self.dispatches: dict[str, Dispatch] = {}
        self._jobs: list[EdgecloudJob] = []
        self.serving = Serving(cluster, self.dispatcher.queues, environment.seed)
        self._storage = StorageLedger(cluster)
        self._storing: set[int] = set()

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


class AllCloud(OnlineAlgorithm):
    """The simplest schedule there is; at the paper's own parameters it beats A_online."""

    def start(self, environment: Environment) -> None:
        """Begin with an empty cloud."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self.site = CloudSite(cluster, ParameterServers(cluster))

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> Decision:
        """Send what arrives to the cloud; begin what waits there."""
        for job in arrivals:
            self.site.add(slot, job)
        if not arrivals and slot not in self.site.events:
            return NOTHING
        self.site.events.discard(slot)
        return Decision(self.site.start(slot), tuple(job.name for job in arrivals))


ALGORITHMS: dict[str, Factory] = {
    "edgecloud": Edgecloud,
    "edgecloud-marginal": EdgecloudMarginal,
    "edgecloud-escape": EdgecloudEscape,
    "edgecloud-edge-only": EdgecloudEdgeOnly,
    "dual-price": EdgecloudDualPrice,
    "reoptimise": Reoptimise,
    "srtf": Srtf,
    "tiresias-l": EdgeTiresiasL,
    "batchsche": BatchSche,
    "all-cloud": AllCloud,
    **relaxing_baselines(rigid=False),
}


def declared_estimates(instance: Instance) -> JsonObject:
    """A_online needs no estimates."""
    assert isinstance(instance, EdgecloudInstance)
    return {}


def theorem(instance: Instance, epsilon: float = EPSILON) -> Theorem:
    """Theorem 3: with (1 + epsilon) speed, ``D_max (1 + 1 / epsilon)``-competitive for (2).

    ``quantities`` holds the constant for problem (4), ``note`` what the printed proof leaves open.
    """
    assert isinstance(instance, EdgecloudInstance)
    if not instance.jobs:
        return {"kind": "ratio", "value": None, "assumptions": [], "quantities": {}}
    chunks = int(instance.chunks.max())
    constant = 1 + 1 / epsilon
    swapped = _overtaking(instance)
    short = _missing_ps(instance)
    assumptions: list[Assumption] = [
        {"name": f"the algorithm runs at speed {1 + epsilon:g}", "holds": False, "worst": 1.0},
        {"name": "chunks become available in the order of arrival on every worker",
         "holds": swapped == 0, "worst": swapped},
        {"name": "a PS is free whenever a job runs", "holds": short == 0, "worst": short},
        {"name": "Lemma 2: the printed dual is feasible", "holds": False, "worst": None},
    ]  # fmt: skip
    note = (
        "The printed proof does not establish the constant: Lemma 2's dual is infeasible and "
        "Lemma 4 needs the second assumption. The corrected dual is feasible but proves less."
    )
    return {
        "kind": "ratio",
        "value": chunks * constant,
        "assumptions": assumptions,
        "quantities": {"epsilon": epsilon, "ratio_for_(4)": constant, "D_max": chunks},
        "note": note,
    }


def _overtaking(instance: EdgecloudInstance) -> int:
    """Most slots by which a later job's chunk is available before an earlier job's on a server."""
    worst = 0
    jobs = sorted(enumerate(instance.jobs), key=lambda item: item[1].arrival)
    for s, server in enumerate(instance.servers):
        latest = dict.fromkeys(server.workers, 0)
        for j, job in jobs:
            if job.worker_type in latest:
                ready = job.arrival + int(instance.upload[j, s])
                worst = max(worst, latest[job.worker_type] - ready)
                latest[job.worker_type] = max(latest[job.worker_type], ready)
    return worst


def _missing_ps(instance: EdgecloudInstance) -> int:
    """PSs missing to serve all jobs of a type at once, where the cloud's are finite."""
    worst = 0
    for kind in {job.ps_type for job in instance.jobs}:
        cloud = instance.cloud_ps(kind)
        if cloud is not None:
            jobs = sum(job.ps_type == kind for job in instance.jobs)
            edge = sum(n for (_, k), n in instance.ps_counts.items() if k == kind)
            worst = max(worst, jobs - edge - cloud)
    return worst
