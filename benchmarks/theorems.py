"""Try the papers' competitive ratios on instances that meet what the theorems assume.

``python benchmarks/theorems.py [N]`` draws N instances a theorem (5 by default) and prints on how
many it holds, is violated or not applicable. mlbroker's r2 depends on the currency: prices are in
thousands here.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hindsched as hs
from hindsched.analysis.ratio import competitive_ratio, optimum_of
from hindsched.instances.base import family_module
from hindsched.online.edgecloud.speed_augmentation import run_with_speed

PRICES = {
    "gpu_range": (0.0012, 0.0096), "cpu_range": (0.00013, 0.00024), "memory_range": (1e-5, 1e-4),
    "storage_range": (1e-5, 1e-4), "transfer_usd": (1e-5, 2e-5), "deployment_usd": (5e-5, 1e-4),
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "oasis": {},
    "batchsched": {"jobs": 4, "worker_types": 1, "ps_types": 1, "chunks": (1, 1), "gpus": (1, 1),
                   "gradient_mb": (0.001, 0.001), "weight": (5, 9)},
    "astraea": {"servers": 40, "workers_per_server": (1, 2), "horizon": 600,
                "utility_origin": "absolute"},
    "edgecloud": {"edge_upload": (1, 1), "cloud_upload": (1, 1), "ps": (9, 9)},
    "mlbroker": {"jobs": 12, "exchange_gb": 0, **PRICES},
}  # fmt: skip
LARGER = {"oasis": 400, "batchsched": 12}
"""How many times the capacities of servers are taken, so that jobs are small against them."""
BY_THE_RUN = ("F, the weights", "lambda rounds", "r2 is free", "the dual (11)",
              "the algorithm runs at speed", "Lemma 2")  # fmt: skip
"""Assumptions that the run fulfils by its settings, or that are no condition on instances."""
ROUNDS = {"batchsched": ("alpha", "alpha"), "astraea": ("rounds", "lambda")}


def instances(family: str, count: int) -> Iterator[Any]:
    """Instances with large servers."""
    for seed in range(count):
        drawn = hs.generate(family, preset="small", seed=seed, **SETTINGS[family])
        data = drawn.to_dict()
        for kind in ("servers", "worker_servers", "ps_servers") if family in LARGER else ():
            for server in data.get(kind, ()):
                sizes = server["capacity"].items()
                server["capacity"] = {name: LARGER[family] * amount for name, amount in sizes}
        yield type(drawn).parse(data)


def outcome(family: str, instance: Any) -> str:
    """Whether a theorem's number is kept on one instance."""
    theorem = family_module("online", family, "algorithms").theorem(instance)
    broken = [item["name"] for item in theorem["assumptions"] if not item["holds"]]
    if failing := [name for name in broken if not name.startswith(BY_THE_RUN)]:
        return f"not applicable: {'; '.join(failing)}"
    if family == "edgecloud":
        objective: Any = run_with_speed(instance, theorem["quantities"]["epsilon"]).total
    else:
        settings = {
            name: theorem[number] for name, number in [ROUNDS.get(family, ("", ""))] if name
        }
        objective = hs.simulate(instance, family, settings=settings).objective
    best = hs.solve(instance, time_limit=60)
    known = optimum_of(instance.sense, best.objective, best.bound, best.status, proof="solver")
    ratio = competitive_ratio(known, objective)
    kept = ratio.difference if theorem["kind"] == "additive" else ratio.interval
    if kept.lower is not None and kept.lower > theorem["value"]:
        return f"violated: {instance.name}, {kept.lower:.3g} > {theorem['value']:.3g}"
    is_kept = kept.upper is not None and kept.upper <= theorem["value"]
    return "holds" if is_kept else "not decided: the optimum is not known"


if __name__ == "__main__":
    for family in SETTINGS:
        tried = instances(family, int(sys.argv[1]) if len(sys.argv) > 1 else 5)
        for text, count in Counter(outcome(family, instance) for instance in tried).items():
            print(f"{family}: {count} x {text}")
