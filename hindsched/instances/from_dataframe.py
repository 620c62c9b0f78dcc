"""Instances from pandas frames; a family is found when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from hindsched.errors import InputError
from hindsched.instances.base import FORMAT, Instance, Record, check_family
from hindsched.instances.decimals import integral
from hindsched.instances.io import instance_class, parse_instance
from hindsched.json_types import Draft

if TYPE_CHECKING:
    import pandas as pd


def instance(family: str, *, name: str | None = None, **fields: object) -> Instance:
    """Make an instance of your own from frames, lists and numbers.

    Parameters
    ----------
    family : str
        The family's name.
    name : str, optional
        What to call it; the family's name if absent.
    **fields
        The fields of the family's instance files (``hindsched schema FAMILY``). Where a list of
        objects stands in the file a frame may be given: a row an object, a column a field. A column
        ``worker.gpu`` is the entry ``gpu`` of the field ``worker``; an empty cell (NaN, None, NaT)
        is an absent entry. Where there is no column ``name`` the index is it. Whole numbers in a
        column of texts (ids) become their digits.

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
    if "jobs" not in fields:
        raise InputError("jobs", "(absent)", "is required: a frame, or a list of jobs")
    kind = instance_class(family)
    data: Draft = {"format": FORMAT, "family": family, "name": name or family}
    for key, value in fields.items():
        field = kind.model_fields.get(key)
        data[key] = _json_field(key, value, None if field is None else _record_in(field.annotation))
    return parse_instance(data)


def _record_in(annotation: object) -> type[Record] | None:
    """The record of which a field holds many."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    return next(filter(None, map(_record_in, get_args(annotation))), None)


def _json_field(where: str, value: object, record: type[Record] | None = None) -> Any:
    """A field as JSON data: frames become lists of objects, numpy's numbers Python's."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return _records(where, value, record)
    if isinstance(value, pd.Series | pd.Index | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _json_field(f"{where}.{key}", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_field(f"{where}[{place}]", item) for place, item in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _records(where: str, frame: pd.DataFrame, record: type[Record] | None) -> list[Draft]:
    import pandas as pd

    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if record is not None and "name" in record.model_fields and "name" not in frame.columns:
        frame = frame.assign(name=frame.index)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"{where}.{twice[0]}", "(twice)", "must be one column")
    fields = {} if record is None else record.model_fields
    records: list[Draft] = [{} for _ in range(len(frame))]
    for column in frame.columns:
        path = column.split(".")
        is_text = column in fields and fields[column].annotation in (str, str | None)
        for place, (made, cell) in enumerate(zip(records, frame[column].tolist(), strict=True)):
            if pd.api.types.is_scalar(cell) and pd.isna(cell):
                continue
            inner = made
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise InputError(f"{where}[{place}].{column}", cell, f"{part} is no object")
            value = _json_field(f"{where}[{place}].{column}", integral(cell))
            inner[path[-1]] = str(value) if is_text and type(value) is int else value
    return records
