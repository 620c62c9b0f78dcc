"""Measure the papers' claims, and write `docs/results/claims.md` from the rows that are stored.

``python benchmarks/claims.py`` runs every experiment of `PLAN` whose rows are not stored, the
shortest first; ``--page`` writes the page only. An experiment keeps every finished run in
`build/claims/COMMIT`, so that it goes on where it was stopped; what has ended is stored at once:
its rows in `benchmarks/results/claims/FAMILY-FIGURE.csv`, a line of what was run in `runs.csv`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
from growth import GROWTH
from jinja2 import StrictUndefined, Template
from printed import differences, words_of
from properties import PROPERTIES
from theorems import LEMMA_FIGURES, THEOREMS
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
    claims_of,
    digits,
    judge_claim,
    measured,
    measured_words,
    without_runs,
)

from hindsched.analysis.figures.base import FULL_SEEDS, Figure, FigureScale, TraceInput, figures

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/results/claims"
RUNS, VERDICTS, CASES = (STORED / f"{name}.csv" for name in ("runs", "verdicts", "cases"))
PAGE = ROOT / "docs/results/claims.md"
TEMPLATE = Path(__file__).with_suffix(".md.jinja")
FAMILIES = {
    "oasis": "OASiS, INFOCOM 2018",
    "batchsched": "Zhang et al., MobiHoc 2020 and journal version",
    "astraea": "Astraea, IEEE TC 2022",
    "edgecloud": "Wang et al., IEEE JSAC 2022",
    "mlbroker": "mlBroker, IEEE TPDS",
}
TRACE = "philly/philly.csv.gz"
"""Within the folder of the variable HINDSCHED_TRACES."""
INSTANCES = 200
"""On which each theorem is tried."""
LOOKS, LOOKS_AT_TRACE = (FULL_SEEDS, 10, 20, 50, 100), (FULL_SEEDS, 9)
"""Numbers of seeds after which an interval may decide; ten windows of Philly's trace overlap."""
MANY_ROWS = 3000
"""Tables with more are stored packed."""
READINGS = {
    ("batchsched", ""): "alpha by (6), batches end early",
    ("batchsched", "alpha-4"): "alpha = 4",
    ("batchsched", "alpha-1"): "alpha = 1",
    ("astraea", ""): "times as printed",
    ("astraea", "tenth"): "times x 0.1",
    ("astraea", "durations"): "Philly's durations",
}
"""Of what may be read in two ways, by family and the plan's word; the headline's is empty."""
LEFT_OUT = "tenth"
"""A reading that the tables have and the page has not."""
STANDS_FOR = {"batchsched-terminating": "batchsched", "batchsched alpha-1": "batchsched"}
"""Readings of A_online, which claims call by the other's name."""
PART_AXES = ("capacity_fraction", "case")
"""Axes that no paper draws: a part of them is no smaller scale, and verdicts name the part."""


def experiments(family: str) -> dict[str, Figure]:
    """Figures of a paper by number, and what this folder adds to them."""
    added = [table.get(family) for table in (THEOREMS, LEMMA_FIGURES, GROWTH)]
    own = {figure.number: figure for figure in added if figure is not None}
    return figures(family) | PROPERTIES.get(family, {}) | own


