"""How time and memory grow with the number of jobs, in every family.

    python benchmarks/scale.py [--case NAME ...] [--folder DIR] [--seconds 300]

Every step is a command. The steps of an instance run one after the other in a process that did the
same on a small instance before, so that imports and compilation do not count. Seconds are those of
the processor, so that a busy machine changes little; memory is the process' peak up to the end of
the step. What is in the folder is not measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marked import write_between

PAGE = Path("docs/results/scale.md")
MARK = "<!-- growth: made by benchmarks/scale.py -->"
CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "oasis": ("oasis", (100, 1_000, 10_000)),
    "batchsched": ("batchsched", (100, 1_000, 10_000)),
    "astraea": ("astraea", (100, 1_000, 10_000)),
    "edgecloud": ("edgecloud", (100, 1_000, 10_000)),
    "mlbroker": ("mlbroker", (15, 150, 1_500)),
    "gang": ("easy", (700, 7_000, 69_351)),
}
"""The online algorithm that runs, and the numbers of jobs."""
STEPS = ("generate", "describe", "simulate", "bound", "verify")
WORDS = {
    "generate": "`generate F --preset paper --set jobs=N`",
    "describe": "`describe`",
    "simulate": "`simulate --algorithm {algorithm}`",
    "bound": "a bound: reading all jobs, 5 evaluations, certificate",
    "verify": "`verify SOLUTION --prices CERTIFICATE --fast`",
}
EVALUATIONS = 5
"""Of all jobs, in the bound: its work is given, not its time."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--folder", default="build/scale")
    parser.add_argument("--seconds", type=int, default=600, help="of the processor for all steps")
    parser.add_argument("--measure", nargs=2, metavar=("FAMILY", "JOBS"))
    chosen = parser.parse_args()
    folder = Path(chosen.folder)
    if chosen.measure:
        measure(chosen.measure[0], int(chosen.measure[1]), folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    for family in chosen.case or CASES:
        for jobs in CASES[family][1]:
            if (family, jobs, STEPS[0]) in read(results):
                continue
            for line in in_process(family, jobs, folder, chosen.seconds):
                with results.open("a") as stream:
                    stream.write(line + "\n")
                print(line, flush=True)
    write_page(read(results))


def read(results: Path) -> dict[tuple[str, int, str], Any]:
    lines = results.read_text().splitlines() if results.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(family, jobs, step): found for family, jobs, step, found in rows}


def in_process(family: str, jobs: int, folder: Path, seconds: int) -> list[str]:
    """A line a step, measured in a process of its own that may use so many processor seconds."""
    command = [sys.executable, __file__, "--folder", str(folder), "--measure", family, str(jobs)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    run = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    lines = run.stdout.splitlines()
    done = {json.loads(line)[2] for line in lines}
    why = f"more than {seconds} s in all" if run.returncode < 0 else "not measured"
    if run.returncode > 0:
        print(run.stderr, file=sys.stderr)
    missing = [step for step in STEPS if step not in done]
    lines += [json.dumps([family, jobs, step, {"seconds": None, "why": why}]) for step in missing]
    return lines


def measure(family: str, jobs: int, folder: Path) -> None:
    """Print processor seconds of every step, after the same on a small instance, and the peak."""
    with tempfile.TemporaryDirectory() as small:
        for step in STEPS:
            run_step(step, family, CASES[family][1][0] // 5, Path(small))
    for step in STEPS:
        began = time.process_time()
        run_step(step, family, jobs, folder)
        spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([family, jobs, step, {"seconds": spent, "mb": peak}]), flush=True)


def run_step(step: str, family: str, jobs: int, folder: Path) -> None:
    name = folder / f"{family}-{jobs}"
    file, solution, prices = f"{name}.json", f"{name}-solution.json", f"{name}-prices.json"
    if step == "bound":
        bound(file, prices)
        return
    arguments = {
        "generate": ["generate", family, "--preset", "paper", "--set", f"jobs={jobs}", "-o", file],
        "describe": ["describe", file],
        "simulate": ["simulate", file, "--algorithm", CASES[family][0], "-o", solution],
        "verify": ["verify", file, solution, "--prices", prices, "--fast"],
    }[step]
    from hindsched.cli.app import run

    with contextlib.redirect_stdout(io.StringIO()):
        code = run(arguments)
    if code:
        raise SystemExit(code)


def bound(file: str, prices: str) -> None:
    """What ``solve --method bound`` does, with its number of evaluations given."""
    from hindsched.instances.io import read
    from hindsched.solvers.base import build_oracle
    from hindsched.solvers.bounds.lagrangian import subgradient_bound
    from hindsched.solvers.certificates.file import write_certificate

    found = subgradient_bound(build_oracle(read(file)), max_iterations=EVALUATIONS)
    write_certificate(found.certificate, prices)


def write_page(known: dict[tuple[str, int, str], Any]) -> None:
    today = datetime.now(UTC).date().isoformat()
    lines = [f"Measured on {today}, {os.cpu_count()} cores, processor seconds.", ""]
    lines.append("| family | step | jobs | seconds | exponent | peak memory so far, MB |")
    lines.append("|---|---|---|---|---|---|")
    for family, (algorithm, all_sizes) in CASES.items():
        for step, words in WORDS.items():
            sizes: Sequence[int] = all_sizes
            found = [known.get((family, jobs, step)) for jobs in sizes]
            done = [(n, each) for n, each in zip(sizes, found, strict=True) if each]
            if not done:
                continue
            sizes, found = (list(column) for column in zip(*done, strict=True))
            label = words.format(algorithm=algorithm).replace(" F ", f" {family} ")
            lines.append(
                f"| {family} | {label} | {' / '.join(f'{jobs:,}' for jobs in sizes)} | "
                f"{' / '.join(shown(each) for each in found)} | {exponent(sizes, found)} | "
                f"{' / '.join(megabytes(each) for each in found)} |"
            )
    write_between(PAGE, MARK, lines)


def shown(found: dict[str, Any]) -> str:
    seconds = found["seconds"]
    return found["why"] if seconds is None else f"{seconds:.3g}"


def megabytes(found: dict[str, Any]) -> str:
    return "-" if found["seconds"] is None else f"{found['mb']:,.0f}"


def exponent(sizes: Sequence[int], found: list[dict[str, Any]]) -> str:
    """Of time ~ jobs ** exponent, between the two largest sizes that were measured."""
    done = [(jobs, each["seconds"]) for jobs, each in zip(sizes, found, strict=True)
            if each["seconds"] is not None]  # fmt: skip
    if len(done) < 2 or min(done[-2][1], done[-1][1]) <= 0:
        return "-"
    (few, short), (many, long) = done[-2:]
    return f"{math.log(long / short) / math.log(many / few):.2f}"


if __name__ == "__main__":
    main()
