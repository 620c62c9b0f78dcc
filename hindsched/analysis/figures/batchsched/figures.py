"""Figures 2-12 of batchsched's paper as experiments, with the ranges of its Section 7.

The paper's A_online is ``batchsched``. Beside it stand the exact and the work-conserving variants
and plain list scheduling (``wspt``), which the paper leaves out; preemptive and elastic rivals are
outside the problem's feasible set and marked so in tables and drawings. The paper's cluster is
0.2-0.5 of the summed ideal demand, where hardly a job waits: Figures 2, 3, 5, 6, 9 and 10 run over
`CONTENTION` instead, the others at 0.35, Figure 4 at 0.2. One round of A_maxweight (Figures 8,
11, 12) is asked for tau = 64 on 0.05 of it, where not every job fits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from hindsched.analysis.figures.base import Figure, FigureScale, OnRow
from hindsched.analysis.figures.drawing import Plot
from hindsched.instances.batchsched.generator import EC2_WORKERS
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.generators.registry import generate
from hindsched.json_types import JsonObject
from hindsched.online.batchsched.algorithms import (
    BatchschedExact,
    BatchschedOnline,
    GreedyRtl,
    declared_estimates,
)
from hindsched.online.batchsched.theorem import theorem
from hindsched.online.simulator import environment_of, simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions

LEFT_SHIFT = "batchsched-adaptive, left shift"
VARIANTS = ("batchsched", "batchsched-exact", "batchsched-adaptive")
SCHEMES = (
    "batchsched",
    "batchsched-adaptive",
    LEFT_SHIFT,
    "fifo",
    "drf",
    "antman",
    "tiresias",
    "wspt",
)
SHORT = {PARAMETER_SERVER: "PS", RING_ALLREDUCE: "RAR"}
ROUND_HORIZON = 64
CONTENTION = (0.05, 0.1, 0.2, 0.35, 0.5)
"""Capacity of the cluster as a share of the summed ideal demand: less of it, longer queues."""
QUICK_CONTENTION = (0.05, 0.35)
USUAL = (0.35,)


def _instance(
    scale: FigureScale, seed: int, architecture: str, varied: JsonObject, **fixed: object
) -> BatchschedInstance:
    changed = {"architecture": architecture, **varied}
    made = scale.instance("batchsched", "paper", seed, changed, **fixed)
    assert isinstance(made, BatchschedInstance)
    return made


def _run(
    instance: BatchschedInstance, name: str, seed: int, settings: JsonObject, on_row: OnRow
) -> JsonObject:
    if name == LEFT_SHIFT:
        algorithm, settings = "batchsched-adaptive", {**settings, "left_shift": True}
    else:
        algorithm = name
    began = time.perf_counter()
    run = simulate(instance, algorithm, seed=seed, settings=settings)
    on_row(f"{instance.name} {name}")
    return {
        "algorithm": name,
        "seed": seed,
        "objective": run.objective,
        "seconds": time.perf_counter() - began,
        "in_feasible_set": run.in_feasible_set and not run.violations,
    }


def _sweep(
    scale: FigureScale,
    on_row: OnRow,
    *,
    axis: str,
    full: Iterable[object],
    quick: Iterable[object],
    architectures: tuple[str, ...],
    schemes: tuple[str, ...] = SCHEMES,
    base: JsonObject | None = None,
    quick_base: JsonObject | None = None,
    contention: bool = True,
) -> pd.DataFrame:
    """Run schemes over the values of one generator setting, and over the contention."""
    rows = []
    shared = scale.pick(
        base or {}, {"jobs": 20, "servers": 20, "horizon": 40, **(quick_base or {})}
    )
    shares = (CONTENTION, QUICK_CONTENTION) if contention else (USUAL, USUAL)
    fractions = scale.axis("capacity_fraction", *shares)
    values = scale.axis(axis, full, quick)
    settings = product(fractions, architectures, values, range(scale.seeds))
    for fraction, architecture, value, seed in settings:
        changed = {"capacity_fraction": fraction, axis: value}
        instance = _instance(scale, seed, architecture, changed, **shared)
        for name in scale.chosen(schemes):
            row = _run(instance, name, seed, {}, on_row)
            facts = {**changed, axis: "free choice" if value is None else value}
            rows.append({**facts, "architecture": architecture, **row})
    return pd.DataFrame(rows)


def _running_time(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Figure 7; compiled code is loaded before the clock runs."""
    for architecture in BOTH:
        tiny = generate("batchsched", "small", 0, architecture=architecture)
        for name in VARIANTS:
            simulate(tiny, name)
    return _jobs(scale, on_row, architectures=BOTH, schemes=VARIANTS, contention=False)