@dataclass(frozen=True)
class Plan:
    """An experiment at the paper's scale, by its first figure; long axes in part, with their ends.

    `minutes` of a processor are expected; `reading` is a word of `READINGS`.
    """

    family: str
    figure: str
    minutes: float
    settings: dict[str, Any] = field(default_factory=dict)
    schemes: tuple[str, ...] | None = None
    traced: bool = False
    reading: str = ""
    seeds: int = FULL_SEEDS

    @property
    def name(self) -> str:
        parts = self.family, self.figure, "philly" if self.traced else "", self.reading
        return "-".join(filter(None, parts))

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds after which its intervals may decide."""
        return LOOKS_AT_TRACE if self.traced else LOOKS

    @property
    def reading_words(self) -> str:
        """How the paper is read, where it can be read in two ways."""
        same = [p for p in PLAN if (p.family, p.figure) == (self.family, self.figure)]
        several = len({p.reading for p in same}) > 1
        headline = self.traced and not self.reading
        return READINGS[self.family, self.reading] if several and not headline else ""

    def differences(self, number: str) -> dict[str, tuple[str, str]]:
        """What of a figure's settings is not as printed, with what is printed."""
        return differences(self.family, number, self.settings, traced=self.traced)

    @property
    def figures(self) -> list[str]:
        """Numbers of all figures that show the same table."""
        known = experiments(self.family)
        same = [n for n, item in known.items() if item.run is known[self.figure].run]
        return [number for number in same if claims_of(self.family, number)]

    @property
    def command(self) -> str:
        more = "" if self.seeds == FULL_SEEDS else f" --seeds {self.seeds}"
        if self.figure not in figures(self.family):
            return f"python benchmarks/claims.py --again {self.name}{more}"
        parts = [f"hindsched figure {self.family} {self.figure}"]
        for name, values in self.settings.items():
            parts.append(f"--set {name}={json.dumps(values, separators=(',', ':'))}")
        parts += [f'--schemes "{",".join(self.schemes)}"'] if self.schemes else []
        parts += [f"--from-trace {Path(TRACE).name}"] if self.traced else []
        return " ".join(parts) + more


WITHOUT_DORM = (
    "oasis", "oasis, L-floor 0.1", "fifo", "drf", "rrh", "fifo widest", "rrh widest",
)  # fmt: skip
AS_THE_PAPER_SETS_THEM = (
    "batchsched", "fifo", "drf", "antman", "tiresias", "antman restoring", "tiresias restoring",
)  # fmt: skip
AT_THE_EDGE = (
    "srtf drawn edge", "srtf drawn cloud", "srtf half edge", "srtf half cloud", "srtf ideal edge",
    "srtf ideal cloud", "tiresias-l drawn edge", "tiresias-l drawn cloud", "edgecloud",
    "edgecloud-edge-only", "batchsche", "batchsche alpha-4", "batchsche per-batch", "all-cloud",
)  # fmt: skip
ON_THE_TESTBED = (*AT_THE_EDGE[:6], "tiresias-l drawn edge", "tiresias-l drawn cloud",
    "tiresias-l half edge", "tiresias-l half cloud", "tiresias-l ideal edge",
    "tiresias-l ideal cloud", "edgecloud", "batchsche", "batchsche alpha-4", "batchsche per-batch",
    "edgecloud-escape", "all-cloud",
)  # fmt: skip
IN_LARGE = (*ON_THE_TESTBED[:-5], "edgecloud-edge-only", "batchsche", "edgecloud-marginal",
    "edgecloud-escape", "all-cloud",
)  # fmt: skip
FOR_TENANTS = (
    "astraea, lambda 1", "astraea, lambda 2", "batchsche", "batchsche alpha-4",
    "batchsche per-batch", "gandiva-fair", "hived",
)  # fmt: skip
AT_THEIR_STRONGEST = (
    "astraea, lambda 1", "astraea, lambda 2", "batchsche", "gandiva-fair", "hived",
    "gandiva-fair widest", "hived widest",
)  # fmt: skip
VARIANTS = ("batchsched", "batchsched-exact", "batchsched-adaptive")
IN_A_ROUND = ("A_maxweight", "A_maxweight, exact, by density", "Jain et al. (GreedyRTL)")
IN_RANGE: dict[str, Any] = {"capacity_fraction": [0.2]}
BELOW_AND_IN_RANGE: dict[str, Any] = {"capacity_fraction": [0.05, 0.2]}
AS_IN_TABLE_II: dict[str, Any] = {"chunks": None, "minibatch_scale": 1, "worker_types": 8}
IN_BATCHES = (
    Plan(
        "batchsched",
        "2",
        4,
        {"jobs": [50, 200], "capacity_fraction": [0.05, 0.2, 0.35]},
        AS_THE_PAPER_SETS_THEM,
    ),
    Plan("batchsched", "3", 10, {"servers": [50, 200], **IN_RANGE}, AS_THE_PAPER_SETS_THEM),
    Plan(
        "batchsched",
        "5",
        2,
        {"jobs": [50, 200], "capacity_fraction": [0.2, 0.35]},
        AS_THE_PAPER_SETS_THEM,
    ),
    Plan("batchsched", "6", 10, {"servers": [50, 200], **IN_RANGE}, AS_THE_PAPER_SETS_THEM),
    Plan("batchsched", "4", 2.2, {}, VARIANTS),
    Plan("batchsched", "7", 2.3, {}, VARIANTS),
    Plan("batchsched", "9", 2, BELOW_AND_IN_RANGE, ("batchsched",)),
    Plan(
        "batchsched", "10", 3, {"fixed_workers": [1, 5, 30], **BELOW_AND_IN_RANGE}, ("batchsched",)
    ),
)
"""A_online with alpha = 4."""
BY_TIMES = (
    Plan("astraea", "4a", 0.4, {"jobs": [40, 160]}, FOR_TENANTS),
    Plan("astraea", "4b", 0.4, {"servers": [20, 140]}, FOR_TENANTS),
    Plan("astraea", "4c", 1.7, {"jobs": [40, 160]}),
    Plan("astraea", "4d", 1.1, {"servers": [20, 140]}),
    *(Plan("astraea", number, 0.2, {}, FOR_TENANTS) for number in ("7", "8")),
    Plan("astraea", "13", 0.6),
    *(Plan("astraea", number, 0.2) for number in ("9", "10", "11", "12", "table-2")),
)
ON_PHILLY = tuple(plan for plan in BY_TIMES if plan.figure != "table-2")
"""Figures whose jobs come from a trace in the paper: Table 2 varies the tenants."""
TIMES_LONGER = 6
"""A run with the printed times takes about so much longer than with a tenth of them."""
UNTIL_ALL_END = {"horizon": 6000}
"""With the printed times 13 to 28 of 100 jobs end after the preset's horizon, 1,500 slots."""


