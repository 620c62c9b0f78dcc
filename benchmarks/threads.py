"""``auto`` on one core and on two: seconds to the same gap, in pairs in one run.

Run it with ``python benchmarks/threads.py [CASE ...] [--seconds S] [--first K] [--repeat N]``. Both
runs of a pair have the same instance, seed and limit. The common gap is the smaller one that both
reached, or the proof where both proved; a ratio is seconds on one core over seconds on two. The
moment of one gap is noisy, so ratios at some multiples of the common gap (`WIDER`) stand beside it.
CPU seconds count all processes.

Pairs are kept in the folder; the tables of docs/results/scale.md are those of all that are kept.

With ``--cpu-clock`` every process measures its own CPU seconds in place of the wall clock, which
says on a loaded machine what two free cores would do (not for the families that solve a program,
whose process waits for the others at the end).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from marked import write_between
from tight import small

import hindsched as hs
from hindsched.solvers.door import api, work

PAGE = Path("docs/results/scale.md")
MARK = "<!-- threads: made by benchmarks/threads.py -->"
HARD = (36, 12, 29, 21)
"""Instances of `tight.small` that one core proves in some ten seconds to a minute."""


def crowded(seed: int) -> hs.Instance:
    """Make an instance of batchsched at the paper's size without room."""
    settings = {"architecture": "ring-allreduce", "capacity_fraction": None}
    return hs.generate("batchsched", "paper", seed, **settings)


CASES: dict[str, Callable[[int], list[hs.Instance]]] = {
    "oasis-t10": lambda seed: [
        hs.generate("oasis", seed=seed, jobs=10, horizon=10, servers=n) for n in (5, 10)
    ],
    "oasis-t10-hard": lambda number: [small(HARD[number % len(HARD)])],
    "batchsched": lambda seed: [hs.generate("batchsched", seed=seed, jobs=8)],
    "batchsched-crowded": lambda seed: [crowded(seed)],
    "oasis-t100": lambda seed: [hs.generate("oasis", seed=seed, jobs=100, horizon=100, servers=50)],
    "gang": lambda seed: [hs.generate("gang", seed=seed, jobs=250)],
}
"""The instances of a case's pairs, by the number of the repetition."""


WIDER = (1.25, 1.5, 2.0)
"""Multiples of the common gap at which seconds are compared too."""


def cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in used)


def count_own_cpu_seconds() -> None:
    """Let every process go by its own CPU seconds; a forked one goes on from its parent's."""
    begun = 0.0

    def clock() -> float:
        return begun + time.process_time()

    def go_on(seconds: float) -> None:
        nonlocal begun
        begun = seconds

    at_fork = list[float]()
    os.register_at_fork(
        before=lambda: at_fork.append(clock()), after_in_child=lambda: go_on(at_fork[-1])
    )
    work.time = SimpleNamespace(perf_counter=clock)
    api.OVERRUN_SECONDS = 1e6


def run(
    instance: hs.Instance, threads: int, limit: float
) -> tuple[list[tuple[float, float]], float, int]:
    """Falling gaps with their seconds, the CPU seconds in all, and the moves tried."""
    gaps: list[tuple[float, float]] = []
    begin, before = work.now(), cpu()

    def note(bound: float | None, objective: float | None, *_: object) -> None:
        if bound is not None and objective is not None and bound:
            gap = abs(bound - objective) / abs(bound)
            if not gaps or gap < gaps[-1][1]:
                gaps.append((work.now() - begin, gap))

    result = hs.solve(instance, time_limit=limit, threads=threads, on_progress=note)
    note(result.bound, result.objective)
    tried = result.details.get("neighbourhoods", 0)
    assert isinstance(tried, int)
    return gaps, cpu() - before, tried


def reached(gaps: list[tuple[float, float]], gap: float) -> float:
    """Seconds after which a gap was reached."""
    return next(seconds for seconds, value in gaps if value <= gap)


