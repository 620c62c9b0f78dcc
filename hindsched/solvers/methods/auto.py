"""``--method auto``: a certified bound and a checked solution for any size of instance.

The route, which the result names:

- ``prices+search``: the subgradient method and the neighbourhood search (`BoundAndSearch`). Both
  are anytime, so the answer is always an interval. Further cores search with other draws.
- ``prices+search+tree``: small instances of a family that can be branched on try a tree for a short
  time: where it closes it is the quickest proof, and one that needs no trust.
- ``prices+search+milp``: else small instances spend most of the time on the offline program, begun
  from the best solution; the better of the two bounds counts, and the certificate stays. With more
  than one core the tree grows beside the program from the start, and what ends first ends both.

Without a time limit the method stops after `DEFAULT_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution, build_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.interrupt import catch_interrupt, stoppable
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, keep
from hindsched.solvers.door.status import Progress, StoppedBy
from hindsched.solvers.door.work import now
from hindsched.solvers.methods.base import (
    FindIncumbent,
    Method,
    bound,
    column_generation,
    joined,
    relaxation,
    serve_nobody,
    solve_milp,
)
from hindsched.solvers.methods.bound_and_search import ENDED, METHOD, BoundAndSearch
from hindsched.solvers.parallel import SideBySide, threads_of
from hindsched.solvers.tree.method import certified_by, growing_from, solve_tree, tree_rows

SMALL_SIZE = 50_000
"""Jobs x linking rows up to which the offline program is solved."""
SHARE_ALONE, SHARE_BESIDE = (0.1, 1.0), (0.02, 0.15)
"""Share of the time, and seconds at most, that prices and search get before the program, and where
they go on beside it."""
SHARE_OF_TREE, MOST_OF_TREE = 0.15, 6.0
"""Share of the time, and seconds at most, that a tree gets before the program on one core."""
SHARE_BESIDE_PROGRAM = 0.95
"""Share of the time left after which what works beside the program says what it has."""
LOOK_SECONDS = 0.05
"""How often the program asks whether what works beside it has ended."""


class Found(NamedTuple):
    """What a process found: schedules by job, a certificate, a bound and facts."""

    rows: JsonObject | None
    certificate: Certificate | None
    bound: float | None
    details: dict[str, object]


def solve_auto(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    program: Callable[..., Result] = solve_milp,
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

    Returns
    -------
    Result
        Its ``method`` is the route, ``details["why"]`` says why; ``details["certified_bound"]`` is
        the bound that the certificate proves, where the solver's own bound is better.
    """
    with catch_interrupt() as interrupted:
        both = BoundAndSearch(instance, formulation, options, interrupted, on_progress, incumbent)
        size = both.oracle.num_blocks * both.oracle.rows.size
        small = size <= SMALL_SIZE
        threads = threads_of(options)
        if not small:
            result = both.run(both.limit, helpers=threads - 1)
        else:
            has_tree = bool(tree_rows(instance, formulation))
            share, most = SHARE_BESIDE if has_tree or threads > 1 else SHARE_ALONE
            result = keep(both.run(min(most, share * both.limit)))
            if result.stopped_by not in ENDED:
                prove = _in_turn if threads == 1 else _side_by_side
                result = prove(both, result, program, interrupted)
        relation = "at most" if small else "above"
        why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
        return replace(result, details={"why": why, **result.details})


def _in_turn(
    both: BoundAndSearch, known: Result, program: Callable[..., Result], interrupted: Event
) -> Result:
    """A tree for a short time, then the program; the tree certifies what that proves."""
    if not tree_rows(known.instance, known.formulation):
        return _with_program(both, known, program, known.solution)
    growing = growing_from(both, known, interrupted)
    end = now() + min(MOST_OF_TREE, SHARE_OF_TREE * both.limit, both.seconds_left())
    grown = growing.run(lambda: max(0.0, end - now()))
    if within_gap(grown.objective, grown.bound, both.options.gap):
        return replace(grown, method=f"{METHOD}+tree", stopped_by=StoppedBy.GAP)
    if interrupted.is_set():
        return grown
    known = keep(replace(grown, stopped_by=known.stopped_by))
    result = keep(_with_program(both, known, program, known.solution))
    if "program_failed" in result.details:
        details = {"program_failed": result.details["program_failed"]}
        grown = growing.run(both.seconds_left)
        return replace(grown, details={**grown.details, **details})
    return certified_by(growing, result, both.seconds_left)


