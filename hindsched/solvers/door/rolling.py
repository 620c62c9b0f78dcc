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

from hindsched.arrays import Floats
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

    @property
    def prices(self) -> Mapping[str, Floats] | None:
        """Duals of the capacities by the oracle's row sets; None if there are none."""
        duals = self.result.duals
        return None if duals is None else self.program.capacity_prices(duals)


class RollingProgram:
    """The offline program of a cluster whose jobs arrive and are decided one after the other.

    Relaxed, its steps have duals. Otherwise every optimum can be placed on real servers, and a step
    begins from the start that it is given. The cluster's own jobs are not looked at.
    """

    def __init__(
        self, cluster: Instance, formulation: str | None = None, *, relax: bool = False,
        options: SolveOptions | None = None,
    ) -> None:  # fmt: skip
        self.cluster, self.relax = cluster.with_jobs(()), relax
        self.formulation = cluster.check_formulation(formulation)
        self.options = options or SolveOptions()
        self.slot = 1
        self._jobs: dict[str, Any] = {}
        self._rows: dict[str, list[Assignment]] = {}
        self._locked: set[str] = set()
        self._rejected: set[str] = set()
        self._shares = base.family_models(cluster.family).jobs_share_costs

    def move_to(self, cluster: Instance) -> None:
        """Go on with another horizon of the same cluster."""
        self.cluster = cluster.with_jobs(())

    def add(self, jobs: Iterable[Any]) -> None:
        """Add jobs that have become known."""
        self._jobs.update((job.name, job) for job in jobs)

    def commit(
        self, rows: Mapping[str, list[Assignment]] | None = None, *, whole: Iterable[str] = (),
        rejected: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Fix further rows by job, who gets no more than its rows, and who is refused for good."""
        for name, new in (rows or {}).items():
            self._rows.setdefault(name, []).extend(deepcopy(new))  # read again when asked
        self._locked.update(whole)
        self._rejected.update(rejected)

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
            self._rejected.discard(name)

    def _end_of(self, name: str) -> int | None:
        """Last slot of a job that is over, 0 for one that was rejected; None for an open one."""
        if name in self._rejected:
            return 0
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
        locked, rejected = frozenset(self._locked), frozenset(self._rejected)
        return base.Commitments(self.slot, self._rows, locked, rejected)

    def build(self) -> base.OfflineProgram:
        """The program at this step."""
        build = base.family_models(self.cluster.family).aggregated if self.relax else {}
        with PauseGC():  # nothing is garbage yet, and looking for it takes longer than the rules
            return base.offline_program(
                self.instance, self.formulation, relax=self.relax,
                commitments=self.commitments(), **build,
            )  # fmt: skip

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
        if known is None and start is not None and not self.relax:
            known = start()
        begun = known is not None and not self.relax
        if begun:
            program.load(known)
        result = solve_program(
            program.model, options or self.options, start=begun, want_duals=self.relax, small=True
        )
        return Step(program, result, known)
