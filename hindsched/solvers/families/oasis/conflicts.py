"""Leaves and conflict cuts: what the program of the ends promises, decided on real servers.

A point of `build_ends_program` says which jobs are admitted and when each ends. Whether the
servers hold that is a packing problem (a leaf). If nothing fits, a smallest set S of promises that
still cannot be kept gives a cut that every solution satisfies,

    sum over jobs i of S, ends e <= E_i of u_ie <= |S| - 1,

and the program of the ends goes on with it. Where weights w of the jobs refute a leaf, for which
their work is more than the most C that all slots up to the ends can do, the cut is

    sum over jobs i and ends e of w_i max(0, W_i - N_i max(0, e - E_i)) u_ie <= C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.leaf import build_leaf
from hindsched.models.oasis.offline import OasisProgram
from hindsched.solutions.base import Solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import ProgramResult, solve_program
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.leaf_of_loads import LeafOfLoads, Refutation
from hindsched.solvers.methods.base import better

Ends = dict[int, int]
"""Latest end slot by the position of each admitted job."""
SHRINK_SECONDS = 2.0
"""Limit of each leaf while a conflict is made smaller; undecided keeps the larger conflict."""
ROUNDING = 1e-9
"""By how much more than their bound slots may do in a cut: what rounding does."""
MOST_UNDECIDED = 3
"""Undecided leaves after which a conflict stays as it is."""


class Leaves:
    """Decides promises of ends on the servers as they are.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    options : SolveOptions
        Solver, threads and seed.

    Attributes
    ----------
    count : int
        Leaves decided so far, those that made conflicts smaller included.
    solution : OasisSolution, optional
        Schedule of the last leaf, if it had one.
    refutation : Refutation, optional
        Why the last leaf has none, where its work is more than slots can do.
    weakest : Refutation, optional
        The same of the weakest promises that the last conflicts were made of.
    best : Solution, optional
        The best schedule of any leaf.
    impossible : list of dict
        Promises that no schedule keeps.
    """

    def __init__(self, instance: OasisInstance, options: SolveOptions) -> None:
        self.instance = instance
        self.options = options
        self.count = 0
        self.solution: OasisSolution | None = None
        self.refutation: Refutation | None = None
        self.weakest: Refutation | None = None
        self.best: Solution | None = None
        self._kept: list[Ends] = []
        self._loads = LeafOfLoads(instance)
        self.impossible: list[Ends] = []

    def decide(self, ends: Ends, seconds: float | None) -> ProgramResult:
        """Solve one leaf: the jobs of `ends` and no others, each finished by its end."""
        self.count += 1
        self.solution, self.refutation = None, None
        if not ends:
            self.solution = OasisSolution(self.instance, {}, {})
            return ProgramResult(Status.OPTIMAL, StoppedBy.GAP)
        until = math.inf if seconds is None else now() + seconds
        result = self._loads.decide(ends, seconds)
        self.solution = self._loads.solution
        if result is not None and result.status == Status.INFEASIBLE:
            self.refutation = self._loads.refutation
        if result is None:
            left = None if seconds is None else max(0.0, until - now())
            result = self._decided_by_patterns(ends, left)
        if self.solution is not None and self.solution.is_feasible():
            self._kept.append(ends)
            self.best = better(self.best, self.solution)
        elif result.status == Status.INFEASIBLE:
            self.impossible.append(ends if self.refutation is None else self.refutation.ends)
        return result

    def learn(self, ends: Ends) -> bool:
        """Take in promises that no schedule keeps, as somebody else found; whether that is new."""
        is_new = self.known(ends) is None
        self.impossible += [ends] if is_new else []
        return is_new

    def _decided_by_patterns(self, ends: Ends, seconds: float | None) -> ProgramResult:
        """The leaf's result by a program of patterns, whatever the servers."""
        leaf = build_leaf(self.instance, ends)
        result = solve_program(
            leaf.model,
            SolveOptions(
                solver=self.options.solver,
                time_limit=seconds,
                threads=self.options.threads,
                seed=self.options.seed,
            ),
        )
        self.solution = leaf.extract() if result.has_point else None
        return result

    def known(self, ends: Ends) -> bool | None:
        """Whether promises can be kept, as far as the leaves so far say: None if they do not.

        What has fewer jobs or later ends than something that was kept can be kept; what has more
        jobs or earlier ends than something impossible is impossible.
        """
        if any(is_weaker(ends, kept) for kept in self._kept):
            return True
        return False if any(is_weaker(other, ends) for other in self.impossible) else None

    def conflicts(self, ends: Ends, last: Ends, out_of_time: Callable[[], bool]) -> list[Ends]:
        """Smallest conflicts within an infeasible leaf's promises, as cuts.

        Parameters
        ----------
        ends : dict
            Promises that were proven impossible.
        last : dict
            The last end that is worth anything, by job.
        out_of_time : callable
            Whether to stop with the conflicts as they are, which are valid at any time.

        Returns
        -------
        list of dict
            One or two conflicts: jobs are tried for removal shortest first, and longest first.
        """
        self.weakest = self.refutation
        if self.weakest is not None and not self._loads.are_listed(ends):
            self.weakest = self._loads.weakened(self.weakest, last, out_of_time)
            ends = self.weakest.ends
            self.impossible.append(ends)
        shortest_first = sorted(ends, key=lambda i: self.instance.work[i])
        ends = self._weakened(ends, last, shortest_first, out_of_time)
        if self._loads.is_large(ends):
            return [ends]
        found: list[Ends] = []
        for order in (shortest_first, shortest_first[::-1]):
            smaller = self._shrink(ends, last, order, out_of_time)
            if smaller not in found:
                found.append(smaller)
        return found

    def _weakened(
        self, ends: Ends, last: Ends, shortest_first: list[int], out_of_time: Callable[[], bool]
    ) -> Ends:
        """Make promises later and fewer, least loss first, as far as loads refute them.

        The best of what they do not refute is nearly as good as what was promised: it is decided.
        """
        doubtful: Ends = {}

        def is_impossible(weaker: Ends) -> bool:
            nonlocal doubtful
            known = self.known(weaker)
            if known is not None or out_of_time():
                return known is False
            refuted = self._loads.refutes(weaker, SHRINK_SECONDS)
            if refuted and self._loads.refutation is not None:
                self.weakest = self._loads.refutation
                self.impossible.append(self.weakest.ends)
            elif refuted is False and self._worth(weaker) > self._worth(doubtful):
                doubtful = weaker
            return refuted is True

        least_loss = sorted(ends, key=partial(self._loss, ends, last))
        ends = self._later(ends, last, least_loss, is_impossible)
        ends = self._fewer(ends, shortest_first, is_impossible)
        ends = self._later(ends, last, [job for job in least_loss if job in ends], is_impossible)
        best = 0.0 if self.best is None else self.best.objective()
        if self._worth(doubtful) > best and self.known(doubtful) is None and not out_of_time():
            self.decide(doubtful, SHRINK_SECONDS)
        return ends

    def _loss(self, ends: Ends, last: Ends, job: int) -> float:
        """What a job earns less at its last end."""
        return self._worth({job: ends[job]}) - self._worth({job: last[job]})

    def _worth(self, ends: Ends) -> float:
        """What jobs earn that end so."""
        jobs = self.instance.jobs
        return sum(jobs[job].utility.value(end - jobs[job].arrival) for job, end in ends.items())

    def _shrink(
        self, ends: Ends, last: Ends, order: list[int], out_of_time: Callable[[], bool]
    ) -> Ends:
        """Make promises fewer, and then later, while nothing fits."""
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

        ends = self._fewer(ends, order, is_impossible)
        return self._later(ends, last, [job for job in order if job in ends], is_impossible)

    def _fewer(self, ends: Ends, order: list[int], is_impossible: Callable[[Ends], bool]) -> Ends:
        """Leave promises out, one after the other, while nothing fits."""
        for job in order:
            fewer = {i: end for i, end in ends.items() if i != job}
            if is_impossible(fewer):
                ends = fewer
        return ends

    def _later(
        self, ends: Ends, last: Ends, order: list[int], is_impossible: Callable[[Ends], bool]
    ) -> Ends:
        """Make promises later, one after the other, while nothing fits."""
        for job in order:
            impossible, possible = ends[job], last[job] + 1
            while possible - impossible > 1:  # the last end, then by bisection
                first_try = impossible == ends[job] and possible > last[job]
                end = last[job] if first_try else (impossible + possible) // 2
                if is_impossible({**ends, job: end}):
                    impossible = end
                else:
                    possible = end
            ends = {**ends, job: impossible}
        return ends


