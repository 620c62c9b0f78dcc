"""Solving the per-slot program (10): CVXPY's compiled data handed to Clarabel, or CVXPY itself.

Interior-point solvers stall on some slots. A stall is never papered over: `solve_fractional` goes
through the stated chain `CHAIN`, logs every step past the first, reports which step answered and
raises `SolveFailed` if none did.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import clarabel
import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.compiled import EXPONENTIAL, ZERO, ConeProgram, template
from hindsched.models.mlbroker.slot_program import (
    Price,
    RegularisedSlot,
    Switching,
    Values,
    slot_values,
)
from hindsched.solvers.door.convex import solve_convex

log = logging.getLogger(__name__)

SHARP = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
CHAIN: tuple[tuple[str, dict[str, float | bool]], ...] = (
    ("clarabel", {"max_step_fraction": 0.9, **SHARP, "iterative_refinement_enable": False}),
    ("clarabel refined", {"max_step_fraction": 0.9, **SHARP}),
    ("clarabel short steps", {"min_switch_step_length": 1e-3, "min_terminate_step_length": 1e-8}),
    ("clarabel loose", {"max_step_fraction": 0.8, "tol_gap_rel": 1e-6, "tol_gap_abs": 1e-6}),
)
"""Steps of the escalation: solver and settings; what answered stands in `Fractional.backend`.

