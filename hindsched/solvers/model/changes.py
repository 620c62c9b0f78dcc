"""Whether a Pyomo model still is the one that was built, and what differs if not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from hindsched.models.base import OfflineProgram
from hindsched.solvers.door.standard_form import (
    LinearProgram,
    TriviallyInfeasibleError,
    compile_program,
)


def what_changed(program: OfflineProgram) -> str | None:
    """What differs between a program's Pyomo model and one that is built anew.

    Nothing is compared for a program whose Pyomo model was never handed out.

    Parameters
    ----------
    program : OfflineProgram
        The program.

    Returns
    -------
    str or None
        One line that names the components; None if nothing differs.
    """
    if not program.was_handed_out:
        return None
    present, built = (_compiled(each) for each in (program, program.again()))
    if present is None or built is None:
        return None if present is built else "whether its constants can hold at all"
    found = []
    for kind, now, before in (
        ("rows", _names(present.rows), _names(built.rows)),
        ("columns", _names(present.columns), _names(built.columns)),
    ):
        for name in sorted(now.keys() | before.keys()):
            if now[name] != before[name]:
                found.append(f"{name} has {now[name]} {kind} instead of {before[name]}")
    return ", ".join(found) or _other_numbers(present, built)


def _compiled(program: OfflineProgram) -> LinearProgram | None:
    try:
        return compile_program(program.model)
    except TriviallyInfeasibleError:
        return None


def _names(items: Sequence[Any]) -> Counter[str]:
    return Counter(item.parent_component().local_name for item in items)


def _other_numbers(one: LinearProgram, other: LinearProgram) -> str | None:
    """Name the arrays of two programs of equal shape that differ."""
    differs = {
        "the objective": one.sign != other.sign
        or one.offset != other.offset
        or not np.array_equal(one.cost, other.cost),
        "coefficients": not _same_matrix(one.matrix, other.matrix),
        "right sides": not np.array_equal(one.row_lower, other.row_lower)
        or not np.array_equal(one.row_upper, other.row_upper),
        "bounds": not np.array_equal(one.lower, other.lower)
        or not np.array_equal(one.upper, other.upper),
        "domains": not np.array_equal(one.integer, other.integer),
    }
    return ", ".join(name for name, different in differs.items() if different) or None


def _same_matrix(one: sp.csc_array, other: sp.csc_array) -> bool:
    return one.shape == other.shape and not sp.csc_array(one - other).count_nonzero()
