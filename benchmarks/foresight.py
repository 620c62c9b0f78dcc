"""What share of an algorithm's loss nobody could have avoided: trees of every family.

``python benchmarks/foresight.py [--trees N] [--worst N] [--seconds S] [FAMILY ...]`` measures what
is not yet in ``benchmarks/results/foresight.json``, a tree at a time: ``--trees`` with algorithms,
``--worst`` smaller ones, of which only the guarantee is asked. It writes
``docs/results/foresight.md``. Interrupt it whenever you like; ``--trees 0 --worst 0`` writes the
page only.
"""

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path

import hindsched as hs
from hindsched.analysis.tasks import theorem_of
from hindsched.online.protocol import unmet

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "foresight.md"
KEPT = ROOT / "benchmarks" / "results" / "foresight.json"
TREES = {
    "oasis": {"at": [2], "jobs": 3, "horizon": 7, "max_duration": 3},
    "batchsched": {"at": [1], "jobs": 3},
    "astraea": {"at": [1], "jobs": 4},
    "edgecloud": {"at": [1], "jobs": 3, "horizon": 4},
    "mlbroker": {"at": [1], "jobs": 3},
    "gang": {"at": [2], "jobs": 5},
}
"""Preset `small`, with fewer jobs: three futures each that part after the slot `at`."""
WORST_TREES = {
    **TREES,
    "oasis": {**TREES["oasis"], "horizon": 6},
    "batchsched": {"at": [1], "jobs": 2},
    "astraea": {"at": [1], "jobs": 3},
    "gang": {"at": [2], "jobs": 4},
}
"""The same or smaller, for hundreds."""
SMALL = "small/"
"""Before the keys of what was measured on them."""
ALGORITHMS = {
    "oasis": ("oasis", "fifo", "reoptimise"),
    "batchsched": ("batchsched", "wspt", "reoptimise"),
    "astraea": ("astraea", "batchsche", "reoptimise"),
    "edgecloud": ("edgecloud", "srtf", "reoptimise"),
    "mlbroker": ("mlbroker", "local", "reoptimise"),
    "gang": ("fifo", "easy", "reoptimise"),
}
"""The paper's own first."""
CLASSES = {"oasis": ("commit", "run"), "edgecloud": ("commit", "run")}
BRANCHES = 3
HEAD = """# What nobody could have known

A ratio compares an online algorithm with somebody who sees the future.
[`hindsched foresight`](../guides/foresight.md) splits it: ratio = price of not knowing x own loss.
Here are trees of {branches} equally likely futures of the generators' preset `small` with 3 to 5
jobs, which part after slot 1 or 2, {seconds:g} s a tree on one core of a machine that did other
work. They are few and small: what follows is about them, not about clusters. Written by
`benchmarks/foresight.py`, which goes on where it stopped.
"""
SHARES = """
Means over the trees on which the algorithm loses anything (the last column says how many). *Price*
is hindsight over the best online policy of the class, *own* the best online policy over the
algorithm, *share* log price / log ratio; of intervals that a solver left, the mean of either end.
An algorithm whose own loss is not told may do what the class forbids."""
WORST = """
For the trees above and many as small or smaller, 5 s each: no online algorithm, randomised or not,
has a competitive ratio below the largest 1 / rho that was proven on a tree. Beside it stands what
the paper's theorem promises of its algorithm on these futures, and which of its assumptions do not
hold on them. The last column says on how many trees the guarantee itself is known."""


def promised(family, futures):
    """What the paper's theorem promises at most of these futures, and what it lacks on them."""
    theorems = [theorem_of(one, ALGORITHMS[family][0]) for one in futures]
    said = [each for each in theorems if each and each["kind"] == "ratio" and each["value"]]
    lacking = {name for each in said for name in unmet(each)}
    return {"theorem": max((each["value"] for each in said), default=None),
            "lacking": sorted(lacking)}  # fmt: skip


def guarantee(family, policies, seed, seconds):
    """What is kept of one of the many small trees."""
    futures = hs.tree(family, branches=BRANCHES, seed=seed, **WORST_TREES[family])
    found = hs.foresight(futures, algorithms=[], policies=policies, time_limit=seconds)
    return {"guarantee": found.to_dict()["guarantee"], "sense": found.futures.sense,
            **promised(family, futures)}  # fmt: skip


def measure(family, policies, seed, seconds):
    """What is kept of one tree."""
    futures = hs.tree(family, branches=BRANCHES, seed=seed, **TREES[family])
    found = hs.foresight(
        futures, algorithms=ALGORITHMS[family], policies=policies, time_limit=seconds
    )
    data = found.to_dict()
    kept = ("price", "guarantee", "guarantee_deterministic", "hindsight", "best_online",
            "certified", "algorithms", "seconds")  # fmt: skip
    return {**{key: data[key] for key in kept}, "sense": found.futures.sense,
            **promised(family, futures)}  # fmt: skip