def _side_by_side(
    both: BoundAndSearch, known: Result, program: Callable[..., Result], interrupted: Event
) -> Result:
    """The program, and prices, search and tree in another process; what ends first ends both."""
    until = now() + SHARE_BESIDE_PROGRAM * both.seconds_left()
    looked = 0.0

    def closes() -> bool:
        """Whether what the other process found closes the gap."""
        nonlocal looked
        if now() - looked < LOOK_SECONDS:
            return False
        looked = now()
        return any(is_closed(_joined_with(known, found)) for found in beside.look())

    def is_closed(result: Result) -> bool:
        return within_gap(result.objective, result.bound, both.options.gap)

    with SideBySide([partial(_prove, both, known, until)]) as beside:
        with stoppable(closes):
            result = _with_program(both, known, program, known.solution)
        if not is_closed(result) and not interrupted.is_set():
            beside.wait(both.seconds_left)
        for found in beside.look():
            result = _joined_with(result, found)
    details = {**result.details, "parts": 2}
    if beside.errors:
        details["part_failed"] = "; ".join(beside.errors)
    if result.certificate is not None:
        details["certified_bound"] = result.certificate.bound
    if is_closed(result):
        result = replace(result, stopped_by=StoppedBy.GAP)
    elif interrupted.is_set():
        result = replace(result, stopped_by=StoppedBy.INTERRUPTED)
    elif result.stopped_by is StoppedBy.INTERRUPTED:  # by what came from beside, not by the user
        result = replace(result, stopped_by=StoppedBy.TIME_LIMIT)
    return replace(result, details=details)


def _with_program(
    both: BoundAndSearch,
    known: Result,
    program: Callable[..., Result],
    incumbent: Solution | None,
) -> Result:
    """Solve the offline program and keep the better of everything."""
    threads = both.options.threads
    options = both.options.with_time(both.seconds_left())
    if threads is not None and threads > 1:
        options = replace(options, threads=threads - 1)
    report = _reporter(both, known)
    try:
        solved = program(known.instance, known.formulation, options, report, incumbent=incumbent)
    except SolveFailed as error:
        return replace(known, details={**known.details, "program_failed": str(error)})
    details = {**known.details, **{f"program_{k}": v for k, v in solved.details.items()}}
    result = joined(known, solved)
    if result.certificate is not None:
        details["certified_bound"] = result.certificate.bound
    return replace(result, method=f"{METHOD}+milp", details=details)


def _prove(both: BoundAndSearch, known: Result, until: float) -> Found:
    """Go on with prices and search, then grow a tree: what is done beside the program."""
    both.on_progress = None
    found = known
    has_tree = bool(tree_rows(known.instance, known.formulation))
    if not has_tree:
        found = both.run(until - now())
    elif not both.bounding.converged:
        share, most = SHARE_ALONE
        found = both.run(min(most, share * both.limit))
    if has_tree and found.stopped_by not in ENDED:
        with catch_interrupt() as interrupted:
            growing = growing_from(both, found, interrupted)
            found = growing.run(lambda: max(0.0, until - now()))
    rows: Any = None if found.solution is None else dict(found.solution.assignments())
    details = {key: found.details[key] for key in ("nodes", "leaves") if key in found.details}
    return Found(rows, found.certificate, found.bound, details)


def _joined_with(result: Result, found: Found) -> Result:
    """A result with what another process found."""
    solution = None
    if found.rows is not None:
        rows: Any = found.rows
        solution = build_solution(result.instance, rows, result.formulation)
    other = replace(result, solution=solution, bound=found.bound, certificate=found.certificate)
    whole = joined(result, other)
    details = {**result.details, **found.details}
    return replace(whole, backend=result.backend, details=details)


def _reporter(both: BoundAndSearch, known: Result) -> Progress | None:
    """Listener of the program that knows what was known before."""
    on_progress = both.on_progress
    if on_progress is None:
        return None
    pick_bound, pick = (min, max) if both.oracle.sense == "max" else (max, min)

    def report(bound: float | None, found: float | None, seconds: float, text: str) -> None:
        bounds = [value for value in (bound, known.bound) if value is not None]
        objectives = [value for value in (found, known.objective) if value is not None]
        on_progress(
            pick_bound(bounds, default=None), pick(objectives, default=None),
            now() - both.begin, text,
        )  # fmt: skip

    return report


def generic_methods(
    find_incumbent: FindIncumbent | None = None, program: Callable[..., Result] = solve_milp
) -> dict[str, Method]:
    """The methods of a family that has a program and a pricing oracle.

    Parameters
    ----------
    find_incumbent : callable, optional
        Cheap feasible solution from which `milp` and `auto` begin; by default the solution that
        serves nobody, where that is feasible.
    program : callable
        How `auto` solves the offline program: called like `solve_milp`.
    """
    find = find_incumbent or serve_nobody

    def milp(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Solve the offline program by a mixed-integer solver."""
        incumbent = find(instance, formulation)
        return solve_milp(instance, formulation, options, on_progress, incumbent=incumbent)

    def auto(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Choose by the instance's size, and close the gap from both sides."""
        incumbent = find(instance, formulation)
        return solve_auto(
            instance, formulation, options, on_progress, incumbent=incumbent, program=program
        )

    def tree(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        """Prove an optimum by branch and bound on prices; its tree is the certificate."""
        incumbent = find(instance, formulation)
        return solve_tree(instance, formulation, options, on_progress, incumbent=incumbent)

    return {
        "auto": auto,
        "milp": milp,
        "tree": tree,
        "relaxation": relaxation,
        "bound": bound,
        "column-generation": column_generation,
    }
