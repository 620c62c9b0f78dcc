"""Quantities that claims are about, as data: computed from a figure's table, seed by seed.

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
Values = dict[Case, Any]  # of a case: a series with a value a seed
Spec = Mapping[str, Any]
ROUND_OFF = 1e-12  # what is less is zero, of which no ratio is taken


def measure(spec: Spec, frame: pd.DataFrame) -> Values:
    """Compute a measure: in each case a value a seed."""
    parameters = {name: value for name, value in spec.items() if name not in ("of", "table")}
    for name, *given in spec.get("table", ()):
        frame = TABLES[name](frame, *given)
    return MEASURES[spec["of"]](frame, **parameters)


def is_ratio(spec: Spec) -> bool:
    """Whether a measure is a ratio of two that are measured, not a number as it is drawn."""
    if spec["of"] == "cases":
        return all(map(is_ratio, spec["each"].values()))
    return spec["of"] in ("against", "change", "quotient") and not spec.get("minus")


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
    variant: str = "variant",
    minus: bool = False,
) -> Values:
    """Ours over (or `minus`) the rival that is `best`, in each case of `by` the mean over `over`.

    Ratios have their geometric mean, which does not depend on what is divided by what.
    The best of several rivals is that whose mean over all seeds is, as plots of means show it: the
    best of each run is nobody's schedule.
    Several of ours, or settings of the rivals, stand under the words that tell them apart (cases
    called `variant` and "the rivals"); rivals that the table lacks have no value. Rivals None are
    all others.
    """
    wide = _wide(frame, [*by, *over], column, y)
    known = [name for name in wide.columns if name != ours] if rivals is None else rivals
    values: Values = {}
    for rivals_word, names in _by_word(known).items():
        rival = _best(wide, [names] if isinstance(names, str) else list(names), best)
        for word, name in _by_word(ours).items():
            if name not in wide:
                continue
            number = wide[name] - rival if minus else wide[name] / rival
            words = (("the rivals", rivals_word), (variant, word))
            prefix = tuple(pair for pair in words if pair[1])
            values |= {
                prefix + case: ratio for case, ratio in _gathered(number, by, not minus).items()
            }
    return values


def change(
    frame: pd.DataFrame, y: str, x: str, *, where: Spec | None = None, by: Sequence[str] = ()
) -> Values:
    """Mean of `y` at the largest `x` over that at the smallest; nothing for a single `x`."""
    wide = _wide(_part(frame, where), by, x, y)
    columns = sorted(wide.columns)
    return _gathered(wide[columns[-1]] / wide[columns[0]], by) if len(columns) > 1 else {}


def value(
    frame: pd.DataFrame,
    y: str,
    *,
    where: Spec | None = None,
    by: Sequence[str] = (),
    gather: str = "mean",
) -> Values:
    """Gather `y` itself: its ``mean``, or what a run's jobs or slots reach at most (``max``)."""
    part = _part(frame, where).astype({y: float})
    return _gathered(part.groupby(["seed", *by], sort=False)[y].agg(gather), by)


def quotient(frame: pd.DataFrame, numerator: Spec, denominator: Spec) -> Values:
    """One quantity over another, in every case that both have."""
    above, below = measure(numerator, frame), measure(denominator, frame)
    return {case: above[case] / below[case].where(below[case] != 0) for case in above
            if case in below}  # fmt: skip


def cases(frame: pd.DataFrame, name: str, each: Mapping[str, Spec]) -> Values:
    """Several measures as the cases of one."""
    return {
        ((name, word), *case): numbers
        for word, spec in each.items()
        for case, numbers in measure(spec, frame).items()
    }


def correlation(frame: pd.DataFrame, x: str, y: str, by: str) -> Values:
    """Correlation of two columns in each case."""
    rows = frame.groupby(["seed", by], sort=False)
    return _gathered(rows[[x, y]].apply(lambda own: own[x].corr(own[y])), [by])


def exponent(frame: pd.DataFrame, y: str, x: str, by: str) -> Values:
    """Exponent of `y` in `x` in each case, fitted on the log scale."""
    logs = frame.assign(**{name: np.log(frame[name].astype(float)) for name in (x, y)})
    rows = logs.groupby(["seed", by], sort=False)
    return _gathered(rows[[x, y]].apply(lambda own: np.polyfit(own[x], own[y], 1)[0]), [by])


MEASURES: dict[str, Callable[..., Values]] = {
    function.__name__: function
    for function in (against, change, value, quotient, cases, correlation, exponent)
}


def _compute(frame: pd.DataFrame, formula: str) -> pd.DataFrame:
    """A further column, as in ``part = ratio / theorem``."""
    empty = frame.columns[frame.isna().all()]
    computed: Any = frame.astype(dict.fromkeys(empty, float)).eval(formula, engine="python")
    return computed


def _gather(frame: pd.DataFrame, y: str, how: str, *by: str) -> pd.DataFrame:
    """A column gathered in each run over what is not named."""
    return frame.groupby(["seed", *by], sort=False)[y].agg(how).reset_index()


