"""Traces as jobs: a row a job of any published trace, and what was rejected with its reason.

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
value_kind          ``strict``, ``soft`` or ``best-effort`` where the trace has values, else empty
deadlines_seconds   deadlines relative to submission, ascending; empty tuple for none
values              value if finished within each deadline; for ``best-effort`` one value
==================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import read_bytes
from hindsched.instances.traces import published, schedulers
from hindsched.instances.traces.reading import MOST_GPUS, Format, Reading, known_true
from hindsched.instances.traces.times import SECOND, LogClock
from hindsched.json_types import JsonObject

LOADERS: dict[str, Format] = {
    "csv": replace(
        schedulers.CSV, needed=("job", "submit", "duration", "gpus"), time_zone="UTC"
    ),  # without offset: only differences count
    "elasticflow": published.ELASTICFLOW,
    "philly": published.PHILLY_FLAT,
    "chronus": published.CHRONUS,
    "helios": published.HELIOS,
    "alibaba-2020": published.ALIBABA_2020,
    "alibaba-2023": published.OPENB,
}
"""Formats of traces by their word."""


@dataclass(frozen=True)
class TraceTable:
    """Jobs of a trace."""

    format: str
    source: str  # name of the file or folder read, without its path
    sha256: str  # of what was read, empty for a folder
    rows: pd.DataFrame  # accepted jobs in order of submission, with the columns above
    rejected: pd.DataFrame  # row (counted from 1), job, part, reason
    rows_read: int  # accepted and rejected
    selected_part: str = ""  # that `part` has chosen, empty for all

    def __len__(self) -> int:
        return len(self.rows)

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
        """Take the first `num_jobs` jobs submitted at or after `start_seconds`, or `InputError`."""
        later = self.rows[self.rows["submit_seconds"] >= start_seconds]
        if len(later) < num_jobs:
            rule = f"the trace has {len(later)} jobs from second {start_seconds:g} on"
            raise InputError("jobs", num_jobs, rule)
        rows = later.head(num_jobs).reset_index(drop=True)
        return replace(self, rows=rows, rejected=self.rejected.head(0), rows_read=len(rows))

    def reasons(self) -> dict[str, int]:
        """Number of rejections by reason."""
        return {str(why): int(n) for why, n in self.rejected.groupby("reason").size().items()}

    def provenance(self) -> JsonObject:
        """What an instance made from this table should remember."""
        origin: JsonObject = {
            "trace": self.source,
            "trace_format": self.format,
            "trace_sha256": self.sha256,
        }
        return {**origin, "trace_part": self.selected_part} if self.selected_part else origin


def load_trace(
    path: str | Path, trace_format: str, part: str | None = None, *,
    columns: Mapping[str, str] | None = None,
) -> TraceTable:  # fmt: skip
    """Load a trace.

    Parameters
    ----------
    path : str or Path
        File or folder.
    trace_format : str
        One of `LOADERS`.
    part : str, optional
        Only this cluster, virtual cluster or file of the trace.
    columns : mapping, optional
        The trace's column for a role, where it is not the format's own.

    Raises
    ------
    InputError
        For an unknown format or part, or a file that is not of the format.

    Examples
    --------
    >>> import hindsched as hs
    >>> from pathlib import Path
    >>> rows = ["job_id,submission_time,duration,num_gpu", "a,0,600,1", "b,60,0,2"]
    >>> _ = Path("jobs.csv").write_text(chr(10).join(rows))
    >>> table = hs.load_trace("jobs.csv", "elasticflow")
    >>> len(table), table.reasons()
    (1, {'duration not above 0': 1})
    """
    if trace_format not in LOADERS:
        raise InputError("trace_format", trace_format, f"must be one of {', '.join(LOADERS)}")
    source = Path(path)
    if not source.exists():
        raise InputError(str(path), "(absent)", "must be a file or folder")
    data, sha256 = (b"", "") if source.is_dir() else read_bytes(source)
    form = LOADERS[trace_format]
    if trace_format == "philly" and data.lstrip()[:1] in (b"[", b"{"):
        form = published.PHILLY_LOG
    reading = Reading(
        form, source, LogClock(form.time_zone, form.time_unit), columns or {},
        settings={"shares": "whole"} if "shares" in form.settings else {},
        skip_broken=True, keeps_broken=True,
    )  # fmt: skip
    rows = form.read(reading)
    if rows.empty:
        rules = [str(note["rule"]) for note in reading.notes.summary()]
        raise InputError(str(path), "(no job)", (rules or ["must hold a row a job"])[0])
    table = build_table(trace_format, source, rows, sha256)
    return table if part is None else table.part(part)


def build_table(form: str, source: Path, rows: pd.DataFrame, sha256: str = "") -> TraceTable:
    """Sift the rows of a neutral frame, in the file's order, into accepted and rejected ones.

    Rows without durations are attempts. A text in a column ``reason`` rejects its row; otherwise
    the first general rule that it breaks.
    """
    rows = (rows if "duration" in rows else _add_up_attempts(rows)).reset_index(drop=True)
    nothing: dict[str, Any] = {
        "start": pd.NA, "user": "", "state": "", "reason": "", "value_kind": "",
        "deadlines_seconds": [()] * len(rows), "values": [()] * len(rows),
    }  # fmt: skip
    has_part = "part" in rows
    rows = rows.assign(**{name: none for name, none in nothing.items() if name not in rows})
    submit, duration = _seconds(rows["submit"]), _seconds(rows["duration"])
    gpus = rows["gpus"].astype(float)
    rules = {
        "no submission time": submit.isna(),
        "no number of GPUs": gpus.isna(),
        "no GPU requested": gpus <= 0,
        "fractional number of GPUs": gpus != gpus.round(),
        f"more than {MOST_GPUS} GPUs": gpus > MOST_GPUS,
        "no duration": duration.isna(),
        "duration not above 0": duration <= 0,
    }
    broken = pd.Series(np.select([*rules.values()], [*rules], ""), index=rows.index)
    reason = rows["reason"].where(rows["reason"] != "", broken)
    made = pd.DataFrame({
        "job": rows["job"].astype(str),
        "part": rows["part" if has_part else "user"].astype(str),
        "submit_seconds": submit - submit.min(),
        "duration_seconds": duration,
        "gpus": gpus,
        "user": rows["user"] if has_part else "",
        "status": rows["state"],
        "queue_seconds": _seconds(rows["start"]) - submit,
        **{name: rows[name] for name in ("value_kind", "deadlines_seconds", "values")},
    })  # fmt: skip
    bad = reason != ""
    rejected = made.loc[bad, ["job", "part"]].assign(reason=reason[bad])
    rejected.insert(0, "row", np.flatnonzero(bad) + 1)
    # A stable sort: equal submissions keep the file's order.
    accepted = made[~bad].astype({"gpus": int}).sort_values("submit_seconds", kind="stable")
    accepted, rejected = (frame.reset_index(drop=True) for frame in (accepted, rejected))
    return TraceTable(form, source.name, sha256, accepted, rejected, len(rows))


def _seconds(times: pd.Series) -> pd.Series:
    return times.astype("Float64").astype(float) / SECOND


def _add_up_attempts(rows: pd.DataFrame) -> pd.DataFrame:
    """Jobs of a frame of attempts: durations add up, GPUs are those of the first."""
    attempt = ["job", "start", "end"]  # a row a server
    gpus = rows.groupby(attempt, dropna=False)["gpus"].transform("sum")
    rows = rows.assign(gpus=gpus).drop_duplicates(attempt)
    start, end, by = rows["start"], rows["end"], rows.groupby("job", sort=False)
    before = by["end"].shift().fillna(rows["submit"])
    attempts = pd.DataFrame({
        "job": rows["job"],
        "length": end - start,
        "is_unknown": start.isna() | end.isna(),
        "runs_backwards": known_true((start < before) | (end < start)),
        "never_ran": start.isna() & end.isna() & (by["job"].transform("size") == 1),
        "still_runs": end.isna() & ~rows["job"].duplicated(keep="last"),
    }).groupby("job", sort=False)  # fmt: skip
    jobs = rows.drop_duplicates("job").set_index("job", drop=False).rename_axis(None)
    unknown = attempts["is_unknown"].any()
    reasons = {
        "no submission time": jobs["submit"].isna(),
        "never started": attempts["never_ran"].any(),
        "still running when the trace ended": attempts["still_runs"].any(),
        "an attempt without start or end": unknown,
        "times of the attempts run backwards": attempts["runs_backwards"].any(),
    }
    return jobs.assign(
        duration=attempts["length"].sum().mask(unknown),
        reason=np.select([*reasons.values()], [*reasons], ""),
    )
