"""Every format on its example: the traps that it is known for, and what a reader makes of them."""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hindsched.errors import InputError
from hindsched.instances.traces.log import Log, read_log

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
OPTIONS: dict[str, dict[str, Any]] = {"sacct": {"time_zone": "Europe/Berlin"}}
FILES = {
    "csv": "jobs.csv",
    "swf": "workload.swf",
    "sacct": "sacct.txt",
    "kubernetes": "pods.json",
    "elasticflow": "elasticflow",
    "openb": "pods.csv",
    "philly": "cluster_job_log.json",
}


def example(form: str, name: str | None = None, **options: Any) -> Log:
    return read_log(EXAMPLES / (name or FILES[form]), form, **{**OPTIONS.get(form, {}), **options})


def jobs(log: Log) -> dict[str, tuple[float, float, int, float]]:
    """(Submission, duration, GPUs, completion) of each job in seconds."""
    found = log.jobs[["submit", "duration", "gpus", "completion"]].map(int)
    found[["submit", "duration", "completion"]] /= log.slots_per_second
    return dict(zip(log.jobs["job"], found.itertuples(index=False, name=None), strict=True))


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
    "elasticflow": {"0": (0, 450, 4, 450)},
    "philly": {"application_1_0001": (0, 4800, 2, 6000)},
}


@pytest.mark.parametrize("form", BY_HAND)
def test_jobs_by_hand(form: str) -> None:
    """What is set aside, and why, and what is noted stands in ``golden.json``."""
    found = jobs(example(form))
    assert {name: found[name] for name in BY_HAND[form]} == BY_HAND[form]


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


def test_a_simulators_table_is_read_by_naming_its_columns() -> None:
    text = "job_id,num_gpu,submit_time,start_time,end_time,executed_time\n2,8,100,700,5200,1800\n"
    named = {
        "job": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
        "gpus": "num_gpu", "duration": "executed_time",
    }  # fmt: skip
    log = _read(text, "csv", columns=named)
    assert jobs(log) == {"2": (0, 1800, 8, 5100)}
    assert log.jobs["completion_only"].all()


def test_elasticflow_follows_the_gpus() -> None:
    log = example("elasticflow")
    assert log.slots_per_second == 10  # one job ends at 930.5 s
    assert log.capacity is not None
    assert log.capacity.servers == (("0", 2), ("1", 2))
    # Four GPUs for 240 s, then two until its end, although the round goes on to second 480.
    assert log.jobs["work"].tolist() == [10 * (4 * 240 + 2 * 210), 12000, 3305]
    assert log.formulation == "elastic"


def test_openb_ends_running_pods_if_asked() -> None:
    ended = example("openb", settings={"running": "end"})
    assert jobs(ended)["pod-0"] == (0, 5000, 8, 5000)


def test_philly_attempts_across_the_end_of_daylight_saving() -> None:
    log = example("philly")
    # Its second attempt begins after the first ended: in the second of the two hours from one.
    assert log.schedule.query("job == 'application_1_0002'")[["start", "end"]].values.tolist() == [
        [4200, 7200],
        [9000, 12600],
    ]
    by_cluster = example("philly", settings={"user": "vc"})
    assert set(by_cluster.jobs["user"]) == {"6214e9"}


def test_frames_are_read_as_files_are() -> None:
    table = pd.read_csv(EXAMPLES / "jobs.csv")
    file, frame = example("csv"), read_log(table)
    pd.testing.assert_frame_equal(
        file.jobs.drop(columns="row"), frame.jobs.drop(columns="row"), check_dtype=False
    )
    stamps = table.copy()
    for column in ("submit", "start", "end"):
        stamps[column] = pd.to_datetime(stamps[column], utc=True)
    aware = read_log(stamps.rename(columns={"job": "JobID"}), columns={"job": "JobID"})
    assert aware.jobs["completion"].tolist() == file.jobs["completion"].tolist()
    spans = pd.DataFrame(
        {"job": [7], "submit": [0.5], "start": [1], "end": [9.0], "gpus": [2.0],
         "duration": pd.to_timedelta(["4500ms"])}
    )  # fmt: skip
    log = read_log(spans)
    assert jobs(log)["7"] == (0.5, 4.5, 2, 9)
    with pytest.raises(InputError, match="a frame with a column 'gpus'"):
        read_log(pd.DataFrame({"job": [1], "submit": 0, "start": 0, "end": 1}))


def _read(text: str, form: str, **options: Any) -> Log:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_text(text)
        return read_log(path, form, **options)


