"""Figures 4-13 of the edge-cloud paper (IEEE JSAC 2022) as experiments, all by simulation.

Figure 3, the accuracy of three trained models, needs real training and is not reproduced. The
testbed's Figures 4-6 are simulated with its stated parameters (preset ``testbed``). Rates are
totals divided by SRTF's on the same instance, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd

from hindsched.analysis.figures.base import Figure, FigureScale, OnRow
from hindsched.analysis.figures.drawing import Plot
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.json_types import Draft
from hindsched.models.edgecloud.relaxations import build_ilp_4
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.work import UNIT_SECONDS, counting

Setting = Draft

PAPER_SCHEMES = ("srtf", "edgecloud", "edgecloud-edge-only", "tiresias-l", "batchsche")
"""The paper's five schemes; the first is what rates are measured against."""
SCHEMES = (*PAPER_SCHEMES, "edgecloud-marginal", "edgecloud-escape", "all-cloud")
"""Beside them our two variants, and the baseline that the paper leaves out."""
TESTBED_SCHEMES = ("srtf", "edgecloud", "tiresias-l", "batchsche", "edgecloud-escape", "all-cloud")
EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0)


def _facts(result: SimulationResult) -> dict[str, float]:
    """Totals of one run."""
    solution = result.solution
    assert isinstance(solution, EdgecloudSolution)
    rows = solution.job_rows()
    return {
        "total_jct": result.objective,
        "preemptions": float(sum(row["preemptions"] for row in rows)),
        "communication_slots": float(
            sum(row["communication_slots"] + row["upload_slots"] for row in rows)
        ),
        "cloud_share": sum(row["cloud_chunks"] for row in rows)
        / sum(row["chunks"] for row in rows),
        "makespan": float(max(row["completion"] for row in rows if row["completion"] is not None)),
        "in_feasible_set": float(result.in_feasible_set),
    }


def _compare(
    instances: Iterable[tuple[Setting, EdgecloudInstance, int]],
    schemes: Iterable[str],
    on_row: OnRow,
) -> pd.DataFrame:
    """Run every scheme on every instance; rates are against the first scheme."""
    rows = []
    for setting, instance, seed in instances:
        reference: dict[str, float] = {}
        for scheme in schemes:
            facts = _facts(simulate(instance, scheme, seed=seed))
            reference = reference or facts
            rates = {
                "jct_rate": facts["total_jct"] / reference["total_jct"],
                "communication_rate": (
                    facts["communication_slots"] / max(reference["communication_slots"], 1e-12)
                ),
            }
            rows.append({**setting, "scheme": scheme, "seed": seed, **facts, **rates})
            on_row(f"{instance.name} {scheme}")
    return pd.DataFrame(rows)


def _made(
    scale: FigureScale, preset: str, seed: int, varied: Setting, **fixed: object
) -> EdgecloudInstance:
    instance = scale.instance("edgecloud", preset, seed, varied, **fixed)
    assert isinstance(instance, EdgecloudInstance)
    return instance


