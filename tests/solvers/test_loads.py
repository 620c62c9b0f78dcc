"""What jobs run together in one slot, and leaves that are decided by it."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.families.oasis import loads as loads_module
from hindsched.solvers.families.oasis.conflicts import Leaves
from hindsched.solvers.families.oasis.leaf_of_loads import LeafOfLoads
from hindsched.solvers.families.oasis.loads import Loads
from hindsched.solvers.families.oasis.sparse_program import LoadedProgram
from tests.solvers.oasis_leaves import drawn, keeps, some_ends


def is_held(units: tuple[int, ...], capacity: list, demand: list) -> bool:
    """Whether servers hold units of jobs, by trying every server for every unit."""
    if not any(units):
        return True
    job = next(place for place, count in enumerate(units) if count)
    fewer = tuple(count - (place == job) for place, count in enumerate(units))
    tried = set()
    for server, free in enumerate(capacity):
        left = tuple(have - need for have, need in zip(free, demand[job], strict=True))
        if min(left) < -1e-9 or free in tried:
            continue
        tried.add(free)
        if is_held(fewer, [*capacity[:server], left, *capacity[server + 1 :]], demand):
            return True
    return False


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_loads_are_what_servers_hold(seed: int) -> None:
    instance = drawn(seed, servers=2)
    jobs = min(
        combinations(range(5), 2),
        key=lambda pair: abs(40 - np.prod([instance.most_workers(instance.jobs[i]) for i in pair])),
    )
    found = Loads(instance).of(jobs)
    assert found is not None
    tables = (
        (instance.worker_capacity, instance.worker_demand),
        (instance.ps_capacity, instance.ps_demand),
    )
    most = [instance.most_workers(instance.jobs[job]) for job in jobs]
    needed = [
        instance.ps_needed_up_to(instance.jobs[job], n) for job, n in zip(jobs, most, strict=True)
    ]
    for workers in product(*(range(n + 1) for n in most)):
        ps = tuple(int(own[n]) for own, n in zip(needed, workers, strict=True))
        held = all(
            is_held(units, [tuple(row) for row in capacity], [tuple(demand[i]) for i in jobs])
            for units, (capacity, demand) in zip((workers, ps), tables, strict=True)
        )
        assert held == bool((found >= workers).all(axis=1).any())


@pytest.mark.parametrize("seed", range(6))
def test_leaves_of_loads_agree_with_leaves_of_patterns(seed: int) -> None:
    instance = drawn(seed)
    of_loads, leaves = LeafOfLoads(instance), Leaves(instance, SolveOptions())
    random = np.random.default_rng(seed)
    for _ in range(8):
        ends = some_ends(instance, random)
        found, expected = of_loads.decide(ends, None), leaves._decided_by_patterns(ends, None)
        assert found is not None
        assert found.status == expected.status
        assert not (of_loads.refutes(ends) and found.status == Status.OPTIMAL)
        if found.has_point:
            assert keeps(of_loads.solution, ends)


def test_where_loads_are_too_many_patterns_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = drawn(0)
    with_loads, without = Leaves(instance, SolveOptions()), Leaves(instance, SolveOptions())
    ends = dict.fromkeys(range(5), 5)
    expected = with_loads.decide(ends, None).status
    monkeypatch.setattr(loads_module, "MOST_COMPARISONS", 0)
    without._loads._priced.are_too_many = True
    assert without._loads.decide(ends, None) is None
    assert without._loads.refutes(ends) is None
    assert without.decide(ends, None).status == expected


def test_sets_of_jobs_are_not_tried_where_most_have_too_many_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads, tried = Loads(drawn(0)), []
    monkeypatch.setattr(loads, "_find", tried.append)
    for jobs in [(0, 1), (0, 1, 2), *combinations(range(1, 5), 2)]:
        assert loads.of(jobs) is None
    assert tried == [(0, 1), (1, 2), (1, 3)]


def test_a_leaf_out_of_time_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf, solve = LeafOfLoads(drawn(0)), LoadedProgram.solve
    job = next(job for job in range(5) if not leaf.refutes({job: 5}))
    decided = leaf.decide({job: 5}, 9.0)
    assert decided is not None
    assert decided.has_point

    def in_no_time(program: LoadedProgram, seconds: float) -> bool:
        return math.isinf(seconds) and solve(program, seconds)

    monkeypatch.setattr(LoadedProgram, "solve", in_no_time)
    found = leaf.decide({job: 5}, 9.0)
    assert found is not None
    assert (found.status, found.stopped_by) == (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT)
    assert leaf.solution is None


def test_conflicts_by_loads_break_only_what_no_schedule_keeps() -> None:
    instance = drawn(7, jobs=6, horizon=6)
    everybody = dict.fromkeys(range(6), 4)
    leaves = Leaves(instance, SolveOptions())
    assert leaves.decide(everybody, None).status == Status.INFEASIBLE
    for conflict in leaves.conflicts(everybody, dict.fromkeys(range(6), 6), lambda: False):
        assert leaves._decided_by_patterns(conflict, None).status == Status.INFEASIBLE
