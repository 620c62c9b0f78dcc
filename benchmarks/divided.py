"""What a bound that is divided over workers moves and takes; PDLP against prices.

    python benchmarks/divided.py [--jobs 10000 100000] [--evaluations 3]

The instance is the preset ``paper`` of oasis with 10,000 jobs, larger ones repeat its jobs. One
process and two workers of a Dask scheduler over TCP evaluate the same prices; the bounds are
compared to the last bit. Seconds are of the clock. The second table gives the strong linear
relaxation of batchsched to HiGHS's PDLP and to the price method.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from marked import write_between

import hindsched as hs
from hindsched.analysis.distributed_bound import ClusterTeam
from hindsched.analysis.sweep import connect
from hindsched.solvers.bounds.distributed import DividedOracle
from hindsched.solvers.oracles.base import build_oracle

PAGE = Path("docs/results/scale.md")
MARK = "<!-- divided: made by benchmarks/divided.py -->"
MILLION, MINUTES, ITERATIONS = 1_000_000, 10, 300
"""The plan on paper: so many jobs bounded by so many evaluations in so many minutes."""
LINK_BYTES_A_SECOND = 1.25e8
"""A link of 1 Gbit/s."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of PDLP and of prices")
    parser.add_argument("--folder", default="build/scale", help="of results, not measured again")
    chosen = parser.parse_args()
    kept = Path(chosen.folder) / "divided.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(kept.read_text()) if kept.exists() else {}
    for jobs in map(str, chosen.jobs):
        if jobs not in known:
            known[jobs] = divided(int(jobs), chosen.evaluations)
            kept.write_text(json.dumps(known))
    if "first order" not in known:
        known["first order"] = first_order(chosen.seconds)
        kept.write_text(json.dumps(known))
    write_page(known)


def write_page(known: dict[str, Any]) -> None:
    rows = [row for name, found in known.items() if name.isdigit() for row in found]
    lines = [
        f"Measured on {datetime.now(UTC).date().isoformat()}, {os.cpu_count()} cores, both"
        " workers on this machine.",
        "",
        "| jobs | workers | s an evaluation | bytes an evaluation | MB held by a worker at first |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['jobs']:,} | {row['workers']} | {row['seconds']:.2f} | {row['bytes']:,} | "
            f"{row['megabytes']:.1f} |"
        )
    lines += ["", *plan(rows), "", *known.get("first order", [])]
    write_between(PAGE, MARK, lines)


def divided(jobs: int, evaluations: int) -> list[dict[str, Any]]:
    """Seconds and bytes of an evaluation, by one process and by two workers."""
    first = hs.generate("oasis", "paper", 1, jobs=min(10_000, jobs))
    copies = range(math.ceil(jobs / len(first.jobs)))
    many = tuple(
        job.model_copy(update={"name": f"{job.name}-{k}"}) for k in copies for job in first.jobs
    )
    instance = first.with_jobs(many[:jobs])
    oracle = build_oracle(instance)
    prices = 1e-2 / np.maximum(np.abs(oracle.rows.capacity), 1.0)
    found, bounds = [], []
    ways = {"one process": None, "2 of Dask, TCP": dask_team()}
    for name, team in ways.items():
        with ExitStack() as stack:
            asked = oracle
            share = 0.0
            if team is not None:
                members = stack.enter_context(team)
                asked = DividedOracle(oracle, members)
                share = len(pickle.dumps(oracle.of_blocks(slice(0, None, 2)))) / 1e6
            bounds.append(asked.bound(prices))  # the shares are read
            began, before = time.perf_counter(), time.process_time()
            for _ in range(evaluations):
                asked.block_values(prices)
            seconds = (time.perf_counter() - began) / evaluations
            own = (time.process_time() - before) / evaluations
            moved = 0 if team is None else members.bytes_moved // members.evaluations
        found.append({"jobs": jobs, "workers": name, "seconds": seconds, "own": own,
                      "bytes": moved, "megabytes": share})  # fmt: skip
        print(found[-1], flush=True)
    assert len(set(bounds)) == 1
    return found


@contextmanager
def dask_team():
    """Two Dask workers, processes of their own, over TCP."""
    from distributed import Client, LocalCluster

    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny",
              "--no-dashboard"]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with LocalCluster(
        n_workers=0, processes=False, dashboard_address=None, protocol="tcp://"
    ) as cluster:
        address = cluster.scheduler_address
        workers = [subprocess.Popen([*worker, address], **quiet) for _ in range(2)]
        try:
            with Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(2)
            with closing(connect(address)) as client:
                yield ClusterTeam(client, address)
        finally:
            for each in workers:
                each.kill()
                each.wait()


def plan(rows: list[dict[str, Any]]) -> list[str]:
    """How many machines a million jobs need, from the processor time of the first size."""
    alone, dask = rows[:2]
    jobs = alone["jobs"]
    work = alone["own"] * MILLION / jobs
    one_way = dask["bytes"] / 2
    cores = math.ceil(work * ITERATIONS / (60 * MINUTES))
    traffic = cores * one_way / LINK_BYTES_A_SECOND
    held = 2 * dask["megabytes"] * MILLION / jobs
    return [
        f"**A million jobs on paper.** One evaluation is {work:.0f} s of one core (linear in the"
        f" jobs, processor time at {jobs:,}); {ITERATIONS} evaluations in {MINUTES} minutes need"
        f" {cores} cores, {math.ceil(cores / 32)} machines of 32. All shares together are"
        f" {held / 1000:.1f} GB as they travel, once. In an evaluation each worker gets and sends"
        f" {one_way / 2:,.0f} bytes, whatever the number of jobs: {cores} workers through one link"
        f" of 1 Gbit/s take {traffic:.2f} s of the {60 * MINUTES / ITERATIONS:.1f} s that an"
        " evaluation has. One process a machine that adds up its cores' uses divides that by the"
        " cores of a machine.",
    ]


def first_order(limit: float) -> list[str]:
    """The strong relaxation of batchsched by HiGHS's PDLP, simplex and IPX, and by prices."""
    from hindsched.models.base import offline_program
    from hindsched.solvers.door.options import SolveOptions
    from hindsched.solvers.door.program import solve_program

    lines = [
        "| batchsched, jobs | way | bound | s | what it is worth |",
        "|---|---|---|---|---|",
    ]
    for jobs in (10, 40):
        instance = hs.generate("batchsched", "paper", 0, jobs=jobs, servers=6, horizon=30)
        began = time.perf_counter()
        prices = hs.solve(instance, "bound", time_limit=limit)
        spent = time.perf_counter() - began
        worth = "certified: `verify` recomputes it"
        lines.append(f"| {jobs} | prices | {prices.bound:,.1f} | {spent:.1f} | {worth} |")
        print(lines[-1], flush=True)
        began = time.perf_counter()
        program = offline_program(instance, relax=True)
        built = time.perf_counter() - began
        for solver in ("pdlp", "ipx", "simplex"):
            options = SolveOptions(time_limit=limit, solver_options={"solver": solver})
            began = time.perf_counter()
            found = solve_program(program.model, options, want_duals=True)
            spent = time.perf_counter() - began
            value = found.objective if found.bound is None else found.bound
            shown = "-" if value is None else f"{value:,.1f}"
            lines.append(
                f"| {jobs} | HiGHS {solver} | {shown} | {spent:.1f} + {built:.1f} to build | "
                f"{found.status}, the solver's word |"
            )
            print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    main()
