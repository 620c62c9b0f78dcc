"""Search spaces: every family's draws are members, ranges are kept and set, files are adopted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.analysis.worst.adversarial_patterns import gadgets
from hindsched.analysis.worst.moves import MOVES, few_kinds, neighbour
from hindsched.analysis.worst.shrink import complexity
from hindsched.errors import InputError
from hindsched.instances.base import families_on
from hindsched.instances.search.fields import Field
from hindsched.instances.search.space import copied, find_space, search_spaces

FAMILIES = families_on("instances", "search_space")
SPACES = [(family, name) for family in FAMILIES for name in search_spaces(family)]


def keeps_its_ranges(space, data):
    assert space.jobs[0] <= len(data["jobs"]) <= space.jobs[1]
    for key, (low, high) in space.lists.items():
        assert low <= len(data[key]) <= high
    for item, holder in space.all_fields(data):
        for place in item.places(holder):
            value = item.read(place)
            if item.choices:
                assert value in item.choices
            elif item.name not in ("unit_usd", "discounted_usd", "usd_per_gb"):
                assert value <= item.high


def test_all_papers_and_gang_have_a_space():
    assert set(FAMILIES) == {"oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang"}


@pytest.mark.parametrize(("family", "name"), SPACES)
def test_draws_and_their_neighbours_are_members_within_the_ranges(family, name):
    space = find_space(family, name)
    for seed in range(15):
        random = np.random.default_rng(seed)
        data, other = space.draw(random), space.draw(random)
        for _ in range(4):
            keeps_its_ranges(space, data)
            assert space.normal(copied(data)) == data
            assert space.instance(data).family == family
            before = copied(data)
            made, moves = neighbour(space, data, other, random)
            assert data == before
            assert set(moves.split("+")) <= set(MOVES)
            data = made


@pytest.mark.parametrize(("family", "name"), SPACES)
def test_gadgets_are_members(family, name):
    space = find_space(family, name)
    found = gadgets(space)
    assert found
    for data in found:
        keeps_its_ranges(space, data)
        space.instance(data)
        assert complexity(space, data) == complexity(space, copied(data))


@pytest.mark.parametrize(("family", "name"), SPACES)
def test_every_move_changes_something_somewhere(family, name):
    space = find_space(family, name)
    assert all(len(ends) == 2 for ends in space.lists.values())
    changed = set()
    for seed in range(12):
        random = np.random.default_rng(seed)
        data = space.draw(random)
        for name_of_move, move in MOVES.items():
            made = copied(data)
            move(space, made, space.draw(random), random)
            if space.normal(made) != data:
                changed.add(name_of_move)
    needed = {"duplicate job", "drop job", "copy gadget", "make equal", "redraw", "nudge", "scale"}
    needed |= {"make block equal", "change equals", "transfer", "few levels"}
    assert needed <= changed


def test_moves_keep_kinds_sums_and_levels():
    space = find_space("gang", "machines").with_ranges({"jobs": [8, 12]})

    def durations(data):
        return [job["duration"] for job in data["jobs"]]

    for seed in range(20):
        random = np.random.default_rng(seed)
        data = space.draw(random)
        old = durations(data)
        for name in ("transfer", "few levels", "change equals", "make block equal"):
            made = copied(data)
            MOVES[name](space, made, data, random)
            new = durations(made)
            if name == "transfer":
                assert sum(new) == sum(old)
            elif name == "few levels":
                assert set(new) <= set(old)
                assert len(set(new)) <= 4
            elif name == "change equals":
                assert len({now for now, was in zip(new, old, strict=True) if now != was}) <= 1
                assert all((new[i] == new[0]) or old[i] != old[0] for i in range(len(old)))
            else:
                changed = [
                    i for i, (now, was) in enumerate(zip(new, old, strict=True)) if now != was
                ]
                assert len({new[i] for i in changed}) <= 1
        assert len(set(durations(few_kinds(space, data, random)))) <= 4


def test_files_are_brought_into_the_ranges():
    instance = hs.generate("gang", seed=3, jobs=9)
    space = find_space("gang", "small")
    data = space.adopt(instance)
    keeps_its_ranges(space, data)
    assert len(data["jobs"]) == 6
    assert space.instance(data).jobs[0].duration == instance.jobs[0].duration
    with pytest.raises(InputError, match="start: oasis: must be an instance of gang"):
        space.adopt(hs.generate("oasis"))


def test_ranges_can_be_set():
    space = find_space("gang", "small").with_ranges(
        {"jobs": "3", "duration": "[2,4]", "gpus": 1, "weight": [1, 1]}
    )
    for seed in range(10):
        data = space.draw(np.random.default_rng(seed))
        assert len(data["jobs"]) == 3
        assert all(2 <= job["duration"] <= 4 and job["gpus"] == 1 for job in data["jobs"])


@pytest.mark.parametrize(
    ("ranges", "line"),
    [
        ({"speed": 3}, "set.speed: 3: must be one of jobs, submit, duration"),
        ({"duration": "fast"}, "set.duration: fast: must be a number or"),
        ({"duration": [4, 2]}, "must be a number or"),
        ({"duration": [1.5, 2]}, "must be integers"),
        ({"jobs": 0}, "must be a count of at least 1"),
        ({"jobs": [3, 2]}, "must be a number or"),
        ({"duration": [True, 2]}, "must be a number or"),
    ],
)
def test_wrong_ranges_are_one_line(ranges, line):
    with pytest.raises(InputError) as error:
        find_space("gang").with_ranges(ranges)
    assert line in str(error.value)


def test_choices_can_be_narrowed_but_not_widened():
    space = find_space("oasis").with_ranges({"decay": 5})
    assert {job["utility"]["decay"] for job in space.draw(np.random.default_rng(0))["jobs"]} == {5}
    with pytest.raises(InputError, match=r"must be some of 0, 0\.5, 5"):
        find_space("oasis").with_ranges({"decay": [1, 2]})


def test_unknown_spaces_and_families_are_one_line():
    with pytest.raises(InputError, match="oasis has the search spaces small, one-slot"):
        find_space("oasis", "large")
    with pytest.raises(InputError, match="must be one of oasis"):
        find_space("bakery")


@given(
    low=st.integers(-50, 50),
    width=st.integers(0, 100),
    grain=st.sampled_from((1, 2, 4, 10, 20)),
    value=st.floats(-300, 300),
)
def test_numbers_stay_on_their_grain_within_their_range(low, width, grain, value):
    item = Field("x", "size", low, low + width, grain=grain)
    found = item.rounded(value)
    assert low <= found <= low + width
    assert abs(found * grain - round(found * grain)) < 1e-6
    assert item.rounded(found) == found
    assert abs(found - min(max(value, low), low + width)) <= 1 / grain


@given(place=st.floats(0, 1), low=st.integers(1, 9), width=st.integers(1, 1000), log=st.booleans())
def test_places_in_a_range_and_numbers_belong_together(place, low, width, log):
    item = Field("x", "size", low, low + width, grain=100, log=log)
    assert item.low <= item.from_unit(place) <= item.high
    assert abs(item.to_unit(item.from_unit(place)) - place) < 0.02 / (1 if not log else 1 / low + 1)
