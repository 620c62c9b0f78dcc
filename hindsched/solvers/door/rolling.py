"""A cluster's offline program that rolls on with an online algorithm: what is over leaves it.

The program over all known jobs is the same as the program over those that still matter, beside what
the others have earned or cost: a job that is decided and has ended before every open slot and
every open job's arrival is settled. Where jobs share a slot's price (mlbroker) one that ran beside
a job that stays waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pyomo.common.gc_manager import PauseGC

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.models import base
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import ProgramResult


@dataclass(frozen=True)
class Step:
    """The program at one step and what is known of it."""

    # over the jobs that still matter, with the point found at its variables
    program: base.OfflineProgram
    result: ProgramResult  # the solve
    started_from: Solution | None = None  # the start, over the jobs that still matter

    @property
    def plan(self) -> Solution | None:
        """The point as a solution over the jobs that still matter."""
        return self.program.extract() if self.result.has_point else None


class RollingProgram:
    """The offline program of a cluster whose jobs arrive and are decided one after the other.

    Every optimum can be placed on real servers, and a step begins from the start that it is given.
    The cluster's own jobs are not looked at.
    """

    def __init__(
        self, cluster: Instance, formulation: str | None = None, *,
        options: SolveOptions | None = None,
    ) -> None:  # fmt: skip
        self.cluster = cluster.with_jobs(())
        self.formulation = cluster.check_formulation(formulation)
        self.options = options or SolveOptions()
        self.slot = 1
        self._jobs: dict[str, Any] = {}
        self._rows: dict[str, list[Assignment]] = {}
        self._locked: set[str] = set()
        self._shares = base.family_models(cluster.family).jobs_share_costs

    def add(self, jobs: Iterable[Any]) -> None:
        """Add jobs that have become known."""
        self._jobs.update((job.name, job) for job in jobs)

    def commit(
        self, rows: Mapping[str, list[Assignment]] | None = None, *, whole: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Fix further rows by job, and who gets no more than its rows."""
        for name, new in (rows or {}).items():
            self._rows.setdefault(name, []).extend(deepcopy(new))  # read again when asked
        self._locked.update(whole)

    def advance(self, slot: int) -> None:
        """Make `slot` the first open one, and settle what no longer matters."""
        self.slot = slot
        over = {name: end for name in self._jobs if (end := self._end_of(name)) is not None}
        while True:
            stays = [job for name, job in self._jobs.items() if name not in over]
            first = min([slot, *map(self.cluster.arrival_of, stays)])
            settled = {name: end for name, end in over.items() if end < first}
            if not self._shares or settled == over:
                break
            over = settled  # what shares a slot with a job that stays, stays
        self.settle(settled)

    def settle(self, names: Iterable[str]) -> None:
        """Leave jobs out from now on."""
        for name in names:
            del self._jobs[name]
            self._rows.pop(name, None)
            self._locked.discard(name)

    def _end_of(self, name: str) -> int | None:
        """Last slot of a job that is over, None for an open one."""
        rows = self._rows.get(name, [])
        last = max((row["to"] for row in rows), default=self.slot)
        if last >= self.slot:
            return last if name in self._locked else None
        if name not in self._locked:
            instance = self.cluster.with_jobs((self._jobs[name],))
            try:
                alone = build_solution(instance, {name: rows}, self.formulation)
            except InputError:  # they are no solution of the job yet
                return None
            if alone.completion(name) is None:
                return None
        return last

    @property
    def instance(self) -> Instance:
        """The cluster with the jobs that still matter."""
        return self.cluster.with_jobs(tuple(self._jobs.values()))

    def commitments(self) -> base.Commitments:
        """What is fixed of them."""
        return base.Commitments(self.slot, self._rows, frozenset(self._locked))

    def build(self) -> base.OfflineProgram:
        """The program at this step."""
        with PauseGC():  # nothing is garbage yet, and looking for it takes longer than the rules
            return base.offline_program(
                self.instance, self.formulation, commitments=self.commitments()
            )

    def solve(
        self, start: Callable[[], Solution | None] | None = None,
        options: SolveOptions | None = None,
    ) -> Step:  # fmt: skip
        """Solve the program of this step, by default with the options of all steps.

        `start` gives a feasible solution of `instance` that keeps the commitments, or None: it is
        asked if the family has not made one itself, to derive the program's time limit.
        """
        program = self.build()
        known = program.incumbent
        if known is None and start is not None:
            known = start()
        if known is not None:
            program.load(known)
        result = solve_program(program.model, options or self.options, start=known is not None)
        return Step(program, result, known)
