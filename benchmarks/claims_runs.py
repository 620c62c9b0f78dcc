"""Run the experiments of `claims_plan`, and keep their rows.

An experiment keeps every finished run in `build/claims/COMMIT`, so that it goes on where it was
stopped; what has ended is stored at once: its rows in
`benchmarks/results/claims/FAMILY-FIGURE.csv`, a line of what was run in `runs.csv`.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from claims_plan import PLAN, TRACE, Plan, experiments

from hindsched.analysis.figures.base import FigureScale, TraceInput

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/results/claims"
RUNS = STORED / "runs.csv"
MANY_ROWS = 3000
"""Tables with more are stored packed."""
PART_AXES = ("capacity_fraction", "case")
"""Axes that no paper draws: a part of them is no smaller scale, and verdicts name the part."""
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