def _forced_types(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Figure 9: a bar an algorithm and architecture; the worker types are the paper's."""
    table = _sweep(
        scale,
        on_row,
        axis="fixed_worker_type",
        full=(*range(1, len(EC2_WORKERS) + 1), None),
        quick=(1, 4, None),
        base={"ec2_workers": True},
        quick_base={"ec2_workers": True},
        architectures=BOTH,
        schemes=("batchsched", "batchsched-adaptive"),
    )
    names = {number: name for number, (name, *_) in enumerate(EC2_WORKERS, 1)}
    table["fixed_worker_type"] = table["fixed_worker_type"].replace(names)
    table["scheme"] = table["algorithm"] + ", " + table["architecture"].map(SHORT)
    return table


def _density_scale(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Figure 4: A_online at several multiples of F."""
    rows = []
    settings = scale.pick({}, {"jobs": 20, "servers": 10, "horizon": 40})
    for seed in range(scale.seeds):
        instance = _instance(scale, seed, PARAMETER_SERVER, {}, **settings, capacity_fraction=0.2)
        for factor in scale.pick((1, 1e2, 1e4, 1e6, 1e8), (1, 1e4, 1e8)):
            for name in scale.chosen(VARIANTS):
                row = _run(instance, name, seed, {"density_scale": factor}, on_row)
                rows.append({"density_scale": factor, **row})
    return pd.DataFrame(rows)


def accepted_weight(
    instance: BatchschedInstance, algorithm: BatchschedOnline, horizon: int, seed: int = 0
) -> float:
    """Total weight that one sub-round accepts on an empty cluster by `horizon`."""
    algorithm.start(environment_of(instance, declared_estimates(instance), seed, "modes"))
    admitted = algorithm.run_round(list(instance.jobs), horizon)
    return float(sum(admission.job.weight for admission in admitted))


def _rounds(
    scale: FigureScale,
    on_row: OnRow,
    *,
    axis: str,
    full: Iterable[object],
    quick: Iterable[object],
    algorithms: dict[str, Callable[[], BatchschedOnline]],
    setting: bool = True,
    jobs: int | None = None,
) -> pd.DataFrame:
    """Total weight of one sub-round over the values of a generator or algorithm setting."""
    rows = []
    shared = scale.pick({"jobs": 100, "servers": 50}, {"jobs": 30, "servers": 15})
    shared = {**shared, "capacity_fraction": 0.05, **({} if jobs is None else {"jobs": jobs})}
    for value in scale.axis(axis, full, quick) if setting else scale.pick(full, quick):
        for seed in range(scale.seeds):
            changed = {axis: value} if setting else {}
            instance = _instance(scale, seed, PARAMETER_SERVER, changed, **shared)
            for name in scale.chosen(algorithms):
                algorithm = algorithms[name]()
                if not setting:
                    algorithm.density_scale = value
                weight = accepted_weight(instance, algorithm, ROUND_HORIZON, seed)
                rows.append({axis: value, "algorithm": name, "seed": seed, "weight": weight})
                on_row(f"{instance.name} {name} {axis}={value}")
    return pd.DataFrame(rows)


def _servers_and_jobs(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Figure 12: against the servers, at several numbers of jobs."""
    parts = []
    for jobs in scale.axis("jobs", (50, 100, 200), (15, 30)):
        part = _rounds(
            scale,
            on_row,
            axis="servers",
            full=(25, 50, 100, 150),
            quick=(10, 20),
            algorithms=ROUND_ALGORITHMS,
            jobs=jobs,
        )
        parts.append(part.assign(jobs=jobs))
    return pd.concat(parts, ignore_index=True)


def _competitive(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """A_online over the optimum, on instances that are small enough for it."""
    options = SolveOptions(work_limit=scale.pick(6000, 500))
    rows = []
    counts = scale.axis("jobs", (3, 4, 5, 6), (2, 3))
    for architecture, jobs, seed in product(BOTH, counts, range(scale.seeds)):
        changed = {"architecture": architecture, "jobs": jobs}
        instance = scale.instance("batchsched", "small", seed, changed, horizon=scale.pick(12, 8))
        best = solve(instance, options=options)
        promised = theorem(instance)["value"]
        for name in scale.chosen(VARIANTS):
            cost = simulate(instance, name, seed=seed).objective
            rows.append(
                {
                    **changed,
                    "algorithm": name,
                    "seed": seed,
                    "objective": cost,
                    "optimum_lower": best.bound,
                    "ratio_upper": cost / best.bound if best.bound else None,
                    "theorem": promised,
                }
            )
        on_row(f"{instance.name} {best.status}")
    return pd.DataFrame(rows)


ROUND_ALGORITHMS: dict[str, Callable[[], BatchschedOnline]] = {
    "A_maxweight": BatchschedOnline,
    "A_maxweight, exact": BatchschedExact,
    "A_maxweight, exact, by density": partial(BatchschedExact, order="density"),
    "Jain et al. (GreedyRTL)": GreedyRtl,
}
BOTH = (PARAMETER_SERVER, RING_ALLREDUCE)
_jobs = partial(_sweep, axis="jobs", full=(50, 100, 150, 200), quick=(10, 20))
_servers = partial(
    _sweep, axis="servers", full=(50, 100, 150, 200), quick=(10, 20), quick_base={"jobs": 15}
)


def _cost(x: str, *, contention: bool = True, **more: Any) -> Plot:
    panels = "capacity_fraction" if contention else None
    return Plot(x, "objective", "algorithm", panels=panels, log_y=contention, **more)


FIGURES = [
    Figure(
        "2",
        "Total weighted completion time against jobs, parameter servers",
        "A_online is at least 30 % better than FIFO, DRF, AntMan and Tiresias.",
        partial(_jobs, architectures=(PARAMETER_SERVER,), base={"horizon": 300}),
        _cost("jobs"),
    ),
    Figure(
        "3",
        "Total weighted completion time against servers at fixed total capacity, parameter servers",
        "The total grows with the number of servers: more fragments, and a larger lambda.",
        partial(_servers, architectures=(PARAMETER_SERVER,)),
        _cost("servers"),
    ),
    Figure(
        "4",
        "A_online against the declared F",
        "A larger F gives a larger total: light jobs are put off.",
        _density_scale,
        _cost("density_scale", contention=False, log_x=True),
    ),
    Figure(
        "5",
        "Total weighted completion time against jobs, Ring-AllReduce",
        "As in Figure 2: A_online is best.",
        partial(_jobs, architectures=(RING_ALLREDUCE,), base={"horizon": 300}),
        _cost("jobs"),
    ),
    Figure(
        "6",
        "Total weighted completion time against servers at fixed total capacity, Ring-AllReduce",
        "The total grows with the number of servers, as in Figure 3.",
        partial(_servers, architectures=(RING_ALLREDUCE,)),
        _cost("servers"),
    ),
    Figure(
        "7",
        "Running time of A_online, both architectures",
        "It grows with the jobs and stays below two minutes (Matlab, one core).",
        _running_time,
        Plot("jobs", "seconds", "algorithm", panels="architecture"),
        levels=(120.0,),
    ),
    Figure(
        "8",
        "Weight accepted by A_maxweight and by Jain et al.",
        "A_maxweight accepts much more weight.",
        partial(
            _rounds,
            axis="jobs",
            full=(50, 100, 150, 200),
            quick=(20, 40),
            algorithms=ROUND_ALGORITHMS,
        ),
        Plot("jobs", "weight", "algorithm"),
    ),
    Figure(
        "9",
        "One worker type forced against free choice, both architectures",
        "Free choice of the worker type gives the least total.",
        _forced_types,
        Plot("fixed_worker_type", "objective", kind="bars", panels="capacity_fraction"),
    ),
    Figure(
        "10",
        "Number of workers forced",
        "The total falls as more workers are deployed for each job.",
        partial(
            _sweep,
            axis="fixed_workers",
            full=(1, 2, 5, 10, 20, 30),
            quick=(2, 5, 10),
            architectures=(PARAMETER_SERVER,),
            schemes=VARIANTS,
        ),
        _cost("fixed_workers"),
    ),
    Figure(
        "11",
        "Weight accepted by A_maxweight against F",
        "A smaller F accepts more weight.",
        partial(
            _rounds,
            axis="density_scale",
            full=(1, 1e2, 1e4, 1e6, 1e8),
            quick=(1, 1e4, 1e8),
            algorithms={"A_maxweight": BatchschedOnline, "A_maxweight, exact": BatchschedExact},
            setting=False,
        ),
        Plot("density_scale", "weight", "algorithm", log_x=True),
    ),
    Figure(
        "12",
        "Weight accepted by A_maxweight against servers at fixed total capacity, and against jobs",
        "The weight falls with the number of servers, for fragmentation, and grows with the jobs.",
        _servers_and_jobs,
        Plot("servers", "weight", "algorithm", panels="jobs"),
    ),
    Figure(
        "theorem-5",
        "Total weighted completion time of A_online over the optimum, small instances",
        "(not drawn in the paper) A_online is 4 alpha-competitive.",
        _competitive,
        Plot("jobs", "ratio_upper", "algorithm", panels="architecture"),
    ),
]
