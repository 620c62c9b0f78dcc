"""Real comparisons: what reaches the algorithms, sweeps, and runs that are slow or fail."""

import io
import json
import time

import pytest
from rich.console import Console

import hindsched as hs
from hindsched.analysis.compare import compare, progress_bar, ratio
from hindsched.cli.app import run
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.io import write

INSTANCE = hs.generate("oasis", preset="small", seed=1)


def test_real_runs(instance):
    comparison = compare(
        instance, ["oasis", "fifo"], seeds=2, method="bound", time_limit=2, progress=False
    )
    frame = comparison.to_frame()
    assert list(frame["algorithm"]) == ["oasis", "fifo", "fifo"]
    assert list(frame["seed"]) == [0, 0, 1]
    assert (frame["ratio_lower"] >= 1).all()
    assert (frame["ratio_upper"] >= frame["ratio_lower"]).all()
    # The optimum proven elsewhere, 182.359, lies in the interval.
    [item] = comparison.instances
    assert item.optimum.interval.lower <= 182.359 * (1 + 1e-4)
    assert item.optimum.interval.upper >= 182.359 * (1 - 1e-4)
    assert item.algorithm("oasis").theorem["kind"] == "ratio"
    assert item.algorithm("fifo").theorem is None
    assert set(comparison.job_frame()["algorithm"]) == {"oasis", "fifo"}
    assert (comparison.slot_frame()["used"] > 0).all()


def test_settings_reach_the_algorithms_that_have_them(instance):
    found = ratio(
        instance, ["oasis", "drf"], settings={"lower_floor": "0.1"}, method="bound",
        time_limit=1, progress=False,
    )  # fmt: skip
    assert found.algorithm("oasis").settings == {"lower_floor": "0.1"}
    assert found.algorithm("drf").settings == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithms": ["nope"]}, "algorithm: nope: must be one of"),
        ({"settings": {"nope": 1}}, "set.nope: 1: the algorithms have the settings"),
        ({"method": "nope"}, "method: nope: must be one of"),
        ({"solver": "nope"}, "solver: nope: must be one of"),
        ({"seeds": 0}, "seeds: 0: must be at least 1"),
        ({"seeds": True}, "must be at least 1, a whole number"),
        ({"time_limit": -1}, "time_limit: -1: must be a number of seconds"),
        ({"tim_limit": 2}, r"^tim_limit: .*did you mean time_limit\?$"),
    ],
)
def test_bad_input_is_found_before_anything_runs(options, message):
    with pytest.raises(InputError, match=message):
        compare(INSTANCE, **options)


def test_a_failed_offline_solve_is_no_ratio(instance, monkeypatch):
    def breaks(*args, **kwargs):
        raise SolveFailed("it broke")

    monkeypatch.setattr("hindsched.solvers.door.api.solve", breaks)
    with pytest.raises(SolveFailed, match="it broke"):
        ratio(instance, ["oasis"], progress=False)


def test_the_bar_goes_to_standard_error(instance, capsys):
    compare(instance, ["oasis"], method="bound", time_limit=0.5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "comparing: 2/2" in captured.err


SLOW = """
import hindsched as hs
import time

class Slow(hs.OnlineAlgorithm):
    def start(self, environment): pass
    def step(self, slot, arrivals):
        time.sleep(0.2)
        return hs.Decision()
"""


def test_the_time_limit_of_bench_is_for_runs_too(tmp_path, capsys):
    own = tmp_path / "own.py"
    own.write_text(SLOW)
    write(INSTANCE, tmp_path / "x.json")
    folder = str(tmp_path / "out")
    limit = ["--time-limit", "0.3", "--json"]
    given = [str(tmp_path / "x.json"), "--algorithm", f"{own}:Slow", "--algorithm", "fifo"]
    bench = ["--method", "bound", "--workers", "0", "--out", folder]
    assert run(["bench", *given, *bench, *limit]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert ["stopped after 0.3 s" in line for line in answer["failed"]] == [True]
    assert answer["missing"] == 1  # a resumed run tries it again, with the same limit
    assert run(["bench", "--resume", "--workers", "0", "--out", folder, "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["failed"] == answer["failed"]
    ratios = {row["algorithm"]: row["ratio"] for row in again["instances"][0]["algorithms"]}
    assert ratios[f"{own}:Slow"] is None
    assert ratios["fifo"] is not None


def test_progress_says_something_every_few_seconds(monkeypatch):
    monkeypatch.setattr("hindsched.analysis.compare.LONGEST_SILENCE", 0.2)
    screen = Console(file=io.StringIO())
    with progress_bar(807, "bench", console=screen) as advance:
        advance("first")
        time.sleep(0.7)
    lines = screen.file.getvalue().splitlines()
    assert lines[0].startswith("bench: 1/807 first")
    assert lines[1].startswith("bench: 1/807 done, working")


def test_progress_of_quick_tasks_is_not_a_line_each():
    screen = Console(file=io.StringIO())
    with progress_bar(8, "bench", console=screen) as advance:
        for number in range(8):
            advance(f"task {number}")
    lines = screen.file.getvalue().splitlines()
    assert [line.split(" (")[0] for line in lines] == ["bench: 1/8 task 0", "bench: 8/8 task 7"]
