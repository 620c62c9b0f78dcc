"""Astraea's claimed properties, probed: where the theorems hold and where not.

Each probe changes one thing and compares what a tenant ends with: its jobs' real revenue, plus what
it gains, minus what it pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.figures.base import Figure, FigureScale
from hindsched.analysis.figures.drawing import draw_bars
from hindsched.instances.astraea import AstraeaInstance
from hindsched.instances.astraea_shares import tenant_alone
from hindsched.instances.base import ceil_slots
from hindsched.instances.generators.registry import generate
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.astraea import AstraeaSolution
from hindsched.solvers.pricing.astraea import ServerOracle

OnRow = Callable[[str], None]
SCARCE = {"jobs": 10, "servers": 4, "tenants": 3, "horizon": 40, "arrival_span": 3}
SETTINGS = {"rounds": 1}
TOLERANCE = 1e-9


def instances(scale: FigureScale, each: int = 10) -> list[AstraeaInstance]:
    """Small instances with contention, `each` a seed."""
    made = []
    for seed in range(scale.seeds * scale.pick(each, 3)):
        instance = generate("astraea", "small", seed, **SCARCE)
        assert isinstance(instance, AstraeaInstance)
        made.append(instance)
    return made


def run(instance: AstraeaInstance) -> SimulationResult:
    """Astraea with one round a batch."""
    return simulate(instance, "astraea", settings=SETTINGS)


def solution_of(result: SimulationResult) -> AstraeaSolution:
    """The run's solution with its family's methods."""
    assert isinstance(result.solution, AstraeaSolution)
    return result.solution


def incomes(result: SimulationResult, true: AstraeaInstance | None = None) -> dict[str, float]:
    """Net revenue by tenant, job revenues judged by the true records where some were declared."""
    solution = solution_of(result)
    found = {row["tenant"]: row["gained"] - row["paid"] for row in solution.tenant_rows()}
    for job in (true or solution.instance).jobs:
        completion = solution.completion(job.name)
        if completion is not None:
            found[job.tenant] += (true or solution.instance).revenue(job, completion)
    return found


def sharing_incentive(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """A tenant's income in the coalition and alone on its own servers, same prices."""
    rows = []
    for seed, instance in enumerate(instances(scale)):
        together = incomes(run(instance))
        for u, tenant in enumerate(instance.tenants):
            jobs = tuple(job for job in instance.jobs if job.tenant == tenant.name)
            if not jobs:
                continue
            lonely = tenant_alone(instance, u, jobs)
            alone = incomes(run(lonely))[tenant.name] if lonely.servers else 0.0
            gain = together[tenant.name] - alone
            rows.append(
                {"seed": seed, "tenant": tenant.name, "together": together[tenant.name],
                 "alone": alone, "outcome": _outcome(gain)}
            )  # fmt: skip
        on_row(instance.name)
    return pd.DataFrame(rows)


