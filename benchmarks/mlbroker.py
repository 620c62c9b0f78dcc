"""The mlbroker family: slots, bounds and the exact program, each against a named rival.

    python benchmarks/mlbroker.py [--slots 8] [--quick]

At R = 15, T = 50 and 145 jobs (Section 6.1): the tight per-job slot and tier prices against the
paper's program (10) in CVXPY; P_f with the chord, job by job, and the certified bound; every
algorithm's ratio to that bound. At 3 centres, 5 slots, 5 jobs with Section 6.1's data: the proven
optimum by three routes. Seconds are CPU time of this process.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np

from hindsched.instances.mlbroker.generator import generate
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.base import offline_program
from hindsched.online.mlbroker.algorithms import ONLINE
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.mlbroker.convex import solve_fractional
from hindsched.solvers.families.mlbroker.methods import find_schedule
from hindsched.solvers.families.mlbroker.placements import priced_placement, tight_placement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=8, help="slots timed")
    parser.add_argument("--quick", action="store_true", help="6 centres, 10 slots, 20 jobs")
    chosen = parser.parse_args()
    size = {"datacenters": 6, "horizon": 10, "jobs": 20} if chosen.quick else {}
    instance = generate("paper", 0, **size)
    time_slots(instance, chosen.slots)
    time_bounds(instance)
    compare_algorithms(instance)
    prove_small()


def timed(function):
    begin = time.process_time()
    value = function()
    return value, time.process_time() - begin


def fractional(slot, price="paper"):
    """The paper's program (10)."""
    return solve_fractional(slot, np.zeros(slot.data.shape), price=price)


def time_slots(instance, count):
    ways = {
        "(10), big-M": fractional,
        "(10), chord": lambda s: fractional(s, "chord"),
        "tight, per job": lambda s: tight_placement(s, np.zeros(s.data.shape)),
        "tier prices": lambda s: priced_placement(s, np.zeros(s.data.shape)),
    }
    every = max(1, instance.horizon // count)
    slots = [SlotData.at(instance, t) for t in range(every, instance.horizon + 1, every)]
    live = median(len(slot.jobs) for slot in slots)
    for way in list(ways.values())[1:]:
        way(slots[0])  # compile
    print(f"One slot, {len(instance.datacenters)} centres, median {live:.0f} live jobs, "
          f"{len(slots)} slots\n")  # fmt: skip
    print(f"{'way':28} {'median s':>9} {'worst s':>9} {'rival / it':>10}")
    rival = None
    for name, way in ways.items():
        seconds = [timed(lambda slot=slot, way=way: way(slot))[1] for slot in slots]
        rival = rival or median(seconds)
        print(f"{name:28} {median(seconds):9.4f} {max(seconds):9.4f} "
              f"{rival / median(seconds):10.1f}")  # fmt: skip
    print()


def time_bounds(instance):
    print("Bounds on the whole instance (USD)\n")
    print(f"{'bound':28} {'value':>12} {'seconds':>8} certified")
    for method in ("relaxation", "bound"):
        result, seconds = timed(lambda method=method: solve(instance, method))
        certified = "yes" if result.certificate else "no"
        print(f"{method:28} {result.bound:12.2f} {seconds:8.2f} {certified}")
    print()


def compare_algorithms(instance):
    bound = solve(instance, "bound").bound
    print(f"{'algorithm':28} {'cost':>12} {'ratio':>8} {'slot ms':>9}  C1 C2 C3 C4")
    for name in ONLINE.algorithms:
        if name == "reoptimise":
            continue  # an integer program of this size
        result, _ = timed(lambda name=name: simulate(instance, name))
        parts = " ".join(f"{value:.0f}" for value in result.solution.costs.by_cost.values())
        print(f"{name:28} {result.objective:12.2f} {result.objective / bound:8.4f} "
              f"{1000 * result.seconds / instance.horizon:9.1f}  {parts}")  # fmt: skip
    print()


def prove_small():
    print("Exact optimum, 3 centres, 5 slots, 5 jobs, one GPU price range for all centres\n")
    print(f"{'formulation':28} {'objective':>10} {'bound':>10} {'seconds':>8} {'ratio':>6} status")
    for seed in range(3):
        instance = generate(
            "paper", seed, datacenters=3, horizon=5, jobs=5, life_slots=(3, 5),
            gpu_range=(5, 5.5), gpu_threshold=(50, 60), cpu_threshold=(80, 100),
            memory_threshold=(100, 105), storage_threshold=(100, 105),
        )  # fmt: skip
        rival = None
        for formulation in ("paper", "tight"):
            program = offline_program(instance, formulation)
            result, seconds = timed(
                lambda program=program: solve_program(program.model, SolveOptions(time_limit=120))
            )
            rival = rival or seconds
            print(f"{instance.name[-8:] + ' ' + formulation:28} {result.objective:10.3f} "
                  f"{result.bound:10.3f} {seconds:8.2f} {seconds / rival:6.2f} "
                  f"{result.status}")  # fmt: skip
        found, seconds = timed(lambda instance=instance: solve(instance, time_limit=120))
        print(f"{instance.name[-8:] + ' auto':28} {found.objective:10.3f} {found.bound:10.3f} "
              f"{seconds:8.2f} {seconds / rival:6.2f} {found.status} ({found.method})")  # fmt: skip
        schedule = find_schedule(instance, "tight").objective()
        online = {name: simulate(instance, name).objective / found.bound for name in
                  ("mlbroker", "mlbroker-tight", "mlbroker-prices")}  # fmt: skip
        print(f"    search {schedule / found.bound:.4f}, "
              + ", ".join(f"{name} {ratio:.4f}" for name, ratio in online.items()))  # fmt: skip


if __name__ == "__main__":
    main()
