"""Logs of schedulers in use: a table of jobs, Standard Workload Format, Slurm, Kubernetes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.reading import (
    ASIDE,
    DELIMITERS,
    MOST_GPUS,
    NONE_WORDS,
    REQUEUES,
    Format,
    Malformed,
    Reading,
    inner,
    inner_list,
    known_true,
)
from hindsched.json_types import JsonObject

ROLES = (
    "job", "submit", "start", "end", "gpus", "duration", "deadline", "weight", "user", "server",
    "gpu_kinds", "wait",
)  # fmt: skip
SYNONYMS = {
    "job": ("jobid", "jobname", "id", "name", "podname", "pod", "taskid", "task", "workload"),
    "submit": (
        "submittime", "submitted", "submittedat", "submittedtime", "submissiontime", "submission",
        "submitts", "createts", "created", "createdat", "createtime", "creationtime",
        "creationtimestamp", "arrival", "arrivaltime", "queuedat",
        "queued", "enqueued", "enqueuedat",
    ),
    "start": (
        "starttime", "started", "startedat", "startts", "startingtime", "schedulets", "scheduled",
        "scheduledat", "scheduledtime", "scheduletime", "begin", "begintime", "admittedat",
    ),
    "end": (
        "endtime", "ended", "endedat", "endts", "finish", "finishts", "finishtime", "finished",
        "finishedat", "completed", "completedat", "completiontime", "stoptime", "deletiontime",
    ),
    "gpus": (
        "gpu", "numgpus", "numgpu", "ngpus", "ngpu", "gpucount", "gpunum", "gpurequest",
        "requestedgpus", "allocgpus", "nvidiacomgpu",
    ),
    "duration": ("runtime", "durationseconds", "executiontime", "elapsed"),  # where it is needed
    "wait": ("waittime", "waitseconds", "queuetime", "queueingdelay"),
    "user": ("username", "userid", "owner", "namespace"),
    "gpu_kinds": ("gputype", "gpukind", "gpumodel", "gpuspec"),
}  # fmt: skip


def read_csv(log: Reading) -> pd.DataFrame:
    """A table; several rows of one job are its runs, or its parts on several servers."""
    everyone = log.settings["gpus"]
    if everyone:
        log.form = replace(log.form, needed=tuple(r for r in log.form.needed if r != "gpus"))
    log.table(DELIMITERS.get(log.settings["delimiter"], ""))
    if everyone:
        log.cells["gpus"] = everyone
    return log.standard()


CSV = Format(
    "csv", "a table", read_csv,
    columns={role: role for role in ROLES},
    needed=ROLES[:5],
    # What separates cells; the GPUs of every job, where no column has them.
    settings={"delimiter": ("auto", *DELIMITERS), "gpus": ""},
    synonyms=SYNONYMS,
    instead={"start": "wait", "end": "duration"},
)  # fmt: skip

SWF_FIELDS = (
    "job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
SWF_STARTS = re.compile(
    r"submit\w*\s+times?\s+are\s+(actually|really|in fact)\s+(the\s+)?start", re.I
)
STARTS_FACT = (
    "The log's header says that its submission times are really start times: every wait is 0 by "
    "construction, so nothing here says how well its scheduler did."
)


def read_swf(log: Reading) -> pd.DataFrame:
    """Standard Workload Format: 18 numbers a line, a header of comments, -1 for what is unknown.

    The start is submission plus wait. Some logs say in their header that their submissions are
    really starts (NASA iPSC): then every wait is 0. A job that was swapped out has a line of its
    own (status 0, 1 or 5) and one line a burst (status 2, and 3 or 4 for the last), whose wait
    counts from the end of the burst before.
    """
    for role, column in log.columns.items():
        if column and column not in SWF_FIELDS:
            rule = f"must be one of {', '.join(SWF_FIELDS)}"
            raise InputError("column", f"{role}={column}", rule)
    submits, header = log.settings["submits"], _swf_lines(log)
    says_starts = submits == "header" and SWF_STARTS.search(header.get("Note", "")) is not None
    for name in ("MaxNodes", "MaxProcs"):  # nodes where a log allocates them whole
        text = header.get(name, "").split(" ")[0]
        if text.isascii() and text.isdecimal() and int(text) > 0:
            log.capacity = Capacity(int(text), (), f"the header's {name}")
    if header.get("Preemption", "").lower() not in ("", "no"):
        log.facts.append(f"The log's header says Preemption: {header['Preemption']}.")
    if says_starts:
        log.facts.append(STARTS_FACT)
        rule, done = "the header says so", "starts are the submissions"
        log.notes.add(0, "submit", header["Note"][:200], rule, done)
    are_starts = says_starts or submits == "starts"
    submit, wait, run = log.times("submit"), log.spans("wait"), log.spans("duration")
    log.refuse(known_true(wait < 0), "wait", log.text("wait"), "must be -1 (unknown) or at least 0")
    start = submit.copy() if are_starts else submit + wait
    end = start + run
    burst = log.text("status").isin(("2", "3", "4"))
    before: dict[str, Any] = {}
    row: Any
    for row, job in log.text("job")[burst].items():
        submit[row], ended = before.get(job, (submit[row], submit[row]))
        start[row] = ended + wait[row]
        end[row] = start[row] + run[row]
        before[job] = submit[row], end[row]
    summary = log.text("job").isin(log.text("job")[burst]) & ~burst
    rule = "sums up a job whose bursts follow"
    log.note(summary, "status", "", rule, "its bursts are read instead")
    no_run = run.isna() & ~burst
    log.note(no_run, "duration", "-1", "run time unknown", "no end")
    if not are_starts:
        log.note(wait.isna() & ~burst & ~summary, "wait", "-1", "wait unknown", "no start")
    return log.neutral(
        ~summary,
        job=log.names("job"),
        submit=submit,
        start=start.mask(no_run),  # it held its processors for an unknown time
        end=end,
        gpus=log.amounts("gpus"),
        user=log.text("user").replace("-1", "") if log.has("user") else None,
        gpu_kinds=log.text("gpu_kinds").replace("-1", "") if log.has("gpu_kinds") else None,
    )


def _swf_lines(log: Reading) -> dict[str, str]:
    """Take the lines of 18 numbers; the fields of the header are returned."""
    header: dict[str, str] = {}
    last, rows = "", {}
    for number, line in enumerate(log.content().splitlines(), start=1):
        text = line.strip()
        if match := re.fullmatch(r";\s*([A-Za-z]\w*):\s*(.*?)\s*", text):
            last = match[1]
            header[last] = f"{header[last]} {match[2]}" if last in header else match[2]
        elif text.startswith(";"):
            if last and text.lstrip("; "):  # a line that goes on with the one before
                header[last] += " " + text.lstrip("; ")
        elif text:
            log.rows_read += 1
            cells = text.split()
            if len(cells) == len(SWF_FIELDS):
                rows[number] = cells
            else:
                rule = f"must have {len(SWF_FIELDS)} as the format says"
                log.break_row(number, "(all)", f"{len(cells)} numbers", rule)
    frame = pd.DataFrame(list(rows.values()), list(rows), list(SWF_FIELDS), dtype=object)
    made = {role: frame[column] for role, column in log.columns.items() if column}
    log.take(pd.DataFrame(made, index=frame.index, dtype=object))
    return header


SWF = Format(
    "swf", "a workload in Standard Workload Format", read_swf,
    columns={
        "job": "job", "submit": "submit", "wait": "wait", "duration": "run", "gpus": "allocated",
        "status": "status", "user": "user", "gpu_kinds": "",  # partition or queue, if named
    },
    settings={"submits": ("header", "submits", "starts")},  # what submissions are
    missing=frozenset(("-1", "-1.0", "-1.00")),
)  # fmt: skip

SLURM_JOB = r"(?a:^(?P<number>\d+)(?:_(?P<task>\d+|\[[^\]]*\]))?(?:\+\d+)?(?P<step>\.\S+)?$)"
SLURM_GPUS = r"(?a:(?:^|,)(?:gres[/:])?gpu(:[^=:,(]+)?[=:]([^,(]*))"
"""``gres/gpu=4``, ``gres/gpu:a100=4``, ``gpu:a100:4(IDX:0-3)``: kind and number."""
SLURM_WAITING = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "REVOKED", "CONFIGURING")
SLURM_COLUMNS = "JobID,User,Submit,Start,End,Elapsed,State,AllocTRES,ReqTRES,NodeList"
SLURM_COUNTS = ("NNodes", "NTasks", "AllocNodes", "AllocCPUS", "NCPUS", "ReqCPUS", "ReqNodes")
"""Columns that hold a number; any other that serves for GPUs holds trackable resources."""


def read_sacct(log: Reading) -> pd.DataFrame:
    """Slurm's accounting: ``sacct --parsable2`` with a header.

    A job has a row of its own and one for each of its steps (``123.batch``), which hold nothing of
    their own. ``123_4`` is task 4 of array 123 and a job; ``123_[5-9]`` are tasks that wait.
    ``123+0`` and ``123+1`` are parts of one heterogeneous job: one gang. With ``--duplicates`` a
    requeued job has a row for each time it ran. Times are the cluster's local clock: its zone must
    be said. ``Elapsed`` leaves suspensions out. Where ``AllocTRES`` is empty, ``ReqTRES`` counts.
    """
    log.requeues, delimiter = log.settings["requeue"], log.settings["delimiter"]
    if len(delimiter) != 1:
        raise InputError("delimiter", delimiter, "must be one character, as sacct --delimiter")
    log.table(delimiter, quoted=False)
    names = log.text("job")
    parts = names.str.extract(SLURM_JOB)
    rule = "must be a job of Slurm such as 123, 123_4, 123.batch"
    log.refuse(parts["number"].isna(), "job", names, rule)
    steps, waiting = parts["step"].notna(), parts["task"].fillna("").str.startswith("[")
    log.note(steps, "job", names, "a step of a job", "not a job")
    log.note(waiting, "job", names, "tasks of an array that still wait", ASIDE)
    submit = log.times("submit")
    start = log.times("start", submit)
    elapsed = log.spans("elapsed") if log.has("elapsed") else None
    until = start if elapsed is None else start + elapsed  # it ends then, or later if suspended
    end = log.times("end", until, start, submit)
    holds_nothing = log.text("state").str.split(" ").str[0].isin(SLURM_WAITING)
    start[holds_nothing] = end[holds_nothing] = pd.NA
    keep = ~steps & ~waiting & ~log.broken
    never = keep & start.isna() & end.notna()
    log.note(never, "end", log.text("state"), "ended without having started", "no end")
    end[never] = pd.NA
    hosts = log.text("server").str.extract(r"^(?!None$|\(null\)$)([^\[\],\s]+)(?:\[(\d+)\])?$")
    return log.neutral(
        keep,
        job=parts["number"] + ("_" + parts["task"]).fillna(""),
        submit=submit,
        start=start,
        end=end,
        gpus=_slurm_gpus(log),
        gpu_kinds=_slurm_kinds(log),
        paused=None if elapsed is None else _slurm_pauses(log, keep, end - start, elapsed),
        # of several hosts the share of each is not known
        server=(hosts[0] + hosts[1].fillna("")).fillna("") if log.has("server") else None,
    )


def _slurm_pauses(
    log: Reading, keep: pd.Series, length: pd.Series, elapsed: pd.Series
) -> pd.Series:
    """How long each job stood still between its start and its end."""
    still, texts = (length - elapsed).fillna(0), log.text("elapsed")
    rule = "must not exceed End - Start: is the time zone right?"
    log.refuse(keep & (still < 0), "elapsed", texts, rule)
    rule = "is less than End - Start: suspended in between (or the time zone is wrong)"
    log.note(keep & (still > 0), "elapsed", texts, rule, "judged by its completion")
    return still.clip(lower=0)


def _slurm_gpus(log: Reading) -> pd.Series:
    if log.column("gpus") in SLURM_COUNTS:
        return log.amounts("gpus")
    allocated = log.text("gpus")
    texts = allocated.where(allocated != "", log.text("requested"))
    known: dict[str, int] = {}
    for text in texts.unique():
        counts = re.findall(SLURM_GPUS, text)
        if all(re.fullmatch(r"(?a:\d{1,9})", number) for _, number in counts):
            plain = [int(number) for kind, number in counts if not kind]
            # A cluster with kinds of GPUs counts each twice: once with its kind, once without.
            known[text] = plain[0] if plain else sum(int(number) for _, number in counts)
    rule = "must count GPUs as gres/gpu=4 or gpu:4 does"
    log.refuse(~texts.isin(list(known)), "gpus", texts, rule)
    return texts.map(known).astype(float)


def _slurm_kinds(log: Reading) -> pd.Series | None:
    """The kind of GPUs that each job asked for, where it named one; None where no job did."""
    if log.has("gpu_kinds"):
        return log.text("gpu_kinds")
    texts, named = log.text("requested"), dict[str, str]()
    for text in texts.unique():
        kinds = {kind[1:] for kind, _ in re.findall(SLURM_GPUS, text) if kind}
        named[text] = kinds.pop() if len(kinds) == 1 else ""
    return texts.map(named) if any(named.values()) else None


SACCT = Format(
    "sacct", f"the output of sacct --parsable2 --format {SLURM_COLUMNS}", read_sacct,
    columns={
        "job": "JobID", "submit": "Submit", "start": "Start", "end": "End", "gpus": "AllocTRES",
        "requested": "ReqTRES", "elapsed": "Elapsed", "state": "State", "user": "User",
        "server": "NodeList", "gpu_kinds": "",  # Partition, say, if named; otherwise the requested
    },
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"delimiter": "|", "requeue": REQUEUES},
    synonyms={"elapsed": ("elapsedraw",)},
    missing=NONE_WORDS | {"Unknown", "UNKNOWN", "INVALID", "Partition_Limit"},
)  # fmt: skip

GANG_LABELS = (
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
KIND_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")
"""Labels of nodes by which pods select a kind of GPUs."""
POD_NAMES = {
    "pod": "metadata.name", "job": "(label of the gang)", "submit": "metadata.creationTimestamp",
    "start": "status.conditions[PodScheduled]", "end": "finishedAt", "gpus": "resources",
    "server": "spec.nodeName", "user": "metadata.namespace", "phase": "status.phase",
    "gpu_kinds": "spec.nodeSelector",
}  # fmt: skip
"""Where a role stands in a pod's JSON: its column in notes and errors."""
ENDED = ("Succeeded", "Failed")


