"""A tree grown on one layout of the rows after the other, and optima that it certifies.

The certificate is the tree, of kind ``tree`` (`certificates.file`); one that is not closed in time
is a bound like any other, better than its root's. Which layouts are branched on is the family's
choice (`FamilySolvers.tree_layouts`): they must be able to restrict their blocks. An aggregated one
comes first, for it has the smaller tree; if it ends with schedules that it takes together but real
servers cannot hold, a new tree on the next goes on from the best solution, and the better
certificate stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.solvers.base import Method, build_oracle, family_solvers
from hindsched.solvers.bounds.lagrangian import Subgradient, subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import LineProgress, Progress, Result, StoppedBy, status_of
from hindsched.solvers.door.work import UNIT_SECONDS, Clock, catch_interrupt, counting
from hindsched.solvers.methods.base import Run
from hindsched.solvers.oracles.base import PricingOracle, RestrictableOracle
from hindsched.solvers.tree.branch_and_bound import BranchAndBound, FindSolution

SHARE_BEFORE_TREE, MOST_BEFORE_TREE = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the tree."""
ROOT_ITERATIONS = 60
"""Subgradient iterations that adapt the prices to the layout that is branched on."""
MOST_CERTIFYING, LEAST_CERTIFYING = 30.0, 20.0
"""Seconds in which ``auto`` tries to certify what a solver proved: as long again as that took, but
no more and no less than these."""
SMALL_TREE = 50_000
"""Jobs x linking rows up to which a tree is grown to certify an optimum that a solver proved."""


def check_has_tree(instance: Instance, formulation: str) -> None:
    """Refuse the method for a problem whose blocks cannot be restricted."""
    if not family_solvers(instance.family).tree_layouts(instance, formulation):
        rule = f"family {instance.family} cannot restrict the blocks of {formulation}"
        raise InputError("method", "tree", rule)


def grow(
    run: Run, clock: Clock | None = None, *, looks: bool = True,
    find: Callable[[PricingOracle], FindSolution] | None = None,
) -> Result:  # fmt: skip
    """Grow a tree on one layout after the other until one closes the gap or the time is over.

    It begins with the prices of the run's certificate; certificate and solution are kept where they
    are better. ``find(oracle)`` is what looks for solutions near the nodes; without `looks` the
    run's solution is the best, and none is looked for.
    """
    if run.is_closed:
        return run.result()
    known, clock, nodes = run.known, clock or run.clock, 0
    root = build_oracle(known.instance, known.formulation)
    prices = _known_prices(run, root)
    layouts = family_solvers(known.instance.family).tree_layouts(known.instance, known.formulation)
    for rows in layouts:
        oracle, start = build_oracle(known.instance, known.formulation, rows=rows), prices
        assert isinstance(oracle, RestrictableOracle)
        if rows != root.layout:
            search = Subgradient(oracle, oracle.prices_of(root, prices))
            while search.iterations <= ROOT_ITERATIONS and not search.converged:
                search.step(known.objective)
            start = search.best.prices
        tree = BranchAndBound(
            oracle, start, gap=run.options.gap, incumbent=known.solution, looks=looks,
            find_solution=None if find is None else find(oracle),
        )  # fmt: skip
        tree.run(lambda: clock.seconds_left, run.on_progress)
        nodes += tree.nodes
        certificate = tree.certificate()
        if known.certificate is not None and not certificate.is_better_than(known.certificate):
            certificate = known.certificate
        known = replace(
            known, status=status_of(tree.incumbent), stopped_by=tree.stopped_by,
            solution=tree.incumbent, bound=certificate.bound, certificate=certificate,
            backend="branch and bound on prices, highs",
            details={**known.details, "nodes": nodes, "leaves": certificate.num_leaves or 0},
        )  # fmt: skip
        closed = within_gap(known.objective, known.bound, run.options.gap)
        if closed or tree.stopped_by is not StoppedBy.CONVERGED:
            break
    return known


def _known_prices(run: Run, oracle: PricingOracle) -> Floats:
    """Prices of the run's certificate on these rows, or some that are found quickly."""
    known = run.known.certificate
    if known is not None and known.num_leaves is None:
        prices = oracle.prices_from(known.layout, known.rows, known.prices)
        if prices is not None:
            return prices
    seconds = min(MOST_BEFORE_TREE, SHARE_BEFORE_TREE * run.clock.seconds)
    return subgradient_bound(oracle, SolveOptions(time_limit=seconds), target=run.objective).prices


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
        The same with the better certificate; ``details["tree"]`` says what was done. Objective,
        bound and status stay.

    Examples
    --------
    >>> import hindsched as hs
    >>> result = hs.solve(hs.generate("oasis", seed=1, jobs=3, horizon=4), "milp")
    >>> hs.certify_optimum(result).proof
    'certificate'
    """
    options = SolveOptions.of(result.options)
    listener = LineProgress() if options.progress else None
    if options.work_limit is None:
        return _certified(result, options.without(result.seconds), listener)
    with counting():
        within = replace(options, work_limit=None).with_time(options.work_limit * UNIT_SECONDS)
        return _certified(result, within, listener)


def certifying(method: Method) -> Method:
    """A method that gives an optimum which a solver proved a tree, as long again as that took."""

    def run(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        clock = Clock(math.inf if options.time_limit is None else options.time_limit)
        result = method(instance, formulation, options, on_progress)
        if result.stopped_by is StoppedBy.INTERRUPTED:
            return result
        most = max(LEAST_CERTIFYING, min(MOST_CERTIFYING, clock.gone))
        within = options.with_time(min(most, clock.seconds_left))
        return _certified(result, within, on_progress)

    return run


def _certified(result: Result, options: SolveOptions, on_progress: Progress | None) -> Result:
    """`certify_optimum` within the options' time."""
    gap, instance, formulation = options.gap, result.instance, result.formulation
    proven = within_gap(result.objective, result.bound, gap)
    certified = within_gap(result.objective, result.certified_bound, gap)
    layouts = family_solvers(instance.family).tree_layouts(instance, formulation)
    if not proven or certified or not layouts or not instance.jobs:
        return result
    for rows in (None, layouts[0]):  # the default layout is the quickest to build
        size = len(instance.jobs) * build_oracle(instance, formulation, rows=rows).rows.size
        if size > SMALL_TREE:
            why = f"not grown: jobs x linking rows = {size}, above {SMALL_TREE}"
            return replace(result, details={**result.details, "tree": why})
    with catch_interrupt() as stop:
        run = Run(instance, formulation, options, on_progress, stop, result.method)
        run.known = replace(result, bound=result.certified_bound)
        grown = grow(run, looks=False)
    facts = f"{grown.details['nodes']} nodes, {grown.details['leaves']} leaves"
    details = {**result.details, "tree": facts, "tree_seconds": run.clock.gone}
    return replace(
        result, certificate=grown.certificate, details=details,
        seconds=result.seconds + run.clock.gone,
    )  # fmt: skip
