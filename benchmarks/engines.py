"""What each engine costs a run against the oracle, on the same instance in the same process.

    python benchmarks/engines.py [--paper]

Prints CPU seconds of a run by the oracle and by each other engine, how many runs decide alike, and
where the seconds of that engine's decisions go: building a job's program, compiling it, setting
prices, solving, reading the schedule. The first run of each engine warms up and is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import hindsched as hs
from hindsched.models.oasis.slots import SlotProgram
from hindsched.models.oasis.subproblem import OasisSubproblem
from hindsched.models.windows.program import WindowSubproblem
from hindsched.online.astraea import paper
from hindsched.online.batchsched import rounds
from hindsched.solvers.door import subproblem
from hindsched.solvers.families.oasis import slots

ALGORITHMS = {"oasis": "oasis", "batchsched": "batchsched-exact", "astraea": "astraea"}
PAPER = {"oasis": {"jobs": 100, "horizon": 100}, "batchsched": {}, "astraea": {}}
ENGINES = {"oasis": ("model", "slots")}
SETTINGS = {"oasis": {"lower_floor": 0.1}}
spent: dict[str, float] = defaultdict(float)


def timed(owner: object, name: str, share: str) -> None:
    """Add up the CPU seconds of a function under a name."""
    inner = getattr(owner, name)

    def outer(*args, **keywords):
        began = time.process_time()
        try:
            return inner(*args, **keywords)
        finally:
            spent[share] += time.process_time() - began

    setattr(owner, name, outer)


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


def main() -> None:
    """Measure and print one row a family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paper", action="store_true", help="one run at the papers' sizes")
    parser.add_argument("--family", action="append", choices=list(ALGORITHMS))
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    timed(subproblem.KeptProgram, "__init__", "compile")
    timed(subproblem.KeptProgram, "solve", "solve")
    for owner in (OasisSubproblem, WindowSubproblem):
        timed(owner, "set", "set")
        timed(owner, "extract", "read")
    timed(slots, "solve_convex", "solve")
    timed(SlotProgram, "set", "set")
    timed(subproblem, "subproblem", "build")
    for owner in (paper.models, rounds):
        timed(owner, "build_subproblem", "build")
    for family in chosen.family or ALGORITHMS:
        if chosen.paper:
            made = [hs.generate(family, preset="paper", seed=0, **PAPER[family])]
        else:
            made = [hs.generate(family, seed=seed) for seed in range(chosen.seeds)]
        first, oracle = measured(made, "oracle")
        for engine in ENGINES.get(family, ("model",)):
            seconds, found = measured(made, engine)
            alike = sum(ours == theirs for ours, theirs in zip(oracle, found, strict=True))
            shares = ", ".join(f"{name} {part / seconds:.0%}" for name, part in spent.items())
            print(
                f"{family}: oracle {first:.2f} s, {engine} {seconds:.2f} s "
                f"({seconds / first:.0f} times), alike {alike} of {len(made)}; {shares}"
            )


if __name__ == "__main__":
    main()
