"""Judge the papers' claims, and write `docs/results/claims.md` from the rows that are stored.

``python benchmarks/claims.py`` runs every experiment of `claims_plan` whose rows are not stored,
the shortest first; ``--page`` writes the page only.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
from claims_plan import FAMILIES, INSTANCES, PLAN, TRACE, Plan
from claims_runs import ROOT, STORED, rows_of, run, runs
from jinja2 import StrictUndefined, Template
from printed import words_of
from verdicts import (
    CONDITIONAL,
    DIRECTION,
    FAILED,
    INCONCLUSIVE,
    NOT_APPLICABLE,
    NOT_AT_SCALE,
    REPRODUCED,
    THEOREM_HOLDS,
    VACUOUS,
    VIOLATED,
    CaseResult,
    Claim,
    ClaimVerdict,
    case_words,
    claims,
    digits,
    judge_claim,
    measured,
    measured_words,
    without_runs,
)

VERDICTS, CASES = STORED / "verdicts.csv", STORED / "cases.csv"
PAGE = ROOT / "docs/results/claims.md"
TEMPLATE = Path(__file__).with_suffix(".md.jinja")
LEFT_OUT = "tenth"
"""A reading that the tables have and the page has not."""
STANDS_FOR = {"batchsched-terminating": "batchsched", "batchsched alpha-1": "batchsched"}
"""Readings of A_online, which claims call by the other's name."""


def short(word: str) -> str:
    """A verdict's word where its condition is left out."""
    return {CONDITIONAL: "reproduced if ...", DIRECTION: "direction only"}.get(word, word)


@dataclass(frozen=True)
class Judged:
    """A claim with what is known of it under one plan."""

    plan: Plan
    claim: Claim
    results: list[CaseResult]
    verdict: ClaimVerdict
    run: dict[str, Any] | None
    differences: dict[str, tuple[str, str]]  # settings: what is used, what is printed

    @property
    def reading(self) -> str:
        """How the paper is read and whose jobs run, as far as there is more than one way."""
        jobs = "Philly's jobs" if self.plan.traced and not self.plan.reading else ""
        return jobs or self.plan.reading_words or "drawn jobs"

    @property
    def word(self) -> str:
        """The verdict without its condition."""
        text = short(self.verdict.word)
        return f"**{text}**" if self.verdict.is_earned else text

    @property
    def words(self) -> str:
        if self.verdict.word in (VIOLATED, NOT_APPLICABLE):  # told below the table
            return self.word
        text = str(self.verdict)
        return f"**{text}**" if self.verdict.is_earned else text

    @property
    def measured(self) -> str:
        return measured_words(self.claim, self.results)

    @property
    def looks(self) -> int:
        """How often its intervals have been looked at."""
        seeds = self.run["seeds"] if self.run else 0
        return 1 + sum(number < seeds for number in self.plan.looks)

    @property
    def next_look(self) -> Plan | None:
        """With more seeds, and its minutes, where an interval is open; None where none comes."""
        if self.run is None or not self.verdict.is_open:
            return None
        seeds, minutes = self.run["seeds"], self.run["minutes"]
        more = next((number for number in self.plan.looks if number > seeds), None)
        if more is None:
            return None
        return replace(self.plan, seeds=more, minutes=minutes * more / seeds)

    @property
    def own_middles(self) -> list[float]:
        """Middles of its own cases."""
        return [r.middle for r in self.results if r.known and not self.claim.group(r.case)]

    @property
    def middles(self) -> str:
        """The least and the greatest middle of its own cases."""
        own = self.own_middles
        return " to ".join(dict.fromkeys(digits(end) for end in (min(own), max(own))))

    @property
    def beside(self) -> list[str]:
        """What stands beside a claim and says otherwise."""
        return [
            f"{name}: {short(verdict.word)}"
            for name, verdict in self.verdict.beside.items()
            if verdict.word != self.verdict.word
        ]


