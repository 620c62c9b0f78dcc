"""Every shipped example and every real trace reads as it did when ``golden.json`` was written.

``python -m tests.instances.traces.test_golden`` writes that file anew, where a change is meant.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

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
    "kueue": ("kubernetes", "workloads.json", {}),
    "sacct kinds": ("sacct", "kinds.txt", {"time_zone": "UTC"}),
    "sacct partitions": (
        "sacct", "kinds.txt", {"time_zone": "UTC", "columns": {"gpu_kinds": "Partition"}},
    ),
    "kubernetes table": ("kubernetes", "pods_table.csv", {}),
    "elasticflow": ("elasticflow", "elasticflow", {}),
    "openb": ("openb", "pods.csv", {}),
    "openb end": ("openb", "pods.csv", {"settings": {"running": "end"}}),
    "philly": ("philly", "cluster_job_log.json", {}),
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
LARGE = {"elasticflow raw", "philly flat", "nasa", "chronus MIX2", "chronus SLO"}


def plain(cell: object) -> str:
    if not isinstance(cell, tuple) and bool(pd.isna(cell)):
        return ""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(float(f"{cell:.12g}"))
    return str(cell)


def summary(frame: pd.DataFrame) -> dict[str, Any]:
    """Rows, a hash of all cells as text, and the first row."""
    text = frame.reset_index(drop=True)[sorted(frame.columns)].map(plain)
    digest = hashlib.sha256(text.to_csv(index=False).encode()).hexdigest()[:16]
    first = {} if text.empty else {k: v for k, v in text.iloc[0].to_dict().items() if v}
    return {"rows": len(text), "sha256": digest, "first": first}


def read(name: str) -> dict[str, Any]:
    """What a log or trace reads as."""
    form, file, *options = LOGS[name] if name in LOGS else TRACES[name]
    path = REAL / file[1:] if file.startswith("@") else EXAMPLES / file
    if name in TRACES:
        table = hs.load_trace(path, form)
        return {"rows": summary(table.rows), "rejected": table.reasons()}
    log = hs.read_log(path, form, **options[0])
    notes: dict[str, int] = {}
    for note in log.notes.summary():
        key = f"{note['rule']} -> {note['done']}"
        notes[key] = notes.get(key, 0) + note["count"]
    frames = {part: summary(getattr(log, part)) for part in ("jobs", "schedule", "others")}
    return {**frames, "people": summary(log.to_frame()), "notes": notes, "zero": log.stamp(0)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name in LARGE else [])
        for name in (*LOGS, *TRACES)
    ],
)
def test_it_reads_as_before(name: str) -> None:
    file = (LOGS[name] if name in LOGS else TRACES[name])[1]
    if file.startswith("@") and not REAL.is_dir():
        pytest.skip("HINDSCHED_TRACES names no folder of real traces")
    assert json.loads(json.dumps(read(name))) == json.loads(KEPT.read_text())[name]


def write(cases: dict[str, Any]) -> None:
    lines = (f" {json.dumps(n)}: {json.dumps(c, sort_keys=True)}" for n, c in cases.items())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write({name: read(name) for name in (*LOGS, *TRACES)})
