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

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import read_bytes
from hindsched.instances.traces import published
from hindsched.instances.traces.reading import MOST_GPUS, Format, Reading
from hindsched.instances.traces.times import SECOND, Clock
from hindsched.json_types import JsonObject

REQUIRED = ("job", "part", "submit_seconds", "duration_seconds", "gpus")
DEFAULTS: dict[str, Any] = {
    "user": "", "status": "", "queue_seconds": np.nan, "value_kind": "",
    "deadlines_seconds": (), "values": (),
}  # fmt: skip
TEXTS = ("job", "part", "user", "status", "value_kind")
LOADERS: dict[str, Format] = {
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
        Accepted jobs in order of submission, with the columns above.
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


def load_trace(path: str | Path, trace_format: str, part: str | None = None) -> TraceTable:
    """Load a trace.

    Parameters
    ----------
    path : str or Path
        File or folder.
    trace_format : str
        One of `LOADERS`.
    part : str, optional
        Only this cluster, virtual cluster or file of the trace.

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
        form, source, Clock(form.time_zone, form.time_unit),
        settings={"shares": "whole"} if "shares" in form.settings else {},
        skip_broken=True, keeps_broken=True,
    )  # fmt: skip
    found = form.read(reading)
    if found.empty:
        rules = [str(note["rule"]) for note in reading.notes.summary()]
        raise InputError(str(path), "(no job)", (rules or ["must hold a row a job"])[0])
    rows = _in_seconds(found if "duration" in found else _add_up_attempts(found))
    table = build_table(trace_format, source, rows, sha256=sha256)
    return table if part is None else table.part(part)


def _add_up_attempts(rows: pd.DataFrame) -> pd.DataFrame:
    """Jobs of a neutral frame of attempts: durations add up, GPUs are those of the first."""
    runs = rows.drop_duplicates(["job", "start", "end"])
    of_job = runs["job"]
    jobs = runs.drop_duplicates("job").set_index("job", drop=False).rename_axis(None)
    first = rows.merge(jobs[["job", "start", "end"]].reset_index(drop=True), "inner")
    before = runs["end"].groupby(of_job).shift().fillna(runs["submit"])
    backwards = ((runs["start"] < before) | (runs["end"] < runs["start"])).fillna(False)
    unknown = (runs["start"].isna() | runs["end"].isna()).groupby(of_job).any()
    running = runs["end"].groupby(of_job).apply(lambda ends: pd.isna(ends.iloc[-1]))
    never = jobs["start"].isna() & jobs["end"].isna() & (runs.groupby("job").size() == 1)
    made = jobs.assign(
        gpus=first.groupby("job")["gpus"].sum(),
        duration=(runs["end"] - runs["start"]).groupby(of_job).sum().mask(unknown),
        reason="",
    )
    reasons = {
        "times of the attempts run backwards": backwards.astype(bool).groupby(of_job).any(),
        "an attempt without start or end": unknown,
        "still running when the trace ended": running,
        "never started": never,
        "no submission time": made["submit"].isna(),
    }
    for why, mask in reasons.items():
        made["reason"] = made["reason"].mask(mask.reindex(made.index), why)
    return made.reset_index(drop=True)


def _in_seconds(rows: pd.DataFrame) -> pd.DataFrame:
    """A neutral frame of one row a job in seconds, with the columns of a table."""

    def seconds(times: pd.Series) -> pd.Series:
        return pd.to_numeric(times, errors="coerce").astype("Float64").astype(float) / SECOND

    made = {
        "job": rows["job"],
        "part": rows["part"] if "part" in rows else rows.get("user", ""),
        "submit_seconds": seconds(rows["submit"]),
        "duration_seconds": seconds(rows["duration"]),
        "gpus": rows["gpus"],
        "user": rows["user"] if "part" in rows and "user" in rows else "",
        "status": rows.get("state", ""),
        "queue_seconds": seconds(rows["start"] - rows["submit"]),
    }
    others = ("value_kind", "deadlines_seconds", "values", "reason")
    made |= {name: rows[name] for name in others if name in rows}
    return pd.DataFrame(made, index=rows.index)


def build_table(
    format_name: str, source: Path, raw: pd.DataFrame, *, sha256: str = ""
) -> TraceTable:
    """Sift rows, in the file's order with at least `REQUIRED`, into accepted and rejected ones.

    A text in a column ``reason`` rejects its row; otherwise the first general rule that it breaks.
    """
    raw = raw.reset_index(drop=True)
    absent = {name: [value] * len(raw) for name, value in DEFAULTS.items() if name not in raw}
    made = raw.assign(**absent).astype(dict.fromkeys(TEXTS, str))
    for name in REQUIRED[2:]:
        made[name] = pd.to_numeric(made[name], errors="coerce").astype(float)
    submitted, duration, gpus = (made[name] for name in REQUIRED[2:])
    general = {
        "no submission time": submitted.isna(),
        "no number of GPUs": gpus.isna(),
        "no GPU requested": gpus <= 0,
        "fractional number of GPUs": gpus != gpus.round(),
        f"more than {MOST_GPUS} GPUs": gpus > MOST_GPUS,
        "no duration": duration.isna(),
        "duration not above 0": duration <= 0,
    }
    reason = raw["reason"].astype(object) if "reason" in raw else pd.Series("", index=raw.index)
    for text, broken in general.items():
        reason = reason.mask((reason == "") & broken, text)
    bad = reason != ""
    rejected = made.loc[bad, ["job", "part"]].assign(reason=reason[bad])
    rejected.insert(0, "row", np.flatnonzero(bad) + 1)
    made["submit_seconds"] -= submitted.min()
    # A stable sort: equal submissions keep the file's order.
    rows = made[~bad].astype({"gpus": int}).sort_values("submit_seconds", kind="stable")
    rows = rows[[*REQUIRED, *DEFAULTS]].reset_index(drop=True)
    rejected = rejected.reset_index(drop=True)
    return TraceTable(format_name, source.name, sha256, rows, rejected, len(raw))
