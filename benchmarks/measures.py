"""Quantities that claims are about, as data: computed from one seed's rows of a figure's table.

A measure is an object of a claims file, ``{"of": NAME, ...}`` with the parameters of the function
of that name below. Its ``table``, if it has one, lists steps that make another table first, each
``[NAME, parameter...]`` of the functions in `TABLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Case = tuple[tuple[str, Any], ...]  # under what a value was measured: names and values
Values = dict[Case, float]
Spec = Mapping[str, Any]


def measure(spec: Spec, frame: pd.DataFrame, every: pd.DataFrame | None = None) -> Values:
    """Compute a measure from one seed's rows: a value a case. `every` has all seeds' rows."""
    parameters = {name: value for name, value in spec.items() if name not in ("of", "table")}
    if spec["of"] in OF_ALL_SEEDS:
        parameters["every"] = frame if every is None else every
    for name, *given in spec.get("table", ()):
        frame = TABLES[name](frame, *given)
        if "every" in parameters:
            parameters["every"] = TABLES[name](parameters["every"], *given)
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
    minus: bool = False,
    every: pd.DataFrame | None = None,
) -> Values:
    """Ours over (or `minus`) the rival that is `best`, gathered within a case over `over`.

    The best of several rivals is that whose mean over all seeds is, as plots of means show it: the
    best of each run is nobody's schedule.
    Several of ours, or settings of the rivals, stand under the words that tell them apart (cases
    called `variant` and "the rivals"); a setting that the table lacks has no value. Rivals None
    are all others.
    """
    wide = _wide(frame, [*by, *over], column, y)
    if isinstance(rivals, Mapping):
        more: Any = {"column": column, "by": by, "over": over, "best": best, "gather": gather,
                     "variant": variant, "minus": minus, "every": every}  # fmt: skip
        apart: Values = {}
        for word, names in rivals.items():
            has_all = set([names] if isinstance(names, str) else names) <= set(wide.columns)
            for case, ratio in against(frame, ours, names if has_all else [], y, **more).items():
                apart[(("the rivals", word), *case)] = ratio if has_all else float("nan")
        return apart
    known = [name for name in wide.columns if name != ours] if rivals is None else rivals
    others = list([known] if isinstance(known, str) else known)
    rival = wide[others[0]] if len(others) == 1 else wide.iloc[:, 0] * float("nan")
    if len(others) > 1:
        means = _wide(frame if every is None else every, [*by, *over], column, y)[others].T
        for case, mean in means.dropna(how="all", axis=1).items():
            if case in rival.index:
                rival[case] = wide.loc[case, mean.idxmax() if best == "max" else mean.idxmin()]
    values: Values = {}
    for word, name in ({ours: ours} if isinstance(ours, str) else ours).items():
        if name not in wide:
            continue
        number = wide[name] - rival if minus else wide[name] / rival
        prefix: Case = () if isinstance(ours, str) else ((variant, word),)
        for case, value_ in _gathered(number, by, over, gather).items():
            values[prefix + case] = value_
    return values


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


def quotient(
    frame: pd.DataFrame, numerator: Spec, denominator: Spec, every: pd.DataFrame
) -> Values:
    """One quantity over another, in every case that both have."""
    above, below = (measure(spec, frame, every) for spec in (numerator, denominator))
    return {
        case: above[case] / below[case] if below[case] else float("nan")
        for case in above
        if case in below
    }


def cases(frame: pd.DataFrame, name: str, each: Mapping[str, Spec], every: pd.DataFrame) -> Values:
    """Several measures as the cases of one."""
    return {
        ((name, word), *case): number
        for word, spec in each.items()
        for case, number in measure(spec, frame, every).items()
    }


def correlation(frame: pd.DataFrame, x: str, y: str, by: str) -> Values:
    """Correlation of two columns in each case."""
    return {
        ((by, key),): float(rows[x].corr(rows[y])) for key, rows in frame.groupby(by, sort=False)
    }


def exponent(frame: pd.DataFrame, y: str, x: str, by: str) -> Values:
    """Exponent of `y` in `x` in each case, fitted on the log scale."""
    logs = frame.assign(**{name: np.log(frame[name].astype(float)) for name in (x, y)})
    return {
        ((by, key),): float(np.polyfit(rows[x], rows[y], 1)[0])
        for key, rows in logs.groupby(by, sort=False)
    }


def least_of_the_parts(frame: pd.DataFrame, algorithm: str, part: str, others: list[str]) -> Values:
    """One cost over the least of the others that is above 0, of one algorithm."""
    costs = frame[frame["algorithm"] == algorithm][[part, *others]].mean()
    return {(): float(costs[part] / costs[others].min())}


MEASURES: dict[str, Callable[..., Values]] = {
    function.__name__: function
    for function in (
        against, change, spread, value, quotient, cases, correlation, exponent, least_of_the_parts,
    )
}  # fmt: skip
OF_ALL_SEEDS = ("against", "quotient", "cases")
"""Measures that look at all seeds' rows, too."""


