"""Means, worst cases and witnesses: ``python benchmarks/worst.py FAMILY/ALGORITHM ...``.

Brings rows of ``benchmarks/results/worst.csv`` up to date: the ratio's mean and worst over the
suite ``small``, and the worst that `hindsched worst` finds in a minute. Other rows stay as they
are; older ones were searched for longer.
"""

import csv
import sys
from pathlib import Path

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
    with KEPT.open() as stream:
        header, *lines = csv.reader(stream)
    kept = {tuple(line[:2]): line[2:] for line in lines}
    for name in sys.argv[1:]:
        key = tuple(name.split("/"))
        kept[key] = row(*key)
        print(name, *kept[key], flush=True)
        order = sorted(kept, key=lambda key: hs.families().index(key[0]))
        with KEPT.open("w") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([header, *([*key, *kept[key]] for key in order)])


if __name__ == "__main__":
    main()
