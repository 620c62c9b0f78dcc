"""The library of named instances and the registry of generators."""

from pathlib import Path

import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.base import families_on
from hindsched.instances.catalogue import (
    KNOWN,
    best_known,
    list_instances,
    make_members,
    members,
    named_instance,
    shown_name,
)
from hindsched.instances.generators.ranges import Draws
from hindsched.instances.generators.registry import generate

DATA = Path(__file__).parents[1] / "data" / "instances"


@pytest.mark.parametrize("name", KNOWN)
def test_known_instances_come_with_the_package(name):
    instance = named_instance(name)
    assert instance.name == name
    assert instance.family == KNOWN[name][0].family
    assert instance == hs.read(DATA / f"{name}.json")
    for facts in KNOWN[name]:
        assert facts.lower <= facts.upper
        assert instance.check_formulation(facts.formulation)


def test_every_known_file_is_named():
    assert {path.stem for path in DATA.glob("*.json")} == set(KNOWN)


@pytest.mark.parametrize("family", families_on("instances", "generator"))
def test_the_list_of_members_is_that_of_the_generators(family):
    listed = [member for member in members(family) if not member.preset]
    assert listed == make_members(family), "python benchmarks/library_recipes.py"


@pytest.mark.parametrize(
    ("name", "instance_name"),
    [
        ("oasis/known/t10-i10-h25-s0", "oasis-t10-i10-h25-s0"),
        ("oasis/worst/oasis", "oasis-worst-oasis"),
        ("mlbroker/small/r3-t4-j5-s0", "mlbroker-small-r3-t4-j5-s0"),
        ("mlbroker/medium/paper-r6-t10-j20-s0", "mlbroker-paper-r6-t10-j20-s0"),
        ("edgecloud/variants/small-h3-j6-s3", "edgecloud-small-h3-j6-s3"),
        ("gang/paper/bursty-j200-s0", "gang-bursty-j200-s0"),
        ("gang/library-small/poisson-s10", "gang-library-small-poisson-s10"),
    ],
)
def test_an_instance_is_shown_by_a_name_that_finds_it_and_older_names_do_too(name, instance_name):
    instance = named_instance(name)
    assert instance.name == instance_name
    assert shown_name(instance) == name
    family, suite_name, _ = name.split("/")
    if suite_name != "variants":  # its own names stand in the suite `small` too
        assert named_instance(instance_name) == instance
    if suite_name in ("small", "medium", "variants", "paper"):
        assert named_instance(f"{family}/{suite_name}/{instance_name}") == instance
    assert name in [row["name"] for row in list_instances(family)]
    changed = instance.with_jobs(instance.jobs[:-1])
    assert shown_name(changed) == instance_name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "instance: nope: must be a file or one of"),
        ("nope/small/x", "family: nope"),
        ("oasis/nope/x", "suite: nope: oasis has the suites"),
        ("oasis/small/x", "must be one of t"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(InputError, match=message):
        named_instance(name)


def test_unknown_settings():
    with pytest.raises(InputError, match=r"set\.nope: 1: the generator of oasis has the settings"):
        generate("oasis", "small", nope=1)
    with pytest.raises(InputError, match="preset: nope: oasis has the presets"):
        generate("oasis", "nope")
    with pytest.raises(InputError, match="seed: -1: must be at least 0"):
        generate("oasis", seed=-1)


def test_what_is_known_of_an_optimum_is_not_said_of_a_changed_instance():
    same = named_instance("oasis-t10-i10-h25-s0")
    assert best_known(same) == KNOWN[same.name]
    assert best_known(same.with_jobs(same.jobs[:-1])) == ()


def test_completion_offers_the_public_names_only():
    names = [name for name in dir(hs) if not name.startswith("__")]
    assert names == sorted(hs.__all__)


def test_draws_are_pinned():
    draws = Draws(1, "a", "b")
    assert [draws.integer(1, 6) for _ in range(8)] == [6, 6, 6, 2, 1, 6, 6, 5]
    assert draws.unit() == 0.9019386481289914
    assert draws.log_uniform(0.001, 0.1) == 0.0702672736788
    assert draws.normal() == 0.0917864942985
    assert Draws(1, "ab").word() != Draws(1, "a", "b").word()
