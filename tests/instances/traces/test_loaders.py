"""Every loader on small crafted files: units, rejections with their reasons, one-line errors."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hindsched.errors import InputError
from hindsched.instances.traces.table import load_trace

ELASTICFLOW = (
    "job_id,submission_time,duration,num_gpu\nb,100,600,4\na,40,700,2\nc,50,0,1\nd,x,9,1\n"
)


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.name.endswith(".gz") else text.encode())
    return path


def test_elasticflow_reads_a_file_a_folder_and_an_archive(tmp_path: Path) -> None:
    single = write(tmp_path / "cluster01.csv", ELASTICFLOW)
    write(tmp_path / "cluster02.csv", ELASTICFLOW.replace("b,100", "e,10"))
    archive = tmp_path / "raw.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("cluster02.csv", "cluster01.csv"):
            data = (tmp_path / name).read_bytes()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    table = load_trace(single, "elasticflow")
    assert table.rows["job"].tolist() == ["a", "b"]
    assert table.rows["submit_seconds"].tolist() == [0, 60]
    assert table.reasons() == {"duration not above 0": 1, "no submission time": 1}
    assert table.rejected["row"].tolist() == [3, 4]
    assert table.window(30, 1).rows["job"].tolist() == ["b"]
    with pytest.raises(InputError, match="2 jobs"):
        table.window(0, 3)
    whole = load_trace(archive, "elasticflow")
    folder = load_trace(tmp_path, "elasticflow")
    assert whole.rows.equals(folder.rows)
    assert whole.rows_read == 8
    assert len(whole.part("cluster02")) == 2
    assert whole.provenance()["trace_sha256"]
    assert "trace_part" not in whole.provenance()
    assert whole.part("cluster02").window(0, 1).provenance()["trace_part"] == "cluster02"


def attempt(start: Any, end: Any, *gpus: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(n)]} for i, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def day(time: str) -> str:
    return f"2017-10-09 {time}:00"


def test_philly_log_adds_attempts_and_counts_the_first_ones_gpus(tmp_path: Path) -> None:
    shared = {"vc": "v", "user": "u"}
    retried = [attempt(day("08:10"), day("08:20"), 2, 1), attempt(day("09:00"), day("09:05"), 8)]
    jobs = [
        {"status": "Pass", "jobid": "1", "submitted_time": day("08:00"), "attempts": retried},
        {"status": "Killed", "jobid": "2", "submitted_time": "None", "attempts": retried},
        {"status": "Killed", "jobid": "3", "submitted_time": day("08:00"), "attempts": []},
        {"status": "Pass", "jobid": "4", "submitted_time": day("08:00"),
         "attempts": [attempt(day("08:10"), None, 1)]},
        {"status": "Pass", "jobid": "5", "submitted_time": day("08:00"),
         "attempts": [attempt("", day("08:10"), 1)]},
    ]  # fmt: skip
    path = write(tmp_path / "log.json", json.dumps([{**shared, **job} for job in jobs]))
    table = load_trace(path, "philly")
    row = table.rows.iloc[0]
    assert (row["job"], row["gpus"], row["duration_seconds"]) == ("1", 3, 15 * 60)
    assert row["queue_seconds"] == 10 * 60
    assert table.reasons() == {
        "no submission time": 1,
        "never started": 1,
        "still running when the trace ended": 1,
        "an attempt without start or end": 1,
    }


CHRONUS = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
    "expect_time_list,expect_value_list,best_effort,job_type\n"
)


def test_chronus_is_in_minutes_and_keeps_deadlines_and_values(tmp_path: Path) -> None:
    text = CHRONUS
    text += "0,vc_a,1,10,5,m,96,5,159-189,10-8,0,soft\n1,vc_b,2,12,5,m,6,5,20,10,0,strict\n"
    text += "2,vc_b,2,13,5,m,6,5,13,10,1,best\n3,vc_b,0,13,5,m,6,5,20,10,0,strict\n"
    text += "4,vc_b,1,13,5,m,6,5,30-20,10-8,0,soft\n5,vc_b,1,13,5,m,6,5,30,10,0,odd\n"
    table = load_trace(write(tmp_path / "c.csv", text), "chronus")
    assert table.rows["submit_seconds"].tolist() == [0, 120, 180]
    assert table.rows["duration_seconds"].tolist() == [96 * 60, 360, 360]
    assert table.rows["deadlines_seconds"].tolist() == [(159 * 60, 189 * 60), (1200,), ()]
    assert table.rows["values"].tolist() == [(10, 8), (10,), (10,)]
    assert table.rows["value_kind"].tolist() == ["soft", "strict", "best-effort"]
    assert len(table.part("a")) == 1
    assert table.reasons() == {
        "no GPU requested": 1,
        "deadlines and values do not match": 1,
        "unknown kind of job": 1,
    }


def test_helios_log_and_quotas(tmp_path: Path) -> None:
    text = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
    text += "duration,queue\n"
    text += "1,u,vcA,2,8,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,x,30,10\n"
    text += "2,u,vcA,0,8,1,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:20,x,30,20\n"
    table = load_trace(write(tmp_path / "log.csv", text), "helios")
    assert table.rows[["gpus", "duration_seconds", "queue_seconds"]].iloc[0].tolist() == [2, 30, 10]
    assert table.reasons() == {"no GPU requested": 1}


@pytest.mark.parametrize(
    ("name", "content", "trace_format", "said"),
    [
        ("x.csv", "job_id,duration\n1,2\n", "elasticflow", "with a column 'submission_time'"),
        ("x.csv", "job_id,submission_time,duration,num_gpu\na,1,9,2,\n", "elasticflow", "5 cells"),
        ("x.csv.gz", None, "philly", "NUL"),
        ("x.tar.gz", None, "elasticflow", "tar"),
        ("x.json", "[1]", "philly", "must have attempts"),
        ("x.json", "{", "philly", "JSON"),
        ("x.csv", "a,b\n1,2\n", "chronus", "with a column"),
        ("x.csv", "a\n", "nonsense", "must be one of"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, name: str, content: str | None, trace_format: str, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x00\x01\x02 not gzip" if content is None else content.encode())
    with pytest.raises(InputError, match=said) as caught:
        load_trace(path, trace_format)
    assert "\n" not in str(caught.value)


def test_alibaba_2020_counts_instances_times_planned_shares(tmp_path: Path) -> None:
    tasks = (
        "j1,worker,2,Terminated,100,160,600,29,150,V100\nj2,worker,1,Running,90,,600,29,100,T4\n"
    )
    table = load_trace(write(tmp_path / "pai_task_table.csv", tasks), "alibaba-2020")
    assert table.rows[["job", "gpus", "duration_seconds"]].iloc[0].tolist() == ["j1/worker", 4, 60]
    assert table.reasons() == {"still running: no end": 1}
