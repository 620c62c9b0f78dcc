"""The search of batchsched: schedules fit, are never worse, and the best of tiny instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.base import build_oracle
from hindsched.solvers.families.batchsched.methods import find_incumbent
from hindsched.solvers.families.batchsched.search import search_of
from hindsched.solvers.kernels.batchsched import neighbourhoods
from tests.second_opinion.settle import optimum

RING = {"architecture": "ring-allreduce"}


def after(calls):
    """Stop after so many questions."""
    asked = itertools.count()
    return lambda: next(asked) >= calls


def search(instance, seed=0, start=None):
    """A search at random prices."""
    oracle = build_oracle(instance, rows="servers")
    prices = np.random.default_rng(seed).exponential(1.0, oracle.rows.size)
    prices *= instance.jobs[0].weight / oracle.rows.capacity.max()
    return search_of(oracle, prices, seed=seed, start=start)


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("seed", range(3))
def test_schedules_fit_and_are_never_worse(changes, seed):
    instance = hs.generate("batchsched", jobs=12, seed=seed, servers=4, horizon=8, **changes)
    start = find_incumbent(instance, "modes")
    found = search(instance, seed, start)
    values = [found.objective]
    assert values == [start.objective()]
    for _ in range(4):
        better = found.improve(after(30))
        solution = found.solution()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(found.objective)
        assert better is (found.objective < values[-1])
        values.append(found.objective)
    assert values == sorted(values, reverse=True)
    built = search(instance, seed)
    built.construct()
    assert built.is_complete
    assert built.solution().violations() == []


@pytest.mark.parametrize("changes", [{}, RING])
def test_where_no_insertion_ends_in_the_priced_slots_a_list_does(changes, monkeypatch):
    """In 2 of 100 small clusters full of jobs there was no schedule to go on from."""
    instance = hs.generate("batchsched", jobs=12, seed=3, servers=4, horizon=8, **changes)
    found = search(instance, 3)
    with monkeypatch.context() as patched:
        patched.setattr(neighbourhoods, "insert_all", lambda *_: (0, 0.0))
        found.construct()
    assert found.is_complete
    listed = found.solution()
    assert (listed.violations(), listed.objective()) == ([], pytest.approx(found.objective))
    assert found.improve(after(100))
    assert found.solution().objective() < listed.objective()


@pytest.mark.parametrize("changes", [{}, RING])
def test_tiny_instances_are_solved(changes):
    hits = 0
    for seed in range(8):
        instance = hs.generate(
            "batchsched", jobs=2, servers=2, seed=seed, horizon=3, chunks=[2, 3], **changes
        )
        found = search(instance, seed, find_incumbent(instance, "modes"))
        found.improve(after(300))
        best = optimum(instance)
        assert found.objective >= best - 1e-9
        hits += found.objective <= best + 1e-9
    assert hits >= 6