@dataclass(frozen=True)
class Row:
    """A claim under all plans that decide it; the first is the headline."""

    judged: list[Judged]

    @property
    def headline(self) -> Judged:
        return self.judged[0]

    @property
    def claim(self) -> Claim:
        return self.headline.claim

    @property
    def shown(self) -> Judged:
        """The headline, or the first reading that is measured."""
        known = [row for row in self.judged if row.run is not None]
        return (known or self.judged)[0]

    @property
    def beside(self) -> list[str]:
        """What other readings and groups of cases say, where it is something else."""
        others = [
            f"{row.reading}: {row.word.strip('*')}"
            for row in self.judged[1:]
            if row.results
            and row.plan.reading != LEFT_OUT
            and row.verdict.word != NOT_AT_SCALE
            and row.verdict.word != self.headline.verdict.word
        ]
        return [*others, *self.headline.beside]


def judged() -> list[Row]:
    """Every claim in the papers' order; the paper's own reading first, on Philly where it is."""
    found = []
    for family in FAMILIES:
        plans = [plan for plan in PLAN if plan.family == family]
        for claim in claims(family):
            own = [plan for plan in plans if claim.figure in plan.figures]
            if claim.measure is None:
                own = [Plan(family, claim.figure, 0)]
            ordered = sorted(own, key=lambda plan: (not plan.traced, bool(plan.reading)))
            found.append(Row([judge(claim, plan) for plan in ordered]))
    return found


def judge(claim: Claim, plan: Plan) -> Judged:
    """The verdict on a claim under a plan."""
    record = runs().get(plan.name)
    plan = replace(plan, seeds=record["seeds"]) if record else plan
    if claim.measure is None:
        return Judged(plan, claim, [], without_runs(claim), None, {})
    differing = {} if claim.theorem is not None else plan.differences(claim.figure)
    if record is None:
        return Judged(plan, claim, [], ClaimVerdict(NOT_AT_SCALE), None, differing)
    results = measured(claim, frame_of(plan.name))
    verdict = judge_claim(claim, results, at_scale=bool(record["at_scale"]))
    used = {name: value for name, (value, _) in differing.items()}
    return Judged(plan, claim, results, verdict.where(used), record, differing)


@cache
def frame_of(name: str) -> pd.DataFrame:
    """Stored rows, with algorithms called as in claims."""
    frame = rows_of(name)
    return frame.replace({"algorithm": STANDS_FOR}) if "algorithm" in frame else frame


