"""Make ``docs/guides/audits.md``: published schedules judged, every number computed here.

    HINDSCHED_TRACES=... python benchmarks/audits.py [--time-limit 60] [--output PAGE]

Needs the published schedules (the page on logs says where from); about fifteen minutes. Limits
are processor time, so that a loaded machine finds the same. What is computed is kept in a file and
not computed again; sections that nothing is known of stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import heapq
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cpu_clock import count_cpu_seconds
from jinja2 import StrictUndefined, Template

import hindsched as hs
from hindsched.analysis.audit.gang.verdict import AuditVerdict, seconds
from hindsched.analysis.bounds import Bounds
from hindsched.instances.gang.generator import from_trace
from hindsched.instances.gang.instance import GangInstance
from hindsched.instances.traces.log import read_log
from hindsched.instances.traces.table import load_trace
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.families.gang.replay import replay

HERE = Path(__file__).parent
TRACES = Path(os.environ["HINDSCHED_TRACES"])
FIGURE_10 = TRACES / "schedules/elasticflow_fig10"
SCHEDULERS = {
    "dlas-gpu": "Tiresias",
    "edf": "EDF",
    "ef-accessctrl": "ElasticFlow",
    "gandiva": "Gandiva",
    "themis": "Themis",
}
LIST = TRACES / "workloads/w_ef05_3629_job.csv.gz"
SAID = (240_177.8, 258_936.8, 308_889.8)
"""Mean JCT of plain FIFO on the list by three public simulators."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--output", default="docs/guides/audits.md")
    parser.add_argument("--facts", default="audits-facts.json")
    parser.add_argument("--part", action="append", choices=list(PARTS))
    arguments = parser.parse_args()
    count_cpu_seconds()
    kept = Path(arguments.facts)
    facts = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for name in arguments.part or PARTS:
        if name not in facts:
            facts[name] = PARTS[name](arguments.time_limit)
            kept.write_text(json.dumps(facts), encoding="utf-8")
            print(name, flush=True)
    page = Path(arguments.output)
    known = dict(sections(page.read_text(encoding="utf-8"))) if page.exists() else {}
    text = ""
    for heading, section in sections((HERE / "audits.md.jinja").read_text(encoding="utf-8")):
        if set(re.findall(r"{{ (\w+)\.", section)) <= facts.keys():
            made = Template(section, undefined=StrictUndefined, keep_trailing_newline=True)
            text += made.render(facts)
        else:
            text += known[heading]
    page.write_text(text, encoding="utf-8")


def sections(text: str) -> list[tuple[str, str]]:
    """Sections of a page by their headings, in their order."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return [(part.partition("\n")[0], part) for part in parts]


def table(rows: list[dict[str, Any]]) -> str:
    """A table in Markdown."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def within(found: AuditVerdict) -> str:
    """Within which factors of the best possible a schedule is."""
    return str(found.ratio)


def between(found: AuditVerdict) -> str:
    """Where the best possible lies."""
    assert found.best.lower is not None
    assert found.best.upper is not None
    return f"{seconds(found.best.lower, -1)} to {seconds(found.best.upper, 1)}"


