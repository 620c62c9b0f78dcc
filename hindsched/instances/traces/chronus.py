"""Chronus (SoCC 2021): Philly jobs with synthetic deadlines and values. Times are in minutes.

``strict`` jobs have one deadline and value, ``soft`` jobs a list of both (values that fall), and
best-effort jobs one value (10) without a deadline: the trace repeats their submission time in its
place. About 200 rows ask for no GPU.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from hindsched.instances.traces.reading import number, read_table
from hindsched.instances.traces.table import TraceTable, build_table

COLUMNS = (
    "job_id", "user", "num_gpu", "submit_time", "duration", "expect_time_list",
    "expect_value_list", "best_effort", "job_type",
)  # fmt: skip
KINDS = {"strict": "strict", "soft": "soft", "best": "best-effort"}


def load_chronus(path: Path) -> TraceTable:
    """Load a Chronus CSV (SLO, MIX1 or MIX2); part = virtual cluster (the column ``user``)."""
    frame = read_table(path, path, COLUMNS)
    kind = frame["job_type"].map(KINDS).fillna("")
    kind = kind.mask(number(frame, "best_effort") == 1, "best-effort")
    deadlines = frame["expect_time_list"].map(_numbers)
    values = frame["expect_value_list"].map(_numbers)
    timed = kind.isin(["strict", "soft"])
    broken = pd.Series(
        [
            len(worth) != 1
            if not is_timed
            else not times or len(times) != len(worth) or sorted(times) != list(times)
            for times, worth, is_timed in zip(deadlines, values, timed, strict=True)
        ],
        index=frame.index,
    )
    raw = pd.DataFrame(
        {
            "job": frame["job_id"],
            "part": frame["user"].fillna("").str.removeprefix("vc_"),
            "submit_seconds": 60 * number(frame, "submit_time"),
            "duration_seconds": 60 * number(frame, "duration"),
            "gpus": number(frame, "num_gpu"),
            "user": frame["user"].fillna(""),
            "value_kind": kind,
            "deadlines_seconds": [
                tuple(60 * time for time in times) if is_timed else ()
                for times, is_timed in zip(deadlines, timed, strict=True)
            ],
            "values": values,
        }
    )
    rules = [(kind == "", "unknown kind of job"), (broken, "deadlines and values do not match")]
    return build_table("chronus", path, raw, rules)


def _numbers(text: object) -> tuple[float, ...]:
    """Numbers of ``159-189-229``; empty where one is no number."""
    try:
        return tuple(float(part) for part in str(text).split("-"))
    except ValueError:
        return ()
