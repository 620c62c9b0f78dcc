"""Edge-cloud algorithms under limits of storage, cloud and parameter servers; rivals by hand."""

from __future__ import annotations

import pytest
from hypothesis import given

from hindsched.errors import Refused, SolveFailed
from hindsched.online.registry import algorithms
from hindsched.online.simulator import simulate
from tests.strategies.edgecloud import instance, job, tiny_instances

PROGRAMS = ("gavel", "themis", "sia")
SLOW = ("reoptimise", "dual-price", *PROGRAMS)
FAST = [name for name in algorithms("edgecloud") if name not in SLOW]
LIMITED = tiny_instances(
    max_jobs=5, max_chunks=3, storage=True, finite_ps=True, clouds=(None, 1, 2)
)


def runs_well(tiny, name, **settings):
    result = simulate(tiny, name, settings=settings)
    assert result.violations == []
    assert all(result.solution.completion(one.name) is not None for one in tiny.jobs)
    return result


@pytest.mark.parametrize("name", FAST)
@given(tiny=LIMITED)
def test_every_algorithm_runs_on_every_instance(name, tiny):
    """Whoever finds no room, worker or PS at the edge waits or goes to the cloud."""
    runs_well(tiny, name)


def test_a_online_waits_for_the_only_ps():
    """Two workers, one parameter server (PS): the shorter job first, although two workers idle."""
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p"]}]
    up = {"a": 0}
    jobs = [job("long", 1, 1, 3, 3, up), job("short", 1, 1, 2, 2, up)]
    one = instance(servers, jobs, {"workers": {"t1": 0}, "ps": {"p": 0}})
    for name in ("edgecloud", "edgecloud-marginal", "edgecloud-escape", "edgecloud-edge-only"):
        result = runs_well(one, name)
        assert result.solution.completion("short") == 2
        assert result.solution.completion("long") == 5
    # With a second PS in the cloud they run side by side.
    two = instance(servers, jobs, {"workers": {"t1": 0}, "ps": {"p": 1}})
    assert runs_well(two, "edgecloud").objective == 2 + 3


def test_all_cloud_takes_turns_in_a_finite_cloud():
    servers = [{"name": "a", "workers": [], "ps": ["p"]}]
    jobs = [job("j0", 1, 3, 2, 2, {"cloud": 1}), job("j1", 1, 1, 2, 2, {"cloud": 1})]
    two = instance(servers, jobs, {"workers": {"t1": 2}})
    result = runs_well(two, "all-cloud")
    assert [result.solution.completion(n) for n in ("j0", "j1")] == [5, 5]
    # With one PS j1 waits until j0 has given it back, in slot 6.
    one = instance(servers, jobs, {"workers": {"t1": 2}, "ps": {"p": 1}})
    result = runs_well(one, "all-cloud")
    assert [result.solution.completion(n) for n in ("j0", "j1")] == [5, 7]
    # Without a PS in the cloud the one at the edge serves, at the rate of zeta = 0.
    slow = [{**jobs[0], "gradient_mb": 125.0}]
    none = instance(servers, slow, {"workers": {"t1": 3}, "ps": {"p": 0}})
    result = runs_well(none, "all-cloud")
    assert not result.solution.all_cloud[0]
    assert result.solution.completion("j0") == 4


FULL = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"], "storage_gb": 1}]


@pytest.mark.parametrize("name", [n for n in algorithms("edgecloud") if n != "all-cloud"])
def test_without_room_and_cloud_the_reason_is_named(name):
    """By (7c) waiting does not help: nobody who does not see the future can avoid this."""
    up = {"a": 0}
    jobs = [job("j0", 1, 1, 4, 4, up, chunk_gb=1), job("j1", 2, 1, 4, 4, up, chunk_gb=1)]
    closed = instance(FULL, jobs, {"workers": {"t1": 0}})
    with pytest.raises((Refused, SolveFailed)) as error:
        simulate(closed, name)
    if name != "reoptimise":
        assert error.value.constraint == "(7b)"
        assert "j1" in str(error.value) or "j0" in str(error.value)


@pytest.mark.parametrize("name", algorithms("edgecloud"))
@pytest.mark.parametrize(("storage", "fit"), [(0.3, 3), (0.2999999999999, 2)])
def test_storage_is_counted_in_decimals(name, storage, fit):
    """Three tenths fit into 0.3 and not into a hair less, though floats know neither."""
    servers = [{"name": "a", "workers": ["t1"] * 3, "ps": ["p"] * 3, "storage_gb": storage}]
    jobs = [job(f"j{i}", 1 + i, 1, 9, 9, {"a": 0, "cloud": 30}, chunk_gb=0.1) for i in range(3)]
    result = runs_well(instance(servers, jobs), name)
    assert sum(result.solution.stored_chunks().values()) == (0 if name == "all-cloud" else fit)