def with_printed_times(plan: Plan) -> Plan:
    """A plan with the printed times, which runs until jobs have ended."""
    settings = {**plan.settings, **UNTIL_ALL_END}
    return replace(plan, settings=settings, minutes=TIMES_LONGER * plan.minutes)


def on_philly(plan: Plan) -> Plan:
    """A plan on Philly's arrivals, clusters and GPUs, its work and servers as the paper says."""
    servers = {} if plan.figure == "10" else {"servers": 100}  # Figure 10 varies them
    settings = {**servers, **plan.settings, **UNTIL_ALL_END}
    schemes = FOR_TENANTS if plan.figure in ("4c", "4d") else None
    return replace(plan, settings=settings, schemes=schemes, traced=True)


def with_durations(plan: Plan) -> Plan:
    """A plan on Philly's jobs as long as they are there, on all of its servers."""
    settings = {"minibatch_scale": None}
    return Plan("astraea", plan.figure, 0.5, settings, traced=True, reading="durations")


def read_as(plan: Plan, algorithm: str, reading: str) -> Plan:
    """A plan with another reading of A_online."""
    schemes = (algorithm if name == "batchsched" else name for name in plan.schemes or ())
    return replace(plan, schemes=tuple(schemes), reading=reading)


def shortened(plan: Plan) -> Plan:
    """A plan with a tenth of the printed times."""
    settings = {**plan.settings, "minibatch_scale": 0.1}
    schemes = AT_THEIR_STRONGEST if plan.figure in ("4c", "4d", "13") else plan.schemes
    return replace(plan, settings=settings, schemes=schemes, reading="tenth")


