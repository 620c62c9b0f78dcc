"""A_online (Algorithm 1), its variants, and every algorithm of the edgecloud paper's evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.decimals import exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online import protocol
from hindsched.online.base import FamilyOnline
from hindsched.online.baselines.cluster import Gangs
from hindsched.online.baselines.ranked import Ranked, TiresiasL
from hindsched.online.cluster_state import this_slot
from hindsched.online.edgecloud.batchsche import EdgecloudBatchsche
from hindsched.online.edgecloud.dispatch import Dispatch, Dispatcher, Increment, Serving
from hindsched.online.edgecloud.dynamics import EdgecloudCluster, EdgecloudState
from hindsched.online.edgecloud.occupancy import CloudSite, ParameterServers, StorageLedger, no_room
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.engines.dual_price import RESIDUAL, DualPrice
from hindsched.online.engines.reoptimise import FEW_HEURISTICS, Reoptimise
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.list_schedule import read_past
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, file_row
from hindsched.solvers.base import placing_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Status
from hindsched.solvers.families.edgecloud.methods import program_columns, solve_flow_time
from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle
from hindsched.solvers.oracles.base import PlacingOracle


class Edgecloud(protocol.OnlineAlgorithm):
    """A_online (Algorithm 1): dispatch by smallest Q, serve highest rate first, preempt workers.

    A_greedy dispatches each job on arrival (`Dispatcher`), A_ps gives running jobs a parameter
    server (`Serving`). Section VI: servers without room for a chunk are not asked.
    """

    card = protocol.Capabilities(commits_at_arrival=True)

    randomised = True
    increment: ClassVar[Increment] = "printed"
    escape: ClassVar[bool] = False
    use_cloud: ClassVar[bool] = True

    def start(self, environment: protocol.Environment) -> None:
        """Begin with empty queues and all PSs free."""
        self.cluster: EdgecloudInstance = environment.cluster
        self.dispatcher = Dispatcher(self.cluster, self.increment, self.escape, self.use_cloud)
        self.dispatches: dict[str, Dispatch] = {}
        self._jobs: list[EdgecloudJob] = []
        self.serving = Serving(self.cluster, self.dispatcher.queues, environment.seed)
        self._storage = StorageLedger(self.cluster)
        self._storing: set[int] = set()

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> protocol.Decision:
        """Dispatch what arrived, then let the chunks be served."""
        self.dispatcher.queues.advance(slot)
        if arrivals and self._storage.limited:
            self._clear_storage(slot)
        for job in arrivals:
            self._dispatch(slot, job)
        rows = {self._jobs[index].name: new for index, new in self.serving.step(slot).items()}
        admitted = tuple(job.name for job in arrivals)
        return protocol.Decision(rows, admitted) if rows else protocol.NOTHING

    def _dispatch(self, slot: int, job: EdgecloudJob) -> None:
        edge, cloud = (
            job.chunk_slots(self.cluster.slot_seconds, in_cloud=where) for where in (False, True)
        )
        index = len(self._jobs)
        self._jobs.append(job)
        room = self._storage.room(job, slot)
        together = self.serving.may_be_together(job)
        dispatch = self.dispatcher.place(index, job, float(edge), float(cloud), room, together)
        self.dispatches[job.name] = dispatch
        self.serving.add(index, job, dispatch, (edge, cloud))
        for _, worker in dispatch.workers:
            self._storage.store(job, self.cluster.worker_list[worker][0])
        self._storing.add(index)

    def _clear_storage(self, slot: int) -> None:
        """Let go what jobs stored that have ended."""
        unfinished = self.dispatcher.queues.unfinished() | self.serving.in_cloud(slot)
        for index in self._storing - unfinished:
            self._storage.end(self._jobs[index].name, slot - 1)
        self._storing &= unfinished

    def report(self) -> protocol.Report:
        """Sums of alpha (the printed dual) and of the corrected alpha'', and the cloud's share."""
        dispatches = self.dispatches.values()
        corrected = (job.chunks * self.dispatches[job.name].corrected_alpha for job in self._jobs)
        return {
            "chunks": sum(job.chunks for job in self._jobs),
            "chunks_in_cloud": sum(len(d.cloud) for d in dispatches),
            "jobs_in_cloud": sum(d.together for d in dispatches),
            "sum_alpha": sum(sum(d.alphas) for d in dispatches),
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


class AllCloud(protocol.OnlineAlgorithm):
    """The simplest schedule there is; at the paper's own parameters it beats A_online."""

    def start(self, environment: protocol.Environment) -> None:
        """Begin with an empty cloud."""
        self.site = CloudSite(environment.cluster, ParameterServers(environment.cluster))

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> protocol.Decision:
        """Send what arrives to the cloud; begin what waits there."""
        for job in arrivals:
            self.site.add(slot, job)
        if not arrivals and slot not in self.site.events:
            return protocol.NOTHING
        self.site.events.discard(slot)
        return protocol.Decision(self.site.start(slot), tuple(job.name for job in arrivals))


class EdgecloudDualPrice(DualPrice):
    """Best responses to the duals of the relaxed program without migration.

    A job that finds no room within the horizon doubles it. Once placed, a job keeps its slots: this
    algorithm does not preempt. Workers, storage and parameter servers (PSs) must be left. By
    default decided jobs are fixed and nothing is scaled.
    """

    def start(self, environment: protocol.Environment) -> None:
        """Begin with an empty cluster, prices 0 and all PSs free."""
        super().start(environment)
        self._ps_use = Counter[tuple[int, str, int]]()  # PSs taken by (place, type, slot)
        self._until = 0  # last slot in which anything is taken

    def _respond(self, oracle: PlacingOracle, block: int) -> list[Assignment] | None:
        assert isinstance(oracle, EdgecloudOracle)
        instance, job = oracle.instance, oracle.instance.jobs[block]
        alone = max(job.upload_slots.values()) + int(job.chunks * instance.edge_slots[block])
        while True:
            cluster = self._environment.cluster
            if oracle.rows.size != self._residual.size:
                longer = cluster.with_jobs(instance.jobs)
                oracle = placing_oracle(longer, self._environment.formulation)
            rows = super()._respond(oracle, block)
            if rows is not None:
                self._until = max([self._until, *(row["to"] for row in rows)])
                return self._with_ps(oracle, job, rows)
            if cluster.horizon >= max(self._until, job.arrival) + alone:  # it waits for nothing
                raise no_room(job)
            self._lengthen()

    def _with_ps(
        self, oracle: PlacingOracle, job: EdgecloudJob, rows: list[Assignment]
    ) -> list[Assignment]:
        """The same rows with PSs that are free where they are numbered, at the edge if possible."""
        assert isinstance(oracle, EdgecloudOracle)
        cluster: EdgecloudInstance = self._environment.cluster
        kind, cloud, use = job.ps_type, len(cluster.servers), self._ps_use
        in_cloud = cluster.cloud_ps(kind)
        if in_cloud is None:
            return rows
        spans = [range(row["from"], row["to"] + 1) for row in rows if "ps" in row]
        slots = [t for span in spans for t in span]
        counts = {s: n for (s, k), n in cluster.ps_counts.items() if k == kind}
        if all("worker" not in row for row in rows):
            counts = counts if any(use[cloud, kind, t] >= in_cloud for t in slots) else {}
        base = oracle.priced.first("cloud_parameter_servers", kind) or 0
        holds: list[ChunkRun] = []
        for t in slots:
            place = next((s for s, n in counts.items() if use[s, kind, t] < n), cloud)
            use[place, kind, t] += 1
            self._residual[base + t - 1] = in_cloud - use[cloud, kind, t]
            holds.append(ChunkRun(0, 0, place, t, t))
        worker_rows = [row for row in rows if "ps" not in row]
        return [*worker_rows, *(file_row(cluster, hold) for hold in Runs.of(holds).rows())]

    def _lengthen(self) -> None:
        """Double the horizon; the new slots are free and cost nothing."""
        cluster = self._environment.cluster
        longer = cluster.model_copy(update={"horizon": 2 * cluster.horizon})
        self._environment = replace(self._environment, cluster=longer)
        self.lengthen(placing_oracle(longer, self._environment.formulation).rows)


class EdgecloudReoptimise(Reoptimise):
    """`Reoptimise`, whose start is so good that HiGHS' heuristics rarely better it."""

    solver_options: ClassVar[Mapping[str, object]] = FEW_HEURISTICS

    def num_columns(self, slot: int) -> int:
        """Worker slots of the jobs that have not begun; 0 where more than workers is limited."""
        known = self._rolling.instance
        assert isinstance(known, EdgecloudInstance)
        limited = {rows.name for rows in self.oracle_of(known.jobs).rows.sets}
        if self._environment.formulation != "no-migration" or limited != {"worker_capacity"}:
            return 0
        past = read_past(known, self._rolling.commitments())
        return program_columns(known, "no-migration", past)

    def waiting(self, job: JobRecord, slot: int) -> JobRecord:
        """The job as if it arrived now, with what is left of its uploads."""
        assert isinstance(job, EdgecloudJob)
        gone = slot - job.arrival
        left = {name: max(0, slots - gone) for name, slots in job.upload_slots.items()}
        return job.model_copy(update={"arrival": slot, "upload_slots": left})


class _AtTheEdge(Ranked):
    """Gangs that run at the edge all together or not, and may leave for the cloud."""

    cloud: bool

    def start(self, environment: protocol.Environment) -> None:
        """Begin with an idle edge."""
        super().start(environment)
        self.cluster.offload = self.cloud  # type: ignore[attr-defined]


class Srtf(_AtTheEdge):
    """Shortest remaining time first, over gangs of edge workers that run all together or not.

    Parameters
    ----------
    cloud : bool
        Send a job that finds no free gang when its data arrives to the cloud as a whole. Without,
        only jobs whose type has no edge worker go there.
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    def __init__(self, cloud: bool = True, gangs: Gangs = "ideal") -> None:
        super().__init__(0, gangs)
        self.cloud = cloud

    def key(self, name: str) -> tuple[float, ...]:
        """Remaining slots."""
        return (self.remaining_slots(name),)


class EdgeTiresiasL(_AtTheEdge, TiresiasL):
    """Least attained service in queues, over gangs of edge workers.

    Parameters
    ----------
    limits
        As in `TiresiasL`; the limit is the authors' 3250 worker-seconds.
    cloud, gangs
        As in `Srtf`.
    """

    def __init__(
        self, limits: Sequence[float] = (3250 / 3600,), cloud: bool = True, gangs: Gangs = "ideal"
    ) -> None:
        super().__init__(limits, 0, gangs)
        self.cloud = cloud


def theorem(instance: EdgecloudInstance, speed: float = 1.0) -> protocol.Theorem:
    """Theorem 3: with (1 + epsilon) speed, ``D_max (1 + 1 / epsilon)``-competitive for (2).

    Stated for the epsilon of the `speed` at which A_online runs, or for 1 where that is 1. The
    constant falls as epsilon grows. ``quantities`` holds that for problem (4), ``note`` what the
    printed proof leaves open.
    """
    if not instance.jobs:
        return protocol.theorem_record("ratio", None, quantities={})
    chunks, epsilon = int(instance.chunks.max()), float(exactly(speed) - 1) or 1.0
    constant = 1 + 1 / epsilon
    swapped = _overtaking(instance)
    short, waiting = _missing_ps(instance), _missing_in_cloud(instance)
    assumed = [
        ("chunks become available in the order of arrival on every worker", swapped == 0, swapped),
        ("a PS is free whenever a job runs", short == 0, short),
        ("no chunk waits for a worker in the cloud", waiting == 0, waiting),
    ]
    beside = [
        (f"the algorithm runs at speed {1 + epsilon:.12g}", speed > 1, speed),
        ("Lemma 2: the printed dual is feasible", False, None),
    ]
    note = (
        "The printed proof does not establish the constant: Lemma 2's dual is infeasible and "
        "Lemma 4 needs the order of arrival. The corrected dual is feasible but proves less."
    )
    quantities = {"epsilon": epsilon, "ratio_for_(4)": constant, "D_max": chunks}
    return protocol.theorem_record(
        "ratio", chunks * constant, assumed, beside, quantities=quantities, note=note
    )


def measure_at_speed(
    instance: EdgecloudInstance, speed: float, options: SolveOptions
) -> list[protocol.MeasureAtSpeed]:
    """Theorem 3's two quantities of A_online at a speed above 1.

    With zeta = 1 the optimum of (4) is only bounded where chunks take longer at the edge.
    """
    if np.isfinite(instance.storage_gb).any():
        raise InputError("speed", speed, "is for servers without limits of storage (problem (2))")
    run, stated = run_with_speed(instance, float(exactly(speed) - 1)), theorem(instance, speed)
    of_4 = {**stated, "value": stated["quantities"].get("ratio_for_(4)")}
    total, flow = "total completion time, problem (2)", "fractional flow time, problem (4)"
    solved = solve_flow_time(instance, options)
    at_edge = [j for j, job in enumerate(instance.jobs) if instance.places(job)]
    if (instance.edge_slots > instance.cloud_slots)[at_edge].any():
        solved = replace(solved, status=Status.NO_SOLUTION, objective=None)
    return [
        protocol.MeasureAtSpeed(total, run.total, stated),
        protocol.MeasureAtSpeed(flow, run.fractional_flow, of_4, solved),
    ]


def _overtaking(instance: EdgecloudInstance) -> int:
    """Most slots by which a later job's chunk is available before an earlier job's on a server."""
    worst, order = 0, np.argsort(instance.arrivals, kind="stable").tolist()
    for s, kind in instance.groups:
        jobs = [j for j in order if instance.jobs[j].worker_type == kind]
        ready = instance.arrivals[jobs] + instance.upload[jobs, s]
        worst = max(worst, int((np.maximum.accumulate(ready) - ready).max(initial=0)))
    return worst


def _missing_ps(instance: EdgecloudInstance) -> int:
    """PSs missing to serve all jobs of a type at once, where the cloud's are finite."""
    jobs = Counter(job.ps_type for job in instance.jobs)
    at_edge = Counter(kind for server in instance.servers for kind in server.ps)
    clouds = {kind: instance.cloud_ps(kind) for kind in jobs}
    short = [jobs[k] - at_edge[k] - n for k, n in clouds.items() if n is not None]
    return max([0, *short])


def _missing_in_cloud(instance: EdgecloudInstance) -> int:
    """Workers missing to serve all chunks of a type at once in a cloud that has some."""
    chunks = Counter[str]()
    for job in instance.jobs:
        chunks[job.worker_type] += job.chunks
    clouds = {kind: instance.cloud_workers(kind) for kind in chunks}
    return max([0, *(chunks[kind] - n for kind, n in clouds.items() if n)])


ONLINE = FamilyOnline(
    algorithms={
        "edgecloud": Edgecloud,
        "edgecloud-marginal": EdgecloudMarginal,
        "edgecloud-escape": EdgecloudEscape,
        "edgecloud-edge-only": EdgecloudEdgeOnly,
        "dual-price": partial(EdgecloudDualPrice, learning=RESIDUAL, expected=0),
        "reoptimise": EdgecloudReoptimise,
        "srtf": Srtf,
        "tiresias-l": EdgeTiresiasL,
        "batchsche": EdgecloudBatchsche,
        "all-cloud": AllCloud,
    },
    state=EdgecloudState,
    committed_rows=this_slot,  # what has begun in the cloud goes on; the rest stays open
    build_cluster=EdgecloudCluster,
    theorems={"edgecloud": theorem},
    measure_at_speed=measure_at_speed,
)
