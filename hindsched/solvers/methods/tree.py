"""``--method tree``: an optimum proven by a branching whose leaves anyone can check.

Prices and search begin as in ``auto``; then branch and bound closes the gap and the result's
certificate is the tree, of kind ``tree`` (`tree_certificate`). Without a time limit the method
stops after `DEFAULT_SECONDS`; a tree that is not closed by then is a bound like any other, better
than its root's.

Which layout of the rows is branched on is the family's choice (``TREE_ROWS`` of its pricing
module): it must be able to restrict its blocks.
"""

from __future__ import annotations

import time
from dataclasses import replace

from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module
from hindsched.solutions.base import Solution
from hindsched.solvers.answer import Progress
from hindsched.solvers.branch_and_bound import BranchAndBound
from hindsched.solvers.certificate import Certificate, row_layouts
from hindsched.solvers.interrupt import catch_interrupt
from hindsched.solvers.lagrangian import Subgradient
from hindsched.solvers.methods.auto import DEFAULT_SECONDS, Duel, infeasible
from hindsched.solvers.node_solutions import NodeSolutions
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle, build_oracle
from hindsched.solvers.pricing.rows import Vector
from hindsched.solvers.program import within_gap
from hindsched.solvers.result import Result
from hindsched.solvers.status import Status, StoppedBy

SHARE_BEFORE_TREE, MOST_BEFORE_TREE = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the tree."""
ROOT_ITERATIONS = 60
"""Subgradient iterations that adapt the prices to the layout that is branched on."""
SMALL_TREE = 50_000
"""Jobs x linking rows up to which a tree is grown to certify an optimum that a solver proved."""


def tree_rows(family: str) -> str | None:
    """Layout of the rows that a family branches on; None if it cannot restrict its blocks."""
    found: str | None = getattr(family_module("solvers.pricing", family), "TREE_ROWS", None)
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
    rows = tree_rows(instance.family)
    if rows is None:
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
        branching = build_oracle(instance, formulation, rows=rows)
        root = duel.bounding.best.prices
        if rows != row_layouts(instance.family)[0]:
            root = adapted_prices(branching, duel)
        find = None
        if duel.search is not None and duel.search.is_complete:
            servers = duel.search.oracle
            find = NodeSolutions(branching, servers, duel.search, interrupted)
        tree = BranchAndBound(
            branching,
            root,
            gap=options.gap,
            incumbent=known.solution,
            find_solution=find,
            interrupted=interrupted,
        )
        tree.run(lambda: limit - (time.perf_counter() - begin), on_progress)
        return _result(tree, known, options, begin)


def adapted_prices(branching: BlockOracle, duel: Duel) -> Vector:
    """Prices of the duel on servers' rows, made better there."""
    prices = duel.oracle.prices_on_servers(duel.bounding.best.prices)
    search = Subgradient(branching, prices)
    for _ in range(ROOT_ITERATIONS):
        if search.converged:
            break
        search.step(duel.objective)
    return search.best.prices


def _result(tree: BranchAndBound, known: Result, options: SolveOptions, begin: float) -> Result:
    """What the tree proves, or the prices before it where it has not got past them."""
    assert known.certificate is not None
    grown = tree.certificate()
    leaves = len(grown.leaves)
    better = grown.is_better_than(known.certificate)
    certificate: Certificate = grown if better else known.certificate
    solution = tree.incumbent
    closed = solution is not None and within_gap(
        solution.objective(), certificate.bound, options.gap
    )
    return replace(
        known,
        method="tree",
        status=Status.OPTIMAL if closed else known.status,
        stopped_by=StoppedBy.GAP if closed else tree.stopped_by,
        solution=solution,
        bound=certificate.bound,
        certificate=certificate,
        seconds=time.perf_counter() - begin,
        backend="branch and bound on prices, highs",
        details={**known.details, "nodes": tree.nodes, "leaves": leaves},
    )
