"""Published traces: each a table of columns, or Philly's list of jobs in JSON.

All become instances (`hindsched.instances.traces.table`); openb's and Philly's say when jobs
started, so that their schedules can be judged as well.
"""

from __future__ import annotations

import io
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import decoded, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.reading import (
    NONE_WORDS,
    Format,
    Malformed,
    Reading,
    inner_list,
    known_true,
    read_table,
)

PHILLY_ZONE = "America/Los_Angeles"
PHILLY = ("job", "submit", "start", "end", "gpus", "server", "user", "part", "state")
PAI_TASK = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
"""Columns of PAI's task table, which comes without a header."""
JOBS, EVENTS = "job.csv", "scheduling_events.csv"
CHRONUS_KINDS = {"strict": "strict", "soft": "soft", "best": "best-effort"}


def elasticflow(log: Reading) -> pd.DataFrame:
    """Ten clusters (Microsoft, 2021): a tar archive, a folder or one file of CSV; each a part.

    Jobs under about 600 seconds were filtered out by the publisher; capacities are not given.
    """
    path = log.path
    if path.name.endswith((".tar.gz", ".tgz", ".tar")):
        files = _members(path)
    else:
        paths = sorted(path.glob("*.csv*")) if path.is_dir() else [path]
        files = {file.name: read_bytes(file)[0] for file in paths}
    if not files:
        raise InputError(str(path), "(no CSV file)", "must hold the clusters' CSV files")
    frames = []
    for name, data in sorted(files.items()):
        table = read_table(decoded(data, name), name, ",")
        log.take_table(table, "a cluster's jobs")
        frames.append(log.standard().assign(part=name.split(".", 1)[0]))
    return pd.concat(frames, ignore_index=True)


def elasticflow_schedule(log: Reading) -> pd.DataFrame:
    """ElasticFlow's simulator: ``job.csv`` and its table of events, which says who held each GPU.

    A row of ``scheduling_events.csv`` says which job holds each GPU (``gpu<server>-<k>``) from its
    time to the next row's. A job that ends in between holds its GPUs until its ``end_time``: they
    stand idle till the round is over. Widths change: what a job did is the GPU-seconds it held.
    """
    if log.path.is_dir():
        log.path = next(iter(sorted(log.path.glob(f"{JOBS}*"))), log.path / JOBS)
    log.table(",", what="job.csv of the simulator, with a header")
    stem, is_job_file, _ = log.path.name.rpartition(JOBS)
    near = sorted(log.path.parent.iterdir()) if is_job_file else []
    beside = [file for file in near if file.name.startswith(f"{stem}{EVENTS}")]
    if log.settings["events"] != "beside":
        beside = [Path(log.settings["events"])]
    if not beside:
        rule = "must have scheduling_events.csv beside it (--set events=FILE): widths are unknown"
        raise InputError(log.source, "(no events)", rule)
    nothing = pd.Series(pd.NA, index=log.cells.index, dtype="Int64")
    frame = log.standard(start=nothing, end=log.times("end"), gpus=None)
    held = _held(log, beside[0])
    for job in held[~held["job"].isin(frame["job"])]["job"].unique():
        rule = "is not in job.csv"
        log.notes.add(0, "(events)", f"job {job}", rule, "its GPUs are not counted")
    idle = frame[~frame["job"].isin(held["job"])]
    log.notes.add(idle["row"], "job_id", idle["job"], "is in no event", "never held a GPU")
    made = frame.drop(columns="start").merge(held, on="job", how="left")
    made["end"] = made[["until", "end"]].min(axis=1).where(made["start"].notna())
    made["gpus"], made["server"] = made["gpus"].fillna(0.0), made["server"].fillna("")
    gone = known_true(made["start"] >= made["end"])
    return made[~gone].drop(columns="until").reset_index(drop=True)


