"""M of the tier rows (8c) and (8d), in a file of its own: CVXPY takes long to load."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.mlbroker.slot import SlotData


def big_m(slot: SlotData, kind: str = "symmetric", factor: float = 1.0) -> Floats:
    """M of (8c) and (8d) per centre and resource, shape (R, K), weighted USD.

    Parameters
    ----------
    kind : {"symmetric", "loose"}
        ``symmetric``: the least M that is valid in both rows, max(e, (a - b) hmax - e);
        ``loose``: a hmax + e, at which the relaxed bill x is 0 and the relaxation says nothing.
    factor : float
        Multiplies it; at least 1 keeps it valid.
    """
    most = slot.largest_use.sum(axis=0)
    if kind == "symmetric":
        size = np.maximum(slot.fee, (slot.unit - slot.discounted) * most - slot.fee)
    elif kind == "loose":
        size = slot.unit * most + slot.fee
    else:
        raise InputError("big_m", kind, "must be symmetric or loose")
    return np.asarray(factor * size)
