"""The first board: every registered algorithm of every family, scored on the same four seeds.

``python benchmarks/scores.py [FAMILY ...]`` writes ``docs/results/scores.md``; families that
are not named keep their rows. Also what a run costs in the sandbox, beside one in this process.
"""

import json
import sys
import time
from pathlib import Path

import hindsched as hs
from hindsched.analysis.score.candidate import Contained, Limits, find_bwrap, read_candidate

SEEDS = [101, 102, 103, 104]
ROOT = Path(__file__).parents[1]
PAGE, KEPT = (
    ROOT / "docs" / "results" / "scores.md",
    ROOT / "benchmarks" / "results" / "scores.json",
)
RUNS = 5
HEAD = """# Scores of the registered algorithms

[`hindsched score`](../guides/score.md) of every algorithm of every family, preset `small`, the
words 101 to 104 as seeds, randomised ones with the seed 0: the mean over the instances of the
certified share of the optimum (1 is the optimum in hindsight), the interval over resampled
instances, and on how many of the instances a run failed. Equal scores share a rank. Written by
`benchmarks/scores.py`.
"""


def family_rows(family):
    """A row an algorithm, best first."""
    rows = []
    for name in hs.algorithms(family):
        found = hs.score(name, family=family, seeds=SEEDS, public_seeds=[])
        failed = sum(row["status"] != "ok" for row in found.data["instances"])
        reasons = sorted({row["reason"] for row in found.data["instances"] if row["reason"]})
        rows.append([name, found.combined_score, *found.data["interval"], failed, *reasons[:1]])
        print(family, *rows[-1], flush=True)
    return sorted(rows, key=lambda row: -row[1])


def overhead():
    """Seconds of a run: in this process, in one of its own, in the sandbox."""
    rows = []
    for title, family, program in (
        ("a script, gang", "gang", "examples/schedulers/first_fit.py"),
        ("a class, gang", "gang", "examples/schedulers/longest_first.py:LongestFirst"),
    ):
        instance, candidate = hs.generate(family, seed=101), read_candidate(str(ROOT / program))
        ways = {
            "sandbox": lambda c=candidate: Contained(c, Limits(), find_bwrap()[0]),
            "own process": lambda c=candidate: Contained(c, Limits(), None),
        }
        if ":" in program:
            ways["in process"] = lambda p=program: str(ROOT / p)
        times = {}
        for way, player in ways.items():
            hs.simulate(instance, player())
            taken = []
            for _ in range(RUNS):
                begun = time.perf_counter()
                hs.simulate(instance, player())
                taken.append(time.perf_counter() - begun)
            times[way] = min(taken)
        rows.append([title, times.get("in process"), times["own process"], times["sandbox"]])
    return rows


def table(columns, rows):
    """Lines of a table, absent cells empty."""
    cells = [columns, ["---"] * len(columns), *rows]
    return ["", *("| " + " | ".join(map(str, row)) + " |" for row in cells), ""]


def page(kept):
    """The page of what is kept."""
    lines = [HEAD]
    for family in hs.families():
        found = kept.get(family, [])
        forbidden = [row[0] for row in found if "forbids" in str(row[-1])]
        scores, rows = [row[1] for row in found], []
        for name, score, low, high, failed, *reason in found:
            if name not in forbidden:
                why = f"{failed}: {reason[0]}" if failed else ""
                span = f"{low:.4f} to {high:.4f}"
                rows.append([1 + scores.index(score), f"`{name}`", f"{score:.4f}", span, why])
        columns = ["", "algorithm", "score", "over resampled instances", "failed"]
        lines += [f"## {family}", *table(columns, rows)]
        if forbidden:
            named = ", ".join(f"`{name}`" for name in forbidden)
            lines += [f"Not scored, for they may do what the offline problem forbids: {named}.", ""]
    rows = [
        [title, *("" if each is None else f"{each:.3f}" for each in times)]
        for title, *times in kept["overhead"]
    ]
    columns = ["program", "in process", "in a process of its own", "in the sandbox"]
    where = "on an instance of six jobs, on a machine that did other work beside it"
    lines += ["## What the sandbox costs", "", f"Seconds of a run, the best of {RUNS}, {where}."]
    return "\n".join([*lines, *table(columns, rows)]).rstrip() + "\n"


def main():
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for family in sys.argv[1:] or hs.families():
        kept[family] = family_rows(family)
    kept["overhead"] = overhead()
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))


if __name__ == "__main__":
    main()