def pareto(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """Whether one job alone could end earlier in its own round, all others where they are."""
    rows = []
    for seed, instance in enumerate(instances(scale)):
        result = run(instance)
        solution = solution_of(result)
        oracle = ServerOracle(instance)
        free = oracle.rows.capacity.copy()
        for response in oracle.use_of(solution):
            if response is not None:
                np.subtract.at(free, response.rows, response.amounts)
        for block, job in enumerate(instance.jobs):
            completion = solution.completion(job.name)
            if completion is None:
                continue
            own = oracle.use_of(solution)[block]
            assert own is not None
            room = free.copy()
            np.add.at(room, own.rows, own.amounts)
            base = _round_base(result, solution.rows[job.name][0].first)
            moved = instance.with_jobs((job.model_copy(update={"arrival": base}),))
            best = ServerOracle(moved).best_response(0, np.zeros(oracle.rows.size), room)
            earlier = 0
            if best is not None:
                earlier = completion - int(best.plan[0].last)
            rows.append(
                {"seed": seed, "job": job.name, "slots_earlier": earlier,
                 "outcome": "could end earlier" if earlier > 0 else "cannot"}
            )  # fmt: skip
        on_row(instance.name)
    return pd.DataFrame(rows)


def _round_base(result: SimulationResult, first: int) -> int:
    """Last slot before the round in which a window begins."""
    for interval in result.report["intervals"]:
        begin = interval["first_slot"]
        length = interval["horizon"] * max(1, len(interval["accepted"]))
        if begin <= first < begin + length:
            return int(first - 1 - (first - begin) % interval["horizon"])
    raise LookupError(f"no batch runs in slot {first}")


def strategy(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """A tenant's income when one job is declared otherwise, always so that it still can run.

    ``half the chunks``: at most half the workers, work unchanged; ``a slot later``: declared late;
    ``twice the value``: slope and intercept doubled; ``first in the list``: the tie-breaking order.
    """
    rows = []
    for seed, instance in enumerate(instances(scale, each=4)):
        honest = incomes(run(instance))
        for index, job in enumerate(instance.jobs):
            others = instance.jobs[:index], instance.jobs[index + 1 :]
            half = -(-job.chunks // 2)
            work = ceil_slots(job.chunks * job.minibatches / half)
            utility = job.utility.model_copy(
                update={
                    key: 2 * getattr(job.utility, key)
                    for key in ("slope", "intercept", "scale")
                    if hasattr(job.utility, key)
                }
            )
            lies: dict[str, dict[str, Any]] = {
                "half the chunks": {"chunks": half, "minibatches": work},
                "a slot later": {"arrival": job.arrival + 1},
                "twice the value": {"utility": utility},
                "first in the list": {},
            }
            for lie, update in lies.items():
                declared = job.model_copy(update=update)
                order = (declared, *others[0], *others[1])
                if lie != "first in the list":
                    order = (*others[0], declared, *others[1])
                income = incomes(run(instance.with_jobs(order)), instance)[job.tenant]
                gain = income - honest[job.tenant]
                rows.append(
                    {"seed": seed, "job": job.name, "lie": lie, "gain": gain,
                     "outcome": _outcome(gain)}
                )  # fmt: skip
        on_row(instance.name)
    return pd.DataFrame(rows)


def contribution(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
    """A tenant's share of what was offered while others paid, and its share of all gains."""
    rows = []
    for seed, instance in enumerate(instances(scale)):
        solution = solution_of(run(instance))
        paying = np.zeros(solution.last_slot, dtype=bool)
        for own in solution.rows.values():
            for row in own:
                if row.payment is not None and sum(row.payment) > 0:
                    paying[row.first - 1 : row.last] = True
        gains = solution.gains()
        total = float(sum(gains.values()))
        if not total > 0:
            continue
        workers, ps = solution.unused_quota
        offered = workers[paying].sum(axis=(0, 2)) + ps[paying].sum(axis=(0, 2))
        for u, tenant in enumerate(instance.tenants):
            rows.append(
                {"seed": seed, "tenant": tenant.name,
                 "contributed": float(offered[u] / max(1, offered.sum())),
                 "gained": float(gains[tenant.name]) / total}
            )  # fmt: skip
        on_row(instance.name)
    return pd.DataFrame(rows)


def _outcome(gain: float) -> str:
    if gain > TOLERANCE:
        return "more"
    return "less" if gain < -TOLERANCE else "the same"


def _draw_shares(title: str, by: str) -> Callable[[pd.DataFrame], Any]:
    """Share of the cases with each outcome, a seed at a time."""

    def draw(frame: pd.DataFrame) -> Any:
        named = frame if by in frame else frame.assign(**{by: "all"})
        outcomes = list(dict.fromkeys(named["outcome"]))
        rows = [
            {by: value, "seed": seed, "outcome": name, "share": float((own == name).mean())}
            for (value, seed), own in named.groupby([by, "seed"], sort=False)["outcome"]
            for name in outcomes
        ]
        return draw_bars(
            pd.DataFrame(rows), by, "share", "outcome", x_label=by if by in frame else "",
            y_label="share of cases", title=title,
        )  # fmt: skip

    return draw


def _draw_contribution(frame: pd.DataFrame) -> Any:
    import matplotlib.pyplot as plt

    from hindsched.analysis.plots.style import colour, common_look

    @common_look
    def draw() -> Any:
        figure, axes = plt.subplots(figsize=(4.2, 3.6))
        axes.scatter(frame["contributed"], frame["gained"], s=14, color=colour(0))
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.8)
        axes.set_xlabel("share of what was offered")
        axes.set_ylabel("share of all gains")
        figure.suptitle("Astraea, P4: gain as you contribute", fontsize=10, x=0.01, ha="left")
        return figure

    return draw()


PROPERTIES: dict[str, Figure] = {
    "P1": Figure(
        "P1",
        "Batch sharing incentive: a tenant's income together and alone",
        "Every tenant earns at least what it earns alone on its fair share, batch by batch.",
        sharing_incentive,
        _draw_shares("Astraea, P1: income together against alone", "tenant"),
    ),
    "P2": Figure(
        "P2",
        "Pareto efficiency: jobs that could end earlier at nobody's cost",
        "Theorem 5: Astraea is Pareto efficient.",
        pareto,
        _draw_shares("Astraea, P2: moving one job, others fixed", "round"),
    ),
    "P3": Figure(
        "P3",
        "Strategy-proofness: a tenant's income after declaring one job otherwise",
        "Theorem 4: Astraea is strategy-proof.",
        strategy,
        _draw_shares("Astraea, P3: income after a lie", "lie"),
    ),
    "P4": Figure(
        "P4",
        "Gain as you contribute: shares of offers and of gains",
        "A resource owner's share of income is proportional to its contribution.",
        contribution,
        _draw_contribution,
    ),
}
