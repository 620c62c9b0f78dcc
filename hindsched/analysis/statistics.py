"""Statistics over instances: paired comparisons and performance profiles.

Two algorithms are compared on the same instances, pair by pair: differences between instances, much
larger than those between algorithms, cancel. No distribution is assumed: intervals come from the
bootstrap over instances, tests from signs and ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypedDict

import numpy as np

from hindsched.analysis.algorithm_ratio import AlgorithmRatio
from hindsched.json_types import JsonObject

RESAMPLES = 2000
CONFIDENCE = 0.95
SAME = 1e-9
"""Objectives that differ by less than this share are a tie."""

Ratios = Mapping[str, Sequence[AlgorithmRatio]]


class ProfileRow(TypedDict):
    """A point of an algorithm's performance profile."""

    family: str
    algorithm: str
    factor: float
    share: float


def summary_numbers(
    found: Sequence[AlgorithmRatio], confidence: float = CONFIDENCE, seed: int = 0
) -> JsonObject:
    """An algorithm's ratio over its instances: what holds of the upper ends, which are proven.

    Parameters
    ----------
    found : sequence of AlgorithmRatio
        One an instance.
    confidence : float
        Level of the interval of the mean, by the bootstrap over the instances.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict
        ``instances``; ``mean, mean_lower, mean_upper, median, worst`` over the finite upper ends;
        ``infinite, without_ratio``: instances that are counted apart; ``level``.
    """
    uppers = [row.ratio.interval.upper for row in found]
    finite = np.array([end for end in uppers if end is not None and math.isfinite(end)])
    numbers: JsonObject = {"instances": len(found)}
    numbers |= dict.fromkeys(("mean", "mean_lower", "mean_upper", "median", "worst"))
    if finite.size:
        low, high = _bootstrap(finite, confidence, seed)
        numbers |= {
            "mean": float(finite.mean()), "mean_lower": low, "mean_upper": high,
            "median": float(np.median(finite)), "worst": float(finite.max()),
        }  # fmt: skip
    numbers["infinite"] = sum(end == math.inf for end in uppers)
    numbers["without_ratio"] = sum(end is None for end in uppers)
    return {**numbers, "level": confidence}


def _bootstrap(values: Any, confidence: float, seed: int) -> tuple[float, float]:
    """Interval of the mean over resampled instances."""
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values[draws].mean(axis=1), [tail, 100 - tail])
    return float(low), float(high)


def paired_rows(found: Ratios, seed: int = 0, confidence: float = CONFIDENCE) -> list[JsonObject]:
    """Compare each two algorithms of a family on the instances that both finished.

    Parameters
    ----------
    found : mapping
        Ratios by algorithm, one an instance.
    seed : int
        Of the bootstrap.
    confidence : float
        Level of the bootstrap's interval.

    Returns
    -------
    list of dict
        ``family, algorithm, rival, instances``; ``better, worse, ties``: on how many instances the
        algorithm's objective is better; ``advantage``: geometric mean of how many times better it
        is (1 is equal), with ``advantage_lower, advantage_upper``, its bootstrap interval at the
        ``level``;
        ``sign_p``: two-sided sign test; ``wilcoxon_p``: signed ranks of the logarithms. A number
        that cannot be had (an objective of 0, no instance) is None.
    """
    rows = []
    for name, rival in combinations(found, 2):
        own = {row.instance: row for row in found[name]}
        other = {row.instance: row for row in found[rival]}
        both = [key for key in own if key in other and _finished(own[key], other[key])]
        if not both:
            continue
        logs = np.array([_log_advantage(own[key], other[key]) for key in both])
        facts = {"family": own[both[0]].family, "algorithm": name, "rival": rival}
        rows.append({**facts, "instances": len(both), **_tests(logs, seed, confidence)})
    return rows


def profile_rows(found: Ratios, points: int = 101) -> list[ProfileRow]:
    """Performance profiles (Dolan and More, 2002): how often an algorithm is near the best.

    Parameters
    ----------
    found : mapping
        Ratios by algorithm, one an instance.
    points : int
        Points of the axis, spaced by a constant factor up to the largest finite quotient.

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
        {
            "family": rows[0].family,
            "algorithm": name,
            "factor": float(np.exp(point)),
            "share": float((behind[index] <= point + SAME).mean()),
        }
        for index, (name, rows) in enumerate(found.items())
        for point in axis
    ]


def _finished(*rows: AlgorithmRatio) -> bool:
    return all(row.objective is not None for row in rows)


def _log_cost(row: AlgorithmRatio) -> float:
    """Logarithm of the objective, smaller is better; of what is below 0 that of 0."""
    assert row.objective is not None
    sign = 1.0 if row.optimum.sense == "min" else -1.0
    return sign * math.log(row.objective) if row.objective > 0 else -sign * math.inf


def _log_advantage(own: AlgorithmRatio, other: AlgorithmRatio) -> float:
    """Logarithm of how many times better; 0 for a tie."""
    first, second = _log_cost(own), _log_cost(other)
    if own.objective == other.objective or abs(second - first) <= SAME:
        return 0.0
    if first == second:  # of two that have no logarithm one is below 0
        assert own.objective is not None
        assert other.objective is not None
        is_more = own.objective > other.objective
        return math.inf if is_more is (own.optimum.sense == "max") else -math.inf
    return second - first


def _tests(logs: Any, seed: int, confidence: float) -> JsonObject:
    """Counts, advantage with its interval, and both tests."""
    from scipy.stats import binomtest, wilcoxon

    better, worse = int((logs > 0).sum()), int((logs < 0).sum())
    facts: JsonObject = {"better": better, "worse": worse, "ties": len(logs) - better - worse}
    facts |= dict.fromkeys(("advantage", "advantage_lower", "advantage_upper"))
    if np.isfinite(logs).all():
        low, high = _bootstrap(logs, confidence, seed)
        facts |= {
            "advantage": float(np.exp(logs.mean())),
            "advantage_lower": float(np.exp(low)),
            "advantage_upper": float(np.exp(high)),
        }
    facts["level"] = confidence
    decided = better + worse
    facts["sign_p"] = float(binomtest(better, decided).pvalue) if decided else None
    ranks = np.isfinite(logs).all() and decided
    facts["wilcoxon_p"] = float(wilcoxon(logs, zero_method="wilcox").pvalue) if ranks else None
    return facts
