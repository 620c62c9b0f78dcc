"""`docs/results/claims.md` from the stored results: ``python benchmarks/claims.py --page``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hindsched.analysis.figures.claims import (
    CONDITIONAL,
    FAILED,
    NOT_RUN,
    REPRODUCED,
    CaseResult,
    Claim,
    Verdict,
    case_words,
    claims,
    judge,
    measured_words,
    of_data,
)

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/claims_results"
PAGE = ROOT / "docs/results/claims.md"
FULL_SEEDS = 5
FAMILIES = {
    "oasis": "OASiS, INFOCOM 2018",
    "batchsched": "Zhang et al., MobiHoc 2020 and journal version",
    "astraea": "Astraea, IEEE TC 2022",
    "edgecloud": "Wang et al., IEEE JSAC 2022",
    "mlbroker": "mlBroker, IEEE TPDS",
}
HEAD = Path(__file__).with_name("claims_head.md")


def records() -> dict[str, dict[str, Any]]:
    """Stored experiments by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(STORED.glob("*.json"))}


def page() -> str:
    """The whole page."""
    kept = records()
    rows = {family: _rows(family, kept) for family in FAMILIES}
    parts = [HEAD.read_text(), _summary(rows)]
    for family, name in FAMILIES.items():
        parts += [
            f"## {family}\n",
            f"{name}; [the problem and the algorithms](../problems/{family}.md).\n",
            _claims_table(rows[family]),
            _runs(family, kept),
        ]
    return "\n".join(parts).rstrip() + "\n"


Row = tuple[Claim, dict[str, Any] | None, list[CaseResult], Verdict]


def _rows(family: str, kept: dict[str, dict[str, Any]]) -> list[Row]:
    """A row a claim and stored experiment; one without for a claim not run."""
    found: list[Row] = []
    for claim in claims(family):
        own = [record for record in kept.values() if claim.key in record["claims"]]
        own.sort(key=lambda record: record["trace"] or "")
        for record in own:
            results = of_data(record["claims"][claim.key])
            found.append((claim, record, results, judge(claim, results)))
        if not own:
            found.append((claim, None, [], Verdict(NOT_RUN)))
    return found


def _summary(rows: dict[str, list[Row]]) -> str:
    words = (REPRODUCED, CONDITIONAL, FAILED, NOT_RUN)
    lines = [
        "Claims by verdict, the synthetic run where there are two; in brackets those measured at "
        "full scale.",
        "",
        f"| paper | claims | {' | '.join(words).replace(CONDITIONAL, 'reproduced if ...')} |",
        "|---|---|---|---|---|---|",
    ]
    for family, own in rows.items():
        plain = [row for row in own if row[1] is None or row[1]["trace"] is None]
        every = Counter(row[3].word for row in plain)
        full = Counter(row[3].word for row in plain if row[1] and row[1]["full_scale"])
        cells = " | ".join(f"{every[word]} ({full[word]})" for word in words[:3])
        page = f"[{family}](../problems/{family}.md)"
        lines.append(f"| {page} | {len(plain)} | {cells} | {every[NOT_RUN]} |")
    return "\n".join(lines) + "\n"


def _claims_table(rows: list[Row]) -> str:
    lines = [
        "| where | the paper's claim | its number | what is measured | measured | rule | "
        "seeds, scale | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for claim, record, results, verdict in rows:
        where = f"{claim.place}" + (" — on the Philly trace" if record and record["trace"] else "")
        quantity = claim.quantity + (f" ({claim.note})" if claim.note else "")
        lines.append(
            f"| {where} | {claim.words} | {claim.paper} | {quantity} | {_measured(results)} | "
            f"{claim.rule} | {_scale(record)} | {_verdict(verdict)} |"
        )
    return "\n".join(lines) + "\n"


def _measured(results: list[CaseResult]) -> str:
    """Every case if they are few, else the range."""
    known = [result for result in results if result.known]
    if not 1 < len(known) <= 3:
        return measured_words(results)
    return "; ".join(f"{measured_words([one])} ({case_words(one.case)})" for one in known)


def _scale(record: dict[str, Any] | None) -> str:
    if record is None:
        return "not run"
    seeds = f"{record['seeds']} seed{'s' if record['seeds'] > 1 else ''}"
    return f"{seeds}, {scale_words(record)}"


def scale_words(record: dict[str, Any]) -> str:
    """The scale that was run."""
    if record["full_scale"]:
        return "full"
    if record["quick"]:
        return "quick: small instances"
    settings = ", ".join(
        f"{name.replace('_', ' ')} {_listed(values)}" for name, values in record["settings"].items()
    )
    return f"reduced: {settings}" if settings else "full but for the seeds"


def _listed(values: Any) -> str:
    return ", ".join(f"{item:g}" for item in values) if isinstance(values, list) else str(values)


def _verdict(verdict: Verdict) -> str:
    text = f"**{verdict.word}**" + (f" {verdict.condition}" if verdict.condition else "")
    return text if verdict.is_sure or verdict.word == NOT_RUN else text + " †"


def _runs(family: str, kept: dict[str, dict[str, Any]]) -> str:
    """What was run for a family, when, and what the full scale needs."""
    own = [record for record in kept.values() if record["family"] == family]
    lines = [
        "| figures | command | date, version | processor time | the full scale needs |",
        "|---|---|---|---|---|",
    ]
    for record in own:
        numbers = ", ".join(record["figures"]) + (" (Philly)" if record["trace"] else "")
        made = f"{record['date']}, {record['version']}"
        lines.append(
            f"| {numbers} | `{record['command']}` | {made} | "
            f"{_time(record['cpu_seconds'])} | {_need(record)} |"
        )
    return "\n".join(lines) + "\n"


def _need(record: dict[str, Any]) -> str:
    """The time that the full scale needs, from what a part of it took."""
    if record["full_scale"]:
        return "this"
    if record["probe"] is not None:
        return probed(record["probe"])
    share = record["share_of_full"]
    if share is None:
        return "not measured"
    return f"about {_time(record['cpu_seconds'] / share)}, more if the cells left out are larger"


def seconds_needed(probe: dict[str, Any]) -> float:
    """Processor time of all runs of the full experiment, from those of a probe."""
    return float(probe["cpu_seconds"] / max(1, probe["runs"]) * probe["runs_needed"])


def probed(probe: dict[str, Any]) -> str:
    """What one setting and seed of the full experiment say of all of it."""
    needed, spent = _time(seconds_needed(probe)), _time(probe["cpu_seconds"])
    every = probe["runs_needed"]
    if probe["ended"]:
        return f"about {needed}: {probe['runs']} of its {every} runs, in the middle, took {spent}"
    if probe["runs"]:
        begun = f"{probe['runs']} of about {every} runs, in the middle, ended within {spent}"
        return f"at least {needed}: {begun}"
    return f"more than {needed}: in the middle none of about {every} runs ended within {spent}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
