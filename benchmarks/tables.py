"""The measured tables of the families' pages: ``python benchmarks/tables.py [NAME ...]``.

Each table is measured by one function, kept in `benchmarks/table_results` and written between its
marks on a page; ``--page`` only writes. Work is limited by iterations and nodes, so that a table
does not depend on the machine. A test holds the pages against what is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from astraea import batch_ceiling

import hindsched as hs
from hindsched.instances.catalogue import suites
from hindsched.solvers.families.mlbroker.methods import lagrangian_certificate

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).parent / "table_results"
END = "<!-- end of table -->"
ITERATIONS, WORK = 400, 800
"""Of a bound; of a solve, nodes and neighbourhoods included."""
Rows = list[list[str]]
"""The head, then the rows."""


def oasis_floors() -> Rows:
    """Total utility of OASiS on two large instances, by what is done about the literal L."""
    settings = {
        "literal L": {},
        "literal L, `least_payoff=1e-12`": {"least_payoff": 1e-12},
        **{f"`lower_floor={floor}`": {"lower_floor": floor} for floor in (0.001, 0.01, 0.1)},
    }
    names = ("oasis-t100-i100-h50-s0", "oasis-t300-i300-h50-s0")
    instances = [hs.named_instance(name) for name in names]
    rows = [["setting", *(f"`{name}`" for name in names)]]
    for words, chosen in settings.items():
        runs = [hs.simulate(instance, "oasis", settings=chosen) for instance in instances]
        rows.append([words, *(f"{run.objective:.1f}" for run in runs)])
    for words, floor in (("literal L", 0.0), ("`lower_floor=0.1`", 0.1)):
        spread = []
        for instance in instances:
            drawn = [
                hs.simulate(reordered(instance, seed), "oasis", settings={"lower_floor": floor})
                for seed in range(10)
            ]
            ends = [run.objective for run in drawn]
            spread.append(f"{min(ends):.1f} to {max(ends):.1f}")
        rows.append([f"{words}, servers in 10 other orders", *spread])
    return rows


def reordered(instance: Any, seed: int) -> Any:
    """The instance with its servers in another order, which breaks ties."""
    draw = np.random.default_rng(seed)
    pools = {pool: getattr(instance, pool) for pool in ("worker_servers", "ps_servers")}
    return instance.with_fields(**{
        pool: tuple(servers[k] for k in draw.permutation(len(servers)))
        for pool, servers in pools.items()
    })  # fmt: skip


def edgecloud_cloud() -> Rows:
    """Total completion times at the paper's scale beside a certified bound."""
    algorithms = ("all-cloud", "edgecloud", "edgecloud-marginal", "edgecloud-escape")
    settings = {
        "paper": {},
        "minibatch times x 0.05": {"minibatch_scale": 0.05},
        "the same, no cloud": {"minibatch_scale": 0.05, "cloud_workers": 0},
    }
    head = ["setting", "seed", *(f"`{name}`" for name in algorithms), "bound", "A_online / bound"]
    rows = [head]
    for words, chosen in settings.items():
        for seed in range(5 if chosen == {} else 2):
            instance = hs.generate("edgecloud", "paper", seed, **chosen)
            bound = hs.solve(instance, "bound", work_limit=ITERATIONS).bound
            found = {
                name: hs.simulate(instance, name).objective
                for name in algorithms
                if name != "all-cloud" or chosen.get("cloud_workers") != 0
            }
            cells = [f"{found[name]:,.0f}" if name in found else "-" for name in algorithms]
            ratio = found["edgecloud"] / bound
            rows.append([words, str(seed), *cells, f"{bound:,.0f}", f"{ratio:.3f}"])
    return rows


def astraea_gap() -> Rows:
    """Certified bound over revenue, taken apart; the least and the most of three seeds."""
    cases = {
        "linear, 100 servers": {"utility": "linear", "servers": 100},
        "linear, 20 servers": {"utility": "linear", "servers": 20},
        "power, 100 servers": {"utility": "power", "servers": 100},
    }
    words = ("found", "waiting, lambda 1", "waiting, lambda 2 (the default)", "astraea, lambda 1",
             "astraea, lambda 2 (the default)")  # fmt: skip
    cells: dict[str, list[str]] = {word: [] for word in words}
    for chosen in cases.values():
        ratios: dict[str, list[float]] = {word: [] for word in words}
        for seed in range(3):
            instance = hs.generate("astraea", "paper", seed, **chosen)
            best = hs.solve(instance, work_limit=WORK)
            earned = [best.objective, *(batch_ceiling(instance, rounds) for rounds in (1, 2))]
            earned += [
                hs.simulate(instance, "astraea", settings={"rounds": rounds}).objective
                for rounds in (1, 2)
            ]
            for word, revenue in zip(words, earned, strict=True):
                ratios[word].append(best.bound / revenue)
        for word in words:
            cells[word].append(f"{min(ratios[word]):.3f}-{max(ratios[word]):.3f}")
    return [["", *cases], *([word, *cells[word]] for word in words)]


