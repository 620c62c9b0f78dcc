"""What decisions do in edgecloud: runs of chunks, and holds of parameter servers (PSs).

Beside the solution file's rows there are open ones, so that nothing is told slot by slot:
``{"chunk", "server", "worker", "from"}`` starts a run whose end is not yet known, ``{"chunk",
"to"}`` ends it in that slot or the one before, and ``{"ps", "from"}`` holds a PS for as long as
the job runs without a break from that slot on, or until a later hold of the job.

To slot-by-slot baselines the edge is workers by type, PSs and the cloud. A job's work is counted in
chunk-slots and spread over any workers whose servers have its data: it may move, which problem (2)
without migration forbids, and moving costs no second upload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from hindsched.errors import InputError, Refused
from hindsched.instances.base import MOST_COUNT
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.baselines.cluster import BaselineCluster, Placement, gang_width
from hindsched.online.cluster_state import ClusterState
from hindsched.online.edgecloud import occupancy
from hindsched.online.protocol import Decision, Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud import runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solutions.rows import read_span

STOP_KEYS = {"chunk", "to"}
OPEN_ROWS = ({"chunk", "server", "worker", "from"}, STOP_KEYS, {"ps", "from"})
ROWS = (*OPEN_ROWS, runs.EDGE_KEYS, runs.CLOUD_KEYS, runs.PS_KEYS)  # keys of the kinds of rows


class EdgecloudState(ClusterState[EdgecloudJob]):
    """Runs and holds; knows what ran when."""

    instance: EdgecloudInstance

    def __init__(self, instance: EdgecloudInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._runs: list[runs.ChunkRun] = []
        self._last = 0
        self._open: dict[tuple[int, int], Assignment] = {}
        self._holds: list[tuple[int, int, int, int | None]] = []
        self._built: EdgecloudSolution | None = None

    def relaxed(self, formulation: str) -> str:
        """Work may move."""
        return "literal"

    def apply(self, slot: int, decision: Decision) -> None:
        """Add the decision's rows, ends of runs first; see the module."""
        if decision.assignments:
            self._built = None
        for stops in (True, False):
            for name, rows in decision.assignments.items():
                for row in rows:
                    if (row.keys() == STOP_KEYS) is stops:
                        self._add(slot, name, row)

    def _add(self, slot: int, name: str, row: Assignment) -> None:
        j, where = self.instance.job_index(name), f"job {name}, slot {slot}"
        if set(row) not in ROWS:
            raise InputError(where, row, "must be a run, its begin or end, or a hold")
        read_span(where, {"from": 1, "to": row.get("from", MOST_COUNT), **row})
        if "ps" in row:
            place = runs.ps_place(self.instance, row, where)
            self._holds.append((j, place, row["from"], row.get("to")))
            return
        key, most = (j, row["chunk"]), self.jobs[name].chunks
        if type(key[1]) is not int or not 1 <= key[1] <= most:
            raise InputError(f"{where}, chunk", key[1], f"must be in 1..{most}")
        if row.keys() == STOP_KEYS:
            begun = self._open.pop(key, None)
            if begun is None or row["to"] < slot - 1:
                detail = "only a run that goes on can end, and not earlier"
                raise Refused("irrevocable", where, detail)
            if row["to"] >= begun["from"]:
                self._run(j, {**begun, "to": row["to"]})
        elif "to" in row:
            self._run(j, row)
        elif key in self._open:
            raise Refused("(2c)", where, f"chunk {row['chunk']} runs already")
        else:
            runs.worker_place(self.instance, {**row, "to": MOST_COUNT}, where)
            self._open[key] = row

    def _run(self, j: int, row: Assignment) -> None:
        """Add a run of a chunk whose ends are known."""
        place = runs.worker_place(self.instance, row, self.instance.jobs[j].name)
        self._runs.append(runs.ChunkRun(j, row["chunk"], place, row["from"], row["to"]))
        self._last = max(self._last, row["to"])

    def is_over(self, slot: int) -> bool:
        """Whether every job is done after `slot`."""
        latest = int(self.instance.arrivals.max(initial=0))
        if self._open or slot < max(self._last, latest):
            return False
        return not self.solution().shortfall.any()

    @property
    def slots_to_play(self) -> int:
        """Until the last job can be done: chunks that run are stepped too."""
        shortest = np.minimum(self.instance.edge_slots, self.instance.cloud_slots)
        return int((self.instance.arrivals + shortest).max(initial=self.last_slot))

    def is_idle(self, slot: int) -> bool:
        """Whether no chunk runs in `slot` or later."""
        return not self._open and self._last < slot

    def solution(self) -> EdgecloudSolution:
        """What ran, and who held which PS; built once for the same rows."""
        if self._built is None:
            self._built = self._build_solution()
        return self._built

    def _build_solution(self) -> EdgecloudSolution:
        """The solution of all rows; open holds end with their job's activity."""
        ran = runs.Runs.of(self._runs)
        active: dict[int, list[tuple[int, int]]] = {}
        for j, first, last in runs.active_spans(ran):
            active.setdefault(j, []).append((first, last))
        holds: list[runs.ChunkRun] = []
        following: dict[int, int] = {}  # first slot of the job's next hold
        in_order = sorted(self._holds, key=lambda hold: hold[2])
        for j, place, first, end in reversed(in_order):
            if end is None:  # with the job's activity, or the next hold
                ends = [last for begin, last in active.get(j, ()) if begin <= first <= last]
                end = min([*ends, following.get(j, MOST_COUNT) - 1]) if ends else 0
            following[j] = first
            if first <= end:
                holds.append(runs.ChunkRun(j, 0, place, first, end))
        return EdgecloudSolution(self.instance, ran, runs.Runs.of(holds), self.formulation)


