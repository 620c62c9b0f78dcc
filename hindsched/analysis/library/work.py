"""Checking all records of the library."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hindsched.analysis.exact import exact_check
from hindsched.analysis.library.records import CheckedRow, Records
from hindsched.instances.catalogue import Recipe

Advance = Callable[[str], None]


def check_records(
    recipes: Sequence[Recipe], records: Records, *, workers: int = 1, advance: Advance | None = None
) -> list[CheckedRow]:
    """Make every instance anew and let the exact kernel check its records.

    Parameters
    ----------
    recipes : sequence of Recipe
        Which instances.
    records : Records
        The files.
    workers : int
        Kernels that run at once; each is a process of its own.
    advance : callable, optional
        Is told of every instance that is done.

    Returns
    -------
    list of dict
        ``name, objective, bound, gap, proven, verdict, accepted, seconds``, in the given order.
        Nothing on file is accepted, with the verdict ``no records``.
    """

    def check(recipe: Recipe) -> CheckedRow:
        started = time.perf_counter()
        files = records.files(recipe)
        found = exact_check(recipe.make(), *files) if files else None
        verdict = "no records" if found is None else found.verdict
        accepted = found is None or found.code == 0
        board = records.standing(recipe).to_dict() if accepted else None
        if advance is not None:
            advance(recipe.name)
        seconds = time.perf_counter() - started
        if board is None:
            return {
                "name": recipe.name, "verdict": verdict, "accepted": False, "seconds": seconds,
            }  # fmt: skip
        return {**board, "verdict": verdict, "accepted": True, "seconds": seconds}

    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(check, recipes))
