"""Try the papers' theorems on small instances that meet what they assume.

Each trial gives a theorem's quantity over what it promises: above 1 one instance violates it. It is
no number where an assumption fails or the optimum is not known. ``python benchmarks/claims.py
--again --seeds 200 oasis-theorems`` tries oasis' on 200 instances. mlbroker's r2 depends on the
currency: prices are in thousands here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import hindsched as hs
from hindsched.analysis.figures.base import Figure, FigureScale, OnRow, Plot, Row
from hindsched.analysis.ratio import competitive_ratio, optimum_of
from hindsched.analysis.tasks import theorem_of
from hindsched.instances.batchsched.instance import RING_ALLREDUCE
from hindsched.instances.modes import Modes
from hindsched.models.batchsched.offline import build_dual
from hindsched.models.edgecloud.relaxations import build_ilp_4
from hindsched.online.astraea.paper import Astraea
from hindsched.online.batchsched.algorithms import BatchschedOnline, declared_estimates
from hindsched.online.edgecloud.algorithms import measure_at_speed
from hindsched.online.edgecloud.speed_augmentation import run_with_speed
from hindsched.online.protocol import Theorem, unmet
from hindsched.online.simulator import environment_of
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.windows.schedules import cheapest_row

PRICES = {
    "exchange_gb": 0,
    "gpu_range": (0.0012, 0.0096), "cpu_range": (0.00013, 0.00024), "memory_range": (1e-5, 1e-4),
    "storage_range": (1e-5, 1e-4), "transfer_usd": (1e-5, 2e-5), "deployment_usd": (5e-5, 1e-4),
}  # fmt: skip
ROUNDS = {"batchsched": ("alpha", "alpha"), "astraea": ("rounds", "lambda")}
POWER = {"utility": "power", "horizon": 2000}
FEW = {"servers": 5, "horizon": 40}
ROUND = {"tenants": 1, "arrival_span": 1, "horizon": 16, "jobs": 12}
STORAGE = {
    "cloud_upload": (6, 9), "storage_gb": (2, 4), "chunk_gb": (1, 2), "epochs": 2, "update_ms": 0,
    "minibatch_hours": 1, "minibatches": (1, 4), "gradient_mb": 0,
}  # fmt: skip
"""Whole slots a chunk, so that half the epochs take half the slots: speed 2."""
LIMIT = SolveOptions(time_limit=60)


def promise(instance: Any) -> tuple[Theorem, list[str]]:
    """What a family's theorem states for an instance, and which assumptions it does not meet."""
    theorem = theorem_of(instance, instance.family)
    assert theorem is not None
    return theorem, unmet(theorem, of_instance=True)


def part_of(instance: Any, objective: float, promised: float, *, additive: bool = False) -> float:
    """What an algorithm loses over what is promised: the end of it that is certain."""
    best = hs.solve(instance, options=LIMIT)
    known = optimum_of(instance.sense, best.objective, best.bound, best.status, proof="solver")
    ratio = competitive_ratio(known, objective)
    ends = ratio.difference if additive else ratio.interval
    if ends.lower is not None and ends.lower > promised:
        return ends.lower / promised
    return math.nan if ends.upper is None else ends.upper / promised


def competitive(instance: Any) -> float:
    """The family's algorithm against its competitive ratio, or the stated difference."""
    theorem, failing = promise(instance)
    if failing or theorem["value"] is None:
        return math.nan
    rounds = ROUNDS.get(instance.family)
    settings = {rounds[0]: theorem[rounds[1]]} if rounds else {}
    run = hs.simulate(instance, instance.family, settings=settings)
    additive = theorem["kind"] == "additive"
    return part_of(instance, run.objective, theorem["value"], additive=additive)


def feasible(instance: Any) -> float:
    """One more than what a run breaks."""
    return 1.0 + len(hs.simulate(instance, instance.family).violations)


def exactly(instance: Any) -> float:
    """What is earned where a solver decides on each job, over what the subroutine earns.

    OASiS' prices have a floor: without it payoffs are within a solver's tolerance.
    """
    floor = {"lower_floor": 0.1} if instance.family == "oasis" else {}
    runs = [
        hs.simulate(instance, instance.family, settings={"engine": engine, **floor})
        for engine in ("model", "oracle")
    ]
    earned = [run.objective for run in runs]
    return 1.0 if math.isclose(*earned, rel_tol=1e-6) else earned[0] / earned[1]


