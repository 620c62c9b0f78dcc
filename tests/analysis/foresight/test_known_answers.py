"""Values that somebody else has computed: prophet, ski rental, the farmer, two trees of oasis."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched.analysis.bounds import Bounds
from hindsched.analysis.foresight.foresight import Foresight
from hindsched.analysis.foresight.search import Strategy, guarantee, no_better_than, share_of
from hindsched.solvers.door.program import solve_program
from tests.analysis.foresight.toys import farmer, search_of, ski_rental

TREES = Path(__file__).parents[2] / "data" / "foresight"


def prophet(chance: float, policies: str) -> Foresight:
    """One server with room for one worker; A takes two slots, and B may come in the second."""
    alone = {"worker_servers": [{"name": "w", "capacity": {"gpu": 1, "bw": 100}}],
             "ps_servers": [{"name": "p", "capacity": {"gpu": 9, "bw": 100}}]}  # fmt: skip
    job = {"epochs": 1, "chunks": 1, "minibatch_slots": 1, "gradient_mb": 0,
           "worker": {"gpu": 1, "bw": 1}, "ps": {"bw": 1}}  # fmt: skip
    worth = {"kind": "linear", "slope": 0}
    a = {**job, "name": "A", "arrival": 1, "minibatches": 2, "utility": {**worth, "intercept": 1}}
    b = {**job, "name": "B", "arrival": 2, "minibatches": 1,
         "utility": {**worth, "intercept": 1 / chance}}  # fmt: skip
    envelope = {"format": "hindsched/1", "family": "oasis", "horizon": 2, "slot_seconds": 1,
                "resources": ["gpu", "bw"], "bandwidth_resource": "bw", **alone}  # fmt: skip
    kind = type(hs.generate("oasis"))
    futures = [kind.parse({**envelope, "name": name, "jobs": jobs})
               for name, jobs in (("quiet", [a]), ("rush", [a, b]))]  # fmt: skip
    return hs.foresight(futures, [1 - chance, chance], [], policies, time_limit=20)


def test_prophet_who_commits_loses_what_nobody_could_keep() -> None:
    e = 0.25
    found = prophet(e, "commit")
    assert found.hindsight.upper == pytest.approx(2 - e)
    assert found.best_online.lower == pytest.approx(1) == found.best_online.upper
    assert found.price.lower == pytest.approx(2 - e) == found.price.upper
    assert found.guarantee_deterministic.upper == pytest.approx(e)
    assert found.guarantee.lower == pytest.approx(1 / (2 - e)) == found.guarantee.upper
    assert "cannot see the future" not in str(found)
    assert "promise" in str(found)


def test_prophet_who_may_give_up_loses_nothing() -> None:
    found = prophet(0.25, "run")
    assert found.price.upper == pytest.approx(1)
    assert found.guarantee.lower == pytest.approx(1)
    assert found.policy is not None
    assert found.policy.schedules[1].given_up.keys() == {"A"}


@pytest.mark.parametrize(("buy", "best"), [(2, 4 / 3), (3, 27 / 19)])
def test_ski_rental(buy: int, best: float) -> None:
    seasons = 2 * buy + 1
    models, decisions = ski_rental(buy, seasons)
    search = search_of(models, decisions, [1 / seasons] * seasons)
    optima = [Bounds(min(d, buy), min(d, buy)) for d in range(1, seasons + 1)]
    never = Strategy(tuple(float(d) for d in range(1, seasons + 1)))
    found = guarantee(search.best, optima, [never], up=False, seconds=60)
    assert found.interval.lower == pytest.approx(best) == found.interval.upper
    assert best == pytest.approx(1 / (1 - (1 - 1 / buy) ** buy))
    assert search.least(optima, 30).interval.upper == pytest.approx(2 - 1 / buy)


def test_who_costs_something_where_hindsight_is_free_promises_nothing() -> None:
    free = [Bounds(0, 0), Bounds(2, 2)]
    assert share_of(Strategy((1.0, 2.0)), free, up=False) is None
    assert share_of(Strategy((0.0, 3.0)), free, up=False) == 1.5


def test_who_does_not_randomise_promises_no_more_than_who_may() -> None:
    found = no_better_than(Bounds(0.2, 1.0), Bounds(0.5, 0.6), [], [], up=True)
    assert found.interval == Bounds(0.0, 0.6)
    found = no_better_than(Bounds(1.0, 3.0), Bounds(1.2, 1.3), [], [], up=False)
    assert found.interval.lower == 1.2


def test_farmer() -> None:
    models, decisions = farmer()
    alone = [float(pyo.value(m.profit)) for m in models if solve_program(m).has_point]
    search = search_of(models, decisions, [1 / 3] * 3)
    bound, policy = search.best([1 / 3] * 3, 30)
    assert policy is not None
    assert bound is not None
    online = policy.expected([1 / 3] * 3)
    assert online == pytest.approx(108_390, abs=1)
    assert bound == pytest.approx(online)
    assert sum(alone) / 3 == pytest.approx(115_405.56, abs=0.01)
    assert sum(alone) / 3 - online == pytest.approx(7_015.56, abs=1)
    for crop, acres in (("wheat", 120), ("corn", 80), ("beets", 300)):  # the mean yields' plan
        search.model.scenario[0].acres[crop].fix(acres)
    _, mean = search.best([1 / 3] * 3, 30)
    assert mean is not None
    assert mean.expected([1 / 3] * 3) == pytest.approx(107_240, abs=1)
    assert online - mean.expected([1 / 3] * 3) == pytest.approx(1_150, abs=1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("tree", "policies", "hindsight", "online", "promised"),
    [("oasis-0", "run", 102.77, 102.77, 1.0), ("oasis-0", "commit", 102.77, 86.48, 0.707),
     ("oasis-1", "run", 156.45, 154.60, 0.972), ("oasis-1", "commit", 156.45, 145.99, 0.813)],
)  # fmt: skip
def test_trees_of_oasis(
    tree: str, policies: str, hindsight: float, online: float, promised: float
) -> None:
    """The intervals hold what a longer search has proven, however far this one comes."""
    futures = [hs.read(path) for path in sorted((TREES / tree).glob("*.json"))]
    found = hs.foresight(futures, None, ["oasis"], policies, time_limit=60)
    for interval, value in (
        (found.hindsight, hindsight), (found.best_online, online),
        (found.guarantee_deterministic, promised),
    ):  # fmt: skip
        assert interval.lower <= value * (1 + 1e-3)
        assert interval.upper >= value * (1 - 1e-3)
    assert found.hindsight.upper <= 1.5 * hindsight
    assert found.guarantee.upper >= promised * (1 - 1e-3)
