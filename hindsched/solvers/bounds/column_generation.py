"""Bounds by column generation: a tree's node without decisions, as far as it goes.

Prices are smoothed towards the best ones so far (Wentges): ``p = smoothing p_best + (1 - smoothing)
duals``; a round that finds no new column at smoothed prices is repeated at the duals themselves.
What is reported is never the master's value but the Lagrangian bound at the prices tried, which is
valid at every iteration; the two meet when no column is missing (`tree.node_program`).
"""

from __future__ import annotations

import math

from hindsched.arrays import Floats
from hindsched.solvers.bounds.lagrangian import BoundResult, Subgradient
from hindsched.solvers.certificates.certificate import certify, check_certifies
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, StoppedBy
from hindsched.solvers.door.work import Clock, catch_interrupt
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.tree.node_program import NodeProgram

SMOOTHING = 0.8
"""Weight of the best prices in the prices tried."""
WARM_ITERATIONS = 40
"""Subgradient iterations that give the first prices and columns."""


def column_generation_bound(
    oracle: BlockOracle,
    options: SolveOptions | None = None,
    *,
    start_prices: Floats | None = None,
    max_iterations: int | None = None,
    on_progress: Progress | None = None,
) -> BoundResult:
    """Bound an instance's optimum by stabilised column generation, within the options' time.

    Without `start_prices` some subgradient iterations find the first ones; `max_iterations` limits
    the master's solves. ``details["master_value"]`` is the restricted master's last value: no
    prices prove a better bound than the program that it approaches from the other side. Jobs that
    cannot all be served together end it by ``infeasible``, with the best bound so far.
    """
    check_certifies(oracle)
    limit = None if options is None else options.time_limit
    with catch_interrupt() as stop:
        clock = Clock(math.inf if limit is None else limit, stop)
        search = Subgradient(oracle, start_prices)
        while search.iterations < WARM_ITERATIONS and start_prices is None:
            if clock.is_over or search.converged or search.is_infeasible:
                break
            search.step(None)

        def tell(round_: int, bound: float) -> None:
            if on_progress is not None:
                message = f"column generation, iteration {round_}"
                on_progress(bound, None, clock.gone, message)

        prices, stopped_by = search.best.prices, StoppedBy.CONVERGED
        facts: tuple[float | None, int, int] = (None, 0, 0)
        if not search.is_infeasible and oracle.num_blocks:
            most = math.inf if max_iterations is None else max_iterations
            program = NodeProgram(oracle, search.size, stop, SMOOTHING, most, tell)
            left = (lambda: None) if limit is None else (lambda: clock.seconds_left)
            found = program.bound((), prices, None, left)
            prices, stopped_by = found.prices, found.stopped_by
            facts = found.value, found.rounds, program.num_columns
    names = "master_value", "master_solves", "columns"
    return BoundResult(
        certify(oracle, prices),
        stopped_by,
        search.iterations + facts[1],
        clock.gone,
        dict(zip(names, facts, strict=True)),
    )
