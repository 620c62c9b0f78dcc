"""What each engine costs a run against the oracle, on the same instance in the same process.

    python benchmarks/engines.py [--paper]

Prints CPU seconds of a run by the oracle and by the model, how many runs decide alike, and where
the seconds of the model's decisions go: setting prices, solving, reading the schedule. The first
run of each engine warms up and is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import hindsched as hs
from hindsched.models.oasis.subproblem import OasisSubproblem
from hindsched.models.windows.program import WindowSubproblem
from hindsched.online.astraea import paper
from hindsched.solvers.door import subproblem

ALGORITHMS = {"oasis": "oasis", "batchsched": "batchsched-exact", "astraea": "astraea"}
PAPER = {"oasis": {"jobs": 100, "horizon": 100}, "batchsched": {}, "astraea": {}}
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


def main() -> None:
    """Measure and print one row a family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paper", action="store_true", help="one run at the papers' sizes")
    parser.add_argument("--family", action="append", choices=list(ALGORITHMS))
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    for owner in (subproblem, paper):
        timed(owner, "solve_program", "solve")
    for owner in (OasisSubproblem, WindowSubproblem):
        timed(owner, "set", "set")
        timed(owner, "extract", "read")
    timed(subproblem, "subproblem", "build")
    timed(paper.models, "build_subproblem", "build")
    for family in chosen.family or ALGORITHMS:
        if chosen.paper:
            made = [hs.generate(family, preset="paper", seed=0, **PAPER[family])]
        else:
            made = [hs.generate(family, seed=seed) for seed in range(chosen.seeds)]
        for engine in ("oracle", "model"):
            run(hs.generate(family, seed=99), engine)
        spent.clear()
        oracle, model = ([run(each, engine) for each in made] for engine in ("oracle", "model"))
        seconds = [sum(cpu for cpu, _ in runs) for runs in (oracle, model)]
        alike = sum(ours == theirs for (_, ours), (_, theirs) in zip(oracle, model, strict=True))
        shares = ", ".join(f"{name} {part / seconds[1]:.0%}" for name, part in spent.items())
        print(
            f"{family}: oracle {seconds[0]:.2f} s, model {seconds[1]:.2f} s "
            f"({seconds[1] / seconds[0]:.0f} times), alike {alike} of {len(made)}; {shares}"
        )


if __name__ == "__main__":
    main()