def read_kubernetes(log: Reading) -> pd.DataFrame:
    """Pods or Kueue's workloads: ``kubectl get pods -o json``, or a table with a row a pod.

    A pod holds its GPUs from the moment it is bound to a node (condition ``PodScheduled``) until
    its last container ends. Pods of one job are one gang: the job is the value of the label that
    the user names, or of the first of `GANG_LABELS` that a pod has, or else the pod alone. Where
    pods of a job ran one after the other, those that failed were lost and the others add up. A
    workload holds the GPUs of all its pods from its admission until it is finished.
    """
    log.requeues = log.settings["requeue"]
    text = log.content()
    if text.lstrip()[:1] in ("{", "["):
        log.take_records(text, "items", "pod", POD_NAMES, partial(_pods, log))
    else:
        log.table(",", what="pods: JSON of kubectl, or a table with a header")
    if not (log.text("gpu_kinds") != "").any():
        log.cells = log.cells.drop(columns="gpu_kinds", errors="ignore")
    pods, users, phases = log.names("pod"), log.text("user"), log.text("phase")
    groups = log.text("job").where(log.text("job") != "", pods)
    start, end = log.times("start"), log.times("end")
    unknown = phases.isin(ENDED) & end.isna() & start.notna()
    log.note(unknown, "end", "", "the pod has ended, but not when", ASIDE)
    return log.neutral(
        ~unknown,
        job=(users + "/" + groups).where(users != "", groups),
        submit=log.times("submit"),
        start=start,
        end=end,
        gpus=log.amounts("gpus"),
        failed=phases != "Succeeded",
    )


