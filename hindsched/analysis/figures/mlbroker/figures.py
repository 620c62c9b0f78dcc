"""Figures 5-17 and Tables 4-5 of mlBroker (IEEE TPDS) as experiments.

Every ratio is to a valid lower bound: the paper's own relaxation where the paper's figure divides
by it (5-7), and the certified Lagrangian bound elsewhere. ``mlbroker`` is the paper's algorithm;
``mlbroker-tight`` (ours) stands beside it throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import pandas as pd

from hindsched.analysis.figures import base
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.online.mlbroker.algorithms import Mlbroker, r1, theorem
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solvers.families.mlbroker.methods import lagrangian_certificate, relaxation_bound

ALGORITHMS = base.schemes_of(
    ("mlbroker", "mlbroker-tight", "mlbroker-prices", "central", "oasis-style", "local"),
    "algorithm",
)
SIZES = (100, 200, 300, 400, 500, 600, 700)  # data per job and slot in GB: the paper's range
FULL = {"datacenters": 15, "horizon": 50, "jobs": 145}
QUICK = {"datacenters": 5, "horizon": 6, "jobs": 12, "life_slots": (2, 5)}


def _roundings(*roundings: str, prices: tuple[str, ...]) -> tuple[base.Scheme, ...]:
    """The paper's algorithm with each relaxation and rounding."""
    return tuple(
        base.Scheme({"rounding": rounding, "relaxation": price}, "mlbroker",
                    {"rounding": rounding, "price": price})
        for price in prices for rounding in roundings
    )  # fmt: skip


def _shared() -> Callable[[Any, base.Scheme, int], SimulationResult]:
    """Runs that solve A_fractional once for all roundings of an instance and price."""
    solved: dict[tuple[str, object], dict[int, Any]] = {}

    def play(instance: Any, scheme: base.Scheme, seed: int) -> SimulationResult:
        key = instance.sha256(), scheme.settings["price"]
        if key not in solved and len(solved) > 1:
            solved.clear()
        settings: dict[str, Any] = dict(scheme.settings)
        algorithm = Mlbroker(**settings)
        algorithm.solved = solved.setdefault(key, {})
        return simulate(instance, algorithm, seed=seed)

    return play


def _costs(run: SimulationResult) -> base.Row:
    solution: Any = run.solution
    return {"total": run.objective, **solution.costs.by_cost}


def _known(instance: MlbrokerInstance, scale: base.FigureScale) -> base.Row:
    """The certified bound, and what the theorem promises."""
    bound = lagrangian_certificate(instance).bound
    return {"bound": bound, "theorem": theorem(instance)["value"]}


def _against_bound(run: SimulationResult, known: base.Row) -> base.Row:
    """The costs and the ratio to the certified bound."""
    ratio = run.objective / known["bound"]
    return {**_costs(run), **known, "ratio": ratio, "percent_above_bound": 100 * (ratio - 1)}


def _rounding_loss(run: SimulationResult, promised: float) -> base.Row:
    """What rounding costs beyond the fractional solution."""
    report = run.report
    return {
        "ratio": run.objective / report["fractional_cost"],
        "r2": promised,
        "total": run.objective,
        "repairs": report["infeasible_repairs"],
        "extra_workers": report["workers_placed"] / report["workers_needed"] - 1,
    }


def _real_experiment(run: SimulationResult) -> base.Row:
    """The real experiment, simulated: costs, instance-hours and discount rates."""
    solution: Any = run.solution
    return {
        **_costs(run),
        "instance_hours": float(solution.costs.used.sum()) * run.instance.slot_seconds / 3600,
        "discount_rate": solution.discount_rate(),
        **{f"broker_{name}": value for name, value in solution.broker_margin().items()},
    }


def _figure_5(scale: base.FigureScale, on_row: base.OnRow) -> pd.DataFrame:
    """A_fractional over P_f, both with the paper's big-M bill and both with the chord.

    A third case makes launches 100 times dearer: as printed they are too small to matter.
    """
    cases: dict[str, tuple[Any, base.Row]] = {
        "big-M bill": ("paper", {}),
        "chord": ("chord", {}),
        "chord, launches x 100": ("chord", {"deployment_gb": 100}),
    }
    rows = []
    small = {"horizon": 5, "jobs": 8, "life_slots": (2, 4)}
    sizes = scale.pick({"horizon": 50, "jobs": 145}, small)
    centres = scale.axis("datacenters", (3, 6, 9, 12, 15), (3, 5))
    epsilons = scale.axis("epsilon", (0.001, 0.01, 0.1, 1.0, 10.0), (0.01, 1.0))
    chosen = scale.axis("case", tuple(cases), tuple(cases))
    for centers, seed, case in product(centres, range(scale.seeds), chosen):
        price, change = cases[case]
        varied = {"datacenters": centers, **change}
        instance = scale.instance("mlbroker", "paper", seed, varied, **sizes)
        optimum = cache(partial(relaxation_bound, instance, price))
        for epsilon in epsilons:
            run = partial(_fractional_ratio, instance, optimum, price, epsilon, seed)
            point = {"centers": centers, "epsilon": epsilon, "case": case}
            same = {**point, "relaxation": price, "seed": seed}
            key = [instance.sha256(), seed, case, epsilon]
            rows += [{**same, **row} for row in scale.once(key, run)]
            on_row(f"{instance.name} {case} eps {epsilon}")
    return pd.DataFrame(rows)


