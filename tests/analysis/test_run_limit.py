"""A run of an algorithm that is slow, or never ends, costs its row and nothing else."""

import json
import sys
import time

import pytest

import hindsched as hs
from hindsched import limits
from hindsched.analysis import tasks
from hindsched.cli.app import run
from hindsched.instances.io import write

INSTANCE = hs.generate("oasis", preset="small", seed=1)
LATE = r"time limit: "


class Endless(hs.OnlineAlgorithm):
    """Computes for ever."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        while True:
            pass


class Asleep(Endless):
    """Waits for ever, in a single call."""

    def step(self, slot, arrivals):
        time.sleep(3600)


class Deaf(Endless):
    """Computes for ever and lets nothing stop it."""

    def step(self, slot, arrivals):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(limits, "OVERRUN_SECONDS", 0.2)


def compared(algorithms, **options):
    found = hs.compare(
        INSTANCE, algorithms, method="bound", time_limit=0.2, progress=False, **options
    )
    return found.instances[0]


@pytest.mark.parametrize("endless", [Endless, Asleep])
def test_an_endless_run_fails_and_the_others_count(endless):
    found = compared(["fifo", endless, "drf"], run_limit=0.2)
    [error] = found.algorithm(endless.__name__).errors
    assert error == "time limit: not finished after 0.2 s"
    for name in ("fifo", "drf"):
        assert found.algorithm(name).ratio.exists


def test_a_scheduler_that_does_not_answer_is_ended():
    silent = f"exec:{sys.executable} -c 'import time; time.sleep(3600)'"
    found = compared([silent, "fifo"], run_limit=0.2)
    [error] = found.algorithm(silent).errors
    assert error == "time limit: not finished after 0.2 s"
    assert found.algorithm("fifo").ratio.exists


def test_a_worker_that_nothing_stops_is_killed():
    found = compared(["fifo", Deaf], run_limit=0.2, workers=1)
    [error] = found.algorithm("Deaf").errors
    assert error == "time limit: neither finished nor stopped"
    assert found.algorithm("fifo").ratio.exists


def test_without_a_limit_nothing_is_stopped(monkeypatch):
    given = []
    monkeypatch.setattr(
        tasks, "time_limit", lambda seconds: given.append(seconds) or limits.time_limit(None)
    )
    assert compared(["fifo"]).algorithm("fifo").ratio.exists
    assert set(given) == {None}


def test_the_time_limit_of_bench_is_for_runs_too(tmp_path, capsys):
    own = tmp_path / "own.py"
    own.write_text(
        "import hindsched as hs\n"
        "class Endless(hs.OnlineAlgorithm):\n"
        "    def start(self, environment): pass\n"
        "    def step(self, slot, arrivals):\n"
        "        while True: pass\n"
    )
    write(INSTANCE, tmp_path / "x.json")
    folder = str(tmp_path / "out")
    limit = ["--time-limit", "0.3", "--json"]
    given = [str(tmp_path / "x.json"), "--algorithm", f"{own}:Endless", "--algorithm", "fifo"]
    bench = ["--method", "bound", "--workers", "0", "--out", folder]
    assert run(["bench", *given, *bench, *limit]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [LATE in line for line in answer["failed"]] == [True]
    assert answer["missing"] == 1  # a resumed run tries it again, with the same limit
    assert run(["bench", "--resume", "--workers", "0", "--out", folder, "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["failed"] == answer["failed"]
    ratios = {row["algorithm"]: row["ratio"] for row in again["instances"][0]["algorithms"]}
    assert ratios[f"{own}:Endless"] is None
    assert ratios["fifo"] is not None


def test_the_time_limit_of_ratio_is_for_runs_too(tmp_path, capsys):
    silent = f"exec:{sys.executable} -c 'import time; time.sleep(3600)'"
    write(INSTANCE, tmp_path / "x.json")
    given = [str(tmp_path / "x.json"), "--algorithm", silent, "--algorithm", "fifo"]
    assert run(["ratio", *given, "--method", "bound", "--time-limit", "0.3"]) == 1
    out, err = capsys.readouterr()
    assert "time limit: not finished after 0.3 s" in err
    assert "fifo" in out