def _pods(log: Reading, number: int, item: Any) -> list[dict[str, str]]:
    """Cells of a record that is a pod, or a workload of Kueue."""
    kind = item.get("kind", "Pod") if isinstance(item, dict) else "(no object)"
    if kind == "Workload":
        return [_workload(log, item)]
    if kind != "Pod":
        log.notes.add(number, "kind", str(kind), "must be a Pod or a Workload", "record left out")
        return []
    label, resource = log.settings["gang"], log.settings["resource"]
    meta, spec, status = (inner(item, key) for key in ("metadata", "spec", "status"))
    labels = {**inner(meta, "annotations"), **inner(meta, "labels")}
    group = next(filter(None, map(labels.get, [label] if label else GANG_LABELS)), "")
    if not label:
        group = inner(spec, "schedulingGroup").get("podGroupName") or group
    bound = [
        condition.get("lastTransitionTime")
        for condition in inner_list(status, "conditions")
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True"
    ]
    ended = [
        inner(inner(container, "state"), "terminated").get("finishedAt")
        for container in inner_list(status, "containerStatuses")
    ]
    phase = status.get("phase")
    selected = inner(spec, "nodeSelector")
    cells: dict[str, Any] = {
        "pod": meta.get("name"),
        "job": group,
        "submit": meta.get("creationTimestamp"),
        "start": bound[0] if bound else None,
        # Stamps of Kubernetes are all in UTC and of one shape.
        "end": max(map(str, filter(None, ended)), default="") if phase in ENDED else "",
        "gpus": str(_pod_gpus(spec, resource)),
        "server": spec.get("nodeName"),
        "user": meta.get("namespace"),
        "phase": phase,
        "gpu_kinds": next(filter(None, map(selected.get, KIND_LABELS)), ""),
    }
    return [{role: str(value or "") for role, value in cells.items()}]


