"""Loads that are asked for where there are too many to list, and what is refuted by weights."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import hindsched as hs
from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.patterns import build_ends_program
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.standard_form import compile_program
from hindsched.solvers.door.status import Status
from hindsched.solvers.families.oasis import leaf_of_loads, priced_loads
from hindsched.solvers.families.oasis import loads as loads_module
from hindsched.solvers.families.oasis.conflicts import Leaves, add_cut_of_work, last_ends
from hindsched.solvers.families.oasis.leaf_of_loads import LeafOfLoads, Worth
from hindsched.solvers.families.oasis.loads import Loads
from hindsched.solvers.families.oasis.priced_loads import PricedLoads
from tests.solvers.oasis_leaves import drawn, keeps, some_ends


@pytest.fixture
def nothing_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set of jobs has too many loads to list them."""
    monkeypatch.setattr(loads_module, "MOST_COMPARISONS", 0)


def some_weights(random: np.random.Generator) -> tuple[tuple[int, ...], Floats]:
    """Some of five jobs, and what a worker of each is worth: nothing for one in five."""
    jobs = tuple(np.flatnonzero(random.random(5) < 0.6).tolist()) or (0,)
    return jobs, random.random(len(jobs)) * (random.random(len(jobs)) < 0.8)


@pytest.mark.parametrize("patterns", [0, 120])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_load_is_the_best_of_all(
    seed: int, patterns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priced_loads, "MOST_PATTERNS", patterns)
    instance, random = drawn(seed), np.random.default_rng(seed)
    listed = Loads(instance)
    priced = PricedLoads(instance, listed.needed)
    for _ in range(6):
        jobs, weights = some_weights(random)
        everything = listed.of(jobs)
        assert everything is not None
        expected = float((everything @ weights).max(initial=0.0))
        found = priced.most(jobs, weights, math.inf)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-9)
        assert found >= expected - 1e-9
        assert float((priced.known(jobs) @ weights).max()) >= (1 - 1e-3) * expected
    for load in priced.known(jobs):
        assert (everything >= load).all(axis=1).any()
        placed = priced.on_servers(jobs, load)
        assert placed is not None
        for units, demand, capacity in zip(
            placed,
            (instance.worker_demand, instance.ps_demand),
            (instance.worker_capacity, instance.ps_capacity),
            strict=True,
        ):
            assert (units @ demand[list(jobs)] <= capacity + 1e-9).all()
        assert (placed[0].sum(axis=0) == load).all()


@pytest.mark.parametrize("patterns", [0, 120])
@pytest.mark.parametrize("seed", range(5))
def test_no_load_is_worth_more_than_its_bounds_whatever_is_enough(
    seed: int, patterns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priced_loads, "MOST_PATTERNS", patterns)
    instance, random = drawn(seed), np.random.default_rng(seed)
    listed = Loads(instance)
    for _ in range(6):
        priced = PricedLoads(instance, listed.needed)
        jobs, weights = some_weights(random)
        best = listed.at_most(jobs, weights)
        assert best == listed.most(jobs, weights, math.inf, (0.0, 0.0))
        assert best - 1e-9 <= priced.at_most(jobs, weights)
        assert not patterns or priced.at_most(jobs, weights) <= 1.5 * best + 1e-3
        below, reached = float(random.uniform(0.5, 1.5)) * best, float(random.uniform(0, 1)) * best
        found = priced.most(jobs, weights, math.inf, (below, reached))
        assert found >= best - 1e-9
        known = float((priced.known(jobs) @ weights).max(initial=0.0))
        optimal = known >= (1 - 1e-3) * best and found <= (1 + 1e-3) * best + 1e-3
        assert found < below or known >= reached - 1e-9 or optimal


