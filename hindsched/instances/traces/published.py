"""Published traces of jobs: ElasticFlow's, Chronus', Helios', Alibaba's and Philly's flat table.

Each is a table of columns. Their jobs become instances (`hindsched.instances.traces.table`); only
some of them say when a job started.
"""

from __future__ import annotations

import csv
import io
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import decoded, read_bytes
from hindsched.instances.traces.cells import Cells, Format, Reading, read_table
from hindsched.instances.traces.philly import TIME_ZONE

PAI_TASK = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
"""Columns of PAI's task table, which comes without a header."""
CHRONUS_KINDS = {"strict": "strict", "soft": "soft", "best": "best-effort"}


def elasticflow(reading: Reading) -> pd.DataFrame:
    """Ten clusters (Microsoft, 2021): a tar archive, a folder or one file of CSV; each a part.

    Jobs under about 600 seconds were filtered out by the publisher; capacities are not given.
    """
    path = reading.path
    found = sorted(path.glob("*.csv*")) if path.is_dir() else [path]
    files = {file: read_bytes(file)[0] for file in found}
    if path.name.endswith((".tar.gz", ".tgz", ".tar")):
        files = {Path(name): data for name, data in members(path).items() if name.endswith(".csv")}
    if not files:
        raise InputError(str(path), "(no CSV file)", "must hold the clusters' CSV files")
    frames = []
    for file, data in sorted(files.items()):
        names, table = read_table(decoded(data, str(file)), str(file), ",")
        frame = reading.cells_of(names, table, "a cluster's jobs").standard(end=pd.NA, start=pd.NA)
        frames.append(frame.assign(part=file.name.split(".", 1)[0]))
    return pd.concat(frames, ignore_index=True)


def chronus(reading: Reading) -> pd.DataFrame:
    """Philly's jobs with synthetic deadlines and values (SoCC 2021), in minutes.

    ``strict`` jobs have one deadline and value, ``soft`` jobs a list of both (values that fall),
    and best-effort jobs one value without a deadline. The part is the virtual cluster.
    """
    cells = reading.table(",")
    kind = cells.text("job_type").map(CHRONUS_KINDS).fillna("")
    kind = kind.mask(cells.text("best_effort") == "1", "best-effort")
    deadlines, values = (cells.text(role).map(_numbers) for role in ("deadlines", "values"))
    timed = kind.isin(["strict", "soft"])
    broken = pd.Series(
        [
            len(worth) != 1
            if not has_deadline
            else not times or len(times) != len(worth) or sorted(times) != list(times)
            for times, worth, has_deadline in zip(deadlines, values, timed, strict=True)
        ],
        index=kind.index,
    )
    reason = pd.Series("", index=kind.index).mask(broken, "deadlines and values do not match")
    due = deadlines.map(lambda times: tuple(60 * time for time in times))
    return cells.standard(
        start=pd.NA,
        end=pd.NA,
        part=cells.text("user").str.removeprefix("vc_"),
        value_kind=kind,
        deadlines_seconds=due.where(timed, pd.Series([()] * len(kind), index=kind.index)),
        values=values,
        reason=reason.mask(kind == "", "unknown kind of job"),
    )


def helios(reading: Reading) -> pd.DataFrame:
    """The job log of SenseTime (2020); the part is the virtual cluster."""
    cells = reading.table(",")
    frame = cells.standard(end=pd.NA)
    return frame.assign(start=frame["submit"] + cells.spans("queue").to_numpy())


