"""Futures that the adversary's search begins with."""

from __future__ import annotations

import pytest

import hindsched as hs
from hindsched.analysis.adversary.shapes import FULL, Shapes
from hindsched.analysis.foresight.game import game_of
from hindsched.instances.search_space import NumberRange, find_space


@pytest.mark.parametrize(("value", "nearest"), [(0.5, 1), (0, 1), (1.2, 1), (99, 16)])
def test_the_nearest_of_a_range_of_whole_numbers_is_whole(value: float, nearest: int) -> None:
    assert NumberRange(0.5, 16, is_whole=True).nearest(value) == nearest


def test_the_first_candidates_are_ambushes_of_full_size() -> None:
    space = find_space("gang", "small").with_ranges({"gpus": 1, "weight": 1, "jobs": [1, 2]})
    shapes, ratios = Shapes(space, 12, 10), []
    for number in range(FULL // 2):
        instances = shapes.instances(shapes.propose(None, 0, number))
        assert len(instances) == instances[0].horizon == 9, "as many as can arrive"
        assert [len(each.jobs) for each in instances] == [1, *[12] * 8]
        game = game_of(instances, "run", "non-preemptive")
        optima = [game.alone(s)[0] for s in range(game.size)]
        ratios.append(game.randomised(optima).value)
    assert max(ratios) > 1.35


@pytest.mark.parametrize("family", ["gang", "oasis", "batchsched", "astraea"])
def test_every_preset_gives_first_candidates(family: str) -> None:
    """Numbers at their ends may fit into no cluster that the generator draws."""
    shapes = Shapes(find_space(family, "small").with_ranges({"jobs": [1, 2]}), 8, 8)
    for number in range(4):
        assert len(shapes.instances(shapes.propose(None, 0, number))) >= 2


@pytest.mark.parametrize("family", ["mlbroker", "edgecloud"])
def test_where_values_take_long_a_job_meets_another(family: str) -> None:
    space = find_space(family, "small").with_ranges({"jobs": [1, 2]})
    shapes, alike, meets = Shapes(space, 8, 8, playable=False), 0, 0
    for number in range(40):
        first, second = shapes.instances(shapes.propose(None, 0, number))
        (base,), (again, other) = first.jobs, second.jobs
        assert again == base
        assert base.arrival == 1 < other.arrival <= 3
        meets += other.arrival <= getattr(base, "departure", 9)
        parts = first.datacenters if family == "mlbroker" else first.servers
        alike += (
            len({part.model_copy(update={"name": "x"}).model_dump_json() for part in parts}) == 1
        )
    assert meets >= 25
    assert 10 <= alike <= 38


@pytest.mark.parametrize("asked", [{"futures": 10**8}, {"jobs": 1001}])
def test_more_than_can_be_played_is_refused(asked: dict[str, int]) -> None:
    with pytest.raises(hs.InputError, match="must be at most 1000"):
        hs.adversary("gang", work_limit=1, **asked)


def test_one_future_is_not_told_apart_from_others() -> None:
    found = hs.foresight(hs.tree("gang", at=[99], branches=2), algorithms=[])
    assert len(found.futures) == 1
    assert not any("told apart" in line for line in found.sentences())
