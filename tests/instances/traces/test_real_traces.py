"""The real traces, found by the variable HINDSCHED_TRACES: every row accepted or rejected."""

from __future__ import annotations

import heapq
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hindsched.instances.traces.table import TraceTable, build_table, load_capacities, load_trace

FOLDER = os.environ.get("HINDSCHED_TRACES", "")
TRACES = Path(FOLDER)
pytestmark = pytest.mark.skipif(
    not FOLDER or not TRACES.is_dir(), reason="HINDSCHED_TRACES names no folder of real traces"
)


@pytest.mark.parametrize(
    ("trace_format", "path", "rows", "rejected"),
    [
        ("elasticflow", "elasticflow/raw-traces.tar.gz", 69_351, {}),
        ("philly", "philly/philly.csv.gz", 82_247, {}),
        ("chronus", "chronus/trace_job_Philly_MIX2.csv.gz", 30_940, {"no GPU requested": 194}),
        ("chronus", "chronus/trace_job_Philly_SLO.csv.gz", 30_940, {"no GPU requested": 205}),
    ],
)
def test_accepted_plus_rejected_is_everything(
    trace_format: str, path: str, rows: int, rejected: dict[str, int]
) -> None:
    table = load_trace(TRACES / path, trace_format)
    assert len(table.rows) + len(table.rejected) == table.rows_read == rows
    assert table.reasons() == rejected


def test_chronus_kinds_of_value() -> None:
    table = load_trace(TRACES / "chronus/trace_job_Philly_MIX2.csv.gz", "chronus")
    counts = table.rows["value_kind"].value_counts()
    assert counts["soft"] > counts["strict"] > counts["best-effort"] > 3000
    soft = table.rows[table.rows["value_kind"] == "soft"]
    assert set(soft["values"]) == {(10.0, 8.0, 5.0, 2.0)}


def test_capacities() -> None:
    assert sum(load_capacities(TRACES / "philly/philly_vc.csv", None, 8).values()) == 8 * 352
    quotas = load_capacities(TRACES / "helios/Venus_cluster_gpu_number.csv", None, 8)
    assert len(quotas) == 25


def workload(jobs: int) -> TraceTable:
    path = TRACES / f"workloads/w_ef05_{jobs}_job.csv.gz"
    frame = pd.read_csv(path)
    raw = frame.rename(
        columns={
            "job_id": "job", "submit_time": "submit_seconds", "duration": "duration_seconds",
            "num_gpu": "gpus",
        }
    ).assign(part="w")  # fmt: skip
    return build_table("workload", path, raw)


def completion_times(table: TraceTable, capacity: int, *, skip: bool) -> tuple[float, float]:
    """Mean job completion time and makespan of FIFO (or, with `skip`, of first fit)."""
    rows = table.rows
    jobs = list(zip(rows["submit_seconds"], rows["duration_seconds"], rows["gpus"], strict=True))
    free, waiting, running = capacity, [], []
    total, makespan, index = 0.0, 0.0, 0
    while index < len(jobs) or running:
        arrival = jobs[index][0] if index < len(jobs) else np.inf
        now = min(arrival, running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while index < len(jobs) and jobs[index][0] <= now:
            waiting.append(jobs[index])
            index += 1
        left = []
        for position, job in enumerate(waiting):
            if job[2] > free:
                if not skip:
                    left += waiting[position:]
                    break
                left.append(job)
                continue
            free -= job[2]
            end = now + job[1]
            heapq.heappush(running, (end, job[2]))
            total += end - job[0]
            makespan = max(makespan, end)
        waiting = left
    return total / len(jobs), makespan


def shortest_remaining_bound(table: TraceTable, capacity: int) -> float:
    """Preemptive shortest remaining work on one machine of speed `capacity`; or mean duration."""
    rows = table.rows
    arrivals = rows["submit_seconds"].tolist()
    work = (rows["duration_seconds"] * rows["gpus"] / capacity).tolist()
    heap: list[list[float]] = []
    now, total = 0.0, 0.0
    for submitted, amount in [*zip(arrivals, work, strict=True), (np.inf, 0.0)]:
        while heap and now + heap[0][0] <= submitted:
            remaining, arrived = heapq.heappop(heap)
            now += remaining
            total += now - arrived
        if heap:
            heap[0][0] -= submitted - now
        now = submitted
        heapq.heappush(heap, [amount, submitted])
    return max(total / len(arrivals), float(rows["duration_seconds"].mean()))


@pytest.mark.parametrize(
    ("jobs", "fifo", "makespan", "first_fit", "bound"),
    [
        (200, 43_228.75, 249_325, 35_699.3, 15_538.4),
        (1000, 88_907.0, 2_023_822, 87_290.0, 37_475.6),
        (3629, 240_177.8, 5_303_286, 162_328.8, 66_192.0),
    ],
)
def test_workloads_have_their_known_answers(
    jobs: int, fifo: float, makespan: float, first_fit: float, bound: float
) -> None:
    table = workload(jobs)
    assert len(table) == jobs
    mean, last = completion_times(table, 16, skip=False)
    assert mean == pytest.approx(fifo, abs=0.06)
    assert last == makespan
    assert completion_times(table, 16, skip=True)[0] == pytest.approx(first_fit, abs=0.06)
    assert shortest_remaining_bound(table, 16) == pytest.approx(bound, abs=0.06)
