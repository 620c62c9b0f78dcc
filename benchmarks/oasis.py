"""The oasis family: forms of the offline program, and who computes best responses.

    python benchmarks/oasis.py [--seconds 60] [--model-jobs 10]

Two tables, each with its rivals in the same run: the form `cumulative` against the printed
one (T = 10, 10 jobs, 5, 10 and 25 servers of each role); a decision of OASiS by the
worker-slot program, by the paper's chunk program and by the integer program (T = 100, 50 + 50
servers).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import mean, median

from hindsched.instances.io import read
from hindsched.models.base import offline_program
from hindsched.models.oasis import offline as models
from hindsched.online.simulator import simulate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program

DATA = Path(__file__).parents[1] / "tests/data/instances"
SMALL = ("oasis-t10-i10-h5-s1", "oasis-t10-i10-h10-s0", "oasis-t10-i10-h25-s0")
LARGE = ("oasis-t100-i100-h50-s0", "oasis-t300-i300-h50-s0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each solve")
    parser.add_argument("--model-jobs", type=int, default=10, help="jobs of the model engine")
    chosen = parser.parse_args()
    compare_forms(chosen.seconds)
    compare_engines(chosen.model_jobs)


def compare_forms(seconds: float) -> None:
    print("Forms of the offline program; times as ratios to the printed form\n")
    print(f"{'instance':22} {'form':11} {'columns':>8} {'build s':>8} {'solve s':>8} {'ratio':>6} "
          f"{'LP bound':>9} {'objective':>9} {'bound':>9} {'gap':>7} placed")  # fmt: skip
    for name in SMALL:
        instance = read(DATA / f"{name}.json")
        forms = models.FORMS["standard"]
        measured = {form: measure_form(instance, form, seconds) for form in forms}
        rival = sum(measured["printed"][1:3])
        for form, (columns, build, solve, relaxed, result, placed) in measured.items():
            gap = abs(result.bound - result.objective) / abs(result.bound)
            print(f"{name:22} {form:11} {columns:8d} {build:8.3f} {solve:8.2f} "
                  f"{(build + solve) / rival:6.2f} {relaxed:9.3f} {result.objective:9.3f} "
                  f"{result.bound:9.3f} {gap:7.2%} {placed}")  # fmt: skip


def measure_form(instance, form, seconds):
    begin = time.perf_counter()
    model = offline_program(instance, form=form)
    build = time.perf_counter() - begin
    result = solve_program(model.pyomo, SolveOptions(time_limit=seconds))
    solution = model.extract()
    placed = "yes" if solution is not None and solution.is_feasible() else "no"
    relaxed = solve_program(model.relax().pyomo).objective
    return model.pyomo.nvariables(), build, result.seconds, relaxed, result, placed


def compare_engines(model_jobs: int) -> None:
    instance = read(DATA / f"{LARGE[0]}.json")
    few = instance.with_jobs(instance.jobs[:model_jobs])
    runs = [
        ("worker-slot program", instance, "oasis", {}),
        ("chunk program", instance, "oasis-chunk", {}),
        (f"worker-slot, {model_jobs} jobs", few, "oasis", {}),
        (f"model engine, {model_jobs} jobs", few, "oasis", {"engine": "model"}),
    ]
    for _, cluster, algorithm, _ in runs[:2]:
        simulate(cluster, algorithm)  # compile
    print("\nMilliseconds a decision of OASiS, T = 100, 50 + 50 servers\n")
    print(f"{'best response':26} {'median':>9} {'mean':>9} {'max':>9} {'utility':>9}")
    for label, cluster, algorithm, settings in runs:
        result = simulate(cluster, algorithm, settings=settings)
        spent = result.decision_ms
        print(f"{label:26} {median(spent):9.3f} {mean(spent):9.3f} {max(spent):9.3f} "
              f"{result.objective:9.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
