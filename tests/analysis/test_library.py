"""The benchmark library: its recipes, its records, and what it refuses to take."""

import json
import shutil
from pathlib import Path

import pytest

import hindsched as hs
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import families_on
from hindsched.instances.catalogue import Member, all_recipes, find_member
from tests.scripts import script

library = script("library_records")
Records, check_records, choose = library.Records, library.check_records, library.choose

FAMILIES = families_on("instances", "generator")
NAME = "oasis/library-small/h3-s2"
ON_FILE = Records(Path(__file__).parents[2] / "benchmarks/library")


@pytest.fixture
def records(tmp_path):
    """A folder with the two records of one instance."""
    found, recipe = Records(tmp_path / "records"), find_member(NAME)
    for path in ON_FILE.files(recipe):
        target = found.folder / path.relative_to(ON_FILE.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_recipe_makes_the_instance_that_it_says(family):
    for recipe in (choose(family=family, suite="small")[0], choose(family=family)[-1]):
        instance = recipe.make()
        assert instance.sha256() == recipe.sha256
        assert (len(instance.jobs), instance.horizon) == (recipe.jobs, recipe.horizon)
        assert hs.named_instance(recipe.name) == hs.named_instance(recipe.instance_name) == instance


def test_every_instance_has_a_solution_and_a_bound_on_file_and_they_leave_room():
    senses = {family: choose(family=family)[0].make().sense for family in FAMILIES}
    for recipe in all_recipes():
        standing = Records().standing(recipe)
        assert standing == ON_FILE.standing(recipe)
        assert standing.objective is not None, recipe.name
        assert standing.bound is not None, recipe.name
        room = standing.bound - standing.objective
        sign = 1 if senses[recipe.family] == "max" else -1
        assert sign * room >= -1e-9 * abs(standing.bound), recipe.name


@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernel_accepts_the_records_of_an_instance(family):
    def size(recipe):
        return sum(path.stat().st_size for path in ON_FILE.files(recipe))

    smallest = min(choose(family=family, suite="small"), key=size)
    [(_, verdict, accepted)] = check_records([smallest], ON_FILE)
    assert accepted, verdict
    assert verdict != "no records"


def test_the_page_shows_what_is_on_file():
    page = script("library_page")
    assert page.PAGE.read_text().endswith(page.MARK + "\n" + page.board())


def test_a_generator_that_changed_is_noticed():
    old = find_member(NAME)
    changed = Member(**{**vars(old), "seed": old.seed + 1})
    with pytest.raises(SolveFailed, match="another instance"):
        changed.make()


def test_a_damaged_record_is_named(records):
    recipe = find_member(NAME)
    path = records.path(recipe, "solution")
    data = json.loads(path.read_text())
    assert records.standing(recipe).is_proven
    path.write_text(json.dumps({**data, "objective": data["objective"] + 1}))
    [(found, _, accepted)] = check_records([recipe], records)
    assert (found.name, accepted) == (NAME, False)
    with pytest.raises(InputError, match="must be one of"):
        choose(suite="tiny")
