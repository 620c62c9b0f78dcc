"""Published schedules, found by HINDSCHED_TRACES: the facts that their publishers' files hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hindsched.instances.traces.log import Log
from hindsched.instances.traces.logs import read_log

FOLDER = os.environ.get("HINDSCHED_TRACES", "")
TRACES = Path(FOLDER)
pytestmark = pytest.mark.skipif(
    not FOLDER or not TRACES.is_dir(), reason="HINDSCHED_TRACES names no folder of real traces"
)


def mean_jct(log: Log) -> float:
    jobs = log.jobs
    return float((jobs["completion"] - jobs["submit"]).mean()) / log.slots_per_second


@pytest.mark.parametrize(
    ("scheduler", "mean", "met", "formulation", "work"),
    [
        ("dlas-gpu", 51_045.95, 100, "non-preemptive", 13_785_432),
        ("edf", 63_318.75, 92, "elastic", 146_056_800),
        ("ef-accessctrl", 24_305.52, 100, "elastic", 53_216_724),
        ("gandiva", 63_852.78, 79, "preemptive", 13_863_758),
        ("themis", 51_242.94, 99, "non-preemptive", 13_807_920),
    ],
)
def test_elasticflow_figure_10(
    scheduler: str, mean: float, met: int, formulation: str, work: int
) -> None:
    log = read_log(TRACES / f"schedules/elasticflow_fig10/{scheduler}.job.csv", "elasticflow")
    assert len(log.jobs) == 100
    assert mean_jct(log) == pytest.approx(mean, abs=1e-9)
    assert (log.jobs["completion"] <= log.jobs["deadline"]).sum() == met
    assert log.formulation == formulation
    assert log.jobs["work"].sum() == work
    assert log.capacity is not None
    assert (log.capacity.gpus, len(log.capacity.servers)) == (128, 16)


def test_themis_without_events_has_no_start_and_no_work() -> None:
    path = TRACES / "schedules/elasticflow_fig10/themis.job.csv"
    with pytest.raises(ValueError, match="100 times overflowed"):
        read_log(path, "tiresias", settings={"events": "none"})


def test_nasa_ipsc() -> None:
    log = read_log(TRACES / "schedules/swf/NASA-iPSC-1993-3.1-cln.swf.gz", "swf")
    assert log.rows_read == 18_239
    assert len(log.jobs) == 18_239 - 173  # ran for no time
    assert log.capacity is not None
    assert log.capacity.gpus == 128
    assert (log.schedule["start"].to_numpy() == log.jobs["submit"].to_numpy()).all()
    assert log.facts


def test_openb_waits() -> None:
    log = read_log(TRACES / "alibaba_v2023/openb_pod_list_default.csv.gz", "openb")
    waits = log.waits[0]
    assert (log.rows_read, waits.rows, waits.most) == (8_152, 7_255, 14_330)
    assert waits.mean == pytest.approx(61.3, abs=0.05)


def test_dlrm_waits() -> None:
    columns = {"job": "instance_sn", "gpus": "gpu_request", "user": "app_name"}
    path = TRACES / "schedules/alibaba_v2025_dlrm.csv.gz"
    log = read_log(path, "openb", columns=columns, time_step="1")
    waits = log.waits[0]
    assert (log.rows_read, waits.rows, waits.most) == (23_871, 16_591, 238_116)
    assert waits.mean == pytest.approx(187.9, abs=0.05)