def figure_10(limit: float) -> dict[str, Any]:
    """The five schedules of ElasticFlow's Figure 10."""
    logs = {name: read_log(FIGURE_10 / f"{name}.job.csv", "elasticflow") for name in SCHEDULERS}
    own = {name: hs.audit(log, time_limit=limit / 2) for name, log in logs.items()}
    rows = [
        {
            "scheduler": SCHEDULERS[name],
            "mean JCT, s": f"{found.verdict.value:,.2f}",
            "deadlines met": found.to_frame()["deadlines_met"][0],
            "treats jobs as": found.log.formulation,
            "GPU-seconds held": f"{found.log.jobs['work'].sum():,}",
            "most GPUs of 128": found.breaches.peak,
            "best possible, s": between(found.verdict),
            "within": within(found.verdict),
        }
        for name, found in own.items()
    ]
    tiresias, elasticflow = own["dlas-gpu"].verdict, own["ef-accessctrl"].verdict
    work = {name: log.jobs.set_index("job")["work"] for name, log in logs.items()}
    total = {name: int(values.sum()) for name, values in work.items()}
    jobs = logs["edf"].jobs
    fewest = pd.concat(work.values(), axis=1).min(axis=1).reindex(jobs["job"]).to_numpy()
    frame = pd.DataFrame({"job": jobs["job"], "submit": jobs["submit"], "duration": fewest})
    pooled = hs.gang(frame.assign(gpus=1), gpus=128)
    priced = hs.solve(pooled, "bound", formulation="elastic", time_limit=limit / 2).bound
    assert priced is not None
    common = priced / len(jobs)
    due = hs.audit(logs["gandiva"], objective="deadlines-met", time_limit=limit / 2)
    return {
        "table": table(rows),
        "peak": own["dlas-gpu"].breaches.peak,
        "alone": seconds(float(logs["dlas-gpu"].jobs["duration"].mean())),
        "tiresias_wait": f"{own['dlas-gpu'].to_frame()['mean_wait'][0]:.1f}",
        "gandiva_deadlines": due.sentence().removeprefix("Your scheduler "),
        "edf_factor": f"{total['edf'] / total['dlas-gpu']:.1f}",
        "elasticflow_factor": f"{total['ef-accessctrl'] / total['dlas-gpu']:.1f}",
        "common_bound": seconds(common, -1),
        "elasticflow": f"{elasticflow.value:,.0f}",
        "common_factor": f"{elasticflow.value / common:.1f}",
        "gain": f"{tiresias.value / elasticflow.value:.2f}",
        "tiresias_within": within(tiresias),
    }


def jobs_of_list() -> list[tuple[int, int, int]]:
    with gzip.open(LIST, "rt") as stream:
        rows = list(csv.DictReader(stream))
    return [(int(r["submit_time"]), int(r["duration"]), int(r["num_gpu"])) for r in rows]


