"""What decisions do in the edgecloud family: workers that serve by priority, runs, and PS holds.

Beside the rows of the solution file a decision may hold richer ones, so that a preemptive
schedule need not be spelled out slot by slot:

``{"chunk", "server", "worker", "priority"}``
    Dispatches a chunk for good. Its worker trains the available chunk of the smallest priority,
    equal ones in the order in which they became available, then of dispatch; a chunk becomes
    available once it is uploaded. A worker is driven either by priorities or by explicit runs.
``{"chunk", "server", "worker", "from"}`` and ``{"chunk", "to"}``
    Starts a run whose end is not yet known, and ends it in that slot or the one before.
``{"ps", "from"}``
    Holds a PS for as long as the job runs without a break from that slot on, or until a later
    hold of the job.

The truth refuses what breaks (2a), (2c), (2d), (2i), migration, preemption in the cloud and the
storage rule (7b), at once; (2e) and (2f) of open holds when the run ends.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hindsched.errors import InputError, Refused
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.cluster_state import RowTruth, this_slot
from hindsched.online.edgecloud.cluster import EdgecloudCluster, build_cluster
from hindsched.online.protocol import Decision, Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.ps import active_spans
from hindsched.solutions.edgecloud.reading import CLOUD_KEYS, EDGE_KEYS, PS_KEYS
from hindsched.solutions.edgecloud.runs import ChunkRun, Holds, Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.kernels.edgecloud.preemptive_queue import serve

DISPATCH_KEYS = {"chunk", "server", "worker", "priority"}
START_KEYS = {"chunk", "server", "worker", "from"}
STOP_KEYS = {"chunk", "to"}
OPEN_HOLD_KEYS = {"ps", "from"}


class Truth(RowTruth[EdgecloudJob]):
    """Accepts dispatches, runs and holds; knows what ran when.

    Parameters
    ----------
    instance : EdgecloudInstance
        The whole instance.
    environment : Environment
        What the algorithm was told. Outside the feasible set chunks may move.
    """

    instance: EdgecloudInstance

    def __init__(self, instance: EdgecloudInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._index = {job.name: j for j, job in enumerate(instance.jobs)}
        # Baselines outside the feasible set are judged by `literal`, where work may move.
        outside = not environment.in_feasible_set
        self._formulation = "literal" if outside else environment.formulation
        self._may_move = self._formulation == "literal"
        self._cloud = len(instance.worker_list)
        self._home: dict[tuple[int, int], int] = {}
        self._last: dict[tuple[int, int], int] = {}
        self._driven: dict[int, str] = {}
        self._busy: dict[int, list[tuple[int, int]]] = {}
        self._cloud_use: dict[tuple[str, int], int] = {}
        self._dispatched: list[tuple[int, int, int, int, float]] = []
        self._dispatched_of: dict[int, int] = {}
        self._runs: list[ChunkRun] = []
        self._open: dict[tuple[int, int], Assignment] = {}
        self._open_on: dict[int, tuple[int, int]] = {}
        self._open_of: Counter[int] = Counter()
        self._run_slots: dict[int, dict[int, int]] = {}
        self._on_edge: set[int] = set()
        self._holds: list[tuple[int, int, int, int | None]] = []
        self._stores_more = False
        self._limited_storage = bool(
            np.isfinite(instance.storage_gb).any() and (instance.chunk_gb > 0).any()
        )
        self._finished: Runs | None = None
        self._end: int | None = 0

    def check_form(self, name: str, rows: Sequence[Assignment]) -> None:
        """Dispatches and open runs are no rows of a file: `check_row` tells what a row is."""

    def apply(self, slot: int, decision: Decision) -> None:
        """Add the decision's rows, ends of runs first; see the module."""
        for stops in (True, False):
            for name, rows in decision.assignments.items():
                job = self.instance.jobs[self._index[name]]
                for row in rows:
                    if (row.keys() == STOP_KEYS) is stops:
                        self.check_row(slot, job, row)
        if self._stores_more and self._limited_storage:
            self._check_storage(slot)
        self._stores_more = False

    def check_row(self, slot: int, job: EdgecloudJob, row: Assignment) -> None:
        """Check and book one row; raise `Refused` with the constraint's name."""
        j = self._index[job.name]
        keys = row.keys()
        if keys == DISPATCH_KEYS:
            self._dispatch(slot, j, job, row)
        elif keys in (EDGE_KEYS, CLOUD_KEYS):
            self._run(j, job, row)
        elif keys == START_KEYS:
            self._start(j, job, row)
        elif keys == STOP_KEYS:
            self._stop(slot, j, job, row)
        elif keys in (PS_KEYS, OPEN_HOLD_KEYS):
            self._hold(j, job, row)
        else:
            raise InputError(f"row of {job.name}", row, "must be a dispatch, a run or a hold")

    def _place(self, j: int, job: EdgecloudJob, row: Assignment) -> int:
        """Position of the worker, if it qualifies (2a)."""
        where = f"job {job.name}"
        if "worker" not in row:
            if row["server"] != self.instance.cloud.name:
                raise InputError(f"row of {job.name}", row, "must name a worker")
            if self.instance.cloud_workers(job.worker_type) == 0:
                raise Refused("(2a)", where, "the cloud has no worker of the type")
            return self._cloud
        place = self.instance.worker_index.get((row["server"], row["worker"]))
        if place is None:
            raise Refused("(2a)", where, f"no worker {row['worker']} on {row['server']}")
        if self.instance.worker_list[place][2] != job.worker_type:
            raise Refused("(2a)", where, f"worker of type {self.instance.worker_list[place][2]}")
        return place

    def _chunk(self, j: int, job: EdgecloudJob, chunk: object, place: int) -> None:
        """A chunk exists and has one home."""
        if type(chunk) is not int or not 1 <= chunk <= job.chunks:
            raise Refused("(2c)", f"job {job.name}", f"there is no chunk {chunk}")
        home = self._home.setdefault((j, chunk), place)
        if home != place and not self._may_move:
            raise Refused("no migration", f"job {job.name}, chunk {chunk}", "it has another home")
        if place != self._cloud:
            self._on_edge.add(j)
            self._stores_more = True
        self._finished = None

    def _drive(self, place: int, how: str, job: EdgecloudJob) -> None:
        if self._driven.setdefault(place, how) != how:
            detail = "the worker is driven by priorities and by runs"
            raise Refused("(2d)", f"job {job.name}", detail)

    def _dispatch(self, slot: int, j: int, job: EdgecloudJob, row: Assignment) -> None:
        place = self._place(j, job, row)
        chunk = row["chunk"]
        if (j, chunk) in self._home:
            detail = "it was dispatched before"
            raise Refused("no migration", f"job {job.name}, chunk {chunk}", detail)
        self._chunk(j, job, chunk, place)
        self._drive(place, "priority", job)
        ready = max(slot, job.arrival + job.upload_slots[row["server"]])
        self._dispatched.append((place, ready, j, chunk, row["priority"]))
        self._dispatched_of[j] = self._dispatched_of.get(j, 0) + 1

    def _run(self, j: int, job: EdgecloudJob, row: Assignment) -> None:
        place = self._place(j, job, row)
        chunk, first, last = row["chunk"], row["from"], row["to"]
        where = f"job {job.name}, chunk {chunk}, slot {first}"
        if last < first:
            raise InputError(f"row of {job.name}", row, "must not end before it begins")
        fresh = (j, chunk) not in self._home
        self._chunk(j, job, chunk, place)
        if first < job.arrival + job.upload_slots[row["server"]]:
            raise Refused("(2i)", where, "the chunk is not uploaded yet")
        before = self._last.get((j, chunk), 0)
        if first <= before:
            raise Refused("(2c)", where, "the chunk runs elsewhere")
        if place == self._cloud:
            if not fresh and first > before + 1 and not self._may_move:
                raise Refused("no preemption in the cloud", where, f"it ran until {before}")
            self._use_cloud(job, first, last)
        else:
            self._drive(place, "runs", job)
            self._occupy(place, first, last, where)
        self._last[j, chunk] = last
        self._runs.append(ChunkRun(j, chunk, place, first, last))
        slots = self._run_slots.setdefault(j, {})
        slots[chunk] = slots.get(chunk, 0) + last - first + 1

    def _start(self, j: int, job: EdgecloudJob, row: Assignment) -> None:
        """Begin a run; it is booked when it ends."""
        place = self._place(j, job, row)
        where = f"job {job.name}, chunk {row['chunk']}, slot {row['from']}"
        if (j, row["chunk"]) in self._open:
            raise Refused("(2c)", where, "the chunk runs already")
        if place in self._open_on:
            raise Refused("(2d)", where, "the worker is taken")
        self._open[j, row["chunk"]] = row
        self._open_on[place] = (j, row["chunk"])
        self._open_of[j] += 1
        self._stores_more = True

    def _stop(self, slot: int, j: int, job: EdgecloudJob, row: Assignment) -> None:
        """End a run and book it."""
        begun = self._open.pop((j, row["chunk"]), None)
        where = f"job {job.name}, chunk {row['chunk']}, slot {slot}"
        if begun is None or row["to"] < slot - 1:
            raise Refused("irrevocable", where, "only a run that goes on can end, and not earlier")
        del self._open_on[self._place(j, job, begun)]
        self._open_of[j] -= 1
        if row["to"] >= begun["from"]:
            self._run(j, job, {**begun, "to": row["to"]})

    def _occupy(self, place: int, first: int, last: int, where: str) -> None:
        """One chunk at a time (2d); touching runs are joined."""
        busy = self._busy.setdefault(place, [])
        at = bisect.bisect(busy, (first, last))
        if (at and busy[at - 1][1] >= first) or (at < len(busy) and busy[at][0] <= last):
            raise Refused("(2d)", where, "the worker is taken")
        if at and busy[at - 1][1] == first - 1:
            busy[at - 1] = (busy[at - 1][0], last)
        else:
            busy.insert(at, (first, last))

    def _use_cloud(self, job: EdgecloudJob, first: int, last: int) -> None:
        limit = self.instance.cloud_workers(job.worker_type)
        if limit is None:
            return
        for t in range(first, last + 1):
            used = self._cloud_use.get((job.worker_type, t), 0) + 1
            if used > limit:
                raise Refused("(2d)", f"job {job.name}, cloud, slot {t}", "the cloud is full")
            self._cloud_use[job.worker_type, t] = used

    def _check_storage(self, slot: int) -> None:
        """(7b) up to `slot`: whoever is not done holds its chunks, and later slots hold no more."""
        open_runs = [
            (
                j,
                chunk,
                self.instance.worker_index[row["server"], row["worker"]],
                *(row["from"],) * 2,
            )
            for (j, chunk), row in self._open.items()
            if "worker" in row
        ]
        runs = self._all_runs()
        last = np.zeros(len(self.instance.jobs), dtype=np.int64)
        np.maximum.at(last, runs.job, runs.last)
        for j in set(runs.job.tolist()) | {j for j, *_ in open_runs}:
            if last[j] >= slot or not self._is_settled(j):
                last[j] = slot
        columns = np.column_stack(list(vars(runs).values()))
        with_open = Runs.of(np.concatenate((columns, np.array(open_runs).reshape(-1, 5))))
        stored = EdgecloudSolution(self.instance, with_open, Holds.of([]), self._formulation)
        for violation in stored.storage_violations(last):
            raise Refused("(7b)", violation.where, f"by {violation.amount:.6g} GB")

    def _hold(self, j: int, job: EdgecloudJob, row: Assignment) -> None:
        instance = self.instance
        where = f"job {job.name}, PS on {row['ps']}"
        if row["ps"] == instance.cloud.name:
            place = len(instance.servers)
            if instance.cloud_ps(job.ps_type) == 0:
                raise Refused("(2f)", where, "the cloud has no PS of the type")
        else:
            place = instance.server_index.get(row["ps"], -1)
            if (place, job.ps_type) not in instance.ps_counts:
                raise Refused("(2f)", where, "the server has no PS of the type")
            self._on_edge.add(j)
        self._holds.append((j, place, row["from"], row.get("to")))

    def _is_settled(self, j: int) -> bool:
        """Whether all work of a job is decided."""
        job = self.instance.jobs[j]
        slots = self._run_slots.get(j, {})
        if self._open_of[j]:
            return False
        in_cloud = j not in self._on_edge
        need = int((self.instance.cloud_slots if in_cloud else self.instance.edge_slots)[j])
        if self._may_move:
            done = sum(slots.values()) + need * self._dispatched_of.get(j, 0)
            return done >= job.chunks * need
        done = self._dispatched_of.get(j, 0) + sum(n >= need for n in slots.values())
        return done >= job.chunks

    def is_over(self, slot: int) -> bool:
        """Whether every job is done after `slot`."""
        if self._finished is None or self._end is None:
            settled = all(self._is_settled(j) for j in range(len(self.instance.jobs)))
            self._end = int(self._all_runs().last.max(initial=0)) if settled else None
        return self._end is not None and slot >= self._end

    @staticmethod
    def slots_to_play(instance: EdgecloudInstance) -> int:
        """Until the last job can be done: chunks that run are stepped too."""
        shortest = np.minimum(instance.edge_slots, instance.cloud_slots)
        ends = [job.arrival + int(n) for job, n in zip(instance.jobs, shortest, strict=True)]
        return max([RowTruth.slots_to_play(instance), *ends])

    def is_idle(self, slot: int) -> bool:
        """Whether no chunk runs in `slot` or later."""
        return not self._open and int(self._all_runs().last.max(initial=0)) < slot

    def _all_runs(self) -> Runs:
        """Runs of everything decided so far, dispatches carried out to the end."""
        if self._finished is None:
            table = np.array(self._runs, dtype=np.int64).reshape(-1, 5)
            if self._dispatched:
                table = np.concatenate((table, self._served()))
            self._finished = Runs.of(table)
            self._end = None
        return self._finished

    def _served(self) -> Any:
        chosen = np.array(self._dispatched)
        worker, job = chosen[:, 0].astype(np.int64), chosen[:, 2].astype(np.int64)
        work = self.instance.edge_slots[job].astype(float)
        entry, span = serve(worker, chosen[:, 1], chosen[:, 4], work)
        first, last = span[:, 0], span[:, 1] - 1
        columns = (job[entry], chosen[entry, 3], worker[entry], first, last)
        return np.column_stack(columns).astype(np.int64)

    def solution(self) -> EdgecloudSolution:
        """What ran, and who held which PS.

        Raises
        ------
        Refused
            If some job ran without exactly one PS (2e), or a PS served two jobs (2f).
        """
        runs = self._all_runs()
        holds = Holds.of(self._closed_holds(active_spans(runs)))
        solution = EdgecloudSolution(self.instance, runs, holds, self._formulation)
        for violation in solution.violations():
            if violation.constraint in ("(2e)", "(2f)"):
                detail = f"by {violation.amount:.6g}"
                raise Refused(violation.constraint, violation.where, detail)
        return solution

    def _closed_holds(
        self, spans: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int, int]]:
        """Holds with both ends: open ones end with the job's activity or its next hold."""
        by_job: dict[int, list[tuple[int, int, int | None]]] = {}
        for j, place, first, last in self._holds:
            by_job.setdefault(j, []).append((first, place, last))
        active: dict[int, list[tuple[int, int]]] = {}
        for j, first, last in spans:
            active.setdefault(j, []).append((first, last))
        rows: list[tuple[int, int, int, int]] = []
        for j, holds in by_job.items():
            holds.sort(key=lambda hold: hold[0])
            for number, (first, place, last) in enumerate(holds):
                if last is None:
                    ends = [e for b, e in active.get(j, ()) if b <= first <= e]
                    later = [h[0] for h in holds[number + 1 :]]
                    last = min([*ends, *(t - 1 for t in later)], default=first)
                    if not ends or last < first:
                        continue
                rows.append((j, place, first, last))
        return rows


promised_rows = this_slot
# A started chunk keeps its worker, and one that runs in the cloud keeps running; when to go on with
# all others stays open.


__all__ = ["EdgecloudCluster", "Truth", "build_cluster", "promised_rows"]
