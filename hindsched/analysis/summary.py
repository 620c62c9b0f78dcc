"""An algorithm's ratios over many instances, in the numbers that the field reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Literal, TypedDict

from hindsched.analysis.algorithm_ratio import AlgorithmRatio
from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import competitive_ratio, optimum_of, spread


class SummaryRow(TypedDict):
    """One row of `Comparison.summary_rows`, see `summary_row`."""

    family: str
    algorithm: str
    label: str
    instances: int
    median_lower: float | None
    median_upper: float | None
    mean_lower: float | None
    mean_upper: float | None
    worst_lower: float | None
    worst_upper: float | None
    sums_lower: float | None
    sums_upper: float | None
    infinite: int
    without_ratio: int
    starred: bool
    rival: bool
    foresight: bool
    commitment: str


def interval_of(row: SummaryRow, of: Literal["median", "worst", "sums"]) -> Interval:
    """The interval of one of a row's numbers."""
    ends = {
        "median": (row["median_lower"], row["median_upper"]),
        "worst": (row["worst_lower"], row["worst_upper"]),
        "sums": (row["sums_lower"], row["sums_upper"]),
    }
    return Interval(*ends[of])


def summary_row(family: str, algorithm: str, found: Sequence[AlgorithmRatio]) -> SummaryRow:
    """One row of `Comparison.summary_rows`: an algorithm over its instances.

    Parameters
    ----------
    family, algorithm : str
        Whose.
    found : sequence of AlgorithmRatio
        One an instance.

    Returns
    -------
    dict
        ``family, algorithm, instances``; ``label``: the name as tables show it, with what the
        algorithm knows more than others behind it; ``median_lower, median_upper``, ``mean_lower,
        mean_upper`` and ``worst_lower, worst_upper``: of the lower and of the upper ends of the
        ratios, infinite ones included; ``sums_lower, sums_upper``: the ratio of the sums of OPT and
        of ALG over the instances; ``infinite``: instances on which the algorithm earns nothing;
        ``without_ratio``: instances on which there is no ratio, which all numbers leave out;
        ``starred``: whether the ratios are plain quotients, see `Ratio`; ``rival``: whether the
        algorithm may do what the offline problem forbids; ``foresight``: whether it knows more of
        the future than an online algorithm does; ``commitment``: when it is bound by what it
        decides. An upper number is None if the optimum of
        one of the instances has no bound.
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
        "sums_lower": sums[0],
        "sums_upper": sums[1],
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


def _ratio_of_sums(rows: Sequence[AlgorithmRatio]) -> tuple[float | None, float | None]:
    """The ratio of a single instance made of all: interval of sum OPT against sum ALG."""
    if not rows:
        return None, None
    lowers = [row.optimum.interval.lower for row in rows]
    uppers = [row.optimum.interval.upper for row in rows]
    lower = None if None in lowers else sum(end for end in lowers if end is not None)
    upper = None if None in uppers else sum(end for end in uppers if end is not None)
    sense = rows[0].optimum.sense
    ends = (lower, upper) if sense == "max" else (upper, lower)
    total = sum(row.objective for row in rows if row.objective is not None)
    interval = competitive_ratio(optimum_of(sense, *ends, "feasible", proof="none"), total).interval
    return interval.lower, interval.upper
