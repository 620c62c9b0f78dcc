"""Tables that a spreadsheet opens as what they are: text stays text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hindsched.printable import printable

if TYPE_CHECKING:
    import pandas as pd

FORMULA_MARKS = ("=", "+", "-", "@")
"""What a spreadsheet takes for the beginning of a formula."""
MOST_WORDS = 4096
"""Texts that are remembered: names of instances and algorithms stand in thousands of rows."""


def for_spreadsheets(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with an apostrophe before text that a spreadsheet would compute.

    Control characters and marks that turn text around are spelled out.

    Examples
    --------
    >>> import pandas as pd
    >>> from hindsched.analysis.spreadsheets import for_spreadsheets
    >>> print(for_spreadsheets(pd.DataFrame({"job": ["=1+1", "a"], "cost": [-1, 2]})).to_csv())
    ,job,cost
    0,'=1+1,-1
    1,a,2
    <BLANKLINE>
    """
    texts = [name for name in table if table[name].dtype == object or table[name].dtype == "str"]
    return table.assign(**{str(name): _plain_column(table[name]) for name in texts})


def _plain_column(column: pd.Series) -> list[Any]:
    values = column.to_numpy(object)
    return [_plain(value) if isinstance(value, str) else value for value in values]


@lru_cache(MOST_WORDS)
def _plain(value: str) -> str:
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA_MARKS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
