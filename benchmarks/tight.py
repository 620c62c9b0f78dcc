"""Bound and schedule at the papers' sizes; the table of docs/results/scale.md.

    python benchmarks/tight.py [--case NAME ...] [--folder DIR] [--threads N]

Every solve is a process of its own, in which a small instance was solved before, so that imports
and compilation do not count. What is in the folder is not measured again. With ``--processor`` all
limits count processor time, for a machine that does other things meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from cpu_clock import count_cpu_seconds
from marked import write_between

import hindsched as hs

PAGE = Path("docs/results/scale.md")
MARK = "<!-- tight: made by benchmarks/tight.py -->"
LOADS: dict[str, dict[str, Any]] = {
    "default": {},
    "capacity fraction 0.2": {"capacity_fraction": 0.2},
    "no capacity fraction": {"capacity_fraction": None},
}
ARCHITECTURES = {"PS": "parameter-server", "Ring-AllReduce": "ring-allreduce"}
SERVERS, DURATIONS, SEEDS = (5, 10, 25, 50), (2, 4, 10), 40
"""The small instances of oasis take turns through both, with another seed each."""


def small(seed: int) -> hs.Instance:
    """Make a small instance of oasis."""
    servers = SERVERS[seed % len(SERVERS)]
    duration = DURATIONS[seed // len(SERVERS) % len(DURATIONS)]
    return hs.generate(
        "oasis", "paper", seed, jobs=10, horizon=10, servers=servers, max_duration=duration
    )


def batchsched(architecture: str, load: str) -> hs.Instance:
    """Make an instance of batchsched at the paper's size."""
    chosen = ARCHITECTURES[architecture]
    return hs.generate("batchsched", "paper", 0, architecture=chosen, **LOADS[load])


CASES: dict[str, tuple[Any, float]] = {
    "oasis, T = 100, 100 jobs": (lambda: hs.named_instance("oasis-t100-i100-h50-s0"), 60.0),
    **{
        f"batchsched, {architecture}, {load}": (
            lambda architecture=architecture, load=load: batchsched(architecture, load),
            60.0,
        )
        for architecture in ARCHITECTURES
        for load in LOADS
    },
    **{f"oasis, T = 10, seed {seed}": (lambda seed=seed: small(seed), 60.0)
       for seed in range(SEEDS)},
    "oasis, T = 300, 300 jobs": (lambda: hs.named_instance("oasis-t300-i300-h50-s0"), 300.0),
}  # fmt: skip
"""The instance and the limit in seconds."""
REACH = {
    "oasis, T = 100, 100 jobs": "gap 5 %",
    "oasis, T = 300, 300 jobs": "gap 8 %",
    "batchsched, PS, default": "ratio 1.00",
    "batchsched, PS, capacity fraction 0.2": "ratio 1.01",
    "batchsched, PS, no capacity fraction": "ratio 1.12",
    "batchsched, Ring-AllReduce, default": "ratio 1.00",
    "batchsched, Ring-AllReduce, capacity fraction 0.2": "ratio 1.01",
    "batchsched, Ring-AllReduce, no capacity fraction": "ratio 1.08",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", help="words that a case's name contains")
    parser.add_argument("--folder", default="build/tight")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--measure")
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure, chosen.threads, processor=chosen.processor)))
        return
    folder = Path(chosen.folder)
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    for case in CASES:
        if chosen.case and not any(words in case for words in chosen.case):
            continue
        if case in read(results):
            continue
        given = ["--threads", str(chosen.threads), *["--processor"] * chosen.processor]
        command = [sys.executable, __file__, "--measure", case, *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(case, done.stderr[-500:], flush=True)
            continue
        line = done.stdout.splitlines()[-1]
        with results.open("a") as stream:
            stream.write(line + "\n")
        print(line, flush=True)
    write_page(read(results))


def read(results: Path) -> dict[str, Any]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {row["case"]: row for row in map(json.loads, lines)}


def measure(case: str, threads: int, *, processor: bool) -> dict[str, Any]:
    """Solve one case, after its family was compiled."""
    make, seconds = CASES[case]
    if processor:
        count_cpu_seconds()
    instance = make()
    hs.solve(hs.generate(instance.family, "small", 0), time_limit=3, threads=1)
    begin, spent = time.perf_counter(), processor_seconds()
    result = hs.solve(instance, time_limit=seconds, threads=threads)
    return {
        "case": case,
        "limit": seconds,
        "threads": threads,
        "objective": result.objective,
        "bound": result.bound,
        "gap": abs(result.bound - result.objective) / abs(result.bound),
        "stopped_by": str(result.stopped_by),
        "seconds": time.perf_counter() - begin,
        "processor_seconds": processor_seconds() - spent,
    }


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def write_page(rows: dict[str, Any]) -> None:
    lines = [
        f"Measured on {datetime.now(UTC).date()}, {os.cpu_count()} cores.",
        "",
        "| case | reach | schedule | bound | gap | schedule / bound | seconds, of the processor |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, row in rows.items():
        if "seed" in case:
            continue
        ratio = row["objective"] / row["bound"]
        lines.append(
            f"| {case} | {REACH[case]} | {row['objective']:,.2f} | {row['bound']:,.2f} | "
            f"{row['gap']:.2%} | {ratio:.4f} | {row['seconds']:.0f}, "
            f"{row['processor_seconds']:.0f} |"
        )
    few = [row for case, row in rows.items() if "seed" in case]
    if few:
        proven = [row for row in few if row["gap"] <= 1e-6]
        spent = median(row["processor_seconds"] for row in few)
        gone = median(row["seconds"] for row in few)
        lines += [
            "",
            f"oasis with T = 10, 10 jobs, 5 to 50 servers: {len(proven)} of {len(few)} instances "
            f"proven in {few[0]['limit']:.0f} s; median {gone:.1f} s, of the processor "
            f"{spent:.1f} s (reach: all, 5 s).",
        ]
    write_between(PAGE, MARK, lines)


if __name__ == "__main__":
    main()
