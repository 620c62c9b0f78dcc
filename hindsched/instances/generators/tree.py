"""``hindsched.tree``: futures of one cluster, drawn so that they part slot by slot."""

from __future__ import annotations

from collections.abc import Sequence

from hindsched.errors import InputError
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.generators.registry import generate
from hindsched.instances.generators.sampling import Draws

MOST_FUTURES, MOST_DRAWS = 10_000, 100


def tree(
    family: str, preset: str = "small", *, at: Sequence[int] = (2,), branches: int = 2,
    seed: int = 0, **settings: object,
) -> list[Instance]:  # fmt: skip
    """Draw futures of one cluster: after each slot of `at` the rest is drawn anew per branch.

    Parameters
    ----------
    family, preset
        Whose generator draws.
    at : sequence of int
        Arrivals up to and with the slot are common to the branches after it; in order.
    branches : int
        How many futures follow each history: ``branches ** len(at)`` scenarios in all.
    seed : int
        Of the draws: the same tree everywhere.
    **settings
        Of the generator.

    Raises
    ------
    InputError
        For slots out of order, or more scenarios than `MOST_FUTURES`.

    Examples
    --------
    >>> import hindsched as hs
    >>> [len(instance.jobs) > 0 for instance in hs.tree("gang", at=[2], branches=3)]
    [True, True, True]
    """
    slots = [whole_number(f"at[{place}]", slot, 1) for place, slot in enumerate(at)]
    if not slots or slots != sorted(set(slots)):
        raise InputError("at", list(at), "must be slots in order")
    whole_number("branches", branches, 1)
    if branches ** len(slots) > MOST_FUTURES:
        raise InputError("branches", branches, f"must give at most {MOST_FUTURES} scenarios")
    first = generate(family, preset, seed, **settings)
    paths: list[tuple[str, tuple[object, ...], Instance]] = [("", first.jobs, first)]
    for slot in slots:
        grown = []
        for path, jobs, drawn in paths:
            past = [job for job in jobs if first.arrival_of(job) <= slot]
            for branch in range(branches):
                here = f"{path}.{branch}" if path else str(branch)
                later = [job for job in jobs if first.arrival_of(job) > slot]
                draws = Draws(seed, "tree", here)
                for _ in range(MOST_DRAWS if branch else 0):  # the first goes on as it was
                    drawn = generate(family, preset, draws.integer(0, 2**31 - 1), **settings)
                    later = [job.model_copy(update={"name": f"{job.name}x{here}"})
                             for job in drawn.jobs if first.arrival_of(job) > slot]  # fmt: skip
                    if past or later:
                        break
                grown.append((here, (*past, *later), drawn))
        paths = grown
    horizon = max(drawn.horizon for *_, drawn in [("", (), first), *paths])
    return [
        first.with_fields(
            name=f"{first.name}-{path}", horizon=horizon, jobs=jobs,
            provenance={**(first.provenance or {}), "tree": {"at": slots, "branch": path}},
        )
        for path, jobs, _ in paths
    ]  # fmt: skip
