"""P_f (9), the offline relaxation, as linear programs handed to HiGHS.

With the paper's big-M bill the slots and jobs hang together in one program. With the chord of the
concave price (the envelope that per-constraint values of M give) they fall apart into one small
program a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import Floats, SlotData
from hindsched.models.mlbroker.arrays import SlotArrays, slot_arrays
from hindsched.models.mlbroker.convex import big_m
from hindsched.solvers.methods.mlbroker.convex import one_job


def relaxation_bound(
    instance: MlbrokerInstance,
    price: str = "chord",
    *,
    kind: str = "symmetric",
    factor: float = 1.0,
    time_limit: float | None = None,
) -> float:
    """Optimum of P_f, weighted USD: a lower bound on every schedule's realised cost.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    price : {"chord", "paper"}
        Envelope of the concave price, one program a job, or the relaxed big-M bill.
    kind, factor
        M of the paper's form, see `big_m`. A `kind` of ``loose`` gives a bound near 0.
    time_limit : float, optional
        Seconds for each program.

    Raises
    ------
    SolveFailed
        If a program is not solved to optimality.
    """
    slots = [SlotData.at(instance, slot) for slot in range(1, instance.horizon + 1)]
    if price == "paper":
        arrays = [
            slot_arrays(slot, big=big_m(slot, kind, factor)) if slot.jobs else None
            for slot in slots
        ]
        return _linked(slots, arrays, time_limit)
    total = 0.0
    for job in instance.jobs:
        life = slots[job.arrival - 1 : job.departure]
        places = [slot.jobs.index(job.name) for slot in life]
        own = [one_job(slot, place) for slot, place in zip(life, places, strict=True)]
        priced = [
            slot_arrays(alone, unit_price=slot.chord) for alone, slot in zip(own, life, strict=True)
        ]
        total += _linked(own, priced, time_limit)
    return total


def _linked(
    slots: Sequence[SlotData], arrays: Sequence[SlotArrays | None], time_limit: float | None
) -> float:
    """Minimum of the slots' programs linked by (8h)."""
    costs: list[Floats] = []
    eq_blocks, le_blocks, eq_rhs, le_rhs = [], [], [], []
    link_rows: list[Any] = []
    link_columns: list[Any] = []
    link_values: list[Any] = []
    links = offset = 0
    before: dict[str, int] = {}
    for slot, program in zip(slots, arrays, strict=True):
        if program is None:
            before = {}
            continue
        jobs, centers = slot.data.shape
        pairs = jobs * centers
        costs += [program.cost, np.repeat(slot.deployment, centers)]
        empty = sp.csc_array((program.eq.shape[0], pairs))
        eq_blocks.append(sp.hstack([program.eq, empty], format="csc"))
        empty = sp.csc_array((program.le.shape[0], pairs))
        le_blocks.append(sp.hstack([program.le, empty], format="csc"))
        eq_rhs.append(program.eq_rhs)
        le_rhs.append(program.le_rhs)
        present = offset + program.parts["present"].start + np.arange(pairs)
        launched = offset + program.size + np.arange(pairs)
        rows = links + np.arange(pairs)
        link_rows += [rows, rows]
        link_columns += [present, launched]
        link_values += [np.ones(pairs), -np.ones(pairs)]
        now = {name: int(present[j * centers]) for j, name in enumerate(slot.jobs)}
        for j, name in enumerate(slot.jobs):
            if name in before:
                link_rows.append(rows[j * centers : (j + 1) * centers])
                link_columns.append(before[name] + np.arange(centers))
                link_values.append(-np.ones(centers))
        before = now
        links += pairs
        offset += program.size + pairs
    if not costs:
        return 0.0
    linking = sp.csc_array(
        (
            np.concatenate(link_values),
            (np.concatenate(link_rows), np.concatenate(link_columns)),
        ),
        shape=(links, offset),
    )
    matrix = sp.vstack([sp.block_diag(eq_blocks), sp.block_diag(le_blocks), linking], format="csc")
    equal, less = np.concatenate(eq_rhs), np.concatenate([*le_rhs, np.zeros(links)])
    upper = np.concatenate([equal, less])
    lower = np.concatenate([equal, np.full(less.size, -np.inf)])
    return _minimum(np.concatenate(costs), sp.csc_array(matrix), lower, upper, time_limit)


def _minimum(
    cost: Floats, matrix: sp.csc_array, lower: Floats, upper: Floats, time_limit: float | None
) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if time_limit is not None:
        highs.setOptionValue("time_limit", float(time_limit))
    columns = cost.size
    highs.passModel(
        columns, matrix.shape[0], matrix.nnz, 1, 1, 0.0, cost, np.zeros(columns),
        np.full(columns, np.inf), lower, upper, matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32), matrix.data, np.zeros(columns, dtype=np.int32),
    )  # fmt: skip
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolveFailed(f"P_f: HiGHS ended with {highs.modelStatusToString(status)}")
    # Believe the dual side: a point that is optimal within tolerance is no bound by itself.
    point = np.array(highs.getSolution().col_value)
    duals = np.array(highs.getSolution().row_dual)
    duals = np.where(np.isinf(lower), np.minimum(duals, 0.0), duals)  # rounding may leave 1e-17
    reduced = cost - matrix.T @ duals
    value = float(np.where(duals > 0, lower, np.where(duals < 0, upper, 0.0)) @ duals)
    worst = float(np.minimum(reduced, 0.0) @ np.maximum(point, 0.0))
    return value + worst
