"""``--method auto``: a certified bound and a checked solution for any size of instance.

The route, which the result names:

- ``prices+search``: the subgradient method and the neighbourhood search (`Duel`). Both are anytime,
  so the answer is always an interval. A family that dives (`dives`) begins the search so, each core
  with other dives.
- ``prices+search+tree``: small instances of a family that can be branched on try a tree first, for
  `SHARE_OF_TREE`: where it closes it is the quickest proof, and one that needs no trust.
- ``prices+search+milp``: else small instances spend most of the time on the offline program, begun
  from the best solution; the better of the two bounds counts, and the certificate stays. With more
  than one core prices, search and tree go on meanwhile instead of before.

Without a time limit the method stops after `DEFAULT_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.interrupt import catch_interrupt, stoppable
from hindsched.solvers.door.kept import keep, telling
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, status_of
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.methods.base import closer, joined, solve_milp
from hindsched.solvers.methods.duel import ENDED, METHOD, Duel
from hindsched.solvers.team import JobUpdates, Member, Part, Team, threads_of
from hindsched.solvers.tree.method import Growing, certified_by, growing_from, tree_rows

SMALL_SIZE = 50_000
"""Jobs x linking rows up to which the offline program is solved."""
SHARE_ALONE, SHARE_BESIDE = (0.1, 1.0), (0.02, 0.15)
"""Share of the time, and seconds at most, that prices and search get before the program, and where
they go on beside it."""
SHARE_OF_TREE, MOST_OF_TREE = 0.15, 6.0
"""Share of the time, and seconds at most, that a tree gets before the program on one core."""
SHARE_OF_MEMBER = 0.95
"""Share of the time left after which a member tells what it has."""


def solve_auto(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    program: Callable[..., Result] = solve_milp,
    lessons: list[object] | None = None,
) -> Result:
    """Solve or bound an instance by the route that its size suggests.

    Parameters
    ----------
    instance, formulation, options, on_progress
        As for every method.
    incumbent : Solution, optional
        A feasible solution that the family knows, to begin from.
    program : callable
        How the family solves its offline program from an incumbent: called like `solve_milp`.
    lessons : list, optional
        Where what a tree learns beside the program is put at once: see `NodeProgram.lessons`.

    Returns
    -------
    Result
        Its ``method`` is the route, ``details["why"]`` says why; ``details["certified_bound"]`` is
        the bound that the certificate proves, where the solver's own bound is better.
    """
    with catch_interrupt() as interrupted:
        duel = Duel(instance, formulation, options, interrupted, on_progress, incumbent)
        size = duel.oracle.num_blocks * duel.oracle.rows.size
        small = size <= SMALL_SIZE
        threads = threads_of(options)
        if not small:
            result = duel.run(duel.limit, helpers=threads - 1, dives=True)
        else:
            has_tree = bool(tree_rows(instance, formulation))
            share, most = SHARE_BESIDE if has_tree or threads > 1 else SHARE_ALONE
            result = keep(duel.run(min(most, share * duel.limit)))
            growing = None
            if has_tree and threads == 1 and result.stopped_by not in ENDED:
                growing = growing_from(duel, result, interrupted)
                result = keep(_with_tree(growing, duel, interrupted))
            if result.stopped_by not in ENDED:
                result = keep(_with_program(result, duel, options, program, threads, lessons))
            if growing is not None:
                result = certified_by(growing, result, duel.seconds_left)
        relation = "at most" if small else "above"
        why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
        return replace(result, details={"why": why, **result.details})


def _with_tree(growing: Growing, duel: Duel, interrupted: Event) -> Result:
    """Try to close the gap by a tree in a short time."""
    known = growing.known
    end = now() + min(MOST_OF_TREE, SHARE_OF_TREE * duel.limit, duel.seconds_left())
    grown = growing.run(lambda: 0.0 if growing.is_proven else max(0.0, end - now()))
    if within_gap(grown.objective, grown.bound, duel.options.gap):
        return replace(grown, method=f"{METHOD}+tree", stopped_by=StoppedBy.GAP)
    return grown if interrupted.is_set() else replace(grown, stopped_by=known.stopped_by)


def _with_program(
    known: Result,
    duel: Duel,
    options: SolveOptions,
    program: Callable[..., Result],
    threads: int,
    lessons: list[object] | None,
) -> Result:
    """Solve the offline program and keep the better of everything.

    With more than one thread prices, search and tree go on in other processes.
    """
    parts: list[Part] = []
    if threads > 1:
        parts.append(partial(_prove, duel, known))
    if threads > 2 and duel.search is not None:
        parts.append(duel.search_along)
    if options.threads is not None:
        options = replace(options, threads=threads - len(parts))
    instance, formulation, details = known.instance, known.formulation, dict(known.details)
    with (
        stoppable() as closed,
        Team(instance, formulation, options.gap, parts, closed, lessons=lessons) as team,
    ):
        team.offer(known.solution)
        team.take(JobUpdates(certificate=known.certificate))
        report = _reporter(duel, team)
        result = known

        def tell(found: Result) -> None:
            team.offer(found.solution)
            team.exchange(duel.bounding.best.prices)

        try:
            with telling(tell):
                solved = program(
                    instance,
                    formulation,
                    options.with_time(duel.seconds_left()),
                    report,
                    incumbent=known.solution,
                )
            details |= {f"program_{key}": value for key, value in solved.details.items()}
            result = replace(joined(known, solved), method=f"{METHOD}+milp")
            team.offer(solved.solution)
            team.note_bound(solved.bound)
        except SolveFailed as error:
            details["program_failed"] = str(error)
        except BaseException:  # a limit stops the program: what the others found is kept
            keep(replace(known, solution=team.solution(), certificate=team.certificate))
            raise
        team.wait(duel.seconds_left)
        report(None, None, 0.0, f"{team.size} parts ended, {duel.bounding.iterations} bounds")
        solution, certificate = team.solution(), team.certificate or known.certificate
    details |= {**team.details, "parts": team.size}
    if team.errors:
        details["part_failed"] = "; ".join(team.errors)
    assert certificate is not None
    bound = closer(instance.sense, result.bound, team.bound)
    result = replace(result, solution=solution, bound=bound, certificate=certificate)
    details["certified_bound"] = certificate.bound
    if within_gap(result.objective, result.bound, options.gap):
        result = replace(result, stopped_by=StoppedBy.GAP)
    return replace(result, status=status_of(solution, result.status), details=details)


def _prove(duel: Duel, known: Result, member: Member) -> None:
    """Go on with prices and search, then grow a tree: what a member does beside the program.

    Where the prices have converged the tree begins at once: the search goes on at its nodes.
    """
    duel.on_progress = None
    found = known
    has_tree = bool(tree_rows(known.instance, known.formulation))
    if not (has_tree and duel.bounding.converged):
        share, most = SHARE_ALONE
        found = duel.run(min(most, share * duel.limit))
        if found.solution is not None:
            member.tell(found.solution)
        member.say(JobUpdates(certificate=found.certificate, details=found.details))
        if found.stopped_by in ENDED:
            return
    if has_tree:
        with catch_interrupt() as interrupted:
            reserve = (1 - SHARE_OF_MEMBER) * duel.limit
            growing = growing_from(duel, found, interrupted, member.tell)

            told, lessons = False, 0

            def seconds_left() -> float:
                nonlocal told, lessons
                if member.time_to_listen():
                    _hear(member, duel, growing)
                    if new := growing.lessons[lessons:]:
                        lessons += len(new)
                        member.say(JobUpdates(lessons=new))
                if growing.is_proven and not told:
                    told = True
                    certificate, bound = growing.so_far()
                    member.say(JobUpdates(certificate=certificate, bound=bound))
                return max(0.0, duel.seconds_left() - reserve)

            grown = growing.run(seconds_left)
        details = {key: grown.details[key] for key in ("nodes", "leaves")}
        member.say(JobUpdates(certificate=grown.certificate, bound=grown.bound, details=details))
    if duel.search is not None:
        duel.search_along(member)


def _hear(member: Member, duel: Duel, growing: Growing) -> None:
    """Take what the program found: the tree closes more nodes by it, the search goes on from it."""
    for _, rows in member.heard():
        if rows is not None:
            solution = build_solution(duel.oracle.instance, rows, duel.oracle.formulation)
            growing.offer(solution)
            if duel.search is not None:
                duel.search.adopt(solution)


def _reporter(duel: Duel, team: Team) -> Progress:
    """Listener of the program that knows what all parts know, and tells them of the best."""
    on_progress, sense = duel.on_progress, duel.oracle.sense

    def report(bound: float | None, found: float | None, seconds: float, text: str) -> None:
        team.note_bound(bound)
        team.exchange(duel.bounding.best.prices)
        if on_progress is not None:
            objectives = [value for value in (found, team.objective) if value is not None]
            pick = max if sense == "max" else min
            seconds = now() - duel.begin
            on_progress(team.bound, pick(objectives, default=None), seconds, text)

    return report