def _workload(log: Reading, item: JsonObject) -> dict[str, str]:
    """Cells of a workload of Kueue: it runs from its (last) admission until it is finished."""
    resource, status = log.settings["resource"], inner(item, "status")
    meta, spec = inner(item, "metadata"), inner(item, "spec")
    true = {
        each.get("type"): each
        for each in inner_list(status, "conditions")
        if each.get("status") == "True"
    }
    admitted = true.get("Admitted") or true.get("QuotaReserved") or {}
    finished, gpus = true.get("Finished") or {}, 0
    for pods in inner_list(spec, "podSets"):
        count = pods.get("count", 1)
        if type(count) is not int or not 0 <= count < MOST_GPUS:
            raise Malformed("spec.podSets.count", count, "must be a number of pods")
        gpus += count * _pod_gpus(inner(inner(pods, "template"), "spec"), resource)
    assigned = inner_list(inner(status, "admission"), "podSetAssignments")
    flavors = {inner(each, "flavors").get(resource) for each in assigned} - {None}
    cells = {
        "pod": meta.get("name"),
        "submit": meta.get("creationTimestamp"),
        "start": admitted.get("lastTransitionTime"),
        "end": finished.get("lastTransitionTime"),
        "gpus": str(gpus),
        "user": meta.get("namespace"),
        "phase": ENDED["fail" in str(finished.get("reason")).lower()] if finished else "",
        "gpu_kinds": flavors.pop() if len(flavors) == 1 else "",
    }
    return {role: str(value or "") for role, value in cells.items()}


