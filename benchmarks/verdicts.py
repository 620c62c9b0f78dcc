"""What a paper claims in numbers, and whether an experiment's table bears it out.

A claim is data, an object of ``printed/FAMILY.json``: its words, the paper's number, the
quantity computed from the figure's table (`measures`; seed by seed, and case by case where the
experiment has several), and the rule that the quantity has to meet.

A verdict needs the paper's scale, at least five seeds, and an interval on one side of the rule;
what lacks one of them is *not measured at scale* or *inconclusive*. The points of a plot are cases
like the choices that a paper leaves open: a claim is reproduced *if* it holds in some and fails in
others; with none that fails it is inconclusive until all are decided. It is about the authors'
algorithm and the rivals as the paper sets them; rivals at their strongest, our variants and other
readings are judged beside it. A claim with a factor has two parts, direction and factor. Where
settings are not the printed ones a claim holds *if* they are so. A theorem *holds* or is
*violated* by one value, or is *not applicable* where what it assumes fails. A ratio that nothing
changes compares nothing: *vacuous*.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean, geometric_mean, median_high, stdev
from typing import TYPE_CHECKING, Any

from measures import Case, is_ratio, measure

if TYPE_CHECKING:
    import pandas as pd

PRINTED = Path(__file__).parent / "printed"
CONFIDENCE = 0.95
RESAMPLES = 2000
REPRODUCED, CONDITIONAL, FAILED = "reproduced", "reproduced if", "not reproduced"
INCONCLUSIVE, NOT_AT_SCALE, NOT_RUN = "inconclusive", "not measured at scale", "not measured"
DIRECTION, VACUOUS = "direction reproduced, factor", "vacuous"
LEAST, GREATEST, GREATEST_OVER_LEAST = "least", "greatest", "greatest over least"
THEOREM_HOLDS, VIOLATED, NOT_APPLICABLE = "holds", "violated", "not applicable"
HOLDS, FAILS, OPEN = "holds", "fails", "open"
FACTOR_EXPONENTS = 3 / 4, 5 / 4  # a factor may be off by a quarter of its logarithm
MOST_PARTS = 3  # sets of cases that a condition names; those of more are counted


@dataclass(frozen=True)
class Rule:
    """What a quantity must meet: least and greatest value, ends included unless `strict`."""

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def outcome(self, interval: tuple[float, float]) -> str:
        """`HOLDS` if all of an interval meets it, `FAILS` if nothing of it does, else `OPEN`.

        No number meets none, and a tie is no win.
        """
        low, high = interval
        if math.isnan(low) or math.isnan(high):
            return OPEN
        above, below = self._meets(low, self.low, 1), self._meets(high, self.high, -1)
        if above and below:
            return HOLDS
        is_open = self._meets(high, self.low, 1) and self._meets(low, self.high, -1)
        return OPEN if is_open else FAILS

    def _meets(self, value: float, limit: float | None, sign: int) -> bool:
        if limit is None:
            return True
        if math.isclose(value, limit, rel_tol=1e-9, abs_tol=1e-12):
            return not self.strict
        return sign * value > sign * limit

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{'above' if self.strict else 'at least'} {self.low:g}"
        return f"{'below' if self.strict else 'at most'} {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """A quantitative claim of a paper."""

    key: str  # unique, beginning with the family's name
    figure: str  # number of the experiment whose table decides it
    place: str  # where the paper claims it
    words: str
    paper: str  # its own number or words; a dash where it gives none
    quantity: str  # what is computed, in words
    measure: Mapping[str, Any] | None  # computes it, see `measures`; None where this library cannot
    rule: Rule  # what the quantity must meet
    note: str = ""  # what to know beside the verdict
    # "authors", or "underspecified" where the paper leaves something open: then the verdict is
    # about the readings that are no others' `beside`.
    about: str = "authors"
    # Groups of cases that are judged apart, by name: values of a case that belong to each.
    beside: Mapping[str, Sequence[object]] = field(default_factory=dict)
    along: Mapping[str, str] = field(default_factory=dict)  # axes of whose points one counts
    why: str = ""  # why it does not reproduce, where that is known
    factor: float | None = None  # printed, of a quantity whose rule says on which side of 1 it is
    # Of a theorem: what of its assumptions fails in the runs, the empty word if nothing does; and
    # an instance that violates it, where one is known.
    theorem: str | None = None
    violated_by: str = ""
    vacuous: str = ""  # why no run could fail it

    @property
    def factor_rule(self) -> Rule | None:
        """What the quantity must meet for the printed factor."""
        if self.factor is None:
            return None
        return Rule(*sorted(self.factor**exponent for exponent in FACTOR_EXPONENTS))

    @property
    def is_change(self) -> bool:
        """Whether the quantity says how something changes along an axis."""
        is_spread = GREATEST_OVER_LEAST in self.along.values()
        return is_spread or (self.measure is not None and self.measure["of"] == "change")

    @property
    def family(self) -> str:
        """The family's name."""
        return self.key.split("-", maxsplit=1)[0]

    def group(self, case: Case) -> str:
        """Of which group beside the claim proper a case is; none is the empty word."""
        values = {value for _, value in case}
        return next((name for name, members in self.beside.items() if values & set(members)), "")


