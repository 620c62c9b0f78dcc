"""Solving the per-slot program (10) by Clarabel, through CVXPY."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.slot_program import Price, RegularisedSlot, Switching
from hindsched.solvers.door.convex import ConvexStep, solve_convex

SHARP = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
SHORT = {"min_switch_step_length": 1e-3, "min_terminate_step_length": 1e-8}
LOOSE = {"max_step_fraction": 0.5, "tol_gap_rel": 1e-6, "tol_gap_abs": 1e-6}
CHAIN = (
    # iterative refinement is 0.4 of the time
    ConvexStep("clarabel", cp.CLARABEL,
               {"max_step_fraction": 0.9, **SHARP, "iterative_refinement_enable": False}),
    ConvexStep("clarabel refined", cp.CLARABEL, {"max_step_fraction": 0.9, **SHARP}),
    ConvexStep("clarabel short steps", cp.CLARABEL, SHORT),
    ConvexStep("clarabel loose", cp.CLARABEL, LOOSE),
)  # fmt: skip
"""Steps of the escalation; what answered stands in `Fractional.backend`."""
SCALE = 1000.0
"""Largest cost coefficient of a job handed to the solver; 1 to 10 cost more steps, and with
the bill of 300 jobs as the largest it failed."""


@dataclass(frozen=True)
class Fractional:
    """A fractional placement of a slot, unscaled."""

    workers: Floats  # y, (J, R)
    server: Floats  # s, (J, R)
    present: Floats  # v, (J, R)
    static: float  # C1 + C2 + C4 of the program, with the relaxed bill, weighted USD
    switching: float  # ``sum c max(v - v_before, 0)``: the C3 of P_f's objective, weighted USD
    objective: float  # objective of the program that was solved
    backend: str  # the step of the chain that answered


def solve_fractional(
    slot: SlotData, before: Floats, *, price: Price = "paper", switching: Switching = "entropy",
    epsilon: float = 0.01,
) -> Fractional:  # fmt: skip
    """Solve `RegularisedSlot`; `SolveFailed` if no step of the chain gives a point that fits."""
    if not slot.jobs:
        empty = np.zeros(slot.data.shape)
        return Fractional(empty, empty, empty, 0.0, 0.0, 0.0, "empty")
    program = RegularisedSlot(slot, before, price, switching, epsilon=epsilon)
    objective, rows = program.problem.objective.args[0], program.problem.constraints
    scale = SCALE / max(program.largest, 1e-12)
    result = solve_convex(cp.Problem(cp.Minimize(scale * objective), rows), chain=CHAIN)
    if not result.has_point:
        raise SolveFailed(f"slot of {len(slot.jobs)} jobs: no step solved program (10)")
    parts = [program.parts[name].item.value for name in ("workers", "server", "present")]
    workers, server, present = np.maximum(np.array(parts), 0.0)
    launched = float((slot.deployment[:, None] * np.maximum(present - before, 0.0)).sum())
    return Fractional(
        np.minimum(workers, 1.0) * slot.needed[:, None],  # more than N are nowhere of use
        server, present,
        float(program.static.value), launched, float(objective.value), result.backend,
    )  # fmt: skip
