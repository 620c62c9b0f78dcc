"""What nobody can do, family by family, beside theorems and the worst that algorithms do.

``python benchmarks/nobody.py [--minutes M] [FAMILY ...]`` searches futures for so many minutes a
search and keeps the best of all runs in ``benchmarks/results/nobody.json``; then it writes
``docs/results/nobody.md`` and its picture. ``--minutes 0`` writes the page only. The folders of
what was found are written with ``--folders DIR``, for ``hindsched verify``.
"""

import argparse
import csv
import json
import math
import time
from pathlib import Path
from statistics import fmean

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import hindsched as hs
from hindsched.analysis.adversary.adversary import worst_ratio
from hindsched.analysis.bounds import written_down
from hindsched.analysis.foresight.search import run_on
from hindsched.instances.io import parse_instance
from hindsched.online.registry import build_algorithm
from hindsched.solvers.door.work import counting

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs/results/nobody.md", ROOT / "docs/pictures/nobody.svg"
KEPT, WITNESSES = ROOT / "benchmarks/results/nobody.json", ROOT / "benchmarks/results/worst.csv"
ONE_SERVER = {"servers": 1, "worker_types": 1, "horizon": 60, "jobs.epochs": 1, "jobs.chunks": 1,
              "jobs.minibatch_slots": 1, "jobs.weight": [1, 60],
              "jobs.minibatches": [1, 40]}  # fmt: skip
ONE_WORKER = {"worker_servers": 1, "ps_servers": 1, "horizon": 4, "jobs.epochs": 1,
              "jobs.chunks": 1, "jobs.minibatch_slots": 1, "jobs.minibatches": [1, 4],
              "jobs.arrival": [1, 4], "jobs.gradient_mb": [0, 15]}  # fmt: skip
CHAIN, DISCOUNT = "oasis/commit, chain", "mlbroker/run, discount"
SEARCHES = {
    CHAIN: {},
    "oasis/commit": {"ranges": ONE_WORKER, "jobs": 5, "futures": 5},
    "batchsched/run": {"ranges": ONE_SERVER, "jobs": 2, "futures": 41},
    "astraea/run": {"jobs": 4, "futures": 4},
    "edgecloud/commit": {"jobs": 3, "futures": 3},
    "edgecloud/run": {"jobs": 3, "futures": 3},
    "mlbroker/run": {"jobs": 3, "futures": 3, "ranges": {"jobs.deployment_usd": [0, 40]}},
    DISCOUNT: {},
    "gang/run": {"ranges": {"gpus": 1, "weight": 1}, "jobs": 12, "futures": 10},
    "gang/run, 4 GPUs": {"ranges": {"gpus": 4}, "jobs": 8, "futures": 8},
    "gang/run, as drawn": {},
}
"""Family and class of policies, and where futures are drawn."""
PAPERS = {"oasis": 100.0, "batchsched": 10.31, "astraea": math.inf, "edgecloud": 1.421,
          "mlbroker": 9.667}  # fmt: skip
"""The worst ratio found of each paper's own algorithm: suite `worst` (docs/guides/worst.md)."""
HEAD = """# What nobody can do

[`hindsched adversary`](../guides/adversary.md) searched futures for one to {minutes:g} minutes a
row on a busy machine, near the generators' preset `small`. No online algorithm of the class,
randomised or not, has a competitive ratio below the first number, none that does not randomise
below the second. *Proven*:
by certificates of the exact kernel; *by solver*: on the word of the program's solver. *Theorem*:
what the paper promises of its algorithm at most on these futures, and what it assumes that does not
hold on them. *Paper's*: the worst ratio found of its own algorithm by
[`hindsched worst`](../guides/worst.md). *Best*: the algorithm whose worst ratio, by `worst` or on
these futures, is least, among those of the class that keep to the problem's rules and are not
told the future. A row shows the best of its *runs*, by the first number, and how many *candidates*
that run valued; runs were not counted at first, so there were at least so many. No row is the value
of one run with a seed chosen beforehand. Between the first two columns
and the last is what is not known.

![Bounds, and what algorithms do](../pictures/nobody.svg)
"""
TAIL = """
*chain* was not searched: 8 jobs of which one fits, each worth twice the one before, stopped after
any of them; its values are 1 + 7 (1 - 1/2) and 2^7, and with more jobs whose worths are nearer each
other the first tends to 1 + ln(U / L). The other row of
oasis has at most 5 jobs on one server in four slots. *discount* was not searched either: a job
of two slots, and a second one that makes the dearer datacenter cheap if it comes. A search
by `--deterministic`, where policies that do not randomise are bad, found 1.884 for gang on one GPU.
mlbroker's deployment may cost up to 40 USD here: the generator's own costs are so small that
next to nothing is lost by not knowing: within these the plain command finds 1.0004 in ten minutes
(100 CPU seconds). Where the kernel has no rules of a game (edgecloud, mlbroker) candidates are
valued by columns, begin as meetings of two jobs, and are few in the time. Written by
`benchmarks/nobody.py`.
"""