REMAINDER = {"price": "chord", "rounding": "largest-remainder"}
ABLATION: dict[str, tuple[str, dict[str, Any]]] = {
    "mlbroker (the paper)": ("mlbroker", {}),
    "chord price": ("mlbroker", {"price": "chord"}),
    "... and Round2 alone": ("mlbroker", {"price": "chord", "rounding": "round2"}),
    "... or largest remainder": ("mlbroker", REMAINDER),
    "... and plain switching": ("mlbroker", {**REMAINDER, "switching": "relu"}),
    "mlbroker-tight": ("mlbroker-tight", {}),
    "mlbroker-prices": ("mlbroker-prices", {}),
    "central": ("central", {}),
    "oasis-style": ("oasis-style", {}),
}
"""One change at a time, from the paper's algorithm to ours."""
LOCALITY: dict[str, dict[str, Any]] = {
    "Section 6.1": {},
    "transfer x 5": {"transfer_usd": (0.05, 0.1)},
    "transfer x 5, nothing exchanged": {"transfer_usd": (0.05, 0.1), "exchange_gb": 0},
}
"""Where local data matters more and more."""


def mlbroker_ablation() -> Rows:
    """Cost over the certified bound, from the paper's algorithm to ours."""
    size = {"datacenters": 15, "horizon": 50, "jobs": 145}
    instances = [hs.generate("mlbroker", "paper", 0, **size, **each) for each in LOCALITY.values()]
    bounds = [lagrangian_certificate(instance).bound for instance in instances]
    rows = [["", *LOCALITY]]
    for words, (name, chosen) in ABLATION.items():
        costs = [hs.simulate(each, name, settings=chosen).objective for each in instances]
        ratios = (cost / bound for cost, bound in zip(costs, bounds, strict=True))
        rows.append([words, *(f"{ratio:.3f}" for ratio in ratios)])
    return rows


def mlbroker_levels() -> Rows:
    """Cost over the proven optimum on the suite `small`, the mean of two instances a level."""
    levels = (
        "prices of the centres differ by up to 8",
        "equal GPU prices, discounts of 50 to 60 % within reach",
        "equal GPU prices, transfers x 5, little talk",
        "the same, transfers x 20, launches x 100, data that moves",
    )
    algorithms = ("mlbroker", "mlbroker-tight", "reoptimise", "central", "oasis-style",
                  "local")  # fmt: skip
    instances = suites("mlbroker")["small"]()
    assert len(instances) == 2 * len(levels)
    rows = [["level", "settings", *(f"`{name}`" for name in algorithms)]]
    for level, words in enumerate(levels):
        ratios: dict[str, list[float]] = {name: [] for name in algorithms}
        for instance in instances[2 * level : 2 * level + 2]:
            optimum = hs.solve(instance, "milp")
            assert optimum.status == "optimal"
            for name in algorithms:
                run = hs.simulate(instance, name)
                ratios[name].append(run.objective / optimum.objective)
        cells = [f"{fmean(ratios[name]):.3f}" for name in algorithms]
        rows.append([str(level + 1), words, *cells])
    return rows


def file_mutations() -> Rows:
    """What became of files changed at random, family by family."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "files.json"
        asked = {"MUTATIONS": "20000", "SEED": "1", "MUTATIONS_RECORD": str(record)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "--timeout=0",
            "tests/mutations",
        ]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **asked})
        return records_as_rows(json.loads(record.read_text(encoding="utf-8")))


def records_as_rows(records: dict[str, dict[str, Any]]) -> Rows:
    """A row a family of what `tests/mutations` writes down."""
    rows = [["family", "files", "seed", "wrong claims, hangs, tracebacks", "judged by both",
             "refused by one of the two alone", "not judged", "CPU seconds"]]  # fmt: skip
    for family, record in records.items():
        verdicts = {key.split(": ")[1]: 0 for key in record if ": fast" in key}
        for key, count in record.items():
            if ": fast" in key:
                verdicts[key.split(": ")[1]] += count
        alone = sum(n for key, n in verdicts.items() if key.count("refused") == 1)
        judged = sum(n for key, n in verdicts.items() if "refused" not in key)
        rows.append([
            f"`{family}`", f"{record['files']:,}", str(record["seed"]), str(record["findings"]),
            f"{judged:,}", f"{alone:,}", f"{record.get('  not judged', 0):,}",
            f"{record['seconds of CPU']:,}",
        ])  # fmt: skip
    return rows


TABLES: dict[str, tuple[str, Callable[[], Rows]]] = {
    "oasis-floors": ("problems/oasis", oasis_floors),
    "edgecloud-cloud": ("problems/edgecloud", edgecloud_cloud),
    "astraea-gap": ("problems/astraea", astraea_gap),
    "mlbroker-ablation": ("problems/mlbroker", mlbroker_ablation),
    "mlbroker-levels": ("problems/mlbroker", mlbroker_levels),
    "file-mutations": ("reference/certificates", file_mutations),
}


def rendered(rows: Rows) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def with_table(text: str, name: str, rows: Rows) -> str:
    """A page with a table between its marks."""
    begin = f"<!-- table {name}: made by benchmarks/tables.py -->"
    before, rest = text.split(begin)
    inner, after = rest.split(END, 1)
    indent = inner.rsplit("\n", 1)[-1]
    body = "\n".join(indent + line for line in rendered(rows).splitlines())
    return f"{before}{begin}\n\n{body}\n\n{indent}{END}{after}"


def kept(name: str) -> Rows:
    """A table as it was measured last."""
    rows: Rows = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--page", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    for name, (page, measure) in TABLES.items():
        if not chosen.page and (not chosen.names or name in chosen.names):
            began = time.process_time()
            text = json.dumps(measure(), indent=1, ensure_ascii=False)
            (STORED / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
            print(f"{name}: {time.process_time() - began:.0f} s of processor time", flush=True)
        path = ROOT / "docs" / f"{page}.md"
        text = with_table(path.read_text(encoding="utf-8"), name, kept(name))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
