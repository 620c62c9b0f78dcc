"""What a family's ``theorem`` says of an instance."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from hindsched.json_types import JsonObject


class Assumption(TypedDict):
    """An assumption of a theorem, whether it holds, and the number that decides it."""

    name: str
    holds: bool
    worst: float | None


class Theorem(TypedDict):
    """What a theorem promises; the value is None where it promises nothing."""

    kind: str
    value: float | None
    assumptions: list[Assumption]
    quantities: NotRequired[JsonObject]
    note: NotRequired[str | None]
    warning: NotRequired[str]
