"""Statistics over instances: summaries, verdicts and paired comparisons.

Two algorithms are compared on the same instances, pair by pair: differences between instances, much
larger than those between algorithms, cancel. No distribution is assumed: intervals come from the
bootstrap over instances, tests from signs and ranks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.bounds import Bounds, ratio_text, written_up
from hindsched.analysis.ratio import (
    AlgorithmRatio,
    Optimum,
    ratio_spread,
)
from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.online.protocol import FORECASTS, SEES_ALL

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES, CONFIDENCE = 2000, 0.95
LONGEST_REASON = 120
FORESIGHT = (SEES_ALL, FORECASTS)  # marks of who knows what no online algorithm does
SAME = 1e-9  # objectives that differ by less than this share are a tie
PROVEN_BY = {
    "certificate": "by prices",
    "checked fast": "by prices in floating point",
    "solver": "by a solver",
}

Ratios = Mapping[str, Sequence[AlgorithmRatio]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """An algorithm over its instances; an end of a number is None where it has none on one."""

    family: str
    algorithm: str
    label: str  # its name with what it knows more than others
    median: Bounds  # from the lower to the upper ends' median, infinite ones included
    worst: Bounds
    instances: int
    infinite: int  # instances on which it earns nothing
    without_ratio: int  # instances that all numbers leave out
    reason: str  # the commonest why they have none
    starred: bool  # whether the ratios are plain quotients, see `Ratio`
    keeps_rules: bool  # whether it does nothing that the offline problem forbids
    is_online: bool  # whether moreover it knows no more than an online algorithm
    commitment: str  # when it is bound by what it decides

    @property
    def note(self) -> str:
        """What the numbers leave open: infinite, absent and starred ratios."""
        notes = [f"inf on {self.infinite}"] if self.infinite else []
        notes += [f"no ratio on {self.without_ratio} ({self.reason})"] if self.reason else []
        return "; ".join([*notes, *(["*"] if self.starred else [])])

    @property
    def words(self) -> str:
        """Median and worst ratio; of one instance its ratio."""
        if self.instances - self.without_ratio == 1:
            return f"ratio {ratio_text(self.median)}"
        return f"median ratio {ratio_text(self.median)}, worst {ratio_text(self.worst)}"


def summary(rows: Sequence[AlgorithmRatio]) -> Summary:
    """Sum an algorithm up over its instances, one of `found` each."""
    known = [row for row in rows if row.ratio.exists]
    ends = [row.ratio.interval for row in known]
    lowers, uppers = ratio_spread([row.ratio for row in known])
    reasons = Counter(
        [*row.errors, row.ratio.reason or "the optimum is not known"][0]
        for row in rows
        if not row.ratio.exists
    )
    marks = list(dict.fromkeys(row.mark for row in rows if row.mark))
    if len(marks) > 1:  # where instances differ in a detail behind a colon, without it
        marks = list(dict.fromkeys(mark.split(":")[0].removesuffix(")") + ")" for mark in marks))
    starred = any(row.ratio.starred for row in known)
    keeps_rules = not starred and all(row.in_feasible_set for row in rows)
    return Summary(
        rows[0].family, rows[0].algorithm, rows[0].algorithm + "".join(marks),
        median=Bounds(*(_of_all([getattr(end, name) for end in ends], median)
                          for name in ("lower", "upper"))),
        worst=Bounds(lowers.upper, uppers.upper),
        instances=len(rows),
        infinite=sum(row.ratio.is_infinite for row in known),
        without_ratio=len(rows) - len(known),
        reason=reasons.most_common(1)[0][0][:LONGEST_REASON] if reasons else "",
        starred=starred,
        keeps_rules=keeps_rules,
        is_online=keeps_rules and not any(row.mark.startswith(FORESIGHT) for row in rows),
        commitment=next((row.commitment for row in rows if row.commitment), ""),
    )  # fmt: skip


def _of_all(
    ends: Sequence[float | None], average: Callable[[Sequence[float]], float]
) -> float | None:
    """Average of ends that are all known; None otherwise."""
    known = [end for end in ends if end is not None]
    return float(average(known)) if known and len(known) == len(ends) else None


@dataclass(frozen=True)
class FamilyVerdict:
    """What a comparison says of a family: who comes closest to the optimum, what is proven."""

    family: str
    ranking: Sequence[Summary]  # online algorithms that have a ratio, the smallest median first
    optima: Sequence[Optimum]  # of each instance
    paper: Summary | None = None  # the algorithm of the family's paper
    left_out: Sequence[str] = ()  # algorithms that may do what the offline problem forbids
    # Whether the best has a better objective than the next on every instance: against the same
    # optimum it is better then, however little is known of the optimum.
    is_ahead: bool = False

    @property
    def best(self) -> Summary | None:
        """The online algorithm with the smallest median ratio, if one has any."""
        return self.ranking[0] if self.ranking else None

    def lines(self) -> list[str]:
        """Who is nearest to the optimum and how near; the paper's algorithm and the optima."""
        best, of_paper = self.best, self.paper
        if best is None:
            return [f"{self.family}: no online algorithm has a ratio; {self._proven()}"]
        first = f"{self.family}: {best.label} comes closest, {best.words}{self._next()}"
        if of_paper is None:
            paper = ""
        elif of_paper.algorithm == best.algorithm:
            paper = "it is the paper's algorithm; "
        else:
            ratios = "no ratio" if of_paper.median.lower is None else of_paper.words
            paper = f"the paper's {of_paper.label}: {ratios}; "
        return [first, f"  {paper}{self._proven()}"]

    def _proven(self) -> str:
        """How many optima are proven, and how; the widest gap of the others."""
        proofs = [item.proof for item in self.optima if item.is_proven]
        ways = [f"{proofs.count(key)} {how}" for key, how in PROVEN_BY.items() if key in proofs]
        text = f"{len(proofs)} of {len(self.optima)} optima proven"
        text += f" ({', '.join(ways)})" if ways else ""
        gaps = [item.gap for item in self.optima if not item.is_proven]
        known = [gap for gap in gaps if gap not in (None, math.inf)]
        if len(known) < len(gaps):
            text += f", {len(gaps) - len(known)} without a bound that tells anything"
        if known:
            text += f", widest gap {written_up(100 * max(known))}%"
        return text

    def _next(self) -> str:
        """The runner-up, and whether intervals or objectives tell the two apart."""
        if len(self.ranking) < 2:
            return ""
        best, follower = self.ranking[:2]
        upper, lower = best.median.upper, follower.median.lower
        distance = ratio_text(follower.median)
        if upper is None or lower is None or lower <= upper:
            distance = "worse on every instance" if self.is_ahead else "level"
        return f"; next {follower.label}, {distance}"


