"""Astraea's claimed properties, probed, and Theorem 5 of batchsched on small instances.

Each probe changes one thing and compares what a tenant ends with: its jobs' real revenue, plus what
it gains, minus what it pays. Small instances at two loads; seeds are groups of them.
``python benchmarks/claims.py --again astraea-P1`` runs the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from hindsched.analysis.figures.astraea.figures import solution_of
from hindsched.analysis.figures.base import Experiment, Figure, FigureScale, OnRow, Plot, Row
from hindsched.analysis.figures.batchsched.figures import VARIANTS
from hindsched.arrays import Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob, tenant_alone
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.modes import modes
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.astraea.algorithms import theorem
from hindsched.online.batchsched import algorithms as batchsched
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.window_solution import row_use
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.windows.schedules import ScheduleSearch

Run = Callable[[FigureScale, OnRow], pd.DataFrame]
LOADS = {"scarce": 4, "ample": 16}  # servers for ten jobs
SETTING = {"jobs": 10, "tenants": 3, "horizon": 40, "arrival_span": 3}
ROUNDS = {"rounds": 1}
TOLERANCE = Fraction(1, 10**9)


def probe(rows_of: Callable[[AstraeaInstance], Iterable[Row]], each: int) -> Run:
    """Run a probe on instances at every load, `each` a seed, with their labels."""

    def run_all(scale: FigureScale, on_row: OnRow) -> pd.DataFrame:
        rows, count = [], scale.pick(each, 3)
        for load, servers in LOADS.items():
            for number in range(scale.seeds * count):
                made = scale.instance("astraea", "small", number, {"servers": servers}, **SETTING)
                labels = {"load": load, "seed": number // count, "instance": number}
                rows += [{**labels, **row} for row in rows_of(made)]
                on_row(f"{made.name} {load}")
        return pd.DataFrame(rows)

    return run_all


def run_astraea(instance: AstraeaInstance, settings: Keywords | None = None) -> SimulationResult:
    """Astraea with one round a batch."""
    return simulate(instance, "astraea", settings={**ROUNDS, **(settings or {})})


def incomes(result: SimulationResult, true: AstraeaInstance | None = None) -> dict[str, Fraction]:
    """Income by tenant, job revenues judged by the true records where some were declared."""
    solution = solution_of(result)
    totals = solution.incomes()
    if true is None:
        return totals
    declared = {job.name: job for job in solution.instance.jobs}
    for job in true.jobs:
        completion = solution.completion(job.name)
        if completion is not None:
            totals[job.tenant] += Fraction(true.revenue(job, completion))
            declared_revenue = solution.instance.revenue(declared[job.name], completion)
            totals[job.tenant] -= Fraction(declared_revenue)
    return totals


def sharing_incentive(instance: AstraeaInstance) -> Iterator[Row]:
    """A tenant's income in the coalition, and alone on its own servers, where theta is another."""
    together = incomes(run_astraea(instance))
    for u, tenant in enumerate(instance.tenants):
        jobs = tuple(job for job in instance.jobs if job.tenant == tenant.name)
        if not jobs:
            continue
        lonely = tenant_alone(instance, u).with_jobs(jobs)
        alone = incomes(run_astraea(lonely))[tenant.name] if lonely.servers else Fraction(0)
        gain = together[tenant.name] - alone
        yield {"tenant": tenant.name, "together": float(together[tenant.name]),
               "alone": float(alone), "outcome": _outcome(gain)}  # fmt: skip


def pareto(instance: AstraeaInstance) -> Iterator[Row]:
    """Whether a job could end earlier in its own round at nobody's cost: none if efficient."""
    result = run_astraea(instance)
    solution, search = solution_of(result), ScheduleSearch(instance, instance.horizon)
    for row in (row for rows in solution.rows.values() for row in rows):
        search.book(row)
    for job in instance.jobs:
        completion = solution.completion(job.name)
        if completion is None:
            continue
        rows = solution.rows[job.name]
        base = _round_base(result, rows[0].first)
        for row in rows:
            search.book(row, sign=-1.0)
        best = search.cheapest(modes(instance, job), rate=1.0, earliest=base + 1)
        for row in rows:
            search.book(row)
        earlier = 0 if best is None else completion - best.last
        outcome = "could end earlier" if earlier > 0 else "could not"
        yield {"job": job.name, "slots_earlier": earlier, "outcome": outcome}


