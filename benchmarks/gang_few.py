"""Measure how few rigid jobs are solved by the order of their starts, beside CP-SAT.

    python benchmarks/gang_few.py [--jobs 4 6 8 ...] [--seeds 40] [--write]

Jobs in seconds on 8 GPUs: durations log-normal with a median of 25 minutes, a submission in five
minutes on average. Every certificate is checked by the exact kernel, within its usual limits.
CP-SAT (one cumulative constraint, the same time limit and one worker) is measured where OR-Tools is
installed; it is no dependency. The page is rewritten with the table.
"""

from __future__ import annotations

import argparse
import time
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hindsched as hs
from hindsched import kernel
from hindsched.instances.gang.instance import GangInstance, gang_data

PAGE = Path("docs/results/gang.md")
LIMITS = {4: 2, 6: 2, 8: 2, 10: 20, 12: 20, 15: 30, 20: 30, 30: 30}
"""Seconds by number of jobs."""
GPUS = 8


def log_normal(jobs: int, seed: int) -> GangInstance:
    """A list in seconds."""
    draw = np.random.default_rng(seed)
    submit = np.floor(np.cumsum(draw.exponential(300, jobs)))
    duration = np.maximum(1, np.rint(draw.lognormal(np.log(1500), 1.0, jobs)))
    gpus = draw.choice([1, 2, 4, 8], jobs, p=[0.4, 0.25, 0.2, 0.15])
    records = [
        {"name": f"j{i}", "submit": int(s), "duration": int(p), "gpus": int(g)}
        for i, (s, p, g) in enumerate(zip(submit - submit[0], duration, gpus, strict=True))
    ]
    return GangInstance.parse(gang_data(f"few-{jobs}-{seed}", records, gpus=GPUS))


def measure(instance: GangInstance, seconds: float) -> dict[str, float]:
    """Gap, processor seconds, and those of the kernel."""
    begin = time.process_time()
    result = hs.solve(instance, time_limit=seconds, threads=1)
    cpu, begin = time.process_time() - begin, time.process_time()
    assert result.certificate is not None
    assert result.objective is not None
    file = result.certificate.to_dict()
    bound = float(kernel.bound(instance.to_dict(), file, kernel.LIMITS).low)
    checked = time.process_time() - begin
    return {"gap": (result.objective - bound) / bound, "cpu": cpu, "kernel": checked}


def cp_sat(instance: GangInstance, seconds: float) -> dict[str, float] | None:
    """The same by CP-SAT; None where it is not installed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    model, spans, ends = cp_model.CpModel(), [], []
    last = instance.serial_end
    for s, p in zip(instance.submits.tolist(), instance.durations.tolist(), strict=True):
        start = model.new_int_var(s, last, "")
        spans.append(model.new_fixed_size_interval_var(start, p, ""))
        ends.append(start + (p - s))
    model.add_cumulative(spans, instance.job_gpus.tolist(), GPUS)
    model.minimize(sum(ends))
    solver, begin = cp_model.CpSolver(), time.process_time()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.solve(model)
    gap = (solver.objective_value - solver.best_objective_bound) / solver.best_objective_bound
    return {"gap": gap, "cpu": time.process_time() - begin}


def row(jobs: int, found: list[dict[str, float]], rival: list[dict[str, float]]) -> str:
    """A line of the table."""

    def told(rows: list[dict[str, float]]) -> list[str]:
        gaps = [each["gap"] for each in rows]
        proven = f"{sum(gap <= 1e-9 for gap in gaps)} of {len(gaps)}"
        cpu = [each["cpu"] for each in rows]
        spent = f"{median(cpu):.1f} | {max(cpu):.1f}"
        return [proven, f"{median(gaps):.1%}", f"{max(gaps):.1%}", spent]

    checked = f"{max(each['kernel'] for each in found):.1f}"
    cells: list[Any] = [jobs, LIMITS[jobs], *told(found), checked]
    return f"| {' | '.join(map(str, [*cells, *(told(rival) if rival else ['-'] * 5)]))} |"


HEAD = [
    "| jobs | limit, s | proven | median gap | largest gap | CPU s, median | largest | kernel s, "
    "largest | CP-SAT: proven | median gap | largest gap | CPU s, median | largest |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, nargs="+", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--write", action="store_true", help="rewrite the page")
    arguments = parser.parse_args()
    hs.solve(log_normal(20, 1000), time_limit=60)  # no time for the compiler
    lines, apart = list(HEAD), get_context("spawn").Pool(1)  # OR-Tools brings a HiGHS of its own
    for jobs in arguments.jobs:
        lists = [log_normal(jobs, seed) for seed in range(arguments.seeds)]
        found = [measure(instance, LIMITS[jobs]) for instance in lists]
        rival = apart.starmap(cp_sat, [(instance, LIMITS[jobs]) for instance in lists])
        lines.append(row(jobs, found, [each for each in rival if each is not None]))
        print(lines[-1], flush=True)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = "<!-- made by benchmarks/gang_few.py -->", "<!-- end -->"
        head, rest = page.split(begin)
        page = head + "\n".join([begin, *lines, end]) + rest.split(end, 1)[1]
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