@pytest.mark.parametrize(
    ("first", "other", "dates", "read"),
    [
        ("05/06/2024 09:00", "13/06/2024 09:00", None, "2024-06-05T09:00:00+00:00"),
        ("05/06/2024 09:00", "06/13/2024 09:00", None, "2024-05-06T09:00:00+00:00"),
        ("05/06/2024 09:00", "06/07/2024 09:00", "month-first", "2024-05-06T09:00:00+00:00"),
        ("05.06.2024 09:00", "06.07.2024 09:00", None, "2024-06-05T09:00:00+00:00"),
        ("5/6/24 9:00 PM", "5/13/24 1:00 AM", None, "2024-05-06T21:00:00+00:00"),
        ("May 6, 2024 9:00 AM", "2024-05-07 10:00", None, "2024-05-06T09:00:00+00:00"),
        ("6 May 2024 9:00:01 +0200", "7 May 2024 9:00 UTC", None, "2024-05-06T07:00:01+00:00"),
        ("Mon May  6 09:00:00 2024", "2024/05/07 9:00", None, "2024-05-06T09:00:00+00:00"),
    ],
)  # fmt: skip
def test_dates_as_people_write_them(first: str, other: str, dates: Any, read: str) -> None:
    frame = pd.DataFrame({"job": ["a"], "submit": first, "start": other, "end": other, "gpus": 1})
    frame["end"] = frame["end"].str.replace(r"\d:00", "9:59", n=1, regex=True)
    log = read_log(frame, time_zone="UTC", dates=dates)
    assert log.stamp(log.jobs["submit"][0]) == read


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("05/06/2024 09:00", "may be 5 June 2024 or 6 May 2024: `dates` day-first or month-first"),
        ("run 2024 at 10:00", "must be a number of seconds, or a date and a time of day"),
        ("12:30 2024", "must be a number of seconds, or a date and a time of day"),
        ("2024/13/45 10:00", "must be a number of seconds, or a date and a time of day"),
    ],
)
def test_a_date_is_never_guessed(text: str, says: str) -> None:
    frame = pd.DataFrame({"job": ["a"], "submit": text, "start": text, "end": text, "gpus": 1})
    with pytest.raises(InputError, match=says):
        read_log(frame, time_zone="UTC")


def test_columns_go_by_their_usual_names_where_they_hold_what_they_should() -> None:
    frame = pd.DataFrame({
        "Job ID": ["a"], "created": ["by hand"], "createTs": [0], "Start Time": [5],
        "finishTs": [9], "GPUs": ["two"], "num_gpus": [2], "runtime": [1],
    })  # fmt: skip
    log = read_log(frame)
    assert log.jobs[["job", "submit", "gpus", "duration"]].iloc[0].tolist() == ["a", 0, 2, 4]
    assert log.facts == (
        'Read job from "Job ID", submit from "createTs", start from "Start Time", '
        'end from "finishTs", gpus from "num_gpus"; `columns` to change.',
    )
    with pytest.raises(InputError, match="column 'submit'"):  # the only one that fits is taken
        read_log(frame, columns={"start": "createTs"})


def test_a_table_gives_every_job_as_many_gpus(tmp_path: Path) -> None:
    """The shape of Volcano's pods_detail.csv."""
    path = tmp_path / "pods_detail.csv"
    path.write_text("podName,createTs,scheduleTs,finishTs\np,1714986000,1714986005,1714986605\n")
    assert read_log(path, settings={"gpus": "2"}).jobs["gpus"].tolist() == [2]
    with pytest.raises(InputError, match="column 'gpus'"):
        read_log(path)


@pytest.mark.parametrize(("column", "cell"), [("Elapsed", "05:17:50"), ("ElapsedRaw", "19070")])
def test_elapsed_says_which_of_two_hours_a_stamp_is_in(
    tmp_path: Path, column: str, cell: str
) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(
        f"JobID|Submit|Start|End|{column}|AllocTRES\n"
        f"1|2024-10-26T22:00:00|2024-10-26T22:12:10|2024-10-27T02:30:00|{cell}|gres/gpu=2\n"
    )
    log = read_log(path, "sacct", time_zone="Europe/Berlin")
    assert log.seconds(log.jobs["ran"][0]) == 5 * 3600 + 17 * 60 + 50


def test_kinds_are_what_jobs_asked_for(tmp_path: Path) -> None:
    kinds = read_log(EXAMPLES / "kinds.txt", "sacct", time_zone="UTC").jobs
    assert kinds[["gpus", "gpu_kinds"]].values.tolist() == [[4, "a100"], [2, "a100"], [2, ""]]
    named = {"gpu_kinds": "Partition"}
    partitions = read_log(EXAMPLES / "kinds.txt", "sacct", time_zone="UTC", columns=named).jobs
    assert partitions["gpu_kinds"].tolist() == ["fast", "fast", "slow"]
    old = tmp_path / "old.txt"
    old.write_text(
        "JobID|Submit|Start|End|ReqGRES\n1|0|0|9|gpu:a100:4(IDX:0-3)\n2|0|0|9|gpu:2,shard:1\n"
    )
    gres = {"gpus": "ReqGRES", "requested": "ReqGRES"}
    jobs = read_log(old, "sacct", columns=gres).jobs
    assert jobs[["gpus", "gpu_kinds"]].values.tolist() == [[4, "a100"], [2, ""]]
    swf = read_log(EXAMPLES / "workload.swf", "swf", columns={"gpu_kinds": "partition"}).jobs
    assert {*swf["gpu_kinds"]} <= {"", "1", "2"}
    assert "gpu_kinds" not in read_log(EXAMPLES / "workload.swf", "swf").jobs


def test_a_workload_of_kueue_is_a_job_of_all_its_pods() -> None:
    log = read_log(EXAMPLES / "workloads.json", "kubernetes")
    job = log.jobs.iloc[0]
    assert [job["job"], job["gpus"], job["gpu_kinds"]] == ["ml/job-bert", 8, "a100"]
    assert (job["submit"], job["ran"], job["completion"]) == (0, 3510, 3600)
    assert log.others["job"].tolist() == ["ml/job-gpt"]
