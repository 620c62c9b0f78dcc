"""What every shipped example and every real trace reads as: a hash of each frame and its first row.

``python -m tests.instances.traces.golden`` writes ``golden.json`` anew, where a change is meant.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

import hindsched as hs

KEPT = Path(__file__).with_name("golden.json")
EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
REAL = Path(os.environ.get("HINDSCHED_TRACES") or "/nonexistent")
BERLIN = {"time_zone": "Europe/Berlin"}
DLRM = {"job": "instance_sn", "gpus": "gpu_request", "user": "app_name"}

LOGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "csv": ("csv", "jobs.csv", {}),
    "swf": ("swf", "workload.swf", {}),
    "swf starts": ("swf", "starts.swf", {}),
    "sacct": ("sacct", "sacct.txt", BERLIN),
    "sacct resume": ("sacct", "sacct.txt", {**BERLIN, "settings": {"requeue": "resume"}}),
    "sacct separate": ("sacct", "sacct.txt", {**BERLIN, "settings": {"requeue": "separate"}}),
    "kubernetes": ("kubernetes", "pods.json", {}),
    "kubernetes table": ("kubernetes", "pods_table.csv", {}),
    "tiresias": ("tiresias", "tiresias", {}),
    "tiresias with events": ("tiresias", "elasticflow", {}),
    "elasticflow": ("elasticflow", "elasticflow", {}),
    "openb": ("openb", "pods.csv", {}),
    "openb end": ("openb", "pods.csv", {"settings": {"running": "end"}}),
    "philly": ("philly", "cluster_job_log.json", {}),
    "batsim": ("batsim", "batsim_jobs.csv", {}),
    "batsim pooled": ("batsim", "batsim_jobs.csv", {"settings": {"resources": "no"}}),
    "nasa": ("swf", "@schedules/swf/NASA-iPSC-1993-3.1-cln.swf.gz", {}),
    "openb 2023": ("openb", "@alibaba_v2023/openb_pod_list_default.csv.gz", {}),
    "dlrm 2025": (
        "openb", "@schedules/alibaba_v2025_dlrm.csv.gz", {"columns": DLRM, "time_step": "1"},
    ),
    **{
        f"figure 10 {name}": ("elasticflow", f"@schedules/elasticflow_fig10/{name}.job.csv", {})
        for name in ("dlas-gpu", "edf", "ef-accessctrl", "gandiva", "themis")
    },
}  # fmt: skip
"""Format, file (after @ within the folder of real traces) and options of `read_log`."""

TRACES = {
    "philly log": ("philly", "cluster_job_log.json"),
    "openb example": ("alibaba-2023", "pods.csv"),
    "elasticflow raw": ("elasticflow", "@elasticflow/raw-traces.tar.gz"),
    "philly flat": ("philly", "@philly/philly.csv.gz"),
    "chronus MIX2": ("chronus", "@chronus/trace_job_Philly_MIX2.csv.gz"),
    "chronus SLO": ("chronus", "@chronus/trace_job_Philly_SLO.csv.gz"),
    "alibaba 2023": ("alibaba-2023", "@alibaba_v2023/openb_pod_list_default.csv.gz"),
}


def path_of(name: str) -> Path:
    """Where a case's file is."""
    return REAL / name[1:] if name.startswith("@") else EXAMPLES / name


def summary(frame: pd.DataFrame) -> dict[str, Any]:
    """Rows, a hash of all cells as text, and the first row."""
    cells = frame.reset_index(drop=True)[sorted(frame.columns)]
    text = cells.map(lambda cell: "" if _is_missing(cell) else _plain(cell))
    digest = hashlib.sha256(text.to_csv(index=False).encode()).hexdigest()[:16]
    first = {} if text.empty else {k: v for k, v in text.iloc[0].to_dict().items() if v}
    return {"rows": len(text), "sha256": digest, "first": first}


def log_summary(name: str) -> dict[str, Any]:
    """What a log reads as."""
    form, file, options = LOGS[name]
    log = hs.read_log(path_of(file), form, **options)
    notes: dict[str, int] = {}
    for note in log.notes.summary():
        key = f"{note['rule']} -> {note['done']}"
        notes[key] = notes.get(key, 0) + note["count"]
    return {
        **{part: summary(getattr(log, part)) for part in ("jobs", "schedule", "others")},
        "people": summary(log.to_frame()),
        "gpus": None if log.capacity is None else log.capacity.gpus,
        "facts": len(log.facts),
        "formulation": log.formulation,
        "notes": notes,
        "rows_read": log.rows_read,
        "slots_per_second": log.slots_per_second,
        "waits": [[w.kind, w.rows, round(w.mean, 6), w.p95, w.most] for w in log.waits],
        "zero": log.stamp(0),
    }


def trace_summary(name: str) -> dict[str, Any]:
    """What a trace reads as."""
    form, file = TRACES[name]
    table = hs.load_trace(path_of(file), form)
    return {
        "rows": summary(table.rows),
        "rejected": table.reasons(),
        "parts": len(table.parts()),
        "read": table.rows_read,
    }


def _is_missing(cell: object) -> bool:
    return not isinstance(cell, tuple) and bool(pd.isna(cell))


def _plain(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return repr(float(f"{cell:.12g}")) if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    cases = {**{name: log_summary(name) for name in LOGS}, **{n: trace_summary(n) for n in TRACES}}
    lines = (f" {json.dumps(n)}: {json.dumps(c, sort_keys=True)}" for n, c in cases.items())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