def tables(rows: list[Row]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All verdicts, a line a claim and plan; and all quantities, a line a case."""
    verdicts, cases = [], []
    for row in (judgement for row_of_claim in rows for judgement in row_of_claim.judged):
        claim, record, plan = row.claim, row.run or {}, row.plan
        same = {
            "key": claim.key, "reading": plan.reading_words,
            "jobs from": "Philly" if plan.traced else "drawn",
        }  # fmt: skip
        verdicts.append(
            {
                **same, "figure": claim.figure,
                "place": claim.place, "claim": claim.words, "the paper": claim.paper,
                "quantity": claim.quantity, "rule": str(claim.rule) if claim.measure else "",
                "about": claim.about,
                "differs in": words_of(row.differences), "direction": row.verdict.direction,
                "factor": row.verdict.factor,
                "measured": row.measured, "verdict": str(row.verdict),
                "beside": "; ".join(f"{k}: {v}" for k, v in row.verdict.beside.items()),
                "note": claim.note, "why": claim.why, "seeds": record.get("seeds"),
                "commit": record.get("commit"), "minutes": record.get("minutes", plan.minutes),
                "next minutes": row.next_look and round(row.next_look.minutes, 1),
                "command": plan.command if claim.measure else "",
            }
        )  # fmt: skip
        for result in row.results:
            low, high = result.interval or (None, None)
            cases.append(
                {
                    **same, "case": case_words(result.case),
                    "beside": claim.group(result.case), "middle": result.middle, "low": low,
                    "high": high, "infinite": result.infinite, "seeds": len(result.known),
                    "outcome": result.outcome(claim.rule) if result.known else "not measured",
                }
            )  # fmt: skip
    return pd.DataFrame(verdicts), pd.DataFrame(cases)


UNKNOWN = "(not measured)"
SUMMARY = (
    REPRODUCED, CONDITIONAL, DIRECTION, FAILED, INCONCLUSIVE, VACUOUS, THEOREM_HOLDS, VIOLATED,
    NOT_APPLICABLE, NOT_AT_SCALE,
)  # fmt: skip


def page(rows: list[Row]) -> str:
    """The whole page."""
    by_family = {family: [r for r in rows if r.claim.family == family] for family in FAMILIES}
    summary = []
    for family, own in by_family.items():
        count = Counter(row.headline.verdict.word for row in own)
        summary.append((family, len(own), [count[word] for word in SUMMARY]))
    looks = [
        one.looks
        for one in (one for row in rows for one in row.judged if row.claim.theorem is None)
        for result in one.results
        if result.known
    ]
    text = Template(TEMPLATE.read_text(), undefined=StrictUndefined, trim_blocks=True)
    by_key = {row.claim.key: row for row in rows}

    def read(key: str, reading: str) -> Judged:
        """A claim under a reading, or as it is shown."""
        row = by_key[key]
        return next((one for one in row.judged if one.reading == reading), row.shown)

    def middle(key: str, case: str = "", reading: str = "") -> str:
        """A measured number of a claim's case, of the headline or of a reading."""
        results = read(key, reading).results
        known = [one for one in results if case_words(one.case) == case and one.known]
        return digits(known[0].middle) if known else UNKNOWN

    def middles(keys: list[str], reading: str = "") -> str:
        """The least and the greatest middle of several claims' own cases, to two digits."""
        own = [middle for key in keys for middle in read(key, reading).own_middles]
        return " to ".join(f"{end:.2g}" for end in (min(own), max(own))) if own else UNKNOWN

    return text.render(
        families=FAMILIES, summary=summary, words=[*map(short, SUMMARY)], looks=looks,
        middle=middle, middles=middles, by_key=by_key, instances=INSTANCES,
        tenth=differing(rows, LEFT_OUT),
        lines={family: figure_lines(own) for family, own in by_family.items()},
        failing={family: failures(own) for family, own in by_family.items()},
    )  # fmt: skip


def differing(rows: list[Row], reading: str) -> list[str]:
    """Figures of which a reading says something else than the printed one, on the same jobs."""
    figures = []
    alike = {CONDITIONAL: REPRODUCED}  # a setting that is not as printed is no other outcome
    for row in rows:
        words = {one.plan.reading: one.verdict.word for one in row.judged if not one.plan.traced}
        own, printed = (alike.get(word, word) for word in map(words.get, (reading, "")))
        if own not in (None, NOT_AT_SCALE, printed):
            figures.append(row.claim.figure)
    return list(dict.fromkeys(figures))


def failures(rows: list[Row]) -> list[str]:
    """What does not reproduce, a line a figure and reason; without a headline the next reading.

    Theorems that are violated or not applicable come last.
    """
    by_reason: dict[tuple[str, str], list[Judged]] = {}
    shown = [row.shown for row in rows]
    for one in shown:
        if one.verdict.word == FAILED:
            same = one.reading, one.claim.why or one.claim.figure
            by_reason.setdefault(same, []).append(one)
    lines = []
    for (reading, why), own in by_reason.items():
        alike: dict[tuple[str, ...], list[Judged]] = {}
        for row in own:
            tail = row.claim.words.partition(", ")[2]
            key = in_signs(str(row.claim.rule)), *row.claim.words.split()[:3], tail
            alike.setdefault(key, []).append(row)
        said = [
            f"{told_once([*dict.fromkeys(row.claim.words for row in same)])} "
            f"({' / '.join(row.middles for row in same)}; {rule})"
            for (rule, *_), same in alike.items()
        ]
        place = ", ".join(dict.fromkeys(row.claim.figure for row in own))
        short_reading = reading.removesuffix("'s jobs")
        place += "" if reading == "drawn jobs" else f" ({short_reading})"
        lines.append(f"{place}: {'; '.join(said)}." + (f" *{why}*" if own[0].claim.why else ""))
    by_verdict: dict[str, list[str]] = {}
    for one in shown:
        is_told = one.claim.measure is not None or one.verdict.word == VIOLATED
        if one.verdict.word in (VIOLATED, NOT_APPLICABLE) and is_told:
            by_verdict.setdefault(str(one.verdict), []).append(one.claim.words)
    for words, theorems in by_verdict.items():
        lines.append(f"{told_once([*dict.fromkeys(theorems)])}: {words}.")
    return lines


def in_signs(rule: str) -> str:
    """A rule as short as it can be written."""
    for words, sign in {"at most": "<=", "at least": ">=", "below": "<", "above": ">"}.items():
        rule = rule.replace(words, sign)
    return rule


def common(words: list[list[str]]) -> list[str]:
    """The words with which all begin."""
    alike = takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False))
    return [word for word, *_ in alike]


