"""A tree grown on one layout of the rows after the other, and optima that it certifies.

The certificate is the tree, of kind ``tree`` (`certificates.tree`); one that is not closed in time
is a bound like any other, better than its root's. Which layouts are branched on is the family's
choice (``TREE_ROWS``): they must be able to restrict their blocks. An aggregated one comes first,
for it has the smaller tree; if it ends with schedules that it takes together but real servers
cannot hold, a new tree on the next goes on from the best solution, and the better certificate
stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.lagrangian import Subgradient, subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import (
    LineProgress,
    Progress,
    Result,
    Status,
    StoppedBy,
    status_of,
)
from hindsched.solvers.door.work import UNIT_SECONDS, Clock, catch_interrupt, counting
from hindsched.solvers.methods.base import Method, Run
from hindsched.solvers.oracles.base import BlockOracle, build_oracle
from hindsched.solvers.tree.branch_and_bound import BranchAndBound, FindSolution, MakeProgram
from hindsched.solvers.tree.node_program import NodeProgram

SHARE_BEFORE_TREE, MOST_BEFORE_TREE = 0.1, 2.0
"""Share of the time, and seconds at most, that prices and search get before the tree."""
ROOT_ITERATIONS = 60
"""Subgradient iterations that adapt the prices to the layout that is branched on."""
MOST_CERTIFYING, LEAST_CERTIFYING = 30.0, 2.0
"""Seconds in which ``auto`` tries to certify what a solver proved: as long again as that took, but
no more and no less than these."""
SMALL_TREE = 50_000
"""Jobs x linking rows up to which a tree is grown to certify an optimum that a solver proved."""


def tree_rows(instance: Instance, formulation: str) -> tuple[str, ...]:
    """Layouts of the rows that are branched on, the first first; empty if none is.

    The family's ``TREE_ROWS``, or where not every problem of it can be restricted what its
    ``tree_rows(instance, formulation)`` says.
    """
    module = family_module("solvers.families", instance.family, "oracle")
    if hasattr(module, "tree_rows"):
        found: tuple[str, ...] = module.tree_rows(instance, formulation)
        return found
    known: tuple[str, ...] = getattr(module, "TREE_ROWS", ())
    return known


def node_program(family: str) -> MakeProgram:
    """What bounds a family's nodes: ``NODE_PROGRAM`` of its module ``nodes``, if it has one."""
    if not has_module("solvers.families", family, "nodes"):
        return NodeProgram
    found: MakeProgram = family_module("solvers.families", family, "nodes").NODE_PROGRAM
    return found


def check_has_tree(instance: Instance, formulation: str) -> None:
    """Refuse the method for a problem whose blocks cannot be restricted."""
    if not tree_rows(instance, formulation):
        rule = f"family {instance.family} cannot restrict the blocks of {formulation}"
        raise InputError("method", "tree", rule)


def grown_from(run: Run) -> Result:
    """What a tree proves that begins with a run's certificate, in the time that is left."""
    if run.is_closed:
        return run.result()
    known = run.known.certificate
    assert known is not None
    oracle = build_oracle(run.known.instance, run.known.formulation)
    prices = oracle.prices_from(known.layout, known.rows, known.prices)
    prices = np.zeros(oracle.rows.size) if prices is None else prices
    return Growing(run, prices).run(lambda: run.clock.seconds_left)


class Growing:
    """A tree on one layout after the other until one closes the gap, resumable.

    It begins with prices in the family's default layout; certificate and solution of `run` are kept
    where they are better. ``find(oracle)`` is what looks for solutions near the nodes of a tree.
    """

    def __init__(
        self, run: Run, prices: Floats, find: Callable[[BlockOracle], FindSolution] | None = None
    ) -> None:
        self.known, self.gap, self.on_progress = run.known, run.options.gap, run.on_progress
        self._prices, self._interrupted, self._find = prices, run.clock.stop, find
        self._root = build_oracle(run.known.instance, run.known.formulation)
        self._layouts = iter(tree_rows(run.known.instance, run.known.formulation))
        self._tree: BranchAndBound | None = None
        self._looks, self._nodes = True, 0
        self.clock = Clock(math.inf)

    def take_best(self, solution: Solution) -> None:
        """Take a solution that a solver proved to be the best: none is looked for any more."""
        self.known, self._looks = replace(self.known, solution=solution), False
        if self._tree is not None:
            self._tree.offer(solution)
            self._tree.looks = False

    def run(self, seconds_left: Callable[[], float]) -> Result:
        """Grow until prices close the gap, the time is over or Ctrl-C comes."""
        while True:
            tree = self._tree = self._tree or self._next_tree()
            if tree is None:
                return self.known
            tree.run(seconds_left, self.on_progress)
            known, certificate = self.known, tree.certificate()
            if not certificate.is_better_than(known.certificate):
                assert known.certificate is not None
                certificate = known.certificate
            nodes, leaves = self._nodes + tree.nodes, certificate.num_leaves or 0
            self.known = known = replace(
                known, status=status_of(tree.incumbent), stopped_by=tree.stopped_by,
                solution=tree.incumbent, bound=certificate.bound, certificate=certificate,
                backend="branch and bound on prices, highs",
                details={**known.details, "nodes": nodes, "leaves": leaves},
            )  # fmt: skip
            closed = within_gap(known.objective, known.bound, self.gap)
            if closed or tree.stopped_by is not StoppedBy.CONVERGED:
                return known
            self._nodes, self._tree = nodes, None

    def _next_tree(self) -> BranchAndBound | None:
        """A tree on the next layout; None after the last."""
        known = self.known
        rows = next(self._layouts, None)
        if rows is None:
            return None
        oracle, start = self._root, self._prices
        if rows != oracle.layout:
            oracle = build_oracle(known.instance, known.formulation, rows=rows)
            start = _adapted(oracle, self._root, start, known.objective)
        find = None if self._find is None else self._find(oracle)
        tree = BranchAndBound(
            oracle, start, gap=self.gap, incumbent=known.solution, find_solution=find,
            interrupted=self._interrupted, program=node_program(known.instance.family),
        )  # fmt: skip
        tree.looks = self._looks
        return tree


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
    if options.work_limit is None:
        gone = 0.0 if options.time_limit is None else result.seconds
        return _certified(result, options, gone)
    with counting():
        units = options.work_limit * UNIT_SECONDS
        return _certified(result, replace(options, work_limit=None, time_limit=units), 0.0)


