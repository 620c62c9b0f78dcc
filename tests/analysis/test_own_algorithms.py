"""Algorithms of one's own in comparisons: classes, objects, files and commands, in any process."""

import re

import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.errors import InputError

INSTANCE = hs.generate("oasis", preset="small", seed=1)
QUICK = {"method": "bound", "time_limit": 0.2, "progress": False}


class Refuses(hs.OnlineAlgorithm):
    def __init__(self, every: int = 1):
        self.every = every

    def start(self, environment):
        self.seen = 0

    def step(self, slot, arrivals):
        self.seen += len(arrivals)
        return hs.Decision(rejected=[job.name for job in arrivals[:: self.every]])


class Breaks(Refuses):
    def step(self, slot, arrivals):
        return 1 / 0


def names(comparison):
    return [row.algorithm for row in comparison.instances[0].algorithms]


@pytest.mark.parametrize("workers", [0, 2])
def test_classes_and_objects_in_a_comparison(workers):
    found = hs.compare(
        INSTANCE, ["oasis", Refuses, Refuses(every=2), Breaks], workers=workers, **QUICK
    )
    assert names(found) == ["oasis", "Refuses", "Refuses(every=2)", "Breaks"]
    [item] = found.instances
    assert item.algorithm("Refuses").ratio.is_infinite
    [error] = item.algorithm("Breaks").errors
    assert re.search(r"ZeroDivisionError: .*test_own_algorithms\.py, line \d+", error)
    assert item.algorithm("oasis").ratio.exists


def test_what_ran_in_our_process_is_marked_in_every_table(tmp_path, capsys):
    """It could change what we compute: a class that walks ``gc.get_objects`` did."""
    (tmp_path / "mine.py").write_text(
        "import hindsched as hs\n"
        "class Mine(hs.OnlineAlgorithm):\n"
        "    def start(self, environment): pass\n"
        "    def step(self, slot, arrivals): return hs.Decision()\n"
    )
    folder, file = tmp_path / "out", f"{tmp_path}/mine.py:Mine"
    asked = ["fifo", file, f"exec:python {tmp_path}/mine.py"]
    found = hs.compare(INSTANCE, [*asked, Refuses], out=folder, **QUICK)
    marked = {"fifo": "", file: "(not isolated)", asked[-1]: "", "Refuses": "(not isolated)"}
    frame = found.to_frame()
    assert dict(zip(frame["algorithm"], frame["mark"], strict=True)) == marked
    assert f"{file} (not isolated)" in str(found)
    assert "Mine (not isolated)" in (folder / "report.html").read_text()
    assert "(not isolated)" in (folder / "runs.csv").read_text()
    assert run(["report", str(folder)]) == 0
    assert "Mine (not isolated)" in "".join(capsys.readouterr().out.split("\n"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def step(self, slot, arrivals): 1 / 0", "ZeroDivisionError: division by zero"),
        ("def step(self, slot, arrivals): raise SystemExit(3)", "SystemExit: 3"),
        ("def __init__(self): 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.parametrize("command", [["simulate"], ["ratio", "--time-limit", "0.2"]])
def test_the_command_line_shows_file_and_line(command, body, said, tmp_path, capsys):
    file, instance = tmp_path / "mine.py", str(tmp_path / "instance.json")
    file.write_text(
        "import hindsched as hs\n"
        "class Mine(hs.OnlineAlgorithm):\n"
        f"    {body}\n"
        f"    def start(self, environment): pass\n"
        + ("" if "def step" in body else "    def step(self, slot, arrivals): pass\n")
    )
    hs.write(INSTANCE, instance)
    assert run([*command, instance, "--algorithm", f"{file}:Mine"]) == 1
    assert f"{said} ({file}, line 3)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([3], "must be a name, or a class or object"),
        ([dict], "must be a name, or a class or object"),
        ([Refuses, Refuses], "stands twice"),
        ([Refuses(), Refuses()], "stands twice"),
        (["nope"], "must be one of oasis"),
    ],
)
def test_what_is_no_algorithm_is_found_before_anything_runs(chosen, message):
    with pytest.raises(InputError, match=message):
        hs.compare(INSTANCE, chosen, **QUICK)