PLAN = (
    Plan("oasis", "3", 110, {"jobs": [100, 400]}, (*WITHOUT_DORM, "dorm")),
    Plan("oasis", "4", 9, {}, (*WITHOUT_DORM, "dorm")),
    Plan("oasis", "5", 40, {"servers": [10, 60, 100]}),
    Plan("oasis", "6", 3, {"jobs": [100, 400]}),
    Plan("oasis", "8", 0.1),
    Plan("oasis", "9", 0.1),
    *(read_as(plan, "batchsched-terminating", "") for plan in IN_BATCHES),
    *(read_as(plan, "batchsched", "alpha-4") for plan in IN_BATCHES),
    *(read_as(plan, "batchsched alpha-1", "alpha-1") for plan in IN_BATCHES),
    Plan("batchsched", "8", 3, {"jobs": [50, 200]}, IN_A_ROUND),
    Plan("batchsched", "11", 4, {}, ("A_maxweight",)),
    Plan("batchsched", "12", 4, {"jobs": [50, 200], "servers": [25, 150]}, ("A_maxweight",)),
    Plan("batchsched", "theorem-5", 0.7, {}, VARIANTS),
    *map(with_printed_times, BY_TIMES),
    *map(shortened, BY_TIMES),
    Plan("astraea", "5", 4, {"jobs": [5, 15], "servers": [5, 25, 45]}),
    Plan("astraea", "6", 4, {"jobs": [5, 15], "servers": [5, 25, 45]}, FOR_TENANTS),
    *(Plan("astraea", number, 0.2) for number in ("P1", "P2", "P3", "P4")),
    *map(on_philly, ON_PHILLY),
    *map(with_durations, ON_PHILLY),
    Plan("edgecloud", "4", 0.3, {}, ON_THE_TESTBED),
    Plan("edgecloud", "7", 5, {"jobs": [100, 300]}, AT_THE_EDGE),
    Plan("edgecloud", "8", 14, {"servers": [60, 140]}, AT_THE_EDGE),
    Plan("edgecloud", "11", 5, {}, IN_LARGE),
    Plan("edgecloud", "12", 1, AS_IN_TABLE_II),
    Plan("edgecloud", "13", 1, AS_IN_TABLE_II),
    Plan("edgecloud", "7", 8, {"jobs": [100, 300]}, AT_THE_EDGE, traced=True),
    Plan("edgecloud", "8", 8, {"servers": [60, 140]}, AT_THE_EDGE, traced=True),
    Plan("edgecloud", "11", 8, {}, IN_LARGE, traced=True),
    Plan("mlbroker", "5", 12, {"datacenters": [3, 15], "epsilon": [0.001, 0.1, 10.0]}),
    Plan("mlbroker", "6", 3, {"capacity_gb": [16, 66], "data_gb": [100, 700]}),
    Plan("mlbroker", "7", 4, {"datacenters": [5, 15, 20]}),
    Plan("mlbroker", "8", 7, {"data_gb": [100, 400, 700]}),
    Plan("mlbroker", "9", 7, {"horizon": [50, 100]}, ("mlbroker",)),
    Plan("mlbroker", "10", 5, {"jobs": [29, 174]}, ("mlbroker",)),
    Plan("mlbroker", "15", 0.3),
    *(Plan(family, "theorems", 4, seeds=INSTANCES) for family in FAMILIES),
    *(Plan(family, "lemmas", 4, seeds=INSTANCES) for family in LEMMA_FIGURES),
    *(Plan(family, "time", 2) for family in GROWTH),
)
COLUMNS = (
    "name", "family", "figures", "command", "commit", "seeds", "settings", "schemes", "at_scale",
    "minutes", "rows",
)  # fmt: skip


def git(*words: str) -> str:
    found = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return found.stdout.strip()


@cache
def trace() -> TraceInput:
    from hindsched.instances.traces.table import load_trace

    path = Path(os.environ["HINDSCHED_TRACES"]) / TRACE
    return TraceInput(load_trace(path, "philly"), path.name)


