"""Helios (SenseTime, 2020): the job log by its schema, and daily quotas of its tenants."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import number, read_table
from hindsched.instances.traces.table import TraceTable, build_table

COLUMNS = (
    "job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "duration", "queue",
)  # fmt: skip


def load_helios(path: Path) -> TraceTable:
    """Load a job log; part = virtual cluster. Jobs without GPUs are rejected."""
    frame = read_table(path, path, COLUMNS)
    submitted = pd.to_datetime(frame["submit_time"], format="%Y-%m-%d %H:%M:%S", errors="coerce")
    raw = pd.DataFrame(
        {
            "job": frame["job_id"],
            "part": frame["vc"].fillna(""),
            "submit_seconds": (submitted - pd.Timestamp(0)).dt.total_seconds(),
            "duration_seconds": number(frame, "duration"),
            "gpus": number(frame, "gpu_num"),
            "user": frame["user"].fillna(""),
            "status": frame["state"].fillna(""),
            "queue_seconds": number(frame, "queue"),
        }
    )
    return build_table("helios", path, raw)


def load_daily_quotas(path: str | Path) -> pd.DataFrame:
    """GPUs of each virtual cluster by day.

    Parameters
    ----------
    path : str or Path
        CSV with the columns ``date``, one a virtual cluster, and ``total``.

    Returns
    -------
    DataFrame
        Index ``date``, a column of whole numbers a virtual cluster (without ``total``).

    Raises
    ------
    InputError
        If a number is missing or negative, or a row does not add up to its total.
    """
    source = Path(path)
    frame = read_table(source, source, ("date", "total"))
    quotas = frame.drop(columns=["date", "total"]).apply(pd.to_numeric, errors="coerce")
    bad = quotas.isna().any(axis=1) | (quotas < 0).any(axis=1)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise InputError(f"{source}:{row + 2}", frame["date"][row], "quotas must be numbers >= 0")
    wrong = quotas.sum(axis=1) != number(frame, "total")
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(f"{source}:{row + 2}", frame["total"][row], "quotas must add up to total")
    quotas.index = pd.Index(frame["date"], name="date")
    return quotas.astype(int)
