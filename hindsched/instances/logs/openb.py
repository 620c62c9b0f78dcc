"""Alibaba's pod lists: creation, scheduling and deletion of each pod ("openb", and DLRM's).

Pods that ask for whole GPUs are jobs; pods that ask for a share of one are set aside. A pod of
phase ``Running`` ran on when the list was made: its deletion time is the list's, not its end.
Without a creation time a pod was there before the list begins; without a scheduling time it waited.
"""

from __future__ import annotations

import numpy as np

from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.table import Chunk, chunks
from hindsched.instances.logs.times import MISSING


def read(reading: Reading) -> None:
    """Read the list of pods."""
    running = reading.choice("running", ("aside", "end"))
    what = "a pod list of Alibaba's traces with a header"
    for chunk in chunks(reading, reading.source.lines(), what=what):
        _add(reading, chunk, ends_running=running == "end")


def _add(reading: Reading, chunk: Chunk, *, ends_running: bool) -> None:
    submit, start = chunk.times("submit")[0], chunk.times("start")[0]
    end = chunk.times("end")[0]
    thousandths = chunk.thousandths("gpus")
    if chunk.has("share"):
        share = chunk.thousandths("share") // 1000
        shared = (thousandths == 1000) & (share > 0) & (share < 1000)
        thousandths = np.where(shared, share, thousandths)
    if chunk.has("phase"):
        phases = chunk.texts("phase")
        running = np.array([phase == "Running" for phase in phases], dtype=bool)
        if ends_running:
            rule = "still runs: its deletion time is the list's last moment"
            done = "judged as if it ended there"
            whole = running & (thousandths % 1000 == 0) & (thousandths > 0)
            reading.notes.add_all(
                chunk.rows[whole], reading.columns["phase"], "Running", rule, done
            )
        else:
            end = np.where(running, MISSING, end)
    end = np.where(start == MISSING, MISSING, end)  # deleted while it waited
    reading.rows.add(
        ~chunk.broken,
        job=chunk.names("job"),
        row=chunk.rows,
        submit=submit,
        start=start,
        end=end,
        thousandths=thousandths,
        user=chunk.texts("user") if chunk.has("user") else None,
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
    },
)  # fmt: skip