@dataclass(frozen=True)
class KeptScale(FigureScale):
    """A scale whose finished runs stand in a file, a line each, with their processor seconds."""

    kept: Path = Path()
    seconds: list[float] = field(default_factory=list)
    ends: dict[str, bool] = field(default_factory=dict)  # of an axis: whether both are measured

    def axis(self, name: str, full: Sequence[Any], quick: Sequence[Any]) -> list[Any]:
        """Values of an axis."""
        values = super().axis(name, full, quick)
        self.ends[name] = full[0] in values and full[-1] in values
        return values

    def once(self, key: Sequence[object], make: Callable[[], Any]) -> list[dict[str, Any]]:
        """Rows of one run: those that the file has under its key, or made now."""
        text = json.dumps(key, default=str)
        for line in self.kept.read_text("utf-8").splitlines() if self.kept.exists() else ():
            if line.endswith("}]}") and (found := json.loads(line))["key"] == text:
                self.seconds.append(found["seconds"])
                return list(found["rows"])
        began = time.process_time()
        rows = super().once(key, make)
        self.seconds.append(time.process_time() - began)
        own = {"key": text, "seconds": round(self.seconds[-1], 3), "rows": rows}
        with self.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(own, default=lambda number: number.item()) + "\n")
        return rows


def run(plan: Plan) -> None:
    """Run an experiment, and store its rows."""
    if git("status", "--porcelain", "--", "hindsched"):
        raise SystemExit("commit hindsched first: rows say which commit made them")
    commit = git("log", "-1", "--format=%h", "--abbrev=12", "--", "hindsched")
    folder = ROOT / "build/claims" / commit
    folder.mkdir(parents=True, exist_ok=True)
    scale = KeptScale(
        False, plan.seeds, plan.settings, trace() if plan.traced else None, plan.schemes,
        kept=folder / f"{plan.name}.jsonl",
    )  # fmt: skip
    began = time.process_time()
    frame = experiments(plan.family)[plan.figure].run(scale, lambda text: None)
    seconds = sum(scale.seconds) or time.process_time() - began
    at_scale = all(scale.ends.get(name, True) for name in plan.settings if name not in PART_AXES)
    store(plan, frame, commit, at_scale=at_scale, minutes=seconds / 60)
    print(f"{plan.name}: {seconds / 60:.1f} min", flush=True)


def store(plan: Plan, frame: pd.DataFrame, commit: str, *, at_scale: bool, minutes: float) -> None:
    """Keep rows, and say what was run for them."""
    STORED.mkdir(parents=True, exist_ok=True)
    for old in STORED.glob(f"{plan.name}.csv*"):
        old.unlink()
    packed = ".gz" if len(frame) > MANY_ROWS else ""
    how: Any = {"method": "gzip", "mtime": 0} if packed else None
    named = frame.assign(commit=commit)
    named.to_csv(STORED / f"{plan.name}.csv{packed}", index=False, compression=how)
    line = {
        "name": plan.name, "family": plan.family, "figures": " ".join(plan.figures),
        "command": plan.command, "commit": commit, "seeds": frame["seed"].nunique(),
        "settings": json.dumps(plan.settings), "schemes": json.dumps(plan.schemes),
        "at_scale": at_scale, "minutes": round(minutes, 2), "rows": len(frame),
    }  # fmt: skip
    known = [row for row in runs().values() if row["name"] != plan.name]
    table = pd.DataFrame([*known, line], columns=list(COLUMNS)).sort_values("name")
    table.to_csv(RUNS, index=False)


def runs() -> dict[str, dict[str, Any]]:
    """What is stored, by name."""
    if not RUNS.exists():
        return {}
    return {row["name"]: row for row in pd.read_csv(RUNS, dtype={"commit": str}).to_dict("records")}


def rows_of(name: str) -> pd.DataFrame:
    """Stored rows of an experiment."""
    (path,) = STORED.glob(f"{name}.csv*")
    return pd.read_csv(path, dtype={"commit": str})


CLOCKED = ("seconds", "milliseconds")
"""Columns that differ from run to run."""
RENAMED = {"datacenters": "centers", "horizon": "slots"}
"""Columns of axes that a table names otherwise."""
LONGEST_AGAIN = 30.0
"""Seconds of a processor that an experiment may take when it is run again to compare."""


