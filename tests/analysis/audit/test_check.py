"""``audit --check``: each thing that can be wrong with a log is told, and what can be judged."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.instances.traces.log import read_log

EXAMPLES = Path(str(files("hindsched.instances.traces") / "examples"))
LOG = pd.DataFrame({
    "job": ["a", "b", "c"], "submit": 0, "start": [0, 60, 90], "end": [60, 90, 100], "gpus": 2,
    "user": ["u", "v", "v"],
})  # fmt: skip


def found(log: pd.DataFrame, **options: Any) -> tuple[str, str]:
    """Verdict and findings."""
    check = hs.check_log(log, **{"gpus": 2, **options})
    return check.verdict, " | ".join(check.findings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("job,submit,start,duration,gpus\na,0,10,100,2\n", "sound"),
        ("job,submit,wait,runtime,gpus\na,0,10,100,2\n", "sound"),
        ("name,queued,begin,finish,n_gpu\na,0,10,100,2\n", "sound"),
        ("a,0,10,100,2\nb,0,10,100,2\n", "the first row must name the columns"),
        ("job,submit,start,end,gpus\na,1700000000000,1700000100000,1700003700000,2\n",
         "(is `time_unit` ms, us or ns?)"),
    ],
)  # fmt: skip
def test_shapes_that_people_type(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "log.csv").write_text(text)
    looked = hs.check_log(tmp_path / "log.csv", gpus=2)
    assert says in looked.sentence()
    if looked.verdict == "sound":
        assert hs.audit(tmp_path / "log.csv", gpus=2, time_limit=1).verdict.value in (100, 110)


def test_options_have_the_names_of_who_asks(tmp_path: Path, capsys: Any) -> None:
    """Python is told `columns`, the command line --column."""
    log = LOG.rename(columns={"submit": "Submitted At", "start": "When"})
    assert "`columns` start=NAME names it" in hs.check_log(log, gpus=2).because
    log.to_csv(tmp_path / "log.csv", index=False)
    assert run(["audit", str(tmp_path / "log.csv"), "--check"]) == 0
    assert "--column start=NAME names it" in (told := capsys.readouterr().out)
    assert "`" not in told
    (tmp_path / "pods.json").write_text('{"items": []}')
    assert run(["audit", str(tmp_path / "pods.json")]) == 2
    assert "--format kubernetes reads files that begin like this" in capsys.readouterr().err


def test_a_sound_log() -> None:
    assert found(LOG) == ("sound", "")
    assert hs.check_log(LOG, gpus=2).sentence() == (
        "frame: sound. 3 rows read: 3 jobs judged, 0 rows not judged."
    )
    assert found(pd.concat([LOG, LOG.tail(1).assign(job="d", gpus=0)]))[0] == "sound"


@pytest.mark.parametrize(
    ("changed", "options", "says"),
    [
        ({"end": [60, 90, 80]}, {}, "1 row left out: must not precede the start"),
        ({"end": [60, 90, None]}, {}, "still running when the log ended"),
        ({"submit": [0, None, 0]}, {}, "1 row set aside: no submission"),
        ({"start": [0, 60, 61]}, {}, "4 GPUs held where there are 2 from 61 to 90; most by user v"),
        ({"submit": [0, 70, 0]}, {}, "impossible, once: started before submission"),
        ({}, {"gpus": 5}, "never used: 3 of 5 GPUs"),
        ({"submit": [0, 60, 90]}, {}, "no job waited"),
        ({"job": ["a", "c", "c"], "start": [0, 90, 90], "end": [60, 100, 100]}, {},
         "1 row of the log stands in it before, the same"),
        ({"server": ["x", "x", "x"]}, {"gpus": None, "servers": "x=2,y=2"},
         "never used: 1 server, such as y"),
        ({"gpu_kinds": ["V100", "", ""], "gpus": [2, 1, 1]},
         {"gpus": None, "servers": "x=1@V100,y=2@P100"},
         "impossible: 2 GPUs of kind V100 held where there are 1, from 0 to 60; most by user u: 2"),
        ({"gpu_kinds": "V100", "start": 0}, {"gpus": None, "servers": "x=2@V100,y=9@P100"},
         "jobs that name V100 alone ask for 250% of its GPU-seconds"),
        ({"gpu_kinds": ["K80", "", ""]}, {"gpus": None, "servers": "x=2@V100,y=2@P100"},
         "jobs name 1 kind of GPUs that no server has: K80"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(changed: Any, options: Any, says: str) -> None:
    verdict, findings = found(LOG.assign(**changed), **options)
    assert says in findings
    assert "kind" not in says or verdict == "judged with what is left"


@pytest.mark.parametrize(
    ("log", "options", "because"),
    [
        (LOG, {"gpus": None}, "nobody says how many GPUs there are"),
        (LOG, {"gpus": 1}, "column gpus: 2: the cluster has 1"),
        (LOG.drop(columns="submit"), {}, "no column says submit (there are job, start, end,"),
        (
            LOG.assign(submit=None),
            {},
            "no row can be judged, most often (column submit) for this: no submission",
        ),
    ],
)
def test_what_cannot_be_judged_says_why(log: pd.DataFrame, options: Any, because: str) -> None:
    check = hs.check_log(log, **{"gpus": 2, **options})
    assert check.verdict == "cannot be judged"
    assert because in check.because
    assert check.sentence().startswith("frame: cannot be judged, because")


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("jobs.csv", {}), ("pods.csv", {"format": "openb"}),
        ("sacct.txt", {"format": "sacct", "time_zone": "Europe/Berlin"}),
        ("pods.json", {"format": "kubernetes"}), ("workload.swf", {"format": "swf"}),
    ],
)  # fmt: skip
def test_counts_add_up(file: str, options: Any) -> None:
    """Every row that was read is judged, or some note says that it is not and why."""
    log = read_log(EXAMPLES / file, **options)
    judged = int((log.rows["why"] == "").sum())
    assert log.rows_read == judged + hs.check_log(log).rows_out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.csv"
    LOG.assign(end=[60, 90, 80]).to_csv(log, index=False)
    assert run(["audit", str(log), "--gpus", "2", "--check"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "log.csv: judged with what is left. 3 rows read: 2 jobs judged, 1 row not judged.",
        "- 1 row left out: must not precede the start (column end, row 4: -10 s after its start).",
    ]
    assert run(["audit", str(log), "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "cannot be judged"
    assert run(["audit", str(log), "--check", "-o", str(tmp_path / "out")]) == 2
    assert run(["audit", str(tmp_path / "absent.csv"), "--check"]) == 2
    with pytest.raises(InputError, match="unit"):
        hs.check_log(LOG, time_unit="weeks")


@pytest.mark.parametrize("file", ["pods_detail.csv", "workloads.json", "kinds.txt"])
def test_the_guide_shows_what_is_told(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    guide = Path("docs/guides/check_a_log.md").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(guide) if f"hindsched audit {file}" in line)
    shown = [line.strip() for line in guide[at + 1 : guide.index("", at)]]
    command = guide[at].replace(file, str(EXAMPLES / file)).split()[1:]
    assert run(command) == 0
    assert capsys.readouterr().out.splitlines() == shown
