"""An algorithm's ratios over many instances, in the numbers that the field reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, Literal

from hindsched.analysis.algorithm_ratio import AlgorithmRatio
from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import competitive_ratio, optimum_of, spread

SummaryRow = dict[str, Any]
"""A row of `Comparison.summary_rows`, see `summary_row`."""


def interval_of(row: SummaryRow, of: Literal["median", "worst", "sums"]) -> Interval:
    """The interval of one of a row's numbers."""
    return Interval(row[f"{of}_lower"], row[f"{of}_upper"])


def summary_row(family: str, algorithm: str, found: Sequence[AlgorithmRatio]) -> SummaryRow:
    """One row of `Comparison.summary_rows`: an algorithm over its instances, one of `found` each.

    Returns
    -------
    dict
        ``family, algorithm, instances``; ``label``: the name as tables show it, with what the
        algorithm knows more than others behind it; ``median_lower, median_upper``, ``mean_...`` and
        ``worst_...``: of the lower and of the upper ends of the ratios, infinite ones included;
        ``sums_...``: the ratio of the sums of OPT and of ALG over the instances; ``infinite``:
        instances on which the algorithm earns nothing; ``without_ratio``: instances on which there
        is no ratio, which all numbers leave out; ``starred``: whether the ratios are plain
        quotients, see `Ratio`; ``rival``: whether the algorithm may do what the offline problem
        forbids; ``foresight``: whether it knows more of the future than an online algorithm does;
        ``commitment``: when it is bound by what it decides. An upper number is None if the optimum
        of one of the instances has no bound.
    """
    known = [row for row in found if row.ratio.exists]
    lowers = [row.ratio.interval.lower for row in known]
    uppers = [row.ratio.interval.upper for row in known]
    worst_lower, worst_upper = spread([row.ratio for row in known])
    sums = _ratio_of_sums(known)
    return {
        "family": family,
        "algorithm": algorithm,
        "label": algorithm + _common_mark([row.mark for row in found]),
        "instances": len(found),
        "median_lower": _of_all(lowers, median),
        "median_upper": _of_all(uppers, median),
        "mean_lower": _of_all(lowers, fmean),
        "mean_upper": _of_all(uppers, fmean),
        "worst_lower": worst_lower.upper,
        "worst_upper": worst_upper.upper,
        "sums_lower": sums.lower,
        "sums_upper": sums.upper,
        "infinite": sum(row.ratio.is_infinite for row in known),
        "without_ratio": len(found) - len(known),
        "starred": any(row.ratio.starred for row in known),
        "rival": not all(row.in_feasible_set for row in found),
        "foresight": any(row.has_foresight for row in found),
        "commitment": found[0].commitment,
    }


def _common_mark(marks: Sequence[str]) -> str:
    """The mark of all instances; where they differ in a detail behind a colon, without it."""
    known = list(dict.fromkeys(filter(None, marks)))
    if len(known) < 2:
        return "".join(known)
    return "".join(dict.fromkeys(mark.split(":")[0].removesuffix(")") + ")" for mark in known))


def _of_all(
    ends: Sequence[float | None], average: Callable[[Sequence[float]], float]
) -> float | None:
    """Average of ends that are all known; None otherwise."""
    known = [end for end in ends if end is not None]
    return float(average(known)) if known and len(known) == len(ends) else None


def _ratio_of_sums(rows: Sequence[AlgorithmRatio]) -> Interval:
    """The ratio of a single instance made of all: interval of sum OPT against sum ALG."""
    if not rows:
        return Interval()
    lower = _of_all([row.optimum.interval.lower for row in rows], sum)
    upper = _of_all([row.optimum.interval.upper for row in rows], sum)
    sense = rows[0].optimum.sense
    ends = (lower, upper) if sense == "max" else (upper, lower)
    total = sum(row.objective for row in rows if row.objective is not None)
    return competitive_ratio(optimum_of(sense, *ends, "feasible", proof="none"), total).interval
