"""Recipes of the benchmark library: what makes an instance, and the hash of what comes out.

The library's instances are not kept as files. A recipe names generator, preset, seed and settings,
from which the same bytes come everywhere; the hash says that they did. `recipes.json` is written by
``benchmarks/library_recipes.py`` and changes only with a new `version` of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.io import read_json
from hindsched.json_types import Keywords

RECIPES_FORMAT = "hindsched-recipes/1"


@dataclass(frozen=True)
class Recipe:
    """One instance of the benchmark library.

    Parameters
    ----------
    family, suite, member : str
        Its name is these three: ``oasis/library-small/h5-s1``.
    preset : str
        The generator's preset.
    seed : int
        Seed of the draws.
    sha256 : str
        Hash of the instance's canonical JSON.
    settings : mapping
        Settings in place of the preset's.

    Examples
    --------
    >>> find_recipe("oasis/library-small/h3-s2").preset
    'small'
    """

    family: str
    suite: str
    member: str
    preset: str
    seed: int
    settings: Keywords
    jobs: int
    horizon: int
    sha256: str

    @property
    def name(self) -> str:
        """The library's name of the instance: family, suite, member."""
        return f"{self.family}/{self.suite}/{self.member}"

    @property
    def instance_name(self) -> str:
        """The name that the instance itself bears, as files and results show it."""
        return f"{self.family}-{self.suite}-{self.member}"


@cache
def library_version() -> int:
    """Version of the set of recipes; a result on the library names it."""
    return int(_data()["version"])


@cache
def all_recipes() -> tuple[Recipe, ...]:
    """Every instance of the benchmark library, by family and size."""
    return tuple(Recipe(**row) for row in _data()["recipes"])


def recipe_suites(family: str) -> dict[str, list[Recipe]]:
    """Recipes of a family by suite."""
    found: dict[str, list[Recipe]] = {}
    for recipe in all_recipes():
        if recipe.family == family:
            found.setdefault(recipe.suite, []).append(recipe)
    return found


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, either the library's or the instance's own.

    Raises
    ------
    InputError
        If there is none.
    """
    for recipe in all_recipes():
        if name in (recipe.name, recipe.instance_name):
            return recipe
    raise InputError("instance", name, "must be an instance of the library: `library list`")


def _data() -> Any:
    data = read_json(str(files("hindsched.instances") / "recipes.json"))
    assert data["format"] == RECIPES_FORMAT
    return data