def ranked(summaries: Sequence[Summary]) -> list[Summary]:
    """Those that have a ratio, the smallest median first: by upper ends, which are proven."""

    def key(summary: Summary) -> tuple[float, float]:
        lower, upper = summary.median.lower, summary.median.upper
        return (math.inf if upper is None else upper, lower or 0.0)

    return sorted((summary for summary in summaries if summary.median.lower is not None), key=key)


def bootstrap(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Interval of the mean over resampled instances."""
    if not 0 < confidence < 1:
        raise InputError("confidence", confidence, "must be above 0 and below 1")
    draws = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values[draws].mean(axis=1), [tail, 100 - tail])
    return float(low), float(high)


def paired_rows(ratios: Ratios, confidence: float = CONFIDENCE) -> list[Row]:
    """Compare each two algorithms of a family: rows of `Comparison.paired_frame`."""
    from scipy.stats import wilcoxon

    objectives, rows = _objectives(ratios), list[Row]()
    for name, rival in combinations(ratios, 2):
        both = objectives[[name, rival]].dropna()
        if both.empty:
            continue
        values, other = (both[key].to_numpy() for key in (name, rival))
        sign = 1.0 if ratios[name][0].optimum.sense == "max" else -1.0
        apart = np.where(
            np.isclose(values, other, rtol=SAME, atol=0.0), 0.0, sign * (values - other)
        )
        better, worse = int((apart > 0).sum()), int((apart < 0).sum())
        changes, numbers = apart, [None] * 3
        if (both > 0).all(axis=None):
            changes = np.where(apart == 0, 0.0, sign * np.log(values / other))
            numbers = np.exp([changes.mean(), *bootstrap(changes, confidence)]).tolist()
        names = ("advantage", "advantage_lower", "advantage_upper")
        told_apart = better + worse > 0
        rows.append({
            "family": ratios[name][0].family, "algorithm": name, "rival": rival,
            "instances": len(both), "better": better, "worse": worse,
            "ties": len(both) - better - worse, **dict(zip(names, numbers, strict=True)),
            "wilcoxon_p": float(wilcoxon(changes).pvalue) if told_apart else 1.0,
            "level": confidence,
        })  # fmt: skip
    for row, p in zip(rows, holm([row["wilcoxon_p"] for row in rows]), strict=True):
        is_ahead, is_behind = (p <= 1 - confidence and row[a] > row[b]
                               for a, b in (("better", "worse"), ("worse", "better")))  # fmt: skip
        winner = row["algorithm"] if is_ahead else row["rival"] if is_behind else ""
        row |= {"holm_p": p, "winner": winner}
    return rows


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction: p values that hold of all tests at once."""
    corrected, least = [1.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected


def standing_rows(ratios: Ratios, labels: Mapping[str, str]) -> list[Row]:
    """A row an algorithm: whom it beats and who beats it for certain, by `paired_rows`.

    None where no two are told apart.
    """
    pairs = paired_rows(ratios)
    if not any(row["winner"] for row in pairs):
        return []
    standings: dict[str, Row] = {
        name: {"algorithm": label, "better than": [], "worse than": [], "not told apart from": 0}
        for name, label in labels.items()
    }
    for row in pairs:
        names = row["algorithm"], row["rival"]
        for name, rival in (names, names[::-1]):
            if row["winner"]:
                key = "better than" if row["winner"] == name else "worse than"
                standings[name][key].append(rival)
            else:
                standings[name]["not told apart from"] += 1
    rows = sorted(standings.values(), key=lambda row: len(row["worse than"]))
    return [{key: ", ".join(value) if isinstance(value, list) else value
             for key, value in row.items()} for row in rows]  # fmt: skip


def _objectives(ratios: Ratios) -> pd.DataFrame:
    """A row an instance, a column an algorithm; no number where a run failed."""
    import pandas as pd

    columns = {
        name: {row.instance: math.nan if row.objective is None else row.objective for row in rows}
        for name, rows in ratios.items()
    }
    return pd.DataFrame(columns, dtype=float)
