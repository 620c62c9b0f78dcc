"""The slot's convex set as sparse arrays, for direct calls to a solver.

The same set as ``models/mlbroker_convex.py: SlotBlock``, assembled in milliseconds and one step
smaller: the relaxed (8c)-(8e) are replaced by their projection on the bill,

    x >= 0,  x >= ((a + b) h + e - M) / 2,  x >= a h - M,  x >= b h + e - M,

which is what u1 + u2 = 1, u >= 0 leaves of them. Tests hold the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from hindsched.instances.mlbroker_slot import Floats, SlotData


@dataclass(frozen=True)
class SlotArrays:
    """``min cost.x`` over ``eq x = eq_rhs``, ``le x <= le_rhs``, ``x >= 0``.

    Parameters
    ----------
    cost : ndarray, shape (n,)
        C1 + C2 + C4, weighted USD; the switching cost is not in it.
    eq, le : csc_array
        Rows (8b), (8f), (8i), and (8a), (8g), (8j) with the bill's rows.
    eq_rhs, le_rhs : ndarray
        Right sides.
    parts : dict
        Slice of each variable by name: workers, server, present (each J R), flow and link (J R R),
        and bill and used (R K) in the paper's form. Scaled as in `SlotBlock`.
    """

    cost: Floats
    eq: sp.csc_array
    eq_rhs: Floats
    le: sp.csc_array
    le_rhs: Floats
    parts: dict[str, slice]

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.cost.size)


def slot_arrays(
    slot: SlotData, *, big: Floats | None = None, unit_price: Floats | None = None
) -> SlotArrays:
    """Assemble a slot: the paper's form with M = `big`, or the chord form with `unit_price`.

    Parameters
    ----------
    slot : SlotData
        The slot, with at least one job.
    big : ndarray, shape (R, K), optional
        M of the paper's form.
    unit_price : ndarray, shape (R, K), optional
        Weighted unit price of the chord form; the slot's own chord if both are None.
    """
    jobs, centers = slot.data.shape
    kinds = slot.unit.shape[1]
    pairs, arcs = jobs * centers, jobs * centers * centers
    sizes = {"workers": pairs, "server": pairs, "present": pairs, "flow": arcs, "link": arcs}
    if big is not None:
        sizes["bill"] = sizes["used"] = centers * kinds
    parts: dict[str, slice] = {}
    start = 0
    for name, count in sizes.items():
        parts[name] = slice(start, start + count)
        start += count
    total = start
    needed = np.maximum(slot.needed, 1).astype(float)
    room = slot.capacity * needed
    allowed = ~np.isinf(slot.arc).ravel()

    cost = np.zeros(total)
    finite = np.where(np.isinf(slot.arc), 0.0, slot.arc)
    cost[parts["flow"]] = (finite * room[:, None, None]).ravel()
    talk = (slot.exchange * needed)[:, None, None] * slot.distance
    cost[parts["link"]] = talk.ravel()

    eye = sp.eye_array(pairs, format="csr")
    out_of = sp.kron(sp.eye_array(pairs), np.ones((1, centers)), format="csr")  # sum over r'
    into = sp.kron(
        sp.eye_array(jobs), sp.kron(np.ones((1, centers)), sp.eye_array(centers)), format="csr"
    )  # sum over r
    blank: dict[str, int] = sizes

    def row(**blocks: sp.csr_array) -> list[sp.csr_array]:
        height = next(iter(blocks.values())).shape[0]
        return [blocks.get(name, sp.csr_array((height, width))) for name, width in blank.items()]

    one_job = sp.kron(sp.eye_array(jobs), np.ones((1, centers)), format="csr")
    open_arcs = sp.diags_array(allowed.astype(float), format="csr")
    eq_rows = [row(flow=out_of @ open_arcs), row(server=one_job), row(link=out_of, workers=-eye)]
    eq_rhs = np.concatenate([(slot.data / room[:, None]).ravel(), np.ones(jobs), np.zeros(pairs)])
    limit = (slot.needed + 1).astype(float)  # U
    share = sp.diags_array(np.repeat(needed / limit, centers), format="csr")
    one = sp.diags_array(np.repeat(1.0 / limit, centers), format="csr")
    busy = sp.diags_array(np.repeat((slot.needed > 0).astype(float), centers), format="csr")
    le_rows = [
        row(flow=into @ open_arcs, workers=-eye),
        row(workers=share, server=one, present=-eye),
        row(server=busy, link=-into),
    ]
    le_rhs = [np.zeros(3 * pairs)]
    per_worker = slot.worker * needed[:, None]
    if big is None:
        price = slot.chord if unit_price is None else unit_price
        cost[parts["workers"]] = (per_worker @ price.T).ravel()
        cost[parts["server"]] = (slot.server @ price.T).ravel()
    else:
        # Units rented are scaled by hmax, the bill by a hmax.
        most = np.repeat(slot.largest_use.sum(axis=0)[None], centers, axis=0).ravel()
        most = np.where(most > 0, most, 1.0)
        full = np.where(slot.unit.ravel() > 0, slot.unit.ravel() * most, 1.0)
        cost[parts["bill"]] = full
        shrink = sp.diags_array(1.0 / most, format="csr")
        use_workers = shrink @ sp.csr_array(_use(per_worker, centers))
        use_server = shrink @ sp.csr_array(_use(slot.server, centers))
        same = sp.eye_array(centers * kinds, format="csr")
        eq_rows.append(row(workers=use_workers, server=use_server, used=-same))
        eq_rhs = np.concatenate([eq_rhs, np.zeros(centers * kinds)])
        a, b = slot.unit.ravel(), slot.discounted.ravel()
        e, m = slot.fee.ravel(), big.ravel()
        for slope, shift in (((a + b) / 2, (e - m) / 2), (a, -m), (b, e - m)):
            by = sp.diags_array(slope * most / full, format="csr")
            le_rows.append(row(used=by, bill=-same))
            le_rhs.append(-shift / full)
    return SlotArrays(
        cost=cost,
        eq=sp.csc_array(sp.block_array(eq_rows, format="csc")),
        eq_rhs=eq_rhs,
        le=sp.csc_array(sp.block_array(le_rows, format="csc")),
        le_rhs=np.concatenate(le_rhs),
        parts=parts,
    )


def _use(demand: Floats, centers: int) -> sp.csr_array:
    """Rows (centre, resource), columns (job, centre): units used."""
    jobs, kinds = demand.shape
    j, r, k = np.meshgrid(np.arange(jobs), np.arange(centers), np.arange(kinds), indexing="ij")
    return sp.csr_array(
        (demand[j, k].ravel(), ((r * kinds + k).ravel(), (j * centers + r).ravel())),
        shape=(centers * kinds, jobs * centers),
    )
