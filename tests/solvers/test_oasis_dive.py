"""Dives of oasis: feasible schedules near the optimum, slots packed at their best."""

from __future__ import annotations

import itertools
from threading import Event

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.oasis import search as search_module
from hindsched.solvers.families.oasis import slot_packing
from hindsched.solvers.families.oasis.search import Dive
from hindsched.solvers.families.oasis.slot_packing import Wish, drop_overload, pack_slot
from hindsched.solvers.methods import auto
from hindsched.solvers.oracles.base import build_oracle

FOREVER = 1e6
OPTIMA = {"oasis-t10-i10-h10-s0": 287.064, "oasis-t10-i10-h25-s0": 182.359}
"""Proven by trees."""


def prices_of(instance):
    oracle = build_oracle(instance)
    return oracle, subgradient_bound(oracle, SolveOptions(), max_iterations=60).prices


def dived(oracle, prices, number):
    dive = Dive(oracle, prices, 0.0, number, Event())
    while not dive.is_over:
        dive.step(FOREVER)
    return dive.solution()


@pytest.mark.parametrize("fine", [10, 4], ids=["single slots", "late slots added up"])
@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_schedules_are_feasible_and_near_the_optimum(name, optimum, fine, monkeypatch):
    monkeypatch.setattr(search_module, "FINES", (fine,))
    monkeypatch.setattr(search_module, "MOST_WHOLE", 0)
    oracle, prices = prices_of(hs.named_instance(name))
    found = [dived(oracle, prices, number) for number in range(3)]
    assert all(solution.is_feasible() for solution in found)
    best = max(solution.objective() for solution in found)
    assert 0.65 * optimum <= best <= optimum + 1e-3


def test_a_dive_reaches_the_optimum_where_all_jobs_fit():
    instance = hs.generate("oasis", "small", 0, jobs=4, servers=50)
    oracle, prices = prices_of(instance)
    best = sum(
        job.utility.value(int(shortest) - 1)
        for job, shortest in zip(instance.jobs, instance.min_duration, strict=True)
    )
    found = dived(oracle, prices, 0)
    assert found.is_feasible()
    assert found.objective() == pytest.approx(best, rel=1e-4)  # ends that differ by less are one


@pytest.mark.parametrize("most_patterns", [0, 100])
def test_a_slot_is_packed_as_well_as_by_hand(most_patterns, monkeypatch):
    monkeypatch.setattr(slot_packing, "MOST_PATTERNS", most_patterns)
    instance = hs.generate("oasis", "small", 3, jobs=3, servers=4)
    oracle = build_oracle(instance)
    wishes = [Wish(job, 2.0, 3, 1.0 + job, 0, 0.0) for job in range(3)]
    placed = pack_slot(oracle, wishes, FOREVER, Event())
    counts = {job: int(workers.sum()) for job, (workers, _) in placed.items()}

    def worth(job, count):
        return wishes[job].worth * (min(count, 2) + 0.8 * max(0, count - 2))

    reached = sum(worth(job, count) for job, count in counts.items())
    best = max(
        sum(worth(job, count) for job, count in enumerate(each))
        for each in itertools.product(range(4), repeat=3)
        if fits(oracle, each)
    )
    assert reached == pytest.approx(best, rel=0.006)


def fits(oracle, counts):
    """Whether servers hold these workers with their PSs, by trying everything."""
    instance = oracle.instance
    needed = [int(oracle.block(job).task.needed[n]) for job, n in enumerate(counts)]
    for capacity, demand, units in (
        (instance.worker_capacity, instance.worker_demand, list(counts)),
        (instance.ps_capacity, instance.ps_demand, needed),
    ):
        items = [job for job, count in enumerate(units) for _ in range(count)]
        if not placeable(items, demand, capacity.astype(float).copy()):
            return False
    return True


def placeable(items, demand, free):
    if not items:
        return True
    for server in range(len(free)):
        if (free[server] + 1e-9 >= demand[items[0]]).all():
            free[server] -= demand[items[0]]
            if placeable(items[1:], demand, free):
                return True
            free[server] += demand[items[0]]
    return False


def test_who_must_run_now_runs_before_who_is_worth_more_a_worker():
    instance = hs.generate("oasis", "small", 3, jobs=3, servers=4)
    oracle = build_oracle(instance)
    many = [oracle.block(job).task.needed.size - 1 for job in range(3)]
    wishes = [Wish(job, float(many[job]), many[job], 1.0 + job, 0, 0.0) for job in range(3)]
    placed = pack_slot(oracle, wishes, FOREVER, Event())
    before = int(placed[0][0].sum()) if 0 in placed else 0
    assert before < many[0]
    due = before + 1
    wishes[0] = Wish(0, float(many[0]), many[0], 1.0, due, 1000.0)
    assert pack_slot(oracle, wishes, FOREVER, Event())[0][0].sum() >= due


