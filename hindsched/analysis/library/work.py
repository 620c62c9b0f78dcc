"""Checking all records of the library, and solving what is still open."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hindsched.analysis.exact import exact_check
from hindsched.analysis.library.keep import Submission, offer
from hindsched.analysis.library.records import CheckedRow, Part, Records, is_better, stated
from hindsched.errors import SolveFailed
from hindsched.instances.generators.registry import make
from hindsched.instances.recipes import Recipe
from hindsched.json_types import JsonObject
from hindsched.solvers.door.api import solve
from hindsched.solvers.tree.method import certify_optimum

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
        found = exact_check(make(recipe), *files) if files else None
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


def improve(
    recipe: Recipe, records: Records, *, time_limit: float, seed: int = 0
) -> list[Submission]:
    """Solve an instance that is not proven yet, and keep what is better; nothing gets worse.

    Parameters
    ----------
    recipe : Recipe
        The instance.
    records : Records
        Where records go.
    time_limit : float
        Seconds for `solve`; a tree that certifies a solver's optimum, or a bound where `solve` was
        left without prices, may take as long again.
    seed : int
        Seed of the search.

    Returns
    -------
    list of Submission
        What `solve` found; empty for an instance that is proven already.

    Raises
    ------
    SolveFailed
        If the kernel does not accept what was found.
    """
    if records.standing(recipe).is_proven:
        return []
    instance = make(recipe)
    result = certify_optimum(solve(instance, time_limit=time_limit, seed=seed))
    certificate = result.certificate
    if certificate is None:  # the method overran before it had prices
        certificate = solve(instance, "bound", time_limit=time_limit, seed=seed).certificate
    if result.solution is None and certificate is None:
        raise SolveFailed(f"{recipe.name}: {result.status} after {result.seconds:.1f} s")
    found: list[tuple[Part, JsonObject]] = []
    if certificate is not None:
        found.append(("certificate", certificate.to_dict()))
    if result.solution is not None:
        method = {"method": result.method, "time_limit": time_limit, "seed": seed}
        found.append(("solution", result.solution.to_dict(method)))
    kept = []
    for part, data in found:
        where = f"{recipe.name} {part}"
        if not is_better(recipe, part, stated(data, part, where), records.claim(recipe, part)):
            continue  # before the kernel spends its time on it
        content = json.dumps(data, separators=(",", ":")).encode() + b"\n"
        kept.append(offer(recipe, instance, part, content, records))
    return kept
