"""Schedules of the edgecloud family by insertion of job after job, and a search from there.

Both place jobs by the oracle with a row a worker, over all slots that a good schedule may need.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule, read_past
from hindsched.solutions.edgecloud.runs import Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, Result, StoppedBy
from hindsched.solvers.door.work import catch_interrupt
from hindsched.solvers.families.edgecloud.block import last_priced_slot
from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle
from hindsched.solvers.methods.base import Run, better
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.search import NeighbourhoodSearch

SPREADS = (0.0, 1.5, 6.0)
"""How many slots later a slot of work a worker lets a job come in its turn: by arrival, or short
jobs first."""
PATIENCE = 500
"""Neighbourhoods without a gain that end the search, and as many again a job."""
PATIENCE_A_JOB = 20


def best_incumbent(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """The best of a few schedules without a search: never preemptive, and some orders of jobs."""
    best = list_schedule(instance, formulation)
    oracle, load = _placing(instance, formulation), _load(instance)
    for spread in SPREADS:
        order = np.argsort(instance.arrivals + spread * load, kind="stable")
        best = better(best, _inserted(oracle, order))
    return best


def _load(instance: EdgecloudInstance) -> Floats:
    """Slots that each job takes on all of its workers at the edge."""
    workers = [sum(len(own) for _, own in instance.places(job)) for job in instance.jobs]
    found: Floats = instance.edge_slots * instance.chunks / np.maximum(1, workers)
    return found


def _placing(instance: EdgecloudInstance, formulation: str) -> EdgecloudOracle:
    """The oracle over the slots of a schedule by arrival, and the longest job behind it."""
    longest = (_load(instance) + instance.edge_slots).max(initial=0)
    last = last_priced_slot(instance) + int(longest)
    return EdgecloudOracle(instance, formulation, "servers", last)


def _inserted(oracle: EdgecloudOracle, order: Ints) -> Solution | None:
    """Each job at its best in what those before it leave; None if one finds no room."""
    free = np.zeros(oracle.rows.size)
    left = oracle.rows.capacity.astype(float)
    found: list[Response | None] = [None] * len(order)
    for block in order.tolist():
        response = found[block] = oracle.best_response(block, free, left)
        if response is None:
            return None
        np.subtract.at(left, response.rows, response.amounts)
    return _if_feasible(oracle.place(found))


def list_schedule(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """Jobs in order of arrival, each chunk where it ends first, never preempted; or None."""
    runs = Runs.of(GreedySchedule(instance, read_past(instance, None)).rows)
    holds = place_parameter_servers(instance, runs)
    return _if_feasible(EdgecloudSolution(instance, runs, holds, formulation))


def _if_feasible(solution: Solution | None) -> Solution | None:
    return solution if solution is not None and solution.is_feasible() else None


def search(
    instance: Instance, formulation: str, options: SolveOptions, on_progress: Progress | None = None
) -> Result:
    """Neighbourhood search from the best simple schedule, until it hardly gains; no bound."""
    assert isinstance(instance, EdgecloudInstance)
    with catch_interrupt() as interrupted:
        run = Run(instance, formulation, options, on_progress, interrupted, "search")
        run.offer(best_incumbent(instance, formulation))
        found = NeighbourhoodSearch(
            _placing(instance, formulation), seed=options.seed, start=run.known.solution
        )
        patience = PATIENCE + PATIENCE_A_JOB * len(instance.jobs)
        best, since = found.objective, 0

        def settled() -> bool:
            nonlocal best, since
            if found.objective != best:
                best, since = found.objective, found.iterations
            return found.iterations - since > patience

        def stop() -> bool:
            run.tell(f"{found.iterations} neighbourhoods")
            return settled() or run.clock.is_over

        if not found.is_complete:
            found.construct(stop)
        found.improve(stop)
        run.offer(found.solution())
        result = run.result("neighbourhood search")
    converged = not found.is_complete or settled()
    return replace(result, stopped_by=StoppedBy.CONVERGED) if converged else result