def told_once(claims: list[str]) -> str:
    """Sentences that differ in a place only as one."""
    words = [claim.split() for claim in claims]
    start = len(common(words))
    rest = [own[start:] for own in words]
    end = len(common([own[::-1] for own in rest]))
    differing = [" ".join(own[: len(own) - end]).rstrip(",") for own in rest]
    if len(claims) == 1 or not all(differing):
        return "; ".join(claims)
    middle, tail = rest[0][: len(rest[0]) - end], rest[0][len(rest[0]) - end :]
    comma = "," if middle[-1].endswith(",") else ""
    return " ".join([*words[0][:start], " / ".join(differing) + comma, *tail])


def shortened(words: str) -> str:
    """A verdict with the first two parts of its condition; `verdicts.csv` has all."""
    parts, end = words.split("; "), ")" if words.endswith(")") else "**" * words.endswith("**")
    return words if len(parts) < 3 else "; ".join([*parts[:2], f"...{end}"])


def figure_lines(rows: list[Row]) -> list[list[str]]:
    """A line a figure: its first claim in full, the others' verdicts."""
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        if row.claim.measure is not None:
            where = "theorems" if row.claim.figure == "time" else row.claim.figure
            by_figure.setdefault(where, []).append(row)
    lines = []
    for where, (first, *others) in by_figure.items():
        rest = Counter(row.headline.word for row in others)
        same = others and set(rest) == {first.headline.words}
        parts = [f"{number} {word}" for word, number in rest.items()]
        verdict = (
            f"all {len(others) + 1} {first.headline.words}"
            if same
            else "; ".join([shortened(first.headline.words), *parts])
        )
        record = first.headline.run
        made = f"{record['minutes']:.1f}" if record else f"needs {first.headline.plan.minutes:g}"
        more = [row.headline.next_look for row in (first, *others)]
        made += next((f"+{plan.minutes:.1f}" for plan in more if plan is not None), "")
        jobs = " (Philly)" if first.headline.plan.traced else ""
        numbers = first.headline.measured.partition(" in ")[0]
        words = [first.claim.words, numbers, verdict, "; ".join(first.beside)]
        lines.append([f"{where}{jobs}", *words, made])
    return lines


MINUTES_A_SEED = 1.0
"""Of what takes longer no further seeds run."""


def undecided(rows: Iterable[Row]) -> list[Plan]:
    """Next looks that may decide a claim: headlines' first, then the cheapest."""
    found: dict[str, tuple[bool, Plan]] = {}
    for row in rows:
        for one in row.judged:
            plan = one.next_look
            if plan is not None and plan.minutes / plan.seeds < MINUTES_A_SEED:
                is_beside = one is not row.headline and found.get(plan.name, (True,))[0]
                found[plan.name] = is_beside, plan
    return [p for _, p in sorted(found.values(), key=lambda item: (item[0], item[1].minutes))]


def write_page() -> None:
    rows = judged()
    verdicts, cases = tables(rows)
    verdicts.to_csv(VERDICTS, index=False)
    cases.to_csv(CASES, index=False, float_format="%.6g")
    PAGE.write_text(page(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--again", action="store_true", help="run what is stored, too")
    parser.add_argument("--seeds", type=int, help="instances a setting; the plan's by default")
    parser.add_argument(
        "--until-decided", action="store_true", help="add seeds where a minute gives one"
    )
    parser.add_argument("names", nargs="*", help="experiments, as oasis-3; all if none is named")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - {plan.name for plan in PLAN}:
        parser.error(f"{min(unknown)}: no experiment of claims_plan.py has this name")
    while chosen.until_decided and (plans := undecided(judged())):
        run(plans[0])
    for plan in () if chosen.page else sorted(PLAN, key=lambda plan: plan.minutes):
        if chosen.names and plan.name not in chosen.names:
            continue
        if plan.name in runs() and not chosen.again:
            continue
        if plan.traced and "HINDSCHED_TRACES" not in os.environ:
            print(f"{plan.name}: needs HINDSCHED_TRACES, the folder with {TRACE}")
            continue
        run(replace(plan, seeds=chosen.seeds or plan.seeds))
        write_page()
    write_page()


if __name__ == "__main__":
    main()
