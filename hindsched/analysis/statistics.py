"""Statistics over instances: summaries, paired comparisons and performance profiles.

Two algorithms are compared on the same instances, pair by pair: differences between instances, much
larger than those between algorithms, cancel. No distribution is assumed: intervals come from the
bootstrap over instances, tests from signs and ranks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import AlgorithmRatio, competitive_ratio, optimum_of, spread
from hindsched.arrays import Floats

RESAMPLES, CONFIDENCE = 2000, 0.95
LONGEST_REASON = 120
SAME = 1e-9
"""Objectives that differ by less than this share are a tie."""

Ratios = Mapping[str, Sequence[AlgorithmRatio]]
Row = dict[str, Any]


def summary_row(found: Sequence[AlgorithmRatio]) -> Row:
    """One row of `Comparison.summary_rows`: an algorithm over its instances, one of `found` each.

    Returns
    -------
    dict
        ``family, algorithm, instances``; ``label``: its name with what it knows more than others;
        ``median_lower, median_upper`` and ``worst_...``: of the lower and of the upper ends of the
        ratios, infinite ones included; ``sums_...``: the ratio of the sums of OPT and of ALG;
        ``infinite``: instances on which it earns nothing; ``without_ratio``: instances that all
        numbers leave out, and ``no_ratio_because`` the commonest reason; ``starred``: whether the
        ratios are plain quotients, see `Ratio`; ``rival``: whether it may do what the offline
        problem forbids; ``foresight``: whether it knows more than an online algorithm does;
        ``commitment``: when it is bound by what it decides. An upper number is None if the optimum
        of one of the instances has no bound.
    """
    known = [row for row in found if row.ratio.exists]
    lowers = [row.ratio.interval.lower for row in known]
    uppers = [row.ratio.interval.upper for row in known]
    worst_lower, worst_upper = spread([row.ratio for row in known])
    sums, name = _ratio_of_sums(known), found[0].algorithm
    return {
        "family": found[0].family, "algorithm": name, "instances": len(found),
        "label": name + _common_mark([row.mark for row in found]),
        "median_lower": _of_all(lowers, median), "median_upper": _of_all(uppers, median),
        "worst_lower": worst_lower.upper, "worst_upper": worst_upper.upper,
        "sums_lower": sums.lower, "sums_upper": sums.upper,
        "infinite": sum(row.ratio.is_infinite for row in known),
        "without_ratio": len(found) - len(known), "no_ratio_because": _commonest_reason(found),
        "starred": any(row.ratio.starred for row in known),
        "rival": not all(row.in_feasible_set for row in found),
        "foresight": any(row.has_foresight for row in found),
        "commitment": next((row.commitment for row in found if row.commitment), ""),
    }  # fmt: skip


def interval_of(row: Row, of: str) -> Interval:
    """The interval of one of a summary row's numbers: ``median``, ``worst`` or ``sums``."""
    return Interval(row[f"{of}_lower"], row[f"{of}_upper"])


def note_of(row: Row) -> str:
    """What the numbers of a summary row leave open: infinite, absent and starred ratios."""
    notes = [f"inf on {row['infinite']}"] if row["infinite"] else []
    if row["without_ratio"]:
        notes.append(f"no ratio on {row['without_ratio']} ({row['no_ratio_because']})")
    return "; ".join([*notes, *(["*"] if row["starred"] else [])])


def _commonest_reason(found: Sequence[AlgorithmRatio]) -> str | None:
    """Why most instances without a ratio have none; of a failed run its own error."""
    reasons = [
        [*row.errors, row.ratio.reason or "the optimum is not known"][0]
        for row in found
        if not row.ratio.exists
    ]
    return Counter(reasons).most_common(1)[0][0][:LONGEST_REASON] if reasons else None


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
    known, bounds = zip(*(row.optimum.known_and_bound for row in rows), strict=True)
    sums = _of_all(known, sum), _of_all(bounds, sum)
    optimum = optimum_of(rows[0].optimum.sense, *sums, "feasible", proof="none")
    total = sum(row.objective for row in rows if row.objective is not None)
    return competitive_ratio(optimum, total).interval


def summary_numbers(
    found: Sequence[AlgorithmRatio], confidence: float = CONFIDENCE, seed: int = 0
) -> Row:
    """An algorithm's ratio over its instances: what holds of the upper ends, which are proven.

    Returns
    -------
    dict
        ``instances``; ``mean, mean_lower, mean_upper, median, worst`` over the finite upper ends;
        ``infinite, without_ratio``: instances that are counted apart; ``level``.
    """
    uppers = [row.ratio.interval.upper for row in found]
    finite = np.array([end for end in uppers if end is not None and math.isfinite(end)])
    numbers: list[float | None] = [None] * 5
    if finite.size:
        interval = bootstrap(finite, confidence, seed)
        numbers = [*map(float, (finite.mean(), *interval, np.median(finite), finite.max()))]
    return {
        "instances": len(found),
        **dict(zip(("mean", "mean_lower", "mean_upper", "median", "worst"), numbers, strict=True)),
        "infinite": sum(end == math.inf for end in uppers),
        "without_ratio": sum(end is None for end in uppers),
        "level": confidence,
    }