def rounds_fifo(gpus: int, length: int, idle: int) -> tuple[float, float]:
    """Mean JCT (to the job's own end, and to the end of its last round) of strict FIFO in rounds.

    Jobs start when a round begins, and hold their GPUs for the rounds that they touch and `idle`
    more.
    """
    running: list[tuple[int, int]] = []
    free, now, own, rounded = gpus, 0, 0, 0
    jobs = sorted(jobs_of_list(), key=lambda job: job[0])
    for submit, duration, width in jobs:
        now = max(now, -(-submit // length) * length)
        while free < width or (running and running[0][0] <= now):
            end, back = heapq.heappop(running)
            free, now = free + back, max(now, end)
        rounds = duration // length + 1
        heapq.heappush(running, (now + (rounds + idle) * length, width))
        free -= width
        own += now + duration - submit
        rounded += now + rounds * length - submit
    return own / len(jobs), rounded / len(jobs)


def fifo(limit: float) -> dict[str, Any]:
    """Three answers to one question."""
    frame = pd.DataFrame(jobs_of_list(), columns=["submit", "duration", "gpus"])
    frame["job"] = [f"j{k}" for k in range(len(frame))]
    exact = replay(hs.gang(frame, gpus=16), "fifo")
    begin = int(frame["submit"].min())
    log = frame.assign(start=exact.starts + begin, end=exact.completions + begin)
    policies = ["fifo-skip", "easy", "srtf"]
    found = hs.audit(log, gpus=16, policies=policies, time_limit=2 * limit)
    values = {row["scheduler"]: row["value"] for row in found.rows()}
    rows = []
    for length in (1, 10, 60, 300, 360, 600):
        for idle in (0, 1):
            own, rounded = rounds_fifo(16, length, idle)
            row = {
                "round, s": length,
                "idle rounds after a job": idle,
                "mean JCT to the job's end, s": f"{own:,.1f}",
                "to its round's end, s": f"{rounded:,.1f}",
                "above exact": f"{own / values['log'] - 1:.1%}",
            }
            rows.append(row)
    first, second, third = SAID
    near = rounds_fifo(16, 300, 1)
    return {
        "first": f"{first:,.1f}",
        "second": f"{second:,.1f}",
        "third": f"{third:,.1f}",
        "sentence": found.sentence(),
        "exact": f"{values['log']:,.1f}",
        "table": table(rows),
        "second_above": f"{second / values['log'] - 1:.1%}",
        "third_above": f"{third / values['log'] - 1:.1%}",
        "near_low": f"{near[0]:,.1f}",
        "near_high": f"{near[1]:,.1f}",
        "fits": f"{rounds_fifo(16, 500, 3)[0]:,.1f}",
        "low": seconds(found.verdict.best.lower, -1),
        "high": seconds(found.verdict.best.upper, 1),
        "within": within(found.verdict),
        "skip": f"{values['fifo-skip']:,.1f}",
        "easy": f"{values['easy']:,.1f}",
        "srtf": f"{values['srtf']:,.1f}",
    }


def clusters(limit: float) -> dict[str, Any]:
    """ElasticFlow's ten clusters, each on its own GPUs, and all together."""
    trace = load_trace(TRACES / "elasticflow/raw-traces.tar.gz", "elasticflow")
    rows, sums, spent = [], [0.0] * 7, 0.0
    for number in range(1, 11):
        listed = trace.part(f"cluster{number:02d}")
        gpus = gpus_for(listed.rows)
        instance = from_trace(listed, jobs=len(listed), gpus=gpus)
        assert isinstance(instance, GangInstance)
        totals = [replay(instance, name).objective() for name in ("fifo", "easy", "sjf")]
        allowed = limit / 2  # the same for each: their gaps at first weigh about the same
        spent += allowed
        result = hs.solve(instance, time_limit=allowed)
        assert result.certificate is not None
        assert result.objective is not None
        proven = verify_certificate(instance, result.certificate.to_dict()).bound
        numbers = [len(listed), gpus, *totals, proven, min(result.objective, *totals)]
        sums = [before + more for before, more in zip(sums, numbers, strict=True)]
        rows.append(interval_row(listed.selected_part, numbers))
    rows.append(interval_row("all ten", sums))
    return {"table": table(rows), "jobs": f"{sums[0]:,.0f}", "spent": f"{spent:.0f}"}


def gpus_for(rows: pd.DataFrame) -> int:
    """Servers of 8 that hold the mean demand, a tenth more, and the widest job, in GPUs."""
    begin, long, gpus = (rows[name] for name in ("submit_seconds", "duration_seconds", "gpus"))
    demand = float((long * gpus).sum() / (begin.max() - begin.min()))
    return 8 * math.ceil(max(1.1 * demand, float(gpus.max())) / 8)


def interval_row(name: str, numbers: list[float]) -> dict[str, Any]:
    """A list, what policies do with it, and what the best possible is."""
    jobs, gpus, fifo, easy, sjf, proven, found = numbers
    verdict = AuditVerdict("mean-jct", fifo / jobs, Bounds(proven / jobs, found / jobs))
    return {
        "list": name,
        "jobs": f"{jobs:,.0f}",
        "GPUs": f"{gpus:,.0f}",
        "FIFO, s": seconds(fifo / jobs),
        "EASY, s": seconds(easy / jobs),
        "SJF, s": seconds(sjf / jobs),
        "best possible, s": between(verdict),
        "gap": f"{1 - proven / found:.1%}",
        "FIFO within": within(verdict),
    }


def philly(limit: float) -> dict[str, Any]:
    """Two weeks of Philly's virtual clusters, each a kind of GPU, by first fit."""
    nodes = pd.read_csv(TRACES / "philly/philly_vc.csv", index_col="vc")["node num"]
    servers = [(f"{vc}-{n}", 8, vc) for vc, count in nodes.items() for n in range(count)]
    rows = load_trace(TRACES / "philly/philly.csv.gz", "philly").rows
    day = rows["submit_seconds"] / 86400
    rows = rows[day.between(30, 44) & rows["part"].isin(nodes.index)].reset_index(drop=True)
    log = pd.DataFrame({
        "job": rows.index.map(str), "submit": rows["submit_seconds"].round().astype(int),
        "duration": rows["duration_seconds"].round().clip(lower=1).astype(int),
        "gpus": rows["gpus"], "gpu_kinds": rows["part"],
    })  # fmt: skip
    log["submit"] -= log["submit"].min()
    run = replay(hs.gang(log, servers=servers), "fifo-skip")
    log = log.drop(columns="duration").assign(start=run.starts, end=run.completions)
    found = hs.audit(log, servers=servers, time_limit=2 * limit, policies=[])
    assert found.is_possible
    assert found.fragmentation is not None
    levels = [
        {"best possible": level.name, "mean JCT at least, s": f"{level.bounds.lower:,.1f}",
         "found, s": f"{level.bounds.upper:,.1f}"} for level in found.fragmentation.levels
    ]  # fmt: skip
    kinds = [
        {"virtual cluster": kind.kind, "GPUs": kind.gpus, "jobs": f"{kind.jobs:,}",
         "asked": f"{kind.asked:.0%}", "waited, GPU-hours": f"{kind.waited / 3600:,.0f}",
         "short, hours": f"{kind.short_hours:,.1f}", "rent": f"{kind.rent:.0%}"}
        for kind in found.fragmentation.kinds.itertuples()
    ]  # fmt: skip
    return {
        "jobs": f"{len(log):,}", "mean": f"{found.verdict.value:,.1f}", "levels": table(levels),
        "kinds": table(kinds), "sentence": found.fragmentation.sentence(),
    }  # fmt: skip


def alibaba(limit: float) -> dict[str, Any]:
    """openb's and DLRM's pods."""
    nodes = pd.read_csv(TRACES / "alibaba_v2023/openb_node_list_gpu_node.csv.gz")
    gpus = int(nodes["gpu"].sum())
    openb_path = TRACES / "alibaba_v2023/openb_pod_list_default.csv.gz"
    openb = read_log(openb_path, "openb", gpus=gpus)
    found = hs.audit(openb, time_limit=limit / 2)
    columns = {"job": "instance_sn", "gpus": "gpu_request", "user": "app_name"}
    dlrm_path = TRACES / "schedules/alibaba_v2025_dlrm.csv.gz"
    dlrm = read_log(dlrm_path, "openb", columns=columns, time_step="1")
    dlrm_waits = waits("DLRM", dlrm_path, "gpu_request")
    return {
        "table": table(waits("openb", openb_path, "num_gpu") + dlrm_waits),
        "gpus": gpus,
        "rows": f"{openb.rows_read:,}",
        "judged": len(openb.jobs),
        "sentence": found.sentence(),
        "peak": f"{found.breaches.peak:,}",
        "dlrm_rows": f"{dlrm.rows_read:,}",
        "dlrm_days": f"{float(dlrm_waits[0]['longest'].replace(',', '')) / 86400:.1f}",
    }


def waits(name: str, path: Path, gpus: str) -> list[dict[str, str]]:
    """Seconds from creation to start of a list's pods, by what they ask for; waits that occur."""
    pods = pd.read_csv(path)
    waited = (pods["scheduled_time"] - pods["creation_time"]).dropna()
    pods = pods.loc[waited.index]
    asked = pods[gpus].where(pods[gpus] != 1, pods.get("gpu_milli", 1000) / 1000)
    rows = []
    for kind, is_kind in {
        "all": asked >= 0, "whole GPUs": asked >= 1,
        "a share of a GPU": asked % 1 > 0, "no GPU": asked == 0,
    }.items():  # fmt: skip
        listed = waited[is_kind]
        if len(listed):
            at = np.percentile(listed, [50, 95, 99, 100], method="inverted_cdf")
            names = ("median", "p95", "p99", "longest")
            rows.append({
                "list": name, "pods": kind, "with both times": f"{len(listed):,}",
                "mean wait, s": f"{listed.mean():,.1f}",
                **{each: f"{value:,.0f}" for each, value in zip(names, at, strict=True)},
            })  # fmt: skip
    return rows


def nasa(limit: float) -> dict[str, Any]:
    """NASA's iPSC/860 log."""
    log = read_log(TRACES / "schedules/swf/NASA-iPSC-1993-3.1-cln.swf.gz", "swf")
    found = hs.audit(log, policies=["fifo", "easy"], time_limit=limit / 2)
    values = {row["scheduler"]: row["value"] for row in found.rows()}
    breach = found.breaches.listed[0]
    return {
        "sentence": found.sentence(),
        "judged": f"{len(log.jobs):,}",
        "rows": f"{log.rows_read:,}",
        "empty": log.rows_read - len(log.jobs),
        "breach": str(breach),
        "fifo": f"{values['fifo']:,.1f}",
        "easy": f"{values['easy']:,.1f}",
    }


PARTS: dict[str, Callable[[float], dict[str, Any]]] = {
    "five": figure_10,
    "fifo": fifo,
    "clusters": clusters,
    "philly": philly,
    "alibaba": alibaba,
    "nasa": nasa,
}
"""The page's sections by the names that its template has for their facts."""


if __name__ == "__main__":
    main()
