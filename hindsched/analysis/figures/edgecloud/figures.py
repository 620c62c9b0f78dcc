"""Figures 4-13 of the edge-cloud paper (IEEE JSAC 2022) as experiments, all by simulation.

Figure 3, the accuracy of three trained models, needs real training and is not reproduced. The
testbed's Figures 4-6 are simulated with its stated parameters (preset ``testbed``). Rates are
totals divided by SRTF's on the same instance, as in the paper.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.figures import base
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.simulator import SimulationResult
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import UNIT_SECONDS, counting
from hindsched.solvers.families.edgecloud.methods import solve_flow_time

RIVALS = base.schemes_of(
    {
        f"{name} {gangs} {'cloud' if cloud else 'edge'}": (name, {"gangs": gangs, "cloud": cloud})
        for name, gangs, cloud in product(
            ("srtf", "tiresias-l"), ("drawn", "half", "ideal"), (False, True)
        )
    }
)
"""The paper takes widths from the trace (``drawn``) and leaves open who may use the cloud. The
first is what rates are measured against."""
BATCHSCHE = base.schemes_of(base.BATCHSCHE)
SCHEMES = (
    *RIVALS,
    *base.schemes_of(("edgecloud", "edgecloud-edge-only")),
    *BATCHSCHE,
    *base.schemes_of(("edgecloud-marginal", "edgecloud-escape", "all-cloud")),
)
"""Beside the paper's five our two variants, and the baseline that the paper leaves out."""
TESTBED_SCHEMES = (
    *RIVALS,
    *base.schemes_of(("edgecloud",)),
    *BATCHSCHE,
    *base.schemes_of(("edgecloud-escape", "all-cloud")),
)
EPSILONS = tuple(base.Scheme({"epsilon": epsilon}) for epsilon in (0.0, 0.1, 0.25, 0.5, 1.0))
QUICK = {"horizon": 40, "minibatch_scale": 0.2}


def _totals(run: SimulationResult) -> base.Row:
    """Totals of one run."""
    rows: list[Any] = list(run.solution.job_rows())
    uploads = sum(row["upload_slots"] for row in rows)
    return {
        "total_jct": run.objective,
        "preemptions": float(sum(row["preemptions"] for row in rows)),
        "communication_slots": float(sum(row["communication_slots"] for row in rows) + uploads),
        "upload_slots": float(uploads),
        "cloud_share": sum(row["cloud_chunks"] for row in rows)
        / sum(row["chunks"] for row in rows),
        "makespan": float(max(row["completion"] for row in rows if row["completion"] is not None)),
        "in_feasible_set": float(run.in_feasible_set),
    }


def _rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Rates against the first scheme on the same instance."""
    keys = [name for name in ("jobs", "servers") if name in frame] + ["seed"]
    first = frame.groupby(keys, sort=False)[["total_jct", "communication_slots"]].transform("first")
    return frame.assign(
        jct_rate=frame["total_jct"] / first["total_jct"],
        communication_rate=frame["communication_slots"]
        / first["communication_slots"].clip(lower=1e-12),
    )


def _busy(run: SimulationResult) -> list[base.Row]:
    """Busy share of the edge workers and submissions, slot by slot."""
    instance: Any = run.instance
    last = 3 * instance.horizon
    submitted = np.bincount(instance.arrivals, minlength=last + 1)[: last + 1]
    busy = np.zeros(last + 1)
    for row in run.solution.usage_rows():
        if row["server"] != instance.cloud.name and row["slot"] <= last:
            busy[row["slot"]] += row["used"]
    makespan = _totals(run)["makespan"]
    return [
        {"slot": slot, "submissions": int(submitted[slot]),
         "busy_share": busy[slot] / len(instance.worker_list), "makespan": makespan}
        for slot in range(1, last + 1)
    ]  # fmt: skip


def _bounds(instance: EdgecloudInstance, scale: base.FigureScale) -> tuple[Any, Any, int]:
    """ILP (4) at zeta = 1, the certified LP (4)+, and the most chunks of a job."""
    options = SolveOptions(time_limit=UNIT_SECONDS * scale.pick(6000, 300), gap=1e-3)
    with counting():  # work decides, no clock
        program = solve_flow_time(instance, options)
    return program, solve(instance, "relaxation"), int(instance.chunks.max())


def _bound_ratio(run: Any, known: tuple[Any, Any, int]) -> base.Row:
    """A_online with extra speed over ILP (4) at zeta = 1, and over the certified LP (4)+."""
    program, relaxed, most_chunks = known
    return {
        "fractional_flow": run.fractional_flow,
        "average_flow": run.average_flow,
        "total_jct": run.total,
        "ilp_4_bound": program.bound,
        "ilp_4_proven": program.status == "optimal",
        "lp_4_plus_bound": relaxed.bound,
        "fractional_over_ilp_4": run.fractional_flow / (program.bound or np.nan),
        "flow_over_ilp_4": run.average_flow / (program.bound or np.nan),
        "total_over_ilp_4": run.total / (program.bound or np.nan),
        "jct_over_lp_4_plus": run.total / (relaxed.bound or np.nan),
        "most_chunks": most_chunks,
        "dual_bound": run.bound,
        "dual_slack": run.slack,
    }


def _by_speed(axes: dict[str, base.Axis], **size: object) -> base.Experiment:
    """The paper's reduced input; it states neither the chunks nor the arrivals."""
    same = {"minibatch_scale": 0.1, "horizon": 10, "worker_types": 3, **size}
    return base.Experiment(
        "edgecloud", EPSILONS, _bound_ratio, axes, {"servers": 15, "chunks": (4, 16), **same},
        {"servers": 6, "chunks": (2, 6), **same}, facts=_bounds,
        play=lambda instance, scheme, seed: run_with_speed(instance, float(scheme.name)),
    )  # fmt: skip


