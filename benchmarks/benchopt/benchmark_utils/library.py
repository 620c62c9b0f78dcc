"""Instances of the benchmark library, and what is on file of their optima."""

from __future__ import annotations

from typing import Any

from hindsched.analysis.library import Records, choose
from hindsched.instances.catalogue import find_recipe


def names(size: str) -> list[str]:
    """Instances of all families at a size: ``small``, ``medium`` or ``large``."""
    return [recipe.name for recipe in choose(suite=size)]


def data_of(name: str) -> dict[str, Any]:
    """``instance, best_objective, best_bound`` of an instance of the library."""
    recipe = find_recipe(name)
    standing = Records().standing(recipe)
    return {
        "instance": recipe.make(),
        "best_objective": standing.objective,
        "best_bound": standing.bound,
    }