def batch(instance: Any, *, as_in_lemma_2: bool = False) -> float:
    """The dual (9) over the weight accepted: in a round over 2 log lambda, or in alpha rounds."""
    theorem, failing = promise(instance)
    algorithm, left, accepted = BatchschedOnline(), list(instance.jobs), 0.0
    algorithm.start(environment_of(instance, declared_estimates(instance), 0, "modes"))
    for _ in range(theorem["alpha"] if as_in_lemma_2 else 1):
        admitted = {admission.job.name for admission in algorithm.run_round(left, instance.horizon)}
        accepted += sum(job.weight for job in left if job.name in admitted)
        left = [job for job in left if job.name not in admitted]
    dual = build_dual(instance, "modes", last=instance.horizon - 1)  # (7b) never uses slot tau
    bound = solve_program(dual.model, LIMIT).objective
    if failing or bound is None:
        return math.nan
    promised = 1.0 if as_in_lemma_2 else float(theorem["max_weight_ratio"])
    return bound / accepted / promised if accepted else math.inf


def placement(seed: int) -> float:
    """What Algorithm 4 pays for a placement on two or three servers over the least."""
    random = np.random.default_rng(seed)
    servers = int(random.integers(2, 4))
    free, prices = random.integers(0, 5, (2, servers, 2)).astype(float)
    worker, ps = np.array([1.0, random.integers(0, 3)]), np.array([random.integers(0, 2), 1.0])
    ratio, count = random.choice([0.5, 1.0, 2.0]), int(random.integers(1, 4))
    cluster: Any = SimpleNamespace(
        server_capacity=free, worker_demand=worker[None], ps_demand=ps[None],
        ps_ratio=np.array([[ratio]]), has_ps=True,
    )  # fmt: skip
    mode = Modes(*(np.array([value]) for value in (0, 0, 0, count, 1)))
    slots = (np.ascontiguousarray(values[:, :, None]) for values in (free, prices))
    costs = []
    parts = list(slots)
    for greedy in (True, False):
        found = cheapest_row(cluster, mode, np.zeros(2), (1, 1), (1, 1), *parts, greedy=greedy)
        costs.append(math.inf if found is None else found[0])
    return 1.0 if costs[0] == costs[1] else costs[0] / costs[1] if costs[1] else math.inf


def fast(instance: Any, of: str) -> float:
    """A_online at speed 2 against the optimum at speed 1 of (4) or of (2)."""
    total, flow = measure_at_speed(instance, 2.0, LIMIT)
    if unmet(total.theorem, of_instance=True):
        return math.nan
    if of == "(2)":
        return part_of(instance, total.value, total.theorem["value"])
    bound = None if flow.solved is None else flow.solved.bound
    return flow.value / bound / flow.theorem["value"] if bound else math.nan


def in_rounds(instance: Any, *, as_in_lemma_1: bool = False) -> float:
    """Problem (4) over what Algorithm 3 earns: in a round over Lemma 3's ratio, or in lambda."""
    lemma, failing = promise(instance)
    if any("theta" in name for name in failing):
        return math.nan
    algorithm, left, earned = Astraea(), list(instance.jobs), 0.0
    algorithm.start(environment_of(instance, {}))
    algorithm.round_base, algorithm.batch = 0, list(instance.jobs)
    for _ in range(lemma["lambda"] if as_in_lemma_1 else 1):
        admitted = algorithm.run_round(left, instance.horizon)
        earned += sum(admission.value for admission in admitted)
        left = [job for job in left if job not in [admission.job for admission in admitted]]
    return part_of(instance, earned, 1.0 if as_in_lemma_1 else lemma["sigma"])


