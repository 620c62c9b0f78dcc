"""Broken logs: each is refused in one line that names row and column (or the file's own fault)."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.audit.gang.verdict import find_breaches
from hindsched.errors import InputError
from hindsched.instances.traces.log import read_log
from hindsched.instances.traces.times import SECOND, LogClock, find_zone, stamp_text

CSV = "job,submit,start,end,gpus\na,0,0,10,4\nb,5,10,20,4\n"
SACCT = "JobID|Submit|Start|End|AllocTRES|Elapsed\n"
GOOD_SACCT = "1|2024-03-01T00:00:00|2024-03-01T00:00:01|2024-03-01T01:00:01|gres/gpu=1|01:00:00\n"
SWF = "; MaxProcs: 8\n1 0 0 10 4 -1 -1 4 -1 -1 1 1 1 -1 1 1 -1 -1\n"
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p", "creationTimestamp": "2024-01-01T00:00:00Z"},
    "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "status": {
        "phase": "Succeeded",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-01-01T00:00:05Z"}
        ],
        "containerStatuses": [{"state": {"terminated": {"finishedAt": "2024-01-01T01:00:00Z"}}}],
    },
}
JOBS = "job_id,num_gpu,submit_time,start_time,end_time,executed_time\n0,1,0,0,10,10\n"


def cells(*rows: str) -> str:
    return "job,submit,start,end,gpus\n" + "".join(row + "\n" for row in rows)


def pod(**changed: Any) -> str:
    return json.dumps({"items": [POD, {**POD, **changed}]})


BROKEN: list[tuple[str, str, str | bytes, dict[str, Any], str]] = [
    ("no time", "csv", cells("a,0,0,ten,4"), {}, "row 2, column end: ten: must be a number"),
    ("backwards", "csv", cells("a,0,10,3,4"), {}, "row 2, column end: -7 s after its start"),
    ("too many GPUs", "csv", cells("a,0,0,1,99999999"), {}, "row 2, column gpus: 99999999"),
    ("long name", "csv", cells("x" * 300 + ",0,0,1,1"), {}, "row 2, column job: xxx"),
    ("invisible", "csv", cells("a\u202eb,0,0,1,1"), {}, "U+202E"),
    ("short row", "csv", cells("a,0,0,1"), {}, "row 2, column (all): 4 cells"),
    ("no column", "csv", "job,submit,begin,end,gpus\n", {}, "must be a table with a header"),
    ("empty", "csv", "", {}, "(empty): must hold something"),
    ("unknown role", "csv", CSV, {"columns": {"begin": "start"}}, "begin=start: must name one of"),
    ("mixed clocks", "csv", CSV + "c,2024-01-01T00:00:00Z,1,2,1\n", {}, "row 4, column submit"),
    ("naive", "csv", cells("a,2024-01-01 00:00:00,2,3,1"), {}, "`time_zone` must name"),
    ("unit", "csv", CSV, {"time_unit": "weeks"}, "time_unit: weeks: must be one of s, ms"),
    ("step", "csv", CSV, {"time_step": "0"}, "time_step: 0: must be seconds above 0"),
    ("too far", "csv", cells("a,0,0,9223372036854775807,1"), {}, "must lie within 285 years"),
    (
        "skipped hour", "csv", cells("a,2024-03-31T02:30:00,2024-03-31T04:00,2024-03-31T05:00,1"),
        {"time_zone": "Europe/Berlin"}, "row 2, column submit: 2024-03-31T02:30:00: the clock of",
    ),
    ("weight", "csv", "job,submit,start,end,gpus,weight\na,0,0,1,1,-2\n", {}, "column weight: -2"),
    ("duration", "csv", "job,submit,start,end,gpus,duration\na,0,0,1,1,-5\n", {},
     "column duration: -5: must not be negative"),
    ("latin", "csv", CSV.encode() + b"\xff,0,0,1,1\n", {}, "row 4: byte 0xff: must be UTF-8"),
    ("NUL", "csv", CSV + "a\0,0,0,1,1\n", {}, "row 4: (a NUL character)"),
    ("ZIP", "csv", b"PK\x03\x04rest", {}, "a ZIP archive"),
    ("cut gzip", "csv", gzip.compress(CSV.encode() * 99)[:-20], {}, "damaged"),
    ("bytes", "csv", CSV, {"most_bytes": 20}, "must unpack to at most 20 bytes"),
    ("format", "cvs", CSV, {}, "format: cvs: must be one of csv, swf"),
    ("two capacities", "csv", CSV, {"gpus": 4, "servers": "1x4"}, "not both"),
    ("servers", "csv", CSV, {"servers": "many"}, "servers: many: must be like 16x8"),
    ("SWF width", "swf", SWF + "2 0 0\n", {}, "row 3, column (all): 3 numbers"),
    ("SWF unknown", "swf", SWF.replace("1 0 0", "1 0 -1"), {}, "wait unknown"),
    ("sacct zone", "sacct", SACCT + GOOD_SACCT, {}, "row 2, column Submit: 2024-03-01T00:00:00"),
    ("sacct id", "sacct", SACCT + GOOD_SACCT.replace("1|", "x1|", 1), {"time_zone": "UTC"},
     "row 2, column JobID: x1: must be a job of Slurm"),
    ("sacct elapsed", "sacct", SACCT + GOOD_SACCT.replace("|01:", "|02:"), {"time_zone": "UTC"},
     "row 2, column Elapsed: 02:00:00: must not exceed End - Start"),
    ("sacct span", "sacct", SACCT + GOOD_SACCT.replace("|01:00:00", "|01:99:00"),
     {"time_zone": "UTC"}, "row 2, column Elapsed: 01:99:00: must be a number of"),
    ("sacct thousands", "sacct", SACCT + GOOD_SACCT.replace("gpu=1", "gpu=1K"),
     {"time_zone": "UTC"}, "row 2, column AllocTRES: gres/gpu=1K: must count GPUs as gres/gpu=4"),
    ("sacct as csv", "csv", SACCT + GOOD_SACCT, {}, "`format` sacct reads files that begin like"),
    ("pods as csv", "csv", '{"items": []}', {}, "`format` kubernetes reads files that begin"),
    ("swf as csv", "csv", "; Version: 2.2\n1 0 5 10 4\n", {}, "`format` swf reads files that"),
    ("sacct alone", "sacct", "JobID|State\n1|RUNNING\n", {}, "--format JobID,User,Submit,Start"),
    ("sacct fixed", "sacct", "JobID  Submit\n-----  ------\n", {}, "sacct --parsable2"),
    ("pods JSON", "kubernetes", '{"items": [{]}', {}, "row 1: ]}: must be JSON"),
    ("pods none", "kubernetes", '{"items": []}', {}, "(no record)"),
    ("pod status", "kubernetes", pod(status=[]), {}, "pod 2, column status: []: must be an object"),
    ("pod GPUs", "kubernetes",
     pod(spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": "two"}}}]}), {},
     "pod 2, column resources.limits.nvidia.com/gpu: two"),
    ("deep JSON", "kubernetes", "[" * 100_000, {}, "must"),
    ("philly job", "philly", '[{"jobid": "a"}]', {}, "job 1, column (all): jobid: must have"),
    ("philly attempts", "philly", '[{"jobid": "a", "submitted_time": "", "attempts": 3}]', {},
     "job 1, column attempts: 3: must be a list"),
    ("no events", "elasticflow", JOBS, {}, "must have scheduling_events.csv beside it"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "content", "options", "expected"),
    [case[1:] for case in BROKEN],
    ids=[case[0] for case in BROKEN],
)
def test_a_broken_log_is_one_line(
    tmp_path: Path, form: str, content: str | bytes, options: dict[str, Any], expected: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read_log(path, form, **options)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("time,gpu0-0\n0,0\n0,\n", "row 3, column time: 0: must be later"),
        ("time,x\n0,0\n", "row 1: time, x: must have a column time and"),
        ("time,gpu0-0\nnoon,0\n", "row 2, column time: noon"),
        ("time,gpu0-0\n0,0\n,0\n9,\n", "row 3, column time: (empty): must be a number"),
    ],
)
def test_broken_events_are_one_line(tmp_path: Path, events: str, expected: str) -> None:
    (tmp_path / "job.csv").write_text(JOBS)
    (tmp_path / "scheduling_events.csv").write_text(events)
    with pytest.raises(InputError) as caught:
        read_log(tmp_path, "elasticflow")
    assert expected in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/zero", "a\0b"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="must be a readable file"):
        read_log(path, "csv")


def test_a_pipe_with_a_writer_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(CSV,))
    writer.start()
    try:
        assert len(read_log(pipe, "csv").jobs) == 2
    finally:
        writer.join()


def test_broken_rows_can_be_left_out_and_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(CSV + "c,1,x,2,1\nd,0,10,3,4\ne,1\nf,1,2,3,-1\n")
    log = read_log(path, "csv", skip_broken=True)
    assert log.jobs["job"].tolist() == ["a", "b"]
    notes = log.notes.to_frame()
    assert notes["row"].tolist() == [4, 5, 6, 7]
    assert set(notes["done"]) == {"row left out"}
    assert log.rows_read == 6


PIECES = (
    b"-1", b"", b"0", b"99999999999999999999", b"NaN", b"inf", b"1e308", b"-", b",", b'"', b"\n",
    b"|", b"\xff", b"\x00", b"9223372036854775807", b"2024-03-31T02:30:00", b"Unknown", b"0.5",
    b"{", b"]", b"null", b"true", b"2017-13-01 00:00:00", b" ", b"0001-01-01T00:00:00Z",
    b"9999-12-31T23:59:59Z", b"=1+1", b"\xe2\x80\xae",
)  # fmt: skip
MUTATED = (
    ("csv", "jobs.csv"), ("swf", "workload.swf"), ("sacct", "sacct.txt"),
    ("kubernetes", "pods.json"), ("openb", "pods.csv"), ("philly", "cluster_job_log.json"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_a_mutated_log_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    examples = Path(str(files("hindsched.instances.traces") / "examples"))
    path = tmp_path / "log"
    for number in range(40):
        form, name = MUTATED[(seed + number) % len(MUTATED)]
        data = bytearray((examples / name).read_bytes())
        for _ in range(draw.randrange(1, 4)):
            begin = draw.randrange(len(data))
            end = min(len(data), begin + draw.choice((0, 0, 1, 5, 80)))
            data[begin:end] = draw.choice(PIECES)
        path.write_bytes(bytes(data))
        with suppress(InputError):
            log = read_log(path, form, time_zone="Europe/Berlin", skip_broken=number % 2 == 0)
            assert len(log.to_frame()) == len(log.jobs) > 0


# Times are whole microseconds, whatever the unit, the offset and the decimals.


def parse(*cells: str, **options: str) -> pd.DataFrame:
    return LogClock(options.get("zone")).times(pd.Series(cells, dtype=object))


@given(st.integers(0, 4 * 10**15), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
def test_stamps_are_read_as_they_are_written(time: int, zone: str) -> None:
    assert parse(stamp_text(time, find_zone(zone)))["value"].tolist() == [time]


@given(st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)), st.sampled_from([0, 1]))
def test_naive_stamps_agree_with_the_standard_library(naive: datetime, fold: int) -> None:
    zone = ZoneInfo("America/New_York")
    expected = naive.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    found = parse(naive.isoformat(), zone="America/New_York").iloc[0]
    if expected.astimezone(zone).replace(tzinfo=None, fold=0) != naive:
        assert "skips this time" in found["rule"]
        return
    both = [found["value"], found["value"] if pd.isna(found["later"]) else found["later"]]
    whole = int(expected.timestamp() // 1 * SECOND) + expected.microsecond
    assert both[fold] == whole


def test_what_is_no_number_is_no_time() -> None:
    cells = ("1_000", "\u0663", "--1", "inf", "nan", "0x10", "1,5")
    assert parse("1", *cells)["rule"].str.startswith("must be a number").tolist() == [
        False,
        *[True] * 7,
    ]


def test_times_are_rounded_if_asked() -> None:
    frame = pd.DataFrame(
        {"job": ["a"], "submit": ["0"], "start": ["0.125"], "end": ["1"], "gpus": 1}
    )
    assert read_log(frame).slots_per_second == 1000
    frame["start"] = "0.1234567"
    log = read_log(frame, time_step="0.01")
    assert log.slots_per_second == 100
    assert log.schedule["start"].tolist() == [12]
    note = log.notes.summary()[0]
    assert note["rule"] == "rounded to multiples of 0.01 s as asked"
    assert note["first_value"] == "1 time, by at most 0.003457 s"


def test_microseconds_over_a_month_are_rounded_and_noted() -> None:
    """More than 10^12 slots cannot be counted; who waited, ran and overlapped stays the same."""
    draw = np.random.default_rng(0)
    times = np.sort(draw.integers(0, 40 * 86400 * 10**6, (30, 3)), axis=1)
    begin = pd.Timestamp("2024-05-06 09:00")
    names = ("submit", "start", "end")
    stamps = {n: begin + pd.to_timedelta(t, unit="us") for n, t in zip(names, times.T, strict=True)}
    frame = pd.DataFrame({"job": range(30), **stamps, "gpus": 1})
    frame["duration"] = frame["end"] - frame["start"]
    log = read_log(frame, gpus=30, time_zone="UTC")
    assert log.slots_per_second == 10**5
    assert log.formulation == "non-preemptive"
    assert "multiples of 0.00001 s" in log.notes.summary()[0]["rule"]
    assert find_breaches(log).listed == ()
