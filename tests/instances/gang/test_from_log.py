"""Instances from frames and from logs: what was written is what is solved."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.gang.from_log import gang, instance_of_log
from hindsched.instances.traces.log import read_log

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
JOBS = pd.DataFrame(
    {
        "job": ["a", "b"],
        "submit": [3, 5.5],
        "duration": [60, 30],
        "gpus": 2,
        "weight": [1, 2.5],
        "deadline": [100, None],
        "user": ["x", ""],
    }
)


def test_a_frame_becomes_an_instance() -> None:
    instance = gang(JOBS, gpus=4)
    assert instance.slot_seconds == 0.1
    a, b = instance.jobs
    assert (a.submit, a.duration, a.gpus, a.weight, a.deadline, a.user) == (0, 60, 2, 1, 97, "x")
    assert (b.submit, b.duration, b.weight, b.deadline, b.user) == (2.5, 30, 2.5, None, None)
    assert type(instance).parse(instance.to_dict()) == instance
    assert gang(JOBS, servers="2x2", placement="consolidated").is_consolidated


@pytest.mark.parametrize(
    ("changed", "options", "expected"),
    [
        ({"gpus": [2, 0]}, {}, "frame, row 2, column gpus: 0"),
        ({"gpus": [2, 0.5]}, {}, "frame, row 2, column gpus: 0.5"),
        ({"gpus": [2, 9]}, {}, "frame, row 2, column gpus: 9: the cluster has 4"),
        ({"job": ["a", "a"]}, {}, "frame, row 2, column job: a: must stand once"),
        ({"duration": [1, None]}, {}, "frame, row 2, column duration: (empty): must be given"),
        ({"duration": [1, 0]}, {}, "frame, row 2, column duration: 0 s"),
        ({"submit": [None, 1]}, {}, "frame, row 1, column submit: (empty): must be given"),
        ({"weight": [1, -1]}, {}, "frame, row 2, column weight: -1"),
        ({}, {"gpus": None}, "gpus: (absent)"),
    ],
)
def test_a_broken_frame_is_one_line(
    changed: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        gang(JOBS.assign(**changed), **{"gpus": 4, **options})
    assert expected in str(caught.value)


def test_a_log_becomes_an_instance() -> None:
    log = read_log(EXAMPLES / "sacct.txt", "sacct", time_zone="Europe/Berlin", gpus=16)
    instance = instance_of_log(log)
    assert [job.name for job in instance.jobs] == log.jobs["job"].tolist()
    assert [job.duration for job in instance.jobs] == log.jobs["duration"].tolist()
    assert instance.provenance is not None
    assert instance.provenance["second_0"] == "2024-03-29T08:00:00+01:00"
    assert instance.provenance["log_sha256"] == log.sha256
    with pytest.raises(InputError, match="row 5, column gpus: 8: the cluster has 4"):
        instance_of_log(read_log(EXAMPLES / "sacct.txt", "sacct", time_zone="UTC", gpus=4))
    with pytest.raises(InputError, match="`gpus` or `servers` must"):
        instance_of_log(read_log(EXAMPLES / "sacct.txt", "sacct", time_zone="UTC"))


def test_a_job_of_changing_width_is_known_by_its_gpu_seconds() -> None:
    log = read_log(EXAMPLES / "elasticflow", "elasticflow")
    instance = instance_of_log(log)
    assert [(job.duration, job.gpus) for job in instance.jobs] == [
        (1380, 1),
        (1200, 1),
        (330.5, 1),
    ]
    assert [server.name for server in instance.servers or ()] == ["0", "1"]
    with pytest.raises(InputError, match="row 2, job 0: preemptive: its width changed"):
        instance_of_log(log, formulation="preemptive")