def test_auto_dives_at_scale_the_same_way_twice(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    monkeypatch.setattr(search_module, "LEAST_TO_DIVE", 0)
    ended, finish = [], Dive.solution
    monkeypatch.setattr(Dive, "solution", lambda dive: ended.append(1) or finish(dive))
    instance = hs.generate("oasis", "paper", 1, jobs=14, horizon=14, servers=8, max_duration=5)
    one, other = (hs.solve(instance, work_limit=600) for _ in range(2))
    assert len(ended) >= 2
    assert one.solution.assignments() == other.solution.assignments()
    assert one.bound == other.bound
    assert one.solution.is_feasible()


def test_a_fluid_program_that_is_too_large_is_not_begun(monkeypatch):
    monkeypatch.setattr(search_module, "MOST_COLUMNS", 10)
    oracle, prices = prices_of(hs.generate("oasis", "small", 0))
    assert dived(oracle, prices, 0) is None


def test_an_interrupt_ends_a_dive():
    instance = hs.generate("oasis", "small", 0)
    oracle, prices = prices_of(instance)
    interrupted = Event()
    interrupted.set()
    dive = Dive(oracle, prices, 0.0, 0, interrupted)
    for _ in range(3):
        dive.step(FOREVER)
    assert dive.solution() is None or dive.solution().is_feasible()


def test_servers_hold_exactly_what_a_slot_packs():
    """A solver's tolerance of 1e-6 lets a worker of 0.5000004 stand beside one of 0.5."""

    def cluster(name, capacity):
        return [{"name": name, "capacity": {"gpu": capacity, "bw": 10}}]

    def job(name, gpu):
        return {
            "name": name, "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": gpu}, "ps": {},
            "utility": {"kind": "linear", "slope": 0, "intercept": 1},
        }  # fmt: skip

    instance = OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "hair", "horizon": 1,
            "slot_seconds": 3600, "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
            "worker_servers": cluster("w", 1), "ps_servers": cluster("p", 1),
            "jobs": [job("j1", 0.5), job("j2", 0.5000004)],
        }
    )  # fmt: skip
    oracle = build_oracle(instance)
    wishes = [Wish(number, 1.0, 1, 1.0, 1, 1.0) for number in range(2)]
    placed = pack_slot(oracle, wishes, 10.0, Event())
    assert len(placed) == 1
    assert hs.solve(instance, "milp").objective == 1


def test_overloaded_servers_lose_the_last_units():
    counts = np.array([[1, 2, 0], [1, 1, 3], [1, 0, 1]])
    drop_overload(counts, np.array([[3, 9], [2, 9], [9, 3]]), np.array([[1, 0], [1, 0], [1, 1]]))
    assert counts.tolist() == [[1, 2, 0], [1, 0, 3], [1, 0, 1]]


def test_jobs_without_ps_keep_no_other_from_its_own():
    """Patterns are maximal: a server for one PS held 30 units of each of twenty such jobs."""

    def cluster(name, number, capacity):
        return [{"name": f"{name}{n}", "capacity": capacity} for n in range(number)]

    def job(name, chunks, worker, ps):
        return {
            "name": name, "arrival": 1, "epochs": 5, "chunks": chunks, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": worker, "ps": ps,
            "utility": {"kind": "linear", "slope": 0, "intercept": 100},
        }  # fmt: skip

    alone = [job(f"b{n}", 30, {"gpu": 1}, {}) for n in range(20)]
    instance = OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "idle", "horizon": 100,
            "slot_seconds": 3600, "resources": ["cpu", "gpu", "bw"], "bandwidth_resource": "bw",
            "worker_servers": [
                *cluster("wa", 1, {"cpu": 40, "bw": 1e6}), *cluster("wb", 1, {"gpu": 30}),
            ],
            "ps_servers": cluster("p", 40, {"cpu": 1, "bw": 100}),
            "jobs": [job("a", 400, {"cpu": 1, "bw": 1}, {"cpu": 1, "bw": 1}), *alone],
        }
    )  # fmt: skip
    wishes = [
        Wish(0, 40.0, 40, 1.0, 0, 0.0),
        *(Wish(n, 1.5, 30, 2.0, 0, 0.0) for n in range(1, 21)),
    ]
    placed = pack_slot(build_oracle(instance), wishes, 10.0, Event())
    assert placed[0][0].sum() == placed[0][1].sum() == 40
    assert sum(workers.sum() for workers, _ in placed.values()) == 70