def chain(size, growth):
    """Jobs of oasis of which one fits, each worth so many times the one before; or the first k."""
    unit = {"gpu": 1, "bw": 1}
    jobs = [
        {"name": f"j{k}", "arrival": k + 1, "epochs": 1, "chunks": 1, "minibatches": 1,
         "minibatch_slots": size - k, "gradient_mb": 0, "worker": unit, "ps": unit,
         "utility": {"kind": "linear", "slope": 0, "intercept": growth**k}}
        for k in range(size)
    ]  # fmt: skip
    server = [{"name": "s", "capacity": unit}]
    data = {"format": "hindsched/1", "slot_seconds": 1, "family": "oasis", "horizon": size,
            "resources": ["gpu", "bw"], "bandwidth_resource": "bw", "worker_servers": server,
            "ps_servers": server}  # fmt: skip
    return [parse_instance({**data, "name": f"f{k}", "jobs": jobs[: k + 1]}) for k in range(size)]


def discount():
    """A datacenter of mlbroker that a second job would make cheap, if it came."""

    def price(unit, less, threshold):
        return {"gpu": {"unit_usd": unit, "discounted_usd": less, "threshold": threshold}}

    def job(name, first, deployment, **more):
        return {"name": name, "arrival": first, "departure": 2, "worker": {"gpu": 1},
                "ps": {"gpu": 0}, "capacity_gb": 1, "exchange_gb": 0, **more,
                "deployment_usd": deployment, "data_gb": [[0.5, 0.5]] * (3 - first)}  # fmt: skip

    jobs = [job("base", 1, 1), job("late", 2, 0, pinned_datacenters=["r2"])]
    data = {"format": "hindsched/1", "family": "mlbroker", "horizon": 2, "slot_seconds": 86400,
            "resources": ["gpu"], "transfer_usd_per_gb": [[0, 0], [0, 0]],
            "datacenters": [{"name": "r1", "prices": price(1, 0.5, 100)},
                            {"name": "r2", "prices": price(1.5, 0, 1)}]}  # fmt: skip
    return [parse_instance({**data, "name": name, "jobs": jobs[:size]})
            for name, size in (("never", 1), ("comes", 2))]  # fmt: skip


def search(name, minutes, seed):
    """The best futures of one search, as the page needs them."""
    if name == CHAIN:
        return hs.Adversary.of(chain(8, 2), "commit")
    if name == DISCOUNT:
        with counting():
            return hs.Adversary.of(discount(), "run", time_limit=10)
    family, policies = name.split(",")[0].split("/")
    return hs.adversary(
        family, policies, time_limit=60 * minutes, seed=seed, **SEARCHES[name]
    )  # fmt: skip


def online_algorithms(family, formulation):
    """Algorithms that keep to the problem's rules and are not told the future."""
    built = {name: build_algorithm(family, name, {}) for name in hs.algorithms(family)}
    return [name for name, own in built.items()
            if not own.relaxes(formulation) and not own.card.clairvoyant]  # fmt: skip


def ratios_on(found):
    """The worst ratio of each algorithm on the futures found, none where one cannot run."""
    ratios, up = {}, found.found.is_maximised
    for name in online_algorithms(found.futures.instances[0].family, found.found.formulation):
        try:
            runs = run_on(found.futures, name, found.found.formulation, range(5))
        except hs.HindschedError:
            continue
        means = [fmean(values) for values in zip(*(run.values for run in runs), strict=True)]
        ratios[name] = worst_ratio(means, found.optima, up)
    return ratios


def best_algorithm(name, here):
    """The algorithm of the class whose worst ratio, here or by `worst`, is least; and that."""
    family, policies = name.split(",")[0].split("/")
    here = {one: ratio for one, ratio in here.items() if policies == "run"
            or build_algorithm(family, one, {}).card.commits_at_arrival}  # fmt: skip
    worst = dict(here)
    for row in csv.DictReader(WITNESSES.open()):
        if row["family"] == family and row["algorithm"] in worst:
            worst[row["algorithm"]] = max(worst[row["algorithm"]], float(row["found"]))
    for name, ratio in PAPERS.items():
        if name in worst:
            worst[name] = max(worst[name], ratio)
    return min(worst.items(), key=lambda pair: pair[1], default=("none", math.inf))


