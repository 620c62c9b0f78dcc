"""Instances from what others logged: the judged jobs of a `Log`, or a frame of jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.gang.instance import POOL, GangInstance, GangJob, GangServer, gang_data
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import FORMULATIONS, Log, build_log
from hindsched.instances.traces.reading import Reading
from hindsched.instances.traces.schedulers import CSV
from hindsched.instances.traces.times import LogClock
from hindsched.json_types import Draft, JsonObject

ELASTIC = FORMULATIONS[-1]


class GangBuilder:
    """Make an instance of rigid GPU jobs from a frame; its attributes build one by hand.

    ``gang.Instance``, ``gang.Job`` and ``gang.Server`` are what its files hold, with checked
    fields.

    Parameters
    ----------
    frame : DataFrame
        A row a job: ``job, submit, duration, gpus`` and, if there, ``weight, deadline, user`` and
        ``gpu_kinds`` (``"V100|P100"``).
        Times may be numbers of seconds, texts, datetimes or timedeltas.
    gpus : int
        GPUs of the cluster, one pool.
    servers : str or pairs, optional
        ``"16x8"``, ``"a=8@V100,b=4@P100"`` or (name, GPUs) or (name, GPUs, kind) tuples, instead of
        `gpus`.
    placement : {"pool", "consolidated"}
        Whether any free GPUs do, or only those of one server, or whole ones and a remainder.
    columns : mapping, optional
        The frame's column for a role, such as ``{"job": "JobID"}``.
    name : str
        Name of the instance.
    time_zone, time_unit, time_step
        As `read_log` takes them.

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
    >>> job = hs.gang.Job(name="a", submit=0, duration=60, gpus=2)
    >>> hs.gang.Instance(name="mine", horizon=1, slot_seconds=1, gpus=2, jobs=[job])
    <gang instance 'mine': 1 jobs, horizon 1>
    """

    Instance, Job, Server = GangInstance, GangJob, GangServer

    def __call__(
        self,
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
        """Make the instance of a frame; see the class."""
        form = replace(CSV, needed=("job", "submit", "duration", "gpus"))
        clock = LogClock(time_zone, time_unit, time_step)
        reading = Reading(form, Path("frame"), clock, columns=columns or {})
        reading.capacity = said_capacity(gpus, servers)
        if reading.capacity is None:
            raise InputError("gpus", "(absent)", "either gpus or servers must be given")
        reading.take_frame(frame)
        names = reading.names("job")
        reading.refuse(names.duplicated(), "job", names, "must stand once: a row a job")
        submit, duration = reading.times("submit"), reading.spans("duration")
        reading.refuse(submit.isna(), "submit", "", "must be given")
        reading.refuse(duration.isna(), "duration", "", "must be given")
        # Start and end are of no meaning: only the jobs are used.
        log = build_log(
            reading, reading.standard(start=submit, end=submit + duration.clip(lower=1))
        )
        if (aside := log.notes.to_frame()).size:
            first = aside.iloc[0]
            where = f"frame, row {first['row']}, column {first['column']}"
            rule = f"must be a job that can be scheduled: {first['rule']}"
            raise InputError(where, first["value"], rule)
        return instance_of_log(log, name=name, placement=placement, by_kind=True)


gang = GangBuilder()


def instance_of_log(
    log: Log, *, name: str | None = None, placement: str = POOL, formulation: str | None = None,
    by_kind: bool = False,
) -> GangInstance:  # fmt: skip
    """Make the instance whose jobs are those of a log that can be judged.

    Somebody must have said the capacity. Jobs are judged as freely as the log treated them, or as
    the formulation says; one whose width changed is known by its GPU-seconds only: it becomes that
    many seconds on one GPU. With `by_kind` jobs run on the kinds of GPUs that they name.
    """
    capacity, jobs = log.need_capacity(), log.jobs
    kind = log.formulation if formulation is None else formulation.partition(",")[0]
    job: Any
    for job in jobs[jobs["gpus"] > capacity.gpus].itertuples():
        where = f"{log.source}, row {job.row}, column gpus"
        raise InputError(where, job.gpus, f"the cluster has {capacity.gpus}")
    resized = jobs["work"] != jobs["duration"] * jobs["gpus"]
    if resized.any() and kind != ELASTIC:
        first = jobs[resized].iloc[0]
        where = f"{log.source}, row {first['row']}, job {first['job']}"
        raise InputError(where, kind, f"its width changed: only {ELASTIC} judges it")
    cluster: Draft = {"gpus": capacity.gpus}
    if capacity.servers:
        cluster = {"servers": [{"name": name, "gpus": gpus} for name, gpus in capacity.servers]}
    if by_kind:
        for server, of_server in zip(cluster.get("servers", ()), capacity.kinds, strict=False):
            server |= {"gpu_kind": of_server} if of_server else {}
    work = jobs["work"].where(resized, jobs["duration"])
    columns = {
        "name": jobs["job"],
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
        columns["user"] = [user or None for user in jobs["user"]]
    if by_kind and capacity.kinds and "gpu_kinds" in jobs:
        columns["gpu_kinds"] = _named_kinds(log)
    records: list[JsonObject] = [
        {key: value for key, value in zip(columns, row, strict=True) if value is not None}
        for row in zip(*columns.values(), strict=True)
    ]
    provenance = {
        "log": log.source,
        "log_format": log.format,
        "log_sha256": log.sha256,
        "second_0": log.stamp(0),
        "gpus_said_by": capacity.said_by,
    }
    data = gang_data(
        (log.source if name is None else name)[:200], records, slot_seconds=log.seconds(1),
        placement=placement, provenance=provenance, **cluster,
    )  # fmt: skip
    return GangInstance.parse(data)


def _named_kinds(log: Log) -> list[list[str] | None]:
    """Kinds of GPUs that each job names, ``V100|P100``; None for any."""
    rooms, jobs = log.need_capacity().by_kind(), log.jobs
    known = list(rooms.values())
    named: list[list[str] | None] = []
    job: Any
    for job in jobs.itertuples():
        kinds = list(dict.fromkeys(filter(None, re.split(r"\s*[|,;]\s*", job.gpu_kinds.strip()))))
        most = max([rooms[kind] for kind in kinds if kind in rooms] if kinds else known, default=0)
        if job.gpus > most:
            where, of = f"{log.source}, row {job.row}, column gpu_kinds", job.gpu_kinds or "any"
            raise InputError(
                where, of, f"{job.gpus} GPUs asked for: no such kind has more than {most}"
            )
        named.append(kinds or None)
    return named