@pytest.mark.parametrize("seed", range(8))
def test_slots_are_asked_until_their_worth_is_known_to_be_enough_or_not(seed: int) -> None:
    instance, random = drawn(seed), np.random.default_rng(seed)
    listed, refuted = Loads(instance), 0
    for _ in range(10):
        weights = dict(enumerate(random.random(5)))
        chosen = [tuple(np.flatnonzero(random.random(5) < 0.6).tolist()) for _ in range(3)]
        spans = {jobs: list(range(1, 1 + int(random.integers(1, 4)))) for jobs in chosen if jobs}
        worth = {jobs: np.array([weights[job] for job in jobs]) for jobs in spans}
        best = sum(
            len(slots) * listed.most(jobs, worth[jobs], math.inf) for jobs, slots in spans.items()
        )
        enough = best * float(random.uniform(0.8, 1.2)) + 1e-3
        found = Worth(weights).most(
            spans, PricedLoads(instance, listed.needed), enough, lambda: math.inf
        )
        assert found >= best - 1e-9
        if abs(best - enough) > 1e-3 * enough:  # what the solver's gap leaves undecided
            assert (found < enough) == (best < enough)
        refuted += found < enough
        without_time = Worth(weights).most(
            spans, PricedLoads(instance, listed.needed), enough, lambda: 0.0
        )
        assert without_time >= best - 1e-9
    assert 0 < refuted < 10


@pytest.mark.usefixtures("nothing_listed")
def test_slots_are_not_asked_where_bounds_or_known_loads_say_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = drawn(0)
    priced = PricedLoads(instance, Loads(instance).needed)
    spans, worth = {(0, 1, 2): [1, 2], (0, 1): [3]}, Worth(dict.fromkeys(range(5), 1.0))
    best = sum(len(spans[jobs]) * priced.most(jobs, np.ones(len(jobs)), math.inf) for jobs in spans)
    monkeypatch.setattr(priced, "most", None)
    assert best <= worth.most(spans, priced, 1e9, lambda: 1.0) < 1e9
    assert worth.most(spans, priced, 0.9 * best, lambda: 1.0) >= best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("nothing_listed")
def test_leaves_of_priced_loads_agree_with_leaves_of_patterns(seed: int) -> None:
    instance, decided = drawn(seed), 0
    of_loads, leaves = LeafOfLoads(instance), Leaves(instance, SolveOptions())
    random = np.random.default_rng(seed)
    for _ in range(8):
        ends = some_ends(instance, random)
        if not ends:
            continue
        found, expected = of_loads.decide(ends, None), leaves._decided_by_patterns(ends, None)
        assert not of_loads.are_listed(ends)
        assert not (of_loads.refutes(ends) and expected.status == Status.OPTIMAL)
        if found is None:
            continue
        decided += 1
        assert found.status == expected.status
        if found.has_point:
            assert keeps(of_loads.solution, ends)
    assert decided >= 4


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("seed", [0, 5, 7, 9])
def test_cuts_of_work_hold_for_all_that_servers_can_keep(
    seed: int, is_listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_listed:
        monkeypatch.setattr(loads_module, "MOST_COMPARISONS", 0)
    instance = drawn(seed, jobs=4)
    leaves, random = Leaves(instance, SolveOptions()), np.random.default_rng(seed)
    program = build_ends_program(instance)
    last, cuts = last_ends(program), 0
    for _ in range(30):
        ends = {
            job: end
            for job, end in some_ends(instance, random).items()
            if job in last and end in program.block(job).u
        }
        if ends and leaves.decide(ends, None).status == Status.INFEASIBLE and leaves.refutation:
            leaves.conflicts(ends, last, lambda: False)
            found = leaves.weakest
            assert found is not None
            assert all(found.ends[job] >= ends[job] for job in found.ends)
            assert leaves._decided_by_patterns(found.ends, None).status == Status.INFEASIBLE
            add_cut_of_work(program, found)
            cuts += 1
    assert cuts
    by_job = {job: [None, *program.block(job).u] if job in last else [None] for job in range(4)}
    matrix = compile_program(program.model)
    rows = [at for at, row in enumerate(matrix.rows) if "conflicts" in row.name]
    assert len(rows) == cuts
    position = {id(column): at for at, column in enumerate(matrix.columns)}
    checked = 0
    for choice in product(*by_job.values()):
        ends = {job: end for job, end in zip(by_job, choice, strict=True) if end is not None}
        point = np.zeros(len(matrix.columns))
        for job, end in ends.items():
            point[position[id(program.block(job).u[end])]] = 1.0
        used = (matrix.matrix @ point)[rows]
        if (used > matrix.row_upper[rows]).any():
            checked += 1
            if checked <= 25:
                assert leaves._decided_by_patterns(ends, None).status == Status.INFEASIBLE
    assert checked


@pytest.mark.usefixtures("nothing_listed")
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_the_same_whether_loads_are_listed_or_asked_for(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = drawn(seed, jobs=6, horizon=6)
    priced = hs.solve(instance, "milp")
    monkeypatch.undo()
    listed = hs.solve(instance, "milp")
    assert priced.status == listed.status == Status.OPTIMAL
    assert priced.objective == pytest.approx(listed.objective, rel=1e-6)


@pytest.mark.usefixtures("nothing_listed")
def test_no_loads_are_asked_for_where_a_slot_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(priced_loads, "MOST_UNITS", 10)
    leaf = LeafOfLoads(drawn(0))
    assert leaf.refutes({0: 5}) is None
    assert leaf.decide({0: 5}, None) is None
    assert not leaf.is_large({0: 5})


@pytest.mark.usefixtures("nothing_listed")
def test_a_leaf_without_time_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = drawn(7, jobs=6, horizon=6)
    everybody = dict.fromkeys(range(6), 4)
    leaf = LeafOfLoads(instance)
    assert leaf.decide(everybody, 0.0) is None
    assert leaf.refutation is None
    monkeypatch.setattr(leaf_of_loads, "KNOWN_SECONDS", 0.0)
    found = leaf.decide(everybody, None)
    assert found is not None
    assert found.status == Status.INFEASIBLE


def one_server(jobs: int, workers: int, cpu: float, held: float) -> OasisInstance:
    """Jobs without PSs on a server that holds so many workers; each is done in a slot."""
    facts = {"arrival": 1, "epochs": 1, "chunks": workers, "minibatches": 1, "minibatch_slots": 1.0}
    utility = {"kind": "linear", "intercept": 10, "slope": -1}
    needs = {"gradient_mb": 0, "worker": {"cpu": cpu}, "ps": {}, "utility": utility}
    return OasisInstance.model_validate(
        {
            "format": "hindsched/1", "name": "one", "horizon": 2, "slot_seconds": 1,
            "resources": ["cpu", "bandwidth"], "bandwidth_resource": "bandwidth",
            "worker_servers": [{"name": "w", "capacity": {"cpu": cpu * held}}],
            "ps_servers": [{"name": "p", "capacity": {}}],
            "jobs": [{"name": f"j{number}", **facts, **needs} for number in range(jobs)],
        }
    )  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 5e-4, 1e-6, 1e-8, 1e-12])
