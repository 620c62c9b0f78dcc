"""Annealing over orders of edgecloud's jobs: checked schedules, near the brute-force optimum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.instances.edgecloud.generator import generate
from hindsched.solvers.families.edgecloud.search import PrioritySearch, best_incumbent
from tests.brute_force.edgecloud import optimum
from tests.strategies.edgecloud import tiny_instances


def never():
    return False


@given(tiny_instances(), st.integers(0, 3))
def test_what_it_says_is_what_the_checker_finds(tiny, seed):
    found = PrioritySearch(tiny, "no-migration", seed)
    assert found.is_possible
    assert found.improve(never)
    solution = found.solution()
    assert solution is not None
    assert solution.violations() == []
    assert solution.objective() == found.objective
    assert solution.objective() >= optimum(tiny) - 1e-9


@pytest.mark.parametrize("settings", [{"cloud_workers": 0}, {"cloud_workers": 4}])
def test_it_beats_the_simple_schedules(settings):
    instance = generate("paper", 1, jobs=60, servers=20, minibatch_scale=0.05, **settings)
    found = PrioritySearch(instance, "no-migration")
    found.improve(never)
    solution, simple = found.solution(), best_incumbent(instance, "no-migration")
    assert solution is not None
    assert simple is not None
    assert solution.objective() == found.objective
    assert solution.objective() < simple.objective()


def test_it_stops_when_asked_with_what_it_has():
    instance = generate("paper", 0, jobs=60, servers=20, minibatch_scale=0.05)
    result = hs.solve(instance, "search", time_limit=0.0)
    assert result.stopped_by == "time_limit"
    assert result.solution.violations() == []


def test_auto_searches_beside_the_bound():
    instance = generate("paper", 0, jobs=30, servers=10, minibatch_scale=0.05, cloud_workers=0)
    one, two = (hs.solve(instance, work_limit=60, threads=threads) for threads in (1, 2))
    simple = best_incumbent(instance, "no-migration").objective()
    for result in (one, two):
        assert result.method == "lp+search"
        assert result.bound <= result.objective < simple
