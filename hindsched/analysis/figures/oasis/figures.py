"""Figures 3-6, 8 and 9 of OASiS (INFOCOM 2018) as experiments."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hindsched.analysis.figures import base
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.online.oasis.algorithms import theorem
from hindsched.online.simulator import SimulationResult
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result

SCHEMES = base.schemes_of(
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
FLOORS = tuple(
    base.Scheme({"lower_floor": floor}, "oasis", {"lower_floor": floor}) for floor in (0.0, 0.1)
)
ESTIMATES = tuple(
    base.Scheme({"estimate_percent": percent, "lower_floor": floor}, "oasis",
                {"upper_scale": percent / 100, "lower_floor": floor})
    for floor in (0.0, 0.1) for percent in (50, 75, 100, 125, 150)
)  # fmt: skip


def _earned(run: SimulationResult) -> base.Row:
    completed = sum(row["completion"] is not None for row in run.solution.job_rows())
    return {"utility": run.objective, "completed": completed}


def _lateness(run: SimulationResult) -> list[base.Row]:
    """Completion minus target of every job of a class with a target; missing if unfinished."""
    rows: list[base.Row] = [{**row} for row in run.solution.job_rows()]
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


def _over_exact(frame: pd.DataFrame) -> pd.DataFrame:
    """Utility over that of the exact estimate on the same instance, in per cent."""
    exact, keys = frame[frame["estimate_percent"] == 100], ["jobs", "seed", "lower_floor"]
    return frame.assign(relative=100 * base.over_reference(frame, "utility", keys, exact))


def _optimum(instance: OasisInstance, scale: base.FigureScale) -> Result:
    return solve(instance, options=SolveOptions(work_limit=scale.pick(12_000, 500), gap=1e-4))


def _optimum_over(run: SimulationResult, best: Result) -> base.Row:
    """OPT over OASiS as an interval; `theorem` is Theorem 4's 2 alpha, with its logarithm."""
    earned = run.objective
    instance: Any = run.instance
    floor: Any = run.settings["lower_floor"]
    bounds = theorem(instance, lower_floor=floor)
    lower = max(best.objective or 0.0, earned)
    return {
        "log_upper_over_lower": bounds["quantities"]["alpha"],
        "theorem": bounds["value"],
        "optimum_lower": lower,
        "optimum_upper": best.bound,
        "oasis": earned,
        "ratio_lower": lower / earned if earned > 0 else None,
        "ratio_upper": best.bound / earned if earned > 0 and best.bound else None,
    }


def _by_case(frame: pd.DataFrame) -> pd.DataFrame:
    chosen = [CASES[name] for name in frame["case"]]
    return frame.assign(
        priority=[str(case["priority"]) for case in chosen],
        max_duration=[case["max_duration"] for case in chosen],
        setting=frame["case"] + ", lower_floor " + frame["lower_floor"].astype(str),
    )


CASES: dict[str, base.Row] = {
    f"priority [1, {top}], max_duration {slots}": {"priority": [1, top], "max_duration": slots}
    for top, slots in ((10, 2), (50, 2), (100, 2), (100, 4), (100, 10))
}
"""Figure 5's ranges of priorities as printed, then with contention."""
SMALL = {"horizon": 20, "max_duration": 6}
FIGURES = [
    base.Figure(
        "3",
        "Total utility against the number of jobs, T = 300",
        base.Experiment(
            "oasis", SCHEMES, _earned, {"jobs": ((100, 200, 300, 400), (6, 12, 18))},
            {"horizon": 300}, {**SMALL, "servers": 6},
        ),
        base.Plot("jobs", "utility"),
    ),
    base.Figure(
        "4",
        "Completion minus target, 100 time-sensitive and 100 time-critical jobs, T = 100",
        base.Experiment(
            "oasis", SCHEMES, _lateness, full={"jobs": 200, "horizon": 100},
            quick={**SMALL, "jobs": 20, "servers": 8},
            vary=lambda _: {"shares": [0.0, 0.5, 0.5], "exact_shares": True},
        ),
        base.Plot("class", "late", kind="bars"),
    ),
    base.Figure(
        "5",
        "Offline optimum over OASiS, T = 10, 10 jobs",
        base.Experiment(
            "oasis", FLOORS, _optimum_over,
            {"case": (tuple(CASES), tuple(CASES)[::2]),
             "servers": ((10, 20, 40, 60, 80, 100), (6, 12))},
            {"jobs": 10, "horizon": 10}, {"jobs": 5, "horizon": 6}, facts=_optimum,
            vary=lambda point: {**CASES[point["case"]], "servers": point["servers"] // 2},
            finish=_by_case,
        ),
        base.Plot("servers", "ratio_upper", "setting", log_y=True),
        levels=(1.1, 1.5),
    ),
    base.Figure(
        "6",
        "Total utility under inaccurate estimates of U / L, T = 300",
        base.Experiment(
            "oasis", ESTIMATES, lambda run: {"utility": run.objective},
            {"jobs": ((100, 200, 300, 400), (8, 16))}, {"horizon": 300}, {**SMALL, "servers": 5},
            finish=_over_exact,
        ),
        base.Plot("estimate_percent", "relative", "jobs", panels="lower_floor", unit="%"),
    ),
    base.Figure(
        "8",
        "Total utility on the testbed (9 servers, 12 jobs, 10 slots), simulated",
        base.Experiment("oasis", SCHEMES, _earned, preset="testbed"),
        base.Plot("testbed", "utility", kind="bars"),
    ),
    base.Figure(
        "9",
        "Completion minus target on the testbed, simulated",
        base.Experiment("oasis", SCHEMES, _lateness, preset="testbed"),
        base.Plot("class", "late", kind="bars"),
    ),
]  # fmt: skip
