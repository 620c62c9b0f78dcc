"""What an instance made from a trace keeps of it: names, users, times; and what was made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject

if TYPE_CHECKING:  # generators, which no pandas is loaded for, name this module
    import pandas as pd

AnyInstance = TypeVar("AnyInstance", bound=Instance)
KEPT = ("part", "user", "status", "submit_seconds", "duration_seconds", "gpus", "queue_seconds")
"""Columns of the trace that an instance's provenance keeps for each job, where there is a value."""


def job_names(rows: pd.DataFrame) -> list[str]:
    """The trace's own names; with their part before them, or their row behind, to be unique.

    Examples
    --------
    >>> import pandas as pd
    >>> job_names(pd.DataFrame({"job": ["a", "a"], "part": ["x", "y"]}))
    ['x/a', 'y/a']
    """
    alone = rows["job"].astype(str)
    if alone.is_unique:
        return list(alone)
    both = rows["part"].astype(str) + "/" + alone
    if both.is_unique:
        return list(both)
    return [f"{name}#{number}" for number, name in enumerate(both, start=1)]


def trace_rows(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, JsonObject]:
    """What the trace says of each job, by the job's name: `KEPT`, where there is a value."""
    facts = rows[list(KEPT)].to_dict("records")
    return {
        name: {str(key): value for key, value in row.items() if _is_known(value)}
        for name, row in zip(names, facts, strict=True)
    }


def keep_origin(
    instance: AnyInstance, rows: pd.DataFrame, *, took: Sequence[str], made_up: Sequence[str]
) -> AnyInstance:
    """Give an instance's jobs their names in the trace, and say what came from it and what not.

    Parameters
    ----------
    instance : Instance
        Its jobs are ``j1, j2, ...`` (with anything behind), one a row, in the rows' order.
    rows : DataFrame
        The rows of the trace table that became jobs.
    took, made_up : sequence of str
        What the jobs have from the trace, and what was drawn or assumed, in words.

    Returns
    -------
    Instance
        Its provenance has ``took``, ``made_up`` and ``trace_rows``: by job what the trace says.
    """
    data = instance.to_dict()
    named = zip(data["jobs"], job_names(rows), strict=True)
    for number, (job, name) in enumerate(named, start=1):
        job["name"] = job["name"].replace(f"j{number}", name, 1)
    data["provenance"] = {
        **(instance.provenance or {}),
        "took": list(took),
        "made_up": list(made_up),
        "trace_rows": trace_rows(rows, [job["name"] for job in data["jobs"]]),
    }
    return type(instance).parse(data)


def _is_known(value: object) -> bool:
    return value != "" and value == value  # NaN is no value