def _case_rows(frame: pd.DataFrame, spec: Spec, name: str) -> pd.DataFrame:
    """A measure's cases as rows."""
    import pandas as pd

    rows = (
        {"seed": seed, **dict(case), name: number}
        for case, numbers in measure(spec, frame).items()
        for seed, number in numbers.items()
    )
    return pd.DataFrame(rows)


def _class_timeliness(frame: pd.DataFrame, kind: str, statistic: str) -> pd.DataFrame:
    """Distance of the mean from the target, or the variance, of a class's finished jobs.

    A scheme is early or late as its mean over all seeds is: a run's few jobs miss by chance.
    """
    part = frame[frame["class"] == kind].astype({"late": float})
    late = part.groupby(["seed", "scheme"])["late"]
    numbers = late.mean() if statistic == "mean" else late.var()
    if statistic == "mean":
        numbers = numbers * np.sign(numbers.groupby("scheme").transform("mean"))
    return numbers.rename("late").reset_index()


def _estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Underestimates (50, 75 %) and overestimates (125, 150 %) as two kinds of row."""
    wrong = frame[frame["estimate_percent"] != 100]
    side = wrong["estimate_percent"].lt(100).map({True: "under", False: "over"})
    floor = wrong["lower_floor"].map({0.0: "as printed", 0.1: "at least 0.1"})
    return wrong.assign(side=side).assign(**{"the lower bound L": floor})


def _frameworks(frame: pd.DataFrame) -> pd.DataFrame:
    """Which worker type was forced, and the architecture's short word."""
    short = frame["architecture"].map({"parameter_server": "PS", "ring_allreduce": "RAR"})
    kind = frame["fixed_worker_type"].astype(str)
    return frame.assign(kind=kind, framework=short.fillna(frame["architecture"]))


def _off_peak(frame: pd.DataFrame) -> pd.DataFrame:
    """Each scheme's last slot in which at least half as many workers run as in its busiest."""
    run = ["seed", "scheme"]
    peak = frame.groupby(run)["utilisation"].transform("max")
    busy = frame[frame["utilisation"] >= peak / 2]
    return busy.groupby(run, sort=False)["slot"].max().reset_index()


def _drop(frame: pd.DataFrame) -> pd.DataFrame:
    """Performance ratio of each scheme with fewest jobs minus that with most, by servers."""
    wide = _wide(frame, ["scheme", "servers"], "jobs", "performance_lower")
    jobs = sorted(wide.columns)
    return (wide[jobs[0]] - wide[jobs[-1]]).rename("drop").reset_index()


TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "compute": _compute, "gather": _gather, "rows": _case_rows, "timeliness": _class_timeliness,
    "select": lambda frame, condition: frame.query(condition, engine="python"),
    "as text": lambda frame, column: frame.astype({column: str}),
    "estimates": _estimates, "frameworks": _frameworks, "drop": _drop, "off peak": _off_peak,
}  # fmt: skip


def _part(frame: pd.DataFrame, where: Spec | None) -> pd.DataFrame:
    for column, value in (where or {}).items():
        frame = frame[frame[column] == value]
    return frame


def _wide(frame: pd.DataFrame, keys: Sequence[str], column: str, y: str) -> pd.DataFrame:
    """Means of `y`, a row a seed and combination of `keys` and a column a value of `column`."""
    own = frame[y].astype(float)
    numbers = frame.assign(**{y: own.mask(own.abs() < ROUND_OFF, 0)})
    return numbers.groupby(["seed", *keys, column], sort=False)[y].mean().unstack(column)


def _by_word(names: Any) -> Mapping[str, Any]:
    """Names under the words that tell them apart; a single one under the empty word."""
    return names if isinstance(names, Mapping) else {"": names}


def _best(wide: pd.DataFrame, names: list[str], best: str) -> Any:
    """The one of `names` whose mean over the seeds is `best`; none if the table lacks one."""
    import pandas as pd

    if not set(names) <= set(wide.columns):
        return pd.Series(float("nan"), wide.index)
    if len(names) == 1:
        return wide[names[0]]
    own, keys = wide[names], [key for key in wide.index.names if key != "seed"]
    means = own.groupby(level=keys).transform("mean") if keys else own.assign(**own.mean())
    chosen = means.eq(means.max(axis=1) if best == "max" else means.min(axis=1), axis=0)
    return own.where(chosen).bfill(axis=1).iloc[:, 0]


def _gathered(series: Any, by: Sequence[str], are_ratios: bool = False) -> Values:
    """In each case of `by` the mean over all else, a value a seed; of ratios above 0 geometric."""
    levels = ["seed", *by]
    rows = series.groupby(level=levels, sort=False)
    means = rows.mean()
    if are_ratios:
        logs = np.log(series.where(series > 0)).groupby(level=levels, sort=False).mean()
        means = np.exp(logs).where(rows.min() > 0, means)
    if not by:
        return {(): means}
    cases: Values = {}
    for key, numbers in means.groupby(level=list(by), sort=False):
        values = key if isinstance(key, tuple) else (key,)
        plain = (item.item() if hasattr(item, "item") else item for item in values)
        cases[tuple(zip(by, plain, strict=True))] = numbers.droplevel(list(by))
    return cases