def stored(instance: Any) -> float:
    """Theorem 3's total with limited storage: A_online with half the work against (7)."""
    theorem, failing = promise(instance)
    if failing:
        return math.nan
    half = [job.model_copy(update={"epochs": job.epochs // 2}) for job in instance.jobs]
    run = hs.simulate(instance.with_jobs(half), "edgecloud")
    return part_of(instance, run.objective, theorem["value"])


def flow(seed: int) -> float:
    """ILP (4) over MINLP (2), Lemma 1."""
    instance = hs.generate("edgecloud", "small", seed)
    least = solve_program(build_ilp_4(instance).model, LIMIT).bound
    best = hs.solve(instance, options=LIMIT).objective
    return least / best if least and best else math.nan


def sums(seed: int) -> float:
    """The sum of alpha over that of beta, which is the sum of flow times over chunks: Lemma 4."""
    run = run_with_speed(hs.generate("edgecloud", "small", seed, servers=1), 0.0)
    return sum(sum(dispatch.alphas) for dispatch in run.dispatches) / run.average_flow


def ring(seed: int) -> float:
    """What Algorithms 6 and 7 pay for workers of one type over the least of all placements."""
    random = np.random.default_rng(seed)
    servers, count = int(random.integers(2, 5)), int(random.integers(1, 5))
    free, prices = random.integers(0, 5, (2, servers, 2)).astype(float)
    demand = np.array([1.0, random.integers(0, 3)])
    cluster: Any = SimpleNamespace(
        server_capacity=free, worker_demand=demand[None], ps_demand=np.zeros((0, 2)),
        ps_ratio=np.zeros((1, 0)), has_ps=False,
    )  # fmt: skip
    costs = [math.inf]
    for together in (0, 1):
        mode = Modes(*(np.array([value]) for value in (0, 0, together, count, 1)))
        slots = (np.ascontiguousarray(values[:, :, None]) for values in (free, prices))
        row = cheapest_row(cluster, mode, np.zeros(2), (1, 1), (1, 1), *slots, greedy=True)
        costs += [] if row is None else [row[0]]
    fits = np.array([min(f // d for f, d in zip(each, demand, strict=True) if d) for each in free])
    counts = [y for y in product(range(count + 1), repeat=servers) if sum(y) == count]
    least = min([float(y @ prices @ demand) for y in map(np.array, counts) if (y <= fits).all()],
                default=math.inf)  # fmt: skip
    return 1.0 if min(costs) == least else min(costs) / least if least else math.inf


def drawn(family: str, trial: Callable[[Any], float], **settings: Any) -> Callable[[int], float]:
    """A trial on the instance of a seed."""
    return lambda seed: trial(hs.generate(family, "small", seed, assumptions=True, **settings))


TRIALS: dict[str, dict[str, Callable[[int], float]]] = {
    "oasis": {
        "theorem-1": lambda seed: exactly(hs.generate("oasis", "small", seed)),
        "theorem-2": drawn("oasis", feasible), "theorem-4": drawn("oasis", competitive),
    },
    "batchsched": {
        "theorem-1": placement, "theorem-2": drawn("batchsched", feasible),
        "theorem-3": drawn("batchsched", batch), "theorem-5": drawn("batchsched", competitive),
        "theorem-6": ring, "theorem-7": drawn("batchsched", feasible, architecture=RING_ALLREDUCE),
        "lemma-2": drawn("batchsched", partial(batch, as_in_lemma_2=True)),
    },
    "astraea": {
        "theorem-1": drawn("astraea", competitive),
        "theorem-1-power": drawn("astraea", competitive, **POWER),
        "theorem-2": drawn("astraea", feasible), "lemma-2": drawn("astraea", exactly, **FEW),
        "lemma-1": drawn("astraea", partial(in_rounds, as_in_lemma_1=True), **ROUND),
        "lemma-3": drawn("astraea", in_rounds, **ROUND),
    },
    "edgecloud": {
        "theorem-2": drawn("edgecloud", feasible),
        "theorem-3": drawn("edgecloud", partial(fast, of="(4)")),
        "theorem-3-total": drawn("edgecloud", partial(fast, of="(2)")),
        "lemma-1": flow, "lemma-4": sums, "storage": drawn("edgecloud", stored, **STORAGE),
    },
    "mlbroker": {
        "theorem-5": drawn("mlbroker", competitive, **PRICES),
        "lemma-1": drawn("mlbroker", feasible, **PRICES),
    },
}  # fmt: skip


def run_trials(
    family: str, trials: dict[str, Callable[[int], float]], scale: FigureScale, on_row: OnRow
) -> pd.DataFrame:
    """A row a theorem and seed."""

    def row(name: str, seed: int) -> Row:
        return {"theorem": name, "seed": seed, "part": trials[name](seed)}

    made: list[Row] = []
    for seed, name in product(range(scale.seeds), trials):
        made += scale.once([family, name, seed], partial(row, name, seed))
        on_row(f"{family} {name} seed {seed}")
    return pd.DataFrame(made)


_BARS = Plot("theorem", "part", kind="bars")
_TITLE = "Theorems and lemmas on instances that meet what they assume"
THEOREMS = {
    family: Figure("theorems", _TITLE, partial(run_trials, family, trials), _BARS)
    for family, trials in TRIALS.items()
}
