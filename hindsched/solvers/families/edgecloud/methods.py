"""Methods of the edgecloud family: LP (4)+ in place of the generic relaxation and bound.

``relaxation`` solves LP (4)+ and certifies its duals with the exact blocks of problem (2), which
proves at least as much. ``bound`` improves those prices by the subgradient method, ``tree`` goes on
from there. ``search`` is a neighbourhood search from simple schedules. ``auto`` does all of them,
one after the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.edgecloud.relaxations import build_fractional
from hindsched.models.edgecloud.sets import last_slots, relaxation_last_slots
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import Past, list_schedule, read_past
from hindsched.solvers.base import Method, build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Progress, Result, Status, StoppedBy
from hindsched.solvers.door.work import Clock, catch_interrupt
from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle, EdgecloudServers
from hindsched.solvers.families.edgecloud.priced_rows import last_priced_slot
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import DEFAULT_SECONDS, Run, better
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.search import NeighbourhoodSearch
from hindsched.solvers.tree import method as trees

EXACT_COLUMNS = 60_000
"""Columns of LP (4)+ up to which identical workers are only counted a server, not a type."""
PROGRAM_COLUMNS = 40_000
"""Chunk-slot variables of the offline program up to which ``auto`` solves it."""
SHARE_OF_FIRST_SEARCH, SHARE_OF_SEARCH = 0.05, 0.4
"""Shares of the time that ``auto`` gives to the search at most: where the program follows, and
where only the bound does."""
SHARE_OF_BOUND = 0.3
"""Share of the time that ``auto`` gives to better prices before the offline program."""
SPREADS = (0.0, 1.5, 6.0)
"""How many slots later a slot of work a worker lets a job come in its turn: by arrival, or short
jobs first."""
NEIGHBOURHOODS = 200
"""How many a search tries, a job."""


def lp_layout(instance: EdgecloudInstance) -> str:
    """``groups`` where LP (4)+ stays small enough for it, else ``types``."""
    last = relaxation_last_slots(instance)
    columns = sum(
        (last[j] - job.arrival + 1) * len(instance.places(job))
        for j, job in enumerate(instance.jobs)
    )
    return "groups" if columns <= EXACT_COLUMNS else "types"


def lp_4_plus(
    instance: EdgecloudInstance, formulation: str, options: SolveOptions
) -> tuple[Certificate, dict[str, Any]]:
    """Solve LP (4)+ and certify its duals; also its value, layout and columns.

    A program that the limit or Ctrl-C ended leaves prices of 0, and ``unfinished`` says why.
    """
    layout = lp_layout(instance)
    oracle = EdgecloudOracle(instance, formulation, layout)
    last = relaxation_last_slots(instance)
    if not (np.isfinite(instance.storage_gb).any() and (instance.chunk_gb > 0).any()):
        # without limits of storage a list schedule ends soon enough
        ends = list_schedule(instance, read_past(instance, None))[0].values()
        last = {j: min(slot, max(ends)) for j, slot in last.items()}
    program = build_fractional(instance, layout=layout, last=last)
    result, unfinished = solve_program(program.model, options, want_duals=True), None
    prices = np.zeros(oracle.rows.size)  # which are a bound all the same
    if result.duals is not None:
        prices = oracle.rows.pack(program.prices(result.duals, oracle.last))
    elif result.stopped_by in (StoppedBy.TIME_LIMIT, StoppedBy.INTERRUPTED):
        unfinished = result.stopped_by
    else:
        raise SolveFailed(f"LP (4)+ of {instance.name}: {result.status}, {result.stopped_by}")
    details = {
        "lp_4_plus": result.objective if unfinished is None else None, "unfinished": unfinished,
        "layout": layout, "columns": program.model.nvariables(),
    }  # fmt: skip
    return certify(oracle, prices, "lp-dual"), details


def relaxation_edgecloud(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """LP (4)+ with its duals as a certificate; no solution."""
    assert isinstance(instance, EdgecloudInstance)
    certificate, details = lp_4_plus(instance, formulation, options)
    stopped_by = details["unfinished"] or StoppedBy.CONVERGED
    return Result(
        instance, formulation, "relaxation", Status.NO_SOLUTION, stopped_by, None,
        certificate.bound, certificate, backend="LP (4)+ by HiGHS", details=details,
    )  # fmt: skip


def bound_edgecloud(
    instance: Instance, formulation: str, options: SolveOptions,
    on_progress: Progress | None = None, target: float | None = None,
) -> Result:  # fmt: skip
    """Prices of LP (4)+, improved by the subgradient method on the exact blocks; no solution."""
    assert isinstance(instance, EdgecloudInstance)
    clock = Clock(DEFAULT_SECONDS if options.time_limit is None else options.time_limit)
    certificate, details = lp_4_plus(instance, formulation, options)
    if target is None:
        known = best_incumbent(instance, formulation)
        target = None if known is None else known.objective()
    oracle = build_oracle(instance, formulation, rows=details["layout"])
    stopped_by = StoppedBy.ERROR
    try:
        ascent = subgradient_bound(
            oracle, options.with_time(clock.seconds_left),
            start_prices=certificate.prices, target=target, on_progress=on_progress,
        )  # fmt: skip
    except (SolveFailed, OverflowError) as error:  # it rises for ever if nothing is feasible
        details["subgradient"] = str(error)
    else:
        details |= {
            "iterations": ascent.iterations,
            "lp_bound": certificate.bound,
        }
        stopped_by = ascent.stopped_by
        if ascent.certificate.is_better_than(certificate):
            certificate = ascent.certificate
    return Result(
        instance, formulation, "bound", Status.NO_SOLUTION, stopped_by, None,
        certificate.bound, certificate, backend="LP (4)+, subgradient", details=details,
    )  # fmt: skip


def best_incumbent(instance: Instance, formulation: str) -> Solution | None:
    """The best of a few schedules without a search: insertion in some orders of the jobs."""
    assert isinstance(instance, EdgecloudInstance)
    best: Solution | None = None
    oracle, load = _placing(instance, formulation), _load(instance)
    for spread in SPREADS:
        order = np.argsort(instance.arrivals + spread * load, kind="stable")
        best = better(best, _inserted(oracle, order))
    return best


def _load(instance: EdgecloudInstance) -> Floats:
    """Slots that each job takes on all of its workers at the edge."""
    workers = [sum(len(there) for _, there in instance.places(job)) for job in instance.jobs]
    load: Floats = instance.edge_slots * instance.chunks / np.maximum(1, workers)
    return load


def _placing(instance: EdgecloudInstance, formulation: str) -> EdgecloudServers:
    """The oracle over the slots of a schedule by arrival, and the longest job behind it."""
    longest = (_load(instance) + instance.edge_slots).max(initial=0)
    last = last_priced_slot(instance) + int(longest)
    return EdgecloudServers(instance, formulation, last)


def _inserted(oracle: EdgecloudServers, order: Ints) -> Solution | None:
    """Each job at its best in what those before it leave; None if one finds no room."""
    free = np.zeros(oracle.rows.size)
    left = oracle.rows.capacity.astype(float)
    responses: list[Response | None] = [None] * len(order)
    for block in order.tolist():
        response = responses[block] = oracle.best_response(block, free, left)
        if response is None:
            return None
        np.subtract.at(left, response.rows, response.amounts)
    solution = oracle.place(responses)
    return solution if solution is not None and solution.is_feasible() else None


def search_edgecloud(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """Neighbourhood search from the best simple schedule; no bound."""
    assert isinstance(instance, EdgecloudInstance)
    with catch_interrupt() as interrupted:
        run = Run(instance, formulation, options, on_progress, interrupted, "search")
        run.offer(best_incumbent(instance, formulation))
        search = NeighbourhoodSearch(
            _placing(instance, formulation), seed=options.seed, start=run.known.solution
        )
        most = NEIGHBOURHOODS * len(instance.jobs)

        def stop() -> bool:
            run.tell(f"{search.iterations} neighbourhoods")
            return search.iterations >= most or run.clock.is_over

        if not search.is_complete:
            search.construct(stop)
        search.improve(stop)
        run.offer(search.solution())
        return run.result("neighbourhood search")


def auto_edgecloud(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """Certified bound and searched schedules for any size; small ones by the offline program."""
    assert isinstance(instance, EdgecloudInstance)
    with catch_interrupt() as stop:  # one event for all steps
        run = Run(instance, formulation, options, on_progress, stop, "lp+search")
        columns = program_columns(instance, formulation, read_past(instance, None))
        small = columns <= PROGRAM_COLUMNS
        first = SHARE_OF_FIRST_SEARCH if small else SHARE_OF_SEARCH
        run.take(
            search_edgecloud(instance, formulation, options.with_time(first * run.clock.seconds))
        )
        left = run.clock.seconds_left
        within = options.with_time(SHARE_OF_BOUND * min(left, DEFAULT_SECONDS) if small else left)
        proven = bound_edgecloud(instance, formulation, within, on_progress, run.objective)
        run.take(replace(proven, details={**proven.details, "program_columns": columns}))
        if small and not run.is_closed and not stop.is_set():
            run.solve_program()
        return run.known


def program_columns(instance: EdgecloudInstance, formulation: str, past: Past) -> int:
    """How many worker-slot variables the offline program has."""
    last = last_slots(instance, formulation, past)
    return sum(
        max(0, last[j] - max(past.now, job.arrival + int(instance.upload[j, s])) + 1)
        * len(workers)
        for j, job in enumerate(instance.jobs) if j in last
        for s, workers in instance.places(job)
    )  # fmt: skip


def tree_edgecloud(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """Prove an optimum without migration by branch and bound on prices."""
    assert isinstance(instance, EdgecloudInstance)
    trees.check_has_tree(instance, formulation)
    with catch_interrupt() as stop:
        run = Run(instance, formulation, options, on_progress, stop, "tree")
        within = options.with_time(
            min(trees.MOST_BEFORE_TREE, trees.SHARE_BEFORE_TREE * run.clock.seconds)
        )
        run.offer(best_incumbent(instance, formulation))
        if run.objective is None:  # few PSs: a list that forgets them finds no room
            solved = milp_edgecloud(instance, formulation, within, on_progress)
            if solved.status is Status.INFEASIBLE:
                return replace(solved, method="tree")
            run.offer(solved.solution)
        run.take(bound_edgecloud(instance, formulation, within, on_progress, run.objective))
        return trees.grow(run)


milp_edgecloud = generic_methods(best_incumbent)["milp"]
METHODS: dict[str, Method] = {
    "auto": trees.certifying(auto_edgecloud),
    "tree": tree_edgecloud,
    "milp": milp_edgecloud,
    "relaxation": relaxation_edgecloud,
    "bound": bound_edgecloud,
    "search": search_edgecloud,
}
