"""What every family's instance from a trace shares: which rows, their names, and what is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hindsched.instances.base import NonNegative, PositiveCount
from hindsched.instances.generators.settings import Settings
from hindsched.json_types import Draft

if TYPE_CHECKING:  # generators, which no pandas is loaded for, name this module
    import pandas as pd

    from hindsched.instances.traces.table import TraceTable

KEPT = ("part", "user", "status", "submit_seconds", "duration_seconds", "gpus", "queue_seconds")
"""Columns of the trace that an instance's provenance keeps for each job, where there is a value."""


class RowSettings(Settings):
    """What every family's instance from a trace is made with."""

    start: NonNegative = 0.0  # seconds after the trace's first row at which to begin
    every: PositiveCount = 1  # keep every so many rows, which thins the stream of arrivals


def take_rows(table: TraceTable, jobs: int, s: RowSettings) -> list[dict[str, Any]]:
    """So many rows, as the settings choose them; see `records_of`."""
    return records_of(table.window(s.start, (jobs - 1) * s.every + 1).rows.iloc[:: s.every])


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a trace table with their ``name`` and the seconds ``waited`` since the first."""
    waited = rows["submit_seconds"] - rows["submit_seconds"].iloc[0]
    found: Any = rows.assign(waited=waited, name=job_names(rows)).to_dict("records")
    return list(found)


def job_names(rows: pd.DataFrame) -> list[str]:
    """The trace's own names; with their part before them, or their row behind, to be unique."""
    alone = rows["job"].astype(str)
    both = rows["part"].astype(str) + "/" + alone
    for names in (alone, both):
        if names.is_unique:
            return list(names)
    return [f"{name}#{number}" for number, name in enumerate(both, start=1)]


def arrivals_of(rows: Sequence[dict[str, Any]], slot_seconds: float, first: int = 1) -> list[int]:
    """Slot of each row's submission; that of the first row is `first`."""
    return [first + int(row["waited"] // slot_seconds) for row in rows]


def traced(
    data: Draft,
    rows: Sequence[dict[str, Any]],
    table: TraceTable,
    seed: int,
    s: RowSettings,
    *,
    took: Sequence[str],
    made_up: Sequence[str],
    **told: object,
) -> Draft:
    """A file's data whose jobs have their names in the trace, and that says what came from it.

    Jobs of the data are ``j1, j2, ...`` (with anything behind), one a row; what they `took` from
    the trace and what was `made_up` is said in words.
    """
    jobs = [
        {**job, "name": job["name"].replace(f"j{number}", row["name"], 1)}
        for number, (job, row) in enumerate(zip(data["jobs"], rows, strict=True), start=1)
    ]
    facts = [
        {key: row[key] for key in KEPT if row[key] != "" and row[key] == row[key]}  # no NaN
        for row in rows
    ]
    provenance = {
        "seed": seed,
        "settings": s.changed(),
        **table.provenance(),
        **told,
        "took": list(took),
        "made_up": list(made_up),
        "trace_rows": {job["name"]: fact for job, fact in zip(jobs, facts, strict=True)},
    }
    return {**data, "jobs": jobs, "provenance": provenance}
