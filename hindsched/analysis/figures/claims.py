"""What a paper claims in numbers, and whether an experiment's table bears it out.

A claim is data, a line of ``figures/FAMILY/claims.json``: its words, the paper's number, the
quantity computed from the figure's table (`measures`; seed by seed, and case by case where the
experiment has several), and the rule that the quantity has to meet. The verdict follows: every case
meets it, some do, or none does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
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
    "reproduced",
    "reproduced if",
    "not reproduced",
    "not measured",
)
LONGEST_LIST = 4
"""Cases that a condition lists one by one; more are counted."""


@dataclass(frozen=True)
class Rule:
    """What a quantity must meet, ends included unless `strict`.

    Parameters
    ----------
    low, high : float, optional
        Least and greatest value.
    strict : bool
        Whether the ends themselves fail.
    """

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value meets it; no number meets none."""
        if math.isnan(value):
            return False
        if self.strict and value in (self.low, self.high):
            return False
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        """Write the rule in words."""
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
    """A quantity under one case, over the seeds.

    Parameters
    ----------
    case : Case
        Which.
    values : tuple of float
        A value a seed; not a number where a seed has none.
    """

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
        if count < 2 or not all(math.isfinite(value) for value in self.known):
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
        """Write the verdict, with its condition."""
        return f"{self.word} {self.condition}" if self.condition else self.word


@cache
def claims(family: str) -> list[Claim]:
    """All claims of a family's paper, in the paper's order; none without a paper."""
    source = files("hindsched.analysis.figures") / family / "claims.json"
    if not source.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(source.read_text(encoding="utf-8"))
    return [
        Claim(
            row["key"], row["figure"], row["place"], row["claim"], row["paper"], row["quantity"],
            row["measure"], Rule(**row["rule"]), row.get("note", ""),
        )
        for row in rows
    ]  # fmt: skip


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
            values = by_case.setdefault(case, [math.nan] * len(seeds))
            values[index] = float(value)
    return [CaseResult(case, tuple(values)) for case, values in by_case.items()]


def judge(claim: Claim, results: Sequence[CaseResult]) -> Verdict:
    """The verdict on a claim by the means over the seeds; cases without any value are left out."""
    results = [result for result in results if result.known]
    if not results:
        return Verdict(NOT_RUN)
    holding = [result.case for result in results if claim.rule.holds(result.mean)]
    sure = all(result.is_sure(claim.rule) for result in results)
    if len(holding) == len(results):
        return Verdict(REPRODUCED, is_sure=sure)
    if not holding:
        return Verdict(FAILED, is_sure=sure)
    condition = condition_of(holding, [result.case for result in results])
    return Verdict(CONDITIONAL, condition, sure)


def verdicts_on(family: str, number: str, frame: pd.DataFrame) -> list[JsonObject]:
    """Judge every claim that a figure decides.

    Parameters
    ----------
    family, number : str
        The figure.
    frame : DataFrame
        Its table.

    Returns
    -------
    list of dict
        ``key``, ``place``, ``claim``, ``the paper``, ``quantity``, ``measured``, ``rule``,
        ``verdict`` and ``cases`` with the values seed by seed.
    """
    rows: list[JsonObject] = []
    for claim in claims_of(family, number):
        results = measured(claim, frame)
        rows.append(
            {
                "key": claim.key,
                "place": claim.place,
                "claim": claim.words,
                "the paper": claim.paper,
                "quantity": claim.quantity,
                "measured": measured_words(results),
                "rule": str(claim.rule),
                "verdict": str(judge(claim, results)),
                "cases": to_data(results),
            }
        )
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
    names = [name for name, _ in cases[0]]
    kept = [_distinct(case[index][1] for case in holding) for index in range(len(names))]
    every = [_distinct(case[index][1] for case in cases) for index in range(len(names))]
    possible = set(product(*kept)) & {_values(case) for case in cases}
    if possible == {_values(case) for case in holding}:
        parts = [
            f"{name} is {_listed(own)}"
            for name, own, whole in zip(names, kept, every, strict=True)
            if len(own) < len(whole)
        ]
        return ", ".join(parts)
    if len(holding) <= LONGEST_LIST:
        return "; ".join(case_words(case) for case in holding)
    return f"chosen well: in {len(holding)} of {len(cases)} cases"


def case_words(case: Case) -> str:
    """Write a case in words."""
    return ", ".join(f"{name} is {_word(value)}" for name, value in case)


def _values(case: Case) -> tuple[Any, ...]:
    return tuple(value for _, value in case)


def _distinct(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(values: Sequence[object]) -> str:
    words = [_word(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def to_data(results: Sequence[CaseResult]) -> list[JsonObject]:
    """Write results as JSON data; a value that is no number is null."""
    return [
        {"case": dict(result.case), "values": [_json(value) for value in result.values]}
        for result in results
    ]


def of_data(data: Sequence[Mapping[str, Any]]) -> list[CaseResult]:
    """Read what `to_data` wrote."""
    return [
        CaseResult(
            tuple(item["case"].items()),
            tuple(math.nan if value is None else float(value) for value in item["values"]),
        )
        for item in data
    ]


def _json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


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
    low, high = result.interval
    return f"{digits(result.mean)} ({digits(low)} to {digits(high)})"


def digits(number: float) -> str:
    """Write a number with three digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
