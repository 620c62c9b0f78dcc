"""Turning results into JSON: numpy numbers become plain ones, numbers that are not finite null."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np


def jsonable(value: object) -> Any:
    """Convert a value to JSON data; infinities and NaN become None, for JSON has no word for them.

    Raises
    ------
    TypeError
        For a value that has no JSON form.
    """
    if value is None or isinstance(value, str | bool | int):
        return str(value) if isinstance(value, Enum) else value
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [jsonable(item) for item in items]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return jsonable(dataclasses.asdict(value))
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
