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

from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution
from hindsched.solvers.door.interrupt import catch_interrupt, stoppable
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Result, keep
from hindsched.solvers.door.status import Progress, StoppedBy
from hindsched.solvers.door.work import Clock, now
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
Program = Callable[..., Result]
"""How a family solves its offline program from an incumbent: called like `solve_milp`."""


def solve_auto(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    program: Program = solve_milp,
) -> Result:
    """Solve or bound an instance by the route that its size suggests.

    Parameters
    ----------
    instance, formulation, options, on_progress
        As for every method.
    incumbent : Solution, optional
        A feasible solution that the family knows, to begin from.
    program : callable
        How the family solves its offline program from an incumbent.

    Returns
    -------
    Result
        Its ``method`` is the route, ``details["why"]`` says why.
    """
    with catch_interrupt() as stop:
        both = BoundAndSearch(instance, formulation, options, stop, on_progress, incumbent)
        size = both.oracle.num_blocks * both.oracle.rows.size
        small = size <= SMALL_SIZE
        threads = threads_of(options)
        if not small:
            both.run(both.clock.seconds, helpers=threads - 1)
        else:
            has_tree = bool(tree_rows(instance, formulation))
            share, most = SHARE_BESIDE if has_tree or threads > 1 else SHARE_ALONE
            keep(both.run(min(most, share * both.clock.seconds)))
            if both.known.stopped_by not in ENDED:
                prove = _in_turn if threads == 1 else _side_by_side
                both.known = prove(both, program, has_tree)
        relation = "at most" if small else "above"
        why = f"jobs x linking rows = {size}, {relation} {SMALL_SIZE}"
        return replace(both.known, details={"why": why, **both.known.details})


def _in_turn(both: BoundAndSearch, program: Program, has_tree: bool) -> Result:
    """A tree for a short time, then the program; the tree certifies what that proves."""
    if not has_tree:
        both.solve_program(program)
        return both.known
    growing = growing_from(both)
    own = both.clock.first(min(MOST_OF_TREE, SHARE_OF_TREE * both.clock.seconds))
    grown = growing.run(lambda: own.seconds_left)
    if within_gap(grown.objective, grown.bound, both.options.gap):
        return replace(grown, method=f"{METHOD}+tree", stopped_by=StoppedBy.GAP)
    if both.clock.stop.is_set():
        return grown
    both.known = keep(replace(grown, stopped_by=both.known.stopped_by))
    both.solve_program(program)
    if "program_failed" in both.known.details:
        return joined(both.known, growing.run(lambda: both.clock.seconds_left))
    return certified_by(growing, keep(both.known), lambda: both.clock.seconds_left)


def _side_by_side(both: BoundAndSearch, program: Program, has_tree: bool) -> Result:
    """The program, and prices, search and tree in another process; what ends first ends both."""
    known, stop = both.known, both.clock.stop
    own = both.clock.first(SHARE_BESIDE_PROGRAM * both.clock.seconds_left)
    looked = 0.0

    def is_closed(result: Result) -> bool:
        return within_gap(result.objective, result.bound, both.options.gap)

    def closes() -> bool:
        """Whether what the other process found closes the gap."""
        nonlocal looked
        if now() - looked < LOOK_SECONDS:
            return False
        looked = now()
        return any(is_closed(joined(known, found)) for found in beside.look())

    with SideBySide([partial(_prove, both, own, has_tree)]) as beside:
        with stoppable(closes):
            both.solve_program(program)
        result = both.known
        if not is_closed(result) and not stop.is_set():
            beside.wait(lambda: both.clock.seconds_left)
        for found in beside.look():
            result = replace(joined(result, found), stopped_by=result.stopped_by)
    if is_closed(result):
        stopped_by = StoppedBy.GAP
    elif stop.is_set():
        stopped_by = StoppedBy.INTERRUPTED
    elif result.stopped_by is StoppedBy.INTERRUPTED:  # by what came from beside, not by the user
        stopped_by = StoppedBy.TIME_LIMIT
    else:
        stopped_by = result.stopped_by
    details = {**result.details, **beside.facts()}
    return replace(result, stopped_by=stopped_by, details=details)


def _prove(both: BoundAndSearch, clock: Clock, has_tree: bool) -> Result:
    """Go on with prices and search, then grow a tree: what is done beside the program."""
    both.on_progress = None
    if not has_tree:
        return both.run(clock.seconds_left)
    if not both.bounding.converged:
        share, most = SHARE_ALONE
        both.run(min(most, share * both.clock.seconds))
    if both.known.stopped_by in ENDED:
        return both.known
    return growing_from(both).run(lambda: clock.seconds_left)


def generic_methods(
    find_incumbent: FindIncumbent | None = None, program: Program = solve_milp
) -> dict[str, Method]:
    """The methods of a family that has a program and a pricing oracle.

    Parameters
    ----------
    find_incumbent : callable, optional
        Cheap feasible solution from which `milp`, `auto` and `tree` begin; by default the solution
        that serves nobody, where that is feasible.
    program : callable
        How `auto` solves the offline program: called like `solve_milp`.
    """
    find = find_incumbent or serve_nobody

    def begun(solve: Callable[..., Result]) -> Method:
        def method(
            instance: Instance, formulation: str, options: SolveOptions, report: Progress | None
        ) -> Result:
            incumbent = find(instance, formulation)
            return solve(instance, formulation, options, report, incumbent=incumbent)

        return method

    return {
        "auto": begun(partial(solve_auto, program=program)),
        "milp": begun(solve_milp),
        "tree": begun(solve_tree),
        "relaxation": relaxation,
        "bound": bound,
        "column-generation": column_generation,
    }