def _pod_gpus(spec: JsonObject, resource: str) -> int:
    """GPUs of all containers together, or of the largest that runs before them."""
    count = partial(_container_gpus, resource=resource)
    together = sum(map(count, inner_list(spec, "containers")))
    return max([together, *map(count, inner_list(spec, "initContainers"))])


def _container_gpus(container: JsonObject, resource: str) -> int:
    resources = inner(container, "resources")
    for kind in ("limits", "requests"):  # extended resources have equal requests and limits
        value = inner(resources, kind).get(resource)
        if value is not None:
            if not re.fullmatch(r"(?a:\d{1,9})", str(value)):
                raise Malformed(f"resources.{kind}.{resource}", value, "must be a number of GPUs")
            return int(str(value))
    return 0


KUBERNETES = Format(
    "kubernetes", "pods of Kubernetes", read_kubernetes,
    columns={
        "pod": "name", "job": "group", "submit": "creationTimestamp", "start": "startTime",
        "end": "finishTime", "gpus": "nvidia.com/gpu", "server": "node", "user": "namespace",
        "phase": "phase", "gpu_kinds": "gpu_kinds",
    },
    needed=("pod", "submit", "start", "end", "gpus"),
    # The label or annotation that names a pod's gang (else the usual ones), what counts as GPUs.
    settings={"gang": "", "resource": "nvidia.com/gpu", "requeue": REQUEUES},
)  # fmt: skip
