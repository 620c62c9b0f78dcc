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