def ends_of(interval):
    """Both ends as numbers, or None."""
    ends = [interval["lower"], interval["upper"]]
    return None if None in ends or "inf" in ends else ends


def shares(rows, place):
    """Of trees on which an algorithm loses: ratio, price and own loss, and the share of price."""
    found = []
    for row in rows:
        own = row["algorithms"][place]
        price, ratio = ends_of(row["price"]), ends_of(own["ratio"])
        alone = ends_of(own["own"]) if own["own"] else None
        if price and ratio and ratio[1] > 1 + 1e-6:
            low = math.log(price[0]) / math.log(ratio[1])
            high = math.log(price[1]) / max(1e-12, math.log(max(1, ratio[0])))
            found.append((ratio, price, alone, (max(0, min(1, low)), max(0, min(1, high)))))
    return found


def mean(pairs, form):
    """The mean of intervals, in words."""
    low, high = (form.format(statistics.mean(column)) for column in zip(*pairs, strict=True))
    return low if low == high else f"{low} to {high}"


def table(columns, rows):
    """Lines of a table."""
    cells = [columns, ["---"] * len(columns), *rows]
    return ["", *("| " + " | ".join(map(str, row)) + " |" for row in cells), ""]


def page(kept, seconds):
    """The page of what is kept."""
    lines, own, worst = [HEAD.format(branches=BRANCHES, seconds=seconds)], [], []
    for family in TREES:
        for policies in CLASSES.get(family, ("run",)):
            named = [r for key, r in kept.items() if key.startswith(f"{family}/{policies}/")]
            if not named:
                continue
            for place, name in enumerate(ALGORITHMS[family]):
                found = shares(named, place)
                cells = ["1", "1", "1", "no loss"]
                if found:
                    ratio, price, alone, share = zip(*found, strict=True)
                    cells = [mean(ratio, "{:.3f}"), mean(price, "{:.3f}"), "may do more", ""]
                    if None not in alone:
                        cells[2:] = mean(alone, "{:.3f}"), mean(share, "{:.0%}")
                head = [family, policies] if not place else ["", ""]
                own.append([*head, f"`{name}`", *cells, f"{len(found)} of {len(named)}"])
            small = f"{SMALL}{family}/{policies}/"
            asked = named + [row for key, row in kept.items() if key.startswith(small)]
            up = named[0]["sense"] == "max"
            ends = [row["guarantee"]["upper" if up else "lower"] for row in asked]
            ends = [float(end) for end in ends if end]
            gaps = [row["guarantee"] for row in asked]
            proven = sum(
                bool(g["lower"] and g["upper"]) and g["upper"] - g["lower"] <= 1e-4 for g in gaps
            )
            least = max(1 / end if up else end for end in ends) if ends else None
            told = [row["theorem"] for row in asked if row["theorem"]]
            lacking = sorted({name for row in asked for name in row["lacking"]})
            says = f"{min(told):.4g} to {max(told):.4g}" if told else "nothing"
            says += f"; does not hold: {', '.join(lacking)}" if told and lacking else ""
            worst.append([family, policies, len(asked), f"{least:.4f}" if least else "?", says,
                          f"{proven} of {len(asked)}"])  # fmt: skip
    columns = ["family", "class", "algorithm", "ratio", "price", "own", "share", "trees"]
    lines += ["## What share of a loss is the price of not knowing", SHARES, *table(columns, own)]
    columns = ["family", "class", "trees", "no ratio below", "the theorem promises", "rho known"]
    lines += ["## The worst futures found, beside the theorem", WORST, *table(columns, worst)]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*")
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    head = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    families = [
        (family, policies)
        for family in options.families or TREES
        for policies in CLASSES.get(family, ("run",))
    ]
    for before, trees, ask in (("", options.trees, measure), (SMALL, options.worst, guarantee)):
        for seed in range(trees):
            for family, policies in families:
                key = f"{before}{family}/{policies}/{seed}"
                same = before == SMALL and WORST_TREES[family] == TREES[family]
                if key in kept or (same and key.removeprefix(SMALL) in kept):
                    continue
                try:
                    kept[key] = ask(family, policies, seed, options.seconds)
                except hs.InputError as refused:  # no such tree with this seed
                    print(key, refused, flush=True)
                    continue
                kept[key]["commit"] = commit
                print(key, kept[key]["guarantee"], flush=True)
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept, options.seconds))


if __name__ == "__main__":
    main()
