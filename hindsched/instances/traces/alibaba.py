"""Alibaba's GPU clusters: PAI 2020 by its tables' headers, and "openb" 2023; server shapes of both.

PAI's tables come without headers; `PAI_TASK` and `PAI_MACHINE` name their columns. GPUs are given
in percent of a GPU there and in thousandths in openb; jobs that ask for a share of one GPU count as
one GPU.
"""

from __future__ import annotations

import tarfile
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.reading import member_stream, number, read_table
from hindsched.instances.traces.table import TraceTable, build_table

PAI_TASK = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
PAI_MACHINE = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
OPENB_POD = (
    "name", "num_gpu", "gpu_milli", "qos", "pod_phase", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
OPENB_NODE = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


@dataclass(frozen=True)
class ServerShape:
    """A kind of server and how many there are.

    Parameters
    ----------
    model : str
        GPU model, empty for none.
    gpus : int
        GPUs.
    cpus : float
        CPU cores.
    memory_gb : float
        Memory in GB.
    count : int
        Servers of this shape.
    """

    model: str
    gpus: int
    cpus: float
    memory_gb: float
    count: int


def load_alibaba_2020(path: Path) -> TraceTable:
    """Load ``pai_task_table`` (no header, plain or gzip): a row a task, part = GPU type.

    GPUs are instances times the planned share, rounded up; what still ran has no end and is
    rejected as censored.
    """
    frame = read_table(path, path, (), names=PAI_TASK)
    start, end = number(frame, "start_time"), number(frame, "end_time")
    gpus = number(frame, "inst_num") * np.ceil(number(frame, "plan_gpu") / 100)
    raw = pd.DataFrame(
        {
            "job": frame["job_name"] + "/" + frame["task_name"],
            "part": frame["gpu_type"].fillna(""),
            "submit_seconds": start,
            "duration_seconds": end - start,
            "gpus": gpus.fillna(0),
            "status": frame["status"].fillna(""),
            "censored": end.isna(),
        }
    )
    return build_table("alibaba-2020", path, raw, [(end.isna(), "still running: no end")])


def load_alibaba_2023(path: Path) -> TraceTable:
    """Load an openb pod list; part = quality of service.

    Pods that still ran when the trace ended have an end that is the trace's, no service time.
    """
    frame = read_table(path, path, OPENB_POD)
    created, deleted = number(frame, "creation_time"), number(frame, "deletion_time")
    scheduled = number(frame, "scheduled_time")
    running = frame["pod_phase"] == "Running"
    raw = pd.DataFrame(
        {
            "job": frame["name"],
            "part": frame["qos"].fillna(""),
            "submit_seconds": created,
            "duration_seconds": deleted - scheduled,
            "gpus": number(frame, "num_gpu"),
            "status": frame["pod_phase"].fillna(""),
            "queue_seconds": scheduled - created,
            "censored": running,
        }
    )
    rules = [
        (running, "still running when the trace ended"),
        (scheduled.isna(), "never scheduled"),
    ]
    return build_table("alibaba-2023", path, raw, rules)


def load_server_shapes(path: str | Path) -> list[ServerShape]:
    """Server shapes from PAI's machine table (CSV or tar.gz) or an openb node list.

    Returns
    -------
    list of ServerShape
        Most frequent first.
    """
    source = Path(path)
    if ".tar" in source.name or source.name.endswith(".tgz"):
        try:
            with tarfile.open(source) as archive:
                member = next(m for m in archive.getmembers() if m.isfile())
                frame = read_table(source, member_stream(archive, member), (), names=PAI_MACHINE)
        except (tarfile.TarError, StopIteration, OSError, EOFError, zlib.error) as error:
            raise InputError(str(source), str(error), "must be a tar archive of a table") from None
        shapes = _pai_shapes(frame)
    elif "pai_machine" in source.name:
        shapes = _pai_shapes(read_table(source, source, (), names=PAI_MACHINE))
    else:
        frame = read_table(source, source, OPENB_NODE)
        shapes = pd.DataFrame(
            {
                "model": frame["model"].fillna(""),
                "gpus": number(frame, "gpu"),
                "cpus": number(frame, "cpu_milli") / 1000,
                "memory_gb": number(frame, "memory_mib") / 1024,
            }
        )
    bad = shapes.isna().any(axis=1)
    if bad.any():
        row = int(bad.to_numpy().argmax()) + 1
        raise InputError(f"{source}:{row}", "(no number)", "capacities must be numbers")
    counts: Counter[tuple[str, int, float, float]] = Counter(
        (str(model), int(gpus), float(cpus), float(memory))
        for model, gpus, cpus, memory in shapes.to_numpy().tolist()
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ServerShape(*shape, count=count) for shape, count in ordered]


def _pai_shapes(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": frame["gpu_type"].fillna("").replace("CPU", ""),
            "gpus": number(frame, "cap_gpu"),
            "cpus": number(frame, "cap_cpu"),
            "memory_gb": number(frame, "cap_mem"),
        }
    )
