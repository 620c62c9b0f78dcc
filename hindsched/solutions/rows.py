"""Reading the parts that rows of several families' solution files share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.base import MOST_COUNT
from hindsched.solutions.base import Assignment, Assignments

Row = TypeVar("Row")


def read_rows(
    instance: Any, assignments: Assignments, read_row: Callable[[Any, str, Assignment], Row]
) -> dict[str, Sequence[Row]]:
    """Read every job's rows by the family's `read_row`; `InputError` for an unknown job."""
    rows: dict[str, Sequence[Row]] = {}
    for name, job_rows in assignments.items():
        instance.job_index(name)  # refuses unknown ones
        where = f"{name}.assignments"
        rows[name] = [read_row(instance, f"{where}[{k}]", row) for k, row in enumerate(job_rows)]
    return rows


def refuse_overlap(where: str, spans: Iterable[tuple[int, int]]) -> None:
    """Refuse rows of one slot, given by first and last, where each is all that its job has then."""
    for (_, last), (first, end) in pairwise(sorted(spans)):
        if first <= last:
            rule = "must not overlap another row of the job"
            raise InputError(where, f"slots {first}..{end}", rule)


def check_row_keys(
    where: str, row: Mapping[str, object], needed: AbstractSet[str], allowed: AbstractSet[str]
) -> None:
    """Refuse a row that lacks a needed key or has one that is not allowed."""
    if not needed <= set(row) or not set(row) <= allowed:
        rule = f"must have the keys {', '.join(sorted(needed))}"
        extra = sorted(allowed - needed)
        rule += f" and may have {', '.join(extra)}" if extra else ""
        raise InputError(where, sorted(row), rule)


def read_span(
    where: str, row: Mapping[str, Any], latest: int = MOST_COUNT, earliest: int = 1
) -> tuple[int, int]:
    """Read ``from`` and ``to``: slots within `earliest` .. `latest`, both inclusive."""
    for key in ("from", "to"):
        slot = row.get(key, "(absent)")
        if type(slot) is not int or not earliest <= slot <= latest:
            rule = f"must be a slot, an integer in {earliest}..{latest}"
            raise InputError(f"{where}.{key}", slot, rule)
    if row["from"] > row["to"]:
        raise InputError(f"{where}.to", row["to"], f"must not precede from = {row['from']}")
    return row["from"], row["to"]


def read_counts(where: str, counts: object, names: Sequence[str]) -> Ints:
    """Read an object ``server name -> count``, shape (servers,)."""
    if not isinstance(counts, dict):
        raise InputError(where, counts, "must be an object: server name -> count")
    positions = _name_positions(tuple(names))
    array = np.zeros(len(positions), dtype=np.int64)
    for name, count in counts.items():
        if name not in positions:
            raise InputError(where, name, "must name a server of the instance")
        if type(count) is not int or not 0 <= count <= MOST_COUNT:
            rule = f"must be an integer in 0..{MOST_COUNT}"
            raise InputError(f"{where}.{name}", count, rule)
        array[positions[name]] = count
    return array


@lru_cache(maxsize=64)
def _name_positions(names: tuple[str, ...]) -> dict[str, int]:
    """Position of each name; every row of a cluster asks for the same."""
    return {name: index for index, name in enumerate(names)}


def write_counts(counts: Ints, names: Sequence[str]) -> dict[str, int]:
    """Write counts as an object of what is not 0."""
    return {names[int(index)]: int(counts[index]) for index in np.flatnonzero(counts)}


def read_type(where: str, name: Any, names: Sequence[str]) -> int:
    """Position of a type by its name."""
    if name not in names:
        raise InputError(where, name, f"must be one of {', '.join(names)}")
    return list(names).index(name)


def equal_stretches(table: NDArray[Any]) -> list[tuple[int, int]]:
    """First and last slot, from 1, of each stretch of slots with equal rows of a table."""
    cuts = (np.flatnonzero(np.any(table[1:] != table[:-1], axis=1)) + 1).tolist()
    return list(zip([1, *(cut + 1 for cut in cuts)], [*cuts, len(table)], strict=True))
