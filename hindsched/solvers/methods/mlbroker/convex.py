"""Solving the per-slot program (10) and the relaxation P_f (9), directly or through CVXPY.

Interior-point solvers stall on some slots. A stall is never papered over: `solve_fractional` goes
through the stated chain `CHAIN`, logs every step past the first, reports which step answered and
raises `SolveFailed` if none did.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.slot import Floats, SlotData
from hindsched.models.mlbroker.arrays import SlotArrays, slot_arrays
from hindsched.models.mlbroker.convex import Price, Switching, big_m

log = logging.getLogger(__name__)

SHARP = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
CHAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "clarabel",
        {"max_step_fraction": 0.9, **SHARP, "iterative_refinement_enable": False},
    ),
    ("clarabel refined", {"max_step_fraction": 0.9, **SHARP}),
    ("clarabel short steps", {"min_switch_step_length": 1e-3, "min_terminate_step_length": 1e-8}),
    ("clarabel loose", {"max_step_fraction": 0.8, "tol_gap_rel": 1e-6, "tol_gap_abs": 1e-6}),
)
"""Steps of the escalation: solver and settings; what answered stands in `Fractional.backend`.

The first step does without iterative refinement, which is 0.4 of the time. Only the last step may
end "almost solved"; its point is checked against the constraints like every other."""
SCALE = 1000.0
"""Largest cost coefficient handed to the solver; 1 to 10 cost it more steps and accuracy."""


@dataclass(frozen=True)
class Fractional:
    """A fractional placement of a slot, unscaled.

    Parameters
    ----------
    workers, server, present : ndarray, shape (J, R)
        y, s and v.
    static : float
        C1 + C2 + C4 of the program, with the relaxed bill, weighted USD.
    switching : float
        ``sum c max(v - v_before, 0)``: the C3 of P_f's objective, weighted USD.
    objective : float
        Objective of the program that was solved, regulariser as printed in (10).
    backend : str
        The step of the chain that answered.
    """

    workers: Floats
    server: Floats
    present: Floats
    static: float
    switching: float
    objective: float
    backend: str


def regulariser(deployment: Floats, present: Floats, before: Floats, epsilon: float) -> float:
    """Switching term of (10): ``sum c/sigma [(v+eps) ln((v+eps)/(v_before+eps)) - v]``."""
    sigma = np.log1p(1.0 / epsilon)
    shifted = np.maximum(present, 0.0) + epsilon
    term = shifted * np.log(shifted / (before + epsilon)) - present
    return float((deployment[:, None] / sigma * term).sum())


def solve_fractional(
    slot: SlotData,
    before: Floats,
    *,
    price: Price = "paper",
    switching: Switching = "entropy",
    epsilon: float = 0.01,
    big: Floats | None = None,
) -> Fractional:
    """Solve (10) for one slot by a direct call to Clarabel.

    Parameters
    ----------
    slot : SlotData
        The slot.
    before : ndarray, shape (J, R)
        v of the slot before; 0 for a new job.
    price, switching, epsilon
        As in `SlotProgram`.
    big : ndarray, shape (R, K), optional
        M; symmetric and minimal if None.

    Raises
    ------
    SolveFailed
        If no step of `CHAIN` gives a point that fits the constraints.
    """
    jobs, centers = slot.data.shape
    if jobs == 0:
        empty = np.zeros((0, centers))
        return Fractional(empty, empty, empty, 0.0, 0.0, 0.0, "empty")
    if price == "chord":
        return _by_job(slot, before, switching, epsilon)
    arrays = slot_arrays(slot, big=big_m(slot) if big is None else big)
    return _solve(slot, arrays, before, switching, epsilon)


def _by_job(slot: SlotData, before: Floats, switching: Switching, epsilon: float) -> Fractional:
    """The chord form, one job at a time."""
    found = []
    chord = slot.chord
    for j in range(len(slot.jobs)):
        alone = one_job(slot, j)
        arrays = slot_arrays(alone, unit_price=chord)
        found.append(_solve(alone, arrays, before[j : j + 1], switching, epsilon))
    return Fractional(
        workers=np.vstack([part.workers for part in found]),
        server=np.vstack([part.server for part in found]),
        present=np.vstack([part.present for part in found]),
        static=sum(part.static for part in found),
        switching=sum(part.switching for part in found),
        objective=sum(part.objective for part in found),
        backend=max((part.backend for part in found), key=[name for name, _ in CHAIN].index),
    )


def one_job(slot: SlotData, job: int) -> SlotData:
    """The slot with one of its jobs alone."""
    pick = slice(job, job + 1)
    return SlotData(
        slot.jobs[pick], slot.data[pick], slot.capacity[pick], slot.exchange[pick],
        slot.deployment[pick], slot.worker[pick], slot.server[pick], slot.arc[pick],
        slot.distance, slot.unit, slot.discounted, slot.fee,
    )  # fmt: skip


def _solve(
    slot: SlotData, arrays: SlotArrays, before: Floats, switching: Switching, epsilon: float
) -> Fractional:
    jobs, centers = slot.data.shape
    pairs = jobs * centers
    cost = np.repeat(slot.deployment, centers)
    size = arrays.size
    total = size + pairs  # one more variable a pair: tau (entropy) or z (ReLU)
    present = arrays.parts["present"]
    linear = np.concatenate([arrays.cost, np.zeros(pairs)])
    sigma = np.log1p(1.0 / epsilon)
    extra = np.arange(size, total)
    inside = np.arange(present.start, present.stop)
    rows = [_pad(arrays.eq, total), _pad(arrays.le, total)]
    rhs = [arrays.eq_rhs, arrays.le_rhs]
    cones: list[Any] = [clarabel.ZeroConeT(arrays.eq_rhs.size)]
    # v >= 0 follows from (8g), the units rented are sums: neither needs a row of its own.
    bounded = np.r_[0 : present.start, present.stop : arrays.parts["used"].start]
    pick = np.arange(pairs)
    if switching == "relu":
        linear[extra] = cost
        rows.append(_entries(pairs, total, [(pick, inside, 1.0), (pick, extra, -1.0)]))  # (8h)
        rhs.append(before.ravel())
        bounded = np.r_[bounded, extra]
    else:
        linear[extra] = cost / sigma
        linear[inside] -= cost / sigma
    rows.append(_entries(bounded.size, total, [(np.arange(bounded.size), bounded, -1.0)]))
    rhs.append(np.zeros(bounded.size))
    cones.append(clarabel.NonnegativeConeT(sum(side.size for side in rhs[1:])))
    if switching == "entropy":
        # (-tau, v + eps, v_before + eps) in Kexp: tau >= (v + eps) ln((v + eps) / (before + eps))
        rows.append(
            _entries(3 * pairs, total, [(3 * pick, extra, 1.0), (3 * pick + 1, inside, -1.0)])
        )
        shift = np.zeros(3 * pairs)
        shift[1::3] = epsilon
        shift[2::3] = before.ravel() + epsilon
        rhs.append(shift)
        cones += [clarabel.ExponentialConeT()] * pairs
    matrix = sp.csc_matrix(sp.vstack(rows, format="csc"))
    right = np.concatenate(rhs)
    scale = SCALE / max(1e-12, float(np.abs(linear).max()))
    for step, (name, settings) in enumerate(CHAIN):
        last = step == len(CHAIN) - 1
        point = _clarabel(linear * scale, matrix, right, cones, settings, almost=last)
        if point is not None and _fits(arrays, point):
            if step:
                level = logging.INFO if step == 1 else logging.WARNING  # refining is no surprise
                note = "slot of %d jobs: %s answered where %s did not"
                log.log(level, note, jobs, name, CHAIN[0][0])
            return _fractional(slot, arrays, point, before, switching, epsilon, name)
    raise SolveFailed(f"slot of {jobs} jobs: no step of the chain solved program (10)")


def _fractional(
    slot: SlotData,
    arrays: SlotArrays,
    point: Floats,
    before: Floats,
    switching: Switching,
    epsilon: float,
    backend: str,
) -> Fractional:
    shape = slot.data.shape
    needed = np.maximum(slot.needed, 1)[:, None]
    present = np.maximum(point[arrays.parts["present"]].reshape(shape), 0.0)
    static = float(arrays.cost @ point[: arrays.size])
    launched = float((slot.deployment[:, None] * np.maximum(present - before, 0.0)).sum())
    regular = regulariser(slot.deployment, present, before, epsilon)
    return Fractional(
        workers=np.maximum(point[arrays.parts["workers"]].reshape(shape), 0.0) * needed,
        server=np.maximum(point[arrays.parts["server"]].reshape(shape), 0.0),
        present=present,
        static=static,
        switching=launched,
        objective=static + (launched if switching == "relu" else regular),
        backend=backend,
    )


def _clarabel(
    linear: Floats,
    matrix: Any,
    right: Floats,
    cones: list[Any],
    settings: dict[str, Any],
    almost: bool,
) -> Floats | None:
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.max_threads = 1
    for key, value in settings.items():
        setattr(options, key, value)
    size = linear.size
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)), linear, matrix, right, cones, options
    )
    answer = solver.solve()
    status = str(answer.status)
    if status != "Solved":
        log.info("Clarabel ended with %s", status)
    accepted = ("Solved", "AlmostSolved") if almost else ("Solved",)
    return np.array(answer.x) if status in accepted else None


def _fits(arrays: SlotArrays, point: Floats, tolerance: float = 1e-5) -> bool:
    """Whether a point satisfies the rows; the data are scaled to the order of 1."""
    x = point[: arrays.size]
    scale = 1.0 + np.abs(arrays.le_rhs)
    return bool(
        np.abs(arrays.eq @ x - arrays.eq_rhs).max(initial=0.0) <= tolerance
        and ((arrays.le @ x - arrays.le_rhs) / scale).max(initial=0.0) <= tolerance
        and x.min(initial=0.0) >= -tolerance
    )


def _pad(matrix: sp.csc_array, width: int) -> sp.csc_array:
    missing = width - matrix.shape[1]
    return sp.hstack([matrix, sp.csc_array((matrix.shape[0], missing))], format="csc")


def _entries(height: int, width: int, entries: list[tuple[Any, Any, float]]) -> sp.csc_array:
    rows = np.concatenate([row for row, _, _ in entries])
    columns = np.concatenate([column for _, column, _ in entries])
    values = np.concatenate([np.full(len(row), value) for row, _, value in entries])
    return sp.csc_array((values, (rows, columns)), shape=(height, width))
