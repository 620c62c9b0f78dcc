"""Figures 3-6, 8 and 9 of OASiS (INFOCOM 2018) as experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from hindsched.analysis.figures.base import Figure, FigureScale, with_marks
from hindsched.analysis.figures.drawing import draw_bars, draw_lines
from hindsched.analysis.figures.oasis.claims import MARKS
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.json_types import JsonObject
from hindsched.online.oasis.algorithms import theorem
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

OnRow = Callable[[str], None]


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
"""The paper's five schemes, the rivals where they are strongest (docs/rivals.md), and OASiS with a
floor under L: the literal L underflows at T = 300."""


def _run_schemes(
    instances: Iterable[tuple[JsonObject, OasisInstance, int]],
    rows_of: Callable[[SimulationResult], list[JsonObject]],
    on_row: OnRow,
) -> pd.DataFrame:
    """Simulate every scheme on every (setting, instance, seed)."""
    rows = []
    for setting, instance, seed in instances:
        for scheme, (algorithm, settings) in SCHEMES.items():
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
    return _run_schemes(scale.each(jobs, partial(_made, scale, **settings)), _utility, on_row)


def _figure_4(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    settings = scale.pick(
        {"jobs": 200, "horizon": 100},
        {"jobs": 20, "horizon": 20, "servers": 8, "max_duration": 6},
    )
    halves = {"shares": [0.0, 0.5, 0.5], "exact_shares": True}
    return _run_schemes(
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
    return _run_schemes(_testbed(scale), _utility, on_row)


def _figure_9(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    return _run_schemes(_testbed(scale), _timeliness, on_row)


def _draw_3(frame: pd.DataFrame) -> Picture:
    return draw_lines(
        frame, "jobs", "utility", "scheme", x_label="jobs", y_label="total utility",
        title="OASiS, Fig. 3: total utility",
    )  # fmt: skip


def _draw_timeliness(number: str) -> Callable[[pd.DataFrame], Picture]:
    def draw(frame: pd.DataFrame) -> Picture:
        finished = frame.assign(
            share=1.0 - frame["late"].isna(),
            late=pd.to_numeric(frame["late"]),
        )
        spread = finished.groupby(["class", "scheme"], sort=False)["late"].agg(["mean", "std"])
        finished_share = finished.groupby(["class", "scheme"], sort=False)["share"].mean()
        table = spread.join(finished_share).reset_index()
        return _draw_late(table, f"OASiS, Fig. {number}: completion minus target")

    return draw


def _draw_late(table: pd.DataFrame, title: str) -> Picture:
    """Mean with one standard deviation, and the share of jobs that finished, a scheme and class."""
    import matplotlib.pyplot as plt

    from hindsched.analysis.plots.style import MARKERS, colour, common_look

    @common_look
    def draw() -> Picture:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True)
        schemes = list(dict.fromkeys(table["scheme"]))
        for index, kind in enumerate(dict.fromkeys(table["class"])):
            own = table[table["class"] == kind].set_index("scheme").reindex(schemes)
            place = [position + 0.16 * (2 * index - 1) for position in range(len(schemes))]
            left.errorbar(
                own["mean"], place, xerr=own["std"].fillna(0.0), fmt=MARKERS[index], label=kind,
                color=colour(index), capsize=2,
            )  # fmt: skip
            right.barh(place, 100 * own["share"], height=0.3, color=colour(index))
        left.axvline(0.0, color="black", linewidth=0.8)
        left.set_yticks(range(len(schemes)), schemes)
        left.invert_yaxis()
        left.set_xlabel("completion - target (slots), mean and standard deviation")
        figure.legend(loc="outside lower center", ncols=2)
        right.set_xlabel("jobs finished (%)")
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
        return figure

    return draw()


def _draw_5(frame: pd.DataFrame) -> Picture:
    named = frame.assign(
        setting=[
            f"priority {p}, dmax {d}" + (f", L-floor {f:g}" if f else "")
            for p, d, f in zip(
                frame["priority"], frame["max_duration"], frame["lower_floor"], strict=True
            )
        ]
    )
    return draw_lines(
        named, "servers", "ratio_upper", "setting", x_label="servers (half for workers)",
        y_label="OPT / oasis (upper end)", title="OASiS, Fig. 5: empirical competitive ratio",
        log_y=True,
    )  # fmt: skip


def _draw_6(frame: pd.DataFrame) -> Picture:
    return draw_lines(
        frame, "estimate_percent", "relative", "jobs", panels="lower_floor",
        x_label="estimate of U/L (% of exact)", y_label="utility (% of that at the exact U/L)",
        title="OASiS, Fig. 6: inaccurate estimates",
    )  # fmt: skip


def _draw_8(frame: pd.DataFrame) -> Picture:
    return draw_bars(
        frame.assign(testbed="testbed"), "testbed", "utility", "scheme", x_label="",
        y_label="total utility", title="OASiS, Fig. 8: total utility, testbed",
    )  # fmt: skip


_PLAIN: dict[str, Figure] = {
    "3": Figure(
        "3",
        "Total utility against the number of jobs, T = 300",
        "OASiS performs best, the more so the more jobs share the fixed time span.",
        _figure_3,
        _draw_3,
    ),
    "4": Figure(
        "4",
        "Completion minus target, 100 time-sensitive and 100 time-critical jobs, T = 100",
        "OASiS is closest to zero for both classes, with the smallest variance.",
        _figure_4,
        _draw_timeliness("4"),
    ),
    "5": Figure(
        "5",
        "Offline optimum over OASiS, T = 10, 10 jobs",
        "The ratio is around 1.1 to 1.5, without a trend in servers or priorities.",
        _figure_5,
        _draw_5,
    ),
    "6": Figure(
        "6",
        "Total utility under inaccurate estimates of U / L, T = 300",
        "Underestimation earns more than overestimation when resources are scarce.",
        _figure_6,
        _draw_6,
    ),
    "8": Figure(
        "8",
        "Total utility on the testbed (9 servers, 12 jobs, 10 slots), simulated",
        "As in the simulations; the differences are smaller on a small testbed.",
        _figure_8,
        _draw_8,
    ),
    "9": Figure(
        "9",
        "Completion minus target on the testbed, simulated",
        "As in the simulations.",
        _figure_9,
        _draw_timeliness("9"),
    ),
}
FIGURES = with_marks(_PLAIN, MARKS)
