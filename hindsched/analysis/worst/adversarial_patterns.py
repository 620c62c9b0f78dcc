"""Starts that theory knows: patterns of jobs on which simple rules are bad.

They speak of times, sizes and values, not of a family's fields; a space without a field of the role
has no such pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hindsched.instances.base import JobRecord
from hindsched.instances.search.fields import Field
from hindsched.instances.search.space import JOBS, SearchSpace, copied
from hindsched.json_types import Draft

MOST_EACH = 12
"""Largest m of the patterns that are made for m = 2, 3, ..."""
SHARES = (1 / 2, 1 / 3, 1 / 5, 1 / 10, 1 / 15)
"""Shares of long jobs behind short ones."""
LENGTHS = (2, 3, 5, 12)
"""How much longer they are."""


def gadgets(space: SearchSpace) -> list[Draft]:
    """All patterns that a space has room for, each once."""
    found: dict[str, Draft] = {}
    for role, patterns in PATTERNS.items():
        chosen = patterns if _field(space, role) is not None else ()
        for data in (data for pattern in chosen for data in pattern(space)):
            made = space.normal(data)
            found.setdefault(repr(made), made)
    return list(found.values())


def long_then_short(space: SearchSpace) -> Iterator[Draft]:
    """One long job, then short ones just after it."""
    for count in _counts(space):
        sizes = [1.0] + [0.0] * (count - 1)
        late = [0] + [1] * (count - 1)
        yield _made(space, [_of_range(space, "size", place) for place in sizes], late)


def units_then_long(space: SearchSpace) -> Iterator[Draft]:
    """M (m - 1) unit jobs, then one of length m, for m machines (Graham 1966)."""
    for machines in range(2, MOST_EACH + 1):
        if space.jobs[0] <= machines * (machines - 1) + 1 <= space.jobs[1]:
            yield from _on_machines(space, machines, [1] * machines * (machines - 1) + [machines])


def two_of_each_size(space: SearchSpace) -> Iterator[Draft]:
    """Two jobs each of sizes 2m - 1 down to m + 1, three of size m (Graham 1969)."""
    for machines in range(2, MOST_EACH + 1):
        sizes = [size for size in range(2 * machines - 1, machines, -1) for _ in (1, 2)]
        sizes += [machines] * 3
        if space.jobs[0] <= len(sizes) <= space.jobs[1]:
            yield from _on_machines(space, machines, sizes)


def short_then_long(space: SearchSpace) -> Iterator[Draft]:
    """Many small jobs first, long ones last (Kawaguchi and Kyan 1986)."""
    for count in _counts(space):
        for share in SHARES:
            for length in LENGTHS:
                many = max(1, round(count * share))
                small = _of_range(space, "size", 0.2)
                sizes = [small] * (count - many) + [small * length] * many
                for machines in _machines(space):
                    yield _made(space, sizes, machines=machines)


def rising_values(space: SearchSpace) -> Iterator[Draft]:
    """A job of little value, then one of much; or values that rise from job to job."""
    for count in _counts(space):
        places = [index / max(1, count - 1) for index in range(count)]
        for late in ([0] * count, list(range(count))):
            for size in (None, _of_range(space, "size", 0.0), _of_range(space, "size", 1.0)):
                sizes = None if size is None else [size] * count
                yield _made(space, sizes, late, places)


def _counts(space: SearchSpace) -> list[int]:
    low, high = space.jobs
    return sorted({min(max(count, low), high) for count in (2, 3, (low + high) // 2, high)})


def _field(space: SearchSpace, role: str) -> Field | None:
    return next((item for item in space.job_fields if item.role == role), None)


def _of_range(space: SearchSpace, role: str, place: float) -> Any:
    item = _field(space, role)
    return None if item is None else item.from_unit(place)


def _machines(space: SearchSpace) -> list[float | None]:
    """Ends of the first range outside the jobs, which is how large the cluster is."""
    if not space.cluster_fields:
        return [None]
    return list(dict.fromkeys([space.cluster_fields[0].low, space.cluster_fields[0].high]))


def _on_machines(space: SearchSpace, machines: int, sizes: list[Any]) -> Iterator[Draft]:
    yield _made(space, sizes, machines=machines)


def _made(
    space: SearchSpace,
    sizes: list[Any] | None,
    late: list[int] | None = None,
    values: list[float] | None = None,
    machines: float | None = None,
) -> Draft:
    """Data of jobs with these sizes, times after the first and places in the range of values.

    What a pattern does not say is at the low end of its range.
    """
    data = copied(space.base)
    count = len(sizes if sizes is not None else values or [])
    space.resize(data, JOBS, count)
    for item, holder in space.all_fields(data):
        for place in item.places(holder):
            item.write(place, item.choices[0] if item.choices else item.low)
    if machines is not None and space.cluster_fields:
        for place in space.cluster_fields[0].places(data):
            space.cluster_fields[0].write(place, machines)
    for index, job in enumerate(data[JOBS]):
        if sizes is not None:
            _set(space, "size", job, sizes[index])
        if late is not None:
            _set(space, "time", job, None, late[index])
        if values is not None:
            _set(space, "value", job, _of_range(space, "value", values[index]))
    return data


def _set(space: SearchSpace, role: str, job: JobRecord, value: Any, more: float = 0) -> None:
    item = _field(space, role)
    if item is None:
        return
    for place in item.places(job):
        item.write(place, (item.low if value is None else value) + more)


PATTERNS = {
    "size": (long_then_short, units_then_long, two_of_each_size, short_then_long),
    "value": (rising_values,),
}
"""Patterns by the role of the field that they need."""
