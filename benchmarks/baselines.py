"""Under which setting each baseline is strongest: ``docs/results/baselines.md``, measured.

    python benchmarks/baselines.py [FAMILY ...] [--seeds 2] [--missing]

Every baseline runs with every combination of the settings in `AXES` that it has, on contended
instances of the family's paper preset made small enough for a table; some minutes. The table shows
the summed objective of each combination relative to the baseline's best; one that has none of
these settings has a row that says so. Rows of other families stay as they are, with ``--missing``
those of all baselines that have one.
"""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import hindsched as hs
from hindsched.instances.generators.registry import generate
from hindsched.online.registry import algorithms, build_algorithm, settings_of

PAGE = Path(__file__).parent.parent / "docs/results/baselines.md"
INSTANCES: dict[str, dict[str, Any]] = {
    "oasis": {"horizon": 15, "jobs": 15, "servers": 8},
    "batchsched": {"jobs": 12, "servers": 6, "capacity_fraction": 0.2, "horizon": 30},
    "astraea": {"jobs": 25, "servers": 12},
    "edgecloud": {"jobs": 20, "servers": 12},
    "mlbroker": {"jobs": 12, "horizon": 10, "datacenters": 5},
    "gang": {"jobs": 200},
}
NO_RIVALS = ("dual-price", "reoptimise")
"""The library's own, or planners that know more than any scheduler."""
ALONE = "none of the settings"
AXES: dict[str, tuple[Any, ...]] = {
    "gangs": ("ideal", "half", "drawn"),
    "cloud": (True, False),
    "static": (False, True),
    "theta2": (0.1, 0.5, 1.0),
    "rule": ("draw", "weight"),
    "prices": ("unit", "marginal"),
    "tight_slots": (False, True),
    "estimates": (1.0, 2.0),
    "threshold_gpu_seconds": (360.0, 3600.0, 36000.0),
}
ROW = re.compile(r"\| \w+ \| `[^`]+` \| (?:`\w+=|none of)")
DRAWS = 2
"""Seeds of a randomised baseline; its objective is their mean."""


def combinations(family: str, name: str) -> list[dict[str, Any]]:
    """Every combination of the axes that a baseline has."""
    known = [axis for axis in AXES if axis in settings_of(algorithms(family)[name])]
    return [
        dict(zip(known, values, strict=True))
        for values in itertools.product(*(AXES[axis] for axis in known))
    ]


def objective(instance: Any, name: str, settings: dict[str, Any]) -> float:
    """Mean objective over the draws."""
    algorithm = build_algorithm(instance.family, name, settings)
    seeds = range(DRAWS if algorithm.randomised else 1)
    runs = [hs.simulate(instance, name, settings=settings, seed=seed) for seed in seeds]
    return fmean(run.objective for run in runs)


def words(settings: dict[str, Any]) -> str:
    """A combination as the command line takes it."""
    return ", ".join(f"{k}={str(v).lower()}" for k, v in settings.items())


def baselines(family: str) -> list[str]:
    """What the family's own algorithms are compared with."""
    return [
        name for name in algorithms(family) if not name.startswith(family) and name not in NO_RIVALS
    ]


def rows(family: str, seeds: int, kept: dict[str, str]) -> list[str]:
    """A row a baseline: its strongest setting, and the others relative to it; `kept` ones stay."""
    instances = [generate(family, "paper", seed, **INSTANCES[family]) for seed in range(seeds)]
    found = []
    for name in baselines(family):
        choices = combinations(family, name)
        if name in kept:
            found.append(kept[name])
            continue
        if len(choices) < 2:
            found.append(f"| {family} | `{name}` | {ALONE} | |")
            continue
        sums = {
            words(one): sum(objective(instance, name, one) for instance in instances)
            for one in choices
        }
        best = (max if instances[0].sense == "max" else min)(sums, key=lambda text: sums[text])
        others = "; ".join(
            f"`{text}` {sums[text] / sums[best]:.3f}" for text in sums if text != best
        )
        found.append(f"| {family} | `{name}` | `{best}` | {others} |")
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Measure the families named, all by default, and write their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(INSTANCES), metavar="FAMILY")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--missing", action="store_true", help="only baselines without a row")
    given = parser.parse_args()
    for family in given.families:
        text = PAGE.read_text()
        old = [line for line in text.splitlines() if ROW.match(line)]
        kept = {f: [line for line in old if line.startswith(f"| {f} |")] for f in INSTANCES}
        known = {line.split("`")[1]: line for line in kept[family]} if given.missing else {}
        kept[family] = rows(family, given.seeds, known)
        head = text[: text.index("| family | baseline |")].rstrip()
        table = ["| family | baseline | strongest | others, relative to it |", "|---|---|---|---|"]
        PAGE.write_text("\n".join([head, "", *table, *itertools.chain(*kept.values()), ""]))


if __name__ == "__main__":
    main()
