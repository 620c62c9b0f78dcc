"""Baselines of several families: by hand, known small answers, ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hindsched.instances.generators.registry import generate
from hindsched.instances.io import parse_instance
from hindsched.online.baselines.fair_shares import (
    Present,
    finish_time_shares,
    max_min_shares,
)
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.registry import algorithms, settings_of
from hindsched.online.simulator import simulate
from tests.strategies.edgecloud import instance as edge_instance
from tests.strategies.edgecloud import job as edge_job

FOUR = (("j1", 1, 3, 2), ("j2", 1, 2, 3), ("j3", 1, 1, 1), ("j4", 2, 4, 1))


def server_of_four(*jobs: tuple[Any, ...], horizon: int = 12) -> Any:
    """Four GPUs; jobs (name, arrival, most workers, slots on so many, intercept, slope)."""
    return parse_instance(
        {
            "format": "hindsched/1", "family": "oasis", "name": "four", "horizon": horizon,
            "slot_seconds": 3600, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"gpu": 4}}],
            "ps_servers": [{"name": "p1", "capacity": {"mbps": 1}}],
            "jobs": [
                {
                    "name": name, "arrival": arrival, "epochs": slots, "chunks": workers,
                    "minibatches": 1, "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1},
                    "ps": {}, "utility": {"kind": "linear", "intercept": value, "slope": -slope},
                }
                for name, arrival, workers, slots, value, slope in (
                    (*each, 20, 1)[:6] for each in jobs or FOUR
                )
            ],
        }
    )  # fmt: skip


def completions(result: Any) -> list[int | None]:
    """Completion of every job in the file's order."""
    return [result.solution.completion(record.name) for record in result.instance.jobs]


def present(use: Any, left: Any, total: Any = None, waited: Any = None) -> Present:
    slots = np.array(left, dtype=float)
    return Present(
        np.array(use, dtype=float),
        slots,
        slots if total is None else np.array(total, dtype=float),
        np.zeros(len(slots)) if waited is None else np.array(waited, dtype=float),
    )


def test_optimus_by_hand() -> None:
    # 1: j1 2, j2 1, j3 1. 2: j1 1, j4 1, and j2 saves most by the second. 5: j1 2, j4 2.
    result = simulate(server_of_four(), "optimus")
    assert result.violations == []
    assert completions(result) == [5, 4, 1, 5]


def test_max_min_shares_of_a_whole_and_a_half_cluster() -> None:
    """An equal part is half the time to the job that needs all, all of it to the other."""
    jobs = present([[1.0, 0.5]], [3, 3])
    assert jobs.equal == pytest.approx([0.5, 1.0])
    assert max_min_shares(jobs) == pytest.approx([0.5, 1.0], abs=1e-5)


def test_finish_time_shares() -> None:
    """Two jobs of the whole cluster: equal ones share equally, whoever waited gets more."""
    assert finish_time_shares(present([[1, 1]], [4, 4])) == pytest.approx([0.5, 0.5], abs=1e-4)
    # (4 / x) / 8 = (2 + 1 / (1 - x)) / 2 at x = 1 - sqrt(1/2).
    waited = present([[1, 1]], [4, 1], waited=[0, 2])
    root = math.sqrt(0.5)
    assert finish_time_shares(waited) == pytest.approx([1 - root, root], abs=1e-4)


@pytest.mark.parametrize("name", ["gavel", "themis"])
def test_fair_rounds_alternate_by_hand(name: str) -> None:
    """Two jobs that need the whole server for two slots each take turns; then a third joins."""
    result = simulate(server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2)), name)
    assert completions(result) == [3, 4]
    rows = result.solution.assignments()
    assert [row["from"] for row in rows["a"]] == [1, 3]
    assert [row["from"] for row in rows["b"]] == [2, 4]


def test_sia_by_hand() -> None:
    """Two jobs of up to four workers: 2 + 2 saves more than 4 + 0, 2 * 1.1 - 2 / sqrt(2)."""
    assert completions(simulate(server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2)), "sia")) == [4, 4]
    # A third would have one worker at the price of two: with idle = 1.1 it waits, with 2 not.
    three = server_of_four(("a", 1, 4, 2), ("b", 1, 4, 2), ("c", 1, 4, 2))
    first = {}
    for idle in (1.1, 2.0):
        rows = simulate(three, "sia", settings={"idle": idle}).solution.assignments()
        first[idle] = sum(row["from"] == 1 for given in rows.values() for row in given)
    assert first == {1.1: 2, 2.0: 3}


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


GANG_RIVALS = [
    (family, name)
    for family in OVER_TIME
    for name in algorithms(family)
    if "gangs" in settings_of(algorithms(family)[name]) and name not in ("gavel", "themis")
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


# Those of the OASiS paper: every job's fixed size is its number of chunks.


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(OasisCluster, "fixed_workers", lambda _, record: record.chunks)
    values = ((10, 1), (20, 2), (5, 1), (8, 1))
    return server_of_four(
        *((*job, *value) for job, value in zip(FOUR, values, strict=True)), horizon=10
    )


def test_fifo_by_hand(fixed: Any) -> None:
    # j2 does not fit beside j1 and blocks j3; j4 needs the whole server.
    assert completions(simulate(fixed, "fifo")) == [2, 5, 3, 6]


def test_drf_by_hand(fixed: Any) -> None:
    # Slot 1: 2, 1, 1 workers; slot 2 (j3 done, j4 new): 2, 1, 1; slot 4 (j1 done): 2, 2.
    assert completions(simulate(fixed, "drf")) == [3, 5, 1, 4]


def test_rrh_by_hand(fixed: Any) -> None:
    # Slot 1 ranks j3 (2) > j2 (5/3) > j1 (1/2); slot 2 j2 (3) > j4 (5/4) > j1; slot 4 j4 > j1.
    result = simulate(fixed, "rrh")
    assert completions(result) == [6, 3, 1, 4]
    assert result.objective == pytest.approx(5 + 16 + 5 + 6)
    nets = {row["job"]: row["net"] for row in result.report["admissions"]}
    assert nets == pytest.approx({"j1": 9, "j2": 13, "j3": 2, "j4": 5})


def test_dorm_by_hand(fixed: Any) -> None:
    # One running job may change at each event, and the budget for unfairness is ceil(0.2 R) = 1.
    result = simulate(fixed, "dorm")
    assert result.violations == []
    assert not any(event["kept"] for event in result.report["events"])
    assert all(event["changed"] <= 1 for event in result.report["events"])
    assert sorted(completions(result)) == [1, 3, 4, 5]
