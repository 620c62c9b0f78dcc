"""What a paper claims in numbers, and whether an experiment's table bears it out.

A claim is data, a line of ``figures/FAMILY/claims.json``: its words, the paper's number, the
quantity computed from the figure's table (`measures`; seed by seed, and case by case where the
experiment has several), and the rule that the quantity has to meet. The verdict follows: every case
meets it, some do, or none does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

from hindsched.analysis.figures.measures import Case, measure
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
REPRODUCED, CONDITIONAL, FAILED, NOT_RUN = (
    "reproduced", "reproduced if", "not reproduced", "not measured",
)  # fmt: skip
LONGEST_LIST = 4
"""Cases that a condition lists one by one; more are counted."""


@dataclass(frozen=True)
class Rule:
    """What a quantity must meet: least and greatest value, ends included unless `strict`."""

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value meets it; no number meets none."""
        if math.isnan(value) or (self.strict and value in (self.low, self.high)):
            return False
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{'above' if self.strict else 'at least'} {self.low:g}"
        return f"{'below' if self.strict else 'at most'} {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """A quantitative claim of a paper.

    Parameters
    ----------
    key : str
        Unique name, beginning with the family's word.
    figure : str
        Number of the experiment whose table decides it.
    place : str
        Where the paper claims it: figure, table, theorem or section.
    words : str
        The claim.
    paper : str
        The paper's own number or words; where it gives none, a dash.
    quantity : str
        What is computed, in words.
    measure : mapping, optional
        Computes it, see `measures`; None where this library cannot.
    rule : Rule
        What the quantity must meet.
    note : str
        What to know beside the verdict.
    """

    key: str
    figure: str
    place: str
    words: str
    paper: str
    quantity: str
    measure: Mapping[str, Any] | None
    rule: Rule
    note: str = ""

    @property
    def family(self) -> str:
        """The family's word."""
        return self.key.split("-", maxsplit=1)[0]


