"""A comparison in two lines: who comes closest to the optimum, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING

from hindsched.analysis.interval import percent_rounded
from hindsched.analysis.ratio import Optimum
from hindsched.analysis.statistics import Row as SummaryRow
from hindsched.analysis.statistics import interval_of

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
        if own is None:
            paper = ""
        elif own["algorithm"] == best["algorithm"]:
            paper = "it is the paper's algorithm; "
        else:
            ratios = "no ratio" if own["median_lower"] is None else _ratios(own)
            paper = f"the paper's {own['label']}: {ratios}; "
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
        return text + (
            f", widest gap {percent_rounded(max(known), ROUND_CEILING)}" if known else ""
        )

    def _next(self) -> str:
        """The runner-up, and whether intervals or objectives tell the two apart."""
        if len(self.ranking) < 2:
            return ""
        best, follower = self.ranking[:2]
        name, upper, lower = follower["label"], best["median_upper"], follower["median_lower"]
        if upper is None or lower is None or lower <= upper:
            return f"; next {name}, {'worse on every instance' if self.is_ahead else 'level'}"
        return f"; next {name}, {interval_of(follower, 'median')}"


def ranked(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Rows that have a ratio, the smallest median first: by upper ends, which are proven."""

    def key(row: SummaryRow) -> tuple[float, float]:
        upper = row["median_upper"]
        return (math.inf if upper is None else upper, row["median_lower"])

    return sorted((row for row in rows if row["median_lower"] is not None), key=key)


def _ratios(row: SummaryRow) -> str:
    """Median and worst ratio of a summary row; of one instance its ratio."""
    median = interval_of(row, "median")
    if row["instances"] - row["without_ratio"] == 1:
        return f"ratio {median}"
    return f"median ratio {median}, worst {interval_of(row, 'worst')}"
