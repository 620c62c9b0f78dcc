"""Instances from what others logged: the judged jobs of a `Log`, or a frame of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.gang.instance import POOL, GangInstance, gang_data
from hindsched.instances.traces.assemble import assemble
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import FORMULATIONS, Log
from hindsched.instances.traces.logs import frame_cells, frame_reading
from hindsched.instances.traces.plain import FORMAT
from hindsched.instances.traces.times import Clock
from hindsched.json_types import Draft, JsonObject
from hindsched.memory import free_memory

ELASTIC = FORMULATIONS[-1]
BYTES_A_JOB = 2000
"""Memory that a job of an instance takes while it is made, measured on half a million."""
NEEDED = ("job", "submit", "duration", "gpus")


def gang(
    frame: pd.DataFrame,
    gpus: int | None = None,
    *,
    servers: object = None,
    placement: str = POOL,
    columns: Mapping[str, str] | None = None,
    name: str = "frame",
    time_zone: str | None = None,
    time_unit: str = "s",
    time_step: str | None = None,
) -> GangInstance:
    """Make an instance from a frame of jobs.

    Parameters
    ----------
    frame : DataFrame
        A row a job: ``job, submit, duration, gpus`` and, if there, ``weight, deadline, user``.
        Times may be numbers, texts, datetimes or timedeltas.
    gpus : int
        GPUs of the cluster, one pool.
    servers : str or pairs, optional
        Servers instead: ``"16x8"``, ``"a=8,b=4"`` or (name, GPUs) pairs.
    placement : {"pool", "consolidated"}
        Whether any free GPUs do, or a job stands on one server (or whole ones and a remainder).
    columns : mapping, optional
        The frame's column for a role, such as ``{"job": "JobID"}``.
    name : str
        Name of the instance.
    time_zone, time_unit, time_step
        As in `read_log`.

    Raises
    ------
    InputError
        For a row that breaks a rule, counted from 1, or a job that stands twice.

    Examples
    --------
    >>> import pandas as pd, hindsched as hs
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "submit": [0, 5], "duration": [60, 30], "gpus": 2})
    >>> hs.gang(jobs, gpus=2).total_gpus
    2
    """
    clock = Clock(time_zone, time_unit, time_step)
    reading = frame_reading(clock, replace(FORMAT, needed=NEEDED), columns)
    reading.capacity = capacity = said_capacity(gpus, servers)
    if capacity is None:
        raise InputError("gpus", "(absent)", "either gpus or servers must be given")
    cells = frame_cells(reading, frame)
    names = cells.names("job")
    twice = names.duplicated()
    cells.refuse(names.index[twice], "job", names[twice], "must stand once: a row a job")
    submit, duration = cells.times("submit"), cells.spans("duration")
    for role, times in (("submit", submit), ("duration", duration)):
        absent = times.index[times.isna()]
        cells.refuse(absent, role, [""] * len(absent), "must be given")
    # Start and end are of no meaning: only the jobs are used.
    rows = cells.standard(start=submit, end=submit + duration.clip(lower=1))
    log = assemble(reading, rows)
    if (aside := log.notes.to_frame()).size:
        first = aside.iloc[0]
        raise InputError(f"frame, row {first['row']}, column {first['column']}", first["value"],
                         f"must be a job that can be scheduled: {first['rule']}")  # fmt: skip
    return instance_of_log(log, name=name, placement=placement)


def instance_of_log(
    log: Log, *, name: str | None = None, placement: str = POOL, formulation: str | None = None
) -> GangInstance:
    """Make the instance whose jobs are those of a log that can be judged.

    Parameters
    ----------
    log : Log
        The log; somebody must have said its capacity.
    name : str, optional
        Name of the instance, by default that of the file.
    placement : {"pool", "consolidated"}
        Whether any free GPUs do.
    formulation : str, optional
        How freely its jobs are judged, by default as freely as the log treated them. A job whose
        width changed is known by its GPU-seconds only: it becomes that many seconds on one GPU.

    Raises
    ------
    InputError
        If nobody has said the capacity, or a job is wider than it.
    """
    capacity = log.need_capacity()
    kind = log.formulation if formulation is None else formulation.partition(",")[0]
    jobs = log.jobs
    wide = jobs["gpus"] > capacity.gpus
    if wide.any():
        row = jobs[wide].iloc[0]
        where = f"{log.source}, row {row['row']}, column gpus"
        raise InputError(where, int(row["gpus"]), f"there are only {capacity.gpus} GPUs")
    fit = free_memory() // BYTES_A_JOB
    if len(jobs) > fit:
        cut = "--submitted-from and --submitted-to cut the log"
        rule = f"the memory at hand holds {fit} jobs: {cut}"
        raise InputError(log.source, f"{len(jobs)} jobs", rule)
    resized = jobs["work"] != jobs["duration"] * jobs["gpus"]
    if resized.any() and kind != ELASTIC:
        row = jobs[resized].iloc[0]
        where = f"{log.source}, row {row['row']}, job {row['job']}"
        raise InputError(where, kind, f"its width changed: only {ELASTIC} judges it")
    cluster: Draft = {"gpus": capacity.gpus}
    if capacity.servers:
        cluster = {"servers": [{"name": name, "gpus": gpus} for name, gpus in capacity.servers]}
    provenance = {
        "log": log.source,
        "log_format": log.format,
        "log_sha256": log.sha256,
        "second_0": log.stamp(0),
        "gpus_said_by": capacity.said_by,
    }
    data = gang_data(
        (log.source if name is None else name)[:200], _records(log, resized),
        slot_seconds=log.slot_seconds, placement=placement, provenance=provenance, **cluster,
    )  # fmt: skip
    return GangInstance.parse(data)


def _records(log: Log, resized: Any) -> list[JsonObject]:
    """Jobs as the file has them; what is absent has no key."""
    jobs = log.jobs
    work = jobs["work"].where(resized, jobs["duration"])
    columns: dict[str, list[Any]] = {
        "name": jobs["job"].tolist(),
        "submit": [log.seconds(slot) for slot in jobs["submit"]],
        "duration": [log.seconds(slots) for slots in work],
        "gpus": jobs["gpus"].where(~resized, 1).tolist(),
    }
    if "weight" in jobs:
        columns["weight"] = [int(w) if w == int(w) else w for w in jobs["weight"].tolist()]
    if "deadline" in jobs:  # one before second 0 is missed as surely as one at 0
        due = jobs["deadline"].to_list()
        columns["deadline"] = [None if pd.isna(t) else log.seconds(max(0, t)) for t in due]
    if "user" in jobs:
        columns["user"] = [user or None for user in jobs["user"].tolist()]
    records = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [{key: x for key, x in record.items() if x is not None} for record in records]
