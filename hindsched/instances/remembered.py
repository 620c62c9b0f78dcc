"""What is worked out of an instance once, and kept as long as the instance lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import finalize

Of = TypeVar("Of")
Found = TypeVar("Found")


def remembered(work_out: Callable[[Of], Found]) -> Callable[[Of], Found]:
    """Let a function of an instance do its work once for each; nobody may change what it returns.

    Instances never change, but have no hash: they are told apart by what they are, not by what they
    contain.
    """
    known: dict[int, Found] = {}

    @wraps(work_out)
    def look_up(instance: Of) -> Found:
        key = id(instance)
        if key in known:
            return known[key]
        found = work_out(instance)
        finalize(instance, known.pop, key, None)  # first: nothing is kept longer than its instance
        known[key] = found
        return found

    return look_up
