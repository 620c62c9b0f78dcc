"""Instances from pandas frames; a family is found when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


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