def alibaba_2020(reading: Reading) -> pd.DataFrame:
    """PAI's task table, a row a task; the part is the GPU type.

    GPUs are instances times the planned share of a GPU (in percent), rounded up.
    """
    head = io.StringIO()
    csv.writer(head).writerow(PAI_TASK)
    text = head.getvalue() + reading.text()
    names, table = read_table(text, reading.source, ",", first=0)
    cells = reading.cells_of(names, table, reading.format.what)
    submit, end = cells.times("submit"), cells.times("end")
    instances, share = cells.amounts("instances"), _numeric(cells, "share")
    return cells.neutral(
        job=cells.text("job") + "/" + cells.text("task"),
        part=cells.text("part"),
        submit=submit,
        start=pd.NA,
        end=end,
        duration=end - submit,
        gpus=(instances * np.ceil(share / 100)).fillna(0),
        state=cells.text("state"),
        censored=end.isna(),
        reason=pd.Series("", index=end.index).mask(end.isna(), "still running: no end"),
    )


def philly_flat(reading: Reading) -> pd.DataFrame:
    """The derived flat table of Philly's jobs; the part is the virtual cluster."""
    cells = reading.table(",")
    numbers = [f"row-{number}" for number in range(1, len(cells) + 1)]
    cells.frame["job"] = numbers
    return cells.standard(start=pd.NA, end=pd.NA)


def members(path: Path) -> dict[str, bytes]:
    """Files of a tar archive (plain or compressed) by name.

    Raises
    ------
    InputError
        If it is no archive, or a link in it leads nowhere.
    """
    data, _ = read_bytes(path)
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                stream = archive.extractfile(member) if not member.isdir() else None
                if stream is not None:
                    found[member.name] = stream.read()
    except KeyError as error:
        raise InputError(
            str(path), f"a link that leads nowhere ({error})", "must be files"
        ) from None
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(str(path), str(error), "must be a tar archive") from None
    return found


def _numeric(cells: Cells, role: str) -> pd.Series:
    return pd.to_numeric(cells.text(role), errors="coerce")


def _numbers(text: str) -> tuple[float, ...]:
    """Numbers of ``159-189-229``; empty where one is no number."""
    try:
        return tuple(float(part) for part in text.split("-"))
    except ValueError:
        return ()


ELASTICFLOW = Format(
    name="elasticflow",
    what="ElasticFlow's raw trace",
    read=elasticflow,
    columns={
        "job": "job_id", "submit": "submission_time", "duration": "duration", "gpus": "num_gpu",
    },
    needed=("job", "submit", "duration", "gpus"),
)  # fmt: skip
CHRONUS = Format(
    name="chronus",
    what="Chronus' trace",
    read=chronus,
    columns={
        "job": "job_id", "user": "user", "gpus": "num_gpu", "submit": "submit_time",
        "duration": "duration", "deadlines": "expect_time_list", "values": "expect_value_list",
        "best_effort": "best_effort", "job_type": "job_type",
    },
    needed=(
        "job", "user", "gpus", "submit", "duration", "deadlines", "values", "best_effort",
        "job_type",
    ),
    time_unit="min",
)  # fmt: skip
HELIOS = Format(
    name="helios",
    what="Helios' job log",
    read=helios,
    columns={
        "job": "job_id", "user": "user", "part": "vc", "gpus": "gpu_num", "state": "state",
        "submit": "submit_time", "duration": "duration", "queue": "queue",
    },
    needed=("job", "user", "part", "gpus", "state", "submit", "duration", "queue"),
    time_zone="UTC",
)  # fmt: skip
ALIBABA_2020 = Format(
    name="alibaba-2020",
    what="PAI's task table",
    read=alibaba_2020,
    columns={
        "job": "job_name", "task": "task_name", "part": "gpu_type", "submit": "start_time",
        "end": "end_time", "instances": "inst_num", "share": "plan_gpu", "state": "status",
    },
)  # fmt: skip
PHILLY_FLAT = Format(
    name="philly",
    what="Philly's flat table of jobs",
    read=philly_flat,
    columns={
        "submit": "timestamp", "duration": "duration", "gpus": "num_gpus", "part": "cluster",
    },
    needed=("submit", "duration", "gpus", "part"),
    time_zone=TIME_ZONE,
)  # fmt: skip
