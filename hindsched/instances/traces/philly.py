"""Philly (Microsoft, 2017): the derived flat CSV, the original JSON log, and the tenants' nodes.

Times are naive local wall clock and cross the end of daylight saving time: they are read in
`TIME_ZONE`, an hour that happens twice as the first of the two, unless that would be before the
event it follows (start after submission, end after start).
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import number, read_table, trace_json, trace_stream
from hindsched.instances.traces.table import TraceTable, build_table
from hindsched.json_types import JsonObject

TIME_ZONE = "America/Los_Angeles"
FLAT_COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")
MISSING = (None, "", "None")
DEFECTS = ("an attempt without start or end", "times of the attempts run backwards")


def load_philly(path: Path) -> TraceTable:
    """Load the flat CSV (plain or gzip) or the original JSON log; part = virtual cluster."""
    if _is_json(path):
        return _load_log(path)
    frame = read_table(path, path, FLAT_COLUMNS)
    raw = pd.DataFrame(
        {
            "job": [f"row-{row}" for row in range(1, len(frame) + 1)],
            "part": frame["cluster"].fillna(""),
            "submit_seconds": local_seconds(frame["timestamp"]),
            "duration_seconds": number(frame, "duration"),
            "gpus": number(frame, "num_gpus"),
        }
    )
    return build_table("philly", path, raw)


def load_virtual_clusters(path: str | Path) -> dict[str, int]:
    """Nodes by virtual cluster from a CSV with the columns ``vc`` and ``node num``."""
    source = Path(path)
    frame = read_table(source, source, ("vc", "node num"))
    nodes = number(frame, "node num")
    for row, (name, count) in enumerate(zip(frame["vc"], nodes, strict=True), start=1):
        if not count > 0 or count != int(count):
            raise InputError(f"{source}:{row}", count, f"{name} must have a whole number of nodes")
    return {str(name): int(count) for name, count in zip(frame["vc"], nodes, strict=True)}


def local_seconds(times: pd.Series) -> pd.Series:
    """Seconds since 1970 of naive local times; what is no time is missing."""
    parsed = pd.to_datetime(times, format="%Y-%m-%d %H:%M:%S", errors="coerce")
    first_of_two = np.ones(len(parsed), dtype=bool)
    aware = parsed.dt.tz_localize(TIME_ZONE, ambiguous=first_of_two, nonexistent="shift_forward")
    seconds = (aware - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return pd.Series(seconds, index=times.index)


def _load_log(path: Path) -> TraceTable:
    """Read the original log: one JSON list of jobs with their attempts."""
    jobs = trace_json(path)
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(str(path), type(jobs).__name__, "must be a JSON list of jobs")
    known = {"jobid", "submitted_time", "vc", "attempts"}
    if jobs and not any(known <= set(job) for job in jobs):
        raise InputError(str(path), ", ".join(jobs[0]), f"must have {', '.join(sorted(known))}")
    facts = pd.DataFrame([_job_facts(job) for job in jobs], columns=list(_job_facts({})))
    submitted = number(facts, "submitted")
    raw = pd.DataFrame(
        {
            "job": facts["job"],
            "part": facts["vc"],
            "submit_seconds": submitted,
            "duration_seconds": facts["service_seconds"],
            "gpus": facts["gpus"],
            "user": facts["user"],
            "status": facts["status"],
            "queue_seconds": number(facts, "first_start") - submitted,
            "censored": facts["censored"],
        }
    )
    rules = [
        (submitted.isna(), "no submission time"),
        (facts["attempts"] == 0, "no attempts: no number of GPUs"),
        (facts["censored"], "still running when the log ended"),
        *((facts["defect"] == reason, reason) for reason in DEFECTS),
    ]
    return build_table("philly", path, raw, rules)


def _job_facts(job: JsonObject) -> JsonObject:
    attempts = [a for a in _list(job.get("attempts")) if isinstance(a, dict)]
    nodes = _list(attempts[0].get("detail")) if attempts else []
    submitted = _seconds(job.get("submitted_time"))
    spans = _spans(attempts, submitted)
    whole = [end - start for start, end in spans if start is not None and end is not None]
    return {
        "job": str(job.get("jobid", "")),
        "vc": str(_present(job.get("vc")) or ""),
        "user": str(_present(job.get("user")) or ""),
        "status": str(_present(job.get("status")) or ""),
        "submitted": submitted,
        "attempts": len(attempts),
        "first_start": spans[0][0] if spans else None,
        "gpus": sum(len(_list(n.get("gpus"))) for n in nodes if isinstance(n, dict)),
        "service_seconds": sum(whole) if len(whole) == len(spans) else None,
        "censored": bool(attempts) and _present(attempts[-1].get("end_time")) is None,
        "defect": _defect(spans, submitted),
    }


Span = tuple[float | None, float | None]


def _spans(attempts: list[JsonObject], submitted: float | None) -> list[Span]:
    """Start and end of each attempt, none of them before what it follows if the clock allows."""
    spans: list[Span] = []
    latest = submitted
    for attempt in attempts:
        start = _seconds(attempt.get("start_time"), latest)
        latest = latest if start is None else start
        end = _seconds(attempt.get("end_time"), latest)
        latest = latest if end is None else end
        spans.append((start, end))
    return spans


def _defect(spans: list[Span], submitted: float | None) -> str:
    """Why the attempts make no service time; empty if they do."""
    if any(start is None or end is None for start, end in spans):
        return DEFECTS[0]
    times = [time for span in spans for time in span if time is not None]
    if submitted is not None and any(a > b for a, b in pairwise([submitted, *times])):
        return DEFECTS[1]
    return ""


def _seconds(value: object, not_before: float | None = None) -> float | None:
    """`local_seconds` of one time; of an hour's two, the second if the first is too early."""
    try:
        naive = datetime.strptime(str(value), "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    zone = ZoneInfo(TIME_ZONE)
    first = naive.replace(tzinfo=zone, fold=0).timestamp()
    if not_before is None or first >= not_before:
        return first
    second = naive.replace(tzinfo=zone, fold=1).timestamp()
    return second if second >= not_before else first


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _present(value: object) -> Any:
    return None if value in MISSING else value


def _is_json(path: Path) -> bool:
    """Tell the log, published as ``cluster_job_log`` without a suffix, by how it begins."""
    if path.name.removesuffix(".gz").endswith(".json"):
        return True
    try:
        return trace_stream(path).read(256).lstrip().startswith(b"[")
    except InputError:
        return False  # the reader of tables says what is wrong