def _compute(frame: pd.DataFrame, formula: str) -> pd.DataFrame:
    """A further column, as in ``part = ratio / theorem``."""
    empty = frame.columns[frame.isna().all()]
    computed: Any = frame.astype(dict.fromkeys(empty, float)).eval(formula, engine="python")
    return computed


def _case_rows(frame: pd.DataFrame, spec: Spec, name: str) -> pd.DataFrame:
    """A measure's cases as rows."""
    import pandas as pd

    values = measure(spec, frame)
    return pd.DataFrame([{**dict(case), name: number} for case, number in values.items()])


def _class_timeliness(frame: pd.DataFrame, kind: str, statistic: str) -> pd.DataFrame:
    """Distance of the mean from the target, or the variance, of a class's finished jobs."""
    late = frame[frame["class"] == kind].astype({"late": float}).groupby("scheme")["late"]
    numbers = late.mean().abs() if statistic == "mean" else late.var()
    return numbers.rename("late").reset_index()


def _estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Underestimates (50, 75 %) and overestimates (125, 150 %) as two kinds of row."""
    wrong = frame[frame["estimate_percent"] != 100]
    side = wrong["estimate_percent"].lt(100).map({True: "under", False: "over"})
    floor = wrong["lower_floor"].map({0.0: "as printed", 0.1: "at least 0.1"})
    return wrong.assign(side=side).assign(**{"the lower bound L": floor})


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


def _off_peak(frame: pd.DataFrame) -> pd.DataFrame:
    """Each scheme's last slot in which at least half as many workers run as in its busiest."""
    peak = frame.groupby("scheme")["utilisation"].transform("max")
    busy = frame[frame["utilisation"] >= peak / 2]
    return busy.groupby("scheme", sort=False)["slot"].max().reset_index()


def _drop(frame: pd.DataFrame) -> pd.DataFrame:
    """Performance ratio of each scheme with fewest jobs minus that with most, by servers."""
    whole = frame.astype({"performance_lower": float})
    wide = whole.groupby(["scheme", "servers", "jobs"])["performance_lower"].mean().unstack()
    jobs = sorted(wide.columns)
    return (wide[jobs[0]] - wide[jobs[-1]]).rename("drop").reset_index()


TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "compute": _compute,
    "select": lambda frame, condition: frame.query(condition, engine="python"),
    "gather": lambda frame, y, how, *by: frame.groupby([*by], sort=False)[y].agg(how).reset_index(),
    "as text": lambda frame, column: frame.astype({column: str}),
    "rows": _case_rows, "timeliness": _class_timeliness, "estimates": _estimates,
    "two over rest": _two_over_rest, "frameworks": _frameworks, "drop": _drop,
    "off peak": _off_peak,
}  # fmt: skip


def _part(frame: pd.DataFrame, where: Spec | None) -> pd.DataFrame:
    for column, value in (where or {}).items():
        frame = frame[frame[column] == value]
    return frame


def _wide(frame: pd.DataFrame, keys: list[str], column: str, y: str) -> pd.DataFrame:
    """Means of `y`, a row a combination of `keys` and a column a value of `column`."""
    table = frame.assign(_all=0).astype({y: float})
    return table.groupby([*(keys or ["_all"]), column], sort=False)[y].mean().unstack(column)


def _gathered(series: Any, by: Sequence[str], over: Sequence[str], gather: str) -> Values:
    """One value a case of `by`."""
    if not by:
        return {(): float(series.agg(gather))}
    grouped = series.groupby(level=list(by), sort=False).agg(gather) if over else series
    cases: Values = {}
    for key, number in grouped.items():
        values = key if isinstance(key, tuple) else (key,)
        plain = (item.item() if hasattr(item, "item") else item for item in values)
        cases[tuple(zip(by, plain, strict=True))] = float(number)
    return cases