def _round_base(result: SimulationResult, first: int) -> int:
    """Last slot before the round in which a window begins."""
    for interval in result.report["intervals"]:
        begin = interval["first_slot"]
        length = interval["horizon"] * max(1, len(interval["accepted"]))
        if begin <= first < begin + length:
            return int(first - 1 - (first - begin) % interval["horizon"])
    raise LookupError(f"no batch runs in slot {first}")


def declared_otherwise(instance: AstraeaInstance, job: AstraeaJob) -> dict[str, JsonObject]:
    """Fields that each lie changes, always so that the job still can run as declared.

    ``half the chunks``: at most half the workers, at least the same work; ``a slot later``:
    declared late; ``twice`` and ``half the value``; ``first in the list``: the order of ties.
    """
    half = -(-job.chunks // 2)
    work = job.chunks * job.minibatches
    lies: dict[str, JsonObject] = {
        "half the chunks": {"chunks": half, "minibatches": -(-work // half)},
        "twice the value": {"utility": _scaled_job(job, 2.0)},
        "half the value": {"utility": _scaled_job(job, 0.5)},
        "first in the list": {},
    }
    if job.arrival + 1 < instance.horizon:
        lies["a slot later"] = {"arrival": job.arrival + 1}
    return lies


def _scaled_job(job: AstraeaJob, factor: float) -> Any:
    """A linear utility times a factor."""
    slope, intercept = (factor * getattr(job.utility, key) for key in ("slope", "intercept"))
    return job.utility.model_copy(update={"slope": slope, "intercept": intercept})


def strategy(instance: AstraeaInstance) -> Iterator[Row]:
    """What a tenant and its job gain when the job is declared otherwise.

    ``outcome`` is about the tenant's income. ``payoff_gain`` is about the job's true ideal revenue
    minus its cost at the posted prices, what Algorithm 3 maximises, and ``same_phase`` says whether
    the lie leaves the job in its round and phase: there no lie about demand or value can raise the
    payoff (Lemma 2). Theta is that of the truth, as if estimated from the past.
    """
    bound = theorem(instance)
    theta = {"theta_workers": bound["theta_workers"], "theta_ps": bound["theta_ps"]}
    honest = run_astraea(instance, theta)
    truly = incomes(honest)
    for index, job in enumerate(instance.jobs):
        others = instance.jobs[:index], instance.jobs[index + 1 :]
        for lie, update in declared_otherwise(instance, job).items():
            declared = job.model_copy(update=update)
            order = (*others[0], declared, *others[1])
            if lie == "first in the list":
                order = (declared, *others[0], *others[1])
            result = run_astraea(instance.with_jobs(order), theta)
            gain = incomes(result, instance)[job.tenant] - truly[job.tenant]
            payoff_gain = _payoff(result, job) - _payoff(honest, job)
            yield {"job": job.name, "lie": lie, "gain": float(gain), "outcome": _outcome(gain),
                   "payoff_gain": payoff_gain,
                   "same_phase": _phase(honest, job.name) == _phase(result, job.name)}  # fmt: skip


def _phase(result: SimulationResult, name: str) -> tuple[int, bool] | None:
    """The round (by its last slot before) and whether in phase 2; None for a job left out."""
    rows = solution_of(result).rows.get(name)
    if not rows:
        return None
    return _round_base(result, rows[0].first), rows[0].payment is not None


def _payoff(result: SimulationResult, job: AstraeaJob) -> float:
    """True ideal revenue of a job minus what its schedule cost at the posted prices."""
    rows = solution_of(result).rows.get(job.name)
    if not rows:
        return 0.0
    (cost,) = (row["cost"] for row in result.report["ledger"] if row["job"] == job.name)
    base = _round_base(result, rows[0].first)
    return job.utility.value(rows[-1].last - base) - float(cost)


def unused_quota(solution: AstraeaSolution) -> Ints:
    """What tenants leave of their fair shares, in which jobs run that pay nothing.

    Shape (last_slot, tenants, types); types of workers stand before those of PSs.
    """
    instance = solution.instance
    left = np.repeat(instance.tenant_quota[None], solution.last_slot, axis=0)
    for job in instance.jobs:
        for row in solution.rows.get(job.name, ()):
            if row.payment is None:
                used = row_use(instance, row).sum(axis=0).astype(np.int64)
                left[row.first - 1 : row.last, instance.tenant_index[job.tenant]] -= used
    return left


def contribution(instance: AstraeaInstance) -> Iterator[Row]:
    """A tenant's share of what was offered while others paid, and its share of all gains."""
    solution = solution_of(run_astraea(instance))
    paying = np.zeros(solution.last_slot, dtype=bool)
    for rows in solution.rows.values():
        for row in rows:
            if row.payment is not None and sum(row.payment) > 0:
                paying[row.first - 1 : row.last] = True
    gains = solution.gains()
    total = sum(gains.values())
    if not total > 0:
        return
    offered = unused_quota(solution)[paying].sum(axis=(0, 2))
    for u, tenant in enumerate(instance.tenants):
        contributed = float(offered[u] / max(1, offered.sum()))
        gained = float(gains[tenant.name] / total)
        yield {"tenant": tenant.name, "contributed": contributed, "gained": gained}


def _outcome(gain: Fraction) -> str:
    if gain > TOLERANCE:
        return "more"
    return "less" if gain < -TOLERANCE else "the same"


def best_known(instance: BatchschedInstance, scale: FigureScale) -> Row:
    """The optimum's bound on instances that are small enough for it, and the promise."""
    best = solve(instance, options=SolveOptions(work_limit=scale.pick(6000, 500)))
    return {"optimum_lower": best.bound, "theorem": batchsched.theorem(instance)["value"]}


def ratio_row(run: SimulationResult, known: Row) -> Row:
    """A_online over what is known of the optimum."""
    ratio = run.objective / known["optimum_lower"] if known["optimum_lower"] else None
    return {"objective": run.objective, **known, "ratio_upper": ratio}


BOTH = (PARAMETER_SERVER, RING_ALLREDUCE)
THEOREM_5 = Figure(
    "theorem-5", "Total weighted completion time of A_online over the optimum, small instances",
    Experiment(
        "batchsched", VARIANTS, ratio_row,
        {"architecture": (BOTH, BOTH), "jobs": ((3, 4, 5, 6), (2, 3))}, {"horizon": 12},
        {"horizon": 8}, preset="small", facts=best_known,
    ),
    Plot("jobs", "ratio_upper", "algorithm", panels="architecture"),
)  # fmt: skip
PROBES = (
    Figure(
        "P1", "Batch sharing incentive: a tenant's income together and alone",
        probe(sharing_incentive, 10), Plot("alone", "together", "load", "points"),
    ),
    Figure(
        "P2", "Pareto efficiency: jobs that could end earlier at nobody's cost", probe(pareto, 10),
        Plot("outcome", "slots_earlier", "load", "bars"),
    ),
    Figure(
        "P3", "Strategy-proofness: a tenant's income after declaring one job otherwise",
        probe(strategy, 4), Plot("lie", "gain", "load", "bars"),
    ),
    Figure(
        "P4", "Gain as you contribute: shares of offers and of gains", probe(contribution, 10),
        Plot("contributed", "gained", "load", "points"),
    ),
)  # fmt: skip
PROPERTIES = {
    "astraea": {figure.number: figure for figure in PROBES},
    "batchsched": {"theorem-5": THEOREM_5},
}
"""Experiments beside the papers' figures, by family and number."""