def _held(log: Reading, path: Path) -> pd.DataFrame:
    """Stretches of time in which a job held so many GPUs of a server; sets the capacity."""
    what = "a table of events"
    text = decoded(read_bytes(path, log.most_bytes)[0], str(path))
    table = read_table(text, str(path), ",", what=what)
    names = [str(name) for name in table][:-1]
    servers = pd.Series(names, names).str.extract(r"(?a:^gpu(\d+)-\d+$)")[0].dropna()
    if "time" not in names or servers.empty:
        rule = "must have a column time and a column gpu<server>-<k> for each GPU"
        raise InputError(f"{path}, row 1", ", ".join(names[:5]), rule)
    form = Format("events", what, job_table, columns={n: n for n in names}, missing=())
    events = Reading(form, path, log.clock, hint="")
    events.take_table(table, what)
    log.rows_read += events.rows_read
    moments = events.times("time")
    back, rule = known_true(moments.diff() <= 0), "must be later than the row before"
    events.refuse(back, "time", events.text("time"), rule)
    each: Any = events.cells[list(servers.index)].set_axis(range(len(table)), axis=0)
    each = each.iloc[:-1].stack()  # the last row ends what the one before it says
    each = each[each != ""].rename("job").rename_axis(["at", "gpu"]).reset_index()
    each["server"] = each["gpu"].map(servers)
    counts = each.groupby(["job", "server", "at"]).size().rename("gpus").reset_index()
    before = counts.groupby(["job", "server"]).shift()
    changes = (counts["at"] != before["at"] + 1) | (counts["gpus"] != before["gpus"])
    held = counts.groupby(changes.cumsum()).agg(
        job=("job", "first"), start=("at", "first"), until=("at", "last"),
        server=("server", "first"), gpus=("gpus", "first"),
    )  # fmt: skip
    held["until"] = moments.iloc[held["until"] + 1].array
    held["start"] = moments.iloc[held["start"]].array
    gpus = servers.value_counts()
    named = tuple((name, int(gpus[name])) for name in sorted(gpus.index, key=int))
    log.capacity = Capacity(len(servers), named, "the columns of the events")
    return held.astype({"gpus": float})


def chronus(log: Reading) -> pd.DataFrame:
    """Philly's jobs with synthetic deadlines and values (SoCC 2021), in minutes.

    ``strict`` jobs have one deadline and value, ``soft`` jobs a list of both (values that fall),
    and best-effort jobs one value without a deadline. The part is the virtual cluster.
    """
    log.table(",")
    kind = log.text("job_type").map(CHRONUS_KINDS).fillna("")
    kind = kind.mask(log.text("best_effort") == "1", "best-effort")
    due, values = (log.text(role).map(_numbers) for role in ("deadlines", "values"))
    timed = kind.isin(["strict", "soft"])
    broken = [
        len(worth) != (len(times) if has_deadline else 1)
        or (has_deadline and (not times or sorted(times) != list(times)))
        for times, worth, has_deadline in zip(due, values, timed, strict=True)
    ]
    wrong = pd.Series(broken, index=kind.index)
    reason = pd.Series("", index=kind.index).mask(wrong, "deadlines and values do not match")
    seconds = due.map(lambda times: tuple(60 * time for time in times))
    return log.standard(
        part=log.text("user").str.removeprefix("vc_"),
        value_kind=kind,
        deadlines_seconds=seconds.where(timed, pd.Series([()] * len(kind), index=kind.index)),
        values=values,
        reason=reason.mask(kind == "", "unknown kind of job"),
    )


def job_table(log: Reading) -> pd.DataFrame:
    """A table with a row a job, of which only the columns are its own."""
    log.table(",")
    return log.standard()


