"""Pods of Kubernetes: ``kubectl get pods -o json``, or a table with a row a pod.

A pod holds its GPUs from the moment it is bound to a node (condition ``PodScheduled``) until its
last container ends. Pods of one job are one gang: the job is the value of the label that the user
names, or of the first of `GROUPS` that a pod has, or else the pod alone. The gang runs from its
last pod's start to its last pod's end. Where pods of a job ran one after the other, those that
failed were lost and the others add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice

import numpy as np

from hindsched.instances.logs.reading import Format, Reading
from hindsched.instances.logs.records import peek, records
from hindsched.instances.logs.reruns import RERUNS
from hindsched.instances.logs.table import CHUNK_ROWS, Chunk, chunks
from hindsched.instances.logs.times import MISSING
from hindsched.json_types import JsonObject

GROUPS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.k8s.io/group-name",
    "volcano.sh/job-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Labels and annotations that name a pod's gang; the first that a pod has counts."""
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k)?", re.ASCII)
DONE = frozenset(("Succeeded", "Failed"))
FIELDS = ("pod", "job", "submit", "start", "end", "gpus", "server", "user", "phase")


def read(reading: Reading) -> None:
    """Read pods from JSON or from a table, by how the file begins."""
    reading.reruns = reading.choice("requeue", RERUNS)
    lines, mark = peek(reading.source.lines())
    if mark in ("{", "["):
        reading.row_word = "pod"
        reading.refuse_columns("JSON of kubectl")
        reading.columns = {role: JSON_NAMES[role] for role in reading.columns}
        pods = _pods(reading, lines)
        while rows := list(islice(pods, CHUNK_ROWS)):
            _add(reading, _chunk(reading, rows))
        return
    what = "pods: JSON of kubectl, or a table with a header"
    for chunk in chunks(reading, lines, what=what):
        _add(reading, chunk)


JSON_NAMES = {
    "pod": "metadata.name", "job": "(label of the gang)", "submit": "metadata.creationTimestamp",
    "start": "status.conditions[PodScheduled]", "end": "finishedAt", "gpus": "resources",
    "server": "spec.nodeName", "user": "metadata.namespace", "phase": "status.phase",
}  # fmt: skip
"""Where a role stands in a pod's JSON: its column in notes and errors."""


def _chunk(reading: Reading, rows: list[tuple[int, dict[str, str]]]) -> Chunk:
    numbers = np.array([number for number, _ in rows], dtype=np.int64)
    cells = {reading.columns[field]: [pod.get(field, "") for _, pod in rows] for field in FIELDS}
    return Chunk(reading, numbers, cells)


def _add(reading: Reading, chunk: Chunk) -> None:
    pods = chunk.names("pod")
    groups = chunk.texts("job") if chunk.has("job") else [""] * len(chunk)
    users = chunk.texts("user") if chunk.has("user") else [""] * len(chunk)
    jobs = [
        f"{user}/{group or pod}" if user else group or pod
        for user, group, pod in zip(users, groups, pods, strict=True)
    ]
    submit = chunk.times("submit")[0]
    start, end = chunk.times("start")[0], chunk.times("end")[0]
    phases = chunk.texts("phase") if chunk.has("phase") else [""] * len(chunk)
    done = np.array([phase in DONE for phase in phases], dtype=bool)
    unknown = done & (end == MISSING) & (start != MISSING)
    column = reading.columns["end"]
    rule = "the pod has ended, but not when"
    reading.notes.add_all(chunk.rows[unknown], column, "", rule, "set aside: not judged")
    reading.rows.add(
        ~chunk.broken & ~unknown,
        job=jobs,
        row=chunk.rows,
        submit=submit,
        start=start,
        end=end,
        thousandths=chunk.thousandths("gpus"),
        failed=np.array([phase != "Succeeded" for phase in phases], dtype=bool),
        user=users,
        server=chunk.texts("server") if chunk.has("server") else None,
    )


