"""A certificate from the prices that an online run posted."""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.solvers.base import build_oracle, row_layouts
from hindsched.solvers.certificates.certificate import Certificate, certify


def certificate_of_run(run: Any) -> Certificate:
    """Certificate from the prices that an online algorithm itself posted at the end of its run.

    They are by row set, in one of the family's layouts.
    """
    if run.prices is None:
        raise InputError("certificate", "(absent)", "the algorithm must post prices")
    arrays = {name: np.asarray(values, dtype=float) for name, values in run.prices.items()}
    layouts = row_layouts(run.instance.family)
    for layout in sorted(layouts, key=lambda name: name != "servers"):
        oracle = build_oracle(run.instance, run.solution.formulation, rows=layout)
        shapes = {row_set.name: row_set.shape for row_set in oracle.rows.sets}
        if all(shapes.get(name) == array.shape for name, array in arrays.items()):
            return certify(oracle, oracle.rows.pack(arrays))
    fits = f"must be row sets of a layout of {run.instance.family}: {', '.join(layouts)}"
    raise InputError("prices", ", ".join(arrays), fits)
