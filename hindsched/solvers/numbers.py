"""The labelled numbers of a solved model, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


class Numbers(Mapping[str, "pd.Series[Any]"]):
    """One labelled pandas Series a component: ``numbers["y"]``.

    Parameters
    ----------
    names : list of str
        The components.
    table : callable
        Makes a component's Series.

    Examples
    --------
    >>> import hindsched as hs
    >>> lp = hs.model(hs.generate("oasis", jobs=2, horizon=6), relax=True).solve()
    >>> lp.duals["eq_4"].index.names
    FrozenList(['worker pool', 'resource', 'slot'])
    """

    def __init__(self, names: list[str], table: Callable[[str], pd.Series[Any]]) -> None:
        self._names, self._table = names, table

    def __getitem__(self, name: str) -> pd.Series[Any]:
        if name not in self._names:
            raise InputError("component", name, f"must be one of {', '.join(self._names)}")
        return self._table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
