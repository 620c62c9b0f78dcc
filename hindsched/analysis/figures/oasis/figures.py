"""Figures 3-6, 8 and 9 of OASiS (INFOCOM 2018) as experiments."""

from __future__ import annotations

import pandas as pd

from hindsched.analysis.figures.base import (
    Experiment,
    Figure,
    FigureScale,
    OnRow,
    Plot,
    Row,
    Scheme,
    schemes_of,
)
from hindsched.online.oasis.algorithms import theorem
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result

SCHEMES = schemes_of(
    {
        "oasis": ("oasis", {}),
        "oasis, L-floor 0.1": ("oasis", {"lower_floor": 0.1}),
        "fifo": ("fifo", {"gangs": "drawn"}),
        "drf": ("drf", {}),
        "rrh": ("rrh", {"gangs": "drawn"}),
        "dorm": ("dorm", {}),
        "fifo widest": ("fifo", {"gangs": "ideal"}),
        "rrh widest": ("rrh", {"gangs": "ideal"}),
        "dorm unbound": ("dorm", {"theta2": 1.0}),
    }
)
"""The paper's five schemes, the rivals as it sets them (a fixed number in [1, 30], Dorm with its
limit on adjustments) and at their strongest; and OASiS with a floor under L, which as printed
underflows at T = 300."""
ESTIMATES = tuple(
    Scheme({"estimate_percent": percent, "lower_floor": floor}, "oasis",
           {"upper_scale": percent / 100, "lower_floor": floor})
    for floor in (0.0, 0.1) for percent in (50, 75, 100, 125, 150)
)  # fmt: skip


def _utility(run: SimulationResult) -> Row:
    completed = sum(row["completion"] is not None for row in run.solution.job_rows())
    return {"utility": run.objective, "completed": completed}


def _timeliness(run: SimulationResult) -> list[Row]:
    """Completion minus target of every job of a class with a target; missing if unfinished."""
    rows: list[Row] = [{**row} for row in run.solution.job_rows()]
    return [
        {
            "job": row["job"],
            "class": "time-critical" if row["decay"] >= 4 else "time-sensitive",
            "late": None
            if row["completion"] is None or row["target"] is None
            else row["completion"] - row["arrival"] - row["target"],
        }
        for row in rows
        if (row["decay"] or 0.0) > 0
    ]


def _relative(frame: pd.DataFrame) -> pd.DataFrame:
    """Utility over that of the exact estimate on the same instance, in per cent."""
    keys = ["jobs", "seed", "lower_floor"]
    exact = frame[frame["estimate_percent"] == 100].set_index(keys)["utility"]
    exact = exact.where(exact > 0).reindex(pd.MultiIndex.from_frame(frame[keys]))
    return frame.assign(relative=100 * frame["utility"] / exact.to_numpy())


def _figure_5(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Ratio at T = 10 with 10 jobs: printed settings, then contention, then the floor on L.

    ``log_upper_over_lower`` is the paper's max_r ln(U^r / L), ``theorem`` Theorem 4's 2 alpha.
    """
    servers = scale.axis("servers", (10, 20, 40, 60, 80, 100), (6, 12))
    cases = [(top, 2, 0.0) for top in scale.pick((10, 50, 100), (10, 100))]
    cases += [(100, slots, floor) for slots in scale.pick((4, 10), (4,)) for floor in (0.0, 0.1)]
    size = scale.pick({"jobs": 10, "horizon": 10}, {"jobs": 5, "horizon": 6})
    options = SolveOptions(work_limit=scale.pick(12_000, 500), gap=1e-4)
    rows = []
    optima: dict[str, Result] = {}
    for top, slots, lower_floor in cases:
        floor = {"lower_floor": lower_floor}
        for count in servers:
            varied = {"servers": count // 2, "priority": [1, top], "max_duration": slots}
            for seed in range(scale.seeds):
                instance = scale.instance("oasis", "paper", seed, varied, **size)
                key = instance.sha256()
                optima[key] = best = optima.get(key) or solve(instance, options=options)
                bounds = theorem(instance, lower_floor=lower_floor)
                earned = simulate(instance, "oasis", settings=floor).objective
                lower = max(best.objective or 0.0, earned)
                setting = f"priority [1, {top}], max_duration {slots}, lower_floor {lower_floor}"
                rows.append(
                    {
                        "servers": 2 * (count // 2), "priority": f"[1, {top}]",
                        "max_duration": slots, **floor, "setting": setting, "seed": seed,
                        "log_upper_over_lower": bounds["quantities"]["alpha"],
                        "theorem": bounds["value"], "optimum_lower": lower,
                        "optimum_upper": best.bound, "oasis": earned,
                        "ratio_lower": lower / earned if earned > 0 else None,
                        "ratio_upper": best.bound / earned if earned > 0 and best.bound else None,
                    }
                )  # fmt: skip
                on_row(f"{instance.name} {best.status}")
    return pd.DataFrame(rows)


SMALL = {"horizon": 20, "max_duration": 6}
FIGURES = [
    Figure(
        "3",
        "Total utility against the number of jobs, T = 300",
        "OASiS performs best, the more so the more jobs share the fixed time span.",
        Experiment(
            "oasis", SCHEMES, _utility, {"jobs": ((100, 200, 300, 400), (6, 12, 18))},
            {"horizon": 300}, {**SMALL, "servers": 6},
        ),
        Plot("jobs", "utility"),
    ),
    Figure(
        "4",
        "Completion minus target, 100 time-sensitive and 100 time-critical jobs, T = 100",
        "OASiS is closest to zero for both classes, with the smallest variance.",
        Experiment(
            "oasis", SCHEMES, _timeliness, full={"jobs": 200, "horizon": 100},
            quick={**SMALL, "jobs": 20, "servers": 8},
            vary=lambda _: {"shares": [0.0, 0.5, 0.5], "exact_shares": True},
        ),
        Plot("class", "late", kind="bars"),
    ),
    Figure(
        "5",
        "Offline optimum over OASiS, T = 10, 10 jobs",
        "The ratio is around 1.1 to 1.5, without a trend in servers or priorities.",
        _figure_5,
        Plot("servers", "ratio_upper", "setting", log_y=True),
        levels=(1.1, 1.5),
    ),
    Figure(
        "6",
        "Total utility under inaccurate estimates of U / L, T = 300",
        "Underestimation earns more than overestimation when resources are scarce.",
        Experiment(
            "oasis", ESTIMATES, lambda run: {"utility": run.objective},
            {"jobs": ((100, 200, 300, 400), (8, 16))}, {"horizon": 300}, {**SMALL, "servers": 5},
            finish=_relative,
        ),
        Plot("estimate_percent", "relative", "jobs", panels="lower_floor"),
    ),
    Figure(
        "8",
        "Total utility on the testbed (9 servers, 12 jobs, 10 slots), simulated",
        "As in the simulations; the differences are smaller on a small testbed.",
        Experiment("oasis", SCHEMES, _utility, preset="testbed"),
        Plot("testbed", "utility", kind="bars"),
    ),
    Figure(
        "9",
        "Completion minus target on the testbed, simulated",
        "As in the simulations.",
        Experiment("oasis", SCHEMES, _timeliness, preset="testbed"),
        Plot("class", "late", kind="bars"),
    ),
]  # fmt: skip
