"""What every family's instance from a trace shares: which rows, their names, and what is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hindsched.instances.generators.settings import TraceSettings
from hindsched.json_types import Draft

if TYPE_CHECKING:  # generators, which no pandas is loaded for, name this module
    import pandas as pd

    from hindsched.instances.traces.table import TraceTable

KEPT = ("part", "user", "status", "submit_seconds", "duration_seconds", "gpus", "queue_seconds")
"""Columns of the trace that an instance's provenance keeps for each job, where there is a value."""


def take_rows(table: TraceTable, jobs: int, s: TraceSettings) -> list[dict[str, Any]]:
    """So many rows, as the settings choose them; see `records_of`."""
    return records_of(table.window(s.start, (jobs - 1) * s.every + 1).rows.iloc[:: s.every])


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a trace table with their ``name`` and the seconds ``waited`` since the first."""
    waited = rows["submit_seconds"] - rows["submit_seconds"].iloc[0]
    found: Any = rows.assign(waited=waited, name=job_names(rows)).to_dict("records")
    return list(found)


def job_names(rows: pd.DataFrame) -> list[str]:
    """The trace's own names; with their part before them, or their row behind, to be unique.

    Examples
    --------
    >>> import pandas as pd
    >>> job_names(pd.DataFrame({"job": ["a", "a"], "part": ["x", "y"]}))
    ['x/a', 'y/a']
    """
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
    s: TraceSettings,
    *,
    took: Sequence[str],
    made_up: Sequence[str],
    **told: object,
) -> Draft:
    """A file's data whose jobs have their names in the trace, and that says what came from it.

    Parameters
    ----------
    data : dict
        A file without provenance; its jobs are ``j1, j2, ...`` (with anything behind), one a row.
    rows : list of dict
        The rows of the trace, from `take_rows` or `records_of`.
    table : TraceTable
        The trace.
    seed, s
        What the instance was made with.
    took, made_up : sequence of str
        What the jobs have from the trace, and what was drawn or assumed, in words.
    **told
        What else the provenance says.
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
