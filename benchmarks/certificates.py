"""Certified bounds against the linear relaxation of the strong program solved by HiGHS.

    python benchmarks/certificates.py [--seconds 30] [--interval 60] [INSTANCE ...]

Everything in one table comes from one run on one machine. Bounds of the engines are recomputed from
their prices alone. ``excess`` is relative to the Dantzig-Wolfe bound where column generation
converged in the run (then no prices can do better), and else to the best bound of the run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from hindsched.instances.io import read
from hindsched.solvers.bounds.lagrangian import evaluate, subgradient_bound
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.tree.node_program import column_generation_bound

DATA = Path(__file__).parents[1] / "tests/data/instances"
DEFAULT = ("oasis-t10-i10-h10-s0", "oasis-t100-i100-h50-s0", "oasis-t300-i300-h50-s0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of each bound")
    parser.add_argument("--interval", type=float, default=60.0, help="limit of method auto")
    parser.add_argument("instances", nargs="*", default=DEFAULT)
    chosen = parser.parse_args()
    for name in chosen.instances:
        compare(DATA / f"{name}.json", chosen.seconds, chosen.interval)


def compare(path: Path, seconds: float, interval: float) -> None:
    instance = read(path)
    oracle = build_oracle(instance)
    options = SolveOptions(time_limit=seconds)
    evaluate(oracle, oracle.rows.pack({}))  # compile
    print(f"\n{instance.name}: {oracle.num_blocks} jobs, {oracle.rows.size} rows")
    rows = []

    def add(method: str, bound: float | None, spent: float, note: str) -> None:
        rows.append((method, bound, spent, note))

    found = subgradient_bound(oracle, options)
    per_step = 1000 * found.seconds / max(1, found.iterations)
    add("subgradient", found.bound, found.seconds, f"{per_step:.1f} ms an iteration")
    warm = subgradient_bound(oracle, max_iterations=150).prices
    masters = []
    columns = column_generation_bound(oracle, options, start_prices=warm)
    master = columns.details["master_value"]
    if columns.stopped_by == "converged":
        masters.append(master)
    note = f"{columns.stopped_by}, master {master:.3f}" if master else str(columns.stopped_by)
    add("columns", columns.bound, columns.seconds, note)
    begin = time.perf_counter()
    relaxed = solve(instance, "relaxation", time_limit=seconds, solver_options={"solver": "ipm"})
    add("HiGHS, LP relaxation", relaxed.bound, time.perf_counter() - begin, str(relaxed.stopped_by))
    known = [bound for _, bound, _, _ in rows if bound is not None]
    reference = max(masters, default=min(known))
    print(f"{'method':24} {'bound':>12} {'excess':>9} {'seconds':>8}  note")
    for method, bound, spent, note in rows:
        shown = "none" if bound is None else f"{bound:.3f}"
        excess = "" if bound is None else f"{bound / reference - 1:.3%}"
        print(f"{method:24} {shown:>12} {excess:>9} {spent:8.1f}  {note}")
    result = solve(instance, time_limit=interval)
    print(
        f"auto ({result.method}), {result.seconds:.1f} s: "
        f"[{result.objective:.3f}, {result.bound:.3f}], "
        f"upper / lower = {result.bound / result.objective:.4f}, "
        f"certified {result.certificate.bound:.3f}"
    )


if __name__ == "__main__":
    main()
