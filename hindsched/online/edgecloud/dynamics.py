"""What decisions do in edgecloud: runs of chunks, and holds of parameter servers (PSs).

Beside the solution file's rows there are open ones, so that nothing is told slot by slot:
``{"chunk", "server", "worker", "from"}`` starts a run whose end is not yet known, ``{"chunk",
"to"}`` ends it in that slot or the one before, and ``{"ps", "from"}`` holds a PS for as long as
the job runs without a break from that slot on, or until a later hold of the job.
"""

from __future__ import annotations

import numpy as np

from hindsched.errors import InputError, Refused
from hindsched.instances.base import MOST_COUNT
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.cluster_state import ClusterState, this_slot
from hindsched.online.edgecloud.cluster import EdgecloudCluster, build_cluster
from hindsched.online.protocol import Decision, Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import (
    CLOUD_KEYS,
    EDGE_KEYS,
    PS_KEYS,
    ChunkRun,
    Runs,
    active_spans,
    ps_place,
    worker_place,
)
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solutions.rows import read_span

START_KEYS = {"chunk", "server", "worker", "from"}
STOP_KEYS = {"chunk", "to"}
OPEN_HOLD_KEYS = {"ps", "from"}
ROWS = (START_KEYS, STOP_KEYS, OPEN_HOLD_KEYS, EDGE_KEYS, CLOUD_KEYS, PS_KEYS)
"""Keys of the kinds of rows."""


class State(ClusterState[EdgecloudJob]):
    """Runs and holds; knows what ran when."""

    instance: EdgecloudInstance

    def __init__(self, instance: EdgecloudInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._index = {job.name: j for j, job in enumerate(instance.jobs)}
        self._runs: list[ChunkRun] = []
        self._last = 0
        self._open: dict[tuple[int, int], Assignment] = {}
        self._holds: list[tuple[int, int, int, int | None]] = []

    def relaxed(self, formulation: str) -> str:
        """Work may move."""
        return "literal"

    def apply(self, slot: int, decision: Decision) -> None:
        """Add the decision's rows, ends of runs first; see the module."""
        for stops in (True, False):
            for name, rows in decision.assignments.items():
                for row in rows:
                    if (row.keys() == STOP_KEYS) is stops:
                        self._add(slot, name, row)

    def _add(self, slot: int, name: str, row: Assignment) -> None:
        j, where = self._index[name], f"job {name}, slot {slot}"
        if set(row) not in ROWS:
            raise InputError(where, row, "must be a run, its begin or end, or a hold")
        read_span(where, {"from": 1, "to": row.get("from", MOST_COUNT), **row})
        if "ps" in row:
            place = ps_place(self.instance, row, where)
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
            worker_place(self.instance, {**row, "to": MOST_COUNT}, where)
            self._open[key] = row

    def _run(self, j: int, row: Assignment) -> None:
        """Add a run of a chunk whose ends are known."""
        place = worker_place(self.instance, row, self.instance.jobs[j].name)
        self._runs.append(ChunkRun(j, row["chunk"], place, row["from"], row["to"]))
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
        """What ran, and who held which PS; open holds end with their job's activity."""
        runs = Runs.of(self._runs)
        active: dict[int, list[tuple[int, int]]] = {}
        for j, first, last in active_spans(runs):
            active.setdefault(j, []).append((first, last))
        holds: list[ChunkRun] = []
        following: dict[int, int] = {}  # first slot of the job's next hold
        in_order = sorted(self._holds, key=lambda hold: hold[2])
        for j, place, first, end in reversed(in_order):
            if end is None:  # with the job's activity, or the next hold
                ends = [last for begin, last in active.get(j, ()) if begin <= first <= last]
                end = min([*ends, following.get(j, MOST_COUNT) - 1]) if ends else 0
            following[j] = first
            if first <= end:
                holds.append(ChunkRun(j, 0, place, first, end))
        return EdgecloudSolution(self.instance, runs, Runs.of(holds), self.formulation)


committed_rows = this_slot  # what has begun in the cloud goes on; the rest stays open

__all__ = ["EdgecloudCluster", "State", "build_cluster", "committed_rows"]
