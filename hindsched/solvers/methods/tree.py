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

import time
from dataclasses import replace

from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module
from hindsched.solutions.base import Solution
from hindsched.solvers.answer import Progress
from hindsched.solvers.bounds.branch_and_bound import BranchAndBound
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.bounds.node_solutions import NodeSolutions
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.methods.auto import DEFAULT_SECONDS, Duel, infeasible
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle, build_oracle, row_layouts
from hindsched.solvers.pricing.rows import Vector
from hindsched.solvers.program import within_gap
from hindsched.solvers.progress import LineProgress
from hindsched.solvers.result import Result
from hindsched.solvers.status import Status, StoppedBy

SHARE_BEFORE_TREE, MOST_BEFORE_TREE = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the tree."""
ROOT_ITERATIONS = 60
"""Subgradient iterations that adapt the prices to the layout that is branched on."""
SMALL_TREE = 50_000
"""Jobs x linking rows up to which a tree is grown to certify an optimum that a solver proved."""


def tree_rows(family: str) -> tuple[str, ...]:
    """Layouts of the rows that a family branches on, the first first; empty if on none."""
    found: tuple[str, ...] = getattr(
        family_module("solvers.pricing", family, "oracle"), "TREE_ROWS", ()
    )
    return found


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
    begin = time.perf_counter()
    limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
    layouts = tree_rows(instance.family)
    if not layouts:
        raise InputError("method", "tree", f"family {instance.family} cannot restrict its blocks")
    with catch_interrupt() as interrupted:
        oracle = build_oracle(instance, formulation)
        duel = Duel(oracle, options, limit, begin, interrupted, on_progress, incumbent)
        if duel.bounding.is_infeasible:
            return infeasible(instance, formulation, options, begin, "tree")
        duel.run(min(MOST_BEFORE_TREE, SHARE_BEFORE_TREE * limit))
        known = duel.result()
        if known.stopped_by in (StoppedBy.GAP, StoppedBy.INTERRUPTED):
            return replace(known, method="tree")
        search = duel.search
        known = replace(known, method="tree", details={**known.details, "nodes": 0, "leaves": 0})
        for rows in layouts:
            oracle = build_oracle(instance, formulation, rows=rows)
            prices = duel.bounding.best.prices
            if rows != row_layouts(instance.family)[0]:
                prices = adapted_prices(oracle, duel)
            find = None
            if search is not None and search.is_complete:
                find = NodeSolutions(oracle, search.oracle, search, interrupted)
            tree = BranchAndBound(
                oracle,
                prices,
                gap=options.gap,
                incumbent=known.solution,
                find_solution=find,
                interrupted=interrupted,
            )
            tree.run(lambda: limit - (time.perf_counter() - begin), on_progress)
            known = _with_tree(known, tree, options, begin)
            if known.stopped_by is not StoppedBy.CONVERGED:
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
    """
    options = SolveOptions.of(**result.options)
    solution, known = result.solution, result.certificate
    if solution is None or result.status is not Status.OPTIMAL:
        return result
    if known is not None and within_gap(solution.objective(), known.bound, options.gap):
        return result
    layouts = tree_rows(result.instance.family)
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
    limit = DEFAULT_SECONDS
    if options.time_limit is not None:
        limit = max(0.0, options.time_limit - result.seconds)
    on_progress = LineProgress() if options.progress else None
    grown = solve_tree(
        result.instance, result.formulation, options.with_time(limit), on_progress,
        incumbent=solution,
    )  # fmt: skip
    certificate = grown.certificate
    if certificate is None or not certificate.is_better_than(known):
        certificate = known
    assert certificate is not None
    told = f"{grown.details.get('nodes', 0)} nodes, {grown.details.get('leaves', 0)} leaves"
    details = {**result.details, "certified_bound": certificate.bound, "tree": told}
    return replace(
        result,
        certificate=certificate,
        seconds=result.seconds + grown.seconds,
        details=details,
    )


def adapted_prices(branching: BlockOracle, duel: Duel) -> Vector:
    """Prices of the duel on servers' rows, made better there."""
    prices = branching.prices_of(duel.oracle, duel.bounding.best.prices)
    search = Subgradient(branching, prices)
    for _ in range(ROOT_ITERATIONS):
        if search.converged:
            break
        search.step(duel.objective)
    return search.best.prices


def _with_tree(known: Result, tree: BranchAndBound, options: SolveOptions, begin: float) -> Result:
    """What is known after a tree: its certificate where that is better than the one before."""
    grown = tree.certificate()
    certificate = grown if grown.is_better_than(known.certificate) else known.certificate
    assert certificate is not None
    solution = tree.incumbent
    closed = solution is not None and within_gap(
        solution.objective(), certificate.bound, options.gap
    )
    details = dict(known.details)
    details["nodes"] += tree.nodes
    details["leaves"] = certificate.num_leaves or 0
    return replace(
        known,
        status=Status.OPTIMAL if closed else known.status,
        stopped_by=StoppedBy.GAP if closed else tree.stopped_by,
        solution=solution,
        bound=certificate.bound,
        certificate=certificate,
        seconds=time.perf_counter() - begin,
        backend="branch and bound on prices, highs",
        details=details,
    )
