"""Leaves decided by loads: which load every slot takes.

    sum over slots t and loads l of l_i x_tl >= W_i,    sum_l x_tl <= 1,    x whole.

Slots with the same jobs are one, which takes several loads. The linear program already finds nearly
every set of ends impossible that is, in milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import Event

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.methods.oasis.loads import Loads
from hindsched.solvers.methods.oasis.sparse_program import LoadedProgram, SparseProgram
from hindsched.solvers.program import ProgramResult
from hindsched.solvers.status import Status, StoppedBy
from hindsched.solvers.work import spend

MISSING = 1e-6
"""Share of a job's work that must be missing at the linear optimum of impossible ends."""
FEW_COLUMNS, MOST_COLUMNS = 500, 30_000
"""Columns of a leaf up to which it is decided about as soon as refuted, and above which it is not
built."""
Ends = Mapping[int, int]
"""Latest end slot by the position of each admitted job."""
Spans = dict[tuple[int, ...], list[int]]
"""Slots by the jobs that may run in them."""


class LeafOfLoads:
    """Decides whether jobs can all be finished by given ends, where servers have few loads.

    Parameters
    ----------
    instance : OasisInstance
        The instance.

    Attributes
    ----------
    solution : OasisSolution, optional
        Schedule of the last leaf that was decided, if it has one.
    """

    def __init__(self, instance: OasisInstance) -> None:
        self.instance = instance
        self._loads = Loads(instance)
        self.solution: OasisSolution | None = None

    def refutes(self, ends: Ends) -> bool | None:
        """Whether the linear program says that no schedule keeps the ends; None without loads."""
        spans = self._spans(ends)
        return None if spans is None else self._refutes(ends, spans)

    def _refutes(self, ends: Ends, spans: Spans) -> bool:
        spend()
        program = self._program(ends, spans, Event(), whole=False)
        return program.solve(math.inf) and program.is_optimal and program.objective > MISSING

    def decide(self, ends: Ends, seconds: float | None) -> ProgramResult | None:
        """Decide within seconds; None where loads cannot. A schedule is `solution`."""
        self.solution = None
        spans = self._spans(ends)
        if spans is None:
            return None
        if self._refutes(ends, spans):
            return ProgramResult(Status.INFEASIBLE, StoppedBy.INFEASIBLE)
        with catch_interrupt() as interrupted:
            program = self._program(ends, spans, interrupted, whole=True)
            found = program.solve(math.inf if seconds is None else seconds)
            spend(1 + max(0, int(program.highs.getInfo().mip_node_count)))
            if program.is_infeasible:
                return ProgramResult(Status.INFEASIBLE, StoppedBy.INFEASIBLE)
            if not found:
                ended = StoppedBy.INTERRUPTED if interrupted.is_set() else StoppedBy.TIME_LIMIT
                return ProgramResult(Status.NO_SOLUTION, ended)
        solution = self._schedule(ends, spans, np.rint(program.values()).astype(np.int64))
        if solution is None or not solution.is_feasible():
            return None  # rounding let in what servers do not hold
        self.solution = solution
        return ProgramResult(Status.OPTIMAL, StoppedBy.GAP, has_point=True)

    def is_large(self, ends: Ends) -> bool:
        """Whether deciding takes much longer than the linear program, which is nearly as good."""
        spans = self._spans(ends)
        return spans is not None and sum(len(self._loads_of(jobs)) for jobs in spans) > FEW_COLUMNS

    def _spans(self, ends: Ends) -> Spans | None:
        """Slots by the jobs that may run in them; None if these have too many loads."""
        spans: Spans = {}
        arrival = [job.arrival for job in self.instance.jobs]
        for slot in range(1, self.instance.horizon + 1):
            if jobs := tuple(i for i in sorted(ends) if arrival[i] <= slot <= ends[i]):
                spans.setdefault(jobs, []).append(slot)
        number = 0
        for jobs in sorted(spans, key=len, reverse=True):  # the first to have too many
            loads = self._loads.of(jobs)
            if loads is None:
                return None
            number += len(loads)
        return spans if number <= MOST_COLUMNS else None

    def _loads_of(self, jobs: tuple[int, ...]) -> Ints:
        loads = self._loads.of(jobs)
        assert loads is not None
        return loads

    def _program(
        self, ends: Ends, spans: Spans, interrupted: Event, *, whole: bool
    ) -> LoadedProgram:
        """How often each span's slots take each of its loads; if not whole, what is missing."""
        program = SparseProgram()
        done: dict[int, list[tuple[int, float]]] = {job: [] for job in ends}
        for jobs, slots in spans.items():
            loads, number = self._loads_of(jobs), float(len(slots))
            taken = [program.column(0.0, number, whole=whole) for _ in loads]
            program.row([(column, 1.0) for column in taken], -math.inf, number)
            for job, units in zip(jobs, loads.T, strict=True):
                done[job] += zip(taken, units.tolist(), strict=True)
        for job, own in done.items():
            work = float(self.instance.work[job])
            if not whole:
                own.append((program.column(-1.0 / work, math.inf), 1.0))
            program.row(((column, units) for column, units in own if units), work, math.inf)
        return program.load(interrupted)

    def _schedule(self, ends: Ends, spans: Spans, times: Ints) -> OasisSolution | None:
        """Put loads on servers, each so many times; what a job does not need is left out."""
        instance = self.instance
        names = {job: instance.jobs[job].name for job in ends}
        left = {job: int(instance.work[job]) for job in ends}
        sides = instance.worker_servers, instance.ps_servers
        counts = [
            {
                name: np.zeros((instance.horizon, len(side)), dtype=np.int64)
                for name in names.values()
            }
            for side in sides
        ]
        first = 0
        for jobs, slots in spans.items():
            loads = self._loads_of(jobs)
            chosen = np.repeat(loads, times[first : first + len(loads)], axis=0)
            first += len(loads)
            for slot, load in zip(slots, chosen, strict=False):  # some slots may stay empty
                workers = np.minimum(load, [left[job] for job in jobs])
                placed = self._loads.on_servers(jobs, workers)
                if placed is None:
                    return None
                for at, job in enumerate(jobs):
                    left[job] -= int(workers[at])
                    for own, units in zip(counts, placed, strict=True):
                        own[names[job]][slot - 1] = units[:, at]
        return OasisSolution(instance, counts[0], counts[1])
