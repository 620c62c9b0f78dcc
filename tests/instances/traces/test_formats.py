"""Every format on its example: the traps that it is known for, and what a reader makes of them."""

from __future__ import annotations

import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.logs import FORMATS, read_frame, read_log

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
OPTIONS: dict[str, dict[str, Any]] = {"sacct": {"time_zone": "Europe/Berlin"}}
FILES = {
    "csv": "jobs.csv",
    "swf": "workload.swf",
    "sacct": "sacct.txt",
    "kubernetes": "pods.json",
    "tiresias": "tiresias",
    "elasticflow": "elasticflow",
    "openb": "pods.csv",
    "philly": "cluster_job_log.json",
    "batsim": "batsim_jobs.csv",
}


def example(form: str, name: str | None = None, **options: Any) -> Log:
    return read_log(EXAMPLES / (name or FILES[form]), form, **{**OPTIONS.get(form, {}), **options})


def jobs(log: Log) -> dict[str, tuple[float, float, int, float]]:
    """(Submission, duration, GPUs, completion) of each job in seconds."""
    rows = log.jobs.to_dict("records")
    return {
        row["job"]: (
            log.seconds(row["submit"]),
            log.seconds(row["duration"]),
            row["gpus"],
            log.seconds(row["completion"]),
        )
        for row in rows
    }


def rules(log: Log) -> dict[int, str]:
    """The last rule noted of each row."""
    return dict(log.notes.to_frame()[["row", "rule"]].itertuples(index=False))


def why(log: Log) -> dict[str, str]:
    return dict(log.others[["job", "why"]].itertuples(index=False))


