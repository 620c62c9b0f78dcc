"""Alibaba's pod lists: creation, scheduling and deletion of each pod ("openb", and DLRM's).

Pods that ask for whole GPUs are jobs; what one does that asks for a share is a setting. A pod of
phase ``Running`` ran on when the list was made: its deletion time is the list's, not its end.
Without a creation time a pod was there before the list begins; without a scheduling time it waited.
"""

from __future__ import annotations

import pandas as pd

from hindsched.instances.traces.cells import Format, Reading


def read(reading: Reading) -> pd.DataFrame:
    """Read the list of pods."""
    ends_running = reading.choice("running", ("aside", "end")) == "end"
    counts_shares = reading.choice("shares", ("aside", "whole")) == "whole"
    cells = reading.table(",", what="a pod list of Alibaba's traces with a header")
    submit, start, end = cells.times("submit"), cells.times("start"), cells.times("end")
    gpus = cells.amounts("gpus")
    if cells.has("share") and not counts_shares:
        share = cells.amounts("share") // 1 / 1000
        gpus = share.where((gpus == 1) & (share > 0) & (share < 1), gpus)
    running = cells.text("phase") == "Running"
    if ends_running:
        rule = "still runs: its deletion time is the list's last moment"
        whole = running & (gpus % 1 == 0) & (gpus > 0)
        cells.note(whole, "phase", "Running", rule, "judged as if it ended there")
    else:
        end = end.mask(running)
    return cells.neutral(
        job=cells.names("job"),
        submit=submit,
        start=start,
        end=end.where(start.notna()),  # deleted while it waited
        gpus=gpus,
        user=cells.text("user") if cells.has("user") else None,
        state=cells.text("phase") if cells.has("phase") else None,
    )


FORMAT = Format(
    name="openb",
    what="a pod list of Alibaba's traces",
    read=read,
    columns={
        "job": "name", "submit": "creation_time", "start": "scheduled_time",
        "end": "deletion_time", "gpus": "num_gpu", "share": "gpu_milli", "phase": "pod_phase",
        "user": "qos",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={
        "running": ("aside", "pods that still run: aside (not judged) or end (at the list's end)"),
        "shares": ("aside", "pods that ask for a share of a GPU: aside, or whole (one GPU)"),
    },
)  # fmt: skip