def _testbed(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    jobs = scale.over("jobs", (10, 15, 20, 25, 30), (10, 20))
    return _compare(
        scale.each(jobs, partial(_made, scale, "testbed")), scale.chosen(TESTBED_SCHEMES), on_row
    )


def _by_jobs(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    jobs = scale.over("jobs", (100, 150, 200, 250, 300), (20, 40))
    settings = scale.pick({}, {"servers": 12, "horizon": 40, "minibatch_scale": 0.2})
    made = partial(_made, scale, "paper", **settings)
    return _compare(scale.each(jobs, made), scale.chosen(SCHEMES), on_row)


def _by_servers(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    servers = scale.over("servers", (60, 80, 100, 120, 140), (8, 16))
    settings = scale.pick({}, {"jobs": 30, "horizon": 40, "minibatch_scale": 0.2})
    made = partial(_made, scale, "paper", **settings)
    return _compare(scale.each(servers, made), scale.chosen(SCHEMES), on_row)


def _utilisation(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Busy share of the edge workers and submissions, slot by slot."""
    settings = scale.pick({}, {"servers": 12, "jobs": 40, "horizon": 40, "minibatch_scale": 0.2})
    rows = []
    for seed in range(scale.seeds):
        instance = _made(scale, "paper", seed, {}, **settings)
        last = 3 * instance.horizon
        submitted = np.bincount(instance.arrivals, minlength=last + 1)[: last + 1]
        for scheme in scale.chosen(SCHEMES):
            result = simulate(instance, scheme, seed=seed)
            busy = np.zeros(last + 1)
            for row in result.solution.usage_rows():
                if row["server"] != instance.cloud.name and row["slot"] <= last:
                    busy[row["slot"]] += row["used"]
            makespan = _facts(result)["makespan"]
            for slot in range(1, last + 1):
                rows.append(
                    {
                        "slot": slot,
                        "scheme": scheme,
                        "seed": seed,
                        "submissions": int(submitted[slot]),
                        "busy_share": busy[slot] / len(instance.worker_list),
                        "makespan": makespan,
                    }
                )
            on_row(f"{instance.name} {scheme}")
    return pd.DataFrame(rows)


def _ratios(
    instances: Iterable[tuple[Setting, EdgecloudInstance, int]], scale: FigureScale, on_row: OnRow
) -> pd.DataFrame:
    """A_online with extra speed over ILP (4) at zeta = 1, and over the certified LP (4)+."""
    options = SolveOptions(time_limit=UNIT_SECONDS * scale.pick(6000, 300), gap=1e-3)
    rows = []
    for setting, instance, seed in instances:
        with counting():  # work decides, no clock
            program = solve_program(build_ilp_4(instance).model, options)
        relaxed = solve(instance, "relaxation")
        for epsilon in EPSILONS:
            run = run_with_speed(instance, epsilon)
            rows.append(
                {
                    **setting,
                    "epsilon": epsilon,
                    "seed": seed,
                    "average_flow": run.average_flow,
                    "total_jct": run.total,
                    "ilp_4_bound": program.bound,
                    "ilp_4_proven": program.status == "optimal",
                    "lp_4_plus_bound": relaxed.bound,
                    "flow_over_ilp_4": run.average_flow / (program.bound or np.nan),
                    "jct_over_lp_4_plus": run.total / (relaxed.bound or np.nan),
                    "most_chunks": int(instance.chunks.max()),
                    "dual_bound": run.bound,
                    "dual_slack": run.slack,
                }
            )
        on_row(f"{instance.name} {program.status}")
    return pd.DataFrame(rows)


def _ratio_by_jobs(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    jobs = scale.over("jobs", (5, 10, 15, 20, 25), (5, 10))
    made = partial(_made, scale, "paper", **_reduced(scale))
    return _ratios(scale.each(jobs, made), scale, on_row)


def _ratio_by_servers(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    servers = scale.over("servers", (5, 15, 25, 35, 45), (5, 10))
    made = partial(_made, scale, "paper", **{**_reduced(scale), "jobs": 15})
    return _ratios(scale.each(servers, made), scale, on_row)


def _reduced(scale: FigureScale) -> Setting:
    """The paper's reduced input; it states neither the chunks nor the arrivals."""
    chunks = scale.pick((4, 16), (2, 6))
    return {
        "servers": scale.pick(15, 6),
        "chunks": chunks,
        "minibatch_scale": 0.1,
        "horizon": 10,
        "worker_types": 3,
    }


FIGURES = [
    Figure(
        "4",
        "JCT rate against the number of jobs on the testbed, simulated",
        "A_online outperforms the other schedulers; the improvement is small because jobs are.",
        _testbed,
        Plot("jobs", "jct_rate", log_y=True),
        levels=(1.0,),
    ),
    Figure(
        "5",
        "Preemptions against the number of jobs on the testbed, simulated",
        "Preemptions grow with the jobs; those of A_online remain relatively few.",
        _testbed,
        Plot("jobs", "preemptions"),
    ),
    Figure(
        "6",
        "Communication-time rate on the testbed, simulated",
        "A_online communicates less than the baselines: it moves no data between workers.",
        _testbed,
        Plot("jobs", "communication_rate"),
        levels=(1.0,),
    ),
    Figure(
        "7",
        "JCT rate against the number of jobs, 100 servers",
        "A_online and A_online-E outperform all others in their category, the more so the more "
        "jobs; sending most jobs to the cloud, as BatchSche does, is not a good choice.",
        _by_jobs,
        Plot("jobs", "jct_rate", log_y=True),
        True,
        (1.0, 0.7),
    ),
    Figure(
        "8",
        "JCT rate against the number of servers, 300 jobs",
        "A_online and A_online-E are best; with more edge servers the rates of A_online and "
        "BatchSche rise and those of A_online-E and Tiresias-L fall.",
        _by_servers,
        Plot("servers", "jct_rate", log_y=True),
        True,
        (1.0,),
    ),
    Figure(
        "9",
        "Preemptions against the number of jobs",
        "A_online preempts less than A_online-E, and more often than SRTF.",
        _by_jobs,
        Plot("jobs", "preemptions"),
        True,
    ),
    Figure(
        "10",
        "Preemptions against the number of servers",
        "As in Figure 9.",
        _by_servers,
        Plot("servers", "preemptions"),
        True,
    ),
    Figure(
        "11",
        "Job submissions and utilisation over time, makespan",
        "A_online and A_online-E reach 100 %; the makespan of A_online is about 0.76 and 0.74 "
        "times SRTF's and Tiresias-L's.",
        _utilisation,
        Plot("slot", "busy_share"),
        True,
    ),
    Figure(
        "12",
        "Ratio of A_online with extra speed against the number of jobs",
        "The ratio to ILP (4) with zeta = 1 stays below 1.7, with little influence of the jobs, "
        "and falls with epsilon; at 0.5 A_online is close to optimal.",
        _ratio_by_jobs,
        Plot("jobs", "flow_over_ilp_4", "epsilon"),
        levels=(1.7,),
    ),
    Figure(
        "13",
        "Ratio of A_online with extra speed against the number of servers",
        "As in Figure 12, with little influence of the servers.",
        _ratio_by_servers,
        Plot("servers", "flow_over_ilp_4", "epsilon"),
        levels=(1.7,),
    ),
]