class EdgecloudCluster(BaselineCluster[EdgecloudJob]):
    """First free workers in the order of the servers, and any free PS.

    To the cloud go jobs that no edge worker can serve, and with `offload` those that have not begun
    and find no workers when all their data is at the edge; as a whole.
    """

    offload = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.instance: EdgecloudInstance = environment.cluster
        self._free = [True] * len(self.instance.worker_list)
        self._ps = occupancy.ParameterServers(self.instance)
        self._ps_booked: Counter[str] = Counter()  # jobs with workers, whether they have a PS yet
        self._site = occupancy.CloudSite(self.instance, self._ps)
        self._storage = occupancy.StorageLedger(self.instance)
        self._most: dict[str, int] = {}
        self._reserved: dict[str, dict[int, int]] = {}
        self._chunks: dict[str, dict[int, int]] = {}  # of running jobs: worker -> chunk
        self._current: occupancy.Running = {}
        self._opens: set[int] = set()
        self._slot = 0

    # Time

    def turn(self, slot: int, arrivals: Sequence[EdgecloudJob]) -> bool:
        """Begin a slot: uploads that end and what changes in the cloud open room."""
        self._slot = slot
        for job in arrivals:
            most = min(job.chunks, len(self.instance.workers_by_type.get(job.worker_type, ())))
            most = gang_width(self.gangs, partial(self.drawn_workers, job), most)
            most, self._reserved[job.name] = self._storage.reserve(job, slot, most)
            if not most and not self.instance.has_cloud(job):
                raise occupancy.no_room(job)
            self._most[job.name] = most
            self._opens.update(job.arrival + slots for slots in job.upload_slots.values())
        opened = slot in self._opens or slot in self._site.events
        self._site.release(slot)
        return opened

    def leaving(
        self,
        jobs: Mapping[str, EdgecloudJob], held: Mapping[str, Placement],
        left: Mapping[str, Fraction],
    ) -> Collection[str]:  # fmt: skip
        """Jobs that the cloud serves from now on."""
        gone = [
            name for name, job in jobs.items()
            if name not in held and left[name] == self.work(job) and self._leaves(job)
        ]  # fmt: skip
        for name in gone:
            self._site.add(self._slot, jobs[name])
            self._storage.end(name, 0)
        return gone

    def _leaves(self, job: EdgecloudJob) -> bool:
        """Whether a job that has not begun and holds nothing leaves for the cloud."""
        if not self.instance.has_cloud(job):
            return False
        if not self._most[job.name]:
            return True
        servers = (self.instance.servers[s].name for s, _ in self.instance.places(job))
        return self.offload and all(self._is_ready(job, name) for name in servers)

    def _is_ready(self, job: EdgecloudJob, server: str) -> bool:
        """Whether a server has the job's data."""
        return job.arrival + job.upload_slots[server] <= self._slot

    def finished(self, job: EdgecloudJob, slot: int) -> None:
        """The job's storage is free after `slot`."""
        self._storage.end(job.name, slot)

    # Places: PSs are counted by type here, and bound when `rows` says who runs

    def place(self, job: EdgecloudJob, workers: int) -> Placement | None:
        """Book the first free workers whose server has the job's data, and a PS."""
        picked = self._pick(job, workers)
        if len(picked) < workers or not self._has_ps(job):
            return None
        places = (self.instance.worker_list[worker][0] for worker in picked)
        counts = Counter(self.instance.servers[s].name for s in places)
        placement = Placement(dict(counts), facts={"workers": picked})
        self.book(job, placement)
        return placement

    def _has_ps(self, job: EdgecloudJob) -> bool:
        kind = job.ps_type
        bound = sum(self._ps.held[name][0] == kind for name in self._chunks)
        return self._ps.count(kind) > self._ps_booked[kind] - bound

    def _pick(self, job: EdgecloudJob, count: int) -> list[int]:
        picked: list[int] = []
        for s, members in self.instance.places(job):
            if not self._is_ready(job, self.instance.servers[s].name):
                continue
            free = [worker for worker in members if self._free[worker]]
            limit = self._reserved[job.name].get(s)
            picked += free[:limit]
            if len(picked) >= count:
                break
        return picked[:count]

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
        """Chunk-slots on workers of the edge; a worker does one a slot."""
        return Fraction(job.chunks * job.chunk_slots(self.instance.slot_seconds, in_cloud=False))

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
        parts = [occupancy.run_changes(self.instance, slot, self._current, now)]
        self._current = now
        for name, (job, _) in running.items():
            if name not in self._ps.held:
                place = self._ps.take(name, job, slot)
                assert place is not None, "a PS was counted for it"
                parts.append({name: [{"ps": runs.place_name(self.instance, place), "from": slot}]})
        self._site.events.discard(slot)
        parts.append(self._site.start(slot))
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: [row for part in parts for row in part.get(name, ())] for name in names}
