"""``--method tree``: an optimum proven by a branching whose leaves anyone can check.

Prices and search begin as in ``auto``; then branch and bound closes the gap and the result's
certificate is the tree, of kind ``tree`` (`tree_certificate`). Without a time limit the method
stops after `DEFAULT_SECONDS`; a tree that is not closed by then is a bound like any other, better
than its root's.

Which layouts of the rows are branched on is the family's choice (``TREE_ROWS`` of its pricing
module): they must be able to restrict their blocks. An aggregated layout comes first, for it has
the smaller tree; if it ends with schedules that it takes together but real servers cannot hold, a
new tree on the next layout goes on from the best solution, and the better certificate stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.answer import Progress
from hindsched.solvers.bounds.branch_and_bound import BranchAndBound, FindSolution, MakeProgram
from hindsched.solvers.bounds.lagrangian import Subgradient, subgradient_bound
from hindsched.solvers.bounds.node_program import NodeProgram
from hindsched.solvers.bounds.node_solutions import NodeSolutions
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.methods.base import Method
from hindsched.solvers.methods.duel import DEFAULT_SECONDS, ENDED, Duel
from hindsched.solvers.neighbourhood_search import NeighbourhoodSearch
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle, build_oracle
from hindsched.solvers.program import within_gap
from hindsched.solvers.progress import LineProgress
from hindsched.solvers.result import Result, status_of
from hindsched.solvers.status import Status, StoppedBy
from hindsched.solvers.work import UNIT_SECONDS, counting, is_counted, now

SHARE_BEFORE_TREE, MOST_BEFORE_TREE = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the tree."""
ROOT_ITERATIONS = 60
"""Subgradient iterations that adapt the prices to the layout that is branched on."""
MOST_CERTIFYING = 10.0
"""Seconds in which ``auto`` tries to certify what a solver proved."""
TRIAL, LEAST_CLOSED = 100, 0.8
"""Nodes after which a tree that has closed less than this share of the gap is given up."""
SMALL_TREE = 50_000
"""Jobs x linking rows up to which a tree is grown to certify an optimum that a solver proved."""


def tree_rows(instance: Instance, formulation: str) -> tuple[str, ...]:
    """Layouts of the rows that are branched on, the first first; empty if none is.

    The family's ``TREE_ROWS``, or where not every problem of it can be restricted what its
    ``tree_rows(instance, formulation)`` says.
    """
    module = family_module("solvers.pricing", instance.family, "oracle")
    if hasattr(module, "tree_rows"):
        found: tuple[str, ...] = module.tree_rows(instance, formulation)
        return found
    known: tuple[str, ...] = getattr(module, "TREE_ROWS", ())
    return known


def node_program(family: str) -> MakeProgram:
    """What bounds a family's nodes: ``NODE_PROGRAM`` of its module ``nodes``, if it has one."""
    if not has_module("solvers.methods", family, "nodes"):
        return NodeProgram
    found: MakeProgram = family_module("solvers.methods", family, "nodes").NODE_PROGRAM
    return found


def check_has_tree(instance: Instance, formulation: str) -> None:
    """Refuse the method for a problem whose blocks cannot be restricted.

    Raises
    ------
    InputError
        Naming the family and the formulation.
    """
    if not tree_rows(instance, formulation):
        rule = f"family {instance.family} cannot restrict the blocks of {formulation}"
        raise InputError("method", "tree", rule)


def solve_tree(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
) -> Result:
    """Solve an instance by branch and bound on prices.

    Parameters
    ----------
    instance, formulation, options, on_progress
        As for every method.
    incumbent : Solution, optional
        A feasible solution to begin from.

    Raises
    ------
    InputError
        If the family cannot restrict its blocks.
    """
    check_has_tree(instance, formulation)
    with catch_interrupt() as interrupted:
        duel = Duel(instance, formulation, options, interrupted, on_progress, incumbent)
        known = replace(
            duel.run(min(MOST_BEFORE_TREE, SHARE_BEFORE_TREE * duel.limit)), method="tree"
        )
        if known.stopped_by in ENDED:
            return known
        return grow_from(duel, known, duel.seconds_left, interrupted)


