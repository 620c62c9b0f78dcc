"""The verdict of a comparison in words: who comes closest to the optimum, how close, proven how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR

from hindsched.analysis.interval import Interval, percent_rounded, rounded_down
from hindsched.analysis.ratio import Optimum, Sense
from hindsched.analysis.statistics import Row as SummaryRow
from hindsched.analysis.statistics import interval_of
from hindsched.solvers.door.options import DEFAULT_GAP

PLURAL = {
    "commits at arrival": "commit at arrival",
    "decides as it runs": "decide as they run",
    "may give a job up": "may give a job up",
}


@dataclass(frozen=True)
class Verdict:
    """What a comparison says of a family.

    Parameters
    ----------
    family, sense : str
        The family's name and the sense of its objective.
    ranking : sequence of dict
        Rows of `Comparison.summary_rows` of online algorithms that have a ratio and are no plain
        quotients, as `ranked`.
    optima : sequence of Optimum
        What is known of each instance's optimum.
    left_out : sequence of str
        Algorithms that may do what the offline problem forbids.
    foresight : sequence of dict
        Rows of algorithms that know more of the future than an online algorithm does.
    is_ahead : bool
        Whether the best has a better objective than the next on every instance: against the same
        optimum it is better then, however little is known of the optimum.
    """

    family: str
    sense: Sense
    ranking: Sequence[SummaryRow]
    optima: Sequence[Optimum]
    left_out: Sequence[str] = ()
    foresight: Sequence[SummaryRow] = ()
    is_ahead: bool = False

    @property
    def best(self) -> SummaryRow | None:
        """Summary row of the online algorithm with the smallest median ratio, if one has any."""
        return self.ranking[0] if self.ranking else None

    def sentence(self) -> str:
        """Which online algorithm is nearest to the optimum, how far at the median and at worst."""
        best, informed = self.best, self._informed()
        if best is None:
            return (
                f"{self.family}: no {'online ' if informed else ''}algorithm has a ratio.{informed}"
            )
        among = "of the online algorithms, " if informed else ""
        count = best["instances"] - best["without_ratio"]
        where = "on the one instance" if count == 1 else f"on the median of {count} instances"
        text = (
            f"{self.family}: {among}{best['label']} comes closest to the optimum. "
            f"{where.capitalize()} it {self._distance(best['median_lower'], best['median_upper'])}"
        )
        if count > 1:
            text += f", at worst it {self._distance(best['worst_lower'], best['worst_upper'])}"
        return f"{text}.{self._next()}{self._by_commitment()}{informed}"

    def proof(self) -> str:
        """How the optima are proven."""
        count = len(self.optima)
        proofs = [item.proof for item in self.optima if item.is_proven]
        by = {
            "certificate": "by prices that anyone can recompute",
            "checked fast": "by prices checked in floating point",
            "solver": "by a solver's claim",
        }
        ways = [f"{proofs.count(key)} {words}" for key, words in by.items() if key in proofs]
        if len(ways) == 1:
            ways = [by[proofs[0]]]
        gaps = [item.gap for item in self.optima if not item.is_proven]
        if count == 1 and gaps:
            lies = "it has no bound" if gaps[0] is None else f"it lies within {_gap(gaps[0])}"
            lies = "its bound is 0 and tells nothing" if gaps[0] == math.inf else lies
            return f"The optimum is not proven; {lies}."
        how = f"proven, {' and '.join(ways)}"
        if not gaps:
            return f"The optimum is {how}." if count == 1 else f"All {count} optima are {how}."
        text = f"{len(proofs)} of {count} optima are {how}" if proofs else "No optimum is proven"
        others = "the others" if proofs else "them" if {None, math.inf} & {*gaps} else "they"
        if None in gaps:
            return f"{text}; {gaps.count(None)} of {others} have no bound."
        if math.inf in gaps:
            number = gaps.count(math.inf)
            return f"{text}; of {number} of {others} the bound is 0 and tells nothing."
        widest = max(gap for gap in gaps if gap is not None)
        return f"{text}; {others} lie in intervals, the widest of {_gap(widest)}."

    def _distance(self, lower: float | None, upper: float | None) -> str:
        """How far a ratio is from 1, in the objective's own terms."""
        if lower is None:
            return "has no ratio"
        if upper is None:
            least = rounded_down(lower)
            return f"is no nearer than a ratio of {least} (no bound says how far it may be)"
        if lower == math.inf:
            return "earns nothing"
        shown = f"ratio {Interval(lower, upper)}"
        if upper == math.inf:
            return f"may earn nothing ({shown})"
        if upper <= 1 + DEFAULT_GAP:
            return "is optimal"
        if self.sense == "max":
            share = percent_rounded(1 / upper, ROUND_FLOOR)
            return f"earns at least {share} of what hindsight could ({shown})"
        share = percent_rounded(upper - 1, ROUND_CEILING)
        return f"costs at most {share} more than hindsight would ({shown})"

    def _informed(self) -> str:
        """How far who knows more than an online algorithm is from the optimum; empty if nobody."""
        if not self.foresight:
            return ""
        row = self.foresight[0]
        where = "at the median " if row["instances"] - row["without_ratio"] > 1 else ""
        how = where + self._distance(row["median_lower"], row["median_upper"])
        return f" Knowing more than an online algorithm does, {row['label']} {how}."

    def _by_commitment(self) -> str:
        """The best of each other way to be bound by decisions, for those are other games."""
        if self.best is None or not self.best["commitment"]:
            return ""
        text, seen = f" It {self.best['commitment']}", {self.best["commitment"], ""}
        for row in self.ranking:
            if row["commitment"] not in seen:
                seen.add(row["commitment"])
                shown = interval_of(row, "median")
                text += f"; of those that {PLURAL[row['commitment']]} {row['label']} comes closest"
                text += f" (median ratio {shown})"
        return f"{text}."

    def _next(self) -> str:
        """The runner-up, and whether intervals or objectives tell the two apart."""
        if len(self.ranking) < 2 or self.best is None:
            return ""
        follower, upper = self.ranking[1], self.best["median_upper"]
        name, lower = follower["label"], follower["median_lower"]
        if upper is None or lower is None or lower <= upper:
            if self.is_ahead:
                worse = "earns less" if self.sense == "max" else "costs more"
                return f" Next is {name}, which {worse} on every instance."
            return f" {name} cannot be told apart from it at the median."
        return f" Next is {name}, at a median ratio of {rounded_down(lower)} or more."


def ranked(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Rows that have a ratio, the smallest median first: by upper ends, which are proven."""

    def key(row: SummaryRow) -> tuple[float, float]:
        upper = row["median_upper"]
        return (math.inf if upper is None else upper, row["median_lower"])

    return sorted((row for row in rows if row["median_lower"] is not None), key=key)


def _gap(gap: float) -> str:
    return percent_rounded(gap, ROUND_CEILING, decimals=2)
