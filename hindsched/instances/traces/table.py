"""One table for every trace: a row a job, and what was rejected with its reason.

==================  ======================================================================
column              meaning
==================  ======================================================================
job                 the trace's own job identifier
part                cluster, virtual cluster or file within the trace
submit_seconds      submission, seconds since the first row read of the trace (all parts)
duration_seconds    service time
gpus                GPUs, at least 1
user                user or group, empty where the trace has none
status              outcome in the trace's own word, empty where it has none
queue_seconds       time between submission and start; NaN where the trace has none
censored            True if the job still ran when the trace ended
value_kind          ``strict``, ``soft`` or ``best-effort`` where the trace has values, else empty
deadlines_seconds   deadlines relative to submission, ascending; empty tuple for none
values              value if finished within each deadline; for ``best-effort`` one value
==================  ======================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.json_types import JsonObject

DEFAULTS: dict[str, str | float] = {
    "user": "",
    "status": "",
    "queue_seconds": np.nan,
    "censored": False,
    "value_kind": "",
}
REQUIRED = ("job", "part", "submit_seconds", "duration_seconds", "gpus")
COLUMNS = (*REQUIRED, *DEFAULTS, "deadlines_seconds", "values")

MOST_GPUS = 1_000_000
"""A job that asks for more is a mistake of the trace."""

Rule = tuple[pd.Series, str]
"""Rows for which a rule is broken, and what to call it."""


@dataclass(frozen=True)
class TraceTable:
    """Jobs of a trace.

    Parameters
    ----------
    format : str
        Name of the format.
    source : str
        Name of the file or folder read (without its path).
    sha256 : str
        Hash of what was read, empty for a folder.
    rows : DataFrame
        Accepted jobs in order of submission, with `COLUMNS`.
    rejected : DataFrame
        Columns ``row`` (1-based data row), ``job``, ``part``, ``reason``.
    rows_read : int
        Accepted plus rejected.
    selected_part : str
        The part that `part` has chosen, empty for all.
    """

    format: str
    source: str
    sha256: str
    rows: pd.DataFrame
    rejected: pd.DataFrame
    rows_read: int
    selected_part: str = ""

    def __post_init__(self) -> None:
        if tuple(self.rows.columns) != COLUMNS:
            raise ValueError(f"columns {tuple(self.rows.columns)}, not {COLUMNS}")
        if len(self.rows) + len(self.rejected) != self.rows_read:
            raise ValueError(f"{len(self.rows)} + {len(self.rejected)} != {self.rows_read}")

    def __len__(self) -> int:
        return len(self.rows)

    def parts(self) -> list[str]:
        """Names of the parts that have accepted jobs, sorted."""
        return sorted(self.rows["part"].unique())

    def part(self, name: str) -> Self:
        """Only the jobs of one part (and its rejections)."""
        known = sorted({*self.rows["part"], *self.rejected["part"]})
        if name not in known:
            raise InputError("trace_part", name, f"must be one of {', '.join(known)}")
        rows = self.rows[self.rows["part"] == name].reset_index(drop=True)
        rejected = self.rejected[self.rejected["part"] == name].reset_index(drop=True)
        read = len(rows) + len(rejected)
        return replace(self, rows=rows, rejected=rejected, rows_read=read, selected_part=name)

    def window(self, start_seconds: float, num_jobs: int) -> Self:
        """Take the first `num_jobs` jobs submitted at or after `start_seconds`.

        Raises
        ------
        InputError
            If there are fewer.
        """
        later = self.rows[self.rows["submit_seconds"] >= start_seconds]
        if len(later) < num_jobs:
            rule = f"the trace has {len(later)} jobs from second {start_seconds:g} on"
            raise InputError("jobs", num_jobs, rule)
        rows = later.head(num_jobs).reset_index(drop=True)
        return replace(self, rows=rows, rejected=self.rejected.head(0), rows_read=len(rows))

    def reasons(self) -> dict[str, int]:
        """Number of rejections by reason."""
        counts = self.rejected["reason"].value_counts(sort=False)
        return {str(reason): int(counts[reason]) for reason in sorted(counts.index)}

    def describe(self) -> JsonObject:
        """Facts of the table, for a person."""
        rows = self.rows
        demand = float((rows["duration_seconds"] * rows["gpus"]).sum())
        span = (
            float(rows["submit_seconds"].max() - rows["submit_seconds"].min()) if len(rows) else 0
        )
        return {
            "format": self.format,
            "source": self.source,
            "rows": self.rows_read,
            "accepted": len(rows),
            "rejected": self.reasons(),
            "parts": self.parts(),
            "span_seconds": span,
            "gpu_seconds": demand,
            "mean_gpus_in_use": demand / span if span > 0 else None,
        }

    def provenance(self) -> JsonObject:
        """What an instance made from this table should remember."""
        origin: JsonObject = {
            "trace": self.source,
            "trace_format": self.format,
            "trace_sha256": self.sha256,
        }
        return {**origin, "trace_part": self.selected_part} if self.selected_part else origin


def build_table(
    name: str, source: Path, raw: pd.DataFrame, rules: Sequence[Rule] = ()
) -> TraceTable:
    """Sift rows into accepted and rejected ones.

    Parameters
    ----------
    name : str
        Name of the format.
    source : Path
        What was read.
    raw : DataFrame
        One row a data row, in the file's order, with at least `REQUIRED`; numbers may be missing.
    rules : sequence of (Series of bool, str)
        The format's own reasons for rejection, before the general ones. The first that applies
        counts.
    """
    raw = raw.reset_index(drop=True)
    for column, value in DEFAULTS.items():
        if column not in raw:
            raw[column] = value
    for column in ("deadlines_seconds", "values"):
        if column not in raw:
            raw[column] = [()] * len(raw)
    numbers = {c: pd.to_numeric(raw[c], errors="coerce") for c in REQUIRED[2:]}
    general: list[Rule] = [
        (numbers["submit_seconds"].isna(), "no submission time"),
        (~np.isfinite(numbers["submit_seconds"]), "infinite submission time"),
        (numbers["gpus"].isna(), "no number of GPUs"),
        (~np.isfinite(numbers["gpus"]), "infinite number of GPUs"),
        (numbers["gpus"] <= 0, "no GPU requested"),
        (numbers["gpus"] != numbers["gpus"].round(), "fractional number of GPUs"),
        (numbers["gpus"] > MOST_GPUS, f"more than {MOST_GPUS} GPUs"),
        (numbers["duration_seconds"].isna(), "no duration"),
        (~np.isfinite(numbers["duration_seconds"]), "infinite duration"),
        (numbers["duration_seconds"] <= 0, "duration not above 0"),
    ]
    reason = pd.Series([""] * len(raw), dtype=object)
    for broken, text in (*rules, *general):
        reason[(reason == "") & broken.reset_index(drop=True)] = text
    bad = reason != ""
    rejected = pd.DataFrame(
        {
            "row": np.flatnonzero(bad) + 1,
            "job": raw.loc[bad, "job"].astype(str).to_numpy(),
            "part": raw.loc[bad, "part"].astype(str).to_numpy(),
            "reason": reason[bad].to_numpy(),
        }
    )
    rows = raw.loc[~bad, list(COLUMNS)].copy()
    for column, values in numbers.items():
        rows[column] = values[~bad].astype(float)
    rows["gpus"] = rows["gpus"].astype(int)
    submitted = numbers["submit_seconds"]
    rows["submit_seconds"] -= submitted[np.isfinite(submitted)].min()
    for column in ("job", "part", "user", "status", "value_kind"):
        rows[column] = rows[column].astype(str)
    # A stable sort: equal submissions keep the file's order.
    rows = rows.sort_values("submit_seconds", kind="stable").reset_index(drop=True)
    return TraceTable(name, source.name, file_sha256(source), rows, rejected, len(raw))


def submit_slots(table: TraceTable, slot_seconds: float, first_slot: int = 1) -> Ints:
    """Slot of each submission: the table's first job falls into `first_slot`.

    Parameters
    ----------
    table : TraceTable
        The jobs.
    slot_seconds : float
        Length of a slot.
    first_slot : int
        Slot of the earliest submission.

    Returns
    -------
    ndarray of int, shape (len(table),)

    Raises
    ------
    InputError
        If the length is not above 0.
    """
    if not 0 < slot_seconds < np.inf:
        raise InputError("slot_seconds", slot_seconds, "must be a number above 0")
    submitted = table.rows["submit_seconds"].to_numpy(dtype=float)
    start = submitted.min(initial=np.inf)
    slots: Ints = np.floor((submitted - start) / slot_seconds).astype(np.int64)
    return slots + first_slot


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes; empty for a folder."""
    if not path.is_file():
        return ""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