def _fractional_ratio(
    instance: MlbrokerInstance, optimum: Callable[[], float], price: Any, epsilon: float, seed: int
) -> base.Row:
    settings = {"price": price, "epsilon": epsilon}
    run = simulate(instance, "mlbroker", seed=seed, settings=settings)
    return {"ratio": run.report["fractional_cost"] / optimum(), "r1": r1(epsilon)}


def _promised(instance: MlbrokerInstance, scale: base.FigureScale) -> Any:
    return theorem(instance)["quantities"]["r2_paper"]


BY_DATA = base.Experiment(
    "mlbroker", ALGORITHMS, _against_bound, {"data_gb": (SIZES, (100, 400, 700))}, FULL, QUICK,
    facts=_known,
)  # fmt: skip
"""All algorithms against the data size: one run serves Figures 8 and 11-14."""
SECTION_64 = base.Experiment("mlbroker", ALGORITHMS, _real_experiment, preset="section-6.4")
BY_CAPACITY = base.Experiment(
    "mlbroker", _roundings("paper", prices=("paper",)), _rounding_loss,
    {"capacity_gb": ((16, 33, 50, 66), (16, 66)), "data_gb": (SIZES, (100, 700))}, FULL, QUICK,
    facts=_promised,
)  # fmt: skip
BY_ROUNDING = base.Experiment(
    "mlbroker",
    _roundings(
        "paper", "independent", "greedy", "round2", "largest-remainder", prices=("paper", "chord")
    ),
    _rounding_loss, {"datacenters": ((5, 10, 15, 20), (3, 5))}, FULL, QUICK, facts=_promised,
    play=_shared(),
    finish=lambda frame: frame.rename(columns={"datacenters": "centers"}),
)  # fmt: skip
BY_SLOTS = base.Experiment(
    "mlbroker", ALGORITHMS, _against_bound,
    {"horizon": ((50, 60, 70, 80, 90, 100), (4, 8))}, {**FULL, "data_gb": 700},
    {**QUICK, "data_gb": 700}, facts=_known,
    vary=lambda point: {**point, "jobs": 3 * point["horizon"]},
    finish=lambda frame: frame.rename(columns={"horizon": "slots"}),
)  # fmt: skip
BY_JOBS = base.Experiment(
    "mlbroker", ALGORITHMS, _against_bound, {"jobs": ((29, 58, 87, 116, 145, 174), (6, 18))},
    {**FULL, "data_gb": 700}, {**QUICK, "data_gb": 700}, facts=_known,
)  # fmt: skip
PARTS = {
    "11": ("transfer", "C1, data transfer"),
    "12": ("resource", "C2, resources"),
    "13": ("deployment", "C3, deployment"),
    "14": ("communication", "C4, communication"),
}
REAL: dict[str, tuple[str, str, tuple[float, float, float]]] = {
    "15": ("total", "Total cost", (0.973, 0.891, 0.772)),
    "16": ("instance_hours", "Running time of all instances", (1.009, 0.989, 0.939)),
    "17": ("discount_rate", "Discount rate", (0.934, 0.914, 0.867)),
    "table-4": ("resource", "The four costs", (0.94, 0.902, 0.812)),
}
RIVALS = "central", "oasis-style", "local"
"""What is drawn, and what the text's tables make of mlBroker's over these others'."""
FIGURES = [
    base.Figure(
        "5", "A_fractional over P_f against centres and eps", _figure_5,
        base.Plot("centers", "ratio", "epsilon", panels="case"), levels=(1.25,),
    ),
    base.Figure(
        "6", "Rounding loss against a worker's capacity and the data size", BY_CAPACITY,
        base.Plot("data_gb", "ratio", "capacity_gb"), levels=(2.5,),
    ),
    base.Figure(
        "7", "A_round, Independent and Greedy Rounding", BY_ROUNDING,
        base.Plot("centers", "ratio", "rounding", panels="relaxation"), levels=(2.5,),
    ),
    base.Figure(
        "8", "Total cost against the data size", BY_DATA,
        base.Plot("data_gb", "percent_above_bound", "algorithm", log_y=True),
    ),
    base.Figure(
        "9", "Ratio against the number of slots, 700 GB", BY_SLOTS,
        base.Plot("slots", "percent_above_bound", "algorithm", log_y=True),
    ),
    base.Figure(
        "10", "Ratio against the number of jobs, 700 GB", BY_JOBS,
        base.Plot("jobs", "percent_above_bound", "algorithm", log_y=True),
    ),
    *(
        base.Figure(
            number, f"{title} against the data size", BY_DATA,
            base.Plot("data_gb", column, "algorithm"),
        )
        for number, (column, title) in PARTS.items()
    ),
    *(
        base.Figure(
            number, f"{title} in the setting of the real experiment, simulated", SECTION_64,
            base.Plot("experiment", column, "algorithm", "bars"),
            factors=dict(zip(RIVALS, factors, strict=True)),
        )
        for number, (column, title, factors) in REAL.items()
    ),
    base.Figure(
        "table-5", "Running time and discount rate in that setting", SECTION_64,
        base.Plot("instance_hours", "discount_rate", "algorithm", "points"),
    ),
]  # fmt: skip