def grow_from(
    duel: Duel,
    known: Result,
    seconds_left: Callable[[], float],
    interrupted: Event,
    on_solution: Callable[[Solution], None] | None = None,
) -> Result:
    """Grow a tree from the prices of a duel, with its search near the nodes once that is complete.

    Parameters
    ----------
    duel : Duel
        Prices, search, gap and listener.
    known, seconds_left, interrupted, on_solution
        As for `grow`.
    """
    find = None
    if duel.search is not None and duel.search.is_complete:
        find = partial(_near_nodes, duel.search, interrupted)
    return grow(
        known,
        duel.bounding.best.prices,
        duel.options.gap,
        seconds_left,
        interrupted,
        duel.on_progress,
        find,
        on_solution,
    )


def _near_nodes(
    search: NeighbourhoodSearch, interrupted: Event, oracle: BlockOracle
) -> FindSolution:
    """What looks for solutions near the nodes of a tree on an oracle, by a search that goes on."""
    return NodeSolutions(oracle, search.oracle, search, interrupted)


def grow(
    known: Result,
    prices: Floats,
    gap: float,
    seconds_left: Callable[[], float],
    interrupted: Event,
    on_progress: Progress | None,
    find: Callable[[BlockOracle], FindSolution] | None = None,
    on_solution: Callable[[Solution], None] | None = None,
) -> Result:
    """Grow a tree on one layout after the other until one closes the gap.

    Parameters
    ----------
    known : Result
        Where to begin; a certificate and a solution, if it has them, are kept where they are
        better.
    prices : ndarray
        Prices in the family's default layout.
    gap, seconds_left, interrupted, on_progress
        As for `BranchAndBound`.
    find : callable, optional
        ``find(oracle)``: what looks for solutions near the nodes of a tree on an oracle.
    on_solution : callable, optional
        Told of every better solution.
    """
    instance = known.instance
    root = build_oracle(instance, known.formulation)
    nodes = 0
    for rows in tree_rows(instance, known.formulation):
        oracle, start = root, prices
        if rows != root.layout:
            oracle = build_oracle(instance, known.formulation, rows=rows)
            start = _adapted(oracle, root, prices, known.objective)
        tree = BranchAndBound(
            oracle,
            start,
            gap=gap,
            incumbent=known.solution,
            find_solution=None if find is None else find(oracle),
            interrupted=interrupted,
            on_solution=on_solution,
            program=node_program(instance.family),
        )
        tree.run(seconds_left, on_progress)
        nodes += tree.nodes
        certificate = tree.certificate()
        if not certificate.is_better_than(known.certificate):
            assert known.certificate is not None
            certificate = known.certificate
        known = replace(
            known,
            status=status_of(tree.incumbent),
            stopped_by=tree.stopped_by,
            solution=tree.incumbent,
            bound=certificate.bound,
            certificate=certificate,
            backend="branch and bound on prices, highs",
            details={**known.details, "nodes": nodes, "leaves": certificate.num_leaves or 0},
        )
        closed = within_gap(known.objective, known.bound, gap)
        if closed or tree.stopped_by is not StoppedBy.CONVERGED:
            break
    return known


def certify_optimum(result: Result) -> Result:
    """Give a solver's optimum a certificate of its own: a tree, where one can be grown.

    Only an optimum whose certificate does not meet its objective within the gap needs one. A tree
    is grown if the family can restrict its blocks and jobs x linking rows are at most `SMALL_TREE`,
    in the time that the result's options leave (`DEFAULT_SECONDS` where they give no limit).

    Parameters
    ----------
    result : Result
        What any method returned; its own options say gap, seed and time limit.

    Returns
    -------
    Result
        The same with the better certificate; ``details["certified_bound"]`` is what it proves and
        ``details["tree"]`` says what was done. Objective, bound and status stay.

    Examples
    --------
    >>> import hindsched as hs
    >>> result = hs.solve(hs.generate("oasis", seed=1, jobs=3, horizon=4), "milp")
    >>> hs.certify_optimum(result).proof
    'certificate'
    """
    options = SolveOptions.of(result.options)
    if options.work_limit is None:
        return _certified(result, options)
    with counting():
        units = options.work_limit * UNIT_SECONDS
        return _certified(result, replace(options, work_limit=None, time_limit=units))