TESTBED = base.Experiment(
    "edgecloud", TESTBED_SCHEMES, _totals, {"jobs": ((10, 15, 20, 25, 30), (10, 20))},
    preset="testbed", finish=_rates,
)  # fmt: skip
BY_JOBS = base.Experiment(
    "edgecloud", SCHEMES, _totals, {"jobs": ((100, 150, 200, 250, 300), (20, 40))},
    quick={**QUICK, "servers": 12}, finish=_rates,
)  # fmt: skip
BY_SERVERS = base.Experiment(
    "edgecloud", SCHEMES, _totals, {"servers": ((60, 80, 100, 120, 140), (8, 16))},
    quick={**QUICK, "jobs": 30}, finish=_rates,
)  # fmt: skip
FIGURES = [
    base.Figure(
        "4", "JCT rate against the number of jobs on the testbed, simulated", TESTBED,
        base.Plot("jobs", "jct_rate", log_y=True), levels=(1.0,),
    ),
    base.Figure(
        "5", "Preemptions against the number of jobs on the testbed, simulated", TESTBED,
        base.Plot("jobs", "preemptions"),
    ),
    base.Figure(
        "6", "Communication-time rate on the testbed, simulated", TESTBED,
        base.Plot("jobs", "communication_rate"), levels=(1.0,),
    ),
    base.Figure(
        "7", "JCT rate against the number of jobs, 100 servers", BY_JOBS,
        base.Plot("jobs", "jct_rate", log_y=True), True, (1.0,),
        {"srtf drawn edge": 0.65, "tiresias-l drawn edge": 0.6, "batchsche per-batch": 0.5},
    ),
    base.Figure(
        "8", "JCT rate against the number of servers, 300 jobs", BY_SERVERS,
        base.Plot("servers", "jct_rate", log_y=True), True, (1.0,),
    ),
    base.Figure(
        "9", "Preemptions against the number of jobs", BY_JOBS,
        base.Plot("jobs", "preemptions"), True,
    ),
    base.Figure(
        "10", "Preemptions against the number of servers", BY_SERVERS,
        base.Plot("servers", "preemptions"), True,
    ),
    base.Figure(
        "11",
        "Job submissions and utilisation over time, makespan (the text: A_online's is 0.76 x "
        "SRTF's and 0.74 x Tiresias-L's)",
        base.Experiment("edgecloud", SCHEMES, _busy, quick={**QUICK, "servers": 12, "jobs": 40}),
        base.Plot("slot", "busy_share", above="submissions"), True,
    ),
    base.Figure(
        "12", "Ratio of A_online with extra speed against the number of jobs",
        _by_speed({"jobs": ((5, 10, 15, 20, 25), (5, 10))}),
        base.Plot("jobs", "fractional_over_ilp_4", "epsilon"), levels=(1.7,),
    ),
    base.Figure(
        "13", "Ratio of A_online with extra speed against the number of servers",
        _by_speed({"servers": ((5, 15, 25, 35, 45), (5, 10))}, jobs=15),
        base.Plot("servers", "fractional_over_ilp_4", "epsilon"), levels=(1.7,),
    ),
]  # fmt: skip
