"""Instances from pandas frames; a family is found when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError
from hindsched.instances.base import FORMAT, Instance, check_family
from hindsched.instances.io import parse_instance

if TYPE_CHECKING:
    import pandas as pd


def instance(family: str, *, name: str | None = None, **fields: Any) -> Instance:
    """Make an instance of your own from frames, lists and numbers.

    Parameters
    ----------
    family : str
        The family's word.
    name : str, optional
        What to call it; the family's word if absent.
    **fields
        The fields of the family's instance files (``hindsched schema FAMILY``). Where a list of
        objects stands in the file a frame may be given: a row an object, a column a field. A column
        ``worker.gpu`` is the entry ``gpu`` of the field ``worker``; an empty cell (NaN, None, NaT)
        is an absent entry; an index of names is the field ``name`` where no column is.

    Raises
    ------
    InputError
        For a field that is missing, unknown or breaks a rule, by its path: ``jobs[3].worker.gpu``.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> jobs = pd.DataFrame(
    ...     {"arrival": [1, 2], "departure": [2, 2], "worker.gpu": [1, 2], "ps.gpu": [0, 0]},
    ...     index=["a", "b"],
    ... ).assign(capacity_gb=10, exchange_gb=1, deployment_usd=0.1)
    >>> jobs["data_gb"] = [[[5], [6]], [[20]]]
    >>> price = {"unit_usd": 3, "discounted_usd": 2, "threshold": 4}
    >>> centre = {"name": "r1", "prices": {"gpu": price}}
    >>> hs.instance("mlbroker", jobs=jobs, datacenters=[centre], resources=["gpu"], horizon=2,
    ...             slot_seconds=3600, transfer_usd_per_gb=[[0]])
    <mlbroker instance 'mlbroker': 2 jobs, horizon 2>
    """
    check_family(family)
    data = {key: _plain(key, value) for key, value in fields.items()}
    return parse_instance({"format": FORMAT, "family": family, "name": name or family, **data})


def _plain(where: str, value: Any) -> Any:
    """A field as JSON data: frames become lists of objects, numpy's numbers Python's."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return _records(where, value)
    if isinstance(value, pd.Series | pd.Index | np.ndarray):
        return [_plain(where, item) for item in value.tolist()]
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{where}.{key}", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{place}]", item) for place, item in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _records(where: str, frame: pd.DataFrame) -> list[dict[str, Any]]:
    import pandas as pd

    if "name" not in frame.columns and not isinstance(frame.index, pd.RangeIndex):
        frame = frame.rename_axis("name").reset_index()
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{where}.{twice[0]}", "(twice)", "must be one column")
    records: list[dict[str, Any]] = [{} for _ in range(len(frame))]
    for column in frame.columns:
        path = str(column).split(".")
        for place, (record, cell) in enumerate(zip(records, frame[column].tolist(), strict=True)):
            if pd.api.types.is_scalar(cell) and pd.isna(cell):
                continue
            inner = record
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise InputError(f"{where}[{place}].{column}", cell, f"{part} is no object")
            inner[path[-1]] = _whole(_plain(f"{where}[{place}].{column}", cell))
    return records


def _whole(value: Any) -> Any:
    """A whole number as an integer: pandas makes floats of a column with an empty cell."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def gang(frame: pd.DataFrame, gpus: int | None = None, **options: Any) -> Any:
    """Make an instance of rigid GPU jobs from a frame.

    Parameters
    ----------
    frame : DataFrame
        A row a job: ``job, submit, duration, gpus`` and, if there, ``weight, deadline, user``.
        Times may be numbers of seconds, texts, datetimes or timedeltas.
    gpus : int
        GPUs of the cluster, one pool.
    **options
        ``servers`` (``"16x8"``, ``"a=8,b=4"`` or pairs, instead of `gpus`), ``placement``,
        ``columns`` (the frame's column for a role), ``name``, ``time_zone``, ``time_unit``,
        ``time_step``.

    Raises
    ------
    InputError
        For a row that breaks a rule, counted from 1, or a job that stands twice.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "submit": [0, 5], "duration": [60, 30], "gpus": 2})
    >>> hs.gang(jobs, gpus=2).total_gpus
    2
    """
    module = importlib.import_module("hindsched.instances.gang.from_log")
    return module.gang(frame, gpus, **options)