The first step does without iterative refinement, which is 0.4 of the time. Only the last step may
end "almost solved"; its point is checked against the constraints like every other."""
SCALE = 1000.0
"""Largest cost coefficient handed to the solver; 1 to 10 cost it more steps and accuracy."""
FIT = 1e-5
"""Violation up to which a point is believed; the data are scaled to the order of 1."""


@dataclass(frozen=True)
class Fractional:
    """A fractional placement of a slot, unscaled."""

    workers: Floats  # y, (J, R)
    server: Floats  # s, (J, R)
    present: Floats  # v, (J, R)
    static: float  # C1 + C2 + C4 of the program, with the relaxed bill, weighted USD
    switching: float  # ``sum c max(v - v_before, 0)``: the C3 of P_f's objective, weighted USD
    objective: float  # objective of the program that was solved, regulariser as printed in (10)
    backend: str  # the step of the chain that answered


def regulariser(deployment: Floats, present: Floats, before: Floats, epsilon: float) -> float:
    """Switching term of (10): ``sum c/sigma [(v+eps) ln((v+eps)/(v_before+eps)) - v]``."""
    sigma = np.log1p(1.0 / epsilon)
    shifted = np.maximum(present, 0.0) + epsilon
    term = shifted * np.log(shifted / (before + epsilon)) - present
    return float((deployment[:, None] / sigma * term).sum())


def solve_fractional(
    slot: SlotData, before: Floats, *, price: Price = "paper", switching: Switching = "entropy",
    epsilon: float = 0.01, big: Floats | None = None, engine: str = "oracle",
) -> Fractional:  # fmt: skip
    """Solve (10) for one slot; `SolveFailed` if no step of the chain gives a point that fits.

    `before` is v of the slot before, (J, R), 0 for a new job; `epsilon` and `big` as in
    `slot_values`. The engine ``oracle`` hands CVXPY's data of one job, compiled once and repeated,
    to Clarabel; ``model`` is the CVXPY problem of all jobs.
    """
    if not slot.jobs:
        empty = np.zeros(slot.data.shape)
        return Fractional(empty, empty, empty, 0.0, 0.0, 0.0, "empty")
    own, shared = slot_values(slot, before, price, switching, epsilon=epsilon, big=big)
    solve = _by_cvxpy if engine == "model" else _by_template
    arrays, static, backend = solve(slot.unit.shape, own, shared, price, switching)
    workers, server, present = np.maximum(arrays, 0.0)
    launched = float((slot.deployment[:, None] * np.maximum(present - before, 0.0)).sum())
    regular = regulariser(slot.deployment, present, before, epsilon)
    return Fractional(
        workers * np.maximum(slot.needed, 1)[:, None], server, present, static, launched,
        static + (launched if switching == "relu" else regular), backend,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _program(
    jobs: int, centers: int, kinds: int, price: Price, switching: Switching
) -> RegularisedSlot:
    return RegularisedSlot(jobs, centers, kinds, price, switching)


def _by_cvxpy(
    shape: tuple[int, ...], own: Values, shared: Values, price: Price, switching: Switching
) -> tuple[Floats, float, str]:
    """Workers, server and present, (3, J, R); C1 + C2 + C4; and the step that answered."""
    jobs, (centers, kinds) = len(own["before"]), shape
    program = _program(jobs, centers, kinds, price, switching)
    program.set(own, shared)
    answer = solve_convex(program.problem, ignore_dpp=True)  # of all jobs at once it is large
    if not answer.has_point:
        raise SolveFailed(f"slot of {jobs} jobs: no step of the chain solved program (10)")
    parts = [[job.workers.value, job.server.value, job.present.value] for job in program.jobs]
    static = float(program.static.value)
    return np.array(parts).transpose(1, 0, 2), static, f"cvxpy {answer.backend}"


def _by_template(
    shape: tuple[int, ...], own: Values, shared: Values, price: Price, switching: Switching
) -> tuple[Floats, float, str]:
    """The same by the repeated template of one job."""
    compiled = template(*shape, price, switching)
    columns, jobs = compiled.parameters(own, shared), len(own["before"])
    # with the chord the jobs of a slot are independent
    groups = [slice(0, jobs)] if price == "paper" else [slice(j, j + 1) for j in range(jobs)]
    found, static, backends = [], 0.0, []
    for group in groups:
        cones = compiled.repeat(columns[:, group])
        point, backend = _solve(cones, columns[:, group].shape[1])
        arrays = np.array([cones.values(point, name) for name in ("workers", "server", "present")])
        spread = cones.values(point, "launched")
        if switching == "entropy":
            spread = spread - arrays[2]
        static += float(cones.cost @ point - (own["launch"][group, None] * spread).sum())
        found.append(arrays)
        backends.append(backend)
    worst = max(backends, key=[name for name, _ in CHAIN].index)
    return np.concatenate(found, axis=1), static, worst


def _solve(cones: ConeProgram, jobs: int) -> tuple[Floats, str]:
    """Go through the chain; the point and the step that answered."""
    for step, (name, settings) in enumerate(CHAIN):
        point = _clarabel(cones, settings, almost=step == len(CHAIN) - 1)
        if point is not None and cones.violation(point) <= FIT:
            if step:
                level = logging.INFO if step == 1 else logging.WARNING  # refining is no surprise
                note = "slot of %d jobs: %s answered where %s did not"
                log.log(level, note, jobs, name, CHAIN[0][0])
            return point, name
    raise SolveFailed(f"slot of {jobs} jobs: no step of the chain solved program (10)")


def _clarabel(
    cones: ConeProgram, settings: Mapping[str, float | bool], almost: bool
) -> Floats | None:
    """Clarabel's point, None where it does not say that it solved the program."""
    options = clarabel.DefaultSettings()
    options.verbose, options.max_threads = False, 1
    for key, value in settings.items():
        setattr(options, key, value)
    size, bounded = cones.cost.size, np.flatnonzero(cones.bounded)
    bounds = sp.csc_array(
        (-np.ones(bounded.size), (np.arange(bounded.size), bounded)), shape=(bounded.size, size)
    )
    equal, exponential = cones.heights[ZERO], cones.heights[EXPONENTIAL]
    linear = cones.side.size - exponential
    ordered = sp.vstack([cones.matrix[:linear], bounds, cones.matrix[linear:]], format="csc")
    side = np.concatenate([cones.side[:linear], np.zeros(bounded.size), cones.side[linear:]])
    kinds = [
        clarabel.ZeroConeT(equal),
        clarabel.NonnegativeConeT(linear - equal + bounded.size),
        *[clarabel.ExponentialConeT()] * (exponential // 3),
    ]
    scale = SCALE / max(1e-12, float(np.abs(cones.cost).max()))
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)), cones.cost * scale, sp.csc_matrix(ordered), side, kinds,
        options,
    )  # fmt: skip
    answer = solver.solve()
    if (status := str(answer.status)) != "Solved":
        log.info("Clarabel ended with %s", status)
    accepted = ("Solved", "AlmostSolved") if almost else ("Solved",)
    return np.array(answer.x) if status in accepted else None
