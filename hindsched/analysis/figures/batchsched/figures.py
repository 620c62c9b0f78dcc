"""Figures 2-12 of batchsched's paper as experiments, with the ranges of its Section 7.

The paper's A_online is ``batchsched-terminating`` as its simulations run it (alpha by (6) a batch,
which ends when all of it is planned), and ``batchsched`` with alpha = 4 or 1. Beside them stand the
exact and the work-conserving variants and plain list scheduling (``wspt``), which the paper leaves
out; preemptive and elastic rivals are outside the problem's feasible set and marked so. The paper's
cluster is 0.2-0.5 of the summed ideal demand, where hardly a job waits: Figures 2, 3, 5, 6, 9 and
10 run over `CONTENTION` instead, the others at 0.35, Figure 4 at 0.2. One round of A_maxweight
(Figures 8, 11, 12) is asked for tau = 150 on 0.2 of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from hindsched.analysis.figures import base
from hindsched.instances.batchsched.generator import EC2_WORKERS
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.generators.registry import generate
from hindsched.online.batchsched.algorithms import (
    BatchschedExact,
    BatchschedOnline,
    GreedyRtl,
    declared_estimates,
)
from hindsched.online.simulator import SimulationResult, environment_of, simulate

RESTORE = 2  # slots in which a preempted job trains nothing when it goes on
LEFT_SHIFT = "batchsched-adaptive, left shift"
A_ONLINE = base.schemes_of(
    {
        "batchsched": ("batchsched", {}),
        "batchsched alpha-1": ("batchsched", {"alpha": 1}),
        "batchsched-terminating": ("batchsched-terminating", {}),
    },
    "algorithm",
)
EXACT, ADAPTIVE = base.schemes_of(("batchsched-exact", "batchsched-adaptive"), "algorithm")
VARIANTS = (*A_ONLINE, EXACT, ADAPTIVE)
SCHEMES = (
    *A_ONLINE,
    ADAPTIVE,
    base.Scheme({"algorithm": LEFT_SHIFT}, "batchsched-adaptive", {"left_shift": True}),
    *base.schemes_of(
        {
            "fifo": ("fifo", {"gangs": "drawn"}),
            "drf": ("drf", {}),
            "antman": ("antman", {"gangs": "drawn"}),
            "tiresias": ("tiresias", {"gangs": "drawn"}),
            "antman restoring": ("antman", {"gangs": "drawn", "restore_slots": RESTORE}),
            "tiresias restoring": ("tiresias", {"gangs": "drawn", "restore_slots": RESTORE}),
            "fifo widest": ("fifo", {"gangs": "ideal"}),
            "antman widest": ("antman", {"gangs": "ideal"}),
            "tiresias widest": ("tiresias", {"gangs": "ideal"}),
            "wspt": ("wspt", {}),
        },
        "algorithm",
    ),
)
"""Rivals with a number of workers drawn, as the paper sets them, and at their widest; what a
preempted job pays to go on the paper leaves open."""
PS, RAR, BOTH = (PARAMETER_SERVER,), (RING_ALLREDUCE,), (PARAMETER_SERVER, RING_ALLREDUCE)
SHORT = {PARAMETER_SERVER: "PS", RING_ALLREDUCE: "RAR"}
ROUND_HORIZON = 150
CONTENTION = (0.05, 0.1, 0.2, 0.35, 0.5)
"""Capacity of the cluster as a share of the summed ideal demand: less of it, longer queues."""
THIRTY_PERCENT = dict.fromkeys(("fifo", "drf", "antman", "tiresias"), 0.7)
FACTORS = (1, 1e2, 1e4, 1e6, 1e8)
BY_JOBS: dict[str, base.Axis] = {"jobs": ((50, 100, 150, 200), (10, 20))}
BY_SERVERS: dict[str, base.Axis] = {"servers": ((50, 100, 150, 200), (10, 20))}


def _rescaled(schemes: Sequence[base.Scheme]) -> tuple[base.Scheme, ...]:
    """Schemes told different F."""
    return tuple(
        base.Scheme({**scheme.columns, "density_scale": factor}, scheme.algorithm,
                    {"density_scale": factor})
        for factor in FACTORS for scheme in schemes
    )  # fmt: skip


def _timed(instance: Any, scheme: base.Scheme, seed: int) -> tuple[SimulationResult, float]:
    began = time.perf_counter()
    run = simulate(instance, scheme.algorithm, seed=seed, settings=scheme.settings)
    return run, time.perf_counter() - began


def _cost_row(timed: tuple[SimulationResult, float]) -> base.Row:
    run, seconds = timed
    inside = run.in_feasible_set and not run.violations
    return {"objective": run.objective, "seconds": seconds, "in_feasible_set": inside}


def _cost_sweep(
    axes: dict[str, base.Axis],
    architectures: tuple[str, ...],
    schemes: Sequence[base.Scheme] = SCHEMES,
    *,
    contention: base.Axis = (CONTENTION, (0.05, 0.35)),
    finish: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    before: Callable[[], None] | None = None,
    quick: base.Row | None = None,
    **full: object,
) -> base.Experiment:
    """Schemes over the values of a generator's setting, and over the contention."""
    whole = {"capacity_fraction": contention, "architecture": (architectures, architectures)}
    small = {"jobs": 20, "servers": 20, "horizon": 40, **(quick or {})}
    return base.Experiment(
        "batchsched", schemes, _cost_row, {**whole, **axes}, full, small, play=_timed,
        finish=finish, before=before,
    )  # fmt: skip


