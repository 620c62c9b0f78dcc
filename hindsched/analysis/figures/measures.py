"""Quantities that claims are about, as data: computed from one seed's rows of a figure's table.

A measure is an object of a claims file, ``{"of": NAME, ...}`` with the parameters of the function
of that name below. Its ``table``, if it has one, lists steps that make another table first, each
``[NAME, parameter...]`` of the functions in `TABLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Case = tuple[tuple[str, Any], ...]
"""Under what a value was measured: names and values; empty if there is one case only."""
Values = dict[Case, float]
Spec = Mapping[str, Any]


def measure(spec: Spec, frame: pd.DataFrame) -> Values:
    """Compute a measure from one seed's rows: a value a case."""
    parameters = {name: value for name, value in spec.items() if name not in ("of", "table")}
    for name, *given in spec.get("table", ()):
        frame = TABLES[name](frame, *given)
    return MEASURES[spec["of"]](frame, **parameters)


def against(
    frame: pd.DataFrame,
    ours: str | Mapping[str, str],
    rivals: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None,
    y: str,
    *,
    column: str = "scheme",
    by: Sequence[str] = (),
    over: Sequence[str] = (),
    best: str = "max",
    gather: str = "mean",
    variant: str = "variant",
    setting: str = "the rivals",
    minus: bool = False,
) -> Values:
    """Ours over (or minus) the best of the rivals.

    Parameters
    ----------
    frame : DataFrame
        The table.
    ours, rivals : str or several
        Values of `column`; several of ours, or settings of the rivals, under the words that tell
        them apart: a setting that the table lacks has no value. Rivals None are all others.
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
    setting : str
        Name of the case that tells the rivals' settings apart.
    minus : bool
        The difference in place of the quotient.
    """
    wide = _wide(frame, [*by, *over], column, y)
    if isinstance(rivals, Mapping):
        more: Any = {"column": column, "by": by, "over": over, "best": best, "gather": gather,
                     "variant": variant, "minus": minus}  # fmt: skip
        apart: Values = {}
        for word, names in rivals.items():
            has_all = set([names] if isinstance(names, str) else names) <= set(wide.columns)
            for case, ratio in against(frame, ours, names if has_all else [], y, **more).items():
                apart[((setting, word), *case)] = ratio if has_all else float("nan")
        return apart
    known = [name for name in wide.columns if name != ours] if rivals is None else rivals
    own = wide[[known] if isinstance(known, str) else list(known)]
    rival = own.agg(best, axis=1) if len(own.columns) else own.reindex(columns=["none"])["none"]
    found: Values = {}
    for word, name in ({ours: ours} if isinstance(ours, str) else ours).items():
        if name not in wide:
            continue
        number = wide[name] - rival if minus else wide[name] / rival
        prefix: Case = () if isinstance(ours, str) else ((variant, word),)
        for case, value_ in _gathered(number, by, over, gather).items():
            found[prefix + case] = value_
    return found


def change(
    frame: pd.DataFrame, y: str, x: str, *, where: Spec | None = None, by: Sequence[str] = ()
) -> Values:
    """Mean of `y` at the largest `x` over that at the smallest; nothing for a single `x`."""
    wide = _wide(_part(frame, where), list(by), x, y)
    columns = sorted(wide.columns)
    if len(columns) < 2:
        return {}
    return _gathered(wide[columns[-1]] / wide[columns[0]], by, (), "mean")


def spread(
    frame: pd.DataFrame, y: str, x: str, *, where: Spec | None = None, by: Sequence[str] = ()
) -> Values:
    """Greatest over least mean of `y` along `x`; nothing for a single `x`."""
    wide = _wide(_part(frame, where), list(by), x, y)
    if len(wide.columns) < 2:
        return {}
    return _gathered(wide.max(axis=1) / wide.min(axis=1), by, (), "mean")


def value(
    frame: pd.DataFrame,
    y: str,
    *,
    where: Spec | None = None,
    by: Sequence[str] = (),
    gather: str = "mean",
) -> Values:
    """Gather `y` itself: ``mean``, ``min``, ``max``, ``var`` or any of pandas' names."""
    part = _part(frame, where)
    if not by:
        return {(): float(part[y].astype(float).agg(gather))}
    means = part.astype({y: float}).groupby(list(by), sort=False)[y].agg(gather)
    return _gathered(means, by, (), "mean")


def share(
    frame: pd.DataFrame, column: str, holds: str, other: Any, *, by: Sequence[str] = ()
) -> Values:
    """Share of the rows in which a column is ``eq``, ``gt`` or ``ge`` a value or column."""
    other = frame[other] if isinstance(other, str) and other in frame else other
    return value(frame.assign(_holds=getattr(frame[column], holds)(other).astype(float)), "_holds",
                 by=by)  # fmt: skip


def quotient(frame: pd.DataFrame, numerator: Spec, denominator: Spec) -> Values:
    """One quantity over another, in every case that both have."""
    above, below = measure(numerator, frame), measure(denominator, frame)
    return {
        case: above[case] / below[case] if below[case] else float("nan")
        for case in above
        if case in below
    }


def cases(frame: pd.DataFrame, name: str, each: Mapping[str, Spec]) -> Values:
    """Several measures as the cases of one."""
    return {
        ((name, word), *case): number
        for word, spec in each.items()
        for case, number in measure(spec, frame).items()
    }


def correlation(frame: pd.DataFrame, x: str, y: str, by: str) -> Values:
    """Correlation of two columns in each case."""
    return {((by, key),): float(own[x].corr(own[y])) for key, own in frame.groupby(by, sort=False)}


