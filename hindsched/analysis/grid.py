"""A sweep of your own: generated instances over a grid of settings, compared, as a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from hindsched.analysis.compare import check_options, compare
from hindsched.analysis.plan import Contender
from hindsched.errors import InputError
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.generators.registry import generate
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd


def sweep(
    family: str,
    grid: Mapping[str, Sequence[Any]],
    algorithms: Sequence[Contender] | None = None,
    *,
    preset: str = "small",
    instances: int = 1,
    first_instance: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Compare algorithms on generated instances over every combination of settings.

    Parameters
    ----------
    family : str
        The family's word.
    grid : mapping
        Values to try by setting of the family's generator: ``{"jobs": [5, 10], "load": [1, 2]}``;
        lists, ranges, arrays or series.
    algorithms : sequence of str, class or OnlineAlgorithm, optional
        As in `compare`; None for all of the family.
    preset : str
        Preset of the other settings.
    instances : int
        Instances of each combination, with the seeds `first_instance` and the following.
    first_instance : int
        Seed of the first instance.
    **options
        Of `compare`: ``seeds, settings, method, workers, out, resume, time_limit``, ...

    Returns
    -------
    DataFrame
        `Comparison.to_frame` with the grid's settings and ``instance_seed`` in front: a row a run.

    Raises
    ------
    InputError
        For a setting that the generator does not have, or an empty grid.

    Examples
    --------
    >>> import hindsched as hs
    >>> frame = hs.sweep(
    ...     "oasis", {"jobs": [2, 3]}, ["fifo"], seeds=1, method="bound", time_limit=1,
    ...     progress=False,
    ... )
    >>> frame[["jobs", "instance_seed", "algorithm"]].values.tolist()
    [[2, 0, 'fifo'], [3, 0, 'fifo']]
    """
    instances = whole_number("instances", instances, 1)
    first_instance = whole_number("first_instance", first_instance, 0)
    if not grid:
        raise InputError("grid", grid, "must have a setting with its values")
    check_options(options, sweep, compare)
    tried = {name: _values(name, values) for name, values in grid.items()}
    made: dict[str, tuple[Instance, JsonObject]] = {}
    for chosen in product(*tried.values()):
        settings = dict(zip(grid, chosen, strict=True))
        for seed in range(first_instance, first_instance + instances):
            instance = generate(family, preset, seed, **settings)
            suffix = "-".join(f"{name}={value}" for name, value in settings.items())
            instance = instance.with_fields(name=f"{instance.name}-{suffix}".rstrip("-"))
            made[instance.name] = instance, {**settings, "instance_seed": seed}
    frame = compare([item for item, _ in made.values()], algorithms, **options).to_frame()
    names = list(frame["instance"])
    for place, column in enumerate([*grid, "instance_seed"]):
        frame.insert(place, column, [made[name][1][column] for name in names])
    return frame


def _values(name: str, values: object) -> list[Any]:
    """Values of a setting as a list of plain ones: arrays and series say theirs."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(plain, str) or not isinstance(plain, Sequence) or not plain:
        raise InputError(f"grid.{name}", values, "must be a list of values")
    return list(plain)
