"""What a generator's setting may be: types of counts, numbers and ranges."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt

from hindsched.errors import InputError
from hindsched.instances.base import MOST_COUNT, NonNegative, Number, Positive, PositiveCount

Ends = TypeVar("Ends", bound=tuple[float, float])


def _two(value: object) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("must be [low, high]")
    return value


def _rising(span: Ends) -> Ends:
    if span[0] > span[1]:
        raise ValueError("must be [low, high] with low <= high")
    return span


def _pair(value: object) -> Any:
    """One number for both ends."""
    return value if isinstance(value, list | tuple) else (value, value)


def listed(value: object) -> Any:
    """Refuse what is no list, or an empty one."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of at least one value")
    return value


def _alone(value: object) -> Any:
    """One integer is a list of it."""
    return (value,) if isinstance(value, int) else value


def _whole(value: object) -> Any:
    """A float that is an integer, as JSON may have it, is that integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def within(low: float, high: float) -> AfterValidator:
    """Refuse a number outside two ends, or a range that reaches out of them."""

    def check(value: object) -> Any:
        ends = _pair(value)
        if not low <= ends[0] <= ends[1] <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        return value

    return AfterValidator(check)


Whole = Annotated[StrictInt, BeforeValidator(_whole), Field(ge=1, le=10**15)]
WholeOrNone = Annotated[StrictInt, BeforeValidator(_whole), Field(ge=0, le=10**15)]
Share = Annotated[NonNegative, within(0, 1)]
Range = Annotated[tuple[Number, Number], BeforeValidator(_two), AfterValidator(_rising)]
"""``[low, high]``, of any sign."""
Amounts = Annotated[tuple[NonNegative, NonNegative], BeforeValidator(_two), AfterValidator(_rising)]
"""``[low, high]``, none below 0."""
Positives = Annotated[tuple[Positive, Positive], BeforeValidator(_two), AfterValidator(_rising)]
Wholes = Annotated[tuple[Whole, Whole], BeforeValidator(_two), AfterValidator(_rising)]
"""``[low, high]``, integers of at least 1."""
WholesOrNone = Annotated[
    tuple[WholeOrNone, WholeOrNone], BeforeValidator(_two), AfterValidator(_rising)
]
"""``[low, high]``, integers of at least 0."""
Span = Annotated[Amounts, BeforeValidator(_pair)]
"""One number of at least 0, which fixes what is drawn, or two, between which it is drawn."""
Choices = Annotated[tuple[PositiveCount, ...], BeforeValidator(listed), BeforeValidator(_alone)]
"""Integers of at least 1 to draw from, or one."""


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse a setting that is not an integer from `least` on (True is none)."""
    if type(value) is not int or not least <= value <= MOST_COUNT:
        rule = f"must be an integer of at least {least} and at most {MOST_COUNT}"
        raise InputError(f"set.{name}", value, rule)


def check_positive(name: str, value: Any) -> None:
    """Refuse a setting that is not a finite number above 0."""
    number = isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
    if not number or not value > 0:
        raise InputError(f"set.{name}", value, "must be a finite number above 0")
