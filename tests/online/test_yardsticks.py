"""Yardsticks by hand and a law of them in every family; the best of the gangs' widths."""

from __future__ import annotations

from typing import Any

import pytest

from hindsched.errors import InputError
from hindsched.instances.generators.registry import generate
from hindsched.online.baselines.ranked import LeastAttained, Ranked, ShortestRemaining
from hindsched.online.dynamics import gang_width
from hindsched.online.registry import algorithms, build_algorithm, settings_of
from hindsched.online.simulator import simulate
from tests.online.elastic_server import completions, server_of_four
from tests.strategies.edgecloud import instance as edge_instance
from tests.strategies.edgecloud import job as edge_job

YARDSTICKS = ("shortest-remaining", "least-attained")
OVER_TIME = ("oasis", "batchsched", "astraea", "edgecloud")
PAIR = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p", "p"]}]


@pytest.fixture
def four_jobs() -> Any:
    return server_of_four()


def test_shortest_remaining_by_hand(four_jobs: Any) -> None:
    # 1: j3 on 1, j1 on 3. 2: j1 on 3 ends, j4 on 1. 3: j4 (3 left) before j2. Then j2 alone.
    result = simulate(four_jobs, "shortest-remaining")
    assert result.violations == []
    assert completions(result) == [2, 6, 1, 3]


def test_least_attained_by_hand(four_jobs: Any) -> None:
    # 1: j1 3, j2 1. 2: j3 1, j4 3. 3: j2 2, j1 2. 4: j2 2, j4 2. 5: j1 3, j2 1.
    result = simulate(four_jobs, "least-attained")
    assert result.violations == []
    assert completions(result) == [5, 5, 2, 4]


def test_gangs_take_all_of_their_workers_or_none(four_jobs: Any) -> None:
    # 1: j3 1, j1 3. 2: j1 ends; j4 of four workers waits. 3: j4. 4 to 6: j2.
    result = simulate(four_jobs, "shortest-remaining", settings={"elastic": False})
    assert completions(result) == [2, 6, 1, 3]
    workers = {
        row["from"]: sum(row["workers"].values()) for row in result.solution.assignments()["j4"]
    }
    assert workers == {3: 4}


def test_shortest_remaining_at_the_edge_by_hand() -> None:
    """long runs on two, then on one beside short; pair takes what short leaves, then both."""
    up = {"a": 0, "cloud": 50}
    jobs = [
        edge_job("long", 1, 2, 4, 4, up),
        edge_job("short", 2, 1, 2, 2, up),
        edge_job("pair", 3, 2, 1, 1, up),
    ]
    result = simulate(edge_instance(PAIR, jobs), "shortest-remaining")
    assert result.violations == []
    assert completions(result) == [7, 3, 4]
    assert result.objective == 7 + 2 + 2


def test_a_job_that_is_narrow_at_the_edge_goes_to_the_cloud_with_what_it_has_left() -> None:
    """wide runs on one worker until its data is in the cloud, in slot 4; 9 of 12 are left then."""
    up = {"a": 0, "cloud": 3}
    jobs = [edge_job("thin", 1, 1, 5, 5, up), edge_job("wide", 1, 2, 6, 6, up)]
    result = simulate(edge_instance(PAIR, jobs), "shortest-remaining")
    assert result.violations == []
    assert completions(result) == [5, 8]
    # One that has not begun goes there as a whole, at the faster rate: 3 slots, from slot 4 on.
    late = [edge_job("both", 1, 2, 5, 5, up), edge_job("later", 1, 2, 6, 3, up)]
    assert completions(simulate(edge_instance(PAIR, late), "shortest-remaining")) == [5, 6]


def test_every_family_whose_jobs_run_over_time_has_both() -> None:
    for family in OVER_TIME:
        assert set(YARDSTICKS) <= set(algorithms(family))
    assert not set(YARDSTICKS) & set(algorithms("mlbroker"))


@pytest.mark.parametrize("family", OVER_TIME)
@pytest.mark.parametrize("name", YARDSTICKS)
def test_nobody_is_passed_over_who_would_fit(
    family: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every event: keys rise in the order of placing, and whoever waits does not fit."""
    plain, events = Ranked.reallocate, []

    def watched(rival: Ranked) -> None:
        plain(rival)
        keys = {each: rival.key(each) for each in rival.jobs}
        waiting = [each for each in rival.jobs if each not in rival.held]
        for each in waiting:
            width = 1 if rival.elastic else rival.width(rival.jobs[each])
            assert not width or rival.cluster.place(rival.jobs[each], width) is None
        placed = sorted(rival.held, key=lambda each: (keys[each], list(rival.jobs).index(each)))
        assert list(rival.held) == placed
        events.append(len(waiting))

    monkeypatch.setattr(Ranked, "reallocate", watched)
    result = simulate(generate(family, "small", 1), name)
    assert result.in_feasible_set is (family == "oasis")
    assert events


def test_least_attained_does_not_know_durations() -> None:
    for family in OVER_TIME:
        built = build_algorithm(family, "least-attained")
        assert isinstance(built, LeastAttained)
        assert built.card.words == "arrivals only"
        assert isinstance(build_algorithm(family, "shortest-remaining"), ShortestRemaining)


GANG_RIVALS = [
    (family, name)
    for family in OVER_TIME
    for name in algorithms(family)
    if "gangs" in settings_of(algorithms(family)[name])
]


@pytest.mark.parametrize(("family", "name"), GANG_RIVALS)
def test_best_gangs_are_the_best_of_the_three(family: str, name: str) -> None:
    tiny = generate(family, "small", 3)
    settings = {"elastic": False} if name in YARDSTICKS else {}
    alone = {
        width: simulate(tiny, name, settings={**settings, "gangs": width}).objective
        for width in ("ideal", "half", "drawn")
    }
    result = simulate(tiny, name, settings={**settings, "gangs": "best"})
    best = (max if tiny.sense == "max" else min)(alone.values())
    assert result.objective == best == alone[result.report["gangs"]]
    assert result.report["objective_by_gangs"] == alone
    assert result.mark.endswith(f"(best gangs: {result.report['gangs']})")


def test_the_best_gangs_are_no_width_before_the_runs() -> None:
    with pytest.raises(InputError, match="after a run with each width"):
        gang_width("best", lambda: 1, 2)
    with pytest.raises(InputError, match=r"set\.gangs"):
        build_algorithm("oasis", "fifo", {"gangs": "widest"})
