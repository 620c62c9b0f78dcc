"""Methods of ``solve`` for batchsched: the generic ones, begun from a list schedule.

The mode-based program leaves out columns whose reduced costs show that no better schedule than the
incumbent contains them; the prices come from a short subgradient search on real servers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from hindsched.instances.base import Instance
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import PREEMPTIVE, in_pieces
from hindsched.limits import time_left
from hindsched.models.base import PRINTED
from hindsched.models.batchsched.offline import FORMS
from hindsched.solutions.base import Solution
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.status import Progress
from hindsched.solvers.door.work import is_counted, now
from hindsched.solvers.families.batchsched.list_schedule import (
    as_solution,
    improved_list_schedule,
    list_schedule,
)
from hindsched.solvers.families.batchsched.oracle import ServerOracle
from hindsched.solvers.families.batchsched.reduction import ColumnReduction
from hindsched.solvers.methods.base import Method, keep_bound, keep_solution, preemptive, solve_milp
from hindsched.solvers.methods.generic import generic_methods
from hindsched.solvers.methods.in_pieces import if_in_pieces_small

HIGHS_OPTIONS = {"presolve": "off", "mip_heuristic_effort": 0.0}
"""The program has few columns left and begins from a searched solution: the solver's own presolve
and heuristics took most of its time. Options given by name replace these."""
SMALL = 12
"""Up to this many jobs the list schedule is improved by random insertions."""
INSERTIONS = 200
SEARCH_SECONDS, SEARCH_SHARE = 200.0, 0.3
"""Seconds, and share of the time that is left, that the prices of the searched schedule take."""
REDUCTION_SECONDS = 3.0
"""Time that the search for prices may take, and at most a tenth of the time limit."""


def listed(instance: Instance, formulation: str) -> Solution:
    """List schedule by weight over shortest duration: what searches begin from."""
    assert isinstance(instance, BatchschedInstance)
    found = as_solution(instance, list_schedule(instance), formulation)
    keep_solution(found, "list schedule")
    return found


def find_incumbent(instance: Instance, formulation: str) -> Solution:
    """What a program begins from: the list schedule; on small instances a searched one."""
    assert isinstance(instance, BatchschedInstance)
    first = listed(instance, formulation)
    if len(instance.jobs) > SMALL:
        return first
    first = as_solution(instance, improved_list_schedule(instance, insertions=20), formulation)
    if not instance.jobs:
        return first
    oracle = ServerOracle(instance)
    keep_solution(first, "list schedule")
    seconds = SEARCH_SHARE * (SEARCH_SECONDS if is_counted() else time_left(SEARCH_SECONDS))
    options = SolveOptions(time_limit=seconds)
    found = subgradient_bound(oracle, options, target=first.objective(), max_iterations=300)
    keep_bound(instance, found.certificate, "subgradient", "list schedule")
    shape = (*instance.server_capacity.shape, oracle.slots)
    prices = found.prices.reshape(shape).transpose(2, 0, 1)
    schedules = improved_list_schedule(instance, prices=prices, insertions=INSERTIONS)
    second = as_solution(instance, schedules, formulation)
    return second if second.objective() <= first.objective() else first


def reduced_program(
    instance: Instance,
    formulation: str,
    options: SolveOptions,
    on_progress: Progress | None = None,
    *,
    incumbent: Solution | None = None,
    method: str = "milp",
    **build: Any,
) -> Result:
    """Solve the offline program without the columns that reduced costs rule out.

    Called like `solve_milp`; the printed form and jobs in pieces are solved as they are.
    """
    begin = now()
    if incumbent is None:
        incumbent = find_incumbent(instance, formulation)
    as_it_is = PRINTED in (build.get("form"), FORMS[formulation][0]) or in_pieces(formulation)
    if not as_it_is and incumbent is not None and instance.jobs:
        kept = reduction(instance, incumbent, options)
        build["keep"] = {j: partial(kept.keep, j) for j in range(len(instance.jobs))}
    if options.solver == "highs" and not in_pieces(formulation):
        options = replace(options, solver_options={**HIGHS_OPTIONS, **options.solver_options})
    left = options.time_limit
    if left is not None:
        left -= now() - begin
    return solve_milp(
        instance, formulation, options.with_time(left), on_progress,
        incumbent=incumbent, method=method, **build,
    )  # fmt: skip


def reduction(instance: Instance, incumbent: Solution, options: SolveOptions) -> ColumnReduction:
    """Prices from a short search on real servers, and what they rule out."""
    assert isinstance(instance, BatchschedInstance)
    assert isinstance(incumbent, BatchschedSolution)
    oracle = ServerOracle(instance)
    seconds = REDUCTION_SECONDS
    if options.time_limit is not None:
        seconds = min(seconds, 0.1 * options.time_limit)
    target = incumbent.objective()
    found = subgradient_bound(oracle, options.with_time(seconds), target=target)
    values, _ = oracle.block_values(found.prices)
    shape = (*instance.server_capacity.shape, oracle.slots)
    return ColumnReduction(instance, found.prices.reshape(shape), values, found.bound, incumbent)


METHODS: dict[str, Method] = {
    **generic_methods(listed, if_in_pieces_small(reduced_program)),
    "milp": reduced_program,
    "preemptive": preemptive,
}
RIVALS_BOUND = ("bound", PREEMPTIVE)
"""Method and formulation of the bound for baselines that may do what the problem forbids."""