def _certified(result: Result, options: SolveOptions, gone: float) -> Result:
    """`certify_optimum` by these options, of whose time so many seconds are gone."""
    if not _is_unproven(result, options.gap) or result.status is not Status.OPTIMAL:
        return result
    solution, known = result.solution, result.certificate
    assert solution is not None
    layouts = tree_rows(result.instance, result.formulation)
    if not layouts or not result.instance.jobs:
        return result
    for rows in (None, layouts[0]):  # the default layout is the quickest to build
        oracle = build_oracle(result.instance, result.formulation, rows=rows)
        size = len(result.instance.jobs) * oracle.rows.size
        if size > SMALL_TREE:
            why = f"not grown: jobs x linking rows = {size}, above {SMALL_TREE}"
            return replace(result, details={**result.details, "tree": why})
    listener = LineProgress() if options.progress else None
    with catch_interrupt() as stop:
        within = options.without(gone)
        run = Run(result.instance, result.formulation, within, listener, stop, result.method)
        run.known = result
        oracle = build_oracle(result.instance, result.formulation)
        prices = None
        if known is not None and known.num_leaves is None:
            prices = oracle.prices_from(known.layout, known.rows, known.prices)
        if prices is None:
            short = within.with_time(min(MOST_BEFORE_TREE, SHARE_BEFORE_TREE * run.clock.seconds))
            prices = subgradient_bound(oracle, short, target=solution.objective()).prices
        found = _certified_by(Growing(run, prices), result, lambda: run.clock.seconds_left)
    return replace(found, seconds=result.seconds + run.clock.gone)


def _is_unproven(result: Result, gap: float) -> bool:
    """Whether no certificate says that the solution is an optimum."""
    proven = result.certified_bound
    return result.solution is not None and not within_gap(result.objective, proven, gap)


def _certified_by(growing: Growing, result: Result, seconds_left: Callable[[], float]) -> Result:
    """An optimum with what a tree proves, which looks for no more solutions."""
    assert result.solution is not None
    growing.take_best(result.solution)
    grown = growing.run(seconds_left)
    told = f"{grown.details['nodes']} nodes, {grown.details['leaves']} leaves"
    return replace(result, certificate=grown.certificate, details={**result.details, "tree": told})


def certified_by(growing: Growing, result: Result, seconds_left: Callable[[], float]) -> Result:
    """Certify an optimum that a solver proved by a tree so far, as long again as that took.

    With the optimum known it closes most of its open nodes.
    """
    if result.stopped_by is not StoppedBy.GAP or not _is_unproven(result, growing.gap):
        return result
    own = Clock(min(_certifying_seconds(growing.clock.gone), seconds_left()))
    return _certified_by(growing, result, lambda: own.seconds_left)


def certifying(method: Method) -> Method:
    """A method that gives an optimum which a solver proved a tree, as long again as that took."""

    def run(
        instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None
    ) -> Result:
        clock = Clock(math.inf)
        result = method(instance, formulation, options, on_progress)
        proven = within_gap(result.objective, result.bound, options.gap)
        if not proven or result.stopped_by is StoppedBy.INTERRUPTED:
            return result
        gone = clock.gone
        limit = gone + _certifying_seconds(gone)
        if options.time_limit is not None:
            limit = min(limit, options.time_limit)
        known = replace(result, status=Status.OPTIMAL)
        return replace(_certified(known, options.with_time(limit), gone), seconds=result.seconds)

    return run


def _certifying_seconds(gone: float) -> float:
    return max(LEAST_CERTIFYING, min(MOST_CERTIFYING, gone))


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