def bootstrap(values: Floats, confidence: float, seed: int) -> tuple[float, float]:
    """Interval of the mean over resampled instances."""
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values[draws].mean(axis=1), [tail, 100 - tail])
    return float(low), float(high)


def paired_rows(found: Ratios, seed: int = 0, confidence: float = CONFIDENCE) -> list[Row]:
    """Compare each two algorithms of a family on the instances that both finished.

    Returns
    -------
    list of dict
        ``family, algorithm, rival, instances``; ``better, worse, ties``: on how many instances the
        algorithm's objective is better; ``advantage``: geometric mean of how many times better it
        is (1 is equal), with ``advantage_lower, advantage_upper``, its bootstrap interval at the
        ``level``; ``sign_p``: two-sided sign test; ``wilcoxon_p``: signed ranks of the logarithms.
        A number that cannot be had (an objective of 0, no instance) is None.
    """
    rows = []
    for name, rival in combinations(found, 2):
        known = [
            {row.instance: row for row in found[key] if row.objective is not None}
            for key in (name, rival)
        ]
        both = [key for key in known[0] if key in known[1]]
        if both:
            logs = np.array([_log_advantage(*(own[key] for own in known)) for key in both])
            facts = {"family": found[name][0].family, "algorithm": name, "rival": rival}
            rows.append({**facts, "instances": len(both), **_tests(logs, seed, confidence)})
    return rows


def profile_rows(found: Ratios, points: int = 101) -> list[Row]:
    """Performance profiles (Dolan and More, 2002): how often an algorithm is near the best.

    Returns
    -------
    list of dict
        ``family, algorithm, factor, share``: share of the instances on which the algorithm's
        objective is within ``factor`` of the best of all algorithms; one that failed or is below 0
        never is.
    """
    instances = list(dict.fromkeys(row.instance for rows in found.values() for row in rows))
    logs = np.full((len(found), len(instances)), math.nan)
    for index, rows in enumerate(found.values()):
        for row in rows:
            if row.objective is not None and row.objective >= 0:
                logs[index, instances.index(row.instance)] = _log_cost(row)
    best = np.fmin.reduce(logs, axis=0)
    with np.errstate(invalid="ignore"):
        behind = np.where(np.isfinite(best), logs - best, np.where(logs == best, 0.0, math.inf))
    behind[np.isnan(behind)] = math.inf
    finite = behind[np.isfinite(behind)]
    axis = np.linspace(0.0, max(float(finite.max(initial=0.0)), SAME), points)
    return [
        {"family": rows[0].family, "algorithm": name, "factor": float(np.exp(point)),
         "share": float((behind[index] <= point + SAME).mean())}
        for index, (name, rows) in enumerate(found.items())
        for point in axis
    ]  # fmt: skip


def _log_cost(row: AlgorithmRatio) -> float:
    """Logarithm of the objective, smaller is better; of what is below 0 that of 0."""
    objective, sign = row.objective or 0.0, 1.0 if row.optimum.sense == "min" else -1.0
    return sign * math.log(objective) if objective > 0 else -sign * math.inf


def _log_advantage(own: AlgorithmRatio, other: AlgorithmRatio) -> float:
    """Logarithm of how many times better; 0 for a tie."""
    first, second = _log_cost(own), _log_cost(other)
    mine, theirs = own.objective or 0.0, other.objective or 0.0
    if mine == theirs or abs(second - first) <= SAME:
        return 0.0
    if first == second:  # of two that have no logarithm one is below 0
        return math.inf if (mine > theirs) is (own.optimum.sense == "max") else -math.inf
    return second - first


def _tests(logs: Floats, seed: int, confidence: float) -> Row:
    """Counts, advantage with its interval, and both tests."""
    from scipy.stats import binomtest, wilcoxon

    better, worse, finite = int((logs > 0).sum()), int((logs < 0).sum()), np.isfinite(logs).all()
    numbers: list[float | None] = [None] * 3
    if finite:
        numbers = np.exp([logs.mean(), *bootstrap(logs, confidence, seed)]).tolist()
    names = ("advantage", "advantage_lower", "advantage_upper")
    decided = better + worse
    ranks = wilcoxon(logs, zero_method="wilcox").pvalue if finite and decided else None
    return {
        "better": better, "worse": worse, "ties": len(logs) - decided,
        **dict(zip(names, numbers, strict=True)), "level": confidence,
        "sign_p": float(binomtest(better, decided).pvalue) if decided else None,
        "wilcoxon_p": None if ranks is None else float(ranks),
    }  # fmt: skip