BY_HAND = {
    "csv": {"train-b": (300, 1800, 4, 2110), "eval": (1200, 600, 1, 4510)},
    "swf": {
        "3": (120, 600, 16, 2460),
        "7": (600, 900, 4, 4700),  # swapped out: two bursts, and the summary is dropped
    },
    "sacct": {
        "1010": (136800, 5 * 3600, 4, 160200),  # 23:30 to 05:30 in the night without an hour
    },
    "kubernetes": {
        "ml/bert": (0, 3599, 8, 3631),  # from its last pod's start to its last end
        "ml/retry": (600, 1800, 2, 3010),
    },
    "tiresias": {
        "2": (100, 1800, 8, 5200),
        "3": (200, 900, 2, 6000),  # its start overflowed, its duration is given
    },
    "elasticflow": {"0": (0, 450, 4, 450)},
    "philly": {"application_1_0001": (0, 4800, 2, 6000)},
}
SET_ASIDE = {
    "csv": {"late": "still running"},
    "swf": {"4": "", "5": ""},
    "sacct": {"1006": "still running"},
    "kubernetes": {"ml/waits": "no start", "ml/serves": "still running"},
    "openb": {"pod-0": "still running", "pod-4": "submitted before the log begins"},
    "philly": {"application_1_0003": "no start", "application_1_0004": "still running"},
}
NOTES = {
    "csv": {8: "a share of a GPU"},
    "swf": {14: "ran for no time"},
    "sacct": {
        3: "a step of a job", 9: "tasks of an array that still wait", 16: "suspended",
        17: "asks for no GPU",
    },
    "kubernetes": {6: "asks for no GPU", 9: "must be a Pod"},
    "tiresias": {4: "overflowed"},
    "openb": {3: "a share of a GPU"},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_jobs_by_hand_what_is_set_aside_and_what_is_noted(form: str) -> None:
    log = example(form)
    found = jobs(log)
    for name, facts in BY_HAND.get(form, {}).items():
        assert found[name] == facts, name
    others = why(log)
    for name, reason in SET_ASIDE.get(form, {}).items():
        assert reason in others[name]
    notes = rules(log)
    for number, rule in NOTES.get(form, {}).items():
        assert rule in notes[number]


def test_the_frame_for_people_has_stamps_and_users() -> None:
    frame = example("csv").to_frame()
    assert frame["submit"].tolist()[0] == "2024-05-06T09:00:00+02:00"
    assert frame["deadline"].tolist()[2] == "2024-05-06T09:40:00+02:00"
    assert frame["user"].tolist() == ["ada", "bob", "cleo", "cleo", "ada"]


def test_sacct_gangs_and_suspensions() -> None:
    log = example("sacct")
    found = jobs(log)
    assert list(found) == ["1001", "1002", "1003_1", "1003_2", "1004", "1007", "1008", "1010"]
    assert found["1007"][2] == 3  # a heterogeneous job's parts together
    assert found["1008"][1] == 5400  # Elapsed, without the suspension
    assert log.jobs["completion_only"].tolist() == [False] * 6 + [True, False]
    assert log.schedule.set_index("job")["server"].to_dict()["1002"] == ""  # split not known


def test_sacct_repeated_hour() -> None:
    text = (
        "JobID|Submit|Start|End|AllocTRES|Elapsed\n"
        "1|2024-10-27T01:00:00|2024-10-27T02:30:00|2024-10-27T02:10:00|gres/gpu=1|00:40:00\n"
        "2|2024-10-27T02:20:00|2024-10-27T02:20:00|2024-10-27T02:50:00|gres/gpu=1|00:30:00\n"
    )
    log = _read(text, "sacct", time_zone="Europe/Berlin")
    assert jobs(log)["1"][1] == jobs(log)["2"][1] + 600 == 2400
    done = log.notes.to_frame().set_index(["row", "column"])["done"]
    assert done[2, "End"] == "taken as the second, for it follows what is before it"
    assert done[2, "Start"] == done[3, "End"] == "taken as the first"


def test_sacct_typed_gpus_count_once() -> None:
    row = "{}|2024-03-01T00:00:00|2024-03-01T00:00:01|2024-03-01T01:00:01|{}\n"
    text = "JobID|Submit|Start|End|AllocTRES\n" + "".join(
        row.format(number, tres)
        for number, tres in enumerate(
            ("gres/gpu:a100=2,gres/gpu=2", "gres/gpu:a100=2,gres/gpu:h100=1", "gres/gpu=3"), 1
        )
    )
    assert _read(text, "sacct", time_zone="UTC").jobs["gpus"].tolist() == [2, 3, 3]
    empty = text.replace("AllocTRES", "AllocTRES|ReqTRES").replace("gres/gpu=3", "|gres/gpu=5")
    log = _read(empty.replace("=2\n", "=2|\n").replace("=1\n", "=1|\n"), "sacct", time_zone="UTC")
    assert log.jobs["gpus"].tolist() == [2, 3, 5]  # requested, where nothing was allocated


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_header_tells_what_separates_cells(mark: str) -> None:
    text = mark.join(("job", "submit", "start", "end", "gpus")) + "\n"
    assert len(_read(text + mark.join("a0122"), "csv").jobs) == 1


@pytest.mark.parametrize("name", ["pods.json", "pods_table.csv"])
def test_kubernetes_pods_of_one_group_are_one_gang(name: str) -> None:
    log = example("kubernetes", name)
    held = log.schedule.query("job == 'ml/bert'")
    assert held["start"].tolist() == [30, 32]  # the first pod holds its GPUs while it waits
    assert held["end"].tolist() == [3630, 3631]


def test_kubernetes_counts_lost_attempts_and_init_containers() -> None:
    log = example("kubernetes")
    assert log.schedule.query("lost")["row"].tolist() == [3]
    assert jobs(log)["ml/alone"][2] == 2  # the init container asks for more
    labelled = example("kubernetes", settings={"gang": "batch.kubernetes.io/job-name"})
    assert {"ml/bert-0", "ml/bert-1"} <= set(labelled.jobs["job"])


def test_kubernetes_reads_a_list_lines_and_a_single_pod(tmp_path: Path) -> None:
    pods = json.loads((EXAMPLES / "pods.json").read_text())["items"][:2]
    texts = (json.dumps(pods), "\n".join(map(json.dumps, pods)), json.dumps({"items": pods}))
    for text in texts:
        assert len(_read(text, "kubernetes").jobs) == 1
    assert len(_read(json.dumps(pods[0]), "kubernetes").jobs) == 1


def test_tiresias_without_events_is_judged_by_completions() -> None:
    log = example("tiresias")
    assert log.jobs["completion_only"].tolist() == [False, True, True]
    assert not log.is_slotwise
    assert log.schedule["job"].tolist() == ["1", "2"]


def test_elasticflow_follows_the_gpus() -> None:
    log = example("elasticflow")
    assert log.slots_per_second == 10  # one job ends at 930.5 s
    assert log.capacity is not None
    assert log.capacity.servers == (("0", 2), ("1", 2))
    # Four GPUs for 240 s, then two until its end, although the round goes on to second 480.
    assert log.jobs["work"].tolist() == [10 * (4 * 240 + 2 * 210), 12000, 3305]
    assert log.formulation == "elastic"
    assert example("tiresias", "elasticflow").formulation == "elastic"  # the same files


def test_openb_ends_running_pods_if_asked_and_tells_waits() -> None:
    log = example("openb")
    ended = example("openb", settings={"running": "end"})
    assert jobs(ended)["pod-0"] == (0, 5000, 8, 5000)
    waits = {item.kind: item for item in log.waits}
    assert (waits["all"].rows, waits["all"].most) == (5, 305)
    assert waits["a share of a GPU"].mean == 2


def test_philly_attempts_across_the_end_of_daylight_saving() -> None:
    log = example("philly")
    # Its second attempt begins after the first ended: in the second of the two hours from one.
    assert log.schedule.query("job == 'application_1_0002'")[["start", "end"]].values.tolist() == [
        [4200, 7200],
        [9000, 12600],
    ]
    by_cluster = example("philly", settings={"user": "vc"})
    assert set(by_cluster.jobs["user"]) == {"6214e9"}


def test_a_window_sets_the_others_aside() -> None:
    options = {"submitted_from": "2024-03-29T08:05:00", "submitted_to": "2024-03-29T13:00:00"}
    log = example("sacct", **options)
    assert list(jobs(log)) == ["1003_1", "1003_2", "1004", "1007"]
    assert why(log)["1001"] == "submitted before the window"
    assert why(log)["1008"] == "submitted after the window"
    # They still hold GPUs, at times before the first judged submission.
    assert log.others.query("job == '1001'")["start"].tolist() == [-295]


def test_frames_are_read_as_files_are() -> None:
    table = pd.read_csv(EXAMPLES / "jobs.csv")
    file, frame = example("csv"), read_frame(table)
    pd.testing.assert_frame_equal(
        file.jobs.drop(columns="row"), frame.jobs.drop(columns="row"), check_dtype=False
    )
    stamps = table.copy()
    for column in ("submit", "start", "end"):
        stamps[column] = pd.to_datetime(stamps[column], utc=True)
    aware = read_frame(stamps.rename(columns={"job": "JobID"}), columns={"job": "JobID"})
    assert aware.jobs["completion"].tolist() == file.jobs["completion"].tolist()
    spans = pd.DataFrame(
        {"job": [7], "submit": [0.5], "start": [1], "end": [9.0], "gpus": [2.0],
         "duration": pd.to_timedelta(["4500ms"])}
    )  # fmt: skip
    log = read_frame(spans)
    assert jobs(log)["7"] == (0.5, 4.5, 2, 9)
    with pytest.raises(InputError, match="a frame with a column 'gpus'"):
        read_frame(pd.DataFrame({"job": [1], "submit": 0, "start": 0, "end": 1}))


def _read(text: str, form: str, **options: Any) -> Log:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_text(text)
        return read_log(path, form, **options)


# Published schedules, found by HINDSCHED_TRACES: the facts that their publishers' files hold.


FOLDER = os.environ.get("HINDSCHED_TRACES", "")
TRACES = Path(FOLDER)
real = pytest.mark.skipif(
    not FOLDER or not TRACES.is_dir(), reason="HINDSCHED_TRACES names no folder of real traces"
)


def mean_jct(log: Log) -> float:
    jobs = log.jobs
    return float((jobs["completion"] - jobs["submit"]).mean()) / log.slots_per_second


@real
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


@real
def test_themis_without_events_has_no_start_and_no_work() -> None:
    path = TRACES / "schedules/elasticflow_fig10/themis.job.csv"
    with pytest.raises(ValueError, match="100 times overflowed"):
        read_log(path, "tiresias", settings={"events": "none"})
