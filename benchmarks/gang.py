"""Measure bounds, schedules and policies of gang on lists of real traces.

    HINDSCHED_TRACES=... python benchmarks/gang.py [--case NAME ...] [--results FILE]

Each case is solved by ``auto`` on one core, its time limit counted in processor time so that a
loaded machine finds the same; its certificate is verified twice, by ``verify`` and by the exact
kernel, and every policy is replayed. Results are kept in a file, a JSON object a line, and not
measured again; the page is rewritten with all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
from cpu_clock import count_cpu_seconds

import hindsched as hs
from hindsched.instances.base import Instance
from hindsched.instances.gang.generator import from_trace
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.instances.io import write
from hindsched.instances.traces.table import load_trace
from hindsched.solvers.certificates.file import verify_certificate, write_certificate
from hindsched.solvers.families.gang.replay import POLICIES, replay

TRACES = Path(os.environ["HINDSCHED_TRACES"])
PAGE = Path("docs/results/gang.md")
CASES: dict[str, tuple[str, int, float]] = {
    "200": ("cluster05, first 200", 16, 30),
    "1000": ("cluster05, first 1,000", 16, 45),
    "3629": ("cluster05", 16, 50),
    "cluster09": ("cluster09", 32, 50),
    "cluster02": ("cluster02", 128, 50),
    "6c71a0": ("Philly, virtual cluster 6c71a0", 32, 30),
    "ee9e8c": ("Philly, virtual cluster ee9e8c", 128, 30),
    "pool": ("all ten clusters as one pool", 1280, 45),
}
"""What is solved, on how many GPUs, and in how many seconds of processor time."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--results", default="gang-results.jsonl")
    arguments = parser.parse_args()
    count_cpu_seconds()
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
    found = [known[case] for case in CASES if case in known]
    page = PAGE.read_text(encoding="utf-8")
    for name, table in (("bounds", lines(found)), ("policies", policy_lines(found))):
        begin, end = f"<!-- made by benchmarks/gang.py: {name} -->", "<!-- end -->"
        head, rest = page.split(begin)
        page = head + "\n".join([begin, *table, end]) + rest.split(end, 1)[1]
    PAGE.write_text(page, encoding="utf-8")


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
    philly = CASES[case][0].startswith("Philly")
    path = "philly/philly.csv.gz" if philly else "elasticflow/raw-traces.tar.gz"
    table = load_trace(TRACES / path, "philly" if philly else "elasticflow")
    if case != "pool":
        table = table.part(case)
    return from_trace(table, jobs=len(table), gpus=gpus, clip=True)


def measure(case: str) -> dict[str, Any]:
    """Solve a case, verify its certificate in both ways and replay every policy."""
    instance = jobs_of(case)
    assert isinstance(instance, GangInstance)
    weight = float(instance.weights.sum())
    policies: dict[str, dict[str, float]] = {}
    for name in POLICIES:
        replay(instance, name)  # no time for the compiler
        begin = time.process_time()
        mean = replay(instance, name).objective() / weight
        policies[name] = {"mean": mean, "cpu": time.process_time() - begin}
    begin = time.process_time()
    result = hs.solve(instance, time_limit=CASES[case][2], threads=1)
    solved = time.process_time() - begin
    assert result.certificate is not None
    assert result.objective is not None
    file = result.certificate.to_dict()
    begin = time.process_time()
    verified = verify_certificate(instance, file)
    return {
        "case": case,
        "jobs": len(instance.jobs),
        "bound": verified.bound / weight,
        "found": result.objective / weight,
        "gap": 1 - verified.bound / result.objective,
        "intervals": result.certificate.rows.size,
        "cpu": solved,
        "verify": time.process_time() - begin,
        "kernel": kernel_seconds(instance, result.certificate),
        "policies": policies,
    }


def kernel_seconds(instance: Instance, certificate: Any) -> float:
    """Processor time in which the exact kernel, a process of its own, accepts a certificate."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("instance.json", "certificate.json")]
        write(instance, files[0])
        write_certificate(certificate, files[1])
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        limits = ["--limit=steps=1000000000000", "--limit=items=10000000"]
        command = [sys.executable, "-m", "hindsched.kernel", *map(str, files), *limits]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table of bounds and schedules in Markdown."""
    found = [
        "| list | jobs | GPUs | strict FIFO | best possible >= | found | gap | CPU s | "
        "verified in | by the kernel in |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name, gpus, _ = CASES[row["case"]]
        fifo = row["policies"]["fifo"]["mean"]
        kernel = "" if row["kernel"] is None else f"{row['kernel']:.0f} s"
        found.append(
            f"| {name} | {row['jobs']:,} | {gpus:,} | {fifo:,.0f} | {row['bound']:,.0f} | "
            f"{row['found']:,.0f} | {row['gap']:.2%} | {row['cpu']:.0f} | "
            f"{row['verify']:.1f} s | {kernel} |"
        )
    return found


def policy_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table of policies on the largest lists in Markdown: mean and seconds."""
    shown = [row for row in rows if row["case"] in ("3629", "pool") and len(row["policies"]) > 1]
    columns = [f"{CASES[row['case']][0]}: mean, s | CPU s" for row in shown]
    found = [f"| policy | {' | '.join(columns)} |", "|---|" + "---|---|" * len(shown)]
    for name in POLICIES:
        cells = [
            f"{row['policies'][name]['mean']:,.0f} | {row['policies'][name]['cpu']:.2f}"
            for row in shown
        ]
        found.append(f"| `{name}` | {' | '.join(cells)} |")
    return found


if __name__ == "__main__":
    main()
