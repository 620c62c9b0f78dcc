"""How the running times of the papers' algorithms grow, against what their theorems say.

One size at a time is doubled. A row has the processor seconds of a run and what the theorem's
expression comes to for it; the claim is that the exponent of one in the other is at most 1.
``python benchmarks/claims.py --again oasis-time`` runs oasis'.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import log2
from typing import Any, NamedTuple

import pandas as pd

import hindsched as hs
from hindsched.analysis.figures.base import Figure, FigureScale, OnRow, Plot, Row


class Growth(NamedTuple):
    """What runs, with which settings, the values of each size, and the theorem's expression."""

    algorithm: str
    preset: str
    settings: dict[str, Any]
    sizes: dict[str, tuple[float, ...]]
    bound: Callable[[Any, int, str], float]  # of an instance, its run's last slot and the size
    of_the_run: dict[str, Any]


def _oasis(instance: Any, last: int, size: str) -> float:
    """One of the two terms: only the smaller one has servers."""
    servers = len(instance.worker_servers) + len(instance.ps_servers)
    works = [job.chunks * job.epochs for job in instance.jobs]
    steps = [work * (servers if size == "servers" else work) for work in works]
    return float(instance.horizon * sum(steps))


def _batchsched(instance: Any, last: int, size: str) -> float:
    servers, types = len(instance.servers), len(instance.worker_types) * len(instance.ps_types)
    weight = log2(sum(job.weight for job in instance.jobs))
    server_steps = servers * log2(servers) + servers**2
    return weight * len(instance.jobs) * types * last**2 * log2(last) * server_steps


def _astraea(instance: Any, last: int, size: str) -> float:
    servers, chunks = len(instance.servers), sum(job.chunks for job in instance.jobs)
    return log2(last) * last * chunks * servers * log2(servers)


def _edgecloud(instance: Any, last: int, size: str) -> float:
    chunks = sum(job.chunks for job in instance.jobs)
    return float(len(instance.jobs) * (len(instance.worker_list) + 1) * chunks)


DOUBLED = 1, 2, 4, 8
FAMILIES = {
    "oasis": Growth(
        "oasis-chunk", "paper", {"jobs": 100, "servers": 40, "max_duration": 5},
        {"horizon": (100, 200, 400, 800), "servers": (20, 40, 80, 160), "epochs": DOUBLED,
         "chunks": DOUBLED},
        _oasis, {},
    ),
    "batchsched": Growth(
        "batchsched", "paper", {"jobs": 50, "servers": 40, "capacity_fraction": 0.2},
        {"jobs": (25, 50, 100), "servers": (20, 40, 80), "worker_types": (2, 4, 8),
         "ps_types": (5, 10, 20)},
        _batchsched, {},
    ),
    "astraea": Growth(
        "astraea", "printed", {"horizon": 24_000},
        {"jobs": (25, 50, 100, 200), "servers": (50, 100, 200), "chunks": (10, 20, 40),
         "minibatch_scale": (0.25, 0.5, 1.0)},
        _astraea, {"rounds": 1},
    ),
    "edgecloud": Growth(
        "edgecloud", "paper", {"jobs": 100},
        {"jobs": (50, 100, 200, 400), "servers": (50, 100, 200, 400), "chunks": (15, 30, 60, 120)},
        _edgecloud, {},
    ),
}  # fmt: skip
TIMES = {"oasis": ("epochs", "chunks")}
"""Sizes that no setting draws: fields of the jobs, times so much."""


def instance_of(family: str, seed: int, size: str, value: float) -> Any:
    """The family's instance with one size changed."""
    growth = FAMILIES[family]
    times = size in TIMES.get(family, ())
    changed = {} if times else {size: (value, value) if size == "chunks" else value}
    drawn = hs.generate(family, growth.preset, seed, **{**growth.settings, **changed})
    if not times:
        return drawn
    data = drawn.to_dict()
    for job in data["jobs"]:
        job[size] *= value
    return type(drawn).parse(data)


def measured(family: str, seed: int, size: str, value: float) -> Row:
    """Seconds of a run, milliseconds of its slowest decision, and the theorem's expression."""
    growth = FAMILIES[family]
    made = instance_of(family, seed, size, value)
    began = time.process_time()
    run = hs.simulate(made, growth.algorithm, settings=growth.of_the_run)
    seconds = time.process_time() - began
    last = max(row["completion"] or 0 for row in run.solution.job_rows())
    bound = growth.bound(made, last, size)
    return {"size": size, "value": value, "seed": seed, "seconds": seconds,
            "milliseconds": max(run.decision_ms), "bound": bound}  # fmt: skip


def run_growth(family: str, scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """A row a size, its value and a seed."""
    growth = FAMILIES[family]
    hs.simulate(hs.generate(family, "small", 0), growth.algorithm)  # compiles
    rows: list[Row] = []
    for seed in range(scale.seeds):
        for size, values in growth.sizes.items():
            for value in values:
                key = [family, seed, size, value]
                rows += scale.once(key, partial(measured, *key))
                on_row(f"{family} {size} {value} seed {seed}")
    return pd.DataFrame(rows)


GROWTH = {
    family: Figure("time", "Running time against what the theorem's expression comes to",
                   partial(run_growth, family), Plot("bound", "seconds", "size", log_y=True))
    for family in FAMILIES
}  # fmt: skip
