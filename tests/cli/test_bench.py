"""The main job: killed and resumed, interrupted, rebuilt; and Ctrl-C during a solve."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hindsched.analysis.store import ResultStore
from hindsched.cli.app import run
from hindsched.errors import InputError

COMMAND = [sys.executable, "-m", "hindsched"]
FEW = ["--algorithm", "oasis", "--algorithm", "fifo", "--seeds", "2"]
BOUND = ["--method", "bound", "--time-limit", "1"]
WAIT_SECONDS = 120


def start(*arguments, **options):
    """Start a command in a session of its own, as a terminal does."""
    return subprocess.Popen(
        [*COMMAND, *arguments], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def wait_until(condition, process):
    """Poll; fail if the process ends or nothing happens for long."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if process.poll() is not None:
            pytest.fail(f"ended with {process.returncode}: {process.communicate()}")
        if time.monotonic() > end:
            process.kill()
            pytest.fail("nothing happened")
        time.sleep(0.01)


def finished(folder):
    """Modification time and content of every finished task."""
    files = sorted(Path(folder, "tasks").glob("[!.]*.json"))
    return {path.name: (path.stat().st_mtime_ns, path.read_text()) for path in files}


def processes_of(group):
    """Living processes that name the folder on their command line or belong to the session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(stat[3]) == group and stat[0] != "Z":
            found.append(int(entry.name))
    return found


def test_the_main_job(answer, capsys, tmp_path):
    folder = tmp_path / "out"
    code, report = answer("bench", "oasis/small", *FEW, *BOUND, "--out", str(folder))
    assert code == 0, report
    assert report["missing"] == 0
    assert report["failed"] == []
    store = ResultStore.open(folder)
    assert len(report["instances"]) == len(store.instances) >= 8
    for item in report["instances"]:
        assert [row["algorithm"] for row in item["algorithms"]] == ["oasis", "fifo"]
        for row in item["algorithms"]:
            if row["ratio"] is not None:
                lower, upper = (float(row["ratio"][end]) for end in ("lower", "upper"))
                assert 1 - 1e-9 <= lower <= upper
    page = Path(report["report"]).read_text()
    assert page.startswith("<!DOCTYPE html>")

    # Everything can be made again from the folder alone.
    for name in ("report.html", "runs.csv", "optima.csv"):
        (folder / name).unlink()
    assert run(["report", str(folder)]) == 0
    assert (folder / "report.html").read_text() == page
    assert (folder / "runs.csv").exists()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    verdict = lines[lines.index(f"report: {folder}/report.html") + 1 :]
    assert len(verdict) <= 3  # a long interval is wrapped
    assert verdict[0].startswith("oasis: oasis comes closest, ")
    assert "optima proven" in verdict[-1]

    # Resuming what is complete does nothing.
    before = finished(folder)
    code, _ = answer("bench", "oasis/small", "-o", str(folder), "--resume")
    assert code == 0
    assert finished(folder) == before


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find orphans")
def test_sigkill_in_the_middle_then_resume(answer, tmp_path):
    folder = tmp_path / "out"
    arguments = ["bench", "oasis/small", *FEW, *BOUND, "--out", str(folder)]
    process = start(*arguments)
    wait_until(lambda: len(finished(folder)) >= 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    before = finished(folder)
    store = ResultStore.open(folder)
    total = len(store.tasks)
    assert 3 <= len(before) < total

    # Workers follow their parent.
    end = time.monotonic() + 20
    while processes_of(process.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes_of(process.pid) == []

    code, report = answer("bench", "--resume", "--out", str(folder))
    assert code == 0
    after = finished(folder)
    assert len(after) == total
    assert {name: after[name] for name in before} == before, "a finished task was repeated"
    assert report["missing"] == 0
    assert {task.key + ".json" for task in store.tasks} == set(after)


@pytest.mark.nightly
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    folder = tmp_path / "out"
    solves = ["--method", "relaxation", "--time-limit", "1"]  # these load Pyomo in the workers
    process = start("bench", "oasis/small", *solves, "--out", str(folder))
    wait_until(lambda: len(finished(folder)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    lines = [line for line in err.splitlines() if not line.startswith("bench: ")]
    assert len(lines) == 3, err  # no traceback, no warning
    assert lines[1].startswith("interrupted: ")
    assert lines[2] == f"  hindsched bench --resume --out {folder}"
    assert len(finished(folder)) >= 2


def test_a_failed_task_is_exit_code_1_and_is_tried_again(answer, capsys, tmp_path, monkeypatch):
    from hindsched.errors import SolveFailed

    folder = str(tmp_path / "out")
    arguments = ["bench", "oasis/small", "--algorithm", "oasis", *BOUND]
    with monkeypatch.context() as patch:

        def breaks(*args, **kwargs):
            raise SolveFailed("it broke")

        patch.setattr("hindsched.online.simulator.simulate", breaks)
        assert run([*arguments, "--out", folder, "--workers", "0"]) == 1
    assert "SolveFailed: it broke" in capsys.readouterr().err
    code, report = answer("bench", "--resume", "--out", folder, "--workers", "0")
    assert (code, report["failed"]) == (0, [])


def test_tables_have_the_librarys_names_and_gaps_also_where_only_bounds_were_asked_for(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "90")
    name = "mlbroker/small/r3-t3-j4-s0"
    command = ["bench", name, "--algorithm", "mlbroker", "--seeds", "1", "--workers", "0"]
    command += ["--method", "bound", "--time-limit", "100", "--out", str(tmp_path / "out")]
    assert run(command) == 0
    lines = capsys.readouterr().out.splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith("report: "))
    assert max(map(len, [*lines[:end], *lines[end + 1 :]])) <= 90
    (row,) = (line for line in lines if line.startswith(name))
    assert float(re.search(r"([\d.]+)%", row)[1]) > 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"<summary>{name}: optimum " in page


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ([], 60.0),
        (["oasis/small"], 60.0),
        (["small", "--time-limit", "3"], 3.0),
        (["oasis/small/t8-j8-h3-d4-s0"], 10.0),
        (["oasis/small", "oasis/known/t10-i10-h25-s0"], 10.0),
    ],
)
def test_the_suite_whose_optima_are_all_proven_has_more_time(words, limit, monkeypatch):
    asked = []

    def create(folder, chosen, tasks, settings):
        asked.append(settings["time_limit"])
        raise InputError("folder", str(folder), "must not be made here")

    monkeypatch.setattr(ResultStore, "create", create)
    assert run(["bench", *words]) == 2
    assert asked == [limit]


def test_what_is_kept_and_what_failed_is_counted(tmp_path, capsys):
    import hindsched as hs
    from hindsched.cli.bench import _say_kept

    class Fails(hs.OnlineAlgorithm):
        def start(self, environment):
            raise ValueError

        def step(self, slot, arrivals):
            return hs.Decision()

    instance = hs.generate("gang", seed=1)
    options = {"method": "bound", "time_limit": 0.2, "progress": False}
    hs.compare(instance, ["fifo", Fails], out=tmp_path, **options)
    store = ResultStore.open(tmp_path)
    next((tmp_path / "tasks").glob("*offline*")).unlink()
    _say_kept(store, "terminated")
    assert capsys.readouterr().err.startswith(
        "terminated: 1 of 3 tasks are kept, 1 more failed and are tried again; go on with\n"
    )