@dataclass(frozen=True)
class CaseResult:
    """A quantity under one case: a value a seed, not a number where a seed has none."""

    case: Case
    values: tuple[float, ...]

    @property
    def known(self) -> tuple[float, ...]:
        """Values of the seeds that have one."""
        return tuple(value for value in self.values if not math.isnan(value))

    @property
    def mean(self) -> float:
        """Mean over the seeds; not a number if none has a value."""
        return math.fsum(self.known) / len(self.known) if self.known else math.nan

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the mean; None with fewer than two finite values."""
        count = len(self.known)
        if count < 2 or not all(map(math.isfinite, self.known)):
            return None
        from scipy.stats import t

        spread = math.fsum((value - self.mean) ** 2 for value in self.known) / (count - 1)
        half = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * math.sqrt(spread / count)
        return self.mean - half, self.mean + half

    def is_sure(self, rule: Rule) -> bool:
        """Whether all of the interval agrees with the mean about a rule."""
        if self.interval is None:
            return False
        low, high = self.interval
        if any(limit is not None and low < limit < high for limit in (rule.low, rule.high)):
            return False
        return len({rule.holds(value) for value in (low, high, self.mean)}) == 1


@dataclass(frozen=True)
class Verdict:
    """What an experiment says of a claim.

    Parameters
    ----------
    word : str
        `REPRODUCED`, `CONDITIONAL`, `FAILED` or `NOT_RUN`.
    condition : str
        The cases in which it holds, if it does in some only.
    is_sure : bool
        Whether every case's interval agrees with its mean.
    """

    word: str
    condition: str = ""
    is_sure: bool = True

    def __str__(self) -> str:
        return f"{self.word} {self.condition}".strip()


@cache
def claims(family: str) -> list[Claim]:
    """All claims of a family's paper, in the paper's order; none without a paper."""
    source = files("hindsched.analysis.figures") / family / "claims.json"
    if not source.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(source.read_text(encoding="utf-8"))
    return [Claim(words=row.pop("claim"), rule=Rule(**row.pop("rule")), **row) for row in rows]


def claims_of(family: str, number: str) -> list[Claim]:
    """Claims that one experiment decides."""
    return [claim for claim in claims(family) if claim.figure == number]


def measured(claim: Claim, frame: pd.DataFrame) -> list[CaseResult]:
    """Compute a claim's quantity from a figure's table, seed by seed."""
    if claim.measure is None:
        return []
    by_case: dict[Case, list[float]] = {}
    seeds = [own for _, own in frame.groupby("seed", sort=True)]
    for index, own in enumerate(seeds):
        for case, value in measure(claim.measure, own).items():
            by_case.setdefault(case, [math.nan] * len(seeds))[index] = float(value)
    return [CaseResult(case, tuple(values)) for case, values in by_case.items()]


def judge(claim: Claim, results: Sequence[CaseResult]) -> Verdict:
    """The verdict on a claim by the means over the seeds; cases without any value are left out."""
    results = [result for result in results if result.known]
    if not results:
        return Verdict(NOT_RUN)
    holding = [result.case for result in results if claim.rule.holds(result.mean)]
    sure = all(result.is_sure(claim.rule) for result in results)
    if 0 < len(holding) < len(results):
        condition = condition_of(holding, [result.case for result in results])
        return Verdict(CONDITIONAL, condition, sure)
    return Verdict(REPRODUCED if holding else FAILED, is_sure=sure)


def verdicts_on(family: str, number: str, frame: pd.DataFrame) -> list[JsonObject]:
    """Judge every claim that a figure decides."""
    rows: list[JsonObject] = []
    for claim in claims_of(family, number):
        results = measured(claim, frame)
        rows.append(
            {
                "key": claim.key, "place": claim.place, "claim": claim.words,
                "the paper": claim.paper, "quantity": claim.quantity,
                "measured": measured_words(results), "rule": str(claim.rule),
                "verdict": str(judge(claim, results)), "cases": to_data(results),
            }
        )  # fmt: skip
    return rows


def condition_of(holding: Sequence[Case], cases: Sequence[Case]) -> str:
    """Say in which cases a claim holds, as short as it can be said.

    Examples
    --------
    >>> cases = [(("load", load), ("jobs", jobs)) for load in (1, 2) for jobs in (50, 100)]
    >>> condition_of(cases[:2], cases)
    'load is 1'
    >>> condition_of(cases[:3], cases)
    'load is 1, jobs is 50; load is 1, jobs is 100; load is 2, jobs is 50'
    """

    def values(found: Sequence[Case]) -> Iterable[tuple[Any, ...]]:
        return [tuple(value for _, value in case) for case in found]

    kept, every = ([list(dict.fromkeys(c)) for c in zip(*values(f), strict=True)]
                   for f in (holding, cases))  # fmt: skip
    if set(product(*kept)) & set(values(cases)) == set(values(holding)):
        return ", ".join(
            f"{name} is {_listed(own)}"
            for (name, _), own, whole in zip(cases[0], kept, every, strict=True)
            if len(own) < len(whole)
        )
    if len(holding) <= LONGEST_LIST:
        return "; ".join(map(case_words, holding))
    return f"chosen well: in {len(holding)} of {len(cases)} cases"


def case_words(case: Case) -> str:
    """Write a case in words."""
    return ", ".join(f"{name} is {_listed([value])}" for name, value in case)


def _listed(values: Sequence[object]) -> str:
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def to_data(results: Sequence[CaseResult]) -> list[JsonObject]:
    """Write results as JSON data; a value that is no number is null."""

    def plain(value: float) -> float | str | None:
        if math.isnan(value):
            return None
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)

    return [{"case": dict(r.case), "values": [plain(value) for value in r.values]} for r in results]


def of_data(data: Sequence[Mapping[str, Any]]) -> list[CaseResult]:
    """Read what `to_data` wrote."""
    return [
        CaseResult(
            tuple(item["case"].items()),
            tuple(math.nan if value is None else float(value) for value in item["values"]),
        )
        for item in data
    ]


def measured_words(results: Sequence[CaseResult]) -> str:
    """Write a mean with its interval, or the least and the most over several cases."""
    results = [result for result in results if result.known]
    if not results:
        return "-"
    if len(results) > 1:
        means = [result.mean for result in results]
        return f"{digits(min(means))} to {digits(max(means))} in {len(results)} cases"
    (result,) = results
    if result.interval is None:
        return digits(result.mean)
    return f"{digits(result.mean)} ({' to '.join(map(digits, result.interval))})"


def digits(number: float) -> str:
    """Write a number with three digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
