"""The astraea family: decisions, certified bounds, and small instances proven optimal.

    python benchmarks/astraea.py [--seeds 3] [--seconds 60]

Paper scale is 100 servers, 14 tenants, 100 jobs, mini-batch times x 0.1. Rivals in the same run: a
direct transcription of Algorithms 3-5 (`astraea-literal`) for decisions, the linear relaxation of
the printed program for bounds on small instances.

The gap between bound and revenue is taken apart: the solution found by search says how much of it
is the bound's slack, and the most that any scheduler with the same batches can earn (each job first
in its first interval, alone on the cluster) says how much is lost by waiting alone.
"""

from __future__ import annotations

import argparse
import math
import time
from statistics import median

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.generators.registry import generate
from hindsched.instances.modes import modes
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions

SCHEMES = (
    ("astraea", {"rounds": 1}),
    ("astraea", {"rounds": 2}),
    ("batchsche", {}),
    ("gandiva-fair", {}),
    ("hived", {}),
)
SMALL = {"jobs": 10, "tenants": 2, "servers": 8, "horizon": 20, "arrival_span": 6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each proof")
    chosen = parser.parse_args()
    simulate(generate("astraea", "small", 0), "astraea")  # compile
    solve(generate("astraea", "small", 0), method="bound")
    compare_decisions(chosen.seeds)
    compare_revenue(chosen.seeds, min(20.0, chosen.seconds))
    prove_small(chosen.seeds, chosen.seconds)


def compare_decisions(seeds: int) -> None:
    print("Decisions at paper scale, lambda = 1: ms a job (time in the algorithm / jobs)\n")
    print(f"{'seed':>4} {'astraea':>9} {'literal':>9} {'ratio':>7}   revenue (literal breaks (3i))")
    for seed in range(seeds):
        instance = generate("astraea", "paper", seed)
        runs = [
            simulate(instance, name, settings={"rounds": 1})
            for name in ("astraea", "astraea-literal")
        ]
        ours, rival = (1000 * run.seconds / len(instance.jobs) for run in runs)
        print(f"{seed:4d} {ours:9.3f} {rival:9.2f} {rival / ours:6.0f}x   "
              f"{runs[0].objective:.0f} {runs[1].objective:.0f}", flush=True)  # fmt: skip


def batch_ceiling(instance: AstraeaInstance, rounds: int) -> float:
    """Most that any scheduler can earn which runs jobs in the intervals that lambda allows.

    A job that arrives at r < tau, with d <= tau slots at least, ends at lambda tau + d or later.
    """
    total = 0.0
    for job in instance.jobs:
        table = modes(instance, job)
        if not len(table):
            continue
        shortest = int(table.duration.min())
        tau = 2
        while tau <= job.arrival or tau < shortest:
            tau *= 2
        if rounds * tau + shortest <= instance.horizon:
            total += max(0.0, instance.revenue(job, rounds * tau + shortest))
    return total


def compare_revenue(seeds: int, seconds: float) -> None:
    print("\nCertified bound (s) at paper scale, over: the best solution found, the most that the")
    print("batches of lambda = 1, 2 allow, and the schemes' revenues\n")
    names = ["found", "wait 1", "wait 2", *(f"{n} {s['rounds']}" if s else n for n, s in SCHEMES)]
    print(f"{'utility':8} {'servers':>7} {'seed':>4} {'bound':>9} {'s':>5} "
          + " ".join(f"{n:>12}" for n in names))  # fmt: skip
    for utility, servers in (("linear", 100), ("linear", 20), ("power", 100), ("power", 20)):
        for seed in range(seeds):
            instance = generate("astraea", "paper", seed, utility=utility, servers=servers)
            assert isinstance(instance, AstraeaInstance)
            begin = time.perf_counter()
            found = solve(instance, method="bound", options=SolveOptions(time_limit=5.0))
            spent = time.perf_counter() - begin
            best = solve(instance, options=SolveOptions(time_limit=seconds))
            earned = [best.objective or 0.0, *(batch_ceiling(instance, k) for k in (1, 2))]
            for name, settings in SCHEMES:
                earned.append(simulate(instance, name, settings=settings).objective)
            ratios = [found.bound / revenue if revenue > 0 else math.nan for revenue in earned]
            cells = " ".join(f"{ratio:12.4f}" for ratio in ratios)
            print(f"{utility:8} {servers:7d} {seed:4d} {found.bound:9.0f} {spent:5.2f} {cells}",
                  flush=True)  # fmt: skip


def prove_small(seeds: int, seconds: float) -> None:
    print("\n10 jobs, 2 tenants, 8 servers: proofs, and ratios OPT / revenue\n")
    print(f"{'seed':>4} {'status':>9} {'s':>6} {'optimum':>9} {'LP literal':>11} "
          f"{'lambda=1':>9} {'lambda=2':>9}")  # fmt: skip
    spent = []
    for seed in range(seeds + 4):
        instance = generate("astraea", "small", seed, **SMALL)
        found = solve(instance, options=SolveOptions(time_limit=seconds))
        spent.append(found.seconds)
        loose = solve(
            instance,
            method="relaxation",
            formulation="optional,literal",
            options=SolveOptions(time_limit=seconds),
        )
        revenue = [simulate(instance, "astraea", settings={"rounds": k}).objective for k in (1, 2)]
        bound = "-" if loose.bound is None else f"{loose.bound:.1f}"
        print(f"{seed:4d} {found.status!s:>9} {found.seconds:6.1f} {found.objective:9.2f} "
              f"{bound:>11} {found.objective / revenue[0]:9.3f} "
              f"{found.objective / revenue[1]:9.3f}", flush=True)  # fmt: skip
    print(f"\nmedian {median(spent):.1f} s")


if __name__ == "__main__":
    main()
