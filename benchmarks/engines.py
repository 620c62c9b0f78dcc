"""What each engine costs a run against the oracle, on the same instance in the same process.

    python benchmarks/engines.py [--paper | --rolling]

Prints CPU seconds of a run by the oracle and by each other engine, how many runs decide alike, and
where the seconds of that engine's decisions go: building a job's program, compiling it, setting
prices, solving, reading the schedule. The first run of each engine warms up and is not counted.

With ``--rolling`` the same of `dual-price` and `reoptimise`, a step: building the program of the
known jobs, solving it, compiled first, and reading the plan or the prices; or looking for whole
schedules.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import hindsched as hs
from hindsched.models.oasis.offline import OasisSubproblem
from hindsched.models.oasis.slot_program import OasisSlotProgram
from hindsched.models.windows.program import WindowSubproblem
from hindsched.online.astraea import paper
from hindsched.online.batchsched import algorithms as batchsched
from hindsched.online.engines import dual_price, reoptimise
from hindsched.online.oasis import algorithms
from hindsched.solvers.door import kept, program, rolling, subproblem
from hindsched.solvers.families.oasis import slots

ALGORITHMS = {"oasis": "oasis", "batchsched": "batchsched-exact", "astraea": "astraea"}
PAPER = {"oasis": {"jobs": 100, "horizon": 100}, "batchsched": {}, "astraea": {}}
ENGINES = {"oasis": ("model", "slots")}
SETTINGS = {"oasis": {"lower_floor": 0.1}}
spent: dict[str, float] = defaultdict(float)


def timed(owner: object, name: str, share: str) -> None:
    """Add up the CPU seconds of a function under a name."""
    inner = getattr(owner, name)
    is_property = isinstance(inner, property)
    inner = inner.fget if is_property else inner

    def outer(*args, **keywords):
        began = time.process_time()
        try:
            return inner(*args, **keywords)
        finally:
            spent[share] += time.process_time() - began

    setattr(owner, name, property(outer) if is_property else outer)


def run(instance, engine: str) -> tuple[float, dict]:
    """CPU seconds and decisions of a run."""
    family = instance.family
    began = time.process_time()
    settings = {"engine": engine, **SETTINGS.get(family, {})}
    found = hs.simulate(instance, ALGORITHMS[family], settings=settings)
    decided = {
        name: [{key: value for key, value in row.items() if key != "payment"} for row in rows]
        for name, rows in found.solution.assignments().items()
    }
    return time.process_time() - began, decided


def measured(made: list, engine: str) -> tuple[float, list]:
    """CPU seconds of all runs by an engine, and their decisions."""
    run(hs.generate(made[0].family, seed=99), engine)
    spent.clear()
    runs = [run(each, engine) for each in made]
    return sum(cpu for cpu, _ in runs), [decided for _, decided in runs]


def shares(seconds: float) -> str:
    """What parts of the seconds were spent on."""
    return ", ".join(f"{name} {part / seconds:.0%}" for name, part in spent.items())


def rolling_steps(families: list[str], seeds: int) -> None:
    """Print the seconds of a step of each rolling algorithm and their parts."""
    timed(rolling.RollingProgram, "build", "build")
    timed(rolling, "solve_program", "solve")
    timed(program, "compile_program", "compile, within solve")
    timed(rolling.Step, "plan", "read")
    for name in ("add", "solve", "capacity_prices"):
        timed(kept.KeptProgram, name, f"kept program: {name}")
    timed(dual_price, "schedule_prices", "schedules")
    for owner in (reoptimise, algorithms):
        timed(owner, "best_schedules", "schedules")
    timed(algorithms, "solve_rest", "program of ends")
    for family in families:
        for name in ("dual-price", "reoptimise"):
            if name not in hs.algorithms(family):
                continue
            hs.simulate(hs.generate(family, seed=99), name)
            spent.clear()
            steps, began = 0, time.process_time()
            for seed in range(seeds):
                steps += len(hs.simulate(hs.generate(family, seed=seed), name).decision_ms)
            seconds = time.process_time() - began
            each = 1e3 * seconds / steps
            print(f"{family} {name}: {each:.0f} ms a job; {shares(seconds)}")


def main() -> None:
    """Measure and print one row a family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paper", action="store_true", help="one run at the papers' sizes")
    parser.add_argument("--rolling", action="store_true", help="dual-price and reoptimise")
    parser.add_argument("--family", action="append", choices=hs.families())
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    if chosen.rolling:
        rolling_steps(chosen.family or hs.families(), chosen.seeds)
        return
    timed(subproblem, "compile_program", "compile")
    timed(subproblem, "solve_in_turn", "solve")
    for owner in (OasisSubproblem, WindowSubproblem):
        timed(owner, "set", "set")
        timed(owner, "extract", "read")
    timed(slots, "solve_convex", "solve")
    timed(OasisSlotProgram, "set", "set")
    for owner in (subproblem, batchsched):
        timed(owner, "subproblem", "build")
    timed(paper.models, "build_subproblem", "build")
    for family in ALGORITHMS:
        if family not in (chosen.family or ALGORITHMS):
            continue
        if chosen.paper:
            made = [hs.generate(family, preset="paper", seed=0, **PAPER[family])]
        else:
            made = [hs.generate(family, seed=seed) for seed in range(chosen.seeds)]
        first, oracle = measured(made, "oracle")
        for engine in ENGINES.get(family, ("model",)):
            seconds, found = measured(made, engine)
            alike = sum(ours == theirs for ours, theirs in zip(oracle, found, strict=True))
            print(
                f"{family}: oracle {first:.2f} s, {engine} {seconds:.2f} s "
                f"({seconds / first:.0f} times), alike {alike} of {len(made)}; {shares(seconds)}"
            )


if __name__ == "__main__":
    main()