def comes_out_again(name: str) -> bool:
    """Whether seed 0 of a stored experiment, run now, gives the stored rows.

    Of a seed that takes longer than `LONGEST_AGAIN` the first value of every axis that the plan
    sets, and of that as many schemes as the time allows.
    """
    (plan,) = (plan for plan in PLAN if plan.name == name)
    record, stored = runs()[name], rows_of(name).drop(columns="commit")
    where, seeds = (trace(), record["seeds"]) if plan.traced else (None, 1)  # windows need them
    stored = stored[stored["seed"] < seeds]
    seconds = 60 * record["minutes"] * seeds / record["seeds"]
    settings, schemes = plan.settings, plan.schemes
    if seconds > LONGEST_AGAIN:
        axes = {axis: values[0] for axis, values in settings.items() if isinstance(values, list)}
        settings = {**settings, **{axis: [first] for axis, first in axes.items()}}
        whole = len(stored)
        for axis, first in axes.items():
            stored = stored[stored[RENAMED.get(axis, axis)] == first]
        seconds *= len(stored) / whole
    if seconds > LONGEST_AGAIN and "scheme" in stored:
        names = list(stored["scheme"].unique())
        schemes = tuple(names[: max(1, int(len(names) * LONGEST_AGAIN / seconds))])
        stored = stored[stored["scheme"].isin(schemes)]
    scale = FigureScale(False, seeds, settings, where, schemes)
    frame = experiments(plan.family)[plan.figure].run(scale, lambda text: None)
    again = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
    kept = [column for column in stored if column not in CLOCKED]
    try:
        pd.testing.assert_frame_equal(stored[kept].reset_index(drop=True), again[kept], rtol=1e-6)
    except AssertionError as error:
        print(f"{name}: {error}")
        return False
    return True


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
    def middles(self) -> str:
        """The least and the greatest middle of its own cases."""
        own = [r.middle for r in self.results if r.known and not self.claim.group(r.case)]
        return " to ".join(dict.fromkeys(digits(end) for end in (min(own), max(own))))

    @property
    def beside(self) -> list[str]:
        """What stands beside a claim and says otherwise."""
        return [
            f"{name}: {short(verdict.word)}"
            for name, verdict in self.verdict.beside.items()
            if str(verdict) != str(self.verdict)
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
            and str(row.verdict) != str(self.headline.verdict)
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
                "quantity": claim.quantity, "rule": str(claim.rule), "about": claim.about,
                "differs in": words_of(row.differences), "direction": row.verdict.direction,
                "factor": row.verdict.factor,
                "measured": row.measured, "verdict": str(row.verdict),
                "beside": "; ".join(f"{k}: {v}" for k, v in row.verdict.beside.items()),
                "note": claim.note, "why": claim.why, "seeds": record.get("seeds"),
                "commit": record.get("commit"), "minutes": record.get("minutes", plan.minutes),
                "next minutes": row.next_look and round(row.next_look.minutes, 1),
                "command": plan.command,
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

    def middle(key: str, case: str = "", reading: str = "") -> str:
        """A measured number of a claim's case, of the headline or of a reading."""
        row = by_key[key]
        shown = [one for one in row.judged if one.reading == reading] or [row.shown]
        known = [one for one in shown[0].results if case_words(one.case) == case and one.known]
        return digits(known[0].middle) if known else "(not measured)"

    return text.render(
        families=FAMILIES, summary=summary, words=[*map(short, SUMMARY)], looks=looks,
        middle=middle,
        lines={family: figure_lines(own) for family, own in by_family.items()},
        failing={family: failures(own) for family, own in by_family.items()},
    )  # fmt: skip


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


def figure_lines(rows: list[Row]) -> list[list[str]]:
    """A line a figure: its first claim in full, the others' verdicts."""
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        if row.claim.measure is not None:
            where = "theorems" if row.claim.figure in ("lemmas", "time") else row.claim.figure
            by_figure.setdefault(where, []).append(row)
    lines = []
    for where, (first, *others) in by_figure.items():
        rest = Counter(row.headline.word for row in others)
        same = others and set(rest) == {first.headline.words}
        parts = [f"{number} {word}" for word, number in rest.items()]
        verdict = (
            f"all {len(others) + 1} {first.headline.words}"
            if same
            else "; ".join([first.headline.words, *parts])
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
