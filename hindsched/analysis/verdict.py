"""A comparison in two lines: who comes closest to the optimum, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from hindsched.analysis.interval import Interval, percent_rounded, plain
from hindsched.analysis.ratio import Optimum
from hindsched.analysis.statistics import Row as SummaryRow
from hindsched.analysis.statistics import interval_of
from hindsched.solvers.door.options import DEFAULT_GAP

PROVEN_BY = {
    "certificate": "by prices",
    "checked fast": "by prices in floating point",
    "solver": "by a solver",
}


@dataclass(frozen=True)
class Verdict:
    """What a comparison says of a family.

    Parameters
    ----------
    family : str
        The family's name.
    ranking : sequence of dict
        Rows of `Comparison.summary_rows` of online algorithms that have a ratio and are no plain
        quotients, as `ranked`.
    optima : sequence of Optimum
        What is known of each instance's optimum.
    own : dict or None
        The summary row of the algorithm of the family's paper.
    left_out : sequence of str
        Algorithms that may do what the offline problem forbids.
    is_ahead : bool
        Whether the best has a better objective than the next on every instance: against the same
        optimum it is better then, however little is known of the optimum.
    """

    family: str
    ranking: Sequence[SummaryRow]
    optima: Sequence[Optimum]
    own: SummaryRow | None = None
    left_out: Sequence[str] = ()
    is_ahead: bool = False

    @property
    def best(self) -> SummaryRow | None:
        """Summary row of the online algorithm with the smallest median ratio, if one has any."""
        return self.ranking[0] if self.ranking else None

    def lines(self) -> list[str]:
        """Who is nearest to the optimum and how near; the paper's algorithm and the optima."""
        best, own = self.best, self.own
        if best is None:
            return [f"{self.family}: no online algorithm has a ratio; {self._proven()}"]
        first = f"{self.family}: {best['label']} comes closest, {_ratios(best)}{self._next()}"
        if own is None or own["algorithm"] == best["algorithm"]:
            paper = "" if own is None else "it is the paper's algorithm; "
        elif own["median_lower"] is None:
            paper = f"the paper's {own['label']}: no ratio; "
        else:
            paper = f"the paper's {own['label']} {_ratios(own).removeprefix('median ')}; "
        return [first, f"  {paper}{self._proven()}"]

    def _proven(self) -> str:
        """How many optima are proven, and how; the widest gap of the others."""
        proofs = [item.proof for item in self.optima if item.is_proven]
        ways = [(proofs.count(key), how) for key, how in PROVEN_BY.items() if key in proofs]
        how = ways[0][1] if len(ways) == 1 else ", ".join(f"{n} {how}" for n, how in ways)
        text = f"{len(proofs)} of {len(self.optima)} optima proven" + (f" ({how})" if how else "")
        gaps = [item.gap for item in self.optima if not item.is_proven]
        known = [gap for gap in gaps if gap not in (None, math.inf)]
        if len(known) < len(gaps):
            text += f", {len(gaps) - len(known)} without a bound that tells anything"
        if known:
            text += f", widest gap {percent_rounded(max(known), ROUND_CEILING)}"
        return text

    def _next(self) -> str:
        """The runner-up, and whether intervals or objectives tell the two apart."""
        if len(self.ranking) < 2:
            return ""
        best, follower = self.ranking[:2]
        name, upper, lower = follower["label"], best["median_upper"], follower["median_lower"]
        if upper is None or lower is None or lower <= upper:
            return f"; next {name}, {'worse on every instance' if self.is_ahead else 'level'}"
        return f"; next {name}, {_short(interval_of(follower, 'median'))}"


def ranked(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Rows that have a ratio, the smallest median first: by upper ends, which are proven."""

    def key(row: SummaryRow) -> tuple[float, float]:
        upper = row["median_upper"]
        return (math.inf if upper is None else upper, row["median_lower"])

    return sorted((row for row in rows if row["median_lower"] is not None), key=key)


def _ratios(row: SummaryRow) -> str:
    """Median and worst ratio of a summary row; of one instance its ratio."""
    median = _short(interval_of(row, "median"))
    if row["instances"] - row["without_ratio"] == 1:
        return f"ratio {median}"
    return f"median ratio {median}, worst {_short(interval_of(row, 'worst'))}"


def _short(interval: Interval) -> str:
    """Three decimals: ends rounded outward, one number to the nearest, 1.000 only if optimal."""
    lower, upper = interval.lower, interval.upper
    if interval.is_point and lower is not None and lower != math.inf:
        nearest = f"{lower:.3f}"
        return "1.001" if nearest == "1.000" and lower > 1 + DEFAULT_GAP else nearest
    ends = [
        "?" if end is None else "inf" if end == math.inf else _to_thousandths(end, rounding)
        for end, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    ]
    return "inf" if interval.is_point else " to ".join(ends)


def _to_thousandths(value: float, rounding: str) -> str:
    return str(plain(value).quantize(Decimal("0.001"), rounding))