def least_of_the_parts(frame: pd.DataFrame, algorithm: str, part: str, others: list[str]) -> Values:
    """One cost over the least of the others that is above 0, of one algorithm."""
    own = frame[frame["algorithm"] == algorithm][[part, *others]].mean()
    return {(): float(own[part] / own[others].min())}


MEASURES: dict[str, Callable[..., Values]] = {
    function.__name__: function
    for function in (
        against, change, spread, value, share, quotient, cases, correlation, least_of_the_parts,
    )
}  # fmt: skip


def _divided(frame: pd.DataFrame, above: str, below: str) -> pd.DataFrame:
    return frame.assign(part=frame[above].astype(float) / frame[below].astype(float))


def _where(frame: pd.DataFrame, column: str, *wanted: Any) -> pd.DataFrame:
    return frame[frame[column].isin(wanted)]


def _extreme(frame: pd.DataFrame, column: str, which: str) -> pd.DataFrame:
    return frame[frame[column] == frame[column].agg(which)]


def _gather(frame: pd.DataFrame, y: str, how: str, *by: str) -> pd.DataFrame:
    return frame.groupby(list(by), sort=False)[y].agg(how).reset_index()


def _off(frame: pd.DataFrame, column: str, aim: float) -> pd.DataFrame:
    return frame.assign(off=(frame[column] - aim).abs())


def _as_text(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.astype({column: str})


def _rows(frame: pd.DataFrame, spec: Spec, name: str) -> pd.DataFrame:
    """A measure's cases as rows."""
    import pandas as pd

    found = measure(spec, frame)
    return pd.DataFrame([{**dict(case), name: number} for case, number in found.items()])


def _timeliness(frame: pd.DataFrame, kind: str, statistic: str) -> pd.DataFrame:
    """Distance of the mean from the target, or the variance, of a class's finished jobs."""
    own = frame[frame["class"] == kind].astype({"late": float}).groupby("scheme")["late"]
    numbers = own.mean().abs() if statistic == "mean" else own.var()
    return numbers.rename("late").reset_index()


def _estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Underestimates (50, 75 %) and overestimates (125, 150 %) as two kinds of row."""
    kept = frame[frame["estimate_percent"] != 100]
    side = kept["estimate_percent"].lt(100).map({True: "under", False: "over"})
    floor = kept["lower_floor"].map({0.0: "as printed", 0.1: "at least 0.1"})
    return kept.assign(side=side).assign(**{"the lower bound L": floor})


def _two_over_rest(frame: pd.DataFrame) -> pd.DataFrame:
    """The smaller total of AntMan and Tiresias over the largest of the others."""
    keys = ["capacity_fraction", "jobs", "algorithm"]
    wide = frame.groupby(keys, sort=False)["objective"].mean().unstack()
    two = wide[["antman", "tiresias"]].min(axis=1)
    return (two / wide[["fifo", "drf", "batchsched"]].max(axis=1)).rename("lead").reset_index()


def _frameworks(frame: pd.DataFrame) -> pd.DataFrame:
    """Which worker type was forced, and the architecture's short word."""
    short = frame["architecture"].map({"parameter_server": "PS", "ring_allreduce": "RAR"})
    kind = frame["fixed_worker_type"].astype(str)
    return frame.assign(kind=kind, framework=short.fillna(frame["architecture"]))


def _drop(frame: pd.DataFrame) -> pd.DataFrame:
    """Performance ratio of each scheme with fewest jobs minus that with most, by servers."""
    whole = frame.astype({"performance_lower": float})
    wide = whole.groupby(["scheme", "servers", "jobs"])["performance_lower"].mean().unstack()
    jobs = sorted(wide.columns)
    return (wide[jobs[0]] - wide[jobs[-1]]).rename("drop").reset_index()


def _shortfall(frame: pd.DataFrame) -> pd.DataFrame:
    """Revenue missed, in parts of what Theorem 1 allows."""
    missed = frame["optimum_upper"].astype(float) - frame["revenue"]
    return frame.assign(part=missed / frame["theorem"].astype(float))


def _fair(frame: pd.DataFrame) -> pd.DataFrame:
    """Tenants with a ratio of at least 1, by scheme."""
    return frame.assign(fair=frame["fairness"] >= 1).groupby("scheme")["fair"].sum().reset_index()


def _theorem_3(frame: pd.DataFrame) -> pd.DataFrame:
    """Ratios in parts of 1 + 1 / epsilon (flow) and of D_max (1 + 1 / epsilon) (total)."""
    fast = frame[frame["epsilon"] > 0]
    constant = 1 + 1 / fast["epsilon"]
    total = fast["jct_over_lp_4_plus"] / (fast["most_chunks"] * constant)
    return fast.assign(part=fast["flow_over_ilp_4"] / constant, part_of_total=total)


TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "divided": _divided, "where": _where, "extreme": _extreme, "gather": _gather, "off": _off,
    "as text": _as_text, "rows": _rows, "timeliness": _timeliness, "estimates": _estimates,
    "two over rest": _two_over_rest, "frameworks": _frameworks, "drop": _drop,
    "shortfall": _shortfall, "fair": _fair, "theorem 3": _theorem_3,
}  # fmt: skip


def _part(frame: pd.DataFrame, where: Spec | None) -> pd.DataFrame:
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
        plain = (item.item() if hasattr(item, "item") else item for item in values)
        found[tuple(zip(by, plain, strict=True))] = float(number)
    return found
