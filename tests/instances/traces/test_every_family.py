"""Every trace format becomes an instance of every family, and says what it is made of."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import hindsched as hs
from hindsched.cli.app import app
from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES
from hindsched.instances.traces.origin import job_names
from hindsched.instances.traces.table import LOADERS, build_table

WEEK = 7 * 86400


def table_of(trace_format):
    """Six jobs as that format gives them: two parts, a user, a job of many weeks."""
    raw = pd.DataFrame(
        {
            "job": [f"app_{number}" for number in range(6)],
            "part": ["p", "q"] * 3 if trace_format != "philly" else ["6214e9", "7f04ca"] * 3,
            "submit_seconds": [0.0, 600.0, 4000.0, 9000.0, 9000.0, 20000.0],
            "duration_seconds": [3600.0, 600.0, 7200.0, 20 * WEEK, 1800.0, 60.0],
            "gpus": [1, 8, 2, 8, 4, 1],
            "user": ["u1", "", "u2", "u1", "u2", "u1"],
        }
    )
    return build_table(trace_format, Path("trace.csv"), raw)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("trace_format", LOADERS)
def test_a_trace_becomes_an_instance_that_keeps_names_users_and_times(family, trace_format):
    made = hs.from_trace(family, table_of(trace_format), jobs=6)
    assert [job.name for job in made.jobs] == [f"app_{number}" for number in range(6)]
    assert made.provenance["trace_format"] == trace_format
    assert made.provenance["took"]
    assert made.provenance["made_up"]
    if family == "gang":  # its jobs have these facts as fields
        assert [job.user for job in made.jobs] == ["u1", None, "u2", "u1", "u2", "u1"]
    kept = made.provenance["trace_rows"]
    assert [row.get("user") for row in kept.values()] == ["u1", None, "u2", "u1", "u2", "u1"]
    assert kept["app_3"]["duration_seconds"] == 20 * WEEK
    assert kept["app_5"]["submit_seconds"] == 20000
    assert hs.read(json.loads(json.dumps(made.to_dict()))) == made


@pytest.mark.parametrize("family", ["oasis", "batchsched", "astraea", "edgecloud"])
def test_servers_and_slots_are_as_asked_for(family):
    made = hs.from_trace(family, table_of("elasticflow"), jobs=6, servers=5, slot_seconds=1800)
    servers = made.worker_servers if family == "oasis" else made.servers
    assert len(servers) == 5
    assert made.jobs[5].arrival - made.jobs[0].arrival == 20000 // 1800


def test_slots_of_mlbroker_are_as_asked_for():
    made = hs.from_trace("mlbroker", table_of("elasticflow"), jobs=6, slot_seconds=1800)
    assert made.slot_seconds == 1800
    assert made.jobs[5].arrival - made.jobs[0].arrival == 20000 // 1800


def test_times_of_gang_are_rounded_up_to_slots_and_it_says_so():
    made = hs.from_trace("gang", table_of("elasticflow"), jobs=6, slot_seconds=1800)
    assert [job.submit for job in made.jobs] == [0, 1800, 5400, 9000, 9000, 21600]
    assert [job.duration for job in made.jobs] == [3600, 1800, 7200, 20 * WEEK, 1800, 1800]
    assert made.provenance["made_up"][1] == (
        "times rounded up to slots of 1800 s: submissions of 3 jobs, durations of 2"
    )
    exact = hs.from_trace("gang", table_of("elasticflow"), jobs=6, slot_seconds=20)
    assert exact.provenance["made_up"] == ["a cluster of 64 GPUs"]


def test_deadlines_of_gang_count_from_the_submission_as_the_trace_has_it():
    table = table_of("chronus")
    table.rows["deadlines_seconds"] = [(700.5,)] * 6
    made = hs.from_trace("gang", table, jobs=6, slot_seconds=1800)
    assert [job.deadline for job in made.jobs][:2] == [700.5, 1300.5]


def test_servers_of_gang_differ_by_one_gpu_at_most():
    made = hs.from_trace("gang", table_of("elasticflow"), jobs=6, servers=7)
    assert [server.gpus for server in made.servers] == [10, 9, 9, 9, 9, 9, 9]
    assert made.provenance["made_up"][0] == "a cluster of 64 GPUs: 7 servers of 9 or 10"
    with pytest.raises(InputError, match="servers: 65: must be at most the number of GPUs, 64"):
        hs.from_trace("gang", table_of("elasticflow"), jobs=6, servers=65)


def test_names_are_made_unique():
    rows = pd.DataFrame({"job": ["a", "a", "b"], "part": ["x", "x", "y"]})
    assert job_names(rows) == ["x/a#1", "x/a#2", "y/b#3"]


def test_the_command_says_what_is_made_up(tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text(
        "job_id,submission_time,duration,num_gpu\na,100,600,4\nb,140,700,2\nc,900,800,1\n"
    )
    command = [
        "generate", "astraea", "--from-trace", str(trace), "--trace-format", "elasticflow",
        "--jobs", "3", "-o", str(tmp_path / "x.json"), "--json",
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*command, "--servers", "3", "--slot-seconds", "600"])
    assert done.exit_code == 0, done.output
    assert "made up: 3 nodes of 8 GPUs" in done.stderr
    assert "from the trace: submission: arrival" in done.stderr
    made = hs.read(tmp_path / "x.json")
    assert (made.slot_seconds, len(made.servers)) == (600, 3)
    assert [job.name for job in made.jobs] == ["a", "b", "c"]
    command[1] = "gang"
    done = CliRunner().invoke(app, [*command, "--servers", "3", "--slot-seconds", "450"])
    assert "3 servers of 21 or 22; times rounded up to slots of 450 s" in done.stderr
    refused = CliRunner().invoke(app, [*command, "--servers", "100"])
    assert str(refused.exception).startswith("servers: 100: must be at most")
    refused = CliRunner().invoke(app, [*command, "--slot-seconds", "0"])
    assert str(refused.exception).startswith("slot-seconds: 0.0: must be")
    refused = CliRunner().invoke(app, [*command, "--set", "servers=0"])
    assert str(refused.exception).startswith("set.servers: 0: must be")
    command[1] = "mlbroker"
    refused = CliRunner().invoke(app, [*command, "--servers", "3"])
    assert isinstance(refused.exception, InputError)
    assert "mlbroker has none from a trace" in str(refused.exception)
