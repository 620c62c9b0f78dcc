"""Ctrl-C and SIGTERM at any moment: one line that says what became of what was there."""

import signal
import subprocess
import sys

import pytest

import hindsched as hs
from hindsched.cli.app import run
from hindsched.instances.io import write
from hindsched.solvers.door.work import Terminated

pytestmark = pytest.mark.nightly

LATE = """
import hindsched.cli, os, sys
class Slow:  # stands for modules that take long to load
    def find_spec(self, name, *_):
        if name == "hindsched.cli.app":
            print("loading", flush=True)
            __import__("time").sleep(60)
sys.meta_path.insert(0, Slow())
hindsched.cli.main()
"""


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_while_modules_are_loaded(number, code, word):
    process = subprocess.Popen(
        [sys.executable, "-c", LATE], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == "loading\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    line = f"error: {word} before anything began; what was there is as it was\n"
    assert (process.returncode, errors) == (code, line)


@pytest.mark.parametrize(
    ("reason", "code", "word"),
    [(KeyboardInterrupt, 130, "interrupted"), (Terminated, 143, "terminated")],
)
@pytest.mark.parametrize("moment", ["damages", "missing", "write_tables"])
def test_before_and_after_the_tasks(tmp_path, capsys, monkeypatch, moment, reason, code, word):
    """While a folder is checked, and while tables are written, as well."""
    from hindsched.analysis.store import ResultStore

    write(hs.generate("oasis", preset="small", seed=1), tmp_path / "x.json")
    folder = str(tmp_path / "out")
    given = [str(tmp_path / "x.json"), "--algorithm", "fifo", "--seeds", "1", "--method", "bound"]
    assert run(["bench", *given, "--workers", "0", "--out", folder]) == 0
    capsys.readouterr()
    asked = iter([reason])
    real = getattr(ResultStore, moment)

    def disturbed(self, *arguments, **more):
        for error in asked:
            raise error
        return real(self, *arguments, **more)

    monkeypatch.setattr(ResultStore, moment, disturbed)
    assert run(["bench", "--resume", "--workers", "0", "--out", folder]) == code
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == [
        f"{word}: 2 of 2 tasks are kept; go on with",
        f"  hindsched bench --resume --out {folder}",
    ]
