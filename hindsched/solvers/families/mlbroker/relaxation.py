"""P_f (9), the offline relaxation, as linear programs handed to HiGHS.

The programs are the slots' own, of ``models/mlbroker/convex.py``, repeated over the horizon and
linked by (8h). With the paper's big-M bill the slots and jobs hang together in one program. With
the chord of the concave price (the envelope that per-constraint values of M give) they fall apart
into one small program a job.
"""

from __future__ import annotations

import highspy
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.compiled import ZERO, ConeProgram, template
from hindsched.models.mlbroker.convex import Price, slot_values
from hindsched.models.mlbroker.sets import big_m


def relaxation_bound(
    instance: MlbrokerInstance,
    price: Price = "chord",
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
    compiled = template(len(instance.datacenters), len(instance.resources), price, "relu")
    columns: list[Floats] = []
    owners: list[tuple[str, int]] = []
    for number, slot in enumerate(slots):
        if not slot.jobs:
            continue
        nothing = np.zeros(slot.data.shape)
        values = slot_values(slot, nothing, price, "relu", big=big_m(slot, kind, factor))
        columns.append(compiled.parameters(*values))
        owners += [(name, number) for name in slot.jobs]
    if not columns:
        return 0.0
    parameters = np.hstack(columns)
    if price == "paper":
        groups = [np.arange(len(owners))]
    else:
        names = np.array([name for name, _ in owners])
        groups = [np.flatnonzero(names == job.name) for job in instance.jobs]
    total = 0.0
    for group in groups:
        place = {owners[copy]: at for at, copy in enumerate(group)}
        life = [owners[copy] for copy in group]
        before = np.array([place.get((name, number - 1), -1) for name, number in life])
        slot_of = np.unique([number for _, number in life], return_inverse=True)[1]
        cones = compiled.repeat(parameters[:, group], slot_of, before)
        total += _minimum(cones, time_limit)
    return total


def _minimum(cones: ConeProgram, time_limit: float | None) -> float:
    """A lower bound on the optimum of a linear program, equal to it but for rounding."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if time_limit is not None:
        highs.setOptionValue("time_limit", float(time_limit))
    columns, rows = cones.cost.size, cones.side.size
    least = np.where(cones.bounded, 0.0, -np.inf)
    lower, upper = cones.side.copy(), cones.side
    lower[cones.heights[ZERO] :] = -np.inf
    highs.passModel(
        columns, rows, cones.matrix.nnz, 1, 1, 0.0, cones.cost, least, np.full(columns, np.inf),
        lower, upper, cones.matrix.indptr.astype(np.int32),
        cones.matrix.indices.astype(np.int32), cones.matrix.data,
        np.zeros(columns, dtype=np.int32),
    )  # fmt: skip
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolveFailed(f"P_f: HiGHS ended with {highs.modelStatusToString(status)}")
    # Believe the dual side: a point that is optimal within tolerance is no bound by itself.
    point = np.array(highs.getSolution().col_value)
    duals = np.array(highs.getSolution().row_dual)
    duals = np.where(np.isinf(lower), np.minimum(duals, 0.0), duals)  # rounding may leave 1e-17
    reduced = cones.cost - cones.matrix.T @ duals
    return float(cones.side @ duals + np.minimum(reduced * point, 0.0).sum())