def _certified(result: Result, options: SolveOptions, *, patient: bool = True) -> Result:
    """`certify_optimum` by these options; without patience a tree that grows slowly is given up."""
    solution, known = result.solution, result.certificate
    if solution is None or result.status is not Status.OPTIMAL:
        return result
    if known is not None and within_gap(solution.objective(), known.bound, options.gap):
        return result
    layouts = tree_rows(result.instance, result.formulation)
    if not layouts or not result.instance.jobs:
        return result
    jobs = len(result.instance.jobs)
    size = 0
    for rows in (None, layouts[0]):  # the default layout is the quickest to build
        oracle = build_oracle(result.instance, result.formulation, rows=rows)
        size = max(size, jobs * oracle.rows.size)
        if size > SMALL_TREE:
            break
    if size > SMALL_TREE:
        why = f"not grown: jobs x linking rows = {size}, above {SMALL_TREE}"
        return replace(result, details={**result.details, "tree": why})
    started = now()
    limit = DEFAULT_SECONDS
    if options.time_limit is not None:
        gone = 0.0 if is_counted() else result.seconds
        limit = max(0.0, options.time_limit - gone)

    objective = solution.objective()
    bounds: list[float] = []

    def seconds_left() -> float:
        given_up = not patient and len(bounds) > TRIAL and _is_slow(bounds, objective)
        return 0.0 if given_up else max(0.0, limit - (now() - started))

    with catch_interrupt() as interrupted:
        oracle = build_oracle(result.instance, result.formulation)
        prices = None
        if known is not None and known.num_leaves is None:
            prices = oracle.prices_from(known.layout, known.rows, known.prices)
        if prices is None:
            short = options.with_time(min(MOST_BEFORE_TREE, SHARE_BEFORE_TREE * limit))
            prices = subgradient_bound(oracle, short, target=solution.objective()).prices
        bounds.append(oracle.bound(prices))
        listener = LineProgress() if options.progress else None

        def report(bound: float | None, found: float | None, seconds: float, text: str) -> None:
            if bound is not None:
                bounds.append(bound)
            if listener is not None:
                listener(bound, found, seconds, text)

        grown = grow(result, prices, options.gap, seconds_left, interrupted, report)
    certificate = grown.certificate
    assert certificate is not None
    told = f"{grown.details['nodes']} nodes, {grown.details['leaves']} leaves"
    return replace(
        result,
        certificate=certificate,
        seconds=result.seconds + now() - started,
        details={**result.details, "certified_bound": certificate.bound, "tree": told},
    )


def _is_slow(bounds: list[float], objective: float) -> bool:
    """Whether less than `LEAST_CLOSED` of the first bound's gap is closed."""
    first, last = abs(bounds[0] - objective), abs(bounds[-1] - objective)
    return last > (1 - LEAST_CLOSED) * first


def certifying(method: Method) -> Method:
    """A method that gives an optimum which a solver proved a tree, in `MOST_CERTIFYING` seconds.

    A tree that grows slowly is given up sooner.
    """

    def run(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        started = now()
        result = method(instance, formulation, options, on_progress)
        solution, gone = result.solution, now() - started
        proven = solution is not None and within_gap(
            solution.objective(), result.bound, options.gap
        )
        if not proven or result.stopped_by is StoppedBy.INTERRUPTED:
            return result
        limit = gone + MOST_CERTIFYING
        if options.time_limit is not None:
            limit = min(limit, options.time_limit)
        short = options.with_time(limit)
        known = replace(result, status=Status.OPTIMAL, seconds=gone, options=short.to_dict())
        found = _certified(known, short, patient=False)
        return replace(found, options=result.options, seconds=result.seconds)

    return run


def _adapted(
    branching: BlockOracle, root: BlockOracle, prices: Floats, objective: float | None
) -> Floats:
    """Prices of the default layout on the rows that are branched on, made better there."""
    search = Subgradient(branching, branching.prices_of(root, prices))
    for _ in range(ROOT_ITERATIONS):
        if search.converged:
            break
        search.step(objective)
    return search.best.prices
