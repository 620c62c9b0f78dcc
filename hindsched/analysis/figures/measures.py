"""Quantities that claims are about, computed from one seed's rows of a figure's tidy table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hindsched.analysis.figures.claims import Case, Measure, Values

if TYPE_CHECKING:
    import pandas as pd

Ours = str | Mapping[str, str]
"""The paper's algorithm: a scheme's name, or several under the words that tell them apart."""


def against(
    ours: Ours,
    rivals: str | Sequence[str],
    y: str,
    *,
    column: str = "scheme",
    by: Sequence[str] = (),
    over: Sequence[str] = (),
    best: str = "max",
    gather: str = "mean",
    variant: str = "variant",
) -> Measure:
    """Ours over the best of the rivals.

    Parameters
    ----------
    ours, rivals : str or several
        Values of `column`.
    y : str
        Column of the quantity.
    column : str
        Where the schemes stand.
    by : sequence of str
        Columns that make the cases.
    over : sequence of str
        Columns within a case over whose values the quotients are gathered.
    best : {"max", "min"}
        Whether the best rival has most or least.
    gather : str
        How: ``mean``, ``min`` or ``max``.
    variant : str
        Name of the case that tells several of ours apart.
    """
    against_names = [rivals] if isinstance(rivals, str) else list(rivals)

    def measure(frame: pd.DataFrame) -> Values:
        wide = _wide(frame, [*by, *over], column, y)
        rival = wide[against_names].agg(best, axis=1)
        found: Values = {}
        for word, name in _named(ours).items():
            quotient = wide[name] / rival
            prefix: Case = () if isinstance(ours, str) else ((variant, word),)
            for case, value in _gathered(quotient, by, over, gather).items():
                found[prefix + case] = value
        return found

    return measure


def change(
    y: str,
    x: str,
    *,
    where: Mapping[str, object] | None = None,
    by: Sequence[str] = (),
) -> Measure:
    """Mean of `y` at the largest `x` over that at the smallest; nothing for a single `x`."""

    def measure(frame: pd.DataFrame) -> Values:
        wide = _wide(_part(frame, where), list(by), x, y)
        columns = sorted(wide.columns)
        if len(columns) < 2:
            return {}
        return _gathered(wide[columns[-1]] / wide[columns[0]], by, (), "mean")

    return measure


def spread(
    y: str, x: str, *, where: Mapping[str, object] | None = None, by: Sequence[str] = ()
) -> Measure:
    """Greatest over least mean of `y` along `x`; nothing for a single `x`."""

    def measure(frame: pd.DataFrame) -> Values:
        wide = _wide(_part(frame, where), list(by), x, y)
        if len(wide.columns) < 2:
            return {}
        return _gathered(wide.max(axis=1) / wide.min(axis=1), by, (), "mean")

    return measure


def value(
    y: str,
    *,
    where: Mapping[str, object] | None = None,
    by: Sequence[str] = (),
    gather: str = "mean",
) -> Measure:
    """Gather `y` itself: ``mean``, ``min``, ``max``, ``var`` or any of pandas' names."""

    def measure(frame: pd.DataFrame) -> Values:
        part = _part(frame, where)
        if not by:
            return {(): float(part[y].astype(float).agg(gather))}
        means = part.astype({y: float}).groupby(list(by), sort=False)[y].agg(gather)
        return _gathered(means, by, (), "mean")

    return measure


def share(holds: Callable[[pd.DataFrame], Any], *, by: Sequence[str] = ()) -> Measure:
    """Share of the rows of which something holds."""

    def measure(frame: pd.DataFrame) -> Values:
        return value("_holds", by=by)(frame.assign(_holds=holds(frame).astype(float)))

    return measure


def quotient(numerator: Measure, denominator: Measure) -> Measure:
    """One quantity over another, in every case that both have."""

    def measure(frame: pd.DataFrame) -> Values:
        above, below = numerator(frame), denominator(frame)
        return {
            case: above[case] / below[case] if below[case] else float("nan")
            for case in above
            if case in below
        }

    return measure


def derived(make: Callable[[pd.DataFrame], pd.DataFrame], measure: Measure) -> Measure:
    """Compute a quantity from a table that is made of the figure's."""
    return lambda frame: measure(make(frame))


def _named(ours: Ours) -> Mapping[str, str]:
    return {ours: ours} if isinstance(ours, str) else ours


def _part(frame: pd.DataFrame, where: Mapping[str, object] | None) -> pd.DataFrame:
    for column, wanted in (where or {}).items():
        frame = frame[frame[column] == wanted]
    return frame


def _wide(frame: pd.DataFrame, keys: list[str], column: str, y: str) -> pd.DataFrame:
    """Means of `y`, a row a combination of `keys` and a column a value of `column`."""
    whole = frame.assign(_all=0).astype({y: float})
    return whole.groupby([*(keys or ["_all"]), column], sort=False)[y].mean().unstack(column)


def _gathered(series: Any, by: Sequence[str], over: Sequence[str], gather: str) -> Values:
    """One value a case of `by`."""
    if not by:
        return {(): float(series.agg(gather))}
    whole = series.groupby(level=list(by), sort=False).agg(gather) if over else series
    found: Values = {}
    for key, number in whole.items():
        values = key if isinstance(key, tuple) else (key,)
        found[tuple(zip(by, map(_plain, values), strict=True))] = float(number)
    return found


def _plain(item: object) -> Any:
    """Numpy's scalars as Python's."""
    return item.item() if hasattr(item, "item") else item
