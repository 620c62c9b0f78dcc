"""The pricing oracles against the model of the same block, enumeration and a slow search."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.instances.catalogue import named_instance
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import Modes, modes
from hindsched.solutions.window_solution import row_use
from hindsched.solvers.families.windows.schedules import ScheduleSearch, cheapest_row
from tests.brute_force.batchsched import cheapest_placement
from tests.second_opinion.settle import placements
from tests.strategies.batchsched import tiny_instances

G1 = {"omega": [[3, 2], [2, 4]], "delta": [[0, 1], [2, 5]]}
G2 = {"omega": [[1, 3], [3, 2]], "delta": [[4, 3], [0, 5]]}


def place(problem, greedy):
    """Cost of N workers on two servers or more and of their PSs, in one slot."""
    omega, delta, e, z = (
        np.array(problem[key], dtype=float) for key in ("omega", "delta", "e", "z")
    )
    mode = Modes(*(np.array([value]) for value in (0, 0, 0, problem["N"], 1)))
    ratio = np.array([[problem["b"] / problem["B"]]])
    cluster = SimpleNamespace(
        server_capacity=omega, worker_demand=e[None], ps_demand=z[None], ps_ratio=ratio, has_ps=True
    )
    parts = (np.ascontiguousarray(values[:, :, None]) for values in (omega, delta))
    found = cheapest_row(cluster, mode, np.zeros(2), (1, 1), (1, 1), *parts, greedy=greedy)
    if found is None:
        return np.inf
    cost, row = found
    assert row.num_workers == problem["N"]
    assert (np.outer(row.workers, e) + np.outer(row.ps, z) <= omega).all()
    assert cost == pytest.approx((row.workers * (delta @ e) + row.ps * (delta @ z)).sum())
    return cost


def test_algorithm_4_is_not_optimal_and_may_find_nothing():
    more = {"e": [1, 1], "z": [0, 2], "b": 1, "B": 1, "N": 2}
    for known, greedy in ((G1, 22), (G2, np.inf)):
        problem = {**known, **more}
        assert cheapest_placement(problem) == 18
        assert place(problem, greedy=False) == 18
        assert place(problem, greedy=True) == greedy


def test_algorithm_4_finds_nothing_on_the_idle_servers_of_the_kept_instance():
    """Nothing is taken, so that all prices (11) are 0; a worker on each, the PS on the second."""
    kept = named_instance("batchsched/worst/theorem-1")
    problem = {
        "omega": kept.server_capacity[:, :2].astype(int).tolist(), "delta": [[0, 0], [0, 0]],
        "e": kept.worker_demand[0, :2], "z": kept.ps_demand[0, :2], "N": kept.jobs[0].chunks,
        "b": kept.worker_demand[0, 2], "B": kept.ps_demand[0, 2],
    }  # fmt: skip
    assert cheapest_placement(problem) == place(problem, greedy=False) == 0
    assert place(problem, greedy=True) == np.inf


@settings(max_examples=300)
@given(st.data())
def test_placement_is_exact_and_algorithm_4_never_cheaper(data):
    servers = data.draw(st.integers(2, 3))
    pair = st.lists(st.integers(0, 4), min_size=2, max_size=2)
    problem = {
        "omega": [data.draw(pair) for _ in range(servers)],
        "delta": [data.draw(pair) for _ in range(servers)],
        "e": [1, data.draw(st.integers(0, 2))], "z": [data.draw(st.integers(0, 1)), 1],
        "b": data.draw(st.integers(1, 2)), "B": data.draw(st.integers(1, 2)),
        "N": data.draw(st.integers(1, 3)),
    }  # fmt: skip
    exact = place(problem, greedy=False)
    assert exact == cheapest_placement(problem)
    assert place(problem, greedy=True) >= exact


def random_state(instance, slots, random):
    """Free capacities and prices, shape (slots, servers, resources)."""
    full = np.repeat(instance.server_capacity[None], slots, axis=0)
    free = np.maximum(full - random.choice([0, 0, 1], full.shape), 0)
    return free, random.choice([0.0, 0.5, 1.0, 3.0], full.shape)


def by_slot(values):
    """The last axis for slots, as the search has it."""
    return values.transpose(1, 2, 0)


def priced_schedules(instance, job, free, prices, first, last):
    """(completion, paid) of every schedule in slots `first` .. `last` that fits what is free."""
    for slots, use in placements(instance, job):
        d, need = math.ceil(slots), np.reshape(use, free.shape[1:])
        for start in range(max(1, first), last - d + 2):
            window = slice(start - 1, start - 1 + d)
            if np.all(need <= free[window] + 1e-9):
                yield start + d, float((need * prices[window]).sum())


@given(tiny_instances(num_jobs=2), st.integers(0, 10**6))
def test_a_search_finds_the_cheapest_of_all_schedules_and_keeps_its_books(instance, seed):
    slots, random = 8, np.random.default_rng(seed)
    free, prices = random_state(instance, slots, random)
    search = ScheduleSearch(instance, slots)
    job, other = instance.jobs
    table = modes(instance, job)
    alone = priced_schedules(instance, job, full_of(search), 0 * prices, 1, slots)
    found = search.cheapest(table)
    assert (found and found.last + 1) == min((t for t, _ in alone), default=None)
    search.post(1, by_slot(prices)[:, :, :3])
    search.post(4, by_slot(prices)[:, :, 3:])
    search.residual[:] = loosened(by_slot(free), instance.server_capacity[..., None])
    first, last = sorted(random.integers(1, slots + 3, 2).tolist())
    for rate in (0.0, 0.7):
        known = [
            rate * t + paid
            for t, paid in priced_schedules(instance, job, free, prices, first, min(last, slots))
        ]
        best = min(known, default=np.inf)
        found = search.cheapest(table, rate=rate, earliest=first, last=last)
        assert (found is None) == (not known)
        greedy = search.cheapest(table, rate=rate, earliest=first, last=last, greedy=True)
        assert greedy is None or rate * (greedy.last + 1) + search.price(greedy) >= best - 1e-9
        if found is None:
            continue
        assert rate * (found.last + 1) + search.price(found) == pytest.approx(best)
        assert first <= found.first <= found.last <= last
        dear = search.cheapest(table, rate=rate, limit=best - 1e-6, earliest=first, last=last)
        assert dear is None
        again = search.cheapest(table, rate=rate, limit=best + 1e-6, earliest=first, last=last)
        assert rate * (again.last + 1) + search.price(again) == pytest.approx(best)
        # Booked a schedule is gone, given back all is as before.
        use = row_use(instance, found)
        before = search.residual.copy()
        search.book(found)
        window = slice(found.first - 1, found.last)
        taken = (before - search.residual).transpose(2, 0, 1)
        assert taken[window] == pytest.approx(np.repeat(use[None], found.slots, axis=0))
        taken[window] = 0
        assert not taken.any()
        left = np.maximum(free, 0).astype(float)
        left[window] -= use
        rest = [
            rate * t + paid for t, paid in priced_schedules(instance, other, left, prices, 1, slots)
        ]
        second = search.cheapest(modes(instance, other), rate=rate)
        assert (second is None) == (not rest)
        cost = second and rate * (second.last + 1) + search.price(second)
        assert second is None or cost == pytest.approx(min(rest))
        search.book(found, sign=-1.0)
        assert search.residual == pytest.approx(before)


def full_of(search):
    """Everything is free."""
    return np.repeat(search.instance.server_capacity[None], search.slots, axis=0)
