"""Figures 3-6, 8 and 9 of OASiS (INFOCOM 2018) as experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pandas as pd

from hindsched.analysis.figures.base import Figure, FigureScale, OnRow
from hindsched.analysis.figures.drawing import Plot
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.json_types import JsonObject
from hindsched.online.oasis.algorithms import theorem
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result


def _made(
    scale: FigureScale, seed: int, varied: JsonObject, preset: str = "paper", **fixed: object
) -> OasisInstance:
    instance = scale.instance("oasis", preset, seed, varied, **fixed)
    assert isinstance(instance, OasisInstance)
    return instance


SCHEMES: dict[str, tuple[str, JsonObject]] = {
    "oasis": ("oasis", {}),
    "oasis, L-floor 0.1": ("oasis", {"lower_floor": 0.1}),
    "fifo": ("fifo", {"gangs": "ideal"}),
    "drf": ("drf", {}),
    "rrh": ("rrh", {}),
    "dorm": ("dorm", {"theta2": 1.0}),
}
"""The paper's five schemes, the rivals where they are strongest, and OASiS with a
floor under L: the literal L underflows at T = 300."""


def _run_schemes(
    scale: FigureScale,
    instances: Iterable[tuple[JsonObject, OasisInstance, int]],
    rows_of: Callable[[SimulationResult], list[JsonObject]],
    on_row: OnRow,
) -> pd.DataFrame:
    """Simulate every scheme on every (setting, instance, seed)."""
    rows = []
    for setting, instance, seed in instances:
        for scheme in scale.chosen(SCHEMES):
            algorithm, settings = SCHEMES[scheme]
            result = simulate(instance, algorithm, seed=seed, settings=settings)
            for row in rows_of(result):
                rows.append({**setting, "scheme": scheme, "seed": seed, **row})
            on_row(f"{instance.name} {scheme}")
    return pd.DataFrame(rows)


def _utility(result: SimulationResult) -> list[JsonObject]:
    completed = sum(row["completion"] is not None for row in result.solution.job_rows())
    return [{"utility": result.objective, "completed": completed}]


def _timeliness(result: SimulationResult) -> list[JsonObject]:
    """Completion minus target of every job of a class with a target; missing if unfinished."""
    solution = result.solution
    assert isinstance(solution, OasisSolution)
    rows: list[JsonObject] = []
    for row in solution.job_rows():
        decay = row["decay"] or 0.0
        if decay > 0:
            late = None
            if row["completion"] is not None and row["target"] is not None:
                late = row["completion"] - row["arrival"] - row["target"]
            kind = "time-critical" if decay >= 4 else "time-sensitive"
            rows.append({"job": row["job"], "class": kind, "late": late})
    return rows


def _figure_3(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    jobs = scale.over("jobs", (100, 200, 300, 400), (6, 12, 18))
    settings = scale.pick({"horizon": 300}, {"horizon": 20, "servers": 6, "max_duration": 6})
    return _run_schemes(
        scale, scale.each(jobs, partial(_made, scale, **settings)), _utility, on_row
    )


def _figure_4(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    settings = scale.pick(
        {"jobs": 200, "horizon": 100},
        {"jobs": 20, "horizon": 20, "servers": 8, "max_duration": 6},
    )
    halves = {"shares": [0.0, 0.5, 0.5], "exact_shares": True}
    return _run_schemes(
        scale,
        (({}, _made(scale, seed, halves, **settings), seed) for seed in range(scale.seeds)),
        _timeliness,
        on_row,
    )


def _figure_5(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Ratio at T = 10 with 10 jobs: printed settings, then contention, then the floor on L.

    ``log_upper_over_lower`` is the paper's max_r ln(U^r / L), ``theorem`` Theorem 4's 2 alpha.
    """
    servers = scale.pick((10, 20, 40, 60, 80, 100), (6, 12))
    cases = [
        {"servers": count // 2, "priority": [1, top], "max_duration": 2, "lower_floor": 0.0}
        for top in scale.pick((10, 50, 100), (10, 100))
        for count in servers
    ]
    cases += [
        {"servers": count // 2, "priority": [1, 100], "max_duration": slots, "lower_floor": floor}
        for slots in scale.pick((4, 10), (4,))
        for floor in (0.0, 0.1)
        for count in servers
    ]
    size = scale.pick({"jobs": 10, "horizon": 10}, {"jobs": 5, "horizon": 6})
    options = SolveOptions(work_limit=scale.pick(12_000, 500), gap=1e-4)
    rows = []
    optima: dict[str, Result] = {}
    for case in cases:
        for seed in range(scale.seeds):
            settings = {k: v for k, v in case.items() if k != "lower_floor"}
            instance = _made(scale, seed, settings, **size)
            key = instance.sha256()
            if key not in optima:
                optima[key] = solve(instance, options=options)
            best = optima[key]
            floor = {"lower_floor": case["lower_floor"]}
            bounds = theorem(instance, **floor)
            run = simulate(instance, "oasis", settings=floor)
            earned = run.objective
            lower = max(best.objective or 0.0, earned)
            rows.append(
                {
                    **case,
                    "servers": 2 * case["servers"],
                    "priority": f"[1, {case['priority'][1]}]",
                    "setting": ", ".join(
                        f"{key} {case[key]}" for key in ("priority", "max_duration", "lower_floor")
                    ),
                    "seed": seed,
                    "log_upper_over_lower": bounds["quantities"]["alpha"],
                    "theorem": bounds["value"],
                    "optimum_lower": lower,
                    "optimum_upper": best.bound,
                    "oasis": earned,
                    "ratio_lower": lower / earned if earned > 0 else None,
                    "ratio_upper": best.bound / earned if earned > 0 and best.bound else None,
                }
            )
            on_row(f"{instance.name} {best.status}")
    return pd.DataFrame(rows)


def _figure_6(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """The ratio U / L estimated at 50-150 % of its exact value.

    ``relative`` is the utility over that of the exact estimate on the same instance, in per cent.
    """
    counts = scale.axis("jobs", (100, 200, 300, 400), (8, 16))
    settings = scale.pick({"horizon": 300}, {"horizon": 20, "servers": 5, "max_duration": 6})
    rows = []
    for jobs in counts:
        for seed in range(scale.seeds):
            instance = _made(scale, seed, {"jobs": jobs}, **settings)
            for floor in (0.0, 0.1):
                utilities = {
                    percent: simulate(
                        instance,
                        "oasis",
                        settings={"upper_scale": percent / 100, "lower_floor": floor},
                    ).objective
                    for percent in (50, 75, 100, 125, 150)
                }
                exact = utilities[100]
                rows += [
                    {"jobs": jobs, "seed": seed, "estimate_percent": percent,
                     "lower_floor": floor, "utility": utility,
                     "relative": 100 * utility / exact if exact > 0 else None}
                    for percent, utility in utilities.items()
                ]  # fmt: skip
            on_row(instance.name)
    return pd.DataFrame(rows)


def _testbed(scale: FigureScale) -> Iterable[tuple[JsonObject, OasisInstance, int]]:
    return (({}, _made(scale, seed, {}, "testbed"), seed) for seed in range(scale.seeds))


def _figure_8(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    return _run_schemes(scale, _testbed(scale), _utility, on_row)


def _figure_9(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    return _run_schemes(scale, _testbed(scale), _timeliness, on_row)


TIMELY = Plot("class", "late", kind="bars")
FIGURES = [
    Figure(
        "3",
        "Total utility against the number of jobs, T = 300",
        "OASiS performs best, the more so the more jobs share the fixed time span.",
        _figure_3,
        Plot("jobs", "utility"),
    ),
    Figure(
        "4",
        "Completion minus target, 100 time-sensitive and 100 time-critical jobs, T = 100",
        "OASiS is closest to zero for both classes, with the smallest variance.",
        _figure_4,
        TIMELY,
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
        _figure_6,
        Plot("estimate_percent", "relative", "jobs", panels="lower_floor"),
    ),
    Figure(
        "8",
        "Total utility on the testbed (9 servers, 12 jobs, 10 slots), simulated",
        "As in the simulations; the differences are smaller on a small testbed.",
        _figure_8,
        Plot("testbed", "utility", kind="bars"),
    ),
    Figure(
        "9",
        "Completion minus target on the testbed, simulated",
        "As in the simulations.",
        _figure_9,
        TIMELY,
    ),
]
