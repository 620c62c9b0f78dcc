"""Results as JSON data and as CSV that a spreadsheet opens as what it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.printable import printable

if TYPE_CHECKING:
    import pandas as pd

FORMULA_MARKS = ("=", "+", "-", "@")
"""What a spreadsheet takes for the beginning of a formula."""


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


def to_csv(table: pd.DataFrame) -> str:
    """Write a table with an apostrophe before text that a spreadsheet would compute.

    Control characters and marks that turn text around are spelled out.

    Examples
    --------
    >>> import pandas as pd
    >>> print(to_csv(pd.DataFrame({"job": ["=1+1", "a"], "cost": [-1, 2]})))
    job,cost
    '=1+1,-1
    a,2
    <BLANKLINE>
    """
    plain = {
        str(name): [_plain(v) if isinstance(v, str) else v for v in table[name].to_numpy(object)]
        for name in table
        if table[name].dtype == object or table[name].dtype == "str"
    }
    return table.assign(**plain).to_csv(index=False)


@lru_cache(4096)
def _plain(value: str) -> str:
    """A text of names, which stand in thousands of rows."""
    text = printable(value)
    if not text.startswith(FORMULA_MARKS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
