"""Methods of the edgecloud family: the generic ones, but LP (4)+ is the relaxation.

``relaxation`` solves LP (4)+ and certifies its duals with the exact blocks of problem (2), which
proves at least as much; bounds by prices begin from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.limits import time_left
from hindsched.models.edgecloud.relaxations import build_fractional, build_ilp_4
from hindsched.models.edgecloud.sets import flow_time_last_slots, last_slots, relaxation_last_slots
from hindsched.solutions.base import Solution
from hindsched.solutions.edgecloud.list_schedule import Past, list_schedule, read_past
from hindsched.solutions.edgecloud.runs import Runs
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.base import Method, build_oracle
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import ProgramResult, Progress, Result, Status, StoppedBy
from hindsched.solvers.door.work import Clock
from hindsched.solvers.families.edgecloud.oracle import EdgecloudOracle, EdgecloudServers
from hindsched.solvers.families.edgecloud.priced_rows import last_priced_slot
from hindsched.solvers.methods.auto import generic_methods
from hindsched.solvers.methods.base import solve_milp
from hindsched.solvers.oracles.base import PricingOracle, Response

EXACT_COLUMNS = 60_000
"""Columns of LP (4)+ up to which identical workers are only counted a server, not a type."""
PROGRAM_COLUMNS = 40_000
"""Chunk-slot variables of the offline program up to which ``auto`` solves it."""
SHARE_OF_INSERTION = 0.2
"""Share of the time that an insertion schedule may take."""
LATER = 6.0
"""How many slots later a slot of work a worker lets a job come in its turn: short jobs first."""


def lp_layout(instance: EdgecloudInstance, last: Mapping[int, int]) -> str:
    """``groups`` where LP (4)+ up to last slots stays small enough for it, else ``types``."""
    columns = sum(
        (last[j] - job.arrival + 1) * len(instance.places(job))
        for j, job in enumerate(instance.jobs)
    )
    return "groups" if columns <= EXACT_COLUMNS else "types"


def solve_lp(
    instance: EdgecloudInstance, formulation: str, options: SolveOptions
) -> tuple[PricingOracle, Floats, dict[str, Any]]:
    """Solve LP (4)+: the oracle of its layout, its duals, and its value, layout and columns.

    A program that the limit or Ctrl-C ended leaves prices of 0, and ``unfinished`` says why.
    """
    clock = Clock(math.inf)
    last = relaxation_last_slots(instance)
    layout = lp_layout(instance, last)
    oracle = EdgecloudOracle(instance, formulation, layout)
    if not (np.isfinite(instance.storage_gb).any() and (instance.chunk_gb > 0).any()):
        # without limits of storage a list schedule ends soon enough
        ends = list_schedule(instance, read_past(instance, None))[0].values()
        last = {j: min(slot, max(ends)) for j, slot in last.items()}
    program = build_fractional(instance, layout=layout, last=last)
    within, unfinished = options.without(clock.gone), None
    result = solve_program(program.model, within, want_duals=True)
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
    return oracle, prices, details


def lp_4_plus(
    instance: EdgecloudInstance, formulation: str, options: SolveOptions
) -> tuple[Certificate, dict[str, Any]]:
    """Certify the duals of LP (4)+; also the program's value, layout and columns."""
    oracle, prices, details = solve_lp(instance, formulation, options)
    return certify(oracle, prices, "lp-dual"), details


def solve_flow_time(instance: EdgecloudInstance, options: SolveOptions) -> ProgramResult:
    """Solve ILP (4) at zeta = 1; where it is large, its relaxation, which bounds it from below.

    A slot counts with its middle, as in the proof of Lemma 1 and in a run with extra speed: 1 / 2
    more a job than in the program. A chunk takes whole slots here, its exact time in such a run.
    """
    if lp_layout(instance, flow_time_last_slots(instance)) == "groups":
        solved = solve_program(build_ilp_4(instance).model, options)
    else:
        relaxed = solve_program(build_ilp_4(instance, layout="types", relax=True).model, options)
        solved = replace(relaxed, status=Status.NO_SOLUTION, objective=None)
    half, ends = len(instance.jobs) / 2, (solved.bound, solved.objective)
    bound, objective = (end if end is None else end + half for end in ends)
    return replace(solved, bound=bound, objective=objective)


def duals_of_lp(
    instance: Instance, formulation: str, options: SolveOptions
) -> tuple[PricingOracle, Floats | None]:
    """Duals of LP (4)+ on its rows, if it is solved in time."""
    assert isinstance(instance, EdgecloudInstance)
    try:
        oracle, prices, details = solve_lp(instance, formulation, options)
    except SolveFailed:  # nothing is feasible
        return build_oracle(instance, formulation), None
    return oracle, prices if details["unfinished"] is None else None


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


def first_schedule(instance: Instance, formulation: str) -> Solution | None:
    """The insertion schedule; where it finds no room or too little time, one by arrival."""
    assert isinstance(instance, EdgecloudInstance)
    solution = insertion_schedule(instance, formulation)
    if solution is None:
        runs = Runs.of(list_schedule(instance, read_past(instance, None))[1])
        listed = EdgecloudSolution(instance, runs, Runs.of(()), formulation)
        solution = EdgecloudServers(instance, formulation).settled(listed)
    return solution if solution.is_feasible() else None


def insertion_schedule(instance: EdgecloudInstance, formulation: str) -> Solution | None:
    """Each job at its best in what those before it leave; None if one finds no room, or late."""
    clock = Clock(SHARE_OF_INSERTION * time_left(math.inf))
    workers = [sum(len(there) for _, there in instance.places(job)) for job in instance.jobs]
    load: Floats = instance.edge_slots * instance.chunks / np.maximum(1, workers)
    # as many slots as a schedule by arrival has, and the longest job behind it
    longest = (load + instance.edge_slots).max(initial=0)
    oracle = EdgecloudServers(instance, formulation, last_priced_slot(instance) + int(longest))
    free = np.zeros(oracle.rows.size)
    left = oracle.rows.capacity.astype(float)
    responses: list[Response | None] = [None] * len(instance.jobs)
    for block in np.argsort(instance.arrivals + LATER * load, kind="stable").tolist():
        response = responses[block] = oracle.best_response(block, free, left)
        if response is None or clock.is_over:
            return None
        np.subtract.at(left, response.rows, response.amounts)
    return oracle.place(responses)


def program_columns(instance: EdgecloudInstance, formulation: str, past: Past) -> int:
    """How many worker-slot variables the offline program has."""
    last = last_slots(instance, formulation, past)
    return sum(
        max(0, last[j] - max(past.now, job.arrival + int(instance.upload[j, s])) + 1)
        * len(workers)
        for j, job in enumerate(instance.jobs) if j in last
        for s, workers in instance.places(job)
    )  # fmt: skip


def solve_small_program(instance: Instance, formulation: str, *given: Any, **build: Any) -> Result:
    """`solve_milp` for a program that is not large; ``auto`` goes on without another."""
    assert isinstance(instance, EdgecloudInstance)
    columns = program_columns(instance, formulation, read_past(instance, None))
    if columns > PROGRAM_COLUMNS:
        raise SolveFailed(f"the program has {columns} worker-slots, above {PROGRAM_COLUMNS}")
    return solve_milp(instance, formulation, *given, **build)


METHODS: dict[str, Method] = {
    **generic_methods(first_schedule, solve_small_program, duals_of_lp),
    "relaxation": relaxation_edgecloud,
}