def _compile_both() -> None:
    """Load compiled code before the clock runs."""
    for architecture in BOTH:
        tiny = generate("batchsched", "small", 0, architecture=architecture)
        for scheme in VARIANTS:
            simulate(tiny, scheme.algorithm, settings=scheme.settings)


def _by_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Figure 9: a bar an algorithm and architecture; the worker types are the paper's."""
    names: dict[Any, str] = {number: row[0] for number, row in enumerate(EC2_WORKERS, 1)}
    kinds = [names.get(kind, "free choice") for kind in frame["fixed_worker_type"]]
    scheme = frame["algorithm"] + ", " + frame["architecture"].map(SHORT)
    return frame.assign(fixed_worker_type=kinds, scheme=scheme)


def accepted_weight(
    instance: BatchschedInstance, algorithm: BatchschedOnline, horizon: int, seed: int = 0
) -> float:
    """Total weight that one sub-round accepts on an empty cluster by `horizon`."""
    algorithm.start(environment_of(instance, declared_estimates(instance), seed, "modes"))
    admitted = algorithm.run_round(list(instance.jobs), horizon)
    return float(sum(admission.job.weight for admission in admitted))


def _round(instance: BatchschedInstance, scheme: base.Scheme, seed: int) -> float:
    algorithm = ROUND_ALGORITHMS[scheme.name]()
    for name, value in scheme.settings.items():
        setattr(algorithm, name, value)
    return accepted_weight(instance, algorithm, ROUND_HORIZON, seed)


def _round_sweep(
    schemes: Sequence[base.Scheme], axes: dict[str, base.Axis] | None = None
) -> base.Experiment:
    """Total weight of one sub-round."""
    return base.Experiment(
        "batchsched", schemes, lambda weight: {"weight": weight}, axes or {},
        {"jobs": 100, "capacity_fraction": 0.2},
        {"jobs": 30, "servers": 15, "capacity_fraction": 0.05},
        vary=lambda point: {"architecture": PARAMETER_SERVER, **point}, play=_round,
    )  # fmt: skip