def alibaba_2020(log: Reading) -> pd.DataFrame:
    """PAI's task table, a row a task; the part is the GPU type.

    GPUs are instances times the planned share of a GPU (in percent), rounded up.
    """
    table = read_table(",".join(PAI_TASK) + "\n" + log.content(), log.source, ",")
    log.take_table(table.set_index(table.index - 1), log.form.what)
    submit, end = log.times("submit"), log.times("end")
    share = pd.to_numeric(log.text("share"), errors="coerce")
    return log.neutral(
        job=log.text("job") + "/" + log.text("task"),
        submit=submit,
        duration=end - submit,
        gpus=(log.amounts("instances") * np.ceil(share / 100)).fillna(0),
        reason=pd.Series("", index=end.index).mask(end.isna(), "still running: no end"),
    )


def openb(log: Reading) -> pd.DataFrame:
    """Alibaba's pod lists: creation, scheduling and deletion of each pod ("openb", and DLRM's).

    Pods that ask for whole GPUs are jobs; what one does that asks for a share is a setting. A pod
    of phase ``Running`` ran on when the list was made: its deletion time is the list's, not its
    end. Without a creation time a pod was there before the list begins; without a scheduling time
    it waited.
    """
    log.table(",", what="a pod list of Alibaba's traces with a header")
    submit, start, end = log.times("submit"), log.times("start"), log.times("end")
    gpus = log.amounts("gpus")
    if log.has("share") and log.settings["shares"] == "aside":
        share = log.amounts("share") // 1 / 1000
        gpus = share.where((gpus == 1) & (share > 0) & (share < 1), gpus)
    running = log.text("phase") == "Running"
    if log.settings["running"] == "end":
        rule = "still runs: its deletion time is the list's last moment"
        whole = running & (gpus % 1 == 0) & (gpus > 0)
        log.note(whole, "phase", "Running", rule, "judged as if it ended there")
    else:
        end = end.mask(running)
    return log.neutral(
        job=log.names("job"),
        submit=submit,
        start=start,
        end=end.where(start.notna()),  # deleted while it waited
        gpus=gpus,
        state=log.text("phase") if log.has("phase") else None,
    )


def philly(log: Reading) -> pd.DataFrame:
    """The JSON log of Philly's attempts (Microsoft, 2017): a row an attempt and server.

    An attempt names its GPUs by server. A job's runs are its attempts and add up. Times are the
    cluster's local clock and cross the end of daylight saving: of an hour's two, the first that
    does not precede what it follows. ``null``, ``""`` and ``"None"`` mean missing. The log's
    machine list contradicts it, so that nothing here is a capacity.
    """
    text = log.content()
    if text.lstrip()[:1] not in ("[", "{"):
        rule = "must be the published JSON log; the derived CSV file has no start times"
        raise InputError(log.source, "(no JSON)", rule)
    attempts = partial(_attempts, log.settings["user"])
    log.take_records(text, "jobs", "job", {name: name for name in PHILLY}, attempts)
    submit, jobs = log.times("submit"), log.text("job").to_numpy()
    about = log.times("start", submit, notes=False)
    ends = log.times("end", about, submit, notes=False)
    before = ends.groupby(jobs).shift().groupby(jobs).cummax()
    start = log.times("start", before, submit)
    return log.neutral(
        job=log.names("job"),
        submit=submit,
        start=start,
        end=log.times("end", start, submit),
        gpus=log.amounts("gpus"),
    )


def _attempts(user: str, _: int, job: Any) -> list[dict[str, str]]:
    """Cells of `PHILLY` of each attempt and server, or of a job without any."""
    if not isinstance(job, dict) or not set(job) >= {"jobid", "submitted_time", "attempts"}:
        value = ", ".join(job)[:60] if isinstance(job, dict) else str(job)
        raise Malformed("(all)", value, "must have attempts, jobid, submitted_time")
    keys = {"job": "jobid", "submit": "submitted_time", "user": user, "part": "vc",
            "state": "status"}  # fmt: skip
    of_job = {role: _json_text(job.get(key)) for role, key in keys.items()}
    rows = []
    for attempt in inner_list(job, "attempts"):
        times = {role: _json_text(attempt.get(f"{role}_time")) for role in ("start", "end")}
        nodes = inner_list(attempt, "detail")
        held = [
            (len(inner_list(node, "gpus", object)), _json_text(node.get("ip"))) for node in nodes
        ]
        places = [(str(gpus), ip) for gpus, ip in held if gpus] or [("0", "")]
        rows += [{**of_job, **times, "gpus": gpus, "server": ip} for gpus, ip in places]
    return rows or [{**of_job, "gpus": "1"}]