def kept_of(found, seconds):
    """What is kept of a search."""
    data = found.result()
    interval = {True: "upper", False: "lower"}[found.found.is_maximised]
    unproven = found.found.unproven
    return {
        "ratio": found.ratio, "deterministic": found.ratio_deterministic,
        "proven": f"guarantee: {interval}" not in unproven,
        "theorem": data["theorem"], "futures": len(found.futures),
        "jobs": max(len(one.jobs) for one in found.futures.instances), "cpu": seconds,
        "evaluations": found.search.get("evaluations", 0), "algorithms": ratios_on(found),
    }  # fmt: skip


def page(kept, minutes):
    """The page of what is kept."""
    columns = ["family, class", "no ratio below", "without randomising", "proof", "futures, jobs",
               "candidates, runs", "the theorem promises", "paper's", "best"]  # fmt: skip
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name in SEARCHES:
        if name not in kept:
            continue
        row, family = kept[name], name.split("/")[0]
        theorem = row["theorem"]
        says = "nothing"
        if theorem:
            says = f"{theorem['value']:.4g}"
            if theorem["lacking"]:
                says += f"; does not hold: {', '.join(theorem['lacking'])}"
        who, least = best_algorithm(name, row["algorithms"])
        paper = PAPERS.get(family)
        cells = [name.replace("/", ", "), written_down(row["ratio"]),
                 written_down(row["deterministic"]),
                 "proven" if row["proven"] else "by solver", f"{row['futures']}, {row['jobs']}",
                 f"{row['evaluations']}, {row.get('runs', 1)}" if row["evaluations"]
                 else "built by hand", says,
                 "none" if paper is None else f"{paper:.4g}".replace("inf", "infinite"),
                 f"`{who}` {least:.4g}".replace("inf", "infinite")]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([HEAD.format(minutes=minutes), *lines, TAIL])


def picture(kept):
    """A row a search: from what nobody can do to what the best algorithm and the paper's do."""
    names = [name for name in SEARCHES if name in kept]
    figure, ax = plt.subplots(figsize=(7.2, 0.6 + 0.42 * len(names)), layout="constrained")
    for y, name in enumerate(names):
        row, family = kept[name], name.split("/")[0]
        best, theorem = best_algorithm(name, row["algorithms"])[1], row["theorem"]
        ends = {
            "no algorithm below": ("o", row["ratio"]),
            "none that does not randomise": ("s", row["deterministic"]),
            "best algorithm's worst found": ("^", best),
            "paper's worst found": ("D", PAPERS.get(family)),
            "the theorem promises": ("x", theorem and theorem["value"]),
        }
        if math.isfinite(best):
            ax.plot([row["ratio"], best], [y, y], color="#8A8A8A")
        for number, (label, (marker, x)) in enumerate(ends.items()):
            if x is not None and math.isfinite(x):
                ax.plot(x, y, marker, color=f"C{number}", label=label)
    handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    ax.legend(handles.values(), handles.keys(), fontsize=7, loc="lower right")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.set_yticks(range(len(names)), [name.replace("/", ", ") for name in names])
    ax.invert_yaxis()
    ax.set_xlabel("competitive ratio (logarithmic; infinite ones are left out)")
    figure.savefig(PICTURE, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", type=Path)
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in SEARCHES if options.minutes else ():
        if options.families and name.split("/")[0] not in options.families:
            continue
        begun = time.process_time()
        found = search(name, options.minutes, options.seed)
        row = kept_of(found, time.process_time() - begun)
        print(name, row, flush=True)
        before = kept.get(name)
        if is_better := before is None or row["ratio"] > before["ratio"] or not row["evaluations"]:
            kept[name] = row
        kept[name]["runs"] = 1 if before is None else before.get("runs", 1) + 1
        if is_better and options.folders:
            found.write(options.folders / name.replace("/", "-").replace(", ", "-"))
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    mpl.rcParams["svg.hashsalt"] = "hindsched"
    PAGE.write_text(page(kept, options.minutes or 3.0))
    with hs.plot.look():
        picture(kept)


if __name__ == "__main__":
    main()