ROUND_ALGORITHMS: dict[str, Callable[[], BatchschedOnline]] = {
    "A_maxweight": BatchschedOnline,
    "A_maxweight, exact": BatchschedExact,
    "A_maxweight, exact, by density": partial(BatchschedExact, order="density"),
    "Jain et al. (GreedyRTL)": GreedyRtl,
}
ROUNDS = base.schemes_of(tuple(ROUND_ALGORITHMS), "algorithm")
BY_F = base.Experiment(
    "batchsched", _rescaled(VARIANTS), _cost_row, full={"capacity_fraction": 0.2},
    quick={"jobs": 20, "servers": 10, "horizon": 40, "capacity_fraction": 0.2},
    vary=lambda _: {"architecture": PARAMETER_SERVER}, play=_timed,
)  # fmt: skip


def _cost_plot(x: str, *, contention: bool = True, **more: Any) -> base.Plot:
    panels = "capacity_fraction" if contention else None
    return base.Plot(x, "objective", "algorithm", panels=panels, log_y=contention, **more)


FIGURES = [
    base.Figure(
        "2", "Total weighted completion time against jobs, parameter servers",
        _cost_sweep(BY_JOBS, PS, horizon=300), _cost_plot("jobs"), factors=THIRTY_PERCENT,
    ),
    base.Figure(
        "3",
        "Total weighted completion time against servers at fixed total capacity, parameter servers",
        _cost_sweep(BY_SERVERS, PS, quick={"jobs": 15}), _cost_plot("servers"),
        factors=THIRTY_PERCENT,
    ),
    base.Figure(
        "4", "A_online against the declared F", BY_F,
        _cost_plot("density_scale", contention=False, log_x=True),
    ),
    base.Figure(
        "5", "Total weighted completion time against jobs, Ring-AllReduce",
        _cost_sweep(BY_JOBS, RAR, horizon=300), _cost_plot("jobs"),
    ),
    base.Figure(
        "6",
        "Total weighted completion time against servers at fixed total capacity, Ring-AllReduce",
        _cost_sweep(BY_SERVERS, RAR, quick={"jobs": 15}), _cost_plot("servers"),
    ),
    base.Figure(
        "7", "Running time of A_online, both architectures",
        _cost_sweep(BY_JOBS, BOTH, VARIANTS, contention=((0.35,), (0.35,)), before=_compile_both),
        base.Plot("jobs", "seconds", "algorithm", panels="architecture"), levels=(120.0,),
    ),
    base.Figure(
        "8", "Weight accepted by A_maxweight and by Jain et al.",
        _round_sweep(ROUNDS, {"jobs": ((50, 100, 150, 200), (20, 40))}),
        base.Plot("jobs", "weight", "algorithm"),
    ),
    base.Figure(
        "9", "One worker type forced against free choice, both architectures",
        _cost_sweep(
            {"fixed_worker_type": ((*range(1, len(EC2_WORKERS) + 1), None), (1, 4, None))},
            BOTH, SCHEMES[:4], finish=_by_type, quick={"ec2_workers": True}, ec2_workers=True,
        ),
        base.Plot("fixed_worker_type", "objective", kind="bars", panels="capacity_fraction"),
    ),
    base.Figure(
        "10", "Number of workers forced",
        _cost_sweep({"fixed_workers": ((1, 2, 5, 10, 20, 30), (2, 5, 10))}, PS, VARIANTS),
        _cost_plot("fixed_workers"),
    ),
    base.Figure(
        "11", "Weight accepted by A_maxweight against F", _round_sweep(_rescaled(ROUNDS[:2])),
        base.Plot("density_scale", "weight", "algorithm", log_x=True),
    ),
    base.Figure(
        "12",
        "Weight accepted by A_maxweight against servers at fixed total capacity, and against jobs",
        _round_sweep(
            ROUNDS, {"jobs": ((50, 100, 200), (15, 30)), "servers": ((25, 50, 100, 150), (10, 20))}
        ),
        base.Plot("servers", "weight", "algorithm", panels="jobs"),
    ),
]  # fmt: skip
