"""Promises of ends, decided on real servers, and conflict cuts for the program of the ends.

A point of `build_ends` says which jobs are admitted and when each ends. Whether the servers hold
that is a packing problem (`build_leaf`). If nothing fits, a smallest set S of promises that
still cannot be kept gives a cut that every solution satisfies,

    sum over jobs i of S, ends e <= E_i of u_ie <= |S| - 1,

and the program of the ends goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import Ends, build_leaf
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import ProgramResult, Status, StoppedBy
from hindsched.solvers.kernels.oasis.maximal_patterns import server_patterns

Plan = tuple[int, Any, Any]
"""A job's end, and the slots and counts of its workers and its PSs (`resources.OasisPlan`)."""
MOST_PATTERNS = 120
"""Patterns of a group in a slot above which its packing rows are left out."""
PLACING_SECONDS = 2.0
"""Limit of placing given schedules on servers."""
SHRINK_SECONDS = 2.0
"""Limit of each decision while a conflict is made smaller; undecided keeps the larger conflict."""
MOST_UNDECIDED = 3
"""Undecided ones after which a conflict stays as it is."""

Row = tuple[float, ...]


def find_patterns(
    capacity: Floats, demand: Floats, most: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Maximal patterns of a server; None if they are more than `MOST_PATTERNS`."""
    return _known_patterns(tuple(capacity), tuple(map(tuple, demand.tolist())), tuple(most))


@lru_cache(maxsize=4096)
def _known_patterns(
    capacity: Row, demand: tuple[Row, ...], most: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    found = server_patterns(np.array(capacity), np.array(demand), np.array(most), MOST_PATTERNS)
    return None if found is None else tuple(map(tuple, found.tolist()))


def place_together(instance: OasisInstance, plans: Mapping[int, Plan]) -> OasisSolution | None:
    """Schedules of jobs, by position, packed on real servers; None if they are not seen to fit."""
    ends = {job: plan[0] for job, plan in plans.items()}
    leaf = build_leaf(instance, ends, find_patterns)
    for job, (end, *placed) in plans.items():
        block = leaf.model.job[job]
        for units, own in zip((block.workers, block.servers), placed, strict=True):
            in_slot = np.bincount(own.slots, own.counts, end + 1)
            for slot, variable in units.items():
                variable.fix(int(in_slot[slot]))
    found = solve_program(leaf.model, SolveOptions(time_limit=PLACING_SECONDS, threads=1))
    return leaf.extract() if found.has_point else None


class Promises:
    """Decides promises of ends on the servers as they are, and remembers what it decided."""

    def __init__(self, instance: OasisInstance, options: SolveOptions) -> None:
        self.instance = instance
        self.options = SolveOptions(
            solver=options.solver, threads=options.threads, seed=options.seed
        )
        self.count = 0
        self.best: OasisSolution | None = None
        self._kept: list[Ends] = []
        self._impossible: list[Ends] = []

    def decide(self, ends: Ends, seconds: float | None) -> ProgramResult:
        """Look for a schedule of these jobs and no others, each finished by its end."""
        self.count += 1
        if not ends:
            self._keep(ends, OasisSolution(self.instance, {}, {}))
            return ProgramResult(Status.OPTIMAL, StoppedBy.GAP)
        leaf = build_leaf(self.instance, ends, find_patterns)
        result = solve_program(leaf.model, self.options.with_time(seconds))
        if result.has_point:
            self._keep(ends, leaf.extract())
        elif result.status == Status.INFEASIBLE:
            self._impossible.append(ends)
        return result

    def _keep(self, ends: Ends, found: OasisSolution) -> None:
        if found.is_feasible():
            self._kept.append(ends)
            if self.best is None or found.objective() > self.best.objective():
                self.best = found

    def known(self, ends: Ends) -> bool | None:
        """Whether promises can be kept, as far as decisions so far say; None if they do not.

        Fewer jobs or later ends than what was kept can be kept; the reverse of it is impossible.
        """
        if any(is_weaker(ends, kept) for kept in self._kept):
            return True
        return False if any(is_weaker(other, ends) for other in self._impossible) else None

    def conflicts(self, ends: Ends, last: Ends, out_of_time: Callable[[], bool]) -> list[Ends]:
        """Smallest conflicts within impossible promises, as cuts: one or two, by order of removal.

        `last` has the last end that is worth anything, by job. Conflicts are valid at any time, so
        that it may stop where it is `out_of_time`.
        """
        shortest_first = sorted(ends, key=lambda i: self.instance.work[i])
        found: list[Ends] = []
        for order in (shortest_first, shortest_first[::-1]):
            smaller = self._shrink(ends, last, order, out_of_time)
            if smaller not in found:
                found.append(smaller)
        return found

    def _shrink(
        self, ends: Ends, last: Ends, order: list[int], out_of_time: Callable[[], bool]
    ) -> Ends:
        """Make promises fewer, and then later, one after the other while nothing fits."""
        undecided = 0

        def is_impossible(weaker: Ends) -> bool:
            nonlocal undecided
            can_be_kept = self.known(weaker)
            if can_be_kept is not None:
                return not can_be_kept
            if undecided >= MOST_UNDECIDED or out_of_time():
                return False
            status = self.decide(weaker, SHRINK_SECONDS).status
            undecided += status == Status.NO_SOLUTION
            return status == Status.INFEASIBLE

        for job in order:
            fewer = {i: end for i, end in ends.items() if i != job}
            ends = fewer if is_impossible(fewer) else ends
        for job in [job for job in order if job in ends]:
            impossible, possible = ends[job], last[job] + 1
            end = last[job]  # the last end first, then by bisection
            while possible - impossible > 1:
                if is_impossible({**ends, job: end}):
                    impossible = end
                else:
                    possible = end
                end = (impossible + possible) // 2
            ends = {**ends, job: impossible}
        return ends


def is_weaker(one: Ends, other: Ends) -> bool:
    """Whether what keeps the other promises keeps these as well."""
    return all(job in other and other[job] <= end for job, end in one.items())
