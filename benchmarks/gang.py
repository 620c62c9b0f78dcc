"""Measure bounds and schedules of gang on lists of a real trace; the table of ``docs/gang.md``.

    HINDSCHED_TRACES=... python benchmarks/gang.py [--case NAME ...] [--results FILE]

Each case is solved by ``auto`` with its time limit, and its certificate verified. Results are kept
in a file, a JSON object a line, and not measured again; the page is rewritten with all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import pandas as pd

import hindsched as hs
from hindsched.instances.base import Instance
from hindsched.instances.gang.generator import from_trace
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.instances.traces.loading import load_trace
from hindsched.online.gang.replay import replay
from hindsched.solvers.certificate_file import verify_certificate

TRACES = Path(os.environ["HINDSCHED_TRACES"])
PAGE = Path("docs/gang.md")
BEGIN, END = "<!-- made by benchmarks/gang.py -->", "<!-- end -->"
CASES: dict[str, tuple[str, int, float]] = {
    "200": ("cluster05, first 200", 16, 30),
    "1000": ("cluster05, first 1,000", 16, 60),
    "3629": ("cluster05", 16, 120),
    "cluster09": ("cluster09", 32, 300),
    "cluster02": ("cluster02", 128, 300),
    "pool": ("all ten clusters as one pool", 1280, 1200),
}
"""What is solved, on how many GPUs, and in how many seconds."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--results", default="gang-results.jsonl")
    arguments = parser.parse_args()
    results = Path(arguments.results)
    known = {}
    if results.exists():
        known = {row["case"]: row for row in map(json.loads, results.read_text().splitlines())}
    for case in arguments.case or CASES:
        if case not in known:
            known[case] = measure(case)
            with results.open("a") as stream:
                stream.write(json.dumps(known[case]) + "\n")
            print(known[case], flush=True)
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table = "\n".join([BEGIN, *lines([known[case] for case in CASES if case in known]), END])
    PAGE.write_text(head + table + rest.split(END)[1], encoding="utf-8")


def jobs_of(case: str) -> Instance:
    """The list of a case."""
    gpus = CASES[case][1]
    if case.isdigit():
        rows = pd.read_csv(TRACES / f"workloads/w_ef05_{case}_job.csv.gz")
        records = [
            {"name": f"j{row.job_id}", "submit": int(row.submit_time),
             "duration": int(row.duration), "gpus": int(row.num_gpu)}
            for row in rows.itertuples()
        ]  # fmt: skip
        return GangInstance.parse(gang_data(f"cluster05-{case}", records, gpus=gpus))
    table = load_trace(TRACES / "elasticflow/raw-traces.tar.gz", "elasticflow")
    if case != "pool":
        table = table.part(case)
    return from_trace(table, jobs=len(table), gpus=gpus, clip=True)


def measure(case: str) -> dict[str, Any]:
    """Solve a case and verify its certificate."""
    instance = jobs_of(case)
    assert isinstance(instance, GangInstance)
    weight = float(instance.weights.sum())
    begin = _cpu()
    result = hs.solve(instance, time_limit=CASES[case][2])
    solved = _cpu() - begin
    assert result.certificate is not None
    assert result.objective is not None
    file = result.certificate.to_dict()
    since = time.perf_counter()
    verified = verify_certificate(instance, file)
    return {
        "case": case,
        "jobs": len(instance.jobs),
        "fifo": replay(instance, "fifo").objective() / weight,
        "bound": verified.bound / weight,
        "found": result.objective / weight,
        "gap": 1 - verified.bound / result.objective,
        "wall": result.seconds,
        "cpu": solved,
        "verify": time.perf_counter() - since,
    }


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table in Markdown."""
    found = [
        "| list of ElasticFlow | jobs | GPUs | strict FIFO | best possible >= | found | gap | "
        "CPU s of s allowed | certificate verified in |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name, gpus, limit = CASES[row["case"]]
        found.append(
            f"| {name} | {row['jobs']:,} | {gpus:,} | {row['fifo']:,.0f} | {row['bound']:,.0f} | "
            f"{row['found']:,.0f} | {row['gap']:.2%} | {row['cpu']:.0f} of {limit:,.0f} | "
            f"{row['verify']:.1f} s |"
        )
    return found


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
