"""Pods of Kubernetes: ``kubectl get pods -o json``, or a table with a row a pod.

A pod holds its GPUs from the moment it is bound to a node (condition ``PodScheduled``) until its
last container ends. Pods of one job are one gang: the job is the value of the label that the user
names, or of the first of `GROUPS` that a pod has, or else the pod alone. The gang runs from its
last pod's start to its last pod's end. Where pods of a job ran one after the other, those that
failed were lost and the others add up.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pandas as pd

from hindsched.instances.files import json_records
from hindsched.instances.traces.reading import ASIDE, REQUEUES, Cells, Format, Reading
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
DONE = ("Succeeded", "Failed")
JSON_NAMES = {
    "pod": "metadata.name", "job": "(label of the gang)", "submit": "metadata.creationTimestamp",
    "start": "status.conditions[PodScheduled]", "end": "finishedAt", "gpus": "resources",
    "server": "spec.nodeName", "user": "metadata.namespace", "phase": "status.phase",
}  # fmt: skip
"""Where a role stands in a pod's JSON: its column in notes and errors."""


def read(reading: Reading) -> pd.DataFrame:
    """Read pods from JSON or from a table, by how the file begins."""
    reading.requeues = reading.choice("requeue", REQUEUES)
    text = reading.text()
    if text.lstrip()[:1] in ("{", "["):
        cells = _json_cells(reading, text)
    else:
        cells = reading.table(",", what="pods: JSON of kubectl, or a table with a header")
    pods, users, phases = cells.names("pod"), cells.text("user"), cells.text("phase")
    groups = cells.text("job").where(cells.text("job") != "", pods)
    start, end = cells.times("start"), cells.times("end")
    unknown = phases.isin(DONE) & end.isna() & start.notna()
    cells.note(unknown, "end", "", "the pod has ended, but not when", ASIDE)
    return cells.neutral(
        ~unknown,
        job=(users + "/" + groups).where(users != "", groups),
        submit=cells.times("submit"),
        start=start,
        end=end,
        gpus=cells.amounts("gpus"),
        failed=phases != "Succeeded",
        user=users,
        server="server",
    )


def _json_cells(reading: Reading, text: str) -> Cells:
    reading.refuse_columns("JSON of kubectl")
    reading.columns = dict(JSON_NAMES)
    reading.notes.word = "pod"
    pods: dict[int, dict[str, str]] = {}
    for number, item in enumerate(json_records(text, "items", reading.source), start=1):
        reading.rows_read += 1
        kind = item.get("kind", "Pod") if isinstance(item, dict) else "(no object)"
        if kind != "Pod":
            reading.notes.add(number, "kind", str(kind), "must be a Pod", "record left out")
            continue
        try:
            pods[number] = _pod(item, reading.settings["gang"], reading.settings["resource"])
        except _Malformed as error:
            reading.notes.broken(number, *error.args)
    rows = pd.Index(list(pods), dtype="int64")
    frame = pd.DataFrame(list(pods.values()), index=rows, columns=list(JSON_NAMES), dtype=object)
    return Cells(reading, frame)


class _Malformed(Exception):
    """Column, value and rule that it breaks."""


def _pod(item: JsonObject, label: str, resource: str) -> dict[str, str]:
    meta, spec, status = (_object(item, key) for key in ("metadata", "spec", "status"))
    labels = {**_object(meta, "annotations"), **_object(meta, "labels")}
    group = next((labels[key] for key in ((label,) if label else GROUPS) if labels.get(key)), "")
    if not label:
        group = _object(spec, "schedulingGroup").get("podGroupName") or group
    bound = [
        condition.get("lastTransitionTime")
        for condition in _list(status, "conditions")
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True"
    ]
    ended = [
        _object(_object(container, "state"), "terminated").get("finishedAt")
        for container in _list(status, "containerStatuses")
    ]
    phase = status.get("phase")
    together = sum(_amount(container, resource) for container in _list(spec, "containers"))
    before = [_amount(container, resource) for container in _list(spec, "initContainers")]
    found: dict[str, Any] = {
        "pod": meta.get("name"),
        "job": group,
        "submit": meta.get("creationTimestamp"),
        "start": bound[0] if bound else None,
        # Stamps of Kubernetes are all in UTC and of one shape.
        "end": max(map(str, filter(None, ended)), default="") if phase in DONE else "",
        "gpus": f"{max([together, *before]):f}",
        "server": spec.get("nodeName"),
        "user": meta.get("namespace"),
        "phase": phase,
    }
    return {role: str(value or "") for role, value in found.items()}


def _amount(container: JsonObject, resource: str) -> Decimal:
    resources = _object(container, "resources")
    for kind in ("limits", "requests"):  # extended resources have equal requests and limits
        value = _object(resources, kind).get(resource)
        if value is not None:
            match = QUANTITY.fullmatch(str(value))
            if match is None:
                raise _Malformed(f"resources.{kind}.{resource}", value, "must be a number of GPUs")
            return Decimal(match[1]) * Decimal({"m": "0.001", None: "1", "k": "1000"}[match[2]])
    return Decimal(0)


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
        "requeue": ("restart", f"what a pod run again does: {', '.join(REQUEUES)}"),
    },
)  # fmt: skip