def _json_text(value: object) -> str:
    return "" if value is None or str(value) in NONE_WORDS else str(value)


def _numbers(text: str) -> tuple[float, ...]:
    """Numbers of ``159-189-229``; empty where one is no number."""
    try:
        return tuple(float(part) for part in text.split("-"))
    except ValueError:
        return ()


def _members(path: Path) -> dict[str, bytes]:
    """CSV files of a tar archive (plain or compressed) by name."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path)[0])) as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None and member.name.endswith(".csv"):
                    files[Path(member.name).name] = stream.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(str(path), str(error), "must be a tar archive") from None
    return files


ELASTICFLOW = Format(
    "elasticflow", "ElasticFlow's raw trace", elasticflow,
    columns={
        "job": "job_id", "submit": "submission_time", "duration": "duration", "gpus": "num_gpu",
    },
)  # fmt: skip
ELASTICFLOW_SCHEDULE = Format(
    "elasticflow", "job.csv and scheduling_events.csv of ElasticFlow's simulator",
    elasticflow_schedule,
    columns={"job": "job_id", "submit": "submit_time", "end": "end_time", "deadline": "ddl"},
    needed=("job", "submit", "end"),
    settings={"events": "beside"},  # the file of events: beside the job file, or a path
)  # fmt: skip
CHRONUS = Format(
    "chronus", "Chronus' trace", chronus,
    columns={
        "job": "job_id", "user": "user", "gpus": "num_gpu", "submit": "submit_time",
        "duration": "duration", "deadlines": "expect_time_list", "values": "expect_value_list",
        "best_effort": "best_effort", "job_type": "job_type",
    },
    time_unit="min",
)  # fmt: skip
HELIOS = Format(
    "helios", "Helios' job log", job_table,
    columns={
        "job": "job_id", "user": "user", "part": "vc", "gpus": "gpu_num", "state": "state",
        "submit": "submit_time", "duration": "duration", "wait": "queue",
    },
    time_zone="UTC",
)  # fmt: skip
ALIBABA_2020 = Format(
    "alibaba-2020", "PAI's task table", alibaba_2020,
    columns={
        "job": "job_name", "task": "task_name", "part": "gpu_type", "submit": "start_time",
        "end": "end_time", "instances": "inst_num", "share": "plan_gpu", "state": "status",
    },
)  # fmt: skip
OPENB = Format(
    "openb", "a pod list of Alibaba's traces", openb,
    columns={
        "job": "name", "submit": "creation_time", "start": "scheduled_time",
        "end": "deletion_time", "gpus": "num_gpu", "share": "gpu_milli", "phase": "pod_phase",
        "user": "qos", "gpu_kinds": "gpu_spec",
    },
    needed=("job", "submit", "start", "end", "gpus"),
    # Pods that still run are set aside, or end with the list; a share of a GPU is, or is a GPU.
    settings={"running": ("aside", "end"), "shares": ("aside", "whole")},
)  # fmt: skip
PHILLY_LOG = Format(
    "philly", "Philly's published job log", philly,
    columns={name: name for name in PHILLY},
    settings={"user": ("user", "vc")},  # who counts as the user: vc is a virtual cluster
    time_zone=PHILLY_ZONE,
)  # fmt: skip
PHILLY_FLAT = Format(
    "philly", "Philly's flat table of jobs", job_table,
    columns={"submit": "timestamp", "duration": "duration", "gpus": "num_gpus", "part": "cluster"},
    time_zone=PHILLY_ZONE,
)  # fmt: skip
