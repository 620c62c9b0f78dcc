"""What decisions do in gang: gangs that hold GPUs until their work is done, at events.

Slots are as short as seconds, so that the simulator steps at events: arrivals, ends of runs, begins
of rows that were promised for later and the slots that an algorithm asks for. Beside the solution
file's rows there are open ones: a row without ``to`` runs the job until its work is done, which
this state alone knows, and ``{"to"}`` ends such a run in the slot before the present one: the job
is paused, or moved or resized if another row begins at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import Refused
from hindsched.instances.gang.instance import (
    KINDS,
    MOST_SLOTS,
    GangInstance,
    GangJob,
    split_formulation,
)
from hindsched.online.cluster_state import ClusterState, this_slot, whole_window
from hindsched.online.protocol import Capabilities, Decision, Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.gang.solution import GangRows, GangSolution, place_names, read_gpus
from hindsched.solutions.rows import read_span

STOP_KEYS = {"to"}


@dataclass
class GpuRun:
    """GPUs that a job holds without a change."""

    job: int
    first: int
    last: int  # of an open one the slot in which the work is done
    is_open: bool
    gpus: int
    held: Ints  # by server, where named, (servers,)


class GangState(ClusterState[GangJob]):
    """Runs gangs and knows when their work is done."""

    instance: GangInstance

    def __init__(self, instance: GangInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._is_elastic = split_formulation(self.formulation)[0] == KINDS[2]
        self._servers = place_names(instance)
        work = instance.durations * instance.job_gpus if self._is_elastic else instance.durations
        self._left = work.tolist()
        self._pending: list[GpuRun] = []
        self._running: dict[int, GpuRun] = {}
        self._history: list[GpuRun] = []
        self._undone = len(instance.jobs)

    def relaxed(self, formulation: str) -> str:
        """Jobs may pause and move."""
        kind, goal = split_formulation(formulation)
        kind = KINDS[1] if kind == KINDS[0] else kind
        judged = f"{kind},{goal}"
        return judged if judged in self.instance.formulations else kind

    def shown(self, job: GangJob, card: Capabilities) -> Any:
        """The job, without its duration unless the card says that durations are known."""
        return job.model_copy(deep=True) if card.knows_durations else job.request()

    @property
    def last_slot(self) -> int:
        """Slot of the last arrival."""
        return max(self.revealed.values(), default=0)

    slots_to_play = 0  # events are stepped, no slots

    def is_idle(self, slot: int) -> bool:
        """Whether no job runs and none is promised to."""
        return not (self._running or self._pending)

    def is_over(self, slot: int) -> bool:
        """Whether all work is done."""
        return self._undone == 0

    def next_slot(self, slot: int) -> int | None:
        """Slot after the next end of a run, or in which the next promised row begins."""
        events = [run.last + 1 for run in self._running.values()]
        return min([*events, *(run.first for run in self._pending)], default=None)

    def advance(self, slot: int) -> tuple[str, ...]:
        """End the runs whose last slot is before `slot`; jobs whose work is done."""
        ended = [run for run in self._running.values() if run.last < slot]
        for run in sorted(ended, key=lambda run: run.last):
            self._end(run, run.last)
        done = sorted(run.job for run in ended if self._left[run.job] <= 0)
        self._undone -= len(done)
        return tuple(self.instance.jobs[job].name for job in done)

    def _read(self, where: str, job: int, row: Assignment) -> GpuRun:
        """A row that begins a run, in the file's form or open."""
        is_open = "to" not in row
        span = frozenset({"from"} if is_open else {"from", "to"})
        held = read_gpus(self.instance, self._servers, where, row, span)
        first, last = read_span(where, {**row, "to": MOST_SLOTS} if is_open else row, MOST_SLOTS)
        named = np.zeros(len(self._servers), dtype=np.int64) if isinstance(held, int) else held
        return GpuRun(job, first, last, is_open, int(np.sum(held)), named)

    def apply(self, slot: int, decision: Decision) -> None:
        """End runs, then begin those whose slot has come."""
        if decision.rejected:
            raise Refused("(1)", f"job {decision.rejected[0]}, slot {slot}", "every job must run")
        rows_given = [(name, row) for name, rows in decision.assignments.items() for row in rows]
        for name, row in rows_given:
            if row.keys() == STOP_KEYS:
                self._stop(slot, self.instance.job_index(name), row)
        for name, row in rows_given:
            if row.keys() != STOP_KEYS:
                self._pending.append(self._read(name, self.instance.job_index(name), row))
        due = [run for run in self._pending if run.first <= slot]
        self._pending = [run for run in self._pending if run.first > slot]
        for run in sorted(due, key=lambda run: run.first):
            self._begin(run)

    def _begin(self, run: GpuRun) -> None:
        """A run begins; one that is open ends with the work that is left."""
        where, job = f"job {self.instance.jobs[run.job].name}, slot {run.first}", run.job
        if job in self._running:
            raise Refused("(7)", where, "the job runs already")
        if self._left[job] <= 0:
            raise Refused("(1)", where, "the work of the job is done")
        if run.is_open:
            run.last = run.first + int(-(-self._left[job] // self._speed(run))) - 1
        self._running[job] = run

    def _stop(self, slot: int, job: int, row: Assignment) -> None:
        run = self._running.get(job)
        where = f"job {self.instance.jobs[job].name}, slot {slot}"
        if run is None or not run.is_open or row["to"] != slot - 1:
            detail = f"only an open run that goes on can end, and only in slot {slot - 1}"
            raise Refused("irrevocable", where, detail)
        if run.first == slot:
            raise Refused("irrevocable", where, "the run began in this slot")
        self._end(run, slot - 1)

    def _end(self, run: GpuRun, last: int) -> None:
        """A run ends: its work is counted."""
        del self._running[run.job]
        run.last = last
        self._left[run.job] -= (last - run.first + 1) * self._speed(run)
        self._history.append(run)

    def _speed(self, run: GpuRun) -> int:
        """Work done in a slot."""
        return run.gpus if self._is_elastic else 1

    def solution(self) -> GangSolution:
        """The solution of all runs."""
        runs = self._history
        table = [(run.job, run.first - 1, run.last, run.gpus) for run in runs]
        columns = np.array(table, dtype=np.int64).reshape(-1, 4).T
        held = np.array([run.held for run in runs], dtype=np.int64)
        rows = GangRows._make([*columns, held.reshape(len(runs), len(self._servers))])
        return GangSolution(self.instance, rows, self.formulation)


def committed_rows(rows: Sequence[Assignment], slot: int) -> tuple[list[Assignment], bool]:
    """A job planned in one piece keeps it once it begins; one in several goes slot by slot."""
    return whole_window(list(rows), slot) if len(rows) == 1 else this_slot(rows, slot)
