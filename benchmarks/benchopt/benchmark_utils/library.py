"""Instances of the benchmark library, and what is on file of their optima."""

from __future__ import annotations

from typing import Any

from hindsched.instances.catalogue import all_recipes, best_on_file, find_member


def names(size: str) -> list[str]:
    """Instances of all families at a size: ``small``, ``medium`` or ``large``."""
    return [recipe.name for recipe in all_recipes() if recipe.suite == f"library-{size}"]


def data_of(name: str) -> dict[str, Any]:
    """``instance, best_objective, best_bound`` of an instance of the library."""
    objective, bound = best_on_file()[name]
    return {
        "instance": find_member(name).make(), "best_objective": objective, "best_bound": bound
    }  # fmt: skip
