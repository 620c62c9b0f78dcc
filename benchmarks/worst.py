"""Means, worst cases and witnesses: ``python benchmarks/worst.py FAMILY/ALGORITHM ...``.

Brings rows of ``benchmarks/results/worst.csv`` up to date: the ratio's mean and worst over the
suite ``small``, and the worst that `hindsched worst` finds in a minute. Other rows stay as they
are; older ones were searched for longer.
"""

import sys
from pathlib import Path

import pandas as pd

import hindsched as hs
from hindsched.instances.catalogue import suite

KEPT = Path(__file__).parent / "results" / "worst.csv"
SECONDS = 60.0


def row(family, algorithm):
    """What a family's algorithm does on its suite, and the worst that a search finds."""
    runs = hs.compare(suite(family, "small"), [algorithm], time_limit=10, progress=False).to_frame()
    ratios = runs.groupby("instance")["ratio_upper"].mean()
    witness = hs.worst(family, algorithm, time_limit=SECONDS).proven
    return [round(ratios.mean(), 3), round(ratios.max(), 3), round(witness, 3)]


def main():
    table = pd.read_csv(KEPT, index_col=["family", "algorithm"])
    for name in sys.argv[1:]:
        family, algorithm = key = tuple(name.split("/"))
        table.loc[key] = row(family, algorithm)
        print(name, *table.loc[key], flush=True)
    families = {family: place for place, family in enumerate(hs.families())}
    order = sorted(table.index, key=lambda key: families[key[0]])
    table.loc[order].to_csv(KEPT)


if __name__ == "__main__":
    main()
