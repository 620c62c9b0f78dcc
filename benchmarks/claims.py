"""Measure the papers' claims, and write `docs/results/claims.md` from what is stored.

``python benchmarks/claims.py`` runs every experiment of `PLAN` that is not stored yet, one after
the other, and writes the page; stopped at any point it goes on where it was. ``--full`` runs at the
papers' scale with 5 seeds whatever is stored at less, cheap experiments first; with ``--at-most``
it measures what each takes, stores that, and leaves what takes longer. ``--probe`` only measures.
``--quick`` runs small versions where nothing is stored, ``--page`` writes the page only. A stored
result is one small file in `benchmarks/claims_results`: the quantities of the claims, seed by seed;
the whole table of an experiment goes to `build/claims`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from claims_page import PAGE, STORED, page, probed, seconds_needed
from claims_probe import part, probe

from hindsched.analysis.figures.base import (
    FULL_SEEDS,
    FigureScale,
    TraceInput,
    figure,
    figures,
)
from hindsched.analysis.figures.claims import claims, claims_of, measured, to_data

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "build/claims"
FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker")
TRACE = "philly/philly.csv.gz"
"""Within the folder of the variable HINDSCHED_TRACES."""


@dataclass(frozen=True)
class Plan:
    """One experiment: figures that share a table, and the scale that was affordable here."""

    family: str
    figures: tuple[str, ...]
    seeds: int = FULL_SEEDS
    settings: dict[str, Any] = field(default_factory=dict)
    traced: bool = False
    quick: bool = False

    @property
    def name(self) -> str:
        return f"{self.family}-{self.figures[0]}{'-philly' if self.traced else ''}"

    @property
    def is_full(self) -> bool:
        return not self.settings and not self.quick and self.seeds >= FULL_SEEDS

    @property
    def command(self) -> str:
        parts = ["hindsched figure", self.family, self.figures[0]]
        parts += ["--quick"] if self.quick else []
        parts += ["--seeds", str(self.seeds)]
        for name, values in self.settings.items():
            parts += ["--set", f"{name}={json.dumps(values, separators=(',', ':'))}"]
        parts += ["--from-trace", Path(TRACE).name] if self.traced else []
        return " ".join(parts)

    @property
    def size(self) -> int:
        """0 for small instances, 1 for a part of the full scale, 2 for all of it."""
        return 0 if self.quick else 1 + self.is_full

    def quickly(self, seeds: int) -> Plan:
        return Plan(self.family, self.figures, seeds, traced=self.traced, quick=True)

    def at_full_scale(self) -> Plan:
        return Plan(self.family, self.figures, traced=self.traced)


QUICK_SEEDS = 3
PROBE = 60.0
"""Seconds to measure how long an experiment takes, before it is run."""
SHORT = {"horizon": 10, "jobs": 30}
FEW = {"capacity_fraction": [0.35]}
PLAN = (
    Plan("astraea", ("4a",), 2, {"jobs": [40, 100]}),
    Plan("astraea", ("4b",), 2, {"servers": [20, 100]}),
    Plan("astraea", ("4c",), 2, {"jobs": [40, 100]}),
    Plan("astraea", ("4d",), 2, {"servers": [20, 100]}),
    Plan("astraea", ("7",)),
    Plan("astraea", ("8",)),
    Plan("astraea", ("9",)),
    Plan("astraea", ("10",)),
    Plan("astraea", ("11",)),
    Plan("astraea", ("12",)),
    Plan("astraea", ("13",)),
    Plan("astraea", ("table-2",)),
    Plan("astraea", ("P1",)),
    Plan("astraea", ("P2",)),
    Plan("astraea", ("P3",)),
    Plan("astraea", ("P4",)),
    Plan("astraea", ("4a",), 2, {"jobs": [40, 100]}, traced=True),
    Plan("astraea", ("4b",), 2, {"servers": [20, 100]}, traced=True),
    Plan("astraea", ("7",), traced=True),
    Plan("astraea", ("8",), traced=True),
    Plan("astraea", ("13",), traced=True),
    Plan("edgecloud", ("4", "5", "6")),
    Plan("edgecloud", ("7", "9")),
    Plan("edgecloud", ("8", "10"), 2, {"servers": [60, 140]}),
    Plan("edgecloud", ("11",), 1),
    Plan("edgecloud", ("7", "9"), 1, {"jobs": [100, 300]}, traced=True),
    Plan("edgecloud", ("8", "10"), 1, {"servers": [60, 140]}, traced=True),
    Plan("edgecloud", ("11",), 1, traced=True),
    Plan("mlbroker", ("15", "16", "17", "table-4", "table-5")),
    Plan("oasis", ("8",)),
    Plan("oasis", ("9",)),
    Plan("batchsched", ("4",)),
    Plan("batchsched", ("8",)),
    Plan("batchsched", ("11",)),
    Plan("batchsched", ("12",)),
    Plan("batchsched", ("2",), 1, {"jobs": [50, 100], **FEW}),
    Plan("batchsched", ("5",), 1, {"jobs": [50, 100], **FEW}),
    Plan("batchsched", ("3",), 1, {"servers": [50, 100], **FEW}),
    Plan("batchsched", ("6",), 1, {"servers": [50, 100], **FEW}),
    Plan("batchsched", ("7",), 1),
    Plan("batchsched", ("9",), 1, FEW),
    Plan("batchsched", ("10",), 1, FEW),
    Plan("batchsched", ("theorem-5",)),
    Plan("mlbroker", ("8", "11", "12", "13", "14"), 1, {"data_gb": [100, 700]}),
    Plan("mlbroker", ("9",), 1, {"horizon": [50, 60]}),
    Plan("mlbroker", ("10",), 1, {"jobs": [29, 58, 87]}),
    Plan("mlbroker", ("7",), 1, {"datacenters": [5, 10], **SHORT}),
    Plan("mlbroker", ("6",), 1, {"capacity_gb": [16, 66], "data_gb": [100, 700], **SHORT}),
    Plan("mlbroker", ("5",), 1, {"datacenters": [3, 6], **SHORT}),
    Plan("edgecloud", ("12",), 1),
    Plan("edgecloud", ("13",), 1),
    Plan("astraea", ("5",), 1, {"jobs": [5, 15], "servers": [5, 25]}),
    Plan("astraea", ("6",), 1, {"jobs": [5, 15], "servers": [5, 25]}),
    Plan("oasis", ("6",), 1, {"jobs": [100, 200]}),
    Plan("oasis", ("4",), 1, {"jobs": 60, "horizon": 60}),
    Plan("oasis", ("3",), 1, {"jobs": [25, 50]}),
    Plan("oasis", ("5",), QUICK_SEEDS, quick=True),
)  # fmt: skip


def check_plan() -> None:
    """Every figure with a claim is in the plan, and figures of one run share it."""
    planned = {(plan.family, number) for plan in PLAN for number in plan.figures}
    for family in FAMILIES:
        known = figures(family)
        for claim in claims(family):
            if claim.measure is not None and (family, claim.figure) not in planned:
                raise SystemExit(f"{claim.key}: no experiment of the plan measures it")
        for plan in PLAN:
            if plan.family == family:
                runs = {id(known[number].run) for number in plan.figures}
                if len(runs) != 1:
                    raise SystemExit(f"{plan.name}: its figures do not share a table")


def size_of(record: dict[str, Any]) -> int:
    return 0 if record["quick"] else 1 + record["full_scale"]


def stored(name: str) -> dict[str, Any] | None:
    path = STORED / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _trace(plan: Plan) -> TraceInput | None:
    if not plan.traced:
        return None
    from hindsched.instances.traces.table import load_trace

    path = Path(os.environ["HINDSCHED_TRACES"]) / TRACE
    return TraceInput(load_trace(path, "philly"), path.name)


def run(plan: Plan) -> None:
    """Run an experiment and store the quantities of its claims."""
    scale = FigureScale(plan.quick, plan.seeds, plan.settings, _trace(plan))
    began = time.process_time()
    frame = figure(plan.family, plan.figures[0]).run(scale, lambda text: None)
    seconds = time.process_time() - began
    TABLES.mkdir(parents=True, exist_ok=True)
    frame.to_csv(TABLES / f"{plan.name}.csv", index=False)
    found = {
        claim.key: to_data(measured(claim, frame))
        for number in plan.figures
        for claim in claims_of(plan.family, number)
    }
    record = {
        "family": plan.family,
        "figures": plan.figures,
        "trace": "philly" if plan.traced else None,
        "command": plan.command,
        "date": date.today().isoformat(),
        "version": version("hindsched"),
        "full_scale": plan.is_full,
        "quick": plan.quick,
        "seeds": plan.seeds,
        "settings": plan.settings,
        "rows": len(frame),
        "cpu_seconds": round(seconds, 1),
        "share_of_full": _share_of_full(plan, scale),
        "probe": None if plan.is_full else (stored(plan.name) or {}).get("probe"),
        "claims": found,
    }
    store(plan, record)
    print(f"{plan.name}: {seconds:.0f} s of processor time", flush=True)


def store(plan: Plan, record: dict[str, Any]) -> None:
    STORED.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (STORED / f"{plan.name}.json").write_text(text + "\n")


def _share_of_full(plan: Plan, scale: FigureScale) -> float | None:
    """Runs made over the runs of the full experiment; None if they are smaller runs."""
    if plan.quick or any(name not in scale.axes for name in plan.settings):
        return None
    return part(scale)


def probe_full(plan: Plan, seconds: float) -> dict[str, Any]:
    """What the experiment takes at full scale, kept beside what is stored of it."""
    found = probe(figure(plan.family, plan.figures[0]).run, seconds, _trace(plan))
    kept = stored(plan.name)
    if kept is not None:
        store(plan, {**kept, "probe": found})
    print(f"{plan.name}: {probed(found)}", flush=True)
    return found


def expected_seconds(plan: Plan) -> float:
    """What a run of the experiment took so far, by which the cheap ones come first."""
    kept = stored(plan.name)
    return 0.0 if kept is None else kept["cpu_seconds"] / kept["seeds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--full", action="store_true", help="at the papers' scale with 5 seeds")
    parser.add_argument("--quick", action="store_true", help="small instances")
    parser.add_argument("--seeds", type=int, default=QUICK_SEEDS, help="of --quick")
    parser.add_argument("--probe", type=float, help="seconds to measure what the full scale needs")
    parser.add_argument("--at-most", type=float, help="with --full: leave what needs more seconds")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--again", action="store_true", help="run what is stored, too")
    parser.add_argument("names", nargs="*", help="experiments, as oasis-3; all if none is named")
    chosen = parser.parse_args()
    check_plan()
    for plan in () if chosen.page else sorted(PLAN, key=expected_seconds):
        if chosen.names and plan.name not in chosen.names:
            continue
        wanted = plan.at_full_scale() if chosen.full or chosen.probe else plan
        wanted = plan.quickly(chosen.seeds) if chosen.quick else wanted
        kept = stored(wanted.name)
        is_kept = kept is not None and size_of(kept) >= wanted.size
        if is_kept and not chosen.again:
            continue
        if wanted.traced and "HINDSCHED_TRACES" not in os.environ:
            print(f"{wanted.name}: needs HINDSCHED_TRACES, the folder with {TRACE}")
            continue
        if chosen.probe:
            probe_full(plan, chosen.probe)
        elif not chosen.at_most or seconds_needed(probe_full(plan, PROBE)) <= chosen.at_most:
            run(wanted)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