def test_small_weights_leave_nothing_out_of_a_bound(scale: float) -> None:
    instance = one_server(jobs=5, workers=4, cpu=2.0, held=1)
    priced, random = PricedLoads(instance, Loads(instance).needed), np.random.default_rng(0)
    for _ in range(10):
        weights = scale * (1 + 0.02 * random.random(5))
        assert priced.most((0, 1, 2, 3, 4), weights, math.inf) >= weights.max()
    weights = scale * np.array([0.0, 1e-8, 1e-8, 2e-8, 1.0])
    assert priced.most((0, 1, 2, 3), weights[:4], math.inf) >= weights[3]
    assert priced.most((0, 1, 2, 3, 4), weights, math.inf) >= weights[4]
    assert priced.most((0, 1), np.zeros(2), math.inf) == 0


def test_jobs_of_millions_of_workers_are_not_refuted(nothing_listed: None) -> None:
    leaf = LeafOfLoads(one_server(jobs=6, workers=10**7, cpu=1.0, held=3 * 10**7))
    decided = leaf.decide(dict.fromkeys(range(6), 2), 5.0)
    assert decided is None or decided.status != Status.INFEASIBLE


@pytest.mark.parametrize("cpu", [1e-11, 1e13])
def test_servers_are_full_in_any_unit(cpu: float, nothing_listed: None) -> None:
    leaf = LeafOfLoads(one_server(jobs=6, workers=10, cpu=cpu, held=30))
    decided = leaf.decide(dict.fromkeys(range(6), 2), 20.0)
    assert decided is not None
    assert decided.status == Status.OPTIMAL


def test_an_interrupt_ends_asking(nothing_listed: None) -> None:
    instance = drawn(0)
    ends = dict.fromkeys(range(5), instance.horizon)
    with catch_interrupt() as interrupted:
        interrupted.set()
        leaf = LeafOfLoads(instance)
        assert leaf.decide(ends, None) is None
        assert not len(leaf._priced)