def is_weaker(one: Ends, other: Ends) -> bool:
    """Whether what keeps the other promises keeps these as well."""
    return all(job in other and other[job] <= end for job, end in one.items())


def promised_ends(program: OasisProgram) -> Ends:
    """Admitted jobs and their ends at the program's present point."""
    return {
        job: end
        for job in program.parts.open_jobs
        for end, chosen in program.block(job).u.items()
        if round(chosen.value or 0.0) == 1
    }


def last_ends(program: OasisProgram) -> Ends:
    """The last end of each job that has any."""
    ends = {job: program.block(job).u for job in program.parts.open_jobs}
    return {job: max(own) for job, own in ends.items() if len(own)}


def add_cut_of_work(program: OasisProgram, refutation: Refutation) -> None:
    """Forbid that jobs' work, weighted, is more than all slots can do up to the refuted ends.

    Who ends later than that has done by then what the slots since then do not hold.
    """
    instance = program.instance
    needed = 0.0
    for job, weight in refutation.weights.items():
        work, latest = int(instance.work[job]), refutation.ends[job]
        most = instance.most_workers(instance.jobs[job])
        for end, chosen in program.block(job).u.items():
            by_then = work - most * max(0, end - latest)
            if by_then > 0:
                needed += weight * by_then * chosen
    program.model.conflicts.add(needed <= refutation.most * (1 + ROUNDING))


def add_cut(program: OasisProgram, conflict: Ends) -> None:
    """Forbid the promises of a conflict together."""
    kept = sum(
        chosen
        for job, latest in conflict.items()
        for end, chosen in program.block(job).u.items()
        if end <= latest
    )
    program.model.conflicts.add(kept <= len(conflict) - 1)