def _pods(reading: Reading, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, str]]]:
    label, resource = reading.settings["gang"], reading.settings["resource"]
    for number, item in records(reading.source, lines, "items"):
        reading.count_rows(1)
        kind = item.get("kind", "Pod") if isinstance(item, dict) else "(no object)"
        if kind != "Pod":
            reading.notes.add(number, "kind", kind, "must be a Pod", "record left out")
            continue
        try:
            yield number, _pod(item, label, resource)
        except _Malformed as error:
            reading.notes.broken(number, error.column, error.value, error.rule, "pod")


class _Malformed(Exception):
    def __init__(self, column: str, value: object, rule: str) -> None:
        self.column, self.value, self.rule = column, value, rule
        super().__init__(column)


def _pod(item: JsonObject, label: str, resource: str) -> dict[str, str]:
    meta, spec, status = (_object(item, key) for key in ("metadata", "spec", "status"))
    labels = {**_object(meta, "annotations"), **_object(meta, "labels")}
    keys = (label,) if label else GROUPS
    group = next((str(labels[key]) for key in keys if labels.get(key)), "")
    if not label:
        gang = _object(spec, "schedulingGroup").get("podGroupName")
        group = str(gang) if gang else group
    start = next(
        (
            condition.get("lastTransitionTime")
            for condition in _list(status, "conditions")
            if condition.get("type") == "PodScheduled" and condition.get("status") == "True"
        ),
        None,
    )
    phase = str(status.get("phase") or "")
    return {
        "pod": str(meta.get("name") or ""),
        "job": group,
        "submit": str(meta.get("creationTimestamp") or ""),
        "start": str(start or ""),
        "end": _end(status) if phase in DONE else "",
        "gpus": _gpus(spec, resource),
        "server": str(spec.get("nodeName") or ""),
        "user": str(meta.get("namespace") or ""),
        "phase": phase,
    }


def _end(status: JsonObject) -> str:
    """When the last container ended."""
    ended: list[str] = []
    for container in _list(status, "containerStatuses"):
        finished = _object(_object(container, "state"), "terminated").get("finishedAt")
        if finished:
            ended.append(str(finished))
    return max(ended, default="")  # stamps of Kubernetes are all in UTC and of one shape


def _gpus(spec: JsonObject, resource: str) -> str:
    """GPUs of a pod: of all containers together, or of the largest that runs before them."""
    together = sum(_amount(container, resource) for container in _list(spec, "containers"))
    before = (_amount(container, resource) for container in _list(spec, "initContainers"))
    thousandths = max(together, *before, 0)
    return str(thousandths // 1000) if thousandths % 1000 == 0 else str(thousandths / 1000)


def _amount(container: JsonObject, resource: str) -> int:
    resources = _object(container, "resources")
    for kind in ("limits", "requests"):  # extended resources have equal requests and limits
        value = _object(resources, kind).get(resource)
        if value is not None:
            match = QUANTITY.fullmatch(str(value))
            if match is None:
                raise _Malformed(f"resources.{kind}.{resource}", value, "must be a number of GPUs")
            return int(Decimal(match[1]) * {"m": 1, None: 1000, "k": 1_000_000}[match[2]])
    return 0


def _object(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    if value is not None and not isinstance(value, dict):
        raise _Malformed(key, value, "must be an object")
    return value or {}


def _list(holder: JsonObject, key: str) -> list[JsonObject]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _Malformed(key, value, "must be a list of objects")
    return value


FORMAT = Format(
    name="kubernetes",
    what="pods of Kubernetes",
    read=read,
    columns={
        "pod": "name", "job": "group", "submit": "creationTimestamp", "start": "startTime",
        "end": "finishTime", "gpus": "nvidia.com/gpu", "server": "node", "user": "namespace",
        "phase": "phase",
    },
    needed=("pod", "submit", "start", "end", "gpus"),
    settings={
        "gang": ("", "label or annotation that names a pod's gang; the usual ones otherwise"),
        "resource": ("nvidia.com/gpu", "the resource that counts as GPUs, in JSON"),
        "requeue": ("restart", f"what a pod run again does: {', '.join(RERUNS)}"),
    },
)  # fmt: skip