def keep(folder: Path, *pairs: dict[str, Any]) -> list[dict[str, Any]]:
    """Add pairs to those in a folder, in place of older ones of their kind; return all."""
    path = folder / "pairs.json"
    known = json.loads(path.read_text()) if path.exists() else []
    new = {kind_of(pair) for pair in pairs}
    known = [pair for pair in known if kind_of(pair) not in new] + list(pairs)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known))
    return known


def kind_of(pair: dict[str, Any]) -> tuple[object, ...]:
    """What two pairs have in common of which the later one counts."""
    return pair["case"], pair["instance"]


def tables(pairs: list[dict[str, Any]]) -> list[str]:
    """Lines of the page about pairs, by case."""
    lines = [f"Measured on {datetime.now(UTC).date()}, {os.cpu_count()} cores."]
    for case in sorted({pair["case"] for pair in pairs}):
        of_case = [pair for pair in pairs if pair["case"] == case]
        lines += ["", *table(of_case)]
    return lines


def table(pairs: list[dict[str, Any]]) -> list[str]:
    """Lines of the page about pairs of one case."""
    case, limits = pairs[0]["case"], sorted({pair["limit"] for pair in pairs})
    lines = [
        f"`{case}`, limit {', '.join(f'{each:.0f} s' for each in limits)}.",
        "",
        "| instance | seconds to the same gap, 1 core | 2 cores | ratio |"
        " gap at the end, 1 core | gap at the end, 2 cores |",
        "|---|---|---|---|---|---|",
    ]
    for pair in sorted(pairs, key=lambda pair: pair["instance"]):
        first, second = pair["seconds"]
        lines.append(
            f"| {pair['instance']} | {first:.1f} | {second:.1f} | {first / second:.2f} |"
            f" {pair['one']:.2%} | {pair['two']:.2%} |"
        )
    ratio = statistics.median(pair["seconds"][0] / pair["seconds"][1] for pair in pairs)
    for name, middle in (("median", statistics.median), ("mean", statistics.fmean)):
        ends = "".join(f" {middle([pair[end] for pair in pairs]):.2%} |" for end in ("one", "two"))
        lines.append(f"| {name} | | | {f'{ratio:.2f}' if name == 'median' else ''} |{ends}")
    return lines


def main() -> None:
    """Print a line a pair and the median ratio a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/threads"))
    parser.add_argument("--cpu-clock", action="store_true")
    given = parser.parse_args()
    if given.cpu_clock:
        count_own_cpu_seconds()
    for case in given.cases or CASES:
        ratios = []
        wider: dict[float, list[float]] = {multiple: [] for multiple in WIDER}
        for seed in range(given.first, given.first + given.repeat):
            for instance in CASES[case](seed):
                one, one_cpu, _ = run(instance, 1, given.seconds)
                two, two_cpu, _ = run(instance, 2, given.seconds)
                gap = max(one[-1][1], two[-1][1], 1e-6)
                first, second = reached(one, gap), reached(two, gap)
                ratios.append(first / second)
                for multiple, known in wider.items():
                    known.append(reached(one, multiple * gap) / reached(two, multiple * gap))
                print(
                    f"{instance.name}: gap {gap:.4%}: {first:.1f} s on 1 core ({one_cpu:.1f} CPU in"
                    f" all), {second:.1f} s on 2 ({two_cpu:.1f}), ratio {first / second:.2f};"
                    f" gaps at the end {one[-1][1]:.4%}, {two[-1][1]:.4%}; ratios at "
                    + ", ".join(f"{each} of it {known[-1]:.2f}" for each, known in wider.items()),
                    flush=True,
                )
                pair = {
                    "case": case,
                    "instance": instance.name,
                    "limit": given.seconds,
                    "seconds": (first, second),
                    "one": one[-1][1],
                    "two": two[-1][1],
                }
                keep(given.folder, pair)
        if ratios:
            medians = [f"{each} of it {statistics.median(got):.2f}" for each, got in wider.items()]
            print(
                f"{case}: median ratio {statistics.median(ratios):.2f}; at {', '.join(medians)}",
                flush=True,
            )
        kept = tables(keep(given.folder))
        write_between(PAGE, MARK, kept)
        print(*kept, sep="\n", flush=True)


if __name__ == "__main__":
    main()