@dataclass(frozen=True)
class CaseResult:
    """A quantity under one case: a value a seed, not a number where a seed has none.

    Positive ratios of two runs are averaged on the log scale, all else plainly; where a value is
    infinite the middle is the median, its interval that of resampled seeds.
    """

    case: Case
    values: tuple[float, ...]
    is_ratio: bool = True

    @property
    def known(self) -> tuple[float, ...]:
        """Values of the seeds that have one."""
        return tuple(value for value in self.values if not math.isnan(value))

    @property
    def infinite(self) -> int:
        """Seeds whose value is infinite."""
        return sum(map(math.isinf, self.known))

    @property
    def middle(self) -> float:
        """Mean or median over the seeds; not a number if none has a value."""
        if not self.known:
            return math.nan
        if self.infinite:
            return median_high(self.known)
        return geometric_mean(self.known) if self._is_log else fmean(self.known)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval (Student's, or resampled); None with fewer than two values."""
        count = len(self.known)
        if count < 2:
            return None
        if self.infinite:
            return self._resampled()
        from scipy.stats import t

        numbers = [math.log(value) for value in self.known] if self._is_log else list(self.known)
        half = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * stdev(numbers) / math.sqrt(count)
        ends = fmean(numbers) - half, fmean(numbers) + half
        return (math.exp(ends[0]), math.exp(ends[1])) if self._is_log else ends

    @property
    def _is_log(self) -> bool:
        return self.is_ratio and min(self.known) > 0

    def _resampled(self) -> tuple[float, float]:
        import numpy as np

        values = np.array(self.known)
        drawn = np.random.default_rng(0).choice(values, (RESAMPLES, len(values)))
        medians = np.sort(np.sort(drawn, axis=1)[:, len(values) // 2])
        cut = round((1 - CONFIDENCE) / 2 * RESAMPLES)
        return float(medians[cut]), float(medians[-1 - cut])

    def outcome(self, rule: Rule) -> str:
        """What the interval says of a rule; open without one."""
        return OPEN if self.interval is None else rule.outcome(self.interval)


@dataclass(frozen=True)
class ClaimVerdict:
    """What an experiment says of a claim."""

    word: str  # one of the words above
    condition: str = ""  # the cases in which it holds, if it does in some only
    # On the groups beside, by name.
    beside: Mapping[str, ClaimVerdict] = field(default_factory=dict)
    direction: str = ""  # verdicts on the two parts of a claim with a factor
    factor: str = ""
    differs: bool = False  # whether settings are not the printed ones
    is_open: bool = False  # whether an interval has the rule within

    @property
    def is_earned(self) -> bool:
        """Whether settings, scale, seeds and intervals suffice for it."""
        words = (REPRODUCED, CONDITIONAL, DIRECTION, FAILED, THEOREM_HOLDS, VIOLATED)
        return self.word in words and not self.differs

    def where(self, differences: Mapping[str, str]) -> ClaimVerdict:
        """The verdict where these settings, by name, are not the printed ones."""
        if not differences or self.word not in (REPRODUCED, CONDITIONAL, DIRECTION, FAILED):
            return self
        own = [f"{name} is {value}" for name, value in differences.items()]
        said = own[0] if len(own) == 1 else f"{len(own)} settings differ"
        if self.word == REPRODUCED:
            return replace(self, word=CONDITIONAL, condition=f"if {said}", differs=True)
        condition = ", ".join(filter(None, (self.condition, f"where {said}")))
        return replace(self, condition=condition, differs=True)

    def __str__(self) -> str:
        word = REPRODUCED if self.word == CONDITIONAL else self.word
        return f"{word} {self.condition}".strip()


@cache
def claims(family: str) -> list[Claim]:
    """All claims of a family's paper, in the paper's order."""
    rows: list[dict[str, Any]] = json.loads((PRINTED / f"{family}.json").read_text("utf-8"))
    return [Claim(words=row.pop("claim"), rule=Rule(**row.pop("rule")), **row) for row in rows]


def claims_of(family: str, number: str) -> list[Claim]:
    """Claims that one experiment decides."""
    return [claim for claim in claims(family) if claim.figure == number]


def measured(claim: Claim, frame: pd.DataFrame) -> list[CaseResult]:
    """Compute a claim's quantity from a figure's table, seed by seed."""
    if claim.measure is None:
        return []
    seeds = sorted(frame["seed"].unique())
    results = [
        CaseResult(case, tuple(map(float, numbers.reindex(seeds))), is_ratio(claim.measure))
        for case, numbers in measure(claim.measure, frame).items()
    ]
    return along(claim.along, results) if claim.along else results


def along(axes: Mapping[str, str], results: Sequence[CaseResult]) -> list[CaseResult]:
    """Of cases that differ along an axis only the one whose middle is the least or the greatest.

    Or the greatest over the least of them, seed by seed. Which point it is the means over all
    seeds say, as in a plot of means: the extreme of each run is no point of it. Being chosen, it
    tends to look more extreme than it is: of k points' intervals one errs k times as often.
    """
    for axis, which in axes.items():
        groups: dict[Case, list[CaseResult]] = {}
        for result in results:
            rest = tuple(pair for pair in result.case if pair[0] != axis)
            groups.setdefault(rest, []).append(result)
        results = [replace(_extreme(which, own), case=case) for case, own in groups.items()]
    return list(results)


def _extreme(which: str, results: Sequence[CaseResult]) -> CaseResult:
    known = [result for result in results if result.known] or results
    least, greatest = (end(known, key=lambda result: result.middle) for end in (min, max))
    if which == GREATEST_OVER_LEAST:
        pairs = zip(greatest.values, least.values, strict=True)
        ratios = tuple(above / below if below else math.nan for above, below in pairs)
        return replace(greatest, values=ratios, is_ratio=True)
    return least if which == LEAST else greatest


def judge_claim(claim: Claim, results: Sequence[CaseResult], *, at_scale: bool) -> ClaimVerdict:
    """The verdict on a claim and on what stands beside it."""
    groups: dict[str, list[CaseResult]] = {}
    for result in results:
        groups.setdefault(claim.group(result.case), []).append(result)
    verdicts = {name: _judge_group(claim, own, at_scale) for name, own in groups.items()}
    main = verdicts.pop("", ClaimVerdict(NOT_RUN))
    if main.word == NOT_RUN and claim.measure is not None:
        main = ClaimVerdict(NOT_AT_SCALE)
    beside = {name: verdict for name, verdict in verdicts.items() if verdict.word != NOT_RUN}
    return replace(main, beside=beside)


def without_runs(claim: Claim) -> ClaimVerdict:
    """The verdict on a claim that no run decides, with its reason."""
    if claim.violated_by:
        return ClaimVerdict(VIOLATED, f"by {claim.violated_by}")
    if claim.vacuous:
        return ClaimVerdict(VACUOUS, f"({claim.vacuous})")
    return (
        ClaimVerdict(NOT_APPLICABLE, f"({claim.theorem})")
        if claim.theorem
        else ClaimVerdict(NOT_RUN)
    )


def _judge_group(claim: Claim, results: Sequence[CaseResult], at_scale: bool) -> ClaimVerdict:
    values = [value for result in results for value in result.known]
    if claim.theorem is not None and values:
        return _judge_theorem(claim, values)
    direction = _judge_cases(claim.rule, results, at_scale)
    if direction.word in (NOT_RUN, NOT_AT_SCALE):
        return direction
    if claim.vacuous or (claim.is_change and all(math.isclose(value, 1) for value in values)):
        return ClaimVerdict(VACUOUS)
    if claim.factor_rule is None:
        return direction
    factor = _judge_cases(claim.factor_rule, results, at_scale)
    main = direction
    if direction.word in (REPRODUCED, CONDITIONAL):
        main = factor
        if factor.word in (FAILED, INCONCLUSIVE):
            words = "not" if factor.word == FAILED else INCONCLUSIVE
            condition = f", {direction.condition}" if direction.condition else ""
            main = ClaimVerdict(DIRECTION, words + condition)
    is_open = direction.is_open or factor.is_open
    return replace(main, direction=str(direction), factor=str(factor), is_open=is_open)


def _judge_theorem(claim: Claim, values: Sequence[float]) -> ClaimVerdict:
    """One value is enough against a theorem, but where its assumptions fail none says anything."""
    if claim.violated_by:
        return ClaimVerdict(VIOLATED, f"by {claim.violated_by}")
    if claim.theorem:
        return ClaimVerdict(NOT_APPLICABLE, f"({claim.theorem})")
    keeps = all(claim.rule.outcome((value, value)) == HOLDS for value in values)
    return ClaimVerdict(THEOREM_HOLDS if keeps else VIOLATED)


def _judge_cases(rule: Rule, results: Sequence[CaseResult], at_scale: bool) -> ClaimVerdict:
    """A claim holds *if* it holds in some cases and fails in others; else what is open decides."""
    known = [result for result in results if result.known]
    if not known:
        return ClaimVerdict(NOT_RUN)
    if not at_scale:
        return ClaimVerdict(NOT_AT_SCALE)
    by_outcome: dict[str, list[Case]] = {HOLDS: [], FAILS: [], OPEN: []}
    for result in known:
        by_outcome[result.outcome(rule)].append(result.case)
    every = [result.case for result in results]
    if len(by_outcome[HOLDS]) == len(every):
        return ClaimVerdict(REPRODUCED)
    said = {
        outcome: condition_of(own, every, 1 if outcome == OPEN else MOST_PARTS)
        for outcome, own in by_outcome.items()
        if own
    }
    is_open = OPEN in said
    if HOLDS in said and (FAILS in said or not is_open):
        condition = "; open ".join(said[outcome] for outcome in (HOLDS, OPEN) if outcome in said)
        return ClaimVerdict(CONDITIONAL, condition, is_open=is_open)
    if not is_open:
        return ClaimVerdict(FAILED)
    decided = [f"({word} {said[word]})" for word in (HOLDS, FAILS) if word in said]
    return ClaimVerdict(INCONCLUSIVE, "".join(decided), is_open=True)


def condition_of(some: Sequence[Case], cases: Sequence[Case], most_parts: int = MOST_PARTS) -> str:
    """Say which of the cases these are, as short as it can be said: ``if load = 1, jobs = 50``."""
    parts = _parts(some, cases)
    if len(parts) <= most_parts:
        return f"if {'; '.join(parts)}"
    whole = _whole_values(some, cases) if most_parts > 1 else []
    if not whole:
        return f"in {len(some)} of {len(cases)} cases"
    axes = dict.fromkeys(name for name, _ in whole)
    named = [_said(name, [value for axis, value in whole if axis == name]) for name in axes]
    others = [case for case in cases if not any(pair in whole for pair in case)]
    said = f"in {len(set(others) & set(some))} of {len(others)} other cases"
    return f"if {'; '.join([*named, said])}"


def _whole_values(some: Sequence[Case], cases: Sequence[Case]) -> list[tuple[str, Any]]:
    """Values of axes of which all cases are among some."""
    outside = {pair for case in cases if case not in some for pair in case}
    return list(dict.fromkeys(pair for case in some for pair in case if pair not in outside))


def _parts(some: Sequence[Case], cases: Sequence[Case]) -> list[str]:
    """Sets of values, a set an axis, that make up some of the cases; few of them."""
    chosen, every = (
        {name: list(dict.fromkeys(dict(case)[name] for case in own)) for name, _ in cases[0]}
        for own in (some, cases)
    )
    inside = [case for case in cases if all(value in chosen[name] for name, value in case)]
    if set(inside) == set(some):
        cut = [name for name in every if len(chosen[name]) < len(every[name])]
        return [", ".join(_said(name, chosen[name]) for name in cut)]
    ways = []
    for axis in (name for name in every if len(every[name]) > 1):
        alike: dict[tuple[frozenset[Case], ...], list[object]] = {}
        for value in chosen[axis]:
            both = (frozenset(_without(axis, value, own)) for own in (some, cases))
            alike.setdefault(tuple(both), []).append(value)
        ways.append([
            ", ".join(filter(None, (_said(axis, values), rest)))
            for values in alike.values()
            for rest in _parts(*(_without(axis, values[0], own) for own in (some, cases)))
        ])  # fmt: skip
    return min(ways, key=len)


def _without(axis: str, value: object, cases: Sequence[Case]) -> list[Case]:
    """Cases with this value on an axis, without it."""
    return [
        tuple(pair for pair in case if pair[0] != axis)
        for case in cases
        if dict(case)[axis] == value
    ]


def case_words(case: Case) -> str:
    """Write a case in words."""
    return ", ".join(_said(name, [value]) for name, value in case)


def _said(name: str, values: Sequence[object]) -> str:
    """``jobs = 50 or 100``, ``the numerator is total JCT``, ``the rivals are ...``."""
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    if not any(isinstance(value, str) for value in values):
        return f"{name} = {listed}"
    return f"{name} {'are' if name.split(' of ')[0].endswith('s') else 'is'} {listed}"


def measured_words(claim: Claim, results: Sequence[CaseResult]) -> str:
    """Write a middle with its interval, or the least and the most over the claim's own cases."""
    main = [result for result in results if result.known and not claim.group(result.case)]
    if not main:
        return "-"
    infinite = sum(result.infinite for result in main)
    tail = f", {infinite} infinite" if infinite else ""
    if len(main) > 1:
        middles = [result.middle for result in main]
        return f"{digits(min(middles))} to {digits(max(middles))} in {len(main)} cases{tail}"
    (result,) = main
    if result.interval is None:
        return digits(result.middle) + tail
    return f"{digits(result.middle)} ({' to '.join(map(digits, result.interval))}){tail}"


def digits(number: float) -> str:
    """Write a number with three digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
