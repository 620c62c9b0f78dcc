"""Checks of the counts, numbers and ranges that generators are given as settings."""

from __future__ import annotations

import math
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.base import MOST_COUNT


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse a setting that is not an integer from `least` on (True is none)."""
    if type(value) is not int or not least <= value <= MOST_COUNT:
        rule = f"must be an integer of at least {least} and at most {MOST_COUNT}"
        raise InputError(f"set.{name}", value, rule)


def check_positive(name: str, value: Any) -> None:
    """Refuse a setting that is not a finite number above 0."""
    if not _is_number(value) or not value > 0:
        raise InputError(f"set.{name}", value, "must be a finite number above 0")


def check_range(name: str, value: Any, *, least: float = 0, whole: bool = False) -> None:
    """Refuse a setting that is not a range ``[low, high]``.

    Parameters
    ----------
    name : str
        Name of the setting.
    value : object
        The setting.
    least : float
        Least value of `low`.
    whole : bool
        Whether both ends must be integers.
    """
    ok = isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))
    ok = ok and least <= value[0] <= value[1]
    if not ok or (whole and not all(float(end).is_integer() for end in value)):
        ends = "integers" if whole else "numbers"
        rule = f"must be [low, high], two {ends} with {least:g} <= low <= high"
        raise InputError(f"set.{name}", value, rule)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
